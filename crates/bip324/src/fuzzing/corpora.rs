//! Replays the kept fuzz corpora, and changed copies of them, through the functions the fuzz targets call.

#[path = "../../../../fuzz/replay.rs"]
mod replay;

use super::ENTRIES;

/// Changed copies made of each input.
const COPIES: u64 = 300;

#[test]
fn every_kept_input_is_handled() {
    for (name, entry) in ENTRIES {
        for (_, bytes) in replay::inputs(name) {
            entry(&bytes);
            for n in (0..bytes.len()).step_by(1 + bytes.len() / 100) {
                entry(&bytes[..n]);
            }
        }
    }
}

#[test]
fn every_changed_input_is_handled() {
    replay::changed_copies(ENTRIES, COPIES);
}

#[test]
fn every_corpus_of_ours_has_an_entry() {
    replay::every_corpus_has_an_entry(ENTRIES, &["bip324_"]);
}
