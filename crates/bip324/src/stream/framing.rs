//! How the bytes of one direction are cut into messages.

use std::ops::Range;

use crate::message::Command;
use crate::message::v1::{self, Header};
use crate::{Error, HEADER_LEN, Kind, LENGTH_LEN, Magic, PacketOpener, TAG_LEN};

/// What cuts the bytes of one direction into messages: [`Packets`] or [`V1Messages`].
pub trait Framing {
    /// What is known of a message besides its bytes.
    type Head: Copy;

    /// Looks at everything that has come from the front of a frame on. It is asked again, with more, until the frame is whole,
    /// and after that about the next one.
    ///
    /// # Errors
    /// What ends the direction. It is not to be asked again then.
    fn cut(&mut self, front: &mut [u8]) -> Result<Cut<Self::Head>, Error>;
}

/// What stands at the front.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Cut<H> {
    /// A frame that is not whole, of so many bytes as far as is known.
    Wants(usize),
    /// A frame of so many bytes without a message.
    Decoy(usize),
    /// A frame of so many bytes whose message is to be dropped.
    Dropped(usize),
    /// A message.
    Message(Frame<H>),
}

/// A message that is whole and good.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Frame<H> {
    /// What is known of it besides its bytes.
    pub head: H,
    /// Where those are.
    pub body: Range<usize>,
    /// Bytes of the frame around them.
    pub len: usize,
}

/// Packets of BIP324. The body of a message is its contents.
pub struct Packets {
    opener: PacketOpener,
    contents_limit: usize,
    /// Bytes that follow the length of the packet at the front, once that is open; 0 before.
    need: usize,
}

impl Packets {
    /// Packets of at most `contents_limit` bytes of contents.
    pub const fn new(opener: PacketOpener, contents_limit: usize) -> Self {
        Packets {
            opener,
            contents_limit,
            need: 0,
        }
    }
}

impl Framing for Packets {
    type Head = ();

    fn cut(&mut self, front: &mut [u8]) -> Result<Cut<()>, Error> {
        if self.need == 0 {
            let Some(length) = front.first_chunk::<LENGTH_LEN>() else {
                return Ok(Cut::Wants(LENGTH_LEN));
            };
            let need = self.opener.open_length(*length)?;
            let (claimed, limit) = (need - HEADER_LEN - TAG_LEN, self.contents_limit);
            if claimed > limit {
                return Err(Error::PacketTooLong { claimed, limit });
            }
            self.need = need;
        }
        let len = LENGTH_LEN + self.need;
        let Some(packet) = front.get_mut(LENGTH_LEN..len) else {
            return Ok(Cut::Wants(len));
        };
        let (kind, _) = self.opener.open_in_place(&[], packet)?;
        self.need = 0;
        Ok(match kind {
            Kind::Genuine => Cut::Message(Frame {
                head: (),
                body: LENGTH_LEN + HEADER_LEN..len - TAG_LEN,
                len,
            }),
            Kind::Decoy => Cut::Decoy(len),
        })
    }
}

/// Messages of v1, checked: network, length, checksum and type. The body of a message is its payload.
///
/// A message with a wrong checksum or type is dropped, as in Bitcoin Core; another network or a length above the limit ends
/// the direction.
pub struct V1Messages {
    magic: Magic,
    payload_limit: u32,
    /// The header of the message at the front, once it is read.
    header: Option<Header>,
}

impl V1Messages {
    /// Messages of a network, of at most `payload_limit` bytes of payload.
    pub const fn new(magic: Magic, payload_limit: u32) -> Self {
        V1Messages {
            magic,
            payload_limit,
            header: None,
        }
    }
}

impl Framing for V1Messages {
    type Head = Command;

    fn cut(&mut self, front: &mut [u8]) -> Result<Cut<Command>, Error> {
        let Some((bytes, rest)) = front.split_first_chunk::<{ v1::HEADER_LEN }>() else {
            return Ok(Cut::Wants(v1::HEADER_LEN));
        };
        let header = match self.header {
            Some(header) => header,
            None => Header::decode(self.magic, self.payload_limit, bytes)?,
        };
        self.header = Some(header);
        let len = v1::HEADER_LEN + header.payload_len as usize;
        let Some(payload) = rest.get(..header.payload_len as usize) else {
            return Ok(Cut::Wants(len));
        };
        self.header = None;
        Ok(match header.message(payload) {
            Ok(message) => Cut::Message(Frame {
                head: message.command,
                body: v1::HEADER_LEN..len,
                len,
            }),
            Err(_) => Cut::Dropped(len),
        })
    }
}
