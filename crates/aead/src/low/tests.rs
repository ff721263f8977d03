//! Kernels against the oracle where the public calls do not reach: counters at the edges of 32 bits, extreme
//! authenticator keys and texts, odd places.

use crate::batch::Backend;
use crate::low::{KeyWords, Keyring, MacRecord, Memory, Task, Text, Use, portable, single};

fn key(seed: u32) -> KeyWords {
    KeyWords(std::array::from_fn(|i| {
        seed.wrapping_mul(0x9e37_79b9).rotate_left(i as u32) ^ i as u32
    }))
}

fn random_bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        })
        .collect()
}

fn task(counter: u32, src: u32, dst: u32, len: u32, key: u32) -> Task {
    Task {
        nonce: [counter, 7, u32::MAX, key],
        src,
        dst,
        len,
        key,
        job: 0,
        way: Use::Seal,
    }
}

/// Blocks whose counters pass 2^31 and wrap at 2^32 within one group of lanes, at every place in it.
#[test]
fn counters_at_the_edges_of_32_bits() {
    let keys: Vec<_> = (0..3).map(key).collect();
    let ring = Keyring {
        resident: &keys,
        derived: &[],
    };
    let src = random_bytes(1 << 16, 1);
    // Miri is some thousand times slower: it looks at memory, not at numbers.
    let places = if cfg!(miri) { 9..10 } else { 0..20 };
    for edge in [0, 1 << 31, u32::MAX, u32::MAX - 7] {
        for before in places.clone() {
            let counter = edge.wrapping_sub(before);
            let tasks = [
                task(counter, 0, 0, 1500, 0),
                task(counter.wrapping_add(5), 1500, 1516, 3000, 1),
                task(counter, 4500, 4532, 64 * 17 + 3, 2),
            ];
            let run = |backend: Backend| {
                let mut dst = vec![0; 6000];
                let mut memory = Memory::Separate {
                    src: &src,
                    dst: &mut dst,
                };
                backend.xor(&mut memory, ring, &tasks);
                let mut records = [MacRecord::default(); 3];
                backend.one_time_keys(ring, &tasks, &mut records);
                (dst, records.map(|record| (record.r, record.s)))
            };
            let want = run(Backend::Portable);
            for backend in Backend::available() {
                assert!(run(backend) == want, "{backend} counter {counter:#x}");
            }
        }
    }
}

/// The kernels for one message, with counters that wrap, both directions, in and out of place.
#[test]
fn one_message_against_the_oracle() {
    for how in single::Single::available() {
        one_message(how);
    }
}

fn one_message(how: single::Single) {
    let key = key(5);
    let lengths = (0..1100)
        .chain((1900..2200).step_by(7))
        .chain((2900..3200).step_by(13))
        .chain((4060..4130).step_by(5))
        .chain((5900..6300).step_by(13))
        .chain((8000..8300).step_by(19))
        .chain([4095, 4096, 4097, 16_384, 65_537]);
    for (i, len) in lengths.enumerate() {
        let nonce = [0u32.wrapping_sub((i % 40) as u32), 1, 2, 3];
        let aad = random_bytes(if i % 50 == 0 { 700 } else { i % 33 }, 9);
        let start = i % 64;
        let plain = random_bytes(len, i as u64);
        for way in [Use::Seal, Use::Open] {
            let mut want = plain.clone();
            let tag = portable::one(&key, &nonce, &aad, &mut Text::in_place(&mut want), way);
            let mut room = vec![0xee; start + len + 64];
            room[start..start + len].copy_from_slice(&plain);
            let made = single::one(
                how,
                &key,
                &nonce,
                &aad,
                &mut Text::in_place(&mut room[start..start + len]),
                way,
            );
            assert_eq!(made, tag, "{how:?} {way:?} {len}");
            assert!(room[start..start + len] == want, "{how:?} {way:?} {len} in place");
            assert!(room[..start].iter().chain(&room[start + len..]).all(|&b| b == 0xee));
            room.fill(0xee);
            let made = single::one(
                how,
                &key,
                &nonce,
                &aad,
                &mut Text::separate(&plain, &mut room[start..start + len]),
                way,
            );
            assert_eq!(made, tag, "{how:?} {way:?} {len}");
            assert!(room[start..start + len] == want, "{how:?} {way:?} {len} out of place");
            assert!(room[..start].iter().chain(&room[start + len..]).all(|&b| b == 0xee));
        }
    }
}

