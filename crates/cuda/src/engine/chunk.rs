//! A chunk of the ring: memory on both sides of the link, and what is done with it.

use std::ops::Range;
use std::sync::Weak;

use sealway_aead::batch::Status;
use sealway_aead::wipe::zero;

use crate::Error;
use crate::device::{Buffer, Device, Event, Launch, Messages, Pinned, Queue, Span};
use crate::plan::{Kernel, Layout, Limits, Message, Place, Plan, SUM};

use super::{Options, Report, Times, Ways};

/// What a chunk is doing.
#[derive(Debug)]
pub(crate) enum State {
    /// Nothing.
    Free,
    /// Being filled, or read.
    Held,
    /// Under way for a batch of jobs.
    UnderWay,
    /// Under way, or done, for whoever has the ticket.
    Ticket { serial: u64, alive: Weak<()> },
}

#[derive(Debug)]
pub(crate) struct Chunk {
    host_in: Pinned,
    host_out: Pinned,
    device_in: Buffer,
    device_out: Buffer,
    sums: Buffer,
    bytes: usize,
    sums_bytes: usize,
    queue: Queue,
    pub(crate) done: Event,
    /// Kernels are through: the key table may change.
    pub(super) worked: Event,
    /// Which state of the key table it was sent with.
    pub(super) keys_version: u64,
    /// Before and after each of: copy in, kernels, copy out.
    timing: Option<[Event; 4]>,
    pub(crate) plan: Plan,
    pub(crate) layout: Layout,
    pub(crate) state: State,
}

impl Chunk {
    pub(super) fn open(device: &mut dyn Device, options: &Options) -> Result<Self, Error> {
        let limits = Limits::of_chunk(options.chunk_bytes);
        let (bytes, sums_bytes) = (limits.bytes, limits.parts * SUM);
        let queue = device.queue()?;
        let (done, worked) = (device.event(false)?, device.event(false)?);
        let timing = if options.timing {
            Some([
                device.event(true)?,
                device.event(true)?,
                device.event(true)?,
                device.event(true)?,
            ])
        } else {
            None
        };
        Ok(Chunk {
            host_in: device.allocate_pinned(bytes)?,
            host_out: device.allocate_pinned(bytes)?,
            device_in: device.allocate(bytes)?,
            device_out: device.allocate(bytes)?,
            sums: device.allocate(sums_bytes)?,
            bytes,
            sums_bytes,
            queue,
            done,
            worked,
            keys_version: 0,
            timing,
            plan: Plan::new(limits, options.bins, options.crowded, options.crowd),
            layout: Layout::default(),
            state: State::Free,
        })
    }

    /// Memory to write inputs to.
    #[inline]
    pub(crate) fn input<'d>(&self, device: &'d mut dyn Device) -> Result<&'d mut [u8], Error> {
        device.pinned(self.host_in)
    }

    /// Memory in which outputs are, once done.
    #[inline]
    pub(crate) fn output<'d>(&self, device: &'d mut dyn Device) -> Result<&'d mut [u8], Error> {
        device.pinned(self.host_out)
    }

    /// Lays out what was planned, and writes the tables of it.
    pub(super) fn lay_out(&mut self, device: &mut dyn Device) -> Result<(), Error> {
        self.plan.lay_out(&mut self.layout);
        let tables = &mut device.pinned(self.host_in)?[self.layout.texts.end..];
        self.plan.write_tables(&self.layout, tables);
        Ok(())
    }

    /// Sends off what was laid out.
    pub(super) fn submit(
        &mut self,
        device: &mut dyn Device,
        keys: Span,
        keys_sent: Option<Event>,
        report: &mut Report,
    ) -> Result<(), Error> {
        let layout = &self.layout;
        let queue = self.queue;
        let mark = |device: &mut dyn Device, at: usize| match &self.timing {
            Some(events) => device.record(queue, events[at]),
            None => Ok(()),
        };
        mark(device, 0)?;
        device.copy_in(queue, self.host_in, 0..layout.input(), self.device_in, 0)?;
        mark(device, 1)?;
        // What no kernel has touched must not pass for done.
        device.clear(queue, Span::new(self.device_out, &layout.statuses))?;
        if let Some(event) = keys_sent {
            device.queue_wait(queue, event)?;
        }
        let memory = Regions {
            input: self.device_in,
            tables: (self.device_in, layout.texts.end),
            output: self.device_out,
            statuses: (self.device_out, layout.statuses.start),
            sums: self.sums,
            keys,
        };
        report.launches += memory.launch(device, queue, layout)?;
        device.record(queue, self.worked)?;
        mark(device, 2)?;
        let output = 0..layout.output();
        device.copy_out(queue, Span::new(self.device_out, &output), self.host_out, 0)?;
        mark(device, 3)?;
        device.record(queue, self.done)?;
        report.chunks += 1;
        report.link_in += layout.input() as u64;
        report.link_out += layout.output() as u64;
        Ok(())
    }

    /// Copies all its memory across the link, whatever it holds.
    pub(super) fn copy(&mut self, device: &mut dyn Device, ways: Ways) -> Result<u64, Error> {
        let all = 0..self.bytes;
        if ways != Ways::Out {
            device.copy_in(self.queue, self.host_in, all.clone(), self.device_in, 0)?;
        }
        if ways != Ways::In {
            device.copy_out(self.queue, Span::new(self.device_out, &all), self.host_out, 0)?;
        }
        Ok(self.bytes as u64 * if ways == Ways::Both { 2 } else { 1 })
    }

    /// Waits until it is done, and makes sure that every message was worked on.
    pub(super) fn wait(&mut self, device: &mut dyn Device, report: &mut Report) -> Result<(), Error> {
        device.wait(self.done)?;
        if let Some([start, copied_in, worked, copied_out]) = self.timing {
            report.add_times(Times {
                copy_in_s: device.elapsed_s(start, copied_in)?,
                kernels_s: device.elapsed_s(copied_in, worked)?,
                copy_out_s: device.elapsed_s(worked, copied_out)?,
            });
        }
        check_statuses(&device.pinned(self.host_out)?[self.layout.statuses.clone()])
    }

    /// What became of a message, once done.
    #[inline]
    pub(crate) fn status(&self, output: &[u8], message: usize) -> Status {
        status_of(output, &self.layout, message)
    }

    /// The bytes of a message's output, once done: its text, with the tag if it was sealed.
    pub(crate) fn get(&self, index: usize) -> Option<(Message, Place)> {
        self.plan.get(index)
    }

    /// Waits for whatever is under way, after an error.
    pub(super) fn settle(&mut self, device: &mut dyn Device) -> Result<(), Error> {
        device.finish(self.queue)
    }

    /// Wipes everything and gives it back.
    pub(super) fn close(&mut self, device: &mut dyn Device) {
        let all = 0..self.bytes;
        // What cannot be done to a device that has failed is not done; the host's memory is wiped in any case.
        wipe(device, self.queue, Span::new(self.device_in, &all));
        wipe(device, self.queue, Span::new(self.device_out, &all));
        wipe(device, self.queue, Span::new(self.sums, &(0..self.sums_bytes)));
        let _ = device.finish(self.queue);
        for pinned in [self.host_in, self.host_out] {
            if let Ok(memory) = device.pinned(pinned) {
                zero(memory);
            }
            device.free_pinned(pinned);
        }
        for buffer in [self.device_in, self.device_out, self.sums] {
            device.free(buffer);
        }
    }
}

