//! What goes up in numbered requests: writes are collected, and sent a request at a time, several at once.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use sealway_v2ray::xhttp::Asked;
use sealway_v2ray::xhttp::data::MAX_IN_HEAD;
use sealway_v2ray::xhttp::padding::Dice;
use sealway_v2ray::xhttp::request::is_in_head;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout};

use super::answer::seed;
use super::half::Half;
use super::way::{Share, Toward};
use crate::carrier::Virtual;
use crate::error::Error;
use crate::roads::inherit;

/// Numbered requests of a stream that are under way at a time. Servers let as many wait for those before them.
const MAX_POSTS: usize = 30;
/// Bytes of them, beyond the first.
const MAX_UNDER_WAY: usize = 8 << 20;
/// Time for one more request to be answered, once the stream is closed.
const PARTING: Duration = Duration::from_secs(60);

/// What a stream and the task that sends share.
struct Shared {
    state: Mutex<State>,
    written: Notify,
}

struct State {
    collected: BytesMut,
    /// Bytes that are collected before the writer waits.
    most: usize,
    /// Nothing is written any more.
    closed: bool,
    /// All that was written has been sent and answered.
    through: bool,
    broken: Option<Error>,
    writer: Option<Waker>,
    /// What comes down, kept until all has been sent: without it the server gives the session up.
    down: Option<Half>,
}

impl State {
    fn wake(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.wake();
        }
    }

    fn error(&self) -> Option<io::Error> {
        self.broken.as_ref().map(|error| io::Error::other(error.to_string()))
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream whose one direction is a GET, and the other numbered requests.
pub(super) struct Packets {
    shared: Arc<Shared>,
    /// `None` only while it is dropped.
    down: Option<Half>,
    /// Holds the connection of what comes down.
    _share: Option<Share>,
    reset: bool,
}

impl Packets {
    /// Spawns the task that sends.
    pub(super) fn new(
        to: Toward,
        share: Option<Share>,
        session: String,
        down: (Half, Option<Share>),
    ) -> Result<Self, Error> {
        let mut dice = Dice::new(seed()?);
        let settings = &to.way.settings;
        let mut most = settings.each_post_bytes.pick(dice.roll()) as usize;
        if is_in_head(&settings.data) {
            most = most.min(MAX_IN_HEAD);
        }
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                collected: BytesMut::new(),
                most,
                closed: false,
                through: false,
                broken: None,
                writer: None,
                down: None,
            }),
            written: Notify::new(),
        });
        let sending = Sending {
            to,
            share,
            session,
            dice,
            shared: Arc::clone(&shared),
        };
        tokio::spawn(inherit(sending.run()));
        Ok(Packets {
            shared,
            down: Some(down.0),
            _share: down.1,
            reset: false,
        })
    }
}

impl Virtual for Packets {
    fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.shared.state();
        if let Some(error) = state.error() {
            return Poll::Ready(Err(error));
        }
        state.writer = Some(cx.waker().clone());
        Poll::Ready(Ok(()))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        match &mut self.down {
            Some(down) => down.poll_read(cx, into),
            None => Poll::Ready(Ok(0)),
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let mut state = self.shared.state();
        if let Some(error) = state.error() {
            return Poll::Ready(Err(error));
        }
        let n = from.len().min(state.most - state.collected.len());
        if n == 0 {
            state.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        state.collected.extend_from_slice(&from[..n]);
        drop(state);
        self.shared.written.notify_one();
        Poll::Ready(Ok(n))
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.shared.state();
        if let Some(error) = state.error() {
            return Poll::Ready(Err(error));
        }
        if state.through {
            return Poll::Ready(Ok(()));
        }
        state.closed = true;
        state.writer = Some(cx.waker().clone());
        self.shared.written.notify_one();
        Poll::Pending
    }

    fn reset_on_close(&mut self) {
        self.reset = true;
        if let Some(down) = &mut self.down {
            down.reset_on_close();
        }
    }

    /// Numbered requests have no last one.
    fn can_half_close(&self) -> bool {
        false
    }
}

impl Drop for Packets {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.closed = true;
        if self.reset {
            state.broken.get_or_insert(Error::Closed);
        } else {
            state.down = self.down.take();
        }
        drop(state);
        self.shared.written.notify_one();
    }
}

