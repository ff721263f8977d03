//! A node's connections over sockets: `bip324 bench sockets`. Packets of the mix go both ways over thousands of TCP connections
//! on loopback; each end has one thread for all of its connections.
//!
//! `sealway` is a `BatchTransport` at either end over epoll: a batch is sealed at once, what it has for a connection is written
//! by one call, and what came on all connections is opened at once. The other subjects seal and open packet by packet over
//! tokio, with a task that reads and one that writes for each connection; a task writes what waits for it by one call.
//! Everybody gets the same packets in the same batches, and is at most two batches ahead of what it has received.
//!
//! Read by the wall (method `T`), both ways together: what counts is contents that were opened inside the window. Every message
//! is compared with what was sent, in the window and outside of it. The clock starts once two batches have been compared in
//! each direction, on the wire as well, with the oracle's; it stops before the last packets have come and are counted.
//!
//! The latency of a message runs from when the sender was given its batch to when the receiver sees its contents, for every message
//! that is seen inside the window. Senders are always two batches ahead, so it holds the time that a message waits behind others.
//!
//! Over an emulated link connections are opened, and the first two batches compared, as through an open door. No more than two batches
//! are under way each way, so the window has some round trips at least.

mod batches;
mod course;
mod tasks;
#[cfg(test)]
mod tests;

use std::net::TcpStream;
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use self::batches::Batches;
use self::course::{AHEAD, Course, Shared};
use self::tasks::Tasks;
use super::ciphers::{Ciphers, Own};
use super::definition::{BATCH, hash, packets_of};
use super::ends::Batched;
use super::links::{Link, failed, links};
use super::sockets::carried;
use super::traffic::Traffic;
use super::way::Way;
use super::{MESSAGES, NAME, OVER_SOCKETS, PEERS, hash_on, subjects_of};
use crate::link::{self, Over};
use crate::measure::WarningCode;
use crate::peer::proc::raise_files;
use crate::pin::{Places, keep};
use crate::plan::{Overhead, Profile};
use crate::result::{Case, Warning};
use crate::run::{Cell, CellError, Counted, Timed};
use crate::workload::batch::{Sizes, keep_first, packets};
use crate::workload::chunk::failed_cell;
use crate::workload::fit::fit_from;
use crate::workload::rows::{Reference, Scheme};
use crate::workload::subjects::Found;
use crate::workload::{LabError, Prepared, Request};

/// The case's word for many connections over sockets.
pub(super) const CROWD: &str = "sockets";

/// Version of what a window does.
const VERSION: u32 = 2;

/// Packets of a connection, on average, at least: fewer would leave out some connections.
const EACH: usize = 8;

/// Longest time without anything that comes.
const PATIENCE: Duration = Duration::from_secs(20);

/// Files of a connection: one for each end, and as many for the relay of a link.
const FILES_OF_ONE: u64 = 2;

/// Files besides those of connections.
const FILES: u64 = 100;

/// The shortest window: batches on thousands of connections take tens of milliseconds each.
const SHORTEST: Duration = Duration::from_millis(250);

/// Round trips of the shortest window over a link: in each there are two batches.
const ROUND_TRIPS: u32 = 10;

/// Time to set up a connection at both ends.
const SET_UP: Duration = Duration::from_micros(100);

/// How many times as long it takes through the relay of a link.
const RELAYED: u32 = 3;

/// Most connections over an emulated link: each has four sockets, which one thread serves.
pub const MOST_OVER_LINK: u16 = 10_000;

/// Bytes of a packet of the mix on the wire, on the average.
const PACKET: u64 = 345;

/// One end of all connections.
trait End: Send {
    /// Sends and receives until the course is over.
    fn run(self: Box<Self>, course: Course, sockets: Vec<TcpStream>) -> Result<(), CellError>;
}

/// Sets up both ends.
type Make = Rc<dyn Fn(&[Link]) -> Result<[Box<dyn End>; 2], CellError>>;

fn broken(error: std::io::Error) -> CellError {
    failed(format_args!("a connection broke: {error}"))
}

fn unopened(count: usize, error: &std::io::Error) -> CellError {
    failed(format_args!(
        "{count} connections on loopback could not be opened: {error}; ask for fewer, or allow more open files and local ports"
    ))
}

fn case(connections: usize) -> Case {
    packets_of(CROWD, Sizes::Mix, connections, BATCH, 2)
}

/// A number of connections, and the packets on them.
struct Crowd {
    links: Rc<Vec<Link>>,
    traffic: Arc<Traffic>,
}

/// A case.
struct CrowdCell {
    crowd: Rc<Crowd>,
    batch: usize,
    make: Make,
    pin: Option<Places>,
    over: Option<Over>,
    /// Windows so far.
    turns: u64,
}

