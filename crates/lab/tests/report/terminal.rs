//! The text report, compared with files a person has looked at.
use std::path::Path;

use sealway_lab::catalogue::ALL;
use sealway_lab::report::terminal::{Style, render};
use sealway_lab::result::{Num, ResultRow, RunResult, Warning};

const FILES: [&str; 2] = ["result.json", "report.html"];

/// Compares with `tests/report/golden/NAME`; `SEALWAY_UPDATE_GOLDEN=1` writes it instead, for a person to read before committing.
pub(crate) fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/report/golden")
        .join(name);
    if std::env::var_os("SEALWAY_UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let wanted = std::fs::read_to_string(&path).unwrap_or_default();
    for (number, (have, want)) in text.lines().zip(wanted.lines()).enumerate() {
        assert_eq!(have, want, "{name}:{}", number + 1);
    }
    assert_eq!(text.lines().count(), wanted.lines().count(), "{name}: number of lines");
}

fn visible(line: &str) -> String {
    line.replace("\x1b[1m", "").replace("\x1b[0m", "")
}

fn check_shape(run: &RunResult, style: Style) -> String {
    let text = render(run, &ALL, &style, &FILES);
    assert!(text.ends_with('\n'));
    for line in text.lines() {
        let shown = visible(line);
        assert!(!shown.contains('\x1b'), "an escape that is not ours: {line:?}");
        if !shown.starts_with("Repeat ") {
            assert!(
                shown.chars().count() <= style.width,
                "{} columns: {shown}",
                shown.chars().count()
            );
        }
        assert!(style.unicode || line.is_ascii(), "{line:?}");
        assert!(style.color || line == shown);
    }
    text
}

#[test]
fn the_sample_reads_as_before() {
    let run = crate::common::sample();
    golden("terminal-80.txt", &check_shape(&run, Style::default()));
    golden(
        "terminal-cut-short.txt",
        &check_shape(&crate::common::broken(), Style::default()),
    );
    golden(
        "terminal-empty.txt",
        &check_shape(&crate::common::empty(), Style::default()),
    );
}

#[test]
fn colour_adds_bold_to_marked_figures_and_changes_nothing_else() {
    let run = crate::common::sample();
    let plain = render(&run, &ALL, &Style::default(), &FILES);
    let bold = check_shape(
        &run,
        Style {
            color: true,
            ..Style::default()
        },
    );
    assert_eq!(visible(&bold), plain);
    let marked = plain
        .lines()
        .filter(|line| line.starts_with("  "))
        .map(|line| line.matches('*').count())
        .sum::<usize>();
    let headings = bold.lines().filter(|line| line.starts_with("\x1b[1m")).count();
    assert!(marked > 40, "{marked}");
    assert_eq!(bold.matches("\x1b[1m").count(), marked + headings);
}

#[test]
fn narrow_and_wide_terminals_lose_no_figure() {
    let run = crate::common::sample();
    let figures = |text: &str| {
        let mut words: Vec<String> = text
            .lines()
            .filter(|l| l.starts_with("  "))
            .flat_map(str::split_whitespace)
            .map(String::from)
            .collect();
        words.retain(|word| word.len() > 2);
        words.retain(|word| word.contains('*') || word.contains('+') || word.contains('~'));
        words.sort();
        words
    };
    let usual = figures(&check_shape(&run, Style::default()));
    for width in [60, 100, 160] {
        assert_eq!(
            figures(&check_shape(
                &run,
                Style {
                    width,
                    unicode: true,
                    color: false
                }
            )),
            usual,
            "{width}"
        );
    }
}

#[test]
fn twelve_sizes_continue_beneath() {
    let mut run = crate::common::sample();
    let extra: Vec<_> = run
        .results
        .iter()
        .filter(|row| row.case.int("bytes") == Some(64))
        .cloned()
        .collect();
    for bytes in [16i64, 31, 136, 512, 1024, 4096, 8192] {
        run.results.extend(extra.iter().cloned().map(|mut row| {
            row.case = row.case.with("bytes", bytes);
            row
        }));
    }
    let text = check_shape(&run, Style::default());
    for size in ["16 B", "8192 B", "8 KiB", "4 KiB", "64 KiB"] {
        assert_eq!(text.contains(size), size != "8192 B", "{size}");
    }
}

