#![allow(clippy::unwrap_used)]

use super::*;
use crate::plan::Profile;
use crate::result::{Num, Ratio, ResultRow, RunResult, SCHEMA};
use crate::stats::latency::Tail;
use crate::workload::Peers;

fn request(profile: Profile, budget: Option<u64>) -> Request {
    Request {
        profile,
        peers: Peers::None,
        budget: budget.map(Duration::from_secs),
        ..Request::default()
    }
}

#[test]
fn windows_have_whole_seconds_and_keep_the_limit() {
    for (profile, budget, window) in [
        (Profile::Quick, None, 1),
        (Profile::Quick, Some(15), 1),
        (Profile::Standard, None, 2),
        (Profile::Full, None, 10),
    ] {
        let prepared = prepare(&request(profile, budget)).unwrap();
        let plan = &prepared.plan;
        assert_eq!(plan.window, Duration::from_secs(window), "{profile}");
        assert!(plan.warmup.is_zero());
        let windows = plan.window * plan.facts().cells * plan.rounds;
        assert!(plan.expected >= windows, "{:?} < {windows:?}", plan.expected);
        if let Some(limit) = plan.limit {
            assert!(plan.expected <= limit, "{profile}: {:?} > {limit:?}", plan.expected);
        }
    }
    assert!(matches!(
        prepare(&request(Profile::Full, Some(20))),
        Err(LabError::Plan(PlanError::LimitTooShort { limit, .. })) if limit == Duration::from_secs(20)
    ));
}

#[test]
fn a_choice_of_suites_or_stacks_leaves_nothing() {
    let suites = Request {
        suites: vec![sealway_aead::Suite::ChaCha20Poly1305],
        ..request(Profile::Quick, None)
    };
    assert!(matches!(prepare(&suites), Err(LabError::Plan(PlanError::NoCells))));
}

/// A round that stood still has its share, as in all workloads.
#[test]
fn percentiles_are_of_the_requests_of_all_rounds() {
    for kind in [Kind::Requests, Kind::Bound] {
        let percentiles = metrics(&kind.case()).iter().filter_map(|metric| metric.percentile);
        let found: Vec<_> = percentiles.map(|percentile| (percentile.of, percentile.q)).collect();
        assert_eq!(found, [(LATENCY, 0.5), (LATENCY, 0.99)]);
    }
}

/// One window of every generator that is there. Nothing is said of how fast they are.
#[test]
fn generators_and_programs_do_the_same() {
    let mut auto = request(Profile::Quick, None);
    auto.peers = Peers::Auto;
    let mut prepared = prepare(&auto).unwrap();
    for cell in &mut prepared.cells {
        use crate::run::Timed;
        let counted = cell.window(Duration::ZERO, Duration::ZERO).unwrap();
        let (subject, case) = (&cell.subject, &cell.case);
        assert!(counted.ops > 0 && counted.bytes > 0, "{subject}: {counted:?}");
        assert!(counted.wall_s >= 0.9 && counted.cpu_s > 0.0, "{subject}: {counted:?}");
        for metric in metrics(case) {
            let figure = match metric.percentile {
                Some(percentile) => counted.tails[0].1.quantile(percentile.q),
                None => counted
                    .figures
                    .iter()
                    .find(|(name, _)| *name == metric.name)
                    .map(|(_, value)| *value),
            };
            assert!(figure.is_some_and(|value| value > 0.0), "{subject} {}", metric.name);
        }
        // Of all requests but those under way at the end, whoever has counted them.
        let counts = |tail: &Tail| tail.count().abs_diff(counted.ops) <= CONNECTIONS as u64;
        assert!(
            counted
                .tails
                .iter()
                .all(|(name, tail)| *name == LATENCY && counts(tail)),
            "{subject}"
        );
    }
    for (subject, program) in prepared.subjects.iter().skip(1).zip(PEERS) {
        let takes_part = prepared.cells.iter().any(|cell| cell.subject == program);
        assert_eq!(takes_part, subject.error.is_empty(), "{subject:?}");
        assert!(takes_part || subject.error.contains("apt install"), "{subject:?}");
    }
}

fn row(kind: Kind, metric: &str, peer: &str, [low, estimate, high]: [f64; 3]) -> ResultRow {
    ResultRow {
        subject: OURS.to_owned(),
        case: kind.case(),
        metric: metric.to_owned(),
        better: "higher".to_owned(),
        median: Num(1e9),
        low: Num(1e9),
        high: Num(1e9),
        how: "range".to_owned(),
        rounds: 10,
        verified: "full".to_owned(),
        ratio: (!peer.is_empty()).then(|| Ratio {
            to: peer.to_owned(),
            estimate: Num(estimate),
            low: Num(low),
            high: Num(high),
            level: 0.95,
            how: "signed-rank".to_owned(),
            mde: Num(0.02),
            verdict: "same".to_owned(),
        }),
        ..ResultRow::default()
    }
}

