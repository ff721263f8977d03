#![allow(clippy::unwrap_used)]

use super::claim::{Figure, Who};
use super::*;
use crate::result::{Case, CaseValue, Num, Subject, Window};
use crate::route::Stack;
use crate::workload::Peers;

mod planned;

fn request(profile: Profile) -> Request {
    Request {
        profile,
        peers: Peers::None,
        program: std::env::current_exe().ok(),
        // Time enough for all cases.
        budget: Some(Duration::from_secs(24 * 3600)),
        ..Request::default()
    }
}

/// The cases that a recipe measures, by workload.
fn cases(recipe: &Recipe, profile: Profile) -> Vec<(&'static str, Case)> {
    let mut cases: Vec<(&'static str, Case)> = Vec::new();
    for (workload, part) in parts(recipe, &request(profile), true) {
        let found: Vec<Case> = match (workload.name, part.gpu) {
            (crate::bip324::NAME, true) => crate::bip324::gpu::cases(profile),
            (packets::NAME, true) => packets::gpu::cases(profile),
            (crate::bip324::NAME, false) => crate::bip324::cases(profile),
            (packets::NAME, false) => packets::cases(profile),
            (crate::files::NAME, _) => crate::files::cases(profile),
            _ => {
                let prepared = (workload.prepare)(&part).unwrap_or_else(|error| panic!("{}: {error}", workload.name));
                prepared.cells.into_iter().map(|cell| cell.case).collect()
            }
        };
        for case in found.into_iter().filter(|case| part.wants(case)) {
            if !cases.contains(&(workload.name, case.clone())) {
                cases.push((workload.name, case));
            }
        }
    }
    cases
}

fn figures(recipe: &Recipe) -> Vec<Figure> {
    let of_claims = recipe.claims.iter().flat_map(|claim| [claim.over, claim.under]);
    let entries = recipe.rankings.iter().flat_map(|ranking| ranking.figures());
    of_claims.chain(entries.map(|(figure, _)| *figure)).collect()
}

#[test]
fn every_cell_that_is_named_is_measured_once() {
    for recipe in ALL {
        for profile in Profile::ALL {
            let cases = cases(recipe, profile);
            for figure in figures(recipe) {
                let count = cases
                    .iter()
                    .filter(|(workload, case)| *workload == figure.workload && figure.is(case))
                    .count();
                assert_eq!(count, 1, "{} {profile}: {}", recipe.name, figure.label);
            }
        }
    }
}

#[test]
fn claims_and_orders_hold_together() {
    for recipe in ALL {
        assert_eq!(named(recipe.name), Some(recipe));
        assert!(!recipe.steps.is_empty() && !recipe.claims.is_empty() && !recipe.differs.is_empty());
        let sources = u32::try_from(recipe.sources.len()).unwrap();
        for claim in recipe.claims {
            assert!(
                claim.ratio() > 0.0 && (1..=sources).contains(&claim.source),
                "{}",
                claim.text
            );
            assert!(claim.text.ends_with('.'), "{}", claim.text);
            if claim.published.0 != claim.published.1 {
                assert!(
                    (claim.ratio() - 1.0).abs() > 0.01,
                    "{}: say that there is none",
                    claim.text
                );
            }
        }
        for ranking in recipe.rankings {
            assert!((1..=sources).contains(&ranking.source));
            assert!(ranking.entries.is_sorted_by(|a, b| a.1 >= b.1), "{}", ranking.title);
        }
    }
    assert_eq!(named("none"), None);
}

#[test]
fn the_time_is_shared_out_and_a_choice_narrows() {
    for recipe in ALL {
        for (profile, limit) in [(Profile::Quick, 120), (Profile::Standard, 600)] {
            let asked = Request {
                budget: None,
                ..request(profile)
            };
            let total: Duration = parts(recipe, &asked, true)
                .iter()
                .filter_map(|(_, part)| part.budget)
                .sum();
            assert!(
                total > Duration::ZERO && total < Duration::from_secs(limit),
                "{}",
                recipe.name
            );
        }
    }
    let asked = Request {
        stacks: vec![Stack::VLESS_WS, Stack::RELAY],
        ..request(Profile::Quick)
    };
    let found = parts(&vless_vmess::RECIPE, &asked, false);
    assert_eq!(found[0].1.stacks, [Stack::VLESS_WS]);
    let asked = Request {
        stacks: vec![Stack::RELAY],
        ..request(Profile::Quick)
    };
    assert!(parts(&vless_vmess::RECIPE, &asked, false).is_empty());
    let without = |device| parts(&bip324::RECIPE, &asked, device).len();
    assert_eq!(
        [without(true), without(false)],
        [4, 2],
        "there are no stacks to leave out"
    );
}

/// What the rounds of a figure are off by, in thousandths.
const NOISE: [f64; 9] = [0.0, 0.4, -0.6, 1.5, -1.3, 0.2, -0.5, 0.7, -0.1];

/// A run with the figures of these cells, nine rounds each.
fn run(rows: &[(&Figure, &str, &str, f64)]) -> RunResult {
    let mut run: RunResult =
        serde_json::from_str(r#"{"schema":1,"run":"r","started":"","sealway":"0","machine":{},"complete":true}"#)
            .unwrap();
    for (figure, metric, subject, value) in rows {
        let better = if metric.starts_with("cpu") || metric.ends_with("time") {
            "lower"
        } else {
            "higher"
        };
        let mut row: ResultRow = serde_json::from_value(serde_json::json!({
            "workload": figure.workload, "workload_def": "d", "subject": subject, "case": {}, "metric": metric, "unit": "1",
            "better": better, "median": value, "low": value, "high": value, "rounds": 9,
        }))
        .unwrap();
        for (name, want) in figure.case {
            let value = match want {
                claim::Want::Text(text) => CaseValue::Text((*text).to_owned()),
                claim::Want::Int(number) => CaseValue::Int(*number),
            };
            row.case.0.insert((*name).to_owned(), value);
        }
        let shift = run.results.len();
        let noise = |round: usize| NOISE[(round + shift) % NOISE.len()] / 1000.0;
        row.values = (0..9).map(|round| Num(value * (1.0 + noise(round)))).collect();
        for round in 0..9 {
            let order = run.windows.len();
            run.windows.push(window(&row, round, 2 * order));
        }
        run.results.push(row);
        if !run.subjects.iter().any(|known| known.name == *subject) {
            run.subjects.push(Subject {
                name: (*subject).to_owned(),
                ..Subject::default()
            });
        }
    }
    run
}

fn window(row: &ResultRow, round: u32, order: usize) -> Window {
    serde_json::from_value(serde_json::json!({
        "workload": row.workload, "subject": row.subject, "case": row.case, "round": round, "order": order, "t": 0.0,
        "wall_s": 1.0,
    }))
    .unwrap()
}

#[test]
fn rounds_are_paired_by_number_where_one_was_done_again() {
    let claim = &vless_vmess::RECIPE.claims[0];
    let mut run = run(&[
        (&claim.over, "throughput", "sealway", 1.0),
        (&claim.under, "throughput", "sealway", 1.0),
    ]);
    // Rounds drift; the fourth of the first case was spoiled and came last.
    let drift = |round: i32| 2.0_f64.powi(round);
    let rounds = [0, 1, 2, 4, 5, 6, 7, 8, 9];
    run.results[0].values = rounds.map(|round| Num(1.176 * drift(round))).to_vec();
    run.results[1].values = (0..9).map(|round| Num(drift(round))).collect();
    run.windows[3].marks.push("superseded".to_owned());
    let again = window(&run.results[0], 9, 100);
    run.windows.push(again);
    let read = |run: &RunResult| claim.evaluate(vless_vmess::RECIPE.peers, run).readings.remove(0);
    let found = read(&run);
    let ratio = found.ratio.unwrap();
    assert_eq!(
        (ratio.how.as_str(), found.verdict.as_str()),
        ("signed-rank", "confirmed")
    );
    assert!(
        (ratio.low.get() - 1.176).abs() < 1e-9 && (ratio.high.get() - 1.176).abs() < 1e-9,
        "{ratio:?}"
    );
    assert_eq!(found.why, "");

    // Without windows nobody knows.
    run.windows.clear();
    let found = read(&run);
    assert_eq!(found.ratio.unwrap().how, "range");
    assert_eq!(found.verdict, "not decided");
    assert!(found.why.contains("not of the same rounds"), "{}", found.why);
}

#[test]
fn what_is_held_against_itself_may_let_forgeries_pass() {
    let recipe = &drop_ciphers::RECIPE;
    let claim = &recipe.claims[0];
    let rows = |over: f64| {
        run(&[
            (&claim.over, "throughput", "https-post", over),
            (&claim.under, "throughput", "https-post", 1.0),
        ])
    };
    let mut run = rows(1.15);
    run.results[0].flags.push("unauthenticated".to_owned());
    assert_eq!(claim.evaluate(recipe.peers, &run).readings[0].verdict, "confirmed");
    let mut run = rows(1.15);
    run.results[1].median = Num(0.0);
    let found = &claim.evaluate(recipe.peers, &run).readings[0];
    assert_eq!(found.why, "there is no figure above zero");
}

#[test]
fn each_subject_is_judged_against_itself_by_rate_and_by_cost() {
    let claim = &vless_vmess::RECIPE.claims[0];
    let (over, under) = (&claim.over, &claim.under);
    let mut run = run(&[
        (over, "throughput", "sealway", 1.0e9),
        (under, "throughput", "sealway", 1.0e9),
        (over, "throughput", "v2ray", 1.2e9),
        (under, "throughput", "v2ray", 1.0e9),
        (over, "cpu_per_gb", "v2ray", 2.0),
        (under, "cpu_per_gb", "v2ray", 1.0),
        (over, "throughput", "xray", 1.2e9),
    ]);
    let found = claim.evaluate(vless_vmess::RECIPE.peers, &run);
    let verdicts: Vec<_> = found
        .readings
        .iter()
        .map(|reading| {
            (
                reading.subject.as_str(),
                reading.metric.as_str(),
                reading.verdict.as_str(),
            )
        })
        .collect();
    assert_eq!(
        verdicts,
        [
            ("sealway", "throughput", "no difference"),
            ("v2ray", "throughput", "confirmed"),
            ("v2ray", "1 / cpu_per_gb", "contradicted"),
        ]
    );
    let cost = found.readings[2].ratio.as_ref().unwrap();
    assert!((cost.estimate.get() - 0.5).abs() < 0.01, "{cost:?}");

    // A figure that may not be ranked decides nothing, and says why.
    run.results[2].flags.push("generator-bound".to_owned());
    let found = claim.evaluate(vless_vmess::RECIPE.peers, &run);
    assert_eq!(found.readings[1].verdict, "not decided");
    assert!(found.readings[1].why.contains("generator-bound"));

    // What a program does to itself is compared whatever it lets pass.
    run.results[2].flags = vec!["unauthenticated".to_owned()];
    let found = claim.evaluate(vless_vmess::RECIPE.peers, &run);
    assert_eq!(found.readings[1].verdict, "confirmed");
}

#[test]
fn what_is_missing_is_named_with_what_gets_it() {
    let recipe = &drop_ciphers::RECIPE;
    let claim = recipe
        .claims
        .iter()
        .find(|claim| matches!(claim.who, Who::Between(OURS, "croc")))
        .unwrap();
    let mut run = run(&[(&claim.over, "throughput", "sealway", 1.0)]);
    let absent = claim.evaluate(recipe.peers, &run);
    assert_eq!(absent.readings.len(), 1);
    assert_eq!(absent.readings[0].verdict, "not measured");
    assert!(absent.readings[0].why.contains("scripts/install-peers"), "{absent:?}");
    assert!(
        evaluate(recipe, &run)
            .missing
            .iter()
            .any(|text| text.starts_with("croc: "))
    );
    // Who is there and was left out is not to be got.
    run.subjects.push(Subject {
        name: "croc".to_owned(),
        error: "left out of a quick run".to_owned(),
        ..Subject::default()
    });
    // Who was looked for and not found is.
    let nowhere = "a-program-that-nobody-has";
    run.subjects.push(Subject {
        name: "wormhole".to_owned(),
        error: crate::peer::program::on_path(nowhere).unwrap_err(),
        ..Subject::default()
    });
    let named = |text: &String| text.starts_with("wormhole: not found") && text.contains(INSTALLER);
    assert!(evaluate(recipe, &run).missing.iter().any(named));
    assert!(
        evaluate(recipe, &run)
            .missing
            .contains(&"croc: left out of a quick run".to_owned())
    );
    let why = &claim.evaluate(recipe.peers, &run).readings[0].why;
    assert_eq!(why, "croc took no part: left out of a quick run");
    let lacking = format!("nginx is not found: there is no nginx on PATH; {INSTALLER} gets it");
    run.warnings.push(WarningCode::CellUnavailable.warn("", &lacking));
    let named = |recipe| {
        evaluate(recipe, &run)
            .missing
            .iter()
            .any(|text| text.starts_with("nginx: "))
    };
    assert!(named(&vless_vmess::RECIPE) && !named(recipe));
    run.warnings.push(WarningCode::CasesDropped.warn("", "No room."));
    let others = &recipe.claims[0];
    let dropped = others.evaluate(recipe.peers, &run);
    assert_eq!(dropped.readings[0].subject, "https-post");
    assert!(
        dropped.readings[0].why.contains("https-post took no part"),
        "{dropped:?}"
    );
}

#[test]
fn a_workload_that_ran_twice_is_compared_within_one_of_its_runs() {
    let claim = bip324::RECIPE
        .claims
        .iter()
        .find(|claim| matches!(claim.who, Who::Between(_, OURS)))
        .unwrap();
    let mut run = run(&[
        (&claim.under, "rate", "sealway", 7.0),
        (&claim.over, "rate", "sealway:gpu", 20.0),
        (&claim.under, "rate", "sealway", 1.0),
    ]);
    "alone".clone_into(&mut run.results[0].workload_def);
    // Between its two parts another workload was measured.
    let mut between = window(&run.results[0], 0, 17);
    packets::NAME.clone_into(&mut between.workload);
    run.windows.push(between);
    let found = claim.evaluate(bip324::RECIPE.peers, &run);
    assert_eq!(found.readings[0].why, "");
    let ratio = found.readings[0].ratio.as_ref().unwrap();
    assert!((ratio.estimate.get() - 20.0).abs() < 0.1, "{ratio:?}");
    assert_eq!(ratio.how, "signed-rank");
    assert_eq!(found.readings[0].subject, "sealway:gpu / sealway");

    // From one part to the other there are no common rounds.
    "alone".clone_into(&mut run.results[2].workload_def);
    let found = claim.evaluate(bip324::RECIPE.peers, &run);
    assert_eq!(found.readings[0].ratio.as_ref().unwrap().how, "range");
    assert!(found.readings[0].why.contains("not of the same rounds"));
}

#[test]
fn an_order_has_places_ties_and_what_agrees() {
    let ranking = &vless_vmess::RECIPE.rankings[0];
    let entry = |at: usize| &ranking.entries[at].0;
    let run = run(&[
        (entry(0), "throughput", "sealway", 4.0),
        (entry(1), "throughput", "sealway", 4.0),
        (entry(2), "throughput", "sealway", 5.0),
        (entry(3), "throughput", "sealway", 1.0),
        (entry(4), "throughput", "v2ray", 1.0),
    ]);
    let found = ranking.evaluate(&run);
    let places: Vec<_> = found.entries[..4]
        .iter()
        .map(|entry| (entry.places[0].place, entry.places[0].tied))
        .collect();
    assert_eq!(places, [(2, false), (3, true), (1, false), (4, false)]);
    assert!(found.entries[4].places.is_empty(), "an order of one says nothing");
    let shown = evaluate(&vless_vmess::RECIPE, &run).rankings;
    assert_eq!(shown.len(), 1, "the other order has no places here");
    assert_eq!(
        found.agreement,
        [
            "sealway by throughput: of 3 pairs of neighbours in the published order 1 stand in it here, 1 the other way round, 1 are \
             not told apart."
        ]
    );
}

#[test]
fn what_has_no_published_figure_has_a_place_here_only() {
    let ranking = &vless_vmess::RECIPE.rankings[0];
    let ((first, _), door) = (&ranking.entries[0], &ranking.unpublished[0]);
    let run = run(&[
        (first, "throughput", "sealway", 4.0),
        (door, "throughput", "sealway", 5.0),
    ]);
    let found = ranking.evaluate(&run);
    let (at, entry) = (0..)
        .zip(&found.entries)
        .find(|(_, entry)| entry.name == door.label)
        .unwrap();
    assert_eq!((entry.published, entry.places[0].place), (None, 1));
    assert_eq!(found.entries[0].places[0].place, 2);
    assert!(!found.tied(at) && found.agreement.is_empty(), "{:?}", found.agreement);
}

#[test]
fn published_near_ties_are_no_order() {
    let ranking = &v2ray_aead::RECIPE.rankings[0];
    let entry = |at: usize| &ranking.entries[at].0;
    let run = run(&[
        (entry(0), "throughput", "sealway", 1.0),
        (entry(1), "throughput", "sealway", 2.0),
        (entry(2), "throughput", "sealway", 0.5),
    ]);
    let found = ranking.evaluate(&run);
    assert_eq!(
        (0..5).map(|at| found.tied(at)).collect::<Vec<_>>(),
        [false, true, false, false, false]
    );
    assert_eq!(
        found.agreement,
        [
            "sealway by throughput: of 1 pair of neighbours in the published order 1 stand in it here, 0 the other way round, 0 are \
             not told apart."
        ]
    );
}

#[test]
fn where_ours_is_behind_is_said() {
    let claim = &vless_vmess::RECIPE.claims[0];
    let mut run = run(&[
        (&claim.over, "cpu_per_gb", "sealway", 2.0),
        (&claim.under, "cpu_per_gb", "sealway", 1.0),
    ]);
    for (row, verdict, estimate) in [(0, "slower", 2.0), (1, "faster", 0.5)] {
        let ratio = serde_json::json!({
            "to": "v2ray", "estimate": estimate, "low": estimate, "high": estimate, "level": 0.96, "how": "signed-rank",
            "mde": 0.01, "verdict": verdict,
        });
        run.results[row].ratio = serde_json::from_value(ratio).unwrap();
    }
    let said = evaluate(&vless_vmess::RECIPE, &run).standing;
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("better in 1 of 2 cases, worse in 1"), "{said:?}");
    assert!(
        said[0].contains("Worse: VLESS over TLS, 1 download (0.500x)"),
        "{said:?}"
    );
}
