//! One direction, one packet at a time.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use sealway_aead::{Nonce, OpeningKey, SealingKey, Suite, Tag};

use crate::fschacha::{PacketNumber, RecvChain, SendChain};
use crate::{Error, HEADER_LEN, LENGTH_LEN, OVERHEAD, TAG_LEN};

/// The cipher of contents.
const SUITE: Suite = Suite::ChaCha20Poly1305;

/// The bit of the header that says that the contents mean nothing.
const IGNORE: u8 = 0x80;

/// What a packet is for. On the wire, one bit inside the sealed part.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Kind {
    /// Its contents mean something.
    Genuine,
    /// It is there to be seen and thrown away.
    Decoy,
}

impl Kind {
    /// The header byte to send.
    #[inline]
    pub const fn header(self) -> u8 {
        match self {
            Kind::Genuine => 0,
            Kind::Decoy => IGNORE,
        }
    }

    /// Reads a header byte. Bits other than the highest are for later and say nothing.
    #[inline]
    pub const fn of_header(header: u8) -> Self {
        if header & IGNORE == 0 {
            Kind::Genuine
        } else {
            Kind::Decoy
        }
    }
}

/// Seals the packets of one direction.
///
/// Not `Clone`; keys are wiped when it is dropped and, of an epoch that is over, at once.
pub struct PacketSealer {
    /// `None` after a failure.
    live: Option<Box<Sealing>>,
}

struct Sealing {
    chain: SendChain,
    /// The key of an epoch, expanded.
    key: Option<(u64, SealingKey)>,
}

impl PacketSealer {
    /// A sealer that goes on where the chain stands.
    pub fn new(chain: SendChain) -> Self {
        PacketSealer {
            live: Some(Box::new(Sealing { chain, key: None })),
        }
    }

    /// Appends a packet to `wire`: 20 bytes more than its contents.
    ///
    /// `aad` is empty but for the first packet of a direction, whose AAD is the garbage that was sent.
    ///
    /// # Errors
    /// [`Error::ContentsTooLong`] above 2^24 - 1 bytes: nothing happened then. Anything else uses up the sealer, because a
    /// packet is missing that the peer waits for; `wire` is as it was. [`Error::Closed`] from then on.
    pub fn seal(&mut self, kind: Kind, aad: &[u8], contents: &[u8], wire: &mut Vec<u8>) -> Result<(), Error> {
        let start = wire.len();
        wire.reserve(contents.len().saturating_add(OVERHEAD));
        wire.extend_from_slice(&[0; LENGTH_LEN + HEADER_LEN]);
        wire.extend_from_slice(contents);
        wire.extend_from_slice(&[0; TAG_LEN]);
        let sealed = self.seal_in_place(kind, aad, &mut wire[start..]);
        if sealed.is_err() {
            wire.truncate(start);
        }
        sealed
    }

    /// Seals a packet where it lies: four bytes of room, the contents, sixteen bytes of room.
    ///
    /// # Errors
    /// [`Error::Buffer`] for fewer than 20 bytes; otherwise as [`PacketSealer::seal`], with `packet` as it was if the
    /// contents are too long and zeroed if something else failed.
    pub fn seal_in_place(&mut self, kind: Kind, aad: &[u8], packet: &mut [u8]) -> Result<(), Error> {
        let got = packet.len();
        let Some(contents_len) = got.checked_sub(OVERHEAD) else {
            return Err(Error::Buffer { need: OVERHEAD, got });
        };
        let live = self.live.as_mut().ok_or(Error::Closed)?;
        let sealed = live.seal(kind, aad, packet, contents_len);
        match sealed {
            Ok(()) | Err(Error::ContentsTooLong { .. }) => {}
            Err(_) => {
                packet.fill(0);
                self.live = None;
            }
        }
        sealed
    }

    /// The number of the next packet; `None` after a failure.
    pub fn next_number(&self) -> Option<PacketNumber> {
        self.live.as_ref()?.chain.next_number()
    }

    /// The chain, for whoever seals by other means from here on; `None` after a failure.
    pub fn into_chain(self) -> Option<SendChain> {
        self.live.map(|live| live.chain)
    }
}

impl Sealing {
    fn seal(&mut self, kind: Kind, aad: &[u8], packet: &mut [u8], contents_len: usize) -> Result<(), Error> {
        let (number, sealed_length) = self.chain.reserve(contents_len)?;
        let nonce = Nonce::assume_unique(SUITE, &number.nonce())?;
        let key = match &mut self.key {
            Some((epoch, key)) if *epoch == number.epoch() => key,
            key => {
                let bytes = self.chain.key_of(number).ok_or(Error::Closed)?;
                &mut key.insert((number.epoch(), SealingKey::new(SUITE, bytes)?)).1
            }
        };
        let (length, sealed) = packet.split_at_mut(LENGTH_LEN);
        length.copy_from_slice(&sealed_length);
        let (text, tag) = sealed.split_at_mut(HEADER_LEN + contents_len);
        text[0] = kind.header();
        tag.copy_from_slice(key.seal_in_place(nonce, aad, text)?.as_bytes());
        if number.slot() + 1 == crate::fschacha::REKEY_INTERVAL {
            self.key = None;
            self.chain.end_epoch()?;
        }
        Ok(())
    }
}

