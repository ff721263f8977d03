//! A real run, short: what it says is checked, how long it took is not.

use std::collections::BTreeSet;

use sealway_aead::Suite;

use super::*;
use crate::ending::Ending;
use crate::plan::Profile;
use crate::result::{PlanFacts, RunResult};
use crate::run::{CellError, Counted, Step, Timed};
use crate::stats::is_judged;
use crate::workload::{Peers, run};

fn measure(request: &Request, observer: &mut dyn Observer) -> Result<RunResult, LabError> {
    run(&[&WORKLOAD], request, observer)
}

#[derive(Default)]
struct Watcher {
    planned: Option<PlanFacts>,
    partials: Vec<RunResult>,
    visits: u32,
    stop_after: Option<u32>,
}

impl Observer for Watcher {
    fn planned(&mut self, plan: &PlanFacts) {
        self.planned = Some(plan.clone());
    }

    fn progress(&mut self, _step: &Step<'_>) {
        self.visits += 1;
    }

    fn round_done(&mut self, partial: &RunResult) {
        self.partials.push(partial.clone());
    }

    fn stopped(&self) -> bool {
        self.stop_after.is_some_and(|limit| self.visits > limit)
    }
}

fn request(suites: &[Suite], peers: Peers) -> Request {
    Request {
        profile: Profile::Quick,
        peers,
        suites: suites.to_vec(),
        budget: Some(Duration::from_secs(6)),
        overtime: true,
        seed: Some(1),
        command: vec!["sealway".to_owned(), "lab".to_owned()],
        ..Request::default()
    }
}

fn in_process() -> Peers {
    Peers::Named(vec!["rustcrypto".to_owned()])
}

#[test]
fn a_run_fills_the_result_file() {
    let mut watcher = Watcher::default();
    let suites = [Suite::ChaCha20Poly1305, Suite::XChaCha20Poly1305];
    let result = measure(&request(&suites, in_process()), &mut watcher).unwrap();
    assert!(result.complete);
    assert_eq!(Ending::of(&result, false), Ending::Done);
    assert_eq!(result.seed, "1");
    assert!(!result.machine.key.is_empty() && !result.run.is_empty() && !result.ended.is_empty());
    assert_eq!(watcher.partials.len(), result.plan.rounds as usize);
    assert!(
        watcher
            .partials
            .iter()
            .all(|partial| !partial.complete && partial.run == result.run)
    );

    let cells: BTreeSet<(String, String)> = result
        .results
        .iter()
        .map(|row| (row.case.canonical(), row.subject.clone()))
        .collect();
    assert_eq!(cells.len(), result.plan.cells as usize, "every planned cell has rows");
    for row in &result.results {
        assert!(
            row.median.get() > 0.0 && row.low <= row.median && row.median <= row.high,
            "{row:?}"
        );
        assert_eq!(row.rounds, result.plan.rounds);
        let sampled = row.case.text("op") == Some("key-setup");
        assert_eq!(row.verified, if sampled { "sampled" } else { "full" });
        // The reference has no ratio, a message's time has none beside its throughput, and counters have none.
        let message = row.metric == "cpu_per_op" && row.case.text("op") != Some("fresh-key");
        let leads = is_judged(&row.metric) && !message;
        assert_eq!(row.ratio.is_some(), row.subject == "sealway" && leads, "{row:?}");
    }
    for (name, op) in [
        ("throughput", "seal"),
        ("throughput", "open"),
        ("setup_time", "key-setup"),
        ("cpu_per_op", "fresh-key"),
    ] {
        assert!(
            result
                .results
                .iter()
                .any(|row| row.metric == name && row.case.text("op") == Some(op)),
            "{name} {op}"
        );
    }
    let scenarios: Vec<&str> = result
        .recommendation
        .iter()
        .map(|advice| advice.scenario.as_str())
        .collect();
    // Rows whose rounds differ too much advise nothing, and windows this short may be among them anywhere.
    let unusable = result
        .results
        .iter()
        .any(|row| row.flags.iter().any(|flag| flag == "unusable"));
    assert!(
        unusable || (scenarios.contains(&"server") && scenarios.contains(&"nonce-misuse")),
        "{scenarios:?}"
    );
    for advice in &result.recommendation {
        // Advice about safety rests on no figure.
        assert_eq!(advice.because.is_empty(), advice.scenario == "nonce-misuse");
        assert!(advice.because.iter().all(|&i| i < result.results.len()));
        assert!(advice.reason.ends_with('.'));
    }
}

