//! A transcript cut into reads anywhere gives the same events and the same answers.

use sealway_bip324::message::{Message, v1};
use sealway_bip324::stream::{Incoming, Next, V1Messages};
use sealway_bip324::{Connection, Event, Magic, Options, Role};

use crate::common::{self, Numbers, connection, events, output};

fn options(role: Role) -> Options {
    let garbage = match role {
        Role::Initiator => 40,
        Role::Responder => 21,
    };
    common::options(|made| {
        made.garbage = (0..garbage).collect();
        made.decoys = vec![Vec::new(), vec![1; 33]];
        made.version = b"some version".to_vec();
    })
}

/// What each role sends: the handshake, then messages and decoys over a change of keys, then one packet cut short.
fn transcript(role: Role) -> Vec<u8> {
    let mut ours = connection(role, options(role));
    let mut theirs = connection(role.other(), options(role.other()));
    let mut sent = Vec::new();
    for _ in 0..2 {
        let bytes = output(&mut ours);
        theirs.handle_input(&bytes).unwrap();
        sent.extend(bytes);
        ours.handle_input(&output(&mut theirs)).unwrap();
    }
    for n in 0..240usize {
        match n % 5 {
            0 => ours.send_decoy(&[0; 3]).unwrap(),
            _ => ours.send(&vec![n as u8; n % 7]).unwrap(),
        }
    }
    for len in [0, 1, 63, 64, 300] {
        ours.send(&vec![0xcc; len]).unwrap();
    }
    sent.extend(output(&mut ours));
    sent.truncate(sent.len() - 5);
    sent
}

/// Events and output, and the state they leave.
type Outcome = (Vec<Event>, Vec<u8>, String);

fn outcome(ours: &mut Connection, events: Vec<Event>) -> Outcome {
    let state = format!("{ours:?}");
    (events, output(ours), state)
}

/// Feeds the pieces one by one, taking events after each, or only in the end.
fn feed<'a>(role: Role, pieces: impl Iterator<Item = &'a [u8]>, poll: bool) -> Outcome {
    let mut ours = connection(role, options(role));
    let mut got = Vec::new();
    for mut piece in pieces {
        while !piece.is_empty() {
            let n = ours.handle_input(piece).unwrap();
            piece = &piece[n..];
            if poll || n == 0 {
                got.extend(events(&mut ours));
            }
        }
    }
    got.extend(events(&mut ours));
    outcome(&mut ours, got)
}

#[test]
fn every_split_gives_the_same() {
    for role in [Role::Initiator, Role::Responder] {
        let wire = transcript(role.other());
        let whole = feed(role, [&wire[..]].into_iter(), true);
        let messages = whole
            .0
            .iter()
            .filter(|event| matches!(event, Event::Message(_)))
            .count();
        assert_eq!((whole.0.len(), messages), (247, 196), "{role:?}");
        assert!(whole.2.contains("Packet { missing: 5 }"), "{}", whole.2);
        for at in 0..=wire.len() {
            // Every cut of the handshake and of the last packets, some of the many like ones between.
            if at < 400 || at + 600 > wire.len() || at % 13 == 0 {
                let (head, tail) = wire.split_at(at);
                assert_eq!(feed(role, [head, tail].into_iter(), true), whole, "cut at {at}");
            }
        }
        for size in (1..70).chain([127, 1000]) {
            assert_eq!(feed(role, wire.chunks(size), size % 2 == 0), whole, "pieces of {size}");
        }
        let mut numbers = Numbers(5);
        for round in 0..50 {
            let mut pieces = Vec::new();
            let mut rest = &wire[..];
            while !rest.is_empty() {
                let most = 1 + numbers.below(300);
                let (piece, after) = rest.split_at(1 + numbers.below(rest.len().min(most)));
                pieces.push(piece);
                rest = after;
            }
            assert_eq!(feed(role, pieces.into_iter(), round % 2 == 0), whole, "round {round}");
        }
    }
}

