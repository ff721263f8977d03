//! Packets written once, at any byte: what the device leaves of them is what the processor would have.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a panic is a failed test")]

mod support;

use sealway_aead::batch::{Engine as Processor, Job, Keys, Memory, Slot, Status};
use sealway_aead::{JobError, Nonce, Suite};
use sealway_cuda::{Engine, Error, Options};

use support::failing::{Call, Failing};
use support::fake::Fake;
use support::kernels::Model;
use support::mix::key;
use support::{each, model};

const SLOTS: usize = 16;
const BYTES: usize = 1 << 17;

fn options() -> Options {
    Options {
        slots: SLOTS,
        chunk_bytes: 4096,
        chunks: 1,
        slabs: 3,
        slab_bytes: BYTES,
        ..Options::default()
    }
}

/// Numbers that look random and are the same every time (SplitMix64).
struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % bound as u64) as usize
    }
}

/// Packets in a slab, the jobs in them, and what becomes of both.
struct Load {
    packets: Vec<u8>,
    jobs: Vec<Job>,
    after: Vec<u8>,
    statuses: Vec<Status>,
}

fn keys(shift: u32) -> Keys {
    let mut keys = Keys::with_slots(SLOTS);
    for slot in 0..SLOTS as u32 {
        let suite = Suite::ChaCha20Poly1305;
        keys.set(Slot(slot), suite, &key(slot ^ shift)).unwrap();
    }
    keys
}

fn set_keys(engine: &mut Engine, shift: u32) {
    for slot in 0..SLOTS as u32 {
        engine.set_key(Slot(slot), &key(slot ^ shift)).unwrap();
    }
}

/// Messages of these lengths at any bytes, some sealed, some opened, and of those some forged.
fn load(seed: u64, lens: &[usize], shift: u32) -> Load {
    let mut noise = Noise(seed);
    let (keys, mut processor) = (keys(shift), Processor::new());
    let mut packets = Vec::new();
    let mut jobs = Vec::new();
    for (n, &len) in lens.iter().enumerate() {
        packets.extend((0..noise.below(7)).map(|_| 0xee));
        let start = packets.len() as u32;
        packets.extend((0..len).map(|_| noise.below(256) as u8));
        let mut nonce = [seed as u8; 12];
        nonce[..4].copy_from_slice(&(n as u32).to_le_bytes());
        let end = packets.len() as u32;
        let seal = || {
            let nonce = Nonce::assume_unique(Suite::ChaCha20Poly1305, &nonce).unwrap();
            Job::seal(Slot((n % SLOTS) as u32), nonce, start..end, start)
        };
        packets.extend([0; 16]);
        if noise.below(2) == 0 {
            jobs.push(seal());
            continue;
        }
        let memory = Memory::InPlace(&mut packets);
        processor
            .run(&keys, &[seal()], memory, &[], &mut [Status::Failed])
            .unwrap();
        if noise.below(4) == 0 {
            let at = start as usize + noise.below(len + 16);
            packets[at] ^= 1 << noise.below(8);
        }
        let slot = Slot((n % SLOTS) as u32);
        jobs.push(Job::open(slot, &nonce, start..end + 16, start).unwrap());
    }
    packets.extend([0xdd; 5]);
    let mut after = packets.clone();
    let mut statuses = vec![Status::Failed; jobs.len()];
    let memory = Memory::InPlace(&mut after);
    processor.run(&keys, &jobs, memory, &[], &mut statuses).unwrap();
    Load {
        packets,
        jobs,
        after,
        statuses,
    }
}

fn start(engine: &mut Engine, slab: usize, load: &Load) {
    engine.clear_slab(slab).unwrap();
    engine.slab_mut(slab)[..load.packets.len()].copy_from_slice(&load.packets);
    assert!(engine.slab(slab)[..load.packets.len()] == load.packets);
    engine.start_slab(slab, load.packets.len(), &load.jobs).unwrap();
}

fn finish(engine: &mut Engine, slab: usize, load: &Load) {
    let mut statuses = vec![Status::Failed; load.jobs.len()];
    let report = engine.finish_slab(slab, &mut statuses).unwrap();
    assert_eq!(statuses, load.statuses);
    assert_eq!(report.done + report.refused, load.jobs.len());
    assert!(engine.slab(slab)[..load.packets.len()] == load.after);
    assert!(engine.slab_mut(slab)[..load.packets.len()] == load.after);
}

/// Short lengths, those around every kernel's limit, and messages in parts.
fn lens(noise: &mut Noise) -> Vec<usize> {
    let mut lens: Vec<usize> = (0..150).map(|_| noise.below(300)).collect();
    lens.extend([0, 1, 15, 16, 17, 63, 64, 65, 191, 193, 900, 1024, 4095, 16_384, 16_385]);
    lens
}

#[test]
fn packets_at_any_byte_equal_the_processors() {
    for mut engine in each(&options()) {
        set_keys(&mut engine, 0);
        let mut noise = Noise(1);
        for seed in 0..6 {
            let load = load(seed, &lens(&mut noise), 0);
            start(&mut engine, seed as usize % 3, &load);
            finish(&mut engine, seed as usize % 3, &load);
        }
    }
}

