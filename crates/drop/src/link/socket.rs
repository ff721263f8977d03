//! Options of the sockets.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

use crate::{Error, dial};

/// A peer that takes nothing for this long is gone. Minutes, since one whose disk is slow, or that was stopped for a while, takes
/// nothing either.
const SILENCE: Duration = Duration::from_secs(300);

/// How long one address is tried.
pub(super) const DIAL: Duration = Duration::from_secs(10);

/// Sets what every connection needs: no delay for small records, and an end to connections whose other end has vanished.
pub(super) fn prepare(stream: &TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    socket.set_tcp_keepalive(
        &TcpKeepalive::new()
            .with_time(Duration::from_secs(15))
            .with_interval(Duration::from_secs(10)),
    )?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(SILENCE))?;
    Ok(())
}

/// Connects to an address.
pub(super) fn dial(address: SocketAddr, stop: &dyn Fn() -> bool) -> Result<TcpStream, Error> {
    let stream = dial::connect(address, DIAL, stop)?;
    prepare(&stream).map_err(Error::network(format!("connecting to {address}")))?;
    Ok(stream)
}
