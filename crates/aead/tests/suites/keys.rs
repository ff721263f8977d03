//! Keys that are used once, often, and by several threads at a time: the path that a message takes may depend on what its key
//! did before, its bytes may not.

use std::sync::Barrier;
use std::thread;

use sealway_aead::{Nonce, OpeningKey, SealingKey, Suite};

use crate::common::random_bytes;
use crate::fuzzing::rustcrypto;

const SUITE: Suite = Suite::ChaCha20Poly1305;

fn reference(key: &[u8], plain: &[u8]) -> Vec<u8> {
    rustcrypto(SUITE, key, &[5; 12], b"aad", plain)
}

fn seal(key: &SealingKey, plain: &[u8]) -> Vec<u8> {
    let mut sealed = vec![0; plain.len() + 16];
    let nonce = Nonce::assume_unique(SUITE, &[5; 12]).unwrap();
    key.seal_to(nonce, b"aad", plain, &mut sealed).unwrap();
    sealed
}

/// Short and long messages in turn, so that every order of paths comes.
#[test]
fn a_key_gives_the_same_bytes_every_time() {
    let bytes = random_bytes(32, 1);
    for lengths in [
        [0, 0, 0, 3000],
        [64, 3000, 64, 64],
        [3000, 64, 3000, 64],
        [1407, 1408, 1407, 0],
    ] {
        let sealing = SealingKey::new(SUITE, &bytes).unwrap();
        let opening = OpeningKey::new(SUITE, &bytes).unwrap();
        for len in lengths {
            let plain = random_bytes(len, 2);
            let sealed = reference(&bytes, &plain);
            assert_eq!(seal(&sealing, &plain), sealed, "{lengths:?} {len}");
            let mut opened = vec![0; len];
            opening.open_to(&[5; 12], b"aad", &sealed, &mut opened).unwrap();
            assert_eq!(opened, plain, "{lengths:?} {len}");
        }
    }
}

#[test]
fn threads_may_share_a_fresh_key() {
    let plain = random_bytes(100, 3);
    for round in 0..50 {
        let bytes = random_bytes(32, round);
        let want = reference(&bytes, &plain);
        let key = SealingKey::new(SUITE, &bytes).unwrap();
        let start = Barrier::new(4);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..3 {
                        assert_eq!(seal(&key, &plain), want);
                    }
                });
            }
        });
    }
}

/// A first message with a wrong nonce is refused, whichever path it would have taken.
#[test]
fn a_wrong_nonce_is_refused_the_first_time_and_later() {
    let key = OpeningKey::new(SUITE, &[1; 32]).unwrap();
    for _ in 0..3 {
        let mut opened = [7; 4];
        let refused = key.open_to(&[0; 11], b"", &[0; 20], &mut opened);
        assert_eq!(refused, Err(sealway_aead::Error::NonceLength { need: 12, got: 11 }));
        assert_eq!(opened, [7; 4], "untouched");
    }
}
