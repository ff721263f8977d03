//! Batches of every kind of message, with what the processor makes of them.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce as OtherNonce};
use sealway_aead::batch::{Backend, Engine as Cpu, Job, Keys, Memory, Slot, Status};
use sealway_aead::{Nonce, Suite};
use sealway_cuda::Engine;

const SUITE: Suite = Suite::ChaCha20Poly1305;

/// Bytes that look random and are the same every time (SplitMix64).
pub struct Noise(pub u64);

impl Noise {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// What a job is made of.
#[derive(Clone, Debug)]
struct Spec {
    slot: u32,
    nonce: [u8; 12],
    opens: bool,
    len: u32,
    src: u32,
    dst: u32,
    aad: std::ops::Range<u32>,
}

/// A batch: jobs, memory, and what comes out.
#[derive(Clone, Debug)]
pub struct Mix {
    specs: Vec<Spec>,
    pub in_place: bool,
    pub src: Vec<u8>,
    pub aad: Vec<u8>,
    /// Outputs before the batch.
    pub before: Vec<u8>,
    /// Outputs after it.
    pub after: Vec<u8>,
    pub statuses: Vec<Status>,
}

pub fn key(slot: u32) -> [u8; 32] {
    std::array::from_fn(|i| (slot * 7 + i as u32 + 1) as u8)
}

pub fn set_keys(engine: &mut Engine, slots: u32) {
    for slot in 0..slots {
        engine.set_key(Slot(slot), &key(slot)).unwrap();
    }
}

impl Mix {
    /// Messages of such lengths under keys of `slots`, a third opened, one in five of those forged, a quarter with
    /// associated data.
    pub fn new(seed: u64, lens: &[usize], slots: u32, in_place: bool) -> Self {
        let mut noise = Noise(seed);
        let mut mix = Mix {
            specs: Vec::new(),
            in_place,
            src: Vec::new(),
            aad: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            statuses: vec![Status::Done; lens.len()],
        };
        for &len in lens {
            let spec = mix.message(&mut noise, len, slots);
            mix.specs.push(spec);
        }
        if in_place {
            mix.before.clone_from(&mix.src);
        } else {
            // Outputs in another order than inputs, with gaps.
            let mut order: Vec<usize> = (0..lens.len()).collect();
            order.sort_by_cached_key(|_| noise.next());
            for index in order {
                let gap = noise.below(20);
                let gap = noise.bytes(gap);
                mix.before.extend(gap);
                mix.specs[index].dst = mix.before.len() as u32;
                mix.before.extend(noise.bytes(lens[index] + 16));
            }
        }
        mix.run_on_processor(slots);
        mix
    }

    fn message(&mut self, noise: &mut Noise, len: usize, slots: u32) -> Spec {
        let gap = noise.below(20);
        self.src.extend(noise.bytes(gap));
        let src = self.src.len() as u32;
        let slot = noise.below(slots as usize) as u32;
        let nonce: [u8; 12] = noise.bytes(12).try_into().unwrap();
        let start = self.aad.len() as u32;
        if noise.below(4) == 0 {
            let count = 1 + noise.below(40);
            self.aad.extend(noise.bytes(count));
        }
        let aad = start..self.aad.len() as u32;
        let opens = noise.below(3) == 0;
        let mut text = noise.bytes(len);
        if opens {
            // Sealed by a library that is not ours.
            let cipher = ChaCha20Poly1305::new(&Key::from(key(slot)));
            let associated = &self.aad[aad.start as usize..];
            let tag = cipher
                .encrypt_inout_detached(&OtherNonce::from(nonce), associated, (&mut text[..]).into())
                .unwrap();
            text.extend(tag);
            if noise.below(5) == 0 {
                let at = noise.below(text.len());
                text[at] ^= 1 << noise.below(8);
            }
        } else {
            text.extend(noise.bytes(16));
        }
        self.src.extend(text);
        Spec {
            slot,
            nonce,
            opens,
            len: len as u32,
            src,
            dst: src,
            aad,
        }
    }

    pub fn jobs(&self) -> Vec<Job> {
        let job = |spec: &Spec| {
            let end = spec.src + spec.len;
            if spec.opens {
                Job::open(Slot(spec.slot), &spec.nonce, spec.src..end + 16, spec.dst).unwrap()
            } else {
                let nonce = Nonce::assume_unique(SUITE, &spec.nonce).unwrap();
                Job::seal(Slot(spec.slot), nonce, spec.src..end, spec.dst)
            }
            .with_aad(spec.aad.clone())
        };
        self.specs.iter().map(job).collect()
    }

    /// Where job `index` and all after it have not been done, the rest has: what memory must look like then.
    pub fn half_way(&self, index: usize) -> Vec<u8> {
        let mut memory = self.before.clone();
        for spec in &self.specs[..index] {
            let len = spec.len as usize + if spec.opens { 0 } else { 16 };
            let at = spec.dst as usize;
            memory[at..at + len].copy_from_slice(&self.after[at..at + len]);
        }
        memory
    }

    /// Runs jobs from `first` on the processor.
    pub fn finish_on_processor(&self, first: usize, slots: u32, memory: &mut [u8], statuses: &mut [Status]) {
        let mut keys = Keys::with_slots(slots as usize);
        for slot in 0..slots {
            keys.set(Slot(slot), SUITE, &key(slot)).unwrap();
        }
        let memory = if self.in_place {
            Memory::InPlace(memory)
        } else {
            Memory::Separate {
                src: &self.src,
                dst: memory,
            }
        };
        let jobs = self.jobs();
        Cpu::with_backend(Backend::Portable)
            .run(&keys, &jobs[first..], memory, &self.aad, &mut statuses[first..])
            .unwrap();
    }

    fn run_on_processor(&mut self, slots: u32) {
        let (mut after, mut statuses) = (self.before.clone(), self.statuses.clone());
        self.finish_on_processor(0, slots, &mut after, &mut statuses);
        (self.after, self.statuses) = (after, statuses);
    }

    /// Runs all of it on an engine and compares.
    pub fn check(&self, engine: &mut Engine) -> sealway_cuda::Report {
        let mut dst = self.before.clone();
        let mut statuses = vec![Status::Failed; self.specs.len()];
        let memory = if self.in_place {
            Memory::InPlace(&mut dst)
        } else {
            Memory::Separate {
                src: &self.src,
                dst: &mut dst,
            }
        };
        let report = engine.run(&self.jobs(), memory, &self.aad, &mut statuses).unwrap();
        self.compare(&dst, &statuses);
        let done = self.statuses.iter().filter(|&&status| status == Status::Done).count();
        assert_eq!((report.done, report.refused), (done, statuses.len() - done));
        report
    }

    pub fn compare(&self, dst: &[u8], statuses: &[Status]) {
        assert_eq!(statuses, self.statuses);
        let differs = dst.iter().zip(&self.after).position(|(a, b)| a != b);
        assert_eq!(differs, None, "the first byte that differs");
        assert_eq!(dst.len(), self.after.len());
    }
}
