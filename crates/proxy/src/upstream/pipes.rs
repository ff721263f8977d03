//! Lines to one server: few of them, with many questions on each.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore};
use tokio::time::Instant;

use super::Way;
use super::pipe::Pipe;
use crate::Error;
use crate::dns::message::{Form, Question, Reply};
use crate::roads;

/// Streams to a server at a time.
pub(super) const MAX_STREAMS: usize = 4;
/// Lines of datagrams by the routing to a server at a time.
const MAX_LINES: usize = 2;
/// Questions without an answer on one line. Who has one more waits, for as long as it may take.
pub(super) const MAX_OPEN: usize = 256;
/// With so many open, another line is made if there may be one.
const MANY_OPEN: usize = 64;
/// Questions in all that one line of datagrams takes: the next has another port, as far as that is seen from here.
const MAX_USES: usize = 256;
/// Lines that one question is asked on, while they end before their time.
const MAX_TRIES: usize = 4;
/// How long it is remembered how many questions on one stream a server answers.
const LIMIT_HOLDS: Duration = Duration::from_secs(600);

/// What the lines are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Streams,
    Packets,
}

/// The lines.
pub(super) struct Pipes {
    way: Arc<Way>,
    kind: Kind,
    lines: Mutex<Vec<Arc<Pipe>>>,
    /// Held by who makes a line for everybody. What is itself needed to make one never waits for it.
    makes: tokio::sync::Mutex<()>,
    room: Semaphore,
    freed: Arc<Notify>,
    /// Questions on one stream that the server answers before it ends it, and since when that is known.
    limit: Mutex<Option<(usize, Instant)>>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pipes {
    pub(super) fn new(way: Arc<Way>, kind: Kind) -> Pipes {
        Pipes {
            way,
            kind,
            lines: Mutex::default(),
            makes: tokio::sync::Mutex::default(),
            room: Semaphore::new(MAX_OPEN * most(kind)),
            freed: Arc::default(),
            limit: Mutex::default(),
        }
    }

    /// Asks on whichever line has the least to do. What ends without an answer, as servers end streams when they like, is asked
    /// on another one.
    pub(super) async fn ask(&self, question: &Question, form: Form, again: Option<Duration>) -> Result<Reply, Error> {
        // What is needed for an answer that others wait for must not wait for them.
        let _room = match roads::is_needed() {
            true => None,
            false => self.room.acquire().await.ok(),
        };
        let mut tries = MAX_TRIES;
        loop {
            let (line, new) = self.line().await?;
            let asked = line.ask(question, form, again).await;
            tries -= 1;
            match asked {
                Err(Error::Closed) if tries > 0 && (!new || line.was_cut() || line.answered() > 0) => self.learn(&line),
                asked => return asked,
            }
        }
    }

    /// What a line that ended shows of how many questions the server takes on one.
    fn learn(&self, line: &Pipe) {
        if line.was_cut() {
            // The end of a stream may overtake what was sent before it.
            *lock(&self.limit) = Some((line.answered().max(1), Instant::now()));
        }
    }

    fn limit(&self) -> usize {
        match (self.kind, *lock(&self.limit)) {
            (Kind::Packets, _) => MAX_USES,
            (_, Some((limit, since))) if since.elapsed() < LIMIT_HOLDS => limit,
            _ => usize::MAX,
        }
    }

    /// A place on a line that is there, and whether there should be another line all the same.
    fn place(&self) -> (Option<Arc<Pipe>>, bool) {
        let mut lines = lock(&self.lines);
        lines.retain(|line| !line.is_over());
        let more = lines.len() < most(self.kind);
        let loads = lines.iter().filter_map(|line| Some((line.load()?, line)));
        let free = loads.filter(|(load, _)| load.open < MAX_OPEN);
        match free.min_by_key(|(load, _)| *load) {
            None => (None, more),
            Some((load, line)) => {
                let full = more && (load.is_slow || load.open >= MANY_OPEN);
                (Some(Arc::clone(line)), full)
            }
        }
    }

    /// A line with a place that is reserved, and whether it is a new one.
    async fn line(&self) -> Result<(Arc<Pipe>, bool), Error> {
        let reserved = |line: &Arc<Pipe>| line.reserve();
        if let (Some(line), false) = self.place()
            && reserved(&line)
        {
            return Ok((line, false));
        }
        let needed = roads::is_needed();
        let _turn = match needed {
            true => None,
            false => Some(self.makes.lock().await),
        };
        loop {
            let freed = pin!(self.freed.notified());
            match self.place() {
                (Some(line), false) if reserved(&line) => return Ok((line, false)),
                (None, false) if !needed => freed.await,
                (Some(line), true) => match self.make().await {
                    Err(_) if reserved(&line) => return Ok((line, false)),
                    made => return Ok((made?, true)),
                },
                (_, more) if more || needed => return Ok((self.make().await?, true)),
                // Somebody else was quicker.
                _ => {}
            }
        }
    }

    async fn make(&self) -> Result<Arc<Pipe>, Error> {
        let line = match self.kind {
            Kind::Streams => Pipe::of_stream(self.way.stream().await?, self.limit(), &self.freed),
            Kind::Packets => {
                let packets = self.way.packets().await?;
                Pipe::of_packets(packets, self.way.to.clone(), self.limit(), &self.freed)
            }
        };
        let line = Arc::new(line);
        lock(&self.lines).push(Arc::clone(&line));
        Ok(line)
    }
}

fn most(kind: Kind) -> usize {
    match kind {
        Kind::Streams => MAX_STREAMS,
        Kind::Packets => MAX_LINES,
    }
}
