//! `sealway localsend` and `sealway receive --localsend`.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};

use sealway_drop::cancel::Cancel;
use sealway_drop::names::{Escaped, RelPath};
use sealway_drop_localsend::find::is_address;
use sealway_drop_localsend::pull::pull as fetch;
use sealway_drop_localsend::receive::{Peer, Receiver, Telling};
use sealway_drop_transfer::dest::{Answer, Destination, Existing};
use sealway_drop_transfer::progress::Progress;
use sealway_drop_transfer::receive::{Consent, Offered};
use sealway_drop_transfer::send::Summary;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use zeroize::Zeroizing;

use super::super::consent::Asking;
use super::super::events::{Events, Follower};
use super::super::guard;
use super::super::send::ended;
use super::send::{search, told};
use super::{ask_pin, problem, remembered, runtime, start};
use crate::args::{Appearing, Guard};
use crate::exit::Exit;
use crate::problem::{Problem, note};

/// How devices are let in.
pub(super) struct Way<'a> {
    pub(super) appearing: &'a Appearing,
    pub(super) guard: &'a Guard,
    /// Remembered devices are not asked about.
    pub(super) yes: bool,
    /// With it, nobody is.
    pub(super) anyone: bool,
    /// Waits for one device after another.
    pub(super) stays: bool,
}

/// What ends the waiting.
enum Told {
    Ended(Result<Exit, Problem>),
    Stop,
}

/// Waits for devices.
pub(super) fn run(way: &Way<'_>, destination: Destination, events: Events, cancel: &Cancel) -> Result<Exit, Problem> {
    let (favourites, _) = remembered()?;
    let pin = pin(way.guard, events)?;
    let clear = way.appearing.insecure_http;
    let (tell, mut heard) = unbounded_channel();
    let stop = tell.clone();
    let _watch = cancel.on_cancel(move || drop(stop.send(Told::Stop)));
    let teller = Teller::new(way, events, Some(tell));
    let receiver = Receiver::new(destination, favourites, pin, Arc::new(teller));
    runtime()?.block_on(async {
        let running = start(Some(way.appearing), clear, true, Some(receiver), events).await?;
        let (info, port) = (running.node.info(), running.node.port());
        let alias = Escaped(info.alias.as_bytes()).to_string();
        let fingerprint = (!clear).then(|| running.node.fingerprint());
        let shown = match &fingerprint {
            Some(fingerprint) => format!("certificate {}", fingerprint.short()),
            None => "in clear: anyone on the network can read and change what is sent".to_owned(),
        };
        events.tell(
            format_args!("waiting for LocalSend as {alias} at port {port}, {shown}"),
            || {
                json!({"event": "listening", "alias": info.alias, "address": format!("[::]:{port}"), "port": port,
                "fingerprint": fingerprint.map(|fingerprint| fingerprint.to_string())})
            },
        );
        let result = loop {
            match heard.recv().await {
                Some(Told::Ended(result)) if !way.stays => break result,
                // What went wrong with one device is no reason to let down the next.
                Some(Told::Ended(Err(problem))) => events.warn(problem.message()),
                Some(Told::Ended(Ok(_))) => {}
                // Nothing else ends it.
                Some(Told::Stop) | None if way.stays => break Ok(Exit::Done),
                Some(Told::Stop) | None => break Err(sealway_drop::Error::Cancelled.into()),
            }
        };
        running.shut_down().await;
        result
    })
}

/// Fetches what a device offers.
pub(super) fn pull(
    device: &str,
    way: &Way<'_>,
    destination: Destination,
    events: Events,
    cancel: &Cancel,
) -> Result<Exit, Problem> {
    let (_, known) = remembered()?;
    let clear = way.appearing.insecure_http;
    // The device was named: whether it is remembered changes nothing.
    let anyone = Way { anyone: true, ..*way };
    let telling: Arc<dyn Telling> = Arc::new(Teller::new(&anyone, events, None));
    runtime()?.block_on(async {
        let running = start(Some(way.appearing), clear, !is_address(device), None, events).await?;
        let pulling = async {
            let found = search(&running.node, device, &known, cancel).await?;
            told(events, "from", &found);
            let progress = Arc::new(Progress::new());
            let following = events.follow(&progress);
            let pulled = fetch(
                &running.node,
                &found,
                &destination,
                &telling,
                ask_pin(cancel),
                &progress,
                cancel,
            )
            .await;
            drop(following);
            let pulled = pulled.map_err(problem);
            let summary = pulled.inspect_err(|problem| events.broke_off("receiving", problem, &progress))?;
            events.done("received", found.place.pin.is_some(), &summary, &progress);
            Ok(ended(summary.failed))
        };
        let result = pulling.await;
        running.shut_down().await;
        result
    })
}

