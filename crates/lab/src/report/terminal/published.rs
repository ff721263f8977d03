//! Published claims and orders beside what was measured.

use super::Text;
use crate::format;
use crate::report::published::{
    LOADS, PROCESSES, TIES, figure, loads, measured, place, placed, published, tally, words,
};
use crate::result::{Claim, Ranking, Reading, Reproduction};

/// The widest subject and figure that stand in line.
const SUBJECT: usize = 24;
const FIGURE: usize = 25;

/// The widest name of an entry, and the width of a place.
const ENTRY: usize = 31;
const PLACE: usize = 11;

/// The width of what a process kept busy: two figures.
const LOAD: usize = 11;

pub(super) fn section(out: &mut Text, found: &Reproduction) {
    out.heading(&format!("Published and measured: {}", found.recipe));
    out.prose("  ", &found.about);
    for (number, source) in (1..).zip(&found.sources) {
        out.prose(
            &format!("  [{number}] "),
            &format!("{}, {}. {}.", source.name, source.date, source.method),
        );
        out.prose("      ", &source.address);
    }
    for (number, claim) in (1..).zip(&found.claims) {
        claimed(out, number, claim);
    }
    let tally = tally(found);
    if !tally.is_empty() {
        out.heading("Claims by subject, as published metrics have it");
        for sentence in &tally {
            out.prose("  ", sentence);
        }
    }
    for ranking in &found.rankings {
        ranked(out, ranking);
        busy(out, ranking);
    }
    for (title, sentences) in [
        ("Where this program stands", &found.standing),
        ("What differs from the sources", &found.differs),
        ("Not here, and how to get it", &found.missing),
    ] {
        if !sentences.is_empty() {
            out.heading(title);
            for sentence in sentences {
                out.prose("  - ", sentence);
            }
        }
    }
}

fn claimed(out: &mut Text, number: u32, claim: &Claim) {
    out.text.push('\n');
    out.prose(&format!("{number:>3}  "), &claim.text);
    let (ratio, source) = (published(claim), claim.source);
    let cells = format!("{ratio} [{source}]: {} / {}", claim.over, claim.under);
    out.prose(&format!("     {:<SUBJECT$} ", "published"), &cells);
    for reading in &claim.readings {
        read(out, claim, reading);
    }
    if !claim.note.is_empty() {
        out.prose("     ", &format!("Note: {}.", claim.note));
    }
}

fn read(out: &mut Text, claim: &Claim, reading: &Reading) {
    let subject = match (reading.subject.as_str(), &reading.ratio) {
        ("", _) => "measured",
        (subject, None) => subject,
        (subject, Some(_)) => &format!("{subject}, {}", reading.metric),
    };
    let figure = reading.ratio.as_ref().map_or_else(String::new, |ratio| {
        let [estimate, ends] = measured(claim, ratio);
        format!("{estimate} ({ends})")
    });
    let verdict = words(reading);
    if subject.chars().count() > SUBJECT {
        out.prose("     ", subject);
        out.prose(&format!("     {:SUBJECT$} {figure:<FIGURE$} ", ""), verdict);
    } else {
        out.prose(&format!("     {subject:<SUBJECT$} {figure:<FIGURE$} "), verdict);
    }
    if !reading.why.is_empty() {
        out.prose("       ", &format!("{}.", reading.why.trim_end_matches('.')));
    }
}

fn ranked(out: &mut Text, ranking: &Ranking) {
    out.heading(&format!(
        "{} [{}]: the published order, and places here",
        ranking.title, ranking.source
    ));
    let columns = placed(ranking);
    let unit = format!("{:>PLACE$}", ranking.unit);
    // All of a subject stands together.
    let fit = out.width.saturating_sub(ENTRY + 5 + PLACE) / PLACE;
    let metrics = columns
        .iter()
        .filter(|(subject, ..)| columns.first().is_some_and(|(first, ..)| first == subject))
        .count();
    let fit = if metrics > 0 && fit > metrics {
        fit - fit % metrics
    } else {
        fit.max(1)
    };
    for columns in columns.chunks(fit) {
        for head in 0..2 {
            let first = if head == 1 { unit.clone() } else { " ".repeat(PLACE) };
            let mut line = format!("{:1$}{first}", "", ENTRY + 5);
            for (subject, metric, _) in columns {
                let title: String = [subject, metric][head].chars().take(PLACE - 1).collect();
                line.push_str(&format!("{title:>PLACE$}"));
            }
            out.line(&line);
        }
        for (at, entry) in ranking.entries.iter().enumerate() {
            let name: String = entry.name.chars().take(ENTRY).collect();
            let mut line = format!("{:>3}  {name:<ENTRY$}{:>PLACE$}", place(ranking, at), figure(entry));
            for (_, _, places) in columns {
                line.push_str(&format!("{:>PLACE$}", places.get(at).map_or("", String::as_str)));
            }
            out.line(&line);
        }
    }
    for sentence in &ranking.agreement {
        out.prose("  ", sentence);
    }
    out.prose("  ", &format!("{}: {TIES}.", format::TIED));
}

/// What each process of an order's entries kept busy.
fn busy(out: &mut Text, ranking: &Ranking) {
    let lines = loads(ranking);
    if lines.is_empty() {
        return;
    }
    out.heading(LOADS);
    let mut head = " ".repeat(ENTRY + 5);
    for title in [""].iter().chain(&PROCESSES) {
        head.push_str(&format!("{title:>LOAD$}"));
    }
    out.line(&head);
    for (entry, subject, processes) in lines {
        let entry: String = entry.chars().take(ENTRY).collect();
        let subject: String = subject.chars().take(LOAD - 1).collect();
        let mut line = format!("     {entry:<ENTRY$}{subject:>LOAD$}");
        for process in processes {
            line.push_str(&format!("{process:>LOAD$}"));
        }
        out.line(&line);
    }
}
