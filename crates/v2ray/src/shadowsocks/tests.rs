//! Vectors, and what holds for every method.

use std::collections::HashMap;

use super::classic::{self, Search};
use super::edition2022::packet::{ClientSession, PacketSealer, SessionKey};
use super::edition2022::{AnswerSealer, Request, decode_target, open_answer, open_request};
use super::*;
use crate::replay::ReplayGuard;
use crate::text::unhex;
use crate::{Address, Destination, Error, Protocol, Step};

mod hostile;

pub(crate) const NOW: i64 = 1_700_000_000;

const UNAUTHENTIC: Error = Protocol::Shadowsocks.unauthentic();

/// `name = hex` lines of the vectors.
fn vectors() -> HashMap<&'static str, Vec<u8>> {
    let lines = include_str!("tests/vectors.txt").lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, hex) = line.split_once('=').unwrap();
            (name.trim(), unhex(hex))
        })
        .collect()
}

fn run(from: u8, len: u8) -> Vec<u8> {
    (from..from + len).collect()
}

fn target() -> Destination {
    Destination::tcp(Address::parse("example.com").unwrap(), 443)
}

/// A key for each method.
pub(super) fn key(method: Method, seed: u8) -> Key {
    Key::of_bytes(method, &run(seed, method.key_len() as u8))
}

pub(super) fn chain(key: Key) -> KeyChain {
    KeyChain {
        identities: vec![],
        own: key,
    }
}

/// Everything that comes out of an opener which is shown `wire` in pieces.
fn open_all(opener: &mut ChunkOpener, wire: &[u8], step: usize) -> Result<Vec<u8>, Error> {
    let (mut held, mut plain) = (Vec::new(), Vec::new());
    for piece in wire.chunks(step) {
        held.extend_from_slice(piece);
        while let Opened::Chunk { payload, used } = opener.open_next(&mut held)? {
            plain.extend_from_slice(&held[payload]);
            held.drain(..used);
        }
    }
    assert_eq!(opener.may_end(), held.len() < 18, "{} left", held.len());
    Ok(plain)
}

#[test]
fn vectors_of_2017() {
    let v = vectors();
    let long = Key::new(Method::Aes256Gcm, "password").unwrap();
    assert_eq!(long.as_bytes(), v["evp 32"]);
    let key = Key::new(Method::Aes128Gcm, "password").unwrap();
    assert_eq!(key.as_bytes(), v["evp 16"]);
    let salt = run(0, 16);
    assert_eq!(key.subkey(&salt).as_ref(), v["2017 subkey"]);
    let mut plain = Vec::new();
    crate::address::write_type_first(&target().address, 443, &mut plain);
    plain.extend_from_slice(b"hello");
    let mut wire = salt.clone();
    ChunkSealer::new(&key, &salt).unwrap().seal(&plain, &mut wire).unwrap();
    assert_eq!(wire, v["2017 stream"]);
    let mut opener = ChunkOpener::new(&key, &salt).unwrap();
    let opened = open_all(&mut opener, &wire[16..], 1).unwrap();
    let step = classic::decode_target(&opened).unwrap();
    assert_eq!(
        step,
        Step::Done {
            value: target(),
            used: opened.len() - 5
        }
    );
    let mut datagram = Vec::new();
    classic::packet::seal(&key, &salt, (&target().address, 443), b"hello", &mut datagram).unwrap();
    assert_eq!(datagram, v["2017 datagram"]);
    let mut plain = Vec::new();
    let (to, at) = classic::packet::open(&key, &datagram, &mut plain).unwrap();
    assert_eq!(
        (to.address, to.port, &plain[at..]),
        (target().address, 443, &b"hello"[..])
    );
}

