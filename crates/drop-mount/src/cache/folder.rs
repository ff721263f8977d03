//! The folder in which copies are, and the care it needs.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::CacheError;

/// The folder of copies in the one that the user named, for its owner alone.
const NAME: &str = "sealway-copies";

/// What a system call on it failed with.
pub(super) fn failed<E: Into<io::Error>>(dir: &Path, doing: &'static str) -> impl FnOnce(E) -> CacheError {
    let path = dir.to_owned();
    move |error| CacheError::Folder {
        path,
        doing,
        error: error.into(),
    }
}

/// Opens it, after making what is missing of it.
pub(super) fn open(dir: &Path) -> Result<OwnedFd, CacheError> {
    let making = "making the folder of copies";
    let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.map_err(failed(dir, making))?;
    let open = |above: BorrowedFd<'_>, name: &Path, flags: OFlags| {
        let flags = flags | OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::openat(above, name, flags, Mode::empty());
        let folder = folder.map_err(failed(dir, "opening the folder of copies"))?;
        let found = rustix::fs::fstat(&folder).map_err(failed(dir, "looking at the folder"))?;
        Ok::<_, CacheError>((folder, found))
    };
    let (above, found) = open(CWD, dir, OFlags::empty())?;
    // Where others may write, they could put a folder of theirs in place of ours, unless the sticky bit forbids it.
    if !(is_own(&found) || found.st_uid == 0) || (found.st_mode & 0o022 != 0 && found.st_mode & 0o1000 == 0) {
        return Err(CacheError::Exposed(dir.to_owned()));
    }
    match rustix::fs::mkdirat(&above, NAME, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(failed(dir, making)(error)),
    }
    let (folder, found) = open(above.as_fd(), Path::new(NAME), OFlags::NOFOLLOW)?;
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
