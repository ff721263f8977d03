//! The one error of this crate, sorted by who is at fault.

use std::error::Error as StdError;
use std::fmt;

use sealway_aead::Fault;

use crate::refusal::Refusal;
use crate::terms::{Kem, MAX_KIND, MAX_PAYLOAD, Mode};

/// Why a call failed.
///
/// Nothing of it is sent but what [`Refusal::of`] makes of it: to the other end every other failure looks alike, the connection ends.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// What came is not authentic: another code, another key, or bytes that were changed on the way.
    Unauthentic,
    /// The other end speaks something else, or another version of this.
    OtherProtocol,
    /// A message of the handshake that no correct end sends.
    Malformed {
        /// Which part.
        what: &'static str,
    },
    /// One end was told to use a code phrase, the other to use keys.
    OtherMode {
        /// What the other end wants.
        theirs: Mode,
    },
    /// The other end proposes a key encapsulation weaker than this end accepts.
    WeakKem {
        /// What it proposes.
        theirs: Kem,
    },
    /// The offers of suites: unknown, empty, repeated, or without one that both may use.
    Suites(sealway_aead::Error),
    /// The responder chose another suite than the rule gives.
    OtherSuite,
    /// The other end has a static key, proved it, and it is not one that is accepted.
    UnknownPeer {
        /// The key.
        key: [u8; 32],
    },
    /// The other end says that it refuses. Nobody vouches for it: it may be told to a person, and nothing may follow from it.
    Refused(Refusal),
    /// A record whose header no correct end sends.
    BadHeader {
        /// The header.
        header: [u8; 8],
    },
    /// The connection ended without the authenticated close: something may be missing at its end.
    Truncated,
    /// Something came after the authenticated close.
    AfterClose,
    /// An extra connection with a token of no open index: of another session, used before, or far ahead.
    UnknownToken,
    /// An earlier error ended this end of the connection.
    Dead,
    /// The handshake or the attachment is not done yet.
    NotDone,
    /// The secret of a code phrase is empty.
    EmptyCode,
    /// A record buffer of the wrong length.
    RecordLength {
        /// Bytes needed; for sealing, the least.
        need: usize,
        /// Bytes given.
        got: usize,
    },
    /// A payload above [`crate::record::MAX_PAYLOAD`].
    PayloadTooLong {
        /// Bytes given.
        got: usize,
    },
    /// A kind of record that applications may not use.
    ReservedKind {
        /// The kind.
        kind: u8,
    },
    /// This end has closed its direction; nothing can be sealed any more.
    Closed,
    /// An index of an extra connection that was used before, or is more than the window ahead.
    IndexTaken {
        /// The index.
        index: u32,
    },
    /// A label, a context or an output of the exporter that is too long, or keys that are used up, or memory that ran out.
    Aead(sealway_aead::Error),
}

impl Error {
    /// Who is at fault.
    pub const fn fault(&self) -> Fault {
        match self {
            Error::Unauthentic
            | Error::OtherProtocol
            | Error::Malformed { .. }
            | Error::OtherMode { .. }
            | Error::WeakKem { .. }
            | Error::Suites(_)
            | Error::OtherSuite
            | Error::UnknownPeer { .. }
            | Error::Refused(_)
            | Error::BadHeader { .. }
            | Error::Truncated
            | Error::AfterClose
            | Error::UnknownToken => Fault::Peer,
            Error::Dead
            | Error::NotDone
            | Error::EmptyCode
            | Error::RecordLength { .. }
            | Error::PayloadTooLong { .. }
            | Error::ReservedKind { .. }
            | Error::Closed
            | Error::IndexTaken { .. } => Fault::Caller,
            Error::Aead(error) => error.fault(),
        }
    }
}

impl Refusal {
    /// What the other end may be told of an error of the handshake; `None` for what only somebody in between would learn from.
    pub fn of(error: &Error) -> Option<Self> {
        match error {
            Error::OtherMode { theirs: Mode::Keys } => Some(Self::WantsCode),
            Error::OtherMode { theirs: Mode::Code } => Some(Self::WantsKeys),
            Error::WeakKem { theirs: Kem::MlKem768 } => Some(Self::WantsStrong),
            Error::Suites(sealway_aead::Error::NoCommonSuite) => Some(Self::NoCommonSuite),
            Error::UnknownPeer { .. } => Some(Self::UnknownKey),
            _ => None,
        }
    }
}

impl From<sealway_aead::Error> for Error {
    fn from(error: sealway_aead::Error) -> Self {
        match error {
            sealway_aead::Error::Unauthentic => Error::Unauthentic,
            error => Error::Aead(error),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unauthentic => {
                f.write_str("what came is not authentic: another code, another key, or changed on the way")
            }
            Error::OtherProtocol => {
                f.write_str("the other end does not speak this protocol, or not this version of it")
            }
            Error::Malformed { what } => write!(f, "the other end sent a handshake with a wrong {what}"),
            Error::OtherMode { theirs: Mode::Code } => {
                f.write_str("the other end wants a code phrase, this end uses keys; give both the same")
            }
            Error::OtherMode { theirs: Mode::Keys } => {
                f.write_str("the other end uses keys, this end wants a code phrase; give both the same")
            }
            Error::WeakKem { theirs } => {
                write!(f, "the other end proposes {theirs}, this end accepts ml-kem-1024 only")
            }
            Error::Suites(error) => write!(f, "{error}"),
            Error::OtherSuite => f.write_str("the other end chose another cipher suite than both offers give"),
            Error::UnknownPeer { key } => {
                f.write_str("the other end has the static key ")?;
                for byte in key {
                    write!(f, "{byte:02x}")?;
                }
                f.write_str(", which is not one that is accepted")
            }
            Error::Refused(refusal) => write!(f, "the other end refused: {refusal}"),
            Error::BadHeader { header } => {
                f.write_str("a record has the header ")?;
                for byte in header {
                    write!(f, "{byte:02x}")?;
                }
                f.write_str(", which no correct end sends")
            }
            Error::Truncated => f.write_str("the connection ended early, without the closing record"),
            Error::AfterClose => f.write_str("something came after the closing record"),
            Error::UnknownToken => f.write_str("an extra connection belongs to no open index of this session"),
            Error::Dead => f.write_str("an earlier error ended this end of the connection; start anew"),
            Error::NotDone => f.write_str("not done yet: read and write on until it is"),
            Error::EmptyCode => f.write_str("the code phrase is empty"),
            Error::RecordLength { need, got } => write!(f, "a record buffer of {need} bytes is needed, not {got}"),
            Error::PayloadTooLong { got } => write!(f, "a record holds at most {MAX_PAYLOAD} bytes, not {got}"),
            Error::ReservedKind { kind } => {
                write!(f, "applications use record kinds 0 to {MAX_KIND}, not {kind}")
            }
            Error::Closed => f.write_str("this direction was closed; nothing can be sealed any more"),
            Error::IndexTaken { index } => write!(
                f,
                "extra connection {index} was used before or is too far ahead; take the next free index"
            ),
            Error::Aead(error) => write!(f, "{error}"),
        }
    }
}

impl StdError for Error {}
