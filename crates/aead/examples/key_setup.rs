//! What setting up and dropping a key costs, and one message under it, beside the library underneath.
//!
//! `cargo run --release -p sealway-aead --example key_setup`. Subjects take turns inside each round; printed are the fastest
//! rounds in nanoseconds and the ratio of ours to the library's: below 1 ours is the cheaper.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Instant;

use aws_lc_rs::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, Nonce as TheirNonce, UnboundKey};
use sealway_aead::{Nonce, SealingKey, Suite};

/// Rounds of which the fastest is taken.
const ROUNDS: usize = 300;
/// Times a subject is run in a round.
const REPEATS: u32 = 200;

const SUITE: Suite = Suite::ChaCha20Poly1305;

fn fastest(subjects: &mut [&mut dyn FnMut()]) -> Vec<f64> {
    let mut best = vec![f64::INFINITY; subjects.len()];
    for round in 0..ROUNDS {
        for i in 0..subjects.len() {
            let i = (i + round) % subjects.len();
            let start = Instant::now();
            for _ in 0..REPEATS {
                subjects[i]();
            }
            best[i] = best[i].min(start.elapsed().as_secs_f64() * 1e9 / f64::from(REPEATS));
        }
    }
    best
}

fn print(what: &str, ours: &mut dyn FnMut(), theirs: &mut dyn FnMut()) {
    let [ours, theirs] = fastest(&mut [ours, theirs])[..] else {
        return;
    };
    println!(
        "{what:32} sealway {ours:7.1} ns  aws-lc-rs {theirs:7.1} ns  ratio {:.2}",
        ours / theirs
    );
}

fn ours(key: &[u8; 32]) -> SealingKey {
    SealingKey::new(SUITE, black_box(key)).unwrap()
}

fn theirs(key: &[u8; 32]) -> LessSafeKey {
    LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, black_box(key)).unwrap())
}

fn main() {
    let bytes = [7; 32];
    print("key alone", &mut || drop(black_box(ours(&bytes))), &mut || {
        drop(black_box(theirs(&bytes)))
    });
    for len in [16, 64, 256, 1024, 2048, 16 * 1024] {
        let (resident, their_resident) = (ours(&bytes), theirs(&bytes));
        let mut buffer = vec![1; len];
        let mut other = buffer.clone();
        let seal = |key: &SealingKey, text: &mut [u8]| {
            let nonce = Nonce::assume_unique(SUITE, &[9; 12]).unwrap();
            black_box(key.seal_in_place(nonce, &[], text).unwrap());
        };
        let their_seal = |key: &LessSafeKey, text: &mut [u8]| {
            let nonce = TheirNonce::assume_unique_for_key([9; 12]);
            let _tag = black_box(key.seal_in_place_separate_tag(nonce, Aad::empty(), text).unwrap());
        };
        print(
            &format!("resident key, {len} bytes"),
            &mut || seal(&resident, &mut buffer),
            &mut || their_seal(&their_resident, &mut other),
        );
        print(
            &format!("fresh key, {len} bytes"),
            &mut || seal(&ours(&bytes), &mut buffer),
            &mut || their_seal(&theirs(&bytes), &mut other),
        );
    }
}
