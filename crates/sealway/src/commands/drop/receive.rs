//! `sealway receive`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
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
use super::code;
use super::consent::Asking;
use super::events::Events;
use super::send::{ended, resume_hint};
use super::session::{Met, confirm, meet, through_grpc, ways};
use super::stop_on_signal;
use crate::args::{ConflictWord, Receive, ViaWord};
use crate::exit::Exit;
use crate::problem::Problem;

pub(crate) fn run(options: &Receive) -> Result<Exit, Problem> {
    let events = Events::of(&options.link);
    if options.web.http {
        return super::web::receive(options, conflict(options.conflict));
    }
    let cancel = stop_on_signal()?;
    let Place {
        output,
        settings,
        destination,
        asks,
    } = place(options, &cancel)?;
    let consent = Asking::new(asks, events, &cancel);
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
    let Met {
        hashing, check, came, ..
    } = meet(&options.link, End::Receiver, None, events, &cancel)?;
    let progress = Arc::new(Progress::new().and_path(move |path| events.path(path)));
    let receiving = Options {
        output,
        dest: settings,
        hashing,
        direct: ways(&options.link),
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
        Err(error) => {
            let problem = resume_hint(error, &progress);
            events.broke_off("receiving", &problem, &progress);
            Err(problem)
        }
    }
}

/// Where to, and how.
pub(super) struct Place {
    output: PathBuf,
    settings: dest::Options,
    pub(super) destination: dest::Destination,
    asks: bool,
}

/// The folder that is received into.
pub(super) fn place(options: &Receive, cancel: &Cancel) -> Result<Place, Problem> {
    // Before anybody is asked to come: the folder must be there.
    let output = options.folder.as_ref().unwrap_or(&options.output);
    let taking = taking(
        options.yes,
        conflict(options.conflict),
        (output, options.create),
        cancel,
    )?;
    let settings = dest::Options {
        conflict: taking.conflict,
        outside_symlinks: options.outside_links,
        hidden_in_home: options.hidden,
        fsync: options.fsync,
        ..dest::Options::default()
    };
    let destination = dest::Destination::open(output, settings).map_err(Error::from)?;
    Ok(Place {
        output: output.clone(),
        settings,
        destination,
        asks: taking.asks,
    })
}

/// What is asked where `yes` and `conflict` were said. The folder is made, if it is not there and that is wanted (`create`). One that is not
/// there, or is a code, is said first: whether somebody can be asked matters only for what else there is to do.
pub(super) fn taking(
    yes: bool,
    conflict: Option<Conflict>,
    (folder, create): (&Path, bool),
    cancel: &Cancel,
) -> Result<Taking, Problem> {
    let taking = Taking::new(yes, conflict, std::io::stdin().is_terminal());
    if !folder.exists() && (taking.is_ok() || !create) {
        make(folder, create, taking.as_ref().is_ok_and(|taking| taking.asks), cancel)?;
    }
    Ok(taking?)
}

/// What is done where a name is taken, if that was said.
pub(super) fn conflict(said: Option<ConflictWord>) -> Option<Conflict> {
    said.map(|word| match word {
        ConflictWord::Ask => Conflict::Ask,
        ConflictWord::Rename => Conflict::Rename,
        ConflictWord::Skip => Conflict::Skip,
        ConflictWord::Overwrite => Conflict::Overwrite,
    })
}

/// Makes the folder that is to be received into, if that is wanted.
pub(super) fn make(folder: &Path, wanted: bool, asks: bool, cancel: &Cancel) -> Result<(), Problem> {
    let shown = Escaped(folder.as_os_str().as_encoded_bytes());
    let code = code::in_place_of(folder, "sealway receive");
    let wanted = wanted || {
        let question = format!("{shown} is not there; make it? [y/N] ");
        code.is_none() && asks && asking::yes(&question, cancel)?
    };
    if !wanted {
        let problem = Problem::usage(format!("cannot receive into {shown}: it is not there"));
        return Err(problem.hint(code.as_deref().unwrap_or("--create makes it")));
    }
    std::fs::create_dir_all(folder)
        .map_err(|error| Problem::new(Exit::Storage, format!("cannot make {shown}: {error}")))
}
