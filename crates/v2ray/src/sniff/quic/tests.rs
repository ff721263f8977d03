use proptest::prelude::*;

use super::seal::{crypto, seal};
use super::*;
use crate::Domain;
use crate::sniff::tests::hello;
use crate::sniff::{Found, datagram, stream};
use crate::text::unhex;

const ID: [u8; 8] = *b"12345678";

fn vector(name: &str) -> Vec<u8> {
    let lines = include_str!("vectors.txt").lines();
    let mut line = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
    unhex(line.next_back().unwrap())
}

fn quic(name: Option<&str>) -> Look {
    Look::found(Kind::Quic, name.map(|name| Domain::new(name).unwrap()))
}

/// A hello as CRYPTO frames of this many bytes.
fn cut(hello: &[u8], len: usize) -> Vec<Vec<u8>> {
    let pieces = hello.chunks(len).enumerate();
    pieces.map(|(at, piece)| crypto(at * len, piece)).collect()
}

#[test]
fn official_packets_are_opened() {
    for (version, host) in [("1", "example.com"), ("draft-29", "server"), ("2", "example.com")] {
        let packet = vector(&format!("{version} packet"));
        assert!(is_initial(&packet), "{version}");
        let frame = vector(&format!("{version} frame"));
        let (parsed, rest) = super::packet(&packet).unwrap();
        assert!(rest.is_empty());
        let keys = Keys::new(parsed.version, parsed.id).unwrap();
        let frames = keys.open(&parsed).unwrap();
        assert_eq!(frames[..frame.len()], frame, "{version}");
        assert!(frames[frame.len()..].iter().all(|&byte| byte == 0));
        assert_eq!(Quic::default().look(&packet), quic(Some(host)), "{version}");
        // Any other byte, and it is not the packet any more.
        for at in [0, 1, 6, 20, 700, 1199] {
            let mut bent = packet.clone();
            bent[at] ^= 0x21;
            assert_eq!(Quic::default().look(&bent), Look::Nothing, "{version} byte {at}");
        }
    }
}

#[test]
fn a_hello_comes_in_any_order_over_several_datagrams() {
    let hello = hello(Some("Shuffled.Example."), 2500);
    for version in 0..3 {
        let mut frames = cut(&hello, 97);
        // Fixed numbers, so that a failure comes again.
        let count = frames.len();
        for at in 0..count {
            frames.swap(at, at * 7919 % count);
        }
        let datagrams: Vec<_> = frames
            .chunks(count.div_ceil(3))
            .enumerate()
            .map(|(number, some)| {
                let mut with_others = vec![0x01, 0x00, 0x00];
                some.iter().for_each(|frame| with_others.extend_from_slice(frame));
                with_others.extend_from_slice(&[0x02, 0, 0, 0, 0, 0x1c, 0, 0, 1, b'x', 0]);
                seal(version, &ID, number as u32, &with_others, 1162)
            })
            .collect();
        assert_eq!(datagrams.len(), 3);
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
            let mut flow = Quic::default();
            assert_eq!(flow.look(&datagrams[order[0]]), Look::More(1));
            assert_eq!(flow.look(&datagrams[order[1]]), Look::More(1));
            // What comes twice changes nothing.
            let mut again = Quic::default();
            for datagram in [0, 0, 1] {
                assert_eq!(again.look(&datagrams[datagram]), Look::More(1));
            }
            assert_eq!(again.look(&datagrams[2]), quic(Some("shuffled.example")));
            assert_eq!(flow.look(&datagrams[order[2]]), quic(Some("shuffled.example")));
        }
    }
}

/// The first two datagrams of programs that people use, each behind its length: Chromium 156, and quic-go 0.59 as Xray has it.
#[test]
fn first_flights_of_real_clients_are_read() {
    for (what, flight, name) in [
        (
            "Chromium",
            &include_bytes!("clients/chromium_156")[..],
            "real-chrome.example",
        ),
        ("quic-go", include_bytes!("clients/quic_go_v1"), "real-go.example"),
        (
            "quic-go, version 2",
            include_bytes!("clients/quic_go_v2"),
            "real-go.example",
        ),
    ] {
        let (first, second) = flight[2..].split_at(usize::from(u16::from_be_bytes([flight[0], flight[1]])));
        for [one, other] in [[first, &second[2..]], [&second[2..], first]] {
            let mut flow = Quic::default();
            assert_eq!(flow.look(one), Look::More(1), "{what}");
            assert_eq!(flow.look(other), quic(Some(name)), "{what}");
        }
    }
}