/// Taken apart anywhere after the handshake, what is left of the input is opened by the chain that comes out.
#[test]
fn taken_apart_anywhere() {
    let wire = transcript(Role::Initiator);
    let mut whole = connection(Role::Responder, options(Role::Responder));
    whole.handle_input(&wire).unwrap();
    let all = events(&mut whole);
    for cut in (230..wire.len()).step_by(7) {
        let mut ours = connection(Role::Responder, options(Role::Responder));
        ours.handle_input(&wire[..cut]).unwrap();
        let mut parts = match ours.into_parts() {
            Ok(parts) => parts,
            Err(ours) => {
                assert!(!ours.is_established());
                continue;
            }
        };
        let mut got: Vec<Event> = parts.events.drain(..).collect();
        let mut rest = parts.unread;
        rest.extend_from_slice(&wire[cut..]);
        let mut opener = sealway_bip324::PacketOpener::new(parts.recv);
        let mut at = 0;
        let mut contents = Vec::new();
        while let Some(length) = rest[at..].first_chunk() {
            let need = opener.open_length(*length).unwrap();
            at += 3;
            let Some(packet) = rest.get_mut(at..at + need) else {
                break;
            };
            let (kind, opened) = opener.open_in_place(&[], packet).unwrap();
            contents.push((kind, opened.to_vec()));
            at += need;
        }
        assert_eq!(got.len() + contents.len(), all.len(), "cut at {cut}");
        for ((kind, opened), event) in contents.iter().zip(&all[got.len()..]) {
            match event {
                Event::Message(message) => assert_eq!(message[..], opened[..]),
                Event::Decoy { len } => assert!(*kind == sealway_bip324::Kind::Decoy && opened.len() == *len),
                other => panic!("{other:?}"),
            }
        }
        got.truncate(3);
        assert_eq!(got, all[..got.len()]);
    }
}

/// Messages of v1, of which every other one is to be dropped: its checksum is wrong, or its type.
fn v1_transcript() -> Vec<u8> {
    let mut sent = Vec::new();
    for n in 0..6u8 {
        let good = Message {
            command: "tx".parse().unwrap(),
            payload: &vec![n; usize::from(n)],
        };
        v1::encode(Magic::REGTEST, &good, &mut sent).unwrap();
        let start = sent.len();
        let payload = match n {
            0 => Vec::new(),
            // What looks like the start of a message is none within a payload.
            1 => Magic::REGTEST.v1_prefix().to_vec(),
            _ => vec![n; 9],
        };
        let bad = Message {
            payload: &payload,
            ..good
        };
        v1::encode(Magic::REGTEST, &bad, &mut sent).unwrap();
        let damaged = match n {
            // The payload, the checksum, a type with a byte after its end, and one that is not printable.
            2 => sent.len() - 1,
            4 => start + 15,
            5 => start + 4,
            _ => start + 23,
        };
        sent[damaged] ^= 0x80;
    }
    sent
}

#[test]
fn messages_of_v1_that_are_dropped_leave_the_next_ones_whole_wherever_they_are_cut() {
    let sent = v1_transcript();
    for piece in 1..=sent.len() {
        let mut incoming = Incoming::new(V1Messages::new(Magic::REGTEST, 1000), Vec::new());
        let mut got = Vec::new();
        for part in sent.chunks(piece) {
            let mut part = part;
            while !part.is_empty() {
                let n = incoming.room().len().min(part.len());
                incoming.room()[..n].copy_from_slice(&part[..n]);
                incoming.came(n).unwrap();
                part = &part[n..];
                while let Next::Message(message) = incoming.next_message().unwrap() {
                    assert_eq!(message.head.name(), "tx");
                    got.push(incoming.bytes(message.body).to_vec());
                }
            }
        }
        let want: Vec<_> = (0..6u8).map(|n| vec![n; usize::from(n)]).collect();
        assert_eq!(got, want, "pieces of {piece} bytes");
        let received = incoming.received();
        assert_eq!((received.messages, received.dropped), (6, 6));
        assert_eq!(received.bytes, sent.len() as u64);
        assert!(incoming.is_between());
    }
}

#[test]
fn another_network_or_too_long_a_message_of_v1_ends_the_direction() {
    let mut other = v1_transcript();
    other[0] ^= 1;
    let mut long = v1_transcript();
    long[18] = 1;
    for sent in [other, long] {
        let mut incoming = Incoming::new(V1Messages::new(Magic::REGTEST, 1000), sent);
        assert!(incoming.next_message().is_err() && incoming.next_message().is_err());
        assert_eq!(incoming.received().messages, 0);
    }
}
