//! Carrying a pair: bytes from one socket to the other, both ways, until both have ended or nothing moves any more.
//!
//! One task carries both directions; they share a timer, and a silent pair costs one small future. What is not written yet
//! stops the reading: TCP then slows the sender down.

use std::future::{Future, poll_fn};
use std::io;
use std::sync::atomic::AtomicU64;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sealway_net::Sock;
use sealway_net::splice::{Carrier, is_unable};
use tokio::io::Interest;
use tokio::time::{Instant, sleep_until};

use super::stats::add;

/// Times that a carrier is filled before the other direction has its turn.
const ROUNDS: usize = 8;

/// Why a pair ended without an error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ended {
    /// Both ends have ended their direction.
    Done,
    /// Nothing moved for too long.
    Idle,
}

/// One direction.
#[derive(Default)]
struct Way {
    carrier: Option<Carrier>,
    /// The kernel moves nothing between these two by itself.
    copy: bool,
    /// The source has ended it.
    ended: bool,
    /// The target knows.
    done: bool,
}

impl Way {
    /// Moves what can be moved. Ready when this direction is over.
    fn poll(&mut self, cx: &mut Context<'_>, from: &Sock, to: &mut Sock, moved: &mut u64) -> Poll<io::Result<()>> {
        for _ in 0..ROUNDS {
            if self.done {
                return Poll::Ready(Ok(()));
            }
            while let Some(carrier) = &mut self.carrier
                && carrier.filled() > 0
            {
                let drained = ready!(to.poll_io(cx, Interest::WRITABLE, |fd| carrier.drain(fd)))?;
                *moved += drained as u64;
            }
            if self.ended {
                self.rest();
                ready!(to.poll_shutdown(cx))?;
                self.done = true;
                continue;
            }
            if self.carrier.is_none() {
                // Nothing is taken before there is something to move.
                ready!(from.poll_read_ready(cx))?;
            }
            let copy = self.copy;
            let carrier = self.carrier.get_or_insert_with(|| Carrier::take(copy));
            match from.poll_io(cx, Interest::READABLE, |fd| carrier.fill(fd)) {
                Poll::Ready(Ok(0)) => self.ended = true,
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) if is_unable(&error) && !self.copy => {
                    self.copy = true;
                    self.carrier = None;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    self.rest();
                    return Poll::Pending;
                }
            }
        }
        // There may be more; it is the other direction's turn, and that of other pairs.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Lets others have the empty carrier.
    fn rest(&mut self) {
        if let Some(carrier) = self.carrier.take() {
            carrier.give_back();
        }
    }
}

/// Carries `ends` until both directions have ended, or nothing has moved for `idle`. Counts bytes into `bytes`.
pub(super) async fn carry(ends: &mut (Sock, Sock), idle: Duration, bytes: &AtomicU64) -> io::Result<Ended> {
    carry_by((Way::default(), Way::default()), ends, idle, bytes).await
}

async fn carry_by(
    (mut there, mut back): (Way, Way),
    ends: &mut (Sock, Sock),
    idle: Duration,
    bytes: &AtomicU64,
) -> io::Result<Ended> {
    // Whatever ends this, be it the death of the process: an end that was cut off hears of a break, not of a good end.
    for end in [&ends.0, &ends.1] {
        end.reset_on_close();
    }
    let mut last = Instant::now();
    let mut timer = Box::pin(sleep_until(last + idle));
    let ended = poll_fn(|cx| {
        let mut moved = 0;
        let (first, second) = (&mut ends.0, &mut ends.1);
        let one = there.poll(cx, first, second, &mut moved);
        let two = back.poll(cx, second, first, &mut moved);
        if moved > 0 {
            add(bytes, moved);
            last = Instant::now();
        }
        match (one, two) {
            (Poll::Ready(Err(error)), _) | (_, Poll::Ready(Err(error))) => return Poll::Ready(Err(error)),
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => return Poll::Ready(Ok(Ended::Done)),
            _ => {}
        }
        loop {
            // Set once and looked at when it fires: moving bytes only notes the time.
            ready!(timer.as_mut().poll(cx));
            if last.elapsed() >= idle {
                return Poll::Ready(Ok(Ended::Idle));
            }
            timer.as_mut().reset(last + idle);
        }
    })
    .await;
    there.rest();
    back.rest();
    if matches!(ended, Ok(Ended::Done)) {
        for end in [&ends.0, &ends.1] {
            end.end_on_close();
        }
    }
    ended
}

#[cfg(test)]
#[path = "carry_tests.rs"]
mod tests;
