//! Deadline and cancellation of a call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use sealway_drop::lock;

use super::TreeError;

/// How long a call may take and how it is called off.
#[derive(Debug, Clone)]
pub struct Call {
    /// When the answer is no longer wanted.
    pub deadline: Instant,
    /// Fires when nobody waits any more.
    pub cancel: Cancel,
}

impl Call {
    /// A call that may take `time`.
    pub fn within(time: Duration) -> Self {
        Self {
            deadline: Instant::now() + time,
            cancel: Cancel::new(),
        }
    }

    /// Time left; an error if there is none or the call was called off.
    pub fn left(&self) -> Result<Duration, TreeError> {
        if self.cancel.is_cancelled() {
            return Err(TreeError::Cancelled);
        }
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            Err(TreeError::Timeout)
        } else {
            Ok(left)
        }
    }
}

/// A token that is fired once; clones are the same token.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Inner>);

#[derive(Default)]
struct Inner {
    fired: AtomicBool,
    hooks: Mutex<Hooks>,
}

#[derive(Default)]
struct Hooks {
    next: u64,
    waiting: Vec<(u64, Box<dyn FnOnce() + Send>)>,
}

impl Cancel {
    /// A token that has not fired.
    pub fn new() -> Self {
        Self::default()
    }

    /// Fires the token and runs what was registered, on this thread.
    pub fn cancel(&self) {
        self.0.fired.store(true, Ordering::SeqCst);
        let waiting = std::mem::take(&mut lock(&self.0.hooks).waiting);
        for (_, hook) in waiting {
            hook();
        }
    }

    /// Whether the token has fired.
    pub fn is_cancelled(&self) -> bool {
        self.0.fired.load(Ordering::SeqCst)
    }

    /// Runs `hook` once when the token fires, at once if it has; not at all once the answer is dropped.
    pub fn on_cancel(&self, hook: impl FnOnce() + Send + 'static) -> Hook {
        let mut hooks = lock(&self.0.hooks);
        // Looked at under the lock: `cancel` sets the flag first and takes the hooks afterwards.
        if self.is_cancelled() {
            drop(hooks);
            hook();
            return Hook {
                id: 0,
                token: Weak::new(),
            };
        }
        hooks.next += 1;
        let id = hooks.next;
        hooks.waiting.push((id, Box::new(hook)));
        Hook {
            id,
            token: Arc::downgrade(&self.0),
        }
    }
}

impl std::fmt::Debug for Cancel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

/// A registration with a [`Cancel`]; dropping it takes it back.
pub struct Hook {
    id: u64,
    token: Weak<Inner>,
}

impl Drop for Hook {
    fn drop(&mut self) {
        if let Some(inner) = self.token.upgrade() {
            lock(&inner.hooks).waiting.retain(|(id, _)| *id != self.id);
        }
    }
}

/// Where a call waits for its answer.
pub(crate) struct Slot<T> {
    state: Mutex<Waiting<T>>,
    ready: Condvar,
}

struct Waiting<T> {
    answer: Option<Result<T, TreeError>>,
    gone: bool,
}

impl<T> Slot<T> {
    pub(crate) fn new() -> Arc<Self> {
        let (answer, gone) = (None, false);
        Arc::new(Self {
            state: Mutex::new(Waiting { answer, gone }),
            ready: Condvar::new(),
        })
    }

    /// Gives the answer back if nobody waits for it.
    pub(crate) fn put(&self, result: Result<T, TreeError>) -> Option<Result<T, TreeError>> {
        let mut state = lock(&self.state);
        if state.gone {
            return Some(result);
        }
        state.answer.get_or_insert(result);
        self.ready.notify_all();
        None
    }

    /// Whoever waits looks whether it still should.
    pub(crate) fn wake(&self) {
        drop(lock(&self.state));
        self.ready.notify_all();
    }

    pub(crate) fn wait(&self, call: &Call) -> Result<T, TreeError> {
        let mut state = lock(&self.state);
        loop {
            if let Some(result) = state.answer.take() {
                return result;
            }
            let left = match call.left() {
                Ok(left) => left,
                Err(error) => {
                    state.gone = true;
                    return Err(error);
                }
            };
            let woken = self.ready.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn hooks_run_once_and_only_while_registered() {
        let count = Arc::new(AtomicU32::new(0));
        let token = Cancel::new();
        let add = |n: u32| {
            let count = Arc::clone(&count);
            move || {
                count.fetch_add(n, Ordering::SeqCst);
            }
        };
        let kept = token.on_cancel(add(1));
        drop(token.on_cancel(add(10)));
        token.clone().cancel();
        token.cancel();
        drop(kept);
        let _late = token.on_cancel(add(100));
        assert_eq!(count.load(Ordering::SeqCst), 101);
    }

    #[test]
    fn a_call_says_why_it_has_no_time_left() {
        let call = Call::within(Duration::ZERO);
        assert_eq!(call.left(), Err(TreeError::Timeout));
        let call = Call::within(Duration::from_secs(600));
        assert!(call.left().is_ok());
        call.cancel.cancel();
        assert_eq!(call.left(), Err(TreeError::Cancelled));
    }
}
