//! Sockets that the program was started with. A service manager holds them while the program is started again, so that nobody is
//! refused meanwhile.
//!
//! They belong to the process, as its descriptors do: a listener whose address is that of one of them takes it instead of a new
//! socket, now and after the configuration has changed.

use std::io::{self, ErrorKind};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use socket2::{SockRef, Type};
use tokio::net::{TcpListener, UdpSocket, UnixListener};

use crate::settings::{Listen, UnixName};

static SOCKETS: Mutex<Vec<Inherited>> = Mutex::new(Vec::new());

struct Inherited {
    at: Listen,
    stream: bool,
    fd: OwnedFd,
}

/// A clone of a socket, as a listener takes it.
pub(crate) enum Taken {
    /// For streams.
    Tcp(TcpListener),
    /// For streams, of this machine. Whoever made its file removes it.
    Unix(UnixListener),
    /// For datagrams.
    Udp(UdpSocket),
}

/// Keeps a socket for the inbound that listens at its address, and gives the address.
///
/// # Errors
/// It is no socket that an inbound can listen with: one that is not listened on, or of a kind that nothing here speaks.
pub fn inherit(fd: OwnedFd) -> io::Result<Listen> {
    let other = |what| io::Error::new(ErrorKind::InvalidInput, what);
    let socket = SockRef::from(&fd);
    let stream = match socket.r#type()? {
        Type::STREAM => true,
        Type::DGRAM => false,
        _ => return Err(other("it is neither for streams nor for datagrams")),
    };
    if stream && !socket.is_listener()? {
        return Err(other(
            "it is a connection, and nobody listens on it: Accept=no is needed",
        ));
    }
    let address = socket.local_addr()?;
    let at = if let Some(ip) = address.as_socket() {
        let every = ip.ip() == IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED) && !socket.only_v6()?;
        if every {
            Listen::EveryAddress(ip.port())
        } else {
            Listen::Port(ip)
        }
    } else if let (true, Some(path)) = (stream, address.as_pathname()) {
        Listen::Unix(UnixName::Path(path.to_owned()), None)
    } else if let (true, Some(name)) = (stream, address.as_abstract_namespace()) {
        Listen::Unix(UnixName::Abstract(name.to_owned()), None)
    } else {
        return Err(other("it has an address that no inbound can have"));
    };
    socket.set_nonblocking(true)?;
    let mut sockets = SOCKETS.lock().unwrap_or_else(PoisonError::into_inner);
    sockets.push(Inherited {
        at: at.clone(),
        stream,
        fd,
    });
    Ok(at)
}

/// Clones of the socket for streams, or for datagrams, that was inherited for an address. Empty: none was.
///
/// # Errors
/// The system gives no more descriptors.
pub(crate) fn take(listen: &Listen, stream: bool, tasks: usize) -> io::Result<Vec<Taken>> {
    let sockets = SOCKETS.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(found) = sockets
        .iter()
        .find(|one| one.stream == stream && is_same(&one.at, listen))
    else {
        return Ok(Vec::new());
    };
    let clone = || found.fd.try_clone();
    match (&found.at, stream) {
        (Listen::Unix(..), _) => Ok(vec![Taken::Unix(UnixListener::from_std(clone()?.into())?)]),
        (_, true) => (0..tasks)
            .map(|_| Ok(Taken::Tcp(TcpListener::from_std(clone()?.into())?)))
            .collect(),
        (_, false) => Ok(vec![Taken::Udp(UdpSocket::from_std(clone()?.into())?)]),
    }
}

fn is_same(one: &Listen, other: &Listen) -> bool {
    match (one, other) {
        // The permissions are the service manager's.
        (Listen::Unix(one, _), Listen::Unix(other, _)) => one == other,
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::net::{TcpListener as Std, TcpStream, UdpSocket as StdUdp};

    use super::*;

    #[tokio::test]
    async fn an_address_takes_the_socket_that_was_inherited_for_it() {
        let held = Std::bind("127.0.0.1:0").unwrap();
        let at = Listen::Port(held.local_addr().unwrap());
        assert!(take(&at, true, 2).unwrap().is_empty());
        let client = TcpStream::connect(held.local_addr().unwrap()).unwrap();
        assert_eq!(inherit(held.into()).unwrap(), at);
        // Datagrams of the same port are another socket.
        assert!(take(&at, false, 1).unwrap().is_empty());
        for tasks in [2, 3] {
            // It can be taken again, by a later configuration.
            assert_eq!(take(&at, true, tasks).unwrap().len(), tasks);
        }
        let mut taken = take(&at, true, 1).unwrap();
        let Some(Taken::Tcp(listener)) = taken.pop() else {
            panic!()
        };
        // Who came before anybody took it is there.
        let (_, from) = listener.accept().await.unwrap();
        assert_eq!(from, client.local_addr().unwrap());
    }

    #[tokio::test]
    async fn every_kind_of_address() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let unix = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let at = inherit(unix.into()).unwrap();
        assert_eq!(at, Listen::Unix(UnixName::Path(path.clone()), None));
        let with_mode = Listen::Unix(UnixName::Path(path), Some(0o600));
        assert!(matches!(take(&with_mode, true, 4).unwrap()[..], [Taken::Unix(_)]));
        let udp = StdUdp::bind("127.0.0.1:0").unwrap();
        let at = inherit(udp.into()).unwrap();
        assert!(matches!(take(&at, false, 4).unwrap()[..], [Taken::Udp(_)]));
        if let Ok(every) = Std::bind("[::]:0") {
            let port = every.local_addr().unwrap().port();
            assert_eq!(inherit(every.into()).unwrap(), Listen::EveryAddress(port));
        }
    }

    #[test]
    fn what_is_no_listener_is_refused() {
        let listener = Std::bind("127.0.0.1:0").unwrap();
        let connection = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        assert!(
            inherit(connection.into())
                .unwrap_err()
                .to_string()
                .contains("Accept=no")
        );
        let (datagrams, _other) = std::os::unix::net::UnixDatagram::pair().unwrap();
        assert!(inherit(datagrams.into()).is_err());
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(inherit(file.into()).is_err());
    }
}
