//! The one error of this crate, sorted by who is at fault.

use core::error::Error as StdError;
use core::fmt;
use core::str::FromStr;

use sealway_aead::Fault;

use crate::{GARBAGE_MAX, Magic, TERMINATOR_LEN};

/// Why a call failed.
///
/// Whatever a peer is told, it is the same: the connection is closed. Nothing of this is to be sent.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error {
    // The peer's fault.
    /// A packet is not what was sealed, or out of order. It says no more on purpose.
    Unauthentic,
    /// A packet says that it is longer than we accept.
    PacketTooLong {
        /// Bytes of contents that it claims.
        claimed: usize,
        /// The most we accept.
        limit: usize,
    },
    /// No garbage terminator came where the last one possible would have ended.
    NoTerminator,
    /// The peer spoke v1 of another network.
    OtherNetwork {
        /// Its magic.
        magic: Magic,
    },
    /// A message without a type, or with a long type cut short. The message is to be dropped; the connection may go on.
    MessageTooShort {
        /// Bytes of contents.
        got: usize,
    },
    /// A short id that the table does not have. The message is to be dropped; the connection may go on.
    UnknownShortId {
        /// The id.
        id: u8,
    },
    /// A message type with a byte that may not stand in one. The message is to be dropped; the connection may go on.
    CommandByte {
        /// Its place in the type, counted from 0.
        at: usize,
        /// The byte.
        got: u8,
    },
    /// A v1 message of another network, or no v1 message at all.
    V1Magic {
        /// The first four bytes.
        got: Magic,
    },
    /// A v1 message says that it is longer than we accept.
    V1TooLong {
        /// Bytes of payload that it claims.
        claimed: u32,
        /// The most we accept.
        limit: u32,
    },
    /// A v1 message whose type has a byte that may not stand in one. The message is to be dropped; the connection may go on.
    V1CommandByte {
        /// Its place in the type, counted from 0.
        at: usize,
        /// The byte.
        got: u8,
    },
    /// A v1 message whose checksum does not fit its payload. The message is to be dropped; the connection may go on.
    V1Checksum,
    // The caller's fault.
    /// Contents longer than a length field can say, or than a limit that was set.
    ContentsTooLong {
        /// Bytes given.
        got: usize,
        /// The most there may be.
        limit: usize,
    },
    /// More garbage than BIP324 allows.
    GarbageTooLong {
        /// Bytes given.
        got: usize,
    },
    /// The 32 bytes are no secret key: zero, or not below the order of the curve. Draw others.
    SecretKey,
    /// Nothing can be sent yet: the peer's key is not here.
    NotReady,
    /// The output is full: take from it first.
    OutputFull {
        /// Bytes waiting.
        waiting: usize,
        /// From how many on nothing more is taken.
        limit: usize,
    },
    /// An arena of a batch has no room for this: seal or open what waits first.
    ArenaFull {
        /// Bytes in the arena.
        waiting: usize,
        /// Bytes it holds.
        limit: usize,
    },
    /// As many connections as there may be.
    TooManyConnections {
        /// How many that is.
        limit: usize,
    },
    /// A call after a failure, or after the connection turned out to be v1.
    Closed,
    /// A call out of order.
    OutOfOrder {
        /// What was done when.
        what: &'static str,
    },
    /// A buffer too small for what is to be in it.
    Buffer {
        /// Bytes needed, at least.
        need: usize,
        /// Bytes given.
        got: usize,
    },
    /// A message type of no, or of more than twelve, or of other than printable ASCII characters.
    Command,
    /// A short id that cannot be given away: 0 says that a long type follows.
    ReservedShortId,
    /// A policy of decoys that means nothing: sizes in the wrong order or beyond the limit, or too many.
    DecoyPolicy {
        /// What is wrong.
        problem: &'static str,
    },
    /// The text is neither a network's name nor eight hexadecimal digits.
    MagicText,
    /// All 2^64 epochs of a direction are used up.
    Exhausted,
    /// The AEAD core refused.
    Aead(sealway_aead::Error),
}

impl Error {
    /// Who is at fault.
    pub fn fault(&self) -> Fault {
        match self {
            Error::Unauthentic
            | Error::PacketTooLong { .. }
            | Error::NoTerminator
            | Error::OtherNetwork { .. }
            | Error::MessageTooShort { .. }
            | Error::UnknownShortId { .. }
            | Error::CommandByte { .. }
            | Error::V1Magic { .. }
            | Error::V1TooLong { .. }
            | Error::V1CommandByte { .. }
            | Error::V1Checksum => Fault::Peer,
            Error::ContentsTooLong { .. }
            | Error::GarbageTooLong { .. }
            | Error::SecretKey
            | Error::NotReady
            | Error::OutputFull { .. }
            | Error::ArenaFull { .. }
            | Error::TooManyConnections { .. }
            | Error::Closed
            | Error::OutOfOrder { .. }
            | Error::Buffer { .. }
            | Error::Command
            | Error::ReservedShortId
            | Error::DecoyPolicy { .. }
            | Error::MagicText
            | Error::Exhausted => Fault::Caller,
            Error::Aead(error) => error.fault(),
        }
    }

