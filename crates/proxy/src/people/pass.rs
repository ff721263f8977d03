//! What one direction of a connection may move before it asks again.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

use super::Refused;
use super::budget::{Budget, Way};
use crate::bucket::QUANTUM;

/// What is moved at a time of a quota that is nearly used up.
const LEAST: u64 = 64 << 10;

/// How long somebody waits at most before he looks whether his limits are still the same.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// Leave for one direction to move bytes, taken from the person's bucket before they are read: whoever sends is held back by his own
/// transport, and nothing is queued here.
#[derive(Debug)]
pub(crate) struct Pass {
    way: Way,
    /// Bytes that may be moved.
    left: usize,
    /// Bytes that have been taken and are waited for: at which rate, and until when.
    coming: Option<(usize, u64, Instant)>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Pass {
    pub(crate) fn new(way: Way) -> Pass {
        Pass {
            way,
            left: 0,
            coming: None,
            timer: None,
        }
    }

    /// Which way the bytes go.
    pub(crate) fn way(&self) -> Way {
        self.way
    }

    /// Ready when some bytes may be moved: how many.
    ///
    /// # Errors
    /// [`Refused::Quota`] when nothing is left of the quota.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>, budget: &Budget) -> Poll<Result<usize, Refused>> {
        let bucket = budget.bucket(self.way);
        let size = match bucket.rate() > 0 {
            true => bucket.quantum(),
            // Without a rate it is only asked whether there still is none, and whether anything is left of the quota.
            false => budget
                .left()
                .map_or(QUANTUM, |left| (left / 1024).clamp(LEAST, QUANTUM)) as usize,
        };
        // What is left of a turn is moved at no less cost than a whole one. Where nobody waits, it is made a whole one.
        if (1..size).contains(&self.left)
            && !budget.is_used_up()
            && bucket.take_at_once(size - self.left, Instant::now())
        {
            self.left = size;
        }
        self.poll_for(cx, budget, size)
    }

    /// The same, where this many bytes are wanted if none are left.
    ///
    /// # Errors
    /// As for [`Pass::poll`].
    pub(crate) fn poll_for(
        &mut self,
        cx: &mut Context<'_>,
        budget: &Budget,
        bytes: usize,
    ) -> Poll<Result<usize, Refused>> {
        let bucket = budget.bucket(self.way);
        while self.left == 0 {
            if let (Some(_), Some(timer)) = (self.coming, &mut self.timer) {
                ready!(timer.as_mut().poll(cx));
            }
            if budget.is_used_up() {
                return Poll::Ready(Err(Refused::Quota));
            }
            let (now, rate) = (Instant::now(), bucket.rate());
            let (bytes, until) = match self.coming {
                Some((bytes, at, until)) if at == rate => (bytes, until),
                // What was taken at another rate is not waited for.
                _ => (bytes, bucket.take(bytes, now)),
            };
            if until <= now {
                (self.left, self.coming) = (bytes, None);
                break;
            }
            self.coming = Some((bytes, rate, until));
            let at = until.min(now + LOOK_AGAIN);
            match &mut self.timer {
                Some(timer) => timer.as_mut().reset(at),
                None => self.timer = Some(Box::pin(sleep_until(at))),
            }
        }
        Poll::Ready(Ok(self.left))
    }

    /// So many bytes were moved. What a buffer brought beyond the leave is taken too; where there were none, others may have what is
    /// left.
    pub(crate) fn spend(&mut self, budget: &Budget, bytes: usize) {
        if bytes == 0 {
            return self.give_back(budget);
        }
        if bytes > self.left {
            budget.bucket(self.way).take(bytes - self.left, Instant::now());
        }
        self.left = self.left.saturating_sub(bytes);
    }

    /// There was nothing to read: others may have what is left.
    pub(crate) fn give_back(&mut self, budget: &Budget) {
        if self.left > 0 {
            budget.bucket(self.way).give_back(std::mem::take(&mut self.left));
        }
    }

    /// Nothing more is moved: others may have what is left, and the place of who waits.
    pub(crate) fn finish(&mut self, budget: &Budget) {
        if let Some((bytes, rate, _)) = self.coming.take()
            && rate == budget.bucket(self.way).rate()
        {
            self.left += bytes;
        }
        self.give_back(budget);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Limits;

    fn polled(pass: &mut Pass, budget: &Budget) -> Poll<Result<usize, Refused>> {
        pass.poll(&mut Context::from_waker(std::task::Waker::noop()), budget)
    }

    fn budget(limits: &Limits) -> Budget {
        let budget = Budget::new(Instant::now());
        budget.set(limits, Instant::now());
        budget
    }

    #[tokio::test(start_paused = true)]
    async fn turns_are_whole_where_nothing_is_waited_for() {
        let fast = Some(1 << 40);
        let quota = Some(1 << 40);
        let all = [(None, None), (fast, None), (None, quota), (fast, quota)];
        for (downlink, quota) in all {
            let budget = budget(&Limits {
                downlink,
                quota,
                ..Limits::default()
            });
            let mut pass = Pass::new(Way::Down);
            for moved in [0, 1000, 300_000, QUANTUM as usize, 1] {
                assert_eq!(polled(&mut pass, &budget), Poll::Ready(Ok(QUANTUM as usize)), "{moved}");
                pass.spend(&budget, moved);
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_has_begun_goes_on_while_others_wait() {
        let budget = budget(&Limits {
            downlink: Some(1_000_000),
            burst: Some(16 << 10),
            ..Limits::default()
        });
        let mut pass = Pass::new(Way::Down);
        assert_eq!(polled(&mut pass, &budget), Poll::Ready(Ok(16 << 10)));
        pass.spend(&budget, 10_000);
        assert_eq!(polled(&mut pass, &budget), Poll::Ready(Ok((16 << 10) - 10_000)));
        pass.spend(&budget, (16 << 10) - 10_000);
        assert!(polled(&mut pass, &budget).is_pending());
    }

    #[tokio::test(start_paused = true)]
    async fn a_quota_that_is_used_up_is_not_taken_of() {
        let budget = budget(&Limits {
            quota: Some(1 << 20),
            ..Limits::default()
        });
        let mut pass = Pass::new(Way::Up);
        let mut moved = 0;
        while let Poll::Ready(Ok(leave)) = polled(&mut pass, &budget) {
            // A little is always left of the turn.
            let some = leave.min(40_000);
            pass.spend(&budget, some);
            budget.count(Way::Up, some);
            moved += some;
        }
        assert!((1 << 20..(1 << 20) + 70_000).contains(&moved), "{moved}");
        assert_eq!(polled(&mut pass, &budget), Poll::Ready(Err(Refused::Quota)));
    }
}
