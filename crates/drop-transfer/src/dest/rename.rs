//! Temporary files take their names.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::decision::{Answer, Placed, Skip};
use super::folder::Folder;
use super::{Conflict, Error};
use crate::entry::{Entry, Time};
use crate::stat::{Identity, identity, set_mode, set_time, write_all};
use sealway_drop::names::{MAX_COMPONENT, RelPath, Rules};

/// The most alternative names that are tried.
const MAX_ALTERNATIVES: u32 = 10_000;
/// A longer part after the last dot is no extension.
const MAX_EXTENSION: usize = 32;

impl Folder {
    pub(super) fn small(&self, temporary: &str, entry: &Entry, bytes: &[u8]) -> Result<(), Error> {
        let failed = |errno| Error::system(&entry.path, "write", errno);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = self.mode(entry.mode);
        let file = rustix::fs::openat(&self.folder, temporary, flags, Mode::from_raw_mode(mode)).map_err(failed)?;
        write_all(&file, bytes, 0).map_err(failed)?;
        if mode & self.system.masked != 0 {
            set_mode(&file, mode).map_err(failed)?;
        }
        self.stamp(&file, &entry.path, entry.mtime)
    }

    /// The permissions that something gets whose sender says `mode`.
    pub(super) fn mode(&self, mode: u32) -> u32 {
        match self.destination.options.keep_mode {
            true => mode & 0o777,
            false => mode & 0o777 & !self.system.masked,
        }
    }

    /// The time is set when all is written: to a later run it tells a whole file from one that was broken off. It says nothing
    /// about a loss of power, which may leave size, time and name without the content; that is what `super::Flush` is for.
    pub(super) fn stamp(&self, file: &OwnedFd, path: &RelPath, mtime: Time) -> Result<(), Error> {
        set_time(file, mtime)
            .and_then(|()| {
                if self.destination.options.each() {
                    rustix::fs::fsync(file)
                } else {
                    Ok(())
                }
            })
            .map_err(|errno| Error::system(path, "write", errno))
    }

    /// Gives a temporary file its name, by the policy where that is taken.
    pub(super) fn put(&self, id: u32, path: &RelPath, temporary: &str) -> Result<Placed, Error> {
        let failed = |errno| Error::system(path, "put in place", errno);
        let parent = self.handles.parent(path)?;
        let own = if self.state().is_in_fresh(path) {
            None
        } else {
            rustix::fs::statat(&self.folder, temporary, AtFlags::SYMLINK_NOFOLLOW).ok()
        };
        let placed = match self.rename_new(&parent, temporary, path.name()) {
            Ok(()) => Placed::Named,
            Err(Errno::EXIST) => self.put_beside(id, path, temporary, &parent)?,
            Err(errno) => return Err(failed(errno)),
        };
        let mut state = self.state();
        if let (Some(own), Placed::Named | Placed::Renamed(_)) = (own, &placed) {
            state.placed.insert(identity(&own));
        }
        if self.destination.options.each() {
            state.touched.insert(path.parent_key().into());
        }
        Ok(placed)
    }

    fn put_beside(&self, id: u32, path: &RelPath, temporary: &str, parent: &OwnedFd) -> Result<Placed, Error> {
        let failed = |errno| Error::system(path, "put in place", errno);
        match self.policy(id) {
            Policy::Leave(skip) => {
                self.unlink(temporary).map_err(failed)?;
                self.state().refuse(path, skip);
                Ok(Placed::Skipped(skip))
            }
            Policy::Replace(decided) if self.replace(decided, temporary, parent, path.name()).map_err(failed)? => {
                Ok(Placed::Named)
            }
            Policy::Replace(_) | Policy::Beside => {
                for name in Alternatives::of(path.name()) {
                    match self.rename_new(parent, temporary, &name) {
                        Ok(()) => {
                            return Ok(Placed::Renamed(self.renamed(path, &name)?));
                        }
                        Err(Errno::EXIST) => {}
                        Err(errno) => return Err(failed(errno)),
                    }
                }
                Err(failed(Errno::EXIST))
            }
        }
    }

    pub(super) fn renamed(&self, path: &RelPath, name: &[u8]) -> Result<RelPath, Error> {
        // Alternatives are names again, and no longer; only a path at the limit can fail.
        let made = match path.parent() {
            Some(parent) => parent.child(name, Rules::POSIX),
            None => RelPath::new([name], Rules::POSIX),
        };
        made.map_err(|_| Error::system(path, "rename", Errno::NAMETOOLONG))
    }

