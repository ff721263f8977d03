//! Addresses in messages.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use super::control::Paths;
use crate::link::direct::Addresses;

impl From<&Addresses> for Paths {
    fn from(said: &Addresses) -> Self {
        Paths {
            attempt: said.attempt,
            addresses: said.addresses.iter().map(encode).collect(),
        }
    }
}

impl From<&Paths> for Addresses {
    /// What is no address is passed over.
    fn from(paths: &Paths) -> Self {
        Addresses {
            attempt: paths.attempt,
            addresses: paths.addresses.iter().filter_map(|bytes| decode(bytes)).collect(),
        }
    }
}

fn encode(address: &SocketAddr) -> Vec<u8> {
    let mapped = match address.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    [&mapped.octets()[..], &address.port().to_be_bytes()].concat()
}

fn decode(bytes: &[u8]) -> Option<SocketAddr> {
    let (ip, port) = bytes.split_first_chunk::<16>()?;
    let port = u16::from_be_bytes(port.try_into().ok()?);
    Some((Ipv6Addr::from(*ip).to_canonical(), port).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_the_bytes_of_the_reference_and_read_back() {
        let said = Addresses {
            attempt: 3,
            addresses: vec!["192.0.2.1:258".parse().unwrap(), "[2001:db8::1]:1".parse().unwrap()],
        };
        let mut paths = Paths::from(&said);
        let mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 1, 1, 2];
        assert_eq!(paths.addresses[0], mapped);
        paths.addresses.extend([vec![], vec![1; 17], vec![1; 19]]);
        assert_eq!(Addresses::from(&paths), said);
    }
}
