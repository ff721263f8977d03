//! Connections that somebody else can end.

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// So many connections at most, until all of them are ended.
#[derive(Debug)]
pub(crate) struct Connections {
    most: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    ended: bool,
    next: u64,
    open: HashMap<u64, TcpStream>,
}

/// Keeps a place among [`Connections`] until it is dropped.
#[derive(Debug)]
pub(crate) struct Held {
    connections: Arc<Connections>,
    number: u64,
}

impl Connections {
    pub(crate) fn new(most: usize) -> Arc<Connections> {
        Arc::new(Connections {
            most,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has `socket` ended with the others, if there is a place and they have not ended yet.
    pub(crate) fn hold(self: &Arc<Connections>, socket: &TcpStream) -> io::Result<Held> {
        let socket = socket.try_clone()?;
        let mut state = self.state();
        if state.ended {
            return Err(io::Error::other("the connections were ended"));
        }
        if state.open.len() >= self.most {
            return Err(io::Error::other("there are too many connections"));
        }
        let number = state.next;
        state.next += 1;
        state.open.insert(number, socket);
        Ok(Held {
            connections: Arc::clone(self),
            number,
        })
    }

    /// True if there is no place.
    pub(crate) fn is_full(&self) -> bool {
        self.state().open.len() >= self.most
    }

    /// Ends all of them, in both directions, and lets no more in.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.ended = true;
        for socket in state.open.values() {
            // One that has ended by itself is no error.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.connections.state().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Read as _;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn places_are_given_back_and_nobody_comes_after_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        let connections = Connections::new(1);
        let held = connections.hold(&far).unwrap();
        assert!(connections.is_full() && connections.hold(&far).is_err());
        drop(held);
        let held = connections.hold(&far).unwrap();
        connections.end();
        assert_eq!(near.read(&mut [0]).unwrap(), 0);
        drop(held);
        assert!(!connections.is_full() && connections.hold(&far).is_err());
    }
}
