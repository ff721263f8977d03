//! Who does the jobs: the processor, or something else with the processor to fall back on.

mod slabs;

use std::fmt;

use sealway_aead::Suite;
use sealway_aead::batch::{Backend, Engine, Job, Keys, Memory, Slot, Status};

use crate::{Error, TAG_LEN};

use super::BatchCounters;
use super::executor::{Executor, ExecutorFailure, Stopped};
use super::router::{Router, Routing};

use slabs::Slabs;

/// Packets that are worked on as soon as they wait: as many as fill the lanes, and few enough that their text is still in
/// the second-level cache.
const EAGER_JOBS: usize = 1024;

/// Which of the two directions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Way {
    Send = 0,
    Recv = 2,
}

/// Slots of a connection: of each direction one for even epochs and one for odd ones.
pub(super) const SLOTS: usize = 4;

/// The slot of a connection, a direction and an epoch.
#[inline(always)]
pub(super) fn slot_of(index: usize, way: Way, epoch: u64) -> Slot {
    Slot((index * SLOTS) as u32 + way as u32 + (epoch & 1) as u32)
}

/// The connection of a slot.
#[inline(always)]
pub(super) fn connection_of(slot: Slot) -> usize {
    slot.0 as usize / SLOTS
}

/// An executor, and what it gets.
struct Elsewhere {
    executor: Box<dyn Executor>,
    router: Router,
}

/// Keys, and what works with them.
pub(super) struct Crypt {
    keys: Keys,
    engine: Engine,
    elsewhere: Option<Elsewhere>,
    pub(super) slabs: Slabs,
    failure: Option<ExecutorFailure>,
    /// True in the midst of a run, and for ever if that panicked: what is done of its jobs, nobody knows.
    under_way: bool,
    /// How many packets may wait.
    pub(super) eager: usize,
    pub(super) counters: BatchCounters,
}

impl Crypt {
    pub(super) fn new(backend: Backend) -> Self {
        Crypt {
            keys: Keys::with_slots(0),
            engine: Engine::with_backend(backend),
            elsewhere: None,
            slabs: Slabs::default(),
            failure: None,
            under_way: false,
            eager: EAGER_JOBS,
            counters: BatchCounters::default(),
        }
    }

    pub(super) const fn backend(&self) -> Backend {
        self.engine.backend()
    }

    pub(super) const fn failure(&self) -> Option<&ExecutorFailure> {
        self.failure.as_ref()
    }

    /// Connections there is room for.
    pub(super) fn connections(&self) -> usize {
        self.keys.slots() / SLOTS
    }

    /// An empty table for so many connections. No job may wait, and all keys are to be loaded again.
    pub(super) fn resize(&mut self, connections: usize) {
        for slot in 0..self.keys.slots() as u32 {
            self.clear(Slot(slot));
        }
        self.keys = Keys::with_slots(connections * SLOTS);
    }

    /// Another executor, or none. No job may wait, and all keys are to be loaded again.
    pub(super) fn set_executor(&mut self, executor: Option<(Box<dyn Executor>, Routing)>) {
        self.failure = None;
        self.eager = EAGER_JOBS;
        self.save_slabs();
        self.slabs.change(executor.as_ref().map(|(executor, _)| &**executor));
        self.elsewhere = executor.map(|(executor, routing)| {
            if executor.slabs() == 0 {
                self.eager = executor.preferred_jobs().max(1);
            }
            Elsewhere {
                router: Router::new(routing, &*executor),
                executor,
            }
        });
    }

    pub(super) fn load(&mut self, slot: Slot, key: &[u8; 32]) -> Result<(), Error> {
        self.keys.set(slot, Suite::ChaCha20Poly1305, key)?;
        if let Some(elsewhere) = &mut self.elsewhere
            && elsewhere.router.has(slot)
        {
            elsewhere.executor.set_key(slot, key);
        }
        Ok(())
    }

    pub(super) fn clear(&mut self, slot: Slot) {
        // A slot outside the table holds nothing.
        let _ = self.keys.clear(slot);
        if let Some(elsewhere) = &mut self.elsewhere
            && elsewhere.router.has(slot)
        {
            elsewhere.executor.clear_key(slot);
        }
    }

    /// True if there is a key in a slot.
    #[cfg(test)]
    pub(super) fn holds(&self, slot: Slot) -> bool {
        self.keys.suite(slot).is_some()
    }

    /// Does the jobs; true if all are [`Status::Done`].
    ///
    /// A status of [`Status::Failed`] takes memory that ran out, an executor that contradicts itself, a panic in an earlier run,
    /// or a planner that breaks the rules of jobs. What lies at such a job is not to be used.
    pub(super) fn run(&mut self, jobs: &[Job], arena: &mut [u8], statuses: &mut Vec<Status>) -> bool {
        statuses.clear();
        statuses.resize(jobs.len(), Status::Failed);
        if std::mem::replace(&mut self.under_way, true) {
            return false;
        }
        self.counters.runs += 1;
        if self.elsewhere.is_none() {
            let done = self.process(jobs, arena, statuses);
            self.under_way = false;
            return done;
        }
        let share = self.start(jobs, arena);
        let (theirs, ours) = statuses.split_at_mut(share);
        let own = self.process(&jobs[share..], arena, ours);
        // Also if the processor failed: what was started is always finished.
        let other = self.finish(&jobs[..share], arena, theirs);
        self.under_way = false;
        own && other
    }

