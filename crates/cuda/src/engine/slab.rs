//! Packets that are written once: memory from which the device takes messages wherever they lie.
//!
//! A slab holds packets as they stand on a wire. It crosses the link as it is; on the device a kernel takes the messages out
//! of it to where the others can read them, and another puts the results back, so the host copies nothing. What comes back
//! lies in memory of its own, at the same offsets: until then the packets are as they were written, and the processor can
//! do them if the device fails.

use std::ops::Range;

use sealway_aead::JobError;
use sealway_aead::batch::{Job, Status};
use sealway_aead::wipe::zero;

use crate::Error;
use crate::device::{Buffer, Device, Event, Launch, Pinned, Queue, Span};
use crate::plan::{Bins, DESC, Layout, Limits, Message, PIECE, Plan, SUM, round};

use super::{DONE, Engine, Options, Regions, Report, check_statuses, wipe};

/// Which kernel takes messages of which length: few, since every launch costs the host as much as planning some hundred messages.
const BINS: Bins = Bins {
    up_to: [0, 14, 0, 0, 256],
};

/// Bytes of packets for which there is room for a message.
const BYTES_A_JOB: usize = 64;

/// Bytes of the place of a message.
const PLACE: usize = 4;

/// What a slab is doing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// The host may write to it.
    Free,
    UnderWay,
    /// Results may be read.
    Done,
}

/// Memory for packets on both sides of the link.
#[derive(Debug)]
pub(crate) struct Slab {
    host_in: Pinned,
    host_out: Pinned,
    /// Packets, statuses, tables, places.
    packets: Buffer,
    src: Buffer,
    dst: Buffer,
    sums: Buffer,
    sizes: Sizes,
    done: Event,
    plan: Plan,
    layout: Layout,
    state: State,
    /// Where the statuses of the messages under way lie.
    statuses: Range<usize>,
    /// Where the tables behind them end, in what the host writes to.
    tables_end: usize,
    report: Report,
}

/// How large the regions of a slab are.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    /// Bytes of packets.
    bytes: usize,
    /// Messages.
    jobs: usize,
    /// Bytes of messages as the kernels have them, rounded up to pieces and with tags of their own; the plan counts tables too.
    text: usize,
    /// Bytes of packets, statuses, tables and places.
    all: usize,
    sums: usize,
}

impl Sizes {
    fn of(options: &Options) -> (Self, Limits) {
        let bytes = options.slab_bytes;
        let jobs = bytes / BYTES_A_JOB;
        let parts = Limits::of_chunk(bytes).parts;
        let tables = jobs * DESC + parts * 2 * PIECE + 4 * DESC;
        let text = round(bytes + jobs * 2 * PIECE + tables, PIECE);
        let sizes = Sizes {
            bytes,
            jobs,
            text,
            all: round(bytes, PIECE) + round(jobs, DESC) + tables + jobs * PLACE + 4 * DESC,
            sums: parts * SUM,
        };
        let limits = Limits { bytes: text, parts };
        (sizes, limits)
    }
}

impl Slab {
    pub(crate) fn open(device: &mut dyn Device, options: &Options) -> Result<Self, Error> {
        let (sizes, limits) = Sizes::of(options);
        Ok(Slab {
            done: device.event(false)?,
            host_in: device.allocate_pinned(sizes.all)?,
            host_out: device.allocate_pinned(sizes.all)?,
            packets: device.allocate(sizes.all)?,
            src: device.allocate(sizes.text)?,
            dst: device.allocate(sizes.text)?,
            sums: device.allocate(sizes.sums)?,
            sizes,
            plan: Plan::new(limits, BINS, BINS, 0),
            layout: Layout::default(),
            state: State::Free,
            statuses: 0..0,
            tables_end: 0,
            report: Report::default(),
        })
    }

