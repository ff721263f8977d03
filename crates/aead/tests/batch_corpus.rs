//! Replays the kept fuzz corpora of the batch engine, and changed copies of them, through the functions the fuzz targets call.
#![allow(clippy::unwrap_used, unreachable_pub, dead_code)]

#[path = "common/fuzzing.rs"]
mod fuzzing;
#[path = "../../../fuzz/replay.rs"]
mod replay;

use fuzzing::ENTRIES;

#[test]
fn every_kept_input_and_changed_copies() {
    replay::kept(ENTRIES, 0);
    replay::changed_copies(ENTRIES, 5);
}

#[test]
fn every_corpus_of_ours_has_an_entry() {
    replay::every_corpus_has_an_entry(ENTRIES, &["batch"]);
}
