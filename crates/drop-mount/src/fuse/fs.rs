//! The file system: requests of the kernel turned into calls on the tree.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fuser::{
    AccessFlags, BackingId, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyLseek, ReplyOpen, ReplyStatfs, Request,
};

use super::copies::{Copies, Source};
use super::dirs::Dir;
use super::files::Files;
use super::nodes::{Nodes, ROOT};
use super::notices::Notices;
use super::pool::Pool;
use super::show::{BLOCK_SIZE, FRAGMENT, directory, file_type, seek, show};
use super::stream::SEGMENT;
use super::waiters::Calls;
use super::{MountOptions, errno};
use crate::tree::{Attr, Call, Kind, Opened, RemoteTree, TreeError, TreePath};

const GENERATION: Generation = Generation(0);

/// What the threads of a mount share.
pub(super) struct Core {
    pub(super) tree: Arc<dyn RemoteTree>,
    pub(super) files: Arc<Files>,
    pub(super) copies: Option<Arc<Copies>>,
    pub(super) calls: Calls,
    pub(super) notices: Notices,
    nodes: Mutex<Nodes>,
    dirs: Mutex<HashMap<u64, Arc<Mutex<Dir>>>>,
    next_dir: AtomicU64,
    options: MountOptions,
    owner: (u32, u32),
    ended: AtomicBool,
}

impl Core {
    pub(super) fn new(
        tree: Arc<dyn RemoteTree>,
        files: Arc<Files>,
        copies: Option<Arc<Copies>>,
        notices: Notices,
        options: MountOptions,
    ) -> Self {
        let owner = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let (calls, nodes, dirs) = (Calls::default(), Mutex::default(), Mutex::default());
        let (next_dir, ended) = (AtomicU64::new(1), AtomicBool::new(false));
        Self {
            tree,
            files,
            copies,
            calls,
            notices,
            nodes,
            dirs,
            next_dir,
            options,
            owner,
            ended,
        }
    }

    pub(super) fn nodes(&self) -> MutexGuard<'_, Nodes> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets everything that waits fail, now and from now on.
    pub(super) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.files.give_up(true);
        self.calls.give_up(true);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// A call on the tree for a task; fails at once when there is nobody to ask.
    pub(super) fn call<T>(
        &self,
        thread: u32,
        call: impl FnOnce(&Call) -> Result<T, TreeError>,
    ) -> Result<T, TreeError> {
        if self.has_ended() || !self.tree.is_alive() {
            return Err(TreeError::Lost);
        }
        self.calls.run(thread, self.options.timeout, call)
    }

    /// Takes in what a number is like now, and lets go of what no longer fits.
    fn saw(&self, ino: u64, attr: &Attr) {
        let changed = self.nodes().update(ino, attr);
        if changed && attr.kind == Kind::File {
            self.files.changed(ino, attr);
            self.nodes().doubt(ino);
            self.notices.content(ino);
        }
    }

    fn lookup(&self, thread: u32, parent: u64, name: &[u8]) -> Result<FileAttr, TreeError> {
        let path = self.nodes().path(parent)?.join(name)?;
        let attr = self.call(thread, |call| self.tree.attr(&path, call))?;
        let ino = self.nodes().remember(parent, name, &attr);
        self.saw(ino, &attr);
        Ok(self.show(ino, &attr))
    }

    fn attr(&self, thread: u32, ino: u64, fh: Option<u64>) -> Result<FileAttr, TreeError> {
        // The kernel seldom says through which open file it asks.
        let open = fh
            .and_then(|fh| self.files.attr(fh))
            .or_else(|| self.files.attr_of(ino));
        let path = self.nodes().path(ino);
        let found = path.and_then(|path| self.call(thread, |call| self.tree.attr(&path, call)));
        match (found, open) {
            (Ok(attr), _) if self.nodes().is_same(ino, &attr) => {
                self.saw(ino, &attr);
                Ok(self.show(ino, &attr))
            }
            // The name is gone or means another file; who holds this one open still sees it.
            (Ok(_) | Err(TreeError::NotFound | TreeError::Stale), Some(attr)) => Ok(self.show(ino, &attr)),
            (Ok(_), None) => Err(TreeError::Stale),
            (Err(error), _) => Err(error),
        }
    }

    fn show(&self, ino: u64, attr: &Attr) -> FileAttr {
        show(ino, attr, self.owner)
    }

    /// Where data or a hole of an open file begins.
    fn seek(&self, thread: u32, (ino, fh): (u64, u64), place: (i64, i32)) -> Result<i64, Errno> {
        let attr = self
            .files
            .attr(fh)
            .or_else(|| self.files.attr_of(ino))
            .ok_or(Errno::EBADF)?;
        seek(attr.size, place, |at| {
            let handle = self.files.handle(fh)?;
            Some(self.call(thread, |call| self.tree.extent(handle, at, call)))
        })
    }

    fn path(&self, ino: u64) -> Result<TreePath, TreeError> {
        self.nodes().path(ino)
    }

    /// Opens a file and answers.
    fn open(&self, thread: u32, ino: u64, reply: ReplyOpen) {
        let (opened, source, backing) = match self.opened(thread, ino, &reply) {
            Ok(opened) => opened,
            Err(error) => return reply.error(errno(error)),
        };
        let mut flags = FopenFlags::FOPEN_NOFLUSH;
        if backing.is_none() && self.nodes().keep_cache(ino, opened.attr.version) {
            flags |= FopenFlags::FOPEN_KEEP_CACHE;
        }
        let fh = FileHandle(self.files.insert(ino, &opened, source));
        match backing {
            Some(backing) => reply.opened_passthrough(fh, flags, &backing),
            None => reply.opened(fh, flags),
        }
    }

