//! Measures ChaCha20-Poly1305, many small messages and one large one, against other libraries in the same run; and AES-GCM in
//! jobs against a plain loop over the library that does them.
//!
//! `cargo run --release -p sealway-aead --example jobs_speed [FILTER]`. Subjects take turns within each round, and the
//! figures are medians of the rounds, or with `FASTEST=1` the fastest round. `SOLO=1` leaves the peers out. Every
//! subject's output is compared with the first one's in the timed configuration. `SEALWAY_CPU_DISABLE=avx512` and the like
//! choose the backend. `COUNT=N ONLY='seal ring'` runs one subject N times and no clock, for `scripts/count-arm-instructions`.

#![allow(clippy::unwrap_used)]

use std::hint::black_box;
use std::time::Instant;

use aws_lc_rs::aead as aws;
use chacha20poly1305::ChaCha20Poly1305;
use chacha20poly1305::aead::{AeadInOut, KeyInit};
use ring::aead as ring_aead;
use sealway_aead::batch::{Engine, Job, Keys, Memory, Report, Slot, Status};
use sealway_aead::{Nonce, OpeningKey, SealingKey, Suite, Tag};

#[path = "jobs_speed/gcm.rs"]
mod gcm;

/// Rounds of which the median is taken.
const ROUNDS: usize = 61;

const SUITE: Suite = Suite::ChaCha20Poly1305;

/// splitmix64, from a stated seed.
struct Generator(u64);

impl Generator {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn between(&mut self, low: u64, high: u64) -> usize {
        (low + self.next() % (high - low + 1)) as usize
    }

    /// 40% U[1,32], 30% U[33,128], 20% U[129,512], 10% U[513,4096].
    fn packet(&mut self) -> usize {
        match self.next() % 10 {
            0..=3 => self.between(1, 32),
            4..=6 => self.between(33, 128),
            7..=8 => self.between(129, 512),
            _ => self.between(513, 4096),
        }
    }
}

/// A batch of packets, each with a key of its own.
struct Packets {
    lens: Vec<usize>,
    keys: Vec<[u8; 32]>,
    plain: Vec<u8>,
    sealed: Vec<u8>,
}

impl Packets {
    fn new(count: usize, mut len: impl FnMut(&mut Generator) -> usize) -> Self {
        let mut generator = Generator(2026);
        let lens: Vec<usize> = (0..count).map(|_| len(&mut generator)).collect();
        let keys = (0..count)
            .map(|_| std::array::from_fn(|_| generator.next() as u8))
            .collect();
        let total: usize = lens.iter().sum();
        let plain = (0..total).map(|_| generator.next() as u8).collect();
        Packets {
            sealed: vec![0; total + 16 * count],
            lens,
            keys,
            plain,
        }
    }

    /// Index, offset of the text, offset of the sealed message, length.
    fn each(&self) -> impl Iterator<Item = (usize, usize, usize, usize)> {
        let (mut from, mut to) = (0, 0);
        self.lens.iter().enumerate().map(move |(i, &len)| {
            let place = (i, from, to, len);
            from += len;
            to += len + 16;
            place
        })
    }
}

fn nonce(i: usize) -> [u8; 12] {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&(i as u64).to_le_bytes());
    bytes
}

type Subject<'a> = (&'static str, Box<dyn FnMut(&mut [u8]) + 'a>);

