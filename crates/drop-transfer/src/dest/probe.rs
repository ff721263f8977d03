//! What the destination's file system is like, found by making one file in the staging folder.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::entry::Time;
use sealway_drop::names::Folding;

/// With a letter that has two forms in Unicode, here the composed one.
const PROBE: &str = "probe-a\u{e9}";
const PROBE_UPPER: &str = "PROBE-A\u{e9}";
const PROBE_DECOMPOSED: &str = "probe-ae\u{301}";
/// For file systems that take no such letter.
const PROBE_ASCII: &str = "probe-a";
const PROBE_ASCII_UPPER: &str = "PROBE-A";
/// To see whom files belong to.
const PROBE_OWNER: &str = "probe-owner";
/// All that may be left of a probe.
pub(super) const NAMES: [&str; 3] = [PROBE, PROBE_ASCII, PROBE_OWNER];
/// `f_type` of tmpfs, from `linux/magic.h`.
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// What was found.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileSystem {
    /// Which names are one.
    pub(super) folding: Folding,
    /// Permission bits that a new file does not get because of the umask.
    pub(super) masked: u32,
    /// Whether it is in memory: it has no room to be asked for ahead, and no disk to be brought to.
    pub(super) in_memory: bool,
    /// Nanoseconds that a time may differ after it was stored.
    coarse: i128,
}

impl FileSystem {
    pub(super) fn probe(staging: BorrowedFd<'_>) -> Result<FileSystem, Errno> {
        // A file system may take only names in its own character set.
        let (name, upper, file) = match create(staging, PROBE) {
            Err(Errno::INVAL | Errno::ILSEQ | Errno::NOENT) => {
                (PROBE_ASCII, PROBE_ASCII_UPPER, create(staging, PROBE_ASCII)?)
            }
            file => (PROBE, PROBE_UPPER, file?),
        };
        let set = Time {
            seconds: 1_000_000_001,
            nanoseconds: 123_456_789,
        };
        let timed = crate::stat::set_time(&file, set).and_then(|()| rustix::fs::fstat(&file));
        let there = |name: &str| rustix::fs::statat(staging, name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
        let folding = Folding {
            case: there(upper),
            normal: name == PROBE && there(PROBE_DECOMPOSED),
        };
        rustix::fs::unlinkat(staging, name, AtFlags::empty())?;
        let found = timed?;
        let got = Time {
            seconds: found.st_mtime,
            nanoseconds: found.st_mtime_nsec as u32,
        };
        let coarse = match (nanoseconds(got) - nanoseconds(set)).abs() {
            0 => 0,
            // Whatever is cut off of a nanosecond, a microsecond, a second; FAT has even seconds.
            1..1_000 => 1_000,
            1_000..1_000_000_000 => 1_000_000_000,
            _ => 2_000_000_000,
        };
        let tmpfs = rustix::fs::fstatfs(staging.as_fd()).is_ok_and(|stat| stat.f_type == TMPFS_MAGIC);
        Ok(FileSystem {
            folding,
            masked: 0o777 & !found.st_mode,
            in_memory: tmpfs,
            coarse,
        })
    }

    /// Whether a time on disk is what this one becomes when it is stored.
    pub(super) fn same_time(&self, stored: Time, wanted: Time) -> bool {
        let apart = (nanoseconds(stored) - nanoseconds(wanted)).abs();
        apart == 0 || apart < self.coarse
    }
}

fn create(staging: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(staging, name, flags, Mode::from_raw_mode(0o777))
}

/// Whether a folder that has another owner than this process, or may be written to by others, is as private as anything can be
/// on this file system: what is made in it with a mode of 0600 shows the same owner and the same write permissions. So it is
/// where owners and modes are made up (FAT, NFS that maps root to nobody). Only the open file is looked at, which whoever can
/// write to the folder can not exchange.
pub(super) fn shows_all_as(folder: BorrowedFd<'_>, owner: u32, mode: u32) -> bool {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // One that an earlier run left.
    let _ = rustix::fs::unlinkat(folder, PROBE_OWNER, AtFlags::empty());
    let Ok(file) = rustix::fs::openat(folder, PROBE_OWNER, flags, Mode::RUSR | Mode::WUSR) else {
        return false;
    };
    let found = rustix::fs::fstat(&file);
    drop(file);
    let _ = rustix::fs::unlinkat(folder, PROBE_OWNER, AtFlags::empty());
    found.is_ok_and(|found| found.st_uid == owner && mode & 0o022 & !found.st_mode == 0)
}

fn nanoseconds(time: Time) -> i128 {
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::shows_all_as;

    #[test]
    fn a_folder_is_ours_only_if_what_we_make_in_it_shows_the_same() {
        let work = tempfile::tempdir().unwrap();
        let folder = std::fs::File::open(work.path()).unwrap();
        let own = rustix::process::geteuid().as_raw();
        // What an earlier run left is in nobody's way.
        std::fs::write(work.path().join(super::PROBE_OWNER), b"").unwrap();
        assert!(shows_all_as(folder.as_fd(), own, 0o40700));
        assert!(!shows_all_as(folder.as_fd(), own + 1, 0o40700), "of someone else");
        assert!(!shows_all_as(folder.as_fd(), own, 0o40702), "open to others");
        assert_eq!(std::fs::read_dir(work.path()).unwrap().count(), 0);
    }
}
