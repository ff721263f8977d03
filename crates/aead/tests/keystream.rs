//! The bare keystream against RFC 8439, against an independent library and against itself.
#![allow(clippy::unwrap_used)]

use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{ChaCha20Poly1305, KeyInit};
use sealway_aead::Error;
use sealway_aead::batch::Backend;
use sealway_aead::keystream::{BLOCK_LEN, fill, fill_with};

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn counted() -> [u8; 32] {
    std::array::from_fn(|i| i as u8)
}

/// RFC 8439 section 2.3.2 (one block) and 2.4.2 (the first two blocks of a text).
#[test]
fn blocks_of_the_rfc() {
    for backend in Backend::available() {
        let mut block = [0; 64];
        let nonce = bytes("000000090000004a00000000").try_into().unwrap();
        fill_with(backend, &counted(), &nonce, 1, &mut block).unwrap();
        let want = bytes(
            "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e
             d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e",
        );
        assert_eq!(block[..], want, "{backend}");

        let mut two = [0; 114];
        let nonce = bytes("000000000000004a00000000").try_into().unwrap();
        fill_with(backend, &counted(), &nonce, 1, &mut two).unwrap();
        let want = bytes(
            "224f51f3401bd9e12fde276fb8631ded8c131f823d2c06e27e4fcaec9ef3cf788a3b0aa372600a92b57974cded2b9334794cba40c63e
             34cdea212c4cf07d41b769a6749f3f630f4122cafe28ec4dc47e26d4346d70b98c73f3e9c53ac40c5945398b6eda1a832c89c167eacd
             901d7e2bf363",
        );
        assert_eq!(two[..], want, "{backend}");
    }
}

/// RFC 8439 appendix A.1, test vectors 1 and 2: block 0 and block 1 of a zero key.
#[test]
fn zero_key_of_the_rfc() {
    let want = bytes(
        "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7
         da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586
         9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed
         29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f",
    );
    for backend in Backend::available() {
        let mut stream = [0; 128];
        fill_with(backend, &[0; 32], &[0; 12], 0, &mut stream).unwrap();
        assert_eq!(stream[..], want, "{backend}");
    }
}

/// What an AEAD XORs into its text is the keystream from block 1 on.
#[test]
fn the_keystream_of_an_independent_library() {
    let (key, nonce) = ([0x5a; 32], [9; 12]);
    let mut theirs = vec![0; 5000];
    let cipher = ChaCha20Poly1305::new(&key.into());
    cipher
        .encrypt_inout_detached(&nonce.into(), b"", theirs.as_mut_slice().into())
        .unwrap();
    for backend in Backend::available() {
        let mut ours = vec![0; 5000];
        fill_with(backend, &key, &nonce, 1, &mut ours).unwrap();
        assert_eq!(ours, theirs, "{backend}");
    }
}

/// Every backend, every length around its widths, from any block, overwriting whatever was there.
#[test]
fn any_stretch_of_it() {
    let (key, nonce) = (counted(), [0xee; 12]);
    let mut whole = vec![0; 64 * 70];
    fill_with(Backend::Portable, &key, &nonce, 0, &mut whole).unwrap();
    for backend in Backend::available() {
        for first in [0, 1, 2, 15, 16, 17] {
            for len in (0..=200).chain([255, 256, 257, 672, 704, 1023, 1024, 1025, 2048, 3000]) {
                let mut part = vec![0xff; len];
                fill_with(backend, &key, &nonce, first, &mut part).unwrap();
                let at = BLOCK_LEN * first as usize;
                assert_eq!(part, whole[at..at + len], "{backend}, {len} bytes from block {first}");
            }
        }
    }
}

/// The last block there is can be had; the one after it cannot, and nothing is written then.
#[test]
fn the_counter_ends_at_32_bits() {
    let (key, nonce) = (counted(), [1; 12]);
    for backend in Backend::available() {
        // Forty blocks: more than any kernel makes at once.
        for blocks in [3, 40] {
            let first = u32::MAX - (blocks - 1);
            let mut last = vec![0; 64 * blocks as usize];
            fill_with(backend, &key, &nonce, first, &mut last).unwrap();
            for block in 0..blocks {
                let mut one = [0; 64];
                fill_with(Backend::Portable, &key, &nonce, first + block, &mut one).unwrap();
                assert_eq!(
                    last[64 * block as usize..][..64],
                    one,
                    "{backend}, block {block} of {blocks}"
                );
            }
        }
        let mut beyond = [7; 193];
        let refused = fill_with(backend, &key, &nonce, u32::MAX - 2, &mut beyond);
        let error = Error::KeystreamEnd {
            counter: u32::MAX - 2,
            len: 193,
        };
        assert_eq!(refused, Err(error));
        assert_eq!(beyond, [7; 193]);
    }
    assert_eq!(fill(&key, &nonce, u32::MAX, &mut []), Ok(()));
}
