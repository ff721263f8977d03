//! A port for one attempt, and the addresses of both ends.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::Addresses;
use crate::address;
use crate::relay;
use crate::{Error, dial};

/// Addresses of one end in one attempt.
const ADDRESSES: usize = 8;

/// Lower ports are those of services: the other end cannot have this one call them.
const MIN_PORT: u16 = 1024;

/// How long the relay may take to say how a port is seen.
const LOOKING: Duration = Duration::from_secs(3);

/// A port from which connections are dialled, and at which they come in.
pub(super) struct Port {
    domain: Domain,
    address: SocketAddr,
    pub(super) listener: Socket,
}

impl Port {
    /// A free one, of IPv6 and IPv4 where there is IPv6.
    fn open() -> io::Result<Self> {
        Self::of(Domain::IPV6, Ipv6Addr::UNSPECIFIED.into())
            .or_else(|_| Self::of(Domain::IPV4, Ipv4Addr::UNSPECIFIED.into()))
    }

    fn of(domain: Domain, any: IpAddr) -> io::Result<Self> {
        let listener = bound(domain, (any, 0).into())?;
        listener.listen(ADDRESSES as i32)?;
        let address = listener.local_addr()?.as_socket();
        let address = address.ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Self {
            domain,
            address,
            listener,
        })
    }

    pub(super) fn number(&self) -> u16 {
        self.address.port()
    }

    /// Begins to connect from this port. The socket does not block.
    pub(super) fn dial(&self, to: SocketAddr) -> io::Result<Socket> {
        let to = match (self.domain, to.ip()) {
            (Domain::IPV6, IpAddr::V4(v4)) => (v4.to_ipv6_mapped(), to.port()).into(),
            _ => to,
        };
        let socket = bound(self.domain, self.address)?;
        match socket.connect(&to.into()) {
            Ok(()) => Ok(socket),
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => Ok(socket),
            Err(error) => Err(error),
        }
    }

    /// As what address the relay sees this port.
    fn seen(&self, relay: &str, stop: &dyn Fn() -> bool) -> Result<SocketAddr, Error> {
        let begin = |address| self.dial(address);
        relay::seen(relay, &begin, LOOKING, stop)
    }
}

/// A socket of this port, which others of this program may have too.
fn bound(domain: Domain, address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?;
    if domain == Domain::IPV6 {
        socket.set_only_v6(false)?;
    }
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

/// A connection that has come up, blocking.
pub(super) fn connected(socket: Socket) -> io::Result<TcpStream> {
    if let Some(error) = socket.take_error()? {
        return Err(error);
    }
    socket.set_nonblocking(false)?;
    Ok(socket.into())
}

/// A port and where it may be reached.
pub(super) struct Gathered {
    pub(super) port: Port,
    /// What the other end is told.
    pub(super) said: Addresses,
}

impl Gathered {
    /// Opens a port and finds out.
    pub(super) fn gather(attempt: u32, relay: &str, stop: &dyn Fn() -> bool) -> Result<Self, Error> {
        let port = Port::open().map_err(Error::network("opening a port"))?;
        let seen = port.seen(relay, stop);
        if let Err(error) = &seen {
            tracing::debug!(%error, "the relay does not say how this end is seen");
        }
        let mut addresses: Vec<SocketAddr> = seen.into_iter().collect();
        for address in address::reachable(port.address) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        addresses.truncate(ADDRESSES);
        let said = Addresses { attempt, addresses };
        Ok(Self { port, said })
    }
}

/// The addresses of the other end that are dialled. It names them, so they are few, and none is of a service, of this machine or of
/// many.
pub(super) fn dialled(theirs: &[SocketAddr]) -> Vec<SocketAddr> {
    let mut dialled = Vec::new();
    for address in theirs.iter().take(ADDRESSES) {
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        if address.port() >= MIN_PORT && is_host(address.ip()) && !dialled.contains(&address) {
            dialled.push(address);
        }
    }
    dial::alternate(&dialled)
}

fn is_host(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => {
            !(v4.is_loopback() || v4.is_unspecified() || v4.is_multicast() || v4.is_broadcast() || v4.is_link_local())
        }
        IpAddr::V6(v6) => !(v6.is_loopback() || v6.is_unspecified() || v6.is_multicast() || v6.is_unicast_link_local()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(addresses: &[&str]) -> Vec<SocketAddr> {
        addresses.iter().map(|address| address.parse().unwrap()).collect()
    }

    #[test]
    fn addresses_of_hosts_are_dialled_and_no_others() {
        let mut good = told(&["198.51.100.7:4000", "[2001:db8::7]:4001", "10.0.0.7:65535"]);
        let mut now = dialled(&good);
        now.sort();
        good.sort();
        assert_eq!(now, good);
        for bad in [
            "127.0.0.1:4000",
            "[::1]:4000",
            "[::ffff:127.0.0.1]:4000",
            "0.0.0.0:4000",
            "224.0.0.251:5353",
            "255.255.255.255:4000",
            "169.254.169.254:4000",
            "[fe80::1]:4000",
            "[ff02::1]:4000",
            "10.0.0.1:22",
            "10.0.0.1:0",
        ] {
            assert_eq!(dialled(&told(&[bad])), [], "{bad}");
        }
    }

    #[test]
    fn one_address_is_dialled_once_and_many_are_cut() {
        assert_eq!(
            dialled(&told(&["198.51.100.7:4000", "[::ffff:198.51.100.7]:4000"])).len(),
            1
        );
        let many: Vec<SocketAddr> = (0..100).map(|host| ([198, 51, 100, host], 4000).into()).collect();
        assert_eq!(dialled(&many).len(), ADDRESSES);
    }

    #[test]
    fn a_port_listens_and_dials_at_once() {
        let (here, there) = (Port::open().unwrap(), Port::open().unwrap());
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, there.address.port()));
        let dialled = here.dial(to).unwrap();
        // Another one from the same port, to another address.
        let third = Port::open().unwrap();
        let _other = here.dial((Ipv4Addr::LOCALHOST, third.address.port()).into()).unwrap();
        let accepted = loop {
            match there.listener.accept() {
                Ok((_, from)) => break from.as_socket().unwrap(),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        };
        assert_eq!(accepted.port(), here.address.port());
        assert!(connected(dialled).is_ok());
    }
}
