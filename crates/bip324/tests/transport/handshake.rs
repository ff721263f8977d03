//! The handshake: v1 by its prefix, garbage, terminators, AAD, the version packet and decoys around it.

use sealway_bip324::handshake::{Garbage, Initiator, Key, Prefix, Responder, Version};
use sealway_bip324::{
    Awaiting, CONTENTS_MAX, Connection, Error, Event, Kind, Magic, Options, PacketSealer, Role, V1_PREFIX_LEN,
};

use crate::common::{connection, events, key, options, output, pair, pump, session_keys};

fn responder() -> Connection {
    connection(Role::Responder, Options::default())
}

/// What the initiator of [`session_keys`] sends: its key, then garbage, its terminator and packets with these AADs.
fn from_initiator(garbage: &[u8], packets: &[(Kind, &[u8])]) -> Vec<u8> {
    let keys = session_keys();
    let mut wire = key(Role::Initiator).encoding().to_vec();
    wire.extend_from_slice(garbage);
    wire.extend_from_slice(&keys.terminator(Role::Initiator));
    let mut sealer = PacketSealer::new(keys.send_chain(Role::Initiator).unwrap());
    for (kind, aad) in packets {
        sealer.seal(*kind, aad, b"contents", &mut wire).unwrap();
    }
    wire
}

#[test]
fn v1_is_known_by_sixteen_bytes() {
    let prefix = Magic::MAINNET.v1_prefix();
    for piece in 1..=V1_PREFIX_LEN {
        let mut ours = responder();
        let mut input = prefix.to_vec();
        input.extend_from_slice(b"rest of the version message");
        let mut at = 0;
        while at < V1_PREFIX_LEN {
            assert_eq!(ours.progress().awaiting, Awaiting::Prefix { missing: 16 - at });
            assert_eq!(events(&mut ours), []);
            let n = ours.handle_input(&input[at..input.len().min(at + piece)]).unwrap();
            assert!(ours.output().is_empty(), "something was said to a v1 peer");
            at += n;
        }
        assert_eq!(at, V1_PREFIX_LEN);
        assert_eq!(events(&mut ours), [Event::V1 { prefix }]);
        assert_eq!(ours.handle_input(&input[at..]), Ok(0), "the rest is not for us");
        assert_eq!(ours.send(b"x"), Err(Error::Closed));
        assert_eq!(ours.progress().awaiting, Awaiting::Nothing);
        assert!(ours.into_parts().is_err());
    }
}

/// The answer is there with the first byte that is not of v1, and not before.
#[test]
fn the_answer_is_early() {
    for wrong in 0..V1_PREFIX_LEN {
        let mut prefix = Magic::MAINNET.v1_prefix();
        prefix[wrong] ^= 0x40;
        let mut ours = responder();
        assert_eq!(ours.handle_input(&prefix[..wrong]), Ok(wrong));
        assert!(ours.output().is_empty());
        assert_eq!(ours.handle_input(&prefix[wrong..=wrong]), Ok(1));
        assert_eq!(ours.output(), key(Role::Responder).encoding());
        assert_eq!(ours.progress().awaiting, Awaiting::Key { missing: 63 - wrong });
    }
}

/// A key that starts like v1 does is a key all the same.
#[test]
fn a_key_that_starts_with_the_magic() {
    let start = key(Role::Initiator).encoding()[..4].try_into().unwrap();
    let mut a = Connection::initiator(Magic(start), key(Role::Initiator), Options::default()).unwrap();
    let mut b = Connection::responder(Magic(start), key(Role::Responder), Options::default()).unwrap();
    b.handle_input(&a.output()[..4]).unwrap();
    a.advance_output(4);
    assert!(b.output().is_empty());
    pump(&mut a, &mut b);
    assert!(a.is_established() && b.is_established());
    assert_eq!(a.session_id(), b.session_id());
}

#[test]
fn v1_of_another_network_is_refused() {
    for piece in [1, 7, 16, 64] {
        let mut ours = responder();
        let magic = Magic::SIGNET;
        let mut input = magic.v1_prefix().to_vec();
        input.extend_from_slice(&[0; 48]);
        let result = input
            .chunks(piece)
            .try_for_each(|part| ours.handle_input(part).map(|_| ()));
        assert_eq!(result, Err(Error::OtherNetwork { magic }));
        assert!(ours.output().is_empty(), "closed without a word");
        assert_eq!(ours.handle_input(&[0]), Err(Error::Closed));
    }
    // Only a responder looks for it.
    let mut ours = connection(Role::Initiator, Options::default());
    let mut input = Magic::SIGNET.v1_prefix().to_vec();
    input.extend_from_slice(&[0; 48]);
    assert_eq!(ours.handle_input(&input), Ok(64));
}

