//! Two ends meet at a relay: who is put together with whom, and what goes through.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sealway_drop::Error;
use sealway_drop::cancel::Cancel;
use sealway_drop::relay::wire::{Answer, REQUEST_LEN, Request, SEEN_LEN, parse_seen};
use sealway_drop::relay::{Meeting, meet, pair};
use sealway_drop_relay::Limits;
use sealway_session::handshake::Role;

use crate::support::{PATIENCE, Relay, converse, kind, opening};

#[test]
fn who_opens_and_who_claims_are_put_together_once() {
    let relay = Relay::start(Limits::default());
    let (nameplate, opener) = relay.open(&Cancel::new());
    assert!((1..10).contains(&nameplate), "the smallest first: {nameplate}");
    let (mut claimer, role) = relay.claim(nameplate).unwrap();
    assert_eq!(role, Role::Initiator);
    let (mut opener, role) = opener.join().unwrap().unwrap();
    assert_eq!(role, Role::Responder);
    for stream in [&opener, &claimer] {
        assert_eq!(
            (stream.read_timeout().unwrap(), stream.write_timeout().unwrap()),
            (None, None)
        );
    }
    converse(&mut opener, &mut claimer);
    assert_eq!(kind(relay.claim(nameplate)), ErrorKind::NotFound);
    // Bytes are counted once they have left: a moment after they may have been read.
    let stats = relay.until(|stats| stats.unknown == 1 && stats.bytes >= 10);
    assert_eq!(
        (stats.pairs, stats.pairs_now, stats.waiting_now, stats.bytes),
        (1, 1, 0, 10)
    );
}

#[test]
fn a_client_hears_how_it_is_seen() {
    let relay = Relay::start(Limits::default());
    let mut client = relay.ask(&Request::Seen);
    let own = client.0.local_addr().unwrap();
    assert_eq!(client.answer(), Answer::Seen(own.port()));
    let mut ip = [0; SEEN_LEN];
    client.0.read_exact(&mut ip).unwrap();
    assert_eq!(parse_seen(ip), own.ip());
    assert!(client.is_closed(), "that is all");
}

#[test]
fn a_nameplate_dies_with_the_connection_that_opened_it() {
    let relay = Relay::start(Limits::default());
    let mut opener = relay.ask(&Request::Open);
    let Answer::Waiting(nameplate) = opener.answer() else {
        panic!()
    };
    drop(opener);
    relay.until(|stats| stats.waiting_now == 0);
    assert_eq!(kind(relay.claim(nameplate)), ErrorKind::NotFound);
    assert_eq!(kind(relay.claim(0)), ErrorKind::NotFound);
}

#[test]
fn tokens_meet_in_any_order_and_roles_must_differ() {
    let relay = Relay::start(Limits::default());
    for (token, first) in [([1; 32], Role::Initiator), ([2; 32], Role::Responder)] {
        let one = relay.pair(token, first);
        relay.until(|stats| stats.waiting_now == 1);
        let mut two = relay.pair(token, first.other()).join().unwrap().unwrap();
        let mut one = one.join().unwrap().unwrap();
        converse(&mut one, &mut two);
    }
    // Other tokens and equal roles do not meet.
    let mut lonely: Vec<_> = [
        ([3; 32], Role::Initiator),
        ([4; 32], Role::Responder),
        ([5; 32], Role::Responder),
    ]
    .into_iter()
    .map(|(token, role)| relay.ask(&Request::Pair { token, role }))
    .collect();
    assert!(lonely.iter_mut().all(|raw| raw.answer() == Answer::Waiting(0)));
    assert_eq!(relay.until(|stats| stats.waiting_now == 3).pairs, 2);
}

