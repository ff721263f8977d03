//! After a secret is dropped, no copy of it is left anywhere in the memory of the process: not in its own place, not in
//! the library underneath, not on the stack.
//!
//! The test reads its own memory through `/proc/self/mem`, so it runs on Linux only. Each secret is kept masked, so that
//! the search does not find itself. What is tested runs on a thread of its own, deep in its stack, and that thread waits
//! while another one searches: nothing overwrites what a careless call left behind.
//!
//! Not covered: registers, what the system swaps out, and secrets in another form than their bytes (the state of a hash
//! that took in a key, words in another byte order). A nonce is no secret: its bytes may stay on the stack. Two wipings
//! cannot be seen from here, because something else overwrites the same bytes: that of the array that HKDF-Extract returns
//! (the stack of a derivation is overwritten as a whole) and that of an XChaCha20 sub-key on the stack (the frames of the
//! cipher come to lie on it); the tests assert that no copy is left, by whichever means.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/own_memory.rs"]
mod own_memory;

use std::fs::File;
use std::hint::black_box;
use std::io::Read;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::thread;

use own_memory::{MASK, deep, places};
use sealway_aead::batch::{Backend, Engine, Job, Keys, Memory, Slot, Status};
use sealway_aead::derive::{Direction, Hash, Label, Prk};
use sealway_aead::{Nonce, NonceSequence, Opener, OpeningKey, Sealer, SealingKey, Suite};
use zeroize::{Zeroize, Zeroizing};

/// Bytes that are looked for: enough not to be there by chance.
const NEEDLE: usize = 16;
/// Bytes at the end of a secret that are looked for by themselves: as many as 24-byte vectors leave.
const TAIL: usize = 8;

/// One test at a time: another thread's stack holds another test's secrets, and memory maps change under the search.
static ALONE: Mutex<()> = Mutex::new(());

/// Random bytes XOR the mask.
fn masked_secret() -> [u8; 32] {
    let mut masked = [0; 32];
    File::open("/dev/urandom").unwrap().read_exact(&mut masked).unwrap();
    masked
}

fn unmask(masked: &[u8], into: &mut [u8]) {
    for (out, byte) in into.iter_mut().zip(masked) {
        *out = byte ^ MASK;
    }
}

/// How often the secret stands in writable memory: its first bytes, or its last, because an allocator overwrites the first
/// bytes of what it is given back and would hide that nobody wiped the rest.
fn copies(masked: &[u8]) -> usize {
    let tail = masked.len().saturating_sub(TAIL).max(NEEDLE);
    let ends = if tail + TAIL <= masked.len() {
        places(&masked[tail..])
    } else {
        0
    };
    places(&masked[..masked.len().min(NEEDLE)]) + ends
}

/// Runs `live` with the unmasked secret and gives back what it made; the unmasked bytes are wiped.
#[inline(never)]
fn with_secret<T>(masked: &[u8], live: impl FnOnce(&[u8]) -> T) -> T {
    let mut bytes = Box::new(Zeroizing::new([0; 64]));
    let secret = &mut bytes[..masked.len()];
    unmask(masked, secret);
    live(secret)
}

/// Makes a thing of one secret, works with it and drops it, on a thread that then waits; searches for another secret (or
/// the same) while the thing lives and after its end.
fn watch<T>(
    what: &str,
    secret: &[u8],
    sought: &[u8],
    lives: bool,
    make: impl FnOnce(&[u8]) -> T + Send,
    work: impl FnOnce(&mut T) + Send,
) {
    assert_eq!(copies(sought), 0, "{what}: the search finds itself");
    let (done, wait) = channel();
    let (go, next) = channel();
    let (alive, dead) = thread::scope(|scope| {
        scope.spawn(move || {
            let mut made = deep(|| with_secret(secret, make));
            done.send(()).unwrap();
            next.recv().unwrap();
            deep(move || {
                work(&mut made);
                drop(black_box(made));
            });
            done.send(()).unwrap();
            // The stack stays mapped until the search is over.
            next.recv().unwrap();
        });
        // A panic on the thread drops its end of the channel and ends this closure, too.
        wait.recv().unwrap();
        let alive = copies(sought);
        go.send(()).unwrap();
        wait.recv().unwrap();
        let dead = copies(sought);
        go.send(()).unwrap();
        (alive, dead)
    });
    if lives {
        assert!(alive >= 1, "{what}: the search does not find a live secret");
    }
    assert_eq!(dead, 0, "{what}: a copy of the secret is left");
}

