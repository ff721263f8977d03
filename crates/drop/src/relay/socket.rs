//! Sockets of the relay and of its clients: options, and connecting.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags};
use socket2::{SockRef, Socket, TcpKeepalive};

use crate::Error;
use crate::address::{self, AddressError};
pub(super) use crate::dial::TICK;
use crate::dial::{self, STAGGER, alternate, begin, poll_for};

/// An end that answers nothing for this long is gone.
pub(super) const SILENCE: Duration = Duration::from_secs(60);

/// How long connecting may take, all addresses together.
const CONNECTING: Duration = Duration::from_secs(10);

/// Sends small records at once, and asks an end that is silent whether it is still there.
///
/// `silence` is also how long an end may take nothing of what is sent to it: the kernel does not tell an end that is full from
/// one that is gone (`TCP_USER_TIMEOUT`).
pub(super) fn prepare(socket: &impl AsFd, silence: Duration) -> io::Result<()> {
    let socket = SockRef::from(socket);
    socket.set_tcp_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(Duration::from_secs(20))
        .with_interval(Duration::from_secs(10));
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(silence))?;
    Ok(())
}

/// Connects to `address` (`host:port`). Its addresses are tried beside each other, so that a dead one costs a quarter of a
/// second. The stream blocks and has no timeouts.
///
/// # Errors
/// [`Error::Network`], [`Error::Cancelled`] soon after `stop` says so (a name is looked up to the end first).
pub(super) fn dial(address: &str, stop: &dyn Fn() -> bool) -> Result<TcpStream, Error> {
    let found = address::resolve(address).map_err(|error| match error {
        AddressError::Lookup(error) => Error::network(format!("looking up {address}"))(error),
        error => Error::Usage(format!("the relay {address}: {error}")),
    })?;
    race(alternate(&found), stop)?.map_err(Error::network(format!("connecting to {address}")))
}

/// Connects to whichever answers first.
fn race(addresses: Vec<SocketAddr>, stop: &dyn Fn() -> bool) -> Result<io::Result<TcpStream>, Error> {
    let mut addresses = addresses.into_iter();
    let mut trying: Vec<Socket> = Vec::new();
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    let begun = Instant::now();
    let mut next_at = begun;
    loop {
        if stop() {
            return Err(Error::Cancelled);
        }
        let now = Instant::now();
        if now.duration_since(begun) >= CONNECTING {
            return Ok(Err(io::ErrorKind::TimedOut.into()));
        }
        if trying.is_empty() || now >= next_at {
            match addresses.next().map(begin) {
                Some(Ok(socket)) => trying.push(socket),
                Some(Err(error)) => {
                    last = error;
                    continue;
                }
                None if trying.is_empty() => return Ok(Err(last)),
                None => {}
            }
            next_at = now + STAGGER;
        }
        let ready: Vec<bool> = {
            let mut fds: Vec<_> = trying
                .iter()
                .map(|socket| PollFd::new(socket, PollFlags::OUT))
                .collect();
            if let Err(error) = poll_for(&mut fds, TICK) {
                return Ok(Err(error));
            }
            fds.iter().map(|fd| !fd.revents().is_empty()).collect()
        };
        for index in (0..trying.len()).rev().filter(|&index| ready[index]) {
            let socket = trying.swap_remove(index);
            match finish(socket) {
                Ok(stream) => return Ok(Ok(stream)),
                Err(error) => {
                    last = error;
                    next_at = now;
                }
            }
        }
    }
}

fn finish(socket: Socket) -> io::Result<TcpStream> {
    let stream = dial::finish(socket)?;
    prepare(&stream, SILENCE)?;
    Ok(stream)
}

/// Waits until something can be read from `stream`, for `time` at most. False if nothing can.
pub(super) fn readable(stream: &TcpStream, time: Duration) -> io::Result<bool> {
    let mut fds = [PollFd::new(stream, PollFlags::IN)];
    poll_for(&mut fds, time)?;
    Ok(!fds[0].revents().is_empty())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicBool, Ordering};

    use socket2::{Domain, Type};

    use super::*;

    #[test]
    fn a_refusal_leads_to_the_next_address() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let open = listener.local_addr().unwrap();
        let stream = race(vec![closed, open], &|| false).unwrap().unwrap();
        assert_eq!(stream.peer_addr().unwrap(), open);
        assert_eq!(stream.read_timeout().unwrap(), None);
        let refused = race(vec![closed], &|| false).unwrap().unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        assert!(race(vec![], &|| false).unwrap().is_err());
    }

    #[test]
    fn connecting_stops_when_told() {
        // A listener whose queue is full answers nobody, as a dead address does.
        let full = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        full.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        full.listen(0).unwrap();
        let address = full.local_addr().unwrap().as_socket().unwrap();
        let _fillers: Vec<_> = (0..4).map(|_| begin(address).unwrap()).collect();
        let asked = AtomicBool::new(false);
        // False at first, so that connecting has begun.
        let result = race(vec![address], &|| asked.swap(true, Ordering::SeqCst));
        assert!(matches!(result, Err(Error::Cancelled)));
        // Beside it, another address is found.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let open = listener.local_addr().unwrap();
        assert_eq!(
            race(vec![address, open], &|| false)
                .unwrap()
                .unwrap()
                .peer_addr()
                .unwrap(),
            open
        );
    }
}
