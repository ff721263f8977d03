//! What can go wrong, by whose fault it is.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;

use crate::people::Refused;

/// What is waited for, and may fail.
pub(crate) type Pending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Error>> + Send + 'a>>;

/// An error of the proxy.
#[derive(Debug)]
pub enum Error {
    /// The configuration asks for something that cannot be done: where, and what is wrong.
    Config {
        /// The place, such as `inbounds[0].streamSettings.tlsSettings`.
        place: String,
        /// What is wrong there and what to do.
        what: String,
    },
    /// An address could not be listened on.
    Listen {
        /// The inbound, such as `inbounds[0]`.
        place: String,
        /// The address.
        on: String,
        /// Why.
        source: io::Error,
    },
    /// A target or a next hop could not be reached.
    Connect {
        /// What was dialled.
        to: String,
        /// Why.
        source: io::Error,
    },
    /// The name has no usable address.
    Resolve {
        /// The name.
        name: String,
    },
    /// A fake answer of our DNS that is not remembered any more.
    Forgotten {
        /// The address that was the answer.
        address: String,
    },
    /// The target is not allowed, with the name of the rule that says so.
    Forbidden {
        /// The target.
        target: String,
        /// The rule.
        rule: &'static str,
    },
    /// The way to a target needs itself, or needs too many others.
    Circle {
        /// The outbound, or what chooses it.
        way: String,
        /// The target.
        to: String,
    },
    /// The firewall has led a connection of this process back to it.
    Loop {
        /// Where the connection was meant to go.
        target: String,
        /// The mark that its outbound gives it.
        mark: Option<u32>,
    },
    /// The peer could not prove who it is. Deliberately without detail towards the peer; the detail is for our log.
    Unauthentic(&'static str),
    /// The peer broke a protocol: which, and how.
    Protocol {
        /// The protocol.
        of: &'static str,
        /// What it did.
        what: &'static str,
    },
    /// A message of the V2Ray family, or of a neighbour, was wrong.
    Wire(sealway_v2ray::Error),
    /// Something we know and do not have.
    Unsupported(&'static str),
    /// TLS failed.
    Tls(rustls::Error),
    /// Another than the REALITY server answered.
    NotReality {
        /// The name that was asked for.
        name: String,
        /// Who it was.
        answered: Answered,
    },
    /// The peer took longer than the policy allows.
    TimedOut(&'static str),
    /// The connection broke.
    Io(io::Error),
    /// The peer closed before it had said what it wanted.
    Closed,
    /// The user may not have this connection, or not any more.
    Refused(Refused),
}

/// Who answered in place of a REALITY server.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Answered {
    /// The site whose name was asked for, with a valid certificate.
    Site,
    /// The server, but without the ML-DSA-65 key that it is to have.
    Unsigned,
    /// Neither the server nor the site: why its certificate is not valid.
    Nobody {
        /// Why.
        why: String,
    },
    /// A site that asked for another hello, as no server does.
    Again,
    /// Somebody who speaks no TLS 1.3.
    Older,
    /// Nobody: the connection was closed.
    Silent,
    /// Somebody with whom the handshake failed.
    Failed {
        /// Why.
        why: String,
    },
}

impl Error {
    pub(crate) fn protocol(of: &'static str, what: &'static str) -> Error {
        Error::Protocol { of, what }
    }

    /// A target that this rule refuses.
    pub(crate) fn forbidden(target: &dyn fmt::Display, rule: &'static str) -> Error {
        let target = target.to_string();
        Error::Forbidden { target, rule }
    }

    pub(crate) fn config(place: impl Into<String>, what: impl Into<String>) -> Error {
        Error::Config {
            place: place.into(),
            what: what.into(),
        }
    }

    /// An error of connecting to an address.
    pub(crate) fn connect(to: SocketAddr, source: io::Error) -> Error {
        Error::Connect {
            to: to.to_string(),
            source,
        }
    }

    /// What to do about it. Empty if the message says it all.
    pub fn hint(&self) -> &'static str {
        let Error::Listen { source, .. } = self else { return "" };
        match source.kind() {
            io::ErrorKind::AddrInUse if !is_taken(source) => "stop that program or choose another path",
            io::ErrorKind::AddrInUse => "stop that program or choose another port; `ss -ltnup` shows who listens where",
            io::ErrorKind::PermissionDenied => "ports below 1024 need root, or the capability CAP_NET_BIND_SERVICE",
            io::ErrorKind::AddrNotAvailable => "no network interface of this machine has this address now",
            io::ErrorKind::NotFound => "make the folder of the socket first",
            _ => "",
        }
    }

    /// True if the connection was reset rather than closed, or is to be: its user is gone.
    pub(crate) fn is_reset(&self) -> bool {
        match self {
            Error::Io(error) => error.kind() == io::ErrorKind::ConnectionReset,
            Error::Refused(_) => true,
            _ => false,
        }
    }

    /// True if the peer ended in the middle of something whose end is known.
    pub(crate) fn is_cut(&self) -> bool {
        matches!(self, Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Config { place, what } => write!(f, "{place}: {what}"),
            Error::Listen { on, source, .. } if is_taken(source) => {
                write!(
                    f,
                    "cannot listen on {on}: another program listens there, perhaps this one, started before"
                )
            }
            Error::Listen { on, source, .. } => write!(f, "cannot listen on {on}: {source}"),
            Error::Connect { to, source } => write!(f, "cannot connect to {to}: {source}"),
            Error::Resolve { name } => write!(f, "no address for the name {name}"),
            Error::NotReality { name, answered } => {
                let likely = "`publicKey`, `shortId` or `serverName` is not one of the server's, a clock is wrong, or the server does not \
                              take this version (its `minClientVer` and `maxClientVer`)";
                match answered {
                    Answered::Site => write!(f, "the site {name} itself answered in place of the REALITY server: {likely}"),
                    Answered::Unsigned => f.write_str(
                        "the REALITY server does not have the ML-DSA-65 key that `mldsa65Verify` says; take that out if the server \
                         has no `mldsa65Seed`",
                    ),
                    Answered::Nobody { why } => write!(
                        f,
                        "whoever answered for {name} is neither the REALITY server nor the site ({why}): {likely}; or somebody is in \
                         between"
                    ),
                    Answered::Again => write!(
                        f,
                        "whoever answered for {name} wants a key share of a group that is asked for only, and the target of a REALITY \
                         server has to take X25519 or X25519MLKEM768: {likely}"
                    ),
                    Answered::Older => write!(
                        f,
                        "whoever answered for {name} speaks no TLS 1.3, which the target of a REALITY server has to: {likely}"
                    ),
                    Answered::Silent => write!(
                        f,
                        "the REALITY server for {name} closed the connection without a word: it may not reach its `target`"
                    ),
                    Answered::Failed { why } => write!(
                        f,
                        "the handshake with the REALITY server for {name}, or with its `target`, failed: {why}"
                    ),
                }
            }
            Error::Forgotten { address } => write!(
                f,
                "the name that the fake address {address} stood for is not known any more; the client has to ask for it again"
            ),
            Error::Forbidden { target, rule } => write!(f, "target {target} refused by {rule}"),
            Error::Circle { way, to } => write!(f, "the way to {to} by {way} needs itself, or too many others"),
            Error::Loop { target, mark: None } => write!(
                f,
                "target {target} refused by the guard against loops: the connection is this program's own, and has no mark; set \
                 `mark` in the `sockopt` of every outbound, and have the rules of the firewall return packets with it"
            ),
            Error::Loop {
                target,
                mark: Some(mark),
            } => write!(
                f,
                "target {target} refused by the guard against loops: the connection is this program's own, with the mark {mark}; \
                 have the rules of the firewall return packets with it (`sealway gateway` prints such rules)"
            ),
            Error::Unauthentic(why) => write!(f, "peer not authenticated: {why}"),
            Error::Protocol { of, what } => write!(f, "peer broke {of}: {what}"),
            Error::Wire(error) => error.fmt(f),
            Error::Unsupported(what) => write!(f, "not supported yet: {what}"),
            Error::Tls(error) => write_tls(f, error),
            Error::TimedOut(what) => write!(f, "time ran out: {what}"),
            Error::Io(error) => write!(f, "connection failed: {error}"),
            Error::Closed => f.write_str("peer closed the connection early"),
            Error::Refused(why) => why.fmt(f),
        }
    }
}

/// The kernel says that somebody has the address. Of a unix socket we say ourselves who has it.
fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse && error.raw_os_error().is_some()
}

