//! `sealway receive`.

use std::io::IsTerminal;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use indicatif::HumanBytes;
use sealway_drop::cancel::Cancel;
use sealway_drop::dest::{self, Answer, Conflict, Existing};
use sealway_drop::names::RelPath;
use sealway_drop::progress::Progress;
use sealway_drop::receive::{Consent, Offered, Options, receive};
use sealway_lab::exit::Exit;

use super::asking::ask;
use super::events::Events;
use super::place::{End, Reached, confirm, meet};
use super::send::{ended, resume_hint, stop_on_signal};
use crate::args::{ConflictWord, Receive, ViaWord};
use crate::problem::{Problem, note};

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
    dest::Destination::open(&options.output, settings).map_err(|error| super::problem(&error.into()))?;
    if options.link.via != ViaWord::Records {
        let way = super::via::connect(&options.link, End::Receiver, events, &cancel)?;
        let (progress, begun) = (Progress::new(), Instant::now());
        let received = sealway_drop::grpc::files::receive(&options.output, settings, way, &progress, &cancel);
        let summary = received.map_err(|error| events.failed(super::problem(&error)))?;
        events.done("received", &summary, progress.snapshot(), begun.elapsed());
        return Ok(ended(summary.failed));
    }
    let (Reached { hash, check }, came) = meet(&options.link, End::Receiver, events, &cancel)?;
    let progress = Arc::new(Progress::new());
    let receiving = Options {
        output: options.output.clone(),
        dest: settings,
        hash,
    };
    let consent = Asking {
        yes: options.yes,
        events,
        cancel: cancel.clone(),
        all: Mutex::new(None),
    };
    let result = came.and_then(|mut connected| {
        confirm(&mut connected, check, events, &cancel)?;
        let (begun, following) = (Instant::now(), events.follow(&progress));
        let result = receive(&receiving, connected, &progress, &cancel, &consent);
        drop(following);
        result.map(|summary| (summary, begun.elapsed()))
    });
    match result {
        Ok((summary, time)) => {
            events.done("received", &summary, progress.snapshot(), time);
            Ok(ended(summary.failed))
        }
        Err(error) => Err(events.failed(resume_hint(&error))),
    }
}

/// Asks on the terminal.
struct Asking {
    yes: bool,
    events: Events,
    cancel: Cancel,
    /// What was answered for all further files.
    all: Mutex<Option<Answer>>,
}

impl Consent for Asking {
    fn accept(&self, offer: &Offered) -> Result<(), String> {
        let mut text = format!("offered: {} in {} files", HumanBytes(offer.bytes), offer.files);
        for name in offer.top.iter().take(10) {
            text.push_str("\n  ");
            text.push_str(name);
        }
        if offer.top_count > 10 {
            text.push_str(&format!("\n  and {} more", offer.top_count - 10));
        }
        self.events.offered(&text, offer.files, offer.bytes, !self.yes);
        if self.yes {
            return Ok(());
        }
        match ask("take it? [y/N] ", &self.cancel)
            .as_ref()
            .map(|answer| answer.as_str())
        {
            Ok("y" | "yes") => Ok(()),
            Ok(_) => Err("not wanted".into()),
            Err(_) => Err("stopped".into()),
        }
    }

    fn conflict(&self, path: &RelPath, existing: &Existing) -> Answer {
        let mut all = self.all.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(answer) = *all {
            return answer;
        }
        loop {
            note(format_args!(
                "{path} is there already: {} of {}",
                existing.what,
                HumanBytes(existing.size)
            ));
            let question = "[r]ename the new one, [s]kip it, [o]verwrite; upper case for all that follow: ";
            let Ok(answer) = ask(question, &self.cancel) else {
                // Nothing comes of the transfer any more.
                return Answer::Skip;
            };
            let (choice, for_all) = match answer.as_str() {
                "r" => (Answer::Rename, false),
                "R" => (Answer::Rename, true),
                "s" => (Answer::Skip, false),
                "S" => (Answer::Skip, true),
                "o" => (Answer::Overwrite, false),
                "O" => (Answer::Overwrite, true),
                // The terminal has gone: nothing is lost by the safe choice.
                "" if !std::io::stdin().is_terminal() => (Answer::Rename, true),
                _ => continue,
            };
            if for_all {
                *all = Some(choice);
            }
            return choice;
        }
    }
}
