//! Addresses and destinations, and the two ways the family writes them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use crate::step::{Cursor, Stop};
use crate::{Error, Protocol};

/// A domain name as these protocols carry it: 1 to 255 bytes of ASCII letters, digits, `-`, `.` and `_`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Domain(Box<str>);

impl Domain {
    /// Most bytes a domain name may have: its length is one byte on the wire.
    pub const MAX_LEN: usize = 255;

    /// Checks a name.
    ///
    /// # Errors
    /// [`Error::DomainLength`] and [`Error::DomainByte`].
    pub fn new(name: &str) -> Result<Self, Error> {
        Self::check(name)?;
        Ok(Domain(name.into()))
    }

    /// Checks a name, and brings it into lower case.
    ///
    /// # Errors
    /// As [`Domain::new`].
    pub fn lower(name: &str) -> Result<Self, Error> {
        Self::check(name)?;
        Ok(Domain(name.to_ascii_lowercase().into()))
    }

    fn check(name: &str) -> Result<(), Error> {
        if name.is_empty() || name.len() > Self::MAX_LEN {
            return Err(Error::DomainLength { got: name.len() });
        }
        match name
            .bytes()
            .find(|b| !(b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_')))
        {
            Some(got) => Err(Error::DomainByte { got }),
            None => Ok(()),
        }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Domain {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a connection is to go, without the port.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Address {
    /// An IPv4 address.
    Ipv4(Ipv4Addr),
    /// An IPv6 address that is not an IPv4 address in disguise.
    Ipv6(Ipv6Addr),
    /// A domain name, not yet resolved.
    Domain(Domain),
}

impl Address {
    /// Reads the text of a host: an IP address, with or without brackets, or else a domain name.
    ///
    /// # Errors
    /// As [`Domain::new`].
    pub fn parse(text: &str) -> Result<Self, Error> {
        match Self::literal(text) {
            Some(address) => Ok(address),
            None => Domain::new(text).map(Address::Domain),
        }
    }

    /// The address a text stands for if it is an IP literal.
    fn literal(text: &str) -> Option<Self> {
        let bare = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
        bare.parse::<IpAddr>().ok().map(Address::from)
    }

    /// The IP address, unless it is a domain name.
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Address::Ipv4(ip) => Some(IpAddr::V4(*ip)),
            Address::Ipv6(ip) => Some(IpAddr::V6(*ip)),
            Address::Domain(_) => None,
        }
    }

    /// The domain name, unless it is an IP address.
    pub fn domain(&self) -> Option<&Domain> {
        match self {
            Address::Domain(domain) => Some(domain),
            _ => None,
        }
    }

    fn write(&self, types: AddressTypes, out: &mut Vec<u8>) {
        match self {
            Address::Ipv4(ip) => {
                out.push(types.ipv4);
                out.extend_from_slice(&ip.octets());
            }
            Address::Domain(domain) => {
                out.push(types.domain);
                // At most 255 by construction.
                out.push(domain.0.len() as u8);
                out.extend_from_slice(domain.0.as_bytes());
            }
            Address::Ipv6(ip) => {
                out.push(types.ipv6);
                out.extend_from_slice(&ip.octets());
            }
        }
    }

    fn read(cursor: &mut Cursor<'_>, protocol: Protocol, types: AddressTypes) -> Result<Self, Stop> {
        let got = cursor.u8()?;
        if got == types.ipv4 {
            Ok(Address::Ipv4(Ipv4Addr::from(cursor.array::<4>()?)))
        } else if got == types.ipv6 {
            Ok(Address::from(IpAddr::V6(Ipv6Addr::from(cursor.array::<16>()?))))
        } else if got == types.domain {
            let len = cursor.u8()?;
            if len == 0 {
                return Err(Error::DomainLength { got: 0 }.into());
            }
            let bytes = cursor.take(usize::from(len))?;
            Self::from_domain_bytes(bytes).map_err(Stop::Failed)
        } else {
            Err(protocol.field("the address type", u64::from(got)).into())
        }
    }

    /// What a domain field stands for: an IP literal in it becomes an address, as the peers do it.
    fn from_domain_bytes(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.first().is_some_and(|b| b.is_ascii_digit() || *b == b'[')
            && let Some(address) = std::str::from_utf8(bytes).ok().and_then(Self::literal)
        {
            return Ok(address);
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Domain::new(text).map(Address::Domain),
            Err(error) => Err(Error::DomainByte {
                got: bytes.get(error.valid_up_to()).copied().unwrap_or(0),
            }),
        }
    }
}

/// IPv6 addresses that only wrap an IPv4 address become that address.
impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(ip) => Address::Ipv4(ip),
            IpAddr::V6(ip) => Address::Ipv6(ip),
        }
    }
}