#[test]
fn vectors_of_2022() {
    let v = vectors();
    let method = Method::Blake3Aes128Gcm;
    let psk = Key::new(method, "AAECAwQFBgcICQoLDA0ODw==").unwrap();
    let (salt, answer_salt) = (run(0x10, 16), run(0x30, 16));
    assert_eq!(psk.subkey(&salt).as_ref(), v["2022 subkey"]);
    let mut wire = Vec::new();
    Request::write(&chain(psk.clone()), &salt, NOW, &target(), &[], b"hello", &mut wire).unwrap();
    assert_eq!(wire, v["2022 request"]);
    let users = edition2022::Users::one(psk.clone(), ());
    let Step::Done { value: mut head, used } = open_request(&wire, &users, NOW + 30).unwrap() else {
        panic!("the header is whole");
    };
    let opened = open_all(&mut head.opener, &wire[used..], 1).unwrap();
    let step = decode_target(&opened, head.second).unwrap();
    assert_eq!(
        step,
        Step::Done {
            value: target(),
            used: opened.len() - 5
        }
    );
    let mut answer = Vec::new();
    let mut sealer = AnswerSealer::new(&psk, &answer_salt, head.salt()).unwrap();
    sealer.seal(b"world", NOW, &mut answer).unwrap();
    assert_eq!(answer, v["2022 answer"]);
    let Step::Done {
        value: mut opener,
        used,
    } = open_answer(&answer, &psk, &salt, NOW).unwrap()
    else {
        panic!("the header is whole");
    };
    assert_eq!(open_all(&mut opener, &answer[used..], 1).unwrap(), b"world");

    let user = key(method, 0x20);
    assert_eq!(user.name(), v["2022 name"][..]);
    assert_eq!(psk.identity(&salt).encrypt(&user.name()), v["2022 identity"][..]);
    let chain2 = KeyChain::new(method, "AAECAwQFBgcICQoLDA0ODw==:ICEiIyQlJicoKSorLC0uLw==").unwrap();
    let mut wire = Vec::new();
    Request::begin(&chain2, &salt, NOW, &target(), &[0], &mut wire).unwrap();
    assert_eq!(wire[16..32], v["2022 identity"]);

    let session = 0x0102_0304_0506_0708;
    assert_eq!(psk.subkey(&u64::to_be_bytes(session)).as_ref(), v["2022 session"]);
    let client = ClientSession::new(&chain(psk.clone()), session).unwrap();
    let mut datagram = Vec::new();
    let to = (&target().address, 443);
    client
        .sealer()
        .seal(NOW, &[0; 24], to, 0, b"hello", &mut datagram)
        .unwrap();
    assert_eq!(datagram, v["2022 datagram"]);
    let front = users.front(&datagram).unwrap();
    let key = SessionKey::new(front.key, front.session).unwrap();
    let packet = front.open(&key, &mut datagram, NOW).unwrap();
    assert_eq!((packet.session, packet.packet, packet.client), (session, 0, None));
    assert_eq!(&datagram[packet.payload], b"hello");
}

#[test]
fn passwords() {
    let new = |method, text: &str| KeyChain::new(method, text).map(|chain| chain.steps().count());
    let (aes, chacha) = (Method::Blake3Aes256Gcm, Method::Blake3ChaCha20Poly1305);
    let (k16, k32) = (
        "AAECAwQFBgcICQoLDA0ODw==",
        "AAECAwQFBgcICQoLDA0ODwABAgMEBQYHCAkKCwwNDg8=",
    );
    assert_eq!(new(aes, k32), Ok(0));
    assert_eq!(new(aes, &format!("{k32}:{k32}")), Ok(1));
    assert_eq!(new(aes, &format!("{k32}:{k32}:{k32}")), Ok(2));
    let wrong = |need, got, method: Method| {
        Err(Error::KeyLength {
            method: method.name(),
            need,
            got,
        })
    };
    assert_eq!(new(aes, k16), wrong(32, 16, aes));
    assert_eq!(new(aes, &format!("{k32}:{k16}")), wrong(32, 16, aes));
    assert_eq!(
        new(Method::Blake3Aes128Gcm, k32),
        wrong(16, 32, Method::Blake3Aes128Gcm)
    );
    let count = Err(Error::KeyCount { method: chacha.name() });
    assert_eq!(new(chacha, &format!("{k32}:{k32}")), count);
    assert_eq!(new(aes, "no base64"), Err(Error::KeyText));
    assert_eq!(new(aes, ""), Err(Error::EmptyPassword));
    assert_eq!(new(Method::Aes128Gcm, ""), Err(Error::EmptyPassword));
    assert_eq!(new(Method::Aes128Gcm, "a:b"), Ok(0));
    for method in Method::ALL {
        assert_eq!(Method::named(method.name()), Some(method));
        assert_eq!(Method::named(&method.name().to_uppercase()), Some(method));
    }
    assert_eq!(Method::named("chacha20-poly1305"), Some(Method::ChaCha20Poly1305));
    assert_eq!(Method::named("none"), None);
    assert!(!format!("{:?}", Key::new(aes, k32)).contains("AAEC"));
}

