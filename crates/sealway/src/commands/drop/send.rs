//! `sealway send`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealway_drop::cancel::Cancel;
use sealway_drop::policy::End;
use sealway_drop::wire::control::Cause;
use sealway_drop::{Error, Fault};
use sealway_drop_transfer::progress::Progress;
use sealway_drop_transfer::send::Options;
use sealway_drop_transfer::source::{self, Scan, ScanOptions, Spool};

use super::code::in_place_of;
use super::events::Events;
use super::session::{Met, confirm, meet, through_grpc, ways};
use super::stop_on_signal;
use crate::args::{Send, ViaWord};
use crate::exit::Exit;
use crate::problem::{Problem, note};

pub(crate) fn run(options: &Send) -> Result<Exit, Problem> {
    let events = Events::of(&options.link);
    let cancel = stop_on_signal()?;
    // Before anybody is asked to come: what is to be sent must be there.
    let (paths, scan) = found(options, events, &cancel)?;
    if options.link.via != ViaWord::Records {
        let ([path], false) = (options.paths.as_slice(), is_stdin(options)) else {
            return Err(Problem::usage(
                "one file at a time goes through gRPC, and not standard input",
            ));
        };
        let way = through_grpc(&options.link, End::Sender, events, &cancel)?;
        sealway_drop_mount::grpc::files::send(path.clone(), way, &cancel)?;
        return Ok(Exit::Done);
    }
    let Met {
        hashing,
        check,
        own,
        came,
    } = meet(&options.link, End::Sender, None, events, &cancel)?;
    let transfer_secret = own.transfer_secret()?;
    let progress = Progress::with_waiting(move || events.waiting_for_yes()).and_path(move |path| events.path(path));
    let progress = Arc::new(progress);
    let sending = Options {
        paths,
        hashing,
        direct: ways(&options.link),
        transfer_secret,
    };
    let result = came.and_then(|mut connected| {
        confirm(&mut connected, check, events, &cancel)?;
        let _following = events.follow(&progress);
        sealway_drop_transfer::send::send(&sending, &scan, connected, &progress, &cancel)
    });
    match result {
        Ok(mut summary) => {
            summary.failed = summary.failed.saturating_add(scan.skipped.len() as u64);
            events.done("sent", true, &summary, &progress);
            Ok(ended(summary.failed))
        }
        Err(error) => {
            let problem = resume_hint(error, &progress);
            events.broke_off("sending", &problem, &progress);
            Err(problem)
        }
    }
}

/// Whether standard input is to be sent.
fn is_stdin(options: &Send) -> bool {
    options.paths.iter().any(|path| path.as_os_str() == "-")
}

/// What is to be sent: the paths that say which transfer it is, and what was found there. What was left out is said.
pub(super) fn found(options: &Send, events: Events, cancel: &Cancel) -> Result<(Vec<PathBuf>, Scan), Problem> {
    let (paths, scan) = look(options, cancel)?;
    for skipped in &scan.skipped {
        events.warn(&skipped.to_string());
    }
    for link in scan.top_links() {
        events.top_link(link);
    }
    Ok((paths, scan))
}

fn look(options: &Send, cancel: &Cancel) -> Result<(Vec<PathBuf>, Scan), Problem> {
    if !is_stdin(options) {
        if options.name.is_some() {
            return Err(
                Problem::usage("--name says what standard input is called").hint("give - in place of the paths")
            );
        }
        let mut scan = ScanOptions::default();
        scan.follow_top = options.follow;
        let code = |path: &PathBuf| match path.symlink_metadata() {
            Ok(_) => None,
            Err(_) => in_place_of(path, "sealway receive"),
        };
        let wrong = |error| Problem::from(Error::from(error)).hint_if(options.paths.iter().find_map(code));
        let found = source::scan(&options.paths, scan, &mut |_| {}).map_err(wrong)?;
        return Ok((options.paths.clone(), found));
    }
    if options.paths.len() > 1 {
        return Err(Problem::usage("standard input (-) is sent alone").hint("a file that is called - is ./-"));
    }
    let name = options.name.as_deref().unwrap_or("stdin".as_ref());
    if std::io::stdin().is_terminal() {
        note("reading what is typed here; Ctrl-D ends it");
    }
    let spooled = source::spool(std::io::stdin(), name.as_encoded_bytes(), &Spool::default(), cancel);
    match spooled.map_err(Error::from)? {
        Some(scan) => Ok((vec![Path::new("-").join(name)], scan)),
        None => Err(Error::Cancelled.into()),
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
pub(super) fn resume_hint(error: Error, progress: &Progress) -> Problem {
    let (fault, now) = (error.fault(), progress.snapshot());
    let no_room = matches!(error, Error::OtherEnd(Cause::NoRoom));
    let spent = matches!(error, Error::CodeSpent);
    let problem = Problem::from(error);
    match fault {
        _ if no_room => {
            problem.hint("make room there; the same command again at both ends then goes on where this one stopped")
        }
        Fault::Network | Fault::Cancelled | Fault::Storage if now.bytes + now.kept > 0 => {
            problem.hint("the same command again at both ends goes on where this one stopped")
        }
        Fault::Identity if spent => problem
            .hint("if the other end showed a code, give this end the same one: SEALWAY_CODE, or --code to be asked"),
        _ => problem,
    }
}
