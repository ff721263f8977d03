//! A GPU as executor.

mod known;

use sealway_aead::batch::{Backend, Job, Slot, Status};
use sealway_cuda::Engine;

use super::executor::{Executor, ExecutorFailure, Stopped};

pub use known::{CostsFile, KnownCosts};

/// Chunks that a batch is to have at least, so that one is worked on while another crosses the link.
const CHUNKS: usize = 2;

/// Bytes that a packet has on average, so far as is known before it comes.
const PACKET: usize = 512;

/// Jobs go to the GPU and back through pinned memory. Open the engine with four slots for each connection there may be: what
/// is beyond them, the processor does.
///
/// [`super::Costs::of_gpu`] says what it costs, and keeps that in a file.
impl Executor for Engine {
    fn set_key(&mut self, slot: Slot, key: &[u8; 32]) {
        // It refuses what is beyond its slots, and jobs without a key.
        let _ = self.set_key(slot, key);
    }

    fn clear_key(&mut self, slot: Slot) {
        let _ = self.clear_key(slot);
    }

    fn preferred_jobs(&self) -> usize {
        (CHUNKS * self.options().chunk_bytes / PACKET).max(1)
    }

    fn longest(&self) -> usize {
        self.longest()
    }

    fn capacity(&self) -> usize {
        // Tags, tables and padding take room too; for the shortest messages more than for others.
        self.options().chunks * self.options().chunk_bytes / 4 * 3
    }

    fn slots(&self) -> usize {
        self.slots()
    }

    fn start(&mut self, jobs: &[Job], arena: &[u8]) -> Result<(), ExecutorFailure> {
        // If the device takes a part of them only, `finish` says so.
        self.start(jobs, arena, &[]).map(|_| ()).map_err(ExecutorFailure::new)
    }

    fn finish(&mut self, jobs: &[Job], arena: &mut [u8], statuses: &mut [Status]) -> Result<(), Stopped> {
        self.finish(jobs, arena, statuses)
            .map(|_| ())
            .map_err(|sealway_cuda::Stopped { done, error }| Stopped {
                done,
                failure: ExecutorFailure::new(error),
            })
    }
}
