//! The end of a path that accepts.

use std::collections::HashMap;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{Direction, MAGIC, Stream, set_up, thread};
use crate::connections::Connections;

/// Connections of strangers and of streams that a sink serves at once.
const MAX_CONNECTIONS: usize = 64;

/// How long is waited where the system gives no connection, such as with too many open files.
const RESPITE: Duration = Duration::from_millis(20);

type Expected = Arc<Mutex<HashMap<u64, Arc<Stream>>>>;

/// The far end. It stops listening when dropped, and its connections end.
#[derive(Debug)]
pub(in crate::transports) struct Sink {
    address: SocketAddr,
    expected: Expected,
    closing: Arc<AtomicBool>,
    connections: Arc<Connections>,
}

impl Sink {
    /// One on loopback.
    pub(in crate::transports) fn open() -> io::Result<Sink> {
        Sink::open_at(IpAddr::V4(Ipv4Addr::LOCALHOST), None)
    }

    /// One at an address of this machine, for connections of `guest` only if that is given.
    pub(in crate::transports) fn open_at(address: IpAddr, guest: Option<IpAddr>) -> io::Result<Sink> {
        let listener = TcpListener::bind((address, 0))?;
        let sink = Sink {
            address: listener.local_addr()?,
            expected: Expected::default(),
            closing: Arc::default(),
            connections: Connections::new(MAX_CONNECTIONS),
        };
        let (expected, closing) = (Arc::clone(&sink.expected), Arc::clone(&sink.closing));
        let connections = Arc::clone(&sink.connections);
        thread("sink", move || {
            for socket in listener.incoming() {
                if closing.load(Ordering::Acquire) {
                    break;
                }
                let Ok(socket) = socket else {
                    std::thread::sleep(RESPITE);
                    continue;
                };
                let from = socket.peer_addr().map(|peer| peer.ip().to_canonical());
                let welcome = guest.is_none_or(|guest| from.is_ok_and(|from| from == guest));
                let Some(held) = welcome.then(|| connections.hold(&socket).ok()).flatten() else {
                    continue;
                };
                let expected = Arc::clone(&expected);
                // Who cannot be served is seen by the stream's own end of time.
                let _ = thread("sink stream", move || {
                    accept(&socket, &expected);
                    drop(held);
                });
            }
        })?;
        Ok(sink)
    }

    /// Takes its ends of these streams when they come, in place of those that were to come.
    pub(super) fn expect(&self, streams: &[Arc<Stream>]) {
        let streams = streams.iter().map(|stream| (stream.key, Arc::clone(stream))).collect();
        *self.expected.lock().unwrap_or_else(PoisonError::into_inner) = streams;
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
        self.connections.end();
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
    let Ok(_held) = stream.connections.hold(socket) else {
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write as _;

    use super::super::{Order, Planned, Traffic};
    use super::*;

    /// A stream on whose end here nothing comes, with its connection.
    fn idle(sink: &Sink) -> (Traffic, TcpStream) {
        let planned = Planned::of(&[Order::endless(Direction::Up)]).unwrap();
        let traffic = Traffic::far(sink, &planned);
        let mut socket = connect(sink);
        socket
            .write_all(&[MAGIC, planned[0].key.to_le_bytes()].concat())
            .unwrap();
        while !traffic.states()[0].accepted {
            std::thread::sleep(Duration::from_millis(1));
        }
        (traffic, socket)
    }

    fn connect(sink: &Sink) -> TcpStream {
        let socket = TcpStream::connect(sink.address()).unwrap();
        // Less than a stream's own patience.
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket
    }

    fn has_ended(mut socket: TcpStream) -> bool {
        match socket.read(&mut [0]) {
            Ok(n) => n == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }

    #[test]
    fn connections_end_with_their_streams_and_with_the_sink() {
        let sink = Sink::open().unwrap();
        let (traffic, socket) = idle(&sink);
        drop(traffic);
        assert!(has_ended(socket), "it outlives its streams");
        let (_traffic, socket) = idle(&sink);
        let silent = connect(&sink);
        drop(sink);
        assert!(has_ended(socket) && has_ended(silent), "they outlive the sink");
    }

    #[test]
    fn streams_take_the_place_of_those_that_never_came() {
        let sink = Sink::open().unwrap();
        for _ in 0..2 {
            let planned = Planned::of(&[Order::endless(Direction::Down); 3]).unwrap();
            let _traffic = Traffic::far(&sink, &planned);
            assert_eq!(sink.expected.lock().unwrap().len(), 3);
        }
    }
}
