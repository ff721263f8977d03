//! A run that never happened: deterministic, with noise, marks, a missing peer and hostile text.

use std::collections::BTreeMap;

use sealway_lab::result::{
    CanarySample, Case, Machine, Num, PlanFacts, Ratio, Recommendation, ResultRow, RunResult, SCHEMA, Subject, Warning,
    Window,
};

/// Text that would run as a script, end one, or colour a terminal, if it got through.
pub(crate) const HOSTILE: &str = "0.11.0 <script>alert(1)</script></script><!-- \" onload='x' & \x1b[31mred";
pub(crate) const SIZES: [usize; 5] = [64, 256, 1420, 16384, 65536];
pub(crate) const SUITES: [&str; 4] = ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305", "xchacha20-poly1305"];
pub(crate) const PRESENT: [&str; 4] = ["sealway", "aws-lc-rs", "ring", "rustcrypto"];
const ROUNDS: u32 = 9;

/// A small generator, so that the figures look measured and never change.
struct Noise(u64);

impl Noise {
    /// About -1 to 1, denser in the middle.
    fn next(&mut self) -> f64 {
        let mut draw = || {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 40) as f64 / f64::from(1u32 << 24) - 0.5
        };
        draw() + draw()
    }
}

fn has(subject: &str, suite: &str) -> bool {
    suite != "xchacha20-poly1305" || matches!(subject, "sealway" | "rustcrypto")
}

/// Seconds for one message.
fn seconds(subject: &str, suite: &str, op: &str, bytes: usize) -> f64 {
    let (fixed, per_byte) = match suite {
        "aes-128-gcm" => (38e-9, 0.145e-9),
        "aes-256-gcm" => (41e-9, 0.172e-9),
        "chacha20-poly1305" => (72e-9, 0.43e-9),
        _ => (128e-9, 0.435e-9),
    };
    let (fixed_factor, byte_factor) = match subject {
        "sealway" if suite.contains("chacha") => (0.8, 0.99),
        "sealway" => (1.02, 1.0),
        "aws-lc-rs" => (1.0, 1.0),
        "ring" => (1.15, 1.22),
        _ => (2.4, 3.1),
    };
    let open = if op == "open" { 1.04 } else { 1.0 };
    (fixed * fixed_factor + per_byte * byte_factor * bytes as f64) * open
}

