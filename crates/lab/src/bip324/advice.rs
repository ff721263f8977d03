//! What to use for BIP324, from measured figures only.

use super::definition::{MANY, Spec};
use super::ends::Op;
use super::{LOOPBACK, PEERS};
use crate::format::{sig3_or, times};
use crate::result::{Recommendation, ResultRow};
use crate::stats::{Better, Rules, median, ratio};

/// Our batches, and our packets one at a time.
const OURS: &str = "sealway";
const SINGLE: &str = "sealway:single";

/// Rounds below which nothing is called better.
const LEAST_ROUNDS: u32 = 3;

/// A batch is large enough when it has this share of the best rate of all.
const ENOUGH: f64 = 0.9;

/// All there is to say.
pub(super) fn advice(rows: &[ResultRow]) -> Vec<Recommendation> {
    [connections(rows), batch(rows), sockets(rows)]
        .into_iter()
        .flatten()
        .collect()
}

fn usable(row: &ResultRow) -> bool {
    row.median.get().is_finite() && row.rounds >= LEAST_ROUNDS && !row.flags.iter().any(|flag| flag == "unusable")
}

fn million(row: &ResultRow) -> String {
    format!("{} million", sig3_or(row.median.get() / 1e6, "?"))
}

/// How sure it is that one row is better than another of the same metric, and the median of their ratios by rounds.
fn compare(one: &ResultRow, other: &ResultRow) -> (f64, &'static str) {
    let numbers = |row: &ResultRow| row.values.iter().map(|value| value.get()).collect::<Vec<f64>>();
    let (ours, theirs) = (numbers(one), numbers(other));
    let better = if one.better == "lower" {
        Better::Lower
    } else {
        Better::Higher
    };
    let rules = Rules::of(&one.metric);
    let rules = if one.how == "range" {
        rules.without_intervals()
    } else {
        rules
    };
    let verdict = ratio("", &ours, &theirs, better, rules).verdict;
    let pairs: Vec<f64> = ours
        .iter()
        .zip(&theirs)
        .map(|(a, b)| a / b)
        .filter(|r| r.is_finite())
        .collect();
    let leads = !pairs.is_empty()
        && pairs
            .iter()
            .all(|&r| (r > 1.0) == (better == Better::Higher) && r != 1.0);
    let noisy = [one, other]
        .iter()
        .any(|row| row.flags.iter().any(|flag| flag == "noisy"));
    let confidence = match (verdict.as_str(), leads, noisy) {
        ("faster", _, false) => "clear",
        ("faster", ..) | (_, true, _) => "slight",
        _ => "tie",
    };
    (median(&pairs).unwrap_or(f64::NAN), confidence)
}

/// What to seal and open many connections with.
fn connections(rows: &[ResultRow]) -> Option<Recommendation> {
    let case = Spec::mix(Op::Pair, super::definition::BATCH).case();
    let of = |row: &ResultRow| row.metric == "rate" && row.case == case && usable(row);
    let mut found: Vec<usize> = (0..rows.len()).filter(|&i| of(&rows[i])).collect();
    found.sort_by(|&a, &b| rows[b].median.get().total_cmp(&rows[a].median.get()));
    let [best, ref others @ ..] = found[..] else {
        return None;
    };
    let next = *others.first()?;
    let choice = match rows[best].subject.as_str() {
        OURS => "BatchTransport".to_owned(),
        SINGLE => "PacketSealer and PacketOpener".to_owned(),
        name => name.to_owned(),
    };
    let against: Vec<String> = others
        .iter()
        .map(|&i| {
            let (ratio, _) = compare(&rows[best], &rows[i]);
            format!("{} {} ({})", times(ratio), rows[i].subject, million(&rows[i]))
        })
        .collect();
    Some(Recommendation {
        scenario: "bip324-connections".to_owned(),
        choice,
        reason: format!(
            "{} pairs a second, each a packet sealed and opened, on {MANY} connections and one core: {}.",
            million(&rows[best]),
            against.join(", ")
        ),
        because: found.clone(),
        confidence: compare(&rows[best], &rows[next]).1.to_owned(),
    })
}

/// How many packets to seal together.
fn batch(rows: &[ResultRow]) -> Option<Recommendation> {
    let of = |row: &ResultRow| {
        row.metric == "rate"
            && row.subject == OURS
            && row.case.int("batch").is_some_and(|batch| {
                usize::try_from(batch).is_ok_and(|batch| row.case == Spec::mix(Op::Seal, batch).case())
            })
            && usable(row)
    };
    let size = |i: usize| rows[i].case.int("batch").unwrap_or_default();
    let mut found: Vec<usize> = (0..rows.len()).filter(|&i| of(&rows[i])).collect();
    found.sort_by_key(|&i| size(i));
    let (&smallest, best) = (
        found.first()?,
        *found
            .iter()
            .max_by(|&&a, &&b| rows[a].median.get().total_cmp(&rows[b].median.get()))?,
    );
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
    let of = |row: &ResultRow| {
        row.metric == "cpu_per_op"
            && row.subject == OURS
            && row.case.text("op") == Some(LOOPBACK)
            && row.case.text("sizes") == Some(BYTES)
            && usable(row)
    };
    let mut found: Vec<usize> = (0..rows.len()).filter(|&i| of(&rows[i])).collect();
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
