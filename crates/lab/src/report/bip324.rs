//! The rows of the workload `bip324`, sorted for display. Both reports use the same tables and words.

use std::collections::BTreeMap;

use super::finding::{Headline, rounds_note, verdict};
use super::packets::{Column, Family};
use super::view::{OURS, op_title, speed};
use crate::bip324::gpu::ROUTED;
use crate::bip324::{GPU_SHARE, LOOPBACK};
use crate::format::{clean, sig3_or, size, times};
use crate::result::{ResultRow, RunResult};
use crate::stats::median;

/// The workload's name.
pub(crate) const BIP324: &str = crate::bip324::NAME;

/// What is done in memory.
const OPS: [&str; 3] = ["pair", "seal", "open"];

/// What is done once a connection, in the order in which it happens, then the whole.
const ONCE: [&str; 5] = ["key", "ecdh", "key-schedule", "agree", "handshake"];

/// A figure of a table: a metric, what it is multiplied by, and what its column of figures is called.
pub(crate) type Block = (&'static str, f64, &'static str);

/// Cases that make one table.
pub(crate) struct Section<'a> {
    pub(crate) family: Family<'a>,
    /// The first carries the ratios.
    pub(crate) blocks: Vec<Block>,
}

/// What a row's case says.
struct Facts<'a> {
    op: &'a str,
    sizes: &'a str,
    connections: i64,
    batch: i64,
    decoys: i64,
}

impl<'a> Facts<'a> {
    fn of(row: &'a ResultRow) -> Facts<'a> {
        let text = |name| row.case.text(name).unwrap_or("");
        let int = |name| row.case.int(name).unwrap_or(0);
        Facts {
            op: text("op"),
            sizes: text("sizes"),
            connections: int("connections"),
            batch: int("batch"),
            decoys: int("decoys"),
        }
    }

    fn packets(&self) -> bool {
        OPS.contains(&self.op)
    }

    /// `mix`, `128 B`.
    fn size(&self) -> String {
        self.sizes.parse().map_or_else(|_| clean(self.sizes), size)
    }
}

/// `1 connection`, `1000 connections`.
fn connections(count: i64) -> String {
    crate::format::count(usize::try_from(count).unwrap_or(0), "connection")
}

/// A case in a few words: `pair mix x4096, 1000 connections, 20 % decoys`.
pub(crate) fn case(row: &ResultRow) -> String {
    let facts = Facts::of(row);
    if ONCE.contains(&facts.op) {
        return clean(facts.op);
    }
    let mut text = format!("{} {} x{}", clean(facts.op), facts.size(), facts.batch);
    if facts.packets() {
        text.push_str(&format!(", {}", connections(facts.connections)));
    }
    if facts.decoys > 0 {
        text.push_str(&format!(", {} % decoys", facts.decoys));
    }
    text
}

/// True for the metric that stands for a row's case in rankings.
pub(crate) fn leading(row: &ResultRow) -> bool {
    row.metric == "rate" || row.metric == "setup_time"
}

fn rows(run: &RunResult) -> impl Iterator<Item = &ResultRow> {
    run.results.iter().filter(|row| row.workload == BIP324)
}

const RATE: Block = ("rate", 1e-6, "10^6/s");

/// Where a GPU takes part.
const SHARE: Block = (GPU_SHARE, 100.0, "packets that the GPU did, %");

/// A case in its table.
struct Placed<'a> {
    /// Where the table stands, and its title.
    key: (usize, String),
    sweep: bool,
    blocks: Vec<Block>,
    /// Where the column stands.
    order: i64,
    column: Column<'a>,
}

