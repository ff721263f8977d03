//! The rows of the workload `packets`, sorted for display. Both reports use the same tables and words.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Headline, list, rounds_note, verdict};
use super::view::{OURS, op_title, speed};
use crate::format::{clean, count, sig3_or, size, times};
use crate::result::{ResultRow, RunResult};

/// The workload's name.
pub(crate) const PACKETS: &str = "packets";

/// The mode in which only copies count.
const LINK: &str = "link";

/// Cases that make one table or one panel.
pub(crate) struct Family<'a> {
    pub(crate) title: String,
    /// True where columns differ in the batch alone.
    pub(crate) sweep: bool,
    pub(crate) columns: Vec<Column<'a>>,
}

/// One case.
pub(crate) struct Column<'a> {
    pub(crate) title: String,
    pub(crate) batch: i64,
    rows: Vec<&'a ResultRow>,
}

impl<'a> Column<'a> {
    pub(crate) const fn new(title: String, batch: i64, rows: Vec<&'a ResultRow>) -> Self {
        Column { title, batch, rows }
    }

    /// The row of a subject.
    pub(crate) fn row(&self, subject: &str, metric: &str) -> Option<&'a ResultRow> {
        let mut rows = self.rows.iter().copied();
        rows.find(|row| row.subject == subject && row.metric == metric)
    }

    /// The rows of all subjects.
    pub(crate) fn all(&self, metric: &str) -> impl Iterator<Item = &'a ResultRow> {
        self.rows.iter().copied().filter(move |row| row.metric == metric)
    }
}

impl Family<'_> {
    /// Those of `subjects` that have a row for `metric`, in that order.
    pub(crate) fn subjects<'s>(&self, subjects: &[&'s str], metric: &str) -> Vec<&'s str> {
        let has = |name: &&str| self.columns.iter().any(|column| column.row(name, metric).is_some());
        subjects.iter().copied().filter(has).collect()
    }
}

/// What a row's case says.
struct Facts<'a> {
    suite: &'a str,
    op: &'a str,
    sizes: &'a str,
    keys: &'a str,
    batch: i64,
    threads: i64,
    /// What counts where a GPU is measured: `kernel`, `pinned`, `call` or `link`. Empty elsewhere.
    mode: &'a str,
    /// Batches under way at once, of the mode `pinned`; 0 elsewhere.
    streams: i64,
    /// Of a hundred packets, those that carry nothing.
    decoys: i64,
}

