//! One direction: what a packet is, by an independent library; damages; the order and the end of things.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Tag};
use sealway_bip324::fschacha::{PacketNumber, REKEY_INTERVAL, RecvChain, SendChain};
use sealway_bip324::{CONTENTS_MAX, Error, Kind, PacketOpener, PacketSealer, Role};

use crate::common::{Numbers, session_keys};

const LENGTH_KEY: [u8; 32] = [3; 32];
const CONTENT_KEY: [u8; 32] = [4; 32];

fn ends(from: PacketNumber) -> (PacketSealer, PacketOpener) {
    let send = SendChain::resume(&LENGTH_KEY, &CONTENT_KEY, from).unwrap();
    let recv = RecvChain::resume(&LENGTH_KEY, &CONTENT_KEY, from).unwrap();
    (PacketSealer::new(send), PacketOpener::new(recv))
}

fn seal(sealer: &mut PacketSealer, kind: Kind, aad: &[u8], contents: &[u8]) -> Vec<u8> {
    let mut wire = b"before".to_vec();
    sealer.seal(kind, aad, contents, &mut wire).unwrap();
    wire.split_off(6)
}

/// Opens a whole packet.
fn open(opener: &mut PacketOpener, aad: &[u8], packet: &[u8]) -> Result<(Kind, Vec<u8>), Error> {
    let (length, rest) = packet.split_first_chunk().unwrap();
    let need = opener.open_length(*length)?;
    if need != rest.len() {
        return Err(Error::Unauthentic);
    }
    let mut rest = rest.to_vec();
    opener
        .open_in_place(aad, &mut rest)
        .map(|(kind, contents)| (kind, contents.to_vec()))
}

/// Packets around 2^32, 2^32 epochs and the last of all, opened by another library under the nonce that the BIP says.
#[test]
fn packets_are_what_an_independent_library_opens() {
    let edges = [
        PacketNumber::FIRST,
        PacketNumber::from_index((1 << 32) - 5),
        PacketNumber::new(u64::from(u32::MAX), 215).unwrap(),
        PacketNumber::new(u64::MAX, 215).unwrap(),
    ];
    for first in edges {
        let (mut sealer, mut opener) = ends(first);
        let mut key = CONTENT_KEY;
        for n in 0..REKEY_INTERVAL {
            let number = sealer.next_number();
            let contents = vec![n; usize::from(n)];
            let mut wire = Vec::new();
            let sealed = sealer.seal(Kind::Decoy, b"aad", &contents, &mut wire);
            let Some(number) = number else {
                assert_eq!((sealed, wire.len()), (Err(Error::Exhausted), 0));
                assert_eq!(sealer.seal(Kind::Genuine, &[], &[], &mut wire), Err(Error::Closed));
                break;
            };
            assert_eq!(sealed, Ok(()));
            if number.slot() == 0 && n > 0 {
                // The key of the next epoch is what the last one makes of zeros.
                let mut nonce = [0xff; 12];
                nonce[4..].copy_from_slice(&(number.epoch() - 1).to_le_bytes());
                let mut next = [0; 32];
                ChaCha20Poly1305::new(&key.into())
                    .encrypt_inout_detached(&nonce.into(), b"", next.as_mut_slice().into())
                    .unwrap();
                key = next;
            }
            let mut nonce = [0; 12];
            nonce[0] = number.slot();
            nonce[4..].copy_from_slice(&number.epoch().to_le_bytes());
            let mut text = wire[3..wire.len() - 16].to_vec();
            let tag: Tag = wire[wire.len() - 16..].try_into().unwrap();
            ChaCha20Poly1305::new(&key.into())
                .decrypt_inout_detached(&nonce.into(), b"aad", text.as_mut_slice().into(), &tag)
                .unwrap_or_else(|_| panic!("{number:?}"));
            assert_eq!(text[0], 0x80, "the header");
            assert_eq!(text[1..], contents);
            assert_eq!(open(&mut opener, b"aad", &wire), Ok((Kind::Decoy, contents)));
        }
    }
}

