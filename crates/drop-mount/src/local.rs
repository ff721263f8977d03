//! A folder of this machine, served as a tree: read only, unless [`LocalOptions::writable`] says otherwise.
//!
//! Every path is resolved from the folder's own handle by `openat2(2)` and may neither leave it nor pass through a
//! symbolic link. Links are shown, never followed. Devices, FIFOs and sockets are hidden, and never opened. Whatever the
//! folder's owner moves about meanwhile, nothing outside the folder is read.

mod change;
mod guard;
mod locks;
mod own;
mod watch;

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, ResolveFlags, SeekFrom, Stat};
use rustix::io::Errno;

use crate::tree::{
    Attr, Call, Chunk, Entry, EventSink, Extent, Filled, Kind, MAX_PAGE, MAX_READ, Opened, Page, ReadDone, ReadRequest,
    RemoteTree, Space, Subscription, Time, TreeError, TreePath,
};
use crate::tree::{Change, Changed, WriteDone, WriteRequest};
use guard::Homes;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use guard::stays_inside;
pub use locks::Locks;
pub use own::Own;
use sealway_drop::lock;
use watch::Watcher;

/// Bounds of a served folder.
#[derive(Debug, Clone, Copy)]
pub struct LocalOptions {
    /// Files that may be open at once. Default 1024.
    pub handles: usize,
    /// Directories that are watched for changes. Default 4096.
    pub watches: usize,
    /// Whether it may be changed. Default no.
    pub writable: bool,
    /// Bytes of the file system that stay free whatever others write. Default 256 MiB.
    pub floor: u64,
    /// Whether names that begin with a dot right in a home directory may be changed, and what is below them. Default no.
    pub hidden: bool,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            handles: 1024,
            watches: 4096,
            writable: false,
            floor: 256 << 20,
            hidden: false,
        }
    }
}

/// A served folder.
///
/// # What is told of changes
///
/// Directories that were listed, or in which something was looked at, are watched by inotify, up to
/// [`LocalOptions::watches`]; further ones are not. Changes through a memory mapping, and those that other machines make
/// on a network file system, are not told. Whoever caches must therefore also look again after a time; what counts then
/// is [`Attr::version`], made of inode, size and times. Two changes within one tick of a coarse clock leave equal times,
/// so a version that is younger than 50 ms is followed by another one that is not, and opening such a file takes 50 ms.
///
/// Calls work on the calling thread, and reads are answered before `submit` returns.
pub struct LocalTree {
    root: OwnedFd,
    options: LocalOptions,
    handles: Mutex<HashMap<u64, Arc<OwnedFd>>>,
    next: AtomicU64,
    watcher: OnceLock<Option<Arc<Watcher>>>,
    homes: OnceLock<Homes>,
    /// Of whoever uses this tree without a connection of its own.
    locks: Locks,
    /// Another number at every start.
    run: u64,
}

/// A version is provisional while the file's last change is younger than this: coarse clocks tick every 10 ms at worst.
const SETTLED: Duration = Duration::from_millis(50);

