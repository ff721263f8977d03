//! What has come for a session and waits for it.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use sealway_v2ray::{Address, Destination};
use tokio::time::Instant;

use super::{MAX_DATAGRAMS_TOGETHER, MAX_WAITING, MAX_WAITING_TOGETHER, Meter, PATIENCE};
use crate::pool::{Buf, Class};

/// Why nothing more comes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u8)]
pub(crate) enum End {
    /// The session goes on.
    None = 0,
    /// The peer has ended it.
    Ended = 1,
    /// It broke, or its carrier did.
    Broken = 2,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that is done under these locks can panic half way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes for a stream, in a buffer that is handed over whole.
#[derive(Default)]
pub(crate) struct Inbox {
    bytes: Mutex<Bytes>,
    end: AtomicU8,
}

#[derive(Default)]
struct Bytes {
    held: Option<Buf>,
    range: Range<usize>,
    /// Class to take next: grows while buffers are filled, shrinks when they are not.
    want: Class,
    waker: Option<Waker>,
    /// Bytes taken, and how long the reading was stopped for it, since there was nothing left or enough was taken.
    taken: usize,
    stopped: Duration,
    since: Option<Instant>,
}

/// Bytes that a session has to take within [`PATIENCE`] if others wait for it.
const ENOUGH: usize = Class::LARGEST.size() / 2;

/// There is no room for what has come, before something is taken.
#[derive(Debug)]
pub(crate) struct Full;

impl Bytes {
    /// Makes room for `more` bytes, in a larger buffer if that is needed.
    fn make_room(&mut self, meter: &Meter, more: usize) -> Result<(), Full> {
        let len = self.range.len();
        let old = self.held.as_ref().map_or(0, |buf| buf.len());
        if self.range.end + more <= old {
            return Ok(());
        }
        let class = Class::holding(len + more).ok_or(Full)?.max(self.want);
        if old == 0 && meter.waiting() + class.size() > MAX_WAITING_TOGETHER {
            return Err(Full);
        }
        match &mut self.held {
            Some(buf) if len + more <= old => buf.copy_within(self.range.clone(), 0),
            held => {
                let mut buf = Buf::take(class);
                meter.add(class.size());
                if let Some(smaller) = held.take() {
                    buf[..len].copy_from_slice(&smaller[self.range.clone()]);
                    meter.take(smaller.len());
                }
                *held = Some(buf);
            }
        }
        self.range = 0..len;
        Ok(())
    }

    /// The session has taken something.
    fn took(&mut self, len: usize) {
        self.taken += len;
        if self.range.is_empty() || self.taken >= ENOUGH {
            (self.taken, self.stopped) = (0, Duration::ZERO);
            self.since = Some(Instant::now());
        }
    }

    /// Lets go of the buffer.
    fn give(&mut self, meter: &Meter) -> Option<(Buf, Range<usize>)> {
        let buf = self.held.take()?;
        let range = std::mem::take(&mut self.range);
        let class = buf.class();
        self.want = match range.end {
            len if len + (16 << 10) > class.size() => class.larger(),
            len if len < class.size() / 8 => class.smaller(),
            _ => class,
        };
        meter.take(buf.len());
        Some((buf, range))
    }
}

impl Inbox {
    /// Adds what has come. Whoever waits for it is to be woken when all else has been handed out.
    pub(crate) fn push(&self, meter: &Meter, data: &[u8]) -> Result<Option<Waker>, Full> {
        let mut bytes = lock(&self.bytes);
        if self.end() != End::None || data.is_empty() {
            return Ok(None);
        }
        bytes.make_room(meter, data.len())?;
        if bytes.range.is_empty() {
            bytes.since = Some(Instant::now());
        }
        let at = bytes.range.end;
        bytes.range.end += data.len();
        if let Some(buf) = &mut bytes.held {
            buf[at..at + data.len()].copy_from_slice(data);
        }
        Ok(bytes.waker.take())
    }

