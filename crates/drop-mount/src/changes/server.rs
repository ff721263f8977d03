//! The side that serves: one thread of each connection hears, does what it hears, and answers.
//!
//! What the other end sends faster than it is done waits in the connection, so nothing is held here but one message; of a direct
//! connection, on which more than changes comes, as much as may be unanswered.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Scope;

use super::message::{self, WriteHeader};
use super::order::{Order, Turn};
use crate::grpc::{Handles, ServeOptions};
use crate::line::Line;
use crate::local::{LocalTree, Own};
use crate::tree::{Change, Changed, RemoteTree, TreeError};
use sealway_drop::Error;
use sealway_drop::link::{Connection, Reader};
use sealway_drop::wire::kind;

/// Files that are brought to the disk beside what follows, at a time; further ones hold up what follows.
const SYNCS: usize = 8;

/// Does what the other end asks for, until it is gone. What it opens is its own on the other connections of the session too, by
/// `handles`; it gets no news of what it does here. Blocks.
///
/// # Errors
/// [`Error::Protocol`] if it breaks the rules, [`Error::Network`] and [`Error::Session`] if the connection fails.
pub fn serve(connection: Connection, tree: Arc<LocalTree>, own: Arc<Own>, handles: Arc<Handles>) -> Result<(), Error> {
    Serving::new(tree, own, handles, false).serve(connection)
}

/// Changes of one session.
pub struct Serving {
    tree: Arc<LocalTree>,
    own: Arc<Own>,
    handles: Arc<Handles>,
    /// Where they may come by several connections.
    order: Option<Order>,
    syncs: AtomicUsize,
}

/// What a record asks for.
enum Wanted<'a> {
    Write(WriteHeader, &'a [u8]),
    Change(Change),
    /// What no folder can do.
    Refused(TreeError),
}

impl Wanted<'_> {
    fn parse(kind: u8, payload: &[u8]) -> Result<Wanted<'_>, Error> {
        if kind == kind::WRITE {
            let write = WriteHeader::parse(payload).ok_or(Error::Protocol("a write that cannot be read"))?;
            return Ok(Wanted::Write(write.0, write.1));
        }
        let change = message::parse(payload).ok_or(Error::Protocol("a change that cannot be read"))?;
        Ok(change.map_or_else(Wanted::Refused, Wanted::Change))
    }
}

impl Serving {
    /// `several`: they may come by direct connections too, and are numbered for that.
    pub fn new(tree: Arc<LocalTree>, own: Arc<Own>, handles: Arc<Handles>, several: bool) -> Self {
        Self {
            tree,
            own,
            handles,
            order: several.then(Order::default),
            syncs: AtomicUsize::new(0),
        }
    }

    /// As [`serve`], of the first connection; with it all of the changes end.
    ///
    /// # Errors
    /// As [`serve`].
    pub fn serve(&self, connection: Connection) -> Result<(), Error> {
        let (line, mut reader) = Line::new(connection)?;
        let line = Arc::new(line);
        let result = std::thread::scope(|scope| self.listen(&mut reader, &line, scope));
        line.end();
        self.end();
        if let Some(order) = &self.order {
            order.wait();
        }
        // The service of the session may have ended before, and closed what was open by then.
        for handle in self.handles.take() {
            self.tree.close(handle);
        }
        result
    }

    /// No change is begun any more. Never waits; [`Serving::serve`] returns after the change at hand.
    pub(crate) fn end(&self) {
        if let Some(order) = &self.order {
            order.end();
        }
    }

    /// A direct connection is over.
    pub(crate) fn look(&self) {
        if let Some(order) = &self.order {
            order.look();
        }
    }

    fn listen<'scope>(
        &'scope self,
        reader: &mut Reader,
        line: &Arc<Line>,
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<(), Error> {
        while let Some(record) = reader.next()? {
            match record.kind {
                kind::WRITE | kind::CHANGE => self.hear((record.kind, record.stream, record.payload), line, scope)?,
                kind::PULSE => {}
                _ => return Err(Error::Protocol("a record that is no change")),
            }
        }
        Ok(())
    }

    /// Does what one record asks for, when it is its turn, and answers.
    pub(crate) fn hear<'scope>(
        &'scope self,
        (kind, tag, payload): (u8, u32, &[u8]),
        line: &Arc<Line>,
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<(), Error> {
        let wanted = Wanted::parse(kind, payload)?;
        let turn = match self.order.as_ref().map(|order| order.turn(tag, line)).transpose()? {
            Some(Turn::Now(now)) => Some(now),
            Some(Turn::Answered(answer)) => return line.say(kind::CHANGED, tag, &answer),
            Some(Turn::Passed) => return Ok(()),
            None => None,
        };
        let answer = match wanted {
            Wanted::Change(change @ Change::Sync(..)) if self.syncs.load(Ordering::SeqCst) < SYNCS => {
                if let Some(now) = turn {
                    now.beside(line.clone());
                }
                return self.beside(change, tag, line, scope);
            }
            Wanted::Write(header, data) => self.write(header, data),
            Wanted::Change(change) => self.change(&change),
            Wanted::Refused(error) => Err(error),
        };
        if let Some(now) = turn {
            now.answered(&message::encode_kept(&answer));
        }
        line.say(kind::CHANGED, tag, &message::encode_answer(&answer))
    }

    /// Does a change beside what follows.
    fn beside<'scope>(
        &'scope self,
        change: Change,
        tag: u32,
        line: &Arc<Line>,
        scope: &'scope Scope<'scope, '_>,
    ) -> Result<(), Error> {
        let answer = move |answer: Result<Changed, TreeError>, line: &Arc<Line>| {
            let answer = message::encode_answer(&answer);
            let lines = match &self.order {
                Some(order) => order.answered(tag, &answer),
                None => vec![line.clone()],
            };
            for line in lines {
                // Who hears gets to know it too.
                let _ = line.say(kind::CHANGED, tag, &answer);
            }
        };
        self.syncs.fetch_add(1, Ordering::SeqCst);
        let of = line.clone();
        let work = move || {
            let changed = self.change(&change);
            self.syncs.fetch_sub(1, Ordering::SeqCst);
            answer(changed, &of);
        };
        let thread = std::thread::Builder::new().name("bring-to-disk".into());
        if thread.spawn_scoped(scope, work).is_err() {
            self.syncs.fetch_sub(1, Ordering::SeqCst);
            answer(Err(TreeError::Limit), line);
        }
        Ok(())
    }

    fn write(&self, header: WriteHeader, data: &[u8]) -> Result<Changed, TreeError> {
        self.handles.check(header.handle)?;
        let wrote = self.own.put(header.handle, header.offset, header.append, data);
        wrote.map(Changed::Attr)
    }

    fn change(&self, change: &Change) -> Result<Changed, TreeError> {
        match change {
            Change::Close(handle) if !self.handles.remove(*handle) => return Err(TreeError::Stale),
            Change::Close(_) => {}
            _ => change.handle().map_or(Ok(()), |handle| self.handles.check(handle))?,
        }
        let changed = self.own.apply(change)?;
        if let Changed::Opened(opened, ..) = &changed
            && !self.handles.add(opened.handle, ServeOptions::default().handles)
        {
            self.own.closed(opened.handle);
            self.tree.close(opened.handle);
            return Err(TreeError::Limit);
        }
        Ok(changed)
    }
}
