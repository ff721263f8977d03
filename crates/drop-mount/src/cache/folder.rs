//! The folder in which copies are, and the care it needs.

use std::fs::DirBuilder;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rustix::fs::{Mode, OFlags, Stat};
use rustix::io::Errno;

use super::CacheError;

/// The folder of copies in the one that the user named, for its owner alone.
const NAME: &str = "sealway-copies";

/// Opens it, after making what is missing of it.
pub(super) fn open(dir: &Path) -> Result<OwnedFd, CacheError> {
    let failed = |doing| {
        move |error: std::io::Error| CacheError::Folder {
            path: dir.to_owned(),
            doing,
            error,
        }
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(failed("making the folder of copies"))?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let look = |folder: &OwnedFd| rustix::fs::fstat(folder);
    let above = rustix::fs::open(dir, flags, Mode::empty())
        .map_err(|error| failed("opening the folder of copies")(error.into()))?;
    let found = look(&above).map_err(|error| failed("looking at the folder")(error.into()))?;
    // Where others may write, they could put a folder of theirs in place of ours, unless the sticky bit forbids it.
    if !(is_own(&found) || found.st_uid == 0) || (found.st_mode & 0o022 != 0 && found.st_mode & 0o1000 == 0) {
        return Err(CacheError::Exposed(dir.to_owned()));
    }
    match rustix::fs::mkdirat(&above, NAME, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(failed("making the folder of copies")(error.into())),
    }
    let folder = rustix::fs::openat(&above, NAME, flags | OFlags::NOFOLLOW, Mode::empty())
        .map_err(|error| failed("opening the folder of copies")(error.into()))?;
    let found = look(&folder).map_err(|error| failed("looking at the folder")(error.into()))?;
    if !is_own(&found) || found.st_mode & 0o077 != 0 {
        return Err(CacheError::Exposed(dir.join(NAME)));
    }
    Ok(folder)
}

fn is_own(found: &Stat) -> bool {
    found.st_uid == rustix::process::geteuid().as_raw()
}

/// Whether it is on a file system that stands on another one, such as overlayfs (`statfs(2)` lists the numbers).
pub(super) fn is_stacked(folder: impl AsFd) -> bool {
    const OVERLAYFS: u64 = 0x794c_7630;
    const ECRYPTFS: u64 = 0xf15f;
    rustix::fs::fstatfs(folder).is_ok_and(|found| [OVERLAYFS, ECRYPTFS].contains(&(found.f_type as u64)))
}