    /// Whether it was full itself when it had no room. Else buffers of others left none for it.
    pub(crate) fn is_full(&self) -> bool {
        lock(&self.bytes).held.is_some()
    }

    /// The reading was stopped for so long because this was full.
    pub(crate) fn has_stopped_others(&self, how_long: Duration) {
        let mut bytes = lock(&self.bytes);
        // What has been forgiven meanwhile is so for good.
        if bytes.held.is_some() && bytes.taken > 0 {
            bytes.stopped += how_long;
        }
    }

    /// How long others may have to wait for it from now on.
    pub(crate) fn patience(&self) -> Duration {
        PATIENCE.saturating_sub(lock(&self.bytes).stopped)
    }

    /// Bytes that wait for a session that has taken too little for [`PATIENCE`]. `None`: it takes enough.
    pub(crate) fn slow(&self, now: Instant) -> Option<usize> {
        let bytes = lock(&self.bytes);
        let is_slow = bytes.since.is_some_and(|since| since + PATIENCE <= now);
        (is_slow && bytes.held.is_some()).then_some(bytes.range.len())
    }

    /// Bytes that wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        lock(&self.bytes).range.len()
    }

    /// Whether there is room for so many bytes more.
    pub(crate) fn has_room(&self, meter: &Meter, more: usize) -> bool {
        let bytes = lock(&self.bytes);
        let fits = Class::holding(bytes.range.len() + more).is_some();
        fits && (bytes.held.is_some() || meter.waiting() + Class::LARGEST.size() <= MAX_WAITING_TOGETHER)
    }

    /// Nothing more comes.
    pub(crate) fn set_end(&self, end: End) -> Option<Waker> {
        let mut bytes = lock(&self.bytes);
        if self.end() != End::Broken {
            self.end.store(end as u8, Ordering::Release);
        }
        bytes.waker.take()
    }

    /// Why nothing more comes.
    pub(crate) fn end(&self) -> End {
        match self.end.load(Ordering::Acquire) {
            0 => End::None,
            1 => End::Ended,
            _ => End::Broken,
        }
    }

    /// Ready when a read gives something.
    pub(crate) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut bytes = lock(&self.bytes);
        if !bytes.range.is_empty() || self.end() != End::None {
            return Poll::Ready(());
        }
        wait(&mut bytes.waker, cx);
        Poll::Pending
    }

    /// Hands over all that has come.
    pub(crate) fn take(&self, meter: &Meter) -> Option<(Buf, Range<usize>)> {
        let mut bytes = lock(&self.bytes);
        if bytes.range.is_empty() || self.end() == End::Broken {
            return None;
        }
        let given = bytes.give(meter)?;
        bytes.took(given.1.len());
        Some(given)
    }

    /// Takes what has come. 0: the peer has ended the session.
    pub(crate) fn poll_read(&self, meter: &Meter, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut bytes = lock(&self.bytes);
        let end = self.end();
        if end == End::Broken {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let bytes = &mut *bytes;
        let len = into.len().min(bytes.range.len());
        let Some(buf) = bytes.held.as_ref().filter(|_| len > 0) else {
            if end == End::Ended {
                return Poll::Ready(Ok(0));
            }
            wait(&mut bytes.waker, cx);
            return Poll::Pending;
        };
        let at = bytes.range.start;
        into[..len].copy_from_slice(&buf[at..at + len]);
        bytes.range.start += len;
        bytes.took(len);
        if bytes.range.is_empty() {
            bytes.give(meter);
        }
        Poll::Ready(Ok(len))
    }

    /// Nobody reads any more.
    pub(crate) fn clear(&self, meter: &Meter) {
        let mut bytes = lock(&self.bytes);
        self.end.store(End::Broken as u8, Ordering::Release);
        bytes.give(meter);
    }
}

fn wait(waker: &mut Option<Waker>, cx: &Context<'_>) {
    if waker.as_ref().is_none_or(|old| !old.will_wake(cx.waker())) {
        *waker = Some(cx.waker().clone());
    }
}