    /// True for what a peer sent that ends the connection: close it, and say nothing.
    ///
    /// Faults of a message's type, and a wrong checksum in v1, are not among them, as in Bitcoin Core: where such a message
    /// ends is known, so it is dropped, and the next one is read.
    pub fn ends_connection(&self) -> bool {
        self.fault() == Fault::Peer
            && !matches!(
                self,
                Error::MessageTooShort { .. }
                    | Error::UnknownShortId { .. }
                    | Error::CommandByte { .. }
                    | Error::V1CommandByte { .. }
                    | Error::V1Checksum
            )
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

impl FromStr for Magic {
    type Err = Error;

    /// Reads a name of [`Magic::NAMED`] or eight hexadecimal digits, in the order of the wire.
    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some((_, magic)) = Magic::NAMED.iter().find(|(name, _)| *name == text) {
            return Ok(*magic);
        }
        // A number may be written with a sign, digits may not.
        if text.len() != 8 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(Error::MagicText);
        }
        u32::from_str_radix(text, 16)
            .map(|number| Magic(number.to_be_bytes()))
            .map_err(|_| Error::MagicText)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Unauthentic => f.write_str("the packet is not authentic"),
            Error::PacketTooLong { claimed, limit } => {
                write!(
                    f,
                    "a packet of {claimed} bytes is announced; at most {limit} are accepted"
                )
            }
            Error::NoTerminator => write!(
                f,
                "no garbage terminator within {} bytes after the key",
                GARBAGE_MAX + TERMINATOR_LEN
            ),
            Error::OtherNetwork { magic } => write!(f, "the peer speaks v1 of another network, {magic}"),
            Error::MessageTooShort { got } => write!(f, "{got} bytes are too few for a message with a type"),
            Error::UnknownShortId { id } => write!(f, "no message has the short id {id}"),
            Error::CommandByte { at, got } => write!(f, "byte {at} of a message type is {got:#04x}"),
            Error::V1Magic { got } => write!(f, "a v1 message starts with {got}, the magic of another network"),
            Error::V1TooLong { claimed, limit } => {
                write!(
                    f,
                    "a v1 message of {claimed} bytes is announced; at most {limit} are accepted"
                )
            }
            Error::V1CommandByte { at, got } => write!(f, "byte {at} of the type of a v1 message is {got:#04x}"),
            Error::V1Checksum => f.write_str("the checksum of a v1 message does not fit its payload"),
            Error::ContentsTooLong { got, limit } => {
                write!(f, "contents of {got} bytes do not fit a packet; at most {limit} do")
            }
            Error::GarbageTooLong { got } => write!(f, "{got} bytes of garbage; at most {GARBAGE_MAX} may be sent"),
            Error::SecretKey => f.write_str("these 32 bytes are no secret key of secp256k1; draw others"),
            Error::NotReady => f.write_str("nothing can be sent before the peer's key is here"),
            Error::OutputFull { waiting, limit } => write!(
                f,
                "{waiting} bytes wait to be sent; nothing more is taken from {limit} bytes on"
            ),
            Error::ArenaFull { waiting, limit } => {
                write!(
                    f,
                    "{waiting} bytes wait in an arena of {limit}: seal or open them first"
                )
            }
            Error::TooManyConnections { limit } => write!(f, "there are {limit} connections, and may be no more"),
            Error::Closed => f.write_str("the connection is over"),
            Error::OutOfOrder { what } => f.write_str(what),
            Error::Buffer { need, got } => write!(f, "a buffer of {need} bytes is needed, not {got}"),
            Error::Command => f.write_str("a message type has 1 to 12 printable ASCII characters"),
            Error::ReservedShortId => f.write_str("the short id 0 says that a long type follows; use 1 to 255"),
            Error::DecoyPolicy { problem } => f.write_str(problem),
            Error::MagicText => f.write_str(
                "a network is mainnet, testnet3, testnet4, signet, regtest, or its magic as eight hexadecimal digits",
            ),
            Error::Exhausted => f.write_str("all packet numbers of this connection are used up"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whose_fault_it_is_and_what_it_ends() {
        let peer = |error: Error, ends| {
            assert_eq!((error.fault(), error.ends_connection()), (Fault::Peer, ends), "{error}");
        };
        peer(Error::Unauthentic, true);
        peer(sealway_aead::Error::Unauthentic.into(), true);
        peer(Error::PacketTooLong { claimed: 5, limit: 4 }, true);
        peer(Error::NoTerminator, true);
        peer(Error::V1TooLong { claimed: 5, limit: 4 }, true);
        peer(Error::V1Checksum, false);
        peer(Error::V1CommandByte { at: 1, got: 0x7f }, false);
        peer(Error::MessageTooShort { got: 0 }, false);
        peer(Error::UnknownShortId { id: 99 }, false);
        peer(Error::CommandByte { at: 1, got: 0 }, false);
        for error in [Error::Closed, Error::NotReady, Error::Exhausted, Error::SecretKey] {
            assert_eq!(
                (error.fault(), error.ends_connection()),
                (Fault::Caller, false),
                "{error}"
            );
        }
        let failed = Error::from(sealway_aead::Error::Backend);
        assert_eq!((failed.fault(), failed.ends_connection()), (Fault::Environment, false));
    }

    #[test]
    fn texts_say_the_numbers() {
        let limit = "no garbage terminator within 4111 bytes after the key";
        assert_eq!(Error::NoTerminator.to_string(), limit);
        let magic = Magic::SIGNET;
        let other = "the peer speaks v1 of another network, signet";
        assert_eq!(Error::OtherNetwork { magic }.to_string(), other);
    }
}
