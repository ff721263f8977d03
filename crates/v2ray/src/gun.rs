//! The messages of the transport gRPC, which its programs call "gun": a stream of bytes inside `Hunk{bytes data = 1}` or
//! `MultiHunk{repeated bytes data = 1}`, each behind the five bytes that gRPC puts in front of a message.
//!
//! ```text
//! compressed (1) ‖ length (4, big-endian) ‖ 0a ‖ varint(length of data) ‖ data …
//! ```
//!
//! Borders of messages mean nothing. A [`Decoder`] looks at pieces of the stream as they lie and says where the data is;
//! what is sent begins with [`write_head`]. Names of services and methods are those of [`Names`].

mod names;

#[cfg(test)]
mod tests;

use std::ops::Range;

use crate::{Error, Protocol};

pub use names::{Call, MAX_NAME, Names};

/// Longest message, bytes without its prefix. It is the bound of the usual gRPC libraries.
pub const MAX_MESSAGE: usize = 4 << 20;

/// Most data in one message.
pub const MAX_DATA: usize = MAX_MESSAGE - 5;

/// Most bytes in front of the data of a message: prefix, tag, length.
pub const MAX_HEAD: usize = PREFIX + 1 + 4;

/// Bytes of the prefix of a message.
const PREFIX: usize = 5;

/// Field 1, of bytes.
const TAG: u8 = 0x0a;

const PROTOCOL: Protocol = Protocol::Grpc;

/// The two kinds of message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// `Hunk`: its data is one field.
    Hunk,
    /// `MultiHunk`: its data is any number of fields.
    MultiHunk,
}

/// Where the decoder stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// In the prefix, of which this many bytes have been read.
    Prefix { read: usize, len: u32 },
    /// In front of a field. `one`: the message has had one.
    Field { one: bool },
    /// In the length of a field, of which the lower bits have been read.
    Length { shift: u32, len: usize },
    /// In the data of a field.
    Data { left: usize },
}

/// What the next bytes are.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// Data, at this place in what was shown.
    Data(Range<usize>),
    /// All that was shown is read.
    More,
}

/// Reads the messages of one direction.
#[derive(Clone, Debug)]
pub struct Decoder {
    kind: Kind,
    state: State,
    /// Bytes of the message that are still to come, without those of its prefix.
    left: usize,
}

fn malformed(problem: &'static str) -> Error {
    PROTOCOL.malformed(problem)
}

impl Decoder {
    /// At the begin of the stream.
    pub fn new(kind: Kind) -> Self {
        Decoder {
            kind,
            state: State::Prefix { read: 0, len: 0 },
            left: 0,
        }
    }

    /// True between two messages: a stream that ends here is whole.
    pub fn is_between(&self) -> bool {
        matches!(self.state, State::Prefix { read: 0, .. })
    }

    /// Looks at the next bytes. Returns what they hold, and how many are read: show the rest next.
    ///
    /// # Errors
    /// [`Error::TooLong`] for a message above [`MAX_MESSAGE`]; [`Error::Malformed`] for compression, which nobody agreed on, and
    /// for a message that is neither a `Hunk` nor a `MultiHunk`.
    pub fn handle(&mut self, bytes: &[u8]) -> Result<(Event, usize), Error> {
        let mut at = 0;
        while let Some(&byte) = bytes.get(at) {
            match self.state {
                State::Prefix { read, len } => {
                    at += 1;
                    self.prefix(read, len, byte)?;
                }
                State::Field { one } => {
                    if byte != TAG {
                        return Err(malformed("a message holds another field than data"));
                    }
                    if one && self.kind == Kind::Hunk {
                        return Err(malformed("a Hunk holds data twice"));
                    }
                    at += 1;
                    self.take(1)?;
                    self.state = State::Length { shift: 0, len: 0 };
                }
                State::Length { shift, len } => {
                    at += 1;
                    self.take(1)?;
                    self.length(shift, len, byte)?;
                }
                State::Data { left } => {
                    let end = at + left.min(bytes.len() - at);
                    self.state = State::Data {
                        left: left - (end - at),
                    };
                    self.left -= end - at;
                    self.settle();
                    return Ok((Event::Data(at..end), end));
                }
            }
        }
        Ok((Event::More, at))
    }

    /// Accounts for bytes of the message in front of data.
    fn take(&mut self, n: usize) -> Result<(), Error> {
        let left = self.left.checked_sub(n);
        self.left = left.ok_or(malformed("a field goes beyond its message"))?;
        Ok(())
    }

    fn prefix(&mut self, read: usize, len: u32, byte: u8) -> Result<(), Error> {
        if read == 0 {
            if byte != 0 {
                return Err(malformed("a message is compressed"));
            }
        } else if read + 1 < PREFIX {
            self.state = State::Prefix {
                read: read + 1,
                len: len << 8 | u32::from(byte),
            };
            return Ok(());
        } else {
            self.left = (len << 8 | u32::from(byte)) as usize;
            if self.left > MAX_MESSAGE {
                return Err(PROTOCOL.too_long("a message", MAX_MESSAGE));
            }
            self.state = State::Field { one: false };
            self.settle();
            return Ok(());
        }
        self.state = State::Prefix { read: 1, len: 0 };
        Ok(())
    }

    fn length(&mut self, shift: u32, len: usize, byte: u8) -> Result<(), Error> {
        // Four bytes of seven bits hold every length that fits a message.
        let len = len | usize::from(byte & 0x7f) << shift;
        if byte & 0x80 != 0 {
            if shift >= 21 {
                return Err(malformed("the length of a field is too long"));
            }
            self.state = State::Length { shift: shift + 7, len };
            return Ok(());
        }
        if len > self.left {
            return Err(malformed("a field goes beyond its message"));
        }
        self.state = State::Data { left: len };
        self.settle();
        Ok(())
    }

    /// Passes over what has no bytes any more: an empty field, the end of a message.
    fn settle(&mut self) {
        if self.state == (State::Data { left: 0 }) {
            self.state = State::Field { one: true };
        }
        if self.left == 0 && matches!(self.state, State::Field { .. }) {
            self.state = State::Prefix { read: 0, len: 0 };
        }
    }
}

/// Bytes in front of the data of a message.
pub fn head_len(data: usize) -> usize {
    PREFIX + 1 + varint_len(data)
}

fn varint_len(value: usize) -> usize {
    match value {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        _ => 4,
    }
}

/// Appends what stands in front of `data` bytes of data: one message with one field, which is a `Hunk` and a `MultiHunk`.
///
/// # Errors
/// [`Error::DoesNotFit`] for no data at all, which some readers do not expect, and for more than [`MAX_DATA`].
pub fn write_head(data: usize, out: &mut Vec<u8>) -> Result<(), Error> {
    if data == 0 || data > MAX_DATA {
        return Err(PROTOCOL.does_not_fit("data", MAX_DATA, data));
    }
    let message = 1 + varint_len(data) + data;
    out.push(0);
    out.extend_from_slice(&(message as u32).to_be_bytes());
    out.push(TAG);
    let mut rest = data;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
    Ok(())
}
