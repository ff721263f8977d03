//! A node's packets on several threads: the connections shared out, for each thread a transport at either end, and for each transport an
//! engine of its own. Threads take the GPUs in turn; the two engines of a thread have one.
//!
//! A batch is under way while its thread submits the next and reads the one before, as in a program that does not wait. With a GPU,
//! packets are written once, into slabs of memory that it reads. Costs for `sealway:routed` are measured before each window,
//! by all threads at once, when every one has its packets and its engines, until the GPU is awake: those of a GPU that is shared, and
//! of processors that do nothing else.
//!
//! Before the clock starts, what three batches are on the wire and what is opened of them is compared; after it stops, what is
//! opened of three more. In between, bytes of contents are counted.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use sealway_bip324::batch::{Backend, Routing};
use sealway_cuda::{Engine, Options};

use super::{GPU, GPU_SHARE, ROUTED, WAKING, measured};
use crate::bip324::definition::{MANY, packets_of};
use crate::bip324::ends::{self, BatchEnd, Batched};
use crate::bip324::links::{Link, failed, links};
use crate::bip324::traffic::{Checker, Traffic};
use crate::packets::gpu::Gpus;
use crate::pin::{Places, keep};
use crate::plan::Profile;
use crate::result::Case;
use crate::run::{Cell, CellError, Counted, Timed};
use crate::stats::latency::{Latency, Tail};
use crate::workload::batch::Sizes;
use crate::workload::metric::BATCHES;

/// The case's word for pairs on several threads.
pub(in crate::bip324) const NODE: &str = "node";

/// Batches that are compared before the clock starts, and after it stops.
const COMPARED: usize = 3;

/// How far ahead a start is set: longer than it takes to make a thread.
const AHEAD: Duration = Duration::from_millis(2);

/// How much a window is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    /// Connections of all threads.
    connections: usize,
    /// Packets of a thread.
    packets: usize,
    /// Bytes of a slab.
    slab: usize,
    /// The shortest warm-up and the shortest window.
    warmup: Duration,
    window: Duration,
}

/// With contents and what is sealed of them, a thread has 20 MB of packets. Every window begins with a GPU that had nothing to do; a
/// shorter window has too few batches of each thread.
pub(super) const EXTENT: Extent = Extent {
    connections: MANY,
    packets: 32_768,
    slab: 2 << 20,
    warmup: WAKING,
    window: Duration::from_millis(200),
};

/// One parameter set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Spec {
    pub(super) threads: usize,
    pub(super) batch: usize,
}

impl Spec {
    pub(super) fn case(self) -> Case {
        packets_of(NODE, Sizes::Mix, MANY, self.batch, self.threads)
    }
}

/// Every case for so many processors, the most telling first.
pub(super) fn specs(profile: Profile, cpus: usize) -> Vec<Spec> {
    let cpus = cpus.clamp(1, MANY);
    let mut threads = vec![cpus];
    let doubled = std::iter::successors(Some(1), |threads| Some(threads * 2)).take_while(|threads| *threads < cpus);
    let mut fewer: Vec<usize> = doubled.collect();
    if profile == Profile::Quick {
        fewer.truncate(1);
    }
    threads.extend(fewer.into_iter().rev());
    let batches: &[usize] = if profile == Profile::Quick {
        &[4096, 1024]
    } else {
        &[4096, 1024, 2048, 256, 8192, 16_384, 64]
    };
    let of = |batch: usize| threads.iter().map(move |&threads| Spec { threads, batch });
    batches.iter().flat_map(|&batch| of(batch)).collect()
}

/// A thread's connections and their packets.
struct Share {
    links: Vec<Link>,
    traffic: Traffic,
}

/// The shares of so many threads, made when the first case that has them is prepared.
struct Shares {
    threads: usize,
    extent: Extent,
    made: OnceCell<Result<Vec<Share>, CellError>>,
}

impl Shares {
    fn get(&self) -> Result<&[Share], CellError> {
        let made = self.made.get_or_init(|| shares(self.threads, self.extent));
        made.as_deref().map_err(Clone::clone)
    }
}

