//! The key table on the device.
//!
//! Keys that are set wait here and go over together before the next chunk that is submitted: one copy and one kernel. What
//! is under way by then still has the old keys, what comes later has the new ones.

use std::fmt;

use sealway_aead::batch::Slot;
use sealway_aead::wipe::zero;

use crate::Error;
use crate::device::{Buffer, Device, Event, Launch, Pinned, Queue, Span};

use super::chunk::wipe;

/// Bytes of a key in the table.
const KEY: usize = 32;

/// Bytes of an update: the slot in a piece of its own, and the key.
const UPDATE: usize = 48;

/// Updates that go over at a time.
const ROUND: usize = 16_384;

/// No update waits for this slot.
const NONE: u32 = u32::MAX;

pub(crate) struct KeyTable {
    table: Buffer,
    /// Updates on the device, and as many pinned.
    staging: Buffer,
    host: Pinned,
    round: usize,
    queue: Queue,
    /// Recorded after each round.
    sent: Event,
    /// True until `sent` was seen to be done.
    under_way: bool,
    /// Bytes of `host` that hold keys.
    dirty: usize,
    /// Slots that will have a key once all that waits is sent.
    set: Vec<bool>,
    /// Updates to be sent, at most one a slot: two of one launch would race.
    waiting: Vec<[u8; UPDATE]>,
    /// Where the update of each slot waits.
    places: Vec<u32>,
    /// Changes so far.
    version: u64,
}

impl KeyTable {
    /// An empty table on the device.
    pub(super) fn open(device: &mut dyn Device, slots: usize) -> Result<Self, Error> {
        let round = slots.min(ROUND);
        let queue = device.queue()?;
        let sent = device.event(false)?;
        let table = device.allocate(slots * KEY)?;
        let staging = device.allocate(round * UPDATE)?;
        let host = device.allocate_pinned(round * UPDATE)?;
        device.clear(queue, Span::new(table, &(0..slots * KEY)))?;
        device.clear(queue, Span::new(staging, &(0..round * UPDATE)))?;
        device.finish(queue)?;
        Ok(KeyTable {
            table,
            staging,
            host,
            round,
            queue,
            sent,
            under_way: false,
            dirty: 0,
            set: vec![false; slots],
            waiting: Vec::new(),
            places: vec![NONE; slots],
            version: 0,
        })
    }

    pub(super) fn slots(&self) -> usize {
        self.set.len()
    }

    /// The table, for kernels.
    pub(crate) fn span(&self) -> Span {
        Span::new(self.table, &(0..self.slots() * KEY))
    }

    #[inline]
    pub(crate) fn has(&self, slot: Slot) -> bool {
        self.set.get(slot.0 as usize).copied().unwrap_or(false)
    }

    /// Changes a slot from the next chunk on; without a key it is empty, and zeros on the device.
    pub(super) fn set(&mut self, slot: Slot, key: Option<&[u8; KEY]>) -> Result<(), Error> {
        let index = slot.0 as usize;
        let slots = self.slots();
        let (Some(set), Some(place)) = (self.set.get_mut(index), self.places.get_mut(index)) else {
            return Err(Error::NoSuchSlot { slot: slot.0, slots });
        };
        if *place == NONE {
            if self.waiting.len() == self.waiting.capacity() {
                // Moved by hand, so that the old place is wiped.
                let mut larger = Vec::with_capacity((2 * self.waiting.len()).max(64));
                larger.extend_from_slice(&self.waiting);
                zero(self.waiting.as_flattened_mut());
                self.waiting = larger;
            }
            *place = self.waiting.len() as u32;
            self.waiting.push([0; UPDATE]);
        }
        let update = &mut self.waiting[*place as usize];
        update[..4].copy_from_slice(&slot.0.to_le_bytes());
        match key {
            Some(key) => update[UPDATE - KEY..].copy_from_slice(key),
            None => update[UPDATE - KEY..].fill(0),
        }
        *set = key.is_some();
        self.version += 1;
        Ok(())
    }

    /// The queue in which keys are sent.
    pub(crate) const fn queue(&self) -> Queue {
        self.queue
    }

    /// A number that grows with every change.
    pub(super) const fn version(&self) -> u64 {
        self.version
    }

    /// True if there is something to send.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sends what waits, after the kernels that `before` marks the ends of. If that fails, all of it still waits.
    pub(crate) fn flush(&mut self, device: &mut dyn Device, before: &[Event]) -> Result<(), Error> {
        self.tidy(device)?;
        if self.waiting.is_empty() {
            return Ok(());
        }
        for &event in before {
            device.queue_wait(self.queue, event)?;
        }
        for updates in self.waiting.chunks(self.round) {
            let bytes = updates.as_flattened();
            if self.under_way {
                device.wait(self.sent)?;
                self.under_way = false;
            }
            let room = &mut device.pinned(self.host)?[..bytes.len()];
            room.copy_from_slice(bytes);
            self.dirty = self.dirty.max(bytes.len());
            let staged = Span::new(self.staging, &(0..bytes.len()));
            device.copy_in(self.queue, self.host, 0..bytes.len(), self.staging, 0)?;
            let launch = Launch::SetKeys {
                count: updates.len() as u32,
                keys: Span::new(self.table, &(0..self.set.len() * KEY)),
                updates: staged,
            };
            device.launch(self.queue, &launch)?;
            device.clear(self.queue, staged)?;
            device.record(self.queue, self.sent)?;
            self.under_way = true;
        }
        for update in &self.waiting {
            let slot = u32::from_le_bytes([update[0], update[1], update[2], update[3]]);
            self.places[slot as usize] = NONE;
        }
        // Not all of its capacity: behind these there is nothing that was not wiped before.
        zero(self.waiting.as_flattened_mut());
        self.waiting.clear();
        Ok(())
    }

    /// What a chunk has to wait for.
    pub(super) fn under_way(&self) -> Option<Event> {
        self.under_way.then_some(self.sent)
    }

    /// Wipes host memory whose keys have arrived.
    pub(crate) fn tidy(&mut self, device: &mut dyn Device) -> Result<(), Error> {
        if self.under_way && device.is_done(self.sent)? {
            self.under_way = false;
        }
        if !self.under_way && self.dirty > 0 {
            zero(&mut device.pinned(self.host)?[..self.dirty]);
            self.dirty = 0;
        }
        Ok(())
    }

    /// Waits for whatever is under way, after an error.
    pub(crate) fn settle(&mut self, device: &mut dyn Device) -> Result<(), Error> {
        device.finish(self.queue)?;
        self.under_way = false;
        self.tidy(device)
    }

    /// Wipes everything and gives it back.
    pub(super) fn close(&mut self, device: &mut dyn Device) {
        // What cannot be done to a device that has failed is not done; the host's memory is wiped in any case.
        wipe(device, self.queue, self.span());
        wipe(device, self.queue, Span::new(self.staging, &(0..self.round * UPDATE)));
        let _ = device.finish(self.queue);
        if let Ok(memory) = device.pinned(self.host) {
            zero(memory);
        }
        zero(self.waiting.as_flattened_mut());
        device.free(self.table);
        device.free(self.staging);
        device.free_pinned(self.host);
    }
}

impl fmt::Debug for KeyTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyTable")
            .field("slots", &self.slots())
            .field("set", &self.set.iter().filter(|&&set| set).count())
            .field("waiting", &self.waiting.len())
            .finish_non_exhaustive()
    }
}
