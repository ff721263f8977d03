//! Batches that the processor and another executor share: the same bytes, whatever the executor does.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use sealway_bip324::batch::Routing;
use sealway_bip324::{Error, Fault, Kind, PacketSealer};

use crate::both::{Both, HALF, chains};
use crate::elsewhere::{Act, Elsewhere, Log};

const PEERS: usize = 5;

/// Gives jobs to an executor that does as it is told.
fn set(both: &mut Both, act: (usize, Act), routing: Routing, change: impl Fn(&mut Elsewhere)) -> Arc<Mutex<Log>> {
    let (mut executor, log) = Elsewhere::new(act);
    change(&mut executor);
    both.set(executor, routing);
    log
}

/// Many epochs end while batches are split: every key is where its packet is done, and goes from both tables.
#[test]
fn split_batches_give_the_same_bytes() {
    for (routing, preferred) in [
        (Routing::Always, 300),
        (Routing::Threshold { jobs: 250 }, 300),
        (HALF, 1),
        (HALF, 700),
        (HALF, 100_000),
    ] {
        for peers in [1, 2, PEERS] {
            let mut both = Both::new(peers);
            let log = set(&mut both, (usize::MAX, Act::Works), routing, |executor| {
                executor.preferred = preferred
            });
            for _ in 0..3 {
                both.round(1500);
            }
            let counters = both.batch.counters();
            assert_eq!(counters.processor_jobs + counters.executor_jobs, 9000);
            assert_eq!((counters.fallbacks, counters.connections_failed), (0, 0));
            let log = log.lock().unwrap();
            let given: usize = log.starts.iter().map(|(jobs, _)| jobs).sum();
            assert_eq!(counters.executor_jobs, given as u64);
            assert_eq!((log.finishes, log.beyond), (log.starts.len(), 0));
            match routing {
                Routing::Always => assert_eq!((counters.processor_jobs, counters.splits), (0, 0)),
                Routing::Threshold { jobs } => {
                    assert!(log.starts.iter().all(|&(started, _)| started >= jobs));
                    assert_eq!(counters.splits, 0);
                    assert!(counters.processor_jobs > 0 && counters.executor_jobs > 0);
                }
                Routing::Measured(_) if preferred == 1 => assert_eq!(counters.executor_jobs, 0),
                Routing::Measured(_) => {
                    assert_eq!(counters.splits, log.starts.len() as u64);
                    assert!((4400..=4500).contains(&given), "{given} jobs of 9000");
                }
            }
            // The keys that it still has are those of packets that are next.
            assert!(log.held.len() <= 2 * peers, "{:?}", log.held);
        }
    }
}

/// An executor that fails, in whatever way it may: the same bytes, every number once, nothing lost.
#[test]
fn an_executor_that_fails() {
    for routing in [Routing::Always, HALF] {
        for run in [0, 1, 4, 9] {
            for act in [
                Act::Refuses,
                Act::StopsAfter(0),
                Act::StopsAfter(1),
                Act::StopsAfter(70),
            ] {
                let mut both = Both::new(PEERS);
                let log = set(&mut both, (run, act), routing, |_| ());
                for _ in 0..3 {
                    both.round(1500);
                }
                let counters = both.batch.counters();
                assert_eq!((counters.fallbacks, counters.connections_failed), (1, 0));
                assert_eq!(counters.processor_jobs + counters.executor_jobs, 9000);
                let failure = both.batch.executor_failure().unwrap().to_string();
                assert!(failure.starts_with("told to"), "{failure}");
                let log = log.lock().unwrap();
                assert_eq!(log.starts.len(), run + 1, "it is asked again");
                let given: usize = log.starts[..run].iter().map(|(jobs, _)| jobs).sum();
                let done = if let Act::StopsAfter(done) = act { done } else { 0 };
                assert_eq!(counters.executor_jobs, (given + done) as u64);
            }
        }
    }
}

const LIES: [Act; 8] = [
    Act::LeavesStatus(3),
    Act::LeavesOutput(5),
    Act::DoesMore(7),
    Act::SaysMore(7),
    Act::DoesLess(9),
    Act::Overcounts,
    Act::Confuses(11),
    Act::DoesMore(0),
];