fn shares(threads: usize, extent: Extent) -> Result<Vec<Share>, CellError> {
    let mut rest = links(extent.connections)?;
    let shares = (0..threads).map(|thread| {
        let links = rest.split_off(rest.len() - rest.len() / (threads - thread));
        let traffic = Traffic::new(&links, Sizes::Mix, 0, extent.packets)?;
        Ok(Share { links, traffic })
    });
    shares.collect()
}

/// Who works.
#[derive(Clone)]
enum Who {
    Processor,
    Gpu(Gpus),
    Routed(Gpus),
}

/// Every cell of these cases, with threads that stay where they are to stay.
pub(super) fn cells(specs: &[Spec], gpus: &Gpus, extent: Extent, pin: Option<&Places>) -> Vec<Cell> {
    let mut known: HashMap<usize, Rc<Shares>> = HashMap::new();
    let mut cells = Vec::new();
    for spec in specs {
        let shares = known.entry(spec.threads).or_insert_with(|| {
            Rc::new(Shares {
                threads: spec.threads,
                extent,
                made: OnceCell::new(),
            })
        });
        for (subject, who) in [
            (Batched::NAME, Who::Processor),
            (GPU, Who::Gpu(gpus.clone())),
            (ROUTED, Who::Routed(gpus.clone())),
        ] {
            let cell = NodeCell {
                shares: Rc::clone(shares),
                batch: spec.batch,
                who,
                extent,
                pin: pin.cloned(),
            };
            cells.push(Cell::new(spec.case(), subject, cell));
        }
    }
    cells
}

/// A case on all of its threads.
struct NodeCell {
    shares: Rc<Shares>,
    batch: usize,
    who: Who,
    extent: Extent,
    pin: Option<Places>,
}

impl Timed for NodeCell {
    fn prepare(&mut self) -> Result<(), CellError> {
        let node = Node::new(0, &self.shares.get()?[0], self.batch, &self.who, self.extent.slab)?;
        node.ready(&self.who, Instant::now(), Duration::ZERO).map(drop)
    }

    fn window(&mut self, warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let (shares, batch, who, slab) = (self.shares.get()?, self.batch, &self.who, self.extent.slab);
        let pin = self.pin.as_ref();
        let (warmup, window) = (warmup.max(self.extent.warmup), window.max(self.extent.window));
        thread::scope(|scope| {
            // Its own thread sets a node up, so that its memory is near.
            let shares = shares.iter().enumerate();
            let nodes = all(scope, pin, shares, move |(thread, share)| {
                Node::new(thread, share, batch, who, slab)
            })?;
            // Whoever measured costs beside threads that still set up would find the processor too slow.
            let start = Instant::now() + AHEAD;
            let nodes = all(scope, pin, nodes, move |node| node.ready(who, start, warmup))?;
            let start = Instant::now() + AHEAD;
            let done = all(scope, pin, nodes, move |node| node.run(start, warmup, window))?;
            Ok(sum(&done, window))
        })
    }
}

/// Does `work` for each of these on a thread that stays where it is to stay. What they give, once all have ended, whatever the
/// first says.
fn all<'scope, I: Send + 'scope, T: Send + 'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    pin: Option<&'scope Places>,
    items: impl IntoIterator<Item = I>,
    work: impl Fn(I) -> Result<T, CellError> + Copy + Send + 'scope,
) -> Result<Vec<T>, CellError> {
    let spawn = |(thread, item)| scope.spawn(move || keep(pin, thread).and_then(|()| work(item)));
    let threads: Vec<_> = items.into_iter().enumerate().map(spawn).collect();
    let early = || Err(CellError::failed("a thread of the cell ended early"));
    let joined = |thread: thread::ScopedJoinHandle<'scope, _>| thread.join().unwrap_or_else(|_| early());
    let results: Vec<_> = threads.into_iter().map(joined).collect();
    results.into_iter().collect()
}