#[test]
fn an_interrupted_run_is_a_valid_partial_result() {
    let mut watcher = Watcher {
        stop_after: Some(20),
        ..Watcher::default()
    };
    let result = measure(&request(&[Suite::Aes128Gcm], Peers::None), &mut watcher).unwrap();
    assert!(!result.complete);
    assert_eq!(Ending::of(&result, false), Ending::Interrupted);
    assert!(!result.results.is_empty() && !result.windows.is_empty());
    assert!(result.warnings.iter().any(|warning| warning.code == "interrupted"));
    let text = serde_json::to_string(&result).unwrap();
    assert!(serde_json::from_str::<RunResult>(&text).unwrap().results == result.results);
}

#[test]
fn a_peer_that_does_not_exist_is_named() {
    let peers = Peers::Named(vec!["ring".to_owned(), "libsodium".to_owned()]);
    let error = measure(&request(&[], peers), &mut Watcher::default()).unwrap_err();
    assert_eq!(error.ending(), Ending::Misused);
    assert!(
        error.to_string().contains("\"libsodium\"") && error.to_string().contains("aws-lc-rs"),
        "{error}"
    );
}

#[test]
fn a_budget_nobody_can_keep_is_an_error_before_the_run() {
    let mut impossible = request(&[], Peers::None);
    impossible.budget = Some(Duration::from_millis(1));
    let error = measure(&impossible, &mut Watcher::default()).unwrap_err();
    assert_eq!(error.ending(), Ending::Misused);
}

/// Every suite with every size both ways, both key cases, and each in-process subject wherever it has the suite.
#[test]
fn a_quick_run_has_all_cases() {
    let found = subjects::find(&in_process(), &PEERS, |_| Err(String::new())).unwrap();
    let cells = definition::cells(Profile::Quick, &Suite::ALL, &found, None);
    for suite in Suite::ALL {
        for subject in ["sealway", "rustcrypto"] {
            let mut got: Vec<(String, Option<i64>)> = cells
                .iter()
                .filter(|cell| cell.subject == subject && cell.case.text("suite") == Some(suite.name()))
                .map(|cell| {
                    (
                        cell.case.text("op").unwrap_or_default().to_owned(),
                        cell.case.int("bytes"),
                    )
                })
                .collect();
            got.sort();
            let sizes = [64, 256, 1420, 16_384, 65_536].map(Some);
            let mut want = vec![("fresh-key".to_owned(), Some(256)), ("key-setup".to_owned(), None)];
            want.extend(sizes.map(|size| ("open".to_owned(), size)));
            want.extend(sizes.map(|size| ("seal".to_owned(), size)));
            assert_eq!(got, want, "{suite} {subject}");
        }
    }
}

#[test]
fn programs_of_whole_seconds_have_time_of_their_own_within_the_limit() {
    struct Idle;
    impl Timed for Idle {
        fn window(&mut self, _: Duration, _: Duration) -> Result<Counted, CellError> {
            Ok(Counted::default())
        }
    }
    let cell = |case: i64, subject| Cell::new(Case::new().with("n", case), subject, Idle);
    let planned = |other| {
        let cells: Vec<Cell> = (0..20).flat_map(|n| [cell(n, "sealway"), cell(n, other)]).collect();
        let request = Request {
            budget: Some(Duration::from_secs(100)),
            ..request(&[], Peers::None)
        };
        plan(&request, &cells).unwrap()
    };
    let (with, without) = (planned(openssl::NAME), planned("ring"));
    assert_eq!(
        (with.limit, without.limit),
        (Some(Duration::from_secs(100)), with.limit)
    );
    assert!(with.window < without.window && with.expected <= Duration::from_secs(100));
    // All that the plan has kept, in all of its rounds.
    let (cells, programs) = (
        with.facts().cells,
        openssl::SHORTEST * (with.facts().cells / 2) * with.rounds,
    );
    let visit = OVERHEAD.per_window + with.warmup + with.window;
    assert_eq!(
        with.expected,
        OVERHEAD.per_cell * cells + visit * (cells * with.rounds) + programs
    );
    // Pace fits the next round by the mean of its visits.
    assert_eq!(with.visit, visit + programs / (cells * with.rounds));
}
