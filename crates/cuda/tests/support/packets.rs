//! Packets in slabs: some to seal, some to open, some forged, and what becomes of them.

use sealway_aead::batch::{Engine as Processor, Job, Keys, Memory, Slot, Status};
use sealway_aead::{Nonce, Suite};
use sealway_cuda::{Engine, Options};

use super::mix::key;

pub const SLOTS: usize = 16;
pub const BYTES: usize = 1 << 17;

pub fn options() -> Options {
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
pub struct Noise(pub u64);

impl Noise {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % bound as u64) as usize
    }
}

/// Packets in a slab, the jobs in them, and what becomes of both.
pub struct Load {
    pub packets: Vec<u8>,
    pub jobs: Vec<Job>,
    pub after: Vec<u8>,
    pub statuses: Vec<Status>,
}

pub fn keys(shift: u32) -> Keys {
    let mut keys = Keys::with_slots(SLOTS);
    for slot in 0..SLOTS as u32 {
        let suite = Suite::ChaCha20Poly1305;
        keys.set(Slot(slot), suite, &key(slot ^ shift)).unwrap();
    }
    keys
}

pub fn set_keys(engine: &mut Engine, shift: u32) {
    for slot in 0..SLOTS as u32 {
        engine.set_key(Slot(slot), &key(slot ^ shift)).unwrap();
    }
}

/// Messages of these lengths at any bytes, some sealed, some opened, and of those some forged.
pub fn load(seed: u64, lens: &[usize], shift: u32) -> Load {
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

pub fn start(engine: &mut Engine, slab: usize, load: &Load) {
    engine.clear_slab(slab).unwrap();
    engine.slab_mut(slab)[..load.packets.len()].copy_from_slice(&load.packets);
    assert!(engine.slab(slab)[..load.packets.len()] == load.packets);
    engine.start_slab(slab, load.packets.len(), &load.jobs).unwrap();
}

pub fn finish(engine: &mut Engine, slab: usize, load: &Load) {
    let mut statuses = vec![Status::Failed; load.jobs.len()];
    let report = engine.finish_slab(slab, &mut statuses).unwrap();
    assert_eq!(statuses, load.statuses);
    assert_eq!(report.done + report.refused, load.jobs.len());
    assert!(engine.slab(slab)[..load.packets.len()] == load.after);
    assert!(engine.slab_mut(slab)[..load.packets.len()] == load.after);
}

/// Short lengths, those around every kernel's limit, and messages in parts.
pub fn lens(noise: &mut Noise) -> Vec<usize> {
    let mut lens: Vec<usize> = (0..150).map(|_| noise.below(300)).collect();
    lens.extend([0, 1, 15, 16, 17, 63, 64, 65, 191, 193, 900, 1024, 4095, 16_384, 16_385]);
    lens
}