    /// Plans messages and writes their tables behind the packets; gives where those end.
    fn lay_out(
        &mut self,
        device: &mut dyn Device,
        has_key: impl Fn(&Job) -> bool,
        filled: usize,
        jobs: &[Job],
    ) -> Result<Tables, Error> {
        self.plan.clear();
        let refuse = |index: usize, wrong: JobError| Error::Job {
            index,
            wrong: wrong.into(),
        };
        let mut end = 0;
        for (index, job) in jobs.iter().enumerate() {
            let start = job.input_offset();
            let wrong = if !has_key(job) {
                JobError::NoKey
            } else if job.nonce().len() != 12 {
                JobError::NonceLength
            } else if job.output_offset() != start {
                JobError::NotInPlace
            } else if start < end {
                JobError::Overlap
            } else if start + job.input_len().max(job.output_len()) > filled {
                JobError::Output
            } else if !job.aad().is_empty() {
                JobError::AssociatedData
            } else {
                end = start + job.input_len().max(job.output_len());
                match self.plan.push(Message::of(job)) {
                    Some(_) => continue,
                    None => JobError::Input,
                }
            };
            return Err(refuse(index, wrong));
        }
        if filled > self.sizes.bytes || jobs.len() > self.sizes.jobs {
            return Err(refuse(jobs.len(), JobError::Input));
        }
        self.plan.lay_out(&mut self.layout);
        let layout = &self.layout;
        let statuses = round(filled, PIECE)..round(filled, PIECE) + jobs.len();
        let tables = round(statuses.end, DESC);
        let places = tables + round(layout.first_part.end - layout.texts.end, PIECE);
        let places = places..places + jobs.len() * PLACE;
        let room = device.pinned(self.host_in)?;
        let (front, behind) = room
            .split_at_mut_checked(places.start)
            .ok_or_else(|| refuse(0, JobError::Input))?;
        self.plan.write_tables(layout, &mut front[tables..]);
        // What no kernel has touched must not pass for done.
        front[statuses.clone()].fill(0);
        let words = behind.as_chunks_mut::<PLACE>().0;
        for (index, job) in jobs.iter().enumerate() {
            words[layout.position(index)] = (job.input_offset() as u32).to_le_bytes();
        }
        // Nor what never came back: those of a slab before would.
        let results = device.pinned(self.host_out)?.get_mut(statuses.clone());
        results.ok_or_else(|| refuse(0, JobError::Input))?.fill(0);
        (self.statuses, self.tables_end) = (statuses, places.end);
        Ok(Tables {
            at: tables,
            places,
            count: jobs.len() as u32,
        })
    }

    fn submit(&mut self, device: &mut dyn Device, queue: Queue, keys: Span, tables: &Tables) -> Result<(), Error> {
        let layout = &self.layout;
        let all = 0..tables.places.end;
        device.copy_in(queue, self.host_in, all.clone(), self.packets, 0)?;
        let descs = tables.at + layout.descs.start - layout.texts.end;
        let descs = Span::new(self.packets, &(descs..descs + tables.count as usize * DESC));
        let places = Span::new(self.packets, &tables.places);
        let packets = Span::new(self.packets, &(0..self.statuses.start));
        device.launch(
            queue,
            &Launch::Spread {
                count: tables.count,
                descs,
                places,
                packets,
                src: Span::new(self.src, &layout.texts),
            },
        )?;
        let regions = Regions {
            input: self.src,
            tables: (self.packets, tables.at),
            output: self.dst,
            statuses: (self.packets, self.statuses.start),
            sums: self.sums,
            keys,
        };
        self.report = Report {
            launches: regions.launch(device, queue, layout)? + 2,
            link_in: all.end as u64,
            link_out: self.statuses.end as u64,
            ..Report::default()
        };
        device.launch(
            queue,
            &Launch::Join {
                count: tables.count,
                descs,
                places,
                dst: Span::new(self.dst, &layout.outputs),
                packets,
            },
        )?;
        let out = Span::new(self.packets, &(0..self.statuses.end));
        device.copy_out(queue, out, self.host_out, 0)?;
        device.record(queue, self.done)
    }

    /// Wipes everything and gives it back.
    pub(crate) fn close(&mut self, device: &mut dyn Device, queue: Queue) {
        let Sizes { all, text, sums, .. } = self.sizes;
        for (buffer, bytes) in [
            (self.packets, all),
            (self.src, text),
            (self.dst, text),
            (self.sums, sums),
        ] {
            wipe(device, queue, Span::new(buffer, &(0..bytes)));
        }
        let _ = device.finish(queue);
        for pinned in [self.host_in, self.host_out] {
            if let Ok(memory) = device.pinned(pinned) {
                zero(memory);
            }
            device.free_pinned(pinned);
        }
        for buffer in [self.packets, self.src, self.dst, self.sums] {
            device.free(buffer);
        }
    }
}

/// Where the tables of a slab lie.
struct Tables {
    at: usize,
    places: Range<usize>,
    count: u32,
}

impl Engine {
    /// Slabs there are: [`Options::slabs`].
    pub fn slabs(&self) -> usize {
        self.slabs.len()
    }

    /// Messages that go into a slab at most.
    pub fn slab_jobs(&self) -> usize {
        self.options().slab_bytes / BYTES_A_JOB
    }

    /// Empties a slab, so that other packets are written to it. If it is under way, it is waited for.
    ///
    /// # Errors
    /// [`Error::NotStarted`] for a slab that is not; those of the device.
    pub fn clear_slab(&mut self, slab: usize) -> Result<(), Error> {
        let Some(own) = self.slabs.get_mut(slab) else {
            return Err(Error::NotStarted);
        };
        // Whatever becomes of the call: what was written is there, and nobody wants results.
        if std::mem::replace(&mut own.state, State::Free) == State::UnderWay {
            let queue = self.keys.queue();
            let finished = self.device.finish(queue).or_else(|_| self.device.finish(queue));
            finished.map_err(|error| self.noted(error))?;
        }
        // The tables lie where packets will.
        let own = &mut self.slabs[slab];
        let tables = own.statuses.start..std::mem::take(&mut own.tables_end).min(own.sizes.bytes);
        let memory = self.device.pinned(own.host_in)?;
        if let Some(tables) = memory.get_mut(tables) {
            zero(tables);
        }
        Ok(())
    }

