//! Changes that another end makes in a served folder.
//!
//! Directories are resolved as for reading; the last name is then given to a call that does not follow links. No file gets bits
//! that make programs run as somebody else, and none that has them is changed.

use std::io::{IoSlice, IoSliceMut};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use bytes::Bytes;
use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps};
use rustix::io::{Errno, ReadWriteFlags};

use super::guard::{Homes, stays_inside};
use super::{LocalTree, Locks, attr_of, by_handle, fault};
use crate::tree::{
    Access, Attr, Change, Changed, Kind, LockKind, MAX_PATH, MAX_WHOLE, MAX_WRITE, NewTime, OpenHow, Opened, Place,
    RemoteTree, RenameHow, Setting, TreeError, TreePath,
};

/// Permissions that can be given.
const PERMISSIONS: u32 = 0o777;

/// What makes a program run as somebody else.
const SPECIAL: u32 = 0o6000;

/// As `statfs(2)` names the file system.
const TMPFS: u64 = 0x0102_1994;

/// How often a file is looked at anew that comes and goes while it is opened.
const TRIES: u32 = 8;

impl LocalTree {
    /// Does a change. Locks are taken for, and belong to, whoever has `locks`.
    ///
    /// # Errors
    /// [`TreeError::ReadOnly`] unless the folder is offered for changes, and why the system refused.
    pub fn apply(&self, change: &Change, locks: &Locks) -> Result<Changed, TreeError> {
        if !self.options.writable {
            return Err(TreeError::ReadOnly);
        }
        match change {
            Change::Open(path, how) => {
                let opened = self.open_as(path, *how)?;
                let whole = self.whole(&opened, how.whole.min(MAX_WHOLE));
                Ok(Changed::Opened(opened, self.run, whole))
            }
            Change::Look(handle) => self.look_at(&*self.opened(*handle)?).map(Changed::Attr),
            Change::LookUp(path) => {
                self.watch_parent(path);
                self.look(path).map(Changed::Attr)
            }
            Change::Close(handle) => {
                self.close(*handle);
                Ok(Changed::Done)
            }
            Change::Set(place, setting) => self.set(place, setting).map(Changed::Attr),
            Change::MakeDirectory(path, mode) => {
                let (parent, name) = self.place(path)?;
                self.room(&parent, 0)?;
                rustix::fs::mkdirat(&parent, &name, Mode::from_raw_mode(mode & PERMISSIONS)).map_err(fault_of)?;
                self.look(path).map(Changed::Attr)
            }
            Change::MakeLink(path, target) => self.make_link(path, target).map(Changed::Attr),
            Change::Remove(path) => self.remove(path, false),
            Change::RemoveDirectory(path) => self.remove(path, true),
            Change::Rename(from, to, how) => self.rename(from, to, *how),
            Change::Sync(place, content_only) => self.sync(place, *content_only),
            Change::Allocate {
                handle,
                mode,
                offset,
                len,
            } => self.allocate(*handle, *mode, *offset, *len).map(Changed::Attr),
            Change::Lock(lock) => {
                let file = self.opened(lock.handle)?;
                locks.set(&file, lock)?;
                match lock.kind {
                    LockKind::Free => Ok(Changed::Done),
                    // What was done under the lock by the last who had it is to be seen.
                    LockKind::Shared | LockKind::Exclusive => self.look_at(&*file).map(Changed::Attr),
                }
            }
            Change::TestLock(lock) => {
                let file = self.opened(lock.handle)?;
                locks.test(&file, lock).map(Changed::Conflict)
            }
        }
    }

