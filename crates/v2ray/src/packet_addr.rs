//! packetaddr: datagrams with the address they go to or came from in front of each, so that one association serves all.
//!
//! ```text
//! datagram: 1 | IPv4 [4] | port u16 | payload      or      2 | IPv6 [16] | port u16 | payload
//! stream  : length u16 | datagram, again and again
//! ```

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use crate::step::{Cursor, Stop, parse};
use crate::{Destination, Error, Protocol, Step};

/// The target of an association whose datagrams have this form.
pub const DATAGRAM_HOST: &str = "sp.packet-addr.v2fly.arpa";
/// The target of a stream of such datagrams.
pub const STREAM_HOST: &str = "st.packet-addr.v2fly.arpa";
/// Most bytes in front of a payload, in a datagram.
pub const MAX_HEAD: usize = 1 + 16 + 2;

const IPV4: u8 = 1;
const IPV6: u8 = 2;

/// Whether a target stands for datagrams that name their own.
pub fn is_host(to: &Destination, host: &str) -> bool {
    let domain = to.address.domain();
    domain.is_some_and(|domain| domain.as_str().eq_ignore_ascii_case(host))
}

/// Reads the head of a datagram: whom it is for or from, and where its payload begins.
///
/// # Errors
/// [`Error::Malformed`] for one that is too short or names no address.
pub fn decode(datagram: &[u8]) -> Result<(SocketAddr, usize), Error> {
    let mut cursor = Cursor::new(datagram);
    match head(&mut cursor) {
        Ok(peer) => Ok((peer, cursor.position())),
        Err(Stop::Failed(error)) => Err(error),
        Err(Stop::More(_)) => Err(malformed("a datagram is shorter than its address")),
    }
}

/// Finds the datagram at the front of a stream of them: whom it is for or from, and where its payload stands.
///
/// # Errors
/// [`Error::Malformed`] for a length of 0, and for a datagram that is too short or names no address.
pub fn decode_stream(bytes: &[u8]) -> Result<Step<(SocketAddr, Range<usize>)>, Error> {
    parse(bytes, |cursor| {
        let len = usize::from(cursor.u16()?);
        if len == 0 {
            return Err(malformed("a datagram of a stream has the length 0").into());
        }
        let datagram = cursor.take(len)?;
        let (peer, at) = decode(datagram)?;
        Ok((peer, 2 + at..2 + len))
    })
}

/// Appends the head of a datagram.
pub fn push_head(out: &mut Vec<u8>, peer: SocketAddr) {
    match peer.ip().to_canonical() {
        IpAddr::V4(ip) => {
            out.push(IPV4);
            out.extend_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.push(IPV6);
            out.extend_from_slice(&ip.octets());
        }
    }
    out.extend_from_slice(&peer.port().to_be_bytes());
}

/// Appends a datagram to a stream of them.
///
/// # Errors
/// [`Error::DoesNotFit`] if it is longer than 65,535 bytes with its address.
pub fn push_stream(out: &mut Vec<u8>, peer: SocketAddr, payload: &[u8]) -> Result<(), Error> {
    let at = out.len();
    out.extend_from_slice(&[0, 0]);
    push_head(out, peer);
    let got = out.len() - at - 2 + payload.len();
    let Ok(len) = u16::try_from(got) else {
        out.truncate(at);
        return Err(Protocol::PacketAddr.does_not_fit("a datagram with its address", usize::from(u16::MAX), got));
    };
    out[at..at + 2].copy_from_slice(&len.to_be_bytes());
    out.extend_from_slice(payload);
    Ok(())
}

fn head(cursor: &mut Cursor<'_>) -> Result<SocketAddr, Stop> {
    let ip = match cursor.u8()? {
        IPV4 => IpAddr::from(cursor.array::<4>()?),
        IPV6 => IpAddr::from(cursor.array::<16>()?).to_canonical(),
        _ => return Err(malformed("a datagram has an address of no known type").into()),
    };
    Ok(SocketAddr::new(ip, cursor.u16()?))
}

fn malformed(problem: &'static str) -> Error {
    Protocol::PacketAddr.malformed(problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::whole;

    #[test]
    fn both_forms_round_trip_at_every_boundary() {
        for text in ["192.0.2.1:53", "[2001:db8::1]:443"] {
            let peer: SocketAddr = text.parse().unwrap();
            let mut datagram = Vec::new();
            push_head(&mut datagram, peer);
            let head = datagram.len();
            assert!(head <= MAX_HEAD);
            for n in 0..head {
                assert!(decode(&datagram[..n]).is_err());
            }
            datagram.extend_from_slice(b"payload");
            assert_eq!(decode(&datagram).unwrap(), (peer, head));
            let mut stream = Vec::new();
            push_stream(&mut stream, peer, b"payload").unwrap();
            assert_eq!(stream[2..], datagram);
            assert_eq!(whole(&stream, decode_stream), (peer, 2 + head..stream.len()));
        }
    }

    #[test]
    fn the_bytes_of_one_datagram() {
        let mut out = Vec::new();
        push_stream(&mut out, "1.2.3.4:258".parse().unwrap(), b"x").unwrap();
        assert_eq!(out, [0, 8, 1, 1, 2, 3, 4, 1, 2, b'x']);
    }

    #[test]
    fn what_is_no_datagram() {
        assert!(decode(&[]).is_err());
        assert!(decode(&[3, 1, 2, 3, 4, 0, 53]).is_err());
        assert!(decode_stream(&[0, 0]).is_err());
        assert!(decode_stream(&[0, 1, 1]).is_err());
        let long = vec![0; 65_535];
        let mut out = vec![9];
        assert!(push_stream(&mut out, "1.2.3.4:1".parse().unwrap(), &long).is_err());
        assert_eq!(out, [9]);
    }
}