/// What a thread did in a window.
struct Done {
    pairs: u64,
    bytes: u64,
    seconds: f64,
    elsewhere: [u64; 2],
    times: Tail,
}

/// What all threads did: rates add up, since each thread ends with a batch of its own.
fn sum(done: &[Done], window: Duration) -> Counted {
    let seconds = window.as_secs_f64().max(f64::MIN_POSITIVE);
    let total = |of: fn(&Done) -> u64| {
        let rate: f64 = done.iter().map(|done| of(done) as f64 / done.seconds).sum();
        (rate * seconds) as u64
    };
    let [elsewhere, all] = [0, 1].map(|i| done.iter().map(|done| done.elsewhere[i]).sum::<u64>());
    Counted {
        ops: total(|done| done.pairs),
        bytes: total(|done| done.bytes),
        wall_s: seconds,
        figures: vec![(GPU_SHARE, elsewhere as f64 / all.max(1) as f64)],
        tails: vec![(BATCHES, Tail::merged(done.iter().map(|done| &done.times)))],
        ..Counted::default()
    }
}

/// Options of an engine for the connections of one thread: slabs, and next to nothing for calls that gather.
fn options(connections: usize, slab: usize) -> Options {
    Options {
        slots: 4 * connections,
        slabs: 8,
        slab_bytes: slab,
        chunks: 1,
        chunk_bytes: 1 << 16,
        ..Options::default()
    }
}

/// A thread's two ends.
struct Node<'a> {
    share: &'a Share,
    batch: usize,
    here: BatchEnd,
    there: BatchEnd,
    /// The engines of both ends until they are in their transports; none for the processor alone.
    engines: Option<[Engine; 2]>,
    next: usize,
    /// Bytes of contents in the batch that is under way.
    sent: usize,
}

impl<'a> Node<'a> {
    /// The ends of the thread of this number.
    fn new(thread: usize, share: &'a Share, batch: usize, who: &Who, slab: usize) -> Result<Self, CellError> {
        let count = share.traffic.count();
        let batch = batch.min(count);
        // Two batches: one under way, one that is being submitted.
        let ends = ends::options(&share.traffic, batch, 2);
        Ok(Node {
            share,
            batch,
            here: BatchEnd::with(ends.clone(), &share.links)?,
            there: BatchEnd::with(ends, &share.links)?,
            engines: engines(who, thread, options(share.links.len(), slab))?,
            next: 0,
            sent: 0,
        })
    }

    /// From `start` on, measures costs where packets go by them, for as long as the GPU takes to be awake; gives both ends their
    /// engines, and compares.
    fn ready(mut self, who: &Who, start: Instant, waking: Duration) -> Result<Self, CellError> {
        wait_until(start);
        if let Some([mut here, there]) = self.engines.take() {
            let routing = match who {
                Who::Routed(_) => Routing::Measured(measured(&mut here, Backend::best(), waking).map_err(failed)?),
                Who::Processor | Who::Gpu(_) => Routing::Always,
            };
            self.here.transport.set_executor(Box::new(here), routing);
            self.there.transport.set_executor(Box::new(there), routing);
        }
        self.compare(true)?;
        Ok(self)
    }

    /// The packets of the next batch, from the start again where too few are left.
    fn advance(&mut self) -> Range<usize> {
        if self.next + self.batch > self.share.traffic.count() {
            self.next = 0;
        }
        let range = self.next..self.next + self.batch;
        self.next = range.end;
        range
    }

    fn submit(&mut self, packets: Range<usize>) -> Result<(), CellError> {
        self.here.submit(&self.share.traffic, packets)?;
        self.here.transport.begin_seal();
        Ok(())
    }

    /// From one end to the other; shows what goes by.
    fn deliver(&mut self, see: &mut dyn FnMut(usize, &[u8])) -> Result<(), CellError> {
        let Node { here, there, .. } = self;
        for output in here.transport.seal().iter() {
            let (number, id) = (output.id.index(), there.ids[output.id.index()]);
            for bytes in output.slices() {
                see(number, bytes);
                there.transport.receive(id, bytes).map_err(failed)?;
            }
        }
        here.check_executor()
    }