#[test]
fn of_three_with_one_token_the_later_of_equal_roles_counts() {
    let relay = Relay::start(Limits::default());
    let token = [9; 32];
    let first = relay.pair(token, Role::Initiator);
    relay.until(|stats| stats.waiting_now == 1);
    let second = relay.pair(token, Role::Initiator);
    assert_eq!(kind(first.join().unwrap()), ErrorKind::PermissionDenied);
    let mut third = relay.pair(token, Role::Responder).join().unwrap().unwrap();
    converse(&mut second.join().unwrap().unwrap(), &mut third);
    // A fourth finds nobody: the pair is not open to others.
    let mut fourth = relay.ask(&Request::Pair {
        token,
        role: Role::Responder,
    });
    assert_eq!(fourth.answer(), Answer::Waiting(0));
}

#[test]
fn an_end_that_closes_is_heard_and_may_still_listen() {
    let relay = Relay::start(Limits::default());
    let one = relay.pair([1; 32], Role::Initiator);
    let mut two = relay.pair([1; 32], Role::Responder).join().unwrap().unwrap();
    let mut one = one.join().unwrap().unwrap();
    one.write_all(b"last words").unwrap();
    one.shutdown(Shutdown::Write).unwrap();
    let mut got = Vec::new();
    two.set_read_timeout(Some(PATIENCE)).unwrap();
    two.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"last words");
    converse_back(&mut two, &mut one);
    drop(two);
    assert_eq!(one.read(&mut [0]).unwrap(), 0);
    assert_eq!(relay.until(|stats| stats.pairs_now == 0).bytes, 10 + 1_000_000);
}

fn converse_back(from: &mut TcpStream, to: &mut TcpStream) {
    let content: Vec<u8> = (0..1_000_000u32).map(|n| (n % 251) as u8).collect();
    let mut got = vec![0; content.len()];
    std::thread::scope(|scope| {
        scope.spawn(|| from.write_all(&content).unwrap());
        to.read_exact(&mut got).unwrap();
    });
    assert!(got == content);
}

/// The same bytes for the same seed, in pieces.
fn pieces(seed: u64) -> impl Iterator<Item = Vec<u8>> {
    let mut state = seed;
    (0..400usize).map(move |piece| {
        (0..(piece * 977) % 131_072)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            })
            .collect()
    })
}

#[test]
fn many_bytes_both_ways_arrive_exactly() {
    let relay = Relay::start(Limits::default());
    let one = relay.pair([1; 32], Role::Initiator);
    let two = relay.pair([1; 32], Role::Responder).join().unwrap().unwrap();
    let one = one.join().unwrap().unwrap();
    let total: usize = pieces(0).map(|piece| piece.len()).sum();
    std::thread::scope(|scope| {
        for (from, to, seed) in [(&one, &two, 1), (&two, &one, 2)] {
            scope.spawn(move || {
                let mut from = from;
                pieces(seed).for_each(|piece| from.write_all(&piece).unwrap());
                from.shutdown(Shutdown::Write).unwrap();
            });
            scope.spawn(move || {
                let mut to = to;
                for (number, piece) in pieces(seed).enumerate() {
                    let mut got = vec![0; piece.len()];
                    to.read_exact(&mut got).unwrap();
                    assert!(got == piece, "piece {number} of seed {seed}");
                }
                assert_eq!(to.read(&mut [0]).unwrap(), 0);
            });
        }
    });
    drop((one, two));
    assert_eq!(relay.until(|stats| stats.pairs_now == 0).bytes, 2 * total as u64);
}

#[test]
fn waiting_stops_when_told() {
    let relay = Relay::start(Limits::default());
    let cancel = Cancel::new();
    let (_, opener) = relay.open(&cancel);
    cancel.cancel();
    assert!(matches!(opener.join().unwrap(), Err(Error::Cancelled)));

    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| {
            pair(&relay.address, &[1; 32], Role::Initiator, &|| {
                stop.load(Ordering::SeqCst)
            })
        });
        relay.until(|stats| stats.accepted == 2 && stats.waiting_now == 1);
        stop.store(true, Ordering::SeqCst);
        assert!(matches!(waits.join().unwrap(), Err(Error::Cancelled)));
    });
    relay.until(|stats| stats.waiting_now == 0);
}

