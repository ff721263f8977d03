//! Datagrams inside a Trojan stream, in both directions: `type | address | port u16 | length u16 | CR LF | payload`.
//!
//! Each says where it goes or, towards the client, where it comes from.

use std::ops::Range;

use super::{CRLF, check_crlf};
use crate::address::{read_type_first, write_type_first};
use crate::step::{Stop, parse};
use crate::{Destination, Error, Protocol, Step};

/// Most bytes before a datagram.
pub const MAX_HEAD: usize = 2 + 255 + 2 + 2 + 2;

/// Longest datagram that is written. The protocol would have room for more, but the peers take what is longer for a fault
/// and end the association.
pub const MAX_WRITE: usize = 8192;

/// Appends what stands before a datagram of `len` bytes.
///
/// # Errors
/// [`Error::DoesNotFit`] above [`MAX_WRITE`].
pub fn write_head(peer: &Destination, len: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    match u16::try_from(len) {
        Ok(short) if len <= MAX_WRITE => {
            write_type_first(&peer.address, peer.port, out);
            out.extend_from_slice(&short.to_be_bytes());
            out.extend_from_slice(&CRLF);
            Ok(())
        }
        _ => Err(Protocol::Trojan.does_not_fit("a datagram", MAX_WRITE, len)),
    }
}

/// Finds the datagram at the front of `bytes`: where it goes or comes from, and the range of its payload. Any length up to
/// 65,535 is read.
///
/// # Errors
/// [`Error::Malformed`] without CR and LF behind the length, [`Error::Field`] for an unknown address type, and the errors of
/// [`crate::Domain::new`].
pub fn decode(bytes: &[u8]) -> Result<Step<(Destination, Range<usize>)>, Error> {
    parse(bytes, |cursor| {
        let (address, port) = read_type_first(cursor, Protocol::Trojan)?;
        let len = usize::from(cursor.u16()?);
        check_crlf(cursor.array()?, "no line ends behind the length of a datagram").map_err(Stop::Failed)?;
        let start = cursor.position();
        cursor.take(len)?;
        Ok((Destination::udp(address, port), start..start + len))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Address;
    use crate::step::whole;

    #[test]
    fn every_boundary() {
        for (host, len) in [
            ("192.0.2.1", 0),
            ("2001:db8::7", 1),
            ("a.b", 300),
            (&"a".repeat(255), MAX_WRITE),
        ] {
            let peer = Destination::udp(Address::parse(host).unwrap(), 53);
            let mut bytes = Vec::new();
            write_head(&peer, len, &mut bytes).unwrap();
            assert!(bytes.len() <= MAX_HEAD);
            let head = bytes.len();
            bytes.resize(head + len, 7);
            assert_eq!(whole(&bytes, decode), (peer, head..bytes.len()));
        }
    }

    #[test]
    fn the_bytes_of_one_datagram() {
        let mut bytes = Vec::new();
        write_head(&Destination::udp(Address::parse("a.b").unwrap(), 53), 2, &mut bytes).unwrap();
        assert_eq!(bytes, b"\x03\x03a.b\0\x35\0\x02\r\n");
    }

    #[test]
    fn longer_ones_are_read_and_not_written() {
        let peer = Destination::udp(Address::parse("192.0.2.1").unwrap(), 53);
        for len in [MAX_WRITE + 1, 65_535, 70_000] {
            let mut out = Vec::new();
            assert!(write_head(&peer, len, &mut out).is_err() && out.is_empty());
        }
        let mut bytes = b"\x01\xc0\0\x02\x01\0\x35\xff\xff\r\n".to_vec();
        bytes.resize(bytes.len() + 65_535, 1);
        let (_, payload) = decode(&bytes).unwrap().done().unwrap();
        assert_eq!(payload.len(), 65_535);
        assert!(matches!(
            decode(b"\x01\xc0\0\x02\x01\0\x35\0\x01\n\n"),
            Err(Error::Malformed { .. })
        ));
        assert!(matches!(decode(b"\x02"), Err(Error::Field { got: 2, .. })));
    }
}
