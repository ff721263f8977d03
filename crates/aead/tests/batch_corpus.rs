//! Replays the kept fuzz corpora of the batch engine, and changed copies of them, through the functions the fuzz targets call.

#![allow(clippy::unwrap_used)]

#[path = "common/fuzzing.rs"]
mod fuzzing;

use std::fs;
use std::path::{Path, PathBuf};

use fuzzing::ENTRIES;

/// Changed copies made of each input.
const COPIES: u64 = 4;

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

fn inputs(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut inputs: Vec<_> = fs::read_dir(corpora().join(name))
        .unwrap_or_else(|error| panic!("{name} has no corpus: {error}"))
        .map(|file| {
            let path = file.unwrap().path();
            let bytes = fs::read(&path).unwrap();
            (path, bytes)
        })
        .collect();
    inputs.sort();
    inputs
}

/// A generator of fixed numbers (SplitMix64), so that a failure comes again.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// Changes a few bytes, cuts, or joins the head of one input to the tail of another.
fn changed(original: &[u8], other: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..=numbers.below(4) {
        let at = numbers.below(bytes.len());
        match numbers.below(5) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << numbers.below(8),
            1 if !bytes.is_empty() => bytes[at] = numbers.next() as u8,
            2 => bytes.insert(at, numbers.next() as u8),
            3 => bytes.truncate(at),
            _ => {
                bytes.truncate(at);
                bytes.extend_from_slice(&other[numbers.below(other.len())..]);
            }
        }
    }
    bytes
}

#[test]
fn every_kept_input_and_changed_copies() {
    for (name, entry) in ENTRIES {
        let inputs = inputs(name);
        assert!(!inputs.is_empty(), "the corpus of {name} is empty");
        let mut numbers = Numbers(1);
        for (path, bytes) in &inputs {
            entry(bytes);
            for copy in 0..COPIES {
                let other = &inputs[numbers.below(inputs.len())].1;
                let bytes = changed(bytes, other, &mut numbers);
                let outcome = std::panic::catch_unwind(|| entry(&bytes));
                assert!(
                    outcome.is_ok(),
                    "{name}: copy {copy} of {}: {bytes:02x?}",
                    path.display()
                );
            }
        }
    }
}

/// A corpus without an entry would be replayed by nobody.
#[test]
fn every_corpus_of_ours_has_an_entry() {
    for folder in fs::read_dir(corpora()).unwrap() {
        let name = folder.unwrap().file_name().into_string().unwrap();
        if name.starts_with("batch") {
            assert!(ENTRIES.iter().any(|(entry, _)| *entry == name), "{name}");
        }
    }
}
