//! What several tests of this crate share.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, missing_docs)]

pub mod vectors;

use sealway_aead::{Nonce, OpeningKey, SealingKey, Suite, Tag};

/// Bytes from hexadecimal text; blanks and line ends are ignored.
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    assert!(digits.len().is_multiple_of(2), "odd number of digits");
    let value = |digit: u8| char::from(digit).to_digit(16).expect("a hexadecimal digit") as u8;
    digits
        .chunks(2)
        .map(|pair| value(pair[0]) << 4 | value(pair[1]))
        .collect()
}

/// Bytes that look random and are the same every time.
pub fn random_bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d;
    (0..len)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

/// Seals in place; ciphertext and tag in one vector. Also checks that out of place gives the same, by this key and by a fresh
/// one: they may take different paths.
pub fn seal(suite: Suite, key: &[u8], nonce: &[u8], aad: &[u8], plaintext: &[u8]) -> Vec<u8> {
    let [key, fresh] = [key; 2].map(|key| SealingKey::new(suite, key).unwrap());
    let nonce = || Nonce::assume_unique(suite, nonce).unwrap();
    let mut out = plaintext.to_vec();
    let tag = key.seal_in_place(nonce(), aad, &mut out).unwrap();
    out.extend_from_slice(tag.as_bytes());
    for key in [key, fresh] {
        let mut again = vec![0xa5; out.len()];
        key.seal_to(nonce(), aad, plaintext, &mut again).unwrap();
        assert_eq!(out, again);
    }
    out
}

/// Opens in place what [`seal`] gives; also checks that a failure leaves only zeros, and that both ways of opening agree.
pub fn open(suite: Suite, key: &[u8], nonce: &[u8], aad: &[u8], sealed: &[u8]) -> Option<Vec<u8>> {
    let key = OpeningKey::new(suite, key).unwrap();
    let (ciphertext, tag) = sealed.split_at(sealed.len() - suite.tag_len());
    let mut in_place = ciphertext.to_vec();
    let result = key.open_in_place(nonce, aad, &mut in_place, &Tag::from_slice(tag).unwrap());
    let mut out_of_place = vec![0xa5; ciphertext.len()];
    let other = key.open_to(nonce, aad, sealed, &mut out_of_place);
    assert_eq!(result, other);
    assert_eq!(in_place, out_of_place);
    if result.is_err() {
        assert!(in_place.iter().all(|&b| b == 0), "plaintext left behind");
        return None;
    }
    Some(in_place)
}
