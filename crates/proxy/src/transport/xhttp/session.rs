//! The sessions of a server: what goes up, by whichever requests it comes, in its order.
//!
//! Anybody can begin a session. Until what comes up has shown who sends it, a session holds [`STRANGERS_BYTES`], there are
//! [`MAX_STRANGERS`] of them, and one that nobody asks down for is gone after [`REAP`]. The body of the next request is passed
//! on while it arrives. The others wait: unread where there is no room for them.

mod state;
mod turns;

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::io;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes};
use sealway_v2ray::xhttp::queue::{Queue, Turn};
use tokio::sync::Notify;

use super::half::Half;
use state::State;
use turns::{Passing, Waiting};

/// Sessions of one inbound that have not shown whose they are.
pub(super) const MAX_STRANGERS: usize = 4096;
/// Bytes that such a session holds.
pub(super) const STRANGERS_BYTES: usize = 64 << 10;
/// Bytes in their order that a session holds, which nobody has taken.
const MAX_READY: usize = 256 << 10;
/// Most bytes of a body that are looked at together.
const PIECE: usize = 64 << 10;
/// A session that nobody asks down for ends after this time.
const REAP: Duration = Duration::from_secs(30);

/// Why a request to a session fails.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Failure {
    /// It is there already: 409.
    Conflict,
    /// Its body is too long: 413.
    TooLarge,
    /// The session has failed, or there is no room for one: 500.
    Broken,
    /// The client has gone: nobody reads an answer.
    Gone,
}

impl Failure {
    /// The status of the answer.
    pub(super) fn status(self) -> u16 {
        match self {
            Failure::Conflict => 409,
            Failure::TooLarge => 413,
            Failure::Broken | Failure::Gone => 500,
        }
    }
}

/// All sessions of an inbound.
pub(super) struct Table {
    inner: Mutex<Inner>,
    max_post: usize,
    max_posts: usize,
}

#[derive(Default)]
struct Inner {
    sessions: HashMap<String, Arc<Session>>,
    strangers: usize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Table {
    /// Numbered requests have at most `max_post` bytes, and `max_posts` of a session wait.
    pub(super) fn new(max_post: usize, max_posts: usize) -> Arc<Self> {
        Arc::new(Table {
            inner: Mutex::default(),
            max_post,
            max_posts,
        })
    }

    /// The session of this name, which begins if there is none.
    pub(super) fn find(self: &Arc<Self>, id: &str) -> Result<Arc<Session>, Failure> {
        let session = {
            let mut inner = lock(&self.inner);
            if let Some(session) = inner.sessions.get(id) {
                return Ok(Arc::clone(session));
            }
            if inner.strangers >= MAX_STRANGERS {
                return Err(Failure::Broken);
            }
            let session = Arc::new(Session {
                id: id.to_owned(),
                table: Arc::downgrade(self),
                max_post: self.max_post,
                max_posts: self.max_posts,
                state: Mutex::new(State::new(self.max_posts)),
                changed: Notify::new(),
            });
            inner.strangers += 1;
            inner.sessions.insert(id.to_owned(), Arc::clone(&session));
            session
        };
        let weak = Arc::downgrade(&session);
        tokio::spawn(async move {
            tokio::time::sleep(REAP).await;
            // From here on no GET finds it.
            if let Some(session) = weak.upgrade()
                && !std::mem::replace(&mut session.state().down, true)
            {
                session.end(io::ErrorKind::TimedOut);
            }
        });
        Ok(session)
    }

    /// The session of this name, for the one request that takes what comes down.
    pub(super) fn down(self: &Arc<Self>, id: &str) -> Result<Held, Failure> {
        let session = self.find(id)?;
        let there = std::mem::replace(&mut session.state().down, true);
        if there {
            Err(Failure::Conflict)
        } else {
            Ok(Held(session))
        }
    }

    /// The session of this name, for the one request that brings all that goes up.
    pub(super) fn up(self: &Arc<Self>, id: &str) -> Result<Arc<Session>, Failure> {
        let session = self.find(id)?;
        session.begin_up()?;
        Ok(session)
    }

    /// Sessions, and those of them that have not shown whose they are.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (usize, usize) {
        let inner = lock(&self.inner);
        (inner.sessions.len(), inner.strangers)
    }
}

/// A session whose GET is there. It ends when this is dropped, whatever became of the answer.
pub(super) struct Held(Arc<Session>);

