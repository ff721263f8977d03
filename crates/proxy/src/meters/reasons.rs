//! Why something did not come about, in few words: whoever connects must not choose how many there are.

use std::io;

use crate::error::Error;
use crate::people::Refused;

/// Declares the reasons with the words that stand for them.
macro_rules! reasons {
    ($(#[doc = $about:literal])* $Name:ident { $($(#[doc = $doc:literal])* $Reason:ident = $word:literal;)* }) => {
        $(#[doc = $about])*
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub(crate) enum $Name {
            $($(#[doc = $doc])* $Reason,)*
        }

        impl $Name {
            /// All of them.
            pub(crate) const ALL: &'static [$Name] = &[$($Name::$Reason),*];

            pub(crate) fn word(self) -> &'static str {
                match self {
                    $($Name::$Reason => $word,)*
                }
            }
        }
    };
}

reasons! {
    /// Why a connection to an inbound was refused or came to nothing.
    Reason {
        /// The client left before it had said what it wants.
        Left = "left";
        /// The client took longer than the policy allows.
        Late = "late";
        /// The connection broke.
        Broken = "broken";
        /// TLS failed.
        Tls = "tls";
        /// The client could not prove who it is.
        Unauthentic = "unauthentic";
        /// The client did not keep to the protocol.
        Protocol = "protocol";
        /// The target is one that nobody, or not this client, may reach.
        Forbidden = "forbidden";
        /// The user has as many connections as he may have.
        Connections = "connections";
        /// The user comes from as many addresses as he may.
        Addresses = "addresses";
        /// The user has used what he may use.
        Quota = "quota";
        /// The user was removed.
        Removed = "removed";
        /// Anything else.
        Other = "other";
    }
}

impl Reason {
    pub(crate) fn of(error: &Error) -> Reason {
        match error {
            Error::Closed => Reason::Left,
            Error::TimedOut(_) => Reason::Late,
            Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => Reason::Left,
            Error::Io(_) => Reason::Broken,
            Error::Tls(_) => Reason::Tls,
            Error::Protocol { of: "TLS", .. } => Reason::Tls,
            Error::Unauthentic(_) => Reason::Unauthentic,
            Error::Protocol { .. } | Error::Wire(_) | Error::Unsupported(_) => Reason::Protocol,
            Error::Forbidden { .. } | Error::Loop { .. } | Error::Circle { .. } => Reason::Forbidden,
            Error::Refused(Refused::Connections) => Reason::Connections,
            Error::Refused(Refused::Addresses) => Reason::Addresses,
            Error::Refused(Refused::Quota) => Reason::Quota,
            Error::Refused(Refused::Removed) => Reason::Removed,
            _ => Reason::Other,
        }
    }
}

reasons! {
    /// Why an outbound did not reach a target.
    Unreached {
        /// Nobody listens there.
        Refused = "refused";
        /// No way leads there.
        Unreachable = "unreachable";
        /// It took too long.
        Late = "late";
        /// The name has no address.
        Name = "name";
        /// TLS or REALITY failed.
        Tls = "tls";
        /// The next server did not keep to the protocol, or closed.
        Protocol = "protocol";
        /// It must not be reached.
        Forbidden = "forbidden";
        /// Anything else.
        Other = "other";
    }
}

impl Unreached {
    /// The reason of an error.
    pub(crate) fn of(error: &Error) -> Unreached {
        match error {
            Error::Connect { source, .. } | Error::Io(source) => match source.kind() {
                io::ErrorKind::ConnectionRefused => Unreached::Refused,
                io::ErrorKind::TimedOut => Unreached::Late,
                io::ErrorKind::HostUnreachable
                | io::ErrorKind::NetworkUnreachable
                | io::ErrorKind::AddrNotAvailable => Unreached::Unreachable,
                io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => Unreached::Protocol,
                _ => Unreached::Other,
            },
            Error::TimedOut(_) => Unreached::Late,
            Error::Resolve { .. } | Error::Forgotten { .. } => Unreached::Name,
            Error::Tls(_) | Error::NotReality { .. } | Error::Protocol { of: "TLS", .. } => Unreached::Tls,
            Error::Protocol { .. } | Error::Wire(_) | Error::Unauthentic(_) | Error::Closed => Unreached::Protocol,
            Error::Forbidden { .. } | Error::Loop { .. } | Error::Circle { .. } => Unreached::Forbidden,
            _ => Unreached::Other,
        }
    }
}
