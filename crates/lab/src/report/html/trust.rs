//! Can I trust it? Machine, versions, settings, verification and what the numbers cannot show.

use maud::{Markup, html};
use serde_json::Value;

use super::chart::Text;
use super::figure::listing;
use crate::format::{self, list_range, sig3_or};
use crate::lens::rank::speed;
use crate::report::listing::{Entry, Listing};
use crate::report::model::{Report, rounds};
use crate::result::{Machine, ResultRow, RunResult, Subject, Warning};

/// The whole section's content.
pub(super) fn html(report: &Report<'_>) -> Markup {
    let run = report.run;
    let limits = report.limits();
    let several = limits.len() > 2;
    html! {
        h3 { "What these numbers cannot show" }
        @for (workload, sentences) in limits {
            @if several { p.prose { "Of " (if workload.is_empty() { "all figures" } else { workload }) ":" } }
            ul.prose { @for sentence in sentences { li { (Text(sentence)) } } }
        }
        h3 { "Verification" }
        p.prose { (verification(&run.results)) }
        h3 #about-run { "About this run" }
        @if run.warnings.is_empty() { p.prose { "None were recorded." } } @else { (listing(&warnings(&run.warnings))) }
        h3 { "Subjects" }
        (listing(&subjects(&run.subjects)))
        h3 { "Machine" }
        (listing(&machine(&run.machine)))
        @if let Some(responder) = &run.responder {
            h3 { "Machine of the servers" }
            (listing(&machine(&responder.machine)))
            p.prose { "It runs " (Text(&responder.sealway)) "; an answer takes " (format::seconds(responder.rtt_s.get())) "." }
        }
        h3 { "Run" }
        (listing(&about(run)))
        details #all {
            summary { "All " (format::count(run.results.len(), "figure")) " of the run" }
            (listing(&all(&run.results)))
        }
    }
}

fn warnings(warnings: &[Warning]) -> Listing {
    let mut listing = Listing::new("", "code, where, what");
    for warning in warnings {
        let place = match warning.place.as_str() {
            "" => "the whole run",
            place => place,
        };
        listing.rows.push(vec![
            Entry::text(&warning.code),
            Entry::text(place),
            Entry::text(&warning.text),
        ]);
    }
    listing
}

fn verification(rows: &[ResultRow]) -> String {
    let count = |is: fn(&str) -> bool| rows.iter().filter(|row| is(&row.verified)).count();
    let some = count(|how| how.contains("sampled"));
    // Some are compared in full before and after a window, and sampled in it.
    let full = count(|how| how.starts_with("full")) - count(|how| how.starts_with("full, sampled"));
    let open = count(|how| how.ends_with("unauthenticated"));
    let own = count(|how| how == "self");
    let rest = rows.len() - full - own - some;
    let mut text = format!(
        "{full} of {}: every timed output was compared with an independent computation.",
        format::count(rows.len(), "row")
    );
    for (rows, before, words) in [
        (some, "", "some of the outputs were compared, in turn"),
        (
            open,
            "Of these, ",
            "the transport has nothing that would notice a change on the wire",
        ),
        (own, "", "the peer counted for itself, nothing was compared"),
        (rest, "", "no verification is recorded; do not rely on them"),
    ] {
        if rows > 0 {
            text.push_str(&format!(" {before}{rows}: {words}."));
        }
    }
    text
}

fn subjects(subjects: &[Subject]) -> Listing {
    let mut table = Listing::new("", "subject, version, kind, set-up, differs, commands, took part");
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

fn machine(machine: &Machine) -> Listing {
    let rows = [
        ("CPU", machine.cpu.clone()),
        ("CPUs allowed", machine.cores.to_string()),
        ("CPU features", machine.flags.join(" ")),
        ("architecture", machine.arch.clone()),
        ("memory", format::memory(machine.memory)),
        ("kernel", machine.kernel.clone()),
        ("machine key", machine.key.clone()),
    ];
    let facts = machine.facts.iter().map(|(name, value)| (name.as_str(), fact(value)));
    Listing::pairs(rows.into_iter().chain(facts))
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

fn about(run: &RunResult) -> Listing {
    let complete = if run.complete {
        "yes"
    } else {
        "no: stopped before its end"
    };
    let link = run.link.as_ref().map(|link| format!("{}, {}", link.asked, link.line()));
    Listing::pairs([
        ("run", run.run.clone()),
        ("started", run.started.clone()),
        ("ended", run.ended.clone()),
        ("complete", complete.to_owned()),
        ("sealway", run.sealway.clone()),
        ("profile", run.profile.clone()),
        ("rounds", rounds(run)),
        ("link", link.unwrap_or_else(|| "none".to_owned())),
        ("seed", run.seed.clone()),
        ("command", format::command(&run.command)),
        ("result schema", run.schema.to_string()),
    ])
}

/// Every row, of every workload, as it is in the file.
fn all(rows: &[ResultRow]) -> Listing {
    let mut table = Listing::new(
        "Medians over rounds, percentiles over the samples of all rounds; ratios above 1 are better, whichever way a metric counts",
        "subject, workload, case, metric, #median, #from to, unit, #rounds, #ratio, #ratio from to, to, verdict, marks",
    );
    for row in rows {
        let mut entries = vec![
            Entry::text(&row.subject),
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
        match speed(row) {
            Some(speed) => entries.extend([
                Entry::number(sig3_or(speed.estimate, "not known"), speed.estimate),
                Entry::number(list_range(speed.low, speed.high), speed.low),
                Entry::text(speed.to),
                Entry::text(speed.verdict),
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
