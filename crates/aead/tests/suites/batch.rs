//! Batches: every backend against the one-message calls of another library, every shape of batch.

mod corpus;
mod rules;
mod wycheproof;

use sealway_aead::batch::{Backend, Engine, Job, Keys, Memory, Slot, Status};
use sealway_aead::{Nonce, Suite};

use crate::common::random_bytes;
use crate::messages::{Message, check, engines, layout, message};

#[test]
fn every_length_to_1100_at_every_alignment() {
    for direction in [false, true] {
        let messages: Vec<_> = (0..=1100)
            .map(|len| message(Suite::ChaCha20Poly1305, len, 0, len as u64, direction))
            .collect();
        for mut engine in engines() {
            for shift in 0..16 {
                // Lengths and alignments meet in every combination over the sixteen rounds.
                check(&mut engine, &messages, shift % 2 == 0, |i| i + shift);
                check(&mut engine, &messages, shift % 2 == 1, |i| i + shift);
            }
        }
    }
}

/// One message alone takes other paths than the same among many.
#[test]
fn every_length_to_1100_alone() {
    for len in 0..=1100 {
        for opens in [false, true] {
            let one = [message(Suite::ChaCha20Poly1305, len, len % 35, len as u64, opens)];
            for mut engine in engines() {
                check(&mut engine, &one, len % 2 == 0, |_| len);
            }
        }
    }
}

#[test]
fn long_messages() {
    for len in [
        1983, 1984, 1985, 2047, 2048, 2049, 3007, 3008, 3009, 4095, 4096, 4097, 8191, 8192, 16_384, 16_385, 65_535,
        65_536, 65_537, 1_048_577,
    ] {
        for opens in [false, true] {
            let one = [message(Suite::ChaCha20Poly1305, len, 13, len as u64, opens)];
            for mut engine in engines() {
                for in_place in [false, true] {
                    check(&mut engine, &one, in_place, |_| len / 3);
                }
            }
        }
    }
}

/// Lengths of the mix that packets of a relay have.
fn mixed(count: usize, seed: u64) -> Vec<Message> {
    let suites = [
        Suite::ChaCha20Poly1305,
        Suite::ChaCha20Poly1305,
        Suite::XChaCha20Poly1305,
        Suite::ChaCha20Poly1305,
        Suite::Aes128Gcm,
        Suite::ChaCha20Poly1305,
        Suite::Aes256Gcm,
    ];
    let dice = random_bytes(4 * count, seed);
    (0..count)
        .map(|i| {
            let d = &dice[4 * i..4 * i + 4];
            let span = usize::from(d[1]) << 8 | usize::from(d[2]);
            let len = match d[0] % 10 {
                0..=3 => span % 33,
                4..=6 => 33 + span % 96,
                7..=8 => 129 + span % 384,
                _ => 513 + span % 3584,
            };
            let aad = if d[3].is_multiple_of(4) {
                usize::from(d[3] / 4)
            } else {
                0
            };
            message(
                suites[i % suites.len()],
                len,
                aad,
                seed + i as u64,
                d[3].is_multiple_of(2),
            )
        })
        .collect()
}

#[test]
fn every_size_of_batch() {
    for mut engine in engines() {
        for count in [0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 255, 1025, 4096] {
            for in_place in [false, true] {
                check(&mut engine, &mixed(count, count as u64), in_place, |i| i * 7);
            }
        }
    }
}

#[test]
fn a_hundred_thousand_jobs() {
    // Made by the portable backend, which other tests tie to an independent library: this one is about size.
    let suite = Suite::ChaCha20Poly1305;
    let count = 100_000;
    let mut keys = Keys::with_slots(1);
    keys.set(Slot(0), suite, &[9; 32]).unwrap();
    let len = |i: usize| (i * 31) % 90;
    let mut jobs = Vec::new();
    let (mut from, mut to) = (0u32, 0u32);
    for i in 0..count {
        let nonce: Vec<u8> = (i as u128).to_le_bytes()[..12].to_vec();
        let n = len(i) as u32;
        jobs.push(Job::seal(
            Slot(0),
            Nonce::assume_unique(suite, &nonce).unwrap(),
            from..from + n,
            to,
        ));
        from += n;
        to += n + 16;
    }
    let src = random_bytes(from as usize, 4);
    let mut results = Backend::available().map(|backend| {
        let mut dst = vec![0; to as usize];
        let mut statuses = vec![Status::Failed; count];
        let memory = Memory::Separate {
            src: &src,
            dst: &mut dst,
        };
        Engine::with_backend(backend)
            .run(&keys, &jobs, memory, &[], &mut statuses)
            .unwrap();
        assert!(statuses.iter().all(|&s| s == Status::Done));
        dst
    });
    let first = results.next().unwrap();
    assert!(results.all(|other| other == first));
}

