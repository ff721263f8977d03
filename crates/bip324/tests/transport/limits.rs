//! What a peer cannot make us do, and what holds back a caller that does not keep up.

use sealway_bip324::decoy::{DECOYS_PER_MOMENT, DecoyPolicy, Moment, Shaper};
use sealway_bip324::{Awaiting, CONTENTS_MAX, Connection, DEFAULT_CONTENTS_LIMIT, Error, Event, Options, Role};

use crate::common::{self, connection, events, messages, options, output, pair, pump};

fn plain() -> (Connection, Connection) {
    pair(Options::default(), Options::default())
}

#[test]
fn contents_above_the_limit_end_the_connection_at_the_length() {
    assert_eq!(DEFAULT_CONTENTS_LIMIT, 4_000_013);
    for limit in [0, 9, DEFAULT_CONTENTS_LIMIT, CONTENTS_MAX] {
        let limited = options(|made| made.contents_limit = limit);
        let (mut a, mut b) = pair(Options::default(), limited);
        let contents = vec![1; limit.min(CONTENTS_MAX - 1) + 1];
        a.send(&contents[..limit.min(contents.len())]).unwrap();
        pump(&mut a, &mut b);
        assert_eq!(messages(&mut b).len(), 1, "{limit}");
        a.send(b"").unwrap();
        pump(&mut a, &mut b);
        a.send_decoy(&contents).unwrap();
        let wire = output(&mut a);
        let length = b.handle_input(&wire[..3]);
        if limit < CONTENTS_MAX {
            let claimed = limit + 1;
            assert_eq!(length, Err(Error::PacketTooLong { claimed, limit }));
            assert_eq!(messages(&mut b).len(), 1, "what came before is there");
            assert_eq!(b.progress().awaiting, Awaiting::Nothing);
        } else {
            assert_eq!(length, Ok(3));
        }
    }
}

/// Each bit of a packet on a connection: nothing of it is delivered, nor of what follows.
#[test]
fn a_damaged_packet_ends_the_connection() {
    for bit in 0..8 * 25 {
        let (mut a, mut b) = plain();
        a.send(b"first").unwrap();
        let good = output(&mut a);
        b.handle_input(&good).unwrap();
        a.send(b"other").unwrap();
        let mut bad = output(&mut a);
        bad[bit / 8] ^= 1 << (bit % 8);
        a.send(b"after").unwrap();
        bad.extend(output(&mut a));
        b.send(b"waits to be sent").unwrap();
        match b.handle_input(&bad) {
            // The length is larger, and the rest is awaited.
            Ok(n) => {
                assert!(bit < 24 && n == bad.len());
                assert!(matches!(b.progress().awaiting, Awaiting::Packet { .. }) && b.progress().is_due());
            }
            Err(error) => {
                assert!(error.ends_connection(), "{error:?}");
                assert!(b.output().is_empty(), "something is said after a failure");
                assert_eq!(b.handle_input(&[]), Err(Error::Closed));
                assert_eq!(b.send(b"x"), Err(Error::Closed));
                assert_eq!(b.send_decoy(b"x"), Err(Error::Closed));
                assert!(!b.is_established());
            }
        }
        assert_eq!(messages(&mut b), [b"first"], "bit {bit}");
    }
}

#[test]
fn a_flood_of_decoys_waits_for_the_caller() {
    let (mut a, mut b) = plain();
    let mut wire = Vec::new();
    for n in 0..10_000 {
        a.send_decoy(&[0; 60][..n % 60]).unwrap();
        wire.extend(output(&mut a));
    }
    a.send(b"message").unwrap();
    wire.extend(output(&mut a));
    let (mut at, mut decoys, mut most) = (0, 0, 0);
    while at < wire.len() {
        let n = b.handle_input(&wire[at..]).unwrap();
        at += n;
        if at < wire.len() {
            assert_eq!(b.progress().awaiting, Awaiting::Caller);
            assert_eq!(b.handle_input(&wire[at..]), Ok(0));
        }
        let got = events(&mut b);
        most = most.max(got.len());
        decoys += got.iter().filter(|event| matches!(event, Event::Decoy { .. })).count();
    }
    assert_eq!((decoys, most), (10_000, Options::default().event_limit));
    assert_eq!(b.counters().decoys_received, 10_000);
    assert_eq!(b.counters().messages_received, 1);
}

#[test]
fn large_messages_wait_for_the_caller() {
    let (mut a, mut b) = plain();
    let mut wire = Vec::new();
    for n in 0..40 {
        a.send(&vec![n; 100_000]).unwrap();
        wire.extend(output(&mut a));
    }
    let n = b.handle_input(&wire).unwrap();
    assert_eq!(n, 11 * 100_020, "a message more than the limit of 1 MiB");
    assert_eq!(b.handle_input(&wire[n..]), Ok(0));
    let Some(Event::Message(first)) = b.poll_event() else {
        panic!()
    };
    assert_eq!(first.len(), 100_000);
    assert_eq!(
        b.handle_input(&wire[n..]),
        Ok(100_020),
        "as much as makes it full again"
    );
}