    /// Writes to a file that was opened for it, all of it or an error.
    ///
    /// # Errors
    /// As [`LocalTree::apply`]; some of the bytes may then be there.
    pub fn put(&self, handle: u64, offset: u64, append: bool, data: &[u8]) -> Result<Attr, TreeError> {
        if !self.options.writable {
            return Err(TreeError::ReadOnly);
        }
        if data.len() > MAX_WRITE {
            return Err(TreeError::Invalid("too long a write"));
        }
        if offset
            .checked_add(data.len() as u64)
            .is_none_or(|end| i64::try_from(end).is_err())
        {
            return Err(TreeError::TooBig);
        }
        let file = self.opened(handle)?;
        self.room(&*file, data.len() as u64)?;
        let mut done = 0;
        while done < data.len() {
            let rest = &data[done..];
            let wrote = match append {
                true => rustix::io::pwritev2(&*file, &[IoSlice::new(rest)], 0, ReadWriteFlags::APPEND),
                false => rustix::io::pwrite(&*file, rest, offset + done as u64),
            };
            match wrote {
                Ok(0) => return Err(TreeError::Failed),
                Ok(wrote) => done += wrote,
                Err(Errno::INTR) => {}
                Err(error) => return Err(fault_of(error)),
            }
        }
        self.look_at(&*file)
    }

    /// What is under this handle, as it is now.
    pub(super) fn look_at(&self, file: impl AsFd) -> Result<Attr, TreeError> {
        attr_of(&rustix::fs::fstat(file).map_err(fault)?).ok_or(TreeError::Stale)
    }

    fn open_as(&self, path: &TreePath, how: OpenHow) -> Result<Opened, TreeError> {
        self.watch_parent(path);
        let writes = how.access != Access::Read || how.create.is_some() || how.truncate;
        if writes {
            self.may_change(path)?;
        }
        let flags = match how.access {
            Access::Read => OFlags::RDONLY,
            Access::Write => OFlags::WRONLY,
            Access::Both => OFlags::RDWR,
        };
        let flags = flags | OFlags::NONBLOCK | OFlags::NOCTTY;
        for _ in 0..TRIES {
            // Opening a device or a FIFO has effects, so what it is comes first. A file is made only where there is nothing.
            let file = match (self.look(path), how.create) {
                (Ok(_), Some(_)) if how.exclusive => return Err(TreeError::Exists),
                (Ok(attr), _) if attr.kind != Kind::File => return Err(TreeError::NotFile),
                (Ok(_), _) => self.resolve(path, flags),
                (Err(TreeError::NotFound), Some(mode)) => {
                    self.room(&self.root, 0)?;
                    let mode = Mode::from_raw_mode(mode & PERMISSIONS);
                    match self.resolve_or_make(path, flags | OFlags::CREATE | OFlags::EXCL, mode) {
                        Err(TreeError::Exists) if !how.exclusive => continue,
                        made => made,
                    }
                }
                (Err(error), _) => return Err(error),
            };
            let file = match file {
                // It went away meanwhile.
                Err(TreeError::NotFound) if how.create.is_some() => continue,
                file => file?,
            };
            let stat = rustix::fs::fstat(&file).map_err(fault)?;
            if attr_of(&stat).is_none_or(|attr| attr.kind != Kind::File) {
                return Err(TreeError::NotFile);
            }
            if writes {
                is_plain(&stat)?;
            }
            if how.truncate && stat.st_size != 0 {
                rustix::fs::ftruncate(&self.writable(&file, how.access)?, 0).map_err(fault_of)?;
            }
            let attr = self.look_at(&file)?;
            let handle = self.keep(file)?;
            return Ok(Opened { handle, attr });
        }
        // What is there is hidden, or it comes and goes.
        Err(TreeError::Denied)
    }

    /// All of a small file, if that is in memory: what has to come from a disk would hold up the changes behind this one.
    fn whole(&self, opened: &Opened, at_most: u32) -> Option<Bytes> {
        let len = u32::try_from(opened.attr.size)
            .ok()
            .filter(|len| (1..=at_most).contains(len))?;
        let file = self.opened(opened.handle).ok()?;
        let mut data = vec![0; len as usize];
        let in_memory = || rustix::fs::fstatfs(&*file).is_ok_and(|of| u64::try_from(of.f_type) == Ok(TMPFS));
        let mut read = |flags| rustix::io::preadv2(&*file, &mut [IoSliceMut::new(&mut data)], 0, flags);
        let read = match read(ReadWriteFlags::NOWAIT) {
            Err(Errno::OPNOTSUPP) if in_memory() => read(ReadWriteFlags::empty()),
            read => read,
        };
        (read == Ok(data.len())).then(|| data.into())
    }

