//! Messages sealed by an independent library, laid out in arenas with guards between them, and run as batches.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use sealway_aead::batch::{Backend, Engine, Job, Keys, Memory, Slot, Status};
use sealway_aead::{Nonce, Suite};

use super::random_bytes;

/// Value of guard bytes around outputs.
pub const GUARD: u8 = 0xc3;

/// One message of a test batch.
pub struct Message {
    pub suite: Suite,
    pub key: Vec<u8>,
    pub nonce: Vec<u8>,
    pub aad: Vec<u8>,
    pub plain: Vec<u8>,
    pub sealed: Vec<u8>,
    pub opens: bool,
}

/// A message sealed by an independent library.
pub fn message(suite: Suite, len: usize, aad_len: usize, seed: u64, opens: bool) -> Message {
    let key = random_bytes(suite.key_len(), seed ^ 0x1111);
    let nonce = random_bytes(suite.nonce_len(), seed ^ 0x2222);
    let aad = random_bytes(aad_len, seed ^ 0x3333);
    let plain = random_bytes(len, seed ^ 0x4444);
    fn run<C: AeadInOut + KeyInit>(key: &[u8], nonce: &[u8], aad: &[u8], plain: &[u8]) -> Vec<u8> {
        let mut out = plain.to_vec();
        let tag = C::new_from_slice(key)
            .unwrap()
            .encrypt_inout_detached(nonce.try_into().unwrap(), aad, out.as_mut_slice().into())
            .unwrap();
        out.extend_from_slice(&tag);
        out
    }
    let sealed = match suite {
        Suite::Aes128Gcm => run::<aes_gcm::Aes128Gcm>(&key, &nonce, &aad, &plain),
        Suite::Aes256Gcm => run::<aes_gcm::Aes256Gcm>(&key, &nonce, &aad, &plain),
        Suite::ChaCha20Poly1305 => run::<chacha20poly1305::ChaCha20Poly1305>(&key, &nonce, &aad, &plain),
        Suite::XChaCha20Poly1305 => run::<chacha20poly1305::XChaCha20Poly1305>(&key, &nonce, &aad, &plain),
    };
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
pub struct Layout {
    pub keys: Keys,
    pub jobs: Vec<Job>,
    pub src: Vec<u8>,
    pub dst: Vec<u8>,
    pub want: Vec<u8>,
    pub aad: Vec<u8>,
}

/// Lays messages out; message i starts `align(i)` bytes past a multiple of 64.
pub fn layout(messages: &[Message], in_place: bool, align: impl Fn(usize) -> usize) -> Layout {
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
pub fn check(engine: &mut Engine, messages: &[Message], in_place: bool, align: impl Fn(usize) -> usize) {
    let mut l = layout(messages, in_place, align);
    let mut statuses = vec![Status::Failed; messages.len()];
    let memory = if in_place {
        Memory::InPlace(&mut l.dst)
    } else {
        Memory::Separate {
            src: &l.src,
            dst: &mut l.dst,
        }
    };
    let report = engine.run(&l.keys, &l.jobs, memory, &l.aad, &mut statuses).unwrap();
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
pub fn engines() -> Vec<Engine> {
    Backend::available().map(Engine::with_backend).collect()
}

/// Where the output of message `i` starts in the arena that [`layout`] made with alignment i.
pub fn position(messages: &[Message], in_place: bool, i: usize) -> usize {
    let start = |end: usize, k: usize| end.next_multiple_of(64) + k % 64 + 1;
    let end = messages[..i].iter().enumerate().fold(0, |end, (k, m)| {
        let room = if in_place || !m.opens { &m.sealed } else { &m.plain };
        start(end, k) + room.len()
    });
    start(end, i)
}