#[test]
fn a_single_subject_is_not_called_best() {
    let mut run = crate::common::sample();
    run.results.retain(|row| row.subject == "sealway");
    for row in &mut run.results {
        row.ratio = None;
    }
    run.subjects.truncate(1);
    let text = check_shape(&run, Style::default());
    assert!(!text.contains('*'), "{text}");
}

#[test]
fn three_rounds_name_no_winner_under_a_fifth() {
    let mut run = crate::common::sample();
    for row in &mut run.results {
        row.rounds = 3;
        row.values.truncate(3);
        row.how = "range".into();
        if let Some(ratio) = &mut row.ratio {
            (ratio.level, ratio.how, ratio.verdict) = (0.0, "range".into(), "unknown".into());
        }
    }
    let column = |run: &RunResult, subject: &str| {
        let text = check_shape(run, Style::default());
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(subject))
            .unwrap()
            .to_owned();
        line.split_whitespace().nth(1).unwrap().to_owned()
    };
    // At 64 B ring is 14 % behind: a winner with nine rounds, a tie with three.
    assert!(column(&run, "ring").ends_with('*'));
    assert!(!column(&crate::common::sample(), "ring").ends_with('*'));
    let page = crate::page_of(&run);
    assert!(page.contains("Fastest here: aes-128-gcm or aes-256-gcm. With aes-128-gcm sealway encrypts"));
    assert!(
        page.contains("the speed of chacha20-poly1305; not decided: between aes-128-gcm and aes-256-gcm (perhaps 1.1")
    );
    // With nobody clearly behind, no lead is claimed.
    run.results
        .retain(|row| row.case.text("suite").is_none_or(|suite| suite.starts_with("aes")));
    let page = crate::page_of(&run);
    assert!(page.contains("not decided<small>between aes-128-gcm and aes-256-gcm (perhaps 1.1"));
    let page = crate::page_of(&crate::common::sample());
    assert!(page.contains("aes-128-gcm is the fastest cipher here"));
}

#[test]
fn a_disturbed_run_is_told_once_and_makes_nothing_clear() {
    let mut run = crate::common::sample();
    let first_screen = |run: &RunResult| {
        let text = check_shape(run, Style::default());
        let (first, rest) = text.split_once("\n\n").unwrap();
        // One line of the terminal is the announcement.
        assert!(first.lines().count() < 24, "{first}");
        (first.to_owned(), rest.to_owned())
    };
    let (first, rest) = first_screen(&run);
    assert!(
        first.contains("\nHow sure clear: ") && !first.contains("Careful"),
        "{first}"
    );
    assert!(rest.contains("aes-128-gcm (clear)"), "{rest}");
    let mark = |run: &mut RunResult, share: usize| {
        for (place, window) in run.windows.iter_mut().enumerate() {
            window.marks = if place % share == 0 {
                vec!["preempted".into()]
            } else {
                Vec::new()
            };
        }
    };
    mark(&mut run, 3);
    for code in ["canary", "preempted", "out-of-time"] {
        let place = String::new();
        run.warnings.push(Warning {
            code: code.into(),
            place,
            text: format!("It was {code}."),
        });
    }
    let (first, rest) = first_screen(&run);
    assert!(first.contains("\nHow sure likely: "), "{first}");
    assert_eq!(first.matches("\nCareful  ").count(), 1, "{first}");
    assert!(
        first.contains("This run was disturbed: in 6 of 18 measurements"),
        "{first}"
    );
    assert!(
        first.contains("\n         sealway lab --profile standard --seed 12345678901234567890 --budget 31m\n"),
        "{first}"
    );
    for code in ["canary", "preempted", "out-of-time"] {
        assert!(
            !first.contains(code) && rest.contains(&format!("{code}: It was {code}.")),
            "{code}"
        );
    }
    assert!(rest.contains("aes-128-gcm (likely)"), "{rest}");
    let page = crate::page_of(&run);
    assert!(page.contains("<code>sealway lab --profile standard --seed 12345678901234567890 --budget 31m</code>"));
    assert!(page.contains("Details and further notes</a> are below."));
    // Where nearly nothing was calm, that is what is read first.
    mark(&mut run, 1);
    let (first, rest) = first_screen(&run);
    let flat = first.split_whitespace().collect::<Vec<_>>().join(" ");
    let [careful, answer, sure] = [
        "Careful This run",
        "fastest cipher",
        "How sure uncertain: all 18 measurements were disturbed",
    ]
    .map(|words| flat.find(words).unwrap_or_else(|| panic!("no {words}: {first}")));
    assert!(careful < answer && answer < sure, "{first}");
    assert!(rest.contains("aes-128-gcm (uncertain)"), "{rest}");
    let page = crate::page_of(&run);
    assert!(page.find("This run was disturbed").unwrap() < page.find("<h1>").unwrap());
}

