//! The side that mounts: one thread sends, one takes the answers.

use std::collections::{HashMap, VecDeque};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::message::{self, WRITE_HEADER, WriteHeader};
use crate::tree::{
    Attr, Call, Change, Changed, EventSink, Extent, MAX_WRITE, Opened, Page, ReadDone, ReadRequest, RemoteTree, Space,
    Subscription, TreeError, TreePath, WriteDone, WriteRequest,
};
use sealway_drop::link::{Connection, Reader, Writer};
use sealway_drop::wire::kind;
use sealway_drop::{Error, lock};

/// A tree that is changed by a connection of its own, and which is another tree for everything else.
///
/// Should that connection be lost, what waits for answers fails with [`TreeError::Lost`], and so does everything from then on.
pub struct ChangingTree<T> {
    control: Arc<T>,
    shared: Arc<Shared>,
    stream: TcpStream,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Something is to be sent, or it is over.
    work: Condvar,
}

#[derive(Default)]
struct State {
    next: u32,
    waiting: HashMap<u32, Done>,
    unsent: VecDeque<(u32, Message)>,
    lost: bool,
}

type Done = Box<dyn FnOnce(Result<Changed, TreeError>) + Send>;

enum Message {
    Change(Vec<u8>),
    Write(WriteHeader, Bytes),
}

impl<T: RemoteTree> ChangingTree<T> {
    /// Changes of what `control` is otherwise, from now on by `connection`.
    ///
    /// # Errors
    /// [`Error::Network`] if the system gives no second handle to the stream or no threads.
    pub fn new(control: T, connection: Connection) -> Result<Self, Error> {
        let stream = connection.stream()?;
        let Connection {
            mut reader, mut writer, ..
        } = connection;
        let tree = Self {
            control: Arc::new(control),
            shared: Arc::default(),
            stream,
        };
        let shared = Arc::clone(&tree.shared);
        spawn("change-send", move || {
            if let Err(error) = send(&shared, &mut writer) {
                tracing::debug!(%error, "sending changes");
            }
            shared.lose();
        })?;
        let (shared, stream) = (Arc::clone(&tree.shared), tree.stream.try_clone());
        spawn("change-take", move || {
            if let Err(error) = take(&shared, &mut reader)
                && !shared.is_lost()
            {
                tracing::warn!(%error, "the connection for changes is lost");
            }
            shared.lose();
            // The other end is not to wait for an end that will not come.
            if let Ok(stream) = stream {
                let _ = stream.shutdown(Shutdown::Both);
            }
        })?;
        Ok(tree)
    }
}

impl<T> Drop for ChangingTree<T> {
    fn drop(&mut self) {
        self.shared.lose();
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread.map(drop).map_err(Error::network("starting threads"))
}

impl<T: RemoteTree> RemoteTree for ChangingTree<T> {
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
        self.control.submit(request, done);
    }

    fn close(&self, handle: u64) {
        self.control.close(handle);
    }

    fn subscribe(&self, sink: EventSink) -> Result<Subscription, TreeError> {
        self.control.subscribe(sink)
    }

    fn change(&self, change: &Change, call: &Call) -> Result<Changed, TreeError> {
        call.left()?;
        let slot: Arc<Slot> = Arc::default();
        let (answer, control) = (Arc::clone(&slot), Arc::downgrade(&self.control));
        let done = move |result| {
            // What was opened for nobody is closed again.
            if let Err(Ok(Changed::Opened(opened, _))) = answer.put(result)
                && let Some(control) = control.upgrade()
            {
                control.close(opened.handle);
            }
        };
        self.shared
            .submit(Message::Change(message::encode(change)), Box::new(done));
        let cancelled = Arc::clone(&slot);
        let _hook = call.cancel.on_cancel(move || cancelled.give_up());
        slot.wait(call)
    }

    fn write(&self, request: WriteRequest, done: WriteDone) {
        let WriteRequest {
            handle,
            offset,
            append,
            data,
        } = request;
        if data.is_empty() || data.len() > MAX_WRITE {
            return done(Err(TreeError::Invalid("too long a write, or none")));
        }
        let header = WriteHeader { handle, offset, append };
        let done = move |result: Result<Changed, TreeError>| done(result.and_then(Changed::attr));
        self.shared.submit(Message::Write(header, data), Box::new(done));
    }

