//! The one task that reads and writes a carrier.

use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use sealway_net::sock::Sock;
use sealway_v2ray::mux::{self, Frame, GlobalId, Status};
use sealway_v2ray::{Destination, Step};
use socket2::SockRef;
use tokio::time::{Instant, Sleep, sleep_until};

use super::inbox::{End, Full};
use super::{Entry, Link, MAX_SESSIONS, OVERFULL, PATIENCE, UNSENT};
use crate::Error;
use crate::closing::LINGER;
use crate::pool;
use crate::stream::Stream;

/// A session that the peer begins.
pub(crate) struct Begun<'a> {
    pub(crate) link: &'a Arc<Link>,
    pub(crate) id: u16,
    /// Tells it from another session of the same id.
    pub(crate) serial: u64,
    pub(crate) to: Destination,
    pub(crate) global: Option<GlobalId>,
}

/// What the two ends of a carrier do differently.
pub(crate) trait Role: Send {
    /// The peer begins a session. `None`: it is refused.
    fn begin(&mut self, begun: Begun<'_>) -> Option<Entry>;

    /// How long a carrier without sessions is kept.
    fn idle(&self) -> Duration;
}

/// The sessions of a carrier, which break when it goes, however it goes.
struct Sessions {
    link: Arc<Link>,
    of: HashMap<u16, (u64, Entry)>,
}

impl Drop for Sessions {
    fn drop(&mut self) {
        let late = self.link.close().into_iter().map(|(id, entry)| (id, (0, entry)));
        let mut wakers = Vec::new();
        for (_, (serial, entry)) in self.of.drain().chain(late) {
            lose(&self.link, serial, entry, End::Broken, &mut wakers);
        }
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// Nothing is read, for a session has no room.
struct Stopped {
    id: u16,
    /// Bytes that it has to have room for.
    more: usize,
    since: Instant,
    /// How long the others wait for it.
    until: Instant,
}

/// Reads and writes a carrier.
pub(crate) struct Driver<R> {
    stream: Stream,
    link: Arc<Link>,
    role: R,
    sessions: Sessions,
    serial: u64,
    /// The batch that is being written, where that needs no sealing.
    writing: Vec<u8>,
    written: usize,
    /// The session that has no room, and what for.
    stopped: Option<Stopped>,
    /// When the peer is to be told of a session that has no data yet.
    hold: Option<Instant>,
    /// Since when there is no session.
    unused: Option<Instant>,
    timer: Pin<Box<Sleep>>,
    wakers: Vec<Waker>,
}

impl<R: Role> Driver<R> {
    /// A driver of a carrier that has just begun.
    pub(crate) fn new(mut stream: Stream, link: Arc<Link>, role: R) -> Self {
        stream.trust();
        if let Some(Sock::Tcp(tcp)) = stream.carrier.sock() {
            // Where that cannot be set, short requests wait a little longer.
            let _ = SockRef::from(tcp).set_tcp_notsent_lowat(UNSENT);
        }
        let now = Instant::now();
        Driver {
            stream,
            sessions: Sessions {
                link: Arc::clone(&link),
                of: HashMap::new(),
            },
            link,
            timer: Box::pin(sleep_until(now + role.idle())),
            role,
            serial: 0,
            writing: Vec::new(),
            written: 0,
            stopped: None,
            hold: None,
            unused: Some(now),
            wakers: Vec::new(),
        }
    }

    /// Drives the carrier to its end. Sessions that are left then break.
    ///
    /// # Errors
    /// Those of the connection, and of a peer that breaks the protocol.
    pub(crate) async fn run(mut self) -> (Result<(), Error>, R) {
        let ended = poll_fn(|cx| self.poll(cx)).await;
        drop(self.sessions);
        let stream = &mut self.stream;
        match &ended {
            Ok(()) => {
                poll_fn(|cx| {
                    stream.finish(cx);
                    Poll::Ready(())
                })
                .await;
                let _ = tokio::time::timeout(LINGER, stream.carrier.leave()).await;
            }
            Err(Error::Io(_) | Error::Closed) => {}
            // Who knows an id and speaks no mux sees what everybody sees who is refused.
            Err(_) => stream.leave(&[]).await,
        }
        (ended, self.role)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.link.meter.register(cx);
        loop {
            let all_written = self.poll_write(cx)?.is_ready();
            self.hear();
            let read = self.poll_read(cx);
            self.wakers.drain(..).for_each(Waker::wake);
            match read? {
                Poll::Ready(true) => continue,
                Poll::Ready(false) => return Poll::Ready(Ok(())),
                Poll::Pending if all_written && self.link.unwritten() > 0 => continue,
                Poll::Pending => {}
            }
            match (self.sessions.of.is_empty(), self.unused) {
                (true, None) => self.unused = Some(Instant::now()),
                (false, Some(_)) => self.unused = None,
                _ => {}
            }
            if self.sessions.of.is_empty() && self.link.is_spent() && self.link.close_if_unused() {
                return Poll::Ready(Ok(()));
            }
            let unused = self.unused.map(|since| since + self.role.idle());
            let stopped = self.stopped.as_ref().map(|stopped| stopped.until);
            let Some(next) = [self.hold, stopped, unused].into_iter().flatten().min() else {
                return Poll::Pending;
            };
            if self.timer.deadline() != next {
                self.timer.as_mut().reset(next);
            }
            ready!(self.timer.as_mut().poll(cx));
            let now = Instant::now();
            if unused.is_some_and(|at| now >= at) && self.link.close_if_unused() {
                return Poll::Ready(Ok(()));
            }
            if stopped.is_some_and(|at| now >= at) {
                self.end_slowest(now);
            }
            // What was held is said with the next batch, and what has become unused is looked at again.
            if unused.is_some_and(|at| now >= at) {
                self.unused = Some(now);
            }
        }
    }

    /// Hears which sessions have begun here and which nobody holds any more. That waits for nothing: a peer that reads nothing
    /// could have as many of them as it likes.
    fn hear(&mut self) {
        let (begun, gone) = self.link.heard();
        for (id, entry) in begun {
            self.sessions.of.insert(id, (0, entry));
        }
        for (id, serial) in gone {
            if self.sessions.of.get(&id).is_some_and(|(other, _)| *other == serial) {
                self.sessions.of.remove(&id);
            }
        }
    }

    /// Writes what waits, one batch after the other.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            ready!(self.stream.poll_flush(cx))?;
            while self.written < self.writing.len() {
                let wrote = ready!(self.stream.poll_write_raw(cx, &self.writing[self.written..]))?;
                self.written += wrote;
            }
            self.written = 0;
            self.writing.clear();
            let taken = self.link.take(&mut self.writing);
            self.hold = taken.hold;
            taken.turns.into_iter().for_each(Waker::wake);
            if self.writing.is_empty() {
                pool::give_out(std::mem::take(&mut self.writing));
                return Poll::Ready(Ok(()));
            }
            if !self.stream.is_raw_tx() {
                self.stream.seal(&self.writing)?;
                self.writing.clear();
            }
        }
    }

