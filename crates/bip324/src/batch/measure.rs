//! Finds out what jobs cost.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use sealway_aead::batch::{Backend, Engine, Job, Keys, Memory, Slot, Status};
use sealway_aead::{Nonce, Suite};

use crate::TAG_LEN;

use super::costs::{Costs, Line};
use super::executor::{Executor, ExecutorFailure};

/// Slots of keys that are used.
const SLOTS: usize = 16;

/// Jobs of a small batch and of a large one.
const JOBS: [usize; 2] = [16, 512];

/// Bytes of the messages of a batch, over and over: as different as those of packets, so that an executor does with them what it does
/// with packets; a GPU has a kernel for each of several ranges. Short ones, 128 on average, and long ones, 576.
const SHORT: Lengths = [8, 31, 420, 3, 62, 25, 1000, 17, 30, 5, 210, 124, 12, 28, 52, 21];
const LONG: Lengths = [
    60, 1100, 450, 150, 3000, 110, 700, 250, 20, 800, 126, 1500, 90, 400, 160, 300,
];

type Lengths = [usize; JOBS[0]];

/// Bytes of a message that an executor has to take, at least: with less, short messages and long ones could be alike.
const LEAST: usize = 65;

/// Times that each batch is timed, after one time that is not. The median counts.
const TIMES: usize = 5;

/// Most batches that the processor does while it waits for the executor to be done, so that it ends by any clock. The smallest
/// take a microsecond.
const PATIENCE: usize = 1024;

/// Picoseconds that a batch takes at most, about 19 minutes: a clock that leaps does not make sums overflow.
const LONGEST: u64 = 1 << 50;

/// Why costs could not be measured. A caller goes on with another [`super::Routing`], or without the executor.
#[derive(Debug)]
#[non_exhaustive]
pub enum MeasureError {
    /// The clock stood still while the processor worked, or is too coarse.
    Clock,
    /// The executor failed.
    Executor(ExecutorFailure),
    /// The executor gives other bytes than the processor: it is not to be used.
    OtherBytes,
    /// The executor takes no messages long enough to be measured, or has no slots for keys.
    Limits {
        /// Bytes of the longest message it takes.
        longest: usize,
        /// Slots it has.
        slots: usize,
    },
    /// The executor has slabs, and one is too small for the batches that are measured.
    Slab {
        /// Bytes that it has to have, at least.
        bytes: usize,
        /// Jobs that it has to take, at least.
        jobs: usize,
    },
    /// The processor failed, because memory ran out.
    Processor(sealway_aead::Error),
}

impl fmt::Display for MeasureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MeasureError::Clock => f.write_str("the clock stood still while the costs of jobs were measured"),
            MeasureError::Executor(_) => f.write_str("the executor failed while its costs were measured"),
            MeasureError::OtherBytes => f.write_str("the executor gives other bytes than the processor"),
            MeasureError::Limits { longest, slots } => write!(
                f,
                "an executor of messages up to {longest} bytes with {slots} slots of keys cannot be measured"
            ),
            MeasureError::Slab { bytes, jobs } => write!(
                f,
                "an executor can be measured by slabs of at least {bytes} bytes and {jobs} jobs"
            ),
            MeasureError::Processor(_) => f.write_str("the processor failed while its costs were measured"),
        }
    }
}

impl StdError for MeasureError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match self {
            MeasureError::Executor(failure) => Some(failure),
            MeasureError::Processor(error) => Some(error),
            _ => None,
        }
    }
}

