//! Replays the kept fuzz corpora, and changed copies of them. Entries and corpora lie elsewhere: a package of the crate has neither
//! the corpora nor this test. A program of its own: the entries take what they name from its root.
#![cfg(feature = "std")]
#![allow(clippy::unwrap_used, unreachable_pub, dead_code)]

#[path = "../src/fuzzing.rs"]
mod fuzzing;
#[path = "../../../fuzz/replay.rs"]
mod replay;

// What the entries take from the root of the crate.
use sealway_bip324::{
    Connection, Error, Event, Fault, Kind, LocalKey, Magic, Options, PacketOpener, PacketSealer, Role, batch, fschacha,
    message,
};

replay::tests!(fuzzing::ENTRIES, 100, 300, &["bip324_"]);
