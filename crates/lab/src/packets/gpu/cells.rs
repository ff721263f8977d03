//! The cells of packets that lie on the device, or in memory that it reads.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sealway_aead::batch::{Slot, Status};
use sealway_cuda::{Engine, Message, Options, Report, Ticket, Ways};

use super::moved::{failed, jobs, load_keys, nonce, refused};
use super::{Gpus, LINK_BYTES, Spec};
use crate::packets::pool::Pool;
use crate::run::{CellError, Counted, Timed};
use crate::workload::batch::Op;

/// Part of a window, added to it, in which a pass with the device's clocks finds what copies take.
const TIMING_SHARE: u32 = 3;

/// The directions of an operation.
fn ways(op: Op) -> &'static [bool] {
    match op {
        Op::Seal => &[false],
        Op::Open => &[true],
        Op::Pair => &[false, true],
    }
}

/// Kernels alone.
pub(super) struct ResidentCell {
    pub(super) spec: Spec,
    pub(super) pool: Arc<Pool>,
    pub(super) gpus: Gpus,
}

impl ResidentCell {
    /// Runs one direction; seconds of the device for so many runs of the batch.
    fn direction(
        &self,
        engine: &mut Engine,
        opens: bool,
        warmup: Duration,
        window: Duration,
    ) -> Result<(f64, u64), CellError> {
        let pool = &self.pool;
        let packets = 0..self.spec.batch;
        let mut list = Vec::new();
        jobs(pool, packets.clone(), opens, &mut list)?;
        let (src, bytes) = if opens {
            (&pool.sealed, pool.plain.len())
        } else {
            (&pool.plain, pool.sealed.len())
        };
        let mut resident = engine.resident(&list).map_err(failed)?;
        resident.upload(&list, src, &[]).map_err(failed)?;
        let mut once = resident.run().map_err(failed)?;
        let began = Instant::now();
        while began.elapsed() < warmup {
            once = resident.run().map_err(failed)?;
        }
        // As many at a time as take about a hundredth of the window, so that waiting for them costs nothing.
        let at_a_time = (window.as_secs_f64() / 100.0 / once.max(1e-7)).clamp(1.0, 10_000.0) as u32;
        let (mut seconds, mut runs) = (0.0, 0u64);
        let began = Instant::now();
        while runs == 0 || began.elapsed() < window {
            seconds += resident.run_times(at_a_time).map_err(failed)?;
            runs += u64::from(at_a_time);
        }
        // What is compared was written by one more run.
        resident.blank().and_then(|()| resident.run()).map_err(failed)?;
        let mut output = vec![0xa5; bytes];
        let mut statuses = vec![Status::Failed; list.len()];
        resident.download(&list, &mut output, &mut statuses).map_err(failed)?;
        if let Some(packet) = statuses.iter().position(|&status| status != Status::Done) {
            return Err(refused(packet));
        }
        let range = if opens {
            pool.texts(&packets)
        } else {
            pool.wires(&packets)
        };
        pool.check(&packets, &output[range], !opens)?;
        Ok((seconds, runs))
    }
}

impl Timed for ResidentCell {
    fn prepare(&mut self) -> Result<(), CellError> {
        self.window(Duration::ZERO, Duration::ZERO).map(drop)
    }

    fn window(&mut self, warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let options = Options {
            slots: self.pool.keys(),
            chunk_bytes: 4096,
            chunks: 1,
            ..Options::default()
        };
        let mut engine = self.gpus.open(0, options).map_err(failed)?;
        load_keys(&mut engine, &self.pool)?;
        let directions = ways(self.spec.op);
        let share = directions.len() as u32;
        let (mut each, mut least) = (0.0, u64::MAX);
        for &opens in directions {
            let (seconds, runs) = self.direction(&mut engine, opens, warmup / share, window / share)?;
            each += seconds / runs as f64;
            least = least.min(runs);
        }
        let packets = 0..self.spec.batch;
        Ok(Counted {
            ops: least * self.pool.genuine(&packets),
            bytes: least * self.pool.genuine_bytes(&packets),
            wall_s: each * least as f64,
            ..Counted::default()
        })
    }
}

