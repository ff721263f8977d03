//! Addresses as people write them, and those of this machine as they are told to others.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs, UdpSocket};

use nix::net::if_::InterfaceFlags;
use rustix::net::{AddressFamily, SocketType, netdevice, socket};

/// Why an address cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum AddressError {
    /// It is not of the form HOST:PORT.
    Form {
        /// What is wrong with it.
        why: &'static str,
    },
    /// The interface behind `%` is none of this machine.
    Interface {
        /// Its name.
        name: String,
        /// What the system says.
        source: io::Error,
    },
    /// The name could not be looked up.
    Lookup(io::Error),
}

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AddressError::Form { why } => f.write_str(why),
            AddressError::Interface { name, source } => write!(f, "no interface {name}: {source}"),
            AddressError::Lookup(error) => write!(f, "cannot look it up: {error}"),
        }
    }
}

impl StdError for AddressError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            AddressError::Form { .. } => None,
            AddressError::Interface { source, .. } => Some(source),
            AddressError::Lookup(error) => Some(error),
        }
    }
}

/// Host and port of `HOST:PORT`; an IPv6 address stands in brackets.
fn split(text: &str) -> Result<(&str, u16), AddressError> {
    let wrong = |why| AddressError::Form { why };
    let (host, port) = text.rsplit_once(':').ok_or(wrong("the port is missing"))?;
    let port = port
        .parse()
        .map_err(|_| wrong("what stands behind the last colon is no port"))?;
    match host.strip_prefix('[') {
        Some(inner) => match inner.strip_suffix(']') {
            Some(inner) => Ok((inner, port)),
            None => Err(wrong("a bracket is not closed")),
        },
        None if host.contains(':') => Err(wrong("an IPv6 address stands in brackets")),
        None if host.is_empty() => Err(wrong("the host is missing")),
        None => Ok((host, port)),
    }
}

/// The addresses of `HOST:PORT`: of a name, an IPv4 address, or an IPv6 address in brackets, which may name an interface of this
/// machine as in `[fe80::1%eth0]:4000`.
///
/// # Errors
/// [`AddressError`]; only that of a lookup may pass by itself.
pub fn resolve(text: &str) -> Result<Vec<SocketAddr>, AddressError> {
    let (host, port) = split(text)?;
    if let Some((address, interface)) = host.split_once('%') {
        let address: Ipv6Addr = address.parse().map_err(|_| AddressError::Form {
            why: "only an IPv6 address names an interface",
        })?;
        let scope = index(interface)?;
        return Ok(vec![SocketAddrV6::new(address, port, 0, scope).into()]);
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![(address, port).into()]);
    }
    let found = (host, port).to_socket_addrs().map_err(AddressError::Lookup)?;
    Ok(found.collect())
}

/// The number of an interface by its name, or of its number.
fn index(interface: &str) -> Result<u32, AddressError> {
    if let Ok(number) = interface.parse() {
        return Ok(number);
    }
    let found = socket(AddressFamily::INET6, SocketType::DGRAM, None)
        .or_else(|_| socket(AddressFamily::INET, SocketType::DGRAM, None))
        .and_then(|socket| netdevice::name_to_index(socket, interface));
    found.map_err(|errno| AddressError::Interface {
        name: interface.escape_debug().to_string(),
        source: errno.into(),
    })
}

