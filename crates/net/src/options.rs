//! Options of connected sockets.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// When a connection whose other end has vanished is given up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Patience {
    /// Silence after which the other end is asked whether it is still there.
    pub ask_after: Duration,
    /// Time between questions without an answer. After nine of them the system ends the connection.
    pub ask_every: Duration,
    /// How long the other end may take nothing of what is sent to it: the kernel does not tell one that is full from one
    /// that is gone (`TCP_USER_TIMEOUT`).
    pub unread: Duration,
}

/// Sends small records at once, and ends the connection when the other end has vanished.
///
/// # Errors
/// What the system says, as of a socket that is closed.
pub fn prepare(socket: &impl AsFd, patience: Patience) -> io::Result<()> {
    let socket = SockRef::from(socket);
    socket.set_tcp_nodelay(true)?;
    let keepalive = TcpKeepalive::new()
        .with_time(patience.ask_after)
        .with_interval(patience.ask_every);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(patience.unread))
}
