//! A device made of ordinary memory. Work is done as late as it may be: when somebody waits for it.
//!
//! So what the engine forgets to wait for, or to order, goes wrong here every time: host memory that is touched while
//! something under way uses it is a panic, and a kernel that should have come after another did not.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use sealway_cuda::Error;
use sealway_cuda::device::{Buffer, Device, DeviceInfo, Event, Launch, Pinned, Queue, Span};

/// What does the kernels' work.
pub trait Kernels: Send {
    /// Runs one. `memory` gives what a span holds; `None` is returned for what the kernel left as it was.
    fn run(&mut self, launch: &Launch, memory: &mut Memory);
}

/// The memory of the device.
#[derive(Default)]
pub struct Memory(Vec<Option<Vec<u8>>>);

impl Memory {
    pub fn get(&self, span: Span) -> &[u8] {
        &self.buffer(span.buffer)[span.at..span.at + span.len]
    }

    pub fn get_mut(&mut self, span: Span) -> &mut [u8] {
        let buffer = self.0[span.buffer.0 as usize].as_mut().expect("memory that was freed");
        &mut buffer[span.at..span.at + span.len]
    }

    fn buffer(&self, buffer: Buffer) -> &[u8] {
        self.0[buffer.0 as usize].as_ref().expect("memory that was freed")
    }
}

/// What was seen, also after the device is gone.
#[derive(Debug, Default)]
pub struct Seen {
    pub launches: Vec<Launch>,
    pub freed: usize,
    /// Memory that was given back with something in it.
    pub dirty: usize,
    /// Memory that was never given back.
    pub leaked: usize,
    /// Copies to the host that do nothing, from this one on.
    pub mute: Option<usize>,
    copies: usize,
}

#[derive(Clone, Debug)]
enum Work {
    CopyIn(Pinned, Range<usize>, Buffer, usize),
    CopyOut(Span, Pinned, usize),
    Clear(Span),
    Launch(Launch),
    Mark,
    WaitFor(usize, u64),
}

#[derive(Default)]
struct Line {
    work: VecDeque<Work>,
    put: u64,
    done: u64,
}

pub struct Fake {
    info: DeviceInfo,
    kernels: Box<dyn Kernels>,
    memory: Memory,
    pinned: Vec<Option<Vec<u8>>>,
    lines: Vec<Line>,
    /// The queue and the place that each event marks.
    events: Vec<(bool, Option<(usize, u64)>)>,
    pub seen: Arc<Mutex<Seen>>,
}

impl Fake {
    pub fn new(kernels: impl Kernels + 'static) -> Self {
        Fake {
            info: DeviceInfo::named("fake"),
            kernels: Box::new(kernels),
            memory: Memory::default(),
            pinned: Vec::new(),
            lines: Vec::new(),
            events: Vec::new(),
            seen: Arc::default(),
        }
    }

    fn put(&mut self, queue: Queue, work: Work) {
        let line = &mut self.lines[queue.0 as usize];
        line.work.push_back(work);
        line.put += 1;
    }

    fn run_to(&mut self, queue: usize, place: u64) {
        while self.lines[queue].done < place {
            let work = self.lines[queue].work.pop_front().expect("work that was put in");
            match work {
                Work::CopyIn(host, from, to, at) => {
                    let bytes = self.pinned[host.0 as usize].as_ref().unwrap()[from].to_vec();
                    let span = Span::new(to, &(at..at + bytes.len()));
                    self.memory.get_mut(span).copy_from_slice(&bytes);
                }
                Work::CopyOut(from, host, at) => {
                    let mut seen = self.seen.lock().unwrap();
                    seen.copies += 1;
                    if seen.mute.is_some_and(|mute| seen.copies > mute) {
                        self.lines[queue].done += 1;
                        continue;
                    }
                    drop(seen);
                    let bytes = self.memory.get(from).to_vec();
                    self.pinned[host.0 as usize].as_mut().unwrap()[at..at + bytes.len()].copy_from_slice(&bytes);
                }
                Work::Clear(span) => self.memory.get_mut(span).fill(0),
                Work::Launch(launch) => {
                    self.kernels.run(&launch, &mut self.memory);
                    self.seen.lock().unwrap().launches.push(launch);
                }
                Work::Mark => {}
                Work::WaitFor(other, place) => self.run_to(other, place),
            }
            self.lines[queue].done += 1;
        }
    }

    fn settle(&mut self) {
        for queue in 0..self.lines.len() {
            self.run_to(queue, self.lines[queue].put);
        }
    }
}

impl std::fmt::Debug for Fake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fake")
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}

impl Device for Fake {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn allocate(&mut self, bytes: usize) -> Result<Buffer, Error> {
        assert_ne!(bytes, 0);
        self.memory.0.push(Some(vec![0xa5; bytes]));
        Ok(Buffer(self.memory.0.len() as u32 - 1))
    }