/// Packets in pinned memory, batches on several streams.
pub(super) struct PinnedCell {
    pub(super) spec: Spec,
    pub(super) pool: Arc<Pool>,
    pub(super) gpus: Gpus,
}

/// A batch in pinned memory.
struct Lane {
    packets: Range<usize>,
    opens: bool,
    ticket: Ticket,
}

impl PinnedCell {
    /// The packets of a stream: batch after batch, from the start again where the pool ends.
    fn packets(&self, stream: usize) -> Range<usize> {
        let batches = (self.pool.count() / self.spec.batch).max(1);
        let start = stream % batches * self.spec.batch;
        start..start + self.spec.batch
    }

    fn engine(&self, streams: usize, timing: bool) -> Result<Engine, CellError> {
        let packets = (0..streams).map(|stream| self.packets(stream));
        // A piece for the end of the text, the tag and the tables of each.
        let bytes = packets
            .map(|packets| self.pool.texts(&packets).len() + packets.len() * 128)
            .max();
        let options = Options {
            slots: self.pool.keys(),
            chunk_bytes: bytes.unwrap_or(0).next_multiple_of(4096) + 8192,
            chunks: streams,
            timing,
            ..Options::default()
        };
        let mut engine = self.gpus.open(0, options).map_err(failed)?;
        load_keys(&mut engine, &self.pool)?;
        Ok(engine)
    }

    /// Fills a batch and sends it off.
    fn fill(&self, engine: &mut Engine, packets: &Range<usize>, opens: bool) -> Result<Ticket, CellError> {
        let pool = &self.pool;
        let no_room = || failed("a batch does not fit into a chunk");
        let mut batch = engine.batch().map_err(failed)?.ok_or_else(no_room)?;
        for packet in packets.clone() {
            let text = pool.text(packet);
            let message = Message {
                slot: Slot(pool.key_of(packet)),
                nonce: nonce(pool, packet),
                len: text.len() as u32,
                aad_len: 0,
                opens,
            };
            let room = batch.reserve(&message).map_err(failed)?.ok_or_else(no_room)?;
            if opens {
                let (sealed, tag) = pool.sealed[pool.wire(packet)].split_at(text.len());
                room.text.copy_from_slice(sealed);
                room.tag.copy_from_slice(tag);
            } else {
                room.text.copy_from_slice(&pool.plain[text]);
            }
        }
        batch.submit().map_err(failed)
    }

    /// Sends every batch off again and again for so long; what was done, and the sum of reports.
    fn turns(
        &self,
        engine: &mut Engine,
        lanes: &mut Vec<Lane>,
        time: Duration,
    ) -> Result<(Counted, Report), CellError> {
        let (mut counted, mut sum) = (Counted::default(), Report::default());
        let began = Instant::now();
        let mut turns = 0u64;
        while turns == 0 || began.elapsed() < time {
            for lane in std::mem::take(lanes) {
                let finished = engine.collect(lane.ticket).map_err(failed)?;
                let report = *finished.report();
                if report.done != lane.packets.len() {
                    return Err(refused(lane.packets.start));
                }
                counted.ops += self.pool.genuine(&lane.packets);
                counted.bytes += self.pool.genuine_bytes(&lane.packets);
                sum.link_in += report.link_in;
                sum.link_out += report.link_out;
                if let Some(times) = report.times {
                    let all = sum.times.get_or_insert_default();
                    all.copy_in_s += times.copy_in_s;
                    all.kernels_s += times.kernels_s;
                    all.copy_out_s += times.copy_out_s;
                }
                let ticket = finished.again().map_err(failed)?;
                lanes.push(Lane { ticket, ..lane });
            }
            turns += 1;
        }
        counted.wall_s = began.elapsed().as_secs_f64();
        Ok((counted, sum))
    }

    fn lanes(&self, engine: &mut Engine, streams: usize) -> Result<Vec<Lane>, CellError> {
        (0..streams)
            .map(|stream| {
                let packets = self.packets(stream);
                let opens = ways(self.spec.op)[stream % ways(self.spec.op).len()];
                let ticket = self.fill(engine, &packets, opens)?;
                Ok(Lane { packets, opens, ticket })
            })
            .collect()
    }

