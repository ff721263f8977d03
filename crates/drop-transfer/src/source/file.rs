//! A file that is being sent.

use std::ops::Range;
use std::os::fd::OwnedFd;

use rustix::fs::{FileType, SeekFrom, Stat};
use rustix::io::Errno;

use super::Error;
use crate::entry::{Entry, Kind, Time};
use crate::stat::mtime;
use sealway_drop::names::RelPath;

/// Holes below this many bytes are sent as zeros: a range of its own would cost more.
const MIN_HOLE: u64 = 64 * 1024;

/// A regular file, open for reading by any number of threads.
#[derive(Debug)]
pub struct SourceFile {
    fd: OwnedFd,
    path: RelPath,
    size: u64,
    mtime: Time,
    sparse: bool,
}

impl SourceFile {
    pub(super) fn new(fd: OwnedFd, path: RelPath) -> Result<SourceFile, Error> {
        let stat = rustix::fs::fstat(&fd).map_err(|errno| Error::Unreadable {
            path: path.to_string(),
            source: errno.into(),
        })?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Error::NotAFile { path });
        }
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        Ok(SourceFile {
            fd,
            path,
            size,
            mtime: mtime(&stat),
            sparse: has_holes(&stat),
        })
    }

    /// Where it is below what is sent.
    pub fn path(&self) -> &RelPath {
        &self.path
    }

    /// Bytes it had when it was opened.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// When it had last changed when it was opened.
    pub fn mtime(&self) -> Time {
        self.mtime
    }

    /// Whether it still is what the scan saw: same size, same time.
    pub fn matches(&self, entry: &Entry) -> bool {
        matches!(entry.kind, Kind::File { size, .. } if size == self.size) && entry.mtime == self.mtime
    }

    /// Fills `buf` from `offset` on.
    ///
    /// # Errors
    /// [`Error::Shorter`] if the file ends before that, else why it cannot be read.
    pub fn read_at(&self, mut buf: &mut [u8], mut offset: u64) -> Result<(), Error> {
        while !buf.is_empty() {
            match rustix::io::pread(&self.fd, &mut *buf, offset) {
                Ok(0) => {
                    return Err(Error::Shorter {
                        path: self.path.clone(),
                        size: self.size,
                        end: offset,
                    });
                }
                Ok(n) => {
                    buf = buf.get_mut(n..).unwrap_or_default();
                    offset += n as u64;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(self.unreadable(errno)),
            }
        }
        Ok(())
    }

    /// The ranges that hold data, in order; what is between them and after them reads as zeros.
    ///
    /// Costs a system call a range, and none where the file has no holes. Two threads must not take extents of one file at
    /// the same time, but any may read.
    pub fn extents(&self) -> Extents<'_> {
        Extents {
            file: self,
            at: 0,
            waiting: None,
        }
    }

    /// Whether size or time of the file differ from what they were when it was opened.
    ///
    /// # Errors
    /// Why the system does not say.
    pub fn changed(&self) -> Result<bool, Error> {
        let stat = rustix::fs::fstat(&self.fd).map_err(|errno| self.unreadable(errno))?;
        Ok(u64::try_from(stat.st_size).ok() != Some(self.size) || mtime(&stat) != self.mtime)
    }

    /// The next data at or after `from`, just as the file system says.
    fn data_after(&self, from: u64) -> Result<Option<Range<u64>>, Error> {
        if from >= self.size {
            return Ok(None);
        }
        if !self.sparse {
            return Ok(Some(from..self.size));
        }
        let start = match rustix::fs::seek(&self.fd, SeekFrom::Data(from)) {
            Ok(start) => start,
            Err(Errno::NXIO) => return Ok(None),
            // A file system that knows no holes.
            Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::NOTTY) => return Ok(Some(from..self.size)),
            Err(errno) => return Err(self.unreadable(errno)),
        };
        if start >= self.size {
            return Ok(None);
        }
        let end = match rustix::fs::seek(&self.fd, SeekFrom::Hole(start)) {
            Ok(end) if end > start => end.min(self.size),
            // Cut or punched between the two calls.
            Ok(_) | Err(Errno::NXIO) => self.size,
            Err(errno) => return Err(self.unreadable(errno)),
        };
        Ok(Some(start..end))
    }

    fn unreadable(&self, errno: Errno) -> Error {
        Error::Unreadable {
            path: self.path.to_string(),
            source: errno.into(),
        }
    }
}

/// Ranges of a file that hold data; see [`SourceFile::extents`].
#[derive(Debug)]
pub struct Extents<'a> {
    file: &'a SourceFile,
    at: u64,
    waiting: Option<Range<u64>>,
}

impl Iterator for Extents<'_> {
    type Item = Result<Range<u64>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.file.data_after(self.at) {
                Ok(Some(next)) => {
                    self.at = next.end;
                    match &mut self.waiting {
                        Some(range) if next.start - range.end < MIN_HOLE => range.end = next.end,
                        waiting => {
                            if let Some(range) = waiting.replace(next) {
                                return Some(Ok(range));
                            }
                        }
                    }
                }
                Ok(None) => {
                    self.at = self.file.size;
                    return self.waiting.take().map(Ok);
                }
                Err(error) => {
                    self.at = self.file.size;
                    self.waiting = None;
                    return Some(Err(error));
                }
            }
        }
    }
}

/// Whether holes are worth looking for.
pub(super) fn has_holes(stat: &Stat) -> bool {
    u64::try_from(stat.st_size).unwrap_or_default() >= allocated(stat).saturating_add(MIN_HOLE)
}

/// Bytes of a file that are on disk.
pub(super) fn allocated(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks).unwrap_or_default().saturating_mul(512)
}
