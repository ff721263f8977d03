//! Writes that are on their way: how many bytes, of which files, and who waits for them.
//!
//! A program goes on as soon as its bytes are on their way, as long as not too many are. Whoever looks at a file, reads it or wants
//! to know that all is well waits for those that were on their way before.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::tree::{Call, TreeError};
use sealway_drop::lock;

/// Lets a program go on.
pub(super) type Answer = Box<dyn FnOnce() + Send>;

/// How often somebody who waits looks whether it still should.
const LOOK: Duration = Duration::from_millis(50);

/// See the module.
pub(super) struct Writes {
    state: Mutex<State>,
    ended: Condvar,
    window: u64,
}

#[derive(Default)]
struct State {
    next: u64,
    all: BTreeSet<u64>,
    of: HashMap<u64, BTreeSet<u64>>,
    bytes: u64,
    waiting: VecDeque<Answer>,
}

impl State {
    /// The earliest write on its way, of a file or of all.
    fn first(&self, ino: Option<u64>) -> Option<u64> {
        match ino {
            Some(ino) => self.of.get(&ino)?.first().copied(),
            None => self.all.first().copied(),
        }
    }
}

impl Writes {
    /// `window`: bytes that may be on their way before programs have to wait.
    pub(super) fn new(window: u64) -> Self {
        Self {
            state: Mutex::default(),
            ended: Condvar::new(),
            window,
        }
    }

    /// So many bytes of a file are on their way. Gives their number, for [`Writes::end`].
    pub(super) fn begin(&self, ino: u64, bytes: u64) -> u64 {
        let mut state = lock(&self.state);
        let number = state.next;
        state.next += 1;
        state.all.insert(number);
        state.of.entry(ino).or_default().insert(number);
        state.bytes += bytes;
        number
    }

    /// They have arrived, or failed. Gives who may go on.
    pub(super) fn end(&self, number: u64, ino: u64, bytes: u64) -> Vec<Answer> {
        let mut state = lock(&self.state);
        state.all.remove(&number);
        if let Some(of) = state.of.get_mut(&ino) {
            of.remove(&number);
            if of.is_empty() {
                state.of.remove(&ino);
            }
        }
        state.bytes = state.bytes.saturating_sub(bytes);
        let free = match state.bytes <= self.window {
            true => state.waiting.drain(..).collect(),
            false => Vec::new(),
        };
        drop(state);
        self.ended.notify_all();
        free
    }

    /// Keeps `answer` until there is room; gives it back if there is.
    pub(super) fn admit(&self, answer: Answer) -> Option<Answer> {
        let mut state = lock(&self.state);
        if state.bytes <= self.window {
            return Some(answer);
        }
        state.waiting.push_back(answer);
        None
    }

    /// Whether nothing of a file is on its way.
    pub(super) fn is_settled(&self, ino: u64) -> bool {
        lock(&self.state).first(Some(ino)).is_none()
    }

    /// Waits until all that was on its way of a file, or of all of them, has arrived or failed.
    pub(super) fn settle(&self, ino: Option<u64>, call: &Call) -> Result<(), TreeError> {
        let mut state = lock(&self.state);
        let until = state.next;
        while state.first(ino).is_some_and(|first| first < until) {
            let left = call.left()?;
            let woken = self.ended.wait_timeout(state, left.min(LOOK));
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    fn call() -> Call {
        Call::within(Duration::from_secs(60))
    }

    #[test]
    fn programs_wait_when_too_much_is_on_its_way() {
        let writes = Writes::new(100);
        let count = Arc::new(AtomicU32::new(0));
        let answer = || -> Answer {
            let count = Arc::clone(&count);
            Box::new(move || {
                count.fetch_add(1, Ordering::SeqCst);
            })
        };
        let one = writes.begin(1, 100);
        assert!(writes.admit(answer()).is_some());
        let two = writes.begin(2, 1);
        assert!(writes.admit(answer()).is_none());
        assert!(writes.admit(answer()).is_none());
        let free = writes.end(one, 1, 100);
        assert_eq!(free.len(), 2);
        free.into_iter().for_each(|answer| answer());
        assert_eq!(count.load(Ordering::SeqCst), 2);
        assert!(writes.end(two, 2, 1).is_empty());
    }

    #[test]
    fn who_waits_for_a_file_waits_for_what_was_on_its_way_before() {
        let writes = Writes::new(100);
        let (one, other) = (writes.begin(1, 1), writes.begin(2, 1));
        assert!(!writes.is_settled(1) && writes.is_settled(3));
        let short = Call::within(Duration::ZERO);
        assert_eq!(writes.settle(Some(1), &short), Err(TreeError::Timeout));
        assert_eq!(writes.settle(None, &short), Err(TreeError::Timeout));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| writes.settle(Some(1), &call()));
            // Another file's do not matter, and neither do later ones.
            let later = writes.begin(1, 1);
            writes.end(one, 1, 1);
            // It may have begun to wait only now, and then waits for this one too.
            writes.end(later, 1, 1);
            assert_eq!(waiting.join().unwrap(), Ok(()));
        });
        writes.end(other, 2, 1);
        assert_eq!(writes.settle(None, &call()), Ok(()));
        assert!(lock(&writes.state).of.is_empty());
    }
}
