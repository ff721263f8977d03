//! The file system: requests of the kernel turned into calls on the tree.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use fuser::{
    AccessFlags, BsdFileFlags, Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyLock, ReplyLseek, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};

use super::change::{Asked, NewName};
use super::core::Core;
use super::errno;
use super::nodes::ROOT;
use super::pool::Pool;
use super::show::{BLOCK_SIZE, FRAGMENT, directory};
use super::stream::SEGMENT;
use crate::tree::{Change, TreeError};
use sealway_drop::lock;

pub(super) const GENERATION: Generation = Generation(0);

/// Longest write of the kernel.
const WRITE: u32 = 1 << 20;

/// The kernel's side of a mount.
pub(super) struct Fs {
    core: Arc<Core>,
    pool: Pool,
}

impl Fs {
    pub(super) fn new(core: Arc<Core>) -> Self {
        let pool = Pool::new(core.options.calls);
        Self { core, pool }
    }

    fn run(&self, job: impl FnOnce(&Arc<Core>) + Send + 'static) {
        let core = Arc::clone(&self.core);
        self.pool.run(move || job(&core));
    }

    fn done(&self, reply: ReplyEmpty, job: impl FnOnce(&Core) -> Result<(), TreeError> + Send + 'static) {
        self.run(move |core| match job(core) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn entry(&self, reply: ReplyEntry, job: impl FnOnce(&Core) -> Result<fuser::FileAttr, TreeError> + Send + 'static) {
        self.run(move |core| match job(core) {
            Ok(attr) => reply.entry(&core.options.ttl, &attr, GENERATION),
            Err(error) => reply.error(errno(error)),
        });
    }
}

impl Filesystem for Fs {
    fn init(&mut self, _req: &Request, config: &mut KernelConfig) -> std::io::Result<()> {
        let wanted = [
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_AUTO_INVAL_DATA,
            InitFlags::FUSE_CACHE_SYMLINKS,
            InitFlags::FUSE_ASYNC_DIO,
        ];
        // Who else writes is the owner's business, so locks and emptying go there too.
        let writing = [
            InitFlags::FUSE_ATOMIC_O_TRUNC,
            InitFlags::FUSE_POSIX_LOCKS,
            InitFlags::FUSE_FLOCK_LOCKS,
        ];
        let writable = self.core.options.writable;
        for flag in wanted.into_iter().chain(writing.into_iter().filter(|_| writable)) {
            // A kernel without it does without it.
            let _ = config.add_capabilities(flag);
        }
        if let Some(copies) = &self.core.copies {
            copies.init(config);
        }
        // Also the length of the longest read, if no option of the mount says less; readahead stays as long as the kernel offers.
        let _ = config.set_max_write(if writable { WRITE } else { SEGMENT as u32 });
        let _ = config.set_max_background(64);
        let _ = config.set_congestion_threshold(48);
        Ok(())
    }

    fn lookup(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let (thread, name) = (req.pid(), name.as_bytes().to_vec());
        self.entry(reply, move |core| core.lookup(thread, parent.0, &name));
    }

    fn forget(&self, _req: &Request, ino: INodeNo, count: u64) {
        self.core.nodes().forget(ino.0, count);
    }

    fn getattr(&self, req: &Request, ino: INodeNo, fh: Option<FileHandle>, reply: ReplyAttr) {
        let thread = req.pid();
        self.run(move |core| match core.attr(thread, ino.0, fh.map(|fh| fh.0)) {
            Ok((attr, ttl)) => reply.attr(&ttl, &attr),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn readlink(&self, req: &Request, ino: INodeNo, reply: ReplyData) {
        let thread = req.pid();
        self.run(move |core| {
            let target = core
                .path(ino.0)
                .and_then(|path| core.call(thread, |call| core.tree.read_link(&path, call)));
            match target {
                Ok(target) => reply.data(&target),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn open(&self, req: &Request, ino: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let thread = req.pid();
        if self.core.options.writable {
            return self.run(move |core| core.open_changing(thread, ino.0, flags, reply));
        }
        if flags.acc_mode() != fuser::OpenAccMode::O_RDONLY {
            return reply.error(Errno::EROFS);
        }
        self.run(move |core| core.open(thread, ino.0, reply));
    }

    fn read(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if self.core.has_ended() || !self.core.tree.is_alive() {
            return reply.error(Errno::EIO);
        }
        if self.core.writes.is_settled(ino.0) {
            return self.core.files.read(fh.0, offset, size, req.pid(), reply);
        }
        let thread = req.pid();
        self.run(move |core| match core.settle(thread, Some(ino.0)) {
            Ok(()) => core.files.read(fh.0, offset, size, thread, reply),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn release(
        &self,
        _req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        reply.ok();
        if !self.core.options.writable || self.core.is_quiet(ino.0, fh.0) {
            return self.core.release(fh.0);
        }
        // Nobody waits for this one.
        self.run(move |core| core.release_changing(ino.0, fh.0, lock_owner));
    }

    fn opendir(&self, _req: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let fh = self.core.next_dir.fetch_add(1, Ordering::Relaxed);
        lock(&self.core.dirs).insert(fh, Arc::default());
        reply.opened(FileHandle(fh), FopenFlags::empty());
    }

    fn readdir(&self, req: &Request, ino: INodeNo, fh: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let thread = req.pid();
        self.run(move |core| {
            // Numbers of entries that were not looked up are not known; the kernel asks for them by name.
            let all = core.each_entry(thread, ino.0, fh.0, offset, |ino, kind, name, _, next| {
                reply.add(INodeNo(ino.max(ROOT)), next, kind, OsStr::from_bytes(name))
            });
            match all {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn readdirplus(&self, req: &Request, ino: INodeNo, fh: FileHandle, offset: u64, mut reply: ReplyDirectoryPlus) {
        let thread = req.pid();
        self.run(move |core| {
            let ttl = core.options.ttl;
            let all = core.each_entry(thread, ino.0, fh.0, offset, |of, _, name, attr, next| {
                let name_shown = OsStr::from_bytes(name);
                let Some(attr) = attr else {
                    // "." and "..": shown without counting as a lookup, their attributes are not taken.
                    let none = core.show(of, &directory());
                    return reply.add(INodeNo(of), next, name_shown, &Duration::ZERO, &none, GENERATION);
                };
                let number = core.nodes().remember(ino.0, name, attr);
                core.saw(number, attr);
                let full = reply.add(
                    INodeNo(number),
                    next,
                    name_shown,
                    &ttl,
                    &core.show(number, attr),
                    GENERATION,
                );
                if full {
                    core.nodes().forget(number, 1);
                }
                full
            });
            match all {
                Ok(()) => reply.ok(),
                Err(error) => reply.error(errno(error)),
            }
        });
    }

    fn releasedir(&self, _req: &Request, _ino: INodeNo, fh: FileHandle, _flags: OpenFlags, reply: ReplyEmpty) {
        lock(&self.core.dirs).remove(&fh.0);
        reply.ok();
    }

    fn statfs(&self, req: &Request, _ino: INodeNo, reply: ReplyStatfs) {
        let thread = req.pid();
        self.run(move |core| {
            // Who does not know shows nothing, as file systems do that have no size.
            let space = core.call(thread, |call| core.tree.space(call)).unwrap_or_default();
            let [total, free, available] =
                [space.total, space.free, space.available].map(|bytes| bytes / u64::from(FRAGMENT));
            let name = crate::tree::MAX_NAME as u32;
            reply.statfs(total, free, available, 0, 0, BLOCK_SIZE, name, FRAGMENT);
        });
    }

    fn lseek(&self, req: &Request, ino: INodeNo, fh: FileHandle, offset: i64, whence: i32, reply: ReplyLseek) {
        let thread = req.pid();
        self.run(move |core| match core.seek(thread, (ino.0, fh.0), (offset, whence)) {
            Ok(offset) => reply.offset(offset),
            Err(error) => reply.error(error),
        });
    }

    fn access(&self, _req: &Request, _ino: INodeNo, mask: AccessFlags, reply: ReplyEmpty) {
        if mask.contains(AccessFlags::W_OK) && !self.core.options.writable {
            reply.error(Errno::EROFS)
        } else {
            reply.ok()
        }
    }

    fn create(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let (thread, at) = (req.pid(), NewName::new(parent, name));
        self.run(move |core| match core.create(thread, &at, mode, OpenFlags(flags)) {
            Ok((attr, fh, flags)) => {
                reply.created(&core.options.ttl, &attr, GENERATION, FileHandle(fh), flags);
            }
            Err(error) => reply.error(errno(error)),
        });
    }

    fn mknod(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _umask: u32,
        _rdev: u32,
        reply: ReplyEntry,
    ) {
        let (thread, at) = (req.pid(), NewName::new(parent, name));
        self.entry(reply, move |core| core.make_node(thread, &at, mode));
    }

    fn mkdir(&self, req: &Request, parent: INodeNo, name: &OsStr, mode: u32, _umask: u32, reply: ReplyEntry) {
        let (thread, at) = (req.pid(), NewName::new(parent, name));
        self.entry(reply, move |core| {
            core.make(thread, &at, |path| Change::MakeDirectory(path, mode & 0o777))
        });
    }

    fn symlink(&self, req: &Request, parent: INodeNo, name: &OsStr, target: &Path, reply: ReplyEntry) {
        let (thread, at) = (req.pid(), NewName::new(parent, name));
        let target = target.as_os_str().as_bytes().to_vec();
        self.entry(reply, move |core| {
            core.make(thread, &at, |path| Change::MakeLink(path, target))
        });
    }

    fn link(&self, _req: &Request, _ino: INodeNo, _parent: INodeNo, _name: &OsStr, reply: ReplyEntry) {
        // As file systems answer that have none.
        reply.error(Errno::EPERM);
    }

    fn unlink(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let (thread, at) = (req.pid(), NewName::new(parent, name));
        self.done(reply, move |core| core.remove(thread, &at, Change::Remove));
    }

    fn rmdir(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        let (thread, at) = (req.pid(), NewName::new(parent, name));
        self.done(reply, move |core| core.remove(thread, &at, Change::RemoveDirectory));
    }

    fn rename(
        &self,
        req: &Request,
        parent: INodeNo,
        name: &OsStr,
        newparent: INodeNo,
        newname: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let (thread, from, to) = (req.pid(), NewName::new(parent, name), NewName::new(newparent, newname));
        self.done(reply, move |core| core.rename(thread, &from, &to, flags));
    }

    fn setattr(
        &self,
        req: &Request,
        ino: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        atime: Option<TimeOrNow>,
        mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        fh: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _flags: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let thread = req.pid();
        let asked = Asked {
            owner: (uid, gid),
            size,
            mode,
            times: (atime, mtime),
        };
        self.run(move |core| match core.set(thread, (ino.0, fh.map(|fh| fh.0)), asked) {
            Ok(attr) => reply.attr(&core.options.ttl, &attr),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn write(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        data: &[u8],
        write_flags: WriteFlags,
        flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        // What the kernel writes out of mapped memory stands where it stands.
        let append = flags.0 & super::change::APPEND != 0 && !write_flags.contains(WriteFlags::FUSE_WRITE_CACHE);
        let write = self.core.take_in(ino.0, fh.0, (offset, append), data);
        if self.core.tree.is_prepared(write.handle()) {
            return self.core.write(write, reply);
        }
        let thread = req.pid();
        self.run(move |core| core.write_when_prepared(thread, write, reply));
    }

    fn flush(&self, req: &Request, ino: INodeNo, fh: FileHandle, lock_owner: LockOwner, reply: ReplyEmpty) {
        let thread = req.pid();
        if self.core.is_quiet(ino.0, fh.0) {
            return reply.ok();
        }
        self.done(reply, move |core| core.flush(thread, (ino.0, fh.0), lock_owner));
    }

    fn fsync(&self, req: &Request, ino: INodeNo, fh: FileHandle, datasync: bool, reply: ReplyEmpty) {
        let thread = req.pid();
        self.done(reply, move |core| core.sync(thread, (ino.0, fh.0), datasync));
    }

    fn fsyncdir(&self, req: &Request, ino: INodeNo, _fh: FileHandle, _datasync: bool, reply: ReplyEmpty) {
        let thread = req.pid();
        self.done(reply, move |core| core.sync_directory(thread, ino.0));
    }

    fn fallocate(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let thread = req.pid();
        self.done(reply, move |core| {
            core.allocate(thread, (ino.0, fh.0), mode, (offset, length))
        });
    }

    fn getlk(
        &self,
        req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        lock_owner: LockOwner,
        start: u64,
        end: u64,
        typ: i32,
        _pid: u32,
        reply: ReplyLock,
    ) {
        let thread = req.pid();
        self.run(
            move |core| match core.test_lock(thread, fh.0, lock_owner, (start, end, typ)) {
                Ok((start, end, kind)) => reply.locked(start, end, kind, 0),
                Err(error) => reply.error(errno(error)),
            },
        );
    }

    fn setlk(
        &self,
        req: &Request,
        ino: INodeNo,
        fh: FileHandle,
        lock_owner: LockOwner,
        start: u64,
        end: u64,
        typ: i32,
        _pid: u32,
        sleep: bool,
        reply: ReplyEmpty,
    ) {
        let thread = req.pid();
        self.run(move |core| core.lock(thread, (ino.0, fh.0), lock_owner, (start, end, typ), sleep, reply));
    }
}