impl Timed for CrowdCell {
    /// Compares without a link, as all that comes before a window.
    fn prepare(&mut self) -> Result<(), CellError> {
        let way = self.way(None)?;
        self.run(&way, Duration::ZERO, Duration::from_millis(2)).map(drop)
    }

    fn window(&mut self, warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let way = self.way(self.over)?;
        self.turns += 1;
        let link = self.over.map(|over| over.link);
        let warmup = warmup + settling(link, self.batch);
        let counted = self.run(&way, warmup, window.max(shortest(link)));
        way.check()?;
        counted
    }
}

/// The shortest window over a link, or without.
fn shortest(link: Option<link::Link>) -> Duration {
    SHORTEST.max(link.map_or(Duration::ZERO, |link| link.round_trip() * ROUND_TRIPS))
}

/// What comes before the warm-up over a link: windows of connections grow, and what senders are ahead by passes at its rate.
fn settling(link: Option<link::Link>, batch: usize) -> Duration {
    let ahead = AHEAD * batch as u64 * PACKET;
    link.map_or(Duration::ZERO, |link| link.settling() + link.passing(ahead))
}

impl CrowdCell {
    fn way(&self, over: Option<Over>) -> Result<Way, CellError> {
        Way::open(over, self.turns).map_err(|error| unopened(self.crowd.traffic.connections(), &error))
    }

    /// Opens all connections, measures and closes them.
    fn run(&self, way: &Way, warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let links = &self.crowd.links[..self.crowd.traffic.connections()];
        let shared = Arc::new(Shared::new(Arc::clone(&self.crowd.traffic), self.batch));
        let sockets = connected(way, links.len()).map_err(|error| unopened(links.len(), &error))?;
        let ends = (self.make)(links)?;
        let (counted, late, ended) = thread::scope(|scope| {
            let (shared, pin) = (&shared, self.pin.as_ref());
            let threads: Vec<_> = (0..)
                .zip(ends)
                .zip(sockets)
                .map(|((number, end), sockets)| {
                    scope.spawn(move || {
                        let course = Course::new(Arc::clone(shared), number);
                        let ended = keep(pin, number).and_then(|()| end.run(course, sockets));
                        shared.leave(number);
                        ended
                    })
                })
                .collect();
            let goes_on = || !threads.iter().any(thread::ScopedJoinHandle::is_finished);
            let counted = measure(shared, way, goes_on, warmup, window);
            let late = way.release();
            shared.stop();
            let ended: Vec<_> = threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err(failed("an end stopped early"))))
                .collect();
            (counted, late, ended)
        });
        // Of two ends that failed one may only have lost the other.
        let (wrong, rest): (Vec<_>, Vec<_>) = ended
            .into_iter()
            .partition(|ended| matches!(ended, Err(CellError::Wrong { .. })));
        wrong.into_iter().chain(rest).collect::<Result<(), _>>()?;
        shared.verdict()?;
        let mut counted = counted.ok_or_else(|| failed("an end stopped before the window did"))?;
        counted.figures.extend(late);
        counted.tails.push((MESSAGES, shared.latencies()));
        Ok(counted)
    }
}

/// Waits for the warm-up and the window, as long as both ends go on; gives what was opened in the window.
fn measure(
    shared: &Shared,
    way: &Way,
    goes_on: impl Fn() -> bool,
    warmup: Duration,
    window: Duration,
) -> Option<Counted> {
    let pause = |until: &dyn Fn() -> bool| {
        while !until() {
            if !goes_on() {
                return None;
            }
            thread::sleep(Duration::from_millis(1));
        }
        Some(())
    };
    pause(&|| shared.is_compared())?;
    way.engage();
    let began = Instant::now();
    pause(&|| began.elapsed() >= warmup)?;
    let (cpu, before, began) = (way.cpu(), shared.opened(), Instant::now());
    shared.time(true);
    pause(&|| began.elapsed() >= window)?;
    shared.time(false);
    let (wall, after) = (began.elapsed(), shared.opened());
    let cpu = way.spent(cpu);
    Some(carried([0, 1, 2].map(|i| after[i] - before[i]), wall, cpu))
}

/// Both ends of so many connections.
fn connected(way: &Way, count: usize) -> std::io::Result<[Vec<TcpStream>; 2]> {
    let mut ends = [Vec::with_capacity(count), Vec::with_capacity(count)];
    for _ in 0..count {
        for (end, all) in way.connect()?.into_iter().zip(&mut ends) {
            end.set_nonblocking(true)?;
            // Closed at once, so that thousands of ports are not kept for a minute.
            rustix::net::sockopt::set_socket_linger(&end, Some(Duration::ZERO))?;
            all.push(end);
        }
    }
    Ok(ends)
}

