//! The one error of this crate, whose fault it is, and the alert that the peer is owed for it.

use std::error::Error as StdError;
use std::fmt;

use sealway_aead::Fault;

/// What one end says to the other before it gives up (RFC 8446 section 6): number and name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the names are those of the RFC")]
pub enum Alert {
    CloseNotify = 0,
    UnexpectedMessage = 10,
    BadRecordMac = 20,
    RecordOverflow = 22,
    HandshakeFailure = 40,
    BadCertificate = 42,
    UnsupportedCertificate = 43,
    CertificateUnknown = 46,
    IllegalParameter = 47,
    UnknownCa = 48,
    DecodeError = 50,
    DecryptError = 51,
    ProtocolVersion = 70,
    InternalError = 80,
    UserCanceled = 90,
    MissingExtension = 109,
    UnsupportedExtension = 110,
    UnrecognizedName = 112,
    CertificateRequired = 116,
    NoApplicationProtocol = 120,
}

impl Alert {
    /// The alert's message: all of them are fatal but the two that end a connection in good order.
    pub const fn message(self) -> [u8; 2] {
        let level = match self {
            Alert::CloseNotify | Alert::UserCanceled => 1,
            _ => 2,
        };
        [level, self as u8]
    }
}

/// Why a call failed. The connection is over.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Error {
    /// The peer sent what the protocol does not allow, or nothing that both can do.
    Peer {
        /// What it is owed.
        alert: Alert,
        /// What was wrong.
        what: &'static str,
    },
    /// The certificate is not one that is accepted.
    Certificate {
        /// What the peer is told.
        alert: Alert,
        /// Why, for a log of this end.
        why: String,
    },
    /// The peer gave up, and said this. The number is one of RFC 8446 section 6.
    Alerted(u8),
    /// A record is not authentic: another key, or bytes that were changed on the way.
    Unauthentic,
    /// What the caller gave cannot be used.
    Given(&'static str),
    /// A library failed: memory ran out, or the calling code is wrong.
    Library(&'static str),
}

/// A message that may not come here.
pub(crate) fn unexpected(what: &'static str) -> Error {
    Error::peer(Alert::UnexpectedMessage, what)
}

impl Error {
    /// The peer's fault.
    pub const fn peer(alert: Alert, what: &'static str) -> Error {
        Error::Peer { alert, what }
    }

    /// What the peer is to be told; nothing if it gave up itself.
    pub fn alert(&self) -> Option<Alert> {
        match self {
            Error::Peer { alert, .. } | Error::Certificate { alert, .. } => Some(*alert),
            Error::Alerted(_) => None,
            Error::Unauthentic => Some(Alert::BadRecordMac),
            Error::Given(_) | Error::Library(_) => Some(Alert::InternalError),
        }
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Error::Peer { .. } | Error::Certificate { .. } | Error::Alerted(_) | Error::Unauthentic => Fault::Peer,
            Error::Given(_) => Fault::Caller,
            Error::Library(_) => Fault::Environment,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Peer { what, .. } => write!(f, "{what}"),
            Error::Certificate { why, .. } => write!(f, "the certificate is refused: {why}"),
            Error::Alerted(number) => write!(f, "the other end gave up with alert {number}"),
            Error::Unauthentic => f.write_str("record is not authentic"),
            Error::Given(what) | Error::Library(what) => f.write_str(what),
        }
    }
}

impl StdError for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_has_its_alert_and_its_fault() {
        let peer = Error::peer(Alert::DecodeError, "a message of a wrong length");
        for (error, alert, fault, text) in [
            (peer, Some(50), Fault::Peer, "a message of a wrong length"),
            (
                Error::Alerted(40),
                None,
                Fault::Peer,
                "the other end gave up with alert 40",
            ),
            (Error::Unauthentic, Some(20), Fault::Peer, "record is not authentic"),
            (
                Error::Given("no certificate"),
                Some(80),
                Fault::Caller,
                "no certificate",
            ),
            (
                Error::Library("out of memory"),
                Some(80),
                Fault::Environment,
                "out of memory",
            ),
        ] {
            assert_eq!(error.alert().map(|alert| alert as u8), alert);
            assert_eq!(error.fault(), fault);
            assert_eq!(error.to_string(), text);
        }
        assert_eq!(Alert::CloseNotify.message(), [1, 0]);
        assert_eq!(Alert::DecodeError.message(), [2, 50]);
    }
}