impl Deref for Held {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.end(io::ErrorKind::ConnectionReset);
    }
}

/// What goes up in one session.
pub(super) struct Session {
    id: String,
    table: Weak<Table>,
    max_post: usize,
    max_posts: usize,
    state: Mutex<State>,
    /// There is more room, or it is another request's turn.
    changed: Notify,
}

impl Session {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// What comes up has shown who sends it.
    pub(super) fn trust(&self) {
        let table = self.table.upgrade();
        let mut inner = table.as_ref().map(|table| lock(&table.inner));
        let mut state = self.state();
        if std::mem::replace(&mut state.trusted, true) {
            return;
        }
        if let Some(inner) = &mut inner
            && !state.gone
        {
            inner.strangers -= 1;
        }
        drop((inner, state));
        self.changed.notify_waiters();
    }

    /// Whether what comes up has shown who sends it.
    pub(super) fn is_trusted(&self) -> bool {
        self.state().trusted
    }

    /// Ends the session. Who still writes to it is told that it is broken.
    pub(super) fn end(&self, why: io::ErrorKind) {
        if let Some(table) = self.table.upgrade() {
            let mut inner = lock(&table.inner);
            let ours = inner
                .sessions
                .get(&self.id)
                .is_some_and(|found| std::ptr::eq(&**found, self));
            if ours {
                inner.sessions.remove(&self.id);
                let mut state = self.state();
                state.gone = true;
                if !state.trusted {
                    inner.strangers -= 1;
                }
            }
        }
        let mut state = self.state();
        state.broken.get_or_insert(why);
        (state.ready, state.bytes) = (VecDeque::new(), 0);
        state.queue = Queue::new(0);
        state.wake();
        drop(state);
        self.changed.notify_waiters();
    }

    /// What comes up cannot go on. What has come is read before that is seen.
    fn fail(&self, why: io::ErrorKind) {
        let mut state = self.state();
        state.broken.get_or_insert(why);
        state.wake();
        drop(state);
        self.changed.notify_waiters();
    }

    /// Whether there are bytes in their order.
    pub(super) fn has_ready(&self) -> bool {
        self.state().bytes > 0
    }

    /// Whether numbered requests have come, each of them whole and none of them too early.
    pub(super) fn is_complete(&self) -> bool {
        let state = self.state();
        state.posts
            && state.broken.is_none()
            && !state.queue.is_busy()
            && state.queue.is_empty()
            && state.waiting.is_empty()
    }