/// Runs the subject that `ONLY` names by the end of title and name, so many times.
fn repeat(title: &str, times: usize, out: &mut [u8], subjects: &mut [Subject<'_>]) {
    let only = std::env::var("ONLY").unwrap_or_default();
    for (name, run) in subjects {
        if format!("{title} {name}").ends_with(&only) {
            (0..times).for_each(|_| run(black_box(out)));
        }
    }
}

/// Runs the subjects in turns; prints nanoseconds an operation and the ratio of the best peer's time to each one's.
fn race(title: &str, ops: usize, bytes: usize, out_len: usize, mut subjects: Vec<Subject<'_>>) {
    let mut out = vec![0u8; out_len];
    if let Ok(times) = std::env::var("COUNT") {
        println!("of {ops} packets and {bytes} bytes:");
        return repeat(title, times.parse().unwrap(), &mut out, &mut subjects);
    }
    let mut want = Vec::new();
    let mut repeats = 1;
    for (k, (name, run)) in subjects.iter_mut().enumerate() {
        out.fill(0);
        run(&mut out);
        if k == 0 {
            want.clone_from(&out);
            let start = Instant::now();
            run(&mut out);
            let once = start.elapsed().as_secs_f64();
            repeats = ((0.0008 / once) as usize).clamp(1, 100_000);
        }
        assert!(out == want, "{title}: {name} gives other bytes");
    }
    let mut times = vec![Vec::new(); subjects.len()];
    for _ in 0..ROUNDS {
        for (times, (_, run)) in times.iter_mut().zip(&mut subjects) {
            let start = Instant::now();
            for _ in 0..repeats {
                run(black_box(&mut out));
            }
            times.push(start.elapsed().as_secs_f64() / repeats as f64);
        }
    }
    // On a machine with noisy neighbours, the fastest round is what tells two versions of a kernel apart.
    let fastest = std::env::var_os("FASTEST").is_some();
    let medians: Vec<f64> = times
        .iter_mut()
        .map(|times| {
            times.sort_by(f64::total_cmp);
            times[if fastest { 0 } else { ROUNDS / 2 }]
        })
        .collect();
    let best_peer = medians.iter().copied().fold(f64::INFINITY, f64::min);
    print!("{title:34}");
    for ((name, _), median) in subjects.iter().zip(&medians) {
        print!(" {name} {:.1} ns", median * 1e9 / ops as f64);
    }
    println!(
        " | {:.2} M/s {:.2} GB/s, {:.2}x best peer, {:.2}x {}",
        ops as f64 / medians[0] / 1e6,
        bytes as f64 / medians[0] / 1e9,
        best_peer / medians[0],
        medians[medians.len().min(2) - 1] / medians[0],
        subjects[subjects.len().min(2) - 1].0
    );
}

fn batch_jobs(p: &Packets, opens: bool) -> Vec<Job> {
    p.each()
        .map(|(i, from, to, len)| {
            let slot = Slot(i as u32);
            if opens {
                Job::open(slot, &nonce(i), to as u32..(to + len + 16) as u32, from as u32).unwrap()
            } else {
                let nonce = Nonce::assume_unique(SUITE, &nonce(i)).unwrap();
                Job::seal(slot, nonce, from as u32..(from + len) as u32, to as u32)
            }
        })
        .collect()
}

/// One batch sealed and opened by everyone, with a fresh key for every packet.
fn packets(title: &str, p: &mut Packets) {
    let count = p.lens.len();
    let mut report = Report::default();
    for opens in [false, true] {
        let p_ref = &*p;
        let jobs = batch_jobs(p_ref, opens);
        let mut keys = Keys::with_slots(count);
        let mut engine = Engine::new();
        let mut statuses = vec![Status::Failed; count];
        let src = if opens { &p_ref.sealed } else { &p_ref.plain };
        let report = &mut report;
        let ours: Subject<'_> = (
            "sealway",
            Box::new(move |out| {
                for (i, key) in p_ref.keys.iter().enumerate() {
                    keys.set(Slot(i as u32), SUITE, key).unwrap();
                }
                *report = engine
                    .run(&keys, &jobs, Memory::Separate { src, dst: out }, &[], &mut statuses)
                    .unwrap();
                assert_eq!(report.done, count);
            }),
        );
        let peers = peers(p_ref, opens);
        let out_len = if opens { p_ref.plain.len() } else { p_ref.sealed.len() };
        let mut subjects = vec![ours];
        subjects.extend(peers);
        if std::env::var_os("SOLO").is_some() {
            subjects.truncate(1);
        }
        let way = if opens { "open" } else { "seal" };
        race(&format!("{title} {way}"), count, p_ref.plain.len(), out_len, subjects);
        if !opens {
            let mut out = vec![0; p.sealed.len()];
            peers_seal_aws(p, &mut out);
            p.sealed = out;
        }
    }
    println!(
        "{:34} lanes: cipher {:.3}, mac {:.3}",
        "",
        report.cipher.utilisation(),
        report.mac.utilisation()
    );
}

