//! Work that is timed in small pieces, each checked with the clock stopped.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::measure::clock::thread_cpu;
use crate::measure::cycles::{self, Meter};
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
    repeat_by(&mut Meter::open(), chunk, time)
}

fn repeat_by<C: Chunk>(meter: &mut Meter, chunk: &mut C, time: Duration) -> Result<Counted, CellError> {
    let cost = reading_cost();
    let mut sum = Counted::default();
    let (mut wall, mut cpu) = (Duration::ZERO, Duration::ZERO);
    let mut cycles = meter.read().map(|_| 0);
    let began = Instant::now();
    while wall < time && (sum.ops == 0 || began.elapsed() < time * PATIENCE) {
        chunk.reset();
        let (worked, spent) = timed(meter, || chunk.work());
        worked?;
        // Work that is too short to tell from the readings stays above zero.
        wall += spent.wall.saturating_sub(cost.wall).max(Duration::from_nanos(1));
        cpu += spent.cpu.saturating_sub(cost.cpu).max(Duration::from_nanos(1));
        let taken = spent.cycles.map(|taken| taken.saturating_sub(cost.cycles.unwrap_or(0)));
        cycles = cycles.zip(taken).map(|(sum, taken)| sum + taken);
        chunk.verify()?;
        let (ops, bytes) = chunk.counted();
        sum.ops += ops;
        sum.bytes += bytes;
    }
    sum.wall_s = wall.as_secs_f64();
    // Without a clock for the thread there is no CPU time, and readers take the wall's.
    sum.cpu_s = if thread_cpu().is_some() { cpu.as_secs_f64() } else { 0.0 };
    sum.figures.extend(cycles.map(|cycles| (cycles::FIGURE, cycles as f64)));
    Ok(sum)
}

/// What passed on two clocks, and the cycles where they are counted.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    wall: Duration,
    cpu: Duration,
    cycles: Option<u64>,
}

/// Reads the clocks around `work`, and the meter around the clocks: reading it takes longer, and most of that in the kernel,
/// where it does not count.
#[inline(always)]
fn timed<T>(meter: &mut Meter, work: impl FnOnce() -> T) -> (T, Spent) {
    let cycles = meter.read();
    let cpu = thread_cpu();
    let wall = Instant::now();
    let done = work();
    let wall = wall.elapsed();
    let cpu = match (cpu, thread_cpu()) {
        (Some(before), Some(after)) => after.saturating_sub(before),
        _ => Duration::ZERO,
    };
    let cycles = cycles
        .zip(meter.read())
        .map(|(before, after)| after.saturating_sub(before));
    (done, Spent { wall, cpu, cycles })
}

/// What [`timed`] shows around nothing: the median of many, found once. On chunks of a few microseconds it is several per
/// cent, the same for every subject, and would pull all ratios towards 1.
fn reading_cost() -> Spent {
    static COST: OnceLock<Spent> = OnceLock::new();
    *COST.get_or_init(|| {
        let mut meter = Meter::open();
        let empty: Vec<Spent> = (0..501)
            .map(|_| timed(&mut meter, || std::hint::black_box(())).1)
            .collect();
        Spent {
            wall: median(&empty, |spent| spent.wall),
            cpu: median(&empty, |spent| spent.cpu),
            cycles: median(&empty, |spent| spent.cycles),
        }
    })
}

fn median<T: Copy + Ord>(spent: &[Spent], read: fn(&Spent) -> T) -> T {
    let mut values: Vec<T> = spent.iter().map(read).collect();
    values.sort_unstable();
    values[values.len() / 2]
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::measure::cycles::Reading;

    /// Does one operation.
    struct Nothing;

    impl Chunk for Nothing {
        fn reset(&mut self) {}

        fn work(&mut self) -> Result<(), CellError> {
            Ok(())
        }

        fn verify(&mut self) -> Result<(), CellError> {
            Ok(())
        }

        fn counted(&self) -> (u64, u64) {
            (1, 0)
        }
    }

    /// The operations of a window with its cycles; the counter takes a million between two readings, and misses time from
    /// reading number `until` on.
    fn window(until: u64) -> (u64, Option<f64>) {
        let mut reads = 0;
        let mut meter = Meter::of(move || {
            reads += 1;
            Some(Reading {
                count: reads * 1_000_000,
                enabled: reads,
                running: reads.min(until - 1),
            })
        });
        let counted = repeat_by(&mut meter, &mut Nothing, Duration::from_micros(10)).unwrap();
        let figure = counted.figures.iter().find(|(name, _)| *name == cycles::FIGURE);
        (counted.ops, figure.map(|(_, cycles)| *cycles))
    }

    #[test]
    fn cycles_are_those_between_the_readings_around_the_work() {
        let (ops, cycles) = window(u64::MAX);
        let each = cycles.unwrap() / ops as f64;
        // Less what a reading costs where there is a counter.
        assert!(each > 900_000.0 && each <= 1_000_000.0, "{each}");
    }

    #[test]
    fn a_counter_that_missed_time_has_no_figure() {
        for until in [1, 2, 3] {
            let (ops, cycles) = window(until);
            assert!(ops > 0 && cycles.is_none(), "{cycles:?}");
        }
    }
}
