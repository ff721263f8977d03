//! `sealway receive`.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use sealway_drop::cancel::Cancel;
use sealway_drop::dest::{self, Conflict};
use sealway_drop::grpc::files;
use sealway_drop::names::Escaped;
use sealway_drop::progress::Progress;
use sealway_drop::receive::{Options, receive};
use sealway_lab::exit::Exit;

use super::asking;
use super::consent::Asking;
use super::events::Events;
use super::place::{End, Reached, confirm, meet};
use super::send::{ended, resume_hint, stop_on_signal};
use crate::args::{ConflictWord, Receive, ViaWord};
use crate::problem::Problem;

pub(crate) fn run(options: &Receive) -> Result<Exit, Problem> {
    let events = Events {
        quiet: options.link.quiet,
        json: options.link.json,
    };
    let asks = std::io::stdin().is_terminal();
    if !options.yes && !asks {
        return Err(Problem::new(
            Exit::Usage,
            "there is no terminal to ask on whether to take what is offered",
        )
        .hint("give --yes to take it without being asked"));
    }
    if options.conflict == Some(ConflictWord::Ask) && !asks {
        return Err(Problem::new(
            Exit::Usage,
            "there is no terminal to ask on what becomes of names that are taken",
        )
        .hint("give --conflict rename, skip or overwrite"));
    }
    let cancel = stop_on_signal()?;
    let conflict = match options.conflict {
        Some(ConflictWord::Ask) => Conflict::Ask,
        Some(ConflictWord::Rename) => Conflict::Rename,
        Some(ConflictWord::Skip) => Conflict::Skip,
        Some(ConflictWord::Overwrite) => Conflict::Overwrite,
        None if asks && !options.yes => Conflict::Ask,
        None => Conflict::Rename,
    };
    let settings = dest::Options {
        conflict,
        outside_symlinks: options.outside_links,
        hidden_in_home: options.hidden,
        fsync: options.fsync,
        ..dest::Options::default()
    };
    // Before anybody is asked to come: the folder must be there.
    if !options.output.exists() {
        make(&options.output, options.create, asks && !options.yes, &cancel)?;
    }
    dest::Destination::open(&options.output, settings).map_err(|error| super::problem(&error.into()))?;
    let consent = Asking::new(options.yes, events, &cancel);
    if options.link.via != ViaWord::Records {
        let way = super::via::connect(&options.link, End::Receiver, events, &cancel)?;
        let progress = Arc::new(Progress::new());
        let following = events.follow(&progress);
        let received = files::receive(&options.output, settings, way, &progress, &cancel, &consent);
        drop(following);
        let summary = received.map_err(|error| events.failed(super::problem(&error)))?;
        events.done("received", options.link.via != ViaWord::GrpcPlain, &summary, &progress);
        return Ok(ended(summary.failed));
    }
    let (Reached { hash, check }, came) = meet(&options.link, End::Receiver, events, &cancel)?;
    let progress = Arc::new(Progress::new());
    let receiving = Options {
        output: options.output.clone(),
        dest: settings,
        hash,
    };
    let result = came.and_then(|mut connected| {
        confirm(&mut connected, check, events, &cancel)?;
        let _following = events.follow(&progress);
        receive(&receiving, connected, &progress, &cancel, &consent)
    });
    match result {
        Ok(summary) => {
            events.done("received", true, &summary, &progress);
            Ok(ended(summary.failed))
        }
        Err(error) => Err(events.failed(resume_hint(&error, &progress))),
    }
}

/// Makes the folder that is to be received into, if that is wanted.
fn make(folder: &Path, wanted: bool, asks: bool, cancel: &Cancel) -> Result<(), Problem> {
    let shown = Escaped(folder.as_os_str().as_encoded_bytes());
    let wanted = wanted || {
        let question = format!("{shown} is not there; make it? [y/N] ");
        asks && asking::yes(&question, cancel).map_err(|error| super::problem(&error))?
    };
    if !wanted {
        let problem = Problem::new(Exit::Usage, format!("cannot receive into {shown}: it is not there"));
        return Err(problem.hint("--create makes it"));
    }
    std::fs::create_dir_all(folder)
        .map_err(|error| Problem::new(Exit::Storage, format!("cannot make {shown}: {error}")))
}
