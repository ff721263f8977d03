//! `sealway share`, `sealway mount` and `sealway pair`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use sealway_drop::cancel::Cancel;
use sealway_drop::link::Connected;
use sealway_drop::policy::{Confirmed, End, code};
use sealway_drop_mount::cache::CacheOptions;
use sealway_drop_mount::fuse::MountOptions;
use sealway_drop_mount::sharing::{self, Options, Ready, Telling};
use tracing_subscriber::filter::LevelFilter;

use super::code::in_place_of;
use super::events::Events;
use super::session::{Prepared, ask_again, confirm, prepare, ways};
use super::stop_on_signal;
use crate::args::{Changing, Direction, DropLink, Mount, MountAt, Mounting, Pair, Share};
use crate::exit::Exit;
use crate::log;
use crate::problem::Problem;
use crate::signals::take_every_descriptor;

pub(crate) fn share(options: &Share) -> Result<Exit, Problem> {
    if options.web.http {
        return super::web::share(options);
    }
    let [folder] = options.paths.as_slice() else {
        let problem = Problem::usage("one folder is shared at a time");
        return Err(problem.hint("with --http several are, and files too; `sealway send` sends them"));
    };
    let mut sharing = sharing(
        Some(folder),
        options.mount.as_ref(),
        &options.mounting.at,
        &options.link,
    );
    sharing.mounting.cache = cache(&options.mounting);
    allow(&mut sharing, options.writable, &options.changing)?;
    run(&sharing, &options.link, End::Sharer)
}

pub(crate) fn mount(options: &Mount) -> Result<Exit, Problem> {
    let mut sharing = sharing(
        options.share.as_ref(),
        Some(&options.mountpoint),
        &options.mounting.at,
        &options.link,
    );
    sharing.mounting.cache = cache(&options.mounting);
    allow(&mut sharing, options.writable, &options.changing)?;
    run(&sharing, &options.link, End::Mounter)
}

pub(crate) fn pair(options: &Pair) -> Result<Exit, Problem> {
    let mut sharing = sharing(
        Some(&options.folder),
        Some(&options.mountpoint),
        &options.mounting,
        &options.link,
    );
    allow(&mut sharing, Some(Direction::Both), &options.changing)?;
    let end = if options.join { End::Joiner } else { End::Pairer };
    run(&sharing, &options.link, end)
}

/// Takes in what may be changed.
fn allow(sharing: &mut Options, what: Option<Direction>, limits: &Changing) -> Result<(), Problem> {
    let Some(what) = what else { return Ok(()) };
    let (share, mount) = (what != Direction::Mount, what != Direction::Share);
    if share && sharing.share.is_none() {
        return Err(Problem::usage("--writable: no folder of this end is shared").hint("--share DIR shares one"));
    }
    if mount && sharing.mount.is_none() {
        return Err(Problem::usage("--writable: nothing is mounted here")
            .hint("--mount MOUNTPOINT mounts the folder of the other end"));
    }
    if mount && sharing.mounting.cache.is_some() {
        let hint = "leave out --cache, or mount read-only";
        return Err(Problem::usage("--cache keeps no copies of what can be changed here").hint(hint));
    }
    if share {
        sharing.writable = Some(sharing::Writable {
            floor: limits.keep_free,
            hidden: limits.hidden,
        });
    }
    sharing.mounting.writable = mount;
    Ok(())
}

fn sharing(share: Option<&PathBuf>, mount: Option<&PathBuf>, options: &MountAt, link: &DropLink) -> Options {
    Options {
        share: share.cloned(),
        mount: mount.cloned(),
        mounting: MountOptions {
            allow_other: options.allow_other,
            allow_nonempty: options.nonempty,
            ..MountOptions::default()
        },
        again: Duration::from_secs(options.reconnect),
        direct: ways(link),
        ..Options::default()
    }
}

fn cache(options: &Mounting) -> Option<CacheOptions> {
    options.cache.as_ref().map(|dir| CacheOptions {
        size: options.cache_size,
        ..CacheOptions::new(dir)
    })
}

