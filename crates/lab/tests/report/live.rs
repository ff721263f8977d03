//! What is shown of a run under way, compared with texts that a person has looked at.
use std::fmt::Write as _;

use sealway_lab::catalogue::ALL;
use sealway_lab::report::live::{Live, announcement};
use sealway_lab::report::terminal::Style;
use sealway_lab::result::{Case, PlanFacts, RunResult};
use sealway_lab::run::Step;

use crate::terminal::golden;

const ASCII: Style = Style {
    color: false,
    unicode: false,
    width: 80,
};

fn case() -> Case {
    let case = Case::new().with("suite", "xchacha20-poly1305").with("op", "seal");
    case.with("bytes", 16384_i64).with("aad", 13_i64)
}

fn step(case: &Case, round: Option<u32>) -> Step<'_> {
    Step {
        workload: "primitives",
        case,
        subject: "aws-lc-rs",
        round,
        rounds: 9,
        done: round.map_or(0, |round| (round - 1) * 168 + 41),
        total: 9 * 168,
        timed_s: 0.55,
        elapsed_s: 300.0,
        left_s: 490.5,
    }
}

/// Two rounds of the sample are behind.
fn under_way(run: &RunResult) -> Live {
    let case = case();
    let mut live = Live::new(ALL);
    live.planned(&run.plan);
    live.step(&step(&case, Some(3)));
    live.round_done(run);
    live
}

#[test]
fn the_view_reads_as_before() {
    let run = crate::common::sample();
    let mut text = String::new();
    for (columns, unicode) in [(40, false), (80, false), (80, true), (120, true)] {
        let style = Style { unicode, ..ASCII };
        let mut early = Live::new(ALL);
        early.planned(&run.plan);
        let case = case();
        early.step(&step(&case, None));
        for live in [early, under_way(&run)] {
            let _ = writeln!(text, "{}", "=".repeat(columns));
            for line in live.lines(columns, 24, &style) {
                assert!(line.chars().count() <= columns, "{line}");
                assert!(unicode || line.is_ascii(), "{line}");
                text.push_str(&line);
                text.push('\n');
            }
        }
    }
    golden("live.txt", &text);
}

#[test]
fn nothing_is_too_small() {
    let live = under_way(&crate::common::sample());
    for columns in 0..40 {
        for rows in [0, 1, 2, 5] {
            for unicode in [false, true] {
                let style = Style { unicode, ..ASCII };
                let lines = live.lines(columns, rows, &style);
                assert_eq!(lines.len(), rows);
                assert!(lines.iter().all(|line| line.chars().count() <= columns), "{lines:?}");
            }
        }
    }
    assert_eq!(Live::new(ALL).lines(80, 24, &ASCII), [""; 0]);
}

#[test]
fn a_new_workload_begins_without_the_figures_of_the_last() {
    let run = crate::common::sample();
    let mut live = under_way(&run);
    assert!(live.lines(80, 24, &ASCII).len() > 3);
    live.planned(&run.plan);
    assert_eq!(live.lines(80, 24, &ASCII), [""; 0]);
    // Figures of one round have no spread, and those of another workload are not its own.
    let (case, mut other) = (case(), run.clone());
    live.step(&step(&case, Some(1)));
    for row in &mut other.results {
        row.rounds = 1;
    }
    live.round_done(&other);
    assert_eq!(live.lines(80, 24, &ASCII).len(), 3);
    for row in &mut other.results {
        row.rounds = 2;
        row.workload = "packets".to_owned();
    }
    live.round_done(&other);
    assert_eq!(live.lines(80, 24, &ASCII).len(), 3);
}

#[test]
fn what_comes_from_outside_moves_no_cursor() {
    let case = Case::new().with("op", "\x1b[2J\nseal");
    let mut live = Live::new(ALL);
    let mut hostile = step(&case, Some(1));
    hostile.subject = "\x1b]0;title\x07";
    live.step(&hostile);
    let mut run = crate::common::sample();
    for row in &mut run.results {
        row.subject.push_str("\x1b[2J");
        row.case = row.case.clone().with("op", "\x1b[H\rseal");
    }
    live.round_done(&run);
    assert!(live.lines(120, 24, &ASCII).len() > 3);
    for line in live.lines(120, 24, &Style { unicode: true, ..ASCII }) {
        assert!(!line.contains(char::is_control), "{line:?}");
    }
}

#[test]
fn a_time_that_was_far_off_is_said_again_once() {
    let plan = |expected_s| PlanFacts {
        rounds: 9,
        window_s: 0.5,
        warmup_s: 0.05,
        cells: 168,
        expected_s,
        taken_s: 0.0,
    };
    assert_eq!(
        announcement(&plan(560.0)),
        "9 rounds of 168 measurements: about 9 min 20 s"
    );
    let case = case();
    let said = |expected_s: f64, left_s: f64| {
        let mut live = Live::new(ALL);
        live.planned(&plan(expected_s));
        let mut said = Vec::new();
        for round in [None, Some(1), Some(2), Some(2), Some(3)] {
            let step = Step {
                elapsed_s: 30.0,
                left_s,
                ..step(&case, round)
            };
            said.extend(live.correction(&step));
        }
        said
    };
    assert_eq!(
        said(560.0, 100.0),
        ["primitives: by the first round about 2 min 10 s in all"]
    );
    assert_eq!(
        said(560.0, 660.0),
        ["primitives: by the first round about 11 min 30 s in all"]
    );
    for (near, left) in [(560.0, 430.0), (560.0, 640.0), (59.0, 1.0)] {
        assert_eq!(said(near, left), [""; 0], "{near} {left}");
    }
}
