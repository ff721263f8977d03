//! Slabs of an executor: which are in use, and what is under way in them.

use sealway_aead::batch::{Job, Status};
use sealway_aead::wipe;
use zeroize::Zeroizing;

use super::super::BatchCounters;
use super::super::executor::{Executor, ExecutorFailure};
use super::{Crypt, Elsewhere, tag_of};

/// What a slab is used for.
#[derive(Debug, Default)]
struct Use {
    held: bool,
    /// The processor has worked in what was written.
    processed: bool,
    /// What lay in it when its executor went.
    saved: Option<Zeroizing<Box<[u8]>>>,
}

/// A slab that the executor works on.
#[derive(Debug)]
struct UnderWay {
    slab: u32,
    jobs: usize,
    bytes: usize,
}

/// All slabs of an executor, and those of one before that are still in use.
#[derive(Debug, Default)]
pub(in super::super) struct Slabs {
    /// Slabs of the executor.
    count: usize,
    /// Bytes of one, and jobs that it takes; 0 without.
    pub(in super::super) bytes: usize,
    pub(in super::super) jobs: usize,
    free: Vec<u32>,
    uses: Vec<Use>,
    under_way: Vec<UnderWay>,
    /// Scratch.
    loads: Vec<(usize, usize)>,
}

impl Slabs {
    /// Those of another executor, or none. What is in use was saved.
    pub(super) fn change(&mut self, executor: Option<&dyn Executor>) {
        self.count = executor.map_or(0, Executor::slabs);
        let bytes = executor.filter(|_| self.count > 0).map_or(0, Executor::slab_bytes);
        // Offsets are of 32 bits.
        self.bytes = bytes.min(u32::MAX as usize);
        self.jobs = executor.map_or(0, Executor::slab_jobs).max(1);
        if self.uses.len() < self.count {
            self.uses.resize_with(self.count, Use::default);
        }
        self.under_way.clear();
        self.free.clear();
        let free = (0..self.count).rev().filter(|&slab| !self.uses[slab].held);
        self.free.extend(free.map(|slab| slab as u32));
    }

    /// True if there is one to be had.
    #[inline]
    pub(in super::super) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    #[inline]
    pub(super) fn memory<'a>(&'a self, elsewhere: Option<&'a Elsewhere>, slab: u32) -> &'a [u8] {
        match self.uses.get(slab as usize) {
            Some(Use { saved: Some(saved), .. }) => saved,
            _ => elsewhere.map_or(&[], |elsewhere| elsewhere.executor.slab(slab as usize)),
        }
    }

    #[inline]
    pub(super) fn memory_mut<'a>(&'a mut self, elsewhere: Option<&'a mut Elsewhere>, slab: u32) -> &'a mut [u8] {
        match self.uses.get_mut(slab as usize) {
            Some(Use { saved: Some(saved), .. }) => saved,
            _ => elsewhere.map_or(&mut [], |elsewhere| elsewhere.executor.slab_mut(slab as usize)),
        }
    }

    /// The same, for the processor to work in.
    pub(super) fn workplace<'a>(&'a mut self, elsewhere: Option<&'a mut Elsewhere>, slab: u32) -> &'a mut [u8] {
        if let Some(used) = self.uses.get_mut(slab as usize) {
            used.processed = true;
        }
        self.memory_mut(elsewhere, slab)
    }
}

impl Crypt {
    /// A slab to write packets to.
    pub(in super::super) fn take_slab(&mut self) -> Option<u32> {
        let slab = self.slabs.free.pop()?;
        let elsewhere = self.elsewhere.as_mut()?;
        elsewhere.executor.clear_slab(slab as usize);
        if elsewhere.executor.slab_mut(slab as usize).len() < self.slabs.bytes {
            self.give_up(ExecutorFailure::new("a slab is shorter than it says"));
            return None;
        }
        self.slabs.uses[slab as usize].held = true;
        Some(slab)
    }

    /// Gives a slab back, of which the first `filled` bytes were in use, and wipes their contents: packets of the other direction come
    /// next. Contents that were sealed lie in what was written, those that were opened in what the executor made of it, and in
    /// what was written if the processor has opened some. Ciphertext stays, as it does in an arena.
    pub(in super::super) fn release_slab(&mut self, slab: u32, filled: usize, opened: bool) {
        let slabs = &mut self.slabs;
        let used = std::mem::take(&mut slabs.uses[slab as usize]);
        if let (Some(elsewhere), None) = (&mut self.elsewhere, &used.saved) {
            let executor = &mut elsewhere.executor;
            if opened {
                zero_first(executor.slab_mut(slab as usize), filled);
            }
            executor.clear_slab(slab as usize);
            if !opened || used.processed {
                zero_first(executor.slab_mut(slab as usize), filled);
            }
        }
        if (slab as usize) < slabs.count {
            slabs.free.push(slab);
        }
    }

