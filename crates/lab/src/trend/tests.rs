#![allow(clippy::unwrap_used)]

use super::*;
use crate::result::{Responder, RunResult};
use crate::store::Kept;
use crate::store::tests::{on, run, with_canary};

fn question(words: &[&str]) -> Question {
    Question {
        workload: "primitives".to_owned(),
        words: words.iter().map(|word| (*word).to_owned()).collect(),
        ..Question::default()
    }
}

/// The trend of runs of which the oldest is first.
fn trend(runs: &[RunResult], question: Question) -> Result<Trend, TrendError> {
    let mut collector = Collector::new(question);
    for (place, run) in runs.iter().enumerate().rev() {
        let mut kept = Kept::of(run, &on("main")).unwrap();
        kept.id = place as i64 + 1;
        collector.take(&kept, run)?;
    }
    let trend = collector.finish()?;
    let text = trend.render();
    assert!(text.is_ascii() && text.lines().all(|line| line.len() <= 80), "{text}");
    let page = trend.page();
    assert!(page.contains("<svg") && !page.contains("NaN"), "{page}");
    Ok(trend)
}

#[test]
fn a_page_shows_hostile_texts_and_does_nothing_with_them() {
    let mut runs = days(&[110.0, 110.0, 90.0]);
    for run in &mut runs {
        run.machine.cpu = "<script>alert(1)</script>\u{1b}[2J".into();
    }
    let found = trend(&runs, question(&[])).unwrap();
    let page = found.page();
    assert!(page.contains("&lt;script&gt;") && !page.contains("<script"), "{page}");
    assert_eq!(page.matches("class=\"whisker\"").count(), 3);
    assert!(page.contains("1 change of more than 5.0 %"), "{page}");
}

fn days(ours: &[f64]) -> Vec<RunResult> {
    let day = |(place, ours): (usize, &f64)| run(place as u32 + 1, *ours, 100.0);
    ours.iter().enumerate().map(day).collect()
}

#[test]
fn a_slowdown_is_found_where_it_began_and_fails_until_it_is_gone() {
    let steady = trend(&days(&[110.0, 111.0, 110.0, 109.0]), question(&[])).unwrap();
    assert_eq!((steady.segments.len(), steady.slower(0.05)), (1, Ok(None)));
    assert!(steady.render().contains("No change of more than 5.0 % over 4 runs."));

    let once = trend(&days(&[110.0, 111.0, 110.0, 109.0, 100.0]), question(&[])).unwrap();
    assert_eq!(
        once.segments.iter().map(|segment| segment.runs).collect::<Vec<_>>(),
        [4, 1]
    );
    assert_eq!(once.segments[1].verdict, Some(Verdict::Slower));
    let slower = once.slower(0.05).unwrap().unwrap();
    assert!((slower.by - 0.10).abs() < 0.01 && slower.runs == 4, "{slower:?}");
    assert!(!slower.confirmed, "one run proves nothing");
    assert_eq!(once.slower(0.12), Ok(None), "the bound is wider");
    assert!(once.render().contains("another one would confirm it"));

    let confirmed = trend(&days(&[110.0, 111.0, 110.0, 109.0, 100.0, 101.0]), question(&[])).unwrap();
    assert_eq!(confirmed.segments[1].first, 4);
    let slower = confirmed.slower(0.05).unwrap().unwrap();
    assert!(slower.confirmed && slower.runs == 4, "{slower:?}");
    let text = confirmed.render();
    assert!(
        text.contains("-- slower: -8") || text.contains("-- slower: -9"),
        "{text}"
    );

    let gone = trend(&days(&[110.0, 111.0, 100.0, 101.0, 110.0, 110.0]), question(&[])).unwrap();
    assert_eq!((gone.segments.len(), gone.slower(0.05)), (3, Ok(None)));
    assert_eq!(gone.segments[2].verdict, Some(Verdict::Faster));
}

#[test]
fn a_slowdown_within_a_segment_fails_a_narrow_bound() {
    let found = trend(&days(&[110.0, 110.0, 110.0, 106.5]), question(&[])).unwrap();
    assert_eq!((found.segments.len(), found.slower(0.05)), (1, Ok(None)));
    let slower = found.slower(0.02).unwrap().unwrap();
    assert_eq!((slower.runs, slower.confirmed), (3, false));
}