impl Costs {
    /// Measures what jobs cost on the processor, with one thread, and on an executor, before that is set.
    ///
    /// `clock` gives the time since any moment, as `Instant::elapsed` does. Three shapes of batches are sealed, 16 and 512
    /// short messages and 512 long ones, their lengths as different as those of packets: six times each by the processor alone, by
    /// the executor alone and by the executor while the processor works; the median of five counts, so a pause of this thread now and
    /// then changes nothing. It takes about ten milliseconds, several times that with the portable backend, and more if the executor is slow: the processor
    /// works as long beside it as it took by itself, by `clock` and for 1024 batches at most. The executor has to come to an end
    /// by itself. Slots 0 to 15 of its keys are used and cleared. What it gives is compared with what the processor gives.
    ///
    /// A device that had nothing to do may be slow for some tenths of a second: measure again until they are over, and take the last
    /// costs; in all threads at once, if they are to share the device.
    ///
    /// # Errors
    /// [`MeasureError`], with the executor's keys cleared.
    pub fn measure(
        executor: &mut dyn Executor,
        backend: Backend,
        clock: &mut dyn FnMut() -> Duration,
    ) -> Result<Costs, MeasureError> {
        let (longest, slots) = (executor.longest(), executor.slots().min(SLOTS));
        if longest < LEAST || slots == 0 {
            let slots = executor.slots();
            return Err(MeasureError::Limits { longest, slots });
        }
        let shapes = [(SHORT, JOBS[0]), (SHORT, JOBS[1]), (LONG, JOBS[1])];
        let shapes = shapes.map(|(lengths, jobs)| messages(&lengths, jobs, longest));
        let sums = shapes.each_ref().map(|lens| lens.iter().sum::<usize>());
        let (bytes, jobs) = (sums[2] + JOBS[1] * TAG_LEN, JOBS[1]);
        if executor.slabs() > 0 && (executor.slab_bytes() < bytes || executor.slab_jobs() < jobs) {
            return Err(MeasureError::Slab { bytes, jobs });
        }
        let mut keys = Keys::with_slots(slots);
        for slot in 0..slots {
            let (slot, key) = (Slot(slot as u32), [slot as u8 + 1; 32]);
            keys.set(slot, Suite::ChaCha20Poly1305, &key)
                .map_err(MeasureError::Processor)?;
            executor.set_key(slot, &key);
        }
        let mut bench = Bench {
            executor,
            engine: Engine::with_backend(backend),
            keys,
            clock,
        };
        let mut times = [Times::default(); 3];
        let measured = shapes.iter().zip(&mut times).try_for_each(|(lens, times)| {
            *times = bench.shape(lens)?;
            Ok(())
        });
        for slot in 0..slots {
            bench.executor.clear_key(Slot(slot as u32));
        }
        measured?;
        let line = |of: fn(&Times) -> u64| line(times.each_ref().map(of), sums.map(|sum| sum as u64));
        if times[1].cpu == 0 || times[2].cpu == 0 {
            return Err(MeasureError::Clock);
        }
        Ok(Costs {
            cpu: line(|times| times.cpu),
            thread: line(|times| times.thread),
            executor: line(|times| times.executor),
        })
    }
}

/// Picoseconds for a batch.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    cpu: u64,
    thread: u64,
    executor: u64,
}

/// Bytes of each message of a batch. Every sixteen have all lengths, beginning with another each time.
fn messages(lengths: &Lengths, jobs: usize, longest: usize) -> Vec<usize> {
    let length = |n: usize| lengths[(5 * n + n / lengths.len()) % lengths.len()].min(longest);
    (0..jobs).map(length).collect()
}

/// The line through three batches, of so many bytes: few short messages, many short ones, many long ones.
fn line([few, many, longer]: [u64; 3], bytes: [u64; 3]) -> Line {
    let [fewer, more] = JOBS.map(|jobs| jobs as u64);
    let byte = longer.saturating_sub(many) / (bytes[2] - bytes[1]);
    let without_bytes = |time: u64, bytes: u64| time.saturating_sub(byte * bytes);
    let job = without_bytes(many.saturating_sub(few), bytes[1] - bytes[0]) / (more - fewer);
    let fixed = without_bytes(few, bytes[0]).saturating_sub(fewer * job);
    Line { fixed, job, byte }
}

/// What is measured, and what with.
struct Bench<'a> {
    executor: &'a mut dyn Executor,
    engine: Engine,
    keys: Keys,
    clock: &'a mut dyn FnMut() -> Duration,
}