    /// Does jobs on the processor; true if all are done.
    fn process(&mut self, jobs: &[Job], arena: &mut [u8], statuses: &mut [Status]) -> bool {
        let Crypt {
            keys, engine, counters, ..
        } = self;
        process(keys, engine, counters, jobs, arena, statuses)
    }

    /// Does jobs in a slab on the processor; true if all are done.
    pub(super) fn process_slab(&mut self, slab: u32, jobs: &[Job], statuses: &mut [Status]) -> bool {
        if std::mem::replace(&mut self.under_way, true) {
            return false;
        }
        let Crypt {
            keys,
            engine,
            counters,
            elsewhere,
            slabs,
            ..
        } = self;
        counters.runs += 1;
        let arena = slabs.workplace(elsewhere.as_mut(), slab);
        let done = process(keys, engine, counters, jobs, arena, statuses);
        self.under_way = false;
        done
    }

    /// Starts the executor with its share; gives how many of the first jobs that are.
    fn start(&mut self, jobs: &[Job], arena: &mut [u8]) -> usize {
        let Some(elsewhere) = self.elsewhere.as_mut().filter(|_| self.slabs.bytes == 0) else {
            return 0;
        };
        let share = elsewhere.router.share(jobs).min(jobs.len());
        if share == 0 {
            return 0;
        }
        let theirs = &jobs[..share];
        mark(theirs, arena);
        if let Err(failure) = elsewhere.executor.start(theirs, &arena[..end_of(theirs)]) {
            self.give_up(failure);
            return 0;
        }
        self.counters.splits += u64::from(share < jobs.len());
        share
    }

    /// Takes the results of what was started; true if all are done.
    fn finish(&mut self, jobs: &[Job], arena: &mut [u8], statuses: &mut [Status]) -> bool {
        let Some(elsewhere) = self.elsewhere.as_mut().filter(|_| !jobs.is_empty()) else {
            return true;
        };
        let theirs = &mut arena[..end_of(jobs)];
        let finished = elsewhere.executor.finish(jobs, theirs, statuses);
        let (done, failure) = match finished {
            Ok(()) => (jobs.len(), None),
            Err(Stopped { done, failure }) => (done, Some(failure)),
        };
        if !agrees(jobs, theirs, statuses, done) {
            // Not even what it says is done: what else it has written, and where, nobody knows.
            statuses.fill(Status::Failed);
            self.give_up(failure.unwrap_or_else(|| ExecutorFailure::new("what it did is not what it says")));
            return false;
        }
        self.counters.executor_jobs += done as u64;
        if let Some(failure) = failure {
            self.give_up(failure);
        }
        let (complete, rest) = statuses.split_at_mut(done);
        let own = self.process(&jobs[done..], arena, rest);
        own && complete.iter().all(|&status| status == Status::Done)
    }

    /// Drops the executor.
    #[cold]
    fn give_up(&mut self, failure: ExecutorFailure) {
        self.counters.fallbacks += 1;
        self.set_executor(None);
        self.failure = Some(failure);
    }
}

/// Does jobs on the processor; true if all are done.
fn process(
    keys: &Keys,
    engine: &mut Engine,
    counters: &mut BatchCounters,
    jobs: &[Job],
    arena: &mut [u8],
    statuses: &mut [Status],
) -> bool {
    if jobs.is_empty() {
        return true;
    }
    let Ok(report) = engine.run(keys, jobs, Memory::InPlace(arena), &[], statuses) else {
        statuses.fill(Status::Failed);
        return false;
    };
    counters.processor_jobs += jobs.len() as u64;
    for (sum, lanes) in [
        (&mut counters.cipher_lanes, report.cipher),
        (&mut counters.mac_lanes, report.mac),
    ] {
        sum.used += lanes.used;
        sum.offered += lanes.offered;
    }
    report.refused == 0
}

/// Where the last of the jobs ends, tag included.
fn end_of(jobs: &[Job]) -> usize {
    let ends = jobs.iter().map(|job| job.output_offset() + job.message_len() + TAG_LEN);
    ends.max().unwrap_or(0)
}

/// Where the tag of a job is.
fn tag_of(job: &Job) -> std::ops::Range<usize> {
    let end = job.output_offset() + job.message_len();
    end..end + TAG_LEN
}

/// Marks the jobs that seal as not sealed.
fn mark(jobs: &[Job], arena: &mut [u8]) {
    for job in jobs.iter().filter(|job| !job.opens()) {
        arena[tag_of(job)].fill(0);
    }
}

/// True if an executor did the first `done` jobs and no other, as far as can be seen.
fn agrees(jobs: &[Job], arena: &[u8], statuses: &[Status], done: usize) -> bool {
    let Some((complete, rest)) = jobs.split_at_checked(done) else {
        return false;
    };
    let is_marked = |job: &Job| arena[tag_of(job)].iter().all(|&byte| byte == 0);
    let is_complete = |(job, status): (&Job, &Status)| match status {
        Status::Done => job.opens() || !is_marked(job),
        Status::Unauthentic => job.opens(),
        Status::Failed => false,
    };
    let is_untouched = |(job, status): (&Job, &Status)| *status == Status::Failed && (job.opens() || is_marked(job));
    complete.iter().zip(statuses).all(is_complete) && rest.iter().zip(&statuses[done..]).all(is_untouched)
}

impl fmt::Debug for Crypt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crypt")
            .field("backend", &self.engine.backend())
            .field("executor", &self.elsewhere.is_some())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
