//! Open files of the mount: reads of the kernel on one side, reads of the tree on the other.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fuser::ReplyData;

use super::copies::{Copies, Source};
use super::stream::{Budget, Pieces, SEGMENT, Step, Stream};
use super::{MountOptions, errno, waiters};
use crate::cache::{Copy, Fill};
use crate::tree::{Attr, Chunk, Opened, ReadRequest, RemoteTree, TreeError};
use sealway_drop::lock;

/// Every open file of a mount.
pub(super) struct Files {
    tree: Arc<dyn RemoteTree>,
    copies: Option<Arc<Copies>>,
    open: RwLock<HashMap<u64, Arc<File>>>,
    next: AtomicU64,
    budget: Arc<Budget>,
    max_window: u64,
    timeout: Duration,
    /// Reads that no answer has been found for yet.
    waiting: Arc<AtomicUsize>,
    changed: Box<dyn Fn(u64) + Send + Sync>,
}

/// One open file.
struct File {
    ino: u64,
    handle: u64,
    attr: Mutex<Attr>,
    stream: Mutex<Stream<Reader>>,
    /// Until when the first read may be answered by what came when it was opened.
    whole: Mutex<Option<Instant>>,
    way: Way,
    /// Why a write failed that nobody has been told of yet.
    fault: Mutex<Option<TreeError>>,
}

/// How an open file is read.
enum Way {
    Peer(Option<Arc<Fill>>),
    /// From a copy, until there is doubt about it; then from the peer.
    Copy(Mutex<Option<Arc<Copy>>>),
    /// By the kernel, from a copy. What the file is like stays as it was at opening.
    Kernel,
}

/// A read of the kernel that waits.
#[derive(Debug)]
struct Reader {
    reply: ReplyData,
    /// Who reads, as far as the kernel knows.
    thread: u32,
    since: Instant,
    _count: Count,
}

#[derive(Debug)]
struct Count(Arc<AtomicUsize>);

