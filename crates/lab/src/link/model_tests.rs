//! The model by a clock that only the test moves.

#![allow(clippy::unwrap_used)]

use super::flow::{Due, Flow, Item};
use super::line::Line;
use super::window::{Losses, Window};
use super::*;
use crate::stats::SplitMix64;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

fn link(text: &str) -> Link {
    text.parse().unwrap()
}

/// Senders that always have more, over one direction of a link, and when each of their bytes was delivered.
struct World {
    line: Line,
    flows: Vec<Flow>,
    delivered: Vec<u64>,
    now: u64,
}

impl World {
    fn new(link: &Link, flows: u64, seed: u64) -> World {
        World {
            line: Line::new(link),
            flows: (0..flows)
                .map(|flow| Flow::new(link, SplitMix64::stream(seed, flow)))
                .collect(),
            delivered: vec![0; flows as usize],
            now: 0,
        }
    }

    /// Moves on to `until` in steps, as a thread that wakes every `step` nanoseconds.
    fn run(&mut self, until: u64, step: u64) {
        while self.now < until {
            self.now += step;
            for (flow, delivered) in self.flows.iter_mut().zip(&mut self.delivered) {
                flow.learn(self.now);
                while let Some(Due::Data(data)) = flow.due(self.now) {
                    let count = data.len();
                    *delivered += count as u64;
                    flow.delivered(count);
                }
            }
            let mut idle = 0;
            for turn in (0..self.flows.len()).cycle() {
                let at = self.line.room_at().min(self.now).max(self.now - step);
                let room = self.flows[turn].room(true);
                if self.line.room_at() > self.now || idle > self.flows.len() {
                    break;
                }
                idle = if room == 0 { idle + 1 } else { 0 };
                if room > 0 {
                    self.flows[turn].enter(&mut self.line, at, vec![0; room]);
                }
            }
        }
    }

    fn bits_a_second(&self, bytes: u64, time: u64) -> f64 {
        bytes as f64 * 8.0 * 1e9 / time as f64
    }
}

#[test]
fn a_piece_arrives_when_its_last_bit_has_crossed() {
    // 1 Mbit/s: a byte takes 8 us.
    let mut line = Line::new(&link("rate=1mbit,rtt=40ms"));
    assert_eq!(line.enter(5 * MS, 1000), 5 * MS + 8 * MS + 20 * MS);
    // The next waits for it, and one after a pause for nobody.
    assert_eq!(line.enter(5 * MS, 500), 5 * MS + 12 * MS + 20 * MS);
    assert_eq!(line.enter(100 * MS, 1), 100 * MS + 8_000 + 20 * MS);
    let mut free = Line::new(&link("rtt=40ms"));
    assert_eq!(free.enter(7, 1 << 20), 7 + 20 * MS);
}

#[test]
fn fractions_of_a_nanosecond_are_kept() {
    // A byte takes 8/7 ns, so that each piece of 3 B leaves something over.
    let mut line = Line::new(&link("rate=7gbit"));
    let mut last = 0;
    for _ in 0..700_000 {
        last = line.enter(0, 3);
    }
    assert_eq!(last, 700_000 * 3 * 8 / 7);
}

#[test]
fn the_queue_is_one_round_trip_long() {
    let mut line = Line::new(&link("rate=100mbit,rtt=40ms"));
    let mut bytes = 0;
    while line.room_at() == 0 {
        line.enter(0, 1000);
        bytes += 1000;
    }
    assert_eq!(bytes, 501_000, "40 ms at 12.5 MB/s, and one piece more");
    assert!(line.room_at() > 0 && line.room_at() < MS);
    // Without distance there is still what a thread needs that is late.
    assert_eq!(link("rate=100mbit").queue_ns(), 5_242_880);
    assert_eq!(link("rate=10gbit").queue_ns(), 5 * MS);
}

#[test]
fn a_stream_fills_the_rate_and_never_more_however_seldom_the_thread_wakes() {
    let link = link("rate=100mbit,rtt=40ms");
    for step in [MS / 10, MS, 7 * MS] {
        let mut world = World::new(&link, 1, 1);
        world.run(SECOND, step);
        let before = world.delivered[0];
        world.run(3 * SECOND, step);
        let rate = world.bits_a_second(world.delivered[0] - before, 2 * SECOND);
        assert!((99e6..=100.4e6).contains(&rate), "{step}: {rate}");
    }
}

