use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use super::stream::{Budget, SEGMENT, Step, Stream};
use crate::tree::{Chunk, TreeError};

const MIB: u64 = 1 << 20;

type Fetched = (u64, u64, u32);

/// A file whose bytes say where they stand, and what a stream did with it.
struct Bench {
    stream: Stream<usize>,
    budget: Arc<Budget>,
    size: u64,
    version: u64,
    fetches: Vec<Fetched>,
    reads: Vec<(u64, u32)>,
    outcomes: Vec<Option<Result<Vec<u8>, TreeError>>>,
}

fn content(version: u64, from: u64, to: u64) -> Vec<u8> {
    (from..to)
        .map(|at| (at ^ (at >> 8) ^ (at >> 16) ^ version) as u8)
        .collect()
}

impl Bench {
    fn new(size: u64, window: u64, memory: u64) -> Self {
        let budget = Budget::new(memory);
        let stream = Stream::new(size, 1, window, Arc::clone(&budget));
        let (fetches, reads, outcomes) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            stream,
            budget,
            size,
            version: 1,
            fetches,
            reads,
            outcomes,
        }
    }

    fn apply(&mut self, steps: Vec<Step<usize>>) {
        for step in steps {
            match step {
                Step::Fetch { id, offset, len, .. } => self.fetches.push((id, offset, len)),
                Step::Answer { who, pieces } => {
                    let mut data = pieces.first.to_vec();
                    pieces.rest.iter().for_each(|piece| data.extend_from_slice(piece));
                    assert!(self.outcomes[who].replace(Ok(data)).is_none());
                }
                Step::Fail { who, error } => assert!(self.outcomes[who].replace(Err(error)).is_none()),
                Step::Cancel(_) | Step::Changed { .. } => {}
            }
        }
    }

    fn read(&mut self, offset: u64, len: u32) -> usize {
        let (who, mut steps) = (self.outcomes.len(), Vec::new());
        self.outcomes.push(None);
        self.reads.push((offset, len));
        self.stream.handle_read(offset, len, who, &mut steps);
        self.apply(steps);
        who
    }

    fn drive(&mut self, event: impl FnOnce(&mut Stream<usize>, &mut Vec<Step<usize>>)) {
        let mut steps = Vec::new();
        event(&mut self.stream, &mut steps);
        self.apply(steps);
    }

    fn answer(&mut self, at: usize, result: impl FnOnce(Chunk) -> Result<Chunk, TreeError>) {
        let (id, offset, len) = self.fetches.remove(at);
        let end = (offset + u64::from(len)).min(self.size);
        let data = Bytes::from(content(self.version, offset.min(end), end));
        let mut steps = Vec::new();
        let chunk = Chunk {
            data,
            size: self.size,
            version: self.version,
        };
        self.stream.handle_fetched(id, result(chunk), &mut steps);
        self.apply(steps);
    }

    fn answer_all(&mut self) {
        while !self.fetches.is_empty() {
            self.answer(0, Ok);
        }
    }

    fn check(&self, who: usize) {
        let (offset, len) = self.reads[who];
        let end = (offset + u64::from(len)).min(self.size);
        let want = content(self.version, offset.min(end), end);
        assert!(self.outcomes[who] == Some(Ok(want)), "read {offset}+{len}");
    }
}

#[test]
fn reading_in_one_go_is_fetched_ahead_once_with_a_growing_window() {
    let mut bench = Bench::new(64 * MIB, 8 * MIB, 64 * MIB);
    let (mut fetched, mut most, mut longest) = (0, 0, 0);
    for at in (0..64 * MIB).step_by(128 << 10) {
        let who = bench.read(at, 128 << 10);
        fetched += bench.fetches.iter().map(|fetch| u64::from(fetch.2)).sum::<u64>();
        longest = longest.max(bench.fetches.iter().map(|fetch| u64::from(fetch.2)).max().unwrap_or(0));
        bench.answer_all();
        bench.check(who);
        most = most.max(64 * MIB - bench.budget.left());
    }
    assert_eq!(fetched, 64 * MIB, "every byte once");
    assert_eq!(longest, SEGMENT);
    assert!((8 * MIB..=12 * MIB).contains(&most), "{most}");
    assert_eq!(bench.budget.left(), 64 * MIB, "nothing is held after the end");
}