    /// What lies in a slab; empty while it is under way.
    #[inline]
    pub(in super::super) fn slab(&self, slab: u32) -> &[u8] {
        self.slabs.memory(self.elsewhere.as_ref(), slab)
    }

    #[inline]
    pub(in super::super) fn slab_mut(&mut self, slab: u32) -> &mut [u8] {
        self.slab_and_counters(slab).0
    }

    /// What lies in a slab, and beside it the counters.
    #[inline]
    pub(in super::super) fn slab_and_counters(&mut self, slab: u32) -> (&mut [u8], &mut BatchCounters) {
        let memory = self.slabs.memory_mut(self.elsewhere.as_mut(), slab);
        (memory, &mut self.counters)
    }

    /// Copies what is in use, since the executor is about to go.
    pub(in super::super) fn save_slabs(&mut self) {
        let Some(elsewhere) = &mut self.elsewhere else {
            return;
        };
        for UnderWay { slab, .. } in self.slabs.under_way.drain(..) {
            elsewhere.executor.clear_slab(slab as usize);
        }
        for (slab, used) in self.slabs.uses.iter_mut().enumerate() {
            if used.held && used.saved.is_none() {
                used.saved = Some(Zeroizing::new((&*elsewhere.executor.slab_mut(slab)).into()));
            }
        }
    }

    /// Gives the jobs of a slab to the executor, if it is to have them. `more` says that other packets come after them.
    pub(in super::super) fn start_slab(&mut self, slab: u32, filled: usize, jobs: &[Job], more: bool) -> bool {
        let slabs = &mut self.slabs;
        let Some(elsewhere) = self.elsewhere.as_mut().filter(|_| !jobs.is_empty()) else {
            return false;
        };
        if self.under_way || slabs.uses[slab as usize].saved.is_some() {
            return false;
        }
        let (executor, router) = (&mut elsewhere.executor, &elsewhere.router);
        if !jobs.iter().all(|job| router.has(job.slot())) {
            return false;
        }
        let bytes = jobs.iter().map(Job::message_len).sum();
        slabs.loads.clear();
        for UnderWay { slab, jobs, bytes } in &slabs.under_way {
            if !executor.is_slab_done(*slab as usize) {
                slabs.loads.push((*jobs, *bytes));
            }
        }
        if !router.takes(jobs.len(), bytes, &slabs.loads, more) || !executor.wants_slab(more) {
            return false;
        }
        self.under_way = true;
        let started = executor.start_slab(slab as usize, filled, jobs);
        self.under_way = false;
        match started {
            Ok(()) => {
                self.counters.runs += 1;
                let jobs = jobs.len();
                slabs.under_way.push(UnderWay { slab, jobs, bytes });
                true
            }
            Err(failure) => {
                self.give_up(failure);
                false
            }
        }
    }

    /// Takes the results of a slab that was started, or has the processor do it; true if all are [`Status::Done`].
    pub(in super::super) fn finish_slab(&mut self, slab: u32, jobs: &[Job], statuses: &mut Vec<Status>) -> bool {
        statuses.clear();
        statuses.resize(jobs.len(), Status::Failed);
        let place = slab as usize;
        if let Some(elsewhere) = &mut self.elsewhere
            && self.slabs.uses[place].saved.is_none()
        {
            if std::mem::replace(&mut self.under_way, true) {
                return false;
            }
            let finished = elsewhere.executor.finish_slab(place, statuses);
            self.under_way = false;
            self.slabs.under_way.retain(|under_way| under_way.slab != slab);
            let failure = match finished {
                Ok(()) if is_right(jobs, elsewhere.executor.slab(place), statuses) => {
                    self.counters.executor_jobs += jobs.len() as u64;
                    return statuses.iter().all(|&status| status == Status::Done);
                }
                Ok(()) => ExecutorFailure::new("what it did is not what it says"),
                Err(failure) => failure,
            };
            // As it was written.
            elsewhere.executor.clear_slab(place);
            statuses.fill(Status::Failed);
            self.give_up(failure);
        }
        self.process_slab(slab, jobs, statuses)
    }
}

/// Wipes the first bytes of memory that may be shorter.
fn zero_first(memory: &mut [u8], len: usize) {
    let len = len.min(memory.len());
    wipe::zero(&mut memory[..len]);
}

/// True if an executor did all jobs, as far as can be seen: the tags of those that seal were zeros.
fn is_right(jobs: &[Job], memory: &[u8], statuses: &[Status]) -> bool {
    jobs.iter().zip(statuses).all(|(job, status)| match status {
        Status::Done => memory
            .get(tag_of(job))
            .is_some_and(|tag| job.opens() || tag.iter().any(|&byte| byte != 0)),
        Status::Unauthentic => job.opens(),
        Status::Failed => false,
    })
}
