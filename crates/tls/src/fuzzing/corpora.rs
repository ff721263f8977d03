//! Replays the kept fuzz corpora, and changed copies of them.
#![allow(clippy::unwrap_used, unreachable_pub, dead_code)]

#[path = "../../../../fuzz/replay.rs"]
mod replay;

use super::ENTRIES;

#[test]
fn every_kept_input_is_handled() {
    replay::kept(ENTRIES, 40);
}

#[test]
fn every_changed_input_is_handled() {
    replay::changed_copies(ENTRIES, 100);
}

#[test]
fn every_corpus_of_ours_has_an_entry() {
    replay::every_corpus_has_an_entry(ENTRIES, &["tls13_"]);
}
