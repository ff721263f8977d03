//! Options of the sockets.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use socket2::{SockRef, TcpKeepalive};

use crate::Error;
use crate::cancel::Cancel;

/// A peer that takes nothing for this long is gone. Minutes, since one whose disk is slow, or that was stopped for a while, takes
/// nothing either.
const SILENCE: Duration = Duration::from_secs(300);

/// How long one address is tried.
const DIAL: Duration = Duration::from_secs(10);

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

/// Connects to the first of `addresses` that answers.
pub(super) fn dial(addresses: &[SocketAddr], cancel: &Cancel) -> Result<TcpStream, Error> {
    let doing = || match addresses {
        [one] => format!("connecting to {one}"),
        some => format!("connecting to one of {} addresses", some.len()),
    };
    let mut last = std::io::Error::new(std::io::ErrorKind::NotFound, "the name has no address");
    for &address in addresses {
        if cancel.is_set() {
            return Err(Error::Cancelled);
        }
        match TcpStream::connect_timeout(&address, DIAL) {
            Ok(stream) => {
                prepare(&stream).map_err(Error::network(doing()))?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(Error::Network {
        doing: doing(),
        source: last,
    })
}

/// Like [`dial`], but again and again until `until`: the other end may not be listening yet.
pub(super) fn dial_until(addresses: &[SocketAddr], until: Instant, cancel: &Cancel) -> Result<TcpStream, Error> {
    let mut pause = Duration::from_millis(5);
    loop {
        match dial(addresses, cancel) {
            Err(Error::Network { source, .. })
                if source.kind() == std::io::ErrorKind::ConnectionRefused
                    && Instant::now() + pause < until
                    && !cancel.is_set() =>
            {
                std::thread::sleep(pause);
                pause = (pause * 2).min(Duration::from_millis(250));
            }
            result => return result,
        }
    }
}
