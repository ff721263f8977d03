//! A run sorted for display: which subjects, suites, operations and sizes there are, and the row for each.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::format;
use crate::result::{CaseValue, ResultRow, RunResult};

/// The name of our own engine among the subjects.
pub(crate) const OURS: &str = "sealway";

/// The workload whose cases have suites, operations and sizes.
pub(crate) const PRIMITIVES: &str = "primitives";

/// Subjects in the order every table and legend uses; the place fixes the colour.
pub(crate) const SUBJECTS: [&str; 5] = [OURS, "aws-lc-rs", "ring", "rustcrypto", "openssl"];
/// Those of paths, behind the others.
const PATHS: [&str; 4] = ["bip324", "xray", "v2ray", "direct"];
const SUITES: [&str; 4] = ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305", "xchacha20-poly1305"];
const OPS: [&str; 4] = ["seal", "open", "fresh-key", "key-setup"];

/// Cases that differ in the message size only.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    pub(crate) suite: &'a str,
    pub(crate) op: &'a str,
    /// Parameters that set a variant apart from the usual case, such as `aad=0`; empty for the usual one.
    pub(crate) extra: String,
    /// Message sizes, ascending; empty for operations without a message.
    pub(crate) sizes: Vec<i64>,
}

impl Group<'_> {
    /// `Sealing, aes-128-gcm` with the variant, if any.
    pub(crate) fn title(&self) -> String {
        let mut title = format!("{}, {}", op_title(self.op), format::clean(self.suite));
        if !self.extra.is_empty() {
            title.push_str(&format!(" ({})", format::clean(&self.extra)));
        }
        title
    }
}

/// An operation as a heading names it.
pub(crate) fn op_title(op: &str) -> String {
    match op {
        "pair" => "Sealing and opening".to_owned(),
        "seal" => "Sealing".to_owned(),
        "open" => "Opening".to_owned(),
        "fresh-key" => "A fresh key for each message".to_owned(),
        "key-setup" => "Key set-up".to_owned(),
        other => format::clean(other),
    }
}

/// The place of a name in a fixed order; unknown names come last.
fn place(order: &[&str], name: &str) -> usize {
    order.iter().position(|known| *known == name).unwrap_or(order.len())
}

/// Which of the fixed series colours and shapes a subject has, 0 to 4; 5 for a subject without one.
pub(crate) fn series(subject: &str) -> usize {
    // Proxies never stand beside libraries, so they share their colours.
    match subject {
        "xray" => 1,
        "v2ray" => 2,
        "direct" => 4,
        // The same for the peer of BIP324, which stands beside aws-lc-rs only.
        "bip324" => 2,
        _ => place(&SUBJECTS, subject),
    }
}

/// A run, indexed.
pub(crate) struct View<'a> {
    pub(crate) run: &'a RunResult,
    /// Subjects that have at least one row or were listed, ours first.
    pub(crate) subjects: Vec<&'a str>,
    /// By suite, then operation, usual cases before variants.
    pub(crate) groups: Vec<Group<'a>>,
    rows: HashMap<(usize, Option<i64>, &'a str, &'a str), &'a ResultRow>,
}

