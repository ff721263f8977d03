#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::measure::{Noise, NoiseSample};
use crate::result::{CanarySample, Case, Window};
use crate::run::Timed;
use crate::run::{CellError, Counted};

fn fixed(estimate: f64, low: f64, high: f64) -> impl Fn(&[f64], &[f64]) -> Option<RatioInterval> {
    move |_, _| {
        Some(RatioInterval {
            estimate,
            low,
            high,
            level: 0.961,
        })
    }
}

/// Smallest, mean and largest of the single ratios: enough to drive the check in a test.
fn plain(first: &[f64], second: &[f64]) -> Option<RatioInterval> {
    let ratios: Vec<f64> = first.iter().zip(second).map(|(a, b)| b / a).collect();
    (ratios.len() >= 6).then(|| RatioInterval {
        estimate: ratios.iter().sum::<f64>() / ratios.len() as f64,
        low: ratios.iter().copied().fold(f64::INFINITY, f64::min),
        high: ratios.iter().copied().fold(0.0, f64::max),
        level: 0.961,
    })
}

#[test]
fn judgement() {
    let values = [1.0; 9];
    for (interval, verdict) in [
        (fixed(1.0, 0.99, 1.01), AaVerdict::Sound),
        (fixed(1.01, 0.995, 1.02), AaVerdict::Sound),
        (fixed(1.011, 0.995, 1.02), AaVerdict::Error),
        (fixed(0.989, 0.9, 1.02), AaVerdict::Error),
        (fixed(1.005, 1.001, 1.02), AaVerdict::Error),
        (fixed(0.995, 0.99, 0.999), AaVerdict::Error),
        (fixed(f64::NAN, 0.99, 1.01), AaVerdict::Unknown),
    ] {
        assert_eq!(judge(&values, &values, &interval).verdict, verdict);
    }
    assert_eq!(judge(&values[..5], &values, &plain).verdict, AaVerdict::Unknown);
    assert_eq!(judge(&values[..5], &values, &plain).rounds, 5);
    let range = |_: &[f64], _: &[f64]| {
        Some(RatioInterval {
            estimate: 1.0,
            low: 0.9,
            high: 1.1,
            level: 0.0,
        })
    };
    assert_eq!(judge(&values, &values, &range).verdict, AaVerdict::Unknown);
    let sound = judge(&values, &values, &fixed(1.001, 0.992, 1.004));
    assert!(
        sound.text.contains("+0.10 %") && sound.text.contains("under about 0.8 %"),
        "{}",
        sound.text
    );
}

#[test]
fn the_order_is_a_b_b_a() {
    assert_eq!(schedule(4), [vec![0, 1], vec![1, 0], vec![0, 1], vec![1, 0]]);
}

struct Twin {
    ops: u64,
    error: Option<CellError>,
}

impl Timed for Twin {
    fn prepare(&mut self) -> Result<(), CellError> {
        self.error.clone().map_or(Ok(()), Err)
    }

    fn window(&mut self, _warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        let wall_s = window.as_secs_f64();
        Ok(Counted {
            ops: self.ops,
            bytes: 0,
            wall_s,
            cpu_s: wall_s,
            figures: Vec::new(),
            tails: Vec::new(),
        })
    }
}

struct Calm(f64);

impl Probe for Calm {
    fn now(&mut self) -> f64 {
        self.0 += 1.0;
        self.0
    }

    fn canary(&mut self) -> CanarySample {
        CanarySample {
            cpu_s: 0.005,
            wall_over_cpu: 1.0,
        }
    }

    fn noise(&mut self) -> NoiseSample {
        NoiseSample::default()
    }
}

struct Quiet(usize);

impl Observer for Quiet {
    fn round_done(&mut self, partial: &RunResult) {
        self.0 = partial.windows.len();
    }
}

