//! Connecting and waiting in threads that can be told to stop.

use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};

use crate::dial::{AT_ONCE, STAGGER};

/// How often a thread that waits looks whether it still should.
pub const TICK: Duration = Duration::from_millis(50);

/// Why there is no connection.
#[derive(Debug)]
pub enum Failed {
    /// The caller said so.
    Stopped,
    /// What the last address said, or that the time is over.
    Io(io::Error),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Stopped => f.write_str("stopped"),
            Failed::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Failed {}

/// Connects to whichever address answers first, within `limit` in all: as [`race`](crate::dial::race), in this thread. The
/// stream blocks and has no timeouts.
///
/// # Errors
/// [`Failed::Stopped`] soon after `stop` says so.
pub fn connect(addresses: &[SocketAddr], limit: Duration, stop: &dyn Fn() -> bool) -> Result<TcpStream, Failed> {
    connect_by(addresses, &begin, limit, stop)
}

/// The same with sockets that `begin` makes, as [`begin`] does.
///
/// # Errors
/// As [`connect`].
pub fn connect_by(
    addresses: &[SocketAddr],
    begin: &dyn Fn(SocketAddr) -> io::Result<Socket>,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<TcpStream, Failed> {
    let mut left = addresses.iter();
    let mut trying: Vec<Socket> = Vec::new();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let began = Instant::now();
    let mut next_at = began;
    loop {
        if stop() {
            return Err(Failed::Stopped);
        }
        let now = Instant::now();
        let rest = limit.saturating_sub(now.duration_since(began));
        if rest.is_zero() {
            return Err(Failed::Io(io::ErrorKind::TimedOut.into()));
        }
        if trying.is_empty() || now >= next_at && trying.len() < AT_ONCE {
            match left.next().map(|address| begin(*address)) {
                Some(Ok(socket)) => trying.push(socket),
                Some(Err(error)) => {
                    last = error;
                    continue;
                }
                None if trying.is_empty() => return Err(Failed::Io(last)),
                None => {}
            }
            next_at = now + STAGGER;
        }
        let ready: Vec<bool> = {
            let mut fds: Vec<_> = trying
                .iter()
                .map(|socket| PollFd::new(socket, PollFlags::OUT))
                .collect();
            wait(&mut fds, rest.min(TICK)).map_err(Failed::Io)?;
            fds.iter().map(|fd| !fd.revents().is_empty()).collect()
        };
        for at in (0..trying.len()).rev().filter(|&at| ready[at]) {
            match finish(trying.swap_remove(at)) {
                Ok(stream) => return Ok(stream),
                Err(error) => (last, next_at) = (error, now),
            }
        }
    }
}

/// Begins to connect; the socket does not block, and can be written to when something has come of it.
///
/// # Errors
/// What the system says at once, as of an address that there is no way to.
pub fn begin(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Ok(()) => Ok(socket),
        Err(error) if error.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => Ok(socket),
        Err(error) => Err(error),
    }
}

fn finish(socket: Socket) -> io::Result<TcpStream> {
    if let Some(error) = socket.take_error()? {
        return Err(error);
    }
    socket.set_nonblocking(false)?;
    Ok(socket.into())
}

/// Waits until something happens, for `time` at most; a signal ends it early.
///
/// # Errors
/// What the system says, which it has no reason to.
pub fn wait(fds: &mut [PollFd<'_>], time: Duration) -> io::Result<()> {
    let time = Timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    };
    match poll(fds, Some(&time)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::TcpListener;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_refusal_leads_to_the_next_address() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let open = listener.local_addr().unwrap();
        let stream = connect(&[closed, open], LONG, &|| false).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), open);
        assert_eq!(stream.read_timeout().unwrap(), None);
        let refused = connect(&[closed], LONG, &|| false).unwrap_err();
        assert!(matches!(refused, Failed::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused));
        assert!(connect(&[], LONG, &|| false).is_err());
    }

    #[test]
    fn connecting_stops_when_told() {
        // A listener whose queue is full answers nobody, as a dead address does.
        let full = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        full.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        full.listen(0).unwrap();
        let dead = full.local_addr().unwrap().as_socket().unwrap();
        let _fillers: Vec<_> = (0..4).map(|_| begin(dead).unwrap()).collect();
        // False at first, so that connecting has begun.
        let asked = Cell::new(false);
        let stopped = connect(&[dead], LONG, &|| asked.replace(true));
        assert!(matches!(stopped, Err(Failed::Stopped)));
        let late = connect(&[dead], TICK, &|| false).unwrap_err();
        assert!(matches!(late, Failed::Io(error) if error.kind() == io::ErrorKind::TimedOut));
        // Beside it, another address is found.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap();
        let stream = connect(&[dead, open], LONG, &|| false).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), open);
    }
}
