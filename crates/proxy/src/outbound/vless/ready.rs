//! Connections to a server that are made before somebody asks for one (`testpre`).
//!
//! Whoever takes one has another made in its place. One that nobody takes is closed after [`KEPT`], and none is made while
//! nobody asks.
//!
//! A server waits for a request only so long. One that it ends is closed at once, and from then on those that are kept are given up
//! well before that age: a request on one that is just being closed would be lost.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use sealway_v2ray::Address;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::Error;
use crate::outbound::{Caller, Dialer, REACH};
use crate::roads::inherit;
use crate::stream::Stream;

/// How long one is kept at most.
const KEPT: Duration = Duration::from_secs(120);
/// How long one is kept at least, however early the server ended others: it may have ended them for another reason.
const KEPT_AT_LEAST: Duration = Duration::from_secs(1);
/// How long after one was taken another is made.
const PAUSE: Duration = Duration::from_millis(200);

/// The connections of an outbound. They end with it.
pub(super) struct Ready {
    server: (Address, u16),
    dialer: Arc<Dialer>,
    most: usize,
    kept: Arc<Mutex<Kept>>,
    tasks: Mutex<JoinSet<()>>,
}

#[derive(Default)]
struct Kept {
    /// When each was made. The oldest first.
    streams: Vec<(Instant, Stream)>,
    /// How many are being made.
    coming: usize,
    /// How long each is kept, if the server has shown how long it waits.
    life: Option<Duration>,
    /// Somebody closes those that nobody takes.
    is_watched: bool,
    /// Whoever does is told of others.
    watcher: Option<Waker>,
}

impl Kept {
    fn life(&self) -> Duration {
        self.life.unwrap_or(KEPT)
    }

    /// Closes those that are too old or that the server has ended, and remembers at which age it did.
    fn look(&mut self, now: Instant, cx: &mut Context<'_>) {
        let mut life = self.life();
        self.streams.retain_mut(|(made, stream)| {
            let age = now - *made;
            let stays = age < life && is_silent(stream, cx);
            if !stays && age < life {
                life = life.min((age * 3 / 4).max(KEPT_AT_LEAST));
            }
            stays
        });
        self.life = Some(life);
    }
}

impl Ready {
    /// At most `most` connections at once.
    pub(super) fn new(server: (Address, u16), dialer: Arc<Dialer>, most: u16) -> Ready {
        Ready {
            server,
            dialer,
            most: usize::from(most),
            kept: Arc::default(),
            tasks: Mutex::default(),
        }
    }

    /// One that is ready and has not ended, if there is any. Others are made in its place.
    pub(super) async fn take(&self) -> Option<Stream> {
        let mut found = None;
        loop {
            let (newest, life) = {
                let mut kept = lock(&self.kept);
                (kept.streams.pop(), kept.life())
            };
            let Some((made, mut stream)) = newest else { break };
            if made.elapsed() < life && poll_fn(|cx| Poll::Ready(is_silent(&mut stream, cx))).await {
                found = Some(stream);
                break;
            }
        }
        self.refill();
        found
    }

    fn refill(&self) {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        let missing = {
            let mut kept = lock(&self.kept);
            let missing = self.most.saturating_sub(kept.streams.len() + kept.coming);
            kept.coming += missing;
            missing
        };
        for _ in 0..missing {
            let (server, dialer, kept) = (self.server.clone(), Arc::clone(&self.dialer), Arc::clone(&self.kept));
            tasks.spawn(inherit(async move {
                sleep(PAUSE).await;
                let made = tokio::time::timeout(REACH, dialer.connect(&server, &[], &Caller::default())).await;
                let made = made.unwrap_or(Err(Error::TimedOut("answer of the next server")));
                let watches = {
                    let mut kept = lock(&kept);
                    kept.coming -= 1;
                    match made {
                        Ok((stream, _)) => kept.streams.push((Instant::now(), stream)),
                        Err(error) => tracing::debug!("a connection could not be made ready: {error}"),
                    }
                    if let Some(watcher) = kept.watcher.take() {
                        watcher.wake();
                    }
                    !kept.streams.is_empty() && !std::mem::replace(&mut kept.is_watched, true)
                };
                if watches {
                    watch(&kept).await;
                }
            }));
        }
    }
}

/// Closes those that nobody takes in time and those that the server ends, until there are none.
async fn watch(kept: &Mutex<Kept>) {
    let mut timer = pin!(sleep(KEPT));
    poll_fn(|cx| {
        loop {
            let mut kept = lock(kept);
            kept.look(Instant::now(), cx);
            let Some((oldest, _)) = kept.streams.first() else {
                (kept.is_watched, kept.watcher) = (false, None);
                return Poll::Ready(());
            };
            timer.as_mut().reset(*oldest + kept.life());
            kept.watcher = Some(cx.waker().clone());
            ready!(timer.as_mut().poll(cx));
        }
    })
    .await;
}

/// True if the peer has neither said something nor ended. What TLS has to say by itself is heard.
fn is_silent(stream: &mut Stream, cx: &mut Context<'_>) -> bool {
    loop {
        if stream.wants_open() && stream.open().is_err() || stream.has_ended() || !stream.payload().is_empty() {
            return false;
        }
        match stream.poll_fill(cx) {
            Poll::Pending => return true,
            Poll::Ready(Ok(1..)) => {}
            Poll::Ready(_) => return false,
        }
    }
}

// Nothing that is done under this lock can panic half way.
fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}
