//! Open files of the mount: reads of the kernel on one side, reads of the tree on the other.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use fuser::ReplyData;

use super::stream::{Budget, Pieces, Step, Stream};
use super::{errno, waiters};
use crate::tree::{Attr, Chunk, Opened, ReadRequest, RemoteTree, TreeError};

/// Every open file of a mount.
pub(super) struct Files {
    tree: Arc<dyn RemoteTree>,
    open: RwLock<HashMap<u64, Arc<File>>>,
    next: AtomicU64,
    budget: Arc<Budget>,
    max_window: u64,
    timeout: Duration,
    /// Reads that no answer has been found for yet.
    waiting: Arc<AtomicUsize>,
    changed: Box<dyn Fn(u64, u64, u64) + Send + Sync>,
}

/// One open file.
pub(super) struct File {
    pub(super) ino: u64,
    handle: u64,
    attr: Mutex<Attr>,
    stream: Mutex<Stream<Reader>>,
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
    /// `changed` is told number, version and size of a file that turned out to have another content than before. It must
    /// not block.
    pub(super) fn new(
        tree: Arc<dyn RemoteTree>,
        memory: u64,
        max_window: u64,
        timeout: Duration,
        changed: Box<dyn Fn(u64, u64, u64) + Send + Sync>,
    ) -> Arc<Self> {
        let budget = Budget::new(memory);
        let (open, next, waiting) = (RwLock::default(), AtomicU64::new(1), Arc::default());
        Arc::new(Self {
            tree,
            open,
            next,
            budget,
            max_window,
            timeout,
            waiting,
            changed,
        })
    }

    /// Takes over an opened file; gives the number that the kernel will use.
    pub(super) fn insert(&self, ino: u64, opened: &Opened) -> u64 {
        let fh = self.next.fetch_add(1, Ordering::Relaxed);
        let attr = opened.attr;
        let stream = Stream::new(attr.size, attr.version, self.max_window, Arc::clone(&self.budget));
        let (attr, stream) = (Mutex::new(attr), Mutex::new(stream));
        let file = File {
            ino,
            handle: opened.handle,
            attr,
            stream,
        };
        self.open
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(fh, Arc::new(file));
        fh
    }

    /// What an open file was like when it was last looked at.
    pub(super) fn attr(&self, fh: u64) -> Option<Attr> {
        self.get(fh)
            .map(|file| *file.attr.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// As [`Files::attr`], for whichever open file has this number.
    pub(super) fn attr_of(&self, ino: u64) -> Option<Attr> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        let file = open.values().find(|file| file.ino == ino)?;
        Some(*file.attr.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Closes an open file; reads that still wait fail.
    pub(super) fn remove(self: &Arc<Self>, fh: u64) {
        let file = self.open.write().unwrap_or_else(PoisonError::into_inner).remove(&fh);
        if let Some(file) = file {
            self.drive(&file, Stream::handle_closed);
            self.tree.close(file.handle);
        }
    }

    /// A read of the kernel; answered now or later, on any thread.
    pub(super) fn read(self: &Arc<Self>, fh: u64, offset: u64, len: u32, thread: u32, reply: ReplyData) {
        let Some(file) = self.get(fh) else {
            return reply.error(fuser::Errno::EBADF);
        };
        let reader = Reader {
            reply,
            thread,
            since: Instant::now(),
            _count: Count::new(&self.waiting),
        };
        self.drive(&file, |stream, steps| stream.handle_read(offset, len, reader, steps));
    }

    /// Another look at a file has shown what it is like now.
    pub(super) fn changed(self: &Arc<Self>, ino: u64, attr: &Attr) {
        for file in self.of(ino) {
            *file.attr.lock().unwrap_or_else(PoisonError::into_inner) = *attr;
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
        event(
            &mut file.stream.lock().unwrap_or_else(PoisonError::into_inner),
            &mut steps,
        );
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
                    let mut attr = file.attr.lock().unwrap_or_else(PoisonError::into_inner);
                    (attr.version, attr.size) = (version, size);
                    drop(attr);
                    (self.changed)(file.ino, version, size);
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
            self.tree
                .submit(request, Box::new(move |result| files.fetched(&of, id, result)));
        }
    }

    fn fetched(self: &Arc<Self>, file: &Arc<File>, id: u64, result: Result<Chunk, TreeError>) {
        self.drive(file, |stream, steps| stream.handle_fetched(id, result, steps));
    }

    fn get(&self, fh: u64) -> Option<Arc<File>> {
        self.open
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&fh)
            .cloned()
    }

    fn of(&self, ino: u64) -> Vec<Arc<File>> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        open.values().filter(|file| file.ino == ino).cloned().collect()
    }

    fn all(&self) -> Vec<Arc<File>> {
        self.open
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .values()
            .cloned()
            .collect()
    }
}

fn answer(reader: Reader, pieces: &Pieces) {
    if pieces.rest.is_empty() {
        return reader.reply.data(&pieces.first);
    }
    let mut joined =
        Vec::with_capacity(pieces.first.len() + pieces.rest.iter().map(|piece| piece.len()).sum::<usize>());
    joined.extend_from_slice(&pieces.first);
    pieces.rest.iter().for_each(|piece| joined.extend_from_slice(piece));
    reader.reply.data(&joined);
}
