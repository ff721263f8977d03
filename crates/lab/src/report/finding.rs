//! What the figures say, in sentences. Both reports use the same words, so that they cannot disagree.

use super::bip324::{self, BIP324};
use super::files;
use super::load::{self, LOADS};
use super::packets::{self, PACKETS};
use super::transports::{self, TRANSPORTS};
use super::view::{OURS, PRIMITIVES, View, speed};
use crate::format::{self, clean, count, sig3_or, times};
use crate::result::{ResultRow, RunResult};

/// Differences below this are never called a win: 1 %.
pub(crate) const MARGIN: f64 = 0.01;
/// With fewer than six rounds no 95 % interval exists, and only differences of 20 % are named.
const MARGIN_FEW: f64 = 0.20;
/// Rounds from which an interval can reach 95 %.
const ROUNDS_FOR_INTERVAL: u32 = 6;

/// Marks of a row, with the sign used in tables and what it means.
pub(crate) const FLAGS: [(&str, char, &str); 8] = [
    ("noisy", '~', "noisy: spread over rounds above 5 %"),
    ("unusable", '!', "unusable: spread above 10 %, not ranked"),
    (
        "two-modes",
        '2',
        "two clusters of rounds: the median stands for neither",
    ),
    ("outlier", 'o', "a round far from the others, kept"),
    (
        "generator-bound",
        'g',
        "over two thirds of what the generator does without a path: not the path's limit",
    ),
    (
        "unauthenticated",
        'u',
        "unauthenticated: delivered wrong bytes after a bit was flipped on the wire",
    ),
    ("not-steady", '^', "the rate still changed inside the windows"),
    (
        "overloaded",
        '>',
        "overloaded: under 99 % of the schedule was done, percentiles are lower bounds, not ranked",
    ),
];

/// True when a row may not be ranked.
pub(crate) fn unusable(row: &ResultRow) -> bool {
    let not_ranked = ["unusable", "overloaded"];
    row.flags.iter().any(|flag| not_ranked.contains(&flag.as_str()))
}

/// Which of the rows of one case are best: the best median, and every row not told apart from it. No row is best when
/// fewer than two can be ranked.
pub(crate) fn best(rows: &[Option<&ResultRow>]) -> Vec<bool> {
    let ranked = |row: &&ResultRow| row.median.get().is_finite() && row.median.get() > 0.0 && !unusable(row);
    let candidates: Vec<&ResultRow> = rows.iter().flatten().copied().filter(|row| ranked(row)).collect();
    let Some(top) = candidates
        .iter()
        .copied()
        .reduce(|a, b| if ahead(b, a) > 1.0 { b } else { a })
    else {
        return vec![false; rows.len()];
    };
    let tied = |row: &ResultRow| match paired(top, row) {
        Some(apart) => !apart,
        None => ahead(top, row) <= 1.0 + margin(top.rounds.min(row.rounds)) || overlap(top, row),
    };
    rows.iter()
        .map(|row| row.is_some_and(|row| candidates.len() > 1 && ranked(&row) && tied(row)))
        .collect()
}

/// Whether two rows of one case were told apart round by round; `None` when neither has a ratio to the other. This is
/// better evidence than the two medians: what disturbed a round disturbed both.
fn paired(a: &ResultRow, b: &ResultRow) -> Option<bool> {
    let of = |x: &ResultRow, y: &ResultRow| {
        let ratio = x
            .ratio
            .as_ref()
            .filter(|ratio| ratio.to == y.subject && x.case == y.case)?;
        Some(matches!(ratio.verdict.as_str(), "faster" | "slower"))
    };
    of(a, b).or_else(|| of(b, a))
}

/// How many times better the median of `a` is than that of `b`.
fn ahead(a: &ResultRow, b: &ResultRow) -> f64 {
    let (a, b, lower) = (a.median.get(), b.median.get(), a.better == "lower");
    if lower { b / a } else { a / b }
}

fn overlap(a: &ResultRow, b: &ResultRow) -> bool {
    let intervals = [a, b]
        .iter()
        .all(|row| row.rounds >= ROUNDS_FOR_INTERVAL && row.how != "range");
    intervals && a.low.get() <= b.high.get() && b.low.get() <= a.high.get()
}

fn margin(rounds: u32) -> f64 {
    if rounds >= ROUNDS_FOR_INTERVAL {
        MARGIN
    } else {
        MARGIN_FEW
    }
}

