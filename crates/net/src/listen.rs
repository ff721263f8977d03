//! Listening, and taking one connection after another.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// Pause after a failed accept, so that a process out of descriptors does not spin.
const PAUSE: Duration = Duration::from_millis(50);

/// What goes wrong with every connection is logged this often at most.
const LOG_PAUSE: Duration = Duration::from_secs(1);

/// A listener that does not block. `[::]` takes connections over IPv4 too, and an IPv4 address may be written as one of IPv6. A port whose connections still fade away may be
/// taken again.
///
/// # Errors
/// What the system says: the address is not ours, or is taken.
pub fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    if let SocketAddr::V6(address) = address
        && address.ip().to_ipv4_mapped().is_none()
    {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Accepts for ever: hands each connection that `next` gives to `take`. No error ends it; what is wrong with more than one
/// connection is logged, and the next try waits a moment.
///
/// Whoever wants an end drops it, as [`Alive::accepting`](crate::Alive::accepting) does. `next` must not lose a connection
/// then, which accepting does not.
pub async fn accept<T, F>(mut next: impl FnMut() -> F, mut take: impl FnMut(T))
where
    F: Future<Output = io::Result<T>>,
{
    let mut log = Seldom::every(LOG_PAUSE);
    loop {
        match next().await {
            Ok(connection) => take(connection),
            Err(error) if is_of_one_connection(&error) => {}
            Err(error) => {
                if log.may() {
                    tracing::error!("cannot accept connections: {error}; trying again until it works");
                }
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// True for an error of accepting that says nothing of the next connection: who came has gone again.
pub fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionReset | ConnectionRefused | Interrupted
    )
}

/// Keeps a log from being flooded by what happens with every connection.
#[derive(Debug)]
pub struct Seldom {
    pause: Duration,
    last: Option<Instant>,
}

impl Seldom {
    /// At most one line in `pause`.
    pub const fn every(pause: Duration) -> Self {
        Seldom { pause, last: None }
    }

    /// True if there may be a line now, which is then the last one.
    pub fn may(&mut self) -> bool {
        let may = self.last.is_none_or(|last| last.elapsed() >= self.pause);
        if may {
            self.last = Some(Instant::now());
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn no_error_ends_accepting_and_shortages_pause_it() {
        let results = [
            Ok(1),
            Err(io::ErrorKind::ConnectionAborted.into()),
            Err(io::Error::from_raw_os_error(rustix::io::Errno::MFILE.raw_os_error())),
            Ok(2),
        ];
        let mut results = VecDeque::from(results);
        let began = tokio::time::Instant::now();
        let mut taken = Vec::new();
        let next = || {
            let result = results.pop_front();
            async move {
                match result {
                    Some(result) => result,
                    None => std::future::pending().await,
                }
            }
        };
        let accepting = accept(next, |connection| taken.push((connection, began.elapsed())));
        let _ = tokio::time::timeout(Duration::from_secs(1), accepting).await;
        assert_eq!(taken.len(), 2);
        assert_eq!(taken[0], (1, Duration::ZERO));
        assert!(taken[1].0 == 2 && taken[1].1 >= PAUSE, "{taken:?}");
    }

    #[test]
    fn every_form_of_an_address_takes_ipv4_or_not() {
        for (address, reached) in [
            ("127.0.0.1:0", true),
            ("[::ffff:127.0.0.1]:0", true),
            ("[::]:0", true),
            ("[::1]:0", false),
        ] {
            let listener = bind(address.parse().unwrap()).unwrap();
            let port = listener.local_addr().unwrap().port();
            let came = std::net::TcpStream::connect(("127.0.0.1", port));
            assert_eq!(came.is_ok(), reached, "{address}");
        }
    }

    #[test]
    fn a_line_now_and_then() {
        let mut log = Seldom::every(Duration::from_secs(3600));
        assert!(log.may());
        assert!(!log.may());
    }
}
