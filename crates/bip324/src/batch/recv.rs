//! Planning what is received, and delivering it.

use sealway_aead::batch::{Job, Slot, Status};

use crate::fschacha::{REKEY_INTERVAL, RecvChain};
use crate::{Error, HEADER_LEN, Kind, LENGTH_LEN, TAG_LEN};

use super::ConnectionId;
use super::crypt::{Crypt, Way, connection_of, slot_of};
use super::sheet::{Finished, Place, Sheets, ask_ahead};
use super::stock::{Stock, make_room};

/// Most bytes that are reserved beyond those that have come.
const AHEAD: usize = 256 * 1024;

/// Fewest bytes that are reserved for the beginning of a packet.
const SMALL: usize = 256;

/// Bytes of an empty buffer that are kept.
const KEPT: usize = 4096;

/// What receiving needs to know about a connection for each packet: a cache line.
#[repr(align(64))]
struct State {
    stock: Stock,
    generation: u32,
    /// Bytes that follow the length that was opened last, or 0 if the packet is whole.
    need: u32,
    live: bool,
    /// True while the key of the epoch is in its slot.
    loaded: bool,
    /// True while the beginning of a packet lies in its buffer.
    begun: bool,
    /// True after the first thing that was wrong: nothing more is taken.
    over: bool,
    /// True after a packet that was not authentic: nothing more is delivered.
    failed: bool,
}

const _: () = assert!(size_of::<State>() == 64);

/// A message in the arena.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    pub(super) id: ConnectionId,
    place: Place,
    start: u32,
    len: u32,
}

/// Room that was given and not used yet.
#[derive(Clone, Copy, Debug)]
struct Room {
    id: ConnectionId,
    /// Bytes before it, for the beginning of the packet.
    gap: usize,
    len: usize,
}

/// Everything about what is received.
pub(super) struct RecvSide {
    states: Vec<State>,
    /// Where the numbers come from; `None` if there is no connection.
    chains: Vec<Option<RecvChain>>,
    /// Beginnings of packets: a length that is not whole, or what came after one that was opened.
    begun: Vec<Vec<u8>>,
    /// Where packets are, and those that are planned and not opened.
    sheets: Sheets,
    /// Bytes of packets.
    bytes: usize,
    room: Option<Room>,
    retired: Vec<Slot>,
    delivered: Vec<Delivered>,
    packets: usize,
    shown: bool,
    contents_limit: usize,
    /// Connections that have to end now.
    pub(super) failed: Vec<(ConnectionId, Error)>,
    /// Connections that have to end once what came before is delivered.
    pub(super) doomed: Vec<(ConnectionId, Error)>,
}

impl RecvSide {
    pub(super) fn new(arena: usize, contents_limit: usize) -> Self {
        RecvSide {
            states: Vec::new(),
            chains: Vec::new(),
            begun: Vec::new(),
            sheets: Sheets::new(arena, true),
            bytes: 0,
            room: None,
            retired: Vec::new(),
            delivered: Vec::new(),
            packets: 0,
            shown: false,
            contents_limit,
            failed: Vec::new(),
            doomed: Vec::new(),
        }
    }

    /// Puts a connection in its place, with the beginning of a packet.
    pub(super) fn insert(&mut self, id: ConnectionId, chain: RecvChain, unread: &[u8]) {
        let state = State {
            stock: Stock::EMPTY,
            generation: id.generation,
            need: 0,
            live: true,
            loaded: false,
            begun: !unread.is_empty(),
            over: false,
            failed: false,
        };
        let index = id.index as usize;
        let begun = unread.to_vec();
        if let (Some(place), Some(old)) = (self.states.get_mut(index), self.chains.get_mut(index)) {
            (*place, *old) = (state, Some(chain));
            self.begun[index] = begun;
            return;
        }
        make_room(&mut self.states, |state| State {
            stock: state.stock.move_out(),
            ..*state
        });
        self.states.push(state);
        self.chains.push(Some(chain));
        self.begun.push(begun);
    }

