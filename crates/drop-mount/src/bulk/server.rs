//! The serving side: one thread hears, one reads and sends.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::OUTSTANDING;
use super::message::{self, CONTENT_HEADER, Read};
use crate::grpc::Handles;
use crate::line::Line;
use crate::tree::{Call, RemoteTree, TreeError};
use sealway_drop::link::{Connection, Reader};
use sealway_drop::wire::kind;
use sealway_drop::{Error, lock};

/// How long one read may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Answers the reads of the other end, of the files it has open, until it is gone. Blocks.
///
/// # Errors
/// [`Error::Protocol`] if it breaks the rules, [`Error::Network`] and [`Error::Session`] if the connection fails.
pub fn serve(connection: Connection, tree: &dyn RemoteTree, handles: &Handles) -> Result<(), Error> {
    let (line, mut reader) = Line::new(connection)?;
    let requests = Requests::default();
    std::thread::scope(|scope| {
        let answering = scope.spawn(|| {
            let result = answer(&line, &requests, tree, handles, None);
            if result.is_err() {
                // Wakes the thread that hears.
                line.end();
            }
            result
        });
        let heard = listen(&mut reader, &requests);
        requests.end();
        if heard.is_err() {
            line.end();
        }
        let answered = answering
            .join()
            .unwrap_or(Err(Error::Protocol("a thread of this end failed")));
        heard.and(answered)
    })
}

/// Reads that wait. Nothing is held for them but what they ask for.
#[derive(Default)]
pub(crate) struct Requests {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Waiting>,
    ended: bool,
}

struct Waiting {
    tag: u32,
    read: Read,
    cancelled: bool,
}

impl Waiting {
    /// Makes the answer: what the file holds, behind its header. Gives the length of both.
    fn read_into(&self, room: &mut [u8], tree: &dyn RemoteTree, handles: &Handles) -> Result<usize, TreeError> {
        if self.cancelled {
            return Err(TreeError::Cancelled);
        }
        let Read { handle, offset, .. } = self.read;
        handles.check(handle)?;
        let (header, bytes) = room.split_at_mut(CONTENT_HEADER);
        let filled = tree.read_into(handle, offset, bytes, &Call::within(PATIENCE))?;
        header.copy_from_slice(&message::content_header(filled.size, filled.version));
        Ok(CONTENT_HEADER + filled.len)
    }
}

impl Requests {
    /// A record of the end that mounts.
    pub(crate) fn hear(&self, kind: u8, tag: u32, payload: &[u8]) -> Result<(), Error> {
        if kind == kind::CANCEL {
            self.cancel(tag);
            return Ok(());
        }
        let read = Read::parse(payload).ok_or(Error::Protocol("a read that cannot be read"))?;
        self.add(tag, read)
    }

    fn add(&self, tag: u32, read: Read) -> Result<(), Error> {
        let mut state = lock(&self.state);
        // One that is being answered has left the queue, so this never counts more than the other end does.
        if state.waiting.len() >= OUTSTANDING {
            return Err(Error::Protocol("too many reads at once"));
        }
        if state.waiting.iter().any(|waiting| waiting.tag == tag) {
            return Err(Error::Protocol("two reads under one number"));
        }
        state.waiting.push_back(Waiting {
            tag,
            read,
            cancelled: false,
        });
        self.more.notify_one();
        Ok(())
    }

    /// Nothing happens to a read that is not there any more: its answer may have been on the way already.
    fn cancel(&self, tag: u32) {
        let mut state = lock(&self.state);
        if let Some(waiting) = state.waiting.iter_mut().find(|waiting| waiting.tag == tag) {
            waiting.cancelled = true;
        }
    }

    /// Nobody wants answers any more.
    pub(crate) fn end(&self) {
        lock(&self.state).ended = true;
        self.more.notify_all();
    }

    /// The next read; `None` once nobody wants answers any more.
    fn next(&self) -> Option<Waiting> {
        let mut state = lock(&self.state);
        while state.waiting.is_empty() && !state.ended {
            state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.ended { None } else { state.waiting.pop_front() }
    }
}

fn listen(reader: &mut Reader, requests: &Requests) -> Result<(), Error> {
    while let Some(record) = reader.next()? {
        match record.kind {
            kind::READ | kind::CANCEL => requests.hear(record.kind, record.stream, record.payload)?,
            kind::PULSE => {}
            _ => return Err(Error::Protocol("a record that is no read")),
        }
    }
    Ok(())
}

/// Answers what waits by this connection, until nobody wants it any more.
///
/// Files are read into the record itself, which holds the sending side meanwhile. Where others send by it too, give `beside`: files are
/// read into that first, so a slow disk holds up nobody else.
pub(crate) fn answer(
    line: &Line,
    requests: &Requests,
    tree: &dyn RemoteTree,
    handles: &Handles,
    mut beside: Option<Vec<u8>>,
) -> Result<(), Error> {
    while let Some(waiting) = requests.next() {
        let (tag, room) = (waiting.tag, CONTENT_HEADER + waiting.read.len as usize);
        let read = beside.as_mut().map(|buffer| {
            if buffer.len() < room {
                buffer.resize(room, 0);
            }
            let len = waiting.read_into(&mut buffer[..room], tree, handles)?;
            Ok::<&[u8], TreeError>(&buffer[..len])
        });
        let mut writer = line.writer();
        let sent = match read {
            Some(Ok(content)) => writer.push(kind::CONTENT, tag, content).map_err(Failure::Over),
            Some(Err(error)) => Err(Failure::File(error)),
            None => writer
                .record(kind::CONTENT, tag, room, |room| {
                    waiting.read_into(room, tree, handles).map_err(Failure::File)
                })
                .map(drop),
        };
        match sent {
            Ok(()) => {}
            Err(Failure::File(error)) => writer.push(kind::REFUSED, tag, &[message::code(error)])?,
            Err(Failure::Over(error)) => return Err(error),
        }
        writer.flush()?;
    }
    Ok(())
}

/// Why a record was not made.
enum Failure {
    /// Nothing came of the read; the connection goes on.
    File(TreeError),
    /// The connection is over.
    Over(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Over(error)
    }
}
