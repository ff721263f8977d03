//! How connections end: in good order if that takes no longer than [`LINGER`], and idle ones not all at the same moment.
//!
//! Ending a connection takes a dozen system calls, and whoever waits for a core waits for all that became ready before. When
//! thousands of idle connections end at once (a client is killed, a link goes down, a limit on idle time is reached) those
//! in use would stand still until the last of them is gone. Nobody waits for the end of an idle connection, so [`Pacer`]
//! lets a few end per millisecond and core. What has moved something within the last second ends at once; a server with
//! many short connections is not slowed down.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// How long a connection that is over may take to end in good order.
pub(crate) const LINGER: Duration = Duration::from_secs(2);

/// A silence after which the end has time.
const SILENCE: Duration = Duration::from_secs(1);
/// Ends on one core lie this far apart, microseconds.
const APART: u64 = 500;
/// Ends that may fall together.
const TOGETHER: u64 = 8;
/// Longest wait, microseconds. More connections than have a place until then end together.
const LONGEST: u64 = 4_000_000;

/// Says when each idle connection may end.
pub(crate) struct Pacer {
    began: Instant,
    apart: u64,
    /// The next free moment, in microseconds since it began.
    next: AtomicU64,
}

impl Pacer {
    /// For as many cores.
    pub(crate) fn new(cores: usize) -> Self {
        Pacer {
            began: Instant::now(),
            apart: (APART / cores.max(1) as u64).max(1),
            next: AtomicU64::new(0),
        }
    }

    /// The one of this process.
    pub(crate) fn shared() -> &'static Pacer {
        static PACER: OnceLock<Pacer> = OnceLock::new();
        PACER.get_or_init(|| Pacer::new(std::thread::available_parallelism().map_or(1, usize::from)))
    }

    /// When the caller may end its connection. `None`: now.
    fn take(&self) -> Option<Instant> {
        let now = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        let place = |next: u64| next.clamp(now, now.saturating_add(LONGEST));
        let next = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                Some(place(next).saturating_add(self.apart))
            })
            .unwrap_or_else(|next| next);
        let wait = place(next) - now;
        // Timers count in milliseconds: what is due within one goes on with the others.
        (wait >= (self.apart * TOGETHER).max(1_000)).then(|| self.began + Duration::from_micros(now + wait))
    }
}

/// Where one connection stands with the [`Pacer`].
#[derive(Default)]
pub(crate) enum Paced {
    /// It has not asked yet.
    #[default]
    Open,
    Waiting(Pin<Box<Sleep>>),
    Come,
}

impl Paced {
    /// Ready when a connection that has been silent since `last` may end.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, pacer: &Pacer, last: Instant) -> Poll<()> {
        loop {
            match self {
                Paced::Come => return Poll::Ready(()),
                Paced::Waiting(sleep) => {
                    ready!(sleep.as_mut().poll(cx));
                    *self = Paced::Come;
                }
                Paced::Open => {
                    let at = if last.elapsed() >= SILENCE { pacer.take() } else { None };
                    *self = at.map_or(Paced::Come, |at| Paced::Waiting(Box::pin(sleep_until(at))));
                }
            }
        }
    }

    /// Waits until a connection that has been silent since `last` may end.
    pub(crate) async fn wait(&mut self, pacer: &Pacer, last: Instant) {
        poll_fn(|cx| self.poll(cx, pacer, last)).await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn many_ends_at_once_are_spread() {
        let pacer = Pacer::new(1);
        let last = Instant::now();
        tokio::time::advance(SILENCE).await;
        let began = Instant::now();
        let mut at = BTreeMap::new();
        for _ in 0..1000 {
            let end = pacer.take().map_or(began, |at| at);
            *at.entry(end.duration_since(began).as_millis()).or_insert(0) += 1;
        }
        assert!(at.values().all(|&together| together <= TOGETHER), "{at:?}");
        assert!(*at.keys().last().unwrap() >= 450, "{at:?}");
        // Everyone comes, in time.
        let mut paced = Paced::default();
        paced.wait(&pacer, last).await;
        assert!(began.elapsed() <= Duration::from_secs(1), "{:?}", began.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_in_use_ends_at_once_and_nobody_waits_longer_than_is_said() {
        let pacer = Pacer::new(1);
        for _ in 0..100_000 {
            let _ = pacer.take();
        }
        let began = Instant::now();
        Paced::default().wait(&pacer, began).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        tokio::time::advance(SILENCE).await;
        let (asked, mut paced) = (Instant::now(), Paced::default());
        paced.wait(&pacer, began).await;
        let took = asked.elapsed();
        assert!(
            took > Duration::from_secs(3) && took <= Duration::from_secs(5),
            "{took:?}"
        );
        // Once is enough.
        let asked = Instant::now();
        paced.wait(&pacer, began).await;
        assert_eq!(asked.elapsed(), Duration::ZERO);
    }
}
