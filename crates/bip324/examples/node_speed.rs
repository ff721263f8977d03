//! Measures a node's packets on several threads, with and without a GPU: pairs a second, sealed at one end and opened at
//! the other, framing, masks, key changes and copies among them.
//!
//! `cargo run --release -p sealway-bip324 --features cuda --example node_speed`. Packets are the mix of the records (40 %
//! U[0,32] bytes, 30 % U[33,128], 20 % U[129,512], 10 % U[513,4096]) on 1,000 connections, each packet on a random one, shared
//! out over the threads. Each thread has 65,536 packets, contents and all, and takes them batch by batch.
//!
//! `THREADS=1,16`, `BATCH=4096,16384`, `MODE=cpu,crew,gpu,routed` and `ROUNDS=3` choose; `SECONDS_EACH=0.5` is how long a window is. Subjects
//! take turns. Each window is a line of JSON. `SLABS=8` and `SLAB_KIB=2048` are the engine's; `SLABS=0` has it gather and scatter.
//! Mode `crew` is the processor with all transports in one crew: who waits for another helps it. Mode `host` is the engine over a
//! device that does nothing: what is left is what the host spends, by sealing and by opening.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use sealway_bip324::Kind;
use sealway_bip324::batch::{Backend, BatchOptions, BatchTransport, ConnectionId, Costs, Crew, Executor, Routing};
use sealway_bip324::fschacha::{RecvChain, SendChain};
use sealway_cuda::{Engine, Options};

#[path = "common/mix.rs"]
mod mix;
#[path = "node_speed/nothing.rs"]
mod nothing;

use mix::Generator;

/// Packets of a thread.
const PACKETS: usize = 65_536;

/// Connections of all threads.
const CONNECTIONS: usize = 1000;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mode {
    Cpu,
    Crew,
    Gpu,
    Routed,
    HostSeal,
    HostOpen,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    mode: Mode,
    threads: usize,
    batch: usize,
}

fn list(name: &str, or: &str) -> Vec<String> {
    let text = std::env::var(name).unwrap_or(or.into());
    text.split(',').map(str::to_owned).collect()
}

fn number(name: &str, or: usize) -> usize {
    std::env::var(name).map_or(or, |text| text.parse().unwrap())
}

fn options() -> Options {
    let slabs = number("SLABS", 8);
    let mut options = Options {
        slots: 4 * CONNECTIONS,
        ..Options::default()
    };
    options.slabs = slabs;
    options.slab_bytes = number("SLAB_KIB", 2048) << 10;
    if slabs > 0 {
        (options.chunks, options.chunk_bytes) = (1, 1 << 16);
    }
    options
}

/// A thread's packets and its two ends.
struct Node {
    here: BatchTransport,
    there: BatchTransport,
    ids: Vec<ConnectionId>,
    /// Connection, start and length of the contents.
    packets: Vec<(u32, u32, u32)>,
    contents: Vec<u8>,
    next: usize,
    /// Bytes of contents in the batch that is on its way.
    sent: usize,
    /// What was sealed ahead, by the batch it belongs to: connection and bytes.
    sealed: Vec<Vec<(ConnectionId, Vec<u8>)>>,
}

fn transport(batch: usize) -> BatchTransport {
    let mut options = BatchOptions::default();
    options.send_arena = options.send_arena.max(batch * 700);
    options.receive_arena = options.receive_arena.max(batch * 700);
    BatchTransport::new(options).unwrap()
}

impl Node {
    fn new(case: Case, thread: usize) -> Self {
        let mut generator = Generator(thread as u64);
        let (mut here, mut there) = (transport(case.batch), transport(case.batch));
        let mut ids = Vec::new();
        for connection in 0..CONNECTIONS / case.threads {
            let key = [generator.next() as u8; 32];
            let chains = || (SendChain::new(&key, &key).unwrap(), RecvChain::new(&key, &key).unwrap());
            let ((a, b), (c, d)) = (chains(), chains());
            let id = here.add(a, b, &[]).unwrap();
            assert!(there.add(c, d, &[]).unwrap() == id && id.index() == connection);
            ids.push(id);
        }
        let mut start = 0;
        let packets: Vec<_> = (0..PACKETS)
            .map(|_| {
                let (connection, len) = (generator.between(0, ids.len() as u64 - 1), generator.contents_len(0));
                start += len;
                (connection as u32, (start - len) as u32, len as u32)
            })
            .collect();
        let contents = (0..start).map(|_| generator.next() as u8).collect();
        Node {
            here,
            there,
            ids,
            packets,
            contents,
            next: 0,
            sent: 0,
            sealed: Vec::new(),
        }
    }