/// Datagrams, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    bytes: Vec<u8>,
    at: usize,
    /// Whom each is for or from, and how long it is.
    datagrams: VecDeque<(Destination, usize)>,
    /// Bytes of memory that they take: an empty one takes some too, and so does a name.
    size: usize,
}

impl Batch {
    pub(crate) fn next(&mut self) -> Option<(Destination, &[u8])> {
        let (peer, len) = self.datagrams.pop_front()?;
        let at = self.at;
        self.at += len;
        Some((peer, &self.bytes[at..at + len]))
    }

    fn push(&mut self, peer: Destination, bytes: &[u8]) {
        self.size += Batch::size_of(&peer, bytes);
        self.bytes.extend_from_slice(bytes);
        self.datagrams.push_back((peer, bytes.len()));
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.datagrams.clear();
        (self.at, self.size) = (0, 0);
    }

    fn size_of(peer: &Destination, bytes: &[u8]) -> usize {
        let name = match &peer.address {
            Address::Domain(name) => name.as_str().len(),
            Address::Ipv4(_) | Address::Ipv6(_) => 0,
        };
        bytes.len() + name + size_of::<(Destination, usize)>()
    }
}

/// Datagrams for a session. What does not fit is lost, as on any network, and stops nobody.
#[derive(Debug, Default)]
pub(crate) struct PacketInbox {
    waiting: Mutex<Waiting>,
    /// Bytes in all inboxes that share this.
    together: Arc<AtomicUsize>,
}

impl Drop for PacketInbox {
    fn drop(&mut self) {
        let waiting = lock(&self.waiting);
        self.together
            .fetch_sub(waiting.batch.size + waiting.taken, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct Waiting {
    batch: Batch,
    /// Bytes of the batch that was taken last, which may still be held.
    taken: usize,
    end: bool,
    waker: Option<Waker>,
}

impl PacketInbox {
    /// One with nothing in it, which shares its memory with others.
    pub(crate) fn new(together: Arc<AtomicUsize>) -> Arc<PacketInbox> {
        Arc::new(PacketInbox {
            waiting: Mutex::default(),
            together,
        })
    }

    /// Adds a datagram. Whoever waits for it is to be woken when all else has been handed out.
    pub(crate) fn push(&self, peer: Destination, bytes: &[u8]) -> Option<Waker> {
        let mut waiting = lock(&self.waiting);
        let size = Batch::size_of(&peer, bytes);
        let together = self.together.load(Ordering::Relaxed);
        if waiting.end || waiting.batch.size + size > MAX_WAITING || together + size > MAX_DATAGRAMS_TOGETHER {
            return None;
        }
        waiting.batch.push(peer, bytes);
        self.together.fetch_add(size, Ordering::Relaxed);
        waiting.waker.take()
    }

    /// Nothing more comes.
    pub(crate) fn end(&self) -> Option<Waker> {
        let mut waiting = lock(&self.waiting);
        waiting.end = true;
        waiting.waker.take()
    }

    /// Takes all that has come, in exchange for a batch that has been read. False: the end.
    pub(crate) fn poll_take(&self, cx: &mut Context<'_>, batch: &mut Batch) -> Poll<bool> {
        let mut waiting = lock(&self.waiting);
        let read = std::mem::take(&mut waiting.taken);
        self.together.fetch_sub(read, Ordering::Relaxed);
        if !waiting.batch.datagrams.is_empty() {
            // It counts until it has been read.
            waiting.taken = waiting.batch.size;
            std::mem::swap(&mut waiting.batch, batch);
            waiting.batch.clear();
            return Poll::Ready(true);
        }
        if waiting.end {
            return Poll::Ready(false);
        }
        // A session that rests holds no memory.
        if waiting.batch.bytes.capacity() > 0 {
            waiting.batch = Batch::default();
        }
        *batch = Batch::default();
        wait(&mut waiting.waker, cx);
        Poll::Pending
    }
}
