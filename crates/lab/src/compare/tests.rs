#![allow(clippy::unwrap_used)]

mod controls;
mod limits;
mod links;
mod output;

use super::*;
use crate::catalogue::ALL;
use crate::result::{CaseValue, Machine, Subject};
use crate::store::tests::{NOISE, shifted};

fn row(subject: &str, bytes: i64, centre: f64) -> ResultRow {
    let case = Case::new()
        .with("bytes", bytes)
        .with("op", "seal")
        .with("suite", "xchacha20-poly1305")
        .with("aad", 13_i64);
    ResultRow {
        case,
        ..shifted(subject, centre, subject.len() + bytes as usize % 7)
    }
}

const SIZES: [i64; 6] = [64, 256, 1420, 4096, 16384, 65536];

/// A run in which every size has `sealway` at `ours` and `ring` at `ring`.
fn run(id: &str, ours: f64, ring: f64) -> RunResult {
    let subject = |name: &str, version: &str| Subject {
        name: name.into(),
        version: version.into(),
        ..Subject::default()
    };
    RunResult {
        schema: 1,
        run: id.into(),
        started: "2031-01-02T03:04:05Z".into(),
        complete: true,
        sealway: format!("0.1.0+{id}"),
        profile: "standard".into(),
        machine: Machine {
            key: "m1".into(),
            ..Machine::default()
        },
        subjects: vec![subject("sealway", id), subject("ring", "0.17.14")],
        results: SIZES
            .iter()
            .flat_map(|&bytes| [row("sealway", bytes, ours), row("ring", bytes, ring)])
            .collect(),
        ..RunResult::default()
    }
}

fn set(run: &mut RunResult, subject: &str, bytes: i64, centre: f64) {
    let wanted = CaseValue::Int(bytes);
    for found in &mut run.results {
        if found.subject == subject && found.case.0.get("bytes") == Some(&wanted) {
            *found = row(subject, bytes, centre);
        }
    }
}

fn compared(old: &RunResult, new: &RunResult) -> Comparison {
    let found = compare(old, new, &Options::default()).unwrap();
    let text = found.render(&ALL);
    assert!(text.is_ascii() && text.lines().all(|line| line.len() <= 80), "{text}");
    found
}

#[test]
fn equal_runs_are_the_same() {
    let found = compared(&run("a", 110.0, 100.0), &run("b", 110.0, 100.0));
    assert_eq!(found.headline.kind, HeadlineKind::Same);
    let text = "Nothing changed against the control: 0 slower, 0 faster, 6 the same, 0 not decided.";
    assert_eq!(found.headline.text, text);
    assert_eq!(found.rows.len(), 6);
    assert_eq!(found.controls.len(), 6);
    assert_eq!(found.unmatched.len(), 0);
    for row in &found.rows {
        assert_eq!((row.verdict, row.control.as_deref()), (Verdict::Same, Some("ring")));
    }
    assert_eq!(found.ending(true), Ending::Done);
}

#[test]
fn one_slower_row_is_a_regression() {
    let mut new = run("b", 110.0, 100.0);
    set(&mut new, "sealway", 1420, 99.0);
    let found = compared(&run("a", 110.0, 100.0), &new);
    assert_eq!(found.headline.kind, HeadlineKind::Slower);
    assert_eq!(found.ending(false), Ending::Undecidable, "one run proves nothing");
    assert!(noted(&found, "unconfirmed"));
    assert_eq!(confirmed(&found, &[&found]).ending(false), Ending::Slower);
    let slower: Vec<&Row> = found.rows.iter().filter(|row| row.verdict == Verdict::Slower).collect();
    assert_eq!(slower.len(), 1);
    let (own, control, ratio) = (
        slower[0].own,
        slower[0].control_change.unwrap(),
        slower[0].ratio.unwrap(),
    );
    assert!((own.factor.get() - 0.9).abs() < 1e-12);
    assert_eq!(control.factor.get(), 1.0);
    assert!((ratio.factor.get() - 0.9).abs() < 1e-9, "{ratio:?}");
    set(&mut new, "sealway", 64, 130.0);
    let mixed = compared(&run("a", 110.0, 100.0), &new);
    assert_eq!(mixed.headline.kind, HeadlineKind::Mixed);
}

