//! The room that copies may take: what is in the folder, what goes, and what others have left.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, RenameFlags};
use rustix::io::Errno;

use super::pending::Pending;
use sealway_drop::lock;

const COPY: &str = "copy-";
const ONCE: &str = "once-";
const PART: &str = "part-";
const MOUNT: &str = "mount-";
/// Digits of the number of a mount.
const DIGITS: usize = 16;

/// The folder, and how full it is.
pub(super) struct Room {
    folder: OwnedFd,
    /// The number of this mount, 16 digits.
    id: String,
    /// Locked as long as this mount lives.
    _alive: OwnedFd,
    limit: u64,
    /// About how many bytes are there: other mounts are counted when the folder is looked at.
    used: AtomicU64,
    /// Bytes taken since the folder was looked at.
    since: AtomicU64,
    sweeping: Mutex<()>,
    next: AtomicU64,
    closed: AtomicBool,
    pub(super) pending: Pending,
}

/// A file in the folder that takes room.
struct Taken {
    name: String,
    bytes: u64,
    used: (i64, u64),
}

/// Whether a mount is there.
enum Found {
    Alive,
    /// With its lock, if the file of it is still there.
    Gone(Option<OwnedFd>),
}

impl Room {
    pub(super) fn new(folder: OwnedFd, limit: u64) -> io::Result<Self> {
        let (id, alive) = settle_in(&folder)?;
        Ok(Self {
            folder,
            id,
            _alive: alive,
            limit,
            used: AtomicU64::new(0),
            since: AtomicU64::new(0),
            sweeping: Mutex::default(),
            next: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            pending: Pending::default(),
        })
    }

