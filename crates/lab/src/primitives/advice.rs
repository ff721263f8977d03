//! What to use where, from measured figures only.
//!
//! For two ends the cost of a suite is the larger of sealing at the one and opening at the other; here both ends are this
//! machine. A choice is `clear` when it wins by more than the margin of the run's statistics, `slight` when it leads in
//! every round but by less than that, `tie` when it does not, and `unknown` without the rounds to tell. Rows that may not be
//! ranked are not looked at. A choice that rests on a noisy row, or on one whose outputs were not compared, is `slight`
//! at best.

use sealway_aead::Suite;
use sealway_aead::choose::{Offer, negotiate};
use sealway_aead::cpu::{Cpu, Feature};

use crate::lens::rank::rankable;
use crate::result::{Recommendation, ResultRow};
use crate::stats::{Better, Rules, ratio};

/// The subject a recommendation is for: what the user will run.
const OURS: &str = "sealway";

/// Message size that stands for bulk data.
const BULK: i64 = 16_384;

/// Message size that stands for small messages.
const SMALL: i64 = 64;

/// Rounds below which nothing is called better.
const LEAST_ROUNDS: u32 = 3;

/// Suites between which speed decides. XChaCha20 is chosen for its nonce, not for speed.
const CANDIDATES: [Suite; 3] = [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305];

/// What every scenario can look at.
struct Figures<'a> {
    rows: &'a [ResultRow],
    intervals: bool,
}

/// What a suite costs in one scenario: seconds a message for each round, and the rows they come from.
struct Cost {
    suite: Suite,
    rounds: Vec<f64>,
    median: f64,
    because: Vec<usize>,
}

impl<'a> Figures<'a> {
    fn find(&self, subject: &str, suite: Suite, op: &str, bytes: Option<i64>, metric: &str) -> Option<usize> {
        self.rows.iter().position(|row| {
            row.subject == subject
                && row.metric == metric
                && row.case.text("suite") == Some(suite.name())
                && row.case.text("op") == Some(op)
                && row.case.int("bytes") == bytes
                && rankable(row)
        })
    }

    fn row(&self, index: usize) -> &'a ResultRow {
        &self.rows[index]
    }

    /// Bytes a second, with the row.
    fn throughput(&self, subject: &str, suite: Suite, op: &str, bytes: i64) -> Option<(f64, usize)> {
        let index = self.find(subject, suite, op, Some(bytes), "throughput")?;
        Some((self.row(index).median.get(), index))
    }

    /// The larger of sealing and opening, round by round.
    fn message_cost(&self, suite: Suite, bytes: i64) -> Option<Cost> {
        let seal = self.find(OURS, suite, "seal", Some(bytes), "cpu_per_op")?;
        let open = self.find(OURS, suite, "open", Some(bytes), "cpu_per_op")?;
        let pairs = self.row(seal).values.iter().zip(&self.row(open).values);
        // NaN marks a round without a figure; `f64::max` would hide it.
        let rounds = pairs
            .map(|(a, b)| if a.get() >= b.get() { a.get() } else { b.get() })
            .collect();
        let median = self.row(seal).median.get().max(self.row(open).median.get());
        let because = [seal, open]
            .into_iter()
            .filter_map(|index| self.throughput_of(index))
            .collect();
        Some(Cost {
            suite,
            rounds,
            median,
            because,
        })
    }

    /// Key set-up and one small message under it.
    fn fresh_cost(&self, suite: Suite) -> Option<Cost> {
        let index = self.rows.iter().position(|row| {
            row.subject == OURS
                && row.metric == "cpu_per_op"
                && row.case.text("suite") == Some(suite.name())
                && row.case.text("op") == Some("fresh-key")
                && rankable(row)
        })?;
        let row = self.row(index);
        let rounds = row.values.iter().map(|value| value.get()).collect();
        Some(Cost {
            suite,
            rounds,
            median: row.median.get(),
            because: vec![index],
        })
    }

    /// The throughput row of the same cell as a time row: that is what tables show.
    fn throughput_of(&self, index: usize) -> Option<usize> {
        let row = self.row(index);
        self.rows
            .iter()
            .position(|other| other.subject == row.subject && other.case == row.case && other.metric == "throughput")
    }

    /// How sure it is that `best` costs less than `second`.
    fn confidence(&self, best: &Cost, second: &Cost) -> &'static str {
        let because = [best.because.as_slice(), &second.because].concat();
        self.judge(&best.rounds, &second.rounds, &because)
    }

    /// How sure it is that the first costs less than the second, round by round, for figures from these rows.
    fn judge(&self, first: &[f64], second: &[f64], because: &[usize]) -> &'static str {
        let rules = Rules::of("cpu_per_op");
        let rules = if self.intervals {
            rules
        } else {
            rules.without_intervals()
        };
        let found = ratio("", first, second, Better::Lower, rules);
        let rows = || because.iter().map(|&index| self.row(index));
        if rows().any(|row| row.rounds < LEAST_ROUNDS) || !found.estimate.is_finite() {
            return "unknown";
        }
        let shaky =
            rows().any(|row| row.verified == "self" || row.flags.iter().any(|flag| SHAKY.contains(&flag.as_str())));
        match found.verdict.as_str() {
            "faster" if shaky => "slight",
            "faster" => "clear",
            "unknown" if found.high.get() < 1.0 => "slight",
            _ => "tie",
        }
    }

    /// Values of a row, round by round.
    fn rounds(&self, index: usize) -> Vec<f64> {
        self.row(index).values.iter().map(|value| value.get()).collect()
    }
}

