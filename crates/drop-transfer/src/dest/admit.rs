//! What becomes of an entry, decided before anything of it is written.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Mode, Stat};
use rustix::io::Errno;

use super::decision::{Admission, Answer, Existing, Skip};
use super::folder::Folder;
use super::journal::Record;
use super::links::stays_inside;
use super::rename::Alternatives;
use super::staging::Staging;
use super::state::{Seen, State};
use super::{Conflict, Error};
use crate::entry::{Entry, Kind};
use crate::stat::{identity, is_directory, mount, mtime, what};
use sealway_drop::names::RelPath;

impl Staging {
    /// Decides about an entry; `id` is what it is called from here on. A directory must be admitted before what is in it.
    /// Directories are made right away, anything else only later. An entry counts as seen even if this fails.
    ///
    /// # Errors
    /// Of the peer: one path twice, or something in what is no directory. Of the user: two names that are one on this file
    /// system. Else whatever the system says.
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
        if !inner.destination.options.hidden_in_home
            && (inner.destination.is_hidden_in_home(&entry.path) || state.hides(&entry.path))
        {
            return refused(&mut state, Skip::HiddenInHome);
        }
        match &entry.kind {
            Kind::Directory => {
                state.register(&entry.path, Seen::Refused)?;
                let (seen, admission) = inner.directory(&mut state, entry, parent)?;
                state.change(&entry.path, seen);
                Ok(admission)
            }
            Kind::Symlink { target } => {
                if !inner.destination.options.outside_symlinks && !stays_inside(&entry.path, target) {
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
            (Some(_), Answer::Skip) => Ok(state.refuse(&entry.path, Skip::Exists)),
            (Some(stat), Answer::Overwrite) if is_directory(&stat) => Ok(state.refuse(&entry.path, Skip::FolderThere)),
            (Some(stat), Answer::Overwrite) => {
                state.decide(id, identity(&stat));
                inner.wanted(&mut state, id, entry)
            }
            _ => inner.wanted(&mut state, id, entry),
        }
    }
}

impl Folder {
    /// Makes a directory or joins one.
    fn directory(&self, state: &mut State, entry: &Entry, parent_seen: Seen) -> Result<(Seen, Admission), Error> {
        let path = &entry.path;
        let parent = self.handles.parent(path)?;
        // In a directory that was made a moment ago nothing has the name.
        let mut there = match parent_seen {
            Seen::Fresh => None,
            _ => self.look(&parent, path)?,
        };
        if there.is_none() {
            if self.make(state, entry, &parent)? {
                return Ok((Seen::Fresh, Admission::Directory { made: true }));
            }
            there = self.look(&parent, path)?;
        }
        let stat = there.ok_or_else(|| Error::Swapped { path: path.to_string() })?;
        let refused = |skip| Ok((Seen::Refused, Admission::Skipped(skip)));
        if !is_directory(&stat) {
            return refused(match self.destination.options.conflict {
                Conflict::Skip => Skip::Exists,
                _ => Skip::FileThere,
            });
        }
        if self.is_elsewhere(&parent, path, &stat) {
            return refused(Skip::OtherFileSystem);
        }
        // Our own folder, or one directory under two names: the file system takes names for one that are two here.
        if identity(&stat) == self.identity || !state.placed.insert(identity(&stat)) {
            return refused(Skip::Alias);
        }
        if self.destination.homes.is_home(identity(&stat)) {
            state.homes.insert(path.key().into());
        }
        let made = state.old_directories.contains(path);
        if made {
            state.made.push((path.clone(), entry.mode & 0o777, entry.mtime));
        }
        Ok((Seen::Directory, Admission::Directory { made }))
    }

    /// Makes a directory; false if something has its name.
    fn make(&self, state: &mut State, entry: &Entry, parent: impl AsFd) -> Result<bool, Error> {
        let path = &entry.path;
        let failed = |errno| Error::system(path, "write the journal for", errno);
        // First the journal, then the directory: a later run must not take it for the user's own.
        let known = state.old_directories.contains(path);
        if !known {
            self.log(&Record::Directory { path: path.clone() }).map_err(failed)?;
        }
        // What is in it must be made, whatever its mode becomes.
        let mode = Mode::from_raw_mode((entry.mode & 0o777) | 0o700);
        match rustix::fs::mkdirat(&parent, path.name(), mode) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                if !known {
                    self.log(&Record::Joined { path: path.clone() }).map_err(failed)?;
                }
                return Ok(false);
            }
            Err(errno) => return Err(Error::system(path, "make the folder", errno)),
        }
        if let Some(stat) = self.look(&parent, path)? {
            state.placed.insert(identity(&stat));
        }
        if self.destination.options.each() {
            state.touched.insert(path.parent_key().into());
            state.touched.insert(path.key().into());
        }
        state.made.push((path.clone(), entry.mode & 0o777, entry.mtime));
        Ok(true)
    }

    /// Whether nothing can be renamed from the staging folder into a directory: another file system, or another mount of it.
    fn is_elsewhere(&self, parent: impl AsFd, path: &RelPath, stat: &Stat) -> bool {
        stat.st_dev != self.identity.0
            || match (self.mount, mount(parent, path.name(), AtFlags::SYMLINK_NOFOLLOW)) {
                (Some(ours), Some(theirs)) => ours != theirs,
                _ => false,
            }
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
        // What this transfer put there is another entry, whose name is this one to the file system.
        let own = state.placed.contains(&identity(&stat));
        if !own && self.same(&parent, entry.path.name(), entry, &stat)? {
            return Ok(Admission::Same);
        }
        match self.destination.options.conflict {
            Conflict::SkipSame => Ok(state.refuse(&entry.path, Skip::Differs)),
            Conflict::Skip => Ok(state.refuse(&entry.path, Skip::Exists)),
            Conflict::Overwrite if is_directory(&stat) => Ok(state.refuse(&entry.path, Skip::FolderThere)),
            Conflict::Overwrite => {
                state.decide(id, identity(&stat));
                self.wanted(state, id, entry)
            }
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
    pub(super) fn look(&self, parent: impl AsFd, path: &RelPath) -> Result<Option<Stat>, Error> {
        match rustix::fs::statat(parent, path.name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(Error::system(path, "look at", errno)),
        }
    }

    /// Whether what has a name is what would be made.
    pub(super) fn same(&self, parent: impl AsFd, name: &[u8], entry: &Entry, stat: &Stat) -> Result<bool, Error> {
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
