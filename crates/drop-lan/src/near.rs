//! Which of the addresses that somebody announces are dialled.
//!
//! An announcement comes from the same link, so only what is on a link of this machine can be meant: nobody is led to dial hosts
//! elsewhere. Ports below 1024 are those of other services.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};

use nix::ifaddrs::InterfaceAddress;
use nix::net::if_::InterfaceFlags;

/// Most addresses of one end that are dialled.
const MAX_ADDRESSES: usize = 8;
/// Lowest port that is dialled.
const MIN_PORT: u16 = 1024;

/// A network that this machine has an interface in.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Network {
    V4 { address: u32, mask: u32 },
    V6 { address: u128, mask: u128 },
}

impl Network {
    pub(crate) fn has(&self, ip: IpAddr) -> bool {
        match (self, ip) {
            (Network::V4 { address, mask }, IpAddr::V4(ip)) => ip.to_bits() & mask == address & mask,
            (Network::V6 { address, mask }, IpAddr::V6(ip)) => ip.to_bits() & mask == address & mask,
            _ => false,
        }
    }
}

/// The networks of all interfaces that are up, but for loopback.
pub(crate) fn networks() -> Vec<Network> {
    let found = nix::ifaddrs::getifaddrs().into_iter().flatten();
    let up = found
        .filter(|one| one.flags.contains(InterfaceFlags::IFF_UP) && !one.flags.contains(InterfaceFlags::IFF_LOOPBACK));
    up.filter_map(|one| network(&one)).collect()
}

/// The network that one address of an interface is in.
pub(crate) fn network(one: &InterfaceAddress) -> Option<Network> {
    let (address, mask) = (one.address?, one.netmask?);
    if let (Some(address), Some(mask)) = (address.as_sockaddr_in(), mask.as_sockaddr_in()) {
        let (address, mask) = (address.ip().to_bits(), mask.ip().to_bits());
        return Some(Network::V4 { address, mask });
    }
    let (address, mask) = (address.as_sockaddr_in6()?.ip(), mask.as_sockaddr_in6()?.ip());
    Some(Network::V6 {
        address: address.to_bits(),
        mask: mask.to_bits(),
    })
}

/// What is dialled of these addresses, each with the number of the interface that it was heard on, the likely ones first.
pub(crate) fn dialled(announced: impl IntoIterator<Item = (IpAddr, u32)>, port: u16) -> Vec<SocketAddr> {
    among(&networks(), announced, port)
}

fn among(networks: &[Network], announced: impl IntoIterator<Item = (IpAddr, u32)>, port: u16) -> Vec<SocketAddr> {
    if port < MIN_PORT {
        return Vec::new();
    }
    let near = announced.into_iter().filter_map(|(ip, interface)| match ip {
        IpAddr::V4(v4) if is_host(v4) && networks.iter().any(|network| network.has(ip)) => Some((ip, port).into()),
        IpAddr::V6(v6) if v6.is_unicast_link_local() => {
            (interface != 0).then(|| SocketAddrV6::new(v6, port, 0, interface).into())
        }
        IpAddr::V6(v6) if is_host_v6(v6) && networks.iter().any(|network| network.has(ip)) => Some((ip, port).into()),
        _ => None,
    });
    in_order(near.collect())
}

/// The likely ones first, each once, and not too many.
pub(crate) fn in_order(mut near: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let is_local = |address: &SocketAddr| matches!(address, SocketAddr::V6(v6) if v6.ip().is_unicast_link_local());
    near.sort_by_key(|address| (is_local(address), address.is_ipv6(), *address));
    near.dedup();
    near.truncate(MAX_ADDRESSES);
    near
}

fn is_host(v4: Ipv4Addr) -> bool {
    !(v4.is_loopback() || v4.is_unspecified() || v4.is_multicast() || v4.is_broadcast())
}

fn is_host_v6(v6: Ipv6Addr) -> bool {
    !(v6.is_loopback() || v6.is_unspecified() || v6.is_multicast() || v6.to_ipv4_mapped().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(address: [u8; 4], len: u32) -> Network {
        Network::V4 {
            address: u32::from_be_bytes(address),
            mask: u32::MAX << (32 - len),
        }
    }

    #[test]
    fn only_what_is_on_a_link_of_this_machine_is_dialled() {
        let v6 = Network::V6 {
            address: "2001:db8:1::7".parse::<Ipv6Addr>().unwrap().to_bits(),
            mask: u128::MAX << 64,
        };
        let networks = [v4([192, 168, 1, 7], 24), v6];
        for (ip, interface, dialled) in [
            ("192.168.1.5", 2, Some("192.168.1.5:4000")),
            ("192.168.2.5", 2, None),
            ("8.8.8.8", 2, None),
            ("127.0.0.1", 1, None),
            ("0.0.0.0", 2, None),
            ("224.0.0.251", 2, None),
            ("2001:db8:1::5", 0, Some("[2001:db8:1::5]:4000")),
            ("2001:db8:2::5", 2, None),
            ("fe80::5", 3, Some("[fe80::5%3]:4000")),
            ("fe80::5", 0, None),
            ("::1", 1, None),
            ("::ffff:192.168.1.5", 2, None),
            ("ff02::fb", 2, None),
        ] {
            let found = among(&networks, [(ip.parse().unwrap(), interface)], 4000);
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found, Vec::from_iter(dialled), "{ip}");
        }
        // Ports of other services.
        for port in [0, 22, 1023] {
            assert!(among(&networks, [("192.168.1.5".parse().unwrap(), 2)], port).is_empty());
        }
        assert!(among(&[], [("192.168.1.5".parse().unwrap(), 2)], 4000).is_empty());
    }

    #[test]
    fn the_likely_ones_come_first_and_many_are_cut() {
        let networks = [v4([10, 0, 0, 1], 8)];
        let mut all: Vec<(IpAddr, u32)> = (0..100).map(|n| (Ipv4Addr::new(10, 0, n, 1).into(), 1)).collect();
        all.insert(0, ("fe80::1".parse().unwrap(), 2));
        all.push(all[5]);
        let found = among(&networks, all, 4000);
        assert_eq!(found.len(), MAX_ADDRESSES);
        assert!(found.iter().all(SocketAddr::is_ipv4));
        let two = [("fe80::1".parse().unwrap(), 2), ("10.0.0.9".parse().unwrap(), 2)];
        assert!(among(&networks, two, 4000)[0].is_ipv4());
    }
}
