//! CUDA's driver, loaded at run time. Private; the only place in this crate that may hold unsafe code.
//!
//! Only calls that every driver for CUDA 12 has are made, through the thin layer of `cudarc`; its safe layer keeps events of
//! its own for every piece of memory, which would order what is meant to overlap. Memory, queues and events are kept in
//! tables here and named by numbers, so that nothing outside can hand in a wrong pointer, and every stretch of memory is
//! checked before it is used. A context belongs to a thread as long as that thread says so, thus every call says so first.

#![allow(unsafe_code)]

mod context;
mod fail;
mod launch;
mod memory;

use std::ops::Range;

use cudarc::driver::{result, sys};
use sealway_aead::wipe::zero;

use crate::Error;
use crate::device::{Buffer, Device, DeviceInfo, Event, Launch, Pinned, Queue, Span};
use crate::error::Place;

use context::Context;
use fail::{OWN_MEMORY, checked, failure, refused};
use launch::{Arguments, FUNCTIONS, function_of};
use memory::Table;

pub use context::probe;

/// The kernels, compiled for compute capability 7.5; the driver makes of them what the device needs.
const PTX: &str = include_str!("../kernels/sealway.ptx");

/// Bytes that are allocated at least: the driver refuses none.
const LEAST: usize = 16;

/// Memory of the device.
#[derive(Clone, Copy, Debug)]
struct DeviceMemory {
    at: sys::CUdeviceptr,
    len: usize,
}

/// Host memory that the device can reach.
#[derive(Debug)]
struct HostMemory {
    at: *mut u8,
    len: usize,
    /// The queue that used it last, and how much had been put into that queue by then.
    used: Option<(usize, u64)>,
}

/// A queue, and how far it is known to have come.
#[derive(Debug)]
struct Stream {
    raw: sys::CUstream,
    /// Pieces of work put into it.
    put: u64,
    /// Pieces of work known to be done.
    done: u64,
}

/// An event, and what it marks.
#[derive(Debug)]
struct Mark {
    raw: sys::CUevent,
    timing: bool,
    /// The queue, and how much had been put into it by then.
    of: Option<(usize, u64)>,
}

/// An NVIDIA GPU through its driver.
#[derive(Debug)]
pub(crate) struct Driver {
    context: Context,
    functions: [sys::CUfunction; FUNCTIONS.len()],
    buffers: Table<DeviceMemory>,
    pinned: Table<HostMemory>,
    streams: Vec<Stream>,
    marks: Vec<Mark>,
}

// SAFETY: what keeps it from being `Send` are handles of the driver and pinned memory. CUDA's handles may be used by any
// thread in which their context is current, which every call sees to; the memory is owned by this value alone.
unsafe impl Send for Driver {}

impl Driver {
    /// The device of a number, with the kernels loaded.
    pub(crate) fn open(ordinal: u32) -> Result<Self, Error> {
        let context = Context::open(ordinal, PTX)?;
        let mut functions = [std::ptr::null_mut(); FUNCTIONS.len()];
        for (function, name) in functions.iter_mut().zip(FUNCTIONS) {
            *function = context.function(name)?;
        }
        Ok(Driver {
            context,
            functions,
            buffers: Table::default(),
            pinned: Table::default(),
            streams: Vec::new(),
            marks: Vec::new(),
        })
    }

    /// The address of a stretch of device memory.
    fn address(&self, span: Span) -> Result<sys::CUdeviceptr, Error> {
        let memory = self
            .buffers
            .get(span.buffer.0)
            .ok_or_else(|| refused("finding memory"))?;
        match span.at.checked_add(span.len) {
            Some(end) if end <= memory.len => Ok(memory.at + span.at as u64),
            _ => Err(refused("finding a stretch of memory")),
        }
    }

    fn stream(&self, queue: Queue) -> Result<sys::CUstream, Error> {
        let stream = self.streams.get(queue.0 as usize);
        stream
            .map(|stream| stream.raw)
            .ok_or_else(|| refused("finding a queue"))
    }

    /// Counts what was put into a queue; gives the count.
    fn count(&mut self, queue: Queue) -> u64 {
        let Some(stream) = self.streams.get_mut(queue.0 as usize) else {
            return 0;
        };
        stream.put += 1;
        stream.put
    }

    /// Notes that a queue has come so far.
    fn reached(&mut self, of: Option<(usize, u64)>) {
        if let Some((queue, count)) = of
            && let Some(stream) = self.streams.get_mut(queue)
        {
            stream.done = stream.done.max(count);
        }
    }

