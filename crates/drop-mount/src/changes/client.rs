//! The side that mounts: of each connection one thread sends, one takes the answers.

use std::sync::{Arc, OnceLock};

use super::asked::{Asked, Message};
use super::message::{self, WriteHeader};
use crate::forward;
use crate::line::{Line, spawn};
use crate::tree::{
    Attr, Call, Change, Changed, EventSink, Extent, MAX_WRITE, Opened, Page, ReadDone, ReadRequest, RemoteTree, Slot,
    Space, Subscription, TreeError, TreePath, WriteDone, WriteRequest,
};
use sealway_drop::Error;
use sealway_drop::link::{Connection, Reader};
use sealway_drop::wire::kind;

/// A tree that is changed by a connection of its own, and which is another tree for everything else.
///
/// Should that connection be lost, what waits for answers fails with [`TreeError::Lost`], and so does everything from then on.
pub struct ChangingTree<T> {
    control: Arc<T>,
    asked: Arc<Asked>,
    line: Arc<Line>,
    /// Whether the other end knows [`Change::LookUp`] and [`Change::Close`]: it may lack them.
    knows_more: OnceLock<bool>,
}

impl<T: RemoteTree> ChangingTree<T> {
    /// Changes of what `control` is otherwise, from now on by `connection`.
    ///
    /// # Errors
    /// [`Error::Network`] if the system gives no second handle to the stream or no threads.
    pub fn new(control: T, connection: Connection) -> Result<Self, Error> {
        let (line, mut reader) = Line::new(connection)?;
        let tree = Self {
            control: Arc::new(control),
            asked: Arc::default(),
            line: Arc::new(line),
            knows_more: OnceLock::new(),
        };
        tree.asked.begin(tree.line.number);
        let (asked, line) = (tree.asked.clone(), tree.line.clone());
        spawn("change-send", move || {
            if let Err(error) = asked.send(&line).and_then(|()| line.writer().close()) {
                tracing::debug!(%error, "sending changes");
            }
            asked.lose();
        })?;
        let (asked, line) = (tree.asked.clone(), tree.line.clone());
        spawn("change-take", move || {
            if let Err(error) = take(&asked, &mut reader, line.number)
                && !asked.is_lost()
            {
                tracing::warn!(%error, "the connection for changes is lost");
            }
            asked.lose();
            // The other end is not to wait for an end that will not come.
            line.end();
        })?;
        Ok(tree)
    }

    /// What may go by direct connections too, where the other end knows changes that come twice.
    pub fn asked(&self) -> Arc<Asked> {
        self.asked.clone()
    }
}

impl<T> Drop for ChangingTree<T> {
    fn drop(&mut self) {
        self.asked.lose();
        self.line.end();
    }
}

impl<T: RemoteTree> RemoteTree for ChangingTree<T> {
    /// By the connection of changes, which takes far fewer steps than a call of the service, unless it would wait there: for
    /// what takes long, or for another look. The service does looks beside each other.
    fn attr(&self, path: &TreePath, call: &Call) -> Result<Attr, TreeError> {
        if self.knows_more.get() == Some(&false) || self.asked.is_busy() {
            return self.control.attr(path, call);
        }
        match self.change(&Change::LookUp(path.clone()), call) {
            Err(TreeError::Unsupported) => {
                let _ = self.knows_more.set(false);
                self.control.attr(path, call)
            }
            told => {
                if matches!(told, Ok(_) | Err(TreeError::NotFound)) {
                    let _ = self.knows_more.set(true);
                }
                told.and_then(Changed::attr)
            }
        }
    }

    forward!(control: list, read_link, open, extent, space, submit, subscribe);

    fn close(&self, handle: u64) {
        if self.knows_more.get() != Some(&true) {
            return self.control.close(handle);
        }
        let payload = message::encode(&Change::Close(handle)).into();
        // One that could not be closed is closed with the connection.
        self.asked.submit(Message::Change(payload), false, Box::new(drop));
    }

    fn change(&self, change: &Change, call: &Call) -> Result<Changed, TreeError> {
        call.left()?;
        let slot = Slot::new();
        let (answer, control) = (Arc::clone(&slot), Arc::downgrade(&self.control));
        let done = move |result| {
            // What was opened for nobody is closed again.
            if let Some(Ok(Changed::Opened(opened, ..))) = answer.put(result)
                && let Some(control) = control.upgrade()
            {
                control.close(opened.handle);
            }
        };
        let message = Message::Change(message::encode(change).into());
        self.asked.submit(message, holds_up_looks(change), Box::new(done));
        let cancelled = Arc::clone(&slot);
        let _hook = call.cancel.on_cancel(move || cancelled.wake());
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
        self.asked.submit(Message::Write(header, data), true, Box::new(done));
    }

    fn is_alive(&self) -> bool {
        self.control.is_alive() && !self.asked.is_lost()
    }
}

/// Whether looks meanwhile are to go by the service: looks themselves, and what may take the disk long, such as giving back the
/// room of a large file.
fn holds_up_looks(change: &Change) -> bool {
    match change {
        Change::LookUp(_) | Change::Sync(..) | Change::Allocate { .. } | Change::Remove(_) | Change::Rename(..) => true,
        Change::Open(_, how) => how.truncate,
        Change::Set(_, setting) => setting.size.is_some(),
        _ => false,
    }
}

fn take(asked: &Asked, reader: &mut Reader, number: u32) -> Result<(), Error> {
    while let Some(record) = reader.next()? {
        match record.kind {
            kind::CHANGED => asked.came(record.stream, record.payload, number)?,
            kind::PULSE => {}
            _ => return Err(Error::Protocol("a record that is no answer")),
        }
    }
    Ok(())
}
