//! What becomes of an entry, decided before anything of it is written.

use std::fmt;
use std::ops::Range;

use rustix::fs::{AtFlags, FileType, Mode, Stat};
use rustix::io::Errno;

use super::journal::Record;
use super::place::{Alternatives, what};
use super::staging::{Inner, Staging};
use super::state::{Seen, State};
use super::{Conflict, Error};
use crate::entry::{Entry, Kind, Time};
use crate::names::RelPath;

/// What is to happen with an entry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Admission {
    /// It is there already.
    Same,
    /// It is left out.
    Skipped(Skip),
    /// The directory is there.
    Directory {
        /// Whether this transfer made it, now or in an earlier run, and so sets its mode and time at the end.
        made: bool,
    },
    /// The symbolic link is made by [`Staging::conclude`].
    Symlink,
    /// The content is wanted.
    Fetch {
        /// What is on disk from an earlier run. It is to be compared with the sender's before it is kept;
        /// [`super::StagedFile::discard`] takes out what differs.
        partial: Vec<Range<u64>>,
    },
    /// The user is to be asked; [`Staging::answer`] goes on.
    Ask {
        /// What is there.
        existing: Existing,
    },
}

/// Why an entry is left out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Skip {
    /// Something has its name, and the policy or the answer is to leave that.
    Exists,
    /// Something else has its name, and the policy says nothing better: the transfer is not complete.
    Differs,
    /// The directory it is in was left out.
    Parent,
    /// It begins with a dot right in a home directory.
    HiddenInHome,
    /// It is a symbolic link that leads out of what is received.
    OutsideLink,
}

impl Skip {
    /// For a message after the path.
    pub fn reason(self) -> &'static str {
        match self {
            Skip::Exists => "something of that name is there",
            Skip::Differs => {
                "something else of that name is there; choose a conflict policy to rename, overwrite or skip"
            }
            Skip::Parent => "the folder it is in was left out",
            Skip::HiddenInHome => "it would be a hidden name in a home directory, which programs obey",
            Skip::OutsideLink => "it is a symbolic link that leads out of what is received",
        }
    }
}

/// For a message after the path.
impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

/// What has the name of an entry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Existing {
    /// What it is, as in "a file".
    pub what: &'static str,
    /// Bytes.
    pub size: u64,
    /// When its content last changed.
    pub mtime: Time,
}

/// What the user says to [`Admission::Ask`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// Leave what is there.
    Skip,
    /// Replace it.
    Overwrite,
    /// Keep both.
    Rename,
}

impl Staging {
    /// Decides about an entry; `id` is what it is called from here on. A directory must be admitted before what is in it.
    /// Directories are made right away, anything else only later. An entry counts as seen even if this fails.
    ///
    /// # Errors
    /// Of the peer: one path twice, or something in what is no directory. Of the user: two names that are one on this file
    /// system, or a directory and something else of one name. Else whatever the system says.
    pub fn admit(&self, id: u32, entry: &Entry) -> Result<Admission, Error> {
        let inner = &*self.inner;
        let mut state = inner.state();
        let parent = state.parent(&entry.path)?;
        let refused = |state: &mut State, skip| {
            state.register(&entry.path, Seen::Refused)?;
            Ok(Admission::Skipped(skip))
        };
        if parent == Seen::Refused {
            return refused(&mut state, Skip::Parent);
        }
        if !inner.destination.options.hidden_in_home && inner.destination.is_hidden_in_home(&entry.path) {
            return refused(&mut state, Skip::HiddenInHome);
        }
        match &entry.kind {
            Kind::Directory => {
                state.register(&entry.path, Seen::Refused)?;
                let (seen, made) = inner.directory(&mut state, entry)?;
                state.change(&entry.path, seen);
                Ok(Admission::Directory { made })
            }
            Kind::Symlink { target } => {
                if !inner.destination.options.outside_symlinks && !super::conclude::stays_inside(&entry.path, target) {
                    return refused(&mut state, Skip::OutsideLink);
                }
                state.register(&entry.path, Seen::Symlink)?;
                inner.leaf(&mut state, id, entry, parent)
            }
            Kind::File { .. } => {
                state.register(&entry.path, Seen::File)?;
                inner.leaf(&mut state, id, entry, parent)
            }
        }
    }

    /// Goes on with an entry after [`Admission::Ask`].
    ///
    /// # Errors
    /// [`Error::NotOpen`] if nothing was asked, else as [`Staging::admit`].
    pub fn answer(&self, id: u32, entry: &Entry, answer: Answer) -> Result<Admission, Error> {
        let inner = &*self.inner;
        let mut state = inner.state();
        if !state.asked.remove(&id) {
            return Err(Error::NotOpen { id });
        }
        state.answers.insert(id, answer);
        let parent = inner.handles.parent(&entry.path)?;
        let stat = inner.look(&parent, &entry.path)?;
        match (stat, answer) {
            (Some(_), Answer::Skip) => Ok(Admission::Skipped(Skip::Exists)),
            (Some(stat), Answer::Overwrite) if is_directory(&stat) => Err(obstructed(entry, &stat)),
            _ => inner.wanted(&mut state, id, entry),
        }
    }
}