/// Whether an address says itself that it is of this machine. What a name server answers says nothing.
pub fn is_this_machine(text: &str) -> bool {
    let host = split(text).map_or(text, |(host, _)| host);
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The addresses at which others may reach a port of this machine that listens at `listening`, the likely ones first: that which the
/// system would use itself for the way out, then the others, IPv4 before IPv6. Empty if there are none but its own.
pub fn reachable(listening: SocketAddr) -> Vec<SocketAddr> {
    if !listening.ip().is_unspecified() {
        return vec![listening];
    }
    let found = nix::ifaddrs::getifaddrs().into_iter().flatten();
    let live = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
    let of_interfaces = found.filter(|found| found.flags.contains(live)).filter_map(|found| {
        let storage = found.address?;
        let v4 = storage.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
        v4.or_else(|| storage.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
    });
    let way_out = [
        way_out(Ipv4Addr::UNSPECIFIED.into()),
        way_out(Ipv6Addr::UNSPECIFIED.into()),
    ];
    let ranked = rank(
        of_interfaces.collect(),
        &way_out.into_iter().flatten().collect::<Vec<_>>(),
    );
    ranked
        .into_iter()
        // A port at `0.0.0.0` hears no IPv6.
        .filter(|address| listening.is_ipv6() || address.is_ipv4())
        .map(|address| (address, listening.port()).into())
        .collect()
}

/// From which address the system would go out. No packet is sent: connecting a UDP socket only looks at the routes.
fn way_out(any: IpAddr) -> Option<IpAddr> {
    // Documentation addresses (RFC 5737, RFC 3849), to which every route but the default one is wrong.
    let target: SocketAddr = match any {
        IpAddr::V4(_) => (Ipv4Addr::new(192, 0, 2, 1), 9).into(),
        IpAddr::V6(_) => (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1), 9).into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(target).ok()?;
    Some(socket.local_addr().ok()?.ip())
}

/// Orders addresses by how likely others reach them. Leaves out those that nobody else can reach, and link-local ones, which mean
/// nothing without an interface of the other end.
fn rank(mut addresses: Vec<IpAddr>, way_out: &[IpAddr]) -> Vec<IpAddr> {
    let useless = |address: &IpAddr| match address {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_unspecified() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unspecified() || v6.is_unicast_link_local(),
    };
    addresses.extend(way_out);
    addresses.retain(|address| !useless(address));
    let class = |address: &IpAddr| match address {
        IpAddr::V4(_) if way_out.contains(address) => 0,
        IpAddr::V4(_) => 1,
        IpAddr::V6(_) if way_out.contains(address) => 2,
        IpAddr::V6(_) => 3,
    };
    addresses.sort_by_key(|address| (class(address), *address));
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        let one = |text: &str| resolve(text).unwrap()[0];
        assert_eq!(one("192.168.1.5:4000").to_string(), "192.168.1.5:4000");
        assert_eq!(one("[::1]:4000").to_string(), "[::1]:4000");
        let of_lo = one("[fe80::1%lo]:4000");
        let SocketAddr::V6(v6) = of_lo else { panic!("{of_lo}") };
        assert!(v6.scope_id() > 0 && v6.port() == 4000, "{v6}");
        assert_eq!(one(&format!("[fe80::1%{}]:4000", v6.scope_id())), of_lo);
        for (text, says) in [
            ("host", "port is missing"),
            ("host:port", "no port"),
            (":4000", "host is missing"),
            ("::1:4000", "in brackets"),
            ("[::1:4000", "not closed"),
            ("[fe80::1%no-such\u{1b}]:1", "no interface no-such\\u{1b}"),
            ("[host%lo]:1", "only an IPv6 address"),
        ] {
            let error = resolve(text).unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_of_this_machine_says_so_itself() {
        for text in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1", "LOCALHOST:1"] {
            assert!(is_this_machine(text), "{text}");
        }
        for text in [
            "0.0.0.0:1",
            "[::]:1",
            "localhost.example:1",
            "192.168.1.1:1",
            "[fe80::1%lo]:1",
        ] {
            assert!(!is_this_machine(text), "{text}");
        }
    }

    #[test]
    fn the_likely_address_comes_first() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let all = [
            "::1",
            "fe80::1",
            "2001:db8::7",
            "fd00::1",
            "127.0.0.1",
            "172.17.0.1",
            "192.168.1.20",
            "169.254.1.1",
        ];
        let ranked = rank(all.map(ip).to_vec(), &[ip("192.168.1.20"), ip("2001:db8::7")]);
        assert_eq!(ranked, ["192.168.1.20", "172.17.0.1", "2001:db8::7", "fd00::1"].map(ip));
        assert!(rank(vec![ip("127.0.0.1")], &[]).is_empty());
    }

    #[test]
    fn a_port_at_one_address_is_reached_there() {
        let at: SocketAddr = "192.168.1.20:4000".parse().unwrap();
        assert_eq!(reachable(at), [at]);
        let everywhere: SocketAddr = "0.0.0.0:4000".parse().unwrap();
        let found = reachable(everywhere);
        assert!(
            found.iter().all(|address| address.is_ipv4() && address.port() == 4000),
            "{found:?}"
        );
    }
}