#[test]
fn the_window_grows_as_in_slow_start() {
    let link = link("rtt=100ms");
    let mut world = World::new(&link, 1, 1);
    let first = FIRST_WINDOW * SEGMENT;
    // What is delivered in ten round trips: 10 segments, then 20, then 40; the last flight is of over 5,000, in many pieces.
    for round in 0..10 {
        world.run((round * 100 + 75) * MS, MS);
        assert_eq!(world.delivered[0], ((2 << round) - 1) * first, "round {round}");
    }
}

#[test]
fn a_lost_packet_stalls_its_stream_for_one_round_trip() {
    let link = link("rtt=40ms,loss=1%");
    let mut flow = Flow::new(&link, SplitMix64::new(3));
    let mut line = Line::new(&link);
    let mut sent = 0;
    // Small messages, one a millisecond: each is one packet.
    let mut times = Vec::new();
    for now in 0..400 {
        flow.learn(now * MS);
        assert!(flow.room(true) >= 10);
        let (at, known) = flow.enter(&mut line, now * MS, vec![now as u8; 10]);
        assert_eq!(known, (now + 40) * MS);
        times.push(at / MS - now);
        sent += 1;
    }
    // A stall begins with one round trip more than half a one, and what comes behind waits for it.
    let stalls: Vec<usize> = (1..sent).filter(|&n| times[n] > times[n - 1] + 1).collect();
    assert!((2..12).contains(&stalls.len()), "{times:?}");
    for stall in stalls {
        assert_eq!(times[stall] % 40, 20, "{times:?}");
        for after in 1..=40.min(sent - 1 - stall) {
            assert!(times[stall + after] >= 60 - after as u64, "{times:?}");
        }
    }
    // Bytes keep their order.
    let mut next = 0;
    while let Some(Due::Data(data)) = flow.due(u64::MAX) {
        assert_eq!(data, [next as u8; 10]);
        next += 1;
        flow.delivered(10);
    }
    assert_eq!(next, 400);
}

#[test]
fn losses_come_as_often_as_asked_and_from_the_seed() {
    let lost = |loss: f64, seed: u64| -> Vec<u64> {
        let mut losses = Losses::new(loss, SplitMix64::new(seed));
        let mut at = 0;
        let mut found = Vec::new();
        while at < 200_000 {
            let left = losses.left();
            losses.pass(left);
            at += left;
            for _ in 0..losses.lose() {
                found.push(at);
                at += 1;
            }
        }
        found
    };
    for loss in [0.001, 0.02, 0.5] {
        let share = lost(loss, 5).len() as f64 / 200_000.0;
        assert!((share / loss - 1.0).abs() < 0.15, "{loss}: {share}");
    }
    assert_eq!(lost(0.01, 5), lost(0.01, 5));
    assert_ne!(lost(0.01, 5), lost(0.01, 6));
    assert_eq!(Losses::new(0.0, SplitMix64::new(1)).left(), u64::MAX);
}

#[test]
fn a_window_is_halved_once_for_the_losses_of_one_flight() {
    let mut window = Window::new(1 << 30, u64::MAX);
    let all = window.size();
    let flight: Vec<u64> = (0..10).map(|_| window.send(SEGMENT)).collect();
    assert_eq!(window.room(), 0);
    for last in flight {
        window.learn(SEGMENT, last, true);
    }
    assert_eq!(window.size(), all / 2);
    // A loss of the next flight halves again, down to two segments.
    for _ in 0..5 {
        let last = window.send(SEGMENT);
        window.learn(SEGMENT, last, true);
    }
    assert_eq!(window.size(), 2 * SEGMENT);
    // From there it grows by a segment for each window that is acknowledged.
    for segments in [2, 3] {
        let last = window.send(segments * SEGMENT);
        window.learn(segments * SEGMENT, last, false);
    }
    assert_eq!(window.size(), 4 * SEGMENT);
}

#[test]
fn slow_start_ends_at_the_window_that_losses_allow() {
    // The root of 1.5 / 0.001 is 38.7 segments.
    let link = link("rtt=40ms,loss=0.1%");
    assert_eq!(link.usual_window() / SEGMENT, 38);
    assert_eq!(link.settling(), Duration::from_millis(120));
    let mut window = Window::new(1 << 30, link.usual_window());
    let mut sizes = Vec::new();
    for _ in 0..5 {
        let last = window.send(window.room());
        window.learn(last - sizes.iter().sum::<u64>(), last, false);
        sizes.push(last - sizes.iter().sum::<u64>());
    }
    let segments: Vec<u64> = sizes.iter().map(|size| size / SEGMENT).collect();
    assert_eq!(segments, [10, 20, 40, 41, 42]);
}