impl<'a> Facts<'a> {
    fn of(row: &'a ResultRow) -> Facts<'a> {
        let text = |name| row.case.text(name).unwrap_or("");
        Facts {
            suite: text("suite"),
            op: text("op"),
            sizes: text("sizes"),
            keys: text("keys"),
            batch: row.case.int("batch").unwrap_or(0),
            threads: row.case.int("threads").unwrap_or(1),
            mode: text("mode"),
            streams: row.case.int("streams").unwrap_or(0),
            decoys: row.case.int("decoys").unwrap_or(0),
        }
    }

    /// `mix`, `tiny`, `128 B`.
    fn size(&self) -> String {
        self.sizes.parse().map_or_else(|_| clean(self.sizes), size)
    }

    /// `fresh keys`, and the threads if there are several. With a GPU also what counts: `resident keys, kernels alone`.
    fn variant(&self) -> String {
        let mut text = format!("{} keys", clean(self.keys));
        if self.threads > 1 {
            text.push_str(&format!(", {} threads", self.threads));
        }
        for part in [self.counted(), self.under_way(), self.carrying_nothing()] {
            if !part.is_empty() {
                text.push_str(&format!(", {part}"));
            }
        }
        text
    }

    /// What counts where a GPU is measured, in words.
    fn counted(&self) -> String {
        match self.mode {
            "kernel" => "kernels alone".to_owned(),
            "pinned" => "pinned memory".to_owned(),
            "call" => "whole calls".to_owned(),
            other => clean(other),
        }
    }

    /// `4 streams`; nothing where batches do not overlap.
    fn under_way(&self) -> String {
        if self.streams > 0 {
            count(usize::try_from(self.streams).unwrap_or(0), "stream")
        } else {
            String::new()
        }
    }

    /// `5 % decoys`; nothing without.
    fn carrying_nothing(&self) -> String {
        if self.decoys > 0 {
            format!("{} % decoys", self.decoys)
        } else {
            String::new()
        }
    }

    /// `seal`, `open resident`, `seal 2 threads`, `seal 4 streams`. The mode is left out: it stands in the title.
    fn short(&self) -> String {
        let mut text = clean(self.op);
        if self.keys != "fresh" && self.mode.is_empty() {
            text.push_str(&format!(" {}", clean(self.keys)));
        }
        if self.threads > 1 {
            text.push_str(&format!(" {} threads", self.threads));
        }
        for part in [self.under_way(), self.carrying_nothing()] {
            if !part.is_empty() {
                text.push_str(&format!(" {part}"));
            }
        }
        text
    }
}

/// A case in a few words: `seal chacha20-poly1305 mix x4096`, `seal chacha20-poly1305 mix x4096, whole calls`.
pub(crate) fn case(row: &ResultRow) -> String {
    let facts = Facts::of(row);
    if facts.mode == LINK {
        return format!("link {}, {}", clean(facts.op), facts.under_way());
    }
    let rest = facts.short();
    let rest = rest.strip_prefix(&clean(facts.op)).unwrap_or_default();
    let mut text = format!(
        "{} {} {} x{}{rest}",
        clean(facts.op),
        clean(facts.suite),
        facts.size(),
        facts.batch
    );
    if !facts.mode.is_empty() {
        text.push_str(&format!(", {}", facts.counted()));
    }
    text
}

/// What the link of a GPU carries by itself, in one sentence; `None` where it was not measured.
pub(crate) fn link(run: &RunResult) -> Option<String> {
    let rows = run.results.iter();
    let rows = rows.filter(|row| row.workload == PACKETS && row.metric == "throughput");
    let figures: Vec<String> = rows
        .map(|row| (row, Facts::of(row)))
        .filter(|(_, facts)| facts.mode == LINK)
        .map(|(row, facts)| {
            let way = match facts.op {
                "in" => "to the GPU".to_owned(),
                "out" => "from it".to_owned(),
                "both" => "both ways together".to_owned(),
                other => clean(other),
            };
            format!("{} GB/s {way}", sig3_or(row.median.get() / 1e9, "?"))
        })
        .collect();
    (!figures.is_empty()).then(|| format!("The link by itself, copies of 4 MiB: {}.", list(&figures)))
}

/// Rows of a run by case, cases in the order in which they stand.
fn cases(run: &RunResult) -> Vec<Vec<&ResultRow>> {
    let mut places = BTreeMap::new();
    let mut cases: Vec<Vec<&ResultRow>> = Vec::new();
    for row in run.results.iter().filter(|row| row.workload == PACKETS) {
        let place = *places.entry(row.case.canonical()).or_insert(cases.len());
        if place == cases.len() {
            cases.push(Vec::new());
        }
        cases[place].push(row);
    }
    cases
}

/// The tables of a run: the mix by batch wherever it was swept, packets by size, and the rest of the mix by what is done.
pub(crate) fn families(run: &RunResult) -> Vec<Family<'_>> {
    let cases: Vec<(Facts<'_>, Vec<&ResultRow>)> = cases(run)
        .into_iter()
        .filter_map(|rows| Some((Facts::of(rows.first().copied()?), rows)))
        .filter(|(facts, _)| facts.mode != LINK)
        .collect();
    let line = |facts: &Facts<'_>| (facts.suite.to_owned(), facts.op.to_owned(), facts.variant());
    let mut batches: BTreeMap<_, BTreeSet<i64>> = BTreeMap::new();
    for (facts, _) in cases.iter().filter(|(facts, _)| facts.sizes == "mix") {
        batches.entry(line(facts)).or_default().insert(facts.batch);
    }
    let swept = |facts: &Facts<'_>| batches.get(&line(facts)).is_some_and(|batches| batches.len() > 1);
    // Cases of the mix that stand alone get company: all of the mix with the same suite, batch and mode.
    let company = |facts: &Facts<'_>| (facts.suite.to_owned(), facts.batch, facts.mode.to_owned());
    let alone: BTreeSet<_> = cases
        .iter()
        .filter(|(facts, _)| facts.sizes == "mix" && !swept(facts))
        .map(|(facts, _)| company(facts))
        .collect();
    let mut found: BTreeMap<(usize, String), (bool, Vec<(i64, Column<'_>)>)> = BTreeMap::new();
    let mut add = |rank, title: String, sweep, order, column| {
        let family = found.entry((rank, title)).or_insert_with(|| (sweep, Vec::new()));
        family.1.push((order, column));
    };
    for (facts, rows) in &cases {
        let suite = clean(facts.suite);
        let column = |title: String| Column {
            title,
            batch: facts.batch,
            rows: rows.clone(),
        };
        if facts.sizes != "mix" {
            let title = format!(
                "{}, packets by size and batch: {suite}, {}",
                op_title(facts.op),
                facts.variant()
            );
            let order = facts.sizes.parse().unwrap_or(0);
            add(
                2,
                title,
                false,
                order,
                column(format!("{} x{}", facts.size(), facts.batch)),
            );
            continue;
        }
        if swept(facts) {
            let title = format!(
                "{}, the mix by batch size: {suite}, {}",
                op_title(facts.op),
                facts.variant()
            );
            add(0, title, true, facts.batch, column(facts.batch.to_string()));
        }
        if alone.contains(&company(facts)) {
            let mut title = format!("The mix in batches of {}: {suite}", facts.batch);
            if !facts.mode.is_empty() {
                title.push_str(&format!(", {} keys, {}", clean(facts.keys), facts.counted()));
            }
            add(1, title, false, facts.streams, column(facts.short()));
        }
    }
    let families = found.into_iter().map(|((_, title), (sweep, mut columns))| {
        columns.sort_by_key(|(order, _)| *order);
        Family {
            title,
            sweep,
            columns: columns.into_iter().map(|(_, column)| column).collect(),
        }
    });
    families.collect()
}

/// The answer of a run without long messages: our engine on the mix, in the case that leads the run.
pub(crate) fn headline(run: &RunResult) -> Option<Headline> {
    let wanted = |row: &&ResultRow| row.workload == PACKETS && row.subject == OURS && row.metric == "rate";
    let rank = |row: &&ResultRow| {
        let facts = Facts::of(row);
        (
            facts.op == "seal" && facts.sizes == "mix" && facts.keys == "fresh" && facts.threads == 1,
            facts.batch == 4096,
        )
    };
    let row = run.results.iter().filter(wanted).max_by_key(rank)?;
    let facts = Facts::of(row);
    let rate = format!("{} million", sig3_or(row.median.get() / 1e6, "?"));
    let mut headline = Headline {
        answer: format!("{OURS} moves {rate} packets a second ({}).", case(row)),
        detail: format!("Packets in batches of {}, {}.", facts.batch, facts.variant()),
        which: clean(facts.suite),
        which_note: "many packets at once".to_owned(),
        lead: "not known".to_owned(),
        lead_note: "no peer took part".to_owned(),
        sure: "not known".to_owned(),
        sure_note: rounds_note(run),
    };
    if let Some(speed) = speed(row) {
        headline.lead = times(speed.estimate);
        headline.lead_note = format!("over {}, the best peer, packet by packet", clean(speed.to));
        headline.sure = verdict(speed.verdict).2.to_owned();
    }
    Some(headline)
}

/// How full the lanes of our engine were, in one sentence; `None` where nothing was counted.
pub(crate) fn lanes(run: &RunResult) -> Option<String> {
    let figure = |metric: &str| {
        let mut rows = run.results.iter().filter(|row| {
            let facts = Facts::of(row);
            row.workload == PACKETS
                && row.subject == OURS
                && row.metric == metric
                && (facts.op, facts.sizes, facts.keys) == ("seal", "mix", "fresh")
        });
        let row = rows
            .clone()
            .find(|row| row.case.int("batch") == Some(4096))
            .or_else(|| rows.next())?;
        Some((row.median.get() * 100.0, row.case.int("batch")?))
    };
    let ((cipher, batch), (mac, _)) = (figure("lane_use")?, figure("lane_use_mac")?);
    Some(format!(
        "Lanes in use while {OURS} seals the mix in batches of {batch}: {} % for ChaCha20, {} % for Poly1305.",
        sig3_or(cipher, "?"),
        sig3_or(mac, "?")
    ))
}