fn confirmed(found: &Comparison, repeats: &[&Comparison]) -> Comparison {
    let mut found = found.clone();
    found.confirm(&repeats.iter().map(|&repeat| repeat.clone()).collect::<Vec<_>>());
    found
}

#[test]
fn what_one_start_of_the_program_got_by_bad_luck_is_no_regression() {
    let old = run("a", 110.0, 100.0);
    let unlucky = |bytes: i64| {
        let mut new = run("b", 110.0, 100.0);
        set(&mut new, "sealway", bytes, 102.0);
        compared(&old, &new)
    };
    let calm = compared(&old, &run("b", 110.0, 100.0));
    let found = confirmed(&unlucky(1420), &[&unlucky(64)]);
    assert_eq!(found.ending(false), Ending::Done);
    assert_eq!(found.headline.kind, HeadlineKind::Undecided, "{}", found.headline.text);
    let row = found.rows.iter().find(|row| !row.note.is_empty()).unwrap();
    assert_eq!(row.verdict, Verdict::Unknown);
    assert_eq!(row.note.as_str(), "slower in 1 of 2 runs");
    assert!(found.notes.is_empty(), "{:?}", found.notes);
    // Slower in every run, and only then.
    let both = confirmed(&unlucky(64), &[&unlucky(64), &unlucky(64)]);
    assert_eq!((both.ending(false), both.repeats), (Ending::Slower, 2));
    let third = confirmed(&unlucky(64), &[&unlucky(64), &calm]);
    assert_eq!(third.ending(false), Ending::Done);
}

#[test]
fn lower_is_better_turns_the_verdict() {
    let cheaper = |mut run: RunResult| {
        for row in &mut run.results {
            row.better = "lower".into();
            row.metric = "cpu_per_op".into();
        }
        run
    };
    let found = compared(&cheaper(run("a", 110.0, 100.0)), &cheaper(run("b", 90.0, 100.0)));
    assert!(found.rows.iter().all(|row| row.verdict == Verdict::Faster));
}

#[test]
fn a_slower_machine_is_no_regression() {
    let found = compared(&run("a", 110.0, 100.0), &run("b", 88.0, 80.0));
    assert_eq!(found.headline.kind, HeadlineKind::Same);
    assert_eq!(found.ending(true), Ending::Done);
    assert!(found.controls.iter().all(|row| row.moved));
    assert!(noted(&found, "control-moved"), "{:?}", found.notes);

    let found = compared(&run("a", 110.0, 100.0), &run("b", 70.0, 80.0));
    let words = "6 of 6 figures of the control moved, by 25 %";
    answers(&found, HeadlineKind::MachineChanged, words);
    // A real slowdown of everything looks the same.
    assert_eq!(confirmed(&found, &[&found]).ending(false), Ending::Slower);
}

/// Checks the answer, and that it has these words.
#[track_caller]
fn answers(found: &Comparison, kind: HeadlineKind, words: &str) {
    let headline = &found.headline;
    assert!(headline.kind == kind && headline.text.contains(words), "{headline:?}");
}

/// Whether there is a note with this code.
fn noted(found: &Comparison, code: &str) -> bool {
    found.notes.iter().any(|note| note.code == code)
}

#[test]
fn changes_that_all_point_one_way_moved_together() {
    let old = run("a", 110.0, 100.0);
    let found = compared(&old, &run("b", 99.0, 100.0));
    assert!(found.controls.iter().all(|row| !row.moved));
    let words = "Everything of ours moved together: 6 of 6 changes are slower against the control, and most";
    answers(&found, HeadlineKind::Slower, words);
    assert!(!found.headline.text.contains("machine"), "{}", found.headline.text);
    let found = compared(&old, &run("b", 130.0, 100.0));
    answers(&found, HeadlineKind::Faster, "6 of 6 changes are faster");
    // The same with a control that moved as well, and with one that was elsewhere.
    let found = compared(&old, &run("b", 99.0, 80.0));
    answers(&found, HeadlineKind::MachineChanged, "The machine changed: ");

    let mut elsewhere = run("b", 49.0, 50.0);
    elsewhere.machine.key = "m2".into();
    let text = compared(&old, &elsewhere).headline.text;
    assert!(text.contains("moved together"), "{text}");
    assert!(text.contains("cannot tell"), "{text}");

    // Four of four may be chance, and four of six do not point one way.
    for (ours, words) in [(110.0, "Slower against"), (130.0, "Some rows are slower")] {
        let mut new = run("b", 99.0, 100.0);
        set(&mut new, "sealway", 64, ours);
        set(&mut new, "sealway", 256, ours);
        let found = compared(&old, &new);
        assert!(found.headline.text.starts_with(words), "{}", found.headline.text);
    }
}

