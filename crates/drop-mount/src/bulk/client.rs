//! The side that mounts: of each connection one thread sends reads and looks after their time, one takes the answers.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::OUTSTANDING;
use super::message::{self, CONTENT_HEADER, Read};
use super::pool::Pool;
use crate::line::{Line, spawn};
use crate::tree::{Chunk, Hook, ReadDone, ReadRequest, TreeError};
use sealway_drop::link::{Connection, OwnedRecord, Reader};
use sealway_drop::wire::kind;
use sealway_drop::{Error, lock};

/// The reading end of a connection, and of direct ones beside it. Dropping it ends the connection; reads under way fail.
pub struct Link {
    reads: Arc<Reads>,
    line: Arc<Line>,
}

/// Reads under way, by whatever connection. What a direct one leaves unanswered is asked again by another: a read changes nothing.
#[derive(Default)]
pub struct Reads {
    state: Mutex<State>,
    /// Something is to be sent, or it is over.
    work: Condvar,
    pub(crate) pool: Arc<Pool>,
}

#[derive(Default)]
struct State {
    next: u32,
    /// Reads by their tags. Those that were sent stay until they are answered, wanted or not: their number is what the
    /// other end bounds.
    reads: HashMap<u32, Under>,
    unsent: VecDeque<u32>,
    /// The first connection, and direct ones behind it. New reads go by the last.
    ways: Vec<Way>,
    /// How many were left by direct ones so far.
    left: u64,
    lost: bool,
}

/// A connection.
struct Way {
    number: u32,
    /// Reads that were sent by it and not answered.
    sent: usize,
    cancels: Vec<u32>,
}

/// A read under way.
struct Under {
    read: Read,
    deadline: Instant,
    /// By which connection it was sent.
    way: Option<u32>,
    /// Nobody wants the answer once this is gone.
    done: Option<ReadDone>,
    hook: Option<Hook>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.reads.lose();
        self.line.end();
    }
}

impl Link {
    /// Begins to read by this connection.
    ///
    /// # Errors
    /// [`Error::Network`] if the system gives no second handle to the stream or no threads.
    pub fn start(connection: Connection) -> Result<Self, Error> {
        let (line, mut reader) = Line::new(connection)?;
        let link = Self {
            reads: Arc::default(),
            line: Arc::new(line),
        };
        link.reads.begin(link.line.number);
        let (reads, line) = (link.reads(), link.line.clone());
        spawn("bulk-send", move || {
            if let Err(error) = reads.send(&line).and_then(|()| line.writer().close()) {
                tracing::debug!(%error, "sending reads");
            }
            reads.lose();
        })?;
        let (reads, line) = (link.reads(), link.line.clone());
        spawn("bulk-take", move || {
            match take(&reads, &mut reader, line.number) {
                Err(error) if !reads.is_lost() => tracing::warn!(%error, "content comes by the slow way from now on"),
                _ => {}
            }
            reads.lose();
            // The other end is not to wait for an end that will not come.
            line.end();
        })?;
        Ok(link)
    }

    /// What may go by direct connections too.
    pub fn reads(&self) -> Arc<Reads> {
        self.reads.clone()
    }

    /// Whether the connection has ended; reads then fail with [`TreeError::Lost`].
    pub fn is_lost(&self) -> bool {
        self.reads.is_lost()
    }

    /// As [`RemoteTree::submit`](crate::tree::RemoteTree::submit), of [`MAX_LEN`](message::MAX_LEN) bytes at most. Never blocks.
    pub fn submit(&self, request: ReadRequest, done: ReadDone) {
        let ReadRequest {
            handle,
            offset,
            len,
            deadline,
            cancel,
        } = request;
        let read = Read { handle, offset, len };
        if Read::parse(&read.encode()).is_none() {
            return done(Err(TreeError::Invalid("too long a read")));
        }
        let mut state = lock(&self.reads.state);
        if state.lost {
            drop(state);
            return done(Err(TreeError::Lost));
        }
        while state.reads.contains_key(&state.next) {
            state.next = state.next.wrapping_add(1);
        }
        let tag = state.next;
        state.next = tag.wrapping_add(1);
        state.reads.insert(
            tag,
            Under {
                read,
                deadline,
                way: None,
                done: Some(done),
                hook: None,
            },
        );
        state.unsent.push_back(tag);
        drop(state);
        let reads = Arc::downgrade(&self.reads);
        let hook = cancel.on_cancel(move || give_up(&reads, tag));
        // It may be over already, and the tag even another's; a hook that calls that off is not to stay.
        let mut state = lock(&self.reads.state);
        let late = match state.reads.get_mut(&tag) {
            Some(under) if under.done.is_some() && under.hook.is_none() => under.hook.replace(hook),
            _ => Some(hook),
        };
        drop(state);
        drop(late);
        self.reads.work.notify_all();
    }
}

