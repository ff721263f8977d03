//! Who does the jobs: the processor, or something else with the processor to fall back on.

use std::error::Error as StdError;
use std::fmt;

use sealway_aead::Suite;
use sealway_aead::batch::{Backend, Engine, Job, Keys, Memory, Slot, Status};

use crate::Error;

use super::BatchCounters;

/// Packets that are worked on as soon as they wait: as many as fill the lanes, and few enough that their text is still in
/// the second-level cache.
const EAGER_JOBS: usize = 1024;

/// Why an executor could not do what it was asked to.
#[derive(Debug)]
pub struct ExecutorFailure(Box<dyn StdError + Send + Sync>);

impl ExecutorFailure {
    /// A failure for a reason.
    pub fn new(reason: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        ExecutorFailure(reason.into())
    }
}

impl fmt::Display for ExecutorFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl StdError for ExecutorFailure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source()
    }
}

/// Something other than the processor that does the jobs of a batch, a graphics card for instance, with the same results.
///
/// All jobs are ChaCha20-Poly1305 without associated data, in place: input and output of a job start at one offset. The
/// output is written to memory of the executor's own, so that after a failure the input is as it was and the processor does
/// the same jobs to the same bytes. An executor that fails is dropped; see [`super::BatchTransport::executor_failure`].
pub trait Executor: Send {
    /// A key is in a slot from now on, in place of the one that was there. To be wiped when replaced, cleared or dropped.
    fn set_key(&mut self, slot: Slot, key: &[u8; 32]);

    /// A slot is empty from now on; its key is to be wiped.
    fn clear_key(&mut self, slot: Slot);

    /// Packets that it would like to have at a time; fewer come when results are asked for before.
    fn preferred_jobs(&self) -> usize {
        16_384
    }

    /// False if these jobs are faster done by the processor.
    fn accepts(&self, jobs: usize, bytes: usize) -> bool {
        let _ = (jobs, bytes);
        true
    }

    /// Does all the jobs. Gives an arena in which the output of each job lies where its input lies in `arena`, and sets the
    /// status of each, [`Status::Unauthentic`] for what does not authenticate. The rest of the output is not looked at.
    ///
    /// # Errors
    /// If it cannot; also if a status is left as [`Status::Failed`], or the output is shorter than `arena`, it counts as
    /// failed. Nothing that it has done by then is used.
    fn run(&mut self, jobs: &[Job], arena: &[u8], statuses: &mut [Status]) -> Result<&[u8], ExecutorFailure>;
}

/// Which of the two directions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Way {
    Send = 0,
    Recv = 2,
}

/// Slots of a connection: of each direction one for even epochs and one for odd ones.
const SLOTS: usize = 4;

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

/// Keys, and what works with them.
pub(super) struct Crypt {
    keys: Keys,
    engine: Engine,
    executor: Option<Box<dyn Executor>>,
    failure: Option<ExecutorFailure>,
    /// How many packets may wait.
    pub(super) eager: usize,
    pub(super) counters: BatchCounters,
}

impl Crypt {
    pub(super) fn new(backend: Backend) -> Self {
        Crypt {
            keys: Keys::with_slots(0),
            engine: Engine::with_backend(backend),
            executor: None,
            failure: None,
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
        if let Some(executor) = &mut self.executor {
            for slot in 0..self.keys.slots() as u32 {
                executor.clear_key(Slot(slot));
            }
        }
        self.keys = Keys::with_slots(connections * SLOTS);
    }

    /// Another executor, or none. No job may wait, and all keys are to be loaded again.
    pub(super) fn set_executor(&mut self, executor: Option<Box<dyn Executor>>) {
        self.eager = match &executor {
            Some(executor) => executor.preferred_jobs().max(1),
            None => EAGER_JOBS,
        };
        self.executor = executor;
        self.failure = None;
    }

    pub(super) fn load(&mut self, slot: Slot, key: &[u8; 32]) -> Result<(), Error> {
        self.keys.set(slot, Suite::ChaCha20Poly1305, key)?;
        if let Some(executor) = &mut self.executor {
            executor.set_key(slot, key);
        }
        Ok(())
    }

    pub(super) fn clear(&mut self, slot: Slot) {
        // A slot outside the table holds nothing.
        let _ = self.keys.clear(slot);
        if let Some(executor) = &mut self.executor {
            executor.clear_key(slot);
        }
    }

    /// Does the jobs; true if all are [`Status::Done`].
    ///
    /// A status of [`Status::Failed`] takes memory that ran out, or a planner that breaks the rules of jobs. What lies at such
    /// a job is not to be used.
    pub(super) fn run(&mut self, jobs: &[Job], arena: &mut [u8], statuses: &mut Vec<Status>) -> bool {
        statuses.clear();
        statuses.resize(jobs.len(), Status::Failed);
        self.counters.runs += 1;
        if self.executor.is_some() && self.run_elsewhere(jobs, arena, statuses) {
            return statuses.iter().all(|&status| status == Status::Done);
        }
        let Ok(report) = self.engine.run(&self.keys, jobs, Memory::InPlace(arena), &[], statuses) else {
            statuses.fill(Status::Failed);
            return false;
        };
        let counters = &mut self.counters;
        for (sum, lanes) in [
            (&mut counters.cipher_lanes, report.cipher),
            (&mut counters.mac_lanes, report.mac),
        ] {
            sum.used += lanes.used;
            sum.offered += lanes.offered;
        }
        report.refused == 0
    }

    /// True if the executor did it all. If not, the arena is as it was.
    fn run_elsewhere(&mut self, jobs: &[Job], arena: &mut [u8], statuses: &mut [Status]) -> bool {
        let bytes = jobs.iter().map(Job::message_len).sum();
        let Some(executor) = self.executor.as_mut().filter(|it| it.accepts(jobs.len(), bytes)) else {
            return false;
        };
        let failure = match executor.run(jobs, arena, statuses) {
            Err(failure) => failure,
            Ok(output) if output.len() < arena.len() => ExecutorFailure::new("the output is shorter than the input"),
            Ok(_) if statuses.contains(&Status::Failed) => ExecutorFailure::new("not all jobs were done"),
            Ok(output) => {
                for (job, status) in jobs.iter().zip(statuses.iter()) {
                    let range = job.output_offset()..job.output_offset() + job.output_len();
                    match status {
                        Status::Done => arena[range.clone()].copy_from_slice(&output[range]),
                        _ => arena[range].fill(0),
                    }
                }
                return true;
            }
        };
        self.counters.fallbacks += 1;
        self.set_executor(None);
        self.failure = Some(failure);
        false
    }
}

impl fmt::Debug for Crypt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Crypt")
            .field("backend", &self.engine.backend())
            .field("executor", &self.executor.is_some())
            .field("counters", &self.counters)
            .finish_non_exhaustive()
    }
}
