//! What an exchange over a connection is made of, and how far one end of it has come.
//!
//! Both ends know every byte: a message is a fixed head and then words of eight bytes, each the exchange's key XOR its
//! message and offset. Loss, reordering, doubling and mixing of connections all show at the first byte that they touch.

use std::fmt;

/// The end of a connection that sends a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    /// The one that connects.
    Client,
    /// The one that accepts.
    Server,
}

/// One message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Message {
    pub(crate) from: Side,
    /// Its fixed start.
    pub(crate) head: &'static [u8],
    /// Bytes after the head.
    pub(crate) body: usize,
}

impl Message {
    /// Bytes in all.
    pub(crate) const fn len(&self) -> usize {
        self.head.len() + self.body
    }
}

/// Where the first message carries the key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum KeyPlace {
    /// 16 hexadecimal digits in its head, from this place.
    Hex(usize),
    /// Its first word.
    Word,
}

/// What comes after the last message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ending {
    /// The connection stays, and the next exchange begins when the client wants.
    Stays,
    /// The server closes.
    ServerCloses,
    /// The client closes.
    ClientCloses,
}

/// The messages of an exchange. The first is the client's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Script {
    pub(crate) messages: &'static [Message],
    pub(crate) key: KeyPlace,
    pub(crate) ending: Ending,
}

const KEY_DIGITS: usize = 16;

/// A buffer of this many bytes holds any message of any script here.
pub(crate) const LONGEST: usize = 8 << 10;

/// Most bytes up to and with the key.
const LONGEST_START: usize = 32;

impl Script {
    /// Bytes both ways.
    pub(crate) fn bytes(&self) -> u64 {
        self.messages.iter().map(|message| message.len() as u64).sum()
    }

    /// Bytes of the first message up to and with the key.
    const fn start(&self) -> usize {
        match self.key {
            KeyPlace::Hex(at) => at + KEY_DIGITS,
            KeyPlace::Word => 8,
        }
    }

    fn key_in(&self, start: &[u8]) -> Option<u64> {
        match self.key {
            KeyPlace::Hex(at) => {
                let digits = std::str::from_utf8(start.get(at..)?).ok()?;
                u64::from_str_radix(digits, 16).ok()
            }
            KeyPlace::Word => Some(u64::from_le_bytes(start.try_into().ok()?)),
        }
    }

    /// Writes message `index` of the exchange `key` into `buffer`, and returns the part that it takes.
    pub(crate) fn render<'b>(&self, index: usize, key: u64, buffer: &'b mut [u8]) -> &'b [u8] {
        const HEX: &[u8; 16] = b"0123456789abcdef";
        let message = &self.messages[index];
        let (head, rest) = buffer.split_at_mut(message.head.len());
        head.copy_from_slice(message.head);
        if let (0, KeyPlace::Hex(at)) = (index, self.key) {
            for (place, digit) in head[at..at + KEY_DIGITS].iter_mut().enumerate() {
                *digit = HEX[(key >> (60 - 4 * place)) as usize & 15];
            }
        }
        let base = key ^ ((index as u64) << 32);
        let (words, tail) = rest[..message.body].as_chunks_mut::<8>();
        for (place, word) in words.iter_mut().enumerate() {
            *word = (base ^ (8 * place as u64)).to_le_bytes();
        }
        let last = (base ^ (8 * words.len() as u64)).to_le_bytes();
        tail.copy_from_slice(&last[..tail.len()]);
        &buffer[..message.len()]
    }
}

/// What an end has to do next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Turn {
    /// Send.
    Send,
    /// Receive.
    Receive,
    /// Nothing: the exchange is over.
    Done,
}

