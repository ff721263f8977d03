//! What a relay does about those who wait too long, come too often, or say what is no request.

use std::io::{ErrorKind, Write};
use std::time::Duration;

use sealway_drop::cancel::Cancel;
use sealway_drop::relay::wire::{Answer, Request};
use sealway_drop_relay::Limits;
use sealway_session::handshake::Role;

use crate::support::{self, Relay, converse, kind};

const SHORT: Duration = Duration::from_millis(100);

fn pair(token: u8, role: Role) -> Request {
    Request::Pair {
        token: [token; 32],
        role,
    }
}

#[test]
fn waiting_in_vain_ends() {
    let relay = Relay::start(Limits {
        nameplate: SHORT,
        token: SHORT,
        ..Limits::default()
    });
    let (nameplate, opener) = relay.open(&Cancel::new());
    assert_eq!(kind(opener.join().unwrap()), ErrorKind::UnexpectedEof);
    assert_eq!(kind(relay.claim(nameplate)), ErrorKind::NotFound);
    assert_eq!(
        kind(relay.pair([1; 32], Role::Initiator).join().unwrap()),
        ErrorKind::UnexpectedEof
    );
    let stats = relay.until(|stats| stats.expired == 2);
    assert_eq!(stats.waiting_now, 0);
}

#[test]
fn a_silent_pair_ends() {
    let relay = Relay::start(Limits {
        idle: SHORT,
        ..Limits::default()
    });
    let mut one = relay.ask(&pair(1, Role::Initiator));
    let mut two = relay.ask(&pair(1, Role::Responder));
    // Which of them has waited is a matter of luck.
    let mut answers = Vec::new();
    for raw in [&mut one, &mut two] {
        let mut answer = raw.answer();
        if answer == Answer::Waiting(0) {
            answer = raw.answer();
        }
        answers.push(answer);
    }
    assert_eq!(answers, [Answer::Ready; 2]);
    assert!(one.is_closed() && two.is_closed());
    assert_eq!(relay.until(|stats| stats.pairs_now == 0).idle, 1);
}

#[test]
fn each_source_may_wait_so_often() {
    let relay = Relay::start(Limits {
        source_waiting: 2,
        ..Limits::default()
    });
    let mut first = relay.ask(&Request::Open);
    assert!(matches!(first.answer(), Answer::Waiting(_)));
    let mut second = relay.ask(&pair(1, Role::Initiator));
    assert_eq!(second.answer(), Answer::Waiting(0));
    for request in [Request::Open, pair(2, Role::Initiator)] {
        let mut third = relay.ask(&request);
        assert_eq!(third.answer(), Answer::Busy);
        assert!(third.is_closed());
    }
    assert_eq!(
        kind(relay.pair([3; 32], Role::Initiator).join().unwrap()),
        ErrorKind::QuotaExceeded
    );
    // Who meets somebody does not wait.
    assert_eq!(relay.ask(&pair(1, Role::Responder)).answer(), Answer::Ready);
    assert_eq!(second.answer(), Answer::Ready);
    // And makes room.
    assert_eq!(relay.ask(&pair(4, Role::Initiator)).answer(), Answer::Waiting(0));
    assert_eq!(relay.counters.read().limited, 3);
}

#[test]
fn guesses_at_nameplates_are_limited() {
    let relay = Relay::start(Limits {
        source_claims: 3,
        ..Limits::default()
    });
    let (nameplate, _opener) = relay.open(&Cancel::new());
    for wrong in 1..=3 {
        assert_eq!(kind(relay.claim(nameplate + 10 * wrong)), ErrorKind::NotFound);
    }
    assert_eq!(kind(relay.claim(nameplate)), ErrorKind::QuotaExceeded);
    let stats = relay.stop();
    assert_eq!((stats.unknown, stats.limited, stats.pairs), (3, 1, 0));
}

#[test]
fn connections_are_limited_for_a_source_and_in_all() {
    for limits in [
        Limits {
            source_connections: 2,
            ..Limits::default()
        },
        Limits {
            connections: 2,
            ..Limits::default()
        },
    ] {
        let relay = Relay::start(limits);
        let one = relay.raw();
        let _two = relay.raw();
        relay.until(|stats| stats.accepted == 2);
        assert!(relay.raw().is_closed());
        assert_eq!(relay.counters.read().limited, 1);
        drop(one);
        // Sooner or later the relay notices that one is gone.
        relay.until(|_| {
            let mut raw = relay.raw();
            raw.0.write_all(&Request::Claim(1).encode()).is_ok() && !raw.is_closed()
        });
    }
}

#[test]
fn requests_that_never_end_end() {
    let relay = Relay::start(Limits {
        request: Duration::from_millis(1500),
        ..Limits::default()
    });
    let mut slow: Vec<_> = (0..30).map(|_| relay.raw()).collect();
    let bytes = Request::Open.encode();
    for raw in &mut slow {
        // Half a request, a byte at a time.
        bytes[..20].iter().for_each(|byte| drop(raw.0.write_all(&[*byte])));
    }
    // Others are served meanwhile.
    let one = relay.pair([1; 32], Role::Initiator);
    let mut two = relay.pair([1; 32], Role::Responder).join().unwrap().unwrap();
    converse(&mut one.join().unwrap().unwrap(), &mut two);
    assert!(slow.iter_mut().all(support::Raw::is_closed));
    let stats = relay.until(|stats| stats.junk == 30);
    assert_eq!((stats.waiting_now, stats.accepted), (0, 32));
}

#[test]
fn a_whole_request_may_come_byte_by_byte() {
    let relay = Relay::start(Limits {
        request: support::PATIENCE,
        ..Limits::default()
    });
    let mut raw = relay.raw();
    for byte in Request::Open.encode() {
        raw.0.write_all(&[byte]).unwrap();
    }
    assert!(matches!(raw.answer(), Answer::Waiting(_)));
}

#[test]
fn junk_gets_no_answer() {
    // With patience without end: it is seen at the first bytes.
    let relay = Relay::start(Limits {
        request: support::PATIENCE,
        ..Limits::default()
    });
    for junk in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"SSH-2.0-OpenSSH",
        b"\x16\x03\x01",
        b"SWRX",
    ] {
        let mut raw = relay.raw();
        raw.0.write_all(junk).unwrap();
        assert!(raw.is_closed(), "{junk:?}");
    }
    // Another version of ours is told.
    let mut bytes = Request::Open.encode();
    bytes[4] = 9;
    let mut raw = relay.raw();
    raw.0.write_all(&bytes).unwrap();
    assert_eq!(raw.answer(), Answer::Refused);
    assert!(raw.is_closed());
    assert_eq!(relay.until(|stats| stats.junk == 5).waiting_now, 0);
}

#[test]
fn who_speaks_too_early_is_sent_away() {
    let relay = Relay::start(Limits::default());
    let mut early = relay.ask(&Request::Open);
    assert!(matches!(early.answer(), Answer::Waiting(_)));
    early.0.write_all(b"hello?").unwrap();
    assert!(early.is_closed());
    assert_eq!(relay.until(|stats| stats.waiting_now == 0).expired, 0);
}
