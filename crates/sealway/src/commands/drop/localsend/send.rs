//! `sealway send --localsend`.

use std::sync::Arc;

use sealway_drop::cancel::Cancel;
use sealway_drop_localsend::find::{Found, find, is_address};
use sealway_drop_localsend::send::{What, send};
use sealway_drop_transfer::progress::Progress;
use serde_json::json;

use super::super::events::Events;
use super::super::send::ended;
use super::{ask_pin, of_part, problem, remembered, runtime, start};
use crate::exit::Exit;
use crate::problem::Problem;

/// Sends to a device. `left_out` is what was left out of the files before.
pub(super) fn run(
    device: &str,
    what: What,
    left_out: u64,
    clear: bool,
    events: Events,
    cancel: &Cancel,
) -> Result<Exit, Problem> {
    let (_, known) = remembered()?;
    runtime()?.block_on(async {
        let running = start(None, clear, !is_address(device), None, events).await?;
        let sending = async {
            let found = search(&running.node, device, &known, cancel).await?;
            told(events, "to", &found);
            let progress = Arc::new(Progress::with_waiting(move || events.waiting_for_yes()));
            let following = events.follow(&progress);
            let sent = send(&running.node, &found, &what, ask_pin(cancel), &progress, cancel).await;
            drop(following);
            let sent = sent.map_err(problem);
            let mut summary = sent.inspect_err(|problem| events.broke_off("sending", problem, &progress))?;
            summary.failed = summary.failed.saturating_add(left_out);
            events.done("sent", found.place.pin.is_some(), &summary, &progress);
            Ok(ended(summary.failed))
        };
        let result = sending.await;
        running.shut_down().await;
        result
    })
}

/// Finds a device, unless it is told to stop.
pub(super) async fn search(
    node: &Arc<sealway_drop_localsend::node::Node>,
    device: &str,
    known: &[sealway_drop_localsend::favourites::Favourite],
    cancel: &Cancel,
) -> Result<Found, Problem> {
    let stopped = Arc::new(tokio::sync::Notify::new());
    let stop = stopped.clone();
    let _watch = cancel.on_cancel(move || stop.notify_one());
    tokio::select! {
        found = find(node, device, known) => found.map_err(of_part),
        () = stopped.notified() => Err(sealway_drop::Error::Cancelled.into()),
    }
}

/// Says which device was reached, and by what it is known.
pub(super) fn told(events: Events, direction: &str, found: &Found) {
    let (name, address) = (found.name(), found.place.address);
    let certificate = match (found.place.pin, &found.remembered) {
        (Some(pin), Some(_)) => format!("remembered, certificate {}", pin.short()),
        (Some(pin), None) => format!("certificate {}, seen for the first time", pin.short()),
        (None, _) => "in clear: anyone on the network can read and change this".to_owned(),
    };
    events.tell(format_args!("{direction} {name} at {address}, {certificate}"), || {
        json!({"event": "device", "alias": found.info.alias, "address": address.to_string(),
            "fingerprint": found.place.pin.map(|pin| pin.to_string()), "remembered": found.remembered})
    });
}