    fn mark(&self, event: Event) -> Result<&Mark, Error> {
        let mark = self.marks.get(event.0 as usize);
        mark.ok_or_else(|| refused("finding an event"))
    }

    /// Waits for every queue. True if nothing uses any memory after that.
    fn settle(&mut self) -> bool {
        let mut all = true;
        for queue in 0..self.streams.len() {
            all &= self.settle_queue(queue).is_ok();
        }
        all
    }

    /// Waits for a queue, and once more if that fails in passing. An error if it may still be at work; that of a device that is lost
    /// has ended with it.
    fn settle_queue(&mut self, queue: usize) -> Result<(), Error> {
        let mut wait = || match self.finish(Queue(queue as u32)) {
            Err(error) if error.is_lost() => Ok(()),
            waited => waited,
        };
        wait().or_else(|_| wait())?;
        if let Some(stream) = self.streams.get_mut(queue) {
            stream.done = stream.put;
        }
        Ok(())
    }
}

impl Device for Driver {
    fn info(&self) -> &DeviceInfo {
        &self.context.info
    }

    fn allocate(&mut self, bytes: usize) -> Result<Buffer, Error> {
        self.context.bind()?;
        let len = bytes.max(LEAST);
        // SAFETY: no arguments but the size. What the memory holds is not defined, and is not read by the host as anything
        // but bytes.
        let at = unsafe { result::malloc_sync(len) }
            .map_err(|error| failure("allocating memory of the device", error, Some((len, Place::Device))))?;
        Ok(Buffer(self.buffers.add(DeviceMemory { at, len })))
    }

    fn free(&mut self, buffer: Buffer) {
        if !self.settle() {
            // Kept until the end, rather than given to somebody else while it is written to.
            return;
        }
        let _ = self.context.bind();
        if let Some(memory) = self.buffers.take(buffer.0) {
            // SAFETY: the address came from `malloc_sync`, and `take` gives it once. Nothing under way uses it: all queues
            // were waited for, or have ended with the device.
            let _ = unsafe { result::memory_free(memory.at) };
        }
    }

    fn allocate_pinned(&mut self, bytes: usize) -> Result<Pinned, Error> {
        self.context.bind()?;
        let len = bytes.max(LEAST);
        // No flags: cached, since the host reads outputs from it; write-combined memory reads a hundred times slower.
        // SAFETY: no arguments but size and flags.
        let at = unsafe { result::malloc_host(len, 0) }
            .map_err(|error| failure("pinning memory of the host", error, Some((len, Place::Host))))?
            .cast::<u8>();
        // SAFETY: the driver gave `len` bytes at `at`, which nothing else knows of.
        unsafe { at.write_bytes(0, len) };
        Ok(Pinned(self.pinned.add(HostMemory { at, len, used: None })))
    }

    fn free_pinned(&mut self, pinned: Pinned) {
        if !self.settle() {
            return;
        }
        let _ = self.context.bind();
        if let Ok(memory) = self.pinned(pinned) {
            zero(memory);
        }
        if let Some(memory) = self.pinned.take(pinned.0) {
            // SAFETY: the address came from `malloc_host`, and `take` gives it once. Nothing under way uses it: all queues
            // were waited for, or have ended with the device.
            let _ = unsafe { result::free_host(memory.at.cast()) };
        }
    }

    fn pinned(&mut self, pinned: Pinned) -> Result<&mut [u8], Error> {
        let used = self.pinned.get(pinned.0).and_then(|memory| memory.used);
        if let Some((queue, count)) = used
            && self.streams.get(queue).is_some_and(|stream| stream.done < count)
        {
            self.settle_queue(queue)?;
        }
        Ok(match self.pinned.get_mut(pinned.0) {
            // SAFETY: the driver gave `len` bytes at `at`, and they were set. The device is not using them: whatever used
            // them last is done or has ended with the device, as was just seen to. Nothing of the host can use them either: the borrow is of `self`, and
            // all that puts work into a queue borrows it for writing.
            Some(memory) => unsafe { std::slice::from_raw_parts_mut(memory.at, memory.len) },
            None => &mut [],
        })
    }

