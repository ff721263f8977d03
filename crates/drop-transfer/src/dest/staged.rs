//! A file that comes in pieces.

use std::collections::HashMap;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::Error;
use super::decision::Placed;
use super::folder::{Folder, STAGED, covered};
use super::journal::{Partial, Record};
use crate::entry::{Entry, Kind, Time};
use crate::stat::{set_mode, write_all};
use sealway_drop::lock;
use sealway_drop::names::RelPath;
use sealway_drop::ranges::Ranges;

/// New bytes of a file after which the journal says so: what is sent twice at most after a crash.
const JOURNAL_EVERY: u64 = 8 * 1024 * 1024;
/// Room is asked for ahead from this size on.
const RESERVE_FROM: u64 = 1024 * 1024;

/// The files of a transfer that are being written, by their numbers.
pub(super) type Open = Mutex<HashMap<u32, Weak<StagedFile>>>;

/// A file in the staging folder, written by any number of threads.
///
/// Dropped before it is finished, it has the journal say what has come.
#[derive(Debug)]
pub struct StagedFile {
    inner: Arc<Folder>,
    open: Arc<Open>,
    id: u32,
    slot: u32,
    file: OwnedFd,
    path: RelPath,
    size: u64,
    mtime: Time,
    /// Whether it may hold bytes that count for nothing: then a hole must be made, not assumed.
    dirty: AtomicBool,
    coverage: Mutex<Coverage>,
    /// Whether it has its name or is removed. Whoever writes holds it, so that nothing is written after that.
    over: RwLock<bool>,
}

#[derive(Debug)]
struct Coverage {
    covered: Ranges,
    /// What the journal does not know yet.
    unlogged: Ranges,
    unlogged_bytes: u64,
    /// Whether the journal knows the file.
    logged: bool,
}

impl StagedFile {
    pub(super) fn open(
        inner: &Arc<Folder>,
        open: &Arc<Open>,
        id: u32,
        entry: &Entry,
    ) -> Result<Arc<StagedFile>, Error> {
        let mut opened = lock(open);
        let mut state = inner.state();
        if let Some(file) = opened.get(&id).and_then(Weak::upgrade) {
            return Ok(file);
        }
        let Kind::File { size, sparse } = entry.kind else {
            return Err(Error::NotOpen { id });
        };
        if !state.pending.contains(&id) {
            return Err(Error::NotOpen { id });
        }
        let failed = |errno| Error::system(&entry.path, "make the temporary file of", errno);
        let earlier = state.take_partial(&entry.path);
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let reopened = earlier
            .as_ref()
            .and_then(|(slot, _)| Some((*slot, reopen(inner, *slot, flags)?)));
        let (slot, file, dirty) = match reopened {
            Some((slot, file)) => (slot, file, true),
            None => {
                let slot = inner.new_slot();
                let flags = flags | OFlags::CREATE | OFlags::EXCL;
                let mode = Mode::RUSR | Mode::WUSR;
                let file = rustix::fs::openat(&inner.folder, format!("{STAGED}{slot}"), flags, mode).map_err(failed)?;
                (slot, file, false)
            }
        };
        let covered = covered(earlier.as_ref().filter(|_| dirty).map(|(_, partial)| partial));
        let coverage = Coverage {
            covered,
            unlogged: Ranges::new(),
            unlogged_bytes: 0,
            logged: dirty,
        };
        let staged = Arc::new(StagedFile {
            inner: Arc::clone(inner),
            open: Arc::clone(open),
            id,
            slot,
            file,
            path: entry.path.clone(),
            size,
            mtime: entry.mtime,
            dirty: AtomicBool::new(dirty),
            coverage: Mutex::new(coverage),
            over: RwLock::new(false),
        });
        opened.insert(id, Arc::downgrade(&staged));
        drop(state);
        drop(opened);
        rustix::fs::ftruncate(&staged.file, size).map_err(failed)?;
        if !sparse && size >= RESERVE_FROM && !inner.system.in_memory {
            staged.reserve().map_err(failed)?;
        }
        Ok(staged)
    }

    /// Has the disk say at once if there is no room.
    fn reserve(&self) -> Result<(), Errno> {
        // A file system may take all it has before it notices that this is too little, so it is asked first.
        let has = u64::try_from(rustix::fs::fstat(&self.file)?.st_blocks)
            .unwrap_or_default()
            .saturating_mul(512);
        let disk = rustix::fs::fstatvfs(&self.file)?;
        if self.size.saturating_sub(has) > disk.f_bavail.saturating_mul(disk.f_frsize) {
            return Err(Errno::NOSPC);
        }
        loop {
            match rustix::fs::fallocate(&self.file, FallocateFlags::KEEP_SIZE, 0, self.size) {
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => return Ok(()),
                Err(errno @ (Errno::NOSPC | Errno::DQUOT)) => {
                    // What it took is given back, down to what has come.
                    let end = self.coverage().covered.iter().last().map_or(0, |range| range.end);
                    rustix::fs::ftruncate(&self.file, end)?;
                    return Err(errno);
                }
                other => return other,
            }
        }
    }

