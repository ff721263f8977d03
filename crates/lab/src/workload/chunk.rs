//! Work that is timed in small pieces, each checked with the clock stopped.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::measure::clock::thread_cpu;
use crate::result::Case;
use crate::run::{Cell, CellError, Counted, Timed, layout};
use crate::stats::SplitMix64;

/// Work that can be timed in small pieces, each checked with the clock stopped.
pub(crate) trait Chunk {
    /// Puts everything back to the start. Not timed.
    fn reset(&mut self);

    /// Does the work. Timed; touches nothing but its own buffers and does not allocate for the lab's sake.
    fn work(&mut self) -> Result<(), CellError>;

    /// Checks every output of the work. Not timed.
    fn verify(&mut self) -> Result<(), CellError>;

    /// Checks once, before the first window and after a piece of work, what would take too long each time. Not timed.
    fn examine(&mut self) -> Result<(), CellError> {
        Ok(())
    }

    /// Operations and payload bytes of the piece worked on last.
    fn counted(&self) -> (u64, u64);
}

/// How many times its length a window may last with what is not timed: setting back, checking, being preempted.
const PATIENCE: u32 = 3;

/// Repeats chunks until `time` was spent on work, and counts only what passes between the clock readings around the work,
/// less what the readings themselves cost.
///
/// Ends early, after a whole chunk, when everything together has taken [`PATIENCE`] times as long: a run keeps its promise
/// about time also where the machine is not its own.
pub(crate) fn repeat<C: Chunk>(chunk: &mut C, time: Duration) -> Result<Counted, CellError> {
    let cost = reading_cost();
    let mut sum = Counted::default();
    let (mut wall, mut cpu) = (Duration::ZERO, Duration::ZERO);
    let began = Instant::now();
    while wall < time && (sum.ops == 0 || began.elapsed() < time * PATIENCE) {
        chunk.reset();
        let (worked, spent) = timed(|| chunk.work());
        worked?;
        // Work that is too short to tell from the readings stays above zero.
        wall += spent.wall.saturating_sub(cost.wall).max(Duration::from_nanos(1));
        cpu += spent.cpu.saturating_sub(cost.cpu).max(Duration::from_nanos(1));
        chunk.verify()?;
        let (ops, bytes) = chunk.counted();
        sum.ops += ops;
        sum.bytes += bytes;
    }
    sum.wall_s = wall.as_secs_f64();
    // Without a clock for the thread there is no CPU time, and readers take the wall's.
    sum.cpu_s = if thread_cpu().is_some() { cpu.as_secs_f64() } else { 0.0 };
    Ok(sum)
}

/// What passed on two clocks.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    wall: Duration,
    cpu: Duration,
}

/// Reads the clocks around `work`.
#[inline(always)]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Spent) {
    let cpu = thread_cpu();
    let wall = Instant::now();
    let done = work();
    let wall = wall.elapsed();
    let cpu = match (cpu, thread_cpu()) {
        (Some(before), Some(after)) => after.saturating_sub(before),
        _ => Duration::ZERO,
    };
    (done, Spent { wall, cpu })
}

/// What [`timed`] shows around nothing: the median of many, found once. On chunks of a few microseconds it is several per
/// cent, the same for every subject, and would pull all ratios towards 1.
fn reading_cost() -> Spent {
    static COST: OnceLock<Spent> = OnceLock::new();
    *COST.get_or_init(|| {
        let empty: Vec<Spent> = (0..501).map(|_| timed(|| std::hint::black_box(())).1).collect();
        let median = |read: fn(&Spent) -> Duration| {
            let mut values: Vec<Duration> = empty.iter().map(read).collect();
            values.sort_unstable();
            values[values.len() / 2]
        };
        Spent {
            wall: median(|spent| spent.wall),
            cpu: median(|spent| spent.cpu),
        }
    })
}

/// The error of a cell that is asked for a window before it was prepared.
pub(crate) fn not_prepared() -> CellError {
    CellError::failed("the cell was not prepared")
}

/// A case with an engine, worked on in chunks; `make` sets up the engine, for every window anew.
pub(crate) fn chunked<C: Chunk + 'static>(
    case: Case,
    subject: &str,
    make: impl Fn() -> Result<C, CellError> + 'static,
) -> Cell {
    let random = layout::random();
    let chunked = Chunked {
        make,
        prepared: false,
        random,
    };
    Cell::new(case, subject, chunked)
}

struct Chunked<M> {
    make: M,
    prepared: bool,
    random: SplitMix64,
}

impl<C: Chunk, M: Fn() -> Result<C, CellError>> Timed for Chunked<M> {
    fn prepare(&mut self) -> Result<(), CellError> {
        let mut chunk = (self.make)()?;
        chunk.reset();
        chunk.work()?;
        chunk.examine()?;
        chunk.verify()?;
        self.prepared = true;
        Ok(())
    }

    /// Sets everything up anew, elsewhere in memory: what lies well by luck is lucky in one round, and not in all.
    fn window(&mut self, warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        if !self.prepared {
            return Err(not_prepared());
        }
        let _elsewhere = layout::padding(&mut self.random);
        let mut chunk = (self.make)()?;
        repeat(&mut chunk, warmup)?;
        repeat(&mut chunk, window)
    }
}

/// The place of a case whose answers could not be worked out: it shows up as a failure and not as a gap.
pub(crate) fn failed_cell(case: Case, subject: &str, error: &CellError) -> Cell {
    struct Failed(CellError);

    impl Timed for Failed {
        fn window(&mut self, _: Duration, _: Duration) -> Result<Counted, CellError> {
            Err(self.0.clone())
        }

        fn prepare(&mut self) -> Result<(), CellError> {
            Err(self.0.clone())
        }
    }

    Cell::new(case, subject, Failed(error.clone()))
}
