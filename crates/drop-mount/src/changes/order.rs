//! Changes that come by several connections: each is done once, in the order of the numbers.
//!
//! The end that mounts numbers them from 0 on. What a connection that died left unanswered it sends again by another: what was done
//! already is answered as before, and what comes too early waits for what is still on its way elsewhere.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::OUTSTANDING;
use crate::line::Line;
use sealway_drop::link::is_direct;
use sealway_drop::{Error, lock};

/// See the module.
#[derive(Default)]
pub(super) struct Order {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    next: u32,
    /// What became of the last ones. The next one is that behind them.
    done: VecDeque<Done>,
    /// The next one is being done, outside the lock.
    doing: bool,
    over: bool,
}

enum Done {
    /// It goes on beside what follows; the connections that wait for the answer.
    Beside(Vec<Arc<Line>>),
    Answered(Vec<u8>),
}

/// Whose turn it is.
pub(super) enum Turn<'a> {
    /// Of this change: no other one is done meanwhile.
    Now(Now<'a>),
    /// It was done before, and answered so.
    Answered(Vec<u8>),
    /// It is being done, or will not be: nothing is to be said now.
    Passed,
}

/// See [`Turn::Now`].
pub(super) struct Now<'a>(&'a Order);

impl Drop for Now<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).doing = false;
        self.0.changed.notify_all();
    }
}

impl Now<'_> {
    /// It is done.
    pub(super) fn answered(self, answer: &[u8]) {
        self.next(Done::Answered(answer.to_vec()));
    }

    /// It goes on beside what follows.
    pub(super) fn beside(self, line: Arc<Line>) {
        self.next(Done::Beside(vec![line]));
    }

    fn next(self, done: Done) {
        let mut state = lock(&self.0.state);
        state.done.push_back(done);
        if state.done.len() > OUTSTANDING as usize {
            state.done.pop_front();
        }
        state.next = state.next.wrapping_add(1);
    }
}

impl State {
    /// What became of one that was done, if that is still known.
    fn done(&mut self, number: u32) -> Option<&mut Done> {
        let behind = self.next.wrapping_sub(number) as usize;
        let at = self.done.len().checked_sub(behind)?;
        self.done.get_mut(at)
    }

    /// Whether a number is behind the next one, however far.
    fn is_behind(&self, number: u32) -> bool {
        (1..=u32::MAX / 2).contains(&self.next.wrapping_sub(number))
    }
}

