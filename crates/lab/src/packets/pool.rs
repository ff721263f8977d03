//! The packets of a case, with every answer known beforehand.

use std::ops::Range;

use sealway_aead::Suite;

use crate::run::CellError;
use crate::stats::SplitMix64;
use crate::workload::batch::Sizes;
use crate::workload::bytes::{noise, nonce};
use crate::workload::engine::{Engine, RustCrypto};

/// Seed of lengths, contents, keys and connections: the same packets on every machine and in every run.
pub(super) const SEED: u64 = 1;

/// Connections of the cases with resident keys.
pub(super) const CONNECTIONS: usize = 1000;

/// Shortest packet, bytes. The mix has a mean of 325.3 B.
pub(super) const SHORTEST: usize = 1;

/// Whose key seals a packet.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum KeyUse {
    /// Each packet has its own key, which is set up for it.
    Fresh,
    /// Packets of [`CONNECTIONS`] connections in random order; each has one key, set up before.
    Resident,
}

impl KeyUse {
    /// The case's word for it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            KeyUse::Fresh => "fresh",
            KeyUse::Resident => "resident",
        }
    }
}

/// Packets side by side in one arena, and the same sealed in another: ciphertext and tag of each, one after the other.
pub(super) struct Pool {
    pub(super) suite: Suite,
    pub(super) key_use: KeyUse,
    /// Contents and sealed packets.
    pub(super) plain: Vec<u8>,
    pub(super) sealed: Vec<u8>,
    /// Keys, one after the other.
    keys: Vec<u8>,
    /// Which key each packet has.
    key_of: Vec<u32>,
    /// Where each packet's contents start, and the end of the last.
    starts: Vec<u32>,
    /// Which packets nobody wants; empty if there is none.
    decoy: Vec<bool>,
    nonce_base: [u8; Suite::MAX_NONCE_LEN],
}

impl Pool {
    /// Draws `count` packets and has the oracle seal them.
    pub(super) fn new(suite: Suite, sizes: Sizes, key_use: KeyUse, count: usize) -> Result<Pool, CellError> {
        Self::with_decoys(suite, sizes, key_use, count, 0)
    }

    /// Likewise, where `decoys` in a hundred packets have contents that nobody wants: 0 to 64 B, uniform.
    pub(super) fn with_decoys(
        suite: Suite,
        sizes: Sizes,
        key_use: KeyUse,
        count: usize,
        decoys: u32,
    ) -> Result<Pool, CellError> {
        let failed = || CellError::failed(format_args!("the oracle cannot seal {count} packets with {suite}"));
        let mut lengths = SplitMix64::stream(SEED, 0);
        let mut choice = SplitMix64::stream(SEED, 1);
        let mut lots = SplitMix64::stream(SEED, 2);
        let mut starts = vec![0u32];
        let mut decoy = Vec::new();
        let mut total = 0usize;
        for _ in 0..count {
            if decoys > 0 {
                decoy.push(lots.below(100) < decoys as usize);
            }
            total += match decoy.last() {
                Some(true) => lengths.below(65),
                _ => sizes.draw(SHORTEST, &mut lengths),
            };
            starts.push(u32::try_from(total).map_err(|_| failed())?);
        }
        let (keys, key_of): (usize, Vec<u32>) = match key_use {
            KeyUse::Fresh => (count, (0..count as u32).collect()),
            KeyUse::Resident => {
                let draw = |_| choice.below(CONNECTIONS) as u32;
                (CONNECTIONS, (0..count).map(draw).collect())
            }
        };
        let mut nonce_base = [0; Suite::MAX_NONCE_LEN];
        nonce_base[..suite.nonce_len()].copy_from_slice(&noise(suite.nonce_len(), SEED ^ 0x404));
        let mut pool = Pool {
            suite,
            key_use,
            plain: noise(total, SEED ^ 0xda7a),
            sealed: Vec::new(),
            keys: noise(keys * suite.key_len(), SEED ^ 0x6e7),
            key_of,
            starts,
            decoy,
            nonce_base,
        };
        let mut sealed = Vec::with_capacity(total + count * Suite::TAG_LEN);
        for i in 0..count {
            let cipher = RustCrypto::sealing(suite, pool.key(i)).ok_or_else(failed)?;
            let mut text = pool.plain[pool.text(i)].to_vec();
            let mut room = pool.nonce_base;
            let tag = RustCrypto::seal(&cipher, pool.nonce(&mut room, i), &[], &mut text).ok_or_else(failed)?;
            sealed.extend_from_slice(&text);
            sealed.extend_from_slice(&tag);
        }
        pool.sealed = sealed;
        Ok(pool)
    }

