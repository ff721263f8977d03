//! The client's side, SOCKS 5.

use super::Command;
use crate::address::{read_type_first, write_type_first};
use crate::step::{Cursor, Stop, parse};
use crate::{Address, Error, Protocol, Step};

/// One connection to a server, as the client.
///
/// Send what [`Client::new`] gives, then call [`Client::handle`] with what comes until [`ClientEvent::Ready`].
#[derive(Debug)]
pub struct Client {
    login: Option<Vec<u8>>,
    request: Vec<u8>,
    state: State,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Method,
    Login,
    Reply,
    Over,
}

/// What is to be done.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ClientEvent {
    /// Send these bytes.
    Send(Vec<u8>),
    /// The server serves the request. What follows is payload.
    Ready {
        /// The address the server bound: where datagrams must go, or merely informative.
        address: Address,
        /// Its port.
        port: u16,
    },
}

impl Client {
    /// Begins a connection; the bytes are to be sent first. `login` is user name and password, if there are any.
    ///
    /// # Errors
    /// [`Error::DoesNotFit`] for a name or password of more than 255 bytes.
    pub fn new(command: &Command, login: Option<(&[u8], &[u8])>) -> Result<(Self, Vec<u8>), Error> {
        let mut request = vec![5];
        match command {
            Command::Connect(to) => {
                request.extend_from_slice(&[1, 0]);
                write_type_first(&to.address, to.port, &mut request);
            }
            Command::UdpAssociate(from) => {
                request.extend_from_slice(&[3, 0]);
                write_type_first(&from.address, from.port, &mut request);
            }
        }
        let login = match login {
            Some((user, password)) => {
                let mut bytes = vec![1];
                for (what, text) in [("the user name", user), ("the password", password)] {
                    let len =
                        u8::try_from(text.len()).map_err(|_| Protocol::Socks.does_not_fit(what, 255, text.len()))?;
                    bytes.push(len);
                    bytes.extend_from_slice(text);
                }
                Some(bytes)
            }
            None => None,
        };
        let greeting = if login.is_some() {
            vec![5, 2, 0, 2]
        } else {
            vec![5, 1, 0]
        };
        let client = Client {
            login,
            request,
            state: State::Method,
        };
        Ok((client, greeting))
    }

    /// Looks at the bytes that have come.
    ///
    /// # Errors
    /// [`Error::UnknownUser`] if the login is refused, [`Error::Refused`] if the request is, [`Error::Field`] and those of
    /// addresses if the server does not keep to the protocol.
    pub fn handle(&mut self, bytes: &[u8]) -> Result<Step<ClientEvent>, Error> {
        let refused = Protocol::Socks.unknown_user();
        let step = match self.state {
            State::Method => parse(bytes, |cursor| {
                expect(cursor, 5, "the version")?;
                match (cursor.u8()?, self.login.take()) {
                    (0, _) => Ok((State::Reply, ClientEvent::Send(std::mem::take(&mut self.request)))),
                    (2, Some(login)) => Ok((State::Login, ClientEvent::Send(login))),
                    (0xff, _) => Err(refused.into()),
                    (got, _) => Err(field("the way to log in", got).into()),
                }
            })?,
            State::Login => parse(bytes, |cursor| {
                expect(cursor, 1, "the version of the login")?;
                match cursor.u8()? {
                    0 => Ok((State::Reply, ClientEvent::Send(std::mem::take(&mut self.request)))),
                    _ => Err(refused.into()),
                }
            })?,
            State::Reply => parse(bytes, |cursor| {
                expect(cursor, 5, "the version of the reply")?;
                let [code, _reserved] = cursor.array()?;
                if code != 0 {
                    return Err(Error::Refused {
                        protocol: Protocol::Socks,
                        code: u16::from(code),
                    }
                    .into());
                }
                let (address, port) = read_type_first(cursor, Protocol::Socks)?;
                Ok((State::Over, ClientEvent::Ready { address, port }))
            })?,
            State::Over => {
                return Err(Error::OutOfOrder {
                    what: "the SOCKS client is done; what follows is payload",
                });
            }
        };
        Ok(step.map(|(state, event)| {
            self.state = state;
            event
        }))
    }
}

fn field(field: &'static str, got: u8) -> Error {
    Protocol::Socks.field(field, u64::from(got))
}

fn expect(cursor: &mut Cursor<'_>, want: u8, what: &'static str) -> Result<(), Stop> {
    match cursor.u8()? {
        got if got == want => Ok(()),
        got => Err(field(what, got).into()),
    }
}