/// A request and an answer with payloads of these lengths, at every method, cut into pieces of `step` bytes.
fn round_trip(method: Method, lens: &[usize], step: usize) {
    let (own, salt, answer_salt) = (
        key(method, 7),
        run(1, method.salt_len() as u8),
        run(50, method.salt_len() as u8),
    );
    let payload = |n: usize| (0..n).map(|i| (i * 7 + n) as u8).collect::<Vec<u8>>();
    let all: Vec<u8> = lens.iter().flat_map(|n| payload(*n)).collect();
    let (mut wire, mut answer) = (Vec::new(), Vec::new());
    if method.is_2022() {
        let request = Request::begin(&chain(own.clone()), &salt, NOW, &target(), &[0; 3], &mut wire);
        let mut sealer = request.unwrap().sealer;
        lens.iter().for_each(|n| sealer.seal(&payload(*n), &mut wire).unwrap());
        let users = edition2022::Users::one(own.clone(), ());
        let Step::Done { value: mut head, used } = open_request(&wire, &users, NOW).unwrap() else {
            panic!("the header is whole");
        };
        let opened = open_all(&mut head.opener, &wire[used..], step).unwrap();
        let Step::Done { value, used } = decode_target(&opened, head.second).unwrap() else {
            panic!("the header is whole");
        };
        assert_eq!((value, &opened[used..]), (target(), &all[..]));
        let mut sealer = AnswerSealer::new(&own, &answer_salt, &salt).unwrap();
        lens.iter()
            .for_each(|n| sealer.seal(&payload(*n), NOW, &mut answer).unwrap());
        let Step::Done {
            value: mut opener,
            used,
        } = open_answer(&answer, &own, &salt, NOW).unwrap()
        else {
            panic!("the header is whole");
        };
        assert_eq!(open_all(&mut opener, &answer[used..], step).unwrap(), all);
        return;
    }
    let mut sealer = classic::begin(&chain(own.clone()), &salt, &target(), &mut wire).unwrap();
    lens.iter().for_each(|n| sealer.seal(&payload(*n), &mut wire).unwrap());
    let users = classic::Users::from_list([(key(method, 1), 1), (own.clone(), 2)]).unwrap();
    let found = Search::new(&users).stream(&users, &wire, 10).unwrap().unwrap();
    assert_eq!(*found.user, 2);
    let mut opener = ChunkOpener::new(found.key, &wire[..method.salt_len()]).unwrap();
    let opened = open_all(&mut opener, &wire[method.salt_len()..], step).unwrap();
    let Step::Done { value, used } = classic::decode_target(&opened).unwrap() else {
        panic!("the address is whole");
    };
    assert_eq!((value, &opened[used..]), (target(), &all[..]));
}

#[test]
fn every_method_in_pieces() {
    for method in Method::ALL {
        for step in [1, 7, 100_000] {
            round_trip(method, &[5, 1, 0, 700], step);
        }
        round_trip(method, &[method.max_chunk(), 1], usize::MAX);
        let mut sealer = ChunkSealer::new(&key(method, 1), &run(1, method.salt_len() as u8)).unwrap();
        let got = sealer.seal(&vec![0; method.max_chunk() + 1], &mut Vec::new());
        assert!(matches!(got, Err(Error::DoesNotFit { .. })), "{got:?}");
    }
}

/// A length is two bytes, but those of 2017 have 14 bits.
#[test]
fn chunks_longer_than_the_method_allows_are_refused() {
    let own = key(Method::Aes128Gcm, 1);
    let mut sealer = ChunkSealer::new(&own, &[0; 16]).unwrap();
    let mut wire = Vec::new();
    sealer
        .message(&mut wire, |out| out.extend_from_slice(&0x4000u16.to_be_bytes()))
        .unwrap();
    let got = ChunkOpener::new(&own, &[0; 16]).unwrap().open_next(&mut wire);
    assert!(matches!(got, Err(Error::TooLong { limit: 0x3fff, .. })), "{got:?}");
}