    /// Hands out what has come. `Ok(false)`: the carrier has ended.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Error>> {
        if let Some(Stopped { id, more, since, .. }) = self.stopped {
            if !self.has_room(id, more) {
                return Poll::Pending;
            }
            if let Some((_, Entry::Stream(inbox, _))) = self.sessions.of.get(&id) {
                inbox.has_stopped_others(since.elapsed());
            }
            self.stopped = None;
            self.link.meter.set_stopped(false);
        }
        if self.link.unwritten() > OVERFULL {
            return Poll::Pending;
        }
        loop {
            let mut used = 0;
            let full = loop {
                let payload = &self.stream.payload()[used..];
                let Step::Done { value, used: len } = mux::decode(payload)? else {
                    break None;
                };
                let id = value.id;
                let data = value.data.clone().map_or(&[][..], |range| &payload[range]);
                let mut serving = Serving {
                    link: &self.link,
                    role: &mut self.role,
                    sessions: &mut self.sessions.of,
                    serial: &mut self.serial,
                    wakers: &mut self.wakers,
                };
                if !serving.serve(value, data) {
                    break Some((id, data.len()));
                }
                used += len;
            };
            self.stream.consume(used);
            if let Some((id, more)) = full {
                let since = Instant::now();
                let patience = match self.sessions.of.get(&id) {
                    Some((_, Entry::Stream(inbox, _))) => inbox.patience(),
                    _ => PATIENCE,
                };
                let until = since + patience;
                self.stopped = Some(Stopped { id, more, since, until });
                self.link.meter.set_stopped(true);
                // It may have taken something in this moment.
                return if self.has_room(id, more) {
                    Poll::Ready(Ok(true))
                } else {
                    Poll::Pending
                };
            }
            if self.stream.wants_open() {
                self.stream.open()?;
                continue;
            }
            if used > 0 {
                return Poll::Ready(Ok(true));
            }
            if self.stream.has_ended() {
                return Poll::Ready(match self.stream.is_ended() {
                    true => Ok(false),
                    false => Err(Error::Io(io::ErrorKind::UnexpectedEof.into())),
                });
            }
            ready!(self.stream.poll_fill(cx))?;
        }
    }