/// Smallest, median and largest ratio of `a` to `b` over the rounds that both have.
fn round_ratios(a: &ResultRow, b: &ResultRow) -> Option<(f64, f64, f64)> {
    let mut ratios: Vec<f64> = a.values.iter().zip(&b.values).map(|(a, b)| a.get() / b.get()).collect();
    if ratios.is_empty() || ratios.iter().any(|ratio| !ratio.is_finite()) {
        return None;
    }
    ratios.sort_by(f64::total_cmp);
    let n = ratios.len();
    let middle = if n % 2 == 1 {
        ratios[n / 2]
    } else {
        f64::midpoint(ratios[n / 2 - 1], ratios[n / 2])
    };
    Some((ratios[0], middle, ratios[n - 1]))
}

/// The four parts of the first screen.
#[derive(Debug, Default)]
pub(crate) struct Headline {
    /// One sentence: which suite, how fast.
    pub(crate) answer: String,
    /// The others beside it; empty when there are none.
    pub(crate) detail: String,
    /// The choice in a few characters.
    pub(crate) which: String,
    /// What it is the choice for.
    pub(crate) which_note: String,
    /// The lead over the second.
    pub(crate) lead: String,
    /// What the lead is over.
    pub(crate) lead_note: String,
    /// How sure, in a few characters.
    pub(crate) sure: String,
    /// What the certainty rests on.
    pub(crate) sure_note: String,
}

const LONG: &str = "fastest for long messages";

/// The answer for long messages: our suites against each other at 16 KiB, or at the largest size there is.
pub(crate) fn headline(view: &View<'_>) -> Headline {
    let nothing = |answer: &str| Headline {
        answer: answer.to_owned(),
        detail: String::new(),
        which: "not known".to_owned(),
        which_note: LONG.to_owned(),
        lead: "not known".to_owned(),
        lead_note: "nothing to compare".to_owned(),
        sure: "not known".to_owned(),
        sure_note: rounds_note(view.run),
    };
    if view.groups.is_empty()
        && let Some(headline) = packets::headline(view.run)
            .or_else(|| bip324::headline(view.run))
            .or_else(|| transports::headline(view.run))
            .or_else(|| load::headline(view.run))
            .or_else(|| files::headline(view.run))
    {
        return headline;
    }
    let Some(ours) = view.ours() else {
        return nothing("This run has no figures.");
    };
    let sizes: Vec<i64> = view
        .of_op("seal")
        .flat_map(|(_, group)| group.sizes.iter().copied())
        .collect();
    let Some(bytes) = sizes
        .iter()
        .copied()
        .find(|b| *b == 16384)
        .or_else(|| sizes.iter().copied().max())
    else {
        return nothing("No sealing throughput was measured, so no suite can be named.");
    };
    let usual = view.of_op("seal").filter(|(_, group)| group.extra.is_empty());
    let mut rows: Vec<(&str, &ResultRow)> = usual
        .filter_map(|(g, group)| Some((group.suite, view.row(g, Some(bytes), ours, "throughput")?)))
        .filter(|(_, row)| row.median.get().is_finite() && !unusable(row))
        .collect();
    rows.sort_by(|a, b| b.1.median.get().total_cmp(&a.1.median.get()));
    let Some(((suite, top), rest)) = rows.split_first() else {
        return nothing("No row for long messages is steady enough to rank the suites.");
    };
    let rate = format!("{} GB/s", sig3_or(top.median.get() / 1e9, "?"));
    let (suite, at, ours) = (clean(suite), format::size(bytes), clean(ours));
    let Some((second, other)) = rest.first() else {
        let mut only = nothing(&format!(
            "{ours} seals {at} messages with {suite} at {rate}; no other suite was measured."
        ));
        only.which = suite;
        return only;
    };
    let second = clean(second);
    let rounds = top.rounds.min(other.rounds);
    let paired = round_ratios(top, other);
    let clear = paired.is_some_and(|(low, middle, _)| low > 1.0 && middle > 1.0 + margin(rounds));
    let others: Vec<String> = rest
        .iter()
        .map(|(name, row)| format!("{} {}", times(ahead(top, row)), clean(name)))
        .collect();
    let range = paired.map_or_else(String::new, |(low, _, high)| {
        format!("{} to {}", times(low), times(high))
    });
    let mut result = Headline {
        answer: format!("{suite} is the fastest suite here: {ours} seals {at} messages at {rate}."),
        detail: format!("That is {}.", list(&others)),
        which: suite.clone(),
        which_note: LONG.to_owned(),
        lead: times(ahead(top, other)),
        lead_note: format!("over {second}, sealing {at}"),
        sure: "clear".to_owned(),
        sure_note: format!(
            "{range} over {}; {}",
            count(rounds as usize, "round"),
            noise_note(view.run)
        ),
    };
    if !clear {
        // The two at the top cannot be told apart; what they lead by together is the answer if there is one.
        let beaten = rest.iter().skip(1).find(|(_, row)| {
            let rounds = top.rounds.min(row.rounds);
            round_ratios(top, row).is_some_and(|(low, middle, _)| low > 1.0 && middle > 1.0 + margin(rounds))
        });
        result.which = format!("{suite} or {second}");
        match beaten {
            Some((third, row)) => {
                let (third, lead) = (clean(third), times(ahead(top, row)));
                result.answer =
                    format!("{suite} and {second} lead: {ours} seals {at} messages at {rate}, {lead} {third}.");
                result.lead = lead;
                result.lead_note = format!("over {third}, sealing {at}");
                result.sure = "clear".to_owned();
                result.sure_note = format!("{suite} over {second}, not told apart: {}", result.sure_note);
            }
            None => {
                result.answer = format!(
                    "{suite} and {second} cannot be told apart: {ours} seals {at} messages at {rate} with the first."
                );
                result.sure = "not told apart".to_owned();
            }
        }
        if rounds < ROUNDS_FOR_INTERVAL {
            result
                .sure_note
                .push_str("; fewer than 6 rounds name no winner under 20 %");
        }
    }
    result
}