#[test]
fn four_datagrams_are_looked_at() {
    let hello = hello(Some("late.example"), 4000);
    let frames = cut(&hello, 900);
    assert_eq!(frames.len(), 5);
    let mut flow = Quic::default();
    for (number, frame) in frames.iter().take(3).enumerate() {
        assert_eq!(flow.look(&seal(0, &ID, number as u32, frame, 1162)), Look::More(1));
    }
    assert_eq!(flow.look(&seal(0, &ID, 3, &frames[3], 1162)), quic(None));
}

#[test]
fn packets_that_share_a_datagram_are_all_looked_at() {
    let hello = hello(Some("joined.example"), 300);
    let frames = cut(&hello, 200);
    let parts: Vec<_> = frames
        .iter()
        .enumerate()
        .map(|(number, frame)| seal(0, &ID, number as u32, frame, 20))
        .collect();
    // 0-RTT between them is passed over.
    let mut early = vec![0xd0, 0, 0, 0, 1, 8];
    early.extend_from_slice(&ID);
    early.extend_from_slice(&[0, 5, 1, 2, 3, 4, 5]);
    let whole = [&parts[0][..], &early, &parts[1..].concat()].concat();
    assert_eq!(Quic::default().look(&whole), quic(Some("joined.example")));
}

#[test]
fn the_first_packet_says_what_keys_there_are() {
    let hello = hello(Some("one.example"), 300);
    let frames = cut(&hello, 300);
    let mut flow = Quic::default();
    assert_eq!(flow.look(&seal(0, &ID, 0, &frames[0], 1162)), Look::More(1));
    // One that is sealed otherwise, or not at all, is nothing to the flow.
    assert_eq!(flow.look(&seal(0, b"another id", 1, &frames[1], 1162)), Look::More(1));
    let mut bent = seal(0, &ID, 1, &frames[1], 1162);
    bent[1000] ^= 1;
    assert_eq!(flow.look(&bent), Look::More(1));
    assert_eq!(
        flow.look(&seal(0, &ID, 2, &frames.concat(), 1162)),
        quic(Some("one.example"))
    );
}

#[test]
fn what_is_said_first_counts() {
    let (first, second) = (hello(Some("first.example"), 0), hello(Some("other.example"), 0));
    let frames = [crypto(0, &first[..60]), crypto(0, &second), crypto(60, &first[60..])].concat();
    let mixed = [&first[..60], &second[60..]].concat();
    let name = stream(&[&[22, 3, 1, 0, mixed.len() as u8], &mixed[..]].concat(), false);
    let Look::Found(Found { domain, .. }) = name else {
        panic!("{name:?}")
    };
    assert_eq!(
        Quic::default().look(&seal(0, &ID, 0, &frames, 1162)),
        Look::found(Kind::Quic, domain)
    );
}

/// Lengths that lie: each was a crash of a program that looks at such packets.
#[test]
fn bug_xray_3978_4732_5866_lengths_that_lie_are_found_out() {
    let sealed = seal(0, &ID, 0, &crypto(0, &hello(Some("a.example"), 0)), 1162);
    // The length of the packet is behind the id and the empty token.
    let with_length = |length: [u8; 4]| {
        let mut bent = sealed.clone();
        bent[16..20].copy_from_slice(&length);
        bent
    };
    // Less than a packet number; less than number and tag; nothing at all.
    for length in [0, 1, 3, 4, 19, 20, 35] {
        let short = with_length([0x80, 0, 0, length]);
        assert_eq!(Quic::default().look(&short), Look::Nothing, "{length}");
        assert_eq!(
            Quic::default().look(&short[..20 + usize::from(length)]),
            Look::Nothing,
            "{length}"
        );
    }
    // More than there is.
    for length in [[0x80, 0, 5, 0], [0xbf, 0xff, 0xff, 0xff]] {
        assert_eq!(Quic::default().look(&with_length(length)), Look::Nothing);
    }
    // Numbers of eight bytes, in the token's and the packet's place.
    let mut huge = sealed[..15].to_vec();
    huge.extend_from_slice(&[0xff; 8]);
    assert_eq!(Quic::default().look(&huge), Look::Nothing);
    huge.truncate(15);
    huge.push(0);
    huge.extend_from_slice(&[0xff; 8]);
    huge.extend_from_slice(&[0; 64]);
    assert_eq!(Quic::default().look(&huge), Look::Nothing);
    // An id longer than any.
    let mut long = sealed.clone();
    long[5] = 21;
    assert!(!is_initial(&long));
    // Every beginning of it.
    for end in 0..sealed.len() {
        assert_eq!(Quic::default().look(&sealed[..end]), Look::Nothing, "{end}");
    }
}

