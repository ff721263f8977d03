//! Entries that the sender has listed and that are not decided yet.
//!
//! They are decided in a thread of their own. A person may be asked about one of them, for as long as that takes; what the
//! sender goes on to say must be heard meanwhile, or its end of the connection would take this one for dead.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, PoisonError};

use crate::entry::Entry;
use sealway_drop::lock;

/// Lists that wait while nobody is asked; beyond that, the sender waits.
const AHEAD: usize = 16;

/// What was heard and is to be decided, in the order in which it came. While somebody is asked it takes whatever comes, which the
/// limits of a list bound.
#[derive(Default)]
pub(super) struct Listed {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    lists: VecDeque<Vec<Entry>>,
    asking: bool,
    /// No more will be added.
    closed: bool,
    /// No more will be taken.
    gone: bool,
}

impl Listed {
    /// Adds a list, as soon as there is room for it.
    pub(super) fn add(&self, list: Vec<Entry>) {
        let full = |state: &mut State| state.lists.len() >= AHEAD && !state.asking && !state.gone;
        let state = self.changed.wait_while(lock(&self.state), full);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if !state.gone {
            state.lists.push_back(list);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// The next list; `None` after the last.
    pub(super) fn next(&self) -> Option<Vec<Entry>> {
        let nothing = |state: &mut State| state.lists.is_empty() && !state.closed;
        let state = self.changed.wait_while(lock(&self.state), nothing);
        let list = state.unwrap_or_else(PoisonError::into_inner).lists.pop_front();
        self.changed.notify_all();
        list
    }

    /// Asks somebody.
    pub(super) fn asking<T>(&self, ask: impl FnOnce() -> T) -> T {
        self.set(|state| state.asking = true);
        let answer = ask();
        self.set(|state| state.asking = false);
        answer
    }

    /// No more will be added.
    pub(super) fn close(&self) {
        self.set(|state| state.closed = true);
    }

    /// The same when what this returns is dropped.
    pub(super) fn close_at_end(&self) -> impl Drop + '_ {
        AtEnd(self, |state| state.closed = true)
    }

    /// No more will be taken when what this returns is dropped, and nobody waits for room any more.
    pub(super) fn leave_at_end(&self) -> impl Drop + '_ {
        AtEnd(self, |state| state.gone = true)
    }

    fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut lock(&self.state));
        self.changed.notify_all();
    }
}

struct AtEnd<'a>(&'a Listed, fn(&mut State));

impl Drop for AtEnd<'_> {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn lists_wait_for_room_unless_somebody_is_asked() {
        let listed = Listed::default();
        let (added, adds) = channel();
        std::thread::scope(|scope| {
            let all = &listed;
            // Should this fail, the other thread is not to wait for room for ever.
            let _leave = all.leave_at_end();
            scope.spawn(move || {
                for number in 0..3 * AHEAD {
                    all.add(Vec::new());
                    added.send(number).expect("somebody hears");
                }
                all.close();
            });
            let next = || adds.recv_timeout(LIMIT).expect("room for one more");
            let until = |last: usize| std::iter::repeat_with(next).take_while(|number| *number < last).count();
            assert_eq!(until(AHEAD - 1), AHEAD - 1);
            assert_eq!(lock(&listed.state).lists.len(), AHEAD, "the next waits");
            listed.asking(|| until(3 * AHEAD - 1));
            assert_eq!(std::iter::from_fn(|| listed.next()).count(), 3 * AHEAD);
        });
    }

    #[test]
    fn nobody_waits_for_who_has_left() {
        let listed = Listed::default();
        drop(listed.leave_at_end());
        (0..3 * AHEAD).for_each(|_| listed.add(Vec::new()));
        drop(listed.close_at_end());
        assert!(listed.next().is_none());
    }
}
