//! Measures records against the bare AEAD, changes of keys against none, and the handshake.
//!
//! `cargo run --release -p sealway-session --example record_speed [records|rekey|handshake]`. Subjects take turns within each
//! round; figures are medians of the rounds, ratios medians of the ratios within a round. On a busy machine the
//! fastest rounds say more, so their ratio is printed beside.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Instant;

use sealway_aead::choose::Offer;
use sealway_aead::derive::{Direction, Hash, Label, Prk};
use sealway_aead::{Opener, Sealer, Suite, Tag};
use sealway_session::handshake::{Auth, Config, Established, Handshake, Kem, PeerKey, Role, StaticKey};
use sealway_session::record::{HEADER_LEN, OVERHEAD, RekeyPolicy, TAG_LEN};

const SUITES: [Suite; 3] = [Suite::Aes256Gcm, Suite::Aes128Gcm, Suite::ChaCha20Poly1305];
const ROUNDS: usize = 21;
/// Bytes that a subject seals, or seals and opens, in its turn.
const TURN: usize = 64 << 20;
/// Bytes of a turn when changes of keys are measured: one happens.
const REKEY_TURN: usize = 1 << 30;
const REKEY_ROUNDS: usize = 31;

/// splitmix64, from a stated seed.
fn random(mut state: u64) -> impl FnMut(&mut [u8]) {
    move |out| {
        for chunk in out.chunks_mut(8) {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            chunk.copy_from_slice(&(z ^ (z >> 31)).to_le_bytes()[..chunk.len()]);
        }
    }
}

