//! Replays the kept corpora, and changed copies of them, through the entries of the fuzz targets, on any compiler. Each
//! crate's tests take this file in by its path.

use std::fs;
use std::path::{Path, PathBuf};

/// An entry: its name, which is also that of its fuzz target and corpus, and the function.
type Entry = (&'static str, fn(&[u8]));

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

fn inputs(name: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = fs::read_dir(corpora().join(name)).unwrap_or_else(|error| panic!("{name} has no corpus: {error}"));
    let mut files: Vec<_> = folder.map(|file| file.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "the corpus of {name} is empty");
    files
        .into_iter()
        .map(|file| (file.clone(), fs::read(file).unwrap()))
        .collect()
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
        match numbers.below(8) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << numbers.below(8),
            1 if !bytes.is_empty() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, b'\r', b'\n', b' '][numbers.below(8)],
            2 if !bytes.is_empty() => bytes[at] = numbers.next() as u8,
            // Of many inputs the first byte says what the rest is for.
            3 if !bytes.is_empty() => bytes[0] = numbers.next() as u8,
            4 => bytes.insert(at, numbers.next() as u8),
            5 if !bytes.is_empty() => drop(bytes.remove(at)),
            6 => bytes.truncate(at),
            _ => {
                bytes.truncate(at);
                bytes.extend_from_slice(&other[numbers.below(other.len())..]);
            }
        }
    }
    bytes
}

/// Gives each entry every input of its corpus, and at most `cuts` shorter beginnings of it.
pub fn kept(entries: &[Entry], cuts: usize) {
    for (name, entry) in entries {
        for (_, bytes) in inputs(name) {
            entry(&bytes);
            for n in (0..bytes.len()).step_by(1 + bytes.len() / cuts.max(1)).take(cuts) {
                entry(&bytes[..n]);
            }
        }
    }
}

/// Gives each entry changed copies of every input of its corpus.
pub fn changed_copies(entries: &[Entry], copies: u64) {
    for (name, entry) in entries {
        let inputs = inputs(name);
        let mut numbers = Numbers(1);
        for (path, bytes) in &inputs {
            for copy in 0..copies {
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

/// Fails on a corpus that begins with one of `names` and has no entry: nobody would replay it.
pub fn every_corpus_has_an_entry(entries: &[Entry], names: &[&str]) {
    for folder in fs::read_dir(corpora()).unwrap() {
        let name = folder.unwrap().file_name().into_string().unwrap();
        if names.iter().any(|start| name.starts_with(start)) {
            assert!(entries.iter().any(|(entry, _)| *entry == name), "{name}");
        }
    }
}

/// The tests of a crate: of its entries, with so many shorter beginnings and changed copies of each input, and of the corpora whose
/// names begin like these.
#[allow(unused_macros, reason = "some have tests of their own")]
macro_rules! tests {
    ($entries:expr, $cuts:expr, $copies:expr, $names:expr) => {
        #[test]
        fn every_kept_input_is_handled() {
            replay::kept($entries, $cuts);
        }

        #[test]
        fn every_changed_input_is_handled() {
            replay::changed_copies($entries, $copies);
        }

        #[test]
        fn every_corpus_of_ours_has_an_entry() {
            replay::every_corpus_has_an_entry($entries, $names);
        }
    };
}
#[allow(unused_imports, reason = "some have tests of their own")]
pub(crate) use tests;

/// Compares inputs that are made with those that are kept. `SEALWAY_UPDATE_GOLDEN=1` writes them.
pub fn seeds(name: &str, seeds: &[(&str, Vec<u8>)]) {
    for (file, bytes) in seeds {
        let path = corpora().join(name).join(file);
        if std::env::var_os("SEALWAY_UPDATE_GOLDEN").is_some() {
            fs::create_dir_all(corpora().join(name)).unwrap();
            fs::write(&path, bytes).unwrap();
        }
        assert!(
            fs::read(&path).unwrap() == *bytes,
            "{name}/{file} is not what is made now"
        );
    }
}
