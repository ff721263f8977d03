//! The PROXY protocol, versions 1 and 2: who the client really is, said before anything else.
//!
//! (The specification is `proxy-protocol.txt` of HAProxy.)

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::step::{Cursor, Stop, parse};
use crate::{Error, Protocol, Step};

/// Longest line of version 1, with its end.
pub const MAX_V1: usize = 107;
/// Longest header of version 2 that is accepted, with its extensions.
pub const MAX_V2: usize = 4096;

const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// The two ends of the connection that is spoken of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Endpoints {
    /// The client.
    pub source: SocketAddr,
    /// The address the client connected to.
    pub destination: SocketAddr,
}

/// The versions of the header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Version {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// Appends a header. `None` says that the ends are not known, or are no IP addresses.
///
/// If one end is IPv4 and the other IPv6, both are written as IPv6.
pub fn encode(version: Version, ends: Option<Endpoints>, out: &mut Vec<u8>) {
    let ends = ends.map(|ends| (ends.source, ends.destination));
    match (version, ends) {
        (Version::V1, None) => out.extend_from_slice(b"PROXY UNKNOWN\r\n"),
        (Version::V2, None) => {
            out.extend_from_slice(SIGNATURE);
            out.extend_from_slice(&[0x20, 0, 0, 0]);
        }
        (Version::V1, Some((from, to))) => {
            let line = match (from.ip().to_canonical(), to.ip().to_canonical()) {
                (IpAddr::V4(a), IpAddr::V4(b)) => format!("PROXY TCP4 {a} {b} {} {}\r\n", from.port(), to.port()),
                (a, b) => {
                    let (a, b) = (wide(a), wide(b));
                    format!("PROXY TCP6 {a} {b} {} {}\r\n", from.port(), to.port())
                }
            };
            out.extend_from_slice(line.as_bytes());
        }
        (Version::V2, Some((from, to))) => {
            out.extend_from_slice(SIGNATURE);
            match (from.ip().to_canonical(), to.ip().to_canonical()) {
                (IpAddr::V4(a), IpAddr::V4(b)) => {
                    out.extend_from_slice(&[0x21, 0x11, 0, 12]);
                    out.extend_from_slice(&a.octets());
                    out.extend_from_slice(&b.octets());
                }
                (a, b) => {
                    out.extend_from_slice(&[0x21, 0x21, 0, 36]);
                    out.extend_from_slice(&wide(a).octets());
                    out.extend_from_slice(&wide(b).octets());
                }
            }
            out.extend_from_slice(&from.port().to_be_bytes());
            out.extend_from_slice(&to.port().to_be_bytes());
        }
    }
}