#[test]
fn a_hundred_epochs() {
    let (mut sealer, mut opener) = ends(PacketNumber::FIRST);
    let mut numbers = Numbers(1);
    for n in 0..100 * u64::from(REKEY_INTERVAL) + 3 {
        assert_eq!(sealer.next_number(), Some(PacketNumber::from_index(n)));
        assert_eq!(opener.next_number(), Some(PacketNumber::from_index(n)));
        let len = numbers.below(70);
        let contents = numbers.bytes(len);
        let packet = seal(&mut sealer, Kind::Genuine, &[], &contents);
        assert_eq!(open(&mut opener, &[], &packet), Ok((Kind::Genuine, contents)));
    }
}

/// Each bit of length, header, contents, tag and AAD. A wrong length shows by the AEAD, which then has other bytes.
#[test]
fn every_flipped_bit_shows() {
    let (aad, contents) = (b"garbage", b"contents of a packet");
    for slot in [0, 63, 223] {
        let first = PacketNumber::new(9, slot).unwrap();
        let packet = seal(&mut ends(first).0, Kind::Genuine, aad, contents);
        for bit in 0..8 * packet.len() {
            let mut bad = packet.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let mut opener = ends(first).1;
            let need = opener.open_length(*bad.first_chunk().unwrap()).unwrap();
            // A changed length is given as many bytes as it asks for, of what follows.
            bad.resize(bad.len().max(3 + need), 0x55);
            let mut rest = bad[3..3 + need].to_vec();
            assert_eq!(
                opener.open_in_place(aad, &mut rest),
                Err(Error::Unauthentic),
                "bit {bit}"
            );
            assert!(rest.iter().all(|byte| *byte == 0), "bit {bit} left something");
        }
        for bit in 0..8 * aad.len() {
            let mut other = *aad;
            other[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(
                open(&mut ends(first).1, &other, &packet),
                Err(Error::Unauthentic),
                "AAD bit {bit}"
            );
        }
        assert!(open(&mut ends(first).1, aad, &packet).is_ok());
    }
}

#[test]
fn all_bits_of_the_header_but_the_highest_mean_nothing() {
    for header in 0..=255 {
        let want = if header & 0x80 == 0 { Kind::Genuine } else { Kind::Decoy };
        assert_eq!(Kind::of_header(header), want);
    }
    assert_eq!((Kind::Genuine.header(), Kind::Decoy.header()), (0, 0x80));
}

/// After the first failure nothing is opened, however good.
#[test]
fn an_opener_fails_once_and_for_all() {
    let (mut sealer, mut opener) = ends(PacketNumber::FIRST);
    let packets: Vec<_> = (0..4).map(|_| seal(&mut sealer, Kind::Genuine, &[], b"text")).collect();
    assert!(open(&mut opener, &[], &packets[0]).is_ok());
    let mut bad = packets[1].clone();
    *bad.last_mut().unwrap() ^= 1;
    assert_eq!(open(&mut opener, &[], &bad), Err(Error::Unauthentic));
    for packet in &packets {
        assert_eq!(open(&mut opener, &[], packet), Err(Error::Closed));
    }
    assert!(opener.is_closed() && opener.into_chain().is_none());
}

/// One left out, one twice, two exchanged, one of the other direction.
#[test]
fn packets_in_another_order_show() {
    let first = PacketNumber::new(0, 222).unwrap();
    let mut sealer = ends(first).0;
    let packets: Vec<_> = (0..4).map(|n| seal(&mut sealer, Kind::Genuine, &[], &[n; 9])).collect();
    for order in [[1, 2, 3], [0, 0, 1], [0, 2, 1], [0, 1, 3], [0, 1, 1]] {
        let mut opener = ends(first).1;
        let opened: Vec<_> = order.iter().map(|n| open(&mut opener, &[], &packets[*n])).collect();
        let wrong = order.iter().enumerate().position(|(place, n)| place != *n).unwrap();
        for (place, opened) in opened.iter().enumerate() {
            assert_eq!(opened.is_ok(), place < wrong, "{place} of {order:?}");
        }
    }
    let keys = session_keys();
    let mut sealer = PacketSealer::new(keys.send_chain(Role::Initiator).unwrap());
    let packet = seal(&mut sealer, Kind::Genuine, &[], b"text");
    let mut reflected = PacketOpener::new(keys.recv_chain(Role::Initiator).unwrap());
    assert!(open(&mut reflected, &[], &packet).is_err());
    let mut right = PacketOpener::new(keys.recv_chain(Role::Responder).unwrap());
    assert!(open(&mut right, &[], &packet).is_ok());
}

#[test]
fn contents_that_are_too_long_are_refused_and_use_up_nothing() {
    let (mut sealer, mut opener) = ends(PacketNumber::FIRST);
    let long = vec![0; CONTENTS_MAX + 1];
    let error = Error::ContentsTooLong {
        got: long.len(),
        limit: CONTENTS_MAX,
    };
    let mut wire = b"kept".to_vec();
    assert_eq!(sealer.seal(Kind::Genuine, &[], &long, &mut wire), Err(error));
    assert_eq!(wire, b"kept");
    let packet = seal(&mut sealer, Kind::Genuine, &[], &long[1..]);
    assert_eq!(packet.len(), CONTENTS_MAX + 20);
    let (kind, contents) = open(&mut opener, &[], &packet).unwrap();
    assert!(kind == Kind::Genuine && contents == long[1..]);
    assert_eq!(
        seal(&mut sealer, Kind::Genuine, &[], &[]).len(),
        20,
        "the smallest packet"
    );
}

#[test]
fn in_place_is_the_same() {
    let (mut one, mut other) = (ends(PacketNumber::FIRST).0, ends(PacketNumber::FIRST).0);
    for len in 0..300 {
        let contents = vec![len as u8; len];
        let mut packet = vec![0xee; len + 20];
        packet[4..4 + len].copy_from_slice(&contents);
        one.seal_in_place(Kind::Genuine, b"a", &mut packet).unwrap();
        assert_eq!(packet, seal(&mut other, Kind::Genuine, b"a", &contents));
    }
    let small = one.seal_in_place(Kind::Genuine, &[], &mut [0; 19]);
    assert_eq!(small, Err(Error::Buffer { need: 20, got: 19 }));
    assert_eq!(one.next_number(), other.next_number());
}

#[test]
fn calls_out_of_order_change_nothing() {
    let (mut sealer, mut opener) = ends(PacketNumber::FIRST);
    let packet = seal(&mut sealer, Kind::Genuine, &[], b"text");
    let mut body = packet[3..].to_vec();
    assert!(matches!(
        opener.open_in_place(&[], &mut body),
        Err(Error::OutOfOrder { .. })
    ));
    assert_eq!(opener.open_length(*packet.first_chunk().unwrap()), Ok(21));
    assert!(matches!(opener.open_length([0; 3]), Err(Error::OutOfOrder { .. })));
    let mut few = [0; 20];
    let short = opener.open_in_place(&[], &mut few);
    assert_eq!(short, Err(Error::Buffer { need: 21, got: 20 }));
    assert_eq!(opener.open_in_place(&[], &mut body).unwrap().1, b"text");
}

/// Taken apart in the middle of a packet, at any slot, the chain stands before it.
#[test]
fn a_chain_taken_in_the_middle_of_a_packet() {
    for slot in [0, 100, 223] {
        let first = PacketNumber::new(3, slot).unwrap();
        let (mut sealer, mut opener) = ends(first);
        let packets: Vec<_> = (0..3)
            .map(|n| seal(&mut sealer, Kind::Genuine, &[], &[n; 40]))
            .collect();
        let length = *packets[0].first_chunk().unwrap();
        opener.open_length(length).unwrap();
        let (chain, sealed) = opener.into_chain().unwrap();
        assert_eq!(sealed, Some(length));
        assert_eq!(chain.next_number(), Some(first));
        let mut opener = PacketOpener::new(chain);
        for packet in &packets {
            assert!(open(&mut opener, &[], packet).is_ok());
        }
        assert!(opener.into_chain().unwrap().1.is_none());
    }
}