fn good() -> Surroundings {
    let facts = json!({
        "build.debug_assertions": false, "build.profile": "release, opt-level 3", "kernel.clocksource": "tsc",
        "cpu.governor": "performance", "host.energy": "open",
    });
    let facts: BTreeMap<String, Value> = serde_json::from_value(facts).unwrap();
    Surroundings {
        machine: Machine {
            cores: 8,
            facts,
            ..Machine::default()
        },
        clock: ClockFacts {
            cost_ns: 20.0,
            step_ns: 10,
        },
        cpus: 8,
        peers: vec![
            Peer {
                name: "openssl",
                present: true,
            },
            Peer {
                name: "rsync",
                present: false,
            },
        ],
    }
}

fn check(ops: [u64; 2], error: Option<CellError>, around: &Surroundings) -> (Diagnosis, usize) {
    let timing = Timing {
        warmup: Duration::ZERO,
        window: Duration::from_secs(1),
        extra_rounds: 0,
    };
    let setup = Setup {
        timing,
        interval: &plain,
        surroundings: around,
    };
    let mut observer = Quiet(0);
    let mut factory = |name: &str| -> Cell {
        let ops = ops[usize::from(name == NAMES[1])];
        let error = error.clone();
        Cell::new(Case::new(), name, Twin { ops, error })
    };
    let diagnosis = examine(&mut factory, &setup, &mut Calm(0.0), &mut observer).unwrap();
    (diagnosis, observer.0)
}

#[test]
fn a_calm_machine() {
    let mut around = good();
    let (diagnosis, windows) = check([1000, 1000], None, &around);
    assert_eq!(windows, 2 * ROUNDS);
    assert_eq!(
        (diagnosis.a_a.verdict, diagnosis.a_a.rounds),
        (AaVerdict::Sound, ROUNDS)
    );
    let state = |d: &Diagnosis, name: &str| d.findings.iter().find(|f| f.name == name).unwrap().state;
    assert_eq!(state(&diagnosis, "steal"), State::Unknown);
    assert_eq!(diagnosis.verdict, Verdict::Yes, "{}", diagnosis.render());
    around.cpus = 2;
    let (diagnosis, _) = check([1000, 1000], None, &around);
    assert_eq!(
        (state(&diagnosis, "cpus"), diagnosis.verdict),
        (State::Attention, Verdict::WithCare)
    );
}

#[test]
fn a_difference_that_cannot_be_is_the_labs_error() {
    let (diagnosis, _) = check([1000, 1020], None, &good());
    assert_eq!(
        (diagnosis.a_a.verdict, diagnosis.verdict),
        (AaVerdict::Error, Verdict::No)
    );
    assert!((diagnosis.a_a.estimate.get() - 1.02).abs() < 1e-9);
}

#[test]
fn a_subject_that_fails_proves_nothing() {
    let error = CellError::failed("no key");
    let (diagnosis, _) = check([1000, 1000], Some(error), &good());
    assert_eq!(
        (diagnosis.a_a.verdict, diagnosis.verdict),
        (AaVerdict::Unknown, Verdict::WithCare)
    );
    assert!(diagnosis.a_a.text.contains("no key"));
}

fn outcome(marks: &[&str], noise: Noise) -> Outcome {
    let window = |marks: Vec<String>| Window {
        workload: "doctor".to_owned(),
        case: Case::new(),
        subject: "a".to_owned(),
        round: 0,
        order: 0,
        t: 0.0,
        wall_s: 1.0,
        cpu_s: 1.0,
        bytes: 0,
        ops: 1,
        figures: Default::default(),
        canary: Vec::new(),
        steal: 0.0,
        preempted: 0,
        marks,
    };
    let mut windows = vec![window(marks.iter().map(|mark| (*mark).to_owned()).collect())];
    windows.resize(10, window(Vec::new()));
    let canaries = vec![
        CanarySample {
            cpu_s: 0.005,
            wall_over_cpu: 1.0
        };
        11
    ];
    Outcome {
        windows,
        noise: vec![noise; 10],
        canaries,
        ..Outcome::default()
    }
}

fn states(around: &Surroundings, outcome: &Outcome) -> Vec<(&'static str, State)> {
    let all = findings(around, outcome);
    all.iter()
        .filter(|f| f.state != State::Ok)
        .map(|f| (f.name, f.state))
        .collect()
}

