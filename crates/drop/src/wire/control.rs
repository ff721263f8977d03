//! Control messages: Protocol Buffers, one message a record.
//!
//! A transfer goes: both say [`Hello`]; the sender's [`Offer`] is answered by [`Accept`] or [`Decline`]; then the sender's
//! [`Entries`] stream one way while the receiver's [`Decisions`] about them stream the other. Where the receiver
//! has part of a file, it says what that hashes to ([`Have`]) and the sender says what is right ([`Keep`]). [`FileEnd`]
//! follows the pieces of a file, [`Sent`] everything; [`Done`] says what became of it. [`Stop`] may come at any time from
//! either end.

pub use crate::fault::Cause;

/// Version of the protocol that this crate speaks.
pub const VERSION: u32 = 1;

/// Bytes of [`Entries`] and hashes that a message is filled with at most, about; far below what a record holds.
pub const BATCH: usize = 64 << 10;

/// Names at the top that an [`Offer`] lists: all of them, or so many of them.
pub const LISTED_NAMES: usize = 100;

/// A control message.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Message {
    /// What it says. A message of a newer version reads as `None`.
    #[prost(oneof = "Body", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16")]
    pub body: Option<Body>,
}

/// What a control message says.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Body {
    /// See [`Hello`].
    #[prost(message, tag = "1")]
    Hello(Hello),
    /// See [`Offer`].
    #[prost(message, tag = "2")]
    Offer(Offer),
    /// See [`Accept`].
    #[prost(message, tag = "3")]
    Accept(Accept),
    /// See [`Decline`].
    #[prost(message, tag = "4")]
    Decline(Decline),
    /// See [`Entries`].
    #[prost(message, tag = "5")]
    Entries(Entries),
    /// See [`Decisions`].
    #[prost(message, tag = "6")]
    Decisions(Decisions),
    /// See [`Have`].
    #[prost(message, tag = "7")]
    Have(Have),
    /// See [`Keep`].
    #[prost(message, tag = "8")]
    Keep(Keep),
    /// See [`FileEnd`].
    #[prost(message, tag = "9")]
    FileEnd(FileEnd),
    /// See [`Holes`].
    #[prost(message, tag = "10")]
    Holes(Holes),
    /// See [`Sent`].
    #[prost(message, tag = "11")]
    Sent(Sent),
    /// See [`Done`].
    #[prost(message, tag = "12")]
    Done(Done),
    /// See [`Stop`].
    #[prost(message, tag = "13")]
    Stop(Stop),
    /// See [`Taken`].
    #[prost(message, tag = "14")]
    Taken(Taken),
    /// See [`Leave`].
    #[prost(message, tag = "15")]
    Leave(Leave),
    /// See [`Paths`].
    #[prost(message, tag = "16")]
    Paths(Paths),
}

/// What an end of a session wants to be.
#[derive(Clone, Copy, Debug, Eq, PartialEq, prost::Enumeration)]
#[repr(i32)]
pub enum Role {
    /// Sends files.
    Sender = 1,
    /// Receives files.
    Receiver = 2,
    /// Shows a folder of its own, mounts one of the other end, or both.
    Share = 3,
}

/// First message of both ends.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Hello {
    /// [`VERSION`].
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// [`Role`].
    #[prost(enumeration = "Role", tag = "2")]
    pub role: i32,
    /// Whether it shows a folder.
    #[prost(bool, tag = "3")]
    pub shares: bool,
    /// Whether it mounts the folder of the other end.
    #[prost(bool, tag = "4")]
    pub mounts: bool,
    /// Whether it reads and serves content on connections apart; they are used if both ends do.
    #[prost(bool, tag = "5")]
    pub bulk: bool,
    /// Whether it can come together with the other end again after the session was lost; it is done if both ends can.
    #[prost(bool, tag = "6")]
    pub again: bool,
    /// Version of the messages in which the other end may change the folder that this one shows; 0: it may not.
    #[prost(uint32, tag = "7")]
    pub writable: u32,
    /// The latest version of them in which this end wants to change the folder that it mounts; 0: it does not.
    #[prost(uint32, tag = "8")]
    pub writes: u32,
    /// Whether it looks for a direct path beside the relay; it is done if both ends do.
    #[prost(bool, tag = "9")]
    pub direct: bool,
}