/// The tables of a run: the mix by what is done, by batch, packets of one size, sockets, what is done once.
pub(crate) fn sections(run: &RunResult) -> Vec<Section<'_>> {
    let mut cases: BTreeMap<String, Vec<&ResultRow>> = BTreeMap::new();
    for row in rows(run) {
        cases.entry(row.case.canonical()).or_default().push(row);
    }
    let mut placed: Vec<Placed<'_>> = Vec::new();
    let mut add = |rank, title: String, sweep, blocks, order, column| {
        let key = (rank, title);
        placed.push(Placed {
            key,
            sweep,
            blocks,
            order,
            column,
        });
    };
    let place = |list: &[&str], op: &str| list.iter().position(|known| *known == op).unwrap_or(list.len()) as i64;
    for rows in cases.values() {
        let Some(facts) = rows.first().map(|row| Facts::of(row)) else {
            continue;
        };
        let column = |title: String| Column::new(title, facts.batch, rows.clone());
        let on_gpu = rows.iter().any(|row| row.metric == GPU_SHARE).then_some(SHARE);
        let bytes: i64 = facts.sizes.parse().unwrap_or(0);
        if facts.op == LOOPBACK {
            let blocks = vec![
                ("rate", 1e-6, "10^6 messages/s"),
                ("throughput", 8e-9, "contents, Gbit/s"),
                ("cpu_per_op", 1e9, "CPU of both ends, ns a message"),
                ("cpu_per_gb", 1.0, "CPU of both ends, s/GB of contents"),
            ];
            let title = "Two endpoints over loopback TCP (packets in a write)".to_owned();
            let order = bytes * 1000 + facts.batch;
            add(
                4,
                title,
                false,
                blocks,
                order,
                column(format!("{} x{}", facts.size(), facts.batch)),
            );
        } else if ONCE.contains(&facts.op) {
            let blocks = vec![("setup_time", 1e6, "us")];
            let order = place(&ONCE, facts.op);
            add(
                5,
                "Once a connection".to_owned(),
                false,
                blocks,
                order,
                column(clean(facts.op)),
            );
        } else if facts.sizes != "mix" {
            let title = format!(
                "Packets of one size, x{}, {}",
                facts.batch,
                connections(facts.connections)
            );
            let order = bytes * 10 + place(&OPS, facts.op);
            add(
                3,
                title,
                false,
                vec![RATE],
                order,
                column(format!("{} {}", clean(facts.op), facts.size())),
            );
        } else {
            if facts.batch == 4096 {
                let title = format!("The mix, x{}, {}", facts.batch, connections(facts.connections));
                let decoys = if facts.decoys > 0 {
                    format!(" {} %", facts.decoys)
                } else {
                    String::new()
                };
                let order = facts.decoys * 10 + place(&OPS, facts.op);
                let rank = usize::from(facts.connections <= 1);
                let mut blocks = vec![
                    RATE,
                    ("throughput", 1e-9, "contents, GB/s"),
                    ("wire_throughput", 1e-9, "wire, GB/s"),
                ];
                blocks.extend(on_gpu);
                add(
                    rank,
                    title,
                    false,
                    blocks,
                    order,
                    column(format!("{}{decoys}", clean(facts.op))),
                );
            }
            if facts.decoys == 0 {
                let title = format!(
                    "{}, the mix by batch, {}",
                    op_title(facts.op),
                    connections(facts.connections)
                );
                let mut blocks = vec![
                    RATE,
                    ("latency_p50", 1e6, "a batch from submission to done, us, median"),
                    ("latency_p99", 1e6, "99th percentile, where a window had 1,000 batches"),
                    ("packet_p50", 1e9, "a packet's share of it, ns, median"),
                    ("packet_p99", 1e9, "99th percentile"),
                ];
                blocks.extend(on_gpu);
                add(2, title, true, blocks, facts.batch, column(facts.batch.to_string()));
            }
        }
    }
    placed.sort_by(|a, b| (&a.key, a.order).cmp(&(&b.key, b.order)));
    let mut found: Vec<Section<'_>> = Vec::new();
    for Placed {
        key: (_, title),
        sweep,
        blocks,
        column,
        ..
    } in placed
    {
        match found.last_mut() {
            Some(last) if last.family.title == title => last.family.columns.push(column),
            _ => found.push(Section {
                family: Family {
                    title,
                    sweep,
                    columns: vec![column],
                },
                blocks,
            }),
        }
    }
    // One column is no sweep, and what it says stands elsewhere.
    found
        .into_iter()
        .filter(|section| !section.family.sweep || section.family.columns.len() > 1)
        .collect()
}

/// The row of a case on the mix.
fn find<'a>(run: &'a RunResult, subject: &str, op: &str, decoys: i64, metric: &str) -> Option<&'a ResultRow> {
    rows(run)
        .filter(|row| row.subject == subject && row.metric == metric)
        .filter(|row| {
            let facts = Facts::of(row);
            (facts.op, facts.sizes, facts.batch, facts.decoys) == (op, "mix", 4096, decoys)
        })
        .max_by_key(|row| row.case.int("connections"))
}