/// Two users with the same method in 2022 are told apart by the identity header; strangers are not let in.
#[test]
fn identity_headers_find_the_user() {
    for method in [Method::Blake3Aes128Gcm, Method::Blake3Aes256Gcm] {
        let (server, ann, bob) = (key(method, 1), key(method, 2), key(method, 3));
        let users = edition2022::Users::many(server.clone(), [(ann.clone(), "ann"), (bob.clone(), "bob")]).unwrap();
        let salt = run(9, method.salt_len() as u8);
        let asked = |keys: KeyChain| {
            let mut wire = Vec::new();
            Request::begin(&keys, &salt, NOW, &target(), &[0; 5], &mut wire).unwrap();
            let head = open_request(&wire, &users, NOW)?.done().unwrap();
            assert_eq!(head.key, *keys.own());
            let mut datagram = Vec::new();
            let mut client = ClientSession::new(&keys, 77).unwrap();
            client
                .sealer()
                .seal(NOW, &[0; 24], (&target().address, 53), 9, b"hi", &mut datagram)
                .unwrap();
            let front = users.front(&datagram)?;
            assert_eq!(*front.user, head.user);
            let session = SessionKey::new(front.key, front.session).unwrap();
            let packet = front.open(&session, &mut datagram, NOW).unwrap();
            assert_eq!((&datagram[packet.payload.clone()], packet.session), (&b"hi"[..], 77));
            // The answer is for this user only, without an identity header.
            let answering = PacketSealer::server(front.key, 5, packet.session).unwrap();
            let mut answer = Vec::new();
            let from = (&packet.peer.address, packet.peer.port);
            answering.seal(NOW, &[0; 24], from, 0, b"ho", &mut answer).unwrap();
            let (peer, payload) = client.open(&mut answer, NOW).unwrap();
            assert_eq!((peer, &answer[payload]), (packet.peer, &b"ho"[..]));
            Ok::<_, Error>(head.user)
        };
        let with = |own: &Key| KeyChain {
            identities: vec![server.clone()],
            own: own.clone(),
        };
        assert_eq!(asked(with(&ann)), Ok("ann"));
        assert_eq!(asked(with(&bob)), Ok("bob"));
        let unknown = Err(Protocol::Shadowsocks.unknown_user());
        assert_eq!(asked(with(&key(method, 4))), unknown);
        assert_eq!(asked(chain(ann.clone())), unknown);
        let same = edition2022::Users::many(server.clone(), [(ann.clone(), 1), (ann.clone(), 2)]);
        assert!(matches!(same, Err(Error::DuplicatePassword)));
    }
    let chacha = key(Method::Blake3ChaCha20Poly1305, 1);
    let many = edition2022::Users::many(chacha.clone(), [(chacha, 1)]);
    assert!(matches!(many, Err(Error::KeyCount { .. })));
}

#[test]
fn datagrams_of_every_method() {
    for method in Method::ALL {
        let own = key(method, 3);
        for len in [0, 1, 1200, 8192, 60_000] {
            let payload: Vec<u8> = (0..len).map(|i| i as u8).collect();
            let mut datagram = Vec::new();
            let to = target();
            let to = (&to.address, to.port);
            if method.is_2022() {
                let users = edition2022::Users::one(own.clone(), ());
                let client = ClientSession::new(&chain(own.clone()), 99).unwrap();
                client
                    .sealer()
                    .seal(NOW, &[7; 24], to, 3, &payload, &mut datagram)
                    .unwrap();
                let front = users.front(&datagram).unwrap();
                let session = SessionKey::new(front.key, front.session).unwrap();
                let packet = front.open(&session, &mut datagram, NOW).unwrap();
                assert_eq!((packet.session, packet.packet), (99, 0));
                assert_eq!(datagram[packet.payload], payload, "{method} {len}");
            } else {
                let salt = run(1, method.salt_len() as u8);
                classic::packet::seal(&own, &salt, to, &payload, &mut datagram).unwrap();
                let mut plain = Vec::new();
                let (_, at) = classic::packet::open(&own, &datagram, &mut plain).unwrap();
                assert_eq!(plain[at..], payload, "{method} {len}");
            }
        }
    }
}

/// A server that is started again has another session; the one before is still heard, older ones are not kept.
#[test]
fn a_client_keeps_two_sessions_of_its_server() {
    for method in [Method::Blake3Aes128Gcm, Method::Blake3ChaCha20Poly1305] {
        let own = key(method, 3);
        let mut client = ClientSession::new(&chain(own.clone()), 1).unwrap();
        let to = target();
        let servers = [10, 11, 12].map(|session| PacketSealer::server(&own, session, 1).unwrap());
        let mut say = |server: usize, nonce: u8| {
            let mut datagram = Vec::new();
            let from = (&to.address, to.port);
            servers[server]
                .seal(NOW, &[nonce; 24], from, 0, b"x", &mut datagram)
                .unwrap();
            let again = datagram.clone();
            assert!(client.open(&mut datagram, NOW).is_ok());
            assert_eq!(client.servers_len().min(2), client.servers_len());
            let replayed = client.open(&mut again.clone(), NOW);
            assert_eq!(replayed, Err(Protocol::Shadowsocks.replayed()));
            assert!(matches!(
                client.open(&mut again.clone(), NOW + 31),
                Err(Error::ClockSkew { .. })
            ));
        };
        for (n, server) in [0, 0, 1, 0, 1, 2, 1, 2].into_iter().enumerate() {
            say(server, n as u8 + 1);
        }
        // The first one made room for the third.
        let mut late = Vec::new();
        servers[0]
            .seal(NOW, &[8; 24], (&to.address, 1), 0, b"x", &mut late)
            .unwrap();
        assert!(matches!(client.open(&mut late, NOW), Err(Error::Malformed { .. })));
        let other = PacketSealer::server(&own, 10, 2).unwrap();
        let mut datagram = Vec::new();
        other
            .seal(NOW, &[9; 24], (&to.address, 1), 0, b"x", &mut datagram)
            .unwrap();
        assert!(client.open(&mut datagram, NOW).is_err());
    }
}
