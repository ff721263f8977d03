//! Cells of several threads, each with its own part of the packets, its own arenas and its own keys.
//!
//! All threads start a chunk at the same instant, which is set a little ahead, and the chunk ends with the last of them. So
//! a thread that had to wait for a CPU counts in full: this is read by the wall. A chunk has several batches, so that threads fall
//! out of step as those of a program do, and do not all want the link to a GPU at the same moments.

use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::cells::{Scratch, Task};
use crate::measure::clock::thread_cpu;
use crate::run::{CellError, Counted, Timed};

/// How far ahead a start is set: longer than it takes to wake a thread.
const AHEAD: Duration = Duration::from_micros(200);

/// Packets and batches of a chunk, at least.
const PACKETS: usize = 16_384;
const BATCHES: usize = 4;

/// A case on several threads.
pub(super) struct ThreadsCell {
    task: Task,
    threads: usize,
}

impl ThreadsCell {
    pub(super) fn new(task: Task, threads: usize) -> Self {
        ThreadsCell { task, threads }
    }

    /// The packets of each thread: whole batches, enough for a chunk if there are as many. Where there are too few for all, some
    /// threads have the same: they only read them.
    fn shares(&self) -> Vec<Range<usize>> {
        shares(self.task.pool.count(), self.task.batch, self.threads)
    }
}

/// Packets of a chunk for each thread.
fn chunk(batch: usize) -> usize {
    PACKETS.max(BATCHES * batch)
}

fn shares(count: usize, batch: usize, threads: usize) -> Vec<Range<usize>> {
    let all = (count / batch).max(1);
    let each = (all / threads).max((chunk(batch) / batch).min(all));
    (0..threads)
        .map(|thread| {
            let start = thread * each % (all - each + 1) * batch;
            start..(start + each * batch).min(count)
        })
        .collect()
}

/// What a thread did between a start and its own end.
struct Done {
    end: Instant,
    cpu: Duration,
    ops: u64,
    bytes: u64,
}

impl Timed for ThreadsCell {
    fn prepare(&mut self) -> Result<(), CellError> {
        self.task.mover().map(drop)
    }

    fn window(&mut self, warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        thread::scope(|scope| {
            let mut workers = Vec::new();
            for (thread, share) in self.shares().into_iter().enumerate() {
                let (start, starts) = channel::<Instant>();
                let (report, reports) = channel();
                let task = &self.task;
                scope.spawn(move || work(task, thread, share, &starts, &report));
                workers.push((start, reports));
            }
            // A thread says once that it is ready.
            for (_, reports) in &workers {
                reported(reports)??;
            }
            repeat(&workers, warmup)?;
            repeat(&workers, window)
            // Dropping the channels ends the threads.
        })
    }
}

type Worker = (Sender<Instant>, Receiver<Result<Done, CellError>>);

/// The next report of a thread; an error if it has died.
fn reported<T>(reports: &Receiver<T>) -> Result<T, CellError> {
    reports
        .recv()
        .map_err(|_| CellError::failed("a thread of the cell ended early"))
}

/// Chunks on all threads at once for `time`.
fn repeat(workers: &[Worker], time: Duration) -> Result<Counted, CellError> {
    let mut sum = Counted::default();
    let (mut wall, mut cpu) = (Duration::ZERO, Duration::ZERO);
    while wall < time {
        let start = Instant::now() + AHEAD;
        for (starts, _) in workers {
            // A thread that is gone is told apart by its missing report.
            let _ = starts.send(start);
        }
        let mut end = start;
        for (_, reports) in workers {
            let done = reported(reports)??;
            end = end.max(done.end);
            cpu += done.cpu;
            sum.ops += done.ops;
            sum.bytes += done.bytes;
        }
        wall += end - start;
    }
    sum.wall_s = wall.as_secs_f64();
    sum.cpu_s = cpu.as_secs_f64();
    Ok(sum)
}

/// One thread: a chunk for each start it is told, until nobody tells it another.
fn work(
    task: &Task,
    thread: usize,
    share: Range<usize>,
    starts: &Receiver<Instant>,
    report: &Sender<Result<Done, CellError>>,
) {
    let mut scratch = Scratch::default();
    scratch.fit(&task.pool);
    let mut mover = match (task.make)(&task.pool, thread) {
        Ok(mover) => mover,
        Err(error) => {
            let _ = report.send(Err(error));
            return;
        }
    };
    let mut packets = task.next(&(0..share.end), &share, chunk(task.batch));
    scratch.blank(&task.pool, task.op, &packets);
    let ready = Done {
        end: Instant::now(),
        cpu: Duration::ZERO,
        ops: 0,
        bytes: 0,
    };
    if report.send(Ok(ready)).is_err() {
        return;
    }
    while let Ok(start) = starts.recv() {
        while Instant::now() < start {
            std::hint::spin_loop();
        }
        let cpu = thread_cpu();
        let moved = task
            .batches(&packets)
            .try_for_each(|batch| scratch.batch(mover.as_mut(), &task.pool, task.op, batch));
        let end = Instant::now();
        let cpu = cpu
            .zip(thread_cpu())
            .map_or(Duration::ZERO, |(before, after)| after.saturating_sub(before));
        let done = moved
            .and_then(|()| scratch.check(&task.pool, task.op, &packets))
            .map(|()| Done {
                end,
                cpu,
                ops: packets.len() as u64,
                bytes: task.pool.texts(&packets).len() as u64,
            });
        // Before the report, or it would eat into the time until the next start.
        packets = task.next(&packets, &share, chunk(task.batch));
        scratch.blank(&task.pool, task.op, &packets);
        if report.send(done).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{chunk, shares};

    #[test]
    fn every_thread_has_packets_that_there_are() {
        for (count, batch, threads) in [
            (4096, 1024, 16),
            (4096, 4096, 16),
            (524_288, 262_144, 3),
            (1000, 300, 2),
            (100, 1000, 4),
            (7, 1, 2),
        ] {
            for share in shares(count, batch, threads) {
                let enough = (chunk(batch) / batch).min(count / batch) * batch;
                assert!(
                    !share.is_empty() && share.len() >= enough && share.end <= count,
                    "{share:?} of {count} by {batch}, {threads} threads"
                );
            }
        }
        let two = shares(65_536, 4096, 2);
        assert_eq!(two, [0..32_768, 32_768..65_536], "apart, where there are enough");
    }
}