/// What the sender has to send.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Offer {
    /// 32 bytes that the same command on the same machine makes again, so that a transfer that broke off is found.
    #[prost(bytes = "vec", tag = "1")]
    pub transfer: Vec<u8>,
    /// Number of files.
    #[prost(uint64, tag = "2")]
    pub files: u64,
    /// Number of folders and symbolic links.
    #[prost(uint64, tag = "3")]
    pub others: u64,
    /// Bytes of all files.
    #[prost(uint64, tag = "4")]
    pub bytes: u64,
    /// The first of the names at the top.
    #[prost(message, repeated, tag = "5")]
    pub top: Vec<Top>,
    /// Number of names at the top.
    #[prost(uint64, tag = "6")]
    pub top_count: u64,
    /// Whether the sender wants files hashed, all of them or a sample.
    #[prost(bool, tag = "7")]
    pub hash: bool,
    /// How many of the others are symbolic links.
    #[prost(uint64, optional, tag = "8")]
    pub links: Option<u64>,
    /// Whether the sender can count holes by where they are when it hashes.
    #[prost(bool, tag = "9")]
    pub by_map: bool,
    /// Whether hashes of a sample are enough for the sender.
    #[prost(bool, tag = "10")]
    pub sample: bool,
}

/// A name at the top of what is offered.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Top {
    /// The name, as bytes of the file system.
    #[prost(bytes = "vec", tag = "1")]
    pub name: Vec<u8>,
    /// Whether it is a folder.
    #[prost(bool, tag = "2")]
    pub folder: bool,
}

/// The receiver takes the offer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Accept {
    /// Whether all of every file is hashed: if either end wants it.
    #[prost(bool, tag = "1")]
    pub hash: bool,
    /// Whether holes are counted by where they are: if both ends can.
    #[prost(bool, tag = "2")]
    pub by_map: bool,
    /// Where a sample is hashed: the key that says which groups it has, 32 bytes.
    #[prost(bytes = "vec", tag = "3")]
    pub sample: Vec<u8>,
}

/// The receiver does not take the offer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Decline {
    /// Why, for people.
    #[prost(string, tag = "1")]
    pub reason: String,
}

/// Some of the entries, in order. They are numbered from 0 on in the order in which they come.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Entries {
    /// The entries one after another, as the sender lists them; the reference has their bytes.
    #[prost(bytes = "vec", tag = "1")]
    pub entries: Vec<u8>,
    /// Whether these are the last.
    #[prost(bool, tag = "2")]
    pub last: bool,
}

/// What the receiver wants of each entry.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Decisions {
    /// Number of the first entry decided here.
    #[prost(uint32, tag = "1")]
    pub first: u32,
    /// One byte for each entry from there on, a [`Decision`].
    #[prost(bytes = "vec", tag = "2")]
    pub codes: Vec<u8>,
}

/// What the receiver wants of an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub enum Decision {
    /// Nothing: a folder, a link, or a file that is there already.
    Nothing = 0,
    /// All of the file.
    Fetch = 1,
    /// The file, but for what the receiver has of it; [`Have`] follows.
    Rest = 2,
    /// Nothing: the receiver does not want it.
    Refused = 3,
}

impl Decision {
    /// What a byte says; `None` for one that says nothing.
    pub fn of(code: u8) -> Option<Self> {
        [Self::Nothing, Self::Fetch, Self::Rest, Self::Refused]
            .into_iter()
            .find(|decision| *decision as u8 == code)
    }
}