impl Bench<'_> {
    /// Times batches of one shape.
    fn shape(&mut self, lens: &[usize]) -> Result<Times, MeasureError> {
        let nonce = |n: u32| {
            // These keys are known to everyone and seal only what is thrown away.
            let mut nonce = [0; 12];
            nonce[..4].copy_from_slice(&n.to_le_bytes());
            Nonce::assume_unique(Suite::ChaCha20Poly1305, &nonce)
        };
        let (mut jobs, mut start) = (Vec::with_capacity(lens.len()), 0);
        for (n, &len) in (0..).zip(lens) {
            let slot = Slot(n % self.keys.slots() as u32);
            let nonce = nonce(n).map_err(MeasureError::Processor)?;
            jobs.push(Job::seal(slot, nonce, start..start + len as u32, start));
            start += (len + TAG_LEN) as u32;
        }
        let mut arena = vec![0; start as usize];
        let mut right = arena.clone();
        self.process(&jobs, &mut right)?;
        let mut spare = arena.clone();
        let mut times = [[0; TIMES]; 3];
        for n in 0..=TIMES {
            arena.fill(0);
            self.write(&arena);
            let begin = (self.clock)();
            self.start(&jobs, &arena)?;
            self.finish(&jobs, &mut arena)?;
            let end = (self.clock)();
            self.read(&mut arena);
            if arena != right {
                return Err(MeasureError::OtherBytes);
            }
            let both = end.saturating_sub(begin);

            let begin = (self.clock)();
            self.process(&jobs, &mut spare)?;
            let cpu = (self.clock)().saturating_sub(begin);

            arena.fill(0);
            self.write(&arena);
            let begin = (self.clock)();
            self.start(&jobs, &arena)?;
            let started = (self.clock)();
            let mut now = started;
            for _ in 0..PATIENCE {
                // As long as the executor took before, so that it is done and what is timed is this thread alone.
                if now.saturating_sub(started) > both {
                    break;
                }
                self.process(&jobs, &mut spare)?;
                now = (self.clock)();
            }
            self.finish(&jobs, &mut arena)?;
            let end = (self.clock)();
            self.read(&mut arena);
            if arena != right {
                return Err(MeasureError::OtherBytes);
            }
            let thread = started.saturating_sub(begin) + end.saturating_sub(now);
            // The first time memory is taken and keys are sent.
            if let Some(n) = n.checked_sub(1) {
                for (times, time) in times.iter_mut().zip([cpu, thread, both]) {
                    times[n] = (time.as_nanos() * 1000).min(LONGEST.into()) as u64;
                }
            }
        }
        let [cpu, thread, both] = times.map(|mut times| {
            times.sort_unstable();
            times[TIMES / 2]
        });
        let executor = both.saturating_sub(thread);
        Ok(Times { cpu, thread, executor })
    }

    fn process(&mut self, jobs: &[Job], arena: &mut [u8]) -> Result<(), MeasureError> {
        let mut statuses = [Status::Failed; JOBS[1]];
        let statuses = &mut statuses[..jobs.len()];
        let ran = self
            .engine
            .run(&self.keys, jobs, Memory::InPlace(arena), &[], statuses)
            .map_err(MeasureError::Processor)?;
        match ran.refused {
            0 => Ok(()),
            _ => Err(MeasureError::Processor(sealway_aead::Error::Backend)),
        }
    }

    /// True if batches go by a slab, as those of a transport do.
    fn by_slab(&self) -> bool {
        self.executor.slabs() > 0
    }

    /// What a transport writes to a slab, off the clock.
    fn write(&mut self, arena: &[u8]) {
        if self.by_slab() {
            self.executor.clear_slab(0);
            let slab = self.executor.slab_mut(0);
            if let Some(room) = slab.get_mut(..arena.len()) {
                room.copy_from_slice(arena);
            }
        }
    }

    fn read(&mut self, arena: &mut [u8]) {
        if self.by_slab()
            && let Some(results) = self.executor.slab(0).get(..arena.len())
        {
            arena.copy_from_slice(results);
        }
    }

    fn start(&mut self, jobs: &[Job], arena: &[u8]) -> Result<(), MeasureError> {
        if self.by_slab() {
            let started = self.executor.start_slab(0, arena.len(), jobs);
            return started.map_err(MeasureError::Executor);
        }
        self.executor.start(jobs, arena).map_err(MeasureError::Executor)
    }

    fn finish(&mut self, jobs: &[Job], arena: &mut [u8]) -> Result<(), MeasureError> {
        let mut statuses = [Status::Failed; JOBS[1]];
        let statuses = &mut statuses[..jobs.len()];
        if self.by_slab() {
            self.executor.finish_slab(0, statuses)
        } else {
            self.executor
                .finish(jobs, arena, statuses)
                .map_err(|stopped| stopped.failure)
        }
        .map_err(MeasureError::Executor)?;
        if statuses.iter().all(|&status| status == Status::Done) {
            Ok(())
        } else {
            Err(MeasureError::Executor(ExecutorFailure::new("not all jobs were done")))
        }
    }
}
