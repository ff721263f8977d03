//! The end of a path that accepts.

use std::collections::HashMap;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Direction, MAGIC, Stream, set_up, thread};

/// Connections of strangers and of streams that a sink serves at once.
const MAX_CONNECTIONS: usize = 64;

type Expected = Arc<Mutex<HashMap<u64, Arc<Stream>>>>;

/// The far end. It stops listening when dropped; its connections end with their streams.
#[derive(Debug)]
pub(in crate::transports) struct Sink {
    address: SocketAddr,
    expected: Expected,
    closing: Arc<AtomicBool>,
}

impl Sink {
    /// One on loopback.
    pub(in crate::transports) fn open() -> io::Result<Sink> {
        Sink::open_at(IpAddr::V4(Ipv4Addr::LOCALHOST), None)
    }

    /// One at an address of this machine, for connections of `guest` only if that is given.
    pub(in crate::transports) fn open_at(address: IpAddr, guest: Option<IpAddr>) -> io::Result<Sink> {
        let listener = TcpListener::bind((address, 0))?;
        let served = Arc::new(AtomicUsize::new(0));
        let sink = Sink {
            address: listener.local_addr()?,
            expected: Expected::default(),
            closing: Arc::default(),
        };
        let (expected, closing) = (Arc::clone(&sink.expected), Arc::clone(&sink.closing));
        thread("sink", move || {
            for socket in listener.incoming() {
                if closing.load(Ordering::Acquire) {
                    break;
                }
                let Ok(socket) = socket else { continue };
                let from = socket.peer_addr().map(|peer| peer.ip().to_canonical());
                let welcome = guest.is_none_or(|guest| from.is_ok_and(|from| from == guest));
                if !welcome || served.load(Ordering::Acquire) >= MAX_CONNECTIONS {
                    continue;
                }
                let (expected, served) = (Arc::clone(&expected), Arc::clone(&served));
                served.fetch_add(1, Ordering::AcqRel);
                // Who cannot be served is seen by the stream's own end of time.
                let _ = thread("sink stream", move || {
                    accept(&socket, &expected);
                    served.fetch_sub(1, Ordering::AcqRel);
                });
            }
        })?;
        Ok(sink)
    }

    /// Takes its ends of these streams when they come.
    pub(super) fn expect(&self, streams: &[Arc<Stream>]) {
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        expected.extend(streams.iter().map(|stream| (stream.key, Arc::clone(stream))));
    }

    /// Where it listens.
    pub(in crate::transports) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        // Wakes the thread.
        let _ = TcpStream::connect(self.address);
    }
}

/// Serves a connection of a stream that is expected; any other is closed.
fn accept(mut socket: &TcpStream, expected: &Expected) {
    let mut hello = [0; 16];
    if set_up(socket).is_err() || socket.read_exact(&mut hello).is_err() {
        return;
    }
    let (magic, key) = hello.split_at(MAGIC.len());
    let key = key.try_into().map_or(0, u64::from_le_bytes);
    let stream = expected.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
    let Some(stream) = stream.filter(|_| magic == MAGIC) else {
        return;
    };
    stream.accepted.store(true, Ordering::Release);
    let ended = match stream.order.direction {
        Direction::Down => stream.send(socket),
        Direction::Up => stream.receive(socket),
    };
    // Nobody may listen any more.
    let _ = stream.done.send(ended);
}
