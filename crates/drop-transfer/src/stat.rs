//! What the system says of a file or a folder, and what it is told of one.

use std::os::fd::AsFd;

use rustix::fs::{AtFlags, FileType, Mode, Stat, StatxFlags, Timespec, Timestamps};
use rustix::io::Errno;

use crate::entry::Time;

/// What tells a file or a directory from every other: file system and number.
pub(crate) type Identity = (u64, u64);

pub(crate) fn identity(stat: &Stat) -> Identity {
    (stat.st_dev, stat.st_ino)
}

/// When its content changed last.
pub(crate) fn mtime(stat: &Stat) -> Time {
    Time {
        seconds: stat.st_mtime,
        nanoseconds: u32::try_from(stat.st_mtime_nsec).unwrap_or_default(),
    }
}

/// Whether it is a directory.
pub(crate) fn is_directory(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
}

/// What something is, in words.
pub(crate) fn what(stat: &Stat) -> &'static str {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => "a file",
        FileType::Directory => "a directory",
        FileType::Symlink => "a symbolic link",
        _ => "something special",
    }
}

/// The number of the mount that something is on, where the kernel tells (Linux 5.8).
pub(crate) fn mount(parent: impl AsFd, name: &[u8], flags: AtFlags) -> Option<u64> {
    let found = rustix::fs::statx(parent, name, flags, StatxFlags::MNT_ID).ok()?;
    (found.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(found.stx_mnt_id)
}

/// Sets the mode of something of ours, where the file system has such a thing.
pub(crate) fn set_mode(file: impl AsFd, mode: u32) -> Result<(), Errno> {
    match rustix::fs::fchmod(file, Mode::from_raw_mode(mode)) {
        Err(Errno::PERM | Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(()),
        other => other,
    }
}

/// Sets the time of something of ours, where the file system can store it.
pub(crate) fn set_time(file: impl AsFd, mtime: Time) -> Result<(), Errno> {
    match rustix::fs::futimens(file, &timestamps(mtime)) {
        Err(Errno::INVAL | Errno::RANGE | Errno::OVERFLOW | Errno::PERM | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(()),
        other => other,
    }
}

/// For `futimens`: this modification, the access untouched.
pub(crate) fn timestamps(mtime: Time) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: rustix::fs::UTIME_OMIT,
        },
        last_modification: Timespec {
            tv_sec: mtime.seconds,
            tv_nsec: i64::from(mtime.nanoseconds),
        },
    }
}

/// Writes all of `bytes` at `offset`.
pub(crate) fn write_all(file: impl AsFd, mut bytes: &[u8], mut offset: u64) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::pwrite(&file, bytes, offset) {
            Ok(0) => return Err(Errno::IO),
            Ok(n) => {
                bytes = bytes.get(n..).unwrap_or_default();
                offset += n as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
