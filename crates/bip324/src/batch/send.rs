//! Planning what is sent.

use sealway_aead::batch::{Job, Slot, Status};
use sealway_aead::{Nonce, Suite};

use crate::fschacha::{REKEY_INTERVAL, SendChain, length_bytes};
use crate::{CONTENTS_MAX, Error, HEADER_LEN, Kind, LENGTH_LEN, OVERHEAD, TAG_LEN};

use super::ConnectionId;
use super::crypt::{Crypt, Way, connection_of, slot_of};
use super::sheet::{Finished, Place, Sheets};
use super::stock::{Stock, make_room};

/// No run.
const NONE: u32 = u32::MAX;

/// What sending needs to know about a connection for each packet: a cache line.
#[repr(align(64))]
struct State {
    stock: Stock,
    generation: u32,
    /// First and last run of this batch.
    first: u32,
    last: u32,
    live: bool,
    /// True while the key of the epoch is in its slot.
    loaded: bool,
}

const _: () = assert!(size_of::<State>() == 64);

/// A stretch of memory with packets of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    place: Place,
    start: u32,
    end: u32,
    next: u32,
}

/// Everything about what is sent.
pub(super) struct SendSide {
    states: Vec<State>,
    /// Where the numbers come from; `None` if there is no connection.
    chains: Vec<Option<SendChain>>,
    /// Where packets are, and those that are planned and not sealed.
    sheets: Sheets,
    /// Bytes of packets.
    bytes: usize,
    /// Slots of keys whose last packet is planned and not sealed.
    retired: Vec<Slot>,
    runs: Vec<Run>,
    /// Connections with runs, in the order of their first.
    touched: Vec<u32>,
    /// Packets in memory.
    packets: usize,
    /// True once the runs have been shown: what comes next starts a new batch.
    shown: bool,
    /// Connections that cannot go on, because a packet is missing.
    pub(super) failed: Vec<(ConnectionId, Error)>,
}

impl SendSide {
    pub(super) fn new(arena: usize) -> Self {
        SendSide {
            states: Vec::new(),
            chains: Vec::new(),
            sheets: Sheets::new(arena, false),
            bytes: 0,
            retired: Vec::new(),
            runs: Vec::new(),
            touched: Vec::new(),
            packets: 0,
            shown: false,
            failed: Vec::new(),
        }
    }

    /// Puts a connection in its place.
    pub(super) fn insert(&mut self, id: ConnectionId, chain: SendChain) {
        let state = State {
            stock: Stock::EMPTY,
            generation: id.generation,
            first: NONE,
            last: NONE,
            live: true,
            loaded: false,
        };
        let index = id.index as usize;
        if let (Some(place), Some(old)) = (self.states.get_mut(index), self.chains.get_mut(index)) {
            (*place, *old) = (state, Some(chain));
            return;
        }
        make_room(&mut self.states, |state| State {
            stock: state.stock.move_out(),
            ..*state
        });
        self.states.push(state);
        self.chains.push(Some(chain));
    }

    /// Wipes a connection and forgets its output. None of its jobs may wait.
    pub(super) fn remove(&mut self, index: usize, crypt: &mut Crypt) {
        let Some(state) = self.states.get_mut(index) else {
            return;
        };
        state.live = false;
        state.stock = Stock::EMPTY;
        self.chains[index] = None;
        if state.first != NONE {
            self.touched.retain(|&touched| touched as usize != index);
            (state.first, state.last) = (NONE, NONE);
        }
        for epoch in [0, 1] {
            crypt.clear(slot_of(index, Way::Send, epoch));
        }
    }

    /// Says that the slots of all keys are empty. No job may wait.
    pub(super) fn unload(&mut self) {
        self.states.iter_mut().for_each(|state| state.loaded = false);
    }

    /// Packets and bytes that wait to be sealed or shown.
    pub(super) const fn waiting(&self) -> (usize, usize) {
        if self.shown { (0, 0) } else { (self.packets, self.bytes) }
    }

    /// True if there is such a connection.
    pub(super) fn holds(&self, id: ConnectionId) -> bool {
        self.states
            .get(id.index as usize)
            .is_some_and(|state| state.generation == id.generation && state.live)
    }

