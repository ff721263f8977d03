//! Direct connections beside those at a relay: content and changes go by them as long as they stand.
//!
//! A session has at most a few, each of them for everything: reads and changes of this end, and those of the other one if it mounts too. What
//! a record is says whose it is. They may break at any time. What was asked by one and not answered is asked again by another or by the
//! connections at the relay: a read, as it changes nothing ([`Reads`]); a change under its number, by which the other end knows whether it has done
//! it ([`Serving`]). What the network drops TCP notices. A box on the way that goes on acknowledging, and a program at the other end that
//! hangs, it does not: so both ends say something every few seconds, and one that takes all and says nothing is ended.
//!
//! Whoever hears never waits for who answers, and nobody holds the sending side while a disk is read, so two ends that have much to say to each
//! other cannot hold each other up.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::Scope;
use std::time::Duration;

use crate::bulk::{Reads, Requests, answer};
use crate::changes::{Asked, OUTSTANDING, OUTSTANDING_BYTES, Serving};
use crate::grpc::Handles;
use crate::line::Line;
use crate::tree::RemoteTree;
use sealway_drop::link::{Connection, Reader};
use sealway_drop::wire::kind;
use sealway_drop::{Error, lock};

/// How often it is looked within [`Beside::silence`] whether something has come, and said that this end is there.
const LOOKS: u32 = 4;

/// So many times as long an end may be silent that has promised nothing to one that only serves: it mounts, and says something every two
/// minutes in any version.
const QUIET: u32 = 10;

/// What is said so often. With it an end promises to go on; a pulse of any other kind promises nothing.
const BEAT: &[u8] = &[1];

/// What goes by the direct connections of a session.
#[derive(Clone)]
pub struct Beside {
    /// Reads of this end.
    pub reads: Option<Arc<Reads>>,
    /// Changes of this end.
    pub asked: Option<Arc<Asked>>,
    /// What the other end may read, if it has opened it.
    pub content: Option<(Arc<dyn RemoteTree>, Arc<Handles>)>,
    /// What the other end may change.
    pub changes: Option<Arc<Serving>>,
    /// How long the other end may say nothing, until a quarter more, before the connection is ended. One of an older version is silent while it
    /// asks for nothing: it may be while this end waits for no answer, ten times as long if this end only serves. This end says something four
    /// times as often. Default 20 s.
    pub silence: Duration,
}

impl Default for Beside {
    fn default() -> Self {
        Self {
            reads: None,
            asked: None,
            content: None,
            changes: None,
            silence: Duration::from_secs(20),
        }
    }
}

impl Beside {
    /// Everything that goes by this connection, until it is over. Blocks.
    ///
    /// # Errors
    /// [`Error::Protocol`] if the other end breaks the rules, [`Error::Network`] and [`Error::Session`] if the connection fails.
    pub fn run(&self, connection: Connection) -> Result<(), Error> {
        let (line, mut reader) = Line::new(connection)?;
        let (line, requests, coming) = (Arc::new(line), Requests::default(), Coming::default());
        let broken = Mutex::new(None);
        let (standing, over) = channel();
        let heard = std::thread::scope(|scope| {
            let (line, requests, coming) = (&line, &requests, &coming);
            let threads = Threads {
                scope,
                line,
                broken: &broken,
            };
            let started = (|| {
                threads.start("beside-beat", move || self.beat(line, &over))?;
                if let Some((tree, handles)) = &self.content {
                    threads.start("beside-read", move || {
                        answer(line, requests, &**tree, handles, Some(Vec::new()))
                    })?;
                }
                if let Some(changes) = &self.changes {
                    threads.start("beside-change", move || coming.work(changes, line))?;
                }
                if let Some(reads) = &self.reads {
                    reads.begin(line.number);
                    threads.start("beside-reads", move || reads.send(line))?;
                }
                if let Some(asked) = &self.asked {
                    asked.begin(line.number);
                    threads.start("beside-asks", move || asked.send(line))?;
                }
                Ok(())
            })();
            let result = started.and_then(|()| self.hear(&mut reader, line.number, requests, coming));
            line.end();
            drop(standing);
            requests.end();
            coming.end();
            // Nothing comes by it from here on.
            if let Some(reads) = &self.reads {
                reads.over(line.number);
            }
            if let Some(asked) = &self.asked {
                asked.over(line.number);
            }
            if let Some(changes) = &self.changes {
                changes.look();
            }
            result
        });
        // What was found in a record, and not that the connection ended by it.
        let broken = broken.into_inner().unwrap_or_else(PoisonError::into_inner);
        broken.map_or(heard, Err)
    }

    /// Whether this end waits for an answer by a connection.
    fn waits(&self, number: u32) -> bool {
        self.reads.as_ref().is_some_and(|reads| reads.waits(number))
            || self.asked.as_ref().is_some_and(|asked| asked.waits(number))
    }

    /// Says that this end is there, until it is over.
    fn beat(&self, line: &Line, over: &Receiver<()>) -> Result<(), Error> {
        loop {
            line.say(kind::PULSE, 0, BEAT)?;
            if over.recv_timeout(self.silence / LOOKS) != Err(RecvTimeoutError::Timeout) {
                return Ok(());
            }
        }
    }

