//! What the kernel is shown of files: attributes, and where their holes are.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{Errno, FileAttr, FileType, INodeNo};

use super::errno;
use crate::tree::{Attr, Extent, Kind, Time, TreeError};

/// Bytes of one read as programs are advised.
pub(super) const BLOCK_SIZE: u32 = 1 << 20;

/// Bytes of the blocks in which room is told.
pub(super) const FRAGMENT: u32 = 4096;

/// What the kernel asks for (`lseek(2)`).
const SEEK_DATA: i32 = 3;
const SEEK_HOLE: i32 = 4;

/// A file as the kernel is to see it.
pub(super) fn show(ino: u64, attr: &Attr, owner: (u32, u32)) -> FileAttr {
    let kind = file_type(attr.kind);
    let (mtime, ctime) = (system_time(attr.mtime), system_time(attr.ctime));
    FileAttr {
        ino: INodeNo(ino),
        size: attr.size,
        blocks: attr.allocated.div_ceil(512),
        atime: mtime,
        mtime,
        ctime,
        crtime: UNIX_EPOCH,
        kind,
        // Without the bits that would make a peer's program run as somebody else.
        perm: (attr.mode & 0o777) as u16,
        // Two names of one file have two numbers here, so none may claim to have another name.
        nlink: if attr.kind == Kind::Directory {
            attr.nlink.max(2)
        } else {
            attr.nlink.min(1)
        },
        uid: owner.0,
        gid: owner.1,
        rdev: 0,
        blksize: BLOCK_SIZE,
        flags: 0,
    }
}

/// Where data or a hole of a file of `size` bytes begins; `ask` says where they are from a place on, or `None` where all is data.
pub(super) fn seek(
    size: u64,
    (offset, whence): (i64, i32),
    ask: impl FnOnce(u64) -> Option<Result<Extent, TreeError>>,
) -> Result<i64, Errno> {
    let at = u64::try_from(offset).ok().filter(|at| *at < size);
    let at = at.ok_or(Errno::ENXIO)?;
    let extent = match ask(at) {
        Some(Ok(extent)) => extent,
        // A tree that does not know.
        None | Some(Err(TreeError::Invalid(_) | TreeError::Failed)) => Extent {
            data: Some(at),
            hole: size,
        },
        Some(Err(error)) => return Err(errno(error)),
    };
    let found = match whence {
        SEEK_DATA => extent.data.ok_or(Errno::ENXIO)?,
        SEEK_HOLE => extent.hole,
        _ => return Err(Errno::EINVAL),
    };
    i64::try_from(found).map_err(|_| Errno::EIO)
}

/// Attributes of a directory of which nothing but that is known.
pub(super) fn directory() -> Attr {
    Attr {
        kind: Kind::Directory,
        mode: 0o755,
        nlink: 2,
        ..Attr::default()
    }
}

pub(super) fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Directory => FileType::Directory,
        Kind::Symlink => FileType::Symlink,
    }
}

/// Times that the system cannot hold are shown as 1970.
fn system_time(time: Time) -> SystemTime {
    let nanoseconds = Duration::from_nanos(u64::from(time.nanoseconds));
    let whole = Duration::from_secs(time.seconds.unsigned_abs());
    let base = if time.seconds < 0 {
        UNIX_EPOCH.checked_sub(whole)
    } else {
        UNIX_EPOCH.checked_add(whole)
    };
    base.and_then(|base| base.checked_add(nanoseconds))
        .unwrap_or(UNIX_EPOCH)
}
