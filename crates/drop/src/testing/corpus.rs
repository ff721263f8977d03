//! Replays the kept inputs of a fuzz target, and changed copies of them, through the function that the target calls.

use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::TestRunner;

/// The kept inputs of one fuzz target.
pub struct Corpus {
    folder: PathBuf,
    seeds: Vec<(&'static str, Vec<u8>)>,
    run: fn(&[u8]),
}

impl Corpus {
    /// Of the target of this name: `seeds` makes the inputs that are in order, `run` is what the target calls.
    pub fn of(target: &str, seeds: fn() -> Vec<(&'static str, Vec<u8>)>, run: fn(&[u8])) -> Self {
        Self {
            folder: Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../fuzz/corpus")
                .join(target),
            seeds: seeds(),
            run,
        }
    }

    /// The inputs that are in order stand in the corpus as they are made now. `SEALWAY_UPDATE_GOLDEN=1` writes them.
    pub fn has_what_is_in_order(&self) {
        for (name, bytes) in &self.seeds {
            let path = self.folder.join(name);
            if std::env::var_os("SEALWAY_UPDATE_GOLDEN").is_some() {
                fs::create_dir_all(&self.folder).unwrap();
                fs::write(&path, bytes).unwrap();
            }
            assert!(fs::read(&path).unwrap() == *bytes, "{name} is not what is made now");
        }
    }

    /// Each input is handled, and so is each beginning of it.
    pub fn is_handled(&self) {
        for file in fs::read_dir(&self.folder).unwrap() {
            let bytes = fs::read(file.unwrap().path()).unwrap();
            (0..=bytes.len()).for_each(|n| (self.run)(&bytes[..n]));
        }
    }

    /// Each changed copy of an input is handled.
    pub fn is_handled_when_changed(&self) {
        let changes = (
            any::<prop::sample::Index>(),
            prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 0..6),
        );
        let mut runner = TestRunner::new(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::with_cases(4000)
        });
        let tried = runner.run(&changes, |(which, changes)| {
            let mut bytes = which.get(&self.seeds).1.clone();
            for (at, value, how) in changes {
                let at = at.index(bytes.len().max(1));
                match how {
                    0 if at < bytes.len() => bytes[at] = value,
                    1 => bytes.insert(at.min(bytes.len()), value),
                    2 if at < bytes.len() => drop(bytes.remove(at)),
                    _ => bytes.truncate(at),
                }
            }
            (self.run)(&bytes);
            Ok(())
        });
        tried.unwrap();
    }
}
