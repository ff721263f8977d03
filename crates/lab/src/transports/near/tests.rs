#![allow(clippy::unwrap_used)]

use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::remote::Token;
use crate::route::Stack;
use crate::transports::respond;
use crate::transports::traffic::State;

/// Has a responder in this process.
fn with_a_responder(work: impl FnOnce(&Arc<Link>)) {
    let token = Token::generate().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let stop = AtomicBool::new(false);
    // Also where the work fails: the responder would go on for ever.
    struct End<'a>(&'a AtomicBool);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Release);
        }
    }
    let stopped = || stop.load(Ordering::Acquire);
    std::thread::scope(|scope| {
        let end = End(&stop);
        let responding = scope.spawn(|| respond(&listener, &token, Path::new("/nowhere/sealway"), &|_| {}, &stopped));
        work(&Link::connect(&address, &token).unwrap());
        drop(end);
        responding.join().unwrap().unwrap();
    });
}

#[test]
fn the_direct_control_is_measured_both_ways() {
    with_a_responder(|link| {
        assert!(!link.responder().machine.arch.is_empty());
        for direction in [Direction::Down, Direction::Up] {
            let spec = Spec {
                stack: Stack::DIRECT,
                streams: 2,
                direction,
            };
            let mut cell = cell(spec, None, link);
            cell.prepare().unwrap();
            let counted = cell
                .window(Duration::from_millis(1), Duration::from_millis(60))
                .unwrap();
            assert!(counted.bytes > 0 && counted.wall_s >= 0.05, "{counted:?}");
            assert_eq!(counted.cpu_s, 0.0, "it has no programs");
            let names: Vec<_> = counted.figures.iter().map(|(name, _)| *name).collect();
            assert_eq!(names, ["fairness"]);
        }
    });
}

#[test]
fn a_byte_that_the_wire_changed_is_found_by_either_host() {
    with_a_responder(|link| {
        for direction in [Direction::Down, Direction::Up] {
            let question = Ask::Open {
                stack: "direct".to_owned(),
            };
            let Answer::Opened(opened) = ask(link, &question).unwrap() else {
                panic!()
            };
            let plan = Plan::flip(direction, FLIP_AFTER);
            let wire = Wire::open(SocketAddr::new(link.peer(), opened.sink), plan).unwrap();
            let line = Line {
                route: Route::direct(wire.address()),
                link,
            };
            let order = Order {
                must_end: true,
                ..Order::thorough(direction, FLIP_PAYLOAD)
            };
            let ended = Pair::start(&line, &[order]).unwrap().finish().unwrap();
            assert!(matches!(ended, Err(Trouble::Wrong { .. })), "{direction:?}: {ended:?}");
        }
    });
}

#[test]
fn what_cannot_be_seen_is_refused() {
    let seen = |states, open| Seen {
        states: vec![State::default(); states],
        open,
        ..Seen::default()
    };
    assert!(check(&seen(2, 2), 2).is_ok());
    for (states, open) in [(1, 1), (3, 2), (2, 3), (2, usize::MAX)] {
        assert_eq!(check(&seen(states, open), 2), Err(unexpected()), "{states} {open}");
    }
}

#[test]
fn the_largest_numbers_make_figures() {
    let spent = || Spent {
        role: "server",
        busy: 1.0,
        busiest: 1.0,
        memory: u64::MAX,
    };
    let measured = Measured {
        wall_s: 1.0,
        each: vec![u64::MAX; 2],
        roles: vec![spent(), spent()],
    };
    assert_eq!(measured.counted().bytes, u64::MAX);
}

#[test]
fn no_two_clocks_are_compared() {
    let began = Instant::now();
    let reading = |near_ms: u64, far_ms: u64, received, there| Reading {
        at: began + Duration::from_millis(near_ms),
        received: vec![received],
        client: Duration::from_millis(near_ms / 2),
        far: Seen {
            at_ns: far_ms * 1_000_000,
            states: vec![State {
                received: there,
                ..Default::default()
            }],
            server: Some(super::super::talk::Usage {
                cpu_ns: far_ms * 250_000,
                memory: 1,
            }),
            ..Seen::default()
        },
    };
    // The other host's clock began long ago, and runs at another rate.
    let (before, after) = (reading(1000, 7_000_000, 100, 40), reading(2000, 7_002_000, 400, 90));
    assert_eq!(after.busy(&before), [0.5, 0.25]);
    let shown = |direction| {
        (
            after.received_in(&before, direction).as_millis(),
            after.received_since(&before, direction),
        )
    };
    assert_eq!(shown(Direction::Down), (1000, vec![300]));
    assert_eq!(shown(Direction::Up), (2000, vec![50]));
}