    fn pinned_now(&self, pinned: Pinned) -> Option<&[u8]> {
        let memory = self.pinned.get(pinned.0)?;
        if let Some((queue, count)) = memory.used
            && self.streams.get(queue).is_some_and(|stream| stream.done < count)
        {
            return None;
        }
        // SAFETY: the driver gave `len` bytes at `at`, and they were set. The device is not using them: whatever used them last
        // is known to be done. Nothing of the host can write to them while `self` is borrowed.
        Some(unsafe { std::slice::from_raw_parts(memory.at, memory.len) })
    }

    fn queue(&mut self) -> Result<Queue, Error> {
        self.context.bind()?;
        // Not ordered with the default stream, which other code in this process may use.
        let raw = result::stream::create(result::stream::StreamKind::NonBlocking)
            .map_err(|error| failure("making a queue", error, OWN_MEMORY))?;
        self.streams.push(Stream { raw, put: 0, done: 0 });
        Ok(Queue(self.streams.len() as u32 - 1))
    }

    fn event(&mut self, timing: bool) -> Result<Event, Error> {
        self.context.bind()?;
        let flags = if timing {
            sys::CUevent_flags::CU_EVENT_DEFAULT
        } else {
            sys::CUevent_flags::CU_EVENT_DISABLE_TIMING
        };
        let raw = result::event::create(flags).map_err(|error| failure("making an event", error, OWN_MEMORY))?;
        self.marks.push(Mark { raw, timing, of: None });
        Ok(Event(self.marks.len() as u32 - 1))
    }

    fn copy_in(&mut self, queue: Queue, host: Pinned, from: Range<usize>, to: Buffer, at: usize) -> Result<(), Error> {
        const DOING: &str = "copying to the device";
        self.context.bind()?;
        let stream = self.stream(queue)?;
        let target = self.address(Span {
            buffer: to,
            at,
            len: from.len(),
        })?;
        let memory = self.pinned.get(host.0).ok_or_else(|| refused(DOING))?;
        if from.start > from.end || from.end > memory.len {
            return Err(refused(DOING));
        }
        if from.is_empty() {
            return Ok(());
        }
        let source = memory.at.wrapping_add(from.start).cast();
        // Noted first: a call that fails may have begun something.
        let count = self.count(queue);
        self.use_pinned(host, queue, count)?;
        // SAFETY: both stretches lie in memory that the driver gave and that is freed only after all queues were waited for.
        // The host writes to its side only after this copy, see `pinned`. No reference is made: only addresses go over.
        checked(DOING, unsafe {
            sys::cuMemcpyHtoDAsync_v2(target, source, from.len(), stream)
        })
    }

    fn copy_out(&mut self, queue: Queue, from: Span, host: Pinned, at: usize) -> Result<(), Error> {
        const DOING: &str = "copying from the device";
        self.context.bind()?;
        let stream = self.stream(queue)?;
        let source = self.address(from)?;
        let memory = self.pinned.get(host.0).ok_or_else(|| refused(DOING))?;
        if at.checked_add(from.len).is_none_or(|end| end > memory.len) {
            return Err(refused(DOING));
        }
        if from.len == 0 {
            return Ok(());
        }
        let target = memory.at.wrapping_add(at).cast();
        // Noted first: a call that fails may have begun something.
        let count = self.count(queue);
        self.use_pinned(host, queue, count)?;
        // SAFETY: as in `copy_in`; the host reads its side only after this copy.
        checked(DOING, unsafe {
            sys::cuMemcpyDtoHAsync_v2(target, source, from.len, stream)
        })
    }

    fn clear(&mut self, queue: Queue, span: Span) -> Result<(), Error> {
        const DOING: &str = "clearing memory of the device";
        self.context.bind()?;
        let stream = self.stream(queue)?;
        let at = self.address(span)?;
        if span.len == 0 {
            return Ok(());
        }
        // SAFETY: the stretch lies in memory that the driver gave and that is freed only after all queues were waited for.
        unsafe { result::memset_d8_async(at, 0, span.len, stream) }.map_err(|error| failure(DOING, error, None))?;
        self.count(queue);
        Ok(())
    }

    fn launch(&mut self, queue: Queue, launch: &Launch) -> Result<(), Error> {
        self.context.bind()?;
        let stream = self.stream(queue)?;
        if launch.blocks() == 0 {
            return Ok(());
        }
        let function = self.functions[function_of(launch)];
        let mut arguments = Arguments::of(self, launch)?;
        let mut pointers = arguments.pointers();
        // SAFETY: the function is one of a module that stays loaded, and takes these arguments, in this order and of these
        // sizes; each is read during the call. A count is 32 bits of which the first four bytes are read, since the machine
        // is little-endian wherever there is a driver. Every address is of memory as long as the launch says, freed only
        // after all queues were waited for. A kernel reaches memory of the device only.
        unsafe {
            result::launch_kernel(
                function,
                (launch.blocks(), 1, 1),
                (Launch::BLOCK, 1, 1),
                0,
                stream,
                &mut pointers,
            )
        }
        .map_err(|error| failure("starting a kernel", error, OWN_MEMORY))?;
        self.count(queue);
        Ok(())
    }