impl Count {
    fn new(of: &Arc<AtomicUsize>) -> Self {
        of.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(of))
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Files {
    /// `changed` is told the number of a file that turned out to have another content than before. It must not block.
    pub(super) fn new(
        tree: Arc<dyn RemoteTree>,
        copies: Option<Arc<Copies>>,
        options: &MountOptions,
        changed: Box<dyn Fn(u64) + Send + Sync>,
    ) -> Arc<Self> {
        Arc::new(Self {
            tree,
            copies,
            open: RwLock::default(),
            next: AtomicU64::new(1),
            budget: Budget::new(options.memory),
            max_window: options.window,
            timeout: options.timeout,
            waiting: Arc::default(),
            changed,
        })
    }

    /// Takes over an opened file; gives the number that the kernel will use.
    pub(super) fn insert(&self, ino: u64, opened: &Opened, source: Source) -> u64 {
        let attr = opened.attr;
        let mut stream = Stream::new(attr.size, attr.version, self.max_window, Arc::clone(&self.budget));
        let mut whole = None;
        let way = match source {
            Source::Peer(fill) => Way::Peer(fill),
            Source::Whole(data, until) => {
                stream.holds(data);
                whole = Some(until);
                Way::Peer(None)
            }
            Source::Copy(copy) => Way::Copy(Mutex::new(Some(copy))),
            Source::Kernel => {
                // Never asked for anything.
                self.tree.close(opened.handle);
                Way::Kernel
            }
        };
        let fh = self.next.fetch_add(1, Ordering::Relaxed);
        let file = File {
            ino,
            handle: opened.handle,
            attr: Mutex::new(attr),
            stream: Mutex::new(stream),
            whole: Mutex::new(whole),
            way,
            fault: Mutex::default(),
        };
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        open.insert(fh, Arc::new(file));
        fh
    }

    /// What an open file was like when it was last looked at.
    pub(super) fn attr(&self, fh: u64) -> Option<Attr> {
        self.get(fh).map(|file| *lock(&file.attr))
    }

    /// The handle of an open file at the peer; `None` where it is read from a copy.
    pub(super) fn handle(&self, fh: u64) -> Option<u64> {
        let file = self.get(fh)?;
        let by_peer = matches!(file.way, Way::Peer(_));
        by_peer.then_some(file.handle)
    }

    /// As [`Files::attr`], for whichever open file has this number.
    pub(super) fn attr_of(&self, ino: u64) -> Option<Attr> {
        let open = self.open();
        let file = open.values().find(|file| file.ino == ino)?;
        Some(*lock(&file.attr))
    }

    /// The handle of whichever open file has this number.
    pub(super) fn handle_of(&self, ino: u64) -> Option<u64> {
        let open = self.open();
        open.values().find(|file| file.ino == ino).map(|file| file.handle)
    }

    /// A write failed. Whoever has the file open is told: the kernel writes mapped memory out by any of them.
    pub(super) fn failed(&self, ino: u64, error: TreeError) {
        for file in self.of(ino) {
            lock(&file.fault).get_or_insert(error);
        }
    }

    /// Why a write failed that nobody has been told of yet.
    pub(super) fn fault(&self, fh: u64) -> Option<TreeError> {
        self.get(fh).and_then(|file| *lock(&file.fault))
    }

    /// The same; from now on somebody has been told.
    pub(super) fn take_fault(&self, fh: u64) -> Result<(), TreeError> {
        let fault = self.get(fh).and_then(|file| lock(&file.fault).take());
        fault.map_or(Ok(()), Err)
    }

    /// What this end has changed is like that now.
    pub(super) fn own(self: &Arc<Self>, ino: u64, attr: &Attr) {
        for file in self.of(ino) {
            *lock(&file.attr) = *attr;
            let mut steps = Vec::new();
            lock(&file.stream).handle_changed(attr.version, attr.size, &mut steps);
            steps.retain(|step| !matches!(step, Step::Changed { .. }));
            self.act(&file, steps);
        }
    }

    /// Closes an open file; reads that still wait fail. Gives its inode.
    pub(super) fn remove(self: &Arc<Self>, fh: u64) -> Option<u64> {
        let file = self.open.write().unwrap_or_else(PoisonError::into_inner).remove(&fh)?;
        self.drive(&file, Stream::handle_closed);
        if !matches!(file.way, Way::Kernel) {
            self.tree.close(file.handle);
        }
        Some(file.ino)
    }

    /// A read of the kernel; answered now or later, on any thread.
    pub(super) fn read(self: &Arc<Self>, fh: u64, offset: u64, len: u32, thread: u32, reply: ReplyData) {
        let Some(file) = self.get(fh) else {
            return reply.error(fuser::Errno::EBADF);
        };
        let reply = match self.read_copy(&file, offset, len, reply) {
            Ok(()) => return,
            Err(reply) => reply,
        };
        let reader = Reader {
            reply,
            thread,
            since: Instant::now(),
            _count: Count::new(&self.waiting),
        };
        if lock(&file.whole).take().is_some_and(|until| until <= Instant::now()) {
            self.drive(&file, Stream::handle_doubt);
        }
        self.drive(&file, |stream, steps| stream.handle_read(offset, len, reader, steps));
    }

    /// Answers from a copy; gives `reply` back if there is none, or it is not to be trusted any more.
    fn read_copy(&self, file: &File, offset: u64, len: u32, reply: ReplyData) -> Result<(), ReplyData> {
        let Some(copy) = file.copy() else { return Err(reply) };
        BUFFER.with_borrow_mut(|buffer| {
            let len = len.min(crate::tree::MAX_READ) as usize;
            if buffer.len() < len {
                buffer.resize(len, 0);
            }
            match copy.read(offset, &mut buffer[..len]) {
                Ok(read) => {
                    reply.data(&buffer[..read]);
                    Ok(())
                }
                Err(error) => {
                    tracing::info!(%error, "a damaged copy was removed");
                    if let Some(copies) = &self.copies {
                        copies.forget(copy.key());
                    }
                    file.leave_copy();
                    Err(reply)
                }
            }
        })
    }

    /// Another look at a file has shown what it is like now.
    pub(super) fn changed(self: &Arc<Self>, ino: u64, attr: &Attr) {
        for file in self.of(ino) {
            if matches!(file.way, Way::Kernel) {
                continue;
            }
            file.leave_copy();
            *lock(&file.attr) = *attr;
            self.drive(&file, |stream, steps| {
                stream.handle_changed(attr.version, attr.size, steps)
            });
        }
    }

    /// Something may have happened to a file, or to all.
    pub(super) fn doubt(self: &Arc<Self>, ino: Option<u64>) {
        let files = match ino {
            Some(ino) => self.of(ino),
            None => self.all(),
        };
        for file in files {
            file.leave_copy();
            self.drive(&file, Stream::handle_doubt);
        }
    }

    /// Whether some read waits.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Gives up reads whose time is over or whose reader does not want them any more.
    pub(super) fn give_up(self: &Arc<Self>, all: bool) {
        let now = Instant::now();
        let why = |reader: &Reader| {
            let waited = now.saturating_duration_since(reader.since);
            if all {
                Some(TreeError::Lost)
            } else if waited >= self.timeout {
                Some(TreeError::Timeout)
            } else if waited >= waiters::PATIENCE && waiters::is_interrupted(reader.thread) {
                Some(TreeError::Cancelled)
            } else {
                None
            }
        };
        for file in self.all() {
            self.drive(&file, |stream, steps| stream.handle_given_up(why, steps));
        }
    }

    /// Runs the machine of a file and does what it says.
    fn drive(self: &Arc<Self>, file: &Arc<File>, event: impl FnOnce(&mut Stream<Reader>, &mut Vec<Step<Reader>>)) {
        let mut steps = Vec::new();
        event(&mut lock(&file.stream), &mut steps);
        self.act(file, steps);
    }

    fn act(self: &Arc<Self>, file: &Arc<File>, steps: Vec<Step<Reader>>) {
        // Answers first: fetches of some trees are answered while they are submitted.
        let mut fetches = Vec::new();
        for step in steps {
            match step {
                Step::Answer { who, pieces } => answer(who, &pieces),
                Step::Fail { who, error } => who.reply.error(errno(error)),
                Step::Cancel(token) => token.cancel(),
                Step::Changed { version, size } => {
                    let mut attr = lock(&file.attr);
                    (attr.version, attr.size) = (version, size);
                    drop(attr);
                    (self.changed)(file.ino);
                }
                Step::Fetch {
                    id,
                    offset,
                    len,
                    cancel,
                } => fetches.push((id, offset, len, cancel)),
            }
        }
        let deadline = Instant::now() + self.timeout;
        for (id, offset, len, cancel) in fetches {
            let (files, of) = (Arc::clone(self), Arc::clone(file));
            let request = ReadRequest {
                handle: file.handle,
                offset,
                len,
                deadline,
                cancel,
            };
            self.tree.submit(
                request,
                Box::new(move |result| files.fetched(&of, id, (offset, len), result)),
            );
        }
    }

    fn fetched(self: &Arc<Self>, file: &Arc<File>, id: u64, of: (u64, u32), result: Result<Chunk, TreeError>) {
        let kept = result.as_ref().ok().and_then(|chunk| file.to_keep(of, chunk));
        self.drive(file, |stream, steps| stream.handle_fetched(id, result, steps));
        // Whoever waits for these bytes has them by now.
        if let (Some(copies), Some((fill, data))) = (&self.copies, kept) {
            copies.store().put(fill, of.0, data);
        }
    }

    fn open(&self) -> RwLockReadGuard<'_, HashMap<u64, Arc<File>>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, fh: u64) -> Option<Arc<File>> {
        self.open().get(&fh).cloned()
    }