#[test]
fn noise_makes_unknown_not_same() {
    let mut new = run("b", 110.0, 100.0);
    for row in new.results.iter_mut().filter(|row| row.subject == "sealway") {
        row.values = NOISE.iter().map(|noise| Num(110.0 * (1.0 + noise / 4.0))).collect();
    }
    let found = compared(&run("a", 110.0, 100.0), &new);
    for row in &found.rows {
        assert!(row.verdict == Verdict::Unknown && row.mde.get() > 0.05, "{row:?}");
    }
    assert_eq!(found.headline.kind, HeadlineKind::Undecided);
    assert_eq!(found.ending(false), Ending::Done);
    assert_eq!(found.ending(true), Ending::Undecidable);
}

#[test]
fn nothing_is_dropped() {
    let mut old = run("a", 110.0, 100.0);
    let mut new = run("b", 110.0, 100.0);
    old.results.push(row("openssl", 64, 50.0));
    new.subjects.push(Subject {
        name: "openssl".into(),
        error: "openssl: not found".into(),
        ..Subject::default()
    });
    new.results.push(row("sealway", 9999, 10.0));
    for row in new
        .results
        .iter_mut()
        .filter(|row| row.case.0.get("bytes") == Some(&CaseValue::Int(64)))
    {
        row.workload_def = "d2".into();
    }
    let found = compared(&old, &new);
    assert_eq!(found.rows.len() + found.controls.len(), 10);
    assert_eq!(found.unmatched.len(), old.results.len() + new.results.len() - 2 * 10);
    let reasons: Vec<&str> = found.unmatched.iter().map(|row| row.reason.as_str()).collect();
    assert!(
        reasons.contains(&"openssl did not take part in the new run: openssl: not found"),
        "{reasons:?}"
    );
    assert!(reasons.contains(&"not measured in the old run"));
    assert_eq!(
        reasons
            .iter()
            .filter(|reason| reason.starts_with("the definition of the workload changed"))
            .count(),
        4
    );
    assert!(found.render(&ALL).contains("Not compared (6):"));
    assert_eq!(
        found.ending(true),
        Ending::Undecidable,
        "a row that counts has vanished"
    );

    let mut other = run("b", 110.0, 100.0);
    other.results[0].unit = "1/s".into();
    let found = compared(&run("a", 110.0, 100.0), &other);
    assert_eq!(found.unmatched.len(), 2, "each run's row is listed");
}

#[test]
fn different_machines_compare_ratios_only() {
    let mut new = run("b", 220.0, 200.0);
    new.machine.key = "m2".into();
    new.profile = "full".into();
    let found = compared(&run("a", 110.0, 100.0), &new);
    assert!(!found.absolutes);
    let codes: Vec<&str> = found.notes.iter().map(|note| note.code.as_str()).collect();
    assert_eq!(codes, ["machine", "profile"]);
    assert_eq!(found.headline.kind, HeadlineKind::Same);
    assert_eq!(found.ending(false), Ending::Done);
    assert_eq!(found.ending(true), Ending::Undecidable);
}