/// An executor that contradicts itself: nothing of what it had is sent, and all connections of those packets end.
#[test]
fn an_executor_that_lies_about_what_it_sealed() {
    for act in LIES {
        let mut both = Both::new(PEERS);
        both.round(300);
        let log = set(&mut both, (0, act), HALF, |_| ());
        // Of 100 packets the first 49 or 50 are its own: connections 0 to 2 have some there, 3 and 4 have not.
        let mut want = vec![Vec::new(); PEERS];
        for n in 0..100 {
            let which = if n < 50 { n % 3 } else { 3 + n % 2 };
            want[which].extend(both.submit(which, b"\x12a secret that is not to be sent in clear"));
        }
        let wire = both.sealed();
        assert_eq!(wire[3..], want[3..], "{act:?}");
        assert!(wire[..3].iter().all(Vec::is_empty), "{act:?}: something is sent");
        let mut ended: Vec<_> = std::iter::from_fn(|| both.batch.poll_closed()).collect();
        ended.sort_by_key(|(id, _)| *id);
        assert_eq!(ended.len(), 3, "{act:?}");
        for ((id, error), expected) in ended.iter().zip(&both.ids) {
            assert_eq!((id, error.fault()), (expected, Fault::Environment), "{error}");
            assert_eq!(both.batch.submit(*id, Kind::Genuine, b""), Err(Error::Closed));
        }
        assert_eq!(log.lock().unwrap().starts.len(), 1);
        assert!(both.batch.executor_failure().is_some());
        assert_eq!(both.batch.counters().fallbacks, 1, "{act:?}");
        // The others go on with the processor.
        for _ in 0..500 {
            for which in [3, 4] {
                let want = both.submit(which, b"later");
                assert!(both.sealed()[which] == want);
            }
        }
    }
}

/// Nothing that was under way when an executor panicked is sent or done again.
#[test]
fn an_executor_that_panics() {
    let mut both = Both::new(2);
    drop(set(&mut both, (0, Act::Panics(30)), Routing::Always, |_| ()));
    for n in 0..50 {
        let _ = both.submit(n % 2, b"\x12a secret that is not to be sent in clear");
    }
    let sealed = catch_unwind(AssertUnwindSafe(|| both.batch.seal().connections()));
    assert!(sealed.is_err());
    assert!(both.sealed().iter().all(Vec::is_empty), "something is sent");
    for _ in 0..2 {
        let (_, error) = both.batch.poll_closed().unwrap();
        assert_eq!(error.fault(), Fault::Environment);
    }
    let (send, recv) = chains(7);
    let id = both.batch.add(send, recv, &[]).unwrap();
    both.batch.submit(id, Kind::Genuine, b"later").unwrap();
    assert!(both.sealed().iter().all(Vec::is_empty));
    assert!(!both.batch.contains(id));
}

/// The same where packets are opened: of what it had nothing is delivered.
#[test]
fn an_executor_that_lies_about_what_it_opened() {
    for act in LIES {
        // To open without writing cannot be told from opening.
        if matches!(
            act,
            Act::LeavesOutput(_) | Act::DoesMore(_) | Act::DoesLess(_) | Act::Confuses(_)
        ) {
            continue;
        }
        let mut both = Both::new(2);
        let wire: Vec<Vec<u8>> = (0..2)
            .map(|which| (0..50).flat_map(|_| both.submit(which, b"\x12contents")).collect())
            .collect();
        assert!(both.sealed() == wire);
        set(&mut both, (0, act), HALF, |_| ());
        for (id, wire) in both.ids.iter().zip(&wire) {
            both.batch.receive(*id, wire).unwrap();
        }
        let from: Vec<_> = both.batch.open().iter().map(|message| message.id).collect();
        assert_eq!(from, [both.ids[1]; 50], "{act:?}");
        let (id, error) = both.batch.poll_closed().unwrap();
        assert_eq!((id, error.fault()), (both.ids[0], Fault::Environment), "{act:?}");
        assert_eq!(both.batch.poll_closed(), None);
    }
}

/// What is opened by an executor that stops is opened by the processor; a place that was changed does not authenticate.
#[test]
fn an_executor_that_stops_while_it_opens() {
    let mut both = Both::new(1);
    let wire: Vec<u8> = (0..100).flat_map(|_| both.submit(0, b"\x12contents")).collect();
    assert!(both.sealed()[0] == wire);
    set(&mut both, (0, Act::StopsAfter(20)), Routing::Always, |_| ());
    both.batch.receive(both.ids[0], &wire).unwrap();
    let incoming = both.batch.open();
    assert_eq!(incoming.len(), 100);
    assert!(incoming.iter().all(|message| message.contents == b"\x12contents"));

    let mut both = Both::new(1);
    let _ = both.submit_some(100);
    both.sealed();
    set(&mut both, (0, Act::DoesMore(20)), Routing::Always, |_| ());
    both.batch.receive(both.ids[0], &wire).unwrap();
    assert_eq!(both.batch.open().len(), 20);
    assert_eq!(both.batch.poll_closed(), Some((both.ids[0], Error::Unauthentic)));
}