fn peers_seal_aws(p: &Packets, out: &mut [u8]) {
    for (i, from, to, len) in p.each() {
        let key = aws::LessSafeKey::new(aws::UnboundKey::new(&aws::CHACHA20_POLY1305, &p.keys[i]).unwrap());
        let (text, tag) = out[to..to + len + 16].split_at_mut(len);
        key.seal_out_of_place_scatter(
            aws::Nonce::assume_unique_for_key(nonce(i)),
            aws::Aad::empty(),
            &p.plain[from..from + len],
            text,
            &[],
            tag,
        )
        .unwrap();
    }
}

/// Packet loops of the other libraries.
fn peers(p: &Packets, opens: bool) -> Vec<Subject<'_>> {
    let aws_loop: Subject<'_> = (
        "aws-lc-rs",
        Box::new(move |out| {
            if !opens {
                return peers_seal_aws(p, out);
            }
            for (i, from, to, len) in p.each() {
                let key = aws::LessSafeKey::new(aws::UnboundKey::new(&aws::CHACHA20_POLY1305, &p.keys[i]).unwrap());
                let (text, tag) = p.sealed[to..to + len + 16].split_at(len);
                let nonce = aws::Nonce::assume_unique_for_key(nonce(i));
                key.open_separate_gather(nonce, aws::Aad::empty(), text, tag, &mut out[from..from + len])
                    .unwrap();
            }
        }),
    );
    let ring_loop: Subject<'_> = (
        "ring",
        Box::new(move |out| {
            for (i, from, to, len) in p.each() {
                let key = ring_aead::UnboundKey::new(&ring_aead::CHACHA20_POLY1305, &p.keys[i]).unwrap();
                let key = ring_aead::LessSafeKey::new(key);
                let nonce = ring_aead::Nonce::assume_unique_for_key(nonce(i));
                if opens {
                    let text = &mut out[from..from + len];
                    text.copy_from_slice(&p.sealed[to..to + len]);
                    let tag: [u8; 16] = p.sealed[to + len..to + len + 16].try_into().unwrap();
                    key.open_in_place_separate_tag(nonce, ring_aead::Aad::empty(), tag.into(), text, 0..)
                        .unwrap();
                } else {
                    let (text, tag) = out[to..to + len + 16].split_at_mut(len);
                    text.copy_from_slice(&p.plain[from..from + len]);
                    let made = key
                        .seal_in_place_separate_tag(nonce, ring_aead::Aad::empty(), text)
                        .unwrap();
                    tag.copy_from_slice(made.as_ref());
                }
            }
        }),
    );
    let rust_loop: Subject<'_> = (
        "RustCrypto",
        Box::new(move |out| {
            for (i, from, to, len) in p.each() {
                let key = ChaCha20Poly1305::new((&p.keys[i]).into());
                if opens {
                    let text = &mut out[from..from + len];
                    text.copy_from_slice(&p.sealed[to..to + len]);
                    let tag: &[u8; 16] = p.sealed[to + len..to + len + 16].try_into().unwrap();
                    key.decrypt_inout_detached((&nonce(i)).into(), &[], text.into(), tag.into())
                        .unwrap();
                } else {
                    let (text, tag) = out[to..to + len + 16].split_at_mut(len);
                    text.copy_from_slice(&p.plain[from..from + len]);
                    let made = key
                        .encrypt_inout_detached((&nonce(i)).into(), &[], text.into())
                        .unwrap();
                    tag.copy_from_slice(&made);
                }
            }
        }),
    );
    vec![aws_loop, ring_loop, rust_loop]
}