    /// Compares every output with the oracle's.
    fn check(&self, engine: &mut Engine, lanes: Vec<Lane>) -> Result<(), CellError> {
        let pool = &self.pool;
        for lane in lanes {
            let mut finished = engine.collect(lane.ticket).map_err(failed)?;
            for (index, packet) in lane.packets.enumerate() {
                let (status, text, tag) = finished.get(index).ok_or_else(|| failed("a packet is missing"))?;
                if status != Status::Done {
                    return Err(refused(packet));
                }
                let got = [text, tag].concat();
                pool.check(&(packet..packet + 1), &got, !lane.opens)?;
            }
        }
        Ok(())
    }

    /// The part of the device's time that copies take: one batch at a time, so that nothing waits for anything else.
    fn copy_share(&self, time: Duration) -> Result<Option<f64>, CellError> {
        let directions = ways(self.spec.op);
        let (mut copies, mut all) = (0.0, 0.0);
        for &opens in directions {
            let mut engine = self.engine(1, true)?;
            let packets = self.packets(0);
            let ticket = self.fill(&mut engine, &packets, opens)?;
            let mut lanes = vec![Lane { packets, opens, ticket }];
            let (counted, report) = self.turns(&mut engine, &mut lanes, time / directions.len() as u32)?;
            let Some(times) = report.times else { return Ok(None) };
            // Each direction counts by what one batch of it takes.
            let batches = counted.ops.max(1) as f64;
            copies += (times.copy_in_s + times.copy_out_s) / batches;
            all += (times.copy_in_s + times.copy_out_s + times.kernels_s) / batches;
        }
        Ok((all > 0.0).then_some(copies / all))
    }
}

impl Timed for PinnedCell {
    fn prepare(&mut self) -> Result<(), CellError> {
        self.window(Duration::ZERO, Duration::ZERO).map(drop)
    }

    fn window(&mut self, warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let streams = self.spec.streams;
        let mut engine = self.engine(streams, false)?;
        let mut lanes = self.lanes(&mut engine, streams)?;
        self.turns(&mut engine, &mut lanes, warmup)?;
        let (mut counted, report) = self.turns(&mut engine, &mut lanes, window)?;
        self.check(&mut engine, lanes)?;
        drop(engine);
        // A pair is two packets on their way.
        let share = ways(self.spec.op).len() as u64;
        counted.ops /= share;
        counted.bytes /= share;
        let busier = report.link_in.max(report.link_out);
        let ops = counted.ops.max(1) as f64;
        counted.figures.extend([
            ("link_in", report.link_in as f64 / ops),
            ("link_out", report.link_out as f64 / ops),
            ("link_rate", busier as f64 / counted.wall_s),
        ]);
        if let Some(share) = self.copy_share(window / TIMING_SHARE)? {
            counted.figures.push(("copy_share", share));
        }
        Ok(counted)
    }
}

/// Nothing but copies.
pub(super) struct LinkCell {
    pub(super) ways: Ways,
    pub(super) streams: usize,
    pub(super) gpus: Gpus,
}

impl Timed for LinkCell {
    fn prepare(&mut self) -> Result<(), CellError> {
        self.window(Duration::ZERO, Duration::ZERO).map(drop)
    }

    fn window(&mut self, warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let options = Options {
            slots: 1,
            chunk_bytes: LINK_BYTES,
            chunks: self.streams,
            ..Options::default()
        };
        let mut engine = self.gpus.open(0, options).map_err(failed)?;
        let mut turns = |time: Duration| -> Result<Counted, CellError> {
            let mut counted = Counted::default();
            let began = Instant::now();
            while counted.ops == 0 || began.elapsed() < time {
                counted.bytes += engine.copy_chunks(self.ways, 8).map_err(failed)?;
                counted.ops += 8 * self.streams as u64;
            }
            counted.wall_s = began.elapsed().as_secs_f64();
            Ok(counted)
        };
        turns(warmup)?;
        turns(window)
    }
}
