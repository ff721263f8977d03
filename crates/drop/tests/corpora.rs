//! Replays the kept fuzz corpus, and changed copies of it, through the function that the fuzz target calls.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use sealway_drop::fuzzing::{run, seeds};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/drop")
}

/// The inputs that are in order stand in the corpus as they are made now. `SEALWAY_UPDATE_GOLDEN=1` writes them.
#[test]
fn the_corpus_has_what_is_in_order() {
    for (name, bytes) in seeds() {
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
        (0..=bytes.len()).for_each(|n| run(&bytes[..n]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_changed_input_is_handled(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 0..6),
    ) {
        let seeds = seeds();
        let mut bytes = which.get(&seeds).1.clone();
        for (at, value, how) in changes {
            let at = at.index(bytes.len().max(1));
            match how {
                0 if at < bytes.len() => bytes[at] = value,
                1 => bytes.insert(at.min(bytes.len()), value),
                2 if at < bytes.len() => drop(bytes.remove(at)),
                _ => bytes.truncate(at),
            }
        }
        run(&bytes);
    }
}
