//! How far a transfer is, for whoever draws it.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters that the threads of a transfer add to. Read at any time; each is exact, together they may be a moment apart.
#[derive(Debug, Default)]
pub struct Progress {
    bytes: AtomicU64,
    kept: AtomicU64,
    files: AtomicU64,
    failed: AtomicU64,
    total_bytes: AtomicU64,
    total_files: AtomicU64,
}

/// What [`Progress`] stood at.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Snapshot {
    /// Bytes of content moved in this run.
    pub bytes: u64,
    /// Bytes that did not have to be moved: there already, kept of an earlier run, or holes.
    pub kept: u64,
    /// Files in place, those that were there already included.
    pub files: u64,
    /// Files that could not be sent or placed.
    pub failed: u64,
    /// Bytes of all files together.
    pub total_bytes: u64,
    /// Number of all files.
    pub total_files: u64,
}

impl Progress {
    /// Nothing done yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Where it stands.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            bytes: self.bytes.load(Ordering::Relaxed),
            kept: self.kept.load(Ordering::Relaxed),
            files: self.files.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            total_bytes: self.total_bytes.load(Ordering::Relaxed),
            total_files: self.total_files.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn expect(&self, bytes: u64, files: u64) {
        self.total_bytes.store(bytes, Ordering::Relaxed);
        self.total_files.store(files, Ordering::Relaxed);
    }

    pub(crate) fn moved(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn kept(&self, bytes: u64) {
        self.kept.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn file_done(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn file_failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }
}