/// What came was not what was sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Mismatch {
    /// A byte is another.
    Byte {
        /// The message, from 0.
        message: usize,
        /// The place in it, from 0.
        offset: usize,
        /// What should have come.
        wanted: u8,
        /// What came.
        came: u8,
    },
    /// More came than the exchange has.
    Surplus {
        /// Bytes too many.
        bytes: usize,
    },
    /// The first message has no key.
    NoKey,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Mismatch::Byte {
                message,
                offset,
                wanted,
                came,
            } => write!(
                f,
                "byte {offset} of message {message} is {came:#04x} instead of {wanted:#04x}"
            ),
            Mismatch::Surplus { bytes } => write!(f, "{bytes} bytes more came than were asked for"),
            Mismatch::NoKey => f.write_str("the first message does not begin as it must"),
        }
    }
}

/// How far one end has come in an exchange.
#[derive(Clone, Debug)]
pub(crate) struct Talk {
    side: Side,
    /// Not known to a server before it has read so far.
    key: Option<u64>,
    message: usize,
    offset: usize,
    /// What a server has read so far without knowing the key.
    start: [u8; LONGEST_START],
    heard: bool,
}

impl Talk {
    /// The client's end of the exchange `key`.
    pub(crate) const fn client(key: u64) -> Talk {
        Talk::new(Side::Client, Some(key))
    }

    /// A server's end, which learns the key from the client.
    pub(crate) const fn server() -> Talk {
        Talk::new(Side::Server, None)
    }

    const fn new(side: Side, key: Option<u64>) -> Talk {
        Talk {
            side,
            key,
            message: 0,
            offset: 0,
            start: [0; LONGEST_START],
            heard: false,
        }
    }

    /// What to do next.
    pub(crate) fn turn(&self, script: &Script) -> Turn {
        match script.messages.get(self.message) {
            None => Turn::Done,
            Some(message) if message.from == self.side => Turn::Send,
            Some(_) => Turn::Receive,
        }
    }

    /// True once something was received.
    pub(crate) const fn heard(&self) -> bool {
        self.heard
    }

    /// What is left of the message to send. Empty unless it is this end's turn.
    pub(crate) fn outgoing<'b>(&self, script: &Script, buffer: &'b mut [u8]) -> &'b [u8] {
        match (self.turn(script), self.key) {
            (Turn::Send, Some(key)) => &script.render(self.message, key, buffer)[self.offset..],
            _ => &[],
        }
    }

    /// Compares what came with what had to come; `buffer` is for the lab's own copy.
    pub(crate) fn received(&mut self, script: &Script, mut bytes: &[u8], buffer: &mut [u8]) -> Result<(), Mismatch> {
        self.heard |= !bytes.is_empty();
        while !bytes.is_empty() {
            if self.turn(script) != Turn::Receive {
                return Err(Mismatch::Surplus { bytes: bytes.len() });
            }
            let Some(key) = self.key else {
                let wanted = script.start();
                let part = (wanted - self.offset).min(bytes.len());
                self.start[self.offset..self.offset + part].copy_from_slice(&bytes[..part]);
                bytes = &bytes[part..];
                self.offset += part;
                if self.offset == wanted {
                    let start = self.start;
                    self.key = Some(script.key_in(&start[..wanted]).ok_or(Mismatch::NoKey)?);
                    self.offset = 0;
                    self.received(script, &start[..wanted], buffer)?;
                }
                continue;
            };
            let message = script.render(self.message, key, buffer);
            let wanted = &message[self.offset..];
            let part = wanted.len().min(bytes.len());
            if wanted[..part] != bytes[..part] {
                let place = wanted.iter().zip(bytes).position(|(a, b)| a != b).unwrap_or(0);
                return Err(Mismatch::Byte {
                    message: self.message,
                    offset: self.offset + place,
                    wanted: wanted[place],
                    came: bytes[place],
                });
            }
            bytes = &bytes[part..];
            self.advance(script, part);
        }
        Ok(())
    }

    /// `bytes` of the message were sent, or compared.
    pub(crate) fn advance(&mut self, script: &Script, bytes: usize) {
        self.offset += bytes;
        let whole = |message: &Message| self.offset >= message.len();
        if script.messages.get(self.message).is_some_and(whole) {
            self.message += 1;
            self.offset = 0;
        }
    }
}