    /// The packets of a slab: as they were written, or after [`Engine::finish_slab`] as the device left them. Empty while it is
    /// under way, and for a slab that is not.
    #[inline]
    pub fn slab(&self, slab: usize) -> &[u8] {
        let Some(own) = self.slabs.get(slab) else {
            return &[];
        };
        let (memory, bytes) = match own.state {
            State::Free => (own.host_in, own.sizes.bytes),
            State::Done => (own.host_out, own.statuses.start),
            State::UnderWay => return &[],
        };
        self.device.pinned_now(memory).map_or(&[], |memory| &memory[..bytes])
    }

    /// The same, to be written. What is written after the device has done a slab does not go there any more.
    #[inline]
    pub fn slab_mut(&mut self, slab: usize) -> &mut [u8] {
        let Some(own) = self.slabs.get(slab) else {
            return &mut [];
        };
        let (memory, bytes) = match own.state {
            State::Free => (own.host_in, own.sizes.bytes),
            State::Done => (own.host_out, own.statuses.start),
            State::UnderWay => return &mut [],
        };
        match self.device.pinned(memory) {
            Ok(memory) => &mut memory[..bytes],
            Err(_) => &mut [],
        }
    }

    /// Sends the first `filled` bytes of a slab to the device, with the jobs whose messages lie in them: in place, in the
    /// order of their offsets, without associated data. Waits for nothing but keys that were sent before, if others follow them.
    ///
    /// # Errors
    /// [`Error::Job`] for a job that is not like that, [`Error::Busy`] for a slab under way or done, [`Error::NotStarted`] for one
    /// that is not; those of the device. The packets are as they were then.
    pub fn start_slab(&mut self, slab: usize, filled: usize, jobs: &[Job]) -> Result<(), Error> {
        self.check_lost()?;
        let Some(own) = self.slabs.get_mut(slab) else {
            return Err(Error::NotStarted);
        };
        if own.state != State::Free {
            return Err(Error::Busy);
        }
        let keys = &self.keys;
        let tables = own.lay_out(&mut *self.device, |job| keys.has(job.slot()), filled, jobs)?;
        self.flush_keys()?;
        // In the queue in which keys are sent: what comes after them has them, and what came before had those before.
        let (keys, queue) = (self.keys.span(), self.keys.queue());
        let own = &mut self.slabs[slab];
        match own.submit(&mut *self.device, queue, keys, &tables) {
            Ok(()) => {
                own.state = State::UnderWay;
                Ok(())
            }
            Err(error) => {
                // Some of it may be under way.
                if self.device.finish(queue).is_err() {
                    self.lost = true;
                }
                Err(self.failed(error))
            }
        }
    }

    /// True if a slab is not under way, or all of it is done.
    ///
    /// # Errors
    /// Those of the device.
    pub fn is_slab_done(&mut self, slab: usize) -> Result<bool, Error> {
        match self.slabs.get(slab) {
            Some(own) if own.state == State::UnderWay => {
                let done = own.done;
                self.device.is_done(done).map_err(|error| self.noted(error))
            }
            _ => Ok(true),
        }
    }

    /// Waits for a slab and says what became of its jobs. [`Engine::slab`] is what the device made of its packets then.
    ///
    /// # Errors
    /// [`Error::NotStarted`] for a slab that is not under way; [`Error::StatusCount`], and it stays under way; those of the
    /// device. The packets are as they were written, and no status is touched.
    pub fn finish_slab(&mut self, slab: usize, statuses: &mut [Status]) -> Result<Report, Error> {
        let Some(own) = self.slabs.get_mut(slab).filter(|own| own.state == State::UnderWay) else {
            return Err(Error::NotStarted);
        };
        if statuses.len() != own.statuses.len() {
            return Err(Error::StatusCount {
                jobs: own.statuses.len(),
                statuses: statuses.len(),
            });
        }
        own.state = State::Free;
        let waited = self.device.wait(own.done).and_then(|()| {
            let output = self.device.pinned(own.host_out)?;
            check_statuses(&output[own.statuses.clone()])
        });
        if let Err(error) = waited.and_then(|()| self.keys.tidy(&mut *self.device)) {
            let queue = self.keys.queue();
            if self.device.finish(queue).is_err() {
                self.lost = true;
            }
            return Err(self.noted(error));
        }
        let own = &mut self.slabs[slab];
        let output = self.device.pinned(own.host_out)?;
        let codes = &output[own.statuses.clone()];
        let mut report = std::mem::take(&mut own.report);
        for (index, status) in statuses.iter_mut().enumerate() {
            *status = if codes[own.layout.position(index)] == DONE {
                Status::Done
            } else {
                Status::Unauthentic
            };
            report.count(*status);
        }
        own.state = State::Done;
        Ok(report)
    }
}
