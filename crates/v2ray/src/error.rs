//! The one error of this crate's wire formats, sorted by who is at fault.

use std::error::Error as StdError;
use std::fmt;

use sealway_aead::Fault;

/// The protocol an error speaks of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Protocol {
    /// VLESS, version 0.
    Vless,
    /// VMess with the AEAD header.
    Vmess,
    /// SOCKS 4, 4a and 5.
    Socks,
    /// Trojan.
    Trojan,
    /// HTTP as a proxy protocol.
    Http,
    /// Mux.Cool, and XUDP within it.
    Mux,
    /// Datagrams with their address in front of them (packetaddr).
    PacketAddr,
    /// The PROXY protocol, versions 1 and 2.
    ProxyProtocol,
    /// Shadowsocks, of 2017 and of 2022.
    Shadowsocks,
    /// WebSocket (RFC 6455).
    WebSocket,
    /// The plain HTTP upgrade.
    HttpUpgrade,
    /// gRPC, as a transport.
    Grpc,
    /// XHTTP.
    Xhttp,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Protocol::Vless => "VLESS",
            Protocol::Vmess => "VMess",
            Protocol::Socks => "SOCKS",
            Protocol::Trojan => "Trojan",
            Protocol::Http => "HTTP",
            Protocol::Mux => "Mux.Cool",
            Protocol::PacketAddr => "packetaddr",
            Protocol::ProxyProtocol => "PROXY protocol",
            Protocol::Shadowsocks => "Shadowsocks",
            Protocol::WebSocket => "WebSocket",
            Protocol::HttpUpgrade => "HTTPUpgrade",
            Protocol::Grpc => "gRPC",
            Protocol::Xhttp => "XHTTP",
        })
    }
}

/// Errors of a protocol.
impl Protocol {
    pub(crate) const fn field(self, field: &'static str, got: u64) -> Error {
        let protocol = self;
        Error::Field { protocol, field, got }
    }

    pub(crate) const fn malformed(self, problem: &'static str) -> Error {
        let protocol = self;
        Error::Malformed { protocol, problem }
    }

    pub(crate) const fn too_long(self, what: &'static str, limit: usize) -> Error {
        let protocol = self;
        Error::TooLong { protocol, what, limit }
    }

    pub(crate) const fn unknown_user(self) -> Error {
        Error::UnknownUser { protocol: self }
    }

    pub(crate) const fn replayed(self) -> Error {
        Error::Replayed { protocol: self }
    }

    pub(crate) const fn unauthentic(self) -> Error {
        Error::Unauthentic { protocol: self }
    }

    pub(crate) const fn does_not_fit(self, what: &'static str, limit: usize, got: usize) -> Error {
        Error::DoesNotFit {
            protocol: self,
            what,
            limit,
            got,
        }
    }
}

/// Why a call failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Error {
    // The peer's fault.
    /// A field holds a value that the protocol forbids or that we do not speak.
    Field {
        /// The protocol.
        protocol: Protocol,
        /// The field.
        field: &'static str,
        /// Its value.
        got: u64,
    },
    /// The bytes break a rule of the protocol.
    Malformed {
        /// The protocol.
        protocol: Protocol,
        /// The rule, as what was found: "the head has no colon".
        problem: &'static str,
    },
    /// A part is longer than its limit.
    TooLong {
        /// The protocol.
        protocol: Protocol,
        /// The part.
        what: &'static str,
        /// The limit, bytes.
        limit: usize,
    },
    /// A byte that no domain name we accept may hold, in an address from the wire.
    DomainByte {
        /// The byte.
        got: u8,
    },
    /// A domain name of length 0 or above 255 bytes.
    DomainLength {
        /// Bytes given.
        got: usize,
    },
    /// No user has this id, name or password.
    UnknownUser {
        /// The protocol.
        protocol: Protocol,
    },
    /// A known user's clock is too far from ours.
    ClockSkew {
        /// The protocol.
        protocol: Protocol,
        /// The most that may lie between them, seconds.
        most: u64,
        /// The peer's time less ours, seconds.
        seconds: i64,
    },
    /// This header or session was seen before.
    Replayed {
        /// The protocol.
        protocol: Protocol,
    },
    /// A header was made before the server began to remember headers, so nobody knows whether it was used before.
    BeforeStart {
        /// How long before, seconds, by the clock of each end.
        seconds: u64,
    },
    /// There was no room to remember headers as old as this one, so nobody knows whether it was used before.
    Forgotten,
    /// A seal did not authenticate.
    Unauthentic {
        /// The protocol.
        protocol: Protocol,
    },
    /// The client's flow is not the account's, or is not allowed for the command.
    Flow {
        /// Why.
        problem: &'static str,
    },
    /// The server refused the request.
    Refused {
        /// The protocol.
        protocol: Protocol,
        /// Its code: a SOCKS reply or an HTTP status.
        code: u16,
    },
    // The user's fault.
    /// A user id text of a length that is neither an id nor a name to make one of.
    UserIdLength {
        /// Bytes given.
        got: usize,
    },
    /// A user id text of 32 to 36 characters that is not hexadecimal digits and dashes.
    UserIdText {
        /// Offset of the first byte that does not belong, or of the end of the text.
        at: usize,
    },
    /// Two users of one inbound have the same id.
    DuplicateId,
    /// Two users of one inbound have the same password.
    DuplicatePassword,
    /// A password of Shadowsocks 2022 that is not the base64 of a key.
    KeyText,
    /// A password of Shadowsocks 2022 that is a key of the wrong length.
    KeyLength {
        /// The method.
        method: &'static str,
        /// Bytes that its keys have.
        need: usize,
        /// Bytes given.
        got: usize,
    },
    /// A password of no characters.
    EmptyPassword,
    /// Several keys with colons between where the method has one.
    KeyCount {
        /// The method.
        method: &'static str,
    },
    // The caller's fault.
    /// A buffer is too small.
    Buffer {
        /// Bytes needed.
        need: usize,
        /// Bytes given.
        got: usize,
    },
    /// A payload or a field does not fit what it has to be written into.
    DoesNotFit {
        /// The protocol.
        protocol: Protocol,
        /// The part.
        what: &'static str,
        /// The most that fits, bytes.
        limit: usize,
        /// Bytes given.
        got: usize,
    },
    /// A call out of order: after the end of a stream, or before its begin.
    OutOfOrder {
        /// What was done when.
        what: &'static str,
    },
    /// The AEAD core refused.
    Aead(sealway_aead::Error),
}

