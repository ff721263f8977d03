//! A tree of one file whose reads wait.

#![allow(unreachable_pub, clippy::unwrap_used)]

use std::sync::Mutex;
use std::sync::mpsc::Receiver;

use sealway_drop_mount::forward;
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
    forward!(inner: attr, list, read_link, open, close, subscribe);

    fn submit(&self, request: ReadRequest, done: ReadDone) {
        let _ = self.wait.lock().unwrap().recv();
        self.inner.submit(request, done);
    }
}
