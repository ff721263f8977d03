//! A device of which one call fails.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use sealway_cuda::device::{Buffer, Device, DeviceInfo, Event, Launch, Pinned, Queue, Span};
use sealway_cuda::{Error, Place};

/// A kind of call.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Call {
    Allocate,
    AllocatePinned,
    Queue,
    Event,
    CopyIn,
    CopyOut,
    Clear,
    Launch,
    Record,
    QueueWait,
    IsDone,
    Wait,
    Finish,
    Elapsed,
}

impl Call {
    pub const ALL: [Call; 14] = [
        Call::Allocate,
        Call::AllocatePinned,
        Call::Queue,
        Call::Event,
        Call::CopyIn,
        Call::CopyOut,
        Call::Clear,
        Call::Launch,
        Call::Record,
        Call::QueueWait,
        Call::IsDone,
        Call::Wait,
        Call::Finish,
        Call::Elapsed,
    ];
}

/// Which call fails.
#[derive(Debug, Default)]
pub struct Fault {
    call: Option<Call>,
    /// Calls of this kind before the one that fails.
    before: usize,
    /// True if every call after it fails too.
    lost: bool,
    pub happened: bool,
}

#[derive(Debug)]
pub struct Failing {
    inner: Box<dyn Device>,
    fault: Arc<Mutex<Fault>>,
    queues: Vec<Queue>,
}

/// Decides about the next failure.
#[derive(Clone, Debug)]
pub struct Trigger(Arc<Mutex<Fault>>);

impl Trigger {
    pub fn arm(&self, call: Call, before: usize, lost: bool) {
        *self.0.lock().unwrap() = Fault {
            call: Some(call),
            before,
            lost,
            happened: false,
        };
    }

    /// True if it failed.
    pub fn happened(&self) -> bool {
        self.0.lock().unwrap().happened
    }
}

impl Failing {
    pub fn new(inner: impl Device + 'static) -> (Self, Trigger) {
        let fault = Arc::default();
        let device = Failing {
            inner: Box::new(inner),
            fault: Arc::clone(&fault),
            queues: Vec::new(),
        };
        (device, Trigger(fault))
    }

    fn check(&mut self, call: Call) -> Result<(), Error> {
        let mut fault = self.fault.lock().unwrap();
        let dead = fault.happened && fault.lost;
        if !dead {
            if fault.happened || fault.call != Some(call) {
                return Ok(());
            }
            if fault.before > 0 {
                fault.before -= 1;
                return Ok(());
            }
            fault.happened = true;
            if fault.lost {
                // Nothing is under way on a device that has died.
                for &queue in &self.queues {
                    let _ = self.inner.finish(queue);
                }
            }
        }
        match call {
            Call::Allocate if !fault.lost => Err(Error::OutOfMemory {
                asked: 1,
                place: Place::Device,
            }),
            _ => Err(Error::Device {
                doing: "failing",
                code: 719,
                name: format!("{call:?}"),
                lost: fault.lost,
            }),
        }
    }
}

impl Device for Failing {
    fn info(&self) -> &DeviceInfo {
        self.inner.info()
    }

    fn allocate(&mut self, bytes: usize) -> Result<Buffer, Error> {
        self.check(Call::Allocate)?;
        self.inner.allocate(bytes)
    }

    fn free(&mut self, buffer: Buffer) {
        self.inner.free(buffer);
    }

    fn allocate_pinned(&mut self, bytes: usize) -> Result<Pinned, Error> {
        self.check(Call::AllocatePinned)?;
        self.inner.allocate_pinned(bytes)
    }

    fn free_pinned(&mut self, pinned: Pinned) {
        self.inner.free_pinned(pinned);
    }

    fn pinned(&mut self, pinned: Pinned) -> Result<&mut [u8], Error> {
        self.inner.pinned(pinned)
    }

    fn pinned_now(&self, pinned: Pinned) -> Option<&[u8]> {
        self.inner.pinned_now(pinned)
    }

    fn queue(&mut self) -> Result<Queue, Error> {
        self.check(Call::Queue)?;
        let queue = self.inner.queue()?;
        self.queues.push(queue);
        Ok(queue)
    }

    fn event(&mut self, timing: bool) -> Result<Event, Error> {
        self.check(Call::Event)?;
        self.inner.event(timing)
    }

    fn copy_in(&mut self, queue: Queue, host: Pinned, from: Range<usize>, to: Buffer, at: usize) -> Result<(), Error> {
        self.check(Call::CopyIn)?;
        self.inner.copy_in(queue, host, from, to, at)
    }

    fn copy_out(&mut self, queue: Queue, from: Span, host: Pinned, at: usize) -> Result<(), Error> {
        self.check(Call::CopyOut)?;
        self.inner.copy_out(queue, from, host, at)
    }

    fn clear(&mut self, queue: Queue, span: Span) -> Result<(), Error> {
        self.check(Call::Clear)?;
        self.inner.clear(queue, span)
    }

    fn launch(&mut self, queue: Queue, launch: &Launch) -> Result<(), Error> {
        self.check(Call::Launch)?;
        self.inner.launch(queue, launch)
    }

    fn record(&mut self, queue: Queue, event: Event) -> Result<(), Error> {
        self.check(Call::Record)?;
        self.inner.record(queue, event)
    }

    fn queue_wait(&mut self, queue: Queue, event: Event) -> Result<(), Error> {
        self.check(Call::QueueWait)?;
        self.inner.queue_wait(queue, event)
    }

    fn is_done(&mut self, event: Event) -> Result<bool, Error> {
        self.check(Call::IsDone)?;
        self.inner.is_done(event)
    }

    fn wait(&mut self, event: Event) -> Result<(), Error> {
        self.check(Call::Wait)?;
        self.inner.wait(event)
    }

    fn finish(&mut self, queue: Queue) -> Result<(), Error> {
        self.check(Call::Finish)?;
        self.inner.finish(queue)
    }

    fn elapsed_s(&mut self, from: Event, to: Event) -> Result<f64, Error> {
        self.check(Call::Elapsed)?;
        self.inner.elapsed_s(from, to)
    }
}
