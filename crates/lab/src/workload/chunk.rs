//! Work that is timed in small pieces, each checked with the clock stopped.

use std::time::{Duration, Instant};

use crate::measure::clock::thread_cpu;
use crate::result::Case;
use crate::run::{Cell, CellError, Counted};

/// Work that can be timed in small pieces, each checked with the clock stopped.
pub(crate) trait Chunk {
    /// Puts everything back to the start. Not timed.
    fn reset(&mut self);

    /// Does the work. Timed; touches nothing but its own buffers and does not allocate for the lab's sake.
    fn work(&mut self) -> Result<(), CellError>;

    /// Checks every output of the work. Not timed.
    fn verify(&mut self) -> Result<(), CellError>;

    /// Operations and payload bytes of the piece worked on last.
    fn counted(&self) -> (u64, u64);
}

/// Repeats chunks for `time`, and counts only what passes between the clock readings around the work.
pub(crate) fn repeat<C: Chunk>(chunk: &mut C, time: Duration) -> Result<Counted, CellError> {
    let mut sum = Counted::default();
    let (mut wall, mut cpu) = (Duration::ZERO, Duration::ZERO);
    while wall < time {
        chunk.reset();
        let cpu_before = thread_cpu();
        let before = Instant::now();
        chunk.work()?;
        wall += before.elapsed();
        if let (Some(before), Some(after)) = (cpu_before, thread_cpu()) {
            cpu += after.saturating_sub(before);
        }
        chunk.verify()?;
        let (ops, bytes) = chunk.counted();
        sum.ops += ops;
        sum.bytes += bytes;
    }
    sum.wall_s = wall.as_secs_f64();
    sum.cpu_s = cpu.as_secs_f64();
    Ok(sum)
}

/// The error of a cell that is asked for a window before it was prepared.
pub(crate) fn not_prepared() -> CellError {
    CellError::Failed {
        what: "the cell was not prepared".to_owned(),
    }
}

/// A case with an engine, worked on in chunks.
pub(crate) struct ChunkCell<C> {
    case: Case,
    subject: &'static str,
    make: Box<dyn Fn() -> Result<C, CellError>>,
    chunk: Option<C>,
}

impl<C> ChunkCell<C> {
    /// `make` sets up the engine and checks it, once.
    pub(crate) fn new(case: Case, subject: &'static str, make: Box<dyn Fn() -> Result<C, CellError>>) -> Self {
        ChunkCell {
            case,
            subject,
            make,
            chunk: None,
        }
    }
}

impl<C: Chunk> Cell for ChunkCell<C> {
    fn case(&self) -> &Case {
        &self.case
    }

    fn subject(&self) -> &str {
        self.subject
    }

    fn prepare(&mut self) -> Result<(), CellError> {
        let mut chunk = (self.make)()?;
        chunk.reset();
        chunk.work()?;
        chunk.verify()?;
        self.chunk = Some(chunk);
        Ok(())
    }

    fn window(&mut self, warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let chunk = self.chunk.as_mut().ok_or_else(not_prepared)?;
        repeat(chunk, warmup)?;
        repeat(chunk, window)
    }
}

/// The place of a case whose answers could not be worked out: it shows up as a failure and not as a gap.
pub(crate) struct NoCell {
    pub(crate) case: Case,
    pub(crate) subject: &'static str,
    pub(crate) error: CellError,
}

impl Cell for NoCell {
    fn case(&self) -> &Case {
        &self.case
    }

    fn subject(&self) -> &str {
        self.subject
    }

    fn prepare(&mut self) -> Result<(), CellError> {
        Err(self.error.clone())
    }

    fn window(&mut self, _: Duration, _: Duration) -> Result<Counted, CellError> {
        Err(self.error.clone())
    }
}