#[test]
fn a_run_whose_interval_is_wide_proves_nothing() {
    let mut runs = days(&[110.0, 110.0, 110.0, 100.0]);
    for (round, value) in runs[3].results[0].values.iter_mut().enumerate() {
        *value = Num(value.get() * (0.8 + 0.05 * round as f64));
    }
    let found = trend(&runs, question(&[])).unwrap();
    assert!(found.points[3].value.get() < 1.02, "{found:?}");
    assert_eq!((found.segments.len(), found.slower(0.05)), (1, Ok(None)));
}

#[test]
fn where_less_is_better_more_is_slower() {
    let mut runs = days(&[110.0, 110.0, 110.0, 130.0]);
    for row in runs.iter_mut().flat_map(|run| &mut run.results) {
        row.better = "lower".into();
    }
    assert!(trend(&runs, question(&[])).unwrap().slower(0.05).unwrap().is_some());
    runs.reverse();
    assert_eq!(trend(&runs, question(&[])).unwrap().slower(0.05), Ok(None));
}

#[test]
fn a_slower_machine_changes_nothing() {
    let mut runs = days(&[110.0, 110.0, 110.0]);
    runs.push(run(4, 55.0, 50.0));
    let found = trend(&runs, question(&[])).unwrap();
    assert_eq!((found.control.as_str(), found.unit.as_str()), ("ring 0.17", "1"));
    assert_eq!((found.segments.len(), found.slower(0.01)), (1, Ok(None)));
}

#[test]
fn memory_is_taken_as_it_is() {
    let mut runs: Vec<RunResult> = (1..=4).map(|day| run(day, 100.0, f64::from(100 * day))).collect();
    for row in runs.iter_mut().flat_map(|run| &mut run.results) {
        (row.metric, row.unit, row.better) = ("memory".into(), "B".into(), "lower".into());
    }
    let found = trend(&runs, question(&[])).unwrap();
    assert_eq!((found.unit.as_str(), found.segments.len()), ("B", 1), "{found:?}");
    assert!(
        (found.points[0].value.get() - 100.0).abs() < 1.0,
        "{:?}",
        found.points[0]
    );
}

#[test]
fn without_a_peer_the_speed_of_the_processor_is_the_control() {
    let mut runs = days(&[55e9, 110e9, 110e9]);
    with_canary(&mut runs[0], 0.02);
    with_canary(&mut runs[1], 0.01);
    with_canary(&mut runs[2], 0.01);
    let found = trend(&runs, question(&[])).unwrap();
    assert_eq!((found.control.as_str(), found.unit.as_str()), ("canary", "B/s"));
    assert_eq!((found.points.len(), found.segments.len()), (3, 1));
    // As the newest run would have measured it.
    assert!((found.points[0].value.get() / 110e9 - 1.0).abs() < 0.01);
    assert!(found.render().contains("GB/s"));
    runs[1].machine.key = "m2".into();
    let found = trend(&runs, question(&[])).unwrap();
    assert_eq!(found.points.len(), 2);
    assert!(found.left_out[0].why.starts_with("another machine"), "{found:?}");
    // The other one of two hosts counts as well.
    runs[1].machine.key = runs[0].machine.key.clone();
    runs[1].responder = Some(Responder::default());
    let found = trend(&runs, question(&[])).unwrap();
    assert!(found.left_out[0].why.starts_with("another machine"), "{found:?}");
}

#[test]
fn runs_that_cannot_be_compared_are_left_out_and_counted() {
    let mut runs = days(&[110.0; 7]);
    runs[0].machine.cpu = "Other CPU".into();
    runs[1].profile = "full".into();
    runs[2].subjects[1].version = "0.18".into();
    runs[3].complete = false;
    runs[4].results[0].workload_def = "d2".into();
    runs[5].results[0].values[3] = Num(-1.0);
    let found = trend(&runs, question(&[])).unwrap();
    assert_eq!(found.points.len(), 1);
    let why: Vec<&str> = found.left_out.iter().map(|left| left.why.as_str()).collect();
    let wanted = [
        "a round without a value",
        "another processor",
        "another profile",
        "another version of ring",
        "cut short",
        "without this figure",
    ];
    assert_eq!(why, wanted);
    assert_eq!(found.slower(0.0), Err(Undecided::Alone));
    assert!(found.render().contains("nothing to compare it with yet"));
}