    /// After so many looks in vain a connection is of no use; `None` while it may be silent. `promised`: by the other end, that it is not.
    fn patience(&self, number: u32, promised: bool) -> Option<u32> {
        let serves = self.reads.is_none() && self.asked.is_none();
        match promised || self.waits(number) {
            true => Some(LOOKS),
            false => serves.then_some(QUIET * LOOKS),
        }
    }

    /// Waits for the next record, as long as that is to be expected.
    fn wait(&self, reader: &Reader, number: u32, promised: bool) -> Result<(), Error> {
        let mut silent = 0;
        while !reader.is_readable(self.silence / LOOKS)? {
            // What was asked just now has not waited yet: that look does not count.
            let patience = self.patience(number, promised);
            silent = if patience.is_some() { silent + 1 } else { 0 };
            if patience.is_some_and(|patience| silent > patience) {
                return Err(Error::network("waiting for the other end on a direct path")(
                    ErrorKind::TimedOut.into(),
                ));
            }
        }
        Ok(())
    }

    /// Gives each record to whom it concerns. Waits for nobody else.
    fn hear(&self, reader: &mut Reader, number: u32, requests: &Requests, coming: &Coming) -> Result<(), Error> {
        let pool = self.reads.as_ref().map(|reads| reads.pool.clone()).unwrap_or_default();
        // A record that has begun to come goes on coming.
        reader.wait_at_most(Some(self.silence))?;
        let mut promised = false;
        loop {
            self.wait(reader, number, promised)?;
            let Some(record) = reader.next_owned(|_| pool.take())? else {
                return Ok(());
            };
            let (kind, tag) = (record.kind, record.stream);
            let payload = &record.buffer[record.payload.clone()];
            match kind {
                kind::CONTENT | kind::REFUSED if let Some(reads) = &self.reads => {
                    reads.came(record, number)?;
                    continue;
                }
                kind::CHANGED if let Some(asked) = &self.asked => asked.came(tag, payload, number)?,
                kind::READ | kind::CANCEL if self.content.is_some() => requests.hear(kind, tag, payload)?,
                kind::CHANGE | kind::WRITE if self.changes.is_some() => coming.add(kind, tag, payload)?,
                kind::PULSE => promised |= payload == BEAT,
                _ => return Err(Error::Protocol("a record that has no place on a direct connection")),
            }
            pool.give(record.buffer);
        }
    }
}

/// Threads of a connection. If one fails, whoever hears is woken.
struct Threads<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    line: &'scope Line,
    /// How the other end broke the rules, as the first one found.
    broken: &'scope Mutex<Option<Error>>,
}

impl<'scope> Threads<'scope, '_> {
    fn start(&self, name: &str, work: impl FnOnce() -> Result<(), Error> + Send + 'scope) -> Result<(), Error> {
        let (line, broken) = (self.line, self.broken);
        let work = move || {
            let Err(error) = work() else { return };
            tracing::debug!(%error, "a direct connection");
            if !matches!(error, Error::Network { .. }) {
                lock(broken).get_or_insert(error);
            }
            line.end();
        };
        let thread = std::thread::Builder::new().name(name.into());
        let started = thread.spawn_scoped(self.scope, work);
        started.map(drop).map_err(Error::network("starting threads"))
    }
}

/// Changes that have come and wait: as many as the other end may leave unanswered.
#[derive(Default)]
struct Coming {
    state: Mutex<Waiting>,
    more: Condvar,
}

#[derive(Default)]
struct Waiting {
    changes: VecDeque<(u8, u32, Vec<u8>)>,
    bytes: usize,
    ended: bool,
}

impl Coming {
    fn add(&self, kind: u8, tag: u32, payload: &[u8]) -> Result<(), Error> {
        let mut state = lock(&self.state);
        let bytes = state.bytes + payload.len();
        if bytes > OUTSTANDING_BYTES || state.changes.len() >= OUTSTANDING as usize {
            return Err(Error::Protocol("too many changes at once"));
        }
        state.bytes = bytes;
        state.changes.push_back((kind, tag, payload.to_vec()));
        self.more.notify_one();
        Ok(())
    }

    fn end(&self) {
        lock(&self.state).ended = true;
        self.more.notify_all();
    }

    fn next(&self) -> Option<(u8, u32, Vec<u8>)> {
        let idle = |state: &mut Waiting| state.changes.is_empty() && !state.ended;
        let waited = self.more.wait_while(lock(&self.state), idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.ended {
            return None;
        }
        let next = state.changes.pop_front()?;
        state.bytes -= next.2.len();
        Some(next)
    }

    /// Has them done, one after the other.
    fn work(&self, changes: &Serving, line: &Arc<Line>) -> Result<(), Error> {
        std::thread::scope(|scope| {
            while let Some((kind, tag, payload)) = self.next() {
                changes.hear((kind, tag, &payload), line, scope)?;
            }
            Ok(())
        })
    }
}
