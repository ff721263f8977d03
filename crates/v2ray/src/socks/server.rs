//! The server's side.

use std::net::{Ipv4Addr, SocketAddr};

use super::{Command, Reply, Version};
use crate::address::read_type_first;
use crate::step::{Cursor, Stop, parse};
use crate::{Address, Destination, Domain, Error, Protocol, Step};

/// Longest user id of SOCKS 4, bytes.
const MAX_USER_ID: usize = 255;
const NO_AUTH: u8 = 0;
const PASSWORD: u8 = 2;
const NONE_ACCEPTABLE: u8 = 0xff;

/// One connection, as the server.
///
/// Call [`Server::handle`] with what has come and not been used, act on the event, and call it again with what is left,
/// until [`Event::Request`] or [`Event::Refuse`].
#[derive(Debug)]
pub struct Server {
    password: bool,
    udp: bool,
    state: State,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Greeting,
    Login,
    AwaitingVerdict,
    Request,
    Over,
}

/// What is to be done.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// Send these bytes.
    Send(Vec<u8>),
    /// The client names itself: check it and call [`Server::login`].
    Login {
        /// User name.
        user: Vec<u8>,
        /// Password.
        password: Vec<u8>,
    },
    /// The client's wish: serve it, and answer with [`Reply::encode`] in its version. What follows is payload.
    Request {
        /// The command.
        command: Command,
        /// The version to answer in.
        version: Version,
    },
    /// Send these bytes and close.
    Refuse {
        /// The bytes.
        reply: Vec<u8>,
        /// Why, for the log.
        error: Error,
    },
}

impl Server {
    /// Most bytes that one step can need: user name and password.
    pub const MAX_LEN: usize = 3 + 255 + 255;

    /// A connection that has just begun. `password`: whether clients must log in, which SOCKS 4 cannot; `udp`: whether
    /// datagrams may be relayed.
    pub fn new(password: bool, udp: bool) -> Self {
        Server {
            password,
            udp,
            state: State::Greeting,
        }
    }

    /// Whether a connection that begins with this byte speaks SOCKS. Anything else is taken for HTTP on a mixed port.
    pub fn speaks(first: u8) -> bool {
        matches!(first, 4 | 5)
    }

    /// Looks at the bytes that have come.
    ///
    /// # Errors
    /// [`Error::Field`], [`Error::Malformed`] and those of addresses, where there is nothing to answer: close.
    /// [`Error::OutOfOrder`] if called after the last event or before [`Server::login`].
    pub fn handle(&mut self, bytes: &[u8]) -> Result<Step<Event>, Error> {
        let step = match self.state {
            State::Greeting => match bytes.first() {
                None => return Ok(Step::More(1)),
                Some(4) if !self.password => parse(bytes, request_v4)?,
                Some(4) => {
                    self.state = State::Over;
                    let reply = Reply::Failure.encode(Version::V4, unspecified());
                    let error = malformed("SOCKS 4 cannot log in, and a password is required");
                    let value = Event::Refuse { reply, error };
                    return Ok(Step::Done { value, used: 1 });
                }
                Some(_) => return self.greeting(bytes),
            },
            State::Login => parse(bytes, login)?,
            State::Request => parse(bytes, |cursor| self.request_v5(cursor))?,
            State::AwaitingVerdict | State::Over => {
                return Err(Error::OutOfOrder {
                    what: "the SOCKS server has nothing to read now",
                });
            }
        };
        if let Step::Done { value, .. } = &step {
            self.state = match value {
                Event::Login { .. } => State::AwaitingVerdict,
                _ => State::Over,
            };
        }
        Ok(step)
    }

    fn greeting(&mut self, bytes: &[u8]) -> Result<Step<Event>, Error> {
        let want = if self.password { PASSWORD } else { NO_AUTH };
        let step = parse(bytes, |cursor| {
            version(cursor, 5, "the version")?;
            let methods = cursor.u8()?;
            Ok(cursor.take(usize::from(methods))?.contains(&want))
        })?;
        Ok(step.map(|acceptable| {
            if acceptable {
                self.state = if self.password { State::Login } else { State::Request };
                return Event::Send(vec![5, want]);
            }
            self.state = State::Over;
            Event::Refuse {
                reply: vec![5, NONE_ACCEPTABLE],
                error: malformed("the client offers no way to log in that we accept"),
            }
        }))
    }

