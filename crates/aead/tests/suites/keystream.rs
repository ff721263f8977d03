//! The bare keystream against RFC 8439, against an independent library and against itself.

use chacha20poly1305::aead::AeadInOut;
use chacha20poly1305::{ChaCha20Poly1305, KeyInit};
use sealway_aead::Error;
use sealway_aead::batch::Backend;
use sealway_aead::keystream::{BLOCK_LEN, fill, fill_with};

use crate::common::vectors::{record, records};

fn counted() -> [u8; 32] {
    std::array::from_fn(|i| i as u8)
}

/// RFC 8439 sections 2.3.2 and 2.4.2, and appendix A.1.
#[test]
fn blocks_of_the_rfc() {
    let mut count = 0;
    for record in records("rfc8439.txt").iter().filter(|record| record.has("keystream")) {
        count += 1;
        let (key, nonce, want) = (record.array("key"), record.array("nonce"), record.bytes("keystream"));
        let counter = record.text("counter").parse().unwrap();
        for backend in Backend::available() {
            let mut stream = vec![0; want.len()];
            fill_with(backend, &key, &nonce, counter, &mut stream).unwrap();
            assert_eq!(stream, want, "{backend}, {}", record.title);
        }
    }
    assert_eq!(count, 7);
}

/// RFC 8439 appendix A.1, test vectors 1 and 2, in one piece: block 0 and block 1 of a zero key.
#[test]
fn zero_key_of_the_rfc() {
    let want =
        ["A.1, test vector 1", "A.1, test vector 2"].map(|title| record("rfc8439.txt", title).bytes("keystream"));
    for backend in Backend::available() {
        let mut stream = [0; 128];
        fill_with(backend, &[0; 32], &[0; 12], 0, &mut stream).unwrap();
        assert_eq!(stream[..], want.concat(), "{backend}");
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
