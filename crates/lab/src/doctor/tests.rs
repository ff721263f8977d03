#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::measure::{Noise, NoiseSample};
use crate::result::{CanarySample, Case, Num, Ratio, Window};
use crate::run::Timed;
use crate::run::{CellError, Counted};

fn ratio(estimate: f64, low: f64, high: f64) -> Ratio {
    Ratio {
        estimate: Num(estimate),
        low: Num(low),
        high: Num(high),
        level: 0.961,
        ..Ratio::default()
    }
}

#[test]
fn judgement() {
    let range = Ratio {
        level: 0.0,
        ..ratio(1.0, 0.9, 1.1)
    };
    for (ratio, verdict) in [
        (ratio(1.0, 0.99, 1.01), AaVerdict::Sound),
        (ratio(1.01, 0.995, 1.02), AaVerdict::Sound),
        (ratio(1.011, 0.995, 1.02), AaVerdict::Error),
        (ratio(0.989, 0.9, 1.02), AaVerdict::Error),
        (ratio(1.005, 1.001, 1.02), AaVerdict::Error),
        (ratio(0.995, 0.99, 0.999), AaVerdict::Error),
        (ratio(f64::NAN, 0.99, 1.01), AaVerdict::Unknown),
        (ratio(1.0, 0.99, f64::INFINITY), AaVerdict::Unknown),
        (range, AaVerdict::Unknown),
    ] {
        let found = judge(5, &ratio);
        assert_eq!((found.verdict, found.rounds), (verdict, 5), "{ratio:?}");
    }
    let sound = judge(9, &ratio(1.001, 0.992, 1.004));
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
            wall_s,
            cpu_s: wall_s,
            ..Counted::default()
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
        "kernel.cycles": "open",
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
    let mut observer = Quiet(0);
    let mut factory = |name: &str| -> Cell {
        let ops = ops[usize::from(name == NAMES[1])];
        let error = error.clone();
        Cell::new(Case::new(), name, Twin { ops, error })
    };
    let diagnosis = examine(&mut factory, timing, around, &mut Calm(0.0), &mut observer).unwrap();
    (diagnosis, observer.0)
}

#[test]
fn a_calm_machine() {
    let mut around = good();
    let (diagnosis, windows) = check([1000, 1000], None, &around);
    assert_eq!(windows, 2 * ROUNDS);
    assert_eq!(diagnosis.a_a.verdict, AaVerdict::Sound);
    assert_eq!(diagnosis.a_a.rounds, ROUNDS);
    let state = |d: &Diagnosis, name: &str| d.findings.iter().find(|f| f.name == name).unwrap().state;
    assert_eq!(state(&diagnosis, "steal"), State::Unknown);
    assert_eq!(diagnosis.verdict, Verdict::Yes, "{}", diagnosis.render());
    around.cpus = 2;
    let (diagnosis, _) = check([1000, 1000], None, &around);
    assert_eq!(state(&diagnosis, "cpus"), State::Attention);
    assert_eq!(diagnosis.verdict, Verdict::WithCare);
}

#[test]
fn a_difference_that_cannot_be_is_the_labs_error() {
    let (diagnosis, _) = check([1000, 1020], None, &good());
    assert_eq!(diagnosis.a_a.verdict, AaVerdict::Error);
    assert_eq!(diagnosis.verdict, Verdict::No);
    assert!((diagnosis.a_a.estimate.get() - 1.02).abs() < 1e-9);
}

#[test]
fn a_subject_that_fails_proves_nothing() {
    let error = CellError::failed("no key");
    let (diagnosis, _) = check([1000, 1000], Some(error), &good());
    assert_eq!(diagnosis.a_a.verdict, AaVerdict::Unknown);
    assert_eq!(diagnosis.verdict, Verdict::WithCare);
    assert!(diagnosis.a_a.text.contains("no key"));
}

fn outcome(marks: &[&str], noise: Noise) -> Outcome {
    let sample = CanarySample {
        cpu_s: 0.005,
        wall_over_cpu: 1.0,
    };
    let window = |marks: Vec<String>| Window {
        wall_s: 1.0,
        ops: 1,
        canary: vec![sample; 2],
        marks,
        ..Window::default()
    };
    let mut windows = vec![window(marks.iter().map(|mark| (*mark).to_owned()).collect())];
    windows.resize(10, window(Vec::new()));
    Outcome {
        windows,
        noise: vec![noise; 10],
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
        ("kernel.cycles", json!("closed"), ("cycles", State::Unknown)),
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
    assert!(unknown.contains(&("cpu-speed", State::Unknown)) && unknown.contains(&("cycles", State::Unknown)));
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
        find_peers(&["openssl", "rsync"], path)
            .iter()
            .filter(|p| p.present)
            .map(|p| p.name)
            .collect::<Vec<_>>()
    };
    assert_eq!(present(Some(path.as_os_str())), ["openssl"]);
    assert!(present(None).is_empty());
}

/// Names that are looked for as literals in the sources below `folder`.
fn looked_for(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(looked_for(&path));
        } else {
            let text = std::fs::read_to_string(&path).unwrap();
            let literals = text.split("on_path(\"").skip(1);
            names.extend(literals.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())));
        }
    }
    names
}

#[test]
fn every_program_that_the_lab_starts_is_looked_for() {
    let programs = crate::catalogue::ALL.programs();
    // Libraries, and our own program.
    let inside = ["aws-lc-rs", "ring", "rustcrypto", "bip324", "https-post", "grpc-plain"];
    for peer in crate::catalogue::ALL.peers() {
        let is_of = |program: &&str| peer.starts_with(program) || program.starts_with(peer);
        assert!(inside.contains(&peer) || programs.iter().any(is_of), "{peer}");
    }
    let literals = looked_for(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(literals.contains(&"nginx".to_owned()));
    for name in literals {
        assert!(programs.contains(&name.as_str()), "{name}");
    }
}
