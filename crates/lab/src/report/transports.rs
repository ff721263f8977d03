//! The rows of the workload `transports`, sorted for display. Both reports use the same cases and words.

use std::collections::BTreeMap;

use super::finding::{Headline, Standing, rounds_note, verdict};
use super::view::{OURS, speed};
use crate::format::{clean, count, list_range, sig3_or, times};
use crate::result::{ResultRow, RunResult};
use crate::route::Stack;

/// The workload's name.
pub(crate) const TRANSPORTS: &str = "transports";

/// What the figures are about, for the first lines of a report.
pub(crate) const LOOPBACK: &str = "Loopback is not a network: there are no losses, no distance and packets of 64 KiB. This is \
                                   the cost of the software for each byte. Generator, programs and sink share the CPUs, so \
                                   cost says more than rate.";

/// The programs of a path, in the order in which bars and columns show them, with the metric of each.
pub(crate) const ROLES: [(&str, &str); 3] = [
    ("client", "cpu_per_gb_client"),
    ("front", "cpu_per_gb_front"),
    ("server", "cpu_per_gb_server"),
];

/// One case with its rows.
pub(crate) struct Entry<'a> {
    rows: Vec<&'a ResultRow>,
}

impl<'a> Entry<'a> {
    /// The row of a subject.
    pub(crate) fn row(&self, subject: &str, metric: &str) -> Option<&'a ResultRow> {
        let mut rows = self.rows.iter().copied();
        rows.find(|row| row.subject == subject && row.metric == metric)
    }

    /// `vless-tcp-tls, 1 stream down`
    pub(crate) fn title(&self) -> String {
        self.rows.first().map_or_else(String::new, |row| case(row))
    }

    /// Streams and direction.
    pub(crate) fn kind(&self) -> String {
        self.rows.first().map_or_else(String::new, |row| kind(row))
    }

    /// The stack's name.
    pub(crate) fn stack(&self) -> String {
        self.rows.first().map_or_else(String::new, |row| clean(stack(row)))
    }

    /// Those of `subjects` that have a row for `metric`, in that order.
    pub(crate) fn subjects<'s>(&self, subjects: &[&'s str], metric: &str) -> Vec<&'s str> {
        let has = |name: &&str| self.row(name, metric).is_some();
        subjects.iter().copied().filter(has).collect()
    }
}

fn stack(row: &ResultRow) -> &str {
    row.case.text("stack").unwrap_or("")
}

fn kind(row: &ResultRow) -> String {
    let streams = usize::try_from(row.case.int("streams").unwrap_or(1)).unwrap_or(1);
    let direction = clean(row.case.text("direction").unwrap_or(""));
    format!("{} {direction}", count(streams, "stream"))
}

/// A case in a few words.
pub(crate) fn case(row: &ResultRow) -> String {
    format!("{}, {}", clean(stack(row)), kind(row))
}

/// Cases of a run: one stream before several, down before up, stacks as they are listed.
pub(crate) fn entries(run: &RunResult) -> Vec<Entry<'_>> {
    let mut cases: BTreeMap<_, Vec<&ResultRow>> = BTreeMap::new();
    for row in run.results.iter().filter(|row| row.workload == TRANSPORTS) {
        let place = Stack::ALL.iter().position(|known| known.name() == stack(row));
        let key = (
            row.case.int("streams"),
            row.case.text("direction").map(str::to_owned),
            place.unwrap_or(usize::MAX),
            row.case.canonical(),
        );
        cases.entry(key).or_default().push(row);
    }
    cases.into_values().map(|rows| Entry { rows }).collect()
}

/// A subject against the best peer of a case, in one sentence: cost first. `None` without a peer.
pub(crate) fn against(entry: &Entry<'_>, subject: &str) -> Option<String> {
    let cost = entry.row(subject, "cpu_per_gb")?.ratio.as_ref()?;
    let mut text = format!(
        "{} takes {} the CPU time of {} ({})",
        clean(subject),
        times(cost.estimate.get()),
        clean(&cost.to),
        list_range(cost.low.get(), cost.high.get())
    );
    if let Some(speed) = entry.row(subject, "throughput").and_then(speed) {
        text.push_str(&format!(
            " and moves bytes at {} the rate of {} ({})",
            times(speed.estimate),
            clean(speed.to),
            list_range(speed.low, speed.high)
        ));
    }
    text.push('.');
    Some(text)
}

/// The standing of a subject by cost, in two sentences; `range` names its worst and best case.
pub(crate) fn standing(standing: &Standing<'_>, range: &str) -> String {
    let [cheaper, dearer, same, unknown] = standing.counts;
    format!(
        "{} moves {} the bytes of {} with the same CPU time (geometric mean of {}){range}. Cheaper in {cheaper}, dearer in \
         {dearer}, the same in {same}, not decided in {unknown}.",
        clean(standing.subject),
        times(standing.mean),
        clean(standing.to),
        count(standing.cases, "case"),
    )
}

/// The answer of a run without ciphers: our engine through VLESS over TLS, or the first case there is.
pub(crate) fn headline(run: &RunResult) -> Option<Headline> {
    let entries = entries(run);
    let has = |entry: &&Entry<'_>| entry.row(OURS, "cpu_per_gb").is_some();
    let entry = entries
        .iter()
        .filter(has)
        .find(|entry| entry.stack() == Stack::VLESS_TCP_TLS.name())
        .or_else(|| entries.iter().find(has))?;
    let row = entry.row(OURS, "cpu_per_gb")?;
    let cost = sig3_or(row.median.get(), "?");
    let rate = entry.row(OURS, "throughput").map_or(f64::NAN, |row| row.median.get());
    let mut headline = Headline {
        answer: format!(
            "{OURS} moves a gigabyte through {} for {cost} s of CPU time, client and server together.",
            entry.stack()
        ),
        detail: format!("{}: {} Gbit/s. {LOOPBACK}", entry.title(), sig3_or(rate * 8e-9, "?")),
        which: format!("{cost} s/GB"),
        which_note: format!("CPU time for each 10^9 bytes, {}", entry.title()),
        lead: "not known".to_owned(),
        lead_note: "no peer took part".to_owned(),
        sure: "not known".to_owned(),
        sure_note: rounds_note(run),
    };
    if let Some(ratio) = &row.ratio {
        headline.lead = times(ratio.estimate.get());
        headline.lead_note = format!("the CPU time of {}, the cheapest peer there", clean(&ratio.to));
        headline.sure = verdict(&ratio.verdict).2.to_owned();
        headline.sure_note = format!(
            "{} over {}; {}",
            list_range(ratio.low.get(), ratio.high.get()),
            count(row.rounds as usize, "round"),
            headline.sure_note
        );
    }
    Some(headline)
}