#[test]
fn sorted_reversed_and_one_giant_among_dwarves() {
    let suite = Suite::ChaCha20Poly1305;
    let mut messages: Vec<_> = (0..200)
        .map(|i| message(suite, i * 5, i % 3 * 8, i as u64, i % 2 == 0))
        .collect();
    for mut engine in engines() {
        check(&mut engine, &messages, true, |i| i);
    }
    messages.reverse();
    for mut engine in engines() {
        check(&mut engine, &messages, false, |i| i);
    }
    messages.insert(57, message(suite, 16 << 20, 5, 99, false));
    messages.insert(120, message(suite, (16 << 20) + 3, 0, 98, true));
    for mut engine in engines() {
        check(&mut engine, &messages, true, |i| i);
    }
}

/// However a batch is cut, the bytes are the same.
#[test]
fn cutting_a_batch_changes_nothing() {
    let messages = mixed(600, 5);
    for mut engine in engines() {
        for step in [1, 2, 15, 16, 17, 100] {
            let mut l = layout(&messages, false, |i| i);
            let mut statuses = vec![Status::Failed; messages.len()];
            for (jobs, statuses) in l.jobs.chunks(step).zip(statuses.chunks_mut(step)) {
                let memory = Memory::Separate {
                    src: &l.src,
                    dst: &mut l.dst,
                };
                engine.run(&l.keys, jobs, memory, &l.aad, statuses).unwrap();
            }
            assert!(l.dst == l.want, "{} in steps of {step}", engine.backend());
        }
    }
}

/// A flaw in any field fails its own job, zeroes its own output, and nothing else.
#[test]
fn tampering_is_found_and_contained() {
    for mut engine in engines() {
        for in_place in [false, true] {
            for flaw in 0..5 {
                let messages: Vec<_> = (0..60)
                    .map(|i| message(Suite::ALL[i % 4], 1 + i * 41, 1 + i % 20, i as u64, i % 5 != 0))
                    .collect();
                let mut l = layout(&messages, in_place, |i| i);
                let mut bad = Vec::new();
                for (i, m) in messages.iter().enumerate().filter(|(i, m)| m.opens && i % 3 == 0) {
                    let slot = Slot(i as u32);
                    let (start, to) = (l.jobs[i].input_offset(), l.jobs[i].output_offset());
                    let text = if in_place { &mut l.dst } else { &mut l.src };
                    match flaw {
                        0 => text[start + i % m.plain.len()] ^= 1 << (i % 8),
                        1 => text[start + m.plain.len() + i % 16] ^= 1 << (i % 8),
                        2 => {
                            let mut key = m.key.clone();
                            key[i % 16] ^= 0x40;
                            l.keys.set(slot, m.suite, &key).unwrap();
                        }
                        3 | 4 => {
                            let range = start as u32..(start + m.sealed.len()) as u32;
                            let before = messages[..i].iter().map(|m| m.aad.len()).sum::<usize>();
                            let mut nonce = m.nonce.clone();
                            // A byte less of associated data, or another nonce.
                            let mut aad = before as u32..(before + m.aad.len()) as u32;
                            if flaw == 3 {
                                aad.end -= 1;
                            } else {
                                nonce[i % 12] ^= 2;
                            }
                            l.jobs[i] = Job::open(slot, &nonce, range, to as u32).unwrap().with_aad(aad);
                        }
                        _ => unreachable!(),
                    }
                    bad.push(i);
                }
                assert!(bad.len() > 10);
                for &i in &bad {
                    let at = l.jobs[i].output_offset();
                    l.want[at..at + messages[i].plain.len()].fill(0);
                    if in_place && flaw == 1 {
                        // The flawed tag stays where it came in.
                        let tag = at + messages[i].plain.len();
                        l.want[tag..tag + 16].copy_from_slice(&l.dst[tag..tag + 16]);
                    }
                }
                l.check_refused(&mut engine, in_place, &bad, &format!("flaw {flaw}"));
            }
        }
    }
}

