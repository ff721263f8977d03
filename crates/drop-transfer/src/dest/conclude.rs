//! The end of a transfer: links, modes and times of directories, and no trace of the staging folder.

use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::decision::{Placed, Skip};
use super::folder::{Folder, LINK};
use super::links::lands_in;
use super::rename::{Alternatives, Policy};
use super::staging::Staging;
use super::{Error, Flush};
use crate::entry::{Entry, Kind, Time};
use crate::stat::{set_mode, set_time, timestamps};
use sealway_drop::names::RelPath;

/// What [`Staging::conclude`] did.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Conclusion {
    /// Symbolic links that were made, with where they went.
    pub symlinks: Vec<(u32, Placed)>,
    /// What was left out at the end, though it was not when it was admitted.
    pub skipped: Vec<(RelPath, Skip)>,
    /// Links whose names were taken, and the names that they got.
    pub renamed: Vec<(RelPath, RelPath)>,
    /// Whether all that was received is on the disk, so that a loss of power takes nothing of it. Always so in memory, where it
    /// takes all.
    pub settled: bool,
    /// Whether something that is not ours is in the staging folder, which therefore stays.
    pub left_behind: bool,
}

impl Staging {
    /// Ends a transfer of which every file has come or was given up. Symbolic links are made, then directories get their
    /// modes and times, innermost first, and the staging folder goes.
    ///
    /// # Errors
    /// [`Error::Unfinished`] if files are missing; nothing is done then. Else what the system says; it can be called again.
    pub fn conclude(&self) -> Result<Conclusion, Error> {
        let inner = &*self.inner;
        let (links, made) = {
            let state = inner.state();
            if !state.pending.is_empty() {
                return Err(Error::Unfinished {
                    files: state.pending.len(),
                });
            }
            // Those that an earlier call made are not made again.
            (
                state.links.get(state.linked.len()..).unwrap_or_default().to_vec(),
                state.made.clone(),
            )
        };
        let mut conclusion = Conclusion::default();
        for (id, entry) in links {
            let placed = inner.link(id, &entry)?;
            inner.state().linked.push((id, entry.path, placed));
        }
        for (id, path, placed) in &inner.state().linked {
            match placed {
                Placed::Skipped(skip) => conclusion.skipped.push((path.clone(), *skip)),
                Placed::Renamed(name) => conclusion.renamed.push((path.clone(), name.clone())),
                Placed::Named => {}
            }
            conclusion.symlinks.push((*id, placed.clone()));
        }
        // Parents came first, so what is inside comes first from behind.
        for (path, mode, mtime) in made.iter().rev() {
            inner.settle(path, *mode, *mtime)?;
        }
        conclusion.settled = self.settle_data()?;
        inner.state().conclude();
        conclusion.left_behind = !inner.remove_folder()?;
        if inner.destination.options.each() {
            inner.sync_directory(&[])?;
        }
        Ok(conclusion)
    }

    /// Brings what has its name to the disk, if the option `flush` says so, and says whether it is there. What comes
    /// after that is not; [`Staging::conclude`] does it again.
    ///
    /// # Errors
    /// What the disk could not take, now or since the transfer began.
    pub fn settle_data(&self) -> Result<bool, Error> {
        let inner = &*self.inner;
        match inner.destination.options.flush() {
            _ if inner.system.in_memory => Ok(true),
            Flush::None => Ok(false),
            Flush::Each => inner.sync_directories().map(|()| true),
            Flush::End => match rustix::fs::syncfs(&inner.folder) {
                Ok(()) => Ok(true),
                // A file system or a sandbox that has no such thing.
                Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::PERM) => Ok(false),
                Err(errno) => Err(Error::system("what was received", "bring to the disk", errno)),
            },
        }
    }
}