impl Inner {
    /// Makes a directory or joins one.
    fn directory(&self, state: &mut State, entry: &Entry) -> Result<(Seen, bool), Error> {
        let path = &entry.path;
        let parent = self.handles.parent(path)?;
        // What is in it must be made, whatever its mode becomes.
        let mode = Mode::from_raw_mode((entry.mode & 0o777) | 0o700);
        let seen = match rustix::fs::mkdirat(&parent, path.name(), mode) {
            Ok(()) => {
                if let Err(errno) = self.log(&Record::Directory { path: path.clone() }) {
                    // A later run would take it for the user's own.
                    let _ = rustix::fs::unlinkat(&parent, path.name(), AtFlags::REMOVEDIR);
                    return Err(Error::system(path, "write the journal for", errno));
                }
                if self.destination.options.each() {
                    state.touched.insert(path.parent_key().into());
                    state.touched.insert(path.key().into());
                }
                Seen::Fresh
            }
            Err(Errno::EXIST) => match self.look(&parent, path)? {
                Some(stat) if is_directory(&stat) => Seen::Directory,
                Some(stat) => return Err(obstructed(entry, &stat)),
                None => return Err(Error::Swapped { path: path.to_string() }),
            },
            Err(errno) => return Err(Error::system(path, "make the folder", errno)),
        };
        let made = seen == Seen::Fresh || state.old_directories.contains(path);
        if made {
            state.made.push((path.clone(), entry.mode & 0o777, entry.mtime));
        }
        Ok((seen, made))
    }

    /// A file or a link: what has its name decides.
    fn leaf(&self, state: &mut State, id: u32, entry: &Entry, parent: Seen) -> Result<Admission, Error> {
        // Nothing is in a directory that was made a moment ago but what came in this transfer, whose names are known.
        if parent == Seen::Fresh {
            return self.wanted(state, id, entry);
        }
        let parent = self.handles.parent(&entry.path)?;
        let Some(stat) = self.look(&parent, &entry.path)? else {
            return self.wanted(state, id, entry);
        };
        if self.same(&parent, entry.path.name(), entry, &stat)? {
            return Ok(Admission::Same);
        }
        match self.destination.options.conflict {
            Conflict::SkipSame => Ok(Admission::Skipped(Skip::Differs)),
            Conflict::Skip => Ok(Admission::Skipped(Skip::Exists)),
            Conflict::Overwrite if is_directory(&stat) => Err(obstructed(entry, &stat)),
            Conflict::Overwrite => self.wanted(state, id, entry),
            Conflict::Rename => {
                // An earlier run may have renamed it.
                for name in Alternatives::of(entry.path.name()) {
                    match rustix::fs::statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(stat) if self.same(&parent, &name, entry, &stat)? => return Ok(Admission::Same),
                        Ok(_) => {}
                        Err(_) => break,
                    }
                }
                self.wanted(state, id, entry)
            }
            Conflict::Ask => {
                state.asked.insert(id);
                let size = u64::try_from(stat.st_size).unwrap_or_default();
                Ok(Admission::Ask {
                    existing: Existing {
                        what: what(&stat),
                        size,
                        mtime: mtime(&stat),
                    },
                })
            }
        }
    }

    fn wanted(&self, state: &mut State, id: u32, entry: &Entry) -> Result<Admission, Error> {
        let Kind::File { size, .. } = entry.kind else {
            state.links.push((id, entry.clone()));
            return Ok(Admission::Symlink);
        };
        state.pending.insert(id);
        let partial = match state.partials.get(entry.path.key()) {
            Some((_, partial)) if partial.size == size && partial.mtime == entry.mtime => partial.covered.to_vec(),
            Some((slot, _)) => {
                let slot = *slot;
                state.take_partial(&entry.path);
                self.forget(slot, &entry.path)?;
                Vec::new()
            }
            None => Vec::new(),
        };
        Ok(Admission::Fetch { partial })
    }

    /// What has a name, if anything.
    pub(super) fn look(&self, parent: impl std::os::fd::AsFd, path: &RelPath) -> Result<Option<Stat>, Error> {
        match rustix::fs::statat(parent, path.name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(Error::system(path, "look at", errno)),
        }
    }

    /// Whether what has a name is what would be made.
    pub(super) fn same(
        &self,
        parent: impl std::os::fd::AsFd,
        name: &[u8],
        entry: &Entry,
        stat: &Stat,
    ) -> Result<bool, Error> {
        let kind = FileType::from_raw_mode(stat.st_mode);
        match &entry.kind {
            Kind::File { size, .. } => Ok(kind == FileType::RegularFile
                && u64::try_from(stat.st_size).ok() == Some(*size)
                && self.system.same_time(mtime(stat), entry.mtime)),
            Kind::Directory => Ok(kind == FileType::Directory),
            Kind::Symlink { target } if kind == FileType::Symlink => {
                let found = rustix::fs::readlinkat(parent, name, Vec::new());
                let found = found.map_err(|errno| Error::system(&entry.path, "read the link", errno))?;
                Ok(found.as_bytes() == &**target)
            }
            Kind::Symlink { .. } => Ok(false),
        }
    }
}

fn mtime(stat: &Stat) -> Time {
    Time {
        seconds: stat.st_mtime,
        nanoseconds: u32::try_from(stat.st_mtime_nsec).unwrap_or_default(),
    }
}

pub(super) fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

pub(super) fn obstructed(entry: &Entry, stat: &Stat) -> Error {
    Error::Obstructed {
        path: entry.path.clone(),
        wanted: entry.kind.noun(),
        found: what(stat),
    }
}