    pub(super) fn policy(&self, id: u32) -> Policy {
        let state = self.state();
        match (state.answers.get(&id), self.destination.options.conflict) {
            (Some(Answer::Skip), _) | (None, Conflict::Skip) => Policy::Leave(Skip::Exists),
            // What was not there when it was decided is nobody's to replace: both are kept.
            (Some(Answer::Overwrite), _) | (None, Conflict::Overwrite) => state
                .decided
                .get(&id)
                .map_or(Policy::Beside, |decided| Policy::Replace(*decided)),
            (None, Conflict::SkipSame) => Policy::Leave(Skip::Differs),
            // Nobody was asked, since nothing was there then: both are kept.
            (Some(Answer::Rename), _) | (None, Conflict::Rename | Conflict::Ask) => Policy::Beside,
        }
    }

    /// Replaces what has a name, if that is what it was decided about; false if not, and nothing is changed then.
    pub(super) fn replace(
        &self,
        decided: Identity,
        temporary: &str,
        parent: impl AsFd,
        name: &[u8],
    ) -> Result<bool, Errno> {
        match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if identity(&stat) == decided => {}
            Ok(_) | Err(Errno::NOENT) => return Ok(false),
            Err(errno) => return Err(errno),
        }
        let exchange = || {
            let flags = RenameFlags::EXCHANGE;
            rustix::fs::renameat_with(&self.folder, temporary, &parent, name, flags)
        };
        match exchange() {
            Ok(()) => {
                let found = rustix::fs::statat(&self.folder, temporary, AtFlags::SYMLINK_NOFOLLOW)?;
                if identity(&found) == decided {
                    return self.unlink(temporary).map(|()| true);
                }
                // Something else took the name in this very moment, and gets it back.
                exchange().map(|()| false)
            }
            Err(Errno::NOENT) => Ok(false),
            // A file system that cannot: it was looked at before.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                rustix::fs::renameat(&self.folder, temporary, &parent, name).map(|()| true)
            }
            Err(errno) => Err(errno),
        }
    }

    /// Renames to a name that nothing has, or fails with `EEXIST`.
    pub(super) fn rename_new(&self, parent: impl AsFd, temporary: &str, name: &[u8]) -> Result<(), Errno> {
        let renamed = rustix::fs::renameat_with(&self.folder, temporary, &parent, name, RenameFlags::NOREPLACE);
        if !matches!(renamed, Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)) {
            return renamed;
        }
        // A file system that cannot: a second name, which never replaces, then the first one goes.
        match rustix::fs::linkat(&self.folder, temporary, &parent, name, AtFlags::empty()) {
            Ok(()) => rustix::fs::unlinkat(&self.folder, temporary, AtFlags::empty()),
            // Nor that: all that is left is to look before.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::MLINK) => {
                match rustix::fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Err(Errno::NOENT) => rustix::fs::renameat(&self.folder, temporary, &parent, name),
                    Ok(_) => Err(Errno::EXIST),
                    Err(errno) => Err(errno),
                }
            }
            other => other,
        }
    }
}

/// What is done where a name is taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Policy {
    Leave(Skip),
    /// Only what was there when it was decided.
    Replace(Identity),
    Beside,
}

/// `name (1).ext`, `name (2).ext` and so on.
#[derive(Debug)]
pub(super) struct Alternatives<'a> {
    stem: &'a [u8],
    extension: &'a [u8],
    number: u32,
}

impl<'a> Alternatives<'a> {
    pub(super) fn of(name: &'a [u8]) -> Alternatives<'a> {
        let dot = name
            .iter()
            .rposition(|b| *b == b'.')
            .filter(|at| *at > 0 && name.len() - at <= MAX_EXTENSION);
        let (mut stem, mut extension) = name.split_at(dot.unwrap_or(name.len()));
        if !extension.is_empty() && stem.len() > 4 && stem.ends_with(b".tar") {
            (stem, extension) = name.split_at(stem.len() - 4);
        }
        Alternatives {
            stem,
            extension,
            number: 0,
        }
    }
}

impl Iterator for Alternatives<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if self.number == MAX_ALTERNATIVES {
            return None;
        }
        self.number += 1;
        let middle = format!(" ({})", self.number);
        let room = MAX_COMPONENT.saturating_sub(middle.len() + self.extension.len());
        let mut stem = self.stem;
        if stem.len() > room {
            // Cut between characters, if it is text.
            let cut = (0..=room)
                .rev()
                .take(4)
                .find(|at| stem.get(*at).is_none_or(|b| b & 0xc0 != 0x80));
            stem = stem.get(..cut.unwrap_or(room)).unwrap_or_default();
        }
        Some([stem, middle.as_bytes(), self.extension].concat())
    }
}