    /// Where it will be.
    pub fn path(&self) -> &RelPath {
        &self.path
    }

    /// Bytes it will have.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// What has come, in this run and in earlier ones.
    pub fn covered(&self) -> Ranges {
        self.coverage().covered.clone()
    }

    /// What is still to come, in order.
    pub fn missing(&self) -> Vec<Range<u64>> {
        self.coverage().covered.missing(self.size)
    }

    /// Writes bytes at an offset, and says how many of them had not come before; fewer than all means that the peer sent
    /// something twice.
    ///
    /// # Errors
    /// [`Error::Outside`] past the end of the file, [`Error::NotOpen`] after it was finished, [`Error::NoSpace`].
    pub fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<u64, Error> {
        let range = self.range(offset, bytes.len() as u64)?;
        let _writing = self.writing()?;
        write_all(&self.file, bytes, offset).map_err(|errno| Error::system(&self.path, "write", errno))?;
        self.covers(range)
    }

    /// Makes a range a hole, which reads as zeros; says how many of its bytes had not come before.
    ///
    /// # Errors
    /// As [`StagedFile::write_at`].
    pub fn write_hole(&self, range: Range<u64>) -> Result<u64, Error> {
        let range = self.range(range.start, range.end.saturating_sub(range.start))?;
        let _writing = self.writing()?;
        if self.dirty.load(Ordering::Acquire) && range.start < range.end {
            let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            match rustix::fs::fallocate(&self.file, flags, range.start, range.end - range.start) {
                Ok(()) => {}
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => self.write_zeros(range.clone())?,
                Err(errno) => return Err(Error::system(&self.path, "make a hole in", errno)),
            }
        }
        self.covers(range)
    }

    fn write_zeros(&self, range: Range<u64>) -> Result<(), Error> {
        let zeros = vec![0; 256 * 1024];
        let mut at = range.start;
        while at < range.end {
            let len = usize::try_from(range.end - at).unwrap_or(usize::MAX).min(zeros.len());
            let zeros = zeros.get(..len).unwrap_or_default();
            write_all(&self.file, zeros, at).map_err(|errno| Error::system(&self.path, "write", errno))?;
            at += len as u64;
        }
        Ok(())
    }

    fn covers(&self, range: Range<u64>) -> Result<u64, Error> {
        let mut coverage = self.coverage();
        let new = coverage.covered.insert(range.clone());
        coverage.unlogged_bytes += coverage.unlogged.insert(range);
        if coverage.unlogged_bytes >= JOURNAL_EVERY {
            self.log(&mut coverage)?;
        }
        Ok(new)
    }

    /// Takes down that a range is not what the sender has.
    ///
    /// # Errors
    /// What the system says.
    pub fn discard(&self, range: Range<u64>) -> Result<(), Error> {
        self.dirty.store(true, Ordering::Release);
        let mut coverage = self.coverage();
        coverage.covered.remove(range.clone());
        coverage.unlogged.remove(range.clone());
        coverage.unlogged_bytes = coverage.unlogged.len();
        if coverage.logged {
            let record = Record::Discarded { slot: self.slot, range };
            self.inner.log(&record).map_err(|errno| self.journal_failed(errno))?;
        }
        Ok(())
    }

    /// Fills `buf` from `offset` on with what is there; what has not come reads as anything.
    ///
    /// # Errors
    /// [`Error::Outside`] past the end of the file, else what the system says.
    pub fn read_at(&self, mut buf: &mut [u8], mut offset: u64) -> Result<(), Error> {
        self.range(offset, buf.len() as u64)?;
        while !buf.is_empty() {
            match rustix::io::pread(&self.file, &mut *buf, offset) {
                // Someone cut it.
                Ok(0) => return Err(Error::system(&self.path, "read the temporary file of", Errno::IO)),
                Ok(n) => {
                    buf = buf.get_mut(n..).unwrap_or_default();
                    offset += n as u64;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(Error::system(&self.path, "read the temporary file of", errno)),
            }
        }
        Ok(())
    }

    /// What of a range holds data as far as the file system says, in order; the rest is holes.
    pub fn data(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let start = match rustix::fs::seek(&self.file, SeekFrom::Data(at)) {
                Ok(start) => start,
                Err(Errno::NXIO) => break,
                // A file system that knows no holes, or no answer: all of it may be data.
                Err(_) => at,
            };
            let end = match rustix::fs::seek(&self.file, SeekFrom::Hole(start)) {
                Ok(end) if end > start => end,
                _ => range.end,
            };
            if start < range.end {
                found.push(start..end.min(range.end));
            }
            at = end;
        }
        found
    }