/// What the first screen says of these rows: the answer and its detail.
fn said(rows: Vec<ResultRow>) -> (String, String) {
    said_by(false, &rows)
}

/// The same of a build for debugging, or of one with optimisation.
fn said_by(debugging: bool, rows: &[ResultRow]) -> (String, String) {
    let run: RunResult = serde_json::from_value(serde_json::json!({
        "schema": SCHEMA, "run": "r", "started": "", "sealway": "0",
        "machine": { "facts": { "build.debug_assertions": debugging } }
    }))
    .unwrap();
    let scope = crate::lens::Scope {
        run: &run,
        rows: rows.iter().collect(),
        subjects: vec![OURS],
    };
    let headline = (lens::LENS.headline)(&scope).unwrap();
    (headline.answer, headline.detail)
}

#[test]
fn the_first_screen_says_by_how_much_and_what_it_means() {
    let mut theirs = row(Kind::Stream, "cpu_per_gb", "", [1.0, 1.0, 1.0]);
    theirs.subject = "iperf3".to_owned();
    theirs.median = Num(0.25);
    let mut ours = row(Kind::Stream, "cpu_per_gb", "iperf3", [0.9, 0.97, 1.0]);
    ours.median = Num(0.2425);
    ours.better = "lower".to_owned();
    let mut request = row(Kind::Requests, "cpu_per_op", "wrk", [0.7, 0.8, 0.9]);
    request.better = "lower".to_owned();
    let (answer, detail) = said(vec![
        row(Kind::Requests, "rate", "wrk", [1.1, 1.2, 1.3]),
        request,
        row(Kind::Bound, "rate", "wrk", [0.99, 1.0, 1.01]),
        row(Kind::Stream, "throughput", "iperf3", [0.98, 1.02, 1.05]),
        ours,
        theirs,
    ]);
    assert_eq!(
        answer,
        "Our stream generator moves 1.02 (0.980 to 1.05) of iperf3's rate, and 1.03 of its bytes for the same CPU time (0.242 beside \
         0.250 s/GB). Within the wanted 5 %: the generator does not colour the results of transports."
    );
    for part in [
        "Where nothing else limits, our request generator reaches 1.20 (1.10 to 1.30) of wrk's rate, and 1.25 of its requests for \
         the same CPU time. A",
        "A request costs it less, so it goes further: it does not limit the results of requests and flows.",
        "Where the server limits, our request generator reaches 1.00 (0.990 to 1.01) of wrk's rate. Within the wanted 10 %",
    ] {
        assert!(detail.contains(part), "{part}: {detail}");
    }
}

#[test]
fn the_whole_interval_decides() {
    let meaning = |interval| said(vec![row(Kind::Stream, "throughput", "iperf3", interval)]).0;
    assert!(meaning([0.95, 1.0, 1.02]).contains("Within the wanted 5 %"));
    assert!(meaning([0.94, 1.0, 1.02]).contains("The wanted 5 % are not decided, as it may be 6 % off"));
    assert!(
        meaning([0.8, 0.9, 0.94]).contains("Outside the wanted 5 %, up to 20 % less: in transports, read CPU time")
    );
    assert!(meaning([1.06, 1.3, 1.4]).contains("Outside the wanted 5 %, and more than iperf3"));
    let bound = |interval| said(vec![row(Kind::Bound, "rate", "wrk", interval)]).0;
    assert!(bound([0.91, 1.0, 1.09]).contains("Within the wanted 10 %"));
    let free = |interval| said(vec![row(Kind::Requests, "rate", "wrk", interval)]).0;
    assert!(free([0.7, 0.8, 0.9]).contains("Up to 30 % less."));
    let mut noisy = row(Kind::Stream, "throughput", "iperf3", [1.0, 1.0, 1.0]);
    noisy.flags.push("unusable".to_owned());
    assert!(said(vec![noisy]).0.contains("calmer machine"));
    let alone = row(Kind::Stream, "throughput", "", [1.0, 1.0, 1.0]);
    assert!(said(vec![alone]).0.contains("iperf3 took no part"));
}

#[test]
fn a_debugging_build_says_nothing_of_other_workloads() {
    let rows = [row(Kind::Stream, "throughput", "iperf3", [1.0, 1.0, 1.0])];
    let (answer, _) = said_by(true, &rows);
    assert!(
        answer.contains("debugging build") && !answer.contains("Within"),
        "{answer}"
    );
}
