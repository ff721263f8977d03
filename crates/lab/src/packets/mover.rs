//! Who moves packets: our batch engine, and the loops of other libraries.
//!
//! All get the same arenas and write packets from one into another, ciphertext and tag side by side. Everything that a
//! program must do for a batch is inside the call and so inside the clock: nonces, the batch engine's jobs, keys that are
//! fresh, and the copy that a library needs which can only work in place.

use std::ops::Range;

use sealway_aead::batch::{self, Backend, Job, Keys, Lanes, Memory, Slot, Status};
use sealway_aead::{Nonce, Suite};

use super::pool::{KeyUse, Pool};
use crate::run::CellError;
use crate::workload::engine::{Engine, TagBytes};

/// Something that seals and opens batches of packets of a pool.
pub(super) trait Mover {
    /// Seals packets into `wire`, an arena as large as the pool's sealed one.
    fn seal(&mut self, pool: &Pool, packets: Range<usize>, wire: &mut [u8]) -> Result<(), CellError>;

    /// Opens packets of `wire` into `text`, an arena as large as the pool's contents.
    fn open(&mut self, pool: &Pool, packets: Range<usize>, wire: &[u8], text: &mut [u8]) -> Result<(), CellError>;

    /// How full the lanes of the cipher and of the authenticator were since the last call; nothing where there are none.
    fn lanes(&mut self) -> [Lanes; 2] {
        [Lanes::default(); 2]
    }
}

fn failed(name: &str, what: impl std::fmt::Display) -> CellError {
    CellError::failed(format_args!("{name}: {what}"))
}

fn unauthentic(name: &str, suite: Suite, packet: usize) -> CellError {
    CellError::wrong(format_args!("{name} does not open packet {packet} of {suite}"))
}

/// Our batch engine.
pub(super) struct Batches {
    name: &'static str,
    engine: batch::Engine,
    keys: Keys,
    jobs: Vec<Job>,
    statuses: Vec<Status>,
    lanes: [Lanes; 2],
}

impl Batches {
    /// An engine for batches of up to `batch` packets.
    pub(super) fn new(name: &'static str, backend: Backend, pool: &Pool, batch: usize) -> Result<Self, CellError> {
        let keys = match pool.key_use {
            KeyUse::Fresh => Keys::with_slots(batch),
            KeyUse::Resident => {
                let mut keys = Keys::with_slots(pool.keys());
                for k in 0..pool.keys() {
                    keys.set(Slot(k as u32), pool.suite, pool.key_at(k))
                        .map_err(|error| failed(name, error))?;
                }
                keys
            }
        };
        Ok(Batches {
            name,
            engine: batch::Engine::with_backend(backend),
            keys,
            jobs: Vec::with_capacity(batch),
            statuses: vec![Status::Failed; batch],
            lanes: [Lanes::default(); 2],
        })
    }

    /// The slot of a packet, with its key in it.
    #[inline(always)]
    fn slot(&mut self, pool: &Pool, place: usize, packet: usize) -> Result<Slot, CellError> {
        match pool.key_use {
            KeyUse::Resident => Ok(Slot(pool.key_of(packet))),
            KeyUse::Fresh => {
                let slot = Slot(place as u32);
                self.keys
                    .set(slot, pool.suite, pool.key(packet))
                    .map_err(|error| failed(self.name, error))?;
                Ok(slot)
            }
        }
    }

    fn run(&mut self, pool: &Pool, first: usize, memory: Memory<'_>) -> Result<(), CellError> {
        let statuses = &mut self.statuses[..self.jobs.len()];
        let report = self
            .engine
            .run(&self.keys, &self.jobs, memory, &[], statuses)
            .map_err(|error| failed(self.name, error))?;
        for (sum, lanes) in self.lanes.iter_mut().zip([report.cipher, report.mac]) {
            sum.used += lanes.used;
            sum.offered += lanes.offered;
        }
        // A program looks at every status, so that look is part of the work.
        match statuses.iter().position(|&status| status != Status::Done) {
            None => Ok(()),
            Some(place) => Err(unauthentic(self.name, pool.suite, first + place)),
        }
    }
}

/// A range of an arena as the engine takes it. Pools are far below 4 GiB: their offsets are checked when they are made.
#[inline(always)]
fn short(range: &Range<usize>) -> Range<u32> {
    range.start as u32..range.end as u32
}

impl Mover for Batches {
    fn seal(&mut self, pool: &Pool, packets: Range<usize>, wire: &mut [u8]) -> Result<(), CellError> {
        self.jobs.clear();
        let first = packets.start;
        let mut room = pool.nonce_room();
        for (place, packet) in packets.enumerate() {
            let slot = self.slot(pool, place, packet)?;
            let nonce = Nonce::assume_unique(pool.suite, pool.nonce(&mut room, packet))
                .map_err(|error| failed(self.name, error))?;
            let to = pool.wire(packet).start as u32;
            self.jobs.push(Job::seal(slot, nonce, short(&pool.text(packet)), to));
        }
        let memory = Memory::Separate {
            src: &pool.plain,
            dst: wire,
        };
        self.run(pool, first, memory)
    }

