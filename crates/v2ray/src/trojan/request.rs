//! The request header.

use super::{CRLF, Key, check_crlf};
use crate::address::{Network, read_type_first, write_type_first};
use crate::step::parse;
use crate::{Destination, Error, Protocol, Step};

/// The command byte of streams.
const CONNECT: u8 = 1;
/// The command byte of datagrams.
const ASSOCIATE: u8 = 3;

/// A request header.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Request {
    /// Who asks.
    pub key: Key,
    /// Where the stream goes. Datagrams each have a destination of their own; what stands here is that of the first one, as
    /// a rule.
    pub to: Destination,
}

impl Request {
    /// Most bytes a header can take: an address of 255 bytes.
    pub const MAX_LEN: usize = Key::LEN + 2 + 1 + 2 + 255 + 2 + 2;

    /// Reads a header from the front of `bytes`. Any command but that of datagrams is taken for that of streams, as the
    /// peers do it.
    ///
    /// # Errors
    /// [`Error::Malformed`] without CR and LF behind the key or the address, [`Error::Field`] for an unknown address type,
    /// and the errors of [`crate::Domain::new`].
    pub fn decode(bytes: &[u8]) -> Result<Step<Self>, Error> {
        parse(bytes, |cursor| {
            let key = Key::from_bytes(cursor.array()?);
            check_crlf(cursor.array()?, "no line ends behind the key")?;
            let network = match cursor.u8()? {
                ASSOCIATE => Network::Udp,
                _ => Network::Tcp,
            };
            let (address, port) = read_type_first(cursor, Protocol::Trojan)?;
            check_crlf(cursor.array()?, "no line ends behind the address")?;
            let to = Destination { network, address, port };
            Ok(Request { key, to })
        })
    }

    /// Appends the header to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.key.as_bytes());
        out.extend_from_slice(&CRLF);
        out.push(match self.to.network {
            Network::Tcp => CONNECT,
            Network::Udp => ASSOCIATE,
        });
        write_type_first(&self.to.address, self.to.port, out);
        out.extend_from_slice(&CRLF);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Address;
    use crate::step::whole;

    #[test]
    fn every_boundary() {
        for host in ["192.0.2.1", "2001:db8::7", "example.com", &"a".repeat(255)] {
            for to in [Destination::tcp, Destination::udp] {
                let to = to(Address::parse(host).unwrap(), 443);
                let request = Request {
                    key: Key::of_password("password"),
                    to,
                };
                let mut bytes = Vec::new();
                request.encode(&mut bytes);
                assert!(bytes.len() <= Request::MAX_LEN);
                assert_eq!(whole(&bytes, Request::decode), request);
            }
        }
    }

    const HEAD: &[u8] = b"d63dc919e201d7bc4c825630d2cf25fdc93d4b2f0d46706d29038d01\r\n";

    #[test]
    fn the_bytes_of_one_request() {
        let mut request = Request {
            key: Key::of_password("password"),
            to: Destination::tcp(Address::parse("a.b").unwrap(), 443),
        };
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        assert_eq!(bytes, [HEAD, b"\x01\x03\x03a.b\x01\xbb\r\n"].concat());
        request.to.network = Network::Udp;
        bytes.clear();
        request.encode(&mut bytes);
        assert_eq!(bytes, [HEAD, b"\x03\x03\x03a.b\x01\xbb\r\n"].concat());
    }

    #[test]
    fn any_other_command_is_a_stream() {
        for command in (0..=255).filter(|command| *command != ASSOCIATE) {
            let bytes = [HEAD, &[command], b"\x01\x7f\0\0\x01\0\x50\r\n"].concat();
            let request = Request::decode(&bytes).unwrap().done().unwrap();
            assert_eq!(request.to.to_string(), "tcp:127.0.0.1:80", "{command}");
        }
    }

    #[test]
    fn what_is_wrong_is_refused_at_once() {
        let with = |rest: &[u8]| Request::decode(&[HEAD, rest].concat());
        assert!(matches!(with(b"\x01\x02"), Err(Error::Field { got: 2, .. })));
        assert_eq!(with(b"\x01\x03\0"), Err(Error::DomainLength { got: 0 }));
        assert!(matches!(
            with(b"\x01\x01\x7f\0\0\x01\0\x50\n\n"),
            Err(Error::Malformed { .. })
        ));
        let mut bytes = HEAD.to_vec();
        bytes[57] = b' ';
        assert!(matches!(Request::decode(&bytes), Err(Error::Malformed { .. })));
    }
}
