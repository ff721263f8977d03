//! A copy that is being made.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex};

use rustix::io::Errno;

use super::copy::Key;
use super::room::Room;
use sealway_drop::lock;
use sealway_drop::ranges::Ranges;

/// Separate pieces of a file; one that is read in more pieces at random places is not kept.
const MOST_RANGES: usize = 4096;

/// A file that is whole and has its temporary name.
pub(super) struct Settling {
    pub(super) temporary: String,
    pub(super) name: String,
    pub(super) size: u64,
}

/// Takes the bytes of one version of a file, in any order, until all are there. Dropped before that, it leaves nothing.
pub(crate) struct Fill {
    room: Arc<Room>,
    key: Key,
    version: u64,
    settling: SyncSender<Settling>,
    over: AtomicBool,
    staged: Mutex<Option<Staged>>,
}

struct Staged {
    file: OwnedFd,
    name: String,
    there: Ranges,
    /// Bytes that are counted as taken of the room.
    taken: u64,
}

impl Fill {
    pub(super) fn new(room: &Arc<Room>, key: Key, version: u64, settling: SyncSender<Settling>) -> Self {
        Self {
            room: Arc::clone(room),
            key,
            version,
            settling,
            over: AtomicBool::new(false),
            staged: Mutex::default(),
        }
    }

    /// Whether bytes of a file of such a version and size belong here.
    pub(crate) fn is_of(&self, version: u64, size: u64) -> bool {
        version == self.version && size == self.key.size()
    }

    /// Whether more bytes are of any use.
    pub(super) fn wants(&self) -> bool {
        !self.over.load(Ordering::Relaxed)
    }

    /// Bytes of the file from `offset` on.
    pub(super) fn write(&self, offset: u64, data: &[u8]) {
        let mut staged = lock(&self.staged);
        if !self.wants() {
            return;
        }
        let done = match self.add(&mut staged, offset, data) {
            Ok(done) => done,
            Err(error) => {
                tracing::debug!(%error, "a file is not kept");
                self.over.store(true, Ordering::Relaxed);
                self.abandon(staged.take());
                return;
            }
        };
        if done && let Some(whole) = staged.take() {
            self.over.store(true, Ordering::Relaxed);
            self.complete(whole);
        }
    }

    /// Writes, and says whether the file is whole.
    fn add(&self, slot: &mut Option<Staged>, offset: u64, data: &[u8]) -> Result<bool, Errno> {
        let size = self.key.size();
        let end = offset.checked_add(data.len() as u64).filter(|end| *end <= size);
        let end = end.ok_or(Errno::INVAL)?;
        if self.room.is_closed() {
            return Err(Errno::CANCELED);
        }
        let staged = match slot {
            Some(staged) => staged,
            None => {
                let (file, name) = self.room.stage()?;
                slot.insert(Staged {
                    file,
                    name,
                    there: Ranges::new(),
                    taken: 0,
                })
            }
        };
        if staged.there.covers(offset..end) {
            return Ok(false);
        }
        let mut there = staged.there.clone();
        let fresh = there.insert(offset..end);
        if there.iter().count() > MOST_RANGES {
            return Err(Errno::FBIG);
        }
        // Counted before anything is written, so that there is never more than may be.
        staged.taken += fresh;
        if !self.room.take(fresh) {
            return Err(Errno::NOSPC);
        }
        write_all(&staged.file, data, offset)?;
        staged.there = there;
        Ok(staged.there.covers(0..size))
    }

    fn complete(&self, whole: Staged) {
        let stamped = self.key.stamp(&whole.file);
        let settling = Settling {
            temporary: whole.name.clone(),
            name: self.key.name().into(),
            size: whole.taken,
        };
        self.room.pending.begin();
        if stamped.is_err() || self.settling.try_send(settling).is_err() {
            self.abandon(Some(whole));
            self.room.pending.end();
        }
    }

    fn abandon(&self, staged: Option<Staged>) {
        if let Some(staged) = staged {
            let _ = self.room.unlink(&staged.name);
            self.room.give_back(staged.taken);
        }
    }
}

impl Drop for Fill {
    fn drop(&mut self) {
        let staged = lock(&self.staged).take();
        self.abandon(staged);
    }
}

fn write_all(file: &OwnedFd, mut data: &[u8], mut offset: u64) -> Result<(), Errno> {
    while !data.is_empty() {
        match rustix::io::pwrite(file, data, offset) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => {
                data = data.get(written..).unwrap_or_default();
                offset += written as u64;
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