    /// The same open file, for writing; another open of it if this one is for reading alone.
    fn writable(&self, file: &OwnedFd, access: Access) -> Result<OwnedFd, TreeError> {
        match access {
            Access::Read => rustix::fs::open(by_handle(file), OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()),
            Access::Write | Access::Both => rustix::io::fcntl_dupfd_cloexec(file, 0),
        }
        .map_err(fault_of)
    }

    fn set(&self, place: &Place, setting: &Setting) -> Result<Attr, TreeError> {
        let file = match place {
            Place::Handle(handle) => {
                let file = self.opened(*handle)?.try_clone().map_err(|_| TreeError::Limit)?;
                // Whoever opens a file for reading is not asked whether it may be changed.
                let reads = rustix::fs::fcntl_getfl(&file).map_err(fault)? & OFlags::RWMODE == OFlags::RDONLY;
                if reads && rustix::fs::fstat(&file).map_err(fault)?.st_nlink > 0 {
                    return Err(TreeError::Denied);
                }
                file
            }
            Place::Path(path) => {
                self.may_change(path)?;
                self.resolve(path, OFlags::PATH)?
            }
        };
        let stat = rustix::fs::fstat(&file).map_err(fault)?;
        let kind = attr_of(&stat).ok_or(TreeError::NotFound)?.kind;
        if kind == Kind::File {
            is_plain(&stat)?;
        }
        if let Some(size) = setting.size {
            if kind != Kind::File {
                return Err(TreeError::NotFile);
            }
            if i64::try_from(size).is_err() {
                return Err(TreeError::TooBig);
            }
            let writes = |error| match error {
                // Opened for reading alone.
                Errno::INVAL | Errno::BADF => TreeError::Denied,
                error => fault_of(error),
            };
            match place {
                Place::Handle(_) => rustix::fs::ftruncate(&file, size).map_err(writes)?,
                Place::Path(_) => {
                    rustix::fs::ftruncate(self.writable(&file, Access::Read)?, size).map_err(fault_of)?;
                }
            }
        }
        if let Some(mode) = setting.mode {
            if kind == Kind::Symlink {
                return Err(TreeError::Unsupported);
            }
            // Those of a directory say whose what is made in it will be, and that was its owner's decision.
            let kept = stat.st_mode & 0o7000;
            let kept = if kind == Kind::Directory { kept } else { 0 };
            let mode = Mode::from_raw_mode(mode & PERMISSIONS | kept);
            rustix::fs::chmod(by_handle(&file), mode).map_err(fault_of)?;
        }
        if setting.atime.is_some() || setting.mtime.is_some() {
            let times = Timestamps {
                last_access: timespec(setting.atime),
                last_modification: timespec(setting.mtime),
            };
            match (place, kind) {
                (Place::Path(path), Kind::Symlink) => {
                    let (parent, name) = self.place(path)?;
                    rustix::fs::utimensat(&parent, &name, &times, AtFlags::SYMLINK_NOFOLLOW)
                }
                _ => rustix::fs::utimensat(rustix::fs::CWD, by_handle(&file), &times, AtFlags::empty()),
            }
            .map_err(fault_of)?;
        }
        self.look_at(&file)
    }

    fn make_link(&self, path: &TreePath, target: &[u8]) -> Result<Attr, TreeError> {
        let (parent, name) = self.place(path)?;
        if target.is_empty() || target.len() > MAX_PATH || target.contains(&0) {
            return Err(TreeError::Invalid("a link that cannot be"));
        }
        if !stays_inside(path, target) {
            return Err(TreeError::Refused);
        }
        self.room(&parent, 0)?;
        rustix::fs::symlinkat(target, &parent, &name).map_err(fault_of)?;
        self.look(path)
    }

