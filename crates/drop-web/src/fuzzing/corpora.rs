//! Replays the kept fuzz corpus, and changed copies of it.
#![allow(clippy::unwrap_used, unreachable_pub, dead_code)]

#[path = "../../../../fuzz/replay.rs"]
mod replay;

use super::{ENTRIES, seeds};

#[test]
fn the_corpus_has_what_is_in_order() {
    replay::seeds("drop_web", &seeds());
}

#[test]
fn every_kept_input_is_handled() {
    replay::kept(ENTRIES, usize::MAX);
}

#[test]
fn every_changed_input_is_handled() {
    replay::changed_copies(ENTRIES, 1000);
}
