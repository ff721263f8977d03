#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::HashSet;

use super::*;
use crate::codec::{ClientHello, HEAD, MAX_HELLO, Message};

/// What Chromium 156 sent to a server on the same machine, for www.example.com.
const RECORDED: [&[u8]; 3] = [
    include_bytes!("../../../../fuzz/corpus/tls13_hello/chrome"),
    include_bytes!("../../../../fuzz/corpus/tls13_hello/chrome-short"),
    include_bytes!("../../../../fuzz/corpus/tls13_hello/chrome-long"),
];

/// Numbers that differ from seed to seed (SplitMix64).
fn drawn(mut seed: u64) -> impl FnMut(&mut [u8]) {
    move |out| {
        for place in out {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let z = (seed ^ seed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            *place = ((z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32) as u8;
        }
    }
}

fn made_up(number: u16) -> bool {
    number & 0x0f0f == 0x0a0a && number >> 8 == number & 0xff
}

/// A number with all that is made up made the same.
fn plain(number: u16) -> u16 {
    if made_up(number) { 0x0a0a } else { number }
}

/// A hello with everything that may differ from one to the next taken out: what is left is who sent it.
#[derive(Debug, PartialEq)]
struct Shape {
    head: (u16, usize, Vec<u16>, Vec<u8>),
    first: u16,
    last: (u16, Vec<u8>),
    between: Vec<(u16, Vec<u8>)>,
}

fn numbers(body: &[u8], skipped: usize) -> Vec<u8> {
    let list = body[skipped..]
        .chunks(2)
        .flat_map(|pair| plain(u16::from_be_bytes([pair[0], pair[1]])).to_be_bytes());
    [&body[..skipped], &list.collect::<Vec<_>>()].concat()
}

fn shape(bytes: &[u8]) -> Shape {
    let hello = ClientHello::read(Message::first(bytes, MAX_HELLO).unwrap().unwrap()).unwrap();
    let all: Vec<(u16, &[u8])> = hello.extensions.iter().collect();
    let [(first, []), inner @ .., (last, last_body)] = &all[..] else {
        panic!("{all:?}");
    };
    assert!(made_up(*first) && made_up(*last) && first != last);
    let mut between: Vec<(u16, Vec<u8>)> = inner
        .iter()
        .map(|(kind, body)| {
            let body = match *kind {
                extension::SUPPORTED_VERSIONS => numbers(body, 1),
                extension::SUPPORTED_GROUPS | extension::SIGNATURE_ALGORITHMS => numbers(body, 2),
                extension::KEY_SHARE => {
                    let shares = hello.extensions.key_shares().unwrap().unwrap();
                    let groups = hello.extensions.supported_groups().unwrap().unwrap();
                    let shape = shares.iter().flat_map(|share| {
                        let made_up = made_up(share.group);
                        assert!(!made_up || groups.iter().next() == Some(share.group) && share.key == [0]);
                        [plain(share.group).to_be_bytes(), (share.key.len() as u16).to_be_bytes()].concat()
                    });
                    shape.collect()
                }
                extension::ENCRYPTED_CLIENT_HELLO => {
                    let payload = usize::from(u16::from_be_bytes([body[40], body[41]]));
                    assert!([144, 176, 208, 240].contains(&payload) && body.len() == 42 + payload);
                    [&body[..5], &body[6..8]].concat()
                }
                _ => body.to_vec(),
            };
            (*kind, body)
        })
        .collect();
    between.sort();
    let suites = hello.suites.iter().map(plain).collect();
    Shape {
        head: (
            hello.legacy_version,
            hello.session_id.len(),
            suites,
            hello.compression.to_vec(),
        ),
        first: plain(*first),
        last: (plain(*last), last_body.to_vec()),
        between,
    }
}

#[test]
fn every_field_is_that_of_the_browser() {
    let recorded = RECORDED.map(shape);
    for seed in 0..64 {
        let hello = chrome(Some("www.example.com"), true, &mut drawn(seed)).unwrap();
        let bytes = hello.to_bytes().unwrap();
        let own = shape(&bytes);
        for recorded in &recorded {
            assert_eq!(own, *recorded);
        }
        // The four lengths of a recorded one, and no other.
        assert!([1918, 1950, 1982, 2014].contains(&bytes.len()), "{}", bytes.len());
        assert!(bytes.len() > 511 + HEAD);
    }
    assert_eq!(RECORDED.map(<[u8]>::len), [1982, 1918, 2014]);
}

#[test]
fn what_the_browser_draws_is_drawn() {
    let (mut orders, mut lengths, mut suites, mut same) = (HashSet::new(), HashSet::new(), HashSet::new(), 0);
    let (mut firsts, mut keys) = (HashSet::new(), HashSet::new());
    for seed in 0..400 {
        let hello = chrome(Some("a.test"), true, &mut drawn(seed)).unwrap();
        let kinds: Vec<u16> = hello.extensions.iter().map(|(kind, _)| *kind).collect();
        let [first, inner @ .., last] = &kinds[..] else {
            panic!()
        };
        assert!(made_up(*first) && made_up(*last) && first != last && !inner.iter().any(|kind| made_up(*kind)));
        same += usize::from(*first ^ *last == 0x1010);
        firsts.insert(inner[0]);
        orders.insert(inner.to_vec());
        lengths.insert(hello.to_bytes().unwrap().len());
        suites.insert(hello.suites[0]);
        keys.insert(hello.x25519().unwrap().public());
    }
    assert!(
        orders.len() > 395 && firsts.len() == 17,
        "{} {}",
        orders.len(),
        firsts.len()
    );
    assert_eq!((lengths.len(), suites.len(), keys.len()), (4, 16, 400));
    assert!(same > 20, "both made-up extensions are drawn by themselves");
}

#[test]
fn a_name_and_protocols_can_be_left_out() {
    let hello = chrome(None, false, &mut drawn(1)).unwrap();
    let kinds: HashSet<u16> = hello.extensions.iter().map(|(kind, _)| *kind).collect();
    for kind in [extension::SERVER_NAME, extension::ALPN, extension::APPLICATION_SETTINGS] {
        assert!(!kinds.contains(&kind));
    }
    assert_eq!(kinds.len(), 16);
    assert!(hello.to_bytes().unwrap().len() > 511);
    let name = "a".repeat(1 << 16);
    assert!(matches!(chrome(Some(&name), true, &mut drawn(1)), Err(Error::Given(_))));
}
