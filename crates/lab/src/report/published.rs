//! Published claims and orders, as both reports say them.

use super::drawing::grouped;
use crate::format::{TIED, list_range, percent_from_one, sig3_or, times};
use crate::result::{Claim, Ranked, Ranking, Ratio, Reading, Reproduction};

/// The published ratio of a claim: in per cent where that is how people say it, below twice and above half.
pub(crate) fn published(claim: &Claim) -> String {
    match claim.published {
        1.0 => "no difference".to_owned(),
        ratio if small(claim) => percent_from_one(ratio),
        ratio => times(ratio),
    }
}

/// The measured ratio of a claim and its ends, in the same way.
pub(crate) fn measured(claim: &Claim, ratio: &Ratio) -> [String; 2] {
    let [estimate, low, high] = [ratio.estimate, ratio.low, ratio.high].map(|value| value.get());
    if small(claim) {
        let low = percent_from_one(low);
        let ends = format!("{} to {}", low.trim_end_matches(" %"), percent_from_one(high));
        [percent_from_one(estimate), ends]
    } else {
        [times(estimate), list_range(low, high)]
    }
}

fn small(claim: &Claim) -> bool {
    (0.5..2.0).contains(&claim.published)
}

/// The verdict of a reading.
pub(crate) fn words(reading: &Reading) -> &str {
    match reading.verdict.as_str() {
        "larger" => "same direction, larger",
        "smaller" => "same direction, smaller",
        other => other,
    }
}

/// The places of a subject by a metric, one for each entry of an order; empty where it has none.
pub(crate) type Column<'a> = (&'a str, &'a str, Vec<String>);

/// A column for each subject and metric that has places in an order.
pub(crate) fn placed(ranking: &Ranking) -> Vec<Column<'_>> {
    let mut columns: Vec<Column<'_>> = Vec::new();
    for (at, entry) in ranking.entries.iter().enumerate() {
        for place in &entry.places {
            let is = |(subject, metric, _): &Column<'_>| *subject == place.subject && *metric == place.metric;
            let column = columns.iter().position(is).unwrap_or_else(|| {
                let none = vec![String::new(); ranking.entries.len()];
                columns.push((&place.subject, &place.metric, none));
                columns.len() - 1
            });
            let tied = if place.tied { TIED } else { "" };
            columns[column].2[at] = format!("{tied}{}", place.place);
        }
    }
    columns.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
    columns
}

/// The published figure of an entry.
pub(crate) fn figure(entry: &Ranked) -> String {
    entry
        .published
        .map_or_else(|| "none".to_owned(), |figure| sig3_or(figure, "?"))
}

/// The published place of an entry. Without a figure it has none.
pub(crate) fn place(ranking: &Ranking, at: usize) -> String {
    if ranking.entries.get(at).is_some_and(|entry| entry.published.is_none()) {
        return String::new();
    }
    let tied = if ranking.tied(at) { TIED } else { "" };
    format!("{tied}{}", at + 1)
}

/// What the sign before a place means.
pub(crate) const TIES: &str = "not told apart from the place before; of published figures, within 2 % of it";

/// CPUs that processes kept busy: an entry, a subject, and average and peak of each of [`PROCESSES`].
pub(crate) fn loads(ranking: &Ranking) -> Vec<(&str, &str, [String; 3])> {
    let mut lines: Vec<(&str, &str, [String; 3])> = Vec::new();
    for entry in &ranking.entries {
        let first = lines.len();
        for load in &entry.loads {
            let Some(process) = PROCESSES.iter().position(|name| *name == load.process) else {
                continue;
            };
            let line = lines[first..]
                .iter()
                .position(|(_, subject, _)| *subject == load.subject);
            let line = line.map_or(lines.len(), |line| first + line);
            if line == lines.len() {
                lines.push((&entry.name, &load.subject, Default::default()));
            }
            lines[line].2[process] = format!("{:.2} {:.2}", load.average.get(), load.peak.get());
        }
    }
    lines
}

/// Processes in the order in which bytes come to them.
pub(crate) const PROCESSES: [&str; 3] = ["client", "front", "server"];

/// What the figures of [`loads`] are.
pub(crate) const LOADS: &str = "CPUs that each process kept busy: on the average, and in its busiest 0.05 s";

/// How many claims each subject bears out, by the metric that was published: a sentence for each.
pub(crate) fn tally(found: &Reproduction) -> Vec<String> {
    let subjects = grouped(found.claims.iter().flat_map(|claim| {
        let readings = claim.readings.iter();
        let subjects = grouped(readings.map(|reading| (reading.subject.as_str(), reading.verdict.as_str())));
        // The published metric comes first; what follows is of the same subject.
        subjects.into_iter().map(|(subject, verdicts)| (subject, verdicts[0]))
    }));
    let words = [
        ("confirmed", "confirmed"),
        ("larger", "larger here"),
        ("smaller", "smaller here"),
        ("no difference", "without a difference here"),
        ("contradicted", "contradicted"),
        ("not decided", "not decided"),
        ("not measured", "not measured"),
    ];
    let sentence = |(name, verdicts): &(&str, Vec<&str>)| {
        let counts = words.iter().filter_map(|(verdict, words)| {
            let count = verdicts.iter().filter(|found| *found == verdict).count();
            (count > 0).then(|| format!("{count} {words}"))
        });
        let counts: Vec<String> = counts.collect();
        let claims = crate::format::count(verdicts.len(), "claim");
        match *name {
            // Without a subject there was nothing to measure.
            "" => format!("Not measured: {claims}."),
            name => format!("{name}, of {claims}: {}.", counts.join(", ")),
        }
    };
    subjects.iter().map(sentence).collect()
}
