//! What the threads of a mount share, and what they find out for the kernel.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};

use fuser::{BackingId, Errno, FileAttr, FileHandle, FileType, FopenFlags, INodeNo, Notifier, ReplyOpen};

use super::copies::{Copies, Source};
use super::dirs::Dir;
use super::files::Files;
use super::nodes::Nodes;
use super::notices::Notices;
use super::retry::Retry;
use super::show::{file_type, seek, show};
use super::waiters::Calls;
use super::writes::Writes;
use super::{MountOptions, errno};
use crate::bulk::pool::Pool as Buffers;
use crate::tree::{Attr, Call, Kind, Opened, RemoteTree, TreeError, TreePath};
use sealway_drop::lock;

/// What the threads of a mount share.
pub(super) struct Core {
    pub(super) tree: Arc<dyn RemoteTree>,
    pub(super) files: Arc<Files>,
    pub(super) copies: Option<Arc<Copies>>,
    pub(super) calls: Calls,
    pub(super) notices: Notices,
    /// Set when there is a session.
    pub(super) notifier: OnceLock<Notifier>,
    nodes: Mutex<Nodes>,
    pub(super) dirs: Mutex<HashMap<u64, Arc<Mutex<Dir>>>>,
    pub(super) next_dir: AtomicU64,
    pub(super) options: MountOptions,
    pub(super) owner: (u32, u32),
    ended: AtomicBool,
    pub(super) writes: Writes,
    /// Who holds locks, by number and owner, and by which open file.
    pub(super) locks: Mutex<HashMap<(u64, u64), u64>>,
    pub(super) waiting_locks: Arc<Retry>,
    /// Memory of what programs write.
    pub(super) buffers: Arc<Buffers>,
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
        Self {
            tree,
            files,
            copies,
            calls: Calls::default(),
            notices,
            notifier: OnceLock::new(),
            nodes: Mutex::default(),
            dirs: Mutex::default(),
            next_dir: AtomicU64::new(1),
            writes: Writes::new(options.write_window),
            options,
            owner,
            ended: AtomicBool::new(false),
            locks: Mutex::default(),
            waiting_locks: Arc::default(),
            buffers: Arc::default(),
        }
    }

    pub(super) fn nodes(&self) -> MutexGuard<'_, Nodes> {
        lock(&self.nodes)
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
        self.is_there()?;
        self.calls.run(thread, self.options.timeout, call)
    }

    /// [`TreeError::Lost`] when there is nobody to ask any more.
    pub(super) fn is_there(&self) -> Result<(), TreeError> {
        match !self.has_ended() && self.tree.is_alive() {
            true => Ok(()),
            false => Err(TreeError::Lost),
        }
    }

    /// Takes in what a number is like now, and lets go of what no longer fits.
    pub(super) fn saw(&self, ino: u64, attr: &Attr) {
        if self.learnt(ino, attr) {
            self.notices.content(ino);
        }
    }

    /// The same without a word to the kernel. Whether it is to let go of the content.
    pub(super) fn learnt(&self, ino: u64, attr: &Attr) -> bool {
        let changed = self.nodes().update(ino, attr) && attr.kind == Kind::File;
        if changed {
            self.files.changed(ino, attr);
            self.nodes().doubt(ino);
        }
        changed
    }

    pub(super) fn lookup(&self, thread: u32, parent: u64, name: &[u8]) -> Result<FileAttr, TreeError> {
        let path = self.nodes().path(parent)?.join(name)?;
        if let Some(child) = self.child(parent, name) {
            self.settle(thread, Some(child))?;
        }
        let attr = self.call(thread, |call| self.tree.attr(&path, call))?;
        let ino = self.nodes().remember(parent, name, &attr);
        self.saw(ino, &attr);
        Ok(self.show(ino, &attr))
    }

    /// What a number is like, and how long the kernel may keep that.
    pub(super) fn attr(&self, thread: u32, ino: u64, fh: Option<u64>) -> Result<(FileAttr, Duration), TreeError> {
        self.settle(thread, Some(ino))?;
        let (now, ttl) = (Instant::now(), self.options.ttl);
        if let Some((attr, until)) = self.nodes().take_fresh(ino, now) {
            return Ok((self.show(ino, &attr), until - now));
        }
        // The kernel seldom says through which open file it asks.
        let open = fh
            .and_then(|fh| self.files.attr(fh))
            .or_else(|| self.files.attr_of(ino));
        let path = self.nodes().path(ino);
        let found = path.and_then(|path| self.call(thread, |call| self.tree.attr(&path, call)));
        match (found, open) {
            (Ok(attr), _) if self.nodes().is_same(ino, &attr) => {
                self.saw(ino, &attr);
                Ok((self.show(ino, &attr), ttl))
            }
            // The name is gone or means another file; who holds this one open still sees it.
            (Ok(_) | Err(TreeError::NotFound | TreeError::Stale), Some(attr)) => {
                let attr = self.look_at_open(thread, ino).unwrap_or(attr);
                Ok((self.show(ino, &attr), ttl))
            }
            (Ok(_), None) => Err(TreeError::Stale),
            (Err(error), _) => Err(error),
        }
    }

    pub(super) fn show(&self, ino: u64, attr: &Attr) -> FileAttr {
        show(ino, attr, self.owner)
    }

    /// Where data or a hole of an open file begins.
    pub(super) fn seek(&self, thread: u32, (ino, fh): (u64, u64), place: (i64, i32)) -> Result<i64, Errno> {
        self.settle(thread, Some(ino)).map_err(errno)?;
        let attr = self
            .look_at_open(thread, ino)
            .or_else(|| self.files.attr(fh))
            .or_else(|| self.files.attr_of(ino))
            .ok_or(Errno::EBADF)?;
        seek(attr.size, place, |at| {
            let handle = self.files.handle(fh)?;
            Some(self.call(thread, |call| self.tree.extent(handle, at, call)))
        })
    }

    pub(super) fn path(&self, ino: u64) -> Result<TreePath, TreeError> {
        self.nodes().path(ino)
    }

    /// Opens a file and answers.
    pub(super) fn open(&self, thread: u32, ino: u64, reply: ReplyOpen) {
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
        if self.nodes().differs(ino, &opened.attr)
            && let Some(notifier) = self.notifier.get()
        {
            // The kernel would read as much as it knows the file to have. This lets go of attributes alone, so it waits for no
            // page; the notice about the content may come after the answer.
            let _ = notifier.inval_inode(INodeNo(ino), -1, 0);
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
    pub(super) fn release(&self, fh: u64) {
        if let Some(ino) = self.files.remove(fh)
            && let Some(copies) = &self.copies
        {
            copies.close(ino, || self.nodes().pin(ino, None));
        }
    }

    /// Gives `add` the entries from a position on, until it says that it is full.
    pub(super) fn each_entry(
        &self,
        thread: u32,
        ino: u64,
        fh: u64,
        offset: u64,
        mut add: impl FnMut(u64, FileType, &[u8], Option<&Attr>, u64) -> bool,
    ) -> Result<(), TreeError> {
        let dir = lock(&self.dirs).get(&fh).cloned().ok_or(TreeError::Stale)?;
        let parent = self.nodes().parent(ino);
        for (position, (ino, name)) in [(ino, &b"."[..]), (parent, b"..")].into_iter().enumerate() {
            if offset <= position as u64 && add(ino, FileType::Directory, name, None, position as u64 + 1) {
                return Ok(());
            }
        }
        let path = self.path(ino)?;
        self.settle(thread, None)?;
        let mut dir = lock(&dir);
        let mut position = offset.saturating_sub(2);
        let entries = self.call(thread, |call| dir.entries_from(&*self.tree, &path, position, call))?;
        for entry in entries {
            position += 1;
            let kind = file_type(entry.attr.kind);
            if add(0, kind, &entry.name, Some(&entry.attr), position + 2) {
                break;
            }
        }
        Ok(())
    }
}