impl Error {
    /// Who is at fault.
    pub fn fault(&self) -> Fault {
        match self {
            Error::Field { .. }
            | Error::Malformed { .. }
            | Error::TooLong { .. }
            | Error::DomainByte { .. }
            | Error::DomainLength { .. }
            | Error::UnknownUser { .. }
            | Error::ClockSkew { .. }
            | Error::Replayed { .. }
            | Error::BeforeStart { .. }
            | Error::Forgotten
            | Error::Unauthentic { .. }
            | Error::Flow { .. }
            | Error::Refused { .. } => Fault::Peer,
            Error::UserIdLength { .. }
            | Error::UserIdText { .. }
            | Error::DuplicateId
            | Error::DuplicatePassword
            | Error::KeyText
            | Error::KeyLength { .. }
            | Error::EmptyPassword
            | Error::KeyCount { .. } => Fault::User,
            Error::Buffer { .. } | Error::DoesNotFit { .. } | Error::OutOfOrder { .. } => Fault::Caller,
            Error::Aead(error) => error.fault(),
        }
    }
}

impl From<sealway_aead::Error> for Error {
    fn from(error: sealway_aead::Error) -> Self {
        Error::Aead(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Field { protocol, field, got } => write!(f, "{protocol}: {field} is {got}, which we do not accept"),
            Error::Malformed { protocol, problem } => write!(f, "{protocol}: {problem}"),
            Error::TooLong { protocol, what, limit } => {
                write!(f, "{protocol}: {what} is longer than {limit} bytes")
            }
            Error::DomainByte { got } => write!(
                f,
                "a domain name holds the byte {got:#04x}; only letters, digits, \"-\", \".\" and \"_\" may stand in one"
            ),
            Error::DomainLength { got } => write!(f, "a domain name has 1 to 255 bytes, not {got}"),
            Error::UnknownUser { protocol } => {
                write!(
                    f,
                    "{protocol}: no user has these credentials; compare the id or password on both ends"
                )
            }
            Error::ClockSkew {
                protocol,
                most,
                seconds,
            } => write!(
                f,
                "{protocol}: the peer's clock is {} s {} ours; set both by NTP (at most {most} s may lie between them)",
                seconds.unsigned_abs(),
                if *seconds < 0 { "behind" } else { "ahead of" }
            ),
            Error::Replayed { protocol } => {
                write!(f, "{protocol}: this request was seen before; someone may replay it")
            }
            Error::BeforeStart { seconds } => write!(
                f,
                "the request was made {seconds} s before this server started, which cannot know whether it was used \
                 before; the client's clock is behind, or someone replays it"
            ),
            Error::Forgotten => f.write_str(
                "so many requests come that those as old as this one are not remembered; the client's clock is \
                 behind, or someone replays it",
            ),
            Error::Unauthentic { protocol } => write!(f, "{protocol}: the message is not authentic"),
            Error::Flow { problem } => write!(f, "VLESS flow: {problem}"),
            Error::Refused { protocol, code } => write!(f, "the {protocol} server refused with code {code}"),
            Error::UserIdLength { got } => write!(
                f,
                "a user id has 32 to 36 characters, or is a name of 1 to 30 bytes, not {got}; `sealway uuid` makes one"
            ),
            Error::UserIdText { at } => write!(
                f,
                "a user id of 32 to 36 characters is 32 hexadecimal digits with dashes between groups; the fault is at \
                 character {}",
                at.saturating_add(1)
            ),
            Error::DuplicateId => f.write_str("two users of one inbound have the same id; give each its own"),
            Error::DuplicatePassword => {
                f.write_str("two users of one inbound have the same password; give each its own")
            }
            Error::KeyText => f.write_str(
                "a password of Shadowsocks 2022 is a key in base64, or several with colons between; `openssl rand -base64 32` \
                 makes one of 32 bytes",
            ),
            Error::KeyLength { method, need, got } => write!(
                f,
                "{method} takes a key of {need} bytes in base64, not of {got}; `openssl rand -base64 {need}` makes one"
            ),
            Error::EmptyPassword => f.write_str("the password is empty"),
            Error::KeyCount { method } => {
                write!(f, "{method} takes one key: only the AES methods of 2022 have several users on a port")
            }
            Error::Buffer { need, got } => write!(f, "a buffer of {need} bytes is needed, not {got}"),
            Error::DoesNotFit {
                protocol,
                what,
                limit,
                got,
            } => {
                write!(f, "{protocol}: {what} of {got} bytes does not fit; at most {limit} do")
            }
            Error::OutOfOrder { what } => f.write_str(what),
            Error::Aead(error) => error.fmt(f),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            Error::Aead(error) => Some(error),
            _ => None,
        }
    }
}
