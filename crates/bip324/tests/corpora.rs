//! Replays the kept fuzz corpora, and changed copies of them.
#![allow(clippy::unwrap_used, unreachable_pub, dead_code)]

#[path = "../../../../fuzz/replay.rs"]
mod replay;

use super::ENTRIES;

replay::tests!(ENTRIES, 100, 300, &["bip324_"]);
