//! How long a message that has begun is waited for.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// How long a message that has begun is waited for. Between messages nothing is due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Patience {
    /// Longest time in which nothing comes. Default: 60 s.
    pub silence: Duration,
    /// Longest time until the message is whole, from when it is first waited for. Default: 20 minutes.
    pub message: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            silence: Duration::from_secs(60),
            message: Duration::from_secs(20 * 60),
        }
    }
}

/// The timer of one direction. It is set when it is first needed and looked at when it fires.
#[derive(Default)]
pub(crate) struct Timer {
    pub(crate) patience: Patience,
    sleep: Option<Pin<Box<Sleep>>>,
    /// When the message was first waited for.
    began: Option<Instant>,
    /// When something last came of it.
    moved: Option<Instant>,
}

impl Timer {
    /// Says that something came.
    pub(crate) fn came(&mut self) {
        if self.began.is_some() {
            self.moved = Some(Instant::now());
        }
    }

    /// Says that nothing is due.
    pub(crate) const fn rest(&mut self) {
        self.began = None;
        self.moved = None;
    }

    /// Ready, with the time waited, when patience is over.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Duration> {
        let began = *self.began.get_or_insert_with(Instant::now);
        let moved = self.moved.unwrap_or(began);
        let end = match (
            moved.checked_add(self.patience.silence),
            began.checked_add(self.patience.message),
        ) {
            (Some(silence), Some(message)) => silence.min(message),
            (Some(end), None) | (None, Some(end)) => end,
            (None, None) => return Poll::Pending,
        };
        let sleep = self.sleep.get_or_insert_with(|| Box::pin(sleep_until(end)));
        // A timer that is early is looked at again when it fires; one that is late is set anew.
        if sleep.deadline() > end {
            sleep.as_mut().reset(end);
        }
        loop {
            ready!(sleep.as_mut().poll(cx));
            let now = Instant::now();
            if now >= end {
                return Poll::Ready(now - began);
            }
            sleep.as_mut().reset(end);
        }
    }
}