    /// Wipes a connection. None of its jobs may wait.
    pub(super) fn remove(&mut self, index: usize, crypt: &mut Crypt) {
        let Some(state) = self.states.get_mut(index) else {
            return;
        };
        state.live = false;
        state.stock = Stock::EMPTY;
        self.chains[index] = None;
        self.begun[index] = Vec::new();
        for epoch in [0, 1] {
            crypt.clear(slot_of(index, Way::Recv, epoch));
        }
    }

    /// Says that the slots of all keys are empty. No job may wait.
    pub(super) fn unload(&mut self) {
        self.states.iter_mut().for_each(|state| state.loaded = false);
    }

    /// Packets and bytes that wait to be opened or shown.
    pub(super) const fn waiting(&self) -> (usize, usize) {
        if self.shown { (0, 0) } else { (self.packets, self.bytes) }
    }

    /// True if there is such a connection and nothing has been wrong.
    #[inline]
    pub(super) fn is_live(&self, id: ConnectionId) -> bool {
        self.states
            .get(id.index as usize)
            .is_some_and(|state| state.generation == id.generation && state.live && !state.over)
    }

    /// The number of connections there have been at a time.
    pub(super) fn places(&self) -> usize {
        self.states.len()
    }

    /// The generation of a place.
    pub(super) fn generation(&self, index: usize) -> Option<u32> {
        Some(self.states.get(index)?.generation)
    }

    /// The next packet: its number, how many bytes of it are here and how many must still come, if its length is here.
    pub(super) fn awaited(&self, index: usize) -> Option<(usize, Option<usize>)> {
        let state = self.states.get(index)?;
        let have = if state.begun { self.begun[index].len() } else { 0 };
        let missing = (state.need > 0).then(|| state.need as usize - have);
        Some((have, missing))
    }

    /// Bytes that have come of a packet, and bytes of memory for them.
    #[cfg(test)]
    pub(super) fn begun(&self, index: usize) -> Option<(usize, usize)> {
        let begun = self.begun.get(index)?;
        Some((begun.len(), begun.capacity()))
    }

