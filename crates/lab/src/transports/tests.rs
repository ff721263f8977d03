#![allow(clippy::unwrap_used)]

use std::net::{TcpListener, TcpStream};

use super::cells::{ATTEMPTS, TransportCell, is_final, judge_flip, verify};
use super::figures::fairness;
use super::traffic::{Order, Sink, Traffic, Trouble};
use super::wire::{Damage, Plan as WirePlan, Wire};
use super::*;
use crate::result::{Case, Num};
use crate::route::Route;
use crate::run::{CellError, Timed};
use crate::workload::Peers;

const DIRECTIONS: [Direction; 2] = [Direction::Down, Direction::Up];

/// Streams through a wire that does damage.
fn through(damage: Damage, direction: Direction, after: u64, orders: &[Order]) -> (Result<(), Trouble>, bool) {
    let sink = Sink::open().unwrap();
    let plan = WirePlan {
        damage,
        direction,
        after,
    };
    let wire = Wire::open(sink.address(), plan).unwrap();
    let traffic = Traffic::start(wire.address(), &sink, orders).unwrap();
    let ended = traffic.finish();
    (ended, wire.damaged())
}

fn order(direction: Direction, thorough: bool) -> Order {
    Order {
        thorough,
        must_end: true,
        ..Order::thorough(direction, 8 << 20)
    }
}

#[test]
fn an_honest_wire_passes() {
    let both = DIRECTIONS.map(|direction| order(direction, true));
    let (ended, damaged) = through(Damage::Flip, Direction::Up, u64::MAX, &both);
    assert_eq!((ended, damaged), (Ok(()), false));
    let sink = Sink::open().unwrap();
    verify(&Route::direct(sink.address()), &sink, true).unwrap();
}

#[test]
fn a_relay_that_corrupts_drops_reorders_or_repeats_is_caught() {
    for direction in DIRECTIONS {
        for damage in [Damage::Flip, Damage::Drop, Damage::Swap, Damage::Repeat] {
            let (ended, damaged) = through(damage, direction, 1 << 20, &[order(direction, true)]);
            assert!(damaged);
            assert!(
                matches!(ended, Err(Trouble::Wrong { .. })),
                "{damage:?} {direction:?}: {ended:?}"
            );
            assert!(matches!(
                CellError::from(ended.clone().unwrap_err()),
                CellError::Wrong { .. }
            ));
            // The payload was changed and delivered: the relay authenticates nothing.
            assert!(matches!(judge_flip(&ended), Err(CellError::Wrong { .. })));
        }
    }
}

#[test]
fn a_flipped_bit_is_caught_wherever_it_is() {
    for direction in DIRECTIONS {
        for after in (1..=8).map(|n| n * 700_000) {
            let (ended, _) = through(Damage::Flip, direction, after, &[order(direction, false)]);
            assert!(
                matches!(ended, Err(Trouble::Wrong { .. })),
                "{after} {direction:?}: {ended:?}"
            );
        }
    }
}

#[test]
fn what_moves_a_stream_is_caught() {
    for direction in DIRECTIONS {
        for damage in [Damage::Drop, Damage::Swap, Damage::Repeat] {
            let (ended, damaged) = through(damage, direction, 1 << 20, &[order(direction, false)]);
            assert!(damaged);
            let caught = matches!(ended, Err(Trouble::Wrong { .. } | Trouble::Count { .. }));
            assert!(caught, "{damage:?} {direction:?}: {ended:?}");
        }
    }
}

#[test]
fn a_path_that_ends_too_soon_is_caught() {
    // It accepts, and hangs up after a few bytes.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let _ = std::io::Read::read(&mut &stream, &mut [0; 100]);
        }
    });
    let sink = Sink::open().unwrap();
    for direction in DIRECTIONS {
        let ended = Traffic::start(address, &sink, &[order(direction, true)])
            .unwrap()
            .finish();
        assert!(ended.is_err(), "{direction:?}: {ended:?}");
        assert_eq!(judge_flip(&ended), Ok(()));
    }
}

