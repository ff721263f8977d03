//! Opening below a directory handle and nowhere else.
//!
//! No symbolic link is followed, at any component, and nothing leads above the handle: `openat2` of Linux 5.6 sees to that
//! in one call. Where it is not there (older kernels, sandboxes), components are opened one by one with `O_NOFOLLOW`.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

use sealway_drop::names::{Components, join};

/// Longest path of one system call, without its end.
const SYSTEM_PATH_MAX: usize = 4095;

/// How paths are opened; one per handle, since a sandbox may differ from what the kernel offers.
#[derive(Debug, Default)]
pub struct Beneath {
    by_component: AtomicBool,
}

impl Beneath {
    /// With `by_component`, does without `openat2` from the start.
    pub fn new(by_component: bool) -> Beneath {
        Beneath {
            by_component: AtomicBool::new(by_component),
        }
    }

    /// Opens what `key` (components with their lengths, see `RelPath::key`) names below `root`.
    ///
    /// # Errors
    /// `ELOOP` or `ENOTDIR` where a component is a symbolic link, else those of `openat`.
    pub fn open(&self, root: impl AsFd, key: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if !self.by_component.load(Ordering::Relaxed) {
            let joined = join(key);
            if joined.len() <= SYSTEM_PATH_MAX {
                let path: &[u8] = if joined.is_empty() { b"." } else { &joined };
                match open_retrying(root.as_fd(), path, flags) {
                    // ENOSYS: an old kernel. EPERM: how sandboxes say so, but files do as well; the slow way tells.
                    Err(Errno::NOSYS) => self.by_component.store(true, Ordering::Relaxed),
                    // AGAIN: renames never came to rest.
                    Err(Errno::PERM | Errno::AGAIN) => {}
                    other => return other,
                }
            }
        }
        open_by_component(root.as_fd(), key, flags)
    }
}

/// `EAGAIN` means that something was renamed meanwhile and the kernel could not tell whether the path stays below.
fn open_retrying(root: std::os::fd::BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let mut result = Err(Errno::AGAIN);
    for _ in 0..32 {
        result = openat2(root, path, flags, Mode::empty(), resolve);
        if !matches!(result, Err(Errno::AGAIN | Errno::INTR)) {
            break;
        }
    }
    result
}

fn open_by_component(root: std::os::fd::BorrowedFd<'_>, key: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut components = Components::of(key).peekable();
    if components.peek().is_none() {
        return openat(root, ".", flags, Mode::empty());
    }
    let mut at: Option<OwnedFd> = None;
    while let Some(component) = components.next() {
        let dir = at.as_ref().map_or(root, |fd| fd.as_fd());
        let flags = if components.peek().is_some() { step } else { flags };
        at = Some(openat(dir, component, flags, Mode::empty())?);
    }
    at.ok_or(Errno::NOENT)
}
