//! Replays the kept fuzz corpora of the batch engine, and changed copies of them, through the functions the fuzz targets call.

use crate::fuzzing::ENTRIES;
use crate::replay;

#[test]
fn every_kept_input_and_changed_copies() {
    replay::kept(ENTRIES, 0);
    replay::changed_copies(ENTRIES, 5);
}

#[test]
fn every_corpus_of_ours_has_an_entry() {
    replay::every_corpus_has_an_entry(ENTRIES, &["batch"]);
}