    fn remove(&self, path: &TreePath, directory: bool) -> Result<Changed, TreeError> {
        let (parent, name) = self.place(path)?;
        // What is hidden is not there for the peer.
        self.look(path)?;
        self.may_move(path)?;
        let flags = match directory {
            true => AtFlags::REMOVEDIR,
            false => AtFlags::empty(),
        };
        rustix::fs::unlinkat(&parent, &name, flags).map_err(fault_of)?;
        Ok(Changed::Done)
    }

    fn rename(&self, from: &TreePath, to: &TreePath, how: RenameHow) -> Result<Changed, TreeError> {
        let ((old, name), (new, new_name)) = (self.place(from)?, self.place(to)?);
        let exchange = how == RenameHow::Exchange;
        self.may_move(from)?;
        self.may_move(to)?;
        self.moves_link(from, to)?;
        self.stays_deep(from, to)?;
        match self.look(to) {
            Ok(_) if exchange => {
                self.moves_link(to, from)?;
                self.stays_deep(to, from)?;
            }
            Ok(_) => {}
            // Only what can be seen is replaced.
            Err(TreeError::NotFound) => match rustix::fs::statat(&new, &new_name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => {}
                Ok(_) => return Err(TreeError::Denied),
                Err(error) => return Err(fault_of(error)),
            },
            Err(error) => return Err(error),
        }
        let flags = match how {
            RenameHow::Replace => RenameFlags::empty(),
            RenameHow::Keep => RenameFlags::NOREPLACE,
            RenameHow::Exchange => RenameFlags::EXCHANGE,
        };
        let renamed = rustix::fs::renameat_with(&old, &name, &new, &new_name, flags);
        renamed.map_err(|error| match error {
            Errno::XDEV => TreeError::CrossDevice,
            error => fault_of(error),
        })?;
        Ok(Changed::Done)
    }

    /// A link that goes to another directory must stay inside from there too.
    fn moves_link(&self, from: &TreePath, to: &TreePath) -> Result<(), TreeError> {
        let parent = |path: &TreePath| path.split().map(|(parent, _)| parent);
        if self.look(from)?.kind != Kind::Symlink || parent(from) == parent(to) {
            return Ok(());
        }
        let link = self.resolve(from, OFlags::PATH)?;
        let target = rustix::fs::readlinkat(&link, "", Vec::new()).map_err(fault_of)?;
        match stays_inside(to, target.as_bytes()) {
            true => Ok(()),
            false => Err(TreeError::Refused),
        }
    }

    /// A directory may hold links that go up as far as they may where it stands; nearer to the top they would leave the folder. Programs
    /// that are told so copy what is in it, and each link is looked at again.
    fn stays_deep(&self, from: &TreePath, to: &TreePath) -> Result<(), TreeError> {
        let depth = |path: &TreePath| path.components().count();
        match depth(to) < depth(from) && self.look(from)?.kind == Kind::Directory {
            true => Err(TreeError::CrossDevice),
            false => Ok(()),
        }
    }

    /// Homes and what they stand in are neither moved nor removed, or what comes in their place would be no home.
    fn may_move(&self, path: &TreePath) -> Result<(), TreeError> {
        if self.options.hidden {
            return Ok(());
        }
        let found = match self.resolve(path, OFlags::PATH) {
            Err(TreeError::NotFound) => return Ok(()),
            found => rustix::fs::fstat(found?).map_err(fault)?,
        };
        match self.homes.get_or_init(Homes::of_this_machine).hold(&found) {
            true => Err(TreeError::Refused),
            false => Ok(()),
        }
    }

    fn sync(&self, place: &Place, content_only: bool) -> Result<Changed, TreeError> {
        let done = match place {
            Place::Handle(handle) => {
                let file = self.opened(*handle)?;
                match content_only {
                    true => rustix::fs::fdatasync(&*file),
                    false => rustix::fs::fsync(&*file),
                }
            }
            Place::Path(path) => rustix::fs::fsync(self.resolve(path, OFlags::RDONLY | OFlags::DIRECTORY)?),
        };
        done.map(|()| Changed::Done).map_err(fault_of)
    }

