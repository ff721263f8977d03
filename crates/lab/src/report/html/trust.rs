//! Can I trust it? Machine, versions, settings, verification and what the numbers cannot show.

use std::fmt::Write as _;

use serde_json::Value;

use super::figure::{DataTable, Entry};
use crate::format::{self, Esc, clean, list_range, sig3_or};
use crate::report::finding;
use crate::report::limits::limits;
use crate::result::{ResultRow, RunResult, Subject};

/// The whole section's content.
pub(super) fn html(run: &RunResult) -> String {
    let mut out = String::new();
    out.push_str("<h3>What these numbers cannot show</h3>");
    let limits = limits(run);
    let several = limits.len() > 2;
    for (workload, sentences) in limits {
        if several {
            let name = if workload.is_empty() { "all figures" } else { workload };
            let _ = write!(out, "<p class=\"prose\">Of {}:</p>", Esc(name));
        }
        out.push_str("<ul class=\"prose\">");
        for sentence in sentences {
            let _ = write!(out, "<li>{}</li>", Esc(sentence));
        }
        out.push_str("</ul>\n");
    }
    out.push_str("<h3>Verification</h3>");
    let _ = writeln!(out, "<p class=\"prose\">{}</p>", Esc(&verification(&run.results)));
    out.push_str("<h3>Warnings</h3>");
    if run.warnings.is_empty() {
        out.push_str("<p class=\"prose\">None were recorded.</p>");
    } else {
        let mut table = DataTable::new("", &[("code", false), ("where", false), ("what", false)]);
        for warning in &run.warnings {
            let place = if warning.place.is_empty() {
                "the whole run"
            } else {
                &warning.place
            };
            table.rows.push(vec![
                Entry::text(&warning.code),
                Entry::text(place),
                Entry::text(&warning.text),
            ]);
        }
        out.push_str(&table.html());
    }
    out.push_str("<h3>Subjects</h3>");
    out.push_str(&subjects(&run.subjects).html());
    out.push_str("<h3>Machine</h3>");
    out.push_str(&machine(run).html());
    out.push_str("<h3>Run</h3>");
    out.push_str(&about(run).html());
    let _ = writeln!(
        out,
        "<details id=\"all\"><summary>All {} of the run</summary>{}</details>",
        format::count(run.results.len(), "figure"),
        all(&run.results).html()
    );
    out
}

fn verification(rows: &[ResultRow]) -> String {
    let full = rows.iter().filter(|row| row.verified == "full").count();
    let own = rows.iter().filter(|row| row.verified == "self").count();
    let some = rows.iter().filter(|row| row.verified.starts_with("sampled")).count();
    let rest = rows.len() - full - own - some;
    let mut text = format!(
        "{full} of {}: every timed output was compared with an independent computation.",
        format::count(rows.len(), "row")
    );
    if some > 0 {
        text.push_str(&format!(" {some}: some of the outputs were compared, in turn."));
    }
    let open = rows
        .iter()
        .filter(|row| row.verified.ends_with("unauthenticated"))
        .count();
    if open > 0 {
        text.push_str(&format!(
            " Of these, {open}: the stack has nothing that would notice a change on the wire."
        ));
    }
    if own > 0 {
        text.push_str(&format!(" {own}: the peer counted for itself, nothing was compared."));
    }
    if rest > 0 {
        text.push_str(&format!(" {rest}: no verification is recorded; do not rely on them."));
    }
    text
}

fn subjects(subjects: &[Subject]) -> DataTable {
    let columns = [
        ("subject", false),
        ("version", false),
        ("kind", false),
        ("set-up", false),
        ("differs", false),
        ("commands", false),
        ("took part", false),
    ];
    let mut table = DataTable::new("", &columns);
    for subject in subjects {
        let commands: Vec<String> = subject
            .role_argv
            .iter()
            .map(|(role, words)| format!("{role}: {}", format::command(words)))
            .collect();
        let mut kind = subject.kind.clone();
        if !subject.sha256.is_empty() {
            kind.push_str(&format!(", SHA-256 {}", subject.sha256));
        }
        table.rows.push(vec![
            Entry::text(&subject.name),
            Entry::text(&subject.version),
            Entry::text(kind),
            Entry::text(&subject.setup),
            Entry::text(subject.differs.join("; ")),
            Entry::text(commands.join("; ")),
            Entry::text(if subject.error.is_empty() {
                "yes".to_owned()
            } else {
                format!("no: {}", subject.error)
            }),
        ]);
    }
    table
}

