//! Cells of packets in memory, on one thread.

use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use super::ends::{Ends, Make};
use super::traffic::{Checker, Traffic};
use crate::run::{CellError, Counted, Timed};
use crate::stats::latency::Latency;
use crate::workload::batch::{LATENCY_SHARE, Op, clocked, lane_figures};
use crate::workload::chunk::{Chunk, not_prepared, repeat};
use crate::workload::metric::BATCHES;

/// Packets of a batch from which on it is timed and compared by itself.
pub(super) const ALONE: usize = 64;

/// Packets of smaller batches that are timed together.
pub(super) const TOGETHER: usize = 1024;

/// What a cell does, without who does it.
#[derive(Clone)]
pub(super) struct Task {
    pub(super) traffic: Rc<Traffic>,
    /// The same connections with few packets, of which one is damaged, in several ways.
    pub(super) forged: Rc<Vec<Traffic>>,
    pub(super) op: Op,
    pub(super) batch: usize,
    /// Whether each batch is timed too.
    pub(super) latency: bool,
    pub(super) make: Make,
    pub(super) kept: Kept,
}

/// How long what was set up stays.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kept {
    /// From one window to the next.
    Always,
    /// As long as a window: what it takes is scarce, the memory of a device for instance.
    InWindows,
}

impl Task {
    /// Makes sure that damage is noticed: a subject that opened anything would be fast.
    fn check(&self) -> Result<(), CellError> {
        for forged in self.forged.iter() {
            let mut ends = (self.make)(forged, Op::Open, forged.count())?;
            ends.rewind()?;
            if ends.open(forged, 0..forged.count()).is_ok() {
                return Err(CellError::wrong("a packet was accepted with a flipped bit"));
            }
        }
        Ok(())
    }

    /// Sets up who does it.
    fn ends(&self) -> Result<Box<dyn Ends>, CellError> {
        (self.make)(&self.traffic, self.op, self.batch)
    }

    /// The packets after `last` that are timed together, from the start again after the end.
    fn next(&self, last: &Range<usize>) -> Range<usize> {
        let count = self.traffic.count();
        let together = if self.batch >= ALONE {
            self.batch
        } else {
            self.batch * (TOGETHER / self.batch)
        };
        let start = if last.end >= count { 0 } else { last.end };
        start..(start + together).min(count)
    }
}

/// A case on the measuring thread.
pub(super) struct PacketCell {
    task: Task,
    ends: Option<Box<dyn Ends>>,
}

impl PacketCell {
    pub(super) fn new(task: Task) -> Self {
        PacketCell { task, ends: None }
    }
}

impl Timed for PacketCell {
    fn prepare(&mut self) -> Result<(), CellError> {
        self.task.check()?;
        self.ends = Some(self.task.ends()?);
        self.let_go();
        Ok(())
    }

    fn window(&mut self, warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        if self.task.kept == Kept::InWindows {
            self.ends = Some(self.task.ends()?);
        }
        let counted = self.measure(warmup, window);
        self.let_go();
        counted
    }
}

impl PacketCell {
    /// Gives up what stays for a window only.
    fn let_go(&mut self) {
        if self.task.kept == Kept::InWindows {
            self.ends = None;
        }
    }

    fn measure(&mut self, warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let ends = self.ends.as_mut().ok_or_else(not_prepared)?;
        let mut walk = Walk {
            task: &self.task,
            ends: ends.as_mut(),
            checker: Checker::new(&self.task.traffic),
            packets: 0..0,
            failure: None,
            wires: Log::default(),
            messages: Log::default(),
            wire_bytes: 0,
            times: None,
        };
        repeat(&mut walk, warmup)?;
        walk.ends.lanes();
        walk.ends.elsewhere();
        walk.wire_bytes = 0;
        let mut counted = repeat(&mut walk, window)?;
        let wire = walk.wire_bytes as f64;
        counted.figures.push(("wire_bytes", wire));
        if counted.bytes > 0 {
            counted.figures.push(("overhead", wire / counted.bytes as f64 - 1.0));
        }
        counted.figures.extend(lane_figures(walk.ends.lanes()));
        let [elsewhere, all] = walk.ends.elsewhere();
        if all > 0 {
            counted.figures.push((super::GPU_SHARE, elsewhere as f64 / all as f64));
        }
        if self.task.latency {
            walk.times = Some(Latency::new());
            repeat(&mut walk, window / LATENCY_SHARE)?;
            let times = walk.times.as_ref().map(|times| (BATCHES, times.tail()));
            counted.tails.extend(times);
        }
        Ok(counted)
    }
}

