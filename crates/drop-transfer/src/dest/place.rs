//! Files take their names.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use super::admit::{Answer, Identity, Skip, identity};
use super::probe::timestamps;
use super::staging::{Inner, SMALL, Staging};
use super::{Conflict, Error};
use crate::entry::{Entry, Time};
use crate::names::{MAX_COMPONENT, RelPath, Rules};

/// The most alternative names that are tried.
const MAX_ALTERNATIVES: u32 = 10_000;
/// A longer part after the last dot is no extension.
const MAX_EXTENSION: usize = 32;

/// Where a file went.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Placed {
    /// It has its name.
    Named,
    /// Its name was taken, so it has this one in the same directory.
    Renamed(RelPath),
    /// Its name was taken meanwhile, and it was dropped.
    Skipped(Skip),
}

impl Staging {
    /// Makes a whole file at once. Meant for small ones: there is no journal and nothing to resume.
    ///
    /// # Errors
    /// [`Error::NotOpen`] if [`Staging::admit`] did not say to fetch it, [`Error::Incomplete`] or [`Error::Outside`] if
    /// `bytes` are not as many as the entry says, else what the system says. The file can be placed again after an error.
    pub fn place_small(&self, id: u32, entry: &Entry, bytes: &[u8]) -> Result<Placed, Error> {
        let inner = &*self.inner;
        let (size, len) = (entry.size(), bytes.len() as u64);
        if len < size {
            return Err(Error::Incomplete {
                path: entry.path.clone(),
                missing: size - len,
            });
        }
        if len > size {
            return Err(Error::Outside {
                path: entry.path.clone(),
                offset: 0,
                bytes: len,
                size,
            });
        }
        if !inner.state().pending.remove(&id) {
            return Err(Error::NotOpen { id });
        }
        let temporary = format!("{SMALL}{}", inner.new_slot());
        let placed = inner
            .small(&temporary, entry, bytes)
            .and_then(|()| inner.put(id, &entry.path, &temporary));
        if placed.is_err() {
            // The first error is the one that counts; the next run sweeps what is left.
            let _ = inner.unlink(&temporary);
            inner.state().pending.insert(id);
        }
        placed
    }
}

impl Inner {
    fn small(&self, temporary: &str, entry: &Entry, bytes: &[u8]) -> Result<(), Error> {
        let failed = |errno| Error::system(&entry.path, "write", errno);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = self.mode(entry.mode);
        let file = rustix::fs::openat(&self.folder, temporary, flags, Mode::from_raw_mode(mode)).map_err(failed)?;
        super::staged::write_all(&file, bytes, 0).map_err(failed)?;
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

/// What something is, in words.
pub(super) fn what(stat: &Stat) -> &'static str {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => "a file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        _ => "something special",
    }
}

/// Sets the mode of something of ours, where the file system has such a thing.
pub(super) fn set_mode(file: impl AsFd, mode: u32) -> Result<(), Errno> {
    match rustix::fs::fchmod(file, Mode::from_raw_mode(mode)) {
        Err(Errno::PERM | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(()),
        other => other,
    }
}

/// Sets the time of something of ours, where the file system can store it.
pub(super) fn set_time(file: impl AsFd, mtime: Time) -> Result<(), Errno> {
    match rustix::fs::futimens(file, &timestamps(mtime)) {
        Err(Errno::INVAL | Errno::RANGE | Errno::OVERFLOW | Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(()),
        other => other,
    }
}
