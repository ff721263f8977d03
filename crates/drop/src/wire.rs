//! What goes over the connections of a transfer.
//!
//! The first connection of a session carries control messages, the others carry content. Both are records of
//! `sealway-session`, told apart by their kind.

pub mod control;
mod paths;
pub mod talk;

/// Kinds of records.
pub mod kind {
    /// One control message ([`control::Message`](super::control::Message)).
    pub const CONTROL: u8 = 1;
    /// A piece of one file of a transfer.
    pub const PIECE: u8 = 2;
    /// Small files of a transfer, whole.
    pub const PACK: u8 = 3;
    /// One byte that says nothing but that this end is alive.
    pub const PULSE: u8 = 5;
    /// Bytes of a stream that is carried whole: gRPC.
    pub const TUNNEL: u8 = 4;
    /// A read of a shared file; so are the next three.
    pub const READ: u8 = 6;
    /// A read is called off.
    pub const CANCEL: u8 = 7;
    /// Bytes that were read.
    pub const CONTENT: u8 = 8;
    /// Why nothing was read.
    pub const REFUSED: u8 = 9;
    /// A change of a shared folder; so are the next two.
    pub const CHANGE: u8 = 10;
    /// What came of a change, or of a write.
    pub const CHANGED: u8 = 11;
    /// Bytes to be written.
    pub const WRITE: u8 = 12;
}