    /// Opens a file at the peer and decides where it is read. What is named last is what the kernel is to read by itself.
    fn opened(
        &self,
        thread: u32,
        ino: u64,
        reply: &ReplyOpen,
    ) -> Result<(Opened, Source, Option<Arc<BackingId>>), TreeError> {
        let path = self.path(ino)?;
        let opened = self.call(thread, |call| self.tree.open(&path, call))?;
        if !self.nodes().is_same(ino, &opened.attr) {
            self.tree.close(opened.handle);
            self.nodes().retire_pinned(ino);
            return Err(TreeError::Stale);
        }
        self.saw(ino, &opened.attr);
        let Some(copies) = &self.copies else {
            return Ok((opened, Source::Peer(None), None));
        };
        let attr = &opened.attr;
        let pin = || self.nodes().pin(ino, Some(attr.version));
        match copies.open(ino, &path, attr, |copy| reply.open_backing(copy), pin) {
            Ok((source, backing)) => Ok((opened, source, backing)),
            Err(error) => {
                self.tree.close(opened.handle);
                self.nodes().retire_pinned(ino);
                Err(error)
            }
        }
    }

    /// The kernel has closed a file.
    fn release(&self, fh: u64) {
        if let Some(ino) = self.files.remove(fh)
            && let Some(copies) = &self.copies
        {
            copies.close(ino, || self.nodes().pin(ino, None));
        }
    }

    /// Gives `add` the entries from a position on, until it says that it is full.
    fn each_entry(
        &self,
        thread: u32,
        ino: u64,
        fh: u64,
        offset: u64,
        mut add: impl FnMut(u64, FileType, &[u8], Option<&Attr>, u64) -> bool,
    ) -> Result<(), TreeError> {
        let dir = self
            .dirs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&fh)
            .cloned()
            .ok_or(TreeError::Stale)?;
        let parent = self.nodes().parent(ino);
        for (position, (ino, name)) in [(ino, &b"."[..]), (parent, b"..")].into_iter().enumerate() {
            if offset <= position as u64 && add(ino, FileType::Directory, name, None, position as u64 + 1) {
                return Ok(());
            }
        }
        let path = self.path(ino)?;
        let mut dir = dir.lock().unwrap_or_else(PoisonError::into_inner);
        let mut position = offset.saturating_sub(2);
        let entries = self.call(thread, |call| dir.entries_from(&*self.tree, &path, position, call))?;
        for entry in entries {
            position += 1;
            if add(
                0,
                file_type(entry.attr.kind),
                &entry.name,
                Some(&entry.attr),
                position + 2,
            ) {
                break;
            }
        }
        Ok(())
    }
}

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

    fn run(&self, job: impl FnOnce(&Core) + Send + 'static) {
        let core = Arc::clone(&self.core);
        self.pool.run(move || job(&core));
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
        for flag in wanted {
            // A kernel without it does without it.
            let _ = config.add_capabilities(flag);
        }
        if let Some(copies) = &self.core.copies {
            copies.init(config);
        }
        // Also the length of the longest read; readahead stays as long as the kernel offers.
        let _ = config.set_max_write(SEGMENT as u32);
        let _ = config.set_max_background(64);
        let _ = config.set_congestion_threshold(48);
        Ok(())
    }

    fn lookup(&self, req: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let (thread, name) = (req.pid(), name.as_bytes().to_vec());
        self.run(move |core| match core.lookup(thread, parent.0, &name) {
            Ok(attr) => reply.entry(&core.options.ttl, &attr, GENERATION),
            Err(error) => reply.error(errno(error)),
        });
    }

    fn forget(&self, _req: &Request, ino: INodeNo, count: u64) {
        self.core.nodes().forget(ino.0, count);
    }

    fn getattr(&self, req: &Request, ino: INodeNo, fh: Option<FileHandle>, reply: ReplyAttr) {
        let thread = req.pid();
        self.run(move |core| match core.attr(thread, ino.0, fh.map(|fh| fh.0)) {
            Ok(attr) => reply.attr(&core.options.ttl, &attr),
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
        if flags.acc_mode() != fuser::OpenAccMode::O_RDONLY {
            return reply.error(Errno::EROFS);
        }
        let thread = req.pid();
        self.run(move |core| core.open(thread, ino.0, reply));
    }

    fn read(
        &self,
        req: &Request,
        _ino: INodeNo,
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
        self.core.files.read(fh.0, offset, size, req.pid(), reply);
    }

    fn release(
        &self,
        _req: &Request,
        _ino: INodeNo,
        fh: FileHandle,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        _flush: bool,
        reply: ReplyEmpty,
    ) {
        reply.ok();
        self.core.release(fh.0);
    }

    fn opendir(&self, _req: &Request, _ino: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        let fh = self.core.next_dir.fetch_add(1, Ordering::Relaxed);
        self.core
            .dirs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(fh, Arc::default());
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
        self.core
            .dirs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&fh.0);
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
        if mask.contains(AccessFlags::W_OK) {
            reply.error(Errno::EROFS)
        } else {
            reply.ok()
        }
    }
}
