//! Replays the kept fuzz corpora, and changed copies of them, through the functions the fuzz targets call.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use super::ENTRIES;

/// Changed copies made of each input.
const COPIES: u64 = 300;

/// Numbers that are the same every time.
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

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

fn inputs(name: &str) -> Vec<Vec<u8>> {
    let folder = fs::read_dir(corpora().join(name)).unwrap_or_else(|error| panic!("{name} has no corpus: {error}"));
    let mut files: Vec<_> = folder.map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "the corpus of {name} is empty");
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

#[test]
fn every_kept_input_is_handled() {
    for (name, entry) in ENTRIES {
        for bytes in inputs(name) {
            entry(&bytes);
            for n in (0..bytes.len()).step_by(1 + bytes.len() / 100) {
                entry(&bytes[..n]);
            }
        }
    }
}

fn changed(original: &[u8], other: &[u8], numbers: &mut Numbers) -> Vec<u8> {
    let mut bytes = original.to_vec();
    for _ in 0..=numbers.below(3) {
        let at = numbers.below(bytes.len());
        match numbers.below(5) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << numbers.below(8),
            1 => bytes.insert(at, numbers.next() as u8),
            2 if !bytes.is_empty() => drop(bytes.remove(at)),
            3 => bytes.truncate(at),
            _ => {
                let from = numbers.below(other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
        }
    }
    bytes
}

#[test]
fn every_changed_input_is_handled() {
    for (name, entry) in ENTRIES {
        let inputs = inputs(name);
        let mut numbers = Numbers(1);
        for (place, bytes) in inputs.iter().enumerate() {
            for copy in 0..COPIES {
                let other = &inputs[numbers.below(inputs.len())];
                let bytes = changed(bytes, other, &mut numbers);
                let outcome = std::panic::catch_unwind(|| entry(&bytes));
                assert!(outcome.is_ok(), "{name}: copy {copy} of input {place}: {bytes:02x?}");
            }
        }
    }
}

/// A corpus without an entry would be replayed by nobody.
#[test]
fn every_corpus_of_ours_has_an_entry() {
    for folder in fs::read_dir(corpora()).unwrap() {
        let name = folder.unwrap().file_name().into_string().unwrap();
        if name.starts_with("bip324_") {
            assert!(ENTRIES.iter().any(|(entry, _)| *entry == name), "{name}");
        }
    }
}
