//! Connections to a server that are made before somebody asks for one (`testpre`).
//!
//! Whoever takes one has another made in its place. One that nobody takes is closed after [`KEPT`], and none is made while
//! nobody asks.

use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use sealway_v2ray::Address;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::Error;
use crate::outbound::{Caller, Dialer, REACH};
use crate::roads::inherit;
use crate::stream::Stream;

/// How long one is kept.
const KEPT: Duration = Duration::from_secs(120);
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
    /// The oldest first.
    streams: Vec<(Instant, Stream)>,
    /// How many are being made.
    coming: usize,
    /// Somebody closes those that nobody takes.
    is_swept: bool,
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
            let newest = lock(&self.kept).streams.pop();
            let Some((until, mut stream)) = newest else { break };
            if Instant::now() < until && poll_fn(|cx| Poll::Ready(is_silent(&mut stream, cx))).await {
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
                let sweeps = {
                    let mut kept = lock(&kept);
                    kept.coming -= 1;
                    match made {
                        Ok((stream, _)) => kept.streams.push((Instant::now() + KEPT, stream)),
                        Err(error) => tracing::debug!("a connection could not be made ready: {error}"),
                    }
                    !kept.streams.is_empty() && !std::mem::replace(&mut kept.is_swept, true)
                };
                if sweeps {
                    sweep(&kept).await;
                }
            }));
        }
    }
}

/// Closes those that nobody takes in time, until there are none.
async fn sweep(kept: &Mutex<Kept>) {
    loop {
        let until = {
            let mut kept = lock(kept);
            let now = Instant::now();
            kept.streams.retain(|(until, _)| now < *until);
            let Some((until, _)) = kept.streams.first() else {
                kept.is_swept = false;
                return;
            };
            *until
        };
        sleep_until(until).await;
    }
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
