#![allow(clippy::unwrap_used)]

use super::*;
use crate::result::Num;

#[test]
fn peers_of_the_workload_are_known_to_all() {
    for name in PEERS {
        assert!(workload::PEERS.contains(&name), "{name}");
    }
}