/// What either of them finds not to be authentic ends its connection, and only that.
#[test]
fn a_damaged_packet_on_either_side_of_a_split() {
    for damaged in 0..8 {
        let mut both = Both::new(2);
        let log = set(&mut both, (usize::MAX, Act::Works), HALF, |_| ());
        let mut packets: Vec<Vec<u8>> = Vec::new();
        for n in 0..16 {
            packets.push(both.submit(n % 2, b"contents"));
        }
        both.sealed();
        packets[2 * damaged][5] ^= 1;
        for (n, packet) in packets.iter().enumerate() {
            both.batch.receive(both.ids[n % 2], packet).unwrap();
        }
        let incoming = both.batch.open();
        let of = |id| incoming.iter().filter(|message| message.id == id).count();
        assert_eq!((of(both.ids[0]), of(both.ids[1])), (damaged, 8));
        assert_eq!(both.batch.poll_closed(), Some((both.ids[0], Error::Unauthentic)));
        assert!(both.batch.executor_failure().is_none());
        assert_eq!(both.batch.counters().splits, 2);
        assert_eq!(log.lock().unwrap().starts.len(), 2);
    }
}

/// What an executor does not take, the processor does, and all that is behind it.
#[test]
fn limits_of_an_executor() {
    // Texts have a header of one byte.
    let mut both = Both::new(1);
    let log = set(&mut both, (usize::MAX, Act::Works), Routing::Always, |executor| {
        executor.longest = 101
    });
    let lengths = [100, 3, 101, 5, 100];
    let want: Vec<u8> = lengths.iter().flat_map(|len| both.submit(0, &vec![7; *len])).collect();
    assert!(both.sealed()[0] == want);
    assert_eq!(log.lock().unwrap().starts, [(2, 105)]);
    let _ = both.submit(0, &[7; 101]);
    both.sealed();
    assert_eq!(log.lock().unwrap().starts.len(), 1);
    let counters = both.batch.counters();
    assert_eq!(
        (counters.executor_jobs, counters.processor_jobs, counters.splits),
        (2, 4, 1)
    );
    // As many as it has room for, and the rest at the same time here.
    let mut both = Both::new(1);
    let log = set(&mut both, (usize::MAX, Act::Works), Routing::Always, |executor| {
        executor.capacity = 303
    });
    let want: Vec<u8> = (0..5).flat_map(|_| both.submit(0, &[7; 100])).collect();
    assert!(both.sealed()[0] == want);
    assert_eq!(log.lock().unwrap().starts, [(3, 303)]);
    // Each connection has four slots.
    let mut both = Both::new(4);
    let log = set(&mut both, (usize::MAX, Act::Works), Routing::Always, |executor| {
        executor.slots = 8
    });
    for (order, given) in [([0, 1, 2, 3], 2), ([1, 3, 0, 2], 1), ([3, 2, 1, 0], 0)] {
        let want = order.map(|which| (which, both.submit(which, b"contents")));
        let got = both.sealed();
        assert!(want.iter().all(|(which, packet)| got[*which] == *packet));
        let counted = both.batch.counters();
        assert_eq!(counted.executor_jobs + counted.processor_jobs, 4 * counted.runs);
        let started = log.lock().unwrap().starts.pop();
        assert_eq!(started.map_or(0, |(jobs, _)| jobs), given);
    }
    assert!(log.lock().unwrap().highest < 8);
}

/// Executors come and go between packets of a batch.
#[test]
fn executors_change() {
    let mut both = Both::new(PEERS);
    for n in 0..10 {
        let first = both.submit_some(150);
        match n % 3 {
            0 => drop(set(&mut both, (usize::MAX, Act::Works), HALF, |_| ())),
            1 => both.batch.remove_executor(),
            _ => drop(set(&mut both, (0, Act::StopsAfter(2)), Routing::Always, |_| ())),
        }
        let second = both.submit_some(150);
        let wire = both.sealed();
        for (wire, (first, second)) in wire.iter().zip(first.iter().zip(&second)) {
            assert!(*wire == [&first[..], second].concat());
        }
        // Tables that grow while there is an executor.
        let (send, recv) = chains(both.ids.len());
        both.ids.push(both.batch.add(send, recv, &[]).unwrap());
        both.sealers.push(PacketSealer::new(chains(both.ids.len() - 1).0));
    }
    assert_eq!(both.batch.counters().fallbacks, 3);
}
