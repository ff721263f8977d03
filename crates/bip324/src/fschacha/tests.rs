use std::collections::HashSet;

use super::*;
use crate::{CONTENTS_MAX, Error};
use sealway_aead::keystream;

const KEY: [u8; 32] = [0x5a; 32];
const LAST: PacketNumber = PacketNumber {
    epoch: u64::MAX,
    slot: REKEY_INTERVAL - 1,
};

fn number(epoch: u64, slot: u8) -> PacketNumber {
    PacketNumber::new(epoch, slot).unwrap()
}

/// The keystream that the BIP describes, in the plainest words.
fn stream(key: &[u8; 32], head: u32, epoch: u64, block: u32, len: usize) -> Vec<u8> {
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(&head.to_le_bytes());
    nonce[4..].copy_from_slice(&epoch.to_le_bytes());
    let mut out = vec![0; len];
    keystream::fill(key, &nonce, block, &mut out).unwrap();
    out
}

#[test]
fn numbers_and_nonces() {
    assert_eq!(PacketNumber::from_index(0), PacketNumber::FIRST);
    assert_eq!(PacketNumber::from_index(223), number(0, 223));
    assert_eq!(PacketNumber::from_index(224), number(1, 0));
    assert_eq!(PacketNumber::new(0, 224), None);
    assert_eq!(number(0, 5).nonce(), [5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        number(0x0102_0304_0506_0708, 223).nonce(),
        [223, 0, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1]
    );
    for index in [0, 1, 223, 224, u64::from(u32::MAX), 1 << 32, u64::MAX] {
        assert_eq!(PacketNumber::from_index(index).index(), u128::from(index));
    }
    assert_eq!(LAST.index(), (1u128 << 64) * 224 - 1);
    assert!(number(1, 0) > number(0, 223));
}

/// Three epochs of masks and keys as the BIP has them, from an epoch on.
fn three_epochs_from(first: u64) {
    let mut lengths = LengthCipher::resume(&KEY, number(first, 0)).unwrap();
    let mut contents = ContentChain::resume(&KEY, number(first, 0));
    let (mut length_key, mut content_key) = (KEY, KEY);
    for epoch in first..=first.saturating_add(2) {
        let masks = stream(&length_key, 0, epoch, 0, 704);
        for slot in 0..REKEY_INTERVAL {
            let at = 3 * usize::from(slot);
            assert_eq!(lengths.next_number(), Some(number(epoch, slot)));
            assert_eq!(lengths.next_mask().unwrap(), masks[at..at + 3], "{epoch}, {slot}");
            assert_eq!(contents.next_number(), Some(number(epoch, slot)));
            assert_eq!(contents.reserve(), Ok(number(epoch, slot)));
            assert_eq!(contents.key_of(number(epoch, slot)), Some(&content_key));
        }
        assert_eq!(contents.key_of(number(epoch.wrapping_add(1), 0)), None);
        if epoch % 2 == 0 {
            // Early or when the next packet needs it: the same.
            lengths.end_epoch().unwrap();
            contents.end_epoch().unwrap();
        }
        length_key.copy_from_slice(&masks[672..]);
        content_key = stream(&content_key, u32::MAX, epoch, 1, 32).try_into().unwrap();
    }
}

#[test]
fn epochs_as_the_bip_has_them() {
    three_epochs_from(0);
    three_epochs_from(u64::from(u32::MAX) - 1);
    three_epochs_from(u64::MAX - 3);
}

#[test]
fn ending_an_epoch_early_does_nothing() {
    let mut chain = SendChain::new(&KEY, &KEY).unwrap();
    let mut other = SendChain::new(&KEY, &KEY).unwrap();
    for n in 0..500 {
        chain.end_epoch().unwrap();
        assert_eq!(chain.reserve(n), other.reserve(n));
    }
}

/// The last packet of all is given once, and then there is none: no counter starts again.
#[test]
fn the_end_of_all_numbers() {
    let mut send = SendChain::resume(&KEY, &KEY, number(u64::MAX, 222)).unwrap();
    let mut recv = RecvChain::resume(&KEY, &KEY, number(u64::MAX, 222)).unwrap();
    for slot in [222, 223] {
        let (got, sealed) = send.reserve(1000).unwrap();
        assert_eq!(got, number(u64::MAX, slot));
        assert_eq!(recv.open_length(sealed), Ok((got, 1000)));
    }
    for _ in 0..3 {
        assert_eq!(send.next_number(), None);
        assert_eq!(send.reserve(0), Err(Error::Exhausted));
        assert_eq!(recv.open_length([0; 3]), Err(Error::Exhausted));
        send.end_epoch().unwrap();
        recv.end_epoch().unwrap();
        // The key of the last packet stays: there is no next one.
        assert_eq!(send.key_of(LAST), Some(&KEY));
    }
}

/// 2^32 packets and 2^32 epochs: numbers go on, none comes twice.
#[test]
fn across_32_bits() {
    for first in [PacketNumber::from_index((1 << 32) - 300), number((1 << 32) - 1, 100)] {
        let mut send = SendChain::resume(&KEY, &KEY, first).unwrap();
        let mut recv = RecvChain::resume(&KEY, &KEY, first).unwrap();
        let mut seen = HashSet::new();
        for n in 0..600 {
            let (number, sealed) = send.reserve(n).unwrap();
            assert_eq!(number.index(), first.index() + n as u128);
            assert_eq!(recv.open_length(sealed), Ok((number, n)));
            assert_eq!(send.key_of(number), recv.key_of(number));
            assert!(seen.insert((send.key_of(number).copied(), number.nonce())));
        }
    }
}

#[test]
fn lengths_that_cannot_be_said_use_up_no_number() {
    let mut chain = SendChain::new(&KEY, &KEY).unwrap();
    for got in [CONTENTS_MAX + 1, 1 << 24, usize::MAX] {
        let limit = CONTENTS_MAX;
        assert_eq!(chain.reserve(got), Err(Error::ContentsTooLong { got, limit }));
        assert_eq!(chain.next_number(), Some(PacketNumber::FIRST));
    }
    let mut peer = RecvChain::new(&KEY, &KEY).unwrap();
    for len in [CONTENTS_MAX, 0, 1, 255, 256, 65_535, 65_536] {
        let (number, sealed) = chain.reserve(len).unwrap();
        assert_eq!(peer.open_length(sealed), Ok((number, len)));
    }
}

/// Taking a length back and opening it again is as if nothing had been, across epochs.
#[test]
fn a_length_taken_back() {
    let mut recv = RecvChain::new(&KEY, &KEY).unwrap();
    let mut again = RecvChain::new(&KEY, &KEY).unwrap();
    let sealed = [1, 2, 3];
    for _ in 0..700 {
        let (number, len) = recv.open_length(sealed).unwrap();
        // Back and again: as if nothing had been.
        recv.take_back(sealed, len);
        assert_eq!(recv.next_number(), Some(number));
        assert_eq!(recv.open_length(sealed), Ok((number, len)));
        assert_eq!(again.open_length(sealed), Ok((number, len)));
    }
}

#[test]
fn debug_output_shows_no_key() {
    let send = SendChain::new(&KEY, &KEY).unwrap();
    let text = format!("{send:?}");
    assert!(text.contains("slot: 0"), "{text}");
    assert!(!text.contains("90") && !text.contains("5a"), "{text}");
}