/// Long messages among enough others that they share lanes, up to where each goes on its own.
#[test]
fn long_messages_among_others() {
    let lengths = [
        4095, 16, 4096, 0, 4097, 8191, 8192, 65_535, 3, 65_536, 65_537, 1_048_577,
    ];
    for direction in [0, 1] {
        let messages: Vec<_> = lengths
            .iter()
            .enumerate()
            .map(|(i, len)| {
                let suite = Suite::ALL[2 + i % 2];
                message(suite, *len, i * 3, *len as u64, i % 2 == direction)
            })
            .collect();
        for mut engine in engines() {
            for in_place in [false, true] {
                check(&mut engine, &messages, in_place, |i| 5 * i);
            }
        }
    }
}

/// A key that is replaced, by one of another suite or of the same, seals nothing more, however often it was used alone.
#[test]
fn lone_messages_follow_the_key_of_their_slot() {
    let suites = [
        Suite::ChaCha20Poly1305,
        Suite::ChaCha20Poly1305,
        Suite::Aes128Gcm,
        Suite::XChaCha20Poly1305,
        Suite::ChaCha20Poly1305,
    ];
    for mut engine in engines() {
        let mut keys = Keys::with_slots(2);
        for (n, suite) in suites.into_iter().enumerate() {
            for (times, opens) in [(0, false), (1, true), (2, false), (3, true)] {
                let m = message(suite, 70 + times, 0, n as u64, opens);
                let job = if opens {
                    Job::open(Slot(1), &m.nonce, 0..m.sealed.len() as u32, 0).unwrap()
                } else {
                    let nonce = Nonce::assume_unique(suite, &m.nonce).unwrap();
                    Job::seal(Slot(1), nonce, 0..m.plain.len() as u32, 0)
                };
                let (src, want) = if opens {
                    (&m.sealed, &m.plain)
                } else {
                    (&m.plain, &m.sealed)
                };
                if times == 0 {
                    keys.set(Slot(1), suite, &m.key).unwrap();
                }
                let mut dst = vec![0; want.len()];
                let memory = Memory::Separate { src, dst: &mut dst };
                let report = engine.run(&keys, &[job], memory, &[], &mut [Status::Failed]).unwrap();
                assert_eq!((report.done, &dst), (1, want), "{} {n} {times}", engine.backend());
            }
        }
        keys.clear(Slot(1)).unwrap();
        let job = Job::open(Slot(1), &[0; 12], 0..16, 0).unwrap();
        let memory = Memory::InPlace(&mut [0; 16]);
        assert!(engine.run(&keys, &[job], memory, &[], &mut [Status::Failed]).is_err());
    }
}

/// Slots that share the place for a kept key, 256 and 512 apart, in all orders: each message under the key of its own slot.
#[test]
fn lone_messages_of_slots_that_share_a_place() {
    let suite = Suite::ChaCha20Poly1305;
    for mut engine in engines() {
        let mut keys = Keys::with_slots(600);
        let slots = [5, 261, 517, 6];
        let messages = [0, 1, 2, 3].map(|number| message(suite, 70, 0, number, true));
        for (which, slot) in slots.into_iter().enumerate() {
            keys.set(Slot(slot), suite, &messages[which].key).unwrap();
        }
        for (times, which) in [0, 0, 0, 1, 1, 0, 1, 2, 2, 2, 3, 3, 2, 0, 0].into_iter().enumerate() {
            let m = &messages[which];
            let job = Job::open(Slot(slots[which]), &m.nonce, 0..m.sealed.len() as u32, 0).unwrap();
            let mut dst = vec![0; m.plain.len()];
            let memory = Memory::Separate {
                src: &m.sealed,
                dst: &mut dst,
            };
            let report = engine.run(&keys, &[job], memory, &[], &mut [Status::Failed]).unwrap();
            assert_eq!((report.done, &dst), (1, &m.plain), "{} {times}", engine.backend());
        }
    }
}

/// AES-GCM by itself goes through the library in order: what fails among it is told by its number, wherever it stands.
#[test]
fn gcm_alone_with_forged_ones_between() {
    for in_place in [false, true] {
        for forged in [&[0][..], &[3, 4, 29], &[]] {
            let messages: Vec<_> = (0..30)
                .map(|i| message(Suite::ALL[i % 2], 100 * i % 331, i, i as u64, i % 3 != 1))
                .collect();
            let mut l = layout(&messages, in_place, |i| i);
            let forged: Vec<_> = forged.iter().copied().filter(|i| messages[*i].opens).collect();
            for &i in &forged {
                l.forge(i, messages[i].plain.len(), in_place);
            }
            let report = l.check_refused(&mut Engine::new(), in_place, &forged, "");
            assert_eq!((report.cipher.offered, report.mac.offered), (0, 0));
        }
    }
}
