//! Messages sealed by an independent library, laid out in arenas with guards between them, and run as batches.

use sealway_aead::batch::{Backend, Engine, Job, Keys, Memory, Report, Slot, Status};
use sealway_aead::{Nonce, Suite};

use crate::common::random_bytes;
use crate::fuzzing::rustcrypto;

/// Value of guard bytes around outputs.
pub(crate) const GUARD: u8 = 0xc3;

/// One message of a test batch.
pub(crate) struct Message {
    pub(crate) suite: Suite,
    pub(crate) key: Vec<u8>,
    pub(crate) nonce: Vec<u8>,
    pub(crate) aad: Vec<u8>,
    pub(crate) plain: Vec<u8>,
    pub(crate) sealed: Vec<u8>,
    pub(crate) opens: bool,
}

/// A message sealed by an independent library.
pub(crate) fn message(suite: Suite, len: usize, aad_len: usize, seed: u64, opens: bool) -> Message {
    let key = random_bytes(suite.key_len(), seed ^ 0x1111);
    let nonce = random_bytes(suite.nonce_len(), seed ^ 0x2222);
    let aad = random_bytes(aad_len, seed ^ 0x3333);
    let plain = random_bytes(len, seed ^ 0x4444);
    let sealed = rustcrypto(suite, &key, &nonce, &aad, &plain);
    Message {
        suite,
        key,
        nonce,
        aad,
        plain,
        sealed,
        opens,
    }
}

/// Messages laid out in arenas, with guards between them.
pub(crate) struct Layout {
    pub(crate) keys: Keys,
    pub(crate) jobs: Vec<Job>,
    pub(crate) src: Vec<u8>,
    pub(crate) dst: Vec<u8>,
    pub(crate) want: Vec<u8>,
    pub(crate) aad: Vec<u8>,
}

impl Layout {
    /// Runs all jobs in one piece; gives what the engine reports, and what became of each job.
    pub(crate) fn run(&mut self, engine: &mut Engine, in_place: bool) -> (Report, Vec<Status>) {
        let mut statuses = vec![Status::Failed; self.jobs.len()];
        let memory = match in_place {
            true => Memory::InPlace(&mut self.dst),
            false => Memory::Separate {
                src: &self.src,
                dst: &mut self.dst,
            },
        };
        let report = engine.run(&self.keys, &self.jobs, memory, &self.aad, &mut statuses);
        (report.unwrap(), statuses)
    }

    /// Runs all jobs: those of these numbers, and no others, are refused, and every byte is as it should be.
    pub(crate) fn check_refused(
        &mut self,
        engine: &mut Engine,
        in_place: bool,
        refused: &[usize],
        what: &str,
    ) -> Report {
        let (report, statuses) = self.run(engine, in_place);
        let what = format!("{} in place {in_place} {what}", engine.backend());
        assert_eq!(
            (report.refused, report.done),
            (refused.len(), self.jobs.len() - refused.len()),
            "{what}"
        );
        for (i, status) in statuses.iter().enumerate() {
            let want = match refused.contains(&i) {
                true => Status::Unauthentic,
                false => Status::Done,
            };
            assert_eq!(*status, want, "{what}: job {i}");
        }
        assert!(self.dst == self.want, "{what}");
        report
    }

    /// Flips a bit in the tag of job `i`, which opens `len` bytes, and expects what comes of it.
    pub(crate) fn forge(&mut self, i: usize, len: usize, in_place: bool) {
        let (at, to) = (self.jobs[i].input_offset(), self.jobs[i].output_offset());
        let text = if in_place { &mut self.dst } else { &mut self.src };
        text[at + len] ^= 1;
        self.want[to..to + len].fill(0);
        if in_place {
            self.want[to + len] ^= 1;
        }
    }
}

/// Lays messages out; message i starts `align(i)` bytes past a multiple of 64.
pub(crate) fn layout(messages: &[Message], in_place: bool, align: impl Fn(usize) -> usize) -> Layout {
    let mut keys = Keys::with_slots(messages.len());
    let (mut src, mut dst, mut want, mut aad) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut jobs = Vec::with_capacity(messages.len());
    for (i, m) in messages.iter().enumerate() {
        keys.set(Slot(i as u32), m.suite, &m.key).unwrap();
        let (input, output) = if m.opens {
            (&m.sealed, &m.plain)
        } else {
            (&m.plain, &m.sealed)
        };
        let start = dst.len().next_multiple_of(64) + align(i) % 64 + 1;
        dst.resize(start, GUARD);
        want.resize(start, GUARD);
        if in_place {
            // The longer of both, and a tag that was opened stays behind the text.
            let both: Vec<u8> = output
                .iter()
                .copied()
                .chain(input.iter().skip(output.len()).copied())
                .collect();
            dst.extend_from_slice(input);
            dst.resize(start + m.sealed.len(), GUARD);
            want.extend_from_slice(&both);
        } else {
            dst.resize(start + output.len(), GUARD);
            want.extend_from_slice(output);
        }
        let from = if in_place { start } else { src.len() };
        src.extend_from_slice(input);
        let range = from as u32..(from + input.len()) as u32;
        let slot = Slot(i as u32);
        let job = if m.opens {
            Job::open(slot, &m.nonce, range, start as u32).unwrap()
        } else {
            Job::seal(
                slot,
                Nonce::assume_unique(m.suite, &m.nonce).unwrap(),
                range,
                start as u32,
            )
        };
        jobs.push(job.with_aad(aad.len() as u32..(aad.len() + m.aad.len()) as u32));
        aad.extend_from_slice(&m.aad);
    }
    dst.extend_from_slice(&[GUARD; 17]);
    want.extend_from_slice(&[GUARD; 17]);
    Layout {
        keys,
        jobs,
        src,
        dst,
        want,
        aad,
    }
}

/// Runs the batch in one piece and checks every byte of the output arena.
pub(crate) fn check(engine: &mut Engine, messages: &[Message], in_place: bool, align: impl Fn(usize) -> usize) {
    let mut l = layout(messages, in_place, align);
    let (report, statuses) = l.run(engine, in_place);
    assert_eq!((report.done, report.refused), (messages.len(), 0));
    assert!(report.cipher.used <= report.cipher.offered && report.mac.used <= report.mac.offered);
    assert!(statuses.iter().all(|&status| status == Status::Done));
    if let Some(at) = (0..l.dst.len()).find(|&i| l.dst[i] != l.want[i]) {
        panic!(
            "{}: {} messages, in place {in_place}: byte {at} is wrong",
            engine.backend(),
            messages.len()
        );
    }
}

/// An engine for every backend.
pub(crate) fn engines() -> Vec<Engine> {
    Backend::available().map(Engine::with_backend).collect()
}
