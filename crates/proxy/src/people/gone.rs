//! One event, and those who wait for it.
//!
//! Whoever carries a connection asks each time it is woken, thousands of times a second. So asking is one load, and a lock is
//! taken only to begin to wait and to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Says that something is over.
#[derive(Debug, Default)]
pub(crate) struct Gone {
    is: AtomicBool,
    waiting: Mutex<Option<Box<Waiting>>>,
}

#[derive(Debug, Default)]
struct Waiting {
    places: Vec<Option<Waker>>,
    free: Vec<usize>,
}

impl Gone {
    fn lock(&self) -> MutexGuard<'_, Option<Box<Waiting>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is over.
    pub(super) fn is(&self) -> bool {
        self.is.load(Ordering::Acquire)
    }

    /// It is over: all who wait are woken, in the order of their places.
    pub(super) fn set(&self) {
        let waiting = {
            let mut waiting = self.lock();
            self.is.store(true, Ordering::Release);
            waiting.take()
        };
        for waker in waiting.into_iter().flat_map(|all| all.places).flatten() {
            waker.wake();
        }
    }

    /// Waits at a place, or at a new one.
    fn wait(&self, place: &mut Option<usize>, waker: &Waker) -> Poll<()> {
        let mut waiting = self.lock();
        if self.is() {
            return Poll::Ready(());
        }
        let all = waiting.get_or_insert_default();
        let at = *place.get_or_insert_with(|| {
            all.free.pop().unwrap_or_else(|| {
                all.places.push(None);
                all.places.len() - 1
            })
        });
        if let Some(own) = all.places.get_mut(at) {
            *own = Some(waker.clone());
        }
        Poll::Pending
    }

    fn leave(&self, at: usize) {
        let mut waiting = self.lock();
        if let Some(all) = waiting.as_mut()
            && let Some(own) = all.places.get_mut(at)
        {
            *own = None;
            all.free.push(at);
            if all.free.len() == all.places.len() {
                *waiting = None;
            }
        }
    }

    /// How many wait.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        let waiting = self.lock();
        waiting.as_ref().map_or(0, |all| all.places.iter().flatten().count())
    }

    /// Whether nothing is held for anybody.
    #[cfg(test)]
    pub(super) fn is_quiet(&self) -> bool {
        self.lock().is_none()
    }
}

/// What one who waits remembers.
#[derive(Debug, Default)]
pub(super) struct Waiter {
    place: Option<usize>,
    waker: Option<Waker>,
}

impl Waiter {
    /// Ready when it is over.
    #[inline]
    pub(super) fn poll(&mut self, gone: &Gone, cx: &mut Context<'_>) -> Poll<()> {
        if gone.is() {
            return Poll::Ready(());
        }
        if self.waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            return Poll::Pending;
        }
        self.waker = Some(cx.waker().clone());
        gone.wait(&mut self.place, cx.waker())
    }

    /// Waits no more.
    pub(super) fn leave(&mut self, gone: &Gone) {
        self.waker = None;
        // Places are given up together when it is over.
        if let Some(at) = self.place.take()
            && !gone.is()
        {
            gone.leave(at);
        }
    }
}