#[test]
fn garbage_of_any_length() {
    for (a, b) in [(0, 0), (1, 0), (0, 1), (15, 16), (17, 4094), (4095, 4095)] {
        let garbage = |len: usize| options(|made| made.garbage = (0..len).map(|n| n as u8).collect());
        let (a, b) = pair(garbage(a), garbage(b));
        assert_eq!(a.session_id(), b.session_id());
    }
    let options = options(|made| made.garbage = vec![0; 4096]);
    let refused = Connection::initiator(Magic::MAINNET, key(Role::Initiator), options.clone());
    assert_eq!(refused.unwrap_err(), Error::GarbageTooLong { got: 4096 });
    let refused = Connection::responder(Magic::MAINNET, key(Role::Responder), options);
    assert_eq!(refused.unwrap_err(), Error::GarbageTooLong { got: 4096 });
}

/// Pieces of the terminator, at every place, are garbage; a whole one ends it, and then the AAD is wrong.
#[test]
fn what_looks_like_a_terminator() {
    let terminator = session_keys().terminator(Role::Initiator);
    let mut garbage = Vec::new();
    for n in 0..16 {
        garbage.extend_from_slice(&terminator[..n]);
        garbage.extend_from_slice(&terminator[n + 1..]);
    }
    // One byte short each; taken together, the pieces must not make one.
    assert!(!garbage.windows(16).any(|window| window == terminator));
    let mut ours = responder();
    ours.handle_input(&from_initiator(&garbage, &[(Kind::Genuine, &garbage)]))
        .unwrap();
    assert!(ours.is_established());

    garbage.truncate(40);
    garbage.extend_from_slice(&terminator);
    let mut ours = responder();
    let wire = from_initiator(&garbage, &[(Kind::Genuine, &garbage)]);
    let result = wire.chunks(9).try_for_each(|part| ours.handle_input(part).map(|_| ()));
    match result {
        // Packets start too early: what is read as a length is long, or what it is read for is not authentic.
        Err(Error::Unauthentic | Error::PacketTooLong { .. }) => {}
        Ok(()) => assert!(!ours.is_established()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn no_terminator_in_time() {
    for piece in [1, 100, 4111, 5000] {
        let mut ours = responder();
        ours.handle_input(key(Role::Initiator).encoding()).unwrap();
        let garbage = [0xa5; 5000];
        let mut taken = 0;
        let error = garbage.chunks(piece).find_map(|part| match ours.handle_input(part) {
            Ok(n) => {
                taken += n;
                let (received, limit) = (taken, 4111);
                assert_eq!(ours.progress().awaiting, Awaiting::Garbage { received, limit });
                None
            }
            Err(error) => Some(error),
        });
        assert_eq!(error, Some(Error::NoTerminator));
        assert!(taken < 4111, "{taken}");
    }
}

#[test]
fn the_first_packet_of_any_kind_carries_the_garbage() {
    let garbage: &[u8] = b"0123456789";
    let established = |packets: &[(Kind, &[u8])]| {
        let mut ours = responder();
        let result = ours.handle_input(&from_initiator(garbage, packets));
        assert_eq!(result.is_ok(), ours.is_established());
        result.err()
    };
    assert_eq!(established(&[(Kind::Genuine, garbage)]), None);
    assert_eq!(established(&[(Kind::Decoy, garbage), (Kind::Genuine, b"")]), None);
    let wrong = Some(Error::Unauthentic);
    assert_eq!(established(&[(Kind::Genuine, b"")]), wrong);
    assert_eq!(established(&[(Kind::Genuine, &garbage[1..])]), wrong);
    assert_eq!(established(&[(Kind::Decoy, b""), (Kind::Genuine, garbage)]), wrong);
    assert_eq!(established(&[(Kind::Decoy, garbage), (Kind::Genuine, garbage)]), wrong);
    // Each bit of the garbage, and a byte more or fewer.
    let wire = from_initiator(garbage, &[(Kind::Genuine, garbage)]);
    for bit in 0..8 * garbage.len() {
        let mut bad = wire.clone();
        bad[64 + bit / 8] ^= 1 << (bit % 8);
        assert_eq!(responder().handle_input(&bad), Err(Error::Unauthentic), "bit {bit}");
    }
    let mut fewer = wire.clone();
    fewer.remove(64);
    assert_eq!(responder().handle_input(&fewer), Err(Error::Unauthentic));
    let mut more = wire;
    more.insert(64, 0);
    assert_eq!(responder().handle_input(&more), Err(Error::Unauthentic));
}

#[test]
fn decoys_and_contents_around_the_version_packet() {
    let options = |n: usize| {
        options(|made| {
            made.garbage = vec![9; 3 * n];
            made.decoys = (0..n).map(|len| vec![0; 40 * len]).collect();
            made.version = vec![7; 1000 * n];
        })
    };
    let mut a = connection(Role::Initiator, options(2));
    let mut b = connection(Role::Responder, options(0));
    pump(&mut a, &mut b);
    let session_id = *a.session_id().unwrap();
    let established = Event::Established { session_id };
    let decoy = |len| Event::Decoy { len };
    assert_eq!(events(&mut a), [Event::Established { session_id }]);
    assert_eq!(events(&mut b), [decoy(0), decoy(40), established]);
    assert_eq!(b.counters().decoys_received, 2);
    assert_eq!((a.counters().decoys_sent, a.counters().messages_sent), (2, 0));
    a.send_decoy(b"after").unwrap();
    a.send(b"message").unwrap();
    pump(&mut a, &mut b);
    assert_eq!(b.poll_event(), Some(decoy(5)));
    assert!(matches!(b.poll_event(), Some(Event::Message(contents)) if *contents == *b"message"));
}

/// Messages may follow the version packet at once, before anything of the peer's was opened.
#[test]
fn sending_starts_with_the_peers_key() {
    let mut a = connection(Role::Initiator, Options::default());
    let mut b = responder();
    assert_eq!(a.send(b"early"), Err(Error::NotReady));
    assert!(!a.can_send() && !b.can_send());
    b.handle_input(&output(&mut a)).unwrap();
    assert!(b.can_send() && b.session_id().is_none() && !b.is_established());
    b.send(b"early").unwrap();
    a.handle_input(&output(&mut b)).unwrap();
    let got = events(&mut a);
    assert!(matches!(&got[..], [Event::Established { .. }, Event::Message(early)] if **early == *b"early"));
}

#[test]
fn when_another_try_in_v1_is_worth_it() {
    let mut a = connection(Role::Initiator, Options::default());
    a.advance_output(23);
    assert!(!a.peer_may_speak_v1_only());
    a.advance_output(1);
    assert!(a.peer_may_speak_v1_only());
    a.handle_input(&[1]).unwrap();
    assert!(!a.peer_may_speak_v1_only());
    let mut b = responder();
    b.handle_input(&[1]).unwrap();
    b.advance_output(64);
    assert!(!b.peer_may_speak_v1_only());
}

#[test]
fn options_that_do_not_fit() {
    for wrong in [
        options(|made| made.contents_limit = CONTENTS_MAX + 1),
        options(|made| made.decoys = vec![Vec::new(), vec![0; CONTENTS_MAX + 1]]),
        options(|made| made.version = vec![0; CONTENTS_MAX + 1]),
    ] {
        let refused = Connection::initiator(Magic::MAINNET, key(Role::Initiator), wrong);
        assert!(matches!(refused, Err(Error::ContentsTooLong { .. })));
    }
}

/// The types by themselves, byte by byte.
#[test]
fn the_types_lead_through() {
    let (mut to_b, mut to_a) = (Vec::new(), Vec::new());
    let a = Initiator::new(Magic::REGTEST, key(Role::Initiator), b"ab".to_vec()).unwrap();
    let a = a.start(&mut to_b);
    let b = Responder::new(Magic::REGTEST, key(Role::Responder), Vec::new()).unwrap();
    let (used, Prefix::V2(mut b)) = b.prefix(&to_b, &mut to_a) else {
        panic!()
    };
    let mut at = used;
    let b = loop {
        let (used, next) = b.key(&to_b[at..at + 1]).unwrap();
        at += used;
        match next {
            Key::More(more) => b = more,
            Key::Done(keyed) => break keyed,
        }
    };
    assert_eq!(at, 64);
    let (_, b) = b.send([&b"decoy"[..]], b"", &mut to_a).unwrap();
    let (used, Key::Done(a)) = a.key(&to_a).unwrap() else {
        panic!()
    };
    let (_, a) = a.send([], b"", &mut to_b).unwrap();
    let (n, Garbage::Done(mut a)) = a.garbage(&to_a[used..]).unwrap() else {
        panic!()
    };
    let mut packets = to_a.split_off(used + n);
    let need = a.open_length(*packets.first_chunk().unwrap()).unwrap();
    let Version::Decoy(mut a) = a.open(&mut packets[3..3 + need]).unwrap() else {
        panic!()
    };
    let mut packets = packets.split_off(3 + need);
    let need = a.open_length(*packets.first_chunk().unwrap()).unwrap();
    let Version::Done(a) = a.open(&mut packets[3..3 + need]).unwrap() else {
        panic!()
    };
    let (used, Garbage::Done(mut b)) = b.garbage(&to_b[64..]).unwrap() else {
        panic!()
    };
    assert_eq!(used, 18);
    let mut packet = to_b.split_off(64 + used);
    b.open_length(*packet.first_chunk().unwrap()).unwrap();
    let Version::Done(b) = b.open(&mut packet[3..]).unwrap() else {
        panic!()
    };
    assert_eq!(a.session_id, b.session_id);
}
