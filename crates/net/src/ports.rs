//! Ports for programs that must be told theirs before they start.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

use socket2::{Domain, Socket, Type};

/// The lowest port that is drawn.
const FIRST: u16 = 10_000;
/// Where Linux begins to give ports to connections, if it does not say.
const USUAL: u16 = 32_768;
/// How often is drawn before the system is asked for any port.
const TRIES: u64 = 1_000;

/// Ports that nobody holds, for TCP or for UDP, at any IPv4 address, each another one.
///
/// They lie below those that the system gives to connections (`net.ipv4.ip_local_port_range`), so what connects in the meantime takes
/// none of them away. Another program may still bind one before the caller does.
///
/// # Errors
/// What the system says, where it has no port left.
pub fn free<const N: usize>() -> io::Result<[u16; N]> {
    let chance = RandomState::new();
    let range = u64::from(given_from().saturating_sub(FIRST));
    let mut tried = 0..TRIES;
    let (mut drawn, mut ports) = (HashSet::new(), [0; N]);
    let mut held = Vec::new();
    for port in &mut ports {
        let below = tried.find_map(|number| {
            let port = FIRST + u16::try_from(chance.hash_one(number).checked_rem(range)?).ok()?;
            (drawn.insert(port) && hold(port).is_ok()).then_some(port)
        });
        *port = match below {
            Some(port) => port,
            None => {
                let socket = bound(Type::STREAM, 0)?;
                let port = socket.local_addr()?.as_socket().map_or(0, |address| address.port());
                held.push(socket);
                port
            }
        };
    }
    Ok(ports)
}

/// The first of the ports that the system gives to connections.
fn given_from() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_whitespace().next().and_then(|first| first.parse().ok());
    first.unwrap_or(USUAL)
}

/// Takes a port for both protocols, and gives it back.
fn hold(port: u16) -> io::Result<()> {
    bound(Type::STREAM, port)?;
    bound(Type::DGRAM, port).map(drop)
}

/// A socket with this port at every address, without a word to the system that others may have it too.
fn bound(kind: Type, port: u16) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, kind, None)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)).into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    #[test]
    fn ports_are_free_different_and_not_for_connections() {
        let ports = free::<64>().unwrap();
        assert_eq!(ports.iter().collect::<HashSet<_>>().len(), 64);
        let below = given_from();
        for port in ports {
            // A machine may give every port to connections.
            assert!(port >= FIRST && (port < below || below <= FIRST), "{port}");
        }
    }

    #[test]
    fn what_somebody_holds_is_not_free() {
        let [port] = free().unwrap();
        let udp = UdpSocket::bind(("127.0.0.1", port)).unwrap();
        assert!(hold(port).is_err());
        drop(udp);
        let tcp = TcpListener::bind(("127.0.0.1", port)).unwrap();
        assert!(hold(port).is_err());
        drop(tcp);
        assert!(hold(port).is_ok());
    }
}