/// Groups of a file that the receiver has, and what they hash to. One message, or several in rising order.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Have {
    /// Number of the file.
    #[prost(uint32, tag = "1")]
    pub file: u32,
    /// Numbers of the groups, rising.
    #[prost(uint64, repeated, tag = "2")]
    pub groups: Vec<u64>,
    /// Their hashes, 32 bytes each.
    #[prost(bytes = "vec", tag = "3")]
    pub hashes: Vec<u8>,
    /// Whether this is the last message about the file.
    #[prost(bool, tag = "4")]
    pub last: bool,
}

/// Which of the groups of a [`Have`] are right and need not be sent.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Keep {
    /// Number of the file.
    #[prost(uint32, tag = "1")]
    pub file: u32,
    /// Numbers of the groups.
    #[prost(uint64, repeated, tag = "2")]
    pub groups: Vec<u64>,
}

/// All pieces of a file were sent, on whatever connection.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FileEnd {
    /// Number of the file.
    #[prost(uint32, tag = "1")]
    pub file: u32,
    /// BLAKE3 of its content, or of the sample of it, where files are hashed.
    #[prost(bytes = "vec", tag = "2")]
    pub hash: Vec<u8>,
    /// Why it could not be sent, for people; empty if it was.
    #[prost(string, tag = "3")]
    pub failed: String,
}

/// Parts of a file that are holes: they read as zeros and take no space.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Holes {
    /// Number of the file.
    #[prost(uint32, tag = "1")]
    pub file: u32,
    /// Offset and length of each, in turn.
    #[prost(uint64, repeated, tag = "2")]
    pub ranges: Vec<u64>,
}

/// Nothing follows but the end.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Sent {
    /// What was to be sent and was not offered, since it could not be read.
    #[prost(uint64, tag = "1")]
    pub left_out: u64,
    /// The first few of it and why, for people.
    #[prost(string, repeated, tag = "2")]
    pub notes: Vec<String>,
}

/// How much of a direct data connection the receiver has.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Taken {
    /// Number of the connection.
    #[prost(uint32, tag = "1")]
    pub connection: u32,
    /// Records of content that it has taken from it.
    #[prost(uint64, tag = "2")]
    pub records: u64,
    /// It takes no more from it: the connection was closed, or broke.
    #[prost(bool, tag = "3")]
    pub over: bool,
}

/// The sender has given up a direct data connection.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct Leave {
    /// Number of the connection.
    #[prost(uint32, tag = "1")]
    pub connection: u32,
}

/// Where an end may be reached directly.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Paths {
    /// Number of the attempt, from 1 on; the initiator of the session begins one, and the other end answers with its number.
    #[prost(uint32, tag = "1")]
    pub attempt: u32,
    /// Addresses, 18 bytes each: of IPv6, IPv4 as mapped into it, and the port (big-endian).
    #[prost(bytes = "vec", repeated, tag = "2")]
    pub addresses: Vec<Vec<u8>>,
}

/// What became of the transfer.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Done {
    /// Files in place, those that were there already included.
    #[prost(uint64, tag = "1")]
    pub placed: u64,
    /// Files that were not taken or could not be placed.
    #[prost(uint64, tag = "2")]
    pub failed: u64,
    /// The first few of them and why, for people.
    #[prost(string, repeated, tag = "3")]
    pub notes: Vec<String>,
}

/// This end gives up.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Stop {
    /// Why, for people.
    #[prost(string, tag = "1")]
    pub reason: String,
    /// A [`Cause`], for programs; 0, or one that is not known, where only the reason says it.
    #[prost(uint32, tag = "2")]
    pub cause: u32,
}

impl Stop {
    /// What the other end is told of an error of this one.
    pub fn of(error: &crate::Error) -> Self {
        Self {
            reason: error.for_peer(),
            cause: error.cause().map_or(0, |cause| cause as u32),
        }
    }
}