/// The caller has called it off.
fn give_up(reads: &Weak<Reads>, tag: u32) {
    let Some(reads) = reads.upgrade() else { return };
    let over = lock(&reads.state).abandon(tag);
    reads.work.notify_all();
    if let Some((done, _)) = over {
        done(Err(TreeError::Cancelled));
    }
}

/// What is told and dropped outside the lock.
type Over = (ReadDone, Option<Hook>);

impl State {
    fn way(&mut self, number: u32) -> Option<&mut Way> {
        self.ways.iter_mut().find(|way| way.number == number)
    }

    /// Nobody waits for this one any more.
    fn abandon(&mut self, tag: u32) -> Option<Over> {
        let under = self.reads.get_mut(&tag)?;
        let over = (under.done.take()?, under.hook.take());
        match under.way {
            Some(number) => {
                if let Some(way) = self.way(number) {
                    way.cancels.push(tag);
                }
            }
            None => {
                self.reads.remove(&tag);
                self.unsent.retain(|unsent| *unsent != tag);
            }
        }
        Some(over)
    }

    /// Those whose time is over.
    fn late(&mut self, now: Instant) -> Vec<Over> {
        let late = self.reads.iter().filter(|(_, under)| under.deadline <= now);
        let late: Vec<u32> = late.map(|(tag, _)| *tag).collect();
        late.into_iter().filter_map(|tag| self.abandon(tag)).collect()
    }

    /// What a connection is to send: what was called off, and reads. `None` if it is not there any more.
    fn due(&mut self, number: u32) -> Option<(Vec<u32>, Vec<(u32, Read)>)> {
        let Self {
            ways, reads, unsent, ..
        } = self;
        let carries = ways.last().is_some_and(|way| way.number == number);
        let way = ways.iter_mut().find(|way| way.number == number)?;
        let mut due = Vec::new();
        while carries && way.sent < OUTSTANDING {
            let Some(tag) = unsent.pop_front() else { break };
            if let Some(under) = reads.get_mut(&tag) {
                under.way = Some(number);
                due.push((tag, under.read));
                way.sent += 1;
            }
        }
        Some((std::mem::take(&mut way.cancels), due))
    }
}

/// How long the connection is silent at most: relays end those that are silent for long.
const BEAT: Duration = Duration::from_secs(60);

/// Longest time between two looks at deadlines.
const LOOK: Duration = Duration::from_secs(1);

impl Reads {
    fn is_lost(&self) -> bool {
        lock(&self.state).lost
    }

    /// Reads go by this connection from now on.
    pub(crate) fn begin(&self, number: u32) {
        lock(&self.state).ways.push(Way {
            number,
            sent: 0,
            cancels: Vec::new(),
        });
        self.work.notify_all();
    }

    /// Whether an answer is waited for by a connection.
    pub(crate) fn waits(&self, number: u32) -> bool {
        let state = lock(&self.state);
        state.ways.iter().any(|way| way.number == number && way.sent > 0)
    }

    /// How many reads direct connections have left unanswered so far. They are asked for again.
    pub fn left(&self) -> u64 {
        lock(&self.state).left
    }

    /// Nothing comes by a direct connection any more: what it leaves unanswered goes by another, before what is new.
    pub(crate) fn over(&self, number: u32) {
        let mut state = lock(&self.state);
        state.ways.retain(|way| way.number != number);
        let mut again = Vec::new();
        state.reads.retain(|tag, under| {
            let left = under.way == Some(number);
            if left && under.done.is_some() {
                under.way = None;
                again.push(*tag);
            }
            !left || under.done.is_some()
        });
        state.left += again.len() as u64;
        again.into_iter().for_each(|tag| state.unsent.push_front(tag));
        drop(state);
        self.work.notify_all();
    }