#[test]
fn a_full_window_doubles_though_its_acknowledgements_come_at_once() {
    let mut window = Window::new(1 << 30, u64::MAX);
    for doublings in 1..8 {
        let flight: Vec<u64> = (0..window.size() / SEGMENT).map(|_| window.send(SEGMENT)).collect();
        for last in flight {
            window.learn(SEGMENT, last, false);
        }
        assert_eq!(window.size(), (FIRST_WINDOW * SEGMENT) << doublings);
    }
    // A flight that fills less than half of it ends that.
    for _ in 0..100 {
        let last = window.send(100 * SEGMENT);
        window.learn(100 * SEGMENT, last, false);
    }
    assert_eq!(window.size(), (FIRST_WINDOW * SEGMENT) << 7);
}

#[test]
fn an_unused_window_does_not_grow() {
    let mut window = Window::new(1 << 30, u64::MAX);
    for _ in 0..1000 {
        let last = window.send(100);
        window.learn(100, last, false);
    }
    assert_eq!(window.size(), FIRST_WINDOW * SEGMENT);
}

/// Mathis, Semke, Mahdavi and Ott (1997): the rate of Reno is the segment over the round trip, times the root of 3/2 over the loss.
#[test]
fn one_stream_over_a_lossy_link_has_the_rate_of_reno() {
    for (rtt_ms, loss) in [(40, 0.001_f64), (100, 0.0005), (20, 0.01)] {
        let link = link(&format!("rtt={rtt_ms}ms,loss={}%", loss * 100.0));
        let mut world = World::new(&link, 1, 9);
        let time = 200 * SECOND;
        world.run(time, MS);
        let rate = world.bits_a_second(world.delivered[0], time);
        let known = SEGMENT as f64 * 8.0 / (f64::from(rtt_ms) / 1e3) * (1.5 / loss).sqrt();
        assert!((0.75..1.3).contains(&(rate / known)), "{link}: {rate} {known}");
    }
}

#[test]
fn what_is_held_is_bounded_while_nobody_receives() {
    let link = link("rate=10mbit,rtt=20ms");
    let mut flow = Flow::new(&link, SplitMix64::new(1));
    let mut line = Line::new(&link);
    let mut now = 0;
    for _ in 0..10_000 {
        now += MS;
        flow.learn(now);
        let room = flow.room(true);
        if room > 0 && line.room_at() <= now {
            flow.enter(&mut line, now, vec![0; room]);
        }
        assert!(flow.held_bytes() as u64 <= link.most_held());
    }
    assert_eq!(flow.room(true), 0);
    // Also as an open door.
    assert_eq!(flow.room(false), 0);
}

#[test]
fn a_receiver_that_reads_nothing_is_sent_a_receive_window_and_no_more() {
    let link = link("rtt=20ms");
    let mut flow = Flow::new(&link, SplitMix64::new(1));
    let mut line = Line::new(&link);
    for now in 0..1000 {
        flow.learn(now * MS);
        loop {
            let room = flow.room(true);
            if room == 0 {
                break;
            }
            flow.enter(&mut line, now * MS, vec![0; room]);
        }
    }
    let held = flow.held_bytes() as u64;
    // Slow start has at most doubled what the receiver took before.
    assert!((RECEIVE_WINDOW..2 * RECEIVE_WINDOW).contains(&held), "{held}");
    // Once it reads, more is sent.
    while let Some(Due::Data(data)) = flow.due(1000 * MS) {
        let count = data.len();
        flow.delivered(count);
    }
    assert!(flow.room(true) > 0);
}

#[test]
fn an_end_follows_what_was_sent_before_it() {
    let link = link("rate=1mbit,rtt=40ms");
    let (mut flow, mut line) = (Flow::new(&link, SplitMix64::new(1)), Line::new(&link));
    let (at, _) = flow.enter(&mut line, 0, vec![7; 1000]);
    let end = flow.end(&mut line, 0, Item::End);
    assert!(end >= at && flow.has_ended() && flow.room(true) == 0);
    assert_eq!(flow.due(at - 1), None);
    assert_eq!(flow.due(at), Some(Due::Data(&[7; 1000][..])));
    flow.delivered(600);
    assert_eq!(flow.due(at), Some(Due::Data(&[7; 400][..])));
    flow.delivered(400);
    assert_eq!(flow.due(end), Some(Due::End));
    flow.delivered(0);
    assert_eq!(flow.due(u64::MAX), None);
}