    fn free(&mut self, buffer: Buffer) {
        self.settle();
        let freed = self.memory.0[buffer.0 as usize].take().expect("memory freed twice");
        let mut seen = self.seen.lock().unwrap();
        seen.freed += 1;
        seen.dirty += usize::from(!is_zero(&freed));
    }

    fn allocate_pinned(&mut self, bytes: usize) -> Result<Pinned, Error> {
        assert_ne!(bytes, 0);
        self.pinned.push(Some(vec![0; bytes]));
        Ok(Pinned(self.pinned.len() as u32 - 1))
    }

    fn free_pinned(&mut self, pinned: Pinned) {
        self.settle();
        // Giving it back wipes it, says the trait; that it was given back is what counts.
        self.pinned[pinned.0 as usize].take().expect("memory freed twice");
        self.seen.lock().unwrap().freed += 1;
    }

    fn pinned(&mut self, pinned: Pinned) -> Result<&mut [u8], Error> {
        let used = |work: &Work| match work {
            Work::CopyIn(host, ..) | Work::CopyOut(_, host, _) => *host == pinned,
            _ => false,
        };
        let race = self.lines.iter().any(|line| line.work.iter().any(used));
        assert!(!race, "host memory is touched while it is in use");
        Ok(self.pinned[pinned.0 as usize].as_mut().unwrap())
    }

    fn pinned_now(&self, pinned: Pinned) -> Option<&[u8]> {
        let used = |work: &Work| match work {
            Work::CopyIn(host, ..) | Work::CopyOut(_, host, _) => *host == pinned,
            _ => false,
        };
        let race = self.lines.iter().any(|line| line.work.iter().any(used));
        self.pinned[pinned.0 as usize].as_deref().filter(|_| !race)
    }

    fn queue(&mut self) -> Result<Queue, Error> {
        self.lines.push(Line::default());
        Ok(Queue(self.lines.len() as u32 - 1))
    }

    fn event(&mut self, timing: bool) -> Result<Event, Error> {
        self.events.push((timing, None));
        Ok(Event(self.events.len() as u32 - 1))
    }

    fn copy_in(&mut self, queue: Queue, host: Pinned, from: Range<usize>, to: Buffer, at: usize) -> Result<(), Error> {
        assert!(from.end <= self.pinned[host.0 as usize].as_ref().unwrap().len());
        assert!(at + from.len() <= self.memory.buffer(to).len());
        self.put(queue, Work::CopyIn(host, from, to, at));
        Ok(())
    }

    fn copy_out(&mut self, queue: Queue, from: Span, host: Pinned, at: usize) -> Result<(), Error> {
        assert!(at + from.len <= self.pinned[host.0 as usize].as_ref().unwrap().len());
        let _ = self.memory.get(from);
        self.put(queue, Work::CopyOut(from, host, at));
        Ok(())
    }

    fn clear(&mut self, queue: Queue, span: Span) -> Result<(), Error> {
        let _ = self.memory.get(span);
        self.put(queue, Work::Clear(span));
        Ok(())
    }

    fn launch(&mut self, queue: Queue, launch: &Launch) -> Result<(), Error> {
        for span in launch.spans() {
            let _ = self.memory.get(span);
        }
        self.put(queue, Work::Launch(*launch));
        Ok(())
    }

    fn record(&mut self, queue: Queue, event: Event) -> Result<(), Error> {
        self.put(queue, Work::Mark);
        let queue = queue.0 as usize;
        self.events[event.0 as usize].1 = Some((queue, self.lines[queue].put));
        Ok(())
    }

    fn queue_wait(&mut self, queue: Queue, event: Event) -> Result<(), Error> {
        // What was never recorded is done.
        if let Some((other, place)) = self.events[event.0 as usize].1 {
            self.put(queue, Work::WaitFor(other, place));
        }
        Ok(())
    }

    fn is_done(&mut self, event: Event) -> Result<bool, Error> {
        // As late as it may be: never by itself.
        let marked = self.events[event.0 as usize].1;
        Ok(marked.is_none_or(|(queue, place)| self.lines[queue].done >= place))
    }

    fn wait(&mut self, event: Event) -> Result<(), Error> {
        if let Some((queue, place)) = self.events[event.0 as usize].1 {
            self.run_to(queue, place);
        }
        Ok(())
    }

    fn finish(&mut self, queue: Queue) -> Result<(), Error> {
        let queue = queue.0 as usize;
        self.run_to(queue, self.lines[queue].put);
        Ok(())
    }

    fn elapsed_s(&mut self, from: Event, to: Event) -> Result<f64, Error> {
        let (from, to) = (self.events[from.0 as usize], self.events[to.0 as usize]);
        assert!(from.0 && to.0, "events that do not measure time");
        let (Some(from), Some(to)) = (from.1, to.1) else {
            panic!("events that were not recorded");
        };
        assert_eq!(from.0, to.0, "events of different queues");
        // A second for each piece of work in between.
        Ok((to.1 - from.1) as f64)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.settle();
        let memory = self.memory.0.iter().flatten().count() + self.pinned.iter().flatten().count();
        self.seen.lock().unwrap().leaked += memory;
    }
}
