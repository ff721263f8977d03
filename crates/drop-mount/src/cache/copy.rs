//! One whole copy.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, FlockOperation, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};
use rustix::io::Errno;

use super::room;
use crate::tree::{Attr, TreePath};

/// What a copy is called and what it must be like.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Key {
    name: Box<str>,
    size: u64,
    /// Modification time of the copy, seconds since 1970. Set when it is whole; whoever writes to it later changes it.
    stamp: i64,
}

impl Key {
    pub(super) fn new(prefix: &str, namespace: &[u8; 32], path: &TreePath, attr: &Attr) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("sealway drop 2026 name of a copy");
        let numbers = [
            attr.node,
            attr.version,
            attr.size,
            attr.mtime.seconds as u64,
            u64::from(attr.mtime.nanoseconds),
        ];
        hasher.update(namespace);
        for number in numbers {
            hasher.update(&number.to_le_bytes());
        }
        // Last, so that nothing else of varying length follows.
        hasher.update(path.as_bytes());
        let hash = hasher.finalize();
        let mut low = [0; 4];
        low.copy_from_slice(&hash.as_bytes()[..4]);
        // Between 2001 and 2009, even: every file system can hold it, no clock shows it.
        let stamp = 978_307_200 + 2 * i64::from(u32::from_le_bytes(low) >> 5);
        Self {
            name: format!("{prefix}{}", hash.to_hex()).into(),
            size: attr.size,
            stamp,
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of the file.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Marks a file as whole.
    pub(super) fn stamp(&self, file: impl AsFd) -> Result<(), Errno> {
        rustix::fs::futimens(file, &times(now(), time(self.stamp, 0)))
    }
}

/// A copy in use: a shared lock keeps others from removing it.
#[derive(Debug)]
pub(crate) struct Copy {
    file: OwnedFd,
    key: Key,
}

impl Copy {
    /// `None` if there is none, or it is being removed.
    pub(super) fn open(folder: BorrowedFd<'_>, key: &Key) -> Option<Self> {
        let file = room::open(folder, &key.name).ok()?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared).ok()?;
        let key = key.clone();
        Some(Self { file, key })
    }

    /// Whether it is still as it was when it became whole.
    pub(crate) fn is_intact(&self) -> bool {
        rustix::fs::fstat(&self.file).is_ok_and(|found| self.fits(&found))
    }

    fn fits(&self, found: &Stat) -> bool {
        FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
            && found.st_uid == rustix::process::geteuid().as_raw()
            && u64::try_from(found.st_size) == Ok(self.key.size)
            && found.st_mtime == self.key.stamp
            && found.st_mode & 0o077 == 0
    }

    /// Whether it is a copy of what is called so.
    pub(crate) fn is_of(&self, key: &Key) -> bool {
        self.key == *key
    }

    /// What it is called.
    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// Fills `buffer` from `offset` on: all of it, or up to the end of the file. How many bytes that is.
    ///
    /// # Errors
    /// Those of the system, and `InvalidData` if the copy is not intact any more: what was read is not to be used then.
    pub(crate) fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let due = self.key.size.saturating_sub(offset).min(buffer.len() as u64) as usize;
        let mut have = 0;
        while have < due {
            match rustix::io::pread(&self.file, &mut buffer[have..due], offset + have as u64) {
                Ok(0) => return Err(io::ErrorKind::InvalidData.into()),
                Ok(read) => have += read,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // Afterwards: who writes changes the time first.
        if self.is_intact() {
            Ok(due)
        } else {
            Err(io::ErrorKind::InvalidData.into())
        }
    }

    /// It was used just now.
    pub(super) fn touch(&self) {
        let omit = time(0, i64::from(UTIME_OMIT as i32));
        let _ = rustix::fs::futimens(&self.file, &times(now(), omit));
    }
}

impl AsFd for Copy {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

fn now() -> Timespec {
    time(0, i64::from(UTIME_NOW as i32))
}

fn time(seconds: i64, nanoseconds: i64) -> Timespec {
    Timespec {
        tv_sec: seconds,
        tv_nsec: nanoseconds as _,
    }
}

fn times(last_access: Timespec, last_modification: Timespec) -> Timestamps {
    Timestamps {
        last_access,
        last_modification,
    }
}