    pub(super) fn folder(&self) -> BorrowedFd<'_> {
        self.folder.as_fd()
    }

    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// About how many bytes are there.
    #[cfg(test)]
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// A new file for what is not whole yet.
    pub(super) fn stage(&self) -> Result<(OwnedFd, String), Errno> {
        let name = format!("{PART}{}-{}", self.id, self.next.fetch_add(1, Ordering::Relaxed));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.folder, &name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok((file, name))
    }

    /// Brings one file to the disk.
    pub(super) fn flush(&self, name: &str) -> Result<(), Errno> {
        rustix::fs::fsync(self.open(name)?)
    }

    /// Brings all files to the disk.
    pub(super) fn flush_all(&self) -> Result<(), Errno> {
        rustix::fs::syncfs(&self.folder)
    }

    /// Gives a file that is whole and on the disk its name. What has it already is the same.
    pub(super) fn name(&self, temporary: &str, name: &str) -> Result<(), Errno> {
        if self.is_closed() && name.starts_with(ONCE) {
            return Err(Errno::CANCELED);
        }
        match rustix::fs::renameat_with(&self.folder, temporary, &self.folder, name, RenameFlags::NOREPLACE) {
            // Not every file system can do that; then one replaces the other.
            Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::renameat(&self.folder, temporary, &self.folder, name),
            done => done,
        }
    }

    /// Takes room for so many bytes, by removing others if need be; `false` if there is none.
    pub(super) fn take(&self, bytes: u64) -> bool {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let since = self.since.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        // Other mounts fill the folder too: it is looked at again before this one has added much.
        if used > self.limit || since > self.limit / 16 {
            self.sweep(bytes);
        }
        self.used.load(Ordering::Relaxed) <= self.limit
    }

    pub(super) fn give_back(&self, bytes: u64) {
        let less = |used: u64| Some(used.saturating_sub(bytes));
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Removes a file that counts.
    pub(super) fn remove(&self, name: &str) -> Result<(), Errno> {
        let found = rustix::fs::statat(&self.folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        self.unlink(name)?;
        self.give_back(u64::try_from(found.st_size).unwrap_or(0));
        Ok(())
    }

    pub(super) fn unlink(&self, name: &str) -> Result<(), Errno> {
        rustix::fs::unlinkat(&self.folder, name, AtFlags::empty())
    }

    /// Counts what is there, and removes copies, the least recently used first, if that and `coming` are more than may be.
    /// Copies that are in use stay.
    pub(super) fn sweep(&self, coming: u64) {
        let _one = lock(&self.sweeping);
        let Ok(mut taken) = self.taken() else { return };
        let mut total = taken.iter().fold(coming, |sum, file| sum.saturating_add(file.bytes));
        if total > self.limit {
            // Some more than needed, or the next block would bring us here again.
            let goal = self.limit - self.limit / 8;
            taken.sort_by_key(|file| file.used);
            for file in taken.iter().filter(|file| !file.name.starts_with(PART)) {
                if total <= goal {
                    break;
                }
                if self.is_unused(&file.name) && self.unlink(&file.name).is_ok() {
                    total = total.saturating_sub(file.bytes);
                }
            }
        }
        self.used.store(total, Ordering::Relaxed);
        self.since.store(0, Ordering::Relaxed);
    }

    /// Files that take room.
    fn taken(&self) -> Result<Vec<Taken>, Errno> {
        let mut taken = Vec::new();
        for name in self.names()? {
            if !is_ours(&name) || name.starts_with(MOUNT) {
                continue;
            }
            let Ok(found) = rustix::fs::statat(&self.folder, &*name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let size = u64::try_from(found.st_size).unwrap_or(0);
            let blocks = u64::try_from(found.st_blocks).unwrap_or(0).saturating_mul(512);
            taken.push(Taken {
                // What is not whole has holes.
                bytes: if name.starts_with(PART) { blocks.min(size) } else { size },
                used: (found.st_atime, found.st_atime_nsec),
                name,
            });
        }
        Ok(taken)
    }

    /// Whether nobody, in any mount, has it open. Something else than a file may go as well.
    fn is_unused(&self, name: &str) -> bool {
        match self.open(name) {
            Ok(file) => rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok(),
            Err(error) => error == Errno::LOOP,
        }
    }

    /// Removes what mounts have left that are gone.
    pub(super) fn clean(&self) -> io::Result<()> {
        let mut mounts = HashMap::from([(self.id.clone(), Found::Alive)]);
        for name in self.names()? {
            let Some(id) = mount_of(&name).filter(|_| is_ours(&name)) else {
                continue;
            };
            let found = mounts.entry(id.to_owned()).or_insert_with(|| self.look_for(id));
            if matches!(found, Found::Gone(_)) && !name.starts_with(MOUNT) {
                let _ = self.unlink(&name);
            }
        }
        // Their locks go last: a cleaning that is broken off finds them again. Each is still held here, so that nobody
        // settles on a file that goes.
        for (id, found) in mounts {
            if let Found::Gone(Some(held)) = found {
                let _ = self.unlink(&format!("{MOUNT}{id}"));
                drop(held);
            }
        }
        Ok(())
    }

    fn look_for(&self, id: &str) -> Found {
        match self.open(&format!("{MOUNT}{id}")) {
            Ok(file) => match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => Found::Gone(Some(file)),
                Err(_) => Found::Alive,
            },
            Err(Errno::NOENT) => Found::Gone(None),
            Err(_) => Found::Alive,
        }
    }

    /// The end of this mount: what only it could use goes.
    pub(super) fn close(&self) {
        if self.closed.swap(true, Ordering::SeqCst) {
            return;
        }
        let names = self.names().unwrap_or_default();
        let own = |name: &&String| is_ours(name) && mount_of(name) == Some(&self.id) && !name.starts_with(MOUNT);
        for name in names.iter().filter(own) {
            let _ = self.unlink(name);
        }
        let _ = self.unlink(&format!("{MOUNT}{}", self.id));
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// The file that stands for this mount, opened once more.
    pub(super) fn sample(&self) -> io::Result<OwnedFd> {
        Ok(self.open(&format!("{MOUNT}{}", self.id))?)
    }

    fn open(&self, name: &str) -> Result<OwnedFd, Errno> {
        open(&self.folder, name)
    }

    fn names(&self) -> Result<Vec<String>, Errno> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&self.folder)? {
            let entry = entry?;
            if !matches!(entry.file_type(), FileType::Directory)
                && let Ok(name) = entry.file_name().to_str()
            {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }
}

/// A link that somebody has put there is not followed, a FIFO not waited for.
pub(super) fn open(folder: impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty())
}

/// Draws a number for a mount and locks its file.
fn settle_in(folder: &OwnedFd) -> io::Result<(String, OwnedFd)> {
    for _ in 0..16 {
        let number = getrandom::u64().map_err(|_| io::Error::from(io::ErrorKind::Other))?;
        let id = format!("{number:016x}");
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(folder, format!("{MOUNT}{id}"), flags, Mode::RUSR | Mode::WUSR)?;
        // Somebody who cleans up may have found it unlocked, and removed it.
        let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if locked && rustix::fs::fstat(&file)?.st_nlink > 0 {
            return Ok((id, file));
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Whether a name is of a form that only we make: nothing else is ever touched.
fn is_ours(name: &str) -> bool {
    let hex = |text: &str, digits: usize| {
        text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    if let Some(hash) = name.strip_prefix(COPY) {
        return hex(hash, 64);
    }
    if let Some(id) = name.strip_prefix(MOUNT) {
        return hex(id, DIGITS);
    }
    let rest = name.strip_prefix(ONCE).or_else(|| name.strip_prefix(PART));
    let Some((id, rest)) = rest.and_then(|rest| rest.split_once('-')) else {
        return false;
    };
    let number = !rest.is_empty() && rest.len() <= 20 && rest.bytes().all(|byte| byte.is_ascii_digit());
    hex(id, DIGITS) && if name.starts_with(ONCE) { hex(rest, 64) } else { number }
}

/// The mount that a file belongs to; copies that last belong to none.
fn mount_of(name: &str) -> Option<&str> {
    let rest = [ONCE, PART, MOUNT]
        .iter()
        .find_map(|prefix| name.strip_prefix(prefix))?;
    rest.get(..DIGITS)
}
