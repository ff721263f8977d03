//! Walking trees by their handles.

use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::error::{Error, Skip, Skipped};
use super::top::{escaped, special};
use super::{ScanOptions, Top, Totals};
use crate::beneath::Beneath;
use crate::entry::{Entry, Kind};
use crate::stat::mtime;
use sealway_drop::names::{Escaped, RelPath, Rules};

/// Entries between two calls of the progress function.
const PROGRESS_ENTRIES: usize = 1000;

pub(super) struct Walk<'a> {
    beneath: &'a Beneath,
    options: ScanOptions,
    progress: &'a mut dyn FnMut(&Totals),
    entries: Vec<Entry>,
    totals: Totals,
    skipped: Vec<Skipped>,
}

/// Something that was seen in a directory and comes up later. What waits shares the handle of its directory, so a walk holds
/// no more handles than a path has components.
struct Pending {
    parent: Rc<OwnedFd>,
    name: Vec<u8>,
    path: RelPath,
}

impl<'a> Walk<'a> {
    pub(super) fn new(beneath: &'a Beneath, options: ScanOptions, progress: &'a mut dyn FnMut(&Totals)) -> Walk<'a> {
        let (entries, skipped) = (Vec::new(), Vec::new());
        Walk {
            beneath,
            options,
            progress,
            entries,
            totals: Totals::default(),
            skipped,
        }
    }

    pub(super) fn finish(self) -> (Vec<Entry>, Totals, Vec<Skipped>) {
        (self.progress)(&self.totals);
        (self.entries, self.totals, self.skipped)
    }

    pub(super) fn top(&mut self, top: &Top) -> Result<(), Error> {
        let argument = |errno: Errno| Error::Argument {
            path: escaped(&top.path),
            source: errno.into(),
        };
        let path = RelPath::new([&top.name], Rules::local()).map_err(|source| Error::Name {
            path: escaped(&top.path),
            source,
        })?;
        let (name, flags) = match top.real.as_slice() {
            [] => (b".".as_slice(), AtFlags::empty()),
            real => (real, AtFlags::SYMLINK_NOFOLLOW),
        };
        let stat = rustix::fs::statat(&top.parent, name, flags).map_err(argument)?;
        if let Some(what) = special(FileType::from_raw_mode(stat.st_mode)) {
            return Err(Error::Special {
                path: escaped(&top.path),
                what,
            });
        }
        let mut pending = Vec::new();
        let key = top.locate(&path);
        if let Some(path) = self.found(top.parent.as_fd(), name, path, &stat)? {
            let opened = self.beneath.open(&top.parent, &key, directory_flags());
            self.directory(opened, path, &mut pending)?;
        }
        while let Some(Pending { parent, name, path }) = pending.pop() {
            let stat = match rustix::fs::statat(&*parent, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(errno) => {
                    self.unreadable(path.to_string(), errno)?;
                    continue;
                }
            };
            if let Some(path) = self.found(parent.as_fd(), &name, path, &stat)? {
                let opened = rustix::fs::openat(&*parent, &name, directory_flags(), Mode::empty());
                drop(parent);
                self.directory(opened, path, &mut pending)?;
            }
        }
        Ok(())
    }

    /// Takes down what was found, and gives the path back if it is a directory to look into.
    fn found(
        &mut self,
        parent: std::os::fd::BorrowedFd<'_>,
        name: &[u8],
        path: RelPath,
        stat: &Stat,
    ) -> Result<Option<RelPath>, Error> {
        let kind = FileType::from_raw_mode(stat.st_mode);
        if let Some(what) = special(kind) {
            self.skip(path.to_string(), Skip::Special(what));
            return Ok(None);
        }
        let kind = match kind {
            FileType::Directory => {
                self.totals.directories += 1;
                Kind::Directory
            }
            FileType::Symlink => match rustix::fs::readlinkat(parent, name, Vec::new()) {
                Ok(target) => {
                    self.totals.symlinks += 1;
                    Kind::Symlink {
                        target: target.into_bytes().into_boxed_slice(),
                    }
                }
                Err(Errno::INVAL) => {
                    self.skip(path.to_string(), Skip::Changed);
                    return Ok(None);
                }
                Err(errno) => {
                    self.unreadable(path.to_string(), errno)?;
                    return Ok(None);
                }
            },
            _ => {
                let size = u64::try_from(stat.st_size).unwrap_or_default();
                let data = super::file::allocated(stat).min(size);
                self.totals.files += 1;
                self.totals.bytes = self.totals.bytes.saturating_add(size);
                self.totals.data_bytes = self.totals.data_bytes.saturating_add(data);
                Kind::File {
                    size,
                    sparse: super::file::has_holes(stat),
                }
            }
        };
        let below = matches!(kind, Kind::Directory).then(|| path.clone());
        self.entries.push(Entry {
            path,
            kind,
            mode: stat.st_mode & 0o777,
            mtime: mtime(stat),
        });
        if self.entries.len().is_multiple_of(PROGRESS_ENTRIES) {
            (self.progress)(&self.totals);
        }
        Ok(below)
    }

    /// Puts what is in a directory on the stack, so that the first name is on top.
    fn directory(
        &mut self,
        opened: Result<OwnedFd, Errno>,
        path: RelPath,
        pending: &mut Vec<Pending>,
    ) -> Result<(), Error> {
        let fd = match opened {
            Ok(fd) => Rc::new(fd),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                self.skip(path.to_string(), Skip::Changed);
                return Ok(());
            }
            Err(errno) => return self.unreadable(path.to_string(), errno),
        };
        let mut names = Vec::new();
        let mut dir = match Dir::read_from(&*fd) {
            Ok(dir) => dir,
            Err(errno) => return self.unreadable(path.to_string(), errno),
        };
        while let Some(entry) = dir.read() {
            match entry {
                Ok(entry) if matches!(entry.file_name().to_bytes(), b"." | b"..") => {}
                Ok(entry) => names.push(entry.file_name().to_bytes().to_vec()),
                Err(errno) => {
                    self.unreadable(path.to_string(), errno)?;
                    break;
                }
            }
        }
        names.sort_unstable_by(|a, b| b.cmp(a));
        for name in names {
            match path.child(&name, Rules::local()) {
                Ok(path) => pending.push(Pending {
                    parent: Rc::clone(&fd),
                    name,
                    path,
                }),
                Err(error) => self.skip(format!("{path}/{}", Escaped(&name)), Skip::Name(error)),
            }
        }
        Ok(())
    }

    fn unreadable(&mut self, path: String, errno: Errno) -> Result<(), Error> {
        if self.options.fail_unreadable {
            return Err(Error::Unreadable {
                path,
                source: errno.into(),
            });
        }
        self.skip(path, Skip::Unreadable(errno.into()));
        Ok(())
    }

    fn skip(&mut self, path: String, reason: Skip) {
        self.totals.skipped += 1;
        self.skipped.push(Skipped { path, reason });
    }
}

fn directory_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}