/// The median of a row's values over another's, round by round.
fn over(row: &ResultRow, other: &ResultRow) -> Option<f64> {
    let pairs = row.values.iter().zip(&other.values);
    let ratios: Vec<f64> = pairs
        .map(|(a, b)| a.get() / b.get())
        .filter(|ratio| ratio.is_finite())
        .collect();
    median(&ratios)
}

/// What the figures say, a sentence each.
pub(crate) fn findings(run: &RunResult) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(ours) = find(run, OURS, "pair", 0, "rate") {
        let facts = Facts::of(ours);
        let others: Vec<String> = run
            .subjects
            .iter()
            .filter(|subject| subject.name != OURS)
            .filter_map(|subject| {
                let theirs = find(run, &subject.name, "pair", 0, "rate")?;
                Some(format!("{} {}", times(over(ours, theirs)?), clean(&subject.name)))
            })
            .collect();
        let against = if others.is_empty() {
            String::new()
        } else {
            format!(": {}", others.join(", "))
        };
        sentences.push(format!(
            "{OURS} seals and opens {} million packets of the mix a second on {} and one core, each a pair{against}.",
            sig3_or(ours.median.get() / 1e6, "?"),
            connections(facts.connections)
        ));
        let costs: Vec<String> = [5, 20]
            .into_iter()
            .filter_map(|decoys| {
                let with = over(find(run, OURS, "pair", decoys, "rate")?, ours)?;
                Some(format!(
                    "{decoys} % decoys take {} % of useful goodput",
                    sig3_or((1.0 - with) * 100.0, "?")
                ))
            })
            .collect();
        if !costs.is_empty() {
            sentences.push(format!("{}.", costs.join("; ")));
        }
    }
    let routed = run.subjects.iter().find(|subject| subject.name == ROUTED);
    if let Some(words) = routed.and_then(|subject| subject.differs.iter().find(|text| text.starts_with("the GPU "))) {
        sentences.push(format!("{ROUTED}: {}.", clean(words)));
    }
    sentences.extend(overhead(run));
    let handshake =
        |subject: &str| rows(run).find(|row| row.subject == subject && row.case.text("op") == Some("handshake"));
    if let Some(ours) = handshake(OURS) {
        let theirs = handshake(BIP324).map_or_else(String::new, |row| {
            format!(", of crate {BIP324} {} us", sig3_or(row.median.get() * 1e6, "?"))
        });
        sentences.push(format!(
            "A whole handshake takes {} us of CPU time for both ends together{theirs}.",
            sig3_or(ours.median.get() * 1e6, "?")
        ));
    }
    sentences
}

/// Bytes on the wire over those of contents, by size.
fn overhead(run: &RunResult) -> Option<String> {
    let mut found: BTreeMap<(i64, i64), String> = BTreeMap::new();
    for row in rows(run).filter(|row| row.subject == OURS && row.metric == "overhead") {
        let facts = Facts::of(row);
        let order = facts.sizes.parse().unwrap_or(i64::MAX);
        let mut name = if order == i64::MAX {
            "the mix".to_owned()
        } else {
            facts.size()
        };
        if facts.decoys > 0 {
            name.push_str(&format!(" with {} % decoys", facts.decoys));
        }
        let figure = format!("{} % for {name}", sig3_or(row.median.get() * 100.0, "?"));
        // A whole pass has the mix as it is; all connections and batches have the same.
        found.entry((order, facts.decoys)).or_insert(figure);
    }
    if found.is_empty() {
        return None;
    }
    let figures: Vec<String> = found.into_values().collect();
    Some(format!(
        "Protocol overhead, bytes on the wire beyond contents: {}.",
        figures.join(", ")
    ))
}

/// The answer of a run of this workload alone.
pub(crate) fn headline(run: &RunResult) -> Option<Headline> {
    let row = find(run, OURS, "pair", 0, "rate")
        .or_else(|| rows(run).find(|row| row.subject == OURS && row.metric == "rate"))?;
    let facts = Facts::of(row);
    let what = if facts.op == "pair" { "pairs" } else { "packets" };
    let mut headline = Headline {
        answer: format!(
            "{OURS} moves {} million BIP324 {what} a second ({}).",
            sig3_or(row.median.get() / 1e6, "?"),
            case(row)
        ),
        detail: "A pair is a packet sealed at one end and opened at the other, with its length, header and rekeying."
            .to_owned(),
        which: "BIP324".to_owned(),
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