/// Something that answers a request with these bytes. Returns its address.
fn fake(answer: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; REQUEST_LEN]).unwrap();
        stream.write_all(&answer).unwrap();
        // The client ends it.
        let _ = stream.set_read_timeout(Some(PATIENCE));
        let _ = stream.read(&mut [0]);
    });
    address
}

#[test]
fn nothing_is_read_beyond_the_answer() {
    let (meeting, told) = opening();
    let mut bytes = Answer::Waiting(41).encode().to_vec();
    bytes.extend(Answer::Ready.encode());
    bytes.extend(b"first words");
    let (mut stream, _) = meet(&fake(bytes), &meeting, &Cancel::new()).unwrap();
    assert_eq!(told.try_recv(), Ok(41));
    let mut got = [0; 11];
    stream.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"first words");
}

#[test]
fn answers_out_of_place_are_errors() {
    let (waiting, ready) = (
        |n| Answer::Waiting(n).encode().to_vec(),
        Answer::Ready.encode().to_vec(),
    );
    let (open, _told) = opening();
    for (meeting, answers) in [
        (&open, ready.clone()),
        (&open, waiting(0)),
        (&open, [waiting(1), waiting(2)].concat()),
        (&open, Answer::Unknown.encode().to_vec()),
        (&Meeting::Claim(1), waiting(1)),
        (&Meeting::Claim(1), b"HTTP/1.1 400 Bad Request\r\n".to_vec()),
        (&Meeting::Claim(1), b"SW\x02\x02\0\0\0\0".to_vec()),
    ] {
        let result = meet(&fake(answers.clone()), meeting, &Cancel::new());
        assert!(matches!(result, Err(Error::Protocol(_))), "{answers:?}");
    }
    let error = meet(
        &fake(Answer::Unknown.encode().to_vec()),
        &Meeting::Claim(7),
        &Cancel::new(),
    )
    .unwrap_err();
    assert!(error.to_string().contains("nobody waits under number 7"), "{error}");
}

#[test]
fn a_relay_that_ends_lets_pairs_finish() {
    let relay = Relay::start(Limits {
        grace: PATIENCE,
        ..Limits::default()
    });
    let one = relay.pair([1; 32], Role::Initiator);
    let mut two = relay.pair([1; 32], Role::Responder).join().unwrap().unwrap();
    let mut one = one.join().unwrap().unwrap();
    let mut waiter = relay.ask(&Request::Open);
    assert!(matches!(waiter.answer(), Answer::Waiting(_)));
    let half = relay.raw();
    relay.until(|stats| stats.accepted == 4);
    relay.end();
    assert!(waiter.is_closed());
    let mut half = half;
    assert!(half.is_closed());
    converse(&mut one, &mut two);
    drop((one, two));
    let stats = relay.stop();
    assert_eq!(
        (stats.pairs, stats.bytes, stats.pairs_now, stats.waiting_now),
        (1, 10, 0, 0)
    );
}

#[test]
fn a_relay_that_ends_cuts_pairs_that_go_on() {
    let relay = Relay::start(Limits {
        grace: Duration::from_millis(20),
        ..Limits::default()
    });
    let one = relay.pair([1; 32], Role::Initiator);
    let mut two = relay.pair([1; 32], Role::Responder).join().unwrap().unwrap();
    let mut one = one.join().unwrap().unwrap();
    let writer = std::thread::spawn(move || {
        let content = vec![7; 1 << 16];
        while one.write_all(&content).is_ok() {}
    });
    let reader = std::thread::spawn(move || {
        let mut room = vec![0; 1 << 16];
        while two.read(&mut room).is_ok_and(|read| read > 0) {}
    });
    relay.until(|stats| stats.bytes > 10_000_000);
    let stats = relay.stop();
    assert_eq!((stats.pairs, stats.pairs_now), (1, 0));
    writer.join().unwrap();
    reader.join().unwrap();
}