#[test]
fn quick_runs_see_only_large_changes() {
    let quick = |mut run: RunResult| {
        run.profile = "quick".into();
        run.results.iter_mut().for_each(|row| row.values.truncate(4));
        run
    };
    let verdict = |ours: f64| {
        let found = compared(&quick(run("a", 110.0, 100.0)), &quick(run("b", ours, 100.0)));
        for row in &found.rows {
            assert_eq!((row.threshold, row.verdict), (0.20, found.rows[0].verdict));
        }
        found.rows[0].verdict
    };
    assert_eq!(verdict(95.0), Verdict::Same);
    assert_eq!(verdict(80.0), Verdict::Slower);

    let mut cut = run("b", 95.0, 100.0);
    cut.results.iter_mut().for_each(|row| row.values.truncate(5));
    let found = compared(&run("a", 110.0, 100.0), &cut);
    for row in &found.rows {
        assert!(row.threshold == 0.20 && row.note.contains("too few rounds"), "{row:?}");
    }
}

#[test]
fn errors_give_advice() {
    let good = run("a", 110.0, 100.0);
    let fails = |change: &dyn Fn(&mut RunResult)| {
        let mut bad = run("b", 110.0, 100.0);
        change(&mut bad);
        let error = compare(&good, &bad, &Options::default()).unwrap_err();
        (error.ending(), error.to_string())
    };
    let (ending, text) = fails(&|run| run.schema = 2);
    assert_eq!(ending, Ending::NewerSchema);
    assert_eq!(
        text,
        "the new run has schema 2, this version reads up to 1: compare with the version that wrote it"
    );
    let faults: [(fn(&mut RunResult), &str); 3] = [
        (|run| run.results.clear(), "the new run has no results"),
        (|run| run.results[0].better = "best".into(), "`better` is \"best\""),
        (|run| run.results.push(run.results[3].clone()), "the row is there twice"),
    ];
    for (change, words) in faults {
        let (_, text) = fails(&change);
        assert!(text.contains(words), "{text}");
    }
    // On the same machine the canary would do.
    let elsewhere = |run: &mut RunResult| run.machine.key = "m2".into();
    let (ending, text) = fails(&|run| {
        elsewhere(run);
        run.subjects[1].version = "0.18".into();
    });
    assert_eq!(ending, Ending::Misused);
    assert!(
        text.contains("ring: its version changed from 0.17.14 to 0.18"),
        "{text}"
    );
    assert!(text.contains("aws-lc-rs, ring, rustcrypto, openssl"), "{text}");
    let (mut before, mut after) = (run("a", 100.0, 100.0), run("b", 110.0, 100.0));
    before.subjects[1].sha256 = "00".into();
    after.subjects[1].sha256 = "01".into();
    elsewhere(&mut after);
    let error = compare(&before, &after, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("ring: it is another build of 0.17.14"), "{error}");
    // Of another architecture it cannot be the same file.
    after.machine.arch = "aarch64".into();
    assert!(compare(&before, &after, &Options::default()).is_ok());
    let (_, text) = fails(&|run| {
        elsewhere(run);
        run.subjects.clear();
    });
    assert!(text.contains("its version is not known in both runs"), "{text}");
}

#[test]
fn nothing_in_common_is_undecidable() {
    let mut new = run("b", 110.0, 100.0);
    new.results.iter_mut().for_each(|row| row.workload_def = "d2".into());
    let found = compared(&run("a", 110.0, 100.0), &new);
    assert_eq!(found.headline.kind, HeadlineKind::Undecided);
    assert_eq!(found.ending(false), Ending::Undecidable);
    assert_eq!(found.unmatched.len(), 24);
}

#[test]
fn what_is_better_neither_way_is_not_judged() {
    let with = |id: &str, busy: f64| {
        let mut run = run(id, 1.0e9, 1.0e9);
        for subject in ["sealway", "ring"] {
            let mut row = row(subject, 64, if subject == "sealway" { busy } else { 0.5 });
            "cpu_busy_client".clone_into(&mut row.metric);
            "1".clone_into(&mut row.unit);
            "lower".clone_into(&mut row.better);
            run.results.push(row);
        }
        run
    };
    let mut found = compare(&with("a", 0.3), &with("b", 0.9), &Options::default()).unwrap();
    let again = found.clone();
    found.confirm(&[again]);
    assert_eq!(found.ending(true), Ending::Done);
    let keys = found
        .rows
        .iter()
        .map(|row| &row.key)
        .chain(found.unmatched.iter().map(|row| &row.key));
    assert!(keys.into_iter().all(|key| key.metric == "throughput"));
}
