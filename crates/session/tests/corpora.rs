//! Replays the kept fuzz corpus, and changed copies of it, through the function that the fuzz target calls.
#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::random;
use sealway_session::fuzzing::{seeds, session};

/// Changed copies made of each input.
const COPIES: usize = 150;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/session")
}

/// The inputs that are in order stand in the corpus as they are made now. `SEALWAY_UPDATE_GOLDEN=1` writes them.
#[test]
fn the_corpus_has_what_is_in_order() {
    for (name, bytes) in seeds().unwrap() {
        let path = corpus().join(name);
        if std::env::var_os("SEALWAY_UPDATE_GOLDEN").is_some() {
            fs::create_dir_all(corpus()).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        assert!(fs::read(&path).unwrap() == bytes, "{name} is not what is made now");
    }
}

#[test]
fn every_kept_input_is_handled() {
    for file in fs::read_dir(corpus()).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        for n in (0..=bytes.len()).step_by(1 + bytes.len() / 50).chain([bytes.len()]) {
            session(&bytes[..n]);
        }
    }
}

#[test]
fn every_changed_input_is_handled() {
    let inputs: Vec<_> = seeds().unwrap().into_iter().map(|(_, bytes)| bytes).collect();
    let mut random = random(1);
    let mut below = |n: usize| {
        let mut bytes = [0; 8];
        random(&mut bytes);
        (u64::from_le_bytes(bytes) % n.max(1) as u64) as usize
    };
    for original in &inputs {
        for _ in 0..COPIES {
            let mut bytes = original.clone();
            let at = below(bytes.len());
            match below(5) {
                0 => bytes[at] ^= 1 << below(8),
                1 => bytes.insert(at, below(256) as u8),
                2 => drop(bytes.remove(at)),
                3 => bytes[0] = below(256) as u8,
                _ => {
                    let other = &inputs[below(inputs.len())];
                    bytes.truncate(at);
                    bytes.extend_from_slice(&other[below(other.len())..]);
                }
            }
            session(&bytes);
        }
    }
}