    fn of(&self, ino: u64) -> Vec<Arc<File>> {
        self.open().values().filter(|file| file.ino == ino).cloned().collect()
    }

    fn all(&self) -> Vec<Arc<File>> {
        self.open().values().cloned().collect()
    }
}

thread_local! {
    /// What a thread reads of copies, no longer than one request of the kernel.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; SEGMENT as usize]);
}

impl File {
    fn copy(&self) -> Option<Arc<Copy>> {
        match &self.way {
            Way::Copy(copy) => lock(copy).clone(),
            Way::Peer(_) | Way::Kernel => None,
        }
    }

    /// From now on the peer is asked.
    fn leave_copy(&self) {
        if let Way::Copy(copy) = &self.way {
            lock(copy).take();
        }
    }

    /// What of an answer to a read belongs into a copy.
    fn to_keep(&self, (offset, len): (u64, u32), chunk: &Chunk) -> Option<(&Arc<Fill>, Bytes)> {
        let Way::Peer(Some(fill)) = &self.way else { return None };
        let due = chunk.size.saturating_sub(offset).min(u64::from(len));
        let fits = fill.is_of(chunk.version, chunk.size) && due > 0 && chunk.data.len() as u64 == due;
        fits.then(|| (fill, chunk.data.clone()))
    }
}

fn answer(reader: Reader, pieces: &Pieces) {
    if pieces.rest.is_empty() {
        return reader.reply.data(&pieces.first);
    }
    let pieces: Vec<&[u8]> = std::iter::once(&pieces.first)
        .chain(&pieces.rest)
        .map(|piece| &piece[..])
        .collect();
    reader.reply.data(&pieces.concat());
}