    fn allocate(&self, handle: u64, mode: u32, offset: u64, len: u64) -> Result<Attr, TreeError> {
        let known = FallocateFlags::KEEP_SIZE | FallocateFlags::PUNCH_HOLE | FallocateFlags::ZERO_RANGE;
        let flags = FallocateFlags::from_bits(mode).filter(|flags| known.contains(*flags));
        let flags = flags.ok_or(TreeError::Unsupported)?;
        if offset.checked_add(len).is_none_or(|end| i64::try_from(end).is_err()) {
            return Err(TreeError::TooBig);
        }
        let file = self.opened(handle)?;
        if !flags.contains(FallocateFlags::PUNCH_HOLE) {
            self.room(&*file, len)?;
        }
        rustix::fs::fallocate(&*file, flags, offset, len).map_err(fault_of)?;
        self.look_at(&*file)
    }

    /// The directory of a path that may be changed, and its name in there.
    fn place(&self, path: &TreePath) -> Result<(OwnedFd, PathBuf), TreeError> {
        use std::os::unix::ffi::OsStrExt;
        let (parent, name) = path.split().ok_or(TreeError::Invalid("the shared folder itself"))?;
        self.may_change(path)?;
        let name = PathBuf::from(std::ffi::OsStr::from_bytes(name));
        self.watch(&parent);
        Ok((self.resolve(&parent, OFlags::PATH | OFlags::DIRECTORY)?, name))
    }

    /// Refuses what begins with a dot right in a home directory, and what is below that.
    fn may_change(&self, path: &TreePath) -> Result<(), TreeError> {
        if self.options.hidden {
            return Ok(());
        }
        let mut directory = TreePath::root();
        for name in path.components() {
            if name.first() == Some(&b'.') {
                let parent = self.resolve(&directory, OFlags::PATH | OFlags::DIRECTORY)?;
                let stat = rustix::fs::fstat(parent).map_err(fault)?;
                if self.homes.get_or_init(Homes::of_this_machine).contain(&stat) {
                    return Err(TreeError::Refused);
                }
            }
            directory = directory.join(name)?;
        }
        Ok(())
    }

    /// Whether so much can be written and enough stays free.
    fn room(&self, at: impl AsFd, bytes: u64) -> Result<(), TreeError> {
        let of = rustix::fs::fstatvfs(at).map_err(fault)?;
        let available = of.f_bavail.saturating_mul(of.f_frsize);
        match available >= self.options.floor.saturating_add(bytes) {
            true => Ok(()),
            false => Err(TreeError::Full),
        }
    }
}

/// A file without bits that make it run as somebody else: who writes to one that has them would run as that one.
fn is_plain(stat: &Stat) -> Result<(), TreeError> {
    match stat.st_mode & SPECIAL {
        0 => Ok(()),
        _ => Err(TreeError::Refused),
    }
}

fn timespec(time: Option<NewTime>) -> Timespec {
    let (tv_sec, tv_nsec) = match time {
        None => (0, rustix::fs::UTIME_OMIT),
        Some(NewTime::Now) => (0, rustix::fs::UTIME_NOW),
        Some(NewTime::At(time)) => (time.seconds, i64::from(time.nanoseconds.min(999_999_999))),
    };
    Timespec { tv_sec, tv_nsec }
}

/// What a change failed with.
pub(super) fn fault_of(error: Errno) -> TreeError {
    match error {
        Errno::EXIST => TreeError::Exists,
        Errno::NOTEMPTY => TreeError::NotEmpty,
        Errno::NOSPC | Errno::DQUOT => TreeError::Full,
        Errno::FBIG => TreeError::TooBig,
        Errno::ROFS => TreeError::ReadOnly,
        Errno::OPNOTSUPP | Errno::NOSYS => TreeError::Unsupported,
        Errno::BADF | Errno::TXTBSY | Errno::BUSY => TreeError::Denied,
        Errno::INVAL => TreeError::Invalid("the system refused it"),
        Errno::NOLCK => TreeError::Limit,
        error => fault(error),
    }
}
