//! A GPU as executor.

use sealway_aead::batch::{Backend, Job, Slot, Status};
use sealway_aead::cpu;
use sealway_cuda::Engine;

use super::executor::{Executor, ExecutorFailure, Stopped};
use super::kept::KeptCosts;

/// Chunks that a batch is to have at least, so that one is worked on while another crosses the link.
const CHUNKS: usize = 2;

/// Bytes that a packet has on average, so far as is known before it comes.
const PACKET: usize = 512;

/// Jobs go to the GPU and back through pinned memory. Open the engine with four slots for each connection there may be: what
/// is beyond them, the processor does.
///
/// [`super::Costs::measure`] says what it costs, and [`KeptCosts`] keeps that under [`KeptCosts::setting_of_gpu`].
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

    fn slabs(&self) -> usize {
        self.slabs()
    }

    fn slab_bytes(&self) -> usize {
        self.options().slab_bytes
    }

    fn slab_jobs(&self) -> usize {
        self.slab_jobs()
    }

    fn clear_slab(&mut self, slab: usize) {
        // If the device fails, whoever starts the slab hears of it.
        let _ = self.clear_slab(slab);
    }

    #[inline]
    fn slab(&self, slab: usize) -> &[u8] {
        self.slab(slab)
    }

    #[inline]
    fn slab_mut(&mut self, slab: usize) -> &mut [u8] {
        self.slab_mut(slab)
    }

    fn start_slab(&mut self, slab: usize, filled: usize, jobs: &[Job]) -> Result<(), ExecutorFailure> {
        self.start_slab(slab, filled, jobs).map_err(ExecutorFailure::new)
    }

    fn is_slab_done(&mut self, slab: usize) -> bool {
        self.is_slab_done(slab).unwrap_or(true)
    }

    fn finish_slab(&mut self, slab: usize, statuses: &mut [Status]) -> Result<(), ExecutorFailure> {
        self.finish_slab(slab, statuses)
            .map(|_| ())
            .map_err(ExecutorFailure::new)
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

impl KeptCosts {
    /// The setting of a GPU's engine beside this processor: the processor (by its name, which only x86-64 has), the backend, the
    /// device with its place and its driver, its memory for packets, and the version of this library.
    pub fn setting_of_gpu(engine: &Engine, backend: Backend) -> String {
        let (device, options) = (engine.device(), engine.options());
        format!(
            "{}; {backend}; {device} at {}; {} chunks of {} bytes; {} slabs of {} bytes; {}",
            cpu::model(),
            device.pci,
            options.chunks,
            options.chunk_bytes,
            options.slabs,
            if options.slabs > 0 { options.slab_bytes } else { 0 },
            concat!("sealway ", env!("CARGO_PKG_VERSION")),
        )
    }
}
