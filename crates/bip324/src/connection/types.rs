//! What goes into a connection and what comes out of it.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

use crate::fschacha::{RecvChain, SendChain};
use crate::{CONTENTS_MAX, Error, HEADER_LEN, Role, V1_PREFIX_LEN};

/// The longest contents that a connection accepts unless told otherwise, bytes: a long message type and the largest payload
/// of Bitcoin, 4,000,000 bytes.
pub const DEFAULT_CONTENTS_LIMIT: usize = 13 + 4_000_000;

/// What a connection does and how much it takes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Most bytes of contents that the peer may send in a packet, at most 2^24 - 1. One that announces more ends the
    /// connection. Default: [`DEFAULT_CONTENTS_LIMIT`].
    pub contents_limit: usize,
    /// Bytes waiting to be sent from which on nothing more is taken; the last message before may go beyond. Default: 1 MiB.
    pub output_limit: usize,
    /// Events waiting from which on no input is taken. Default: 256.
    pub event_limit: usize,
    /// Bytes of contents waiting from which on no input is taken; the last message before may go beyond. Default: 1 MiB.
    pub event_bytes_limit: usize,
    /// What is sent after the key: 0 to 4095 random bytes. Default: none.
    pub garbage: Vec<u8>,
    /// Contents of decoys that are sent before the version packet. Default: none.
    pub decoys: Vec<Vec<u8>>,
    /// Contents of the version packet, which receivers throw away at present. Default: none.
    pub version: Vec<u8>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            contents_limit: DEFAULT_CONTENTS_LIMIT,
            output_limit: 1 << 20,
            event_limit: 256,
            event_bytes_limit: 1 << 20,
            garbage: Vec::new(),
            decoys: Vec::new(),
            version: Vec::new(),
        }
    }
}

impl Options {
    /// Refuses what does not fit a packet. A limit of 0 counts as 1: with none, nothing would ever be taken.
    pub(super) fn check(&mut self) -> Result<(), Error> {
        for limit in [
            &mut self.output_limit,
            &mut self.event_limit,
            &mut self.event_bytes_limit,
        ] {
            *limit = (*limit).max(1);
        }
        let lengths = self.decoys.iter().map(Vec::len).chain([self.version.len()]);
        match lengths.chain([self.contents_limit]).find(|len| *len > CONTENTS_MAX) {
            Some(got) => Err(Error::ContentsTooLong {
                got,
                limit: CONTENTS_MAX,
            }),
            None => Ok(()),
        }
    }
}

/// The contents of a message, as they came.
#[derive(Clone, Default, Eq, PartialEq)]
pub struct Contents {
    /// The header, then the contents: moving them to the front would cost a pass over a large message.
    pub(super) packet: Vec<u8>,
}

impl Contents {
    /// The bytes, in memory of their own.
    pub fn into_vec(mut self) -> Vec<u8> {
        self.packet.drain(..HEADER_LEN.min(self.packet.len()));
        self.packet
    }
}

impl Deref for Contents {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.packet.get(HEADER_LEN..).unwrap_or_default()
    }
}

impl AsRef<[u8]> for Contents {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Contents({} bytes)", self.len())
    }
}

/// What came.
#[derive(Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// The peer speaks v1. Nothing more happens here: a v1 parser takes these bytes, which were the first, and then all the
    /// others.
    V1 {
        /// The first bytes of the connection.
        prefix: [u8; V1_PREFIX_LEN],
    },
    /// The peer has shown that it has the same secrets: messages may come.
    Established {
        /// The same at both ends if nobody stands between them.
        session_id: [u8; 32],
    },
    /// The contents of a message.
    Message(Contents),
    /// A packet to be thrown away came, and was.
    Decoy {
        /// Bytes of its contents.
        len: usize,
    },
}

/// What is awaited from the peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Awaiting {
    /// The first bytes, by which v1 is known.
    Prefix {
        /// Bytes until it is certainly v1; that it is not shows by any of them.
        missing: usize,
    },
    /// The peer's key.
    Key {
        /// Bytes missing of it.
        missing: usize,
    },
    /// The end of the peer's garbage.
    Garbage {
        /// Bytes that came after the key.
        received: usize,
        /// Bytes within which the garbage must have ended.
        limit: usize,
    },
    /// The length of a packet. If none of it has come, nothing has to come.
    Length {
        /// Bytes missing of it, 3 between packets.
        missing: usize,
    },
    /// The rest of a packet that has begun.
    Packet {
        /// Bytes missing, if its length is what was sent.
        missing: usize,
    },
    /// Nothing from the peer: events are to be taken first.
    Caller,
    /// Nothing more: the connection is over, or is one of v1.
    Nothing,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// What is awaited.
    pub awaiting: Awaiting,
    /// True once the handshake is over.
    pub established: bool,
}

impl Progress {
    /// True if the peer is in the middle of something and a caller should not wait for it for ever.
    pub const fn is_due(&self) -> bool {
        match self.awaiting {
            Awaiting::Length { missing } => !self.established || missing < crate::LENGTH_LEN,
            Awaiting::Caller | Awaiting::Nothing => false,
            _ => true,
        }
    }
}

/// What has been sent and received since the connection was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Counters {
    /// Bytes that were taken as sent.
    pub bytes_sent: u64,
    /// Bytes taken as input.
    pub bytes_received: u64,
    /// Messages sealed, without the version packet.
    pub messages_sent: u64,
    /// Messages opened, without the version packet.
    pub messages_received: u64,
    /// Decoys sealed.
    pub decoys_sent: u64,
    /// Decoys opened.
    pub decoys_received: u64,
    /// Bytes of contents of the decoys opened.
    pub decoy_bytes_received: u64,
}

/// An established connection, taken apart.
#[derive(Debug)]
#[non_exhaustive]
pub struct Parts {
    /// Which end it is.
    pub role: Role,
    /// The session id.
    pub session_id: [u8; 32],
    /// What is sent from here on.
    pub send: SendChain,
    /// What is received from here on. It stands before the first packet of `unread`.
    pub recv: RecvChain,
    /// What was taken as input and is part of a packet that is not whole.
    pub unread: Vec<u8>,
    /// What is still to be sent, before anything else.
    pub output: Vec<u8>,
    /// Events not taken.
    pub events: VecDeque<Event>,
    /// What the connection counted.
    pub counters: Counters,
    /// The limits it had.
    pub options: Options,
}
