//! Turns for connections that end after a silence.
//!
//! Ending a connection takes a dozen system calls, and whoever waits for a core waits for all that became ready before. When
//! thousands of idle connections end at once (a client is killed, a link goes down, a limit on idle time is reached) those
//! in use would stand still until the last of them is gone. Nobody waits for the end of an idle connection, so each takes a
//! turn: a few a millisecond and core. What has moved something within the last second ends at once; a server with many
//! short connections is not slowed down.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// A silence after which the end has time.
const SILENCE: Duration = Duration::from_secs(1);
/// Turns of one core lie this far apart, microseconds.
const APART: u64 = 500;
/// Turns that may be taken together.
const TOGETHER: u64 = 8;
/// Longest wait for a turn, microseconds. More connections than have a turn until then end together.
const LONGEST: u64 = 4_000_000;

/// Gives out turns.
pub(crate) struct Turns {
    began: Instant,
    apart: u64,
    /// When the next turn is, in microseconds since it began.
    next: AtomicU64,
}

impl Turns {
    /// Turns for as many cores.
    pub(crate) fn new(cores: usize) -> Self {
        Turns {
            began: Instant::now(),
            apart: (APART / cores.max(1) as u64).max(1),
            next: AtomicU64::new(0),
        }
    }

    /// Those of this process.
    pub(crate) fn shared() -> &'static Turns {
        static TURNS: OnceLock<Turns> = OnceLock::new();
        TURNS.get_or_init(|| Turns::new(std::thread::available_parallelism().map_or(1, usize::from)))
    }

    /// When the caller's turn is. `None`: now.
    fn take(&self) -> Option<Instant> {
        let now = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let turn = |next: u64| next.clamp(now, now.saturating_add(LONGEST));
        let next = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                Some(turn(next).saturating_add(self.apart))
            })
            .unwrap_or_else(|next| next);
        let wait = turn(next) - now;
        // Timers count in milliseconds: what is due within one goes on with the others.
        (wait >= (self.apart * TOGETHER).max(1_000)).then(|| self.began + Duration::from_micros(now + wait))
    }
}

/// The turn of one connection.
#[derive(Default)]
pub(crate) enum Turn {
    /// It has not asked yet.
    #[default]
    Open,
    Waiting(Pin<Box<Sleep>>),
    Come,
}

impl Turn {
    /// Ready when a connection that has been silent since `last` may end.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, turns: &Turns, last: Instant) -> Poll<()> {
        loop {
            match self {
                Turn::Come => return Poll::Ready(()),
                Turn::Waiting(sleep) => {
                    ready!(sleep.as_mut().poll(cx));
                    *self = Turn::Come;
                }
                Turn::Open => {
                    let at = if last.elapsed() >= SILENCE { turns.take() } else { None };
                    *self = at.map_or(Turn::Come, |at| Turn::Waiting(Box::pin(sleep_until(at))));
                }
            }
        }
    }

    /// Waits until a connection that has been silent since `last` may end.
    pub(crate) async fn wait(&mut self, turns: &Turns, last: Instant) {
        poll_fn(|cx| self.poll(cx, turns, last)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn many_ends_at_once_are_spread() {
        let turns = Turns::new(1);
        let last = Instant::now();
        tokio::time::advance(SILENCE).await;
        let began = Instant::now();
        let mut at = BTreeMap::new();
        for _ in 0..1000 {
            let turn = turns.take().map_or(began, |at| at);
            *at.entry(turn.duration_since(began).as_millis()).or_insert(0) += 1;
        }
        assert!(at.values().all(|&together| together <= TOGETHER), "{at:?}");
        assert!(*at.keys().last().unwrap() >= 450, "{at:?}");
        // Everyone comes, in time.
        let mut turn = Turn::default();
        turn.wait(&turns, last).await;
        assert!(began.elapsed() <= Duration::from_secs(1), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_in_use_ends_at_once_and_nobody_waits_longer_than_is_said() {
        let turns = Turns::new(1);
        for _ in 0..100_000 {
            let _ = turns.take();
        }
        let began = Instant::now();
        Turn::default().wait(&turns, began).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        tokio::time::advance(SILENCE).await;
        let (asked, mut turn) = (Instant::now(), Turn::default());
        turn.wait(&turns, began).await;
        let took = asked.elapsed();
        assert!(
            took > Duration::from_secs(3) && took <= Duration::from_secs(5),
            "{took:?}"
        );
        // Once is enough.
        let asked = Instant::now();
        turn.wait(&turns, began).await;
        assert_eq!(asked.elapsed(), Duration::ZERO);
    }
}
