//! A tree of one file whose reads wait.

#![allow(unreachable_pub, clippy::unwrap_used)]

use std::sync::Mutex;
use std::sync::mpsc::Receiver;

use sealway_drop_mount::tree::{
    Attr, Call, EventSink, MemoryTree, Opened, Page, ReadDone, ReadRequest, RemoteTree, Subscription, TreeError,
    TreePath,
};

/// Reads once it is told to, or nobody is left to tell it.
pub struct Slow {
    inner: MemoryTree,
    wait: Mutex<Receiver<()>>,
}

impl Slow {
    pub fn new(wait: Receiver<()>) -> Self {
        let inner = MemoryTree::new();
        inner.put_file(&TreePath::parse(b"file").unwrap(), "content");
        Self {
            inner,
            wait: Mutex::new(wait),
        }
    }
}

impl RemoteTree for Slow {
    fn attr(&self, path: &TreePath, call: &Call) -> Result<Attr, TreeError> {
        self.inner.attr(path, call)
    }

    fn list(&self, path: &TreePath, cursor: u64, limit: usize, call: &Call) -> Result<Page, TreeError> {
        self.inner.list(path, cursor, limit, call)
    }

    fn read_link(&self, path: &TreePath, call: &Call) -> Result<Vec<u8>, TreeError> {
        self.inner.read_link(path, call)
    }

    fn open(&self, path: &TreePath, call: &Call) -> Result<Opened, TreeError> {
        self.inner.open(path, call)
    }

    fn submit(&self, request: ReadRequest, done: ReadDone) {
        let _ = self.wait.lock().unwrap().recv();
        self.inner.submit(request, done);
    }

    fn close(&self, handle: u64) {
        self.inner.close(handle);
    }

    fn subscribe(&self, sink: EventSink) -> Result<Subscription, TreeError> {
        self.inner.subscribe(sink)
    }
}