fn key_seconds(subject: &str, suite: &str) -> f64 {
    let base = if suite.starts_with("aes") { 130e-9 } else { 22e-9 };
    base * match subject {
        "sealway" => 0.97,
        "aws-lc-rs" => 1.0,
        "ring" => 0.7,
        _ => 3.4,
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    if n % 2 == 1 {
        sorted[n / 2]
    } else {
        f64::midpoint(sorted[n / 2 - 1], sorted[n / 2])
    }
}

struct Builder {
    noise: Noise,
    results: Vec<ResultRow>,
    windows: Vec<Window>,
}

impl Builder {
    fn case(suite: &str, op: &str, bytes: Option<usize>) -> Case {
        let case = Case::new().with("suite", suite).with("op", op);
        match bytes {
            Some(bytes) => case.with("bytes", bytes).with("aad", 13usize),
            None => case,
        }
    }

    fn cells(&mut self, suite: &str, op: &str, bytes: Option<usize>) {
        let subjects: Vec<&str> = PRESENT.into_iter().filter(|subject| has(subject, suite)).collect();
        let reference = if suite == "xchacha20-poly1305" {
            "rustcrypto"
        } else {
            "aws-lc-rs"
        };
        let times: BTreeMap<&str, Vec<f64>> = subjects
            .iter()
            .map(|subject| {
                let base = match bytes {
                    Some(bytes) if op == "fresh-key" => {
                        seconds(subject, suite, "seal", bytes) + key_seconds(subject, suite)
                    }
                    Some(bytes) => seconds(subject, suite, op, bytes),
                    None => key_seconds(subject, suite),
                };
                let spread = if *subject == "ring" && bytes == Some(256) {
                    0.13
                } else {
                    0.012
                };
                (
                    *subject,
                    (0..ROUNDS).map(|_| base * (1.0 + spread * self.noise.next())).collect(),
                )
            })
            .collect();
        for subject in &subjects {
            let metrics: &[(&str, &str, &str)] = match (bytes, op) {
                (None, _) => &[("setup_time", "s/op", "lower")],
                (Some(_), "fresh-key") => &[("cpu_per_op", "s/op", "lower")],
                _ => &[("throughput", "B/s", "higher"), ("cpu_per_op", "s/op", "lower")],
            };
            for (metric, unit, better) in metrics {
                let value = |seconds: &f64| {
                    if *metric == "throughput" {
                        bytes.unwrap() as f64 / seconds
                    } else {
                        *seconds
                    }
                };
                let values: Vec<f64> = times[subject].iter().map(value).collect();
                let reference_values: Vec<f64> = times[reference].iter().map(value).collect();
                self.results.push(row(
                    suite,
                    op,
                    bytes,
                    subject,
                    (metric, unit, better),
                    &values,
                    reference,
                    &reference_values,
                ));
            }
            for (round, seconds) in times[subject].iter().enumerate() {
                let order = self.windows.len() as u32;
                let ops = (0.5 / seconds) as u64;
                let disturbed = order == 700;
                self.windows.push(Window {
                    workload: "primitives".into(),
                    case: Self::case(suite, op, bytes),
                    subject: (*subject).into(),
                    round: round as u32,
                    order,
                    t: f64::from(order) * 0.55,
                    wall_s: ops as f64 * seconds,
                    cpu_s: ops as f64 * seconds,
                    bytes: ops * bytes.unwrap_or(0) as u64,
                    ops,
                    figures: Default::default(),
                    canary: vec![CanarySample {
                        cpu_s: 0.005 * (1.0 + 0.004 * self.noise.next() + if disturbed { 0.05 } else { 0.0 }),
                        wall_over_cpu: 1.0,
                    }],
                    steal: if disturbed { 0.04 } else { 0.0 },
                    preempted: 0,
                    marks: if disturbed { vec!["canary".into()] } else { vec![] },
                });
            }
        }
    }
}

#[allow(clippy::too_many_arguments)]
fn row(
    suite: &str,
    op: &str,
    bytes: Option<usize>,
    subject: &str,
    (metric, unit, better): (&str, &str, &str),
    values: &[f64],
    reference: &str,
    reference_values: &[f64],
) -> ResultRow {
    let mid = median(values);
    let mad = median(&values.iter().map(|v| (v - mid).abs()).collect::<Vec<_>>());
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut logs: Vec<f64> = values.iter().zip(reference_values).map(|(a, b)| (a / b).ln()).collect();
    logs.sort_by(f64::total_cmp);
    let (estimate, low, high) = (median(&logs).exp(), logs[1].exp(), logs[logs.len() - 2].exp());
    let verdict = match (low, high) {
        (low, _) if low > 1.01 => "up",
        (_, high) if high < 0.99 => "down",
        (low, high) if low > 0.97 && high < 1.03 => "same",
        _ => "unknown",
    };
    let verdict = match (verdict, better) {
        ("up", "higher") | ("down", "lower") => "faster",
        ("up" | "down", _) => "slower",
        (other, _) => other,
    };
    let spread = 1.4826 * mad / mid;
    ResultRow {
        workload: "primitives".into(),
        workload_def: "5a1e".into(),
        subject: subject.into(),
        case: Builder::case(suite, op, bytes),
        metric: metric.into(),
        unit: unit.into(),
        better: better.into(),
        over: "rounds".to_owned(),
        median: Num(mid),
        mad: Num(mad),
        low: Num(sorted[1]),
        high: Num(sorted[sorted.len() - 2]),
        how: "order-statistics".into(),
        rounds: ROUNDS,
        values: values.iter().copied().map(Num).collect(),
        method: "T".into(),
        verified: "full".into(),
        ratio: (subject != reference).then(|| Ratio {
            to: reference.into(),
            estimate: Num(estimate),
            low: Num(low),
            high: Num(high),
            level: 0.961,
            how: "signed-rank".into(),
            mde: Num(0.012),
            verdict: verdict.into(),
        }),
        flags: if spread > 0.05 { vec!["noisy".into()] } else { vec![] },
    }
}

/// The whole sample.
pub(crate) fn sample() -> RunResult {
    let mut builder = Builder {
        noise: Noise(7),
        results: Vec::new(),
        windows: Vec::new(),
    };
    for suite in SUITES {
        for op in ["seal", "open"] {
            for bytes in SIZES {
                builder.cells(suite, op, Some(bytes));
            }
        }
        builder.cells(suite, "key-setup", None);
        builder.cells(suite, "fresh-key", Some(256));
    }
    let subject = |name: &str, version: &str| Subject {
        name: name.into(),
        version: version.into(),
        kind: "in-process".into(),
        setup: "matched".into(),
        ..Subject::default()
    };
    let mut subjects = vec![
        subject("sealway", "0.1.0"),
        subject("aws-lc-rs", "1.19.1"),
        subject("ring", "0.17.14"),
        subject("rustcrypto", HOSTILE),
        subject("openssl", ""),
    ];
    subjects[4].kind = "program".into();
    subjects[4].error = "no program `openssl` on PATH; install the package openssl".into();
    subjects[2].differs = vec!["tag appended, copied by the caller".into()];
    RunResult {
        schema: SCHEMA,
        run: "5f0c9a52-7d0e-4c88-9d39-2f6f4b1f9f10".into(),
        started: "2026-03-01T10:00:00Z".into(),
        ended: "2026-03-01T10:21:40Z".into(),
        complete: true,
        sealway: "0.1.0+abcdef012345".into(),
        profile: "standard".into(),
        seed: "12345678901234567890".into(),
        command: [
            "sealway",
            "lab",
            "--profile",
            "standard",
            "--seed",
            "12345678901234567890",
        ]
        .map(String::from)
        .into(),
        machine: Machine {
            key: "9f86d081884c7d65".into(),
            cpu: "Example Processor 9000 @ 3.00 GHz".into(),
            flags: ["aes", "pclmulqdq", "avx2", "vaes", "avx512f"].map(String::from).into(),
            cores: 2,
            kernel: "6.12.8".into(),
            memory: 8 << 30,
            arch: "x86_64".into(),
            facts: BTreeMap::from([
                ("clocksource".to_owned(), "tsc".into()),
                ("governor".to_owned(), "not visible".into()),
                ("hypervisor".to_owned(), "kvm".into()),
                ("turbo".to_owned(), true.into()),
                ("caches_kib".to_owned(), serde_json::json!([48, 2048, 36864])),
            ]),
        },
        link: None,
        plan: PlanFacts {
            rounds: ROUNDS,
            window_s: 0.5,
            warmup_s: 0.05,
            cells: 168,
            expected_s: 860.0,
            taken_s: 901.4,
        },
        warnings: vec![Warning {
            code: "shared-cpu".into(),
            place: String::new(),
            text:
                "2 CPUs only: nothing could be pinned apart, so other programs share the measured CPU. Close them, or \
                   trust ratios before rates."
                    .into(),
        }],
        subjects,
        results: builder.results,
        windows: builder.windows,
        recommendation: recommendations(),
        responder: None,
        reproduction: None,
    }
}

fn recommendations() -> Vec<Recommendation> {
    let item = |scenario: &str, choice: &str, reason: &str, confidence: &str| Recommendation {
        scenario: scenario.into(),
        choice: choice.into(),
        reason: reason.into(),
        because: vec![0],
        confidence: confidence.into(),
    };
    vec![
        item(
            "server",
            "aes-128-gcm",
            "It seals 16 KiB at 6.79 GB/s, 2.92x chacha20-poly1305 on this CPU.",
            "clear",
        ),
        item(
            "mobile",
            "chacha20-poly1305",
            "Phones without AES instructions run it several times faster.",
            "slight",
        ),
        item(
            "short-connections",
            "chacha20-poly1305",
            "Its key costs 21 ns, that of aes-128-gcm 126 ns.",
            "clear",
        ),
        item(
            "nonce-misuse",
            "xchacha20-poly1305",
            "Random 24-byte nonces do not collide in practice.",
            "unknown",
        ),
    ]
}

/// The sample of a run that was stopped after the first round, with figures that are not numbers.
pub(crate) fn broken() -> RunResult {
    let mut run = sample();
    run.complete = false;
    run.ended = String::new();
    run.results.truncate(12);
    run.windows.truncate(3);
    run.recommendation.clear();
    run.results[0].median = Num(f64::NAN);
    run.results[1].high = Num(f64::INFINITY);
    run.results[2].median = Num(f64::INFINITY);
    run.results[3].median = Num(0.0);
    run.results[4].values.clear();
    for row in &mut run.results {
        if let Some(ratio) = &mut row.ratio {
            ratio.low = Num(0.0);
            ratio.high = Num(f64::INFINITY);
            ratio.level = 0.0;
            ratio.how = "range".into();
        }
    }
    run.windows[0].wall_s = 0.0;
    run
}

/// The least that a result file can be.
pub(crate) fn empty() -> RunResult {
    serde_json::from_str(r#"{"schema":1,"run":"x","started":"","sealway":"0.1.0","machine":{}}"#).unwrap()
}