    /// Reads what comes up; 0 is the end.
    pub(super) fn poll_read(&self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut state = self.state();
        let mut read = 0;
        while read < into.len()
            && let Some(front) = state.ready.front_mut()
        {
            let n = front.len().min(into.len() - read);
            into[read..read + n].copy_from_slice(&front[..n]);
            front.advance(n);
            read += n;
            if front.is_empty() {
                state.ready.pop_front();
            }
        }
        state.bytes -= read;
        if read > 0 {
            drop(state);
            self.changed.notify_waiters();
            return Poll::Ready(Ok(read));
        }
        match state.broken {
            Some(kind) => Poll::Ready(Err(kind.into())),
            None if state.ended => Poll::Ready(Ok(0)),
            None => {
                state.reader = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Takes a numbered request: what of it stood in its head, and the body.
    pub(super) async fn post(&self, seq: u64, in_head: Vec<u8>, body: &mut Half) -> Result<(), Failure> {
        let mut left = self.max_post.checked_sub(in_head.len()).ok_or(Failure::TooLarge)?;
        let turn = loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            {
                let mut state = self.state();
                if state.up || state.broken.is_some() {
                    return Err(Failure::Broken);
                }
                state.posts = true;
                // The one before it with this number may still break off: then this one takes its place.
                if !state.waiting.contains(&seq) && !state.queue.is_arriving(seq) {
                    break state.queue.turn(seq);
                }
            }
            changed.await;
        };
        match turn {
            Turn::Now => self.pass(in_head, body, left).await,
            Turn::Later => self.collect(seq, in_head, body, left).await,
            Turn::Repeated => {
                while let Some(n) = self.take(body, PIECE, <[u8]>::len).await? {
                    left = left.checked_sub(n).ok_or(Failure::TooLarge)?;
                }
                Ok(())
            }
        }
    }

    /// Passes on the body of the request whose turn it is, while it arrives.
    async fn pass(&self, first: Vec<u8>, body: &mut Half, mut left: usize) -> Result<(), Failure> {
        let mut passing = Passing {
            session: self,
            passed: !first.is_empty(),
            done: false,
        };
        self.push(first.into()).await?;
        loop {
            let room = self.room().await?;
            let Some(piece) = self.take(body, room.min(PIECE), Bytes::copy_from_slice).await? else {
                break;
            };
            left = left.checked_sub(piece.len()).ok_or(Failure::TooLarge)?;
            passing.passed = true;
            let mut state = self.state();
            state.push(piece);
            state.wake();
        }
        passing.done = true;
        Ok(())
    }

    /// Reads the body of a request whose turn has not come, as far as there is room for it.
    async fn collect(&self, seq: u64, mut collected: Vec<u8>, body: &mut Half, mut left: usize) -> Result<(), Failure> {
        let mut waiting = Waiting::new(self, seq)?;
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            let may = {
                let mut state = self.state();
                if state.broken.is_some() {
                    return Err(Failure::Broken);
                }
                match state.queue.is_next(seq) {
                    true => {
                        state.queue.turn(seq);
                        None
                    }
                    false => Some(state.ahead(seq, self.max_posts)),
                }
            };
            let Some(may) = may else {
                drop(waiting);
                return self.pass(collected, body, left).await;
            };
            let reading = async {
                match may {
                    0 => std::future::pending().await,
                    most => self.take(body, most, <[u8]>::to_vec).await,
                }
            };
            let piece = tokio::select! {
                biased;
                () = &mut changed => continue,
                piece = reading => piece?,
            };
            let Some(piece) = piece else { break };
            left = left.checked_sub(piece.len()).ok_or(Failure::TooLarge)?;
            waiting.add(piece.len());
            collected.extend_from_slice(&piece);
        }
        drop(waiting);
        let mut state = self.state();
        if state.queue.hold(seq, collected).is_err() {
            drop(state);
            self.fail(io::ErrorKind::InvalidData);
            return Err(Failure::Broken);
        }
        state.pump();
        state.wake();
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }

    fn begin_up(&self) -> Result<(), Failure> {
        let mut state = self.state();
        if state.posts || std::mem::replace(&mut state.up, true) {
            return Err(Failure::Conflict);
        }
        Ok(())
    }

    /// Passes on all that goes up. `beside` is done to the request each time it is looked at.
    pub(super) async fn up(
        &self,
        body: &mut Half,
        mut beside: impl FnMut(&mut Half, &mut Context<'_>) + Send,
    ) -> Result<(), Failure> {
        let mut passing = Passing {
            session: self,
            passed: true,
            done: false,
        };
        loop {
            let room = self.room().await?;
            if self.is_trusted() {
                body.trust();
            }
            let taking = poll_fn(|cx| {
                beside(body, cx);
                body.poll_take(cx, room.min(PIECE), Bytes::copy_from_slice)
            });
            let piece = tokio::select! {
                piece = taking => piece.map_err(|_| Failure::Gone)?,
                () = self.ended() => return Err(Failure::Broken),
            };
            let Some(piece) = piece else { break };
            let mut state = self.state();
            state.push(piece);
            state.wake();
        }
        passing.done = true;
        let mut state = self.state();
        state.ended = true;
        state.wake();
        Ok(())
    }

    /// Waits until the session has ended.
    async fn ended(&self) {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if self.state().broken.is_some() {
                return;
            }
            changed.await;
        }
    }

    async fn push(&self, mut bytes: Bytes) -> Result<(), Failure> {
        while !bytes.is_empty() {
            let room = self.room().await?;
            let mut state = self.state();
            state.push(bytes.split_to(room.min(bytes.len())));
            state.wake();
        }
        Ok(())
    }

    /// A piece of a body, unless the session ends before it comes. `None`: the body has ended.
    async fn take<T>(&self, body: &mut Half, most: usize, take: impl Fn(&[u8]) -> T) -> Result<Option<T>, Failure> {
        tokio::select! {
            biased;
            piece = poll_fn(|cx| body.poll_take(cx, most, &take)) => piece.map_err(|_| Failure::Gone),
            () = self.ended() => Err(Failure::Broken),
        }
    }

    /// Waits for room for bytes in their order.
    async fn room(&self) -> Result<usize, Failure> {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            {
                let state = self.state();
                if state.broken.is_some() {
                    return Err(Failure::Broken);
                }
                if state.room() > 0 {
                    return Ok(state.room());
                }
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests;