impl From<Domain> for Address {
    fn from(domain: Domain) -> Self {
        Address::Domain(domain)
    }
}

impl FromStr for Address {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::parse(text)
    }
}

impl fmt::Display for Address {
    /// IPv6 addresses stand without brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Ipv4(ip) => ip.fmt(f),
            Address::Ipv6(ip) => ip.fmt(f),
            Address::Domain(domain) => domain.fmt(f),
        }
    }
}

/// The two kinds of traffic.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Network {
    /// A stream.
    Tcp,
    /// Datagrams.
    Udp,
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Network::Tcp => "tcp",
            Network::Udp => "udp",
        })
    }
}

/// Where a connection or a datagram is to go.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Destination {
    /// Stream or datagrams.
    pub network: Network,
    /// The host.
    pub address: Address,
    /// The port.
    pub port: u16,
}

impl Destination {
    /// A destination of a stream.
    pub fn tcp(address: impl Into<Address>, port: u16) -> Self {
        Destination {
            network: Network::Tcp,
            address: address.into(),
            port,
        }
    }

    /// A destination of datagrams.
    pub fn udp(address: impl Into<Address>, port: u16) -> Self {
        Destination {
            network: Network::Udp,
            address: address.into(),
            port,
        }
    }

    /// The socket address, unless the host is a domain name.
    pub fn socket_addr(&self) -> Option<SocketAddr> {
        self.address.ip().map(|ip| SocketAddr::new(ip, self.port))
    }
}

impl fmt::Display for Destination {
    /// `tcp:example.com:443`, `udp:[2001:db8::1]:53`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Ipv6(ip) => write!(f, "{}:[{ip}]:{}", self.network, self.port),
            address => write!(f, "{}:{address}:{}", self.network, self.port),
        }
    }
}

/// The type bytes of an encoding.
#[derive(Clone, Copy)]
struct AddressTypes {
    ipv4: u8,
    domain: u8,
    ipv6: u8,
}

/// VLESS, VMess, Mux.Cool and XUDP.
const PORT_FIRST: AddressTypes = AddressTypes {
    ipv4: 1,
    domain: 2,
    ipv6: 3,
};

/// SOCKS5 (RFC 1928 section 5), Trojan, Shadowsocks.
const TYPE_FIRST: AddressTypes = AddressTypes {
    ipv4: 1,
    domain: 3,
    ipv6: 4,
};

/// Writes `port u16 | type | address` as VLESS and VMess have it.
pub fn write_port_first(address: &Address, port: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&port.to_be_bytes());
    address.write(PORT_FIRST, out);
}

pub(crate) fn read_port_first(cursor: &mut Cursor<'_>, protocol: Protocol) -> Result<(Address, u16), Stop> {
    let port = cursor.u16()?;
    Ok((Address::read(cursor, protocol, PORT_FIRST)?, port))
}

/// Writes `type | address | port u16` as SOCKS5 has it.
pub fn write_type_first(address: &Address, port: u16, out: &mut Vec<u8>) {
    address.write(TYPE_FIRST, out);
    out.extend_from_slice(&port.to_be_bytes());
}

