//! Costs are what a clock says they are, whatever else it says now and then.

use std::cell::RefCell;
use std::error::Error as _;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sealway_aead::batch::{Job, Slot, Status};
use sealway_bip324::batch::{Backend, Costs, Executor, ExecutorFailure, Line, MeasureError, Stopped};

use crate::common::Numbers;
use crate::elsewhere::{Act, Elsewhere, Log};

/// A world in which everything takes exactly as long as it costs.
struct World {
    costs: Costs,
    now: u128,
    /// When the executor is done.
    done_at: u128,
    /// Jobs and bytes of the batch.
    batch: (usize, usize),
    /// True if the executor was asked for something since the clock was looked at.
    asked: bool,
    looks: usize,
    /// At some looks at the clock, one of so many on average, so many picoseconds are lost.
    pause: Option<(usize, u128)>,
    numbers: Numbers,
}

impl World {
    /// What the clock says. Whenever the executor was not asked for anything, the processor has worked on a batch.
    fn look(&mut self) -> Duration {
        if !self.asked {
            self.now += self.costs.cpu.of(self.batch.0, self.batch.1);
        }
        self.asked = false;
        self.looks += 1;
        if let Some((each, lost)) = self.pause
            && self.numbers.below(each) == 0
        {
            self.now += lost;
        }
        Duration::from_nanos((self.now / 1000) as u64)
    }
}

/// An executor in that world.
struct Timed {
    executor: Elsewhere,
    world: Arc<Mutex<World>>,
}

impl Executor for Timed {
    fn set_key(&mut self, slot: Slot, key: &[u8; 32]) {
        self.executor.set_key(slot, key);
    }

    fn clear_key(&mut self, slot: Slot) {
        self.executor.clear_key(slot);
    }

    fn start(&mut self, jobs: &[Job], arena: &[u8]) -> Result<(), ExecutorFailure> {
        let mut world = self.world.lock().unwrap();
        let bytes = jobs.iter().map(Job::message_len).sum();
        (world.batch, world.asked) = ((jobs.len(), bytes), true);
        // Half of what this thread has to do is before, half after.
        world.now += world.costs.thread.of(jobs.len(), bytes) / 2;
        world.done_at = world.now + world.costs.executor.of(jobs.len(), bytes);
        self.executor.start(jobs, arena)
    }

    fn finish(&mut self, jobs: &[Job], arena: &mut [u8], statuses: &mut [Status]) -> Result<(), Stopped> {
        let mut world = self.world.lock().unwrap();
        world.asked = true;
        world.now = world.now.max(world.done_at) + world.costs.thread.of(world.batch.0, world.batch.1) / 2;
        self.executor.finish(jobs, arena, statuses)
    }
}

fn measure(costs: Costs, pause: Option<(usize, u128)>, act: (usize, Act)) -> (Result<Costs, MeasureError>, Log, usize) {
    let (executor, log) = Elsewhere::new(act);
    let world = Arc::new(Mutex::new(World {
        costs,
        now: 0,
        done_at: 0,
        batch: (0, 0),
        asked: false,
        looks: 0,
        pause,
        numbers: Numbers(1),
    }));
    let mut executor = Timed {
        executor,
        world: world.clone(),
    };
    let measured = Costs::measure(&mut executor, Backend::best(), &mut || world.lock().unwrap().look());
    let looks = world.lock().unwrap().looks;
    (measured, std::mem::take(&mut *log.lock().unwrap()), looks)
}

fn near(got: Line, want: Line, what: &str) {
    // The clock has whole nanoseconds, and differences are divided by 496 jobs.
    let close = |got: u64, want: u64, by: u64| got.abs_diff(want) <= by;
    assert!(
        close(got.fixed, want.fixed, 10_000) && close(got.job, want.job, 400) && close(got.byte, want.byte, 10),
        "{what}: {got:?}, not {want:?}"
    );
}

const REAL: Costs = Costs {
    cpu: line(0, 90_000, 410),
    thread: line(9_000_000, 18_000, 150),
    executor: line(16_000_000, 1500, 40),
};

const SLOW: Costs = Costs {
    cpu: line(500_000, 20_000, 100),
    thread: line(0, 70_000, 0),
    executor: line(0, 200_000, 3000),
};

const fn line(fixed: u64, job: u64, byte: u64) -> Line {
    Line { fixed, job, byte }
}