/// [`watch`] for things that are made of the secret and hold it.
fn check<T>(what: &str, make: impl FnOnce(&[u8; 32]) -> T + Send, work: impl FnOnce(&mut T) + Send) {
    let _alone = alone();
    let masked = masked_secret();
    watch(
        what,
        &masked,
        &masked,
        true,
        |secret| make(secret.first_chunk().unwrap()),
        work,
    );
}

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Computes with an unmasked secret what to look for, gives it back masked and leaves nothing on this thread's stack.
fn expected(masked: &[u8], len: usize, compute: impl FnOnce(&[u8], &mut [u8])) -> Vec<u8> {
    let mut result = deep(|| {
        with_secret(masked, |secret| {
            let mut out = vec![0; len];
            compute(secret, &mut out);
            out.iter_mut().for_each(|byte| *byte ^= MASK);
            out
        })
    });
    // Masked in place; a vector that never grew has no other copy.
    result.shrink_to_fit();
    scrub();
    result
}

/// Overwrites more of the stack than [`deep`] and what it calls have used.
#[inline(never)]
fn scrub() {
    let mut stack = [0u64; 32 * 1024];
    stack.zeroize();
    black_box(&stack);
}

fn nonce(suite: Suite) -> Nonce {
    Nonce::assume_unique(suite, &[3; 24][..suite.nonce_len()]).unwrap()
}

#[test]
fn sealing_keys() {
    for suite in Suite::ALL {
        check(
            suite.name(),
            |secret| SealingKey::new(suite, &secret[..suite.key_len()]).unwrap(),
            |key| {
                key.seal_in_place(nonce(suite), b"aad", &mut [1; 100]).unwrap();
                key.seal_to(nonce(suite), b"aad", &[1; 100], &mut [0; 116]).unwrap();
            },
        );
    }
}

#[test]
fn opening_keys() {
    for suite in Suite::ALL {
        check(
            suite.name(),
            |secret| OpeningKey::new(suite, &secret[..suite.key_len()]).unwrap(),
            |key| {
                let tag = sealway_aead::Tag([0; 16]);
                assert!(
                    key.open_in_place(&nonce(suite).to_bytes(), b"aad", &mut [1; 100], &tag)
                        .is_err()
                );
            },
        );
    }
}

#[test]
fn keys_that_were_moved() {
    for suite in Suite::ALL {
        check(
            suite.name(),
            |secret| {
                let iv = [9; 24];
                let nonces = || NonceSequence::xor(suite, &iv[..suite.nonce_len()]).unwrap();
                let key = &secret[..suite.key_len()];
                let sealer = Sealer::new(SealingKey::new(suite, key).unwrap(), nonces()).unwrap();
                let opener = Opener::new(OpeningKey::new(suite, key).unwrap(), nonces()).unwrap();
                black_box(vec![(Box::new(sealer), opener)])
            },
            |pair| {
                let (mut sealer, opener) = pair.pop().unwrap();
                sealer.seal_in_place(b"", &mut [0; 33]).unwrap();
                pair.push((sealer, opener));
            },
        );
    }
}

/// A table of keys wipes itself, and an engine that lives on keeps nothing of it.
#[test]
fn tables_of_keys() {
    for backend in Backend::available() {
        // AES does not depend on the backend; one job and many take different paths.
        let suites = [
            (Suite::Aes256Gcm, 1),
            (Suite::ChaCha20Poly1305, 1),
            (Suite::ChaCha20Poly1305, 3),
            (Suite::XChaCha20Poly1305, 40),
        ];
        for (suite, count) in suites {
            let mut engine = Engine::with_backend(backend);
            let engine = &mut engine;
            check(
                &format!("{backend} {suite}, {count} jobs"),
                |secret| {
                    let mut keys = Keys::with_slots(2);
                    keys.set(Slot(1), suite, &secret[..suite.key_len()]).unwrap();
                    keys
                },
                |keys| {
                    let jobs: Vec<_> = (0..count)
                        .map(|i| Job::seal(Slot(1), nonce(suite), 0..200 + i, i * 256))
                        .collect();
                    let mut statuses = vec![Status::Failed; jobs.len()];
                    let mut dst = vec![0; 256 * jobs.len()];
                    let memory = Memory::Separate {
                        src: &[5; 256],
                        dst: &mut dst,
                    };
                    engine.run(keys, &jobs, memory, b"", &mut statuses).unwrap();
                    assert_eq!(statuses[0], Status::Done);
                },
            );
        }
    }
}