fn handshake(suite: Suite, kem: Kem, code: bool, random: &mut dyn FnMut(&mut [u8])) -> (Established, Established) {
    let keys = [Role::Initiator, Role::Responder].map(|_| StaticKey::generate(random));
    let mut end = |role: Role, own: usize| {
        let auth = if code {
            Auth::Code(b"castle-lemon-opera".to_vec().into())
        } else {
            Auth::Keys {
                own: keys[own].clone(),
                peer: PeerKey::Pinned(*keys[1 - own].public()),
            }
        };
        let offer = Offer::new(&[suite], true).unwrap();
        let config = Config {
            role,
            auth,
            offer,
            kem,
            prologue: Vec::new(),
        };
        Handshake::new(config, random).unwrap()
    };
    let (mut here, mut there) = (end(Role::Initiator, 0), end(Role::Responder, 1));
    there.read(&here.write().unwrap()).unwrap();
    here.read(&there.write().unwrap()).unwrap();
    there.read(&here.write().unwrap()).unwrap();
    (here.finish().unwrap(), there.finish().unwrap())
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn fastest(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

/// The bare AEAD, sealing and opening as records do.
fn bare(suite: Suite) -> (Sealer, Opener) {
    let secret = Prk::extract(Hash::Sha256, b"salt", b"secret");
    let label = Label::new("bare", suite, Direction::InitiatorToResponder);
    let traffic = || secret.traffic(&label).unwrap();
    (traffic().into_sealer().unwrap(), traffic().into_opener().unwrap())
}

fn records() {
    println!(
        "{:<20} {:>8} {:>12} {:>12} {:>12} {:>12} {:>8} {:>8} {:>8}",
        "suite", "payload", "bare seal", "seal", "bare both", "both", "seal", "both", "both"
    );
    println!(
        "{:<20} {:>8} {:>12} {:>12} {:>12} {:>12} {:>8} {:>8} {:>8}",
        "", "KiB", "GB/s", "GB/s", "GB/s", "GB/s", "ratio", "ratio", "fastest"
    );
    for suite in SUITES {
        for kib in [16, 64, 256, 1024] {
            let (len, count) = (kib << 10, TURN / (kib << 10));
            let (mut sealer, mut opener) = bare(suite);
            let (mut here, mut there) = handshake(suite, Kem::MlKem768, false, &mut random(1));
            let (mut bare_seal_only, _) = bare(suite);
            let (mut seal_only, _) = handshake(suite, Kem::MlKem768, false, &mut random(2));
            let mut record = vec![0u8; OVERHEAD + len];
            let mut times = [const { Vec::new() }; 4];
            for _ in 0..ROUNDS {
                times[0].push(seconds(|| {
                    for _ in 0..count {
                        let (header, rest) = record.split_at_mut(HEADER_LEN);
                        let (payload, tag) = rest.split_at_mut(len);
                        tag.copy_from_slice(bare_seal_only.seal_in_place(header, payload).unwrap().tag.as_bytes());
                    }
                }));
                times[1].push(seconds(|| {
                    for _ in 0..count {
                        seal_only.send.seal(1, 2, black_box(&mut record)).unwrap();
                    }
                }));
                times[2].push(seconds(|| {
                    for _ in 0..count {
                        let (header, rest) = record.split_at_mut(HEADER_LEN);
                        let (payload, tag) = rest.split_at_mut(len);
                        tag.copy_from_slice(sealer.seal_in_place(header, payload).unwrap().tag.as_bytes());
                        opener
                            .open_in_place(header, payload, &Tag::from_slice(&tag[..TAG_LEN]).unwrap())
                            .unwrap();
                    }
                }));
                times[3].push(seconds(|| {
                    for _ in 0..count {
                        here.send.seal(1, 2, black_box(&mut record)).unwrap();
                        there.recv.open(black_box(&mut record)).unwrap();
                    }
                }));
            }
            let ratio = |a: usize, b: usize| {
                median(&mut times[a].iter().zip(&times[b]).map(|(a, b)| a / b).collect::<Vec<_>>())
            };
            let (seal_ratio, both_ratio) = (ratio(0, 1), ratio(2, 3));
            let best = fastest(&times[2]) / fastest(&times[3]);
            let speed = times.map(|mut times| TURN as f64 / median(&mut times) / 1e9);
            println!(
                "{:<20} {kib:>8} {:>12.2} {:>12.2} {:>12.2} {:>12.2} {seal_ratio:>8.3} {both_ratio:>8.3} {best:>8.3}",
                suite.name(),
                speed[0],
                speed[1],
                speed[2],
                speed[3]
            );
        }
    }
}

fn rekey() {
    const LEN: usize = 256 << 10;
    println!("seal and open, 256 KiB, change of keys every 1 GiB against none");
    println!(
        "{:<20} {:>10} {:>10} {:>8} {:>8}",
        "suite", "off GB/s", "on GB/s", "on/off", "fastest"
    );
    for suite in SUITES {
        let mut record = vec![0u8; OVERHEAD + LEN];
        let mut ends = [RekeyPolicy::NEVER, RekeyPolicy::DEFAULT].map(|policy| {
            let (mut here, there) = handshake(suite, Kem::MlKem768, false, &mut random(1));
            here.send.set_rekey(policy);
            (here, there)
        });
        let mut times = [const { Vec::new() }; 2];
        for round in 0..REKEY_ROUNDS {
            // Who goes first alternates.
            for i in [round % 2, 1 - round % 2] {
                let (here, there) = &mut ends[i];
                times[i].push(seconds(|| {
                    for _ in 0..REKEY_TURN / LEN {
                        here.send.seal(1, 2, black_box(&mut record)).unwrap();
                        there.recv.open(black_box(&mut record)).unwrap();
                    }
                }));
            }
        }
        let turns = (REKEY_ROUNDS * REKEY_TURN) as u64;
        assert_eq!(ends[0].1.recv.epoch(), 0);
        assert_eq!(ends[1].1.recv.epoch(), (turns - 1) >> 30);
        let ratio = median(
            &mut times[0]
                .iter()
                .zip(&times[1])
                .map(|(off, on)| off / on)
                .collect::<Vec<_>>(),
        );
        let best = fastest(&times[0]) / fastest(&times[1]);
        let [off, on] = times.map(|mut times| REKEY_TURN as f64 / median(&mut times) / 1e9);
        println!("{:<20} {off:>10.3} {on:>10.3} {ratio:>8.4} {best:>8.4}", suite.name());
    }
}

fn handshakes() {
    println!("handshake, both ends, without the network:");
    let mut random = random(3);
    let cases = [
        (Kem::MlKem768, false),
        (Kem::MlKem768, true),
        (Kem::MlKem1024, false),
        (Kem::MlKem1024, true),
    ];
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..200 {
        for (times, (kem, code)) in times.iter_mut().zip(cases) {
            times.push(seconds(|| {
                drop(black_box(handshake(Suite::Aes256Gcm, kem, code, &mut random)))
            }));
        }
    }
    for (mut times, (kem, code)) in times.into_iter().zip(cases) {
        let mode = if code { "code" } else { "keys" };
        println!("  {kem}, {mode}: {:.0} us", median(&mut times) * 1e6);
    }
}

fn main() {
    let wanted = std::env::args().nth(1);
    for (name, run) in [
        ("records", records as fn()),
        ("rekey", rekey),
        ("handshake", handshakes),
    ] {
        if wanted.as_deref().is_none_or(|wanted| wanted == name) {
            run();
        }
    }
}
