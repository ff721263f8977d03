//! Replays the kept fuzz corpora of the batch engine, and changed copies of them, through the functions the fuzz targets call.

#![allow(clippy::unwrap_used)]

#[path = "common/fuzzing.rs"]
mod fuzzing;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use fuzzing::ENTRIES;

/// Changed copies made of each input.
const COPIES: u64 = 4;

#[test]
fn every_kept_input_and_changed_copies() {
    for (name, entry) in ENTRIES {
        for (_, bytes) in replay::inputs(name) {
            entry(&bytes);
        }
    }
    replay::changed_copies(ENTRIES, COPIES);
}

#[test]
fn every_corpus_of_ours_has_an_entry() {
    replay::every_corpus_has_an_entry(ENTRIES, &["batch"]);
}
