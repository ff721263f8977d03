//! The kept corpora, replayed with changed copies through the functions that the fuzz targets call. The tests of several crates take
//! this file in by its path; the fuzz targets do not use it.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

/// The name of a target and of its corpus, and the function that it calls.
pub type Entry = (&'static str, fn(&[u8]));

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

/// The inputs of a corpus.
pub fn inputs(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = fs::read_dir(corpora().join(name)).unwrap_or_else(|error| panic!("{name} has no corpus: {error}"));
    let mut files: Vec<_> = folder.map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "the corpus of {name} is empty");
    let read = |file: PathBuf| {
        let bytes = fs::read(&file).unwrap();
        (file, bytes)
    };
    files.into_iter().map(read).collect()
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
        match numbers.below(7) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << numbers.below(8),
            1 if !bytes.is_empty() => bytes[at] = numbers.next() as u8,
            2 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'\r', b'\n', b' '][numbers.below(8)],
            3 if !bytes.is_empty() => drop(bytes.remove(at)),
            4 => bytes.insert(at, numbers.next() as u8),
            5 => bytes.truncate(at),
            _ => {
                bytes.truncate(at);
                bytes.extend_from_slice(&other[numbers.below(other.len())..]);
            }
        }
    }
    bytes
}

/// Gives each entry so many changed copies of each of its inputs.
pub fn changed_copies(entries: &[Entry], copies: u64) {
    for (name, entry) in entries {
        let inputs = inputs(name);
        let mut numbers = Numbers(1);
        for (path, bytes) in &inputs {
            for copy in 0..copies {
                let other = &inputs[numbers.below(inputs.len())].1;
                let bytes = changed(bytes, other, &mut numbers);
                let outcome = catch_unwind(|| entry(&bytes));
                let path = path.display();
                assert!(outcome.is_ok(), "{name}: copy {copy} of {path}: {bytes:02x?}");
            }
        }
    }
}

/// Sees that each corpus whose name begins so has an entry: without one nobody would replay it.
pub fn every_corpus_has_an_entry(entries: &[Entry], starts: &[&str]) {
    for folder in fs::read_dir(corpora()).unwrap() {
        let name = folder.unwrap().file_name().into_string().unwrap();
        if starts.iter().any(|start| name.starts_with(start)) {
            assert!(entries.iter().any(|(entry, _)| *entry == name), "{name}");
        }
    }
}