    fn is_alive(&self) -> bool {
        self.control.is_alive() && !self.shared.is_lost()
    }
}

/// Where a call waits.
#[derive(Default)]
struct Slot {
    state: Mutex<Waiting>,
    ready: Condvar,
}

#[derive(Default)]
struct Waiting {
    answer: Option<Result<Changed, TreeError>>,
    gone: bool,
}

impl Slot {
    /// Gives the answer back if nobody waits for it.
    fn put(&self, result: Result<Changed, TreeError>) -> Result<(), Result<Changed, TreeError>> {
        let mut state = lock(&self.state);
        if state.gone {
            return Err(result);
        }
        state.answer.get_or_insert(result);
        self.ready.notify_all();
        Ok(())
    }

    fn give_up(&self) {
        drop(lock(&self.state));
        self.ready.notify_all();
    }

    fn wait(&self, call: &Call) -> Result<Changed, TreeError> {
        let mut state = lock(&self.state);
        loop {
            if let Some(result) = state.answer.take() {
                return result;
            }
            let left = match call.left() {
                Ok(left) => left,
                Err(error) => {
                    state.gone = true;
                    return Err(error);
                }
            };
            let woken = self.ready.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Shared {
    fn is_lost(&self) -> bool {
        lock(&self.state).lost
    }

    fn submit(&self, message: Message, done: Done) {
        let mut state = lock(&self.state);
        if state.lost {
            drop(state);
            return done(Err(TreeError::Lost));
        }
        while state.waiting.contains_key(&state.next) {
            state.next = state.next.wrapping_add(1);
        }
        let tag = state.next;
        state.next = tag.wrapping_add(1);
        state.waiting.insert(tag, done);
        state.unsent.push_back((tag, message));
        drop(state);
        self.work.notify_one();
    }

    /// It is over: everything that waits fails.
    fn lose(&self) {
        let waiting = {
            let mut state = lock(&self.state);
            state.lost = true;
            state.unsent.clear();
            std::mem::take(&mut state.waiting)
        };
        self.work.notify_all();
        for done in waiting.into_values() {
            done(Err(TreeError::Lost));
        }
    }
}

/// How long the connection is silent at most: relays end those that are silent for long.
const BEAT: Duration = Duration::from_secs(60);

fn send(shared: &Shared, writer: &mut Writer) -> Result<(), Error> {
    let mut spoken = Instant::now();
    let mut state = lock(&shared.state);
    while !state.lost {
        let messages = std::mem::take(&mut state.unsent);
        let idle = spoken.elapsed() >= BEAT;
        if messages.is_empty() && !idle {
            let woken = shared.work.wait_timeout(state, BEAT);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
            continue;
        }
        drop(state);
        spoken = Instant::now();
        if messages.is_empty() {
            writer.push(kind::PULSE, 0, &[0])?;
        }
        for (tag, message) in messages {
            match message {
                Message::Change(payload) => writer.push(kind::CHANGE, tag, &payload)?,
                Message::Write(header, data) => {
                    let len = WRITE_HEADER + data.len();
                    writer.record::<Error>(kind::WRITE, tag, len, |room| {
                        let (front, rest) = room.split_at_mut(WRITE_HEADER);
                        front.copy_from_slice(&header.encode());
                        rest.copy_from_slice(&data);
                        Ok(len)
                    })?;
                }
            }
        }
        writer.flush()?;
        state = lock(&shared.state);
    }
    drop(state);
    writer.close()
}

fn take(shared: &Shared, reader: &mut Reader) -> Result<(), Error> {
    while let Some(record) = reader.next()? {
        match record.kind {
            kind::CHANGED => {
                let done = lock(&shared.state).waiting.remove(&record.stream);
                let done = done.ok_or(Error::Protocol("an answer to nothing that was asked"))?;
                done(message::parse_answer(record.payload));
            }
            kind::PULSE => {}
            _ => return Err(Error::Protocol("a record that is no answer")),
        }
    }
    Ok(())
}
