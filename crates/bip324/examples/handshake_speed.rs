//! Measures what a connection costs once: making a key, agreeing, and the whole handshake of both ends without a network.
//!
//! `cargo run --release -p sealway-bip324 --example handshake_speed`. The fastest and the median of 400 turns; the first key of a
//! process, which sets up tables, is left out.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Instant;

use sealway_bip324::{Connection, LocalKey, Magic, Options, Role};

const TURNS: usize = 400;

/// Bytes that differ from call to call. No randomness: this is a measurement.
fn bytes(n: usize) -> [u8; 32] {
    std::array::from_fn(|i| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(i as u32 * 2) >> 17) as u8)
}

fn key(n: usize) -> LocalKey {
    LocalKey::new(&bytes(2 * n + 1), &bytes(2 * n + 2)).unwrap()
}

fn measure(what: &str, mut turn: impl FnMut(usize) -> f64) {
    let mut times: Vec<f64> = (0..TURNS).map(&mut turn).collect();
    times.sort_by(f64::total_cmp);
    println!(
        "{what:34} fastest {:6.1} us, median {:6.1} us",
        times[0],
        times[TURNS / 2]
    );
}

fn timed<T>(work: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    black_box(work());
    start.elapsed().as_secs_f64() * 1e6
}

/// Both ends, from their keys to where messages can go both ways.
fn shake_hands(a: LocalKey, b: LocalKey) -> [u8; 32] {
    let mut here = Connection::initiator(Magic::MAINNET, a, Options::default()).unwrap();
    let mut there = Connection::responder(Magic::MAINNET, b, Options::default()).unwrap();
    while !(here.is_established() && there.is_established()) {
        let n = there.handle_input(here.output()).unwrap();
        here.advance_output(n);
        let n = here.handle_input(there.output()).unwrap();
        there.advance_output(n);
    }
    assert_eq!(here.session_id(), there.session_id());
    *here.session_id().unwrap()
}

fn main() {
    let _tables = key(0);
    measure("a key", |n| timed(|| key(n)));
    let theirs = *key(7).encoding();
    measure("an agreement with its key schedule", |n| {
        let key = key(n);
        timed(|| key.agree(&theirs, Role::Initiator, Magic::MAINNET).unwrap())
    });
    measure("a handshake, both ends, keys ready", |n| {
        let (a, b) = (key(n), key(n + TURNS));
        timed(|| shake_hands(a, b))
    });
    measure("a handshake, both ends, with keys", |n| {
        timed(|| shake_hands(key(n), key(n + TURNS)))
    });
}