#[test]
fn bug_xray_6471_frames_that_lie_are_found_out() {
    let max = tls::MAX_HELLO;
    // What holds nothing a client would send says that it is QUIC, and no name.
    for frames in [
        &[][..],
        &[0x06],
        &[0x06, 0x00],
        &[0x06, 0x00, 0x40],
        &[0x06, 0x00, 0x44, 0x00, 1],
        &[0x06, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0x01],
        &[0x06, 0x00, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
        &[0x02, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0],
        &[0x03, 0, 0, 0, 0],
        &[0x1c, 0, 0, 0x7f, 0xff],
        &[0x1d, 0, 0],
        &[0x08],
        &[0xff; 30],
        &crypto(0, &[2, 0, 0, 4, 0, 0, 0, 0]),
        &crypto(0, &[1, 0, 0x40, 0, 0, 0]),
        &crypto(max, b"x"),
        &crypto(max - 3, b"four"),
    ] {
        // At least as many bytes as the sample of the header needs.
        let padded = [&[0x01; 4], frames].concat();
        let mut empty = Quic::default();
        // A packet without frames is one without a name too.
        let frames = if frames.is_empty() { frames } else { &padded };
        assert_eq!(empty.look(&seal(0, &ID, 0, frames, 0)), quic(None), "{frames:02x?}");
        assert!(empty.pieces.bytes.len() <= max);
    }
    // The last byte that fits.
    let mut flow = Quic::default();
    assert_eq!(
        flow.look(&seal(0, &ID, 0, &crypto(max - 4, b"four"), 20)),
        Look::More(1)
    );
    assert_eq!((flow.pieces.bytes.len(), flow.pieces.ready), (max, 0));
}

#[test]
fn other_datagrams_are_none_of_it() {
    let sealed = seal(0, &ID, 0, &crypto(0, &hello(Some("a.example"), 0)), 1162);
    assert!(is_initial(&sealed));
    for (at, byte) in [(0, 0x43), (0, 0x83), (1, 0x0a), (4, 2)] {
        let mut other = sealed.clone();
        other[at] = byte;
        assert!(!is_initial(&other), "byte {at}");
    }
    // Handshake, 0-RTT and Retry, and Initial of the other version's numbers.
    for first in [0xd3, 0xe3, 0xf3] {
        let mut other = sealed.clone();
        other[0] = first;
        assert!(!is_initial(&other), "{first:x}");
    }
    assert!(is_initial(&seal(2, &ID, 0, &[1; 40], 0)));
    assert_eq!(datagram(&sealed), None);
    assert!(!is_initial(&[]) && !is_initial(b"\xc0"));
}

proptest! {
    #[test]
    fn any_frames_are_taken_apart(version in 0..3usize, frames in prop::collection::vec(any::<u8>(), 4..200)) {
        let mut flow = Quic::default();
        let found = flow.look(&seal(version, &ID, 0, &frames, 0));
        prop_assert!(found == Look::More(1) || matches!(found, Look::Found(_)));
        prop_assert!(flow.pieces.bytes.len() <= tls::MAX_HELLO);
    }

    #[test]
    fn pieces_join_to_what_was_cut(
        hello in prop::collection::vec(any::<u8>(), 1..3000),
        cuts in prop::collection::vec((0..3000usize, 1..700usize), 0..40),
    ) {
        let mut pieces = Pieces::default();
        let mut have = vec![false; hello.len()];
        for (at, len) in cuts {
            let at = at.min(hello.len());
            let end = (at + len).min(hello.len());
            prop_assert!(pieces.put(at as u64, &hello[at..end]));
            have[at..end].fill(true);
        }
        let ready = have.iter().take_while(|have| **have).count();
        prop_assert_eq!(pieces.ready(), &hello[..ready]);
    }
}

#[test]
fn a_hello_takes_no_more_than_is_said() {
    let mut pieces = Pieces::default();
    for end in [100, tls::MAX_HELLO as u64 - 1, tls::MAX_HELLO as u64] {
        assert!(pieces.put(end - 1, b"x"));
    }
    assert!(!pieces.put(tls::MAX_HELLO as u64, b"x"));
    assert!(pieces.bytes.capacity() + 8 * pieces.have.capacity() <= 18 << 10);
}
