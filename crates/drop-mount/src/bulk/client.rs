//! The side that mounts: one thread sends reads and looks after their time, one takes the answers.

use std::collections::{HashMap, VecDeque};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use super::OUTSTANDING;
use super::message::{self, CONTENT_HEADER, MAX_LEN, Read};
use super::pool::Pool;
use crate::tree::{
    Attr, Call, Chunk, EventSink, Extent, Hook, Opened, Page, ReadDone, ReadRequest, RemoteTree, Space, Subscription,
    TreeError, TreePath,
};
use sealway_drop::link::{Connection, OwnedRecord, Reader, Writer};
use sealway_drop::wire::kind;
use sealway_drop::{Error, lock};

/// A tree whose files are read by a connection of their own, and which is another tree for everything else.
///
/// Should that connection be lost, what was being read fails, and reads go by the other tree from then on.
pub struct BulkTree<T> {
    control: T,
    link: Link,
}

impl<T: RemoteTree> BulkTree<T> {
    /// Reads of `control`, from now on by `connection`.
    ///
    /// # Errors
    /// [`Error::Network`] if the system gives no second handle to the stream or no threads.
    pub fn new(control: T, connection: Connection) -> Result<Self, Error> {
        Ok(Self {
            control,
            link: Link::start(connection)?,
        })
    }
}

impl<T: RemoteTree> RemoteTree for BulkTree<T> {
    fn attr(&self, path: &TreePath, call: &Call) -> Result<Attr, TreeError> {
        self.control.attr(path, call)
    }

    fn list(&self, path: &TreePath, cursor: u64, limit: usize, call: &Call) -> Result<Page, TreeError> {
        self.control.list(path, cursor, limit, call)
    }

    fn read_link(&self, path: &TreePath, call: &Call) -> Result<Vec<u8>, TreeError> {
        self.control.read_link(path, call)
    }

    fn open(&self, path: &TreePath, call: &Call) -> Result<Opened, TreeError> {
        self.control.open(path, call)
    }

    fn extent(&self, handle: u64, offset: u64, call: &Call) -> Result<Extent, TreeError> {
        self.control.extent(handle, offset, call)
    }

    fn space(&self, call: &Call) -> Result<Space, TreeError> {
        self.control.space(call)
    }

    fn submit(&self, request: ReadRequest, done: ReadDone) {
        if request.len as usize > MAX_LEN || self.link.is_lost() {
            return self.control.submit(request, done);
        }
        self.link.submit(request, done);
    }

    fn close(&self, handle: u64) {
        self.control.close(handle);
    }

    fn subscribe(&self, sink: EventSink) -> Result<Subscription, TreeError> {
        self.control.subscribe(sink)
    }

    fn is_alive(&self) -> bool {
        self.control.is_alive()
    }
}

/// The reading end of a connection. Dropping it ends the connection; reads under way fail.
pub struct Link {
    shared: Arc<Shared>,
    stream: TcpStream,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Something is to be sent, or it is over.
    work: Condvar,
    pool: Arc<Pool>,
}

#[derive(Default)]
struct State {
    next: u32,
    /// Reads by their tags. Those that were sent stay until they are answered, wanted or not: their number is what the
    /// other end bounds.
    reads: HashMap<u32, Under>,
    unsent: VecDeque<u32>,
    cancels: Vec<u32>,
    sent: usize,
    lost: bool,
}

/// A read under way.
struct Under {
    read: Read,
    deadline: Instant,
    sent: bool,
    /// Nobody wants the answer once this is gone.
    done: Option<ReadDone>,
    hook: Option<Hook>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.shared.lose();
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

impl Link {
    /// Begins to read by this connection.
    ///
    /// # Errors
    /// [`Error::Network`] if the system gives no second handle to the stream or no threads.
    pub fn start(connection: Connection) -> Result<Self, Error> {
        let stream = connection.stream()?;
        let Connection {
            mut reader, mut writer, ..
        } = connection;
        let link = Self {
            shared: Arc::default(),
            stream,
        };
        let shared = Arc::clone(&link.shared);
        spawn("bulk-send", move || {
            if let Err(error) = send(&shared, &mut writer) {
                tracing::debug!(%error, "sending reads");
            }
            shared.lose();
        })?;
        let (shared, stream) = (Arc::clone(&link.shared), link.stream.try_clone());
        spawn("bulk-take", move || {
            match take(&shared, &mut reader) {
                Err(error) if !shared.is_lost() => tracing::warn!(%error, "content comes by the slow way from now on"),
                _ => {}
            }
            shared.lose();
            // The other end is not to wait for an end that will not come.
            if let Ok(stream) = stream {
                let _ = stream.shutdown(Shutdown::Both);
            }
        })?;
        Ok(link)
    }

    /// Whether the connection has ended; reads then fail with [`TreeError::Lost`].
    pub fn is_lost(&self) -> bool {
        self.shared.is_lost()
    }

    /// As [`RemoteTree::submit`], of [`MAX_LEN`] bytes at most. Never blocks.
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
        let mut state = lock(&self.shared.state);
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
                sent: false,
                done: Some(done),
                hook: None,
            },
        );
        state.unsent.push_back(tag);
        drop(state);
        let shared = Arc::downgrade(&self.shared);
        let hook = cancel.on_cancel(move || give_up(&shared, tag));
        // It may be over already, and the tag even another's; a hook that calls that off is not to stay.
        let mut state = lock(&self.shared.state);
        let late = match state.reads.get_mut(&tag) {
            Some(under) if under.done.is_some() && under.hook.is_none() => under.hook.replace(hook),
            _ => Some(hook),
        };
        drop(state);
        drop(late);
        self.shared.work.notify_one();
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread.map(drop).map_err(Error::network("starting threads"))
}

