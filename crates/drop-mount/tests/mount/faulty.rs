//! A tree that misbehaves on demand.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sealway_drop_mount::forward;
use sealway_drop_mount::tree::{
    Attr, Call, EventSink, Opened, Page, ReadDone, ReadRequest, RemoteTree, Subscription, TreeError, TreePath,
};

pub(crate) struct Faulty<T> {
    pub(crate) inner: T,
    pub(crate) fail_reads: AtomicBool,
    pub(crate) short_reads: AtomicBool,
    pub(crate) hold_reads: AtomicBool,
    pub(crate) hold_calls: AtomicBool,
    pub(crate) dead: AtomicBool,
    /// Reads that came here.
    pub(crate) reads: AtomicU64,
    held: Mutex<Vec<(ReadRequest, ReadDone)>>,
}

impl<T: RemoteTree> Faulty<T> {
    pub(crate) fn new(inner: T) -> Arc<Self> {
        let no = AtomicBool::default;
        let held = Mutex::default();
        let (fail_reads, short_reads, hold_reads, hold_calls, dead) = (no(), no(), no(), no(), no());
        Arc::new(Self {
            inner,
            fail_reads,
            short_reads,
            hold_reads,
            hold_calls,
            dead,
            reads: AtomicU64::new(0),
            held,
        })
    }

    /// Reads that wait.
    pub(crate) fn held(&self) -> usize {
        self.held.lock().unwrap().len()
    }

    /// Reads that wait although nobody wants them.
    pub(crate) fn cancelled(&self) -> usize {
        self.held
            .lock()
            .unwrap()
            .iter()
            .filter(|(request, _)| request.cancel.is_cancelled())
            .count()
    }

    /// Answers the reads that wait.
    pub(crate) fn release(&self) {
        self.hold_reads.store(false, Ordering::SeqCst);
        for (request, done) in std::mem::take(&mut *self.held.lock().unwrap()) {
            self.inner.submit(request, done);
        }
    }

    fn ready(&self, call: &Call) -> Result<(), TreeError> {
        while self.hold_calls.load(Ordering::SeqCst) {
            call.left()?;
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }
}

impl<T: RemoteTree> RemoteTree for Faulty<T> {
    fn attr(&self, path: &TreePath, call: &Call) -> Result<Attr, TreeError> {
        self.ready(call)?;
        self.inner.attr(path, call)
    }

    fn list(&self, path: &TreePath, cursor: u64, limit: usize, call: &Call) -> Result<Page, TreeError> {
        self.ready(call)?;
        self.inner.list(path, cursor, limit, call)
    }

    fn read_link(&self, path: &TreePath, call: &Call) -> Result<Vec<u8>, TreeError> {
        self.ready(call)?;
        self.inner.read_link(path, call)
    }

    fn open(&self, path: &TreePath, call: &Call) -> Result<Opened, TreeError> {
        self.ready(call)?;
        self.inner.open(path, call)
    }

    fn submit(&self, request: ReadRequest, done: ReadDone) {
        self.reads.fetch_add(1, Ordering::SeqCst);
        if self.fail_reads.load(Ordering::SeqCst) {
            return done(Err(TreeError::Failed));
        }
        if self.hold_reads.load(Ordering::SeqCst) {
            return self.held.lock().unwrap().push((request, done));
        }
        if !self.short_reads.load(Ordering::SeqCst) {
            return self.inner.submit(request, done);
        }
        let shorten = |mut chunk: sealway_drop_mount::tree::Chunk| {
            chunk.data.truncate(chunk.data.len() / 2);
            chunk
        };
        self.inner
            .submit(request, Box::new(move |result| done(result.map(shorten))));
    }

    forward!(inner: close, subscribe);

    fn is_alive(&self) -> bool {
        !self.dead.load(Ordering::SeqCst)
    }
}