/// Authenticators with the largest and smallest r, s, accumulator and text: every carry there is. Together and one by one,
/// since a message among its like and a message alone take different paths.
#[test]
fn extreme_authenticators() {
    let full = portable::CLAMP;
    let rs = [
        full,
        [0, 0],
        [1, 0],
        [4, 0],
        [0, 4],
        [full[0], 0],
        [0, full[1]],
        [3, full[1]],
    ];
    let ends = [[0, 0], [u64::MAX, u64::MAX], [u64::MAX, 0]];
    let starts = [
        [0; 3],
        [(1 << 44) - 1, (1 << 44) - 1, (1 << 42) - 1],
        [(1 << 44) - 1, 1 << 44, (1 << 42) - 1],
    ];
    const TASKS: usize = if cfg!(miri) { 13 } else { 150 };
    let tasks: Vec<_> = (0..TASKS as u32).map(|i| task(0, 0, 0, i * 31, 0)).collect();
    let order: Vec<u32> = (0..TASKS as u32).rev().collect();
    let fills: &[u8] = if cfg!(miri) { &[0xfb] } else { &[0xff, 0x00, 0xfb, 0x80] };
    for &fill in fills {
        let mut arena = vec![fill; 5000];
        let memory = Memory::InPlace(&mut arena);
        for shift in 0..rs.len() {
            let records: Vec<_> = (0..TASKS)
                .map(|i| MacRecord {
                    r: rs[(i + shift) % rs.len()],
                    s: ends[i % ends.len()],
                    h: starts[i / 2 % starts.len()],
                    ..MacRecord::default()
                })
                .collect();
            let run = |backend: Backend, step: usize| {
                let mut tags = vec![[0; 16]; TASKS];
                for order in order.chunks(step) {
                    backend.macs(&memory, &tasks, order, &records, &mut tags);
                }
                tags
            };
            let want = run(Backend::Portable, TASKS);
            for backend in Backend::available() {
                for step in [1, 3, 11, TASKS] {
                    assert!(
                        run(backend, step) == want,
                        "{backend} {fill:#x} {shift} in steps of {step}"
                    );
                }
            }
        }
    }
}

/// What stands next to 2^130 - 5 in the end: from three below to four above.
#[test]
fn sums_next_to_the_prime() {
    const TASKS: usize = 8;
    // The block of lengths, which are zero, adds 2^128, and r is one.
    let records: [MacRecord; TASKS] = std::array::from_fn(|i| MacRecord {
        r: [1, 0],
        h: [(1 << 44) - 8 + i as u64, (1 << 44) - 1, (3 << 40) - 1],
        ..MacRecord::default()
    });
    let want: [[u8; 16]; TASKS] = std::array::from_fn(|i| {
        let sum = (i as u128).checked_sub(3).unwrap_or(u128::MAX - 7 + i as u128);
        sum.to_le_bytes()
    });
    let mut arena = [0; 16];
    let memory = Memory::InPlace(&mut arena);
    let order: [u32; TASKS] = std::array::from_fn(|i| i as u32);
    for backend in Backend::available() {
        let mut tags = [[0; 16]; TASKS];
        backend.macs(&memory, &[task(0, 0, 0, 0, 0); TASKS], &order, &records, &mut tags);
        assert_eq!(tags, want, "{backend}");
    }
}

#[test]
#[should_panic]
fn a_task_outside_its_memory_is_refused() {
    let keys = [key(1)];
    let ring = Keyring {
        resident: &keys,
        derived: &[],
    };
    let mut arena = [0; 100];
    Backend::best().xor(&mut Memory::InPlace(&mut arena), ring, &[task(0, 50, 50, 51, 0)]);
}