/// Copies of what was made, with the connection and the length of each piece.
#[derive(Default)]
struct Log {
    bytes: Vec<u8>,
    pieces: Vec<(usize, usize)>,
}

impl Log {
    #[inline(always)]
    fn push(&mut self, connection: usize, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.pieces.push((connection, bytes.len()));
    }

    /// Shows everything and forgets it.
    fn drain(&mut self, see: &mut dyn FnMut(usize, &[u8])) {
        let mut rest = &self.bytes[..];
        for (connection, len) in self.pieces.drain(..) {
            let (piece, after) = rest.split_at(len);
            see(connection, piece);
            rest = after;
        }
        self.bytes.clear();
    }
}

/// Chunk after chunk through the traffic.
struct Walk<'a> {
    task: &'a Task,
    ends: &'a mut dyn Ends,
    checker: Checker,
    packets: Range<usize>,
    /// What went wrong while nothing was timed.
    failure: Option<CellError>,
    wires: Log,
    messages: Log,
    /// Bytes of packets since somebody asked, decoys among them.
    wire_bytes: u64,
    /// How long each batch took, where that is wanted; what copies it is outside.
    times: Option<Latency>,
}

impl Walk<'_> {
    #[inline(always)]
    fn batch(&mut self, packets: Range<usize>) -> Result<(), CellError> {
        let (traffic, ends) = (&self.task.traffic, &mut *self.ends);
        let op = self.task.op;
        clocked(&mut self.times, || match op {
            Op::Seal => ends.seal(traffic, packets),
            Op::Open => ends.open(traffic, packets),
            Op::Pair => ends.pair(traffic, packets),
        })
    }

    fn copy(&mut self) {
        if self.task.op.seals() {
            self.ends
                .wires(&mut |connection, bytes| self.wires.push(connection, bytes));
        }
        if self.task.op.opens() {
            self.ends
                .messages(&mut |connection, bytes| self.messages.push(connection, bytes));
        }
    }
}

impl Chunk for Walk<'_> {
    fn reset(&mut self) {
        self.packets = self.task.next(&self.packets);
        if self.packets.start == 0 {
            self.checker.rewind(&self.task.traffic);
            self.failure = self.ends.rewind().err();
        }
    }

    fn work(&mut self) -> Result<(), CellError> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        // One batch, or many small ones, what each made copied away before the next overwrites it.
        let (batch, packets) = (self.task.batch, self.packets.clone());
        for start in packets.clone().step_by(batch) {
            self.batch(start..(start + batch).min(packets.end))?;
            if batch < ALONE {
                self.copy();
            }
        }
        Ok(())
    }

    fn verify(&mut self) -> Result<(), CellError> {
        let (task, checker) = (self.task, &mut self.checker);
        let traffic = &task.traffic;
        let (messages, _) = traffic.useful(&self.packets);
        let packets = self.packets.len() as u64;
        self.wire_bytes += traffic.wires(&self.packets).len() as u64;
        if task.op.seals() {
            let mut see = |connection: usize, bytes: &[u8]| checker.wire(traffic, connection, bytes);
            if task.batch >= ALONE {
                self.ends.wires(&mut see);
            } else {
                self.wires.drain(&mut see);
            }
        }
        if task.op.opens() {
            let mut see = |connection: usize, bytes: &[u8]| checker.message(traffic, connection, bytes);
            if task.batch >= ALONE {
                self.ends.messages(&mut see);
            } else {
                self.messages.drain(&mut see);
            }
        }
        checker.verdict(
            if task.op.seals() { packets } else { 0 },
            if task.op.opens() { messages } else { 0 },
        )
    }

    fn counted(&self) -> (u64, u64) {
        self.task.traffic.useful(&self.packets)
    }
}
