//! Telling a transfer to stop.

use std::collections::HashMap;
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
    streams: Mutex<Watched>,
}

#[derive(Default)]
struct Watched {
    next: u64,
    streams: HashMap<u64, TcpStream>,
}

/// Keeps a stream under a switch until it is dropped.
pub(crate) struct Watch {
    cancel: Cancel,
    number: u64,
}

impl Cancel {
    /// A switch that nobody has thrown.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends everything that watches this switch.
    pub fn cancel(&self) {
        self.0.set.store(true, Ordering::SeqCst);
        for stream in lock(&self.0.streams).streams.values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Whether it was thrown.
    pub fn is_set(&self) -> bool {
        self.0.set.load(Ordering::SeqCst)
    }

    /// Shuts `stream` down when the switch is thrown, at once if it was, for as long as what this returns lives.
    pub(crate) fn watch(&self, stream: &TcpStream) -> Watch {
        let mut watched = lock(&self.0.streams);
        let number = watched.next;
        watched.next += 1;
        if let Ok(copy) = stream.try_clone() {
            watched.streams.insert(number, copy);
        }
        drop(watched);
        // Looked at after the entry: a switch thrown in between has seen the others only.
        if self.is_set() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        Watch {
            cancel: self.clone(),
            number,
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        lock(&self.cancel.0.streams).streams.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let there = TcpStream::connect(listener.local_addr().expect("its address")).expect("a connection");
        (listener.accept().expect("the other end").0, there)
    }

    #[test]
    fn a_thrown_switch_wakes_who_waits() {
        let cancel = Cancel::new();
        let (mut here, _there) = pair();
        let watch = cancel.watch(&here);
        let waiting = std::thread::spawn(move || here.read(&mut [0]).expect("an end, not an error"));
        cancel.cancel();
        assert_eq!(waiting.join().expect("no panic"), 0);
        drop(watch);
        let (mut late, _there) = pair();
        let _watch = cancel.watch(&late);
        assert_eq!(late.read(&mut [0]).expect("an end, not an error"), 0);
    }

    #[test]
    fn a_stream_that_is_watched_no_more_ends_with_its_owner() {
        let cancel = Cancel::new();
        let (here, mut there) = pair();
        drop(cancel.watch(&here));
        drop(here);
        assert_eq!(there.read(&mut [0]).expect("an end, not an error"), 0);
    }
}
