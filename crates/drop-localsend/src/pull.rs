//! Files fetched from a device that offers them ("Share via link"): the calls of its web page.

use std::sync::Arc;

use hyper::{Method, StatusCode};
use sealway_drop::cancel::Cancel;
use sealway_drop::names::RelPath;
use sealway_drop_transfer::dest::{Destination, Existing};
use sealway_drop_transfer::progress::Progress;
use sealway_drop_transfer::receive::Offered;
use sealway_drop_transfer::send::Summary;
use zeroize::Zeroizing;

use crate::calls::{DOWNLOAD, PREPARE_DOWNLOAD};
use crate::client::{Client, Outgoing, refusal, whole};
use crate::error::{Error, blocking};
use crate::find::Found;
use crate::landing::{Failed, Landing, Plan};
use crate::message::{MAX_OFFER, Offer};
use crate::node::Node;
use crate::query::target;
use crate::receive::{Peer, Telling};
use crate::send::{AskPin, ask_for, stopped_by};
use crate::stream::PATIENCE;

/// Fetches what a device offers into a folder. A person of each end is asked.
///
/// # Errors
/// Those of all of it; files that alone did not come are in the summary.
pub async fn pull(
    node: &Arc<Node>,
    from: &Found,
    destination: &Destination,
    telling: &Arc<dyn Telling>,
    pin: AskPin,
    progress: &Arc<Progress>,
    cancel: &Cancel,
) -> Result<Summary, sealway_drop::Error> {
    let (mut stopped, _thrown) = stopped_by(cancel);
    let mut client = Client::connect(&from.place, &node.tls, &from.name(), PATIENCE).await?;
    let offer = tokio::select! {
        offer = prepare(&mut client, pin) => offer?,
        _ = stopped.wait_for(|stopped| *stopped) => return Err(sealway_drop::Error::Cancelled),
    };
    let peer = Peer {
        alias: from.info.shown(),
        model: None,
        address: from.place.address,
        fingerprint: from.place.pin,
        remembered: from.remembered.clone(),
    };
    let plan = Plan::of(&offer.files.0, destination.options().rules);
    let session = offer.session_id.unwrap_or_default();
    let (deciding, destination, asked) = (telling.clone(), destination.clone(), cancel.clone());
    let (counting, sender) = (progress.clone(), peer.clone());
    let decided = blocking(move || {
        let offered = Offered::of_entries(&plan.entries, destination.available().ok());
        deciding
            .accept(&sender, &offered, &asked)
            .map_err(sealway_drop::Error::SaidNo)?;
        let conflicts = |path: &RelPath, existing: &Existing| deciding.conflict(path, existing, &asked);
        Landing::begin(&destination, plan, counting, &conflicts, &asked)
    });
    let (landing, mut rest) = decided.await??;
    telling.begun(&peer, progress);
    let mut ids: Vec<_> = rest
        .iter()
        .map(|(id, wanted)| (wanted.entry.path.clone(), id.clone()))
        .collect();
    ids.sort();
    let fetching = async {
        let name = from.name();
        let connect = || Client::connect(&from.place, &node.tls, &name, PATIENCE);
        // What another file left on the connection, or its end, must not cost the next one.
        let mut usable = true;
        for (_, id) in ids {
            let Some(wanted) = rest.get(&id) else { continue };
            if !usable || client.is_closed() {
                client = connect().await?;
            }
            let path = target(DOWNLOAD, &[("sessionId", Some(&session)), ("fileId", Some(&id))]);
            let answer = match client.ask(Method::GET, &path, "", Outgoing::of(vec![])).await {
                Ok(answer) => answer,
                Err(_) => {
                    client = connect().await?;
                    client.ask(Method::GET, &path, "", Outgoing::of(vec![])).await?
                }
            };
            if answer.status() != StatusCode::OK {
                return Err(sealway_drop::Error::from(refusal("a file", answer).await));
            }
            let taken = landing.take(wanted, answer.into_body()).await;
            usable = taken.is_ok();
            match taken {
                Ok(()) => {}
                Err(Failed::Broken) => landing.give_up(wanted, "the connection ended before all of it had come"),
                Err(Failed::Length) => landing.give_up(wanted, "it has another size than announced"),
                Err(Failed::Hash) => landing.give_up(wanted, "it has another hash than announced"),
                Err(Failed::Storage(why)) => landing.give_up(wanted, &why),
                Err(Failed::Lost | Failed::Stopped) => return Err(Error::Silent.into()),
            }
            rest.remove(&id);
        }
        Ok(())
    };
    let fetched = tokio::select! {
        fetched = fetching => fetched,
        _ = stopped.wait_for(|stopped| *stopped) => Err(sealway_drop::Error::Cancelled),
    };
    let concluded = blocking(move || landing.conclude(rest.values(), "it did not come")).await?;
    fetched.and(concluded)
}

/// Asks for the list; the other end may ask its person, and for a PIN.
async fn prepare(client: &mut Client, mut pin: AskPin) -> Result<Offer, sealway_drop::Error> {
    let mut given: Option<Zeroizing<String>> = None;
    loop {
        let path = target(PREPARE_DOWNLOAD, &[("pin", given.as_ref().map(|pin| pin.as_str()))]);
        let answer = client.post(&path, vec![]).await?;
        match answer.status() {
            StatusCode::OK => {
                let body = whole(answer, MAX_OFFER).await?;
                return Ok(Offer::read(&body).map_err(Error::malformed("a list of files"))?);
            }
            StatusCode::UNAUTHORIZED => {
                whole(answer, MAX_OFFER).await?;
                let (again, answer) = ask_for(pin, given.is_some()).await?;
                (pin, given) = (again, Some(answer));
            }
            StatusCode::NOT_FOUND => {
                return Err(Error::Usage(
                    "the device offers nothing: in its app, choose files and then \"Share via link\"".into(),
                )
                .into());
            }
            _ => return Err(refusal("the list of files", answer).await.into()),
        }
    }
}
