//! Packets of a pool as jobs of the device.

use std::ops::Range;

use sealway_aead::batch::{Job, Memory, Slot, Status};
use sealway_aead::{Nonce, Suite};
use sealway_cuda::{Engine, Options};

use super::Gpus;
use crate::packets::mover::Mover;
use crate::packets::pool::Pool;
use crate::run::CellError;

/// A failure in words.
pub(super) fn failed(what: impl std::fmt::Display) -> CellError {
    CellError::failed(format_args!("{}: {what}", super::GPU))
}

/// A packet that should have been opened was not.
pub(super) fn refused(packet: usize) -> CellError {
    CellError::wrong(format_args!("{} does not open packet {packet}", super::GPU))
}

/// Puts the keys of a pool into an engine.
pub(super) fn load_keys(engine: &mut Engine, pool: &Pool) -> Result<(), CellError> {
    for k in 0..pool.keys() {
        let key: &[u8; 32] = pool.key_at(k).try_into().map_err(failed)?;
        engine.set_key(Slot(k as u32), key).map_err(failed)?;
    }
    Ok(())
}

/// A packet's nonce.
pub(super) fn nonce(pool: &Pool, packet: usize) -> [u8; 12] {
    let mut room = pool.nonce_room();
    let mut nonce = [0; 12];
    nonce.copy_from_slice(&pool.nonce(&mut room, packet)[..12]);
    nonce
}

/// Jobs that seal packets out of the pool's contents into an arena as large as its sealed one, or open them the other way.
pub(super) fn jobs(pool: &Pool, packets: Range<usize>, opens: bool, jobs: &mut Vec<Job>) -> Result<(), CellError> {
    jobs.clear();
    for packet in packets {
        let slot = Slot(pool.key_of(packet));
        let nonce = nonce(pool, packet);
        let (text, wire) = (pool.text(packet), pool.wire(packet));
        let short = |range: &Range<usize>| range.start as u32..range.end as u32;
        jobs.push(if opens {
            Job::open(slot, &nonce, short(&wire), text.start as u32).map_err(failed)?
        } else {
            let nonce = Nonce::assume_unique(Suite::ChaCha20Poly1305, &nonce).map_err(failed)?;
            Job::seal(slot, nonce, short(&text), wire.start as u32)
        });
    }
    Ok(())
}

/// Packets by one call of the engine, as an application makes it.
pub(super) struct Called {
    engine: Engine,
    jobs: Vec<Job>,
    statuses: Vec<Status>,
}

impl Called {
    /// On the GPU of a thread.
    pub(super) fn new(gpus: &Gpus, thread: usize, pool: &Pool) -> Result<Self, CellError> {
        let options = Options {
            slots: pool.keys(),
            ..Options::default()
        };
        let mut engine = gpus.open(thread, options).map_err(failed)?;
        load_keys(&mut engine, pool)?;
        Ok(Called {
            engine,
            jobs: Vec::new(),
            statuses: Vec::new(),
        })
    }

    fn run(&mut self, packets: &Range<usize>, memory: Memory<'_>) -> Result<(), CellError> {
        self.statuses.clear();
        self.statuses.resize(self.jobs.len(), Status::Failed);
        self.engine
            .run(&self.jobs, memory, &[], &mut self.statuses)
            .map_err(|stopped| failed(format!("{stopped:?}")))?;
        match self.statuses.iter().position(|&status| status != Status::Done) {
            None => Ok(()),
            Some(place) => Err(refused(packets.start + place)),
        }
    }
}

impl Mover for Called {
    fn seal(&mut self, pool: &Pool, packets: Range<usize>, wire: &mut [u8]) -> Result<(), CellError> {
        jobs(pool, packets.clone(), false, &mut self.jobs)?;
        let memory = Memory::Separate {
            src: &pool.plain,
            dst: wire,
        };
        self.run(&packets, memory)
    }

    fn open(&mut self, pool: &Pool, packets: Range<usize>, wire: &[u8], text: &mut [u8]) -> Result<(), CellError> {
        jobs(pool, packets.clone(), true, &mut self.jobs)?;
        self.run(&packets, Memory::Separate { src: wire, dst: text })
    }
}