/// Marks of rows that a clear choice cannot rest on.
const SHAKY: [&str; 2] = ["noisy", "two-modes"];

/// What an end without AES in hardware sees: rounds of AES-256-GCM over ChaCha20-Poly1305 there, with the rows.
struct SoftAes {
    /// How many times as long AES takes, median.
    factor: f64,
    rounds: Vec<f64>,
    because: Vec<usize>,
}

impl SoftAes {
    fn of(figures: &Figures<'_>) -> Option<SoftAes> {
        let (soft, slow) = figures.throughput("openssl", Suite::Aes256Gcm, "seal-without-aes", BULK)?;
        let (fast, quick) = figures.throughput("openssl", Suite::ChaCha20Poly1305, "seal", BULK)?;
        let pairs = figures.rounds(quick).into_iter().zip(figures.rounds(slow));
        Some(SoftAes {
            factor: fast / soft,
            rounds: pairs.map(|(a, b)| a / b).collect(),
            because: vec![quick, slow],
        })
    }
}

/// Recommends for every scenario that the rows can speak to.
///
/// `cpu` and `arch` are those of the machine the rows come from.
pub(super) fn recommend(rows: &[ResultRow], cpu: &Cpu, arch: &str) -> Vec<Recommendation> {
    let intervals = rows.iter().any(|row| row.how == "order-statistics");
    let figures = Figures { rows, intervals };
    [
        server(&figures, cpu),
        mobile(&figures, cpu, arch),
        mixed_fleet(&figures),
        short_connections(&figures),
        nonce_misuse(&figures),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Costs sorted, the least first.
fn ranked(mut costs: Vec<Cost>) -> Vec<Cost> {
    costs.retain(|cost| cost.median.is_finite());
    costs.sort_by(|a, b| a.median.total_cmp(&b.median));
    costs
}

fn server(figures: &Figures<'_>, cpu: &Cpu) -> Option<Recommendation> {
    let costs = ranked(
        CANDIDATES
            .iter()
            .filter_map(|&suite| figures.message_cost(suite, BULK))
            .collect(),
    );
    let best = costs.first()?;
    let mut reason = format!(
        "Bulk data between machines like this one: {} costs {} for a 16 KiB message at the dearer end, {}.",
        best.suite,
        time(best.median),
        rate(BULK as f64 / best.median)
    );
    let mut because = best.because.clone();
    for other in &costs[1..] {
        reason += &format!(
            " {} takes {} times as long.",
            other.suite,
            factor(other.median / best.median)
        );
        because.extend(&other.because);
    }
    let confidence = costs
        .get(1)
        .map_or("unknown", |second| figures.confidence(best, second));
    reason += hardware(cpu);
    let offer = Offer::of(cpu);
    if let Ok(rule) = negotiate(&offer, &offer)
        && rule != best.suite
    {
        reason += &format!(" The built-in rule for two equal ends takes {rule}");
        reason += if rule == Suite::Aes256Gcm && best.suite == Suite::Aes128Gcm {
            ", for its longer key."
        } else if confidence == "clear" {
            "; on this machine the measurement says otherwise."
        } else {
            "; this run does not tell them apart well enough to overrule it."
        };
    }
    Some(recommendation("server", best.suite.name(), reason, because, confidence))
}

/// What the CPU has, also where the user hid it.
fn hardware(cpu: &Cpu) -> &'static str {
    let there = cpu.present();
    let present = there.has(Feature::Aes) && (there.has(Feature::Pclmulqdq) || there.has(Feature::Pmull));
    match (cpu.has_aes_gcm(), present) {
        (true, _) => " This CPU has AES and carry-less multiply in hardware.",
        (false, true) => {
            " This CPU has AES and carry-less multiply in hardware; SEALWAY_CPU_DISABLE hides them from the built-in rule, \
             not from the libraries that were measured."
        }
        (false, false) => " This CPU does not have AES and carry-less multiply in hardware.",
    }
}

fn mobile(figures: &Figures<'_>, cpu: &Cpu, arch: &str) -> Option<Recommendation> {
    let chacha = Suite::ChaCha20Poly1305;
    if arch == "aarch64" && cpu.has_aes_gcm() {
        let costs = ranked(
            CANDIDATES
                .iter()
                .filter_map(|&suite| figures.message_cost(suite, BULK))
                .collect(),
        );
        let (best, second) = (costs.first()?, costs.get(1)?);
        let reason = format!(
            "This is an Arm machine with AES in hardware: {} is the fastest here, {} takes {} times as long. Devices \
             without it (`sealway cpu` tells) should use {chacha}.",
            best.suite,
            second.suite,
            factor(second.median / best.median)
        );
        let because = [best.because.as_slice(), &second.because].concat();
        return Some(recommendation(
            "mobile",
            best.suite.name(),
            reason,
            because,
            figures.confidence(best, second),
        ));
    }
    let soft = SoftAes::of(figures)?;
    let (aes, choice) = (
        Suite::Aes256Gcm,
        if soft.factor > 1.0 { chacha } else { Suite::Aes256Gcm },
    );
    let rate_of = |index: usize| rate(figures.row(index).median.get());
    let reason = format!(
        "Phones and small boards without AES in hardware: with it hidden on this machine, openssl seals {aes} at {} and \
         {chacha} at {}, {} times as fast. Recent phones have AES in hardware (`sealway cpu` tells): measure there before \
         you decide.",
        rate_of(soft.because[1]),
        rate_of(soft.because[0]),
        factor(soft.factor)
    );
    let confidence = if soft.factor > 1.0 {
        figures.judge(&vec![1.0; soft.rounds.len()], &soft.rounds, &soft.because)
    } else {
        figures.judge(&soft.rounds, &vec![1.0; soft.rounds.len()], &soft.because)
    };
    Some(recommendation(
        "mobile",
        choice.name(),
        reason,
        soft.because,
        confidence,
    ))
}

/// One suite for every end: the one whose loss is smaller where it loses.
fn mixed_fleet(figures: &Figures<'_>) -> Option<Recommendation> {
    let (aes, chacha) = (Suite::Aes256Gcm, Suite::ChaCha20Poly1305);
    let (with, without) = (figures.message_cost(aes, BULK)?, figures.message_cost(chacha, BULK)?);
    let mut because = [with.because.as_slice(), &without.because].concat();
    let loss = without.median / with.median;
    let mut reason = format!(
        "One suite for all, or peers you do not know: on this machine {chacha} takes {} times as long as {aes}.",
        factor(loss)
    );
    let (choice, confidence) = match SoftAes::of(figures) {
        Some(soft) => {
            because.extend(&soft.because);
            reason += &format!(
                " Without AES in hardware (hidden from openssl here) it is {aes} that takes {} times as long.",
                factor(soft.factor)
            );
            let losses: Vec<f64> = without.rounds.iter().zip(&with.rounds).map(|(a, b)| a / b).collect();
            reason += " The choice is the suite that loses less at the end where it loses.";
            if loss < soft.factor {
                (chacha, figures.judge(&losses, &soft.rounds, &because))
            } else {
                (aes, figures.judge(&soft.rounds, &losses, &because))
            }
        }
        None => {
            reason += " What AES costs an end without hardware for it was not measured (openssl is missing or failed); \
                       the choice is the suite that needs no hardware.";
            (chacha, "unknown")
        }
    };
    reason +=
        &format!(" Where both ends can negotiate, the built-in rule gives {aes} to pairs that have the hardware.");
    Some(recommendation(
        "mixed-fleet",
        choice.name(),
        reason,
        because,
        confidence,
    ))
}

fn short_connections(figures: &Figures<'_>) -> Option<Recommendation> {
    let costs = ranked(
        CANDIDATES
            .iter()
            .filter_map(|&suite| figures.fresh_cost(suite))
            .collect(),
    );
    let (best, second) = (costs.first()?, costs.get(1)?);
    let bytes = figures.row(*best.because.first()?).case.int("bytes").unwrap_or(0);
    let mut reason = format!(
        "Many short connections: a new key and one message of {bytes} B cost {} with {}",
        time(best.median),
        best.suite
    );
    for other in &costs[1..] {
        reason += &format!(", {} with {}", time(other.median), other.suite);
    }
    reason += ". The handshake's public-key work costs far more than any of these.";
    let because = costs.iter().flat_map(|cost| cost.because.iter().copied()).collect();
    Some(recommendation(
        "short-connections",
        best.suite.name(),
        reason,
        because,
        figures.confidence(best, second),
    ))
}

fn nonce_misuse(figures: &Figures<'_>) -> Option<Recommendation> {
    let (plain, long) = (Suite::ChaCha20Poly1305, Suite::XChaCha20Poly1305);
    let at = |bytes| Some((figures.message_cost(plain, bytes)?, figures.message_cost(long, bytes)?));
    let (bulk_plain, bulk_long) = at(BULK)?;
    let mut because = [bulk_plain.because.as_slice(), &bulk_long.because].concat();
    let mut reason = format!(
        "A nonce used twice under one key breaks every suite here. Where one sender counts its messages, a counter cannot \
         repeat and any suite is safe; where keys are shared between senders, survive restarts, or nonces are drawn at \
         random, take {long}: its 24 bytes do not collide. It takes {} times as long as {plain} at 16 KiB",
        factor(bulk_long.median / bulk_plain.median)
    );
    if let Some((small_plain, small_long)) = at(SMALL) {
        reason += &format!(
            " and {} times at {SMALL} B",
            factor(small_long.median / small_plain.median)
        );
        because.extend(small_plain.because.iter().chain(&small_long.because));
    }
    reason += ".";
    // This is advice about safety; the figures only say what it costs.
    Some(recommendation("nonce-misuse", long.name(), reason, because, "clear"))
}

fn recommendation(
    scenario: &str,
    choice: &str,
    reason: String,
    because: Vec<usize>,
    confidence: &str,
) -> Recommendation {
    Recommendation {
        scenario: scenario.to_owned(),
        choice: choice.to_owned(),
        reason,
        because,
        confidence: confidence.to_owned(),
    }
}

/// Three significant digits.
fn digits(value: f64) -> String {
    let decimals = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.decimals$}")
}

fn factor(value: f64) -> String {
    digits(value)
}

fn rate(bytes_per_second: f64) -> String {
    format!("{} GB/s", digits(bytes_per_second / 1e9))
}

fn time(seconds: f64) -> String {
    if seconds < 1e-6 {
        format!("{} ns", digits(seconds * 1e9))
    } else {
        format!("{} us", digits(seconds * 1e6))
    }
}

#[cfg(test)]
#[path = "advice_tests.rs"]
mod tests;
