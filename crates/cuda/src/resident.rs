//! A batch whose messages stay on the device.

use sealway_aead::batch::{Arenas, Job, Status};

use crate::Error;
use crate::device::{Buffer, Device, Event, Pinned, Queue, Span};
use crate::engine::{Engine, Regions, Report, check_statuses, status_of, wipe};
use crate::error::Wrong;
use crate::plan::{Layout, Limits, Message, Plan, SUM};

/// Messages of a batch at most.
const MOST_JOBS: usize = 1 << 26;

/// A batch whose messages lie in memory of the device: brought there once, run as often as wanted, brought back when asked
/// for. For data that is on the device anyway, and for measuring what the kernels take without the link.
#[derive(Debug)]
pub struct Resident<'e> {
    engine: &'e mut Engine,
    plan: Plan,
    layout: Layout,
    input: Buffer,
    output: Buffer,
    sums: Buffer,
    input_bytes: usize,
    output_bytes: usize,
    sums_bytes: usize,
    queue: Queue,
    from: Event,
    to: Event,
    /// Pinned memory through which everything goes, in windows of so many bytes.
    stage: Pinned,
    window: usize,
    launches: u64,
}

impl Engine {
    /// Lays out a batch on the device, apart from the ring. Its inputs are zeros until [`Resident::upload`]. The keys of its
    /// slots are those set by now.
    ///
    /// # Errors
    /// [`Error::Job`] if the key of a job is missing or it is not ChaCha20-Poly1305, or the batch is larger than 64 GiB;
    /// [`Error::OutOfMemory`] if the device has no room; those of the device.
    pub fn resident(&mut self, jobs: &[Job]) -> Result<Resident<'_>, Error> {
        self.check_lost()?;
        let arenas = Arenas {
            src: usize::MAX,
            dst: usize::MAX,
            aad: usize::MAX,
            in_place: false,
        };
        self.check(jobs, arenas)?;
        let options = self.options().clone();
        let limits = Limits {
            bytes: 1 << 36,
            parts: u32::MAX as usize,
        };
        let mut plan = Plan::new(limits, options.bins, options.crowded, options.crowd);
        for (index, job) in jobs.iter().enumerate() {
            if plan.push(Message::of(job)).is_none() {
                let wrong = Wrong::TooLong {
                    bytes: limits.bytes,
                    most: limits.bytes,
                };
                return Err(Error::Job { index, wrong });
            }
        }
        // Threads of a launch are counted in 32 bits, 32 for a message at most.
        if jobs.len() > MOST_JOBS {
            let wrong = Wrong::TooLong {
                bytes: jobs.len(),
                most: MOST_JOBS,
            };
            return Err(Error::Job {
                index: MOST_JOBS,
                wrong,
            });
        }
        let mut layout = Layout::default();
        plan.lay_out(&mut layout);
        Resident::open(self, plan, layout)
    }

    /// Sends the keys that wait and waits for them.
    fn settle_all(&mut self) -> Result<(), Error> {
        let device = &mut *self.device;
        let before: Vec<Event> = self.ring.iter().map(|chunk| chunk.done).collect();
        let keys = &mut self.keys;
        keys.flush(device, &before)
            .and_then(|()| keys.settle(device))
            .map_err(|error| self.failed(error))
    }
}

impl<'e> Resident<'e> {
    fn open(engine: &'e mut Engine, plan: Plan, layout: Layout) -> Result<Self, Error> {
        engine.settle_all()?;
        let window = engine.options().chunk_bytes;
        let (input_bytes, output_bytes) = (layout.input().max(1), layout.output().max(1));
        let sums_bytes = layout.sums.max(SUM);
        let made = Room::make(engine, [input_bytes, output_bytes, sums_bytes], window);
        let room = made.map_err(|error| engine.noted(error))?;
        let (queue, from, to) = room.line;
        let [input, output, sums] = room.buffers;
        let stage = room.stage;
        let mut resident = Resident {
            engine,
            plan,
            layout,
            input,
            output,
            sums,
            input_bytes,
            output_bytes,
            sums_bytes,
            queue,
            from,
            to,
            stage,
            window,
            launches: 0,
        };
        resident.upload_tables()?;
        Ok(resident)
    }

    /// Bytes of the input region: texts, tags, associated data, descriptors and tables.
    pub const fn input_bytes(&self) -> usize {
        self.input_bytes
    }

    /// Bytes of the output region: texts, tags and statuses.
    pub const fn output_bytes(&self) -> usize {
        self.output_bytes
    }

