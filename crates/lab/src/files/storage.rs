//! Where files stand: in memory or on a disk, and how much room is left there.

use std::path::{Path, PathBuf};

use crate::measure::parse;

/// Memory that stays free for everything else.
const RESERVE: u64 = 512 << 20;

/// File systems that live in memory, by their magic number (`statfs(2)`).
const IN_MEMORY: [i64; 2] = [0x0102_1994, 0x8584_58f6];

/// Where source and destination are.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum Storage {
    /// A file system in memory.
    Memory,
    /// A disk, with the source in the page cache.
    Disk,
}

impl Storage {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Storage::Memory => "memory",
            Storage::Disk => "disk",
        }
    }

    /// A folder of this kind with room for `bytes`, or why there is none.
    pub(super) fn folder(self, bytes: u64) -> Result<PathBuf, String> {
        let candidates = match self {
            Storage::Memory => vec![PathBuf::from("/dev/shm")],
            Storage::Disk => vec![std::env::temp_dir(), PathBuf::from("/var/tmp")],
        };
        let kind = |folder: &PathBuf| facts(folder).is_some_and(|facts| facts.in_memory == (self == Storage::Memory));
        let folder = candidates
            .into_iter()
            .find(kind)
            .ok_or_else(|| format!("there is no temporary folder in {}", self.words()))?;
        let mut free = facts(&folder).map_or(0, |facts| facts.free);
        if self == Storage::Memory {
            // A file system in memory promises more than there is.
            free = free.min(available().unwrap_or(u64::MAX).saturating_sub(RESERVE));
        }
        if free < bytes {
            return Err(format!(
                "{} MiB are free in {}, {} MiB are needed",
                free >> 20,
                folder.display(),
                bytes.div_ceil(1 << 20)
            ));
        }
        Ok(folder)
    }

    const fn words(self) -> &'static str {
        match self {
            Storage::Memory => "memory (/dev/shm)",
            Storage::Disk => "a file system on a disk",
        }
    }
}

/// What a file system says of itself.
struct Facts {
    free: u64,
    in_memory: bool,
}

// The number has other types on other machines.
#[allow(clippy::useless_conversion)]
fn facts(folder: &Path) -> Option<Facts> {
    let found = rustix::fs::statfs(folder).ok()?;
    Some(Facts {
        free: found.f_bavail.saturating_mul(u64::try_from(found.f_bsize).ok()?),
        in_memory: IN_MEMORY.contains(&i64::from(found.f_type)),
    })
}

/// Memory that programs can have without others going to swap.
fn available() -> Option<u64> {
    parse::meminfo(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemAvailable")
}

/// Writes what a file system still holds back, so that the next cell does not pay for it; the time it took.
pub(super) fn sync(folder: &Path) -> std::io::Result<std::time::Duration> {
    let folder = std::fs::File::open(folder)?;
    let from = std::time::Instant::now();
    rustix::fs::syncfs(&folder)?;
    Ok(from.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_without_room_says_so() {
        for place in [Storage::Memory, Storage::Disk] {
            match place.folder(u64::MAX) {
                Err(why) => assert!(
                    why.contains("are needed") || why.contains("no temporary folder"),
                    "{why}"
                ),
                Ok(folder) => panic!("{}", folder.display()),
            }
        }
    }
}
