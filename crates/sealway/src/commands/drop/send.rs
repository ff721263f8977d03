//! `sealway send`.

use std::sync::Arc;
use std::time::Instant;

use sealway_drop::Error;
use sealway_drop::cancel::Cancel;
use sealway_drop::progress::Progress;
use sealway_drop::send::Options;
use sealway_drop::source::ScanOptions;
use sealway_drop::wire::control::Cause;
use sealway_lab::exit::Exit;

use super::events::Events;
use super::place::{End, Way, confirm, connect, way};
use super::problem;
use crate::args::{Send, ViaWord};
use crate::problem::{Problem, note};

pub(crate) fn run(options: &Send) -> Result<Exit, Problem> {
    let events = Events {
        quiet: options.link.quiet,
        json: options.link.json,
    };
    let cancel = stop_on_signal()?;
    // Before anybody is asked to come: what is to be sent must be there.
    let mut scan = ScanOptions::default();
    scan.follow_top = options.follow;
    let scan = sealway_drop::source::scan(&options.paths, scan, &mut |_| {}).map_err(|error| problem(&error.into()))?;
    for skipped in &scan.skipped {
        events.warn(&skipped.to_string());
    }
    if options.link.via != ViaWord::Records {
        let [path] = options.paths.as_slice() else {
            return Err(Problem::new(Exit::Usage, "one file at a time goes through gRPC"));
        };
        let way = super::via::connect(&options.link, End::Sender, events, &cancel)?;
        let sent = sealway_drop::grpc::files::send(path.clone(), way, &cancel);
        return sent
            .map(|()| Exit::Done)
            .map_err(|error| events.failed(problem(&error)));
    }
    let Way {
        place,
        setup,
        connections,
        hash,
        check,
        own,
        ..
    } = way(&options.link, End::Sender, events, &cancel)?;
    let transfer_secret = own.transfer_secret().map_err(|error| problem(&error))?;
    let progress = Arc::new(Progress::new());
    let sending = Options {
        paths: options.paths.clone(),
        hash,
        transfer_secret,
    };
    let result = connect(place, &setup, connections, events, &cancel).and_then(|mut connected| {
        confirm(&mut connected, check, events, &cancel)?;
        let (begun, following) = (Instant::now(), events.follow(&progress));
        let result = sealway_drop::send::send(&sending, &scan, connected, &progress, &cancel);
        drop(following);
        result.map(|summary| (summary, begun.elapsed()))
    });
    match result {
        Ok((mut summary, time)) => {
            summary.failed += scan.skipped.len() as u64;
            events.done("sent", &summary, progress.snapshot(), time);
            Ok(ended(summary.failed))
        }
        Err(error) => Err(events.failed(resume_hint(&error))),
    }
}

/// How a transfer that went through ended.
pub(super) fn ended(left_out: u64) -> Exit {
    match left_out {
        0 => Exit::Done,
        _ => Exit::Partial,
    }
}

/// What to do after a transfer broke off.
pub(super) fn resume_hint(error: &Error) -> Problem {
    use sealway_drop::Fault;
    let problem = problem(error);
    match error.fault() {
        _ if matches!(error, Error::OtherEnd(Cause::NoRoom)) => {
            problem.hint("make room there; the same command again at both ends then goes on where this one stopped")
        }
        Fault::Network | Fault::Cancelled | Fault::Storage => {
            problem.hint("the same command again at both ends goes on where this one stopped")
        }
        Fault::Identity if matches!(error, Error::CodeSpent) => problem
            .hint("if the other end showed a code, give this end the same one: SEALWAY_CODE, or --code to be asked"),
        _ => problem,
    }
}

/// Ctrl-C and SIGTERM end a transfer in good order; a second one leaves at once.
pub(super) fn stop_on_signal() -> Result<Cancel, Problem> {
    stop_on_signal_saying("\nstopping; what is there is kept for the next time")
}

/// The same with other words.
pub(super) fn stop_on_signal_saying(words: &'static str) -> Result<Cancel, Problem> {
    let cancel = Cancel::new();
    let switch = cancel.clone();
    let mut second = false;
    ctrlc::set_handler(move || {
        if std::mem::replace(&mut second, true) {
            std::process::exit(i32::from(Exit::Interrupted.code()));
        }
        // First: what is said may have to wait for whoever reads it.
        switch.cancel();
        note(words);
    })
    .map_err(|error| Problem::new(Exit::Internal, format!("cannot listen for Ctrl-C: {error}")))?;
    Ok(cancel)
}
