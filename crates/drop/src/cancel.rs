//! Telling a transfer to stop.

use std::collections::HashMap;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use crate::lock;

/// A switch that ends a transfer: threads that wait on a connection are woken because it is shut down, and who asked to be told
/// is told.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Inner>);

#[derive(Default)]
struct Inner {
    set: AtomicBool,
    ends: Mutex<Ends>,
}

#[derive(Default)]
struct Ends {
    next: u64,
    ends: HashMap<u64, End>,
}

/// What happens when the switch is thrown.
enum End {
    ShutDown(TcpStream),
    Tell(Box<dyn Fn() + Send>),
}

impl End {
    fn reach(&self) {
        match self {
            End::ShutDown(stream) => drop(stream.shutdown(Shutdown::Both)),
            End::Tell(tell) => tell(),
        }
    }
}

/// Keeps something under a switch until it is dropped.
pub struct Watch {
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
        let ends = lock(&self.0.ends);
        // Whoever notes why it ends does so before a connection breaks because of it.
        let (told, shut): (Vec<&End>, Vec<&End>) = ends.ends.values().partition(|end| matches!(end, End::Tell(_)));
        told.into_iter().chain(shut).for_each(End::reach);
    }

    /// Whether it was thrown.
    pub fn is_set(&self) -> bool {
        self.0.set.load(Ordering::SeqCst)
    }

    /// Shuts `stream` down when the switch is thrown, at once if it was, for as long as what this returns lives.
    pub fn watch(&self, stream: &TcpStream) -> Watch {
        let watch = self.add(stream.try_clone().ok().map(End::ShutDown));
        // Looked at after the entry: a switch thrown in between has seen the others only.
        if self.is_set() {
            let _ = stream.shutdown(Shutdown::Both);
        }
        watch
    }

    /// Calls `tell` when the switch is thrown, at once if it was and then perhaps twice, for as long as what this returns lives.
    /// It must neither wait nor drop what this returns.
    pub fn on_cancel(&self, tell: impl Fn() + Clone + Send + 'static) -> Watch {
        let watch = self.add(Some(End::Tell(Box::new(tell.clone()))));
        if self.is_set() {
            tell();
        }
        watch
    }

    fn add(&self, end: Option<End>) -> Watch {
        let mut ends = lock(&self.0.ends);
        let number = ends.next;
        ends.next += 1;
        ends.ends.extend(end.map(|end| (number, end)));
        drop(ends);
        Watch {
            cancel: self.clone(),
            number,
        }
    }
}

impl Watch {
    /// From now on the switch does nothing to what was kept under it.
    pub fn release(&self) {
        lock(&self.cancel.0.ends).ends.remove(&self.number);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::streams;
    use std::io::Read;

    #[test]
    fn a_thrown_switch_wakes_who_waits() {
        let cancel = Cancel::new();
        let (mut here, _there) = streams();
        let watch = cancel.watch(&here);
        let waiting = std::thread::spawn(move || here.read(&mut [0]).expect("an end, not an error"));
        cancel.cancel();
        assert_eq!(waiting.join().expect("no panic"), 0);
        drop(watch);
        let (mut late, _there) = streams();
        let _watch = cancel.watch(&late);
        assert_eq!(late.read(&mut [0]).expect("an end, not an error"), 0);
    }

    #[test]
    fn a_stream_that_is_watched_no_more_ends_with_its_owner() {
        let cancel = Cancel::new();
        let (here, mut there) = streams();
        drop(cancel.watch(&here));
        drop(here);
        assert_eq!(there.read(&mut [0]).expect("an end, not an error"), 0);
    }

    #[test]
    fn who_asked_is_told_and_what_was_released_goes_on() {
        let cancel = Cancel::new();
        let (told, heard) = std::sync::mpsc::channel();
        let tell = move || told.send(()).expect("somebody hears");
        let (mut here, mut there) = streams();
        cancel.watch(&here).release();
        let kept = cancel.watch(&here);
        kept.release();
        let hook = cancel.on_cancel(tell.clone());
        drop(cancel.on_cancel(tell.clone()));
        cancel.cancel();
        assert_eq!(heard.try_iter().count(), 1, "told once by the one that is left");
        std::io::Write::write_all(&mut there, b"x").expect("still open");
        assert_eq!(here.read(&mut [0]).expect("still open"), 1);
        drop(hook);
        let _late = cancel.on_cancel(tell);
        assert_eq!(heard.try_iter().count(), 1, "told at once");
    }
}