impl Folder {
    fn link(&self, id: u32, entry: &Entry) -> Result<Placed, Error> {
        let Kind::Symlink { target } = &entry.kind else {
            return Err(Error::NotOpen { id });
        };
        let path = &entry.path;
        if !self.destination.options.outside_symlinks && !self.leads_to_transfer(path, target) {
            return Ok(Placed::Skipped(Skip::OutsideLink));
        }
        let failed = |errno| Error::system(path, "make the link", errno);
        let parent = self.handles.parent(path)?;
        let (name, placed) = match rustix::fs::symlinkat(&**target, &parent, path.name()) {
            Ok(()) => (path.name().to_vec(), Placed::Named),
            Err(Errno::EXIST) => {
                let Some(stat) = self.look(&parent, path)? else {
                    return Err(failed(Errno::EXIST));
                };
                if self.same(&parent, path.name(), entry, &stat)? {
                    return Ok(Placed::Named);
                }
                let replaced = match self.policy(id) {
                    Policy::Leave(skip) => return Ok(Placed::Skipped(skip)),
                    Policy::Beside => false,
                    Policy::Replace(decided) => {
                        let temporary = format!("{LINK}{}", self.new_slot());
                        rustix::fs::symlinkat(&**target, &self.folder, &temporary).map_err(failed)?;
                        let replaced = self.replace(decided, &temporary, &parent, path.name());
                        if !matches!(replaced, Ok(true)) {
                            self.unlink(&temporary).map_err(failed)?;
                        }
                        replaced.map_err(failed)?
                    }
                };
                match replaced {
                    true => (path.name().to_vec(), Placed::Named),
                    false => {
                        let name = self.link_beside(entry, target, &parent)?;
                        let renamed = self.renamed(path, &name)?;
                        (name, Placed::Renamed(renamed))
                    }
                }
            }
            Err(errno) => return Err(failed(errno)),
        };
        // Not every file system keeps times of links, and nothing depends on them.
        let _ = rustix::fs::utimensat(&parent, &name, &timestamps(entry.mtime), AtFlags::SYMLINK_NOFOLLOW);
        if self.destination.options.each() {
            self.state().touched.insert(path.parent_key().into());
        }
        Ok(placed)
    }

    fn link_beside(&self, entry: &Entry, target: &[u8], parent: impl std::os::fd::AsFd) -> Result<Vec<u8>, Error> {
        let failed = |errno| Error::system(&entry.path, "make the link", errno);
        for name in Alternatives::of(entry.path.name()) {
            match rustix::fs::symlinkat(target, &parent, &name) {
                Ok(()) => return Ok(name),
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(errno)),
            }
        }
        Err(failed(Errno::EXIST))
    }

    /// A link may lead to what was sent, not to what else is in the destination.
    fn leads_to_transfer(&self, path: &RelPath, target: &[u8]) -> bool {
        lands_in(path, target).is_some_and(|way| self.state().is_sent(&way))
    }

    fn settle(&self, path: &RelPath, mode: u32, mtime: Time) -> Result<(), Error> {
        let failed = |errno| Error::system(path, "set the mode of", errno);
        let directory = match self.handles.directory(path.key()) {
            Ok(directory) => directory,
            // Moved or removed by the user, whose business it is.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            Err(errno) => return Err(failed(errno)),
        };
        set_mode(&directory, self.mode(mode)).map_err(failed)?;
        set_time(&directory, mtime).map_err(failed)
    }

    fn sync_directories(&self) -> Result<(), Error> {
        let touched = std::mem::take(&mut self.state().touched);
        for key in &touched {
            self.sync_directory(key)?;
        }
        Ok(())
    }

    fn sync_directory(&self, key: &[u8]) -> Result<(), Error> {
        match self.handles.directory(key).and_then(rustix::fs::fsync) {
            // A directory that may not be read, or a file system that syncs none.
            Ok(()) | Err(Errno::INVAL | Errno::NOENT | Errno::ACCESS) => Ok(()),
            Err(errno) => {
                let shown = sealway_drop::names::join(key);
                Err(Error::system(
                    sealway_drop::names::Escaped(&shown),
                    "bring to the disk",
                    errno,
                ))
            }
        }
    }
}
