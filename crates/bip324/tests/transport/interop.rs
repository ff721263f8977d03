//! Both roles against crate `bip324`, a second implementation.
//!
//! What it does otherwise, as of 0.11, none of which shows between it and us:
//!
//! - It takes any first four bytes that are its network's magic for v1, and looks only when all 64 bytes are there: its
//!   responder need not answer early, and a v2 key that starts with the magic (one in 2^32) ends the connection.
//! - It does not know v1 of another network: such a peer fails at the terminator.
//! - Its length cipher counts packets in 32 bits and stops, or repeats nonces, after 2^32 of them.
//! - Its ciphers can be cloned, are not wiped, and go on after a packet that did not authenticate.
//! - It reserves what a length announces, up to 4,000,014 bytes, before any of it has come.
//! - It seals contents longer than a length can say, with the length cut off.
//! - It sends nothing in its version packet and cannot be told to; it knows no short ids.

use bip324::{CipherSession, GarbageResult, Handshake, Initialized, PacketType, VersionResult};
use sealway_bip324::{Connection, Event, Magic, Options, Role};

use crate::common::{Numbers, connection, events, key, messages, output};

/// Theirs in the role that we do not have.
fn role_of(role: Role) -> bip324::Role {
    match role {
        Role::Initiator => bip324::Role::Initiator,
        Role::Responder => bip324::Role::Responder,
    }
}