/// Clears memory that is to be given back. A call may fail with what went wrong before it: so it is asked again.
pub(crate) fn wipe(device: &mut dyn Device, queue: Queue, span: Span) {
    if device.clear(queue, span).is_err() {
        let _ = device.clear(queue, span);
    }
}

/// The memory on the device that kernels work on.
pub(crate) struct Regions {
    /// Texts, from the first byte on.
    pub(crate) input: Buffer,
    /// What follows the texts in a layout, and where that starts.
    pub(crate) tables: (Buffer, usize),
    pub(crate) output: Buffer,
    /// Statuses, and where they start.
    pub(crate) statuses: (Buffer, usize),
    pub(crate) sums: Buffer,
    pub(crate) keys: Span,
}

impl Regions {
    /// Launches what a layout asks for; gives the number of kernels.
    pub(crate) fn launch(&self, device: &mut dyn Device, queue: Queue, layout: &Layout) -> Result<u64, Error> {
        let input = |range: &Range<usize>| {
            let (buffer, at) = self.tables;
            let moved = |place: usize| at + place - layout.texts.end;
            Span::new(buffer, &(moved(range.start)..moved(range.end)))
        };
        let aad = input(&layout.aad);
        let mut launches = 0;
        for group in &layout.groups {
            let (first, count) = (group.first as usize, group.count);
            let end = first + count as usize;
            let (descs, statuses) = (layout.descs.start, self.statuses.1);
            let messages = Messages {
                descs: input(&(descs + first * crate::plan::DESC..descs + end * crate::plan::DESC)),
                src: Span::new(self.input, &layout.texts),
                dst: Span::new(self.output, &layout.outputs),
                keys: self.keys,
            };
            let status = Span::new(self.statuses.0, &(statuses + first..statuses + end));
            let Kernel::Parts(parts_count) = group.kernel else {
                if let Kernel::Lanes(lanes) = group.kernel {
                    device.launch(
                        queue,
                        &Launch::Lanes {
                            lanes,
                            count,
                            messages,
                            aad,
                            status,
                        },
                    )?;
                    launches += 1;
                }
                continue;
            };
            let parts = input(&layout.parts);
            let sums = Span::new(self.sums, &(0..layout.sums));
            let launch = Launch::Parts {
                count: parts_count,
                messages,
                parts,
                sums,
            };
            device.launch(queue, &launch)?;
            let launch = Launch::Ends {
                count,
                messages,
                parts,
                first_part: input(&layout.first_part),
                aad,
                status,
                sums,
            };
            device.launch(queue, &launch)?;
            launches += 2;
        }
        Ok(launches)
    }
}

pub(crate) const DONE: u8 = 1;
const UNAUTHENTIC: u8 = 2;

/// An error if a message was not worked on.
pub(crate) fn check_statuses(statuses: &[u8]) -> Result<(), Error> {
    if statuses.iter().all(|status| matches!(*status, DONE | UNAUTHENTIC)) {
        return Ok(());
    }
    Err(Error::Device {
        doing: "running a kernel",
        code: 0,
        name: "it left messages out".into(),
        lost: false,
    })
}

/// What became of a message.
#[inline]
pub(crate) fn status_of(output: &[u8], layout: &Layout, message: usize) -> Status {
    match output[layout.statuses.start + layout.position(message)] {
        DONE => Status::Done,
        _ => Status::Unauthentic,
    }
}