#[test]
fn runs_of_few_rounds_show_large_changes_only() {
    let mut runs = days(&[110.0, 110.0, 95.0, 95.0]);
    for run in &mut runs {
        run.profile = "quick".into();
    }
    let found = trend(&runs, question(&[])).unwrap();
    assert_eq!((found.threshold, found.segments.len()), (0.20, 1));
    assert_eq!(
        found.slower(0.05),
        Ok(None),
        "no bound is finer than what the runs can show"
    );
}

#[test]
fn runs_that_differ_much_anyway_show_large_changes_only() {
    let mut ours = [110.0, 104.0].repeat(7);
    ours.extend([102.0, 102.0]);
    let found = trend(&days(&ours), question(&[])).unwrap();
    assert!(found.threshold > 0.05, "{found:?}");
    assert_eq!(found.slower(0.01), Ok(None), "{found:?}");
}

#[test]
fn a_run_as_slow_as_one_before_is_not_slower() {
    // Of many runs the interval of the median is narrow; the next run lies where any of them lay.
    let mut ours = vec![110.0; 9];
    ours[4] = 106.0;
    ours.extend([106.5, 106.5]);
    let found = trend(&days(&ours), question(&[])).unwrap();
    assert_eq!(found.slower(0.02), Ok(None), "{found:?}");
}

#[test]
fn no_older_run_answers_for_the_newest() {
    let change: [fn(&mut RunResult); 3] = [
        |run| run.complete = false,
        |run| {
            run.results
                .iter_mut()
                .for_each(|row| row.case = row.case.clone().with("bytes", 64_i64))
        },
        |run| run.results[0].values[3] = Num(-1.0),
    ];
    for change in change {
        let mut runs = days(&[110.0, 110.0, 100.0, 100.0, 110.0]);
        change(&mut runs[4]);
        let found = trend(&runs, question(&["16384"])).unwrap();
        assert_eq!((found.points.len(), found.left_out.len()), (4, 1), "{found:?}");
        assert_eq!(found.slower(0.05), Err(Undecided::LeftOut));
    }
}

#[test]
fn a_question_that_does_not_fit_is_answered_with_what_there_is() {
    let mut runs = days(&[110.0, 110.0]);
    let error = |runs: &[RunResult], question: Question| trend(runs, question).unwrap_err();
    for words in [&["16384"][..], &["seal", "bytes=16384"], &[]] {
        assert_eq!(trend(&runs, question(words)).unwrap().points.len(), 2, "{words:?}");
    }
    let wrong = error(&runs, question(&["64"]));
    assert_eq!(wrong, TrendError::NoCase(vec!["bytes=16384 op=seal".to_owned()]));
    assert_eq!(error(&runs, question(&["op=16384"])), wrong);
    let other = Question {
        workload: "flows".into(),
        ..Question::default()
    };
    assert!(error(&runs, other).to_string().contains("no kept run that fits"));
    let mut hostile = days(&[110.0]);
    for row in &mut hostile[0].results {
        row.case = row.case.clone().with("op", "\u{1b}]0;x\u{7}\u{202e}\u{9b}2J");
    }
    let text = error(&hostile, question(&["none"])).to_string();
    assert!(
        text.contains("op=?]0;x???2J") && text.lines().all(|line| !line.contains(char::is_control)),
        "{text}"
    );
    hostile[0].results[0].metric = "\u{1b}[2J".into();
    hostile[0].results[0].better = "x".into();
    let text = error(&hostile, question(&[])).to_string();
    assert!(text.contains("?[2J") && !text.contains('\u{1b}'), "{text}");
    let metric = Question {
        metric: Some("rate".into()),
        ..question(&[])
    };
    assert_eq!(
        error(&runs, metric),
        TrendError::NoMetric(vec!["throughput".to_owned()])
    );
    for run in &mut runs {
        let mut more = run.results[0].clone();
        more.case = more.case.with("bytes", 64_i64);
        run.results.push(more);
    }
    assert!(matches!(error(&runs, question(&["seal"])), TrendError::SeveralCases(cases) if cases.len() == 2));
    assert_eq!(trend(&runs, question(&["64"])).unwrap().points.len(), 2);
    let peer = Question {
        subject: Some("ring".into()),
        ..question(&[])
    };
    assert_eq!(trend(&runs, peer).unwrap().subject, "ring");
}