impl Order {
    /// Waits for the turn of a change that came by a connection, until that is over.
    pub(super) fn turn(&self, number: u32, line: &Arc<Line>) -> Result<Turn<'_>, Error> {
        let early = |state: &mut State| {
            let ahead = number.wrapping_sub(state.next);
            let waits = if ahead == 0 { state.doing } else { ahead < OUTSTANDING };
            waits && !state.over && !line.is_over()
        };
        let waited = self.changed.wait_while(lock(&self.state), early);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.over || line.is_over() {
            return Ok(Turn::Passed);
        }
        if state.next == number {
            state.doing = true;
            return Ok(Turn::Now(Now(self)));
        }
        let late = is_direct(line.number) && state.is_behind(number);
        match state.done(number) {
            Some(Done::Answered(answer)) => Ok(Turn::Answered(answer.clone())),
            Some(Done::Beside(lines)) => {
                lines.retain(|line| !line.is_over());
                if !lines.iter().any(|other| Arc::ptr_eq(other, line)) {
                    lines.push(line.clone());
                }
                Ok(Turn::Passed)
            }
            // It was given up there, and done and answered elsewhere long ago.
            None if late => Ok(Turn::Passed),
            None => Err(Error::Protocol("a change out of order")),
        }
    }

    /// One that went on beside the others is done. Gives the connections that wait for the answer.
    pub(super) fn answered(&self, number: u32, answer: &[u8]) -> Vec<Arc<Line>> {
        match lock(&self.state).done(number) {
            Some(done) => match std::mem::replace(done, Done::Answered(answer.to_vec())) {
                Done::Beside(lines) => lines,
                Done::Answered(_) => Vec::new(),
            },
            None => Vec::new(),
        }
    }

    /// Whoever waits looks whether it still should.
    pub(super) fn look(&self) {
        drop(lock(&self.state));
        self.changed.notify_all();
    }

    /// Nothing more is begun. Never waits.
    pub(super) fn end(&self) {
        lock(&self.state).over = true;
        self.changed.notify_all();
    }

    /// Waits for what is being done.
    pub(super) fn wait(&self) {
        let waited = self.changed.wait_while(lock(&self.state), |state| state.doing);
        drop(waited);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use sealway_drop::cancel::Cancel;
    use sealway_drop::link::{Place, connect};
    use sealway_drop::testing::{listen, setup};

    /// Connections with these numbers.
    fn lines(numbers: [u32; 2]) -> [Arc<Line>; 2] {
        let (listener, address) = listen();
        let open = move |place, own| {
            let cancel = Cancel::new();
            let connected = connect(place, &setup(own), 1, &cancel).unwrap();
            let connections = connected.data.open_only(&numbers, &cancel);
            let mut lines = numbers.map(|_| Line::new(connections.next().unwrap().unwrap()).unwrap().0);
            lines.sort_by_key(|line| line.number);
            lines.map(Arc::new)
        };
        let there = std::thread::spawn(move || open(Place::Listen(listener), 1));
        let patience = Duration::from_secs(10);
        let addresses = vec![address];
        let here = open(Place::Dial { addresses, patience }, 2);
        drop(there.join().unwrap());
        here
    }

    fn does(order: &Order, number: u32, line: &Arc<Line>) {
        match order.turn(number, line).unwrap() {
            Turn::Now(now) => now.answered(b"done"),
            _ => panic!("{number} is not next"),
        }
    }

    #[test]
    fn a_change_at_hand_is_waited_for_by_who_wants_to_wait() {
        let order = Order::default();
        let [line, _] = lines([5, 17]);
        let Turn::Now(now) = order.turn(0, &line).unwrap() else {
            panic!("not next");
        };
        std::thread::scope(|scope| {
            let (said, ended) = channel();
            let order = &order;
            scope.spawn(move || {
                order.end();
                said.send(false).unwrap();
                order.wait();
                said.send(true).unwrap();
            });
            let first = ended.recv_timeout(Duration::from_secs(30));
            let second = ended.recv_timeout(Duration::from_millis(50));
            now.answered(b"done");
            assert_eq!(first, Ok(false));
            assert!(second.is_err());
            assert!(ended.recv().unwrap());
        });
        assert!(matches!(order.turn(1, &line), Ok(Turn::Passed)));
    }

    #[test]
    fn a_connection_waits_once_for_an_answer_and_only_while_it_stands() {
        let order = Order::default();
        let [first, direct] = lines([5, 17]);
        match order.turn(0, &direct).unwrap() {
            Turn::Now(now) => now.beside(direct.clone()),
            _ => panic!("not next"),
        }
        for _ in 0..3 {
            assert!(matches!(order.turn(0, &direct), Ok(Turn::Passed)));
        }
        direct.end();
        for _ in 0..3 {
            assert!(matches!(order.turn(0, &first), Ok(Turn::Passed)));
        }
        let waiting = order.answered(0, b"done");
        assert!(waiting.len() == 1 && Arc::ptr_eq(&waiting[0], &first));
    }

    #[test]
    fn a_number_that_is_forgotten_passes_on_a_direct_connection_only() {
        let order = Order::default();
        let [first, direct] = lines([5, 17]);
        for number in 0..=OUTSTANDING {
            does(&order, number, &first);
        }
        assert!(matches!(order.turn(1, &first), Ok(Turn::Answered(_))));
        assert!(matches!(order.turn(0, &first), Err(Error::Protocol(_))));
        assert!(matches!(order.turn(0, &direct), Ok(Turn::Passed)));
        let ahead = 2 * OUTSTANDING + 1;
        assert!(matches!(order.turn(ahead, &direct), Err(Error::Protocol(_))));
    }
}
