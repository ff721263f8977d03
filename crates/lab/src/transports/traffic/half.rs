//! Streams whose two ends are on two hosts: each has its own half, and what it is told of the other one.
//!
//! All that is known of a stream only grows: what the sender does is merged into what the receiver knows, and the other way round, so a
//! message that comes late or twice changes nothing.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Direction, Order, Sink, Stream, Traffic, Trouble, weigh};
use crate::run::CellError;

/// How long a receiver with all bytes waits to hear that they are all.
const LAG: Duration = Duration::from_secs(5);

/// What of it is waited for at a time.
const STEP: Duration = Duration::from_millis(1);

/// Which ends of streams are in this process. What the others do is known from messages only, later than it happens.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Here {
    Both,
    Generator,
    Sink,
}

/// A stream that is to be.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::transports) struct Planned {
    /// What its bytes are made of, and what it is known by.
    pub(super) key: u64,
    pub(in crate::transports) order: Order,
}

impl Planned {
    /// Streams with keys of their own.
    pub(in crate::transports) fn of(orders: &[Order]) -> Result<Vec<Planned>, CellError> {
        let planned = |order: &Order| {
            let key = crate::run::seed().map_err(CellError::failed)?;
            Ok(Planned { key, order: *order })
        };
        orders.iter().map(planned).collect()
    }
}

/// What an end knows of a stream.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::transports) struct State {
    pub(in crate::transports) accepted: bool,
    pub(in crate::transports) sent: u64,
    pub(in crate::transports) ended: bool,
    pub(in crate::transports) over: bool,
    pub(in crate::transports) received: u64,
    pub(in crate::transports) arrived: bool,
}

impl Stream {
    fn state(&self) -> State {
        // Whether it has ended is read first: what was sent by then is all.
        let ended = self.ended.load(Ordering::Acquire);
        State {
            accepted: self.accepted.load(Ordering::Acquire),
            sent: self.sent.load(Ordering::Acquire),
            ended,
            over: self.over.load(Ordering::Acquire),
            received: self.received(),
            arrived: self.arrived.load(Ordering::Acquire),
        }
    }

    /// Takes up what only the other end can know: what this one has done itself, nobody tells it.
    fn learn(&self, state: &State) {
        let sends = match self.here {
            Here::Both => return,
            Here::Generator => self.order.direction == Direction::Up,
            Here::Sink => self.order.direction == Direction::Down,
        };
        // Flags last, as who sees them relies on what was counted.
        if sends {
            self.received.fetch_max(state.received, Ordering::AcqRel);
            self.arrived.fetch_or(state.arrived, Ordering::AcqRel);
        } else {
            self.sent.fetch_max(state.sent, Ordering::AcqRel);
            self.ended.fetch_or(state.ended, Ordering::AcqRel);
            self.over.fetch_or(state.over, Ordering::AcqRel);
        }
        if self.here == Here::Generator {
            self.accepted.fetch_or(state.accepted, Ordering::AcqRel);
        }
    }

    /// Waits until the sender is known to have ended.
    pub(super) fn hear_of_the_end(&self) {
        let until = Instant::now() + LAG;
        let ended = || self.ended.load(Ordering::Acquire) || self.over.load(Ordering::Acquire);
        while !ended() && Instant::now() < until {
            std::thread::sleep(STEP);
        }
    }
}

impl Traffic {
    /// The generator's ends of streams whose other ends are elsewhere.
    pub(in crate::transports) fn near(entry: SocketAddr, planned: &[Planned]) -> Result<Traffic, CellError> {
        let traffic = Traffic::new(planned, Here::Generator);
        traffic.generate(entry)?;
        Ok(traffic)
    }

    /// The sink's ends of streams whose other ends are elsewhere.
    pub(in crate::transports) fn far(sink: &Sink, planned: &[Planned]) -> Traffic {
        let traffic = Traffic::new(planned, Here::Sink);
        sink.expect(&traffic.streams);
        traffic
    }

    /// What is known here of each stream.
    pub(in crate::transports) fn states(&self) -> Vec<State> {
        self.streams.iter().map(|stream| stream.state()).collect()
    }

    /// Takes up what the other end knows of each stream.
    pub(in crate::transports) fn learn(&self, states: &[State]) {
        for (stream, state) in self.streams.iter().zip(states) {
            stream.learn(state);
        }
    }

    /// Ends that are still to come here, and what went wrong at those that have come since it was asked last.
    pub(in crate::transports) fn ends(&mut self) -> (usize, Result<(), Trouble>) {
        let mut first = Ok(());
        while let Ok(ended) = self.done.try_recv() {
            self.open -= 1;
            first = weigh(first, ended);
        }
        (self.open, first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transports::traffic::Direction;

    fn traffic(here: Here, direction: Direction) -> Traffic {
        let order = Order::endless(direction);
        Traffic::new(&[Planned { key: 1, order }], here)
    }

    #[test]
    fn what_is_told_late_or_twice_changes_nothing() {
        let traffic = traffic(Here::Generator, Direction::Down);
        let early = State {
            sent: 5,
            ..State::default()
        };
        let late = State {
            accepted: true,
            sent: 9,
            ended: true,
            ..State::default()
        };
        for told in [late, early, late] {
            traffic.learn(&[told]);
            assert_eq!(traffic.states(), [late]);
        }
        // Of a stream that is not known here.
        traffic.learn(&[late, late]);
        assert_eq!(traffic.states(), [late]);
    }

    #[test]
    fn nobody_tells_an_end_what_it_did_itself() {
        let all = State {
            accepted: true,
            sent: 9,
            ended: true,
            over: true,
            received: 7,
            arrived: true,
        };
        for (here, direction) in [
            (Here::Generator, Direction::Up),
            (Here::Generator, Direction::Down),
            (Here::Sink, Direction::Up),
            (Here::Sink, Direction::Down),
        ] {
            let traffic = traffic(here, direction);
            traffic.learn(&[all]);
            let sends = (here == Here::Generator) == (direction == Direction::Up);
            let of_the_receiver = State {
                received: 7,
                arrived: true,
                ..State::default()
            };
            let of_the_sender = State {
                sent: 9,
                ended: true,
                over: true,
                ..State::default()
            };
            let learned = State {
                accepted: here == Here::Generator,
                ..if sends { of_the_receiver } else { of_the_sender }
            };
            assert_eq!(traffic.states(), [learned], "{here:?} {direction:?}");
        }
    }
}