    /// Says whether the login was right, and returns the bytes to send. Close after sending if it was not.
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] unless the last event was [`Event::Login`].
    pub fn login(&mut self, right: bool) -> Result<[u8; 2], Error> {
        if self.state != State::AwaitingVerdict {
            return Err(Error::OutOfOrder {
                what: "no SOCKS login is waiting for an answer",
            });
        }
        if right {
            self.state = State::Request;
            Ok([1, 0])
        } else {
            self.state = State::Over;
            Ok([1, 0xff])
        }
    }

    fn request_v5(&self, cursor: &mut Cursor<'_>) -> Result<Event, Stop> {
        version(cursor, 5, "the version of the request")?;
        let [command, _reserved] = cursor.array()?;
        let (address, port) = match read_type_first(cursor, Protocol::Socks) {
            Ok(read) => read,
            Err(Stop::Failed(
                error @ Error::Field {
                    field: "the address type",
                    ..
                },
            )) => {
                return Ok(Event::Refuse {
                    reply: Reply::AddressNotSupported.encode(Version::V5, unspecified()),
                    error,
                });
            }
            Err(other) => return Err(other),
        };
        let command = match command {
            1 => Command::Connect(Destination::tcp(address, port)),
            3 if self.udp => Command::UdpAssociate(Destination::udp(address, port)),
            got => {
                return Ok(Event::Refuse {
                    reply: Reply::CommandNotSupported.encode(Version::V5, unspecified()),
                    error: field("the command", got),
                });
            }
        };
        Ok(Event::Request {
            command,
            version: Version::V5,
        })
    }
}

fn unspecified() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))
}

fn malformed(problem: &'static str) -> Error {
    Protocol::Socks.malformed(problem)
}

fn field(field: &'static str, got: u8) -> Error {
    Protocol::Socks.field(field, u64::from(got))
}

fn version(cursor: &mut Cursor<'_>, want: u8, what: &'static str) -> Result<(), Stop> {
    match cursor.u8()? {
        got if got == want => Ok(()),
        got => Err(field(what, got).into()),
    }
}

fn login(cursor: &mut Cursor<'_>) -> Result<Event, Stop> {
    version(cursor, 1, "the version of the login")?;
    let len = cursor.u8()?;
    let user = cursor.take(usize::from(len))?.to_vec();
    let len = cursor.u8()?;
    let password = cursor.take(usize::from(len))?.to_vec();
    Ok(Event::Login { user, password })
}

/// Reads up to a zero byte.
fn text<'a>(cursor: &mut Cursor<'a>, what: &'static str, limit: usize) -> Result<&'a [u8], Stop> {
    let rest = cursor.rest();
    match rest.iter().take(limit + 1).position(|b| *b == 0) {
        Some(len) => Ok(&cursor.take(len + 1)?[..len]),
        None if rest.len() > limit => Err(Protocol::Socks.too_long(what, limit).into()),
        None => Err(Stop::More(1)),
    }
}

fn request_v4(cursor: &mut Cursor<'_>) -> Result<Event, Stop> {
    version(cursor, 4, "the version")?;
    let command = cursor.u8()?;
    let port = cursor.u16()?;
    let ip: [u8; 4] = cursor.array()?;
    text(cursor, "the user id", MAX_USER_ID)?;
    let address = match ip {
        // 4a: an address that cannot be, and the name behind the user id.
        [0, 0, 0, x] if x != 0 => {
            let name = text(cursor, "the domain name", Domain::MAX_LEN)?;
            let name = std::str::from_utf8(name).map_err(|_| malformed("the domain name is not ASCII"))?;
            Address::parse(name)?
        }
        ip => Address::Ipv4(Ipv4Addr::from(ip)),
    };
    if command != 1 {
        return Ok(Event::Refuse {
            reply: Reply::CommandNotSupported.encode(Version::V4, unspecified()),
            error: field("the command", command),
        });
    }
    Ok(Event::Request {
        command: Command::Connect(Destination::tcp(address, port)),
        version: Version::V4,
    })
}
