//! `sealway share` and `sealway mount`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rustix::io::Errno;
use sealway_drop::cache::CacheOptions;
use sealway_drop::cancel::Cancel;
use sealway_drop::fuse::MountOptions;
use sealway_drop::link::Connected;
use sealway_drop::sharing::{self, Options, Ready, Telling};
use sealway_lab::exit::Exit;

use super::events::Events;
use super::place::{Check, End, Way, confirm, way};
use super::problem;
use super::send::stop_on_signal;
use crate::args::{DropLink, Mount, Mounting, Share};
use crate::problem::{Problem, note};
use crate::signals::take_every_descriptor;

pub(crate) fn share(options: &Share) -> Result<Exit, Problem> {
    let sharing = Options {
        share: Some(options.folder.clone()),
        mount: options.mount.clone(),
        mounting: mounting(&options.mounting),
        again: Duration::from_secs(options.mounting.reconnect),
        ..Options::default()
    };
    run(&sharing, &options.link, End::Sharer)
}

pub(crate) fn mount(options: &Mount) -> Result<Exit, Problem> {
    let sharing = Options {
        share: options.share.clone(),
        mount: Some(options.mountpoint.clone()),
        mounting: mounting(&options.mounting),
        again: Duration::from_secs(options.mounting.reconnect),
        ..Options::default()
    };
    run(&sharing, &options.link, End::Mounter)
}

fn mounting(options: &Mounting) -> MountOptions {
    let cache = options.cache.as_ref().map(|dir| CacheOptions {
        size: options.cache_size,
        ..CacheOptions::new(dir)
    });
    MountOptions {
        allow_other: options.allow_other,
        allow_nonempty: options.nonempty,
        cache,
        ..MountOptions::default()
    }
}

/// What cannot be listed is left to mounting.
fn holds_something(folder: &std::path::Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

fn run(sharing: &Options, link: &DropLink, end: End) -> Result<Exit, Problem> {
    let events = Events {
        quiet: link.quiet,
        json: link.json,
    };
    // Before anybody is asked to come: the folders must be there.
    for (folder, mounted) in [(&sharing.share, false), (&sharing.mount, true)] {
        let Some(folder) = folder else { continue };
        let wrong = |why: &dyn std::fmt::Display| Problem::new(Exit::Usage, format!("{}{why}", folder.display()));
        match std::fs::metadata(folder) {
            Ok(found) if found.is_dir() => {
                if mounted && !sharing.mounting.allow_nonempty && holds_something(folder) {
                    return Err(wrong(&" is not empty").hint("--nonempty covers what it holds"));
                }
            }
            Ok(_) => return Err(wrong(&" is no folder")),
            // A mount whose program was killed stands there. Mounting takes it away if it was one of ours.
            Err(error) if mounted && error.raw_os_error() == Some(Errno::NOTCONN.raw_os_error()) => {}
            Err(error) => return Err(wrong(&format_args!(": {error}"))),
        }
    }
    // Of those who come, of the folder, and of what is open in the mount.
    take_every_descriptor();
    let cancel = stop_on_signal()?;
    let result = loop {
        let Way {
            place,
            setup,
            check,
            typed,
            ..
        } = match way(link, end, events, &cancel) {
            // To be stopped is how this ends.
            Err(problem) if problem.exit() == Exit::Interrupted => return Ok(Exit::Done),
            way => way?,
        };
        let telling = Teller {
            sharing,
            check,
            events,
            cancel: &cancel,
            confirmed: Mutex::default(),
        };
        match sharing::keep(sharing, place, &setup, &cancel, &telling) {
            Err(error) if typed && error.is_unknown_number() => note(format_args!("{error}; type the code again")),
            result => break result,
        }
    };
    match result {
        Ok(()) => Ok(Exit::Done),
        Err(sealway_drop::Error::Cancelled) => Ok(Exit::Done),
        Err(error) => Err(events.failed(problem(&error))),
    }
}

/// Says what happens.
struct Teller<'a> {
    sharing: &'a Options,
    check: Check,
    events: Events,
    cancel: &'a Cancel,
    /// Keys of ends about which somebody has said yes: they may come again without a question.
    confirmed: Mutex<Vec<[u8; 32]>>,
}

impl Telling for Teller<'_> {
    fn connected(&self, connected: &mut Connected) -> Result<(), sealway_drop::Error> {
        let confirmed = || self.confirmed.lock().unwrap_or_else(PoisonError::into_inner);
        let known = connected.peered.peer_key.filter(|_| self.check == Check::Asked);
        let check = match known {
            Some(key) if confirmed().contains(&key) => Check::Proved,
            _ => self.check,
        };
        confirm(connected, check, self.events, self.cancel)?;
        confirmed().extend(known);
        Ok(())
    }

    fn turned_away(&self, why: &sealway_drop::Error) {
        self.events.turned_away(why);
    }

    fn ready(&self, ready: Ready) {
        self.events.ready(self.sharing, ready);
    }

    fn lost(&self, why: &sealway_drop::Error, time: Duration) {
        self.events.lost(why, time);
    }

    fn again(&self) {
        self.events.again();
    }

    fn gave_up(&self, time: Duration) {
        self.events.gave_up(time);
    }

    fn left(&self, how: &Result<(), sealway_drop::Error>) {
        self.events.left(how.as_ref().err());
    }
}