#[test]
fn a_path_on_which_a_flipped_bit_goes_unnoticed_is_wrong() {
    assert!(matches!(judge_flip(&Ok(())), Err(CellError::Wrong { .. })));
}

#[test]
fn a_wrong_byte_is_never_tried_again() {
    assert!(is_final(&Trouble::Wrong { offset: 0 }, 1, false));
    assert!(!is_final(&Trouble::Stuck, 1, false));
    assert!(is_final(&Trouble::Stuck, 1, true) && is_final(&Trouble::Stuck, ATTEMPTS, false));
}

#[test]
fn streams_share_fairly_or_not() {
    assert!((fairness(&[5, 5, 5, 5]) - 1.0).abs() < 1e-12);
    assert!((fairness(&[7, 0, 0, 0]) - 0.25).abs() < 1e-12);
}

#[test]
fn the_direct_control_is_measured() {
    let spec = Spec {
        stack: Stack::DIRECT,
        streams: 2,
        direction: Direction::Down,
    };
    let mut cell = TransportCell::new(spec, None, false, None);
    cell.prepare().unwrap();
    let counted = cell
        .window(Duration::from_millis(1), Duration::from_millis(20))
        .unwrap();
    assert!(counted.bytes > 0 && counted.ops > 0 && counted.wall_s > 0.0);
    assert_eq!(counted.cpu_s, 0.0, "it has no programs");
    let names: Vec<_> = counted.figures.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["fairness"]);
}

#[test]
fn an_end_that_is_not_passed_on_is_told_from_bytes_that_are() {
    // A path that hands every byte on and never the end.
    let sink = Sink::open().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (entry, to) = (listener.local_addr().unwrap(), sink.address());
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for near in listener.incoming().take(2).flatten() {
            let far = TcpStream::connect(to).unwrap();
            for (mut from, mut into) in
                [(&near, &far), (&far, &near)].map(|(a, b)| (a.try_clone().unwrap(), b.try_clone().unwrap()))
            {
                std::thread::spawn(move || std::io::copy(&mut from, &mut into));
            }
            kept.push((near, far));
        }
        std::thread::sleep(Duration::from_secs(30));
        drop(kept);
    });
    for must_end in [true, false] {
        let order = Order {
            must_end,
            ..order(Direction::Down, true)
        };
        let mut traffic = Traffic::start(entry, &sink, &[order]).unwrap();
        traffic.flowing().unwrap();
        let ended = traffic
            .watch(Duration::from_secs(if must_end { 10 } else { 2 }))
            .and(Err(Trouble::Stuck));
        let expected = if must_end { Trouble::Endless } else { Trouble::Stuck };
        assert_eq!(ended, Err::<(), _>(expected), "{must_end}");
    }
}

#[test]
fn profiles_have_the_cases_they_promise() {
    let names = |specs: &[Spec]| -> Vec<String> { specs.iter().map(|spec| spec.case().to_string()).collect() };
    let quick = specs(Profile::Quick, &[], &[]);
    assert_eq!(quick.len(), CHOSEN.len() + 1);
    assert!(
        quick
            .iter()
            .all(|spec| spec.streams == 1 && spec.direction == Direction::Down)
    );
    assert_eq!(quick[0].stack, Stack::DIRECT);
    let standard = specs(Profile::Standard, &[], &[]);
    for stack in Stack::ALL {
        assert!(standard.iter().any(|spec| spec.stack == stack), "{stack}");
    }
    let full = specs(Profile::Full, &[], &[]);
    assert_eq!(full.len(), Stack::ALL.len() * 6);
    for streams in [1, 4, 16] {
        for direction in DIRECTIONS {
            let of_all = full
                .iter()
                .filter(|spec| (spec.streams, spec.direction) == (streams, direction));
            assert_eq!(of_all.count(), Stack::ALL.len(), "{streams} {direction:?}");
        }
    }
    for set in [&quick, &standard, &full] {
        let mut seen = names(set);
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), set.len());
        // Every case has its control.
        for spec in set.iter() {
            let control = |other: &&Spec| {
                other.stack == Stack::DIRECT && (other.streams, other.direction) == (spec.streams, spec.direction)
            };
            assert!(set.iter().any(|other| control(&other)), "{:?}", spec.case());
        }
    }
    let one = specs(Profile::Standard, &[Stack::VLESS_WS], &[]);
    assert!(
        one.iter()
            .all(|spec| [Stack::VLESS_WS, Stack::DIRECT].contains(&spec.stack))
    );
    assert_eq!(one.len(), 12);
    let chacha = specs(Profile::Quick, &[], &[Suite::ChaCha20Poly1305]);
    let stacks: Vec<_> = chacha.iter().map(|spec| spec.stack).collect();
    assert_eq!(stacks, [Stack::DIRECT, Stack::VMESS_CHACHA_TCP]);
    assert!(specs(Profile::Quick, &[], &[Suite::XChaCha20Poly1305]).is_empty());
    assert_eq!(specs(Profile::Quick, &[Stack::DIRECT], &[]).len(), 1);
}