#[test]
fn secrets_that_were_given() {
    for (hash, len) in [(Hash::Sha256, 32), (Hash::Sha512, 64)] {
        let _alone = alone();
        let masked = [masked_secret(), masked_secret()].concat();
        let masked = &masked[..len];
        watch(
            &format!("{hash:?}"),
            masked,
            masked,
            true,
            |secret| Prk::from_secret(hash, secret).unwrap(),
            |prk| {
                prk.export("wiping", b"", &mut [0; 40]).unwrap();
                let moved = black_box(vec![prk.next_epoch("wiping", 0, b"").unwrap()]);
                moved[0].export("wiping", b"", &mut [0; 40]).unwrap();
            },
        );
    }
}

/// HKDF-Extract is HMAC with the salt as its key, computed here with another library.
#[test]
fn secrets_that_were_extracted() {
    use aws_lc_rs::hmac;
    for (hash, hmac, len) in [
        (Hash::Sha256, hmac::HMAC_SHA256, 32),
        (Hash::Sha512, hmac::HMAC_SHA512, 64),
    ] {
        let _alone = alone();
        let masked = masked_secret();
        let sought = expected(&masked, len, |secret, out| {
            out.copy_from_slice(hmac::sign(&hmac::Key::new(hmac, b"salt"), secret).as_ref());
        });
        watch(
            &format!("{hash:?}"),
            &masked,
            &sought,
            true,
            |secret| Prk::extract(hash, b"salt", secret),
            |prk| prk.export("wiping", b"", &mut [0; 40]).unwrap(),
        );
    }
}

/// What a derivation gives (key, vector, next secret, exported secret) is found while it lives and gone with it.
#[test]
fn derived_secrets() {
    let label = |suite| Label::new("wiping", suite, Direction::InitiatorToResponder);
    for suite in Suite::ALL {
        let _alone = alone();
        let masked = masked_secret();
        let traffic = |secret: &[u8]| {
            let prk = Prk::from_secret(Hash::Sha256, secret).unwrap();
            prk.traffic(&label(suite)).unwrap()
        };
        let key = expected(&masked, suite.key_len(), |secret, out| {
            out.copy_from_slice(traffic(secret).key());
        });
        let iv = expected(&masked, suite.nonce_len(), |secret, out| {
            out.copy_from_slice(traffic(secret).iv());
        });
        for (what, sought) in [("key", &key), ("vector", &iv)] {
            let what = format!("{suite} {what}");
            watch(&what, &masked, sought, true, traffic, |_| ());
        }
        let ends = |secret: &[u8]| {
            let (sealer, opener) = (traffic(secret).into_sealer(), traffic(secret).into_opener());
            black_box(vec![(sealer.unwrap(), opener.unwrap())])
        };
        for (what, sought) in [("key in use", &key), ("vector in use", &iv)] {
            watch(&format!("{suite} {what}"), &masked, sought, true, ends, |ends| {
                drop(black_box(ends.pop()));
            });
        }
        // The first nonce is the vector itself and is no secret; the key must be gone all the same.
        watch(&format!("{suite} key used"), &masked, &key, true, ends, |ends| {
            ends[0].0.seal_in_place(b"", &mut [0; 33]).unwrap();
        });
    }
    for hash in [Hash::Sha256, Hash::Sha512] {
        let _alone = alone();
        let masked = [masked_secret(), masked_secret()].concat();
        let masked = &masked[..hash.output_len()];
        type Next = fn(&Prk) -> Prk;
        let nexts: [(&str, u8, u64, Next); 2] = [
            ("next epoch", 3, 7, |prk| prk.next_epoch("wiping", 7, b"c").unwrap()),
            ("exported secret", 5, 0, |prk| prk.export_prk("wiping", b"c").unwrap()),
        ];
        for (what, usage, epoch, next) in nexts {
            let mut info = b"sealway derive 1".to_vec();
            info.extend_from_slice(&[usage, 0, 0]);
            info.extend_from_slice(&u64::to_be_bytes(epoch));
            info.extend_from_slice(&[0, hash.output_len() as u8, 6]);
            info.extend_from_slice(b"wiping\x00\x01c");
            let sought = expected(masked, hash.output_len(), |secret, out| {
                let prk = Prk::from_secret(hash, secret).unwrap();
                prk.expand_raw(&info, out).unwrap();
            });
            let make = |secret: &[u8]| next(&Prk::from_secret(hash, secret).unwrap());
            watch(&format!("{hash:?} {what}"), masked, &sought, true, make, |prk| {
                prk.export("wiping", b"", &mut [0; 40]).unwrap();
            });
        }
    }
}

