//! Does the time of a call depend on what is secret? A statistical check in the manner of dudect (Reparaz, Balasch and
//! Verbauwhede, "Dude, is my code constant time?", 2017).
//!
//! `cargo run --release -p sealway-aead --example timing [SEED]`; `scripts/check-constant-time timing` runs it for every
//! backend. Each subject has two classes of input, drawn in random order by a seeded generator and prepared with the same
//! work. Welch's t of the two classes is taken over all times and over the fastest 50, 75, 90 and 99 per cent; printed is the
//! largest. Above [`LIMIT`] the subject is measured again with another seed, and only what stays above [`ATTEMPTS`] times is
//! called a leak.
//!
//! A comparison that stops at the first difference is built in and must be found.
//!
//! Exit codes: 0 no leak seen, 1 a leak, 2 the built-in leak was not found, so the run says nothing.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use sealway_aead::batch::{Backend, Engine, Job, Keys, Memory, Slot, Status};
use sealway_aead::{Nonce, OpeningKey, SealingKey, Suite};

/// Largest t that is put down to chance. Of the 200 values of a run one passes it by chance in about 700 runs; hence it has to
/// repeat.
const LIMIT: f64 = 4.5;
/// Times that a leak must be seen.
const ATTEMPTS: usize = 3;
/// Calls measured a subject.
const CALLS: usize = 60_000;
/// Shares of the fastest calls that are looked at.
const SHARES: [f64; 5] = [0.5, 0.75, 0.9, 0.99, 1.0];
/// Messages of a batch, and bytes of each.
const BATCH: usize = 8;
const BATCH_LEN: usize = 100;

/// Numbers from a seed (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Fills with random bytes, and for class 0 makes all of them zero, with the same work.
    fn fill(&mut self, bytes: &mut [u8], class: bool) {
        let mask = if black_box(class) { u64::MAX } else { 0 };
        for piece in bytes.chunks_mut(8) {
            let value = (self.next() & mask).to_le_bytes();
            piece.copy_from_slice(&value[..piece.len()]);
        }
    }
}

/// Count, mean and sum of squares of deviations, kept as numbers come (Welford).
#[derive(Clone, Copy, Default)]
struct Sample {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Sample {
    fn add(&mut self, x: f64) {
        self.count += 1.0;
        let from = x - self.mean;
        self.mean += from / self.count;
        self.squares += from * (x - self.mean);
    }

