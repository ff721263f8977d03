//! Connecting without waiting: what the ways to a relay and to the other end have in common.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use socket2::{Domain, Protocol, Socket, Type};

use crate::Error;

/// After this time without an answer the next address is tried beside the first (RFC 8305 section 5).
pub(crate) const STAGGER: Duration = Duration::from_millis(250);

/// How often a thread that waits looks whether it still should.
pub(crate) const TICK: Duration = Duration::from_millis(50);

/// The same addresses, families by turns: if one family leads nowhere, the second try is of the other.
pub(crate) fn alternate(found: &[SocketAddr]) -> Vec<SocketAddr> {
    let first = found.first().is_some_and(SocketAddr::is_ipv6);
    let (mut one, mut two): (Vec<SocketAddr>, Vec<SocketAddr>) = found
        .iter()
        .rev()
        .copied()
        .partition(|address| address.is_ipv6() == first);
    let mut all = Vec::with_capacity(found.len());
    while let Some(address) = one.pop().or_else(|| two.pop()) {
        all.push(address);
        std::mem::swap(&mut one, &mut two);
    }
    all
}

/// Connects to one address, within `time`. The stream blocks.
///
/// # Errors
/// [`Error::Network`], [`Error::Cancelled`] soon after `stop` says so.
pub(crate) fn connect(address: SocketAddr, time: Duration, stop: &dyn Fn() -> bool) -> Result<TcpStream, Error> {
    let failed = || Error::network(format!("connecting to {address}"));
    let until = Instant::now() + time;
    let socket = begin(address).map_err(failed())?;
    loop {
        if stop() {
            return Err(Error::Cancelled);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(failed()(io::ErrorKind::TimedOut.into()));
        }
        let mut fds = [PollFd::new(&socket, PollFlags::OUT)];
        poll_for(&mut fds, left.min(TICK)).map_err(failed())?;
        if !fds[0].revents().is_empty() {
            return finish(socket).map_err(failed());
        }
    }
}

/// Begins to connect.
pub(crate) fn begin(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&address.into()) {
        Ok(()) => Ok(socket),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => Ok(socket),
        Err(error) => Err(error),
    }
}

/// Takes what came of connecting. The stream blocks.
pub(crate) fn finish(socket: Socket) -> io::Result<TcpStream> {
    if let Some(error) = socket.take_error()? {
        return Err(error);
    }
    socket.set_nonblocking(false)?;
    Ok(socket.into())
}

/// Waits until something happens, for `time` at most.
pub(crate) fn poll_for(fds: &mut [PollFd<'_>], time: Duration) -> io::Result<()> {
    let time = Timespec {
        tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    };
    match poll(fds, Some(&time)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn families_take_turns_in_the_order_of_the_system() {
        let found = addresses(&["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1"]);
        let wanted = addresses(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"]);
        assert_eq!(alternate(&found), wanted);
        assert_eq!(alternate(&[]), []);
    }
}