/// Several at once, of which each has the keys of when it was started; results in any order.
#[test]
fn slabs_overlap_and_keys_change_between() {
    for mut engine in each(&options()) {
        let mut noise = Noise(2);
        for seed in [0, 3] {
            let loads: Vec<Load> = (0..3).map(|n| load(seed + n, &lens(&mut noise), n as u32)).collect();
            for (slab, load) in loads.iter().enumerate() {
                set_keys(&mut engine, slab as u32);
                start(&mut engine, slab, load);
                assert!(engine.slab(slab).is_empty() && engine.slab_mut(slab).is_empty());
                assert_eq!(
                    engine.start_slab(slab, load.packets.len(), &load.jobs),
                    Err(Error::Busy)
                );
            }
            for slab in [1, 0, 2] {
                finish(&mut engine, slab, &loads[slab]);
            }
        }
        // One that is written to while it is under way is waited for, and its results are gone.
        let load = load(9, &lens(&mut noise), 2);
        start(&mut engine, 0, &load);
        start(&mut engine, 0, &load);
        finish(&mut engine, 0, &load);
        assert!(matches!(engine.finish_slab(0, &mut []), Err(Error::NotStarted)));
    }
}

#[test]
fn what_a_slab_does_not_take() {
    let (mut engine, _) = model(options());
    set_keys(&mut engine, 0);
    let load = load(4, &[10, 20, 30], 0);
    let filled = load.packets.len();
    let mut refused = |filled: usize, jobs: &[Job], wrong: JobError, at: usize| {
        let wrong = wrong.into();
        assert_eq!(engine.start_slab(1, filled, jobs), Err(Error::Job { index: at, wrong }));
    };
    let seal = |slot, range: std::ops::Range<u32>, to| {
        let nonce = Nonce::assume_unique(Suite::ChaCha20Poly1305, &[1; 12]).unwrap();
        Job::seal(Slot(slot), nonce, range, to)
    };
    refused(filled, &[seal(0, 9..20, 9), seal(0, 35..40, 35)], JobError::Overlap, 1);
    refused(filled - 6, &load.jobs, JobError::Output, 2);
    refused(filled, &[seal(16, 0..4, 0)], JobError::NoKey, 0);
    refused(filled, &[seal(0, 0..4, 1)], JobError::NotInPlace, 0);
    refused(filled, &[seal(0, 0..4, 0).with_aad(0..3)], JobError::AssociatedData, 0);
    refused(BYTES + 1, &[seal(0, 0..4, 0)], JobError::Input, 1);
    let many: Vec<Job> = (0..=engine.slab_jobs() as u32)
        .map(|n| seal(0, n * 17..n * 17 + 1, n * 17))
        .collect();
    assert!(engine.start_slab(1, BYTES, &many).is_err());
    assert_eq!(engine.start_slab(3, filled, &load.jobs), Err(Error::NotStarted));
    assert!(engine.clear_slab(3).is_err() && engine.slab(3).is_empty());
    start(&mut engine, 1, &load);
    finish(&mut engine, 1, &load);
}

/// As many of the shortest packets as there is room for, and one as long as the slab.
#[test]
fn full_slabs() {
    let (mut engine, seen) = model(options());
    set_keys(&mut engine, 0);
    let many = load(5, &vec![1; engine.slab_jobs()], 0);
    start(&mut engine, 0, &many);
    let one = load(6, &[BYTES - 40], 0);
    start(&mut engine, 1, &one);
    finish(&mut engine, 1, &one);
    finish(&mut engine, 0, &many);
    drop(engine);
    let seen = seen.lock().unwrap();
    assert_eq!((seen.dirty, seen.leaked), (0, 0));
}

/// Whatever call fails: the packets are as they were written, or all of them are done.
#[test]
fn a_device_that_fails() {
    let mut failed = 0;
    let loads: Vec<Load> = (0..3).map(|n| load(n, &[0, 40, 300, 20_000, 77], 0)).collect();
    for call in Call::ALL {
        for lost in [false, true] {
            for before in 0..30 {
                let (device, trigger) = Failing::new(Fake::new(Model));
                let mut engine = Engine::with_device(Box::new(device), options()).unwrap();
                set_keys(&mut engine, 0);
                trigger.arm(call, before, lost);
                for (slab, load) in loads.iter().enumerate() {
                    engine.slab_mut(slab)[..load.packets.len()].copy_from_slice(&load.packets);
                }
                let started: Vec<bool> = (0..3)
                    .map(|slab| {
                        engine
                            .start_slab(slab, loads[slab].packets.len(), &loads[slab].jobs)
                            .is_ok()
                    })
                    .collect();
                for (slab, load) in loads.iter().enumerate() {
                    let mut statuses = vec![Status::Failed; load.jobs.len()];
                    let done = started[slab] && engine.finish_slab(slab, &mut statuses).is_ok();
                    if done {
                        assert_eq!(statuses, load.statuses);
                        assert!(engine.slab(slab)[..load.packets.len()] == load.after);
                    } else {
                        failed += 1;
                        assert!(trigger.happened(), "{call:?} {before} {lost}");
                        assert!(statuses.iter().all(|&status| status == Status::Failed));
                        assert!(engine.slab_mut(slab)[..load.packets.len()] == load.packets);
                    }
                }
            }
        }
    }
    assert!(failed > 100, "{failed} failures");
}
