//! Replays the kept fuzz corpora, and changed copies of them.
#![allow(clippy::unwrap_used, unreachable_pub, dead_code)]

#[path = "../../../../fuzz/replay.rs"]
mod replay;

use super::{ENTRIES, seeds};

#[test]
fn the_corpora_have_what_is_in_order() {
    for (target, _) in ENTRIES {
        let own: Vec<_> = seeds()
            .into_iter()
            .filter(|(of, ..)| of == target)
            .map(|(_, name, bytes)| (name, bytes))
            .collect();
        replay::seeds(target, &own);
    }
}

#[test]
fn every_kept_input_is_handled() {
    replay::kept(ENTRIES, usize::MAX);
}

#[test]
fn every_changed_input_is_handled() {
    replay::changed_copies(ENTRIES, 1000);
}
