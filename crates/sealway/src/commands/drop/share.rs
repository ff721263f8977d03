//! `sealway share` and `sealway mount`.

use rustix::io::Errno;
use sealway_drop::cache::CacheOptions;
use sealway_drop::fuse::MountOptions;
use sealway_drop::sharing::{self, Options};
use sealway_lab::exit::Exit;

use super::events::Events;
use super::place::{End, Reached, confirm, meet};
use super::problem;
use super::send::stop_on_signal;
use crate::args::{DropLink, Mount, Mounting, Share};
use crate::problem::Problem;

pub(crate) fn share(options: &Share) -> Result<Exit, Problem> {
    let sharing = Options {
        share: Some(options.folder.clone()),
        mount: options.mount.clone(),
        mounting: mounting(&options.mounting),
        ..Options::default()
    };
    run(&sharing, &options.link, End::Sharer)
}

pub(crate) fn mount(options: &Mount) -> Result<Exit, Problem> {
    let sharing = Options {
        share: options.share.clone(),
        mount: Some(options.mountpoint.clone()),
        mounting: mounting(&options.mounting),
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
    let cancel = stop_on_signal()?;
    let (Reached { check, .. }, came) = match meet(link, end, events, &cancel) {
        // To be stopped is how this ends.
        Err(problem) if problem.exit() == Exit::Interrupted => return Ok(Exit::Done),
        met => met?,
    };
    let result = came.and_then(|mut connected| {
        confirm(&mut connected, check, events, &cancel)?;
        sharing::share(sharing, connected, &cancel, &|ready| events.ready(sharing, ready))
    });
    match result {
        Ok(()) => Ok(Exit::Done),
        Err(sealway_drop::Error::Cancelled) => Ok(Exit::Done),
        Err(error) => Err(events.failed(problem(&error))),
    }
}