/// The caller has called it off.
fn give_up(shared: &Weak<Shared>, tag: u32) {
    let Some(shared) = shared.upgrade() else { return };
    let over = lock(&shared.state).abandon(tag);
    shared.work.notify_one();
    if let Some((done, _)) = over {
        done(Err(TreeError::Cancelled));
    }
}

/// What is told and dropped outside the lock.
type Over = (ReadDone, Option<Hook>);

impl State {
    /// Nobody waits for this one any more.
    fn abandon(&mut self, tag: u32) -> Option<Over> {
        let under = self.reads.get_mut(&tag)?;
        let over = (under.done.take()?, under.hook.take());
        if under.sent {
            self.cancels.push(tag);
        } else {
            self.reads.remove(&tag);
            self.unsent.retain(|unsent| *unsent != tag);
        }
        Some(over)
    }
}

impl Shared {
    fn is_lost(&self) -> bool {
        lock(&self.state).lost
    }

    /// It is over: everything that waits fails.
    fn lose(&self) {
        let reads = {
            let mut state = lock(&self.state);
            state.lost = true;
            state.unsent.clear();
            state.cancels.clear();
            std::mem::take(&mut state.reads)
        };
        self.work.notify_all();
        for under in reads.into_values() {
            if let Some(done) = under.done {
                done(Err(TreeError::Lost));
            }
        }
    }

    /// What an answer is for. A wrong number, or an answer given twice, breaks the protocol.
    fn answered(&self, tag: u32) -> Result<Under, Error> {
        let mut state = lock(&self.state);
        if !state.reads.get(&tag).is_some_and(|under| under.sent) {
            return Err(Error::Protocol("an answer to nothing that was asked"));
        }
        let full = state.sent == OUTSTANDING;
        state.sent = state.sent.saturating_sub(1);
        state.cancels.retain(|cancel| *cancel != tag);
        let under = state.reads.remove(&tag);
        drop(state);
        if full {
            self.work.notify_one();
        }
        under.ok_or(Error::Protocol("an answer to nothing that was asked"))
    }
}

/// How long the connection is silent at most: relays end those that are silent for long.
const BEAT: Duration = Duration::from_secs(60);

/// Longest time between two looks at deadlines.
const LOOK: Duration = Duration::from_secs(1);

fn send(shared: &Shared, writer: &mut Writer) -> Result<(), Error> {
    let (mut looked, mut spoken) = (Instant::now(), Instant::now());
    let mut state = lock(&shared.state);
    while !state.lost {
        let now = Instant::now();
        if now.saturating_duration_since(looked) >= LOOK {
            looked = now;
            let late = state
                .reads
                .iter()
                .filter(|(_, under)| under.deadline <= now)
                .map(|(tag, _)| *tag);
            let late: Vec<u32> = late.collect();
            let late: Vec<Over> = late.into_iter().filter_map(|tag| state.abandon(tag)).collect();
            if !late.is_empty() {
                drop(state);
                late.into_iter().for_each(|(done, _)| done(Err(TreeError::Timeout)));
                state = lock(&shared.state);
                continue;
            }
        }
        let cancels = std::mem::take(&mut state.cancels);
        let mut reads = Vec::new();
        while state.sent < OUTSTANDING {
            let Some(tag) = state.unsent.pop_front() else { break };
            if let Some(under) = state.reads.get_mut(&tag) {
                under.sent = true;
                reads.push((tag, under.read));
                state.sent += 1;
            }
        }
        let idle = spoken.elapsed() >= BEAT;
        if cancels.is_empty() && reads.is_empty() && !idle {
            let wait = if state.reads.is_empty() { BEAT } else { LOOK };
            let woken = shared.work.wait_timeout(state, wait);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        drop(state);
        spoken = Instant::now();
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
        state = lock(&shared.state);
    }
    drop(state);
    writer.close()
}

fn take(shared: &Shared, reader: &mut Reader) -> Result<(), Error> {
    while let Some(OwnedRecord {
        kind,
        stream,
        buffer,
        payload,
    }) = reader.next_owned(|_| shared.pool.take())?
    {
        match kind {
            kind::CONTENT => {
                let under = shared.answered(stream)?;
                let content = payload.start + CONTENT_HEADER..payload.end;
                let (size, version) = match message::parse_content(&buffer[payload]) {
                    Some(header) if content.len() <= under.read.len as usize => header,
                    _ => {
                        under.fail(TreeError::Protocol("not the content that was asked for"));
                        return Err(Error::Protocol("not the content that was asked for"));
                    }
                };
                let Some(done) = under.done else {
                    shared.pool.give(buffer);
                    continue;
                };
                let chunk = Chunk {
                    data: shared.pool.share(buffer, content),
                    size,
                    version,
                };
                done(chunk.checked(under.read.offset, under.read.len));
            }
            kind::REFUSED => {
                let under = shared.answered(stream)?;
                let code = match buffer[payload] {
                    [code] => code,
                    _ => 0,
                };
                shared.pool.give(buffer);
                under.fail(message::error(code));
            }
            kind::PULSE => shared.pool.give(buffer),
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
