//! One secret for each extra connection that may still come. A secret that was used is gone, so an index works once, and
//! whoever gets hold of a session later finds nothing about connections made before.

use std::collections::VecDeque;

use sealway_aead::derive::Prk;
use subtle::ConstantTimeEq;

use crate::Error;

/// How far an index may be above the highest used one. So many attempts in a row may be lost on their way.
pub const WINDOW: u32 = 64;

/// Labels of a slot's secret, of its token and of the step to the next slot.
const SLOT: &str = "sealway session attach slot";
const TOKEN: &str = "sealway session attach token";

/// What an extra connection is made from.
pub(crate) struct Slot {
    pub(crate) index: u32,
    pub(crate) token: [u8; 32],
    pub(crate) secret: Prk,
}

/// The open slots: [`WINDOW`] above the highest index used, and of those below it that were not used the newest.
pub(crate) struct Slots {
    chain: Prk,
    /// In order of index; at most twice [`WINDOW`].
    open: VecDeque<Slot>,
    /// Index of the next slot to be made.
    made: u64,
    /// One above the highest index used.
    free: u64,
}

impl Slots {
    pub(crate) fn new(chain: Prk) -> Self {
        Slots {
            chain,
            open: VecDeque::new(),
            made: 1,
            free: 1,
        }
    }

    pub(super) fn next_index(&self) -> u32 {
        u32::try_from(self.free).unwrap_or(u32::MAX)
    }

    /// Makes slots up to this index if the window reaches so far.
    fn fill(&mut self, index: u32) -> Result<(), Error> {
        while self.made <= u64::from(index) && self.made < self.free + u64::from(WINDOW) {
            let index = u32::try_from(self.made).map_err(|_| Error::IndexTaken { index })?;
            let context = index.to_be_bytes();
            let secret = self.chain.export_prk(SLOT, &context)?;
            let mut token = [0; 32];
            secret.export(TOKEN, &context, &mut token)?;
            self.chain = self.chain.next_epoch(SLOT, u64::from(index), &[])?;
            self.open.push_back(Slot { index, token, secret });
            self.made += 1;
        }
        Ok(())
    }

    fn position(&mut self, index: u32) -> Result<usize, Error> {
        self.fill(index)?;
        self.open
            .binary_search_by_key(&index, |slot| slot.index)
            .map_err(|_| Error::IndexTaken { index })
    }

    pub(super) fn token(&mut self, index: u32) -> Result<[u8; 32], Error> {
        let position = self.position(index)?;
        self.open
            .get(position)
            .map(|slot| slot.token)
            .ok_or(Error::IndexTaken { index })
    }

    /// The open slot of a token. All are compared, so that the time says nothing about which.
    pub(crate) fn find(&mut self, token: &[u8; 32]) -> Result<Option<u32>, Error> {
        let highest = self.free + u64::from(WINDOW) - 1;
        self.fill(u32::try_from(highest).unwrap_or(u32::MAX))?;
        let mut found = None;
        for slot in &self.open {
            if bool::from(slot.token.ct_eq(token)) {
                found = Some(slot.index);
            }
        }
        Ok(found)
    }

    /// The slot of an index, to look at.
    pub(crate) fn get(&mut self, index: u32) -> Result<&Slot, Error> {
        let position = self.position(index)?;
        self.open.get(position).ok_or(Error::IndexTaken { index })
    }

    /// The slot of an index, which is then used.
    pub(crate) fn take(&mut self, index: u32) -> Result<Slot, Error> {
        let position = self.position(index)?;
        let slot = self.open.remove(position).ok_or(Error::IndexTaken { index })?;
        self.free = self.free.max(u64::from(index) + 1);
        // Of what was passed over, the oldest goes.
        while self.open.len() > 2 * WINDOW as usize {
            self.open.pop_front();
        }
        Ok(slot)
    }
}