#[test]
fn output_waits_for_the_peer() {
    let limited = options(|made| made.output_limit = 1000);
    let (mut a, mut b) = pair(limited, Options::default());
    let mut sent = 0;
    let full = loop {
        match a.send(&[7; 100]) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    let (waiting, limit) = (1080, 1000);
    assert_eq!((sent, full), (9, Error::OutputFull { waiting, limit }));
    assert_eq!(a.send_decoy(b""), Err(Error::OutputFull { waiting, limit }));
    // In small steps, with messages in between: everything comes, once and in order.
    let mut wire = Vec::new();
    for n in 0..500usize {
        let step = a.output().len().min(37 + n % 90);
        wire.extend_from_slice(&a.output()[..step]);
        a.advance_output(step);
        if a.send(&n.to_le_bytes()).is_ok() {
            sent += 1;
        }
    }
    wire.extend(output(&mut a));
    assert_eq!(a.counters().bytes_sent, b.counters().bytes_received + wire.len() as u64);
    let (mut got, mut rest) = (Vec::new(), &wire[..]);
    while !rest.is_empty() {
        let n = b.handle_input(rest).unwrap();
        rest = &rest[n..];
        got.extend(messages(&mut b));
    }
    assert_eq!(got.len(), sent);
    let numbers: Vec<_> = got[9..]
        .iter()
        .map(|n| usize::from_le_bytes(n[..].try_into().unwrap()))
        .collect();
    assert!(numbers.is_sorted());
    a.advance_output(usize::MAX);
    assert_eq!(a.output(), b"");
}

#[test]
fn a_message_that_is_too_long_changes_nothing() {
    let (mut a, mut b) = plain();
    let long = vec![0; CONTENTS_MAX + 1];
    assert!(matches!(a.send(&long), Err(Error::ContentsTooLong { .. })));
    assert!(a.output().is_empty());
    a.send(b"short").unwrap();
    pump(&mut a, &mut b);
    assert_eq!(messages(&mut b), [b"short"]);
}

/// A shaper that always wants more.
struct Endless;

impl Shaper for Endless {
    fn decoy(&mut self, moment: Moment, _: u64) -> Option<usize> {
        match moment {
            Moment::Before { contents_len } => Some(contents_len),
            Moment::Idle => Some(usize::MAX >> 40),
            _ => None,
        }
    }
}

#[test]
fn shapers_are_asked_and_bounded() {
    let (mut a, mut b) = plain();
    a.send_shaped(b"message", &mut Endless, &mut || 0).unwrap();
    assert_eq!(a.counters().decoys_sent, DECOYS_PER_MOMENT as u64);
    pump(&mut a, &mut b);
    let got = events(&mut b);
    assert_eq!(got.len(), DECOYS_PER_MOMENT + 1);
    assert!(
        got[..DECOYS_PER_MOMENT]
            .iter()
            .all(|event| *event == Event::Decoy { len: 7 })
    );
    assert!(matches!(&got[DECOYS_PER_MOMENT], Event::Message(contents) if **contents == *b"message"));

    let mut policy = DecoyPolicy::new(20, 0, 64).unwrap();
    let mut numbers = common::Numbers(3);
    for _ in 0..2000 {
        a.send_shaped(b"message", &mut policy, &mut || numbers.next()).unwrap();
        let bytes = output(&mut a);
        b.handle_input(&bytes).unwrap();
        events(&mut b);
    }
    let decoys = b.counters().decoys_received - DECOYS_PER_MOMENT as u64;
    assert!((300..500).contains(&decoys), "{decoys}");
    assert_eq!(b.counters().messages_received, 2001);
    let mut early = connection(Role::Initiator, Options::default());
    assert_eq!(early.idle(&mut Endless, &mut || 0), Err(Error::NotReady));
}

/// What a caller is told to wait for.
#[test]
fn progress_says_what_is_missing() {
    let (mut a, mut b) = plain();
    a.send(&[1; 100]).unwrap();
    let wire = output(&mut a);
    let between = b.progress();
    assert_eq!(
        (between.awaiting, between.established),
        (Awaiting::Length { missing: 3 }, true)
    );
    assert!(!between.is_due(), "nothing has to come between packets");
    for n in 1..wire.len() {
        b.handle_input(&wire[n - 1..n]).unwrap();
        let missing = if n < 3 { 3 - n } else { wire.len() - n };
        let want = match n {
            1 | 2 => Awaiting::Length { missing },
            _ => Awaiting::Packet { missing },
        };
        assert_eq!(b.progress().awaiting, want);
        assert!(b.progress().is_due());
    }
    b.handle_input(&wire[wire.len() - 1..]).unwrap();
    assert_eq!(b.progress(), between);
    let handshake = connection(Role::Responder, Options::default()).progress();
    assert!(handshake.is_due() && !handshake.established);
}

/// The smallest limits there are: everything goes through, one thing at a time.
#[test]
fn limits_of_nothing_let_one_through() {
    let none = || options(|made| (made.output_limit, made.event_limit, made.event_bytes_limit) = (0, 0, 0));
    let mut a = connection(Role::Initiator, none());
    let mut b = connection(Role::Responder, none());
    pump(&mut a, &mut b);
    assert_eq!((events(&mut a).len(), events(&mut b).len()), (1, 1));
    for _ in 0..3 {
        a.send(b"message").unwrap();
        assert!(matches!(a.send(b"message"), Err(Error::OutputFull { .. })));
        pump(&mut a, &mut b);
        assert_eq!(messages(&mut b), [b"message"]);
    }
}
