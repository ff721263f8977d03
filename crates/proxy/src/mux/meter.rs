//! How much waits for the sessions of a carrier, and the driver that waits for it to become less.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Waker};

/// The bytes that wait, and whom to wake.
#[derive(Default)]
pub(crate) struct Meter {
    /// Bytes of the buffers of all sessions.
    waiting: AtomicUsize,
    /// The driver does not read until a session has taken something.
    stopped: AtomicBool,
    driver: Mutex<Option<Waker>>,
}

impl Meter {
    /// Bytes that wait for all sessions together.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// A session has more of them.
    pub(super) fn add(&self, len: usize) {
        self.waiting.fetch_add(len, Ordering::Relaxed);
    }

    /// A session has fewer of them.
    pub(super) fn take(&self, len: usize) {
        self.waiting.fetch_sub(len, Ordering::SeqCst);
        if self.stopped.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// The driver waits for a session to take something, or does so no longer.
    pub(super) fn set_stopped(&self, stopped: bool) {
        self.stopped.store(stopped, Ordering::SeqCst);
    }

    /// Has the driver woken when there is something to do.
    pub(super) fn register(&self, cx: &Context<'_>) {
        // Nothing that is done under this lock can panic half way, nor below.
        let mut driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner);
        if driver.as_ref().is_none_or(|old| !old.will_wake(cx.waker())) {
            *driver = Some(cx.waker().clone());
        }
    }

    /// There is something to do.
    pub(super) fn wake(&self) {
        let driver = self.driver.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(driver) = driver {
            driver.wake();
        }
    }
}
