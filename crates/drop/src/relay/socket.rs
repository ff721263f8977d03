//! Sockets of the relay and of its clients: options, and connecting.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use sealway_net::blocking;
use sealway_net::options::{Patience, prepare};
use socket2::Socket;

use crate::Error;
use crate::address::{self, AddressError};
use crate::dial::{self, alternate, wait};

/// An end that answers or takes nothing for this long is gone.
pub const PATIENCE: Patience = Patience {
    ask_after: Duration::from_secs(20),
    ask_every: Duration::from_secs(10),
    unread: Duration::from_secs(60),
};

/// How long connecting may take, all addresses together.
const CONNECTING: Duration = Duration::from_secs(10);

/// Connects to `address` (`host:port`). Its addresses are tried beside each other, so that a dead one costs a quarter of a
/// second. The stream blocks and has no timeouts.
///
/// # Errors
/// [`Error::Network`], [`Error::Cancelled`] soon after `stop` says so (a name is looked up to the end first).
pub(super) fn dial(address: &str, stop: &dyn Fn() -> bool) -> Result<TcpStream, Error> {
    dial_by(address, &blocking::begin, CONNECTING, stop)
}

/// The same with sockets that `begin` makes, within `limit`.
pub(super) fn dial_by(
    address: &str,
    begin: &dyn Fn(SocketAddr) -> io::Result<Socket>,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<TcpStream, Error> {
    let found = address::resolve(address).map_err(|error| match error {
        AddressError::Lookup(error) => Error::network(format!("looking up {address}"))(error),
        error => Error::Usage(format!("the relay {address}: {error}")),
    })?;
    let stream = dial::connect_by(address, &alternate(&found), begin, limit, stop)?;
    prepare(&stream, PATIENCE).map_err(Error::network(format!("connecting to {address}")))?;
    Ok(stream)
}

/// Waits until something can be read from `stream`, for `time` at most. False if nothing can.
pub(super) fn readable(stream: &TcpStream, time: Duration) -> io::Result<bool> {
    let mut fds = [PollFd::new(stream, PollFlags::IN)];
    wait(&mut fds, time)?;
    Ok(!fds[0].revents().is_empty())
}
