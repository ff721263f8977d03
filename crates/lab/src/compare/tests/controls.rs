//! Rows of other implementations.

use super::*;
use crate::result::Responder;
use crate::store::tests::with_canary;

#[test]
fn controls_are_chosen_by_version_preference_and_case() {
    let mut old = run("a", 110.0, 100.0);
    let mut new = run("b", 110.0, 100.0);
    let add = |run: &mut RunResult, name: &str, version: &str| {
        run.subjects.push(Subject {
            name: name.into(),
            version: version.into(),
            ..Subject::default()
        });
        run.results.push(row(name, 64, 100.0));
    };
    for run in [&mut old, &mut new] {
        add(run, "aws-lc-rs", "1.19");
        add(run, "rustcrypto", "0.11");
    }
    let controls = |found: &Comparison| -> Vec<String> {
        found
            .rows
            .iter()
            .filter(|row| row.counts)
            .map(|row| row.control.clone().unwrap())
            .collect()
    };
    assert_eq!(
        controls(&compared(&old, &new)),
        ["aws-lc-rs", "ring", "ring", "ring", "ring", "ring"]
    );
    let by = |name: &str| Options {
        control: Some(name.into()),
        ..Options::default()
    };
    let found = compare(&old, &new, &by("rustcrypto")).unwrap();
    let mut unknown: Vec<&Row> = found.rows.iter().collect();
    unknown.retain(|row| row.counts && row.control.is_none());
    assert_eq!(unknown.len(), 5);
    for row in unknown {
        assert!(
            row.verdict == Verdict::Unknown && row.note.contains("no control"),
            "{row:?}"
        );
    }

    let mut subjects = new.subjects.iter_mut();
    subjects.find(|subject| subject.name == "aws-lc-rs").unwrap().version = "1.20".into();
    let found = compared(&old, &new);
    assert_eq!(controls(&found)[0], "ring");
    let peer = found.rows.iter().find(|row| row.key.subject == "aws-lc-rs").unwrap();
    assert_eq!(peer.note, "version 1.19 became 1.20");
    for (name, why) in [
        ("aws-lc-rs", "its version changed from 1.19 to 1.20"),
        ("openssl", "it was not measured in the old run"),
        ("sealway", "it is the subject that is judged"),
    ] {
        let error = compare(&old, &new, &by(name)).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(error.ending(), Ending::Misused);
    }
}

#[test]
fn peers_are_shown_but_do_not_count() {
    let mut old = run("a", 110.0, 100.0);
    let mut new = run("b", 110.0, 100.0);
    for (run, rate) in [(&mut old, 100.0), (&mut new, 50.0)] {
        run.results.push(row("rustcrypto", 64, rate));
    }
    let found = compared(&old, &new);
    assert!(
        found
            .rows
            .iter()
            .any(|row| row.verdict == Verdict::Slower && !row.counts)
    );
    assert_eq!(found.headline.kind, HeadlineKind::Same);
    assert_eq!(found.ending(true), Ending::Done);
    let ours = Options {
        ours: Some("rustcrypto".into()),
        ..Options::default()
    };
    let found = compare(&old, &new, &ours).unwrap();
    assert_eq!(confirmed(&found, &[&found]).ending(false), Ending::Slower);
}

/// A run through proxies, ours and Xray.
fn proxied(id: &str, ours: f64, xray: f64) -> RunResult {
    let mut run = run(id, ours, xray);
    let subjects = run.subjects.iter_mut().map(|subject| &mut subject.name);
    let rows = run.results.iter_mut().map(|row| &mut row.subject);
    for name in subjects.chain(rows).filter(|name| *name == "ring") {
        *name = "xray".into();
    }
    for subject in run.subjects.iter_mut().filter(|subject| subject.name == "xray") {
        subject.kind = "program".into();
    }
    run
}

/// Verdicts on what counts, each with its control.
fn answers_by(found: &Comparison) -> Vec<(Verdict, Option<&str>)> {
    let rows = found.rows.iter().filter(|row| row.counts);
    rows.map(|row| (row.verdict, row.control.as_deref())).collect()
}

#[test]
fn a_program_is_the_control_where_no_library_took_part() {
    let old = proxied("a", 110.0, 100.0);
    let found = compared(&old, &proxied("b", 99.0, 100.0));
    assert_eq!(answers_by(&found), [(Verdict::Slower, Some("xray")); 6]);
    assert!(!noted(&found, "no-peer"), "{:?}", found.notes);
    // The machine is slower, not the build.
    let found = compared(&old, &proxied("b", 88.0, 80.0));
    assert_eq!(answers_by(&found), [(Verdict::Same, Some("xray")); 6]);
}

