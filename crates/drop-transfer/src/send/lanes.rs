//! What went out on direct connections, until the receiver says that it has it: such a connection may break, and the transfer goes on.

use std::collections::{HashMap, VecDeque};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use super::file::{SEGMENT, Sending};
use super::queue::Work;
use crate::groups::GROUP;
use sealway_drop::link::is_direct;
use sealway_drop::wire::control::Taken;
use sealway_drop::{Error, lock};

/// Records that the receiver may leave unconfirmed; it confirms some dozens at a time.
const UNCONFIRMED: usize = 4096;

/// Connections that are kept in mind at a time.
const LANES: usize = 64;

/// The content of a record.
pub(super) enum Content {
    /// A part of a file: its number, offset and length.
    Piece(u32, u64, u64),
    /// Whole files.
    Pack(Vec<u32>),
}

/// What of a piece of work was not sealed when its connection broke.
pub(super) enum Rest {
    Nothing,
    /// Of a segment that begins at the first number, from the second up to the third.
    Segment(Arc<Sending>, u64, u64, u64),
    /// Of a part that is sent again: the file, from where, up to where.
    Again(u32, u64, u64),
    Pack(Vec<u32>),
    PackAgain(Vec<u32>),
}

#[derive(Default)]
struct Lane {
    /// Records that were sealed.
    sent: u64,
    /// Those that the receiver has.
    taken: u64,
    /// The content of the others.
    log: VecDeque<Content>,
    /// The receiver takes no more.
    over: bool,
    stream: Option<TcpStream>,
}

#[derive(Default)]
struct State {
    lanes: HashMap<u32, Lane>,
    stopped: bool,
}

/// The direct connections of a transfer.
#[derive(Default)]
pub(super) struct Lanes {
    state: Mutex<State>,
    changed: Condvar,
}

impl Lanes {
    /// A connection is there.
    pub(super) fn begin(&self, connection: u32, stream: TcpStream) {
        let mut state = lock(&self.state);
        let lane = state.lanes.entry(connection).or_default();
        if lane.over {
            let _ = stream.shutdown(Shutdown::Both);
        }
        lane.stream = Some(stream);
    }

    /// A record was sealed.
    pub(super) fn note(&self, connection: u32, content: Content) -> Result<(), Error> {
        let mut state = lock(&self.state);
        let lane = state.lanes.entry(connection).or_default();
        lane.sent += 1;
        lane.log.push_back(content);
        match lane.log.len() <= UNCONFIRMED {
            true => Ok(()),
            false => Err(Error::Protocol("content that is never confirmed")),
        }
    }

    /// The receiver says what it has.
    pub(super) fn taken(&self, taken: &Taken) -> Result<(), Error> {
        let mut state = lock(&self.state);
        let known = state.lanes.len() < LANES || state.lanes.contains_key(&taken.connection);
        if !is_direct(taken.connection) || !known {
            return Err(Error::Protocol("a connection confirmed that is not there"));
        }
        let lane = state.lanes.entry(taken.connection).or_default();
        if taken.records > lane.sent || taken.records < lane.taken || lane.over {
            return Err(Error::Protocol("records confirmed that were not sent"));
        }
        lane.log.drain(..(taken.records - lane.taken) as usize);
        lane.taken = taken.records;
        if taken.over {
            lane.over = true;
            if let Some(stream) = &lane.stream {
                let _ = stream.shutdown(Shutdown::Both);
            }
            self.changed.notify_all();
        }
        Ok(())
    }

    /// Waits until the receiver takes no more of a connection. Returns what it did not take; `None` once all is stopped.
    pub(super) fn over(&self, connection: u32) -> Option<Vec<Content>> {
        let waiting = |state: &mut State| !state.stopped && !state.lanes.get(&connection).is_some_and(|lane| lane.over);
        let mut state = self
            .changed
            .wait_while(lock(&self.state), waiting)
            .unwrap_or_else(PoisonError::into_inner);
        if state.stopped {
            return None;
        }
        let lane = state.lanes.remove(&connection).unwrap_or_default();
        Some(lane.log.into())
    }

    /// Nobody waits any more.
    pub(super) fn stop(&self) {
        lock(&self.state).stopped = true;
        self.changed.notify_all();
    }
}

/// What is to be done again after a connection broke.
#[derive(Default)]
pub(super) struct Again {
    pub(super) work: Vec<Work>,
    /// Bytes of a file that were counted as sent, and will be once more.
    pub(super) counted: Option<(Arc<Sending>, u64)>,
}