    /// Whether the session that stopped the reading has room again.
    fn has_room(&self, id: u16, more: usize) -> bool {
        match self.sessions.of.get(&id) {
            Some((_, Entry::Stream(inbox, _))) => inbox.has_room(&self.link.meter, more),
            _ => true,
        }
    }

    /// Ends the session that has stopped all others for too long: the one that has no room, or where it waits for a buffer
    /// that others hold, of those that hold one and take little the one with the most. Where all take enough, it waits on.
    fn end_slowest(&mut self, now: Instant) {
        let Some(stopped) = &mut self.stopped else { return };
        let is_slow = |entry: &Entry| match entry {
            Entry::Stream(inbox, _) => inbox.slow(now),
            Entry::Packets(..) => None,
        };
        let itself = self.sessions.of.get(&stopped.id);
        let slowest = match itself {
            Some((_, Entry::Stream(inbox, _))) if inbox.is_full() => Some(stopped.id),
            _ => {
                let slow = self.sessions.of.iter();
                let slow = slow.filter_map(|(id, (_, entry))| Some((is_slow(entry)?, *id)));
                slow.max().map(|(_, id)| id)
            }
        };
        let Some(id) = slowest else {
            stopped.until = now + PATIENCE / 5;
            return;
        };
        stopped.until = now + PATIENCE;
        tracing::debug!(
            "mux: session {id} took too little for {} s and is ended",
            PATIENCE.as_secs()
        );
        if let Some((serial, entry)) = self.sessions.of.remove(&id) {
            self.link.push_end(id, true);
            cut(&self.link, serial, entry, &mut self.wakers);
        }
        self.wakers.drain(..).for_each(Waker::wake);
    }
}

/// What a frame changes.
struct Serving<'a, R> {
    link: &'a Arc<Link>,
    role: &'a mut R,
    sessions: &'a mut HashMap<u16, (u64, Entry)>,
    serial: &'a mut u64,
    wakers: &'a mut Vec<Waker>,
}

impl<R: Role> Serving<'_, R> {
    /// Does what a frame says. False: its session has no room for it now.
    fn serve(&mut self, frame: Frame, data: &[u8]) -> bool {
        let id = frame.id;
        let peer = match frame.status {
            Status::KeepAlive => return true,
            Status::End => {
                if let Some((serial, entry)) = self.sessions.remove(&id) {
                    let end = if frame.error { End::Broken } else { End::Ended };
                    lose(self.link, serial, entry, end, self.wakers);
                }
                return true;
            }
            Status::New { to, global } => {
                if let Some((serial, entry)) = self.sessions.remove(&id) {
                    self.link.push(|out| mux::push_end(out, id, true));
                    cut(self.link, serial, entry, self.wakers);
                }
                *self.serial += 1;
                let serial = *self.serial;
                let begun = Begun {
                    link: self.link,
                    id,
                    serial,
                    to,
                    global,
                };
                let room = self.sessions.len() < MAX_SESSIONS;
                match if room { self.role.begin(begun) } else { None } {
                    Some(entry) => self.sessions.insert(id, (serial, entry)),
                    None => {
                        self.link.push(|out| mux::push_end(out, id, true));
                        return true;
                    }
                };
                None
            }
            Status::Keep { peer } => peer,
        };
        if frame.data.is_none() {
            return true;
        }
        match self.sessions.get(&id) {
            Some((_, Entry::Stream(inbox, _))) => match inbox.push(&self.link.meter, data) {
                Ok(waker) => self.wakers.extend(waker),
                Err(Full) => return false,
            },
            Some((_, Entry::Packets(inbox, target, _))) if !data.is_empty() => {
                let peer = peer.unwrap_or_else(|| target.clone());
                self.wakers.extend(inbox.push(peer, data));
            }
            Some(_) => {}
            // Its end may be on its way.
            None => self.link.push(|out| mux::push_end(out, id, false)),
        }
        true
    }
}

/// Tells a session that it is over.
fn lose(link: &Arc<Link>, serial: u64, entry: Entry, end: End, wakers: &mut Vec<Waker>) {
    match entry {
        Entry::Stream(inbox, _) => wakers.extend(inbox.set_end(end)),
        Entry::Packets(_, _, Some(owner)) => owner.left(Arc::as_ptr(link) as usize, serial),
        Entry::Packets(inbox, _, None) => wakers.extend(inbox.end()),
    }
}

/// Ends a session whatever it is doing.
fn cut(link: &Arc<Link>, serial: u64, entry: Entry, wakers: &mut Vec<Waker>) {
    if let Entry::Stream(inbox, task) = &entry {
        inbox.clear(&link.meter);
        if let Some(task) = task {
            task.abort();
        }
    }
    lose(link, serial, entry, End::Broken, wakers);
}