impl fmt::Debug for PacketSealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketSealer({:?})", self.next_number())
    }
}

/// Opens the packets of one direction, each in two steps: the length, then the rest.
///
/// Not `Clone`; after the first failure it opens nothing more and its keys are wiped.
pub struct PacketOpener {
    /// `None` after a failure.
    live: Option<Box<Opening>>,
}

struct Opening {
    chain: RecvChain,
    key: Option<(u64, OpeningKey)>,
    /// The packet whose length has been opened.
    awaited: Option<Awaited>,
}

#[derive(Clone, Copy)]
struct Awaited {
    number: PacketNumber,
    contents_len: usize,
    sealed_length: [u8; LENGTH_LEN],
}

impl PacketOpener {
    /// An opener that goes on where the chain stands.
    pub fn new(chain: RecvChain) -> Self {
        PacketOpener {
            live: Some(Box::new(Opening {
                chain,
                key: None,
                awaited: None,
            })),
        }
    }

    /// Opens a length: gives the bytes that follow it, 17 more than the contents that the packet claims to have.
    ///
    /// The claim is not authentic until the packet is. A caller sees that it is below its limit, reserves nothing by it,
    /// and gives up if the bytes do not come.
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] if a packet is awaited already, [`Error::Closed`] after a failure.
    pub fn open_length(&mut self, sealed: [u8; LENGTH_LEN]) -> Result<usize, Error> {
        let live = self.live.as_mut().ok_or(Error::Closed)?;
        if live.awaited.is_some() {
            return Err(Error::OutOfOrder {
                what: "a length was opened while a packet was awaited",
            });
        }
        let (number, contents_len) = live.chain.open_length(sealed)?;
        live.awaited = Some(Awaited {
            number,
            contents_len,
            sealed_length: sealed,
        });
        Ok(HEADER_LEN + contents_len + TAG_LEN)
    }

    /// Opens what follows a length, in place: gives what the packet is for, and its contents, `packet[1..n - 16]`.
    ///
    /// `aad` is empty but for the first packet of a direction, whose AAD is the garbage that came.
    ///
    /// # Errors
    /// [`Error::Unauthentic`] if it is not what was sealed: `packet` is zeroed, the keys are wiped, nothing is opened from
    /// then on. [`Error::OutOfOrder`] without a length before it, and [`Error::Buffer`] for another number of bytes than
    /// [`PacketOpener::open_length`] gave: the packet is still awaited. [`Error::Closed`] after a failure.
    pub fn open_in_place<'a>(&mut self, aad: &[u8], packet: &'a mut [u8]) -> Result<(Kind, &'a mut [u8]), Error> {
        let live = self.live.as_mut().ok_or(Error::Closed)?;
        let Some(awaited) = live.awaited else {
            return Err(Error::OutOfOrder {
                what: "a packet was opened before its length",
            });
        };
        let (need, got) = (HEADER_LEN + awaited.contents_len + TAG_LEN, packet.len());
        if need != got {
            return Err(Error::Buffer { need, got });
        }
        match live.open(awaited.number, aad, packet) {
            Ok(kind) => {
                live.awaited = None;
                Ok((kind, &mut packet[HEADER_LEN..need - TAG_LEN]))
            }
            Err(error) => {
                packet.fill(0);
                self.live = None;
                Err(error)
            }
        }
    }

    /// The number of the packet that is awaited or, without one, of the next; `None` after a failure.
    pub fn next_number(&self) -> Option<PacketNumber> {
        let live = self.live.as_ref()?;
        match &live.awaited {
            Some(awaited) => Some(awaited.number),
            None => live.chain.next_number(),
        }
    }

    /// True after a failure.
    pub const fn is_closed(&self) -> bool {
        self.live.is_none()
    }

    /// The chain, for whoever opens by other means from here on, and the sealed length of the packet that is awaited: the
    /// chain stands before it, as if it had not been opened. `None` after a failure.
    pub fn into_chain(self) -> Option<(RecvChain, Option<[u8; LENGTH_LEN]>)> {
        let Opening { mut chain, awaited, .. } = *self.live?;
        let sealed = awaited.map(|awaited| {
            chain.take_back(awaited.sealed_length, awaited.contents_len);
            awaited.sealed_length
        });
        Some((chain, sealed))
    }
}

impl Opening {
    fn open(&mut self, number: PacketNumber, aad: &[u8], packet: &mut [u8]) -> Result<Kind, Error> {
        let key = match &mut self.key {
            Some((epoch, key)) if *epoch == number.epoch() => key,
            key => {
                let bytes = self.chain.key_of(number).ok_or(Error::Closed)?;
                &mut key.insert((number.epoch(), OpeningKey::new(SUITE, bytes)?)).1
            }
        };
        let (text, tag) = packet.split_at_mut(packet.len() - TAG_LEN);
        key.open_in_place(&number.nonce(), aad, text, &Tag::from_slice(tag)?)?;
        if number.slot() + 1 == crate::fschacha::REKEY_INTERVAL {
            self.key = None;
            self.chain.end_epoch()?;
        }
        Ok(Kind::of_header(text[0]))
    }
}

impl fmt::Debug for PacketOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PacketOpener({:?})", self.next_number())
    }
}