#[test]
fn a_preset_has_one_stream_down_of_each_stack_and_its_windows() {
    let request = Request {
        peers: Peers::None,
        preset: Some(crate::plan::Preset::Iperf3),
        stacks: vec![Stack::VLESS_TCP, Stack::VLESS_WS],
        program: std::env::current_exe().ok(),
        ..Request::default()
    };
    let prepared = prepare(&request).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(
        (prepared.plan.window, prepared.plan.rounds),
        (Duration::from_secs(60), 3)
    );
    let cases: Vec<_> = prepared.cells.iter().map(|cell| cell.case.clone()).collect();
    assert_eq!(cases.len(), 3, "{cases:?}");
    let one_down = |case: &Case| case.int("streams") == Some(1) && case.text("direction") == Some("down");
    assert!(cases.iter().all(one_down));
}

#[test]
fn rows_near_the_generators_own_rate_are_marked() {
    let row = |subject: &str, stack: &str, rate: f64| ResultRow {
        subject: subject.to_owned(),
        case: Case::new()
            .with("stack", stack)
            .with("streams", 1_i64)
            .with("direction", "down"),
        metric: "throughput".to_owned(),
        median: Num(rate),
        ..ResultRow::default()
    };
    let mut rows = [row("direct", "direct", 9e9), row("a", "x", 6.1e9), row("b", "x", 5.9e9)];
    mark(&mut rows);
    assert_eq!(rows.map(|row| row.flags.len()), [0, 1, 0]);
}

#[test]
fn a_subject_that_delivers_forgeries_is_marked_in_every_row_of_its_case() {
    let row = |subject: &str, metric: &str| ResultRow {
        subject: subject.to_owned(),
        metric: metric.to_owned(),
        ..ResultRow::default()
    };
    let mut rows = [row("a", "throughput"), row("b", "throughput"), row("a", FORGEABLE)];
    mark(&mut rows);
    assert_eq!(
        rows.map(|row| row.verified.ends_with("unauthenticated")),
        [true, false, true]
    );
}

#[test]
fn a_request_that_names_no_program_is_refused() {
    let request = Request {
        profile: Profile::Quick,
        peers: Peers::None,
        seed: Some(1),
        ..Request::default()
    };
    assert!(matches!(prepare(&request), Err(LabError::NoProgram)));
    let program = std::env::current_exe().ok();
    let prepared = prepare(&Request { program, ..request }).unwrap_or_else(|error| panic!("{error}"));
    assert!(prepared.plan.expected < Duration::from_secs(60));
    let names: Vec<_> = prepared.subjects.iter().map(|subject| subject.name.as_str()).collect();
    assert_eq!(names, ["sealway", "direct"]);
    let configs = &prepared.subjects[0].config;
    assert_eq!(configs.len(), 2 * CHOSEN.len());
    assert_eq!(configs["vless-tcp client"]["outbounds"][0]["protocol"], "vless");
}