/// `a, b and c`.
pub(crate) fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

fn noise_note(run: &RunResult) -> String {
    let marked = run
        .results
        .iter()
        .filter(|row| row.flags.iter().any(|f| f == "noisy" || f == "unusable"))
        .count();
    if marked == 0 {
        "no row noisy".to_owned()
    } else {
        format!("{marked} of {} noisy", count(run.results.len(), "row"))
    }
}

pub(crate) fn rounds_note(run: &RunResult) -> String {
    format!("{}; {}", count(run.plan.rounds as usize, "round"), noise_note(run))
}

/// The rounds actually visited, and the windows, in words.
pub(crate) fn rounds(run: &RunResult) -> String {
    let done = run.results.iter().map(|row| row.rounds).max().unwrap_or(0);
    let planned = run.plan.rounds;
    let mut text = if done == planned {
        count(planned as usize, "round")
    } else {
        format!("{done} of {planned} rounds")
    };
    text.push_str(&format!(
        " of {} after {} warm-up; {}",
        format::seconds(run.plan.window_s),
        format::seconds(run.plan.warmup_s),
        count(run.plan.cells as usize, "cell")
    ));
    text
}

/// The machine in one line.
pub(crate) fn machine(run: &RunResult) -> String {
    let m = &run.machine;
    let cpu = if m.cpu.is_empty() {
        "unknown CPU".to_owned()
    } else {
        clean(&m.cpu)
    };
    let mut text = format!("{cpu}, {}", count(m.cores as usize, "CPU"));
    for part in [m.arch.clone(), format!("Linux {}", m.kernel)] {
        if !part.is_empty() && part != "Linux " {
            text.push_str(", ");
            text.push_str(&clean(&part));
        }
    }
    if m.memory > 0 {
        text.push_str(&format!(", {}", format::memory(m.memory)));
    }
    text
}

/// Ratios of one subject to one reference, over all cases that both have.
#[derive(Debug)]
pub(crate) struct Standing<'a> {
    pub(crate) subject: &'a str,
    pub(crate) to: &'a str,
    pub(crate) cases: usize,
    pub(crate) mean: f64,
    pub(crate) worst: (f64, &'a ResultRow),
    pub(crate) best: (f64, &'a ResultRow),
    /// Faster, slower, same, not decided.
    pub(crate) counts: [usize; 4],
}

/// The metric that stands for a row's case in rankings: one figure a case, so that no case counts twice.
pub(crate) fn leading(row: &ResultRow) -> bool {
    match row.case.text("op") {
        _ if row.workload == BIP324 => bip324::leading(row),
        _ if LOADS.contains(&row.workload.as_str()) => load::leading(row),
        _ if row.workload == PACKETS => row.metric == "rate",
        _ if row.workload == TRANSPORTS => row.metric == "cpu_per_gb",
        Some("key-setup") => row.metric == "setup_time",
        Some("fresh-key") => row.metric == "cpu_per_op",
        _ => row.metric == "throughput",
    }
}

/// What speeds of rows are related to, in words: our engine on this processor where a GPU is measured, else peers.
pub(crate) fn reference<'a>(rows: impl IntoIterator<Item = &'a ResultRow>) -> &'static str {
    let mut related = rows.into_iter().filter_map(speed).peekable();
    if related.peek().is_some() && related.all(|speed| speed.to == OURS) {
        OURS
    } else {
        "the best peer of the case"
    }
}