/// A handshake with ours as `role`; gives both ends.
fn handshake(
    role: Role,
    magic: Magic,
    options: Options,
    garbage: &[u8],
    decoys: &[&[u8]],
) -> (Connection, CipherSession) {
    let mut ours = match role {
        Role::Initiator => Connection::initiator(magic, key(role), options),
        Role::Responder => Connection::responder(magic, key(role), options),
    }
    .unwrap();
    let theirs = Handshake::<Initialized>::new(magic.0, role_of(role.other())).unwrap();
    let mut first = vec![0; 64 + garbage.len()];
    let theirs = theirs.send_key(Some(garbage), &mut first).unwrap();
    // Theirs may speak first in either role: ours as a responder waits for its first byte.
    assert_eq!(ours.handle_input(&first).unwrap(), first.len());
    let mut sent = output(&mut ours);
    let theirs = theirs.receive_key(sent[..64].try_into().unwrap()).unwrap();
    let mut second = vec![0; Handshake::<bip324::ReceivedKey<'_>>::send_version_len(Some(decoys))];
    let theirs = theirs.send_version(&mut second, Some(decoys)).unwrap();
    assert_eq!(ours.handle_input(&second).unwrap(), second.len());
    sent.extend(output(&mut ours));
    let rest = &sent[64..];
    let GarbageResult::FoundGarbage {
        mut handshake,
        consumed_bytes,
    } = theirs.receive_garbage(rest).unwrap()
    else {
        panic!("they did not find our terminator");
    };
    let mut rest = rest[consumed_bytes..].to_vec();
    loop {
        let len = handshake.decrypt_packet_len(rest[..3].try_into().unwrap()).unwrap();
        let mut packet: Vec<u8> = rest.drain(..3 + len).skip(3).collect();
        match handshake.receive_version(&mut packet).unwrap() {
            VersionResult::Decoy(next) => handshake = next,
            VersionResult::Complete { cipher } => {
                assert!(rest.is_empty());
                return (ours, cipher);
            }
        }
    }
}

/// What they open of the packets that we sent.
fn open_theirs(theirs: &mut CipherSession, wire: &[u8]) -> Vec<(PacketType, Vec<u8>)> {
    let mut rest = wire;
    let mut opened = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk() {
        let len = theirs.inbound().decrypt_packet_len(*length);
        let (packet, after) = after.split_at(len);
        let mut text = vec![0; len - 16];
        let kind = theirs.inbound().decrypt(packet, &mut text, None).unwrap();
        opened.push((kind, text.split_off(1)));
        rest = after;
    }
    opened
}

fn both_roles(garbage: [&[u8]; 2], decoys: [&[&[u8]]; 2]) {
    for role in [Role::Initiator, Role::Responder] {
        let mut options = Options::default();
        options.garbage = garbage[0].to_vec();
        options.decoys = decoys[0].iter().map(|decoy| decoy.to_vec()).collect();
        let (mut ours, theirs) = handshake(role, Magic::SIGNET, options, garbage[1], decoys[1]);
        assert_eq!(ours.session_id(), Some(theirs.id()));
        let mut want: Vec<Event> = decoys[1]
            .iter()
            .map(|decoy| Event::Decoy { len: decoy.len() })
            .collect();
        want.push(Event::Established {
            session_id: *theirs.id(),
        });
        assert_eq!(events(&mut ours), want);
    }
}

#[test]
fn handshakes() {
    both_roles([b"", b""], [&[], &[]]);
    both_roles([b"garbage of ours", b"theirs"], [&[], &[]]);
    both_roles([&[1; 4095], &[2; 4095]], [&[b"", b"decoy"], &[&[7; 300]]]);
    both_roles([b"", &[3; 100]], [&[&[0; 70_000]], &[b"", b"", b"a"]]);
}

/// A hundred epochs each way, with decoys, and sizes around every block boundary.
#[test]
fn a_hundred_epochs_both_ways() {
    for role in [Role::Initiator, Role::Responder] {
        let (mut ours, mut theirs) = handshake(role, Magic::MAINNET, Options::default(), b"", &[]);
        events(&mut ours);
        let mut numbers = Numbers(7);
        let packets = 100 * 224 + 10;
        for n in 0..packets {
            let len = numbers.below(150);
            let contents = numbers.bytes(len);
            let decoy = numbers.below(10) == 0;
            if decoy {
                ours.send_decoy(&contents).unwrap();
            } else {
                ours.send(&contents).unwrap();
            }
            let kind = if decoy { PacketType::Decoy } else { PacketType::Genuine };
            let opened = open_theirs(&mut theirs, &output(&mut ours));
            assert_eq!(opened, [(kind, contents.clone())], "packet {n} from us");
            let wire = theirs.outbound().encrypt_to_vec(&contents, kind, None);
            assert_eq!(ours.handle_input(&wire), Ok(wire.len()));
            let event = ours.poll_event().unwrap();
            match event {
                Event::Decoy { len } => assert!(decoy && len == contents.len(), "packet {n} to us"),
                Event::Message(got) => assert!(!decoy && *got == contents[..], "packet {n} to us"),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Many packets in one piece, and a large one.
#[test]
fn large_packets_and_many_at_once() {
    let (mut ours, mut theirs) = handshake(Role::Responder, Magic::REGTEST, Options::default(), b"", &[]);
    let mut numbers = Numbers(9);
    let sizes = [0, 1, 4_000_013, 65_536, 300];
    let all: Vec<Vec<u8>> = sizes.iter().map(|len| numbers.bytes(*len)).collect();
    let mut wire = Vec::new();
    for contents in &all {
        wire.extend(theirs.outbound().encrypt_to_vec(contents, PacketType::Genuine, None));
    }
    let (mut got, mut rest) = (Vec::new(), &wire[..]);
    while !rest.is_empty() {
        let n = ours.handle_input(rest).unwrap();
        rest = &rest[n..];
        got.extend(messages(&mut ours));
    }
    assert!(got == all);
    for contents in &all {
        ours.send(contents).unwrap();
        let opened = open_theirs(&mut theirs, &output(&mut ours));
        assert!(opened == [(PacketType::Genuine, contents.clone())]);
    }
}

/// Another network, another key schedule: nothing is agreed on.
#[test]
fn another_network_ends_at_the_terminator() {
    let mut ours = connection(Role::Initiator, Options::default());
    let theirs = Handshake::<Initialized>::new(Magic::SIGNET.0, bip324::Role::Responder).unwrap();
    let mut first = [0; 64];
    let theirs = theirs.send_key(None, &mut first).unwrap();
    let sent = output(&mut ours);
    let theirs = theirs.receive_key(sent[..64].try_into().unwrap()).unwrap();
    let mut second = vec![0; Handshake::<bip324::ReceivedKey<'_>>::send_version_len(None)];
    let _theirs = theirs.send_version(&mut second, None).unwrap();
    ours.handle_input(&first).unwrap();
    ours.handle_input(&second).unwrap();
    assert_eq!(events(&mut ours), []);
    let error = ours.handle_input(&[0; 4111]).unwrap_err();
    assert_eq!(error, sealway_bip324::Error::NoTerminator);
}