    /// Brings the inputs of the jobs to the device, from the arenas that they name.
    ///
    /// # Errors
    /// [`Error::NotStarted`] for other jobs than it was laid out for, [`Error::Job`] if one ends outside the arenas, those of
    /// the device.
    pub fn upload(&mut self, jobs: &[Job], src: &[u8], aad: &[u8]) -> Result<(), Error> {
        self.check_jobs(jobs)?;
        for (index, job) in jobs.iter().enumerate() {
            let wrong = if job.input_offset() as u64 + job.input_len() as u64 > src.len() as u64 {
                sealway_aead::JobError::Input
            } else if job.aad().end > aad.len() {
                sealway_aead::JobError::AssociatedData
            } else {
                continue;
            };
            let wrong = wrong.into();
            return Err(Error::Job { index, wrong });
        }
        let mut writer = self.writer();
        for (number, job) in jobs.iter().enumerate() {
            let Some((message, place)) = writer.resident.plan.get(number) else {
                break;
            };
            let input = &src[job.input_offset()..][..job.input_len()];
            let (text, tag) = input.split_at(message.len as usize);
            writer.write(place.src, text)?;
            writer.write(place.src_tag, tag)?;
            writer.write(place.aad, &aad[job.aad()])?;
        }
        writer.flush()
    }

    /// Runs every job once and waits; gives the seconds that the kernels took.
    ///
    /// # Errors
    /// Those of the device.
    pub fn run(&mut self) -> Result<f64, Error> {
        self.run_times(1)
    }

    /// Overwrites all outputs and statuses with zeros, so that what is there after the next run was written by it.
    ///
    /// # Errors
    /// Those of the device.
    pub fn blank(&mut self) -> Result<(), Error> {
        self.engine.check_lost()?;
        let device = &mut *self.engine.device;
        let all = Span::new(self.output, &(0..self.output_bytes));
        let blanked = device.clear(self.queue, all).and_then(|()| device.finish(self.queue));
        blanked.map_err(|error| self.engine.noted(error))
    }

    /// Runs every job so many times, one after another, and waits; gives the seconds that all of it took on the device.
    ///
    /// # Errors
    /// Those of the device.
    pub fn run_times(&mut self, times: u32) -> Result<f64, Error> {
        self.engine.check_lost()?;
        let device = &mut *self.engine.device;
        let regions = Regions {
            input: self.input,
            tables: (self.input, self.layout.texts.end),
            output: self.output,
            statuses: (self.output, self.layout.statuses.start),
            sums: self.sums,
            keys: self.engine.keys.span(),
        };
        let mut run = || {
            device.clear(self.queue, Span::new(self.output, &self.layout.statuses))?;
            device.record(self.queue, self.from)?;
            for _ in 0..times {
                self.launches += regions.launch(device, self.queue, &self.layout)?;
            }
            device.record(self.queue, self.to)?;
            device.wait(self.to)?;
            device.elapsed_s(self.from, self.to)
        };
        run().map_err(|error| self.engine.noted(error))
    }

    /// Brings the outputs to where the jobs say, and what became of each.
    ///
    /// # Errors
    /// [`Error::NotStarted`] for other jobs than it was laid out for, [`Error::Job`] if one ends outside `dst`,
    /// [`Error::StatusCount`], those of the device; what was written of `dst` and `statuses` by then means nothing.
    pub fn download(&mut self, jobs: &[Job], dst: &mut [u8], statuses: &mut [Status]) -> Result<Report, Error> {
        self.check_jobs(jobs)?;
        if statuses.len() != jobs.len() {
            return Err(Error::StatusCount {
                jobs: jobs.len(),
                statuses: statuses.len(),
            });
        }
        let outside = |job: &Job| job.output_offset() as u64 + job.output_len() as u64 > dst.len() as u64;
        if let Some(index) = jobs.iter().position(outside) {
            let wrong = sealway_aead::JobError::Output.into();
            return Err(Error::Job { index, wrong });
        }
        let mut report = Report {
            launches: self.launches,
            link_in: self.input_bytes as u64,
            link_out: self.output_bytes as u64,
            ..Report::default()
        };
        let mut codes = vec![0; self.layout.statuses.end];
        let range = self.layout.statuses.clone();
        self.read(range.start, &mut codes[range.clone()])?;
        check_statuses(&codes[range])?;
        let mut reader = self.reader();
        for (number, job) in jobs.iter().enumerate() {
            let Some((message, place)) = reader.resident.plan.get(number) else {
                break;
            };
            let out = &mut dst[job.output_offset()..][..job.output_len()];
            let (text, tag) = out.split_at_mut(message.len as usize);
            reader.read(place.dst, text)?;
            reader.read(place.dst_tag, tag)?;
            statuses[number] = status_of(&codes, &reader.resident.layout, number);
            report.count(statuses[number]);
        }
        Ok(report)
    }

    fn check_jobs(&self, jobs: &[Job]) -> Result<(), Error> {
        self.engine.check_lost()?;
        let planned = self.plan.iter().map(|(message, _)| message);
        if planned.eq(jobs.iter().map(Message::of)) {
            Ok(())
        } else {
            Err(Error::NotStarted)
        }
    }

    fn upload_tables(&mut self) -> Result<(), Error> {
        let start = self.layout.texts.end;
        let mut tables = vec![0; self.layout.input() - start];
        self.plan.write_tables(&self.layout, &mut tables);
        let mut writer = self.writer();
        writer.write(start, &tables)?;
        writer.flush()
    }

    fn writer(&mut self) -> Writer<'_, 'e> {
        Writer {
            resident: self,
            base: 0,
            filled: 0,
        }
    }