#[test]
fn a_change_of_the_control_is_none_of_ours() {
    let at = |id: &str, ours: f64, xray: f64, canary: f64| {
        let (mut run, mut alone) = (proxied(id, ours, xray), proxied(id, ours, xray));
        with_canary(&mut alone, canary);
        run.windows = alone.windows;
        run
    };
    let old = at("a", 110.0, 100.0, 0.005);
    for (xray, word) in [(125.0, "slower"), (80.0, "faster")] {
        let found = compared(&old, &at("b", 110.0, xray, 0.005));
        assert_eq!(answers_by(&found), [(Verdict::Unknown, Some("xray")); 6]);
        let note = format!("{word} only against the control, which changed itself");
        assert!(found.rows.iter().all(|row| row.note == note), "{:?}", found.rows);
    }
    // Both changed, or ours alone, also on a machine that has become slower.
    for (ours, xray, canary) in [(99.0, 110.0, 0.005), (99.0, 100.0, 0.005), (88.0, 90.0, 0.0055)] {
        let found = compared(&old, &at("b", ours, xray, canary));
        assert_eq!(
            answers_by(&found),
            [(Verdict::Slower, Some("xray")); 6],
            "{ours} {xray}"
        );
    }
    // A library is slowed down as ours is.
    let mut library = at("b", 110.0, 125.0, 0.005);
    let mut before = old.clone();
    for subject in before.subjects.iter_mut().chain(&mut library.subjects) {
        subject.kind = "in-process".into();
    }
    assert_eq!(
        answers_by(&compared(&before, &library)),
        [(Verdict::Slower, Some("xray")); 6]
    );
    // Elsewhere the speed of the processor is another one: the control is all there is.
    let mut elsewhere = at("b", 110.0, 125.0, 0.005);
    elsewhere.machine.key = "m2".into();
    assert_eq!(
        answers_by(&compared(&old, &elsewhere)),
        [(Verdict::Slower, Some("xray")); 6]
    );
}

#[test]
fn memory_of_one_machine_needs_no_control() {
    let taking = |id: &str, ours: f64, xray: f64| {
        let mut run = proxied(id, ours, xray);
        for row in &mut run.results {
            (row.metric, row.unit, row.better) = ("memory".into(), "B".into(), "lower".into());
            // It collects garbage now and then.
            for (round, value) in row.values.iter_mut().enumerate().filter(|_| row.subject == "xray") {
                *value = Num(value.get() * (1.0 + round as f64));
            }
        }
        run
    };
    let (old, mut new) = (taking("a", 100.0, 100.0), taking("b", 110.0, 60.0));
    let found = compared(&old, &new);
    assert_eq!(answers_by(&found), [(Verdict::Slower, None); 6]);
    assert!(found.controls.is_empty(), "{:?}", found.controls);
    new.machine.key = "m2".into();
    assert_eq!(answers_by(&compared(&old, &new)), [(Verdict::Unknown, Some("xray")); 6]);
}

/// A run of ours alone, on a machine whose canary takes `canary` seconds.
fn alone(id: &str, ours: f64, canary: f64) -> RunResult {
    let mut run = run(id, ours, 100.0);
    with_canary(&mut run, canary);
    run
}

#[test]
fn without_a_peer_the_speed_of_the_processor_is_the_control() {
    let before = alone("a", 100.0, 0.005);
    let verdicts = |after: &RunResult| -> Vec<Verdict> {
        let found = compared(&before, after);
        assert!(noted(&found, "no-peer"), "{:?}", found.notes);
        assert!(found.rows.iter().all(|row| row.control.as_deref() == Some("canary")));
        found.rows.iter().map(|row| row.verdict).collect()
    };
    assert_eq!(verdicts(&alone("b", 100.0, 0.005)), [Verdict::Same; 6]);
    assert_eq!(verdicts(&alone("b", 88.0, 0.005)), [Verdict::Slower; 6]);
    // Everything takes longer there: the machine is slower, not the build.
    assert_eq!(verdicts(&alone("b", 50.0, 0.010)), [Verdict::Same; 6]);
    let mut times = [alone("a", 100.0, 0.005), alone("b", 200.0, 0.010)];
    for row in times.iter_mut().flat_map(|run| &mut run.results) {
        row.unit = "s/op".into();
        row.better = "lower".into();
    }
    let found = compared(&times[0], &times[1]);
    assert!(
        found.rows.iter().all(|row| row.verdict == Verdict::Same),
        "{:?}",
        found.rows
    );
    // On another machine the canary is another one, too.
    let mut elsewhere = alone("b", 100.0, 0.005);
    elsewhere.machine.key = "m2".into();
    let error = compare(&before, &elsewhere, &Options::default()).unwrap_err();
    assert!(matches!(error, CompareError::NoControl { .. }), "{error}");
    // Rounds without a canary tell nothing.
    let mut silent = alone("b", 100.0, 0.005);
    silent.windows.pop();
    assert_eq!(unknown_of(&before, &silent), 1);
}

/// How many rows are unknown.
fn unknown_of(old: &RunResult, new: &RunResult) -> usize {
    let found = compared(old, new);
    found.rows.iter().filter(|row| row.verdict == Verdict::Unknown).count()
}

#[test]
fn different_responders_compare_ratios_only() {
    let with = |mut run: RunResult, key: &str, version: &str| {
        run.responder = Some(Responder {
            sealway: version.to_owned(),
            ..Responder::default()
        });
        run.responder.as_mut().unwrap().machine.key = key.to_owned();
        run
    };
    let old = with(run("a", 110.0, 100.0), "r1", "1");
    let codes = |new: &RunResult| -> Vec<String> {
        let found = compared(&old, new);
        assert_eq!(
            found.absolutes,
            found.notes.iter().all(|note| note.code != "responder-machine")
        );
        found.notes.into_iter().map(|note| note.code).collect()
    };
    let plain = codes(&with(run("b", 110.0, 100.0), "r1", "1"));
    assert!(!plain.iter().any(|code| code.starts_with("responder")));
    assert!(codes(&with(run("b", 110.0, 100.0), "r2", "1")).contains(&"responder-machine".to_owned()));
    assert!(codes(&with(run("b", 110.0, 100.0), "r1", "2")).contains(&"responder-version".to_owned()));
}