fn wide(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

/// Reads a header of either version. `None` means that the addresses of the connection itself stand: `UNKNOWN`, `LOCAL`, or
/// a kind of address that is none of TCP over IP.
///
/// # Errors
/// [`Error::Malformed`], [`Error::Field`] and [`Error::TooLong`]: close, for the header is required where it is expected.
pub fn decode(bytes: &[u8]) -> Result<Step<Option<Endpoints>>, Error> {
    match bytes.first() {
        None => Ok(Step::More(1)),
        Some(b'P') => decode_v1(bytes),
        Some(_) => parse(bytes, decode_v2),
    }
}

fn malformed(problem: &'static str) -> Error {
    Protocol::ProxyProtocol.malformed(problem)
}

fn decode_v1(bytes: &[u8]) -> Result<Step<Option<Endpoints>>, Error> {
    let start = b"PROXY ";
    if bytes.iter().zip(start).any(|(a, b)| a != b) {
        return Err(malformed("the line does not begin with PROXY"));
    }
    let window = &bytes[..bytes.len().min(MAX_V1)];
    let Some(end) = window.windows(2).position(|pair| pair == b"\r\n") else {
        if window.len() == MAX_V1 {
            return Err(Protocol::ProxyProtocol.too_long("the line", MAX_V1));
        }
        return Ok(Step::More(1));
    };
    let line = std::str::from_utf8(&bytes[..end]).map_err(|_| malformed("the line is not ASCII"))?;
    let mut words = line.split(' ').skip(1);
    let kind = words.next().unwrap_or_default();
    let value = match kind {
        // What follows UNKNOWN is to be ignored.
        "UNKNOWN" => None,
        "TCP4" | "TCP6" => {
            let mut word = || words.next().ok_or(malformed("the line ends early"));
            let (from, to, from_port, to_port) = (word()?, word()?, word()?, word()?);
            if words.next().is_some() {
                return Err(malformed("the line has too many words"));
            }
            let ip = |text: &str| -> Result<IpAddr, Error> {
                let wrong = |_| malformed("an address is wrong");
                if kind == "TCP4" {
                    text.parse::<Ipv4Addr>().map(IpAddr::V4).map_err(wrong)
                } else {
                    text.parse::<Ipv6Addr>().map(IpAddr::V6).map_err(wrong)
                }
            };
            let port = |text: &str| match text.bytes().all(|b| b.is_ascii_digit()) {
                true => text.parse::<u16>().map_err(|_| malformed("a port is wrong")),
                false => Err(malformed("a port is wrong")),
            };
            Some(ends(ip(from)?, port(from_port)?, ip(to)?, port(to_port)?))
        }
        _ => return Err(malformed("the line names neither TCP4, TCP6 nor UNKNOWN")),
    };
    let used = end + 2;
    Ok(Step::Done { value, used })
}

fn ends(from: IpAddr, from_port: u16, to: IpAddr, to_port: u16) -> Endpoints {
    Endpoints {
        source: SocketAddr::new(from.to_canonical(), from_port),
        destination: SocketAddr::new(to.to_canonical(), to_port),
    }
}

fn decode_v2(cursor: &mut Cursor<'_>) -> Result<Option<Endpoints>, Stop> {
    // A wrong first byte is told at once: who does not speak this protocol would else be waited for.
    let rest = cursor.rest();
    if rest.iter().zip(SIGNATURE).any(|(a, b)| a != b) {
        return Err(malformed("there is no PROXY header").into());
    }
    cursor.take(SIGNATURE.len())?;
    let [command, family] = cursor.array()?;
    let field = |field, got| Protocol::ProxyProtocol.field(field, u64::from(got));
    if !matches!(command, 0x20 | 0x21) {
        return Err(field("the version and command", command).into());
    }
    let len = usize::from(cursor.u16()?);
    if len > MAX_V2 - 16 {
        return Err(Protocol::ProxyProtocol.too_long("the header", MAX_V2).into());
    }
    let mut body = Cursor::new(cursor.take(len)?);
    if command == 0x20 {
        return Ok(None);
    }
    let short = |_| malformed("the header is too short for its addresses");
    match family {
        0x11 => {
            let [from, to]: [[u8; 4]; 2] = [body.array().map_err(short)?, body.array().map_err(short)?];
            let [a, b] = [body.u16().map_err(short)?, body.u16().map_err(short)?];
            Ok(Some(ends(IpAddr::from(from), a, IpAddr::from(to), b)))
        }
        0x21 => {
            let [from, to]: [[u8; 16]; 2] = [body.array().map_err(short)?, body.array().map_err(short)?];
            let [a, b] = [body.u16().map_err(short)?, body.u16().map_err(short)?];
            Ok(Some(ends(IpAddr::from(from), a, IpAddr::from(to), b)))
        }
        // Unspecified, datagrams, unix sockets: valid, and of no use to us.
        0x00 | 0x12 | 0x22 | 0x31 | 0x32 => Ok(None),
        got => Err(field("the address family", got).into()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::step::whole;

    fn ends_of(a: &str, b: &str) -> Option<Endpoints> {
        Some(Endpoints {
            source: a.parse().unwrap(),
            destination: b.parse().unwrap(),
        })
    }

    #[test]
    fn every_boundary_of_every_kind() {
        for ends in [
            ends_of("192.0.2.1:56324", "198.51.100.2:443"),
            ends_of("[2001:db8::1]:1", "[2001:db8::2]:65535"),
            None,
        ] {
            for version in [Version::V1, Version::V2] {
                let mut bytes = Vec::new();
                encode(version, ends, &mut bytes);
                assert_eq!(whole(&bytes, decode), ends);
            }
        }
    }

    #[test]
    fn the_bytes() {
        let ends = ends_of("192.0.2.1:56324", "198.51.100.2:443");
        let mut out = Vec::new();
        encode(Version::V1, ends, &mut out);
        assert_eq!(out, b"PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n");
        out.clear();
        encode(Version::V2, ends, &mut out);
        assert_eq!(
            out,
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x01\xc6\x33\x64\x02\xdc\x04\x01\xbb"
        );
        out.clear();
        encode(Version::V1, ends_of("192.0.2.1:1", "[2001:db8::2]:2"), &mut out);
        assert_eq!(out, b"PROXY TCP6 ::ffff:192.0.2.1 2001:db8::2 1 2\r\n");
    }

    #[test]
    fn extensions_are_skipped_and_bounded() {
        let mut bytes = SIGNATURE.to_vec();
        bytes.extend_from_slice(b"\x21\x11\x00\x13\xc0\x00\x02\x01\xc6\x33\x64\x02\xdc\x04\x01\xbb\x04\x00\x04abcd");
        let used = bytes.len();
        let value = ends_of("192.0.2.1:56324", "198.51.100.2:443");
        assert_eq!(decode(&bytes), Ok(Step::Done { value, used }));
        let mut long = SIGNATURE.to_vec();
        long.extend_from_slice(b"\x21\x11\x10\x00");
        assert!(matches!(decode(&long), Err(Error::TooLong { .. })));
    }

    #[test]
    fn wrong_headers() {
        for bytes in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"PROXZ",
            b"PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n",
            b"PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
            b"PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n",
            b"PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
            b"PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n",
            b"PROXY TCP4 ::1 ::2 1 2\r\n",
            b"PROXY TCP4  1.2.3.4 1.2.3.4 1 2\r\n",
            b"\x16\x03\x01",
            b"\r\n\r\n\0\r\nQUIT\n\x31\x11\x00\x00",
            b"\r\n\r\n\0\r\nQUIT\n\x22\x11\x00\x00",
            b"\r\n\r\n\0\r\nQUIT\n\x21\x99\x00\x00",
            b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x04abcd",
        ] {
            assert!(decode(bytes).is_err(), "{:?}", String::from_utf8_lossy(bytes));
        }
        let endless = [b"PROXY UNKNOWN ".as_slice(), &[b'x'; 200]].concat();
        assert!(matches!(decode(&endless[..106]), Ok(Step::More(_))));
        assert!(matches!(decode(&endless[..107]), Err(Error::TooLong { .. })));
    }

    proptest! {
        #[test]
        fn any_ends_come_back(a: [u8; 16], b: [u8; 16], p: u16, q: u16, four: bool, two: bool) {
            let ip = |bytes: [u8; 16]| if four {
                IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]])
            } else {
                IpAddr::from(bytes).to_canonical()
            };
            let ends = Endpoints { source: SocketAddr::new(ip(a), p), destination: SocketAddr::new(ip(b), q) };
            let mut out = Vec::new();
            encode(if two { Version::V2 } else { Version::V1 }, Some(ends), &mut out);
            let used = out.len();
            prop_assert_eq!(decode(&out), Ok(Step::Done { value: Some(ends), used }));
        }
    }
}
