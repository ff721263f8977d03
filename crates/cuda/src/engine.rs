//! Runs batches on a device, through a ring of chunks.

mod chunk;
mod keys;
mod link;
mod options;
mod run;
mod slab;

use std::fmt;

use sealway_aead::Suite;
use sealway_aead::batch::{Arenas, Job, Rules, Slot};

use crate::device::{Device, DeviceInfo, Event, Queue};
use crate::driver::Driver;
use crate::error::{Error, Wrong};
use crate::plan::Message;

pub(crate) use chunk::{Chunk, DONE, Regions, State, check_statuses, status_of, wipe};
pub use link::Ways;
pub use options::{Options, Report, Times};
pub use run::Started;

use keys::KeyTable;
use run::Run;
use slab::Slab;

/// Seals and opens batches of messages on a GPU; owns the key table and the memory on both sides of the link.
///
/// A batch is cut into chunks, contiguous ranges of its jobs, which go over the link one after another while those before
/// them are worked on. There are four ways to use it:
///
/// - [`Engine::run`] does what [`sealway_aead::batch::Engine::run`] does, with the same rules and results.
/// - [`Engine::start`] and [`Engine::finish`] are its two halves, with time for something else in between.
/// - [`Engine::batch`] gives room in the memory from which the device reads, so that messages are written only once, and
///   their outputs are read where the device put them.
/// - [`Engine::slab_mut`] and [`Engine::start_slab`] do the same with packets as they stand on a wire.
///
/// If the device fails, the jobs that are complete are the first ones of the batch, and all others are as they were. Keys,
/// and whatever else was secret, are wiped on both sides when the engine is dropped.
pub struct Engine {
    pub(crate) device: Box<dyn Device>,
    options: Options,
    pub(crate) ring: Vec<Chunk>,
    slabs: Vec<Slab>,
    pub(crate) keys: KeyTable,
    rules: Rules,
    run: Option<Run>,
    /// The device can do nothing more.
    lost: bool,
    serial: u64,
    /// A queue and two events for measuring time, kept between batches that stay on the device.
    pub(crate) spare: Option<(Queue, Event, Event)>,
}

impl Engine {
    /// An engine on an NVIDIA GPU. Every call of it makes the device's primary context the current one of the calling thread; who
    /// uses CUDA on that thread for something else sets its own again.
    ///
    /// # Errors
    /// [`Error::NoDriver`], [`Error::NoDevice`], [`Error::NoSuchDevice`], [`Error::DriverTooOld`] and
    /// [`Error::TooOldDevice`] if there is none that will do, [`Error::OutOfMemory`] if it has no room,
    /// [`Error::Option`] for options that cannot be.
    pub fn open(options: Options) -> Result<Self, Error> {
        options.check()?;
        let driver = Driver::open(options.device)?;
        Self::with_device(Box::new(driver), options)
    }

    /// An engine on another device.
    ///
    /// # Errors
    /// Those of the device, and [`Error::Option`].
    pub fn with_device(mut device: Box<dyn Device>, options: Options) -> Result<Self, Error> {
        options.check()?;
        let keys = KeyTable::open(&mut *device, options.slots)?;
        let mut ring = Vec::with_capacity(options.chunks);
        for _ in 0..options.chunks {
            ring.push(Chunk::open(&mut *device, &options)?);
        }
        let mut slabs = Vec::with_capacity(options.slabs);
        for _ in 0..options.slabs {
            slabs.push(Slab::open(&mut *device, &options)?);
        }
        Ok(Engine {
            device,
            options,
            ring,
            slabs,
            keys,
            rules: Rules::default(),
            run: None,
            lost: false,
            serial: 0,
            spare: None,
        })
    }

    /// The device.
    pub fn device(&self) -> &DeviceInfo {
        self.device.info()
    }

    /// What it was opened with.
    pub const fn options(&self) -> &Options {
        &self.options
    }

    /// Slots of the key table.
    pub fn slots(&self) -> usize {
        self.keys.slots()
    }