/// The standings of `subject` in a workload, one for each reference, that of most cases first. Elsewhere than with
/// primitives the reference is the best peer of each case, whoever that is, and one standing has all; on a GPU it is our engine
/// without.
pub(crate) fn standings<'a>(run: &'a RunResult, workload: &str, subject: &str) -> Vec<Standing<'a>> {
    let of_subject = run
        .results
        .iter()
        .filter(|row| row.workload == workload && row.subject == subject && leading(row) && !unusable(row));
    let mut standings: Vec<Standing<'a>> = Vec::new();
    for (row, ratio) in of_subject.filter_map(|row| Some((row, speed(row)?))) {
        let to = if workload != PRIMITIVES && ratio.to != load::DIRECT && ratio.to != OURS {
            "the best peer"
        } else {
            ratio.to
        };
        let found = match standings.iter_mut().position(|standing| standing.to == to) {
            Some(found) => found,
            None => {
                let (one, subject) = ((ratio.estimate, row), row.subject.as_str());
                let start = Standing {
                    subject,
                    to,
                    cases: 0,
                    mean: 0.0,
                    worst: one,
                    best: one,
                    counts: [0; 4],
                };
                standings.push(start);
                standings.len() - 1
            }
        };
        let standing = &mut standings[found];
        standing.cases += 1;
        standing.mean += ratio.estimate.ln();
        standing.counts[verdict(ratio.verdict).0] += 1;
        if ratio.estimate < standing.worst.0 {
            standing.worst = (ratio.estimate, row);
        }
        if ratio.estimate > standing.best.0 {
            standing.best = (ratio.estimate, row);
        }
    }
    for standing in &mut standings {
        standing.mean = (standing.mean / standing.cases as f64).exp();
    }
    standings.sort_by_key(|standing| std::cmp::Reverse(standing.cases));
    standings
}

/// A verdict's place in [`Standing::counts`], its sign in tables and its word.
pub(crate) fn verdict(name: &str) -> (usize, char, &'static str) {
    match name {
        "faster" => (0, '+', "faster"),
        "slower" => (1, '-', "slower"),
        "same" => (2, '=', "same"),
        _ => (3, '?', "not decided"),
    }
}

impl Standing<'_> {
    /// Two sentences.
    pub(crate) fn sentence(&self) -> String {
        let [faster, slower, same, unknown] = self.counts;
        let range = if self.cases > 1 {
            format!(
                ", from {} ({}) to {} ({})",
                times(self.worst.0),
                case(self.worst.1),
                times(self.best.0),
                case(self.best.1)
            )
        } else {
            String::new()
        };
        if self.best.1.workload == TRANSPORTS {
            return transports::standing(self, &range);
        }
        format!(
            "{} runs at {} the speed of {} (geometric mean of {}){range}. \
             Faster in {faster}, slower in {slower}, the same in {same}, not decided in {unknown}.",
            clean(self.subject),
            times(self.mean),
            clean(self.to),
            count(self.cases, "case"),
        )
    }
}

/// A case in a few words: `seal aes-128-gcm 16 KiB`.
pub(crate) fn case(row: &ResultRow) -> String {
    if row.workload == PACKETS {
        return packets::case(row);
    }
    if row.workload == BIP324 {
        return bip324::case(row);
    }
    if LOADS.contains(&row.workload.as_str()) {
        return load::case(row);
    }
    if row.workload == TRANSPORTS {
        return transports::case(row);
    }
    let mut words = Vec::new();
    for name in ["op", "suite"] {
        words.extend(row.case.text(name).map(clean));
    }
    words.extend(row.case.int("bytes").map(format::size));
    if words.is_empty() {
        clean(&row.case.to_string())
    } else {
        words.join(" ")
    }
}

/// Subjects that should have taken part and did not.
pub(crate) fn absent(run: &RunResult) -> Vec<String> {
    let missing = run.subjects.iter().filter(|subject| !subject.error.is_empty());
    missing
        .map(|subject| format!("{} took no part: {}", clean(&subject.name), clean(&subject.error)))
        .collect()
}
