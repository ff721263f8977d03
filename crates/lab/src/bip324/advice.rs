//! What to use for BIP324, from measured figures only.

use super::definition::{MANY, Spec};
use super::{LOOPBACK, PEERS};
use crate::format::{sig3_or, times};
use crate::lens::choice::{Choice, Lead};
use crate::result::{Recommendation, ResultRow};
use crate::workload::advice::{OURS, compare, largest, usable};
use crate::workload::batch::Op;

/// Our packets one at a time.
const SINGLE: &str = "sealway:single";

/// A batch is large enough when it has this share of the best rate of all.
const ENOUGH: f64 = 0.9;

/// All there is to say.
pub(super) fn advice(rows: &[ResultRow]) -> Vec<Recommendation> {
    [connections(rows), batch(rows), sockets(rows)]
        .into_iter()
        .flatten()
        .collect()
}

fn million(row: &ResultRow) -> String {
    format!("{} million", sig3_or(row.median.get() / 1e6, "?"))
}

/// What to seal and open many connections with.
fn connections(rows: &[ResultRow]) -> Option<Recommendation> {
    let case = Spec::mix(Op::Pair, super::definition::BATCH).case();
    let found = largest(rows, |row| row.metric == "rate" && row.case == case);
    let ranked: Vec<&ResultRow> = found.iter().map(|&i| &rows[i]).collect();
    let choice = Choice::of(&ranked)?;
    let [best, others @ ..] = &ranked[..] else { return None };
    let name = |row: &ResultRow| match row.subject.as_str() {
        OURS => "BatchTransport".to_owned(),
        SINGLE => "PacketSealer and PacketOpener".to_owned(),
        name => name.to_owned(),
    };
    let against: Vec<String> = others
        .iter()
        .map(|row| {
            let ratio = Lead::between(best, row).estimate;
            format!("{} {} ({})", times(ratio), row.subject, million(row))
        })
        .collect();
    Some(Recommendation {
        scenario: "bip324-connections".to_owned(),
        choice: choice.names(name),
        reason: format!(
            "{} pairs a second, each a packet sealed and opened, on {MANY} connections and one core: {}.",
            million(best),
            against.join(", ")
        ),
        confidence: choice.grade().stored().to_owned(),
        because: found,
    })
}

/// How many packets to seal together.
fn batch(rows: &[ResultRow]) -> Option<Recommendation> {
    let of_sweep = |row: &ResultRow| {
        let batch = row.case.int("batch").and_then(|batch| usize::try_from(batch).ok());
        batch.is_some_and(|batch| row.case == Spec::mix(Op::Seal, batch).case())
    };
    let size = |i: usize| rows[i].case.int("batch").unwrap_or_default();
    let mut found = largest(rows, |row| row.metric == "rate" && row.subject == OURS && of_sweep(row));
    let best = *found.first()?;
    found.sort_by_key(|&i| size(i));
    let smallest = *found.first()?;
    if smallest == best || found.len() < 3 {
        return None;
    }
    let top = rows[best].median.get();
    let chosen = *found.iter().find(|&&i| rows[i].median.get() >= ENOUGH * top)?;
    let mut because = vec![chosen, best, smallest];
    because.dedup();
    let time = |metric: &str| {
        let there = |row: &ResultRow| row.metric == metric && row.subject == OURS && row.case == rows[chosen].case;
        rows.iter().position(there)
    };
    let mut waits = Vec::new();
    for (metric, word) in [("latency_p50", "median"), ("latency_p99", "99th percentile")] {
        if let Some(i) = time(metric) {
            waits.push(format!("{} us ({word})", sig3_or(rows[i].median.get() * 1e6, "?")));
            because.push(i);
        }
    }
    let wait = if waits.is_empty() {
        String::new()
    } else {
        format!(" One takes {}.", waits.join(", "))
    };
    Some(Recommendation {
        scenario: "bip324-batch".to_owned(),
        choice: format!("{} packets together", size(chosen)),
        reason: format!(
            "The smallest batch with {} % of the best rate: {} packets sealed a second, {} in batches of {}, {} in batches of \
             {}.{wait}",
            ENOUGH * 100.0,
            million(&rows[chosen]),
            million(&rows[best]),
            size(best),
            million(&rows[smallest]),
            size(smallest),
        ),
        confidence: compare(&rows[chosen], &rows[smallest]).1.to_owned(),
        because,
    })
}

/// Whether packets should be written together.
fn sockets(rows: &[ResultRow]) -> Option<Recommendation> {
    const BYTES: &str = "128";
    let mut found = largest(rows, |row| {
        row.metric == "cpu_per_op"
            && row.subject == OURS
            && row.case.text("op") == Some(LOOPBACK)
            && row.case.text("sizes") == Some(BYTES)
    });
    found.sort_by_key(|&i| rows[i].case.int("batch"));
    let [alone, together] = found[..] else {
        return None;
    };
    let (ratio, confidence) = compare(&rows[together], &rows[alone]);
    let cost = |i: usize| format!("{} ns", sig3_or(rows[i].median.get() * 1e9, "?"));
    let choice = if ratio < 1.0 {
        "one write for many packets"
    } else {
        "a write for each packet"
    };
    let mut because = vec![together, alone];
    because.extend(rows.iter().position(|row| {
        row.metric == "cpu_per_op" && row.case == rows[together].case && row.subject == PEERS[0] && usable(row)
    }));
    let peer = because.get(2).map_or_else(String::new, |&i| {
        format!(" Crate {} takes {} there.", PEERS[0], cost(i))
    });
    Some(Recommendation {
        scenario: "bip324-sockets".to_owned(),
        choice: choice.to_owned(),
        reason: format!(
            "A message of {BYTES} B from one program to another over loopback takes {} of CPU time at both ends together \
             when {} are sealed and written at once, {} when each is written by itself.{peer}",
            cost(together),
            rows[together].case.int("batch").unwrap_or_default(),
            cost(alone),
        ),
        because,
        confidence: confidence.to_owned(),
    })
}