    /// Gives the whole file its mode, its time and its name, once no thread is writing to it.
    ///
    /// # Errors
    /// [`Error::Incomplete`] if something is missing; what the system says. After an error it can be finished again.
    pub fn finish(&self, mode: u32, mtime: Time) -> Result<Placed, Error> {
        let failed = |errno| Error::system(&self.path, "finish", errno);
        let mut over = self.over_mut();
        if *over {
            return Err(Error::NotOpen { id: self.id });
        }
        let coverage = self.coverage();
        let missing = self.size.saturating_sub(coverage.covered.len());
        if missing > 0 {
            return Err(Error::Incomplete {
                path: self.path.clone(),
                missing,
            });
        }
        set_mode(&self.file, self.inner.mode(mode)).map_err(failed)?;
        self.inner.stamp(&self.file, &self.path, mtime)?;
        let placed = self.inner.put(self.id, &self.path, &self.temporary())?;
        *over = true;
        if coverage.logged {
            // It has its name; that the journal cannot say so costs a later run a look.
            let _ = self.inner.log(&Record::Done { slot: self.slot });
        }
        drop(coverage);
        drop(over);
        // Whoever opens it meanwhile finds it, not a new one.
        self.inner.state().pending.remove(&self.id);
        lock(&self.open).remove(&self.id);
        Ok(placed)
    }

    /// Removes it with all that came.
    pub(super) fn remove(&self) -> Result<(), Error> {
        if std::mem::replace(&mut *self.over_mut(), true) {
            return Ok(());
        }
        self.inner.forget(self.slot, &self.path)
    }

    fn temporary(&self) -> String {
        format!("{STAGED}{}", self.slot)
    }

    fn range(&self, offset: u64, bytes: u64) -> Result<Range<u64>, Error> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.size => Ok(offset..end),
            _ => Err(Error::Outside {
                path: self.path.clone(),
                offset,
                bytes,
                size: self.size,
            }),
        }
    }

    fn writing(&self) -> Result<RwLockReadGuard<'_, bool>, Error> {
        let over = self.over.read().unwrap_or_else(PoisonError::into_inner);
        if *over {
            Err(Error::NotOpen { id: self.id })
        } else {
            Ok(over)
        }
    }

    fn over_mut(&self) -> RwLockWriteGuard<'_, bool> {
        self.over.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn coverage(&self) -> MutexGuard<'_, Coverage> {
        self.coverage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the journal say what has come. Data is on its way before that; with `fsync` it has arrived.
    fn log(&self, coverage: &mut Coverage) -> Result<(), Error> {
        if self.inner.destination.options.each() {
            rustix::fs::fdatasync(&self.file).map_err(|errno| Error::system(&self.path, "write", errno))?;
        }
        if !coverage.logged {
            let (slot, path) = (self.slot, self.path.clone());
            let record = Record::File {
                slot,
                path,
                size: self.size,
                mtime: self.mtime,
            };
            self.inner.log(&record).map_err(|errno| self.journal_failed(errno))?;
            coverage.logged = true;
        }
        for range in coverage.unlogged.iter() {
            let record = Record::Covered { slot: self.slot, range };
            self.inner.log(&record).map_err(|errno| self.journal_failed(errno))?;
        }
        coverage.unlogged = Ranges::new();
        coverage.unlogged_bytes = 0;
        Ok(())
    }

    fn journal_failed(&self, errno: Errno) -> Error {
        Error::system(&self.path, "write the journal for", errno)
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        if *self.over_mut() {
            return;
        }
        let mut coverage = self.coverage();
        if coverage.covered.is_empty() {
            drop(coverage);
            let _ = self.inner.forget(self.slot, &self.path);
            return;
        }
        // If the journal cannot be written, a later run fetches again what it does not say.
        let _ = self.log(&mut coverage);
        let covered = coverage.covered.clone();
        drop(coverage);
        let partial = Partial {
            path: self.path.clone(),
            size: self.size,
            mtime: self.mtime,
            covered,
        };
        self.inner.state().keep_partial(self.slot, partial);
    }
}

/// Opens a temporary file of an earlier run, which may have given it its last mode already.
fn reopen(inner: &Folder, slot: u32, flags: OFlags) -> Option<OwnedFd> {
    let name = format!("{STAGED}{slot}");
    match rustix::fs::openat(&inner.folder, &name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            rustix::fs::chmodat(&inner.folder, &name, Mode::RUSR | Mode::WUSR, AtFlags::empty()).ok()?;
            rustix::fs::openat(&inner.folder, &name, flags, Mode::empty()).ok()
        }
        opened => opened.ok(),
    }
}