    fn seal(&mut self, range: std::ops::Range<usize>) {
        for &(connection, start, len) in &self.packets[range] {
            let contents = &self.contents[start as usize..(start + len) as usize];
            self.here
                .submit(self.ids[connection as usize], Kind::Genuine, contents)
                .unwrap();
        }
        self.here.begin_seal();
    }

    /// From one end to the other.
    fn send(&mut self) {
        for output in self.here.seal().iter() {
            for bytes in output.slices() {
                self.there.receive(output.id, bytes).unwrap();
            }
        }
    }

    fn open(&mut self) -> usize {
        let mut bytes = 0;
        for message in self.there.open().iter() {
            bytes += message.contents.len();
        }
        assert_eq!(self.there.poll_closed(), None);
        bytes
    }

    /// One batch; gives the packets in it.
    fn batch(&mut self, case: Case) -> usize {
        if self.next + case.batch > self.packets.len() {
            self.next = 0;
        }
        let range = self.next..self.next + case.batch;
        self.next = range.end;
        let first = self.packets[range.start].1;
        let last = self.packets[range.end - 1];
        let want = (last.1 + last.2 - first) as usize;
        match case.mode {
            Mode::HostSeal => {
                self.seal(range);
                let bytes: usize = self.here.seal().iter().map(|output| output.byte_count()).sum();
                black_box(bytes);
            }
            Mode::HostOpen => {
                for (id, bytes) in &self.sealed[range.start / case.batch] {
                    self.there.receive(*id, bytes).unwrap();
                }
                black_box(self.open());
            }
            _ => {
                // What came of the batch before is read while this one is sealed, and this one is opened while the next is
                // submitted.
                self.seal(range);
                let sent = std::mem::replace(&mut self.sent, want);
                assert_eq!(self.open(), sent);
                self.send();
                self.there.begin_open();
            }
        }
        for end in [&self.here, &self.there] {
            assert!(end.executor_failure().is_none(), "{:?}", end.executor_failure());
        }
        case.batch
    }

    /// Every byte of a few batches, off the clock.
    fn check(&mut self, case: Case) {
        for _ in 0..3 {
            let start = self.next % self.packets.len();
            let range = start..start + case.batch.min(self.packets.len() - start);
            self.next = range.end % self.packets.len();
            self.seal(range.clone());
            self.send();
            let mut want = vec![Vec::<u8>::new(); self.ids.len()];
            for &(connection, start, len) in &self.packets[range] {
                want[connection as usize].extend(&self.contents[start as usize..(start + len) as usize]);
            }
            let mut got = vec![Vec::<u8>::new(); self.ids.len()];
            for message in self.there.open().iter() {
                got[message.id.index()].extend(message.contents);
            }
            assert!(got == want, "other messages");
        }
    }
}

fn engine(case: Case) -> Engine {
    match case.mode {
        Mode::HostSeal | Mode::HostOpen => {
            Engine::with_device(Box::new(nothing::Nothing::default()), options()).unwrap()
        }
        _ => Engine::open(options()).unwrap(),
    }
}

fn costs(engine: &mut impl Executor) -> Costs {
    let begin = Instant::now();
    Costs::measure(engine, Backend::best(), &mut || begin.elapsed()).unwrap()
}

