//! What the fuzz targets of the batch engine check; `suites/batch/corpus.rs` replays their corpora through it.
//!
//! Input bytes are read as a description, and every input has a meaning: what is missing reads as zero. The description is
//! made into messages by an independent library, which thereby also says what must come out.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, missing_docs)]

use std::ops::Range;

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use sealway_aead::batch::{Backend, Engine, Job, Keys, Memory, Slot, Status};
use sealway_aead::{Error, JobError, Nonce, OpeningKey, SealingKey, Suite, Tag};

/// The targets, by name of their corpora.
pub const ENTRIES: &[(&str, fn(&[u8]))] = &[("batch", batch), ("batch_rules", batch_rules)];

/// Value of bytes that belong to no message.
const GUARD: u8 = 0xc3;
/// Value that outputs have before they are written.
const BEFORE: u8 = 0x5a;
/// Keys a suite.
const KEYS: usize = 4;
/// Most messages of one input.
const MOST_JOBS: usize = 96;
/// Most bytes of text of one input, so that a run stays in milliseconds.
const MOST_BYTES: usize = 64 * 1024;

/// Reads a description; zeros after its end.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }

    fn short(&mut self) -> usize {
        usize::from(u16::from_le_bytes([self.byte(), self.byte()]))
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Bytes that look random and are the same every time (SplitMix64).
fn random_bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(z ^ z >> 31).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

fn key(suite: Suite, number: usize) -> Vec<u8> {
    random_bytes(suite.key_len(), 1000 + number as u64)
}

/// Every suite with every key, suites one after the other.
fn table() -> Keys {
    let mut keys = Keys::with_slots(Suite::ALL.len() * KEYS);
    for (i, suite) in Suite::ALL.iter().enumerate() {
        for number in 0..KEYS {
            let slot = Slot((i * KEYS + number) as u32);
            keys.set(slot, *suite, &key(*suite, number)).unwrap();
        }
    }
    keys
}

/// Ciphertext and tag by the independent library.
pub fn rustcrypto(suite: Suite, key: &[u8], nonce: &[u8], aad: &[u8], plain: &[u8]) -> Vec<u8> {
    fn run<C: AeadInOut + KeyInit>(key: &[u8], nonce: &[u8], aad: &[u8], plain: &[u8]) -> Vec<u8> {
        let mut out = plain.to_vec();
        let tag = C::new_from_slice(key)
            .unwrap()
            .encrypt_inout_detached(nonce.try_into().unwrap(), aad, out.as_mut_slice().into())
            .unwrap();
        out.extend_from_slice(&tag);
        out
    }
    match suite {
        Suite::Aes128Gcm => run::<aes_gcm::Aes128Gcm>(key, nonce, aad, plain),
        Suite::Aes256Gcm => run::<aes_gcm::Aes256Gcm>(key, nonce, aad, plain),
        Suite::ChaCha20Poly1305 => run::<chacha20poly1305::ChaCha20Poly1305>(key, nonce, aad, plain),
        Suite::XChaCha20Poly1305 => run::<chacha20poly1305::XChaCha20Poly1305>(key, nonce, aad, plain),
    }
}

/// One message as described, and what must become of it.
struct Message {
    suite: Suite,
    slot: Slot,
    key: Vec<u8>,
    nonce: Vec<u8>,
    aad: Vec<u8>,
    opens: bool,
    forged: bool,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Bytes left free before the input and before the output.
    gaps: [usize; 2],
}

fn message(bytes: &mut Bytes<'_>, index: usize, room: usize) -> Message {
    let what = bytes.byte();
    let length = bytes.short();
    let aad_len = usize::from(bytes.byte());
    let gaps = bytes.byte();
    let (how, place) = (bytes.byte(), usize::from(bytes.byte()));

    // Mostly short and middling, now and then one that goes on its own.
    let len = match length {
        0..0xf000 => length % 1537,
        _ => 1537 + (length & 0xfff) * 5,
    };
    let len = if len > room { len % 64 } else { len };
    let suite = Suite::ALL[usize::from(what & 3)];
    let number = usize::from(what >> 2 & 3);
    let opens = what & 0x10 != 0;
    let forged = opens && what & 0x20 != 0;
    let slot = Slot((usize::from(what & 3) * KEYS + number) as u32);
    let key = key(suite, number);
    let nonce = random_bytes(suite.nonce_len(), 2000 + index as u64);
    let mut aad = random_bytes(if aad_len % 2 == 0 { 0 } else { aad_len / 2 }, 3000 + index as u64);
    // What the authenticator sees decides its carries: random bytes, all ones, zeros, one repeated byte.
    let mut text = match how & 3 {
        0 => random_bytes(len, 4000 + index as u64),
        1 => vec![0xff; len],
        2 => vec![0; len],
        _ => vec![how; len],
    };
    if opens {
        // The ciphers are stream ciphers, so this makes the pattern the ciphertext.
        text = rustcrypto(suite, &key, &nonce, &[], &text);
        text.truncate(len);
    }
    let sealed = rustcrypto(suite, &key, &nonce, &aad, &text);
    let (mut input, output) = if opens { (sealed, text) } else { (text, sealed) };
    let mut message_nonce = nonce;
    if forged {
        let bit = 1 << (place % 8);
        match how >> 2 & 3 {
            1 if len > 0 => input[place % len] ^= bit,
            2 if !aad.is_empty() => {
                let at = place % aad.len();
                aad[at] ^= bit;
            }
            3 => {
                let at = place % message_nonce.len();
                message_nonce[at] ^= bit;
            }
            _ => input[len + place % 16] ^= bit,
        }
    }
    Message {
        suite,
        slot,
        key,
        nonce: message_nonce,
        aad,
        opens,
        forged,
        input,
        output: if forged { vec![0; len] } else { output },
        gaps: [usize::from(gaps & 15), usize::from(gaps >> 4) * 5],
    }
}

/// Messages laid out in arenas.
struct Layout {
    jobs: Vec<Job>,
    src: Vec<u8>,
    dst: Vec<u8>,
    aad: Vec<u8>,
    want: Vec<u8>,
}

/// Lays out messages; outputs follow `order`.
fn layout(messages: &[Message], order: &[usize], in_place: bool) -> Layout {
    let (mut src, mut dst, mut aad, mut want) = (vec![GUARD; 1], vec![GUARD; 3], vec![], vec![GUARD; 3]);
    let mut jobs: Vec<Option<Job>> = messages.iter().map(|_| None).collect();
    for &i in order {
        let m = &messages[i];
        dst.resize(dst.len() + m.gaps[1], GUARD);
        want.resize(dst.len(), GUARD);
        src.resize(src.len() + m.gaps[0], GUARD);
        let to = dst.len();
        let from = if in_place { to } else { src.len() };
        src.extend_from_slice(&m.input);
        if in_place {
            dst.extend_from_slice(&m.input);
            dst.resize(to + m.input.len().max(m.output.len()), BEFORE);
            want.extend_from_slice(&m.output);
            // A tag that was opened stays behind the text.
            want.extend_from_slice(m.input.get(m.output.len()..).unwrap_or_default());
        } else {
            dst.resize(to + m.output.len(), BEFORE);
            want.extend_from_slice(&m.output);
        }
        let range = from as u32..(from + m.input.len()) as u32;
        let job = if m.opens {
            Job::open(m.slot, &m.nonce, range, to as u32).unwrap()
        } else {
            let nonce = Nonce::assume_unique(m.suite, &m.nonce).unwrap();
            Job::seal(m.slot, nonce, range, to as u32)
        };
        jobs[i] = Some(job.with_aad(aad.len() as u32..(aad.len() + m.aad.len()) as u32));
        aad.extend_from_slice(&m.aad);
    }
    src.extend_from_slice(&[GUARD; 5]);
    dst.extend_from_slice(&[GUARD; 70]);
    want.extend_from_slice(&[GUARD; 70]);
    let jobs = jobs.into_iter().flatten().collect();
    Layout {
        jobs,
        src,
        dst,
        aad,
        want,
    }
}

fn memory<'a>(src: &'a [u8], dst: &'a mut [u8], in_place: bool) -> Memory<'a> {
    if in_place {
        Memory::InPlace(dst)
    } else {
        Memory::Separate { src, dst }
    }
}

/// Runs a batch in pieces, each with a backend of its own, then whole with the portable one; every byte of the output arena
/// and every status must be what the independent library says.
pub fn batch(data: &[u8]) {
    let mut bytes = Bytes(data);
    let (shape, pieces) = (bytes.byte(), usize::from(bytes.byte() % 6));
    let cuts: Vec<(usize, usize)> = (0..=pieces)
        .map(|_| (usize::from(bytes.byte()), usize::from(bytes.byte())))
        .collect();
    let in_place = shape & 1 != 0;
    let mut messages = Vec::new();
    let mut room = MOST_BYTES;
    while messages.len() < MOST_JOBS && !bytes.is_empty() {
        let next = message(&mut bytes, messages.len(), room);
        room = room.saturating_sub(next.input.len());
        messages.push(next);
    }
    let count = messages.len();
    let mut order: Vec<usize> = (0..count).collect();
    match shape >> 1 & 3 {
        1 => order.reverse(),
        2 => order.sort_by_key(|i| (i % 3, *i)),
        _ => {}
    }
    let keys = table();
    let plan = layout(&messages, &order, in_place);
    let backends: Vec<Backend> = Backend::available().collect();
    let mut ends: Vec<(usize, usize)> = cuts
        .iter()
        .map(|&(at, backend)| (at % (count + 1), backend % backends.len()))
        .collect();
    ends.sort_unstable();
    if let Some(last) = ends.last_mut() {
        last.0 = count;
    }
    run(&keys, &messages, &plan, in_place, &backends, &ends);
    run(&keys, &messages, &plan, in_place, &[Backend::Portable], &[(count, 0)]);
    if let Some(first) = messages.first() {
        alone(first);
    }
}

fn run(
    keys: &Keys,
    messages: &[Message],
    plan: &Layout,
    in_place: bool,
    backends: &[Backend],
    ends: &[(usize, usize)],
) {
    let mut dst = plan.dst.clone();
    let mut statuses = vec![Status::Failed; messages.len()];
    let mut engines: Vec<Engine> = backends.iter().map(|backend| Engine::with_backend(*backend)).collect();
    let mut start = 0;
    for &(end, backend) in ends {
        let engine = &mut engines[backend];
        let memory = memory(&plan.src, &mut dst, in_place);
        let part = &mut statuses[start..end];
        let report = engine
            .run(keys, &plan.jobs[start..end], memory, &plan.aad, part)
            .unwrap();
        let forged = messages[start..end].iter().filter(|m| m.forged).count();
        assert_eq!((report.done, report.refused), (end - start - forged, forged));
        assert!(report.cipher.used <= report.cipher.offered && report.mac.used <= report.mac.offered);
        start = end;
    }
    for (i, (m, status)) in messages.iter().zip(&statuses).enumerate() {
        let want = if m.forged { Status::Unauthentic } else { Status::Done };
        assert_eq!(*status, want, "job {i}");
    }
    let wrong = dst.iter().zip(&plan.want).position(|(got, want)| got != want);
    assert_eq!(wrong, None, "first wrong byte of the output arena");
}

/// The same message through the calls for one message.
fn alone(m: &Message) {
    if m.opens {
        let key = OpeningKey::new(m.suite, &m.key).unwrap();
        let mut out = vec![BEFORE; m.output.len()];
        let result = key.open_to(&m.nonce, &m.aad, &m.input, &mut out);
        assert_eq!(result.is_err(), m.forged);
        assert!(out == m.output, "open_to");
        let (text, tag) = m.input.split_at(m.output.len());
        let mut text = text.to_vec();
        let result = key.open_in_place(&m.nonce, &m.aad, &mut text, &Tag::from_slice(tag).unwrap());
        assert_eq!(result.is_err(), m.forged);
        assert!(text == m.output, "open_in_place");
    } else {
        let key = SealingKey::new(m.suite, &m.key).unwrap();
        let nonce = || Nonce::assume_unique(m.suite, &m.nonce).unwrap();
        let mut out = vec![BEFORE; m.output.len()];
        key.seal_to(nonce(), &m.aad, &m.input, &mut out).unwrap();
        assert!(out == m.output, "seal_to");
        let mut text = m.input.clone();
        let tag = key.seal_in_place(nonce(), &m.aad, &mut text).unwrap();
        text.extend_from_slice(tag.as_bytes());
        assert!(text == m.output, "seal_in_place");
    }
}

/// A job as raw numbers, right or wrong.
struct Raw {
    slot: u32,
    opens: bool,
    nonce_len: usize,
    src: u32,
    len: u32,
    dst: u32,
    aad: u32,
    aad_len: u32,
}

/// Slots of the table that the rules are tried on: ChaCha20, XChaCha20, AES, empty.
const RULE_SUITES: [Option<Suite>; 4] = [
    Some(Suite::ChaCha20Poly1305),
    Some(Suite::XChaCha20Poly1305),
    Some(Suite::Aes128Gcm),
    None,
];

/// A number that is small, or lies at the end of 32 bits.
fn number(bytes: &mut Bytes<'_>) -> u32 {
    let small = bytes.byte();
    match small {
        0..=250 => u32::from(small),
        _ => u32::MAX - u32::from(bytes.byte()),
    }
}

/// Jobs of any numbers: what breaks a rule is refused with nothing touched, and as the rules say in plain words below; what
/// is accepted writes its outputs and nothing else, the same with every backend.
pub fn batch_rules(data: &[u8]) {
    let mut bytes = Bytes(data);
    let shape = bytes.byte();
    let in_place = shape & 1 != 0;
    let [src_len, dst_len, aad_len] = [bytes.byte(), bytes.byte(), bytes.byte()].map(usize::from);
    let mut raws = Vec::new();
    while raws.len() < 24 && !bytes.is_empty() {
        let what = bytes.byte();
        let suite = RULE_SUITES[usize::from(what & 3)];
        let nonce_len = match what >> 5 {
            6 => 12,
            7 => 24,
            _ => suite.map_or(12, Suite::nonce_len),
        };
        // A range that could not hold a tag cannot be made into a job.
        let src = number(&mut bytes).min(u32::MAX - 16);
        let same = in_place && what & 8 != 0;
        raws.push(Raw {
            slot: u32::from(what & 3) + if what & 0x10 != 0 { 4 } else { 0 },
            opens: what & 4 != 0,
            nonce_len,
            src,
            len: number(&mut bytes).min(u32::MAX - 16 - src),
            dst: if same { src } else { number(&mut bytes) },
            aad: number(&mut bytes),
            aad_len: number(&mut bytes),
        });
    }
    let mut keys = Keys::with_slots(5);
    for (i, suite) in RULE_SUITES.into_iter().enumerate() {
        if let Some(suite) = suite {
            keys.set(Slot(i as u32), suite, &key(suite, i)).unwrap();
        }
    }
    let jobs: Vec<Job> = raws.iter().map(job).collect();
    let (src, aad) = (random_bytes(src_len, 5), random_bytes(aad_len, 6));
    let before = random_bytes(dst_len, 7);
    let read = if in_place { dst_len } else { src_len };
    let want = verdict(&raws, in_place, read, dst_len, aad_len);

    let mut results = Vec::new();
    for backend in Backend::available() {
        let mut dst = before.clone();
        let mut statuses = vec![Status::Failed; jobs.len()];
        let memory = memory(&src, &mut dst, in_place);
        let result = Engine::with_backend(backend).run(&keys, &jobs, memory, &aad, &mut statuses);
        if let Some((index, wrong)) = want {
            match result {
                // Of several clashes any may be reported, by the later of its two jobs.
                Err(Error::Job {
                    index,
                    wrong: JobError::Overlap,
                }) if wrong == JobError::Overlap => assert!(clashes(&raws, in_place).contains(&index), "{backend}"),
                other => assert_eq!(other, Err(Error::Job { index, wrong }), "{backend}"),
            }
            assert!(dst == before, "{backend}: refused, yet written");
            assert!(statuses.iter().all(|status| *status == Status::Failed));
            continue;
        }
        let report = result.unwrap();
        assert_eq!(report.done + report.refused, jobs.len());
        for (at, (now, was)) in dst.iter().zip(&before).enumerate() {
            let named = raws
                .iter()
                .zip(&jobs)
                .any(|(raw, job)| (raw.dst as usize..raw.dst as usize + job.output_len()).contains(&at));
            assert!(named || now == was, "{backend}: byte {at} is nobody's output");
        }
        results.push((dst, statuses));
    }
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "backends differ");
}