#[test]
fn an_unusable_row_is_shown_and_never_ranked() {
    let mut run = crate::common::sample();
    for row in run
        .results
        .iter_mut()
        .filter(|row| row.case.text("suite") == Some("aes-128-gcm"))
    {
        row.flags = vec!["unusable".into()];
    }
    let text = check_shape(&run, Style::default());
    let start = text.find("Sealing, aes-128-gcm").unwrap();
    let table = &text[start..start + text[start..].find("speed as a ratio").unwrap()];
    assert!(!table.contains('*') && table.contains("6.78!"), "{table}");
    assert!(text.contains("! unusable"), "{text}");
    assert!(crate::page_of(&run).contains("aes-256-gcm is the fastest cipher here"));
}

#[test]
fn a_lead_that_changes_with_size_is_named() {
    let mut run = crate::common::sample();
    for row in run
        .results
        .iter_mut()
        .filter(|row| row.case.text("suite") == Some("chacha20-poly1305"))
    {
        if row.metric == "throughput" && row.case.int("bytes") <= Some(256) {
            for value in [&mut row.median, &mut row.low, &mut row.high] {
                value.0 *= 4.0;
            }
        }
    }
    let text = check_shape(&run, Style::default())
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let wanted = "Sealing: the lead changes: chacha20-poly1305 leads up to 256 B, aes-128-gcm from 1420 B.";
    assert!(text.contains(wanted), "{text}");
}

#[test]
fn cycles_stand_beside_the_rest_and_are_not_judged() {
    let mut run = crate::common::sample();
    assert!(!crate::text_of(&run).to_lowercase().contains("cycles"));
    let sealed = |row: &&ResultRow| row.metric == "throughput" && row.case.text("op") == Some("seal");
    let mut more: Vec<ResultRow> = run.results.iter().filter(sealed).cloned().collect();
    for row in &mut more {
        let cycles = if row.subject == "sealway" { 0.75 } else { 1.5 };
        (row.median, row.low, row.high) = (Num(cycles), Num(cycles), Num(cycles));
        (row.metric, row.unit, row.better) = ("cycles_per_byte".into(), "cycles/B".into(), "lower".into());
        (row.ratio, row.flags) = (None, Vec::new());
    }
    run.results.append(&mut more);
    let text = check_shape(&run, Style::default());
    let start = text.find("\n  cycles/B").unwrap();
    let ours = text[start..]
        .lines()
        .find(|line| line.trim_start().starts_with("sealway"))
        .unwrap();
    assert!(ours.contains("0.750") && !ours.contains('*'), "{ours}");
    assert!(
        text.contains("\nCycles   Cycles are those of the measuring thread"),
        "{text}"
    );
    let page = crate::page_of(&run);
    assert!(page.contains("Of cycles:") && page.contains("cycles/B"));
}