impl LocalTree {
    /// Serves the folder at `path`, which may itself be reached through symbolic links.
    pub fn open(path: &Path, options: LocalOptions) -> std::io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self {
            root,
            options,
            handles: Mutex::default(),
            next: AtomicU64::new(1),
            watcher: OnceLock::new(),
            homes: OnceLock::new(),
            locks: Locks::default(),
            run: getrandom::u64().map_err(std::io::Error::other)?,
        })
    }

    /// Files open at present.
    pub fn open_handles(&self) -> usize {
        lock(&self.handles).len()
    }

    fn resolve(&self, path: &TreePath, flags: OFlags) -> Result<OwnedFd, TreeError> {
        self.resolve_or_make(path, flags, Mode::empty())
    }

    fn resolve_or_make(&self, path: &TreePath, flags: OFlags, mode: Mode) -> Result<OwnedFd, TreeError> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        // The kernel says "again" when something was renamed while it looked.
        for _ in 0..16 {
            match rustix::fs::openat2(&self.root, path.as_path(), flags, mode, resolve) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) if flags.contains(OFlags::CREATE) => return Err(change::fault_of(error)),
                result => return result.map_err(fault),
            }
        }
        Err(TreeError::Failed)
    }

    fn look(&self, path: &TreePath) -> Result<Attr, TreeError> {
        let found = self.resolve(path, OFlags::PATH)?;
        attr_of(&rustix::fs::fstat(&found).map_err(fault)?).ok_or(TreeError::NotFound)
    }

    fn keep(&self, file: OwnedFd) -> Result<u64, TreeError> {
        let handle = self.next.fetch_add(1, Ordering::Relaxed);
        let mut handles = lock(&self.handles);
        if handles.len() >= self.options.handles {
            return Err(TreeError::Limit);
        }
        handles.insert(handle, Arc::new(file));
        Ok(handle)
    }

    fn opened(&self, handle: u64) -> Result<Arc<OwnedFd>, TreeError> {
        lock(&self.handles).get(&handle).cloned().ok_or(TreeError::Stale)
    }

    /// Watches a directory from now on, if somebody listens and there is room.
    fn watch(&self, path: &TreePath) {
        if let Some(Some(watcher)) = self.watcher.get()
            && watcher.wants(path)
            && let Ok(directory) = self.resolve(path, OFlags::PATH | OFlags::DIRECTORY)
        {
            watcher.add(path, directory.as_fd());
        }
    }

    fn watch_parent(&self, path: &TreePath) {
        if let Some((parent, _)) = path.split() {
            self.watch(&parent);
        }
    }

    fn read_now(&self, request: &ReadRequest) -> Result<Chunk, TreeError> {
        let mut data: Vec<u8> = Vec::new();
        let filled = self.fill(request.handle, request.offset, request.len, |file, wanted, at| {
            // A vector may have got more room than it was asked for.
            data.reserve_exact(wanted);
            rustix::io::pread(file, rustix::buffer::spare_capacity(&mut data), at)
        })?;
        data.truncate(filled.len);
        let (data, size, version) = (data.into(), filled.size, filled.version);
        Ok(Chunk { data, size, version })
    }

    /// Has `pread` read so many bytes at that place of the file, or some of them, until all are there.
    fn fill(
        &self,
        handle: u64,
        offset: u64,
        len: u32,
        mut pread: impl FnMut(&OwnedFd, usize, u64) -> Result<usize, Errno>,
    ) -> Result<Filled, TreeError> {
        if len > MAX_READ {
            return Err(TreeError::Invalid("too long a read"));
        }
        let file = self.opened(handle)?;
        // Looked at before reading: bytes may be newer than the version that goes with them, not older.
        let before = rustix::fs::fstat(&file).map_err(fault)?;
        let size = u64::try_from(before.st_size).map_err(|_| TreeError::Failed)?;
        let wanted = size.saturating_sub(offset).min(u64::from(len)) as usize;
        let mut have = 0;
        while have < wanted {
            let at = offset + have as u64;
            match pread(&file, wanted - have, at) {
                Ok(0) => {
                    // The file became shorter meanwhile: say where it ends now.
                    let after = rustix::fs::fstat(&file).map_err(fault)?;
                    if u64::try_from(after.st_size).is_ok_and(|size| size > at) {
                        return Err(TreeError::Failed);
                    }
                    let (len, size, version) = (have, at, version(&after));
                    return Ok(Filled { len, size, version });
                }
                Ok(read) => have += read,
                Err(Errno::INTR) => {}
                Err(_) => return Err(TreeError::Failed),
            }
        }
        let (len, version) = (wanted, version(&before));
        Ok(Filled { len, size, version })
    }
}

impl RemoteTree for LocalTree {
    fn attr(&self, path: &TreePath, call: &Call) -> Result<Attr, TreeError> {
        call.left()?;
        self.watch_parent(path);
        self.look(path)
    }

