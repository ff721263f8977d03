//! The cells of one thread.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::mover::{Mover, refuses_forgeries};
use super::pool::Pool;
use crate::run::{CellError, Counted, Timed};
use crate::stats::latency::Latency;
use crate::workload::batch::{LATENCY_SHARE, Op, clocked, lane_figures};
use crate::workload::chunk::{Chunk, not_prepared, repeat};
use crate::workload::metric::BATCHES;

/// Packets of a chunk, unless a batch has more: enough that reading the clocks costs nothing.
pub(super) const CHUNK_PACKETS: usize = 4096;

/// Sets up who works on a pool, on the thread of this number.
pub(super) type Make = Arc<dyn Fn(&Pool, usize) -> Result<Box<dyn Mover>, CellError> + Send + Sync>;

/// The arenas that batches are written to.
#[derive(Default)]
pub(super) struct Scratch {
    wire: Vec<u8>,
    text: Vec<u8>,
}

impl Scratch {
    /// Makes room for the packets of a pool.
    pub(super) fn fit(&mut self, pool: &Pool) {
        if self.wire.len() < pool.sealed.len() {
            self.wire.resize(pool.sealed.len(), 0);
        }
        if self.text.len() < pool.plain.len() {
            self.text.resize(pool.plain.len(), 0);
        }
    }

    /// Overwrites what an earlier chunk has left of `packets`, so that a mover that does nothing is caught.
    pub(super) fn blank(&mut self, pool: &Pool, op: Op, packets: &Range<usize>) {
        if op.seals() {
            self.wire[pool.wires(packets)].fill(0xa5);
        }
        if op.opens() {
            self.text[pool.texts(packets)].fill(0x5a);
        }
    }

    /// Moves one batch.
    #[inline(always)]
    pub(super) fn batch(
        &mut self,
        mover: &mut dyn Mover,
        pool: &Pool,
        op: Op,
        packets: Range<usize>,
    ) -> Result<(), CellError> {
        match op {
            Op::Seal => mover.seal(pool, packets, &mut self.wire),
            Op::Open => mover.open(pool, packets, &pool.sealed, &mut self.text),
            Op::Pair => {
                mover.seal(pool, packets.clone(), &mut self.wire)?;
                mover.open(pool, packets, &self.wire, &mut self.text)
            }
        }
    }

    /// Compares everything that was written with the oracle's answers.
    pub(super) fn check(&self, pool: &Pool, op: Op, packets: &Range<usize>) -> Result<(), CellError> {
        if op.seals() {
            pool.check(packets, &self.wire[pool.wires(packets)], true)?;
        }
        if op.opens() {
            pool.check(packets, &self.text[pool.texts(packets)], false)?;
        }
        Ok(())
    }
}

/// What a cell does, without who does it.
#[derive(Clone)]
pub(super) struct Task {
    pub(super) pool: Arc<Pool>,
    pub(super) op: Op,
    pub(super) batch: usize,
    pub(super) make: Make,
}

impl Task {
    /// The packets after `last` that make the next chunk, from the start again after the end: so many in whole batches, at least one.
    pub(super) fn next(&self, last: &Range<usize>, share: &Range<usize>, packets: usize) -> Range<usize> {
        let per_chunk = self.batch * (packets / self.batch).max(1);
        let start = if last.end >= share.end { share.start } else { last.end };
        start..(start + per_chunk).min(share.end)
    }

    /// Sets up who does it, and makes sure that it refuses forgeries.
    pub(super) fn mover(&self) -> Result<Box<dyn Mover>, CellError> {
        let mut mover = (self.make)(&self.pool, 0)?;
        refuses_forgeries(mover.as_mut(), &self.pool, self.batch)?;
        mover.lanes();
        Ok(mover)
    }

    /// Moves the packets batch by batch.
    #[inline(always)]
    pub(super) fn batches(&self, packets: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<> {
        let (batch, end) = (self.batch, packets.end);
        packets
            .clone()
            .step_by(batch)
            .map(move |first| first..(first + batch).min(end))
    }
}

/// A case on the measuring thread. The arenas are shared by all cells, so that they cost memory once and no subject has
/// better pages than another.
pub(super) struct PacketCell {
    task: Task,
    latency: bool,
    scratch: Rc<RefCell<Scratch>>,
    mover: Option<Box<dyn Mover>>,
}

impl PacketCell {
    /// A cell; with `latency`, each batch is timed in a further part of every window.
    pub(super) fn new(task: Task, latency: bool, scratch: Rc<RefCell<Scratch>>) -> Self {
        PacketCell {
            task,
            latency,
            scratch,
            mover: None,
        }
    }
}

impl Timed for PacketCell {
    fn prepare(&mut self) -> Result<(), CellError> {
        self.scratch.borrow_mut().fit(&self.task.pool);
        self.mover = Some(self.task.mover()?);
        Ok(())
    }

    fn window(&mut self, warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let mover = self.mover.as_mut().ok_or_else(not_prepared)?;
        let mut walk = Walk {
            task: &self.task,
            mover: mover.as_mut(),
            scratch: &mut self.scratch.borrow_mut(),
            packets: 0..0,
            times: None,
        };
        repeat(&mut walk, warmup)?;
        walk.mover.lanes();
        let mut counted = repeat(&mut walk, window)?;
        let lanes = walk.mover.lanes();
        counted.figures.extend(lane_figures(lanes));
        if self.latency {
            walk.times = Some(Latency::new());
            repeat(&mut walk, window / LATENCY_SHARE)?;
            let times = walk.times.as_ref().map(|times| (BATCHES, times.tail()));
            counted.tails.extend(times);
        }
        Ok(counted)
    }
}

/// Chunk after chunk through the pool.
struct Walk<'a> {
    task: &'a Task,
    mover: &'a mut dyn Mover,
    scratch: &'a mut Scratch,
    packets: Range<usize>,
    /// How long each batch took, where that is wanted.
    times: Option<Latency>,
}

impl Chunk for Walk<'_> {
    fn reset(&mut self) {
        let task = self.task;
        self.packets = task.next(&self.packets, &(0..task.pool.count()), CHUNK_PACKETS);
        self.scratch.blank(&task.pool, task.op, &self.packets);
    }

    fn work(&mut self) -> Result<(), CellError> {
        let task = self.task;
        for batch in task.batches(&self.packets) {
            let scratch = &mut *self.scratch;
            clocked(&mut self.times, || {
                scratch.batch(self.mover, &task.pool, task.op, batch)
            })?;
        }
        Ok(())
    }

    fn verify(&mut self) -> Result<(), CellError> {
        self.scratch.check(&self.task.pool, self.task.op, &self.packets)
    }

    fn counted(&self) -> (u64, u64) {
        let bytes = self.task.pool.texts(&self.packets).len();
        (self.packets.len() as u64, bytes as u64)
    }
}