/// A sequence that was moved, started elsewhere and used wipes its vector. (With number 0 the nonce would be the vector.)
#[test]
fn vectors_of_sequences() {
    for suite in Suite::ALL {
        let _alone = alone();
        let masked = &masked_secret()[..suite.nonce_len()];
        watch(
            suite.name(),
            masked,
            masked,
            true,
            |iv| {
                let sequence = NonceSequence::xor(suite, iv).unwrap();
                black_box(vec![black_box(sequence).starting_at(0x0102_0304_0506_0708).unwrap()])
            },
            |sequences| {
                let mut sequence = sequences.pop().unwrap();
                sequence.advance().unwrap();
                sequences.push(sequence);
            },
        );
    }
}

/// HChaCha20 (draft-irtf-cfrg-xchacha-03 section 2.2), written for this test.
fn hchacha20(key: &[u8], nonce: &[u8], out: &mut [u8]) {
    let word = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    let mut x = vec![0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];
    x.extend(key.chunks(4).chain(nonce.chunks(4)).map(word));
    for round in 0..20 {
        for i in 0..4 {
            let shift = round % 2;
            let [a, b, c, d] = [0, 1, 2, 3].map(|row| 4 * row + (i + shift * row) % 4);
            for (a, b, d, turn) in [(a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)] {
                x[a] = u32::wrapping_add(x[a], x[b]);
                x[d] = (x[d] ^ x[a]).rotate_left(turn);
            }
        }
    }
    for (bytes, word) in out.chunks_mut(4).zip(x[..4].iter().chain(&x[12..])) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    x.zeroize();
}

#[test]
fn the_reference_is_hchacha20() {
    let key: Vec<u8> = (0..32).collect();
    let mut out = [0; 32];
    let nonce = common::hex("000000090000004a0000000031415927");
    hchacha20(&key, &nonce, &mut out);
    let expected = "82413b4227b27bfed30e42508a877d73a0f9e4d58a74a853c12ec41326d3ecdc";
    assert_eq!(out[..], common::hex(expected));
}

/// The sub-key of a message lives only as long as a call: it is gone although the key lives on.
#[test]
fn sub_keys_of_xchacha20() {
    let suite = Suite::XChaCha20Poly1305;
    let _alone = alone();
    let masked = masked_secret();
    let sought = expected(&masked, 32, |secret, out| hchacha20(secret, &[3; 16], out));
    let made = |secret: &[u8]| {
        (
            SealingKey::new(suite, secret).unwrap(),
            OpeningKey::new(suite, secret).unwrap(),
        )
    };
    let kept = Mutex::new(None);
    watch("sub-key", &masked, &sought, false, made, |(sealing, opening)| {
        let mut buffer = [1; 100];
        let tag = sealing.seal_in_place(nonce(suite), b"aad", &mut buffer).unwrap();
        opening
            .open_in_place(&nonce(suite).to_bytes(), b"aad", &mut buffer, &tag)
            .unwrap();
        let mut sealed = [0; 116];
        sealing.seal_to(nonce(suite), b"aad", &[1; 100], &mut sealed).unwrap();
        sealed[0] ^= 1;
        let failed = opening.open_to(&nonce(suite).to_bytes(), b"aad", &sealed, &mut [0; 100]);
        assert!(failed.is_err());
        *kept.lock().unwrap() = Some(tag);
    });
    assert!(kept.lock().unwrap().is_some());
}
