//! What has come for a session and waits for it.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use sealway_v2ray::Destination;

use super::{Link, MAX_WAITING, MAX_WAITING_TOGETHER};
use crate::pool;

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

/// Bytes for a stream.
#[derive(Default)]
pub(crate) struct Inbox {
    bytes: Mutex<Bytes>,
    end: AtomicU8,
}

#[derive(Default)]
struct Bytes {
    held: Vec<u8>,
    at: usize,
    waker: Option<Waker>,
}

impl Inbox {
    /// Adds what has come. Whoever waits for it is to be woken when all else has been handed out.
    pub(crate) fn push(&self, link: &Link, data: &[u8]) -> Option<Waker> {
        let mut bytes = lock(&self.bytes);
        if self.end() != End::None {
            return None;
        }
        if bytes.held.capacity() == 0 {
            bytes.held = pool::take_out(data.len());
        } else if bytes.at > 0 && bytes.held.len() + data.len() > bytes.held.capacity() {
            let at = std::mem::take(&mut bytes.at);
            bytes.held.drain(..at);
        }
        bytes.held.extend_from_slice(data);
        link.add_waiting(data.len());
        bytes.waker.take()
    }

    /// Bytes that wait.
    pub(crate) fn waiting(&self) -> usize {
        let bytes = lock(&self.bytes);
        bytes.held.len() - bytes.at
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
        if bytes.at < bytes.held.len() || self.end() != End::None {
            return Poll::Ready(());
        }
        wait(&mut bytes.waker, cx);
        Poll::Pending
    }

    /// Takes what has come. 0: the peer has ended the session.
    pub(crate) fn poll_read(&self, link: &Link, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut bytes = lock(&self.bytes);
        let end = self.end();
        if end == End::Broken {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let len = into.len().min(bytes.held.len() - bytes.at);
        if len == 0 {
            if end == End::Ended {
                return Poll::Ready(Ok(0));
            }
            wait(&mut bytes.waker, cx);
            return Poll::Pending;
        }
        let at = bytes.at;
        into[..len].copy_from_slice(&bytes.held[at..at + len]);
        bytes.at += len;
        if bytes.at == bytes.held.len() {
            bytes.at = 0;
            pool::give_out(std::mem::take(&mut bytes.held));
        }
        drop(bytes);
        link.take_waiting(len);
        Poll::Ready(Ok(len))
    }

    /// Nobody reads any more.
    pub(crate) fn clear(&self, link: &Link) {
        let mut bytes = lock(&self.bytes);
        let waiting = bytes.held.len() - bytes.at;
        bytes.at = 0;
        pool::give_out(std::mem::take(&mut bytes.held));
        self.end.store(End::Broken as u8, Ordering::Release);
        drop(bytes);
        link.take_waiting(waiting);
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
}

impl Batch {
    /// The next one.
    pub(crate) fn next(&mut self) -> Option<(Destination, &[u8])> {
        let (peer, len) = self.datagrams.pop_front()?;
        let at = self.at;
        self.at += len;
        Some((peer, &self.bytes[at..at + len]))
    }

    fn push(&mut self, peer: Destination, bytes: &[u8]) {
        if self.datagrams.is_empty() {
            self.bytes.clear();
            self.at = 0;
        }
        self.bytes.extend_from_slice(bytes);
        self.datagrams.push_back((peer, bytes.len()));
    }

    fn len(&self) -> usize {
        // An empty datagram takes memory too.
        self.bytes.len() + self.datagrams.len() * size_of::<(Destination, usize)>()
    }
}

/// Datagrams for a session. What does not fit is lost, as on any network, and stops nobody.
#[derive(Debug, Default)]
pub(crate) struct PacketInbox(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    batch: Batch,
    end: bool,
    waker: Option<Waker>,
}

impl PacketInbox {
    /// One with nothing in it.
    pub(crate) fn new() -> Arc<PacketInbox> {
        Arc::default()
    }

    /// Adds a datagram. Whoever waits for it is to be woken when all else has been handed out.
    pub(crate) fn push(&self, together: usize, peer: Destination, bytes: &[u8]) -> Option<Waker> {
        let mut waiting = lock(&self.0);
        let len = waiting.batch.len();
        if waiting.end || len + bytes.len() > MAX_WAITING || together > MAX_WAITING_TOGETHER {
            return None;
        }
        waiting.batch.push(peer, bytes);
        waiting.waker.take()
    }

    /// Nothing more comes.
    pub(crate) fn end(&self) -> Option<Waker> {
        let mut waiting = lock(&self.0);
        waiting.end = true;
        waiting.waker.take()
    }

    /// Takes all that has come, in exchange for a batch that has been read. False: the end.
    pub(crate) fn poll_take(&self, cx: &mut Context<'_>, batch: &mut Batch) -> Poll<bool> {
        let mut waiting = lock(&self.0);
        if !waiting.batch.datagrams.is_empty() {
            std::mem::swap(&mut waiting.batch, batch);
            waiting.batch.datagrams.clear();
            waiting.batch.bytes.clear();
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