    fn open(&mut self, pool: &Pool, packets: Range<usize>, wire: &[u8], text: &mut [u8]) -> Result<(), CellError> {
        self.jobs.clear();
        let first = packets.start;
        let mut room = pool.nonce_room();
        for (place, packet) in packets.enumerate() {
            let slot = self.slot(pool, place, packet)?;
            let to = pool.text(packet).start as u32;
            let job = Job::open(slot, pool.nonce(&mut room, packet), short(&pool.wire(packet)), to);
            self.jobs.push(job.map_err(|error| failed(self.name, error))?);
        }
        self.run(pool, first, Memory::Separate { src: wire, dst: text })
    }

    fn lanes(&mut self) -> [Lanes; 2] {
        std::mem::take(&mut self.lanes)
    }
}

/// Another library, packet by packet.
pub(super) struct Loop<E: Engine> {
    sealing: Vec<E::Sealing>,
    opening: Vec<E::Opening>,
}

impl<E: Engine> Loop<E> {
    /// A loop with the keys of the pool set up, if they are resident.
    pub(super) fn new(pool: &Pool) -> Result<Self, CellError> {
        let keys = match pool.key_use {
            KeyUse::Fresh => 0,
            KeyUse::Resident => pool.keys(),
        };
        let refused = || failed(E::NAME, format_args!("refused a key of {}", pool.suite));
        let mut made = Loop {
            sealing: Vec::with_capacity(keys),
            opening: Vec::with_capacity(keys),
        };
        for k in 0..keys {
            made.sealing
                .push(E::sealing(pool.suite, pool.key_at(k)).ok_or_else(refused)?);
            made.opening
                .push(E::opening(pool.suite, pool.key_at(k)).ok_or_else(refused)?);
        }
        Ok(made)
    }
}

impl<E: Engine> Mover for Loop<E> {
    fn seal(&mut self, pool: &Pool, packets: Range<usize>, wire: &mut [u8]) -> Result<(), CellError> {
        let mut room = pool.nonce_room();
        for packet in packets {
            let nonce = pool.nonce(&mut room, packet);
            let (src, dst) = (&pool.plain[pool.text(packet)], &mut wire[pool.wire(packet)]);
            let sealed = match pool.key_use {
                KeyUse::Resident => E::seal_to(&self.sealing[pool.key_of(packet) as usize], nonce, &[], src, dst),
                KeyUse::Fresh => {
                    E::sealing(pool.suite, pool.key(packet)).is_some_and(|key| E::seal_to(&key, nonce, &[], src, dst))
                }
            };
            if !sealed {
                return Err(failed(
                    E::NAME,
                    format_args!("refused packet {packet} of {}", pool.suite),
                ));
            }
        }
        Ok(())
    }

    fn open(&mut self, pool: &Pool, packets: Range<usize>, wire: &[u8], text: &mut [u8]) -> Result<(), CellError> {
        let mut room = pool.nonce_room();
        for packet in packets {
            let nonce = pool.nonce(&mut room, packet);
            let (src, dst) = (&wire[pool.wire(packet)], &mut text[pool.text(packet)]);
            let opened = match pool.key_use {
                KeyUse::Resident => E::open_to(&self.opening[pool.key_of(packet) as usize], nonce, &[], src, dst),
                KeyUse::Fresh => {
                    E::opening(pool.suite, pool.key(packet)).is_some_and(|key| E::open_to(&key, nonce, &[], src, dst))
                }
            };
            if !opened {
                return Err(unauthentic(E::NAME, pool.suite, packet));
            }
        }
        Ok(())
    }
}

/// A mover that opened anything would be fast: a batch with one bit of one packet flipped must be refused, and the same
/// batch without that must be opened.
pub(super) fn refuses_forgeries(mover: &mut dyn Mover, pool: &Pool, batch: usize) -> Result<(), CellError> {
    let packets = 0..batch.min(pool.count());
    let mut text = vec![0; pool.texts(&packets).end];
    let mut wire = pool.sealed[..pool.wires(&packets).end].to_vec();
    mover.open(pool, packets.clone(), &wire, &mut text)?;
    pool.check(&packets, &text[pool.texts(&packets)], false)?;
    let victim = packets.end / 2;
    let place = pool.wire(victim);
    for byte in [place.start, place.end - size_of::<TagBytes>(), place.end - 1] {
        wire[byte] ^= 0x80;
        let accepted = mover.open(pool, packets.clone(), &wire, &mut text).is_ok();
        wire[byte] ^= 0x80;
        if accepted {
            return Err(CellError::wrong(format_args!(
                "packet {victim} of {} was accepted with a flipped bit",
                pool.suite
            )));
        }
    }
    Ok(())
}