impl<'a> View<'a> {
    /// Sorts the rows of `run`. Rows of other workloads are left for the table of all figures.
    pub(crate) fn new(run: &'a RunResult) -> Self {
        let rows = || run.results.iter().filter(|row| row.workload == PRIMITIVES);

        let mut seen = BTreeSet::new();
        let names = run
            .subjects
            .iter()
            .map(|s| s.name.as_str())
            .chain(run.results.iter().map(|r| r.subject.as_str()));
        let mut subjects: Vec<&str> = names.filter(|name| seen.insert(*name)).collect();
        subjects.sort_by_key(|name| (place(&SUBJECTS, name), place(&PATHS, name)));

        // The usual value of each further parameter, per operation, so that only variants carry it in their title.
        let mut counts: BTreeMap<(&str, &str), BTreeMap<&CaseValue, usize>> = BTreeMap::new();
        for row in rows() {
            for (name, value) in further(row) {
                *counts.entry((op(row), name)).or_default().entry(value).or_default() += 1;
            }
        }
        let usual = |op, name| {
            let values = counts.get(&(op, name))?;
            values.iter().max_by_key(|(_, n)| **n).map(|(value, _)| *value)
        };

        let mut found: BTreeMap<(usize, &str, usize, &str, String), Vec<&ResultRow>> = BTreeMap::new();
        for row in rows() {
            let suite = row.case.text("suite").unwrap_or("");
            let op = op(row);
            let extra: Vec<String> = further(row)
                .filter(|(name, value)| usual(op, *name) != Some(*value))
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let key = (place(&SUITES, suite), suite, place(&OPS, op), op, extra.join(" "));
            found.entry(key).or_default().push(row);
        }

        let mut groups = Vec::new();
        let mut index = HashMap::new();
        for ((_, suite, _, op, extra), members) in found {
            let sizes: BTreeSet<i64> = members.iter().filter_map(|row| row.case.int("bytes")).collect();
            for row in members {
                let key = (
                    groups.len(),
                    row.case.int("bytes"),
                    row.subject.as_str(),
                    row.metric.as_str(),
                );
                index.insert(key, row);
            }
            groups.push(Group {
                suite,
                op,
                extra,
                sizes: sizes.into_iter().collect(),
            });
        }
        View {
            run,
            subjects,
            groups,
            rows: index,
        }
    }

    /// The row of a subject at a size of a group.
    pub(crate) fn row(
        &self,
        group: usize,
        bytes: Option<i64>,
        subject: &'a str,
        metric: &'a str,
    ) -> Option<&'a ResultRow> {
        self.rows.get(&(group, bytes, subject, metric)).copied()
    }

    /// Groups of an operation, with their places.
    pub(crate) fn of_op(&self, op: &str) -> impl Iterator<Item = (usize, &Group<'a>)> {
        self.groups.iter().enumerate().filter(move |(_, group)| group.op == op)
    }

    /// Suites that have any row, in the fixed order.
    pub(crate) fn suites(&self) -> Vec<&'a str> {
        let mut suites: Vec<&str> = self.groups.iter().map(|group| group.suite).collect();
        suites.dedup();
        suites
    }

    /// Our subject, or the first there is when ours did not take part.
    pub(crate) fn ours(&self) -> Option<&'a str> {
        self.subjects.first().copied()
    }

    /// Subjects with a row in `group` for `metric`.
    pub(crate) fn subjects_in(&self, group: usize, metric: &'a str) -> Vec<&'a str> {
        let sizes = self.groups.get(group).map(|g| g.sizes.as_slice()).unwrap_or_default();
        let has = |subject: &&'a str| {
            sizes
                .iter()
                .map(|b| Some(*b))
                .chain([None])
                .any(|b| self.row(group, b, subject, metric).is_some())
        };
        self.subjects.iter().copied().filter(has).collect()
    }
}

fn op(row: &ResultRow) -> &str {
    row.case.text("op").unwrap_or("")
}

fn further(row: &ResultRow) -> impl Iterator<Item = (&str, &CaseValue)> {
    row.case
        .0
        .iter()
        .map(|(name, value)| (name.as_str(), value))
        .filter(|(name, _)| !matches!(*name, "suite" | "op" | "bytes"))
}

/// How fast a subject is against the reference: above 1 is faster, whichever way its metric counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Speed<'a> {
    pub(crate) to: &'a str,
    pub(crate) estimate: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// True for an interval with a stated level, false for the plain range of a few rounds.
    pub(crate) interval: bool,
    pub(crate) verdict: &'a str,
}

/// The ratio of a row as speed: times are turned round.
pub(crate) fn speed(row: &ResultRow) -> Option<Speed<'_>> {
    let ratio = row.ratio.as_ref()?;
    let (estimate, low, high) = if row.better == "lower" {
        (
            1.0 / ratio.estimate.get(),
            1.0 / ratio.high.get(),
            1.0 / ratio.low.get(),
        )
    } else {
        (ratio.estimate.get(), ratio.low.get(), ratio.high.get())
    };
    let usable = estimate.is_finite() && estimate > 0.0;
    usable.then_some(Speed {
        to: &ratio.to,
        estimate,
        low,
        high,
        interval: ratio.level > 0.0,
        verdict: &ratio.verdict,
    })
}