/// One message at a time under one key, in place, through the one-message calls.
fn single(len: usize) {
    let key_bytes = [7u8; 32];
    let plain: Vec<u8> = (0..len).map(|i| i as u8).collect();
    let seal_key = SealingKey::new(SUITE, &key_bytes).unwrap();
    let open_key = OpeningKey::new(SUITE, &key_bytes).unwrap();
    let aws_key = aws::LessSafeKey::new(aws::UnboundKey::new(&aws::CHACHA20_POLY1305, &key_bytes).unwrap());
    let ring_key =
        ring_aead::LessSafeKey::new(ring_aead::UnboundKey::new(&ring_aead::CHACHA20_POLY1305, &key_bytes).unwrap());
    let mut sealed = plain.clone();
    let tag = seal_key
        .seal_in_place(Nonce::assume_unique(SUITE, &nonce(1)).unwrap(), &[], &mut sealed)
        .unwrap();
    sealed.extend_from_slice(tag.as_bytes());
    let (plain, sealed) = (&plain, &sealed);
    let seals: Vec<Subject<'_>> = vec![
        (
            "sealway",
            Box::new(|out| {
                let nonce = Nonce::assume_unique(SUITE, &nonce(1)).unwrap();
                seal_key.seal_to(nonce, &[], plain, out).unwrap();
            }),
        ),
        (
            "aws-lc-rs",
            Box::new(|out| {
                let (text, tag) = out.split_at_mut(len);
                let nonce = aws::Nonce::assume_unique_for_key(nonce(1));
                aws_key
                    .seal_out_of_place_scatter(nonce, aws::Aad::empty(), plain, text, &[], tag)
                    .unwrap();
            }),
        ),
        (
            "ring",
            Box::new(|out| {
                let (text, tag) = out.split_at_mut(len);
                text.copy_from_slice(plain);
                let nonce = ring_aead::Nonce::assume_unique_for_key(nonce(1));
                let made = ring_key
                    .seal_in_place_separate_tag(nonce, ring_aead::Aad::empty(), text)
                    .unwrap();
                tag.copy_from_slice(made.as_ref());
            }),
        ),
    ];
    race(&format!("one of {len} B seal"), 1, len, len + 16, seals);
    let opens: Vec<Subject<'_>> = vec![
        (
            "sealway",
            Box::new(|out| open_key.open_to(&nonce(1), &[], sealed, out).unwrap()),
        ),
        (
            "aws-lc-rs",
            Box::new(|out| {
                let (text, tag) = sealed.split_at(len);
                let nonce = aws::Nonce::assume_unique_for_key(nonce(1));
                aws_key
                    .open_separate_gather(nonce, aws::Aad::empty(), text, tag, out)
                    .unwrap();
            }),
        ),
        (
            "ring",
            Box::new(|out| {
                out.copy_from_slice(&sealed[..len]);
                let tag = Tag::from_slice(&sealed[len..]).unwrap();
                let nonce = ring_aead::Nonce::assume_unique_for_key(nonce(1));
                ring_key
                    .open_in_place_separate_tag(nonce, ring_aead::Aad::empty(), tag.0.into(), out, 0..)
                    .unwrap();
            }),
        ),
    ];
    race(&format!("one of {len} B open"), 1, len, len, opens);
}

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    println!("backend {}", Engine::new().backend());
    let wanted = |name: &str| name.contains(&filter);
    for count in [512, 4096, 32_768] {
        if wanted(&format!("mix{count}")) {
            packets(
                &format!("mix, batch {count}"),
                &mut Packets::new(count, Generator::packet),
            );
        }
    }
    let mut fixed = vec![(64, 4096), (128, 16), (128, 4), (64, 1), (1024, 256), (4096, 64)];
    // Any other case by its name, as `fixed1000x32`.
    if let Some((len, count)) = filter.strip_prefix("fixed").and_then(|name| name.split_once('x')) {
        fixed.clear();
        fixed.extend(len.parse().ok().zip(count.parse().ok()));
    }
    for (len, count) in fixed {
        let name = format!("fixed{len}x{count}");
        if wanted(&name) {
            packets(&format!("{count} of {len} B"), &mut Packets::new(count, |_| len));
        }
    }
    for (len, count) in [(64, 1), (64, 16), (64, 4096), (1024, 256)] {
        if wanted(&format!("gcm{len}")) {
            gcm::race(
                &format!("AES-128-GCM, {count} of {len} B"),
                &mut Packets::new(count, |_| len),
            );
        }
    }
    if wanted("gcmmix") {
        gcm::race(
            "AES-128-GCM, mix, batch 4096",
            &mut Packets::new(4096, Generator::packet),
        );
    }
    for len in [
        0,
        16,
        64,
        128,
        192,
        256,
        448,
        512,
        1024,
        1500,
        2048,
        4096,
        16_384,
        1 << 20,
    ] {
        if wanted(&format!("single{len}")) {
            single(len);
        }
    }
}
