//! After a key is dropped, no copy of it is left anywhere in the memory of the process: not in the key's own place, not
//! in the library underneath, not on the stack.
//!
//! The test reads its own memory through `/proc/self/mem`, so it runs on Linux only. Each secret is kept masked, so that
//! the search does not find itself.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::sync::Mutex;

use sealway_aead::batch::{Backend, Engine, Job, Keys, Memory, Slot, Status};
use sealway_aead::derive::{Direction, Hash, Label, Prk};
use sealway_aead::{Nonce, NonceSequence, Opener, OpeningKey, Sealer, SealingKey, Suite};
use zeroize::{Zeroize, Zeroizing};

/// Bytes that are looked for: enough not to be there by chance.
const NEEDLE: usize = 16;
const MASK: u8 = 0xa7;

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

/// How often the first bytes of the secret stand in writable memory, the search's own buffer left out.
fn copies(masked: &[u8; 32]) -> usize {
    let mut memory = File::open("/proc/self/mem").unwrap();
    let mut found = 0;
    let maps: Vec<String> = BufReader::new(File::open("/proc/self/maps").unwrap())
        .lines()
        .map(|l| l.unwrap())
        .collect();
    for line in maps
        .iter()
        .filter(|line| line.split(' ').nth(1).is_some_and(|mode| mode.starts_with("rw")))
    {
        let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let start = u64::from_str_radix(start, 16).unwrap();
        let len = u64::from_str_radix(end, 16).unwrap() - start;
        if line.contains("[vvar") || memory.seek(SeekFrom::Start(start)).is_err() {
            continue;
        }
        // One page at a time through a masked copy: what is read never lies unmasked in two places at once.
        let mut buffer = Vec::new();
        let mut page = [0; 4096];
        for _ in 0..len / 4096 {
            if memory.read_exact(&mut page).is_err() {
                break;
            }
            if page == [0; 4096] {
                // Never touched, and it separates what comes before from what comes after.
                buffer.push(0);
                continue;
            }
            page.iter_mut().for_each(|byte| *byte ^= MASK);
            buffer.extend_from_slice(&page);
            page.zeroize();
        }
        found += buffer
            .windows(NEEDLE)
            .filter(|window| *window == &masked[..NEEDLE])
            .count();
        buffer.zeroize();
    }
    found
}

/// Runs `live` with the unmasked secret and gives back what it made; the unmasked bytes are wiped.
#[inline(never)]
fn with_secret<T>(masked: &[u8; 32], live: impl FnOnce(&[u8; 32]) -> T) -> T {
    let mut secret = Box::new(Zeroizing::new([0; 32]));
    unmask(masked, secret.as_mut_slice());
    live(&secret)
}

fn check<T>(what: &str, make: impl FnOnce(&[u8; 32]) -> T, work: impl FnOnce(&mut T)) {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let masked = masked_secret();
    assert_eq!(copies(&masked), 0, "{what}: the search finds itself");
    let mut made = with_secret(&masked, make);
    assert!(copies(&masked) >= 1, "{what}: the search does not find a live key");
    work(&mut made);
    drop(black_box(made));
    assert_eq!(copies(&masked), 0, "{what}: a copy of the key is left");
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
                    key.open_in_place(nonce(suite).as_bytes(), b"aad", &mut [1; 100], &tag)
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

/// The secret is the key that a derivation gives: found while it lives, gone with it.
#[test]
fn derived_keys() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    for suite in Suite::ALL {
        let mut masked = [0; 32];
        let label = Label::new("wiping", suite, Direction::InitiatorToResponder);
        let traffic = {
            let prk = Prk::extract(Hash::Sha256, b"", &masked_secret());
            prk.traffic(&label).unwrap()
        };
        masked
            .iter_mut()
            .zip(traffic.key())
            .for_each(|(out, byte)| *out = byte ^ MASK);
        assert!(copies(&masked) >= 1);
        let sealer = traffic.into_sealer().unwrap();
        assert!(copies(&masked) >= 1, "{suite}: the sealer holds the key");
        drop(black_box(sealer));
        assert_eq!(copies(&masked), 0, "{suite}: a copy of the key is left");
    }
}