    /// Bytes of the longest message without associated data that a chunk has room for, sealed or opened.
    pub fn longest(&self) -> usize {
        let plan = &self.ring[0].plan;
        let fits = |len: usize| {
            [false, true].into_iter().all(|opens| {
                let message = Message {
                    slot: Slot(0),
                    nonce: [0; 12],
                    len: len as u32,
                    aad_len: 0,
                    opens,
                };
                plan.check(&message).is_ok()
            })
        };
        // A message of no bytes always fits, and one with as many as the chunk never does.
        let (mut low, mut high) = (0, self.options.chunk_bytes);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            if fits(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Puts a key into a slot, for batches begun from now on. The caller wipes the bytes passed in.
    ///
    /// # Errors
    /// [`Error::NoSuchSlot`] outside the table.
    pub fn set_key(&mut self, slot: Slot, key: &[u8; 32]) -> Result<(), Error> {
        self.keys.set(slot, Some(key))
    }

    /// Wipes the key of a slot, for batches begun from now on, and leaves it empty.
    ///
    /// # Errors
    /// [`Error::NoSuchSlot`] outside the table.
    pub fn clear_key(&mut self, slot: Slot) -> Result<(), Error> {
        self.keys.set(slot, None)
    }

    /// True if the device has failed in a way that leaves nothing but to drop the engine.
    pub const fn is_lost(&self) -> bool {
        self.lost
    }

    /// Refuses a batch that breaks a rule.
    pub(crate) fn check(&mut self, jobs: &[Job], arenas: Arenas) -> Result<(), Error> {
        let keys = &self.keys;
        let suite = |slot| keys.has(slot).then_some(Suite::ChaCha20Poly1305);
        self.rules.check(suite, jobs, arenas).map_err(|error| match error {
            sealway_aead::Error::Job { index, wrong } => Error::Job {
                index,
                wrong: Wrong::Rule(wrong),
            },
            // The rules give no other error.
            _ => Error::NotStarted,
        })
    }

    /// Refuses a batch with a message that no chunk has room for.
    fn check_lengths(&self, jobs: &[Job]) -> Result<(), Error> {
        let plan = &self.ring[0].plan;
        for (index, job) in jobs.iter().enumerate() {
            plan.check(&Message::of(job))
                .map_err(|wrong| Error::Job { index, wrong })?;
        }
        Ok(())
    }

    pub(crate) const fn check_lost(&self) -> Result<(), Error> {
        if self.lost { Err(Error::Lost) } else { Ok(()) }
    }

    /// Remembers an error after which nothing is possible.
    pub(crate) fn noted(&mut self, error: Error) -> Error {
        self.lost |= error.is_lost();
        error
    }

    /// A chunk of which nobody wants anything, now held by the caller; `None` if there is none.
    pub(crate) fn take_chunk(&mut self) -> Result<Option<usize>, Error> {
        for index in 0..self.ring.len() {
            match &self.ring[index].state {
                State::Free => {}
                // Whoever had the ticket has dropped it.
                State::Ticket { alive, .. } if alive.strong_count() == 0 => self.settle_chunk(index)?,
                _ => continue,
            }
            let chunk = &mut self.ring[index];
            chunk.plan.clear();
            chunk.state = State::Held;
            return Ok(Some(index));
        }
        Ok(None)
    }

    /// Lays a chunk out and sends it off, after the keys that wait.
    pub(crate) fn submit_chunk(&mut self, index: usize, report: &mut Report) -> Result<(), Error> {
        self.ring[index].lay_out(&mut *self.device)?;
        self.resubmit_chunk(index, report)
    }

    /// Sends a chunk off as it was laid out.
    pub(crate) fn resubmit_chunk(&mut self, index: usize, report: &mut Report) -> Result<(), Error> {
        self.ring[index].keys_version = self.keys.version();
        self.flush_keys()?;
        let (keys, sent) = (self.keys.span(), self.keys.under_way());
        self.ring[index]
            .submit(&mut *self.device, keys, sent, report)
            .map_err(|error| self.failed(error))
    }

    /// Sends the keys that wait, after all kernels that are to have those before them.
    pub(crate) fn flush_keys(&mut self) -> Result<(), Error> {
        let mut before: Vec<Event> = Vec::new();
        if self.keys.is_waiting() {
            let under_way = |chunk: &&Chunk| matches!(chunk.state, State::UnderWay | State::Ticket { .. });
            before.extend(self.ring.iter().filter(under_way).map(|chunk| chunk.worked));
        }
        self.keys
            .flush(&mut *self.device, &before)
            .map_err(|error| self.failed(error))
    }

    /// Waits until a chunk is done.
    pub(crate) fn wait_chunk(&mut self, index: usize, report: &mut Report) -> Result<(), Error> {
        let device = &mut *self.device;
        self.ring[index]
            .wait(device, report)
            .and_then(|()| self.keys.tidy(device))
            .map_err(|error| self.noted(error))
    }

    /// Waits for whatever a chunk does, and leaves it free.
    pub(crate) fn settle_chunk(&mut self, index: usize) -> Result<(), Error> {
        let settled = self.ring[index].settle(&mut *self.device);
        if settled.is_err() {
            // What is still under way, nobody knows: nothing may be begun on top of it.
            self.lost = true;
        }
        self.ring[index].state = State::Free;
        settled
    }

    /// After an error while keys may be on their way: waits for them, so that they can be sent again.
    pub(crate) fn failed(&mut self, error: Error) -> Error {
        if self.keys.settle(&mut *self.device).is_err() {
            self.lost = true;
        }
        self.noted(error)
    }

    /// True if no key has changed since a chunk was sent.
    pub(crate) fn same_keys(&self, chunk: usize) -> bool {
        self.ring[chunk].keys_version == self.keys.version()
    }

    pub(crate) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        for chunk in &mut self.ring {
            chunk.close(&mut *self.device);
        }
        for slab in &mut self.slabs {
            slab.close(&mut *self.device, self.keys.queue());
        }
        self.keys.close(&mut *self.device);
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine")
            .field("device", &self.device.info().name)
            .field("keys", &self.keys)
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}
