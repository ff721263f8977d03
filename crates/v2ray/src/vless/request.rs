//! The request header.

use super::{Flow, VERSION};
use crate::address::{Network, read_port_first, write_port_first};
use crate::step::parse;
use crate::{Destination, Error, Protocol, Step, UserId};

/// What a client asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Command {
    /// A stream to, or datagrams for, this destination (commands 1 and 2).
    Connect(Destination),
    /// Many streams in one, by Mux.Cool (command 3).
    Mux,
    /// A reverse tunnel (command 4).
    Reverse,
}

/// A request header.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Request {
    /// The id as sent. Bytes 6 and 7 may differ from the account's: see [`super::Match::route`].
    pub id: UserId,
    /// The flow asked for.
    pub flow: Flow,
    /// The command.
    pub command: Command,
}

impl Request {
    /// Most bytes a header can take: an address of 255 bytes and addons of 255.
    pub const MAX_LEN: usize = 1 + 16 + 1 + 255 + 1 + 2 + 2 + 255;

    /// Reads a header from the front of `bytes`.
    ///
    /// # Errors
    /// [`Error::Field`] for another version, an unknown command or address type, [`Error::Flow`] for an unknown flow,
    /// [`Error::Malformed`] for addons that are no protobuf, and the errors of [`crate::Domain::new`].
    pub fn decode(bytes: &[u8]) -> Result<Step<Self>, Error> {
        parse(bytes, |cursor| {
            let version = cursor.u8()?;
            if version != VERSION {
                return Err(field("the version", version).into());
            }
            let id = UserId::from_bytes(cursor.array()?);
            let addons = cursor.u8()?;
            let flow = Flow::read_addons(cursor.take(usize::from(addons))?)?;
            let network = match cursor.u8()? {
                1 => Network::Tcp,
                2 => Network::Udp,
                3 => {
                    return Ok(Request {
                        id,
                        flow,
                        command: Command::Mux,
                    });
                }
                4 => {
                    let command = Command::Reverse;
                    return Ok(Request { id, flow, command });
                }
                got => return Err(field("the command", got).into()),
            };
            let (address, port) = read_port_first(cursor, Protocol::Vless)?;
            let command = Command::Connect(Destination { network, address, port });
            Ok(Request { id, flow, command })
        })
    }

    /// Appends the header to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(VERSION);
        out.extend_from_slice(self.id.as_bytes());
        self.flow.write_addons(out);
        match &self.command {
            Command::Connect(to) => {
                out.push(match to.network {
                    Network::Tcp => 1,
                    Network::Udp => 2,
                });
                write_port_first(&to.address, to.port, out);
            }
            Command::Mux => out.push(3),
            Command::Reverse => out.push(4),
        }
    }
}

/// Whether an account may make this request with this flow.
///
/// `request` is the flow in the request, `account` that of the account. An account with Vision may leave it out only for
/// UDP and, since what the mux carries shows only later, for Mux; the caller then lets such a mux carry datagrams only.
///
/// # Errors
/// [`Error::Flow`] with the reason.
pub fn check_flow(request: Flow, account: Flow, command: &Command) -> Result<(), Error> {
    let problem = match (request, account, command) {
        (Flow::Vision, Flow::None, _) => {
            "the client uses xtls-rprx-vision but its account does not; set it on both ends"
        }
        (Flow::Vision, Flow::Vision, Command::Connect(to)) if to.network == Network::Udp => {
            "xtls-rprx-vision does not carry UDP by itself"
        }
        (Flow::None, Flow::Vision, Command::Connect(to)) if to.network == Network::Tcp => {
            "the account demands xtls-rprx-vision but the client does not use it; set it on both ends"
        }
        _ => return Ok(()),
    };
    Err(Error::Flow { problem })
}

pub(super) fn field(field: &'static str, got: u8) -> Error {
    Protocol::Vless.field(field, u64::from(got))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Address;
    use crate::step::whole;

    fn all() -> Vec<Request> {
        let mut all = Vec::new();
        for flow in [Flow::None, Flow::Vision] {
            for host in ["192.0.2.1", "2001:db8::7", "example.com"] {
                let address = Address::parse(host).unwrap();
                all.push(Command::Connect(Destination::tcp(address.clone(), 443)));
                all.push(Command::Connect(Destination::udp(address, 53)));
            }
            all.extend([Command::Mux, Command::Reverse]);
            let _ = flow;
        }
        let id = UserId::parse("example").unwrap();
        let flows = [Flow::None, Flow::Vision];
        let half = all.len() / 2;
        all.into_iter()
            .enumerate()
            .map(|(i, command)| Request {
                id,
                flow: flows[i / half],
                command,
            })
            .collect()
    }

    #[test]
    fn every_boundary() {
        for request in all() {
            let mut bytes = Vec::new();
            request.encode(&mut bytes);
            assert!(bytes.len() <= Request::MAX_LEN);
            assert_eq!(whole(&bytes, Request::decode), request);
        }
    }

    #[test]
    fn the_bytes_of_one_request() {
        let request = Request {
            id: UserId::from_bytes([0x11; 16]),
            flow: Flow::None,
            command: Command::Connect(Destination::tcp(Address::parse("a.b").unwrap(), 443)),
        };
        let mut bytes = Vec::new();
        request.encode(&mut bytes);
        let mut want = vec![0];
        want.extend_from_slice(&[0x11; 16]);
        want.extend_from_slice(b"\x00\x01\x01\xbb\x02\x03a.b");
        assert_eq!(bytes, want);
    }

    #[test]
    fn wrong_fields_are_refused_at_once() {
        assert!(matches!(Request::decode(b"\x01"), Err(Error::Field { got: 1, .. })));
        let mut bytes = vec![0; 18];
        bytes.push(5);
        assert!(matches!(Request::decode(&bytes), Err(Error::Field { got: 5, .. })));
        bytes[18] = 1;
        bytes.extend_from_slice(&[0, 80, 4]);
        assert!(matches!(Request::decode(&bytes), Err(Error::Field { got: 4, .. })));
        // A domain of length zero.
        bytes.truncate(21);
        bytes.extend_from_slice(&[2, 0]);
        assert_eq!(Request::decode(&bytes), Err(Error::DomainLength { got: 0 }));
    }

    #[test]
    fn the_flow_table() {
        let to = Address::parse("a.example").unwrap();
        let tcp = Command::Connect(Destination::tcp(to.clone(), 1));
        let udp = Command::Connect(Destination::udp(to, 1));
        for (request, account, command, fine) in [
            (Flow::None, Flow::None, &tcp, true),
            (Flow::None, Flow::None, &udp, true),
            (Flow::None, Flow::None, &Command::Mux, true),
            (Flow::Vision, Flow::None, &tcp, false),
            (Flow::Vision, Flow::None, &udp, false),
            (Flow::Vision, Flow::None, &Command::Mux, false),
            (Flow::Vision, Flow::Vision, &tcp, true),
            (Flow::Vision, Flow::Vision, &udp, false),
            (Flow::Vision, Flow::Vision, &Command::Mux, true),
            (Flow::None, Flow::Vision, &tcp, false),
            (Flow::None, Flow::Vision, &udp, true),
            (Flow::None, Flow::Vision, &Command::Mux, true),
        ] {
            assert_eq!(
                check_flow(request, account, command).is_ok(),
                fine,
                "{request:?} {account:?} {command:?}"
            );
        }
    }
}
