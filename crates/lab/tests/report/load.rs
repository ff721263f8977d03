//! Both reports of a run under load, from rows made by hand.

use sealway_lab::result::{Case, Num, Ratio, ResultRow, RunResult};

fn case(mode: &str, load: &str) -> Case {
    Case::new()
        .with("stack", "vless-tcp-tls")
        .with("mode", mode)
        .with("load", load)
        .with("connections", 64usize)
}

fn row(workload: &str, case: &Case, subject: &str, (metric, better): (&str, &str), value: f64) -> ResultRow {
    ResultRow {
        workload: workload.into(),
        subject: subject.into(),
        case: case.clone(),
        metric: metric.into(),
        unit: "s".into(),
        better: better.into(),
        median: Num(value),
        low: Num(value),
        high: Num(value),
        how: "range".into(),
        rounds: 4,
        values: vec![Num(value); 4],
        verified: "full".into(),
        ratio: (subject == "sealway").then(|| Ratio {
            to: "xray".into(),
            estimate: Num(if better == "lower" { 0.5 } else { 2.0 }),
            low: Num(1.0),
            high: Num(2.0),
            level: 0.0,
            how: "range".into(),
            mde: Num(0.1),
            verdict: "faster".into(),
        }),
        ..ResultRow::default()
    }
}

fn run() -> RunResult {
    let mut run = crate::common::empty();
    run.complete = true;
    let (keep, open, hold) = (case("keep", "closed"), case("keep", "open-80"), case("hold", "idle"));
    let rate = ("rate", "higher");
    let mut add = |row| run.results.push(row);
    // In an order that is not the one of display.
    add(row("requests", &keep, "direct", rate, 90_000.0));
    add(row("requests", &keep, "xray", rate, 10_000.0));
    add(row("requests", &keep, "sealway", rate, 20_000.0));
    add(row("requests", &keep, "sealway", ("latency_p99", "lower"), 0.000_812));
    add(row("requests", &keep, "xray", ("latency_p99", "lower"), f64::INFINITY));
    add(row("requests", &keep, "sealway", ("cpu_per_op", "lower"), 0.000_031));
    let mut late = row("requests", &open, "xray", ("latency_p99", "lower"), 0.9);
    late.flags.push("overloaded".into());
    add(late);
    add(row("requests", &open, "sealway", ("latency_p99", "lower"), 0.003));
    let memory = ("memory_per_connection", "lower");
    add(row("flows", &hold, "sealway", memory, 11.0 * 1024.0));
    add(row("flows", &hold, "xray", memory, 73.0 * 1024.0));
    run
}

/// The same for pages that are looked at.
pub(crate) fn sample() -> RunResult {
    run()
}

/// The line of a table that begins with a name, after a heading.
fn line<'t>(text: &'t str, heading: &str, name: &str) -> &'t str {
    let from = text.find(heading).unwrap_or_else(|| panic!("no {heading}:\n{text}"));
    let mut lines = text[from..].lines();
    lines.find(|line| line.trim_start().starts_with(name)).unwrap()
}

#[test]
fn a_case_is_a_table_of_subjects() {
    let text = crate::text_of(&run());
    let closed = "Requests on kept connections: VLESS over TLS (vless-tcp-tls), 64 connections";
    let ours: Vec<&str> = line(&text, closed, "sealway").split_whitespace().collect();
    assert_eq!(ours, ["sealway", "20000*", "2.00+", "31.0", "2.00+", "812", "2.00?"]);
    // The control is shown and not ranked, and failures are no number that decides anything.
    let control: Vec<&str> = line(&text, closed, "direct").split_whitespace().collect();
    assert_eq!(control[..2], ["direct", "90000"]);
    assert!(line(&text, closed, "xray").contains(">2s"));
    assert!(line(&text, "80 % of what the slowest can do", "xray").contains("900000>"));
    assert!(text.contains("overloaded:"));
    let idle = "Idle connections, memory of each: VLESS over TLS (vless-tcp-tls), 64";
    assert!(line(&text, idle, "sealway").contains("11.0"));
    assert!(text.contains("loopback"));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn the_page_answers_with_the_case_that_leads() {
    let page = crate::page_of(&run());
    assert!(page.contains("sealway serves 20000 requests a second (kept connections, VLESS over TLS)."));
    assert!(page.contains("99 % of them within 812 us. 31.0 us of CPU each, client and server together."));
    for part in [
        "id=\"requests-section\"",
        "id=\"flows-section\"",
        "requests-0-0",
        "no answer in time",
        "KiB, from zero",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("id=\"sizes\""), "nothing about single messages");
    // Less memory is better, and so is a ratio above 1.
    assert!(
        page.contains("server KiB: 11.0 KiB, 2.00x as good as that of xray."),
        "{page}"
    );
    let mut only = run();
    only.results.retain(|row| row.workload == "flows");
    let answer =
        "<h1>sealway holds an idle connection in 11.0 KiB of its server (idle connections, VLESS over TLS).</h1>";
    assert!(crate::page_of(&only).contains(answer));
}

#[test]
fn joules_stand_beside_the_rest_and_say_what_they_count() {
    let plain = run();
    assert!(!crate::text_of(&plain).contains("J/10^6"));
    let mut run = plain;
    let case = case("keep", "closed");
    for (subject, joules) in [("sealway", 0.0025), ("xray", 0.005)] {
        let mut row = row("requests", &case, subject, ("energy_per_op", "lower"), joules);
        row.ratio = None;
        run.results.push(row);
    }
    let text = crate::text_of(&run);
    let table = "Requests on kept connections: VLESS over TLS (vless-tcp-tls), 64 connections";
    let head: Vec<&str> = text[text.find(table).unwrap()..]
        .lines()
        .find(|line| line.contains("J/10^6"))
        .unwrap()
        .split_whitespace()
        .collect();
    assert!(head.contains(&"J/10^6"), "{text}");
    // The lower figure is not called best.
    let ours = line(&text, table, "sealway");
    assert!(ours.contains("2500") && !ours.contains("2500*"), "{text}");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("Energy Joules are those of all processor packages"),
        "{text}"
    );
    let page = crate::page_of(&run);
    assert!(page.contains("Of energy:") && page.contains("quiet otherwise"));
}