#[test]
fn the_window_starts_small() {
    let mut bench = Bench::new(64 * MIB, 32 * MIB, 64 * MIB);
    bench.read(0, 128 << 10);
    assert!(bench.fetches.iter().map(|fetch| u64::from(fetch.2)).sum::<u64>() <= 2 * MIB);
}

#[test]
fn jumping_about_fetches_what_is_asked_for_and_no_more() {
    let mut bench = Bench::new(64 * MIB, 32 * MIB, 64 * MIB);
    for i in [3_u64, 60, 17, 44, 5, 31] {
        let who = bench.read(i * MIB, 4096);
        assert_eq!(bench.fetches.len(), 1);
        assert_eq!((bench.fetches[0].1, bench.fetches[0].2), (i * MIB, 4096));
        bench.answer_all();
        bench.check(who);
    }
}

#[test]
fn a_jump_drops_the_window() {
    let mut bench = Bench::new(64 * MIB, 8 * MIB, 64 * MIB);
    for at in (0..4 * MIB).step_by(1 << 20) {
        bench.read(at, 1 << 20);
        bench.answer_all();
    }
    assert!(bench.budget.left() < 64 * MIB);
    bench.read(40 * MIB, 4096);
    assert_eq!(bench.budget.left(), 64 * MIB);
}

#[test]
fn without_memory_reads_are_fetched_apart() {
    let mut bench = Bench::new(8 * MIB, 8 * MIB, 0);
    for at in (0..8 * MIB).step_by(128 << 10) {
        let who = bench.read(at, 128 << 10);
        bench.answer_all();
        bench.check(who);
    }
}

#[test]
fn a_failed_fetch_fails_who_waits_for_it_and_is_tried_again_later() {
    let mut bench = Bench::new(8 * MIB, 4 * MIB, 64 * MIB);
    let first = bench.read(0, 128 << 10);
    bench.answer(0, |_| Err(TreeError::Failed));
    assert_eq!(bench.outcomes[first], Some(Err(TreeError::Failed)));
    bench.fetches.clear();
    let second = bench.read(0, 128 << 10);
    bench.answer_all();
    bench.check(second);
}

#[test]
fn a_short_answer_is_an_error_and_the_end_of_the_file_is_not() {
    let mut bench = Bench::new(8 * MIB, 4 * MIB, 64 * MIB);
    for eager in [128 << 10, 4096] {
        let who = bench.read(0, eager);
        bench.answer(0, |mut chunk| {
            chunk.data.truncate(chunk.data.len() - 1);
            Ok(chunk)
        });
        assert!(matches!(bench.outcomes[who], Some(Err(TreeError::Protocol(_)))));
        bench.fetches.clear();
    }
    let end = bench.read(8 * MIB - 100, 4096);
    bench.answer_all();
    bench.check(end);
    let past = bench.read(9 * MIB, 4096);
    bench.answer_all();
    assert_eq!(bench.outcomes[past], Some(Ok(Vec::new())));
}

#[test]
fn a_change_under_way_drops_what_was_read_before_it() {
    let mut bench = Bench::new(8 * MIB, 4 * MIB, 64 * MIB);
    bench.read(0, 1 << 20);
    bench.answer_all();
    (bench.version, bench.size) = (2, 3 * MIB);
    let mut steps = Vec::new();
    bench.stream.handle_changed(2, 3 * MIB, &mut steps);
    bench.apply(steps);
    let who = bench.read(MIB, 1 << 20);
    bench.answer_all();
    bench.check(who);
    let end = bench.read(2 * MIB, 2 << 20);
    bench.answer_all();
    bench.check(end);
}