/// What cannot be listed is left to mounting.
fn holds_something(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

/// Neither folder may hold the other: each end would find its own folder in that of the other one, and so on without end.
fn apart(shared: &Path, mounted: &Path) -> Result<(), Problem> {
    // That of a mount whose program was killed cannot be asked, the one it is in can.
    let real = |folder: &Path| {
        folder.canonicalize().or_else(|error| {
            let (parent, name) = folder.parent().zip(folder.file_name()).ok_or(error)?;
            let parent = if parent == Path::new("") {
                Path::new(".")
            } else {
                parent
            };
            Ok(parent.canonicalize()?.join(name))
        })
    };
    let wrong = |why: std::io::Error| Problem::usage(format!("{}: {why}", mounted.display()));
    let (inner, outer) = (real(mounted).map_err(wrong)?, real(shared).map_err(wrong)?);
    if !inner.starts_with(&outer) && !outer.starts_with(&inner) {
        return Ok(());
    }
    let what = format!(
        "the folders of the two ends must be apart: {} is shared, {} mounted",
        shared.display(),
        mounted.display()
    );
    Err(Problem::usage(what).hint("mount beside the folder, not in it"))
}

fn run(sharing: &Options, link: &DropLink, end: End) -> Result<Exit, Problem> {
    let events = Events::of(link);
    // Before anybody is asked to come: the folders must be there.
    for (folder, mounted) in [(&sharing.share, false), (&sharing.mount, true)] {
        let Some(folder) = folder else { continue };
        let wrong = |why: &dyn std::fmt::Display| Problem::usage(format!("{}{why}", folder.display()));
        match std::fs::metadata(folder) {
            Ok(found) if found.is_dir() => {
                if mounted && !sharing.mounting.allow_nonempty && holds_something(folder) {
                    return Err(wrong(&" is not empty").hint("--nonempty covers what it holds"));
                }
            }
            Ok(_) => return Err(wrong(&" is no folder")),
            // A mount whose program was killed stands there. Mounting takes it away if it was one of ours.
            Err(error) if mounted && error.raw_os_error() == Some(Errno::NOTCONN.raw_os_error()) => {}
            Err(error) => {
                let command = match end {
                    End::Pairer | End::Joiner => "sealway pair --join DIR MOUNTPOINT",
                    _ => "sealway mount MOUNTPOINT",
                };
                return Err(wrong(&format_args!(": {error}")).hint_if(in_place_of(folder, command)));
            }
        }
    }
    if let (Some(shared), Some(mounted)) = (&sharing.share, &sharing.mount) {
        apart(shared, mounted)?;
    }
    // Of those who come, of the folder, and of what is open in the mount.
    take_every_descriptor();
    // Programs in the mount can be told a number alone; what it means is for whoever reads here.
    log::to_stderr(LevelFilter::WARN);
    let cancel = stop_on_signal()?;
    let result = loop {
        let Prepared {
            place,
            setup,
            check,
            code: source,
            announced: _announced,
            ..
        } = match prepare(link, end, events, &cancel) {
            // To be stopped is how this ends.
            Err(problem) if problem.exit() == Exit::Interrupted => return Ok(Exit::Done),
            ready => ready?,
        };
        let telling = Teller {
            sharing,
            events,
            cancel: &cancel,
            confirmed: Confirmed::new(check),
        };
        match sharing::keep(sharing, place, &setup, &cancel, &telling) {
            Err(error) if code::is_asked_again(&error, source) => ask_again(&error),
            result => break result,
        }
    };
    log::flush();
    match result {
        Ok(()) | Err(sealway_drop::Error::Cancelled) => Ok(Exit::Done),
        Err(error) => Err(error.into()),
    }
}

/// Says what happens.
struct Teller<'a> {
    sharing: &'a Options,
    events: Events,
    cancel: &'a Cancel,
    confirmed: Confirmed,
}

impl Telling for Teller<'_> {
    fn connected(&self, connected: &mut Connected) -> Result<(), sealway_drop::Error> {
        let key = connected.peered.peer_key;
        confirm(connected, self.confirmed.check(key), self.events, self.cancel)?;
        self.confirmed.passed(key);
        Ok(())
    }

    fn turned_away(&self, why: &sealway_drop::Error) {
        self.events.turned_away(why);
    }

    fn ready(&self, ready: Ready) {
        self.events.ready(self.sharing, ready);
    }

    fn path(&self, direct: Option<SocketAddr>) {
        self.events.path(direct);
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