    /// Packets there are.
    pub(super) fn count(&self) -> usize {
        self.key_of.len()
    }

    /// Keys there are.
    pub(super) fn keys(&self) -> usize {
        self.keys.len() / self.suite.key_len()
    }

    /// Key number `k`.
    #[inline(always)]
    pub(super) fn key_at(&self, k: usize) -> &[u8] {
        let len = self.suite.key_len();
        &self.keys[k * len..][..len]
    }

    /// The number of packet `i`'s key.
    #[inline(always)]
    pub(super) fn key_of(&self, i: usize) -> u32 {
        self.key_of[i]
    }

    /// The key of packet `i`.
    #[inline(always)]
    pub(super) fn key(&self, i: usize) -> &[u8] {
        self.key_at(self.key_of[i] as usize)
    }

    /// The nonce of packet `i`, put into `room`, which holds a copy of the base.
    #[inline(always)]
    pub(super) fn nonce<'a>(&self, room: &'a mut [u8; Suite::MAX_NONCE_LEN], i: usize) -> &'a [u8] {
        nonce(room, self.suite.nonce_len(), i)
    }

    /// What [`Pool::nonce`] needs.
    #[inline(always)]
    pub(super) fn nonce_room(&self) -> [u8; Suite::MAX_NONCE_LEN] {
        self.nonce_base
    }

    /// Where the contents of packet `i` are.
    #[inline(always)]
    pub(super) fn text(&self, i: usize) -> Range<usize> {
        self.starts[i] as usize..self.starts[i + 1] as usize
    }

    /// Where packet `i` is, sealed.
    #[inline(always)]
    pub(super) fn wire(&self, i: usize) -> Range<usize> {
        let text = self.text(i);
        text.start + i * Suite::TAG_LEN..text.end + (i + 1) * Suite::TAG_LEN
    }

    /// Where the contents of some packets are.
    pub(super) fn texts(&self, packets: &Range<usize>) -> Range<usize> {
        self.starts[packets.start] as usize..self.starts[packets.end] as usize
    }

    fn is_decoy(&self, packet: usize) -> bool {
        self.decoy.get(packet).copied().unwrap_or(false)
    }

    /// How many of some packets are no decoys.
    pub(super) fn genuine(&self, packets: &Range<usize>) -> u64 {
        packets.clone().filter(|&packet| !self.is_decoy(packet)).count() as u64
    }

    /// Bytes of contents of those.
    pub(super) fn genuine_bytes(&self, packets: &Range<usize>) -> u64 {
        let genuine = packets.clone().filter(|&packet| !self.is_decoy(packet));
        genuine.map(|packet| self.text(packet).len() as u64).sum()
    }

    /// Where some packets are, sealed.
    pub(super) fn wires(&self, packets: &Range<usize>) -> Range<usize> {
        let text = self.texts(packets);
        text.start + packets.start * Suite::TAG_LEN..text.end + packets.end * Suite::TAG_LEN
    }

    /// The first place where `got` differs from what `packets` should be, in words.
    ///
    /// # Errors
    /// [`CellError::Wrong`] if there is one.
    pub(super) fn check(&self, packets: &Range<usize>, got: &[u8], sealed: bool) -> Result<(), CellError> {
        let want = if sealed {
            &self.sealed[self.wires(packets)]
        } else {
            &self.plain[self.texts(packets)]
        };
        // The whole at once first: that is a fast comparison, the search for the place is not.
        if got == want {
            return Ok(());
        }
        let place = |i: usize| if sealed { self.wire(i) } else { self.text(i) };
        let base = place(packets.start).start;
        let wrong = packets.clone().find(|&i| {
            let at = place(i).start - base..place(i).end - base;
            got.get(at.clone()) != want.get(at)
        });
        let packet = wrong.unwrap_or(packets.start);
        let what = if sealed { "sealed packet" } else { "opened packet" };
        Err(CellError::wrong(format_args!(
            "{}: {what} {packet} of {} B differs from the oracle's",
            self.suite,
            self.text(packet).len()
        )))
    }
}