    /// Compares a few batches, from the first packet on, with the oracle's: what is opened, and what is on the wire as long as
    /// that is the first pass.
    fn compare(&mut self, first_pass: bool) -> Result<(), CellError> {
        let share = self.share;
        let mut checker = Checker::new(&share.traffic);
        self.next = 0;
        for _ in 0..COMPARED.min(share.traffic.count() / self.batch) {
            let packets = self.advance();
            let (sealed, (messages, _)) = (packets.len() as u64, share.traffic.useful(&packets));
            self.submit(packets)?;
            self.deliver(&mut |connection, bytes| {
                if first_pass {
                    checker.wire(&share.traffic, connection, bytes);
                }
            })?;
            self.there.finish_open()?;
            for message in self.there.transport.incoming().iter() {
                checker.message(&share.traffic, message.id.index(), message.contents);
            }
            checker.verdict(if first_pass { sealed } else { 0 }, messages)?;
        }
        Ok(())
    }

    /// Reads what came of the batch before.
    fn read(&mut self) -> Result<(), CellError> {
        let opened = self.there.finish_open()?;
        if opened != self.sent {
            let what = format!("{opened} bytes were opened of {} that were sealed", self.sent);
            return Err(CellError::wrong(what));
        }
        self.sent = 0;
        Ok(())
    }

    /// One batch: the one before is read while this one is sealed, and this one is opened while the next is submitted.
    fn turn(&mut self) -> Result<(u64, u64), CellError> {
        let packets = self.advance();
        let (messages, bytes) = (packets.len() as u64, self.share.traffic.contents_len(&packets));
        self.submit(packets)?;
        self.read()?;
        self.sent = bytes;
        self.deliver(&mut |_, _| ())?;
        self.there.transport.begin_open();
        Ok((messages, bytes as u64))
    }

    /// Turns from `start` on, those of the warm-up not counted.
    fn run(mut self, start: Instant, warmup: Duration, window: Duration) -> Result<Done, CellError> {
        wait_until(start);
        while start.elapsed() < warmup {
            self.turn()?;
        }
        let before = self.elsewhere();
        let mut times = Latency::new();
        let mut done = [0; 2];
        let began = Instant::now();
        let mut last = began;
        while done[0] == 0 || last.duration_since(began) < window {
            let (pairs, bytes) = self.turn()?;
            done = [done[0] + pairs, done[1] + bytes];
            let now = Instant::now();
            times.record(u64::try_from(now.duration_since(last).as_nanos()).unwrap_or(u64::MAX));
            last = now;
        }
        let after = self.elsewhere();
        self.read()?;
        self.compare(false)?;
        Ok(Done {
            pairs: done[0],
            bytes: done[1],
            seconds: last.duration_since(began).as_secs_f64(),
            elsewhere: [after[0] - before[0], after[1] - before[1]],
            times: times.tail(),
        })
    }

    /// Packets that executors did, and all packets.
    fn elsewhere(&self) -> [u64; 2] {
        let [here, there] = [&self.here, &self.there].map(BatchEnd::elsewhere);
        [here[0] + there[0], here[1] + there[1]]
    }
}

/// Keeps the processor awake until then.
fn wait_until(start: Instant) {
    while Instant::now() < start {
        std::hint::spin_loop();
    }
}

/// An engine for each end, both on the GPU of the thread; `None` for the processor alone.
fn engines(who: &Who, thread: usize, options: Options) -> Result<Option<[Engine; 2]>, CellError> {
    let (Who::Gpu(gpus) | Who::Routed(gpus)) = who else {
        return Ok(None);
    };
    let opened = || gpus.open(thread, options.clone());
    let engine = || opened().map_err(|error| failed(format!("{GPU}: {error}")));
    Ok(Some([engine()?, engine()?]))
}

#[cfg(test)]
mod tests;