/// What went wrong with TLS, in the words of who configures it.
fn write_tls(f: &mut fmt::Formatter<'_>, error: &rustls::Error) -> fmt::Result {
    use rustls::CertificateError as Certificate;
    let rustls::Error::InvalidCertificate(why) = error else {
        return write!(f, "TLS: {error}");
    };
    match why {
        Certificate::UnknownIssuer => f.write_str(
            "TLS: no authority that is trusted here has signed the server's certificate; if the server signed it itself, pin it \
             (`pinnedPeerCertSha256`, with the hash as it is at the server) or make it an authority (`certificates` with the \
             usage verify)",
        ),
        Certificate::Other(other) => match other.0.downcast_ref::<webpki::Error>() {
            Some(webpki::Error::CaUsedAsEndEntity) => f.write_str(
                "TLS: the server shows the certificate of an authority, which is most likely one that it signed itself; pin it \
                 (`pinnedPeerCertSha256`, with the hash as it is at the server), or make it an authority and let it sign \
                 another one for the server",
            ),
            _ => write!(f, "TLS: {other}"),
        },
        why => write!(f, "TLS: the server's certificate is refused: {why}"),
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Listen { source, .. } | Error::Connect { source, .. } | Error::Io(source) => Some(source),
            Error::Tls(source) => Some(source),
            Error::Wire(source) => Some(source),
            _ => None,
        }
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Io(error)
    }
}

impl From<Refused> for Error {
    fn from(why: Refused) -> Self {
        Error::Refused(why)
    }
}

impl From<rustls::Error> for Error {
    fn from(error: rustls::Error) -> Self {
        Error::Tls(error)
    }
}

impl From<sealway_tls_tokio::Error> for Error {
    fn from(error: sealway_tls_tokio::Error) -> Self {
        use sealway_tls_tokio::Error as Own;
        match error {
            Own::Io(error) => error.into(),
            Own::Handshake(error) => error.into(),
            Own::Records(error) => error.into(),
        }
    }
}

impl From<sealway_tls::Error> for Error {
    fn from(error: sealway_tls::Error) -> Self {
        use sealway_tls::Error as Own;
        match error {
            Own::Peer { what, .. } => Error::protocol("TLS", what),
            Own::Unauthentic => Error::protocol("TLS", "record is not authentic"),
            Own::Alerted(number) => Error::Tls(rustls::Error::AlertReceived(number.into())),
            other => Error::Tls(rustls::Error::General(other.to_string())),
        }
    }
}

impl From<sealway_v2ray::Error> for Error {
    fn from(error: sealway_v2ray::Error) -> Self {
        Error::Wire(error)
    }
}
