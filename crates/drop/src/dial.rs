//! Connecting without waiting: what the ways to a relay and to the other end have in common.

use std::fmt::Display;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use sealway_net::blocking::{self, Failed};
pub(crate) use sealway_net::blocking::{TICK, wait};
pub(crate) use sealway_net::dial::{STAGGER, alternate};

use socket2::Socket;

use crate::Error;

/// Connects to whichever of the addresses of `host` answers first, within `limit` in all. The stream blocks.
///
/// # Errors
/// [`Error::Network`], [`Error::Cancelled`] soon after `stop` says so.
pub(crate) fn connect(
    host: impl Display,
    addresses: &[SocketAddr],
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<TcpStream, Error> {
    connect_by(host, addresses, &blocking::begin, limit, stop)
}

/// The same with sockets that `begin` makes, as [`blocking::begin`] does.
pub(crate) fn connect_by(
    host: impl Display,
    addresses: &[SocketAddr],
    begin: &dyn Fn(SocketAddr) -> io::Result<Socket>,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<TcpStream, Error> {
    blocking::connect_by(addresses, begin, limit, stop).map_err(|failed| match failed {
        Failed::Stopped => Error::Cancelled,
        Failed::Io(source) => Error::Network {
            doing: format!("connecting to {host}"),
            source,
        },
    })
}