pub(crate) fn read_type_first(cursor: &mut Cursor<'_>, protocol: Protocol) -> Result<(Address, u16), Stop> {
    let address = Address::read(cursor, protocol, TYPE_FIRST)?;
    Ok((address, cursor.u16()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Step;
    use crate::step::{parse, whole};

    fn port_first(bytes: &[u8]) -> Result<Step<(Address, u16)>, Error> {
        parse(bytes, |c| read_port_first(c, Protocol::Vless))
    }

    fn type_first(bytes: &[u8]) -> Result<Step<(Address, u16)>, Error> {
        parse(bytes, |c| read_type_first(c, Protocol::Socks))
    }

    #[test]
    fn both_encodings_round_trip_at_every_boundary() {
        for text in ["192.0.2.7", "2001:db8::1", "example.com", &"a".repeat(255)] {
            let address = Address::parse(text).unwrap();
            let (mut a, mut b) = (Vec::new(), Vec::new());
            write_port_first(&address, 443, &mut a);
            write_type_first(&address, 443, &mut b);
            assert_eq!(b.len(), a.len());
            assert_eq!(whole(&a, port_first), (address.clone(), 443));
            assert_eq!(whole(&b, type_first), (address, 443));
        }
    }

    #[test]
    fn the_two_encodings_are_not_each_other() {
        let mut out = Vec::new();
        write_port_first(&Address::parse("a.b").unwrap(), 0x1234, &mut out);
        assert_eq!(out, b"\x12\x34\x02\x03a.b");
        out.clear();
        write_type_first(&Address::parse("a.b").unwrap(), 0x1234, &mut out);
        assert_eq!(out, b"\x03\x03a.b\x12\x34");
        out.clear();
        write_type_first(&Address::parse("::1").unwrap(), 1, &mut out);
        assert_eq!(out[0], 4);
    }

    #[test]
    fn a_domain_that_is_a_literal_becomes_an_address() {
        let got = |text: &str| {
            let mut bytes = vec![3, text.len() as u8];
            bytes.extend_from_slice(text.as_bytes());
            bytes.extend_from_slice(&[0, 80]);
            type_first(&bytes).map(|s| s.done().unwrap().0)
        };
        assert_eq!(got("1.2.3.4").unwrap(), Address::Ipv4(Ipv4Addr::new(1, 2, 3, 4)));
        assert_eq!(got("[2001:db8::1]").unwrap(), Address::parse("2001:db8::1").unwrap());
        assert_eq!(got("2001:db8::1").unwrap(), Address::parse("2001:db8::1").unwrap());
        assert_eq!(
            got("[::ffff:1.2.3.4]").unwrap(),
            Address::Ipv4(Ipv4Addr::new(1, 2, 3, 4))
        );
        assert_eq!(got("1.2.3.4.example").unwrap().to_string(), "1.2.3.4.example");
        // Only a leading digit or bracket makes a literal, so this one is a name with a colon in it.
        assert_eq!(got("fe80::1"), Err(Error::DomainByte { got: b':' }));
        assert_eq!(got("a b"), Err(Error::DomainByte { got: b' ' }));
        assert_eq!(got("a/b"), Err(Error::DomainByte { got: b'/' }));
        assert_eq!(type_first(&[3, 0, 0, 80]), Err(Error::DomainLength { got: 0 }));
        assert_eq!(
            type_first(&[3, 2, b'a', 0xff, 0, 80]),
            Err(Error::DomainByte { got: 0xff })
        );
        assert!(matches!(type_first(&[2]), Err(Error::Field { got: 2, .. })));
    }

    /// A name of no length reached code that looked at its first byte.
    #[test]
    fn bug_domain_of_length_zero_is_refused() {
        assert_eq!(port_first(&[0, 80, 2, 0]), Err(Error::DomainLength { got: 0 }));
        assert_eq!(type_first(&[3, 0]), Err(Error::DomainLength { got: 0 }));
    }

    #[test]
    fn mapped_ipv6_collapses() {
        let mut bytes = vec![0, 80, 3];
        bytes.extend_from_slice(&Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped().octets());
        let address = port_first(&bytes).unwrap().done().unwrap().0;
        assert_eq!(address, Address::Ipv4(Ipv4Addr::new(192, 0, 2, 1)));
    }

    proptest! {
        #[test]
        fn any_address_comes_back(ip: [u8; 16], name in "[A-Za-z0-9._-]{1,255}", kind in 0..3u8, port: u16) {
            let address = match kind {
                0 => Address::from(IpAddr::from([ip[0], ip[1], ip[2], ip[3]])),
                1 => Address::from(IpAddr::from(ip)),
                _ => Address::parse(&name).unwrap(),
            };
            let (mut a, mut b) = (Vec::new(), Vec::new());
            write_port_first(&address, port, &mut a);
            write_type_first(&address, port, &mut b);
            prop_assert_eq!(port_first(&a).unwrap().done(), Some((address.clone(), port)));
            prop_assert_eq!(type_first(&b).unwrap().done(), Some((address, port)));
        }
    }

    #[test]
    fn destinations_read_well() {
        let to = |text| Destination::udp(Address::parse(text).unwrap(), 53).to_string();
        assert_eq!(to("example.com"), "udp:example.com:53");
        assert_eq!(to("[2001:db8::1]"), "udp:[2001:db8::1]:53");
    }
}
