//! After a batch or a stretch of keystream, the dead frames of the kernels hold no word of a key or of the keystream.
//!
//! Vector kernels keep keys transposed, a word of each message in one vector, so a search for whole keys (`wiping.rs`) cannot
//! see what they leave. Here single words are looked for, in the part of the stack that the call had below it. The library
//! underneath wipes the copies that it makes in C and leaves those of its assembly, so its frames are searched as well.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::collections::HashSet;
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;

use sealway_aead::batch::{Backend, Engine, Job, Keys, Memory, Slot, Status};
use sealway_aead::{Nonce, OpeningKey, SealingKey, Suite, keystream};

/// Bytes of dead stack that are searched; more than kernels use.
const DEPTH: usize = 48 * 1024;

#[inline(never)]
fn key(number: u32) -> [u8; 32] {
    std::array::from_fn(|i| ((number as usize * 131 + i * 71 + 7).wrapping_mul(2_654_435_761) >> 11) as u8)
}

/// Words that chance does not bring: small numbers are everywhere.
///
/// Not inlined: what it has in registers is a caller's again when it returns.
#[inline(never)]
fn add_words(words: &mut HashSet<u32>, bytes: &[u8]) {
    let telling = |word: &u32| word.leading_zeros() < 12 && word.trailing_zeros() < 12;
    let all = bytes.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes));
    words.extend(all.filter(telling));
}

/// Overwrites the stack below.
#[inline(never)]
fn clean() {
    black_box(&mut [0u64; 2 * DEPTH / 8]);
}

/// Runs `f` so far down that what follows it up here does not reach its dead frames; gives where they start.
#[inline(never)]
fn deep(f: &mut dyn FnMut()) -> usize {
    let room = black_box([0u8; 16 * 1024]);
    f();
    black_box(&room).as_ptr().addr() & !63
}

/// Runs `f` and gives the words that it left below.
#[inline(never)]
fn left_by(f: &mut dyn FnMut(), left: &mut [u8]) {
    // Read from outside: looking at dead frames by a pointer is nothing a program may do.
    let memory = File::open("/proc/self/mem").unwrap();
    clean();
    let top = deep(f);
    memory.read_exact_at(left, (top - left.len()) as u64).unwrap();
}

fn check(what: &str, words: &HashSet<u32>, f: &mut dyn FnMut()) {
    assert!(words.len() > 5);
    let mut left = vec![0; DEPTH];
    left_by(f, &mut left);
    let all = left.as_chunks::<4>().0.iter().enumerate();
    let found: Vec<usize> = all
        .filter(|(_, bytes)| words.contains(&u32::from_le_bytes(**bytes)))
        .map(|(i, _)| DEPTH - 4 * i)
        .collect();
    assert!(found.is_empty(), "{what}: secret words {found:?} bytes down the stack");
}

#[test]
fn the_search_finds_what_is_left() {
    let mut words = HashSet::new();
    add_words(&mut words, &key(1));
    #[inline(never)]
    fn careless() {
        let copy = key(black_box(1));
        black_box(&copy);
    }
    let mut left = vec![0; DEPTH];
    left_by(&mut careless, &mut left);
    let all = left.as_chunks::<4>().0.iter();
    let found = all.filter(|bytes| words.contains(&u32::from_le_bytes(**bytes))).count();
    assert!(found >= words.len(), "found {found} words of {}", words.len());
}

#[test]
fn of_a_keystream() {
    let (secret, nonce) = (Box::new(key(1)), [9; 12]);
    let mut all = vec![0; 4096];
    keystream::fill_with(Backend::Portable, &secret, &nonce, 0, &mut all).unwrap();
    let mut words = HashSet::new();
    add_words(&mut words, &secret[..]);
    add_words(&mut words, &all);
    for backend in Backend::available() {
        for len in [3, 32, 64, 100, 672, 1024, 3000] {
            let mut out = vec![0; len];
            check(&format!("{backend}, {len} bytes"), &words, &mut || {
                keystream::fill_with(backend, &secret, &nonce, 0, &mut out).unwrap();
            });
        }
    }
}

#[test]
fn of_a_batch() {
    for backend in Backend::available() {
        for suite in [Suite::ChaCha20Poly1305, Suite::XChaCha20Poly1305] {
            for (count, len) in [(16u32, 128u32), (5, 70), (200, 300), (300, 1023), (2000, 64)] {
                let nonce = &[9; 24][..suite.nonce_len()];
                let mut keys = Keys::with_slots(count as usize);
                let mut words = HashSet::new();
                for i in 0..count {
                    keys.set(Slot(i), suite, &key(i)).unwrap();
                    add_words(&mut words, &key(i));
                    if suite == Suite::ChaCha20Poly1305 {
                        let mut all = vec![0; len as usize + 64];
                        keystream::fill_with(Backend::Portable, &key(i), &[9; 12], 0, &mut all).unwrap();
                        add_words(&mut words, &all);
                    }
                }
                let (src, stride) = (vec![0x11; len as usize], len + 16);
                let mut dst = vec![0; (stride * count) as usize];
                let jobs: Vec<Job> = (0..count)
                    .map(|i| Job::seal(Slot(i), Nonce::assume_unique(suite, nonce).unwrap(), 0..len, i * stride))
                    .collect();
                let mut statuses = vec![Status::Failed; count as usize];
                let mut engine = Engine::with_backend(backend);
                check(
                    &format!("{backend}, {suite}, {count} of {len} bytes"),
                    &words,
                    &mut || {
                        let memory = Memory::Separate {
                            src: &src,
                            dst: &mut dst,
                        };
                        engine.run(&keys, &jobs, memory, &[], &mut statuses).unwrap();
                    },
                );
            }
        }
    }
}

/// Messages on their own are ours with AVX-512 and everywhere without the library: `SEALWAY_CPU_DISABLE` then says by which
/// kernels. Otherwise the library seals them, short ones from the second of each key on.
#[test]
fn of_one_message() {
    let suite = Suite::ChaCha20Poly1305;
    let (secret, nonce) = (Box::new(key(1)), [9; 12]);
    let mut words = HashSet::new();
    add_words(&mut words, &secret[..]);
    let mut all = vec![0; 9000];
    keystream::fill_with(Backend::Portable, &secret, &nonce, 0, &mut all).unwrap();
    add_words(&mut words, &all);
    for len in [0, 1, 64, 192, 193, 200, 448, 449, 960, 961, 3000, 8000] {
        let sealing = SealingKey::new(suite, &secret[..]).unwrap();
        let opening = OpeningKey::new(suite, &secret[..]).unwrap();
        let (plain, mut sealed, mut opened) = (vec![0x11; len], vec![0; len + 16], vec![0; len]);
        check(&format!("sealing {len} bytes"), &words, &mut || {
            let nonce = Nonce::assume_unique(suite, &nonce).unwrap();
            sealing.seal_to(nonce, b"aad", &plain, &mut sealed).unwrap();
        });
        for message in ["opening the first", "opening the second"] {
            check(&format!("{message}, {len} bytes"), &words, &mut || {
                opening.open_to(&nonce, b"aad", &sealed, &mut opened).unwrap();
            });
            assert!(opened == plain);
        }
    }
}