fn job(raw: &Raw) -> Job {
    let nonce = &[7; 24][..raw.nonce_len];
    let slot = Slot(raw.slot);
    // The tag is part of the range when opening; the length was made so that it fits 32 bits.
    let job = if raw.opens {
        Job::open(slot, nonce, raw.src..raw.src + raw.len + 16, raw.dst).unwrap()
    } else {
        let suite = if raw.nonce_len == 24 {
            Suite::XChaCha20Poly1305
        } else {
            Suite::ChaCha20Poly1305
        };
        let nonce = Nonce::assume_unique(suite, nonce).unwrap();
        Job::seal(slot, nonce, raw.src..raw.src + raw.len, raw.dst)
    };
    job.with_aad(raw.aad..raw.aad.saturating_add(raw.aad_len))
}

/// Bytes that a job reads, writes, and has for itself.
fn lengths(raw: &Raw, in_place: bool) -> (u64, u64, u64) {
    let len = u64::from(raw.len);
    let (input, output) = if raw.opens { (len + 16, len) } else { (len, len + 16) };
    (input, output, if in_place { len + 16 } else { output })
}

/// The first job that breaks a rule and which; overlaps are looked for when nothing else is wrong.
fn verdict(raws: &[Raw], in_place: bool, src: usize, dst: usize, aad: usize) -> Option<(usize, JobError)> {
    for (index, raw) in raws.iter().enumerate() {
        let suite = RULE_SUITES.get(raw.slot as usize).copied().flatten();
        let (input, output, _) = lengths(raw, in_place);
        let aad_end = u64::from(raw.aad.saturating_add(raw.aad_len));
        let wrong = match suite {
            None => JobError::NoKey,
            Some(suite) if suite.nonce_len() != raw.nonce_len => JobError::NonceLength,
            _ if u64::from(raw.src) + input > src as u64 => JobError::Input,
            _ if u64::from(raw.dst) + output > dst as u64 => JobError::Output,
            _ if aad_end > u64::from(raw.aad) && aad_end > aad as u64 => JobError::AssociatedData,
            _ if in_place && raw.src != raw.dst => JobError::NotInPlace,
            _ => continue,
        };
        return Some((index, wrong));
    }
    let clash = clashes(raws, in_place).into_iter().next()?;
    Some((clash, JobError::Overlap))
}

/// Jobs that want bytes of an earlier one.
fn clashes(raws: &[Raw], in_place: bool) -> Vec<usize> {
    let claims: Vec<_> = raws
        .iter()
        .map(|raw| u64::from(raw.dst)..u64::from(raw.dst) + lengths(raw, in_place).2)
        .collect();
    let meets = |a: &Range<u64>, b: &Range<u64>| a.start.max(b.start) < a.end.min(b.end);
    (0..raws.len())
        .filter(|&k| claims[..k].iter().any(|earlier| meets(earlier, &claims[k])))
        .collect()
}
