#![allow(clippy::unwrap_used)]

use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::remote::Token;
use crate::route::Stack;
use crate::transports::respond;

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
            let plan = Plan {
                damage: Damage::Flip,
                direction,
                after: FLIP_AFTER,
            };
            let wire = Wire::open(SocketAddr::new(link.peer(), opened.sink), plan).unwrap();
            let line = Line {
                route: Route::direct(wire.address()),
                link,
            };
            let order = Order {
                direction,
                limit: Some(FLIP_PAYLOAD),
                thorough: true,
                must_end: true,
            };
            let ended = Pair::start(&line, &[order]).unwrap().finish().unwrap();
            assert!(matches!(ended, Err(Trouble::Wrong { .. })), "{direction:?}: {ended:?}");
        }
    });
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
            states: vec![super::super::traffic::State {
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
