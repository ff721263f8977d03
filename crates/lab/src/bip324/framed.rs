//! Packets of one direction by any library that has the AEAD: what somebody writes who has aws-lc-rs and the text of BIP324.
//!
//! Shares no code with our engine, so with RustCrypto underneath it is the oracle of this workload.

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use sealway_aead::Suite;
use sealway_bip324::{LENGTH_LEN, OVERHEAD, TAG_LEN};

use super::ciphers::Ciphers;
use super::links::Link;
use crate::run::CellError;
use crate::workload::engine::Engine;

const SUITE: Suite = Suite::ChaCha20Poly1305;

/// Packets under one key.
const EPOCH: u8 = 224;

/// Masks of all lengths of an epoch, and the key of the next.
const MASKS: usize = EPOCH as usize * LENGTH_LEN;

/// Lengths, nonces and keys of one direction; `K` is a key that is set up.
pub(super) struct Framed<K> {
    masks: [u8; MASKS],
    next_length_key: [u8; 32],
    content_key: [u8; 32],
    key: K,
    epoch: u64,
    slot: u8,
}

impl<K> Framed<K> {
    fn new(link: &Link, set_up: fn(&[u8; 32]) -> Option<K>) -> Option<Self> {
        let mut framed = Framed {
            masks: [0; MASKS],
            next_length_key: link.length_key,
            content_key: link.content_key,
            key: set_up(&link.content_key)?,
            epoch: 0,
            slot: link.start,
        };
        framed.draw_masks();
        Some(framed)
    }

    fn nonce(first: u32, epoch: u64) -> [u8; 12] {
        let mut nonce = [0; 12];
        nonce[..4].copy_from_slice(&first.to_le_bytes());
        nonce[4..].copy_from_slice(&epoch.to_le_bytes());
        nonce
    }

    /// One keystream an epoch: three bytes for each length, then the next key.
    fn draw_masks(&mut self) {
        let nonce = Self::nonce(0, self.epoch);
        let mut stream = ChaCha20::new(&self.next_length_key.into(), &nonce.into());
        self.masks = [0; MASKS];
        stream.apply_keystream(&mut self.masks);
        self.next_length_key = [0; 32];
        stream.apply_keystream(&mut self.next_length_key);
    }

    /// The length of the packet that is next, masked or unmasked.
    #[inline(always)]
    fn mask(&self, length: [u8; LENGTH_LEN]) -> [u8; LENGTH_LEN] {
        let at = usize::from(self.slot) * LENGTH_LEN;
        [0, 1, 2].map(|i| length[i] ^ self.masks[at + i])
    }

    /// The nonce of the packet that is next.
    #[inline(always)]
    fn this_nonce(&self) -> [u8; 12] {
        Self::nonce(u32::from(self.slot), self.epoch)
    }

    /// Goes on to the next packet; after the last of an epoch to the next keys. False if the library refuses.
    #[inline(always)]
    fn advance<E: Engine>(&mut self, set_up: fn(&[u8; 32]) -> Option<K>) -> bool {
        self.slot += 1;
        self.slot < EPOCH || self.rekey::<E>(set_up)
    }

    #[cold]
    fn rekey<E: Engine>(&mut self, set_up: fn(&[u8; 32]) -> Option<K>) -> bool {
        let nonce = Self::nonce(u32::MAX, self.epoch);
        let mut next = [0; 32];
        let sealed = E::sealing(SUITE, &self.content_key).and_then(|key| E::seal(&key, &nonce, &[], &mut next));
        let (true, Some(key)) = (sealed.is_some(), set_up(&next)) else {
            return false;
        };
        self.content_key = next;
        self.key = key;
        self.epoch += 1;
        self.slot = 0;
        self.draw_masks();
        true
    }
}

fn sealing<E: Engine>(key: &[u8; 32]) -> Option<E::Sealing> {
    E::sealing(SUITE, key)
}

fn opening<E: Engine>(key: &[u8; 32]) -> Option<E::Opening> {
    E::opening(SUITE, key)
}

/// A packet loop over a library.
pub(super) struct Loop<E>(std::marker::PhantomData<fn() -> E>);

impl<E> Loop<E> {
    pub(super) const NEW: Self = Loop(std::marker::PhantomData);
}

impl<E: Engine<Sealing: Send, Opening: Send>> Ciphers for Loop<E> {
    const NAME: &'static str = E::NAME;

    type Sealer = Framed<E::Sealing>;
    type Opener = Framed<E::Opening>;

    fn sealers(&self, links: &[Link]) -> Result<Vec<Self::Sealer>, CellError> {
        let sealers = links.iter().map(|link| Framed::new(link, sealing::<E>));
        sealers.collect::<Option<_>>().ok_or_else(refused::<E>)
    }

    fn openers(&self, links: &[Link]) -> Result<Vec<Self::Opener>, CellError> {
        let openers = links.iter().map(|link| Framed::new(link, opening::<E>));
        openers.collect::<Option<_>>().ok_or_else(refused::<E>)
    }

    #[inline(always)]
    fn seal(framed: &mut Self::Sealer, decoy: bool, contents: &[u8], wire: &mut [u8]) -> bool {
        let [a, b, c, _] = (contents.len() as u32).to_le_bytes();
        let Some((length, rest)) = wire.split_first_chunk_mut() else {
            return false;
        };
        *length = framed.mask([a, b, c]);
        let Some((text, tag)) = rest.split_last_chunk_mut::<TAG_LEN>() else {
            return false;
        };
        let Some((header, room)) = text.split_first_mut() else {
            return false;
        };
        *header = if decoy { 0x80 } else { 0 };
        room.copy_from_slice(contents);
        match E::seal(&framed.key, &framed.this_nonce(), &[], text) {
            Some(made) => *tag = made,
            None => return false,
        }
        framed.advance::<E>(sealing::<E>)
    }

    #[inline(always)]
    fn length(framed: &mut Self::Opener, sealed: [u8; LENGTH_LEN]) -> Option<usize> {
        let [a, b, c] = framed.mask(sealed);
        Some(u32::from_le_bytes([a, b, c, 0]) as usize + OVERHEAD - LENGTH_LEN)
    }

    #[inline(always)]
    fn open(framed: &mut Self::Opener, sealed: &[u8], text: &mut [u8]) -> Option<bool> {
        let text = &mut text[..sealed.len().checked_sub(TAG_LEN)?];
        if !E::open_to(&framed.key, &framed.this_nonce(), &[], sealed, text) {
            return None;
        }
        framed.advance::<E>(opening::<E>).then_some(text[0] & 0x80 != 0)
    }
}

fn refused<E: Engine>() -> CellError {
    CellError::failed(format_args!("{} refused a key", E::NAME))
}