/// Pairs a second of all threads, the part that the executor did, and seconds of each batch.
fn window(case: Case, time: Duration) -> (f64, f64, Vec<f64>) {
    let (barrier, crew) = (Barrier::new(case.threads), Crew::new(Backend::best()));
    let results: Vec<_> = std::thread::scope(|scope| {
        let work = |thread: usize| {
            let (barrier, crew) = (&barrier, &crew);
            move || {
                let mut node = Node::new(case, thread);
                if case.mode == Mode::HostOpen {
                    // What a transport without an executor seals.
                    for batch in 0..PACKETS / case.batch {
                        node.seal(batch * case.batch..(batch + 1) * case.batch);
                        let outputs = node.here.seal();
                        let pieces = outputs
                            .iter()
                            .flat_map(|output| output.slices().map(move |bytes| (output.id, bytes.to_vec())));
                        node.sealed.push(pieces.collect());
                    }
                }
                if case.mode == Mode::Crew {
                    for end in [&mut node.here, &mut node.there] {
                        end.set_executor(Box::new(crew.member()), Routing::Always);
                    }
                } else if case.mode != Mode::Cpu {
                    let (mut a, b) = (engine(case), engine(case));
                    // All threads measure at once, so that costs are those of a device that is shared.
                    barrier.wait();
                    let routing = if case.mode == Mode::Routed {
                        Routing::Measured(costs(&mut a))
                    } else {
                        Routing::Always
                    };
                    if case.mode == Mode::Routed && thread == 0 {
                        eprintln!("{case:?} {routing:?}");
                    }
                    if case.mode != Mode::HostOpen {
                        node.here.set_executor(Box::new(a), routing);
                    }
                    node.there.set_executor(Box::new(b), routing);
                }
                let host = matches!(case.mode, Mode::HostSeal | Mode::HostOpen);
                if !host {
                    node.check(case);
                    node.batch(case);
                }
                barrier.wait();
                let begin = Instant::now();
                let (mut pairs, mut times) = (0, Vec::new());
                let rounds = if case.mode == Mode::HostOpen {
                    PACKETS / case.batch
                } else {
                    usize::MAX
                };
                while begin.elapsed() < time && times.len() < rounds {
                    let start = Instant::now();
                    pairs += node.batch(case);
                    times.push(start.elapsed().as_secs_f64());
                }
                let wall = begin.elapsed().as_secs_f64();
                let counters = [node.here.counters(), node.there.counters()];
                let theirs: u64 = counters.iter().map(|counters| counters.executor_jobs).sum();
                let own: u64 = counters.iter().map(|counters| counters.processor_jobs).sum();
                (pairs as f64 / wall, theirs as f64 / (theirs + own).max(1) as f64, times)
            }
        };
        let threads: Vec<_> = (0..case.threads).map(|thread| scope.spawn(work(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let rate = results.iter().map(|(rate, ..)| rate).sum();
    let share = results.iter().map(|(_, share, _)| share).sum::<f64>() / results.len() as f64;
    (rate, share, results.into_iter().flat_map(|(.., times)| times).collect())
}

fn main() {
    let name = std::env::var("NAME").unwrap_or("now".into());
    let seconds: f64 = std::env::var("SECONDS_EACH").map_or(0.5, |text| text.parse().unwrap());
    let mut cases = Vec::new();
    for batch in list("BATCH", "4096,16384") {
        for threads in list("THREADS", "1") {
            for mode in list("MODE", "cpu,gpu,routed") {
                let modes = match mode.as_str() {
                    "cpu" => vec![Mode::Cpu],
                    "crew" => vec![Mode::Crew],
                    "gpu" => vec![Mode::Gpu],
                    "routed" => vec![Mode::Routed],
                    "host" => vec![Mode::HostSeal, Mode::HostOpen],
                    other => panic!("no mode {other}"),
                };
                let (threads, batch) = (threads.parse().unwrap(), batch.parse().unwrap());
                cases.extend(modes.into_iter().map(|mode| Case { mode, threads, batch }));
            }
        }
    }
    for round in 0..number("ROUNDS", 3) {
        for &case in &cases {
            let (rate, share, mut times) = window(case, Duration::from_secs_f64(seconds));
            times.sort_unstable_by(f64::total_cmp);
            let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize] * 1e6;
            println!(
                "{{\"name\":\"{name}\",\"round\":{round},\"mode\":\"{:?}\",\"threads\":{},\"batch\":{},\"pairs_per_s\":{rate:.0},\
                 \"ns_per_pair_per_thread\":{:.1},\"gpu_share\":{share:.3},\"p50_us\":{:.1},\"p99_us\":{:.1},\"batches\":{}}}",
                case.mode,
                case.threads,
                case.batch,
                case.threads as f64 * 1e9 / rate,
                at(0.5),
                at(0.99),
                times.len(),
            );
        }
    }
}