struct Sending {
    to: Toward,
    share: Option<Share>,
    session: String,
    dice: Dice,
    shared: Arc<Shared>,
}

impl Sending {
    async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let ended = self.send().await;
        let failed = ended.is_err();
        let mut state = shared.state();
        match ended {
            Ok(()) => state.through = true,
            Err(error) => {
                state.broken.get_or_insert(error);
            }
        }
        state.collected = BytesMut::new();
        state.wake();
        let down = state.down.take();
        drop(state);
        if let Some(mut down) = down {
            match failed {
                true => down.reset_on_close(),
                false => down.leave(),
            }
        }
    }

    /// Waits for something to send. `None`: all has been sent that there will be.
    async fn next(&self) -> Result<Option<Bytes>, Error> {
        loop {
            {
                let mut state = self.shared.state();
                if let Some(error) = state.error() {
                    return Err(Error::Io(error));
                }
                if !state.collected.is_empty() {
                    let taken = state.collected.split().freeze();
                    state.wake();
                    return Ok(Some(taken));
                }
                if state.closed {
                    return Ok(None);
                }
            }
            self.shared.written.notified().await;
        }
    }

    async fn send(&mut self) -> Result<(), Error> {
        let mut posts = JoinSet::new();
        let mut under_way = 0;
        let mut not_before = Instant::now();
        let mut seq = 0;
        loop {
            // Those that are through make room; one that failed ends the stream.
            while posts.len() >= MAX_POSTS || !posts.is_empty() && under_way > MAX_UNDER_WAY {
                under_way -= done(posts.join_next().await)?;
            }
            while let Some(one) = posts.try_join_next() {
                under_way -= done(Some(one))?;
            }
            let wait = async {
                sleep_until(not_before).await;
                self.next().await
            };
            let taken = tokio::select! {
                taken = wait => taken?,
                Some(one) = posts.join_next() => {
                    under_way -= done(Some(one))?;
                    continue;
                }
            };
            let Some(body) = taken else { break };
            let interval = self.to.way.settings.min_posts_interval_ms.pick(self.dice.roll());
            not_before = Instant::now() + Duration::from_millis(interval.into());
            if self.share.as_ref().is_some_and(|share| !share.is_usable(&self.to)) {
                self.share = self.to.share().await?;
            }
            let (to, share, session) = (self.to.clone(), self.share.clone(), self.session.clone());
            let size = body.len();
            under_way += size;
            let posting = async move {
                let in_head = is_in_head(&to.way.settings.data);
                let (head, body) = if in_head {
                    (body, Bytes::new())
                } else {
                    (Bytes::new(), body)
                };
                let asked = Asked::Post {
                    session: &session,
                    seq,
                    in_head: &head,
                };
                to.post(share, &asked, body).await.map(|()| size)
            };
            posts.spawn(inherit(posting));
            seq += 1;
        }
        rest(&mut posts).await
    }
}

/// Waits for the answers that are missing.
async fn rest(posts: &mut JoinSet<Result<usize, Error>>) -> Result<(), Error> {
    loop {
        match timeout(PARTING, posts.join_next()).await {
            Ok(None) => return Ok(()),
            Ok(one) => done(one).map(drop)?,
            Err(_) => return Err(Error::TimedOut("the answer to a numbered request")),
        }
    }
}

/// The size of a request that is through.
fn done(joined: Option<Result<Result<usize, Error>, tokio::task::JoinError>>) -> Result<usize, Error> {
    match joined {
        Some(Ok(done)) => done,
        Some(Err(_)) => Err(Error::Closed),
        None => Ok(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(posts: &mut JoinSet<Result<usize, Error>>, secs: u64) {
        posts.spawn(async move {
            tokio::time::sleep(Duration::from_secs(secs)).await;
            Ok(1)
        });
    }

    #[tokio::test(start_paused = true)]
    async fn late_answers_are_waited_for_and_missing_ones_are_errors() {
        let (mut posts, begun) = (JoinSet::new(), Instant::now());
        (1..=9).for_each(|number| late(&mut posts, 12 * number));
        rest(&mut posts).await.unwrap();
        assert_eq!(begun.elapsed().as_secs(), 108);
        late(&mut posts, 12);
        posts.spawn(std::future::pending());
        assert!(matches!(rest(&mut posts).await, Err(Error::TimedOut(_))));
    }
}