    pub(super) fn next_number(&self, index: usize) -> Option<crate::fschacha::PacketNumber> {
        let chain = self.chains.get(index)?.as_ref()?;
        self.states[index].stock.number().or_else(|| chain.next_number())
    }

    /// Plans a packet; gives the place of its contents.
    #[inline]
    pub(super) fn reserve<'a>(
        &'a mut self,
        id: ConnectionId,
        kind: Kind,
        len: usize,
        crypt: &'a mut Crypt,
    ) -> Result<&'a mut [u8], Error> {
        if len > CONTENTS_MAX.min(self.sheets.arena_len() - OVERHEAD) {
            return Err(self.too_long(len));
        }
        if self.shown {
            self.recycle(crypt);
        }
        let index = id.index as usize;
        match self.states.get(index) {
            Some(state) if state.generation == id.generation && state.live => {
                if state.stock.is_empty() || !state.loaded {
                    self.refill(index, crypt)?;
                }
            }
            _ => return Err(Error::Closed),
        }
        if !self.sheets.make_room(len + OVERHEAD, crypt) {
            return Err(self.full());
        }
        if self.sheets.is_due(crypt) {
            self.relieve(crypt);
        }
        let (place, start) = self.sheets.end();
        let length = length_bytes(len)?;
        let (waiting, limit) = (self.bytes, self.sheets.arena_len());
        // Nothing is used up if an executor's memory is gone.
        let (packet, jobs, counters) = self
            .sheets
            .next(len + OVERHEAD, crypt)
            .ok_or(Error::ArenaFull { waiting, limit })?;
        let state = &mut self.states[index];
        let (Some(number), Some(mask)) = (state.stock.number(), state.stock.take_mask()) else {
            return Err(Error::Closed);
        };
        state.stock.advance();
        let slot = slot_of(index, Way::Send, number.epoch());
        let end = (start + len + OVERHEAD) as u32;
        let text = (start + LENGTH_LEN) as u32..end - TAG_LEN as u32;
        let nonce = Nonce::assume_unique(Suite::ChaCha20Poly1305, &number.nonce())?;
        jobs.push(Job::seal(slot, nonce, text.clone(), text.start));
        // The key is in its slot: the chain may go on, and the slot is emptied once this packet is sealed.
        if number.slot() + 1 == REKEY_INTERVAL {
            self.retired.push(slot);
            state.loaded = false;
            if let Some(chain) = &mut self.chains[index] {
                chain.end_epoch()?;
            }
        }
        let next = self.runs.len() as u32;
        match self.runs.get_mut(state.last as usize) {
            Some(run) if run.end as usize == start && run.place == place => run.end = end,
            last => {
                let start = start as u32;
                match last {
                    Some(run) => run.next = next,
                    None => {
                        state.first = next;
                        self.touched.push(id.index);
                    }
                }
                state.last = next;
                self.runs.push(Run {
                    place,
                    start,
                    end,
                    next: NONE,
                });
            }
        }
        self.packets += 1;
        self.bytes += len + OVERHEAD;
        counters.packets_sent += 1;
        counters.decoys_sent += u64::from(kind == Kind::Decoy);
        counters.bytes_sent += (len + OVERHEAD) as u64;
        let (head, rest) = packet.split_at_mut(LENGTH_LEN + HEADER_LEN);
        head.copy_from_slice(&[
            length[0] ^ mask[0],
            length[1] ^ mask[1],
            length[2] ^ mask[2],
            kind.header(),
        ]);
        let (contents, tag) = rest.split_at_mut(len);
        if place != Place::Arena {
            // By what stands here afterwards, an executor that left it out is found.
            tag.copy_from_slice(&[0; TAG_LEN]);
        }
        Ok(contents)
    }

    /// Sees that there are numbers at hand, and the key of the epoch in its slot.
    #[cold]
    fn refill(&mut self, index: usize, crypt: &mut Crypt) -> Result<(), Error> {
        let (Some(state), Some(Some(chain))) = (self.states.get_mut(index), self.chains.get_mut(index)) else {
            return Err(Error::Closed);
        };
        if state.stock.is_empty() {
            state.stock.refill(|masks| chain.reserve_masks(masks))?;
        }
        if state.loaded {
            return Ok(());
        }
        let number = state.stock.number().ok_or(Error::Exhausted)?;
        let slot = slot_of(index, Way::Send, number.epoch());
        // Packets of two epochs before wait for the key that is there.
        if self.retired.contains(&slot) {
            self.begin(crypt);
            self.crypt(crypt, false);
        }
        let key = self.chains[index].as_ref().and_then(|chain| chain.key_of(number));
        crypt.load(slot, key.ok_or(Error::Closed)?)?;
        self.states[index].loaded = true;
        Ok(())
    }

    /// Seals what waits, and wipes the keys of epochs that are over. `last` says that no packet follows for now.
    pub(super) fn crypt(&mut self, crypt: &mut Crypt, last: bool) {
        if self.sheets.is_idle() {
            return;
        }
        let (states, failed) = (&self.states, &mut self.failed);
        self.sheets.finish(crypt, last, |done| take(states, failed, done));
        if !self.retired.is_empty() {
            self.retired.drain(..).for_each(|slot| crypt.clear(slot));
        }
    }

    /// Gives what waits to the executor, if it is to have it.
    pub(super) fn begin(&mut self, crypt: &mut Crypt) {
        self.sheets.begin(crypt);
    }

    /// Seals what waits where the next packet goes.
    #[cold]
    fn relieve(&mut self, crypt: &mut Crypt) {
        let (states, failed) = (&self.states, &mut self.failed);
        self.sheets.relieve(crypt, |done| take(states, failed, done));
        if self.sheets.is_idle() {
            for slot in self.retired.drain(..) {
                crypt.clear(slot);
            }
        }
    }

    /// Says that the batch is complete and has been shown.
    pub(super) fn show(&mut self, crypt: &mut Crypt) {
        if self.shown {
            self.recycle(crypt);
        }
        self.shown = true;
    }

    /// Starts a new batch.
    fn recycle(&mut self, crypt: &mut Crypt) {
        for index in self.touched.drain(..) {
            let state = &mut self.states[index as usize];
            (state.first, state.last) = (NONE, NONE);
        }
        self.runs.clear();
        self.sheets.recycle(crypt);
        self.bytes = 0;
        self.packets = 0;
        self.shown = false;
    }

    /// Connections with output. None while packets wait to be sealed: what lies in the arena is plaintext then.
    pub(super) fn touched(&self) -> &[u32] {
        if self.shown { &self.touched } else { &[] }
    }

    /// The id of a connection with output, and the number of its first run.
    pub(super) fn output_of(&self, index: u32) -> Option<(ConnectionId, u32)> {
        let state = self.states.get(index as usize)?;
        let generation = state.generation;
        Some((ConnectionId { index, generation }, state.first))
    }

    /// The bytes of a run, and the number of the one after it.
    #[inline]
    pub(super) fn run<'a>(&'a self, run: u32, crypt: &'a Crypt) -> Option<(&'a [u8], u32)> {
        let run = self.runs.get(run as usize)?;
        let memory = self.sheets.memory(run.place, crypt);
        Some((memory.get(run.start as usize..run.end as usize)?, run.next))
    }

    /// The length of a run, and the number of the one after it.
    #[inline]
    pub(super) fn run_len(&self, run: u32) -> Option<(usize, u32)> {
        let run = self.runs.get(run as usize)?;
        Some(((run.end - run.start) as usize, run.next))
    }

    #[cold]
    fn too_long(&self, got: usize) -> Error {
        let limit = CONTENTS_MAX.min(self.sheets.arena_len() - OVERHEAD);
        Error::ContentsTooLong { got, limit }
    }

    #[cold]
    const fn full(&self) -> Error {
        Error::ArenaFull {
            waiting: self.bytes,
            limit: self.sheets.arena_len(),
        }
    }
}

/// Notes the connections of which a packet is not sealed, and wipes those packets.
fn take(states: &[State], failed: &mut Vec<(ConnectionId, Error)>, done: Finished<'_>) {
    if done.all {
        return;
    }
    for (job, status) in done.jobs.iter().zip(done.statuses) {
        if *status != Status::Done {
            let start = job.output_offset();
            if let Some(packet) = done.memory.get_mut(start..start + job.output_len()) {
                packet.fill(0);
            }
            let index = connection_of(job.slot());
            let generation = states[index].generation;
            let index = index as u32;
            let error = Error::Aead(sealway_aead::Error::Backend);
            failed.push((ConnectionId { index, generation }, error));
        }
    }
}