    /// Room for bytes that come.
    #[inline]
    pub(super) fn room<'a>(
        &'a mut self,
        id: ConnectionId,
        len: usize,
        crypt: &'a mut Crypt,
    ) -> Result<&'a mut [u8], Error> {
        if !self.is_live(id) {
            return Err(Error::Closed);
        }
        if self.shown {
            self.recycle(crypt);
        }
        let index = id.index as usize;
        let gap = if self.states[index].begun {
            self.begun[index].len()
        } else {
            0
        };
        let limit = self.sheets.arena_len();
        let room = len
            .checked_add(gap)
            .is_some_and(|all| self.sheets.make_room(all, crypt));
        let start = self.sheets.end().1 + gap;
        match self.sheets.open_memory(crypt).get_mut(start..start.saturating_add(len)) {
            Some(memory) if room => {
                self.room = Some(Room { id, gap, len });
                Ok(memory)
            }
            _ => {
                let waiting = self.bytes;
                Err(Error::ArenaFull { waiting, limit })
            }
        }
    }

    /// Takes the first bytes of the room that was given.
    pub(super) fn commit(&mut self, got: usize, crypt: &mut Crypt) -> Result<(), Error> {
        let Room { id, gap, len } = self.room.take().ok_or(Error::OutOfOrder {
            what: "bytes were received without room for them",
        })?;
        if got > len {
            return Err(Error::Buffer { need: got, got: len });
        }
        if !self.is_live(id) {
            return Err(Error::Closed);
        }
        let index = id.index as usize;
        let start = self.sheets.end().1;
        let (came, end) = (start + gap, start + gap + got);
        crypt.counters.bytes_received += got as u64;
        ask_ahead(self.sheets.open_memory(crypt), came, got);
        let state = &mut self.states[index];
        if state.begun {
            let begun = &mut self.begun[index];
            let memory = self.sheets.open_memory(crypt);
            if state.need as usize > gap + got {
                // Moved once into its buffer and once out of it, however many pieces it comes in.
                extend(begun, &memory[came..end], state.need as usize);
                return Ok(());
            }
            memory[start..came].copy_from_slice(begun);
            state.begun = false;
            if begun.capacity() > KEPT {
                *begun = Vec::new();
            } else {
                begun.clear();
            }
        }
        self.sheets.set_end(end);
        let at = match self.walk(id, start, end, crypt) {
            Ok(at) => at,
            Err(error) => {
                self.states[index].over = true;
                self.doomed.push((id, error));
                end
            }
        };
        self.sheets.set_end(at);
        self.bytes += at - start;
        let state = &mut self.states[index];
        if at < end && !state.over {
            state.begun = true;
            let need = match state.need {
                0 => LENGTH_LEN,
                need => need as usize,
            };
            extend(&mut self.begun[index], &self.sheets.open_memory(crypt)[at..end], need);
        }
        Ok(())
    }

    /// Finds packets and plans them; gives the end of the last one that is whole.
    fn walk(&mut self, id: ConnectionId, start: usize, end: usize, crypt: &mut Crypt) -> Result<usize, Error> {
        let index = id.index as usize;
        let mut at = start;
        loop {
            let state = &self.states[index];
            let begins = state.need == 0;
            if begins && end - at < LENGTH_LEN {
                return Ok(at);
            }
            if !state.loaded || (begins && state.stock.is_empty()) {
                self.refill(index, crypt)?;
            }
            if self.sheets.is_due(crypt) {
                self.relieve(crypt);
            }
            let state = &mut self.states[index];
            if state.over {
                return Ok(end);
            }
            let number = state.stock.number().ok_or(Error::Exhausted)?;
            if begins {
                let (Some([a, b, c]), Some(mask)) = (
                    self.sheets.open_memory(crypt)[at..end].first_chunk(),
                    state.stock.take_mask(),
                ) else {
                    return Ok(at);
                };
                at += LENGTH_LEN;
                let claimed = u32::from_le_bytes([a ^ mask[0], b ^ mask[1], c ^ mask[2], 0]);
                if claimed as usize > self.contents_limit {
                    let (claimed, limit) = (claimed as usize, self.contents_limit);
                    state.over = true;
                    self.doomed.push((id, Error::PacketTooLong { claimed, limit }));
                    return Ok(at);
                }
                state.need = claimed + (HEADER_LEN + TAG_LEN) as u32;
            }
            let need = state.need as usize;
            if end - at < need {
                return Ok(at);
            }
            let slot = slot_of(index, Way::Recv, number.epoch());
            let text = at as u32..(at + need) as u32;
            self.sheets
                .push(Job::open(slot, &number.nonce(), text.clone(), text.start)?);
            self.packets += 1;
            at += need;
            state.need = 0;
            state.stock.advance();
            // The key is in its slot: the chain may go on, and the slot is emptied once this packet is opened.
            if number.slot() + 1 == REKEY_INTERVAL {
                self.retired.push(slot);
                state.loaded = false;
                if let Some(chain) = &mut self.chains[index] {
                    chain.end_epoch()?;
                }
            }
        }
    }

    /// Sees that there are numbers at hand, and the key of the epoch in its slot.
    #[cold]
    fn refill(&mut self, index: usize, crypt: &mut Crypt) -> Result<(), Error> {
        let (Some(state), Some(Some(chain))) = (self.states.get_mut(index), self.chains.get_mut(index)) else {
            return Err(Error::Closed);
        };
        if state.need == 0 && state.stock.is_empty() {
            state.stock.refill(|masks| chain.reserve_masks(masks))?;
        }
        if state.loaded {
            return Ok(());
        }
        let number = state.stock.number().ok_or(Error::Exhausted)?;
        let slot = slot_of(index, Way::Recv, number.epoch());
        // Packets of two epochs before wait for the key that is there.
        if self.retired.contains(&slot) {
            self.crypt(crypt, false);
        }
        let key = self.chains[index].as_ref().and_then(|chain| chain.key_of(number));
        crypt.load(slot, key.ok_or(Error::Closed)?)?;
        self.states[index].loaded = true;
        Ok(())
    }

    /// Opens what waits, lists what is to be delivered, and wipes the keys of epochs that are over. `last` says that nothing
    /// follows for now.
    pub(super) fn crypt(&mut self, crypt: &mut Crypt, last: bool) {
        if self.sheets.is_idle() {
            return;
        }
        self.take(crypt, |sheets, crypt, each| sheets.finish(crypt, last, each));
    }

    /// Gives what waits to the executor, if it is to have it.
    pub(super) fn begin(&mut self, crypt: &mut Crypt) {
        // What comes next lies elsewhere.
        self.room = None;
        self.sheets.begin(crypt);
    }

    /// Opens what waits where the next bytes go.
    #[cold]
    fn relieve(&mut self, crypt: &mut Crypt) {
        self.take(crypt, |sheets, crypt, each| sheets.relieve(crypt, each));
    }

    /// Lists what is to be delivered of the jobs that `work` shows as done.
    fn take(&mut self, crypt: &mut Crypt, work: impl FnOnce(&mut Sheets, &mut Crypt, &mut dyn FnMut(Finished<'_>))) {
        let RecvSide {
            sheets,
            states,
            doomed,
            failed,
            delivered,
            retired,
            ..
        } = self;
        let (mut opened, mut decoys) = (0, 0);
        work(sheets, crypt, &mut |done| {
            for (job, &status) in done.jobs.iter().zip(done.statuses) {
                let index = connection_of(job.slot());
                let state = &mut states[index];
                let id = ConnectionId {
                    index: index as u32,
                    generation: state.generation,
                };
                let start = job.output_offset();
                let text = done.memory.get_mut(start..start + job.message_len());
                let is_bad = (!done.all && status != Status::Done) || text.is_none();
                if is_bad && !state.failed {
                    (state.over, state.failed) = (true, true);
                    // What is too long came after this one.
                    doomed.retain(|(doomed, _)| *doomed != id);
                    let error = match status {
                        Status::Unauthentic => Error::Unauthentic,
                        _ => Error::Aead(sealway_aead::Error::Backend),
                    };
                    failed.push((id, error));
                }
                // Packets of other sheets were planned before anybody knew of this one.
                if state.failed {
                    text.into_iter().for_each(|text| text.fill(0));
                    continue;
                }
                let Some(&mut [header, ref contents @ ..]) = text else {
                    continue;
                };
                opened += 1;
                match Kind::of_header(header) {
                    Kind::Genuine => delivered.push(Delivered {
                        id,
                        place: done.place,
                        start: (start + HEADER_LEN) as u32,
                        len: contents.len() as u32,
                    }),
                    Kind::Decoy => decoys += 1,
                }
            }
        });
        crypt.counters.packets_received += opened;
        crypt.counters.decoys_received += decoys;
        if sheets.is_idle() && !retired.is_empty() {
            retired.drain(..).for_each(|slot| crypt.clear(slot));
        }
    }

    /// Says that the batch is complete and has been shown.
    pub(super) fn show(&mut self, crypt: &mut Crypt) {
        if self.shown {
            self.recycle(crypt);
        }
        self.shown = true;
        // It lies where the next batch starts: what is planned there now would be overwritten.
        self.room = None;
    }

    /// True if a connection has to end.
    pub(super) const fn has_ended_some(&self) -> bool {
        !self.failed.is_empty() || !self.doomed.is_empty()
    }

    /// Starts a new batch.
    fn recycle(&mut self, crypt: &mut Crypt) {
        self.delivered.clear();
        self.sheets.recycle(crypt);
        self.bytes = 0;
        self.packets = 0;
        self.shown = false;
    }

    pub(super) fn delivered(&self) -> &[Delivered] {
        &self.delivered
    }

    #[inline]
    pub(super) fn contents<'a>(&'a self, delivered: &Delivered, crypt: &'a Crypt) -> &'a [u8] {
        let start = delivered.start as usize;
        &self.sheets.memory(delivered.place, crypt)[start..start + delivered.len as usize]
    }
}

/// Adds to the beginning of a packet; memory follows what has come, not what was announced.
fn extend(begun: &mut Vec<u8>, bytes: &[u8], need: usize) {
    let have = begun.len() + bytes.len();
    if begun.capacity() < have {
        let room = need.max(have).min(have + have.clamp(SMALL, AHEAD));
        begun.reserve_exact(room - begun.len());
    }
    begun.extend_from_slice(bytes);
}