    fn list(&self, path: &TreePath, cursor: u64, limit: usize, call: &Call) -> Result<Page, TreeError> {
        self.watch(path);
        let directory = self.resolve(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        if cursor != 0 {
            // Positions of a directory mean the same for every open of it, as NFS servers rely on.
            rustix::fs::seek(&directory, SeekFrom::Start(cursor)).map_err(|_| TreeError::Invalid("a bad position"))?;
        }
        let limit = limit.clamp(1, MAX_PAGE);
        let mut page = Page::default();
        let mut buffer = [MaybeUninit::uninit(); 32 << 10];
        let mut names = RawDir::new(&directory, &mut buffer);
        while let Some(name) = names.next() {
            let name = name.map_err(fault)?;
            let bytes = name.file_name().to_bytes();
            if bytes == b"." || bytes == b".." {
                continue;
            }
            call.left()?;
            match rustix::fs::statat(&directory, name.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => {
                    let entry = attr_of(&stat).map(|attr| Entry {
                        name: bytes.to_vec(),
                        attr,
                    });
                    page.entries.extend(entry);
                }
                // Gone since it was listed.
                Err(Errno::NOENT) => {}
                Err(error) => return Err(fault(error)),
            }
            if page.entries.len() == limit {
                page.next = Some(name.next_entry_cookie());
                break;
            }
        }
        Ok(page)
    }

    fn read_link(&self, path: &TreePath, call: &Call) -> Result<Vec<u8>, TreeError> {
        call.left()?;
        let link = self.resolve(path, OFlags::PATH)?;
        match rustix::fs::readlinkat(&link, "", Vec::new()) {
            Ok(target) => Ok(target.into_bytes()),
            Err(Errno::INVAL | Errno::NOENT) => Err(TreeError::NotLink),
            Err(error) => Err(fault(error)),
        }
    }

    fn open(&self, path: &TreePath, call: &Call) -> Result<Opened, TreeError> {
        call.left()?;
        self.watch_parent(path);
        // Opening a device or a FIFO has effects, so what it is comes first.
        if self.look(path)?.kind != Kind::File {
            return Err(TreeError::NotFile);
        }
        let file = self.resolve(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
        let stat = rustix::fs::fstat(&file).map_err(fault)?;
        let stat = if is_settled(&stat, SystemTime::now()) {
            stat
        } else {
            // What is read through this handle should not seem to change just because the clock ticks on.
            std::thread::sleep(SETTLED);
            rustix::fs::fstat(&file).map_err(fault)?
        };
        let attr = attr_of(&stat).filter(|attr| attr.kind == Kind::File);
        let attr = attr.ok_or(TreeError::NotFile)?;
        let handle = self.keep(file)?;
        Ok(Opened { handle, attr })
    }

    fn extent(&self, handle: u64, offset: u64, call: &Call) -> Result<Extent, TreeError> {
        call.left()?;
        let file = self.opened(handle)?;
        let size = rustix::fs::fstat(&file).map_err(fault)?.st_size;
        let size = u64::try_from(size).map_err(|_| TreeError::Failed)?;
        if offset >= size {
            return Ok(Extent { data: None, hole: size });
        }
        // Whoever reads by this handle says where, so its position is nobody's.
        let seek = |from| rustix::fs::seek(&file, from);
        let (data, hole) = match seek(SeekFrom::Data(offset)) {
            Ok(data) if data > offset => (Some(data), offset),
            Ok(data) => (Some(data), seek(SeekFrom::Hole(offset)).unwrap_or(size)),
            Err(Errno::NXIO) => (None, offset),
            // A file system that knows no holes.
            Err(_) => (Some(offset), size),
        };
        Ok(Extent { data, hole })
    }

    fn space(&self, call: &Call) -> Result<Space, TreeError> {
        call.left()?;
        let of = rustix::fs::fstatvfs(&self.root).map_err(fault)?;
        let bytes = |blocks: u64| blocks.saturating_mul(of.f_frsize);
        Ok(Space {
            total: bytes(of.f_blocks),
            free: bytes(of.f_bfree),
            available: bytes(of.f_bavail),
        })
    }

    fn submit(&self, request: ReadRequest, done: ReadDone) {
        done(match request.cancel.is_cancelled() {
            true => Err(TreeError::Cancelled),
            false => self.read_now(&request),
        });
    }

    fn read_into(&self, handle: u64, offset: u64, buffer: &mut [u8], call: &Call) -> Result<Filled, TreeError> {
        call.left()?;
        let len = u32::try_from(buffer.len()).map_err(|_| TreeError::Invalid("too long a read"))?;
        self.fill(handle, offset, len, |file, wanted, at| {
            let have = (at - offset) as usize;
            rustix::io::pread(file, &mut buffer[have..have + wanted], at)
        })
    }

    fn close(&self, handle: u64) {
        lock(&self.handles).remove(&handle);
    }

    fn subscribe(&self, sink: EventSink) -> Result<Subscription, TreeError> {
        let start = || Watcher::start(self.options.watches).map(Arc::new).ok();
        let watcher = self.watcher.get_or_init(start).as_ref();
        watcher.map(|watcher| watcher.subscribe(sink)).ok_or(TreeError::Limit)
    }

    fn change(&self, change: &Change, call: &Call) -> Result<Changed, TreeError> {
        call.left()?;
        self.apply(change, &self.locks)
    }

    fn write(&self, request: WriteRequest, done: WriteDone) {
        done(self.put(request.handle, request.offset, request.append, &request.data));
    }
}

fn fault(error: Errno) -> TreeError {
    match error {
        Errno::NOENT => TreeError::NotFound,
        Errno::NOTDIR => TreeError::NotDirectory,
        Errno::ISDIR => TreeError::NotFile,
        // Through a link, or out of the folder: for the peer there is nothing.
        Errno::LOOP | Errno::XDEV => TreeError::NotFound,
        Errno::ACCESS | Errno::PERM => TreeError::Denied,
        Errno::MFILE | Errno::NFILE | Errno::NOMEM => TreeError::Limit,
        Errno::STALE => TreeError::Stale,
        Errno::NAMETOOLONG => TreeError::Invalid("a name is too long"),
        _ => TreeError::Failed,
    }
}

/// The name by which the system opens once more what is open.
fn by_handle(file: impl AsFd) -> String {
    format!("/proc/self/fd/{}", file.as_fd().as_raw_fd())
}

/// `None` for what is hidden.
fn attr_of(stat: &Stat) -> Option<Attr> {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Directory => Kind::Directory,
        FileType::Symlink => Kind::Symlink,
        _ => return None,
    };
    let (mtime, ctime) = times(stat);
    Some(Attr {
        node: digest(&[stat.st_dev, stat.st_ino]),
        kind,
        size: u64::try_from(stat.st_size).ok()?,
        mode: stat.st_mode & 0o7777,
        mtime,
        ctime,
        nlink: u32::try_from(stat.st_nlink).unwrap_or(u32::MAX),
        version: version(stat),
        allocated: u64::try_from(stat.st_blocks).unwrap_or_default().saturating_mul(512),
    })
}

fn times(stat: &Stat) -> (Time, Time) {
    let time = |seconds, nanoseconds| Time { seconds, nanoseconds };
    (
        time(stat.st_mtime, stat.st_mtime_nsec as u32),
        time(stat.st_ctime, stat.st_ctime_nsec as u32),
    )
}

fn version(stat: &Stat) -> u64 {
    version_at(stat, SystemTime::now())
}

fn version_at(stat: &Stat, now: SystemTime) -> u64 {
    let (mtime, ctime) = times(stat);
    digest(&[
        stat.st_dev,
        stat.st_ino,
        stat.st_size as u64,
        mtime.seconds as u64,
        ctime.seconds as u64,
        u64::from(mtime.nanoseconds) << 32 | u64::from(ctime.nanoseconds),
        u64::from(is_settled(stat, now)),
    ])
}

/// Whether another change would show in the times.
fn is_settled(stat: &Stat, now: SystemTime) -> bool {
    let (_, ctime) = times(stat);
    let settled = || {
        let changed = Duration::new(u64::try_from(ctime.seconds).ok()?, ctime.nanoseconds);
        UNIX_EPOCH.checked_add(changed.checked_add(SETTLED)?)
    };
    settled().is_none_or(|then| now > then)
}

/// 64 bits of BLAKE3 over the numbers.
fn digest(numbers: &[u64]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for number in numbers {
        hasher.update(&number.to_le_bytes());
    }
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    u64::from_le_bytes(first)
}

#[cfg(test)]
mod tests;