/// The PIN of this end. One that is new is shown.
fn pin(guard: &Guard, events: Events) -> Result<Option<Zeroizing<String>>, Problem> {
    let pin = guard::pin(guard)?;
    if let Some((pin, true)) = &pin {
        // For people: it is said even where little is.
        match events.json {
            true => events.tell("", || json!({"event": "pin", "pin": **pin})),
            false => note(format_args!("PIN: {}", **pin)),
        }
    }
    Ok(pin.map(|(pin, _)| pin))
}

/// Asks and tells.
struct Teller {
    yes: bool,
    anyone: bool,
    stays: bool,
    sealed: bool,
    person: bool,
    events: Events,
    /// Whom it tells of the end of a transfer, where somebody waits for that.
    tell: Option<UnboundedSender<Told>>,
    asking: Mutex<Option<Arc<Asking>>>,
    following: Mutex<Option<Follower>>,
}

impl Teller {
    fn new(way: &Way<'_>, events: Events, tell: Option<UnboundedSender<Told>>) -> Teller {
        Teller {
            yes: way.yes,
            anyone: way.anyone,
            stays: way.stays,
            sealed: !way.appearing.insecure_http,
            person: std::io::stdin().is_terminal(),
            events,
            tell,
            asking: Mutex::default(),
            following: Mutex::default(),
        }
    }

    /// Whether nobody is asked about what this device offers.
    fn trusts(&self, peer: &Peer) -> bool {
        let known = self.sealed && peer.fingerprint.is_some() && peer.remembered.is_some();
        self.yes && (self.anyone || known)
    }

    fn came(&self, peer: &Peer) {
        let Peer {
            alias,
            model,
            address,
            fingerprint,
            remembered,
        } = peer;
        let model = model.as_ref().map(|model| format!(" ({model})")).unwrap_or_default();
        let proof = match (fingerprint, remembered) {
            (Some(pin), Some(name)) => format!("remembered as {name}, certificate {}", pin.short()),
            (Some(pin), None) => format!("certificate {}, not remembered", pin.short()),
            (None, _) => "not authenticated: it showed no certificate".to_owned(),
        };
        self.events
            .tell(format_args!("from {alias}{model} at {}: {proof}", address.ip()), || {
                json!({"event": "sender", "alias": alias, "address": address.ip().to_string(),
                "fingerprint": fingerprint.map(|pin| pin.to_string()), "remembered": remembered,
                "authenticated": fingerprint.is_some()})
            });
    }

    fn end(&self, result: Result<Exit, Problem>) {
        if let Some(tell) = &self.tell {
            let _ = tell.send(Told::Ended(result));
        }
    }
}

impl Telling for Teller {
    fn accept(&self, peer: &Peer, offer: &Offered, cancel: &Cancel) -> Result<(), String> {
        let asks = !self.trusts(peer);
        if self.tell.is_some() {
            self.came(peer);
        }
        if asks && !self.person {
            return Err("nobody can be asked here; `sealway localsend remember` lets a device in with --yes".into());
        }
        let asking = Arc::new(Asking::new(asks, self.events, cancel));
        *self.asking.lock().unwrap_or_else(PoisonError::into_inner) = Some(asking.clone());
        asking.accept(offer)
    }

    fn conflict(&self, path: &RelPath, existing: &Existing, _: &Cancel) -> Answer {
        let asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner).clone();
        asking.map_or(Answer::Rename, |asking| asking.conflict(path, existing))
    }

    fn message(&self, peer: &Peer, text: &str) -> Result<(), String> {
        self.came(peer);
        let lines: Vec<_> = text
            .lines()
            .map(|line| format!("  {}", Escaped(line.as_bytes())))
            .collect();
        self.events.tell(
            format_args!("message:\n{}", lines.join("\n")),
            || json!({"event": "message", "alias": peer.alias, "text": text}),
        );
        // Words of somebody who is not let in without a question are no end where nobody is asked.
        if !self.yes || self.trusts(peer) {
            self.end(Ok(Exit::Done));
        }
        Ok(())
    }

    fn begun(&self, _: &Peer, progress: &Arc<Progress>) {
        if self.tell.is_some() {
            let following = self.events.follow(progress);
            *self.following.lock().unwrap_or_else(PoisonError::into_inner) = Some(following);
        }
    }

    fn ended(&self, _: &Peer, how: Result<Summary, sealway_drop::Error>, progress: &Progress) {
        drop(self.following.lock().unwrap_or_else(PoisonError::into_inner).take());
        let result = how.map_err(problem).map(|summary| {
            self.events.done("received", self.sealed, &summary, progress);
            ended(summary.failed)
        });
        if let Err(problem) = &result {
            self.events.broke_off("receiving", problem, progress);
        }
        if self.stays
            && self.events.json
            && let Err(problem) = &result
        {
            self.events.failed(problem);
        }
        self.end(result);
    }

    fn turned_away(&self, peer: &str, why: &str) {
        self.events.warn(&format!("{peer} was turned away: {why}"));
    }
}