    /// It is over: everything that waits fails.
    fn lose(&self) {
        let reads = {
            let mut state = lock(&self.state);
            state.lost = true;
            state.unsent.clear();
            state.ways.clear();
            std::mem::take(&mut state.reads)
        };
        self.work.notify_all();
        for under in reads.into_values() {
            if let Some(done) = under.done {
                done(Err(TreeError::Lost));
            }
        }
    }

    /// What an answer is for; `None` once all is over and nothing is waited for. A wrong number, or an answer given twice, breaks the
    /// protocol.
    fn answered(&self, tag: u32, number: u32) -> Result<Option<Under>, Error> {
        const NOTHING: Error = Error::Protocol("an answer to nothing that was asked");
        let mut state = lock(&self.state);
        if state.lost {
            return Ok(None);
        }
        if state.reads.get(&tag).is_none_or(|under| under.way != Some(number)) {
            return Err(NOTHING);
        }
        let way = state.way(number).ok_or(NOTHING)?;
        let full = way.sent == OUTSTANDING;
        way.sent = way.sent.saturating_sub(1);
        way.cancels.retain(|cancel| *cancel != tag);
        let under = state.reads.remove(&tag);
        drop(state);
        if full {
            self.work.notify_all();
        }
        under.map(Some).ok_or(NOTHING)
    }

    /// Sends by a connection until it is over.
    pub(crate) fn send(&self, line: &Line) -> Result<(), Error> {
        let (mut looked, mut spoken) = (Instant::now(), Instant::now());
        let mut state = lock(&self.state);
        loop {
            let now = Instant::now();
            if now.saturating_duration_since(looked) >= LOOK {
                looked = now;
                let late = state.late(now);
                if !late.is_empty() {
                    drop(state);
                    late.into_iter().for_each(|(done, _)| done(Err(TreeError::Timeout)));
                    state = lock(&self.state);
                    continue;
                }
            }
            let Some((cancels, reads)) = state.due(line.number) else {
                return Ok(());
            };
            let idle = spoken.elapsed() >= BEAT;
            if cancels.is_empty() && reads.is_empty() && !idle {
                let wait = if state.reads.is_empty() { BEAT } else { LOOK };
                let woken = self.work.wait_timeout(state, wait);
                state = woken.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            drop(state);
            spoken = Instant::now();
            let mut writer = line.writer();
            if idle {
                writer.push(kind::PULSE, 0, &[0])?;
            }
            for tag in cancels {
                writer.push(kind::CANCEL, tag, &[0])?;
            }
            for (tag, read) in reads {
                writer.push(kind::READ, tag, &read.encode())?;
            }
            writer.flush()?;
            drop(writer);
            state = lock(&self.state);
        }
    }

    /// An answer came by a connection.
    pub(crate) fn came(&self, record: OwnedRecord, number: u32) -> Result<(), Error> {
        let OwnedRecord {
            kind,
            stream,
            buffer,
            payload,
        } = record;
        let Some(under) = self.answered(stream, number)? else {
            self.pool.give(buffer);
            return Ok(());
        };
        if kind == kind::REFUSED {
            let code = match buffer[payload] {
                [code] => code,
                _ => 0,
            };
            self.pool.give(buffer);
            under.fail(message::error(code));
            return Ok(());
        }
        let content = payload.start + CONTENT_HEADER..payload.end;
        let (size, version) = match message::parse_content(&buffer[payload]) {
            Some(header) if content.len() <= under.read.len as usize => header,
            _ => {
                under.fail(TreeError::Protocol("not the content that was asked for"));
                return Err(Error::Protocol("not the content that was asked for"));
            }
        };
        let Some(done) = under.done else {
            self.pool.give(buffer);
            return Ok(());
        };
        let chunk = Chunk {
            data: self.pool.share(buffer, content),
            size,
            version,
        };
        done(chunk.checked(under.read.offset, under.read.len));
        Ok(())
    }
}

fn take(reads: &Reads, reader: &mut Reader, number: u32) -> Result<(), Error> {
    while let Some(record) = reader.next_owned(|_| reads.pool.take())? {
        match record.kind {
            kind::CONTENT | kind::REFUSED => reads.came(record, number)?,
            kind::PULSE => reads.pool.give(record.buffer),
            _ => return Err(Error::Protocol("a record that is no answer")),
        }
    }
    Ok(())
}

impl Under {
    fn fail(self, error: TreeError) {
        if let Some(done) = self.done {
            done(Err(error));
        }
    }
}