/// What is lost of a connection, and the rest of what was being sent, is done again. Where all is hashed, the receiver begins anew with the
/// group that was under way, so all of it comes again.
pub(super) fn again(lost: Vec<Content>, rest: Rest, hash: bool) -> Again {
    let group = |at: u64| if hash { at / GROUP * GROUP } else { at };
    let (mut work, mut counted) = (Vec::new(), None);
    let mut pieces = Vec::new();
    for content in lost {
        match content {
            Content::Piece(file, offset, len) => pieces.push((file, offset, offset + len)),
            Content::Pack(files) => work.push(Work::PackAgain(files)),
        }
    }
    match rest {
        Rest::Nothing => {}
        Rest::Segment(file, begin, at, end) => {
            let of_segment = |&(id, from, _): &(u32, u64, u64)| id == file.id && (begin..at).contains(&from);
            let from = pieces
                .iter()
                .filter(|piece| of_segment(piece))
                .map(|piece| piece.1)
                .min();
            let from = group(from.unwrap_or(at));
            pieces.retain(|piece| !of_segment(piece));
            counted = Some((file.clone(), at - from));
            work.push(Work::Segment(file, from, end - from));
        }
        Rest::Again(file, at, end) => pieces.push((file, at, end)),
        Rest::Pack(files) => work.push(Work::Pack(files)),
        Rest::PackAgain(files) => work.push(Work::PackAgain(files)),
    }
    pieces.sort_unstable();
    let mut ranges: Vec<(u32, u64, u64)> = Vec::new();
    for (file, from, end) in pieces {
        match ranges.last_mut() {
            Some(last) if last.0 == file && last.2 == from => last.2 = end,
            _ => ranges.push((file, group(from), end)),
        }
    }
    for (file, mut from, end) in ranges {
        while from < end {
            // Up to the end of a segment, which is that of a group.
            let until = ((from / SEGMENT + 1) * SEGMENT).min(end);
            work.push(Work::Again(file, from, until - from));
            from = until;
        }
    }
    Again { work, counted }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::content::PIECE;
    use crate::hashing::Agreed;
    use crate::source::{ScanOptions, scan};

    const PART: u64 = PIECE as u64;

    fn over(connection: u32, records: u64, over: bool) -> Taken {
        Taken {
            connection,
            records,
            over,
        }
    }

    /// What is done again, as ranges of files and packs.
    fn told(again: &Again) -> Vec<(u32, u64, u64)> {
        again
            .work
            .iter()
            .map(|work| match work {
                Work::Again(file, offset, len) => (*file, *offset, *len),
                Work::PackAgain(files) | Work::Pack(files) => (files[0], 0, 0),
                _ => panic!("nothing else is done again"),
            })
            .collect()
    }

    #[test]
    fn what_was_not_taken_comes_again() {
        let lanes = Lanes::default();
        for at in 0..10 {
            lanes.note(17, Content::Piece(3, at * PART, PART)).unwrap();
        }
        lanes.note(17, Content::Pack(vec![7, 8])).unwrap();
        lanes.taken(&over(17, 4, false)).unwrap();
        lanes.taken(&over(17, 6, true)).unwrap();
        let lost = lanes.over(17).unwrap();
        assert_eq!(
            told(&again(lost, Rest::Nothing, false)),
            [(7, 0, 0), (3, 6 * PART, 4 * PART)]
        );
    }

    #[test]
    fn a_group_that_was_under_way_comes_again_whole_where_all_is_hashed() {
        let lost = || vec![Content::Piece(3, 6 * PART, PART), Content::Piece(3, 7 * PART, PART)];
        assert_eq!(told(&again(lost(), Rest::Nothing, true)), [(3, GROUP, 4 * PART)]);
        // Nothing that was sealed is lost, but the group was not sent to its end.
        let rest = Rest::Again(3, 6 * PART, 2 * GROUP + 5);
        assert_eq!(told(&again(vec![], rest, true)), [(3, GROUP, GROUP + 5)]);
        let rest = Rest::Again(3, 8 * PART, 12 * PART);
        assert_eq!(told(&again(lost(), rest, false)), [(3, 6 * PART, 6 * PART)]);
    }

    #[test]
    fn what_was_counted_of_a_segment_and_comes_again_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, vec![1; 1 << 20]).unwrap();
        let scan = scan(&[path], ScanOptions::default(), &mut |_| {}).unwrap();
        let entry = &scan.entries[0];
        let file = Arc::new(Sending::new(0, scan.open(entry).unwrap(), entry, &Agreed::Off));
        let lost = vec![Content::Piece(0, PART, PART), Content::Piece(3, PART, PART)];
        let again = again(lost, Rest::Segment(file.clone(), 0, 3 * PART, GROUP), false);
        let (counted, bytes) = again.counted.unwrap();
        assert!(Arc::ptr_eq(&counted, &file));
        assert_eq!(bytes, 2 * PART);
        assert!(matches!(&again.work[0], Work::Segment(_, from, len) if (*from, *len) == (PART, GROUP - PART)));
    }

    #[test]
    fn long_parts_are_cut_at_segments() {
        let rest = Rest::Again(3, 2 * GROUP, 2 * SEGMENT + 1);
        assert_eq!(
            told(&again(vec![], rest, true)),
            [
                (3, 2 * GROUP, SEGMENT - 2 * GROUP),
                (3, SEGMENT, SEGMENT),
                (3, 2 * SEGMENT, 1)
            ]
        );
    }

    #[test]
    fn a_receiver_cannot_confirm_what_was_not_sent() {
        let lanes = Lanes::default();
        lanes.note(17, Content::Pack(vec![1])).unwrap();
        lanes.note(17, Content::Pack(vec![2])).unwrap();
        for bad in [over(17, 3, false), over(16, 0, true), over(0, 0, true)] {
            assert!(lanes.taken(&bad).is_err(), "{bad:?}");
        }
        lanes.taken(&over(17, 1, false)).unwrap();
        assert!(lanes.taken(&over(17, 0, false)).is_err(), "fewer than before");
        lanes.taken(&over(17, 1, true)).unwrap();
        assert!(lanes.taken(&over(17, 2, true)).is_err(), "more after the end");
        assert_eq!(lanes.over(17).unwrap().len(), 1);
        // Connections that this end does not know of yet.
        for connection in 100.. {
            if lanes.taken(&over(connection, 0, true)).is_err() {
                assert_eq!(connection, 100 + LANES as u32);
                break;
            }
        }
    }

    #[test]
    fn a_receiver_that_confirms_nothing_ends_it() {
        let lanes = Lanes::default();
        let noted = (0..).find(|_| lanes.note(17, Content::Pack(vec![])).is_err());
        assert_eq!(noted, Some(UNCONFIRMED));
    }

    #[test]
    fn who_waits_is_let_go_when_all_is_stopped() {
        let lanes = Lanes::default();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| lanes.over(17).is_none());
            lanes.stop();
            assert!(waiting.join().unwrap());
        });
    }
}
