//! A stretch of a batch that goes through the kernels together.
//!
//! Order of work: sub-keys of XChaCha20, block 0 of every message for its one-time key, tags of what is to be opened,
//! keystream over everything that may be written, tags of what was sealed. So what fails to authenticate is never
//! decrypted, and working in place needs no copies.

use alloc::vec::Vec;
use core::fmt;

use crate::low::portable::{Poly1305, hchacha20_words};
use crate::low::{KeyWords, Keyring, MacRecord, Memory, Task, Use, scrub_stack, wipe};
use crate::one::tags_match;

use super::order::Bins;
use super::{Backend, Job, Keys, Report, Status};

/// Words of stack that the kernels may have used: chains of frames with secrets in them are under 7 KiB. AVX-512 has a frame of
/// 10 KiB without secrets, and clears by itself what lies below that. `tests/residue.rs` looks.
const SCRUB_WORDS: usize = 896;

/// Mark of a task that seals, above its bin.
const SEALS: u16 = 1 << 15;

/// Tasks gathered so far, and scratch for working on them.
#[derive(Default)]
pub(super) struct Chunk {
    tasks: Vec<Task>,
    /// The bin of each task by its length; that of one which seals with [`SEALS`].
    bins: Vec<u16>,
    opening: Bins,
    sealing: Bins,
    /// First 16 bytes of the nonce of each task that needs a sub-key, and which task that is.
    extended: Vec<(u32, [u32; 4])>,
    derived: Vec<KeyWords>,
    records: Vec<MacRecord>,
    tags: Vec<[u8; 16]>,
    order: Vec<u32>,
}

impl Chunk {
    /// Tasks gathered.
    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Adds a task; with its nonce of 24 bytes if it is XChaCha20.
    #[inline(always)]
    pub(super) fn push(&mut self, task: Task, nonce: Option<&[u8; 24]>) {
        if let Some(nonce) = nonce {
            let words = nonce.as_chunks::<4>().0;
            self.extended.push((
                self.tasks.len() as u32,
                core::array::from_fn(|i| u32::from_le_bytes(words[i])),
            ));
        }
        let blocks = task.mac_blocks();
        self.bins.push(if task.way == Use::Seal {
            self.sealing.count(blocks) | SEALS
        } else {
            self.opening.count(blocks)
        });
        self.tasks.push(task);
    }

    /// Works on everything gathered and leaves the chunk empty.
    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of one batch, each borrowed in its own way"
    )]
    pub(super) fn run(
        &mut self,
        backend: Backend,
        keys: &Keys,
        jobs: &[Job],
        memory: &mut Memory<'_>,
        aad: &[u8],
        statuses: &mut [Status],
        report: &mut Report,
    ) {
        if self.tasks.is_empty() {
            return;
        }
        self.derive(keys);
        let count = self.tasks.len();
        // All zeros from the start, and again from the end of every run.
        if self.records.len() < count {
            self.records.resize(count, MacRecord::default());
        }
        if self.tags.len() < count {
            self.tags.resize(count, [0; 16]);
        }
        report
            .cipher
            .add(backend.one_time_keys(keys.ring(&self.derived), &self.tasks, &mut self.records));
        if !aad.is_empty() {
            self.absorb_associated(jobs, aad);
        }

        if self.opening.sort(numbered(&self.bins, 0), &mut self.order) {
            report
                .mac
                .add(backend.macs(memory, &self.tasks, &self.order, &self.records, &mut self.tags));
            self.verify(memory, statuses);
        }
        report
            .cipher
            .add(backend.xor(memory, keys.ring(&self.derived), &self.tasks));
        if self.sealing.sort(numbered(&self.bins, SEALS), &mut self.order) {
            report
                .mac
                .add(backend.macs(memory, &self.tasks, &self.order, &self.records, &mut self.tags));
            for &index in &self.order {
                let task = &self.tasks[index as usize];
                memory.dst()[task.dst() + task.len()..][..16].copy_from_slice(&self.tags[index as usize]);
            }
        }
        self.forget();
    }

    /// Derives the sub-keys of XChaCha20 messages (draft-irtf-cfrg-xchacha-03 section 2.3).
    fn derive(&mut self, keys: &Keys) {
        self.derived.clear();
        // Reserved before it is filled, so that growing leaves no keys behind.
        self.derived.reserve(self.extended.len());
        for (index, nonce) in &self.extended {
            let task = &mut self.tasks[*index as usize];
            let mut sub_key = KeyWords::default();
            hchacha20_words(&keys.words()[task.key as usize].0, nonce, &mut sub_key.0);
            task.key = Keyring::DERIVED + self.derived.len() as u32;
            self.derived.push(sub_key);
            wipe(&mut sub_key.0);
        }
    }

    /// Puts associated data, which most messages have none of, through the authenticator.
    fn absorb_associated(&mut self, jobs: &[Job], aad: &[u8]) {
        for (task, record) in self.tasks.iter().zip(&mut self.records) {
            let bytes = jobs[task.job as usize].associated(aad);
            if !bytes.is_empty() {
                let mut mac = Poly1305::resume(record);
                mac.absorb(bytes);
                record.h = mac.accumulator();
                record.aad_len = bytes.len() as u32;
            }
        }
    }

    /// Compares the tags of what is to be opened; what fails is zeroed and left out of what follows.
    fn verify(&mut self, memory: &mut Memory<'_>, statuses: &mut [Status]) {
        for &index in &self.order {
            let task = &mut self.tasks[index as usize];
            let mut sent = [0; 16];
            sent.copy_from_slice(&memory.src()[task.src() + task.len()..][..16]);
            if !tags_match(&sent, &self.tags[index as usize]) {
                memory.dst()[task.dst()..][..task.len()].fill(0);
                statuses[task.job as usize] = Status::Unauthentic;
                task.way = Use::Skip;
                // The right tag of a forged message is a forgery.
                wipe(&mut self.tags[index as usize]);
            }
        }
    }

    /// Wipes what was secret and empties the chunk.
    fn forget(&mut self) {
        wipe(&mut self.records[..self.tasks.len()]);
        wipe(&mut self.derived);
        self.tasks.clear();
        self.bins.clear();
        self.extended.clear();
        scrub_stack::<SCRUB_WORDS>();
    }
}

/// The tasks of one direction: their numbers and bins.
#[inline(always)]
fn numbered(bins: &[u16], way: u16) -> impl Iterator<Item = (usize, u16)> {
    bins.iter()
        .enumerate()
        .filter(move |(_, bin)| **bin & SEALS == way)
        .map(|(number, bin)| (number, bin & !SEALS))
}

impl fmt::Debug for Chunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chunk({} tasks)", self.tasks.len())
    }
}