#[test]
fn readers_that_give_up_are_told_and_do_not_disturb_others() {
    let mut bench = Bench::new(8 * MIB, 4 * MIB, 64 * MIB);
    let (gone, stays) = (bench.read(0, 128 << 10), bench.read(128 << 10, 128 << 10));
    let mut steps = Vec::new();
    bench
        .stream
        .handle_given_up(|who| (*who == gone).then_some(TreeError::Cancelled), &mut steps);
    bench.apply(steps);
    assert_eq!(bench.outcomes[gone], Some(Err(TreeError::Cancelled)));
    bench.answer_all();
    bench.check(stays);
    let mut steps = Vec::new();
    bench.stream.handle_closed(&mut steps);
    drop(steps);
    assert_eq!(bench.budget.left(), 64 * MIB);
}

proptest! {
    /// Whatever is read in whatever order, with answers in any order, failures and changes: a read gets the bytes of the
    /// version that is there when it is asked, or one that comes after, or an error; never anything short or mixed up.
    #[test]
    fn every_read_is_right_or_fails(
        size in 0..3 * MIB,
        memory in prop_oneof![Just(0), Just(2 * MIB), Just(64 * MIB)],
        events in prop::collection::vec((0..10_u8, 0..3 * MIB, 1..400_000_u32), 1..60),
    ) {
        let mut bench = Bench::new(size, 2 * MIB, memory);
        let mut position = 0;
        let mut changed = false;
        for (what, number, len) in events {
            match what {
                0..=3 => {
                    bench.read(position, len);
                    position = (position + u64::from(len)).min(size);
                }
                4 => {
                    bench.read(number, len);
                    position = number + u64::from(len);
                }
                5..=7 if !bench.fetches.is_empty() => {
                    let at = number as usize % bench.fetches.len();
                    bench.answer(at, Ok);
                }
                8 if !bench.fetches.is_empty() => {
                    let at = number as usize % bench.fetches.len();
                    bench.answer(at, |_| Err(TreeError::Failed));
                }
                9 if number % 4 == 0 => {
                    changed = true;
                    bench.version += 1;
                }
                _ => {}
            }
        }
        bench.answer_all();
        for (who, outcome) in bench.outcomes.iter().enumerate() {
            let (offset, len) = bench.reads[who];
            let due = size.saturating_sub(offset).min(u64::from(len)) as usize;
            match outcome {
                Some(Ok(data)) => {
                    prop_assert_eq!(data.len(), due);
                    let fits = |version| *data == content(version, offset.min(size), offset.min(size) + due as u64);
                    let right = if changed { (1..=bench.version).any(fits) } else { fits(1) };
                    prop_assert!(right, "bytes of no version, or of two");
                }
                Some(Err(error)) => prop_assert_eq!(*error, TreeError::Failed),
                None => prop_assert!(false, "a read was never answered"),
            }
        }
        let mut steps = Vec::new();
        bench.stream.handle_closed(&mut steps);
        prop_assert_eq!(bench.budget.left(), memory);
    }
}

#[test]
fn what_came_at_opening_answers_until_the_file_is_another() {
    let size = 5000;
    let whole = || Bytes::from(content(1, 0, size));
    let mut bench = Bench::new(size, MIB, MIB);
    bench.stream.holds(whole());
    bench.read(0, 4096);
    bench.read(4096, 4096);
    assert!(bench.fetches.is_empty());
    assert_eq!(bench.outcomes[0], Some(Ok(content(1, 0, 4096))));
    assert_eq!(bench.outcomes[1], Some(Ok(content(1, 4096, size))));
    // It was read to the end, and its memory is free again.
    assert_eq!(bench.budget.left(), MIB);

    let spoilers: [fn(&mut Bench); 3] = [
        |bench| bench.drive(|stream, steps| stream.handle_changed(2, 5000, steps)),
        |bench| bench.drive(Stream::handle_doubt),
        |bench| bench.drive(|stream, steps| stream.handle_changed(1, 4000, steps)),
    ];
    for spoil in spoilers {
        let mut bench = Bench::new(size, MIB, MIB);
        bench.stream.holds(whole());
        spoil(&mut bench);
        bench.read(0, 4096);
        assert_eq!(bench.fetches.len(), 1);
    }
    // There may be no room for it.
    let mut bench = Bench::new(size, MIB, size - 1);
    bench.stream.holds(whole());
    bench.read(0, 4096);
    assert_eq!(bench.fetches.len(), 1);
}