#[test]
fn findings_of_a_run() {
    let around = good();
    let noise = Noise {
        steal: Some(0.0),
        ..Noise::default()
    };
    assert_eq!(states(&around, &outcome(&[], noise)), []);
    let one = outcome(&["canary", "preempted"], noise);
    assert_eq!(
        states(&around, &one),
        [("cpu-speed", State::Attention), ("preemption", State::Attention)]
    );
    let mut many = outcome(&["canary"], noise);
    for window in &mut many.windows[..3] {
        window.marks = vec!["canary".to_owned()];
    }
    assert_eq!(states(&around, &many), [("cpu-speed", State::Bad)]);
    let causes: [(fn(&mut Noise), _); 3] = [
        (|noise| noise.steal = Some(0.02), ("steal", State::Attention)),
        (|noise| noise.steal = Some(0.06), ("steal", State::Bad)),
        (|noise| noise.throttled_periods = Some(1), ("quota", State::Bad)),
    ];
    for (cause, expected) in causes {
        let mut noise = noise;
        cause(&mut noise);
        assert_eq!(states(&around, &outcome(&[], noise)), [expected]);
    }
}

#[test]
fn findings_of_the_surroundings() {
    let calm = outcome(
        &[],
        Noise {
            steal: Some(0.0),
            ..Noise::default()
        },
    );
    for (fact, value, expected) in [
        ("build.debug_assertions", json!(true), ("build", State::Bad)),
        ("kernel.clocksource", json!("hpet"), ("clocksource", State::Attention)),
        ("cpu.governor", json!("powersave"), ("governor", State::Attention)),
        ("host.power", json!("battery"), ("power", State::Attention)),
        ("host.energy", json!("closed"), ("energy", State::Unknown)),
        ("cgroup.cpus", json!(1.5), ("quota", State::Attention)),
    ] {
        let mut around = good();
        around.machine.facts.insert(fact.to_owned(), value);
        assert_eq!(states(&around, &calm), [expected]);
    }
    let bare = Surroundings {
        machine: Machine::default(),
        peers: Vec::new(),
        ..good()
    };
    let unknown: Vec<_> = states(&bare, &Outcome::default());
    assert!(unknown.contains(&("governor", State::Unknown)) && unknown.contains(&("peers", State::Attention)));
    assert!(unknown.contains(&("cpu-speed", State::Unknown)));
}

#[test]
fn text_fits_80_columns_of_ascii() {
    let mut around = good();
    let odd = format!("wörd{}\n\u{1b}[31m {}", "x".repeat(200), "many words ".repeat(30));
    around.machine.facts.insert("cpu.governor".to_owned(), json!(odd));
    around.cpus = 1;
    let (diagnosis, _) = check([1000, 1020], None, &around);
    let text = diagnosis.render();
    assert!(text.starts_with("Trust figures of this machine? Not now:"));
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        assert!(
            line.len() <= 80 && line.bytes().all(|b| (0x20..0x7f).contains(&b)),
            "{line:?}"
        );
        assert_eq!(line, line.trim_end());
    }
    assert!(
        text.contains("attention  cpus            1 CPU, shared by subjects, lab and system\n"),
        "{text}"
    );
    assert!(
        text.contains("\n                           $ sudo cpupower frequency-set -g performance\n"),
        "{text}"
    );
}

#[test]
fn json_has_stable_names() {
    let (diagnosis, _) = check([1000, 1000], None, &good());
    let value = serde_json::to_value(&diagnosis).unwrap();
    assert_eq!(value["verdict"], "yes");
    assert_eq!(value["a_a"]["verdict"], "sound");
    assert_eq!(value["a_a"]["rounds"], 9);
    assert_eq!(value["findings"][0]["name"], "build");
    assert_eq!(value["findings"][0]["state"], "ok");
}

#[test]
fn peers_are_programs_in_absolute_folders() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("openssl");
    std::fs::write(&program, "").unwrap();
    std::fs::write(folder.path().join("rsync"), "").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::join_paths([Path::new(""), Path::new("relative"), folder.path()]).unwrap();
    let present = |path| {
        find_peers(path)
            .iter()
            .filter(|p| p.present)
            .map(|p| p.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(present(Some(path.as_os_str())), ["openssl"]);
    assert!(present(None).is_empty());
}
