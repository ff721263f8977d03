//! A workload that is added in one file is in the table, on the page and in the schema, and nothing else has to know it.

use sealway_lab::report::terminal::{Style, render};
use sealway_lab::report::{html, json, schema};
use sealway_lab::result::RunResult;
use sealway_lab::workload::{Catalogue, Workload};
use serde_json::{Value, json};

use crate::dummy::WORKLOAD;

static KNOWN: [&Workload; 1] = [&WORKLOAD];

fn row(subject: &str, metric: &str, value: f64) -> Value {
    let mut row = json!({
        "workload": "juggling", "workload_def": "0", "subject": subject, "case": { "balls": 5 }, "metric": metric,
        "unit": "1/s", "better": "higher", "median": value, "low": value, "high": value, "how": "range", "rounds": 3,
        "values": [value, value, value], "method": "T", "verified": "full",
    });
    if subject == "sealway" && metric == "rate" {
        row["ratio"] = json!({
            "to": "a-circus", "estimate": 2.0, "low": 1.9, "high": 2.1, "level": 0.0, "how": "range", "mde": 0.1,
            "verdict": "faster",
        });
    }
    row
}

fn run() -> RunResult {
    let mut run = crate::common::empty();
    let rows = [
        row("sealway", "rate", 8.0),
        row("a-circus", "rate", 4.0),
        row("sealway", "height", 2.5),
    ];
    run.results = serde_json::from_value(rows.into_iter().collect()).unwrap();
    run
}

#[test]
fn it_has_a_table_and_its_standing() {
    let text = render(&run(), &Catalogue(&KNOWN), &Style::default(), &[]);
    let words = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name));
        line.map(|line| line.split_whitespace().collect::<Vec<_>>())
            .unwrap_or_default()
    };
    assert!(text.contains("Throws are counted, not drops."), "{text}");
    assert_eq!(words("throws/min"), ["throws/min", "ratio", "height", "m"], "{text}");
    let table = &text[text.find("throws/min").unwrap()..];
    let ours = table.lines().find(|line| line.starts_with("  sealway")).unwrap();
    assert_eq!(
        ours.split_whitespace().collect::<Vec<_>>(),
        ["sealway", "480*", "2.00+", "2.50"],
        "{text}"
    );
    assert!(text.contains("Over all cases of juggling"), "{text}");
    assert!(
        text.contains("sealway runs at 2.00x the speed of the best peer"),
        "{text}"
    );
}

#[test]
fn it_has_a_section_an_answer_and_limits() {
    let page = html::render(&run(), &Catalogue(&KNOWN));
    for part in [
        "<h1>sealway throws 8 times a second.</h1>",
        "Juggling on this machine",
        "<a href=\"#juggling-section\">Juggling</a>",
        "<section id=\"juggling-section\"><h2>Balls in the air</h2>",
        "id=\"juggling-0-0\"",
        "<caption>Throws and heights</caption>",
        "Throws: 5 balls",
        "Nobody juggled in the wind.",
    ] {
        assert!(page.contains(part), "lacks {part:?}");
    }
}

#[test]
fn its_results_fit_the_schema_and_its_parameters_are_held() {
    let document = schema::of(&Catalogue(&KNOWN));
    let validator = jsonschema::draft202012::new(&document).unwrap();
    let mut value = serde_json::to_value(run()).unwrap();
    assert!(validator.is_valid(&value));
    assert!(document.to_string().contains("in the air at once"));
    value["results"][0]["case"]["balls"] = json!(2);
    assert!(!validator.is_valid(&value), "fewer than the least");
    // Others do not know it: its rows stay in the file, and in the table of all figures.
    let text = serde_json::to_vec(&run()).unwrap();
    assert_eq!(json::parse(std::path::Path::new("x"), &text).unwrap(), run());
    let page = crate::page_of(&run());
    assert!(!page.contains("juggling-section") && page.contains("balls=5"));
}
