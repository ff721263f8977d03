//! Telling a transfer to stop.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::lock;

/// A switch that ends a transfer: threads that wait on a connection are woken because it is shut down.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Inner>);

#[derive(Default)]
struct Inner {
    set: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

impl Cancel {
    /// A switch that nobody has thrown.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends everything that watches this switch.
    pub fn cancel(&self) {
        self.0.set.store(true, Ordering::SeqCst);
        for stream in lock(&self.0.streams).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Whether it was thrown.
    pub fn is_set(&self) -> bool {
        self.0.set.load(Ordering::SeqCst)
    }

    /// Shuts `stream` down when the switch is thrown, at once if it was.
    pub(crate) fn watch(&self, stream: &TcpStream) {
        if let Ok(copy) = stream.try_clone() {
            lock(&self.0.streams).push(copy);
        }
        // Looked at after the push: a switch thrown in between has drained the list already.
        if self.is_set() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}
