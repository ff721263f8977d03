//! The side that serves: one thread hears, does what it hears, and answers.
//!
//! What the other end sends faster than it is done waits in the connection, so nothing is held here but one message.

use std::net::Shutdown;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::message::{self, WriteHeader};
use crate::grpc::{Handles, ServeOptions};
use crate::local::{LocalTree, Own};
use crate::tree::{Change, Changed, Lock, Place, RemoteTree, TreeError};
use sealway_drop::link::{Connection, Reader, Writer};
use sealway_drop::wire::kind;
use sealway_drop::{Error, lock};

/// Files that are brought to the disk beside what follows, at a time; further ones hold up what follows.
const SYNCS: usize = 8;

/// Does what the other end asks for, until it is gone. What it opens is its own on the other connections of the session too, by
/// `handles`; it gets no news of what it does here. Blocks.
///
/// # Errors
/// [`Error::Protocol`] if it breaks the rules, [`Error::Network`] and [`Error::Session`] if the connection fails.
pub fn serve(connection: Connection, tree: Arc<LocalTree>, own: &Own, handles: &Handles) -> Result<(), Error> {
    let stream = connection.stream()?;
    let Connection { mut reader, writer, .. } = connection;
    let serving = Serving {
        tree,
        own,
        handles,
        writer: Mutex::new(writer),
        syncs: AtomicUsize::new(0),
    };
    let result = std::thread::scope(|scope| serving.run(&mut reader, scope));
    let _ = stream.shutdown(Shutdown::Both);
    // The service of the session may have ended before, and closed what was open by then.
    for handle in handles.take() {
        serving.tree.close(handle);
    }
    result
}

struct Serving<'a> {
    tree: Arc<LocalTree>,
    own: &'a Own,
    handles: &'a Handles,
    writer: Mutex<Writer>,
    syncs: AtomicUsize,
}

impl Serving<'_> {
    fn run<'scope>(
        &'scope self,
        reader: &mut Reader,
        scope: &'scope std::thread::Scope<'scope, '_>,
    ) -> Result<(), Error> {
        while let Some(record) = reader.next()? {
            let tag = record.stream;
            match record.kind {
                kind::WRITE => {
                    let write = WriteHeader::parse(record.payload);
                    let (header, data) = write.ok_or(Error::Protocol("a write that cannot be read"))?;
                    self.answer(tag, &self.write(header, data))?;
                }
                kind::CHANGE => {
                    let change = message::parse(record.payload);
                    let change = change.ok_or(Error::Protocol("a change that cannot be read"))?;
                    let change = match change {
                        Ok(change) => change,
                        Err(error) => {
                            self.answer(tag, &Err(error))?;
                            continue;
                        }
                    };
                    let beside = matches!(change, Change::Sync(..)) && self.syncs.load(Ordering::SeqCst) < SYNCS;
                    if !beside {
                        self.answer(tag, &self.change(&change))?;
                        continue;
                    }
                    self.syncs.fetch_add(1, Ordering::SeqCst);
                    let work = move || {
                        let answer = self.change(&change);
                        self.syncs.fetch_sub(1, Ordering::SeqCst);
                        // Who hears gets to know it too.
                        let _ = self.answer(tag, &answer);
                    };
                    let thread = std::thread::Builder::new().name("bring-to-disk".into());
                    if thread.spawn_scoped(scope, work).is_err() {
                        self.syncs.fetch_sub(1, Ordering::SeqCst);
                        self.answer(tag, &Err(TreeError::Limit))?;
                    }
                }
                kind::PULSE => {}
                _ => return Err(Error::Protocol("a record that is no change")),
            }
        }
        Ok(())
    }

    fn answer(&self, tag: u32, answer: &Result<Changed, TreeError>) -> Result<(), Error> {
        let payload = message::encode_answer(answer);
        let mut writer = lock(&self.writer);
        writer.push(kind::CHANGED, tag, &payload)?;
        writer.flush()
    }

    fn write(&self, header: WriteHeader, data: &[u8]) -> Result<Changed, TreeError> {
        self.owns(header.handle)?;
        let wrote = self.own.put(header.handle, header.offset, header.append, data);
        wrote.map(Changed::Attr)
    }

    fn change(&self, change: &Change) -> Result<Changed, TreeError> {
        match change {
            Change::Look(handle)
            | Change::Set(Place::Handle(handle), _)
            | Change::Sync(Place::Handle(handle), _)
            | Change::Allocate { handle, .. }
            | Change::Lock(Lock { handle, .. })
            | Change::TestLock(Lock { handle, .. }) => self.owns(*handle)?,
            _ => {}
        }
        let changed = self.own.apply(change)?;
        if let Changed::Opened(opened, _) = &changed
            && !self.handles.add(opened.handle, ServeOptions::default().handles)
        {
            self.own.closed(opened.handle);
            self.tree.close(opened.handle);
            return Err(TreeError::Limit);
        }
        Ok(changed)
    }

    fn owns(&self, handle: u64) -> Result<(), TreeError> {
        match self.handles.contains(handle) {
            true => Ok(()),
            false => Err(TreeError::Stale),
        }
    }
}
