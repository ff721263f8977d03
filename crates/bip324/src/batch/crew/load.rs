//! A slab, its jobs and their keys: what goes from thread to thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

use sealway_aead::batch::{Engine, Job, Keys, Memory, Slot, Status};
use sealway_aead::{Suite, wipe};

use super::super::executor::ExecutorFailure;
use super::Crew;

/// What slabs of one member are known by.
#[derive(Debug, Default)]
pub(super) struct Home;

/// A slab: what was written, and apart from it what was made of that, so that the one is there if the other fails.
pub(super) struct Load {
    slab: usize,
    written: Box<[u8]>,
    made: Box<[u8]>,
    filled: usize,
    jobs: Vec<Job>,
    /// The keys of these jobs alone, wiped once they are done.
    keys: Keys,
    keys_used: u32,
    pub(super) statuses: Vec<Status>,
    /// True if all jobs were done, whether authentic or not: results are to be seen.
    pub(super) is_done: bool,
    home: Weak<Home>,
    /// So many of the last jobs are not done: it fails.
    #[cfg(test)]
    pub(super) left_out: usize,
}

impl Load {
    pub(super) fn new(slab: usize, home: &Arc<Home>) -> Box<Self> {
        let memory = || vec![0; Crew::SLAB_BYTES].into_boxed_slice();
        Box::new(Load {
            slab,
            written: memory(),
            made: memory(),
            filled: 0,
            jobs: Vec::new(),
            keys: Keys::with_slots(Crew::SLAB_JOBS),
            keys_used: 0,
            statuses: Vec::new(),
            is_done: false,
            home: Arc::downgrade(home),
            #[cfg(test)]
            left_out: 0,
        })
    }

    pub(super) fn memory(&self) -> &[u8] {
        if self.is_done { &self.made } else { &self.written }
    }

    pub(super) fn memory_mut(&mut self) -> &mut [u8] {
        if self.is_done {
            &mut self.made
        } else {
            &mut self.written
        }
    }

    /// True if it is a slab of a member.
    pub(super) fn is_of(&self, home: &Arc<Home>) -> bool {
        std::ptr::eq(self.home.as_ptr(), Arc::as_ptr(home))
    }

    /// True if it is this slab of a member.
    pub(super) fn is(&self, home: &Arc<Home>, slab: usize) -> bool {
        self.slab == slab && self.is_of(home)
    }

    /// True if its member is gone.
    pub(super) fn is_orphan(&self) -> bool {
        self.home.strong_count() == 0
    }

    /// Forgets the jobs of before.
    pub(super) fn begin(&mut self, filled: usize) {
        self.filled = filled.min(self.written.len());
        self.jobs.clear();
        self.is_done = false;
    }

    /// Takes a key; gives its slot in here.
    pub(super) fn add_key(&mut self, key: &[u8; 32]) -> Result<u32, ExecutorFailure> {
        let slot = self.keys_used;
        let set = self.keys.set(Slot(slot), Suite::ChaCha20Poly1305, key);
        set.map_err(ExecutorFailure::new)?;
        self.keys_used += 1;
        Ok(slot)
    }

    /// Takes a job, whose key is in a slot in here.
    pub(super) fn add_job(&mut self, job: &Job, slot: u32) {
        self.jobs.push(job.moved_to(Slot(slot)));
    }

    /// Does the jobs.
    pub(super) fn run(mut self: Box<Self>, engine: &mut Engine) -> Box<Self> {
        let made = &mut self.made[..self.filled];
        made.copy_from_slice(&self.written[..self.filled]);
        self.statuses.clear();
        self.statuses.resize(self.jobs.len(), Status::Failed);
        let (keys, jobs, statuses) = (&self.keys, &self.jobs[..], &mut self.statuses[..]);
        #[cfg(test)]
        let jobs = &jobs[..jobs.len().saturating_sub(self.left_out)];
        #[cfg(test)]
        let statuses = &mut statuses[..jobs.len()];
        // The slab comes home whatever happens: somebody waits for it.
        let ran = catch_unwind(AssertUnwindSafe(|| {
            engine.run(keys, jobs, Memory::InPlace(made), &[], statuses).is_ok()
        }));
        if ran.is_err() {
            *engine = Engine::with_backend(engine.backend());
        }
        self.is_done = matches!(ran, Ok(true)) && !self.statuses.contains(&Status::Failed);
        self.forget_keys();
        self
    }

    pub(super) fn forget_keys(&mut self) {
        for slot in 0..std::mem::take(&mut self.keys_used) {
            // There is such a slot: a key was set there.
            let _ = self.keys.clear(Slot(slot));
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        wipe::zero(&mut self.written);
        wipe::zero(&mut self.made);
    }
}