/// Our batches.
fn batched(links: &[Link]) -> Result<[Box<dyn End>; 2], CellError> {
    Ok([Box::new(Batches::new(links)?), Box::new(Batches::new(links)?)])
}

/// Packet by packet.
fn single<C: Ciphers>(ciphers: Rc<C>) -> Make {
    Rc::new(move |links| {
        Ok([
            Box::new(Tasks::new(&*ciphers, links)?),
            Box::new(Tasks::new(&*ciphers, links)?),
        ])
    })
}

/// Who takes part.
fn makes(found: &Found) -> Vec<(&'static str, Make)> {
    let batched: Make = Rc::new(batched);
    let mut makes = vec![(Batched::NAME, batched), (Own::NAME, single(Rc::new(Own)))];
    #[cfg(feature = "peers")]
    {
        let theirs: Rc<super::theirs::Theirs> = Rc::default();
        let aws_lc = Rc::new(super::framed::Loop::<crate::workload::engine::AwsLc>::NEW);
        makes.extend([(PEERS[0], single(theirs)), (PEERS[1], single(aws_lc))]);
    }
    makes.retain(|(name, _)| found.has(name) || *name == Own::NAME);
    makes
}

/// The numbers of connections that so many open files allow, each once, where a connection takes `each`, and what to say if they are
/// fewer than asked.
fn possible(asked: &[usize], each: u64, files: u64) -> (Vec<usize>, Option<Warning>) {
    let most = usize::try_from(files.saturating_sub(FILES) / each).unwrap_or(usize::MAX);
    let counts = asked.iter().map(|count| (*count).min(most));
    let mut counts: Vec<usize> = counts.filter(|count| *count > 0).collect();
    keep_first(&mut counts);
    let wanted = asked.iter().max().copied().unwrap_or(0);
    let warning = (wanted > most).then(|| {
        let text = format!(
            "{wanted} connections need {} open files, and this process may have {files}: {most} connections were \
             possible.",
            wanted as u64 * each + FILES
        );
        WarningCode::FewFiles.warn("", &text)
    });
    (counts, warning)
}

/// Packets on so many connections: whole batches.
fn packets_on(count: usize, profile: Profile) -> usize {
    packets(profile).max(EACH * count).next_multiple_of(BATCH)
}

fn cells(counts: &[usize], request: &Request, found: &Found) -> Vec<Cell> {
    let most = counts.iter().max().copied().unwrap_or(0);
    let links = links(most).map(Rc::new);
    let makes = makes(found);
    let of = |&count: &usize| {
        let crowd = links.clone().and_then(|links| {
            let traffic = Traffic::new(&links[..count], Sizes::Mix, 0, packets_on(count, request.profile))?;
            let traffic = Arc::new(traffic);
            Ok(Rc::new(Crowd { links, traffic }))
        });
        let crowd = match crowd {
            Ok(crowd) => crowd,
            Err(error) => return vec![failed_cell(case(count), Batched::NAME, &error)],
        };
        let cell = |(name, make): &(&'static str, Make)| {
            let (crowd, make) = (Rc::clone(&crowd), Rc::clone(make));
            let cell = CrowdCell {
                crowd,
                batch: BATCH,
                make,
                pin: request.pin.clone(),
                over: request.over(),
                turns: 0,
            };
            Cell::new(case(count), name, cell)
        };
        makes.iter().map(cell).collect()
    };
    counts.iter().flat_map(of).collect()
}

/// Finds the subjects, makes the cells, fits the plan.
pub(super) fn prepare(request: &Request) -> Result<Prepared, LabError> {
    let found = subjects_of(request)?;
    let (each, times) = match request.link {
        Some(_) => (2 * FILES_OF_ONE, RELAYED),
        None => (FILES_OF_ONE, 1),
    };
    let (counts, warning) = possible(&request.sockets, each, raise_files());
    let cells = cells(&counts, request, &found);
    let mean = counts.iter().sum::<usize>() / counts.len().max(1);
    let set_up = SET_UP * u32::try_from(mean).unwrap_or(u32::MAX);
    // A window that is longer than those of the profile takes the rest of its time beside them.
    let least = shortest(request.link).min(request.profile.window());
    let overhead = Overhead {
        per_cell: set_up,
        per_window: set_up * times + settling(request.link, BATCH) + shortest(request.link) - least,
    };
    Ok(Prepared {
        plan: fit_from(least, request.profile, &cells, overhead, request.limit(), 1.0)?,
        subjects: found.subjects,
        scheme: Scheme::new(
            NAME,
            hash_on(
                request,
                &format!("{NAME} {CROWD} {VERSION} each={EACH} {}", hash(request.profile, None)),
            ),
            |_| &OVER_SOCKETS,
            Reference::Best(&PEERS),
        ),
        cells,
        warnings: warning.into_iter().collect(),
        recommend: |_| Vec::new(),
    })
}