    /// The variance of the mean.
    fn error(&self) -> f64 {
        self.squares / (self.count - 1.0) / self.count
    }
}

/// Welch's t of two classes among the times up to a limit.
fn welch(times: &[(bool, f64)], limit: f64) -> f64 {
    let mut samples = [Sample::default(); 2];
    for &(class, time) in times.iter().filter(|(_, time)| *time <= limit) {
        samples[usize::from(class)].add(time);
    }
    let [a, b] = samples;
    if a.count < 100.0 || b.count < 100.0 {
        return 0.0;
    }
    let error = (a.error() + b.error()).sqrt();
    if error > 0.0 { (a.mean - b.mean) / error } else { 0.0 }
}

/// Measures; `call` prepares for its class, then gives the seconds that the call itself took. The largest t of all shares.
fn measure(seed: u64, call: &mut dyn FnMut(&mut Numbers, bool) -> f64) -> f64 {
    let mut numbers = Numbers(seed);
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS / 20 {
        call(&mut numbers, true);
    }
    for _ in 0..CALLS {
        let class = numbers.next() >> 63 == 1;
        times.push((class, call(&mut numbers, class) * 1e9));
    }
    let mut sorted: Vec<f64> = times.iter().map(|(_, time)| *time).collect();
    sorted.sort_by(f64::total_cmp);
    SHARES
        .map(|share| welch(&times, sorted[((CALLS - 1) as f64 * share) as usize]))
        .into_iter()
        .max_by(|a, b| a.abs().total_cmp(&b.abs()))
        .unwrap_or_default()
}

/// Measures until a t is within the limit; true if it never was.
fn leaks(what: &str, seed: u64, call: &mut dyn FnMut(&mut Numbers, bool) -> f64) -> bool {
    let mut values = Vec::new();
    while values.len() < ATTEMPTS {
        let t = measure(seed.wrapping_add(values.len() as u64), call);
        values.push(t);
        if t.abs() <= LIMIT {
            break;
        }
    }
    let leak = values.iter().all(|t| t.abs() > LIMIT);
    let shown: Vec<String> = values.iter().map(|t| format!("{t:.2}")).collect();
    println!(
        "{what:64} t {:24} {}",
        shown.join(", "),
        if leak { "LEAK" } else { "ok" }
    );
    leak
}

fn timed<T>(call: impl FnOnce() -> T) -> f64 {
    let start = Instant::now();
    black_box(call());
    start.elapsed().as_secs_f64()
}

fn nonce(suite: Suite) -> Nonce {
    Nonce::assume_unique(suite, &[5; 24][..suite.nonce_len()]).unwrap()
}

/// A wrong tag: its first or its last byte differs.
fn spoil(tag: &mut [u8], class: bool) {
    let at = if black_box(class) { tag.len() - 1 } else { 0 };
    tag[at] ^= 0x55;
}

/// The calls for one message; true if any of them leaks.
fn one(suite: Suite, len: usize, seed: u64) -> bool {
    let name = |what: &str| format!("one, {suite}, {len} bytes, {what}");
    let mut key = vec![0; suite.key_len()];
    let mut plain = vec![0; len];
    let mut sealed = vec![0; len + 16];
    let key_leaks = leaks(&name("seal, key"), seed, &mut |numbers, class| {
        numbers.fill(&mut key, class);
        let sealing = SealingKey::new(suite, &key).unwrap();
        // The first call under a key may take another path; what is timed is the second.
        sealing.seal_to(nonce(suite), &[], &plain, &mut sealed).unwrap();
        timed(|| sealing.seal_to(nonce(suite), &[], &plain, &mut sealed))
    });
    let fresh_leaks = leaks(&name("seal, key used once"), seed, &mut |numbers, class| {
        numbers.fill(&mut key, class);
        let sealing = SealingKey::new(suite, &key).unwrap();
        timed(|| sealing.seal_to(nonce(suite), &[], &plain, &mut sealed))
    });
    let sealing = SealingKey::new(suite, &key).unwrap();
    let data_leaks = leaks(&name("seal, data"), seed, &mut |numbers, class| {
        numbers.fill(&mut plain, class);
        timed(|| sealing.seal_to(nonce(suite), &[], &plain, &mut sealed))
    });
    let opening = OpeningKey::new(suite, &key).unwrap();
    let mut opened = vec![0; len];
    sealing.seal_to(nonce(suite), &[], &plain, &mut sealed).unwrap();
    let right = sealed.clone();
    let tag_leaks = leaks(&name("open, first wrong byte of the tag"), seed, &mut |_, class| {
        sealed.copy_from_slice(&right);
        spoil(&mut sealed[len..], class);
        timed(|| opening.open_to(&[5; 24][..suite.nonce_len()], &[], &sealed, &mut opened))
    });
    key_leaks | fresh_leaks | data_leaks | tag_leaks
}

/// A batch of messages that go through the kernels together; true if any call leaks.
fn batch(suite: Suite, seed: u64) -> bool {
    let backend = Backend::best();
    let name = |what: &str| format!("batch, {backend}, {suite}, {what}");
    let mut keys = Keys::with_slots(BATCH);
    let mut key = vec![0; suite.key_len()];
    let mut plain = vec![0; BATCH * BATCH_LEN];
    let mut sealed = vec![0; BATCH * (BATCH_LEN + 16)];
    let mut statuses = [Status::Failed; BATCH];
    let mut engine = Engine::with_backend(backend);
    let at = |i: usize, len: usize| (i * len) as u32..((i + 1) * len) as u32;
    let seals: Vec<Job> = (0..BATCH)
        .map(|i| {
            let to = (i * (BATCH_LEN + 16)) as u32;
            Job::seal(Slot(i as u32), nonce(suite), at(i, BATCH_LEN), to)
        })
        .collect();
    let opens: Vec<Job> = (0..BATCH)
        .map(|i| {
            let from = at(i, BATCH_LEN + 16);
            Job::open(
                Slot(i as u32),
                &[5; 24][..suite.nonce_len()],
                from,
                (i * BATCH_LEN) as u32,
            )
            .unwrap()
        })
        .collect();
    let mut set = |keys: &mut Keys, numbers: &mut Numbers, class| {
        for i in 0..BATCH {
            numbers.fill(&mut key, class);
            keys.set(Slot(i as u32), suite, &key).unwrap();
        }
    };
    let mut run = |keys: &Keys, jobs: &[Job], src: &[u8], dst: &mut [u8]| {
        timed(|| engine.run(keys, jobs, Memory::Separate { src, dst }, &[], &mut statuses))
    };
    let key_leaks = leaks(&name("seal, keys"), seed, &mut |numbers, class| {
        set(&mut keys, numbers, class);
        run(&keys, &seals, &plain, &mut sealed)
    });
    let data_leaks = leaks(&name("seal, data"), seed, &mut |numbers, class| {
        numbers.fill(&mut plain, class);
        run(&keys, &seals, &plain, &mut sealed)
    });
    run(&keys, &seals, &plain, &mut sealed);
    let right = sealed.clone();
    let mut opened = vec![0; plain.len()];
    let tag_leaks = leaks(&name("open, first wrong byte of tags"), seed, &mut |_, class| {
        sealed.copy_from_slice(&right);
        for message in sealed.chunks_mut(BATCH_LEN + 16) {
            spoil(&mut message[BATCH_LEN..], class);
        }
        run(&keys, &opens, &sealed, &mut opened)
    });
    key_leaks | data_leaks | tag_leaks
}

/// A comparison that stops at the first difference.
#[inline(never)]
fn leaky_comparison(a: &[u8], b: &[u8]) -> bool {
    a.iter().zip(b).all(|(a, b)| black_box(*a) == black_box(*b))
}

/// An open that compares tags with [`leaky_comparison`]: what the check must find.
fn control(seed: u64) -> bool {
    let suite = Suite::ChaCha20Poly1305;
    let key = SealingKey::new(suite, &[3; 32]).unwrap();
    let mut text = [0; 64];
    let right = key.seal_in_place(nonce(suite), &[], &mut text).unwrap();
    let mut sent = [0; 16];
    leaks(
        "control: an open that compares bytes one by one",
        seed,
        &mut |_, class| {
            sent.copy_from_slice(right.as_bytes());
            spoil(&mut sent, class);
            timed(|| {
                text.fill(0);
                let made = key.seal_in_place(nonce(suite), &[], &mut text).unwrap();
                leaky_comparison(made.as_bytes(), &sent)
            })
        },
    )
}

fn main() -> ExitCode {
    let seed = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(1);
    println!(
        "backend {}, seed {seed}, {CALLS} calls a subject, limit {LIMIT}",
        Backend::best()
    );
    if !control(seed) {
        eprintln!("error: the leak that is built in was not found, so this run says nothing");
        return ExitCode::from(2);
    }
    let mut found = false;
    for suite in Suite::ALL {
        for len in [64, 2048] {
            found |= one(suite, len, seed);
        }
        found |= batch(suite, seed);
    }
    if found { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
