//! Options of the sockets.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use sealway_net::options::{self, Patience};

use crate::{Error, dial};

/// A peer that takes nothing for minutes is gone; one whose disk is slow, or that was stopped for a while, takes nothing either.
const PATIENCE: Patience = Patience {
    ask_after: Duration::from_secs(15),
    ask_every: Duration::from_secs(10),
    unread: Duration::from_secs(300),
};

/// A direct path that dies is left for the relay soon: nothing is lost by that.
const DIRECT: Patience = Patience {
    ask_after: Duration::from_secs(5),
    ask_every: Duration::from_secs(1),
    unread: Duration::from_secs(5),
};

/// How long one address is tried.
pub(super) const DIAL: Duration = Duration::from_secs(10);

/// Sets what every connection needs: no delay for small records, and an end to connections whose other end has vanished.
pub(super) fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    options::prepare(stream, PATIENCE)
}

/// The same for a direct path beside a relay.
pub(super) fn prepare_direct(stream: &TcpStream) -> std::io::Result<()> {
    options::prepare(stream, DIRECT)
}

/// Connects to an address.
pub(super) fn dial(address: SocketAddr, stop: &dyn Fn() -> bool) -> Result<TcpStream, Error> {
    let stream = dial::connect(address, &[address], DIAL, stop)?;
    prepare(&stream).map_err(Error::network(format!("connecting to {address}")))?;
    Ok(stream)
}