    fn reader(&mut self) -> Reader<'_, 'e> {
        Reader {
            resident: self,
            base: 0,
            filled: 0,
        }
    }

    fn read(&mut self, at: usize, bytes: &mut [u8]) -> Result<(), Error> {
        self.reader().read(at, bytes)
    }
}

impl Drop for Resident<'_> {
    fn drop(&mut self) {
        let device = &mut *self.engine.device;
        for (buffer, bytes) in [
            (self.input, self.input_bytes),
            (self.output, self.output_bytes),
            (self.sums, self.sums_bytes),
        ] {
            wipe(device, self.queue, Span::new(buffer, &(0..bytes)));
        }
        let _ = device.finish(self.queue);
        device.free(self.input);
        device.free(self.output);
        device.free(self.sums);
        // Wipes it too.
        device.free_pinned(self.stage);
    }
}

/// What a batch needs on the device.
struct Room {
    buffers: [Buffer; 3],
    stage: Pinned,
    line: (Queue, Event, Event),
}

impl Room {
    /// All of it, or nothing. Inputs and outputs are zeros.
    fn make(engine: &mut Engine, bytes: [usize; 3], window: usize) -> Result<Self, Error> {
        let mut guard = Guard {
            device: &mut *engine.device,
            buffers: Vec::new(),
            pinned: None,
        };
        let buffers = [
            guard.allocate(bytes[0])?,
            guard.allocate(bytes[1])?,
            guard.allocate(bytes[2])?,
        ];
        let stage = guard.device.allocate_pinned(window)?;
        guard.pinned = Some(stage);
        let device = &mut *guard.device;
        let line = match engine.spare {
            Some(spare) => spare,
            None => (device.queue()?, device.event(true)?, device.event(true)?),
        };
        engine.spare = Some(line);
        for (buffer, bytes) in buffers.into_iter().zip(bytes).take(2) {
            device.clear(line.0, Span::new(buffer, &(0..bytes)))?;
        }
        device.finish(line.0)?;
        guard.buffers.clear();
        guard.pinned = None;
        Ok(Room { buffers, stage, line })
    }
}

/// Gives back what was allocated if something after it fails.
struct Guard<'d> {
    device: &'d mut dyn Device,
    buffers: Vec<Buffer>,
    pinned: Option<Pinned>,
}

impl Guard<'_> {
    fn allocate(&mut self, bytes: usize) -> Result<Buffer, Error> {
        let buffer = self.device.allocate(bytes)?;
        self.buffers.push(buffer);
        Ok(buffer)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        for buffer in self.buffers.drain(..) {
            self.device.free(buffer);
        }
        if let Some(pinned) = self.pinned.take() {
            self.device.free_pinned(pinned);
        }
    }
}

/// Writes to ascending places of the input region, window by window.
struct Writer<'r, 'e> {
    resident: &'r mut Resident<'e>,
    base: usize,
    filled: usize,
}

impl Writer<'_, '_> {
    fn write(&mut self, mut at: usize, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            if at >= self.base + self.resident.window {
                self.flush()?;
            }
            if self.filled == 0 {
                self.base = at;
            }
            let offset = at - self.base;
            let count = bytes.len().min(self.resident.window - offset);
            let stage = self.resident.engine.device.pinned(self.resident.stage)?;
            // What lies between two messages goes over too.
            stage[self.filled..offset].fill(0);
            stage[offset..offset + count].copy_from_slice(&bytes[..count]);
            self.filled = offset + count;
            at += count;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        let Resident {
            engine,
            stage,
            input,
            queue,
            ..
        } = &mut *self.resident;
        let range = 0..std::mem::take(&mut self.filled);
        if range.is_empty() {
            return Ok(());
        }
        let device = &mut engine.device;
        device
            .copy_in(*queue, *stage, range, *input, self.base)
            .and_then(|()| device.finish(*queue))
            .map_err(|error| engine.noted(error))
    }
}

/// Reads from ascending places of the output region, window by window.
struct Reader<'r, 'e> {
    resident: &'r mut Resident<'e>,
    base: usize,
    filled: usize,
}

impl Reader<'_, '_> {
    fn read(&mut self, mut at: usize, mut bytes: &mut [u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            if at < self.base || at >= self.base + self.filled {
                self.fill(at)?;
            }
            let offset = at - self.base;
            let count = bytes.len().min(self.filled - offset);
            let stage = self.resident.engine.device.pinned(self.resident.stage)?;
            bytes[..count].copy_from_slice(&stage[offset..offset + count]);
            at += count;
            bytes = &mut bytes[count..];
        }
        Ok(())
    }

    fn fill(&mut self, at: usize) -> Result<(), Error> {
        let resident = &mut *self.resident;
        let len = resident.window.min(resident.output_bytes - at);
        let span = Span::new(resident.output, &(at..at + len));
        let device = &mut resident.engine.device;
        device
            .copy_out(resident.queue, span, resident.stage, 0)
            .and_then(|()| device.finish(resident.queue))
            .map_err(|error| resident.engine.noted(error))?;
        (self.base, self.filled) = (at, len);
        Ok(())
    }
}