#[test]
fn costs_are_those_of_the_world() {
    // Pauses of a second, and of five microseconds.
    for pause in [None, Some((30, 1_000_000_000_000)), Some((20, 5_000_000))] {
        for costs in [REAL, SLOW] {
            let (measured, log, looks) = measure(costs, pause, (usize::MAX, Act::Works));
            let measured = measured.unwrap();
            near(measured.cpu, costs.cpu, "cpu");
            near(measured.thread, costs.thread, "thread");
            near(measured.executor, costs.executor, "executor");
            assert!(log.held.is_empty(), "keys are left: {:?}", log.held);
            assert_eq!((log.starts.len(), log.finishes), (36, 36));
            // The slower world has 46 batches of the processor to one of the executor; pauses add to that.
            let bound = if pause.is_none() { 60 } else { 1024 };
            assert!(looks < 18 * (6 + bound), "{looks} looks at the clock");
        }
    }
}

#[test]
fn clocks_that_are_no_clocks() {
    let clocks: [&mut dyn FnMut() -> Duration; 4] = [
        &mut || Duration::ZERO,
        &mut || Duration::MAX,
        // Back and forth between two moments that are the same for each measurement: never forwards.
        &mut {
            let mut now = u64::MAX;
            move || {
                now -= 1;
                Duration::from_nanos(now)
            }
        },
        // Each look is at the end of time or at its beginning.
        &mut {
            let ends = Rc::new(RefCell::new(false));
            move || {
                let mut end = ends.borrow_mut();
                *end = !*end;
                if *end { Duration::MAX } else { Duration::ZERO }
            }
        },
    ];
    for (n, clock) in clocks.into_iter().enumerate() {
        let (mut executor, log) = Elsewhere::new((usize::MAX, Act::Works));
        let measured = Costs::measure(&mut executor, Backend::best(), clock);
        // A clock that leaps may be taken for one, and nothing more comes of it than wrong costs.
        assert!(n == 3 || matches!(measured, Err(MeasureError::Clock)), "{measured:?}");
        assert!(log.lock().unwrap().held.is_empty());
    }
}

#[test]
fn executors_that_are_not_to_be_used() {
    for run in [0, 1, 20, 35] {
        for act in [Act::Refuses, Act::StopsAfter(3), Act::LeavesStatus(3), Act::Confuses(2)] {
            let (measured, log, _) = measure(REAL, None, (run, act));
            let error = measured.unwrap_err();
            assert!(matches!(error, MeasureError::Executor(_)), "{act:?}: {error:?}");
            assert!(error.source().is_some() && !error.to_string().is_empty());
            assert!(log.held.is_empty(), "keys are left");
            assert_eq!(log.starts.len(), run + 1);
        }
        for act in [Act::Corrupts, Act::LeavesOutput(1)] {
            let (measured, log, _) = measure(REAL, None, (run, act));
            assert!(
                matches!(measured, Err(MeasureError::OtherBytes)),
                "{act:?}: {measured:?}"
            );
            assert!(log.held.is_empty());
        }
    }
    for (longest, slots) in [(64, 16), (0, 16), (1000, 0)] {
        let (mut executor, log) = Elsewhere::new((usize::MAX, Act::Works));
        (executor.longest, executor.slots) = (longest, slots);
        let measured = Costs::measure(&mut executor, Backend::best(), &mut || Duration::ZERO);
        assert!(matches!(measured, Err(MeasureError::Limits { .. })), "{measured:?}");
        assert!(log.lock().unwrap().starts.is_empty());
    }
}

/// With a real clock, by every backend, and an executor that takes little.
#[test]
fn costs_of_this_machine() {
    for backend in Backend::available() {
        let (mut executor, log) = Elsewhere::new((usize::MAX, Act::Works));
        (executor.longest, executor.slots) = (200, 3);
        let begin = Instant::now();
        let costs = Costs::measure(&mut executor, backend, &mut || begin.elapsed()).unwrap();
        assert!(costs.cpu.of(1000, 200_000) > 0);
        assert_eq!(costs.to_string().parse(), Ok(costs));
        let log = log.lock().unwrap();
        assert!(log.highest < 3 && log.held.is_empty());
        assert!(log.starts.iter().all(|(jobs, bytes)| *bytes <= 200 * jobs));
    }
}
