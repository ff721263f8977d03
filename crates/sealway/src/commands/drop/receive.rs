//! `sealway receive`.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::Arc;

use sealway_drop::Error;
use sealway_drop::cancel::Cancel;
use sealway_drop::names::Escaped;
use sealway_drop::policy::End;
use sealway_drop_mount::grpc::files;
use sealway_drop_transfer::dest::{self, Conflict};
use sealway_drop_transfer::progress::Progress;
use sealway_drop_transfer::receive::{Options, pull, receive};
use sealway_drop_transfer::taking::Taking;

use super::asking;
use super::consent::Asking;
use super::events::Events;
use super::send::{ended, resume_hint};
use super::session::{Met, confirm, meet, through_grpc};
use super::stop_on_signal;
use crate::args::{ConflictWord, Receive, ViaWord};
use crate::exit::Exit;
use crate::problem::Problem;

pub(crate) fn run(options: &Receive) -> Result<Exit, Problem> {
    let events = Events::of(&options.link);
    let conflict = options.conflict.map(|word| match word {
        ConflictWord::Ask => Conflict::Ask,
        ConflictWord::Rename => Conflict::Rename,
        ConflictWord::Skip => Conflict::Skip,
        ConflictWord::Overwrite => Conflict::Overwrite,
    });
    let taking = Taking::new(options.yes, conflict, std::io::stdin().is_terminal())?;
    let cancel = stop_on_signal()?;
    let settings = dest::Options {
        conflict: taking.conflict,
        outside_symlinks: options.outside_links,
        hidden_in_home: options.hidden,
        fsync: options.fsync,
        ..dest::Options::default()
    };
    // Before anybody is asked to come: the folder must be there.
    if !options.output.exists() {
        make(&options.output, options.create, taking.asks, &cancel)?;
    }
    let destination = dest::Destination::open(&options.output, settings).map_err(Error::from)?;
    let consent = Asking::new(taking.asks, events, &cancel);
    if options.link.via != ViaWord::Records {
        let way = through_grpc(&options.link, End::Receiver, events, &cancel)?;
        let progress = Arc::new(Progress::new());
        let following = events.follow(&progress);
        let received = files::receive(way, &cancel, |remote| pull(&destination, remote, &progress, &consent));
        drop(following);
        let summary = received?;
        events.done("received", options.link.via != ViaWord::GrpcPlain, &summary, &progress);
        return Ok(ended(summary.failed));
    }
    let Met { hash, check, came, .. } = meet(&options.link, End::Receiver, None, events, &cancel)?;
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
        Err(error) => Err(resume_hint(error, &progress)),
    }
}

/// Makes the folder that is to be received into, if that is wanted.
fn make(folder: &Path, wanted: bool, asks: bool, cancel: &Cancel) -> Result<(), Problem> {
    let shown = Escaped(folder.as_os_str().as_encoded_bytes());
    let wanted = wanted || {
        let question = format!("{shown} is not there; make it? [y/N] ");
        asks && asking::yes(&question, cancel)?
    };
    if !wanted {
        let problem = Problem::new(Exit::Usage, format!("cannot receive into {shown}: it is not there"));
        return Err(problem.hint("--create makes it"));
    }
    std::fs::create_dir_all(folder)
        .map_err(|error| Problem::new(Exit::Storage, format!("cannot make {shown}: {error}")))
}