    fn record(&mut self, queue: Queue, event: Event) -> Result<(), Error> {
        self.context.bind()?;
        let stream = self.stream(queue)?;
        let raw = self.mark(event)?.raw;
        // SAFETY: event and stream are of this context and live as long as this value.
        unsafe { result::event::record(raw, stream) }.map_err(|error| failure("marking a queue", error, None))?;
        let put = self.count(queue);
        self.marks[event.0 as usize].of = Some((queue.0 as usize, put));
        Ok(())
    }

    fn queue_wait(&mut self, queue: Queue, event: Event) -> Result<(), Error> {
        self.context.bind()?;
        let stream = self.stream(queue)?;
        let raw = self.mark(event)?.raw;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: event and stream are of this context and live as long as this value.
        unsafe { result::stream::wait_event(stream, raw, flags) }
            .map_err(|error| failure("ordering queues", error, None))?;
        self.count(queue);
        Ok(())
    }

    fn is_done(&mut self, event: Event) -> Result<bool, Error> {
        self.context.bind()?;
        let (raw, of) = self.mark(event).map(|mark| (mark.raw, mark.of))?;
        // SAFETY: the event lives as long as this value.
        match unsafe { result::event::query(raw) } {
            Ok(()) => {
                self.reached(of);
                Ok(true)
            }
            Err(result::DriverError(sys::CUresult::CUDA_ERROR_NOT_READY)) => Ok(false),
            Err(error) => Err(failure("working", error, None)),
        }
    }

    fn wait(&mut self, event: Event) -> Result<(), Error> {
        self.context.bind()?;
        let (raw, of) = self.mark(event).map(|mark| (mark.raw, mark.of))?;
        // SAFETY: the event lives as long as this value.
        unsafe { result::event::synchronize(raw) }.map_err(|error| failure("working", error, None))?;
        self.reached(of);
        Ok(())
    }

    fn finish(&mut self, queue: Queue) -> Result<(), Error> {
        self.context.bind()?;
        let stream = self.stream(queue)?;
        // SAFETY: the stream lives as long as this value.
        unsafe { result::stream::synchronize(stream) }.map_err(|error| failure("working", error, None))?;
        let stream = &mut self.streams[queue.0 as usize];
        stream.done = stream.put;
        Ok(())
    }

    fn elapsed_s(&mut self, from: Event, to: Event) -> Result<f64, Error> {
        self.context.bind()?;
        let (from, to) = (self.mark(from)?, self.mark(to)?);
        if !(from.timing && to.timing) {
            return Err(refused("measuring time"));
        }
        // SAFETY: both events live as long as this value and were made for this.
        let ms = unsafe { result::event::elapsed(from.raw, to.raw) }
            .map_err(|error| failure("measuring time", error, None))?;
        Ok(f64::from(ms) / 1000.0)
    }
}

impl Driver {
    /// Notes that a queue uses host memory.
    fn use_pinned(&mut self, host: Pinned, queue: Queue, count: u64) -> Result<(), Error> {
        let queue = queue.0 as usize;
        let before = self.pinned.get(host.0).and_then(|memory| memory.used);
        if let Some((other, _)) = before
            && other != queue
        {
            // One user at a time is all that is kept in mind; the engine never has two.
            self.finish(Queue(other as u32))?;
        }
        if let Some(memory) = self.pinned.get_mut(host.0) {
            memory.used = Some((queue, count));
        }
        Ok(())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.context.bind();
        self.settle();
        for pinned in self.pinned.names() {
            self.free_pinned(Pinned(pinned));
        }
        for buffer in self.buffers.names() {
            self.free(Buffer(buffer));
        }
        for mark in self.marks.drain(..) {
            // SAFETY: made here, and `drain` gives it once.
            let _ = unsafe { result::event::destroy(mark.raw) };
        }
        for stream in self.streams.drain(..) {
            // SAFETY: made here, and `drain` gives it once.
            let _ = unsafe { result::stream::destroy(stream.raw) };
        }
    }
}