fn pairs(rows: Vec<(String, String)>) -> DataTable {
    let mut table = DataTable::new("", &[("fact", false), ("value", false)]);
    table.rows = rows
        .into_iter()
        .map(|(name, value)| vec![Entry::text(name), Entry::text(value)])
        .collect();
    table
}

fn machine(run: &RunResult) -> DataTable {
    let machine = &run.machine;
    let mut rows = vec![
        ("CPU".to_owned(), machine.cpu.clone()),
        ("CPUs allowed".to_owned(), machine.cores.to_string()),
        ("CPU features".to_owned(), machine.flags.join(" ")),
        ("architecture".to_owned(), machine.arch.clone()),
        ("memory".to_owned(), format::memory(machine.memory)),
        ("kernel".to_owned(), machine.kernel.clone()),
        ("machine key".to_owned(), machine.key.clone()),
    ];
    rows.extend(machine.facts.iter().map(|(name, value)| (name.clone(), fact(value))));
    pairs(rows)
}

fn fact(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(fact).collect::<Vec<_>>().join(", "),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Null => "not known".to_owned(),
        other => other.to_string(),
    }
}

fn about(run: &RunResult) -> DataTable {
    pairs(vec![
        ("run".to_owned(), run.run.clone()),
        ("started".to_owned(), run.started.clone()),
        ("ended".to_owned(), run.ended.clone()),
        (
            "complete".to_owned(),
            if run.complete {
                "yes"
            } else {
                "no: stopped before its end"
            }
            .to_owned(),
        ),
        ("sealway".to_owned(), run.sealway.clone()),
        ("profile".to_owned(), run.profile.clone()),
        ("plan".to_owned(), finding::rounds(run)),
        ("seed".to_owned(), run.seed.clone()),
        ("command".to_owned(), format::command(&run.command)),
        ("result schema".to_owned(), run.schema.to_string()),
    ])
}

/// Every row, of every workload, as it is in the file.
fn all(rows: &[ResultRow]) -> DataTable {
    let columns = [
        ("subject", false),
        ("workload", false),
        ("case", false),
        ("metric", false),
        ("median", true),
        ("from to", true),
        ("unit", false),
        ("rounds", true),
        ("ratio", true),
        ("ratio from to", true),
        ("to", false),
        ("verdict", false),
        ("marks", false),
    ];
    let mut table = DataTable::new(
        "Medians over rounds; ratios as measured (for times, below 1 is faster)",
        &columns,
    );
    for row in rows {
        let mut entries = vec![
            Entry::text(clean(&row.subject)),
            Entry::text(&row.workload),
            Entry::text(row.case.to_string()),
            Entry::text(&row.metric),
            Entry::number(scientific(row.median.get()), row.median.get()),
            Entry::number(
                format!("{} to {}", scientific(row.low.get()), scientific(row.high.get())),
                row.low.get(),
            ),
            Entry::text(&row.unit),
            Entry::number(row.rounds.to_string(), f64::from(row.rounds)),
        ];
        match &row.ratio {
            Some(ratio) => entries.extend([
                Entry::number(sig3_or(ratio.estimate.get(), "not known"), ratio.estimate.get()),
                Entry::number(list_range(ratio.low.get(), ratio.high.get()), ratio.low.get()),
                Entry::text(&ratio.to),
                Entry::text(&ratio.verdict),
            ]),
            None => entries.extend((0..4).map(|_| Entry::default())),
        }
        entries.push(Entry::text(row.flags.join(", ")));
        table.rows.push(entries);
    }
    table
}

/// Base units span many decades, so this table uses powers of ten.
fn scientific(value: f64) -> String {
    if value.is_finite() {
        format!("{value:.3e}")
    } else {
        sig3_or(value, "not known")
    }
}
