//! What to use where, from measured figures only.
//!
//! For two ends a suite is as fast as the slower of sealing at the one and opening at the other; here both ends are this
//! machine. How sure a choice is, [`Grade`] says. Rows that may not be ranked are not looked at.

use sealway_aead::Suite;
use sealway_aead::choose::{Offer, negotiate};
use sealway_aead::cpu::{Cpu, Feature};

use crate::format::{seconds, sig3_or};
use crate::lens::Grade;
use crate::lens::choice::{Choice, Lead, shaky};
use crate::lens::rank::rankable;
use crate::result::{Recommendation, ResultRow};
use crate::stats::{Better, Rules};
use crate::workload::advice::{OURS, places};

/// Message size that stands for bulk data: the most that a record of TLS holds.
pub(super) const BULK: i64 = 16_384;

/// Message size that stands for small messages.
const SMALL: i64 = 64;

/// Suites between which speed decides. XChaCha20 is chosen for its nonce, not for speed.
const CANDIDATES: [Suite; 3] = [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::ChaCha20Poly1305];

/// The suite of a row.
pub(super) fn name(row: &ResultRow) -> String {
    row.case.text("suite").unwrap_or_default().to_owned()
}

/// The rows of a run, by what is looked for in them.
pub(super) struct Figures<'a> {
    rows: &'a [ResultRow],
}

impl<'a> Figures<'a> {
    pub(super) fn new(rows: &'a [ResultRow]) -> Figures<'a> {
        Figures { rows }
    }

    fn find(&self, subject: &str, suite: Suite, op: &str, bytes: Option<i64>, metric: &str) -> Option<&'a ResultRow> {
        self.rows.iter().find(|row| {
            row.subject == subject
                && row.metric == metric
                && row.case.text("suite") == Some(suite.name())
                && row.case.text("op") == Some(op)
                && bytes.is_none_or(|bytes| row.case.int("bytes") == Some(bytes))
        })
    }

    /// The throughput of the slower end; of one end where the other was not measured.
    fn message(&self, suite: Suite, bytes: i64) -> Option<&'a ResultRow> {
        let ends = ["seal", "open"].map(|op| self.find(OURS, suite, op, Some(bytes), "throughput"));
        let ends = || ends.iter().flatten().copied();
        let slower = ends().min_by(|a, b| a.median.get().total_cmp(&b.median.get()));
        slower.filter(|_| ends().all(rankable))
    }

    /// The candidates with messages of this size, the fastest first.
    pub(super) fn by_speed(&self, bytes: i64) -> Vec<&'a ResultRow> {
        let mut rows: Vec<&ResultRow> = CANDIDATES
            .iter()
            .filter_map(|suite| self.message(*suite, bytes))
            .collect();
        rows.sort_by(|a, b| b.median.get().total_cmp(&a.median.get()));
        rows
    }

    /// The candidates by a new key and one small message under it, the cheapest first.
    fn by_fresh_key(&self) -> Vec<&'a ResultRow> {
        let find = |suite: &Suite| self.find(OURS, *suite, "fresh-key", None, "cpu_per_op");
        let mut rows: Vec<&ResultRow> = CANDIDATES.iter().filter_map(find).filter(|row| rankable(row)).collect();
        rows.sort_by(|a, b| a.median.get().total_cmp(&b.median.get()));
        rows
    }
}

/// What an end without AES in hardware sees, imitated by openssl with the instructions switched off.
struct SoftAes<'a> {
    aes: &'a ResultRow,
    chacha: &'a ResultRow,
}

impl<'a> SoftAes<'a> {
    fn of(figures: &Figures<'a>) -> Option<SoftAes<'a>> {
        let of = |suite: Suite, op: &str| {
            let row = figures.find("openssl", suite, op, Some(BULK), "throughput");
            row.filter(|row| rankable(row))
        };
        Some(SoftAes {
            aes: of(Suite::Aes256Gcm, "seal-without-aes")?,
            chacha: of(Suite::ChaCha20Poly1305, "seal")?,
        })
    }

    /// How many times as long AES takes.
    fn factor(&self) -> f64 {
        Lead::between(self.chacha, self.aes).estimate
    }
}

/// Recommends for every scenario that the rows can speak to. `cpu` is that of the machine the rows come from.
pub(super) fn recommend(rows: &[ResultRow], cpu: &Cpu) -> Vec<Recommendation> {
    let figures = Figures::new(rows);
    [
        server(&figures, cpu),
        mobile(&figures),
        mixed_fleet(&figures),
        short_connections(&figures),
        nonce_misuse(&figures),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// `; b takes 1.13 times as long, c 3.06 times`; nothing without others.
fn longer(rows: &[&ResultRow]) -> String {
    let [best, others @ ..] = rows else {
        return String::new();
    };
    let mut text = String::new();
    for (place, row) in others.iter().enumerate() {
        let lead = Lead::between(best, row);
        let times = factor(lead.estimate);
        let (gap, verb, rest) = if place == 0 {
            (";", "takes ", " as long")
        } else {
            (",", "", "")
        };
        let open = match lead.grade {
            Grade::Undecided => " (not decided)",
            _ => "",
        };
        text += &format!("{gap} {} {verb}{times} times{rest}{open}", name(row));
    }
    text
}

fn server(figures: &Figures<'_>, cpu: &Cpu) -> Option<Recommendation> {
    let rows = figures.by_speed(BULK);
    let best = rows.first()?;
    let choice = Choice::of(&rows);
    let mut reason = format!(
        "Long messages (16 KiB, the most that a TLS record holds): with {} each end does {} or more{}.",
        name(best),
        rate(best.median.get()),
        longer(&rows)
    );
    reason += hardware(cpu);
    let offer = Offer::of(cpu);
    if let Ok(rule) = negotiate(&offer, &offer)
        && rule.name() != name(best)
    {
        let why = if rule == Suite::Aes256Gcm {
            ", for its longer key"
        } else {
            ""
        };
        reason += &format!(" Left on automatic, two ends of `sealway send` take {rule}{why}.");
    }
    Some(Recommendation {
        scenario: "server".to_owned(),
        choice: choice.as_ref().map_or_else(|| name(best), |choice| choice.names(name)),
        reason,
        because: places(
            figures.rows,
            choice
                .as_ref()
                .map_or_else(|| vec![*best], |choice| choice.rows().collect()),
        ),
        confidence: choice
            .map_or(Grade::Undecided, |choice| choice.grade())
            .stored()
            .to_owned(),
    })
}

/// What the CPU has, also where the user hid it.
fn hardware(cpu: &Cpu) -> &'static str {
    let there = cpu.present();
    let present = there.has(Feature::Aes) && (there.has(Feature::Pclmulqdq) || there.has(Feature::Pmull));
    match (cpu.has_aes_gcm(), present) {
        (true, _) => " This CPU has AES in hardware.",
        (false, true) => {
            " This CPU has AES in hardware; SEALWAY_CPU_DISABLE hides it from the automatic choice, not from the libraries that \
             were measured."
        }
        (false, false) => " This CPU does not have AES in hardware.",
    }
}

fn mobile(figures: &Figures<'_>) -> Option<Recommendation> {
    let soft = SoftAes::of(figures)?;
    let mut rows = [soft.chacha, soft.aes];
    if soft.factor() < 1.0 {
        rows.reverse();
    }
    let choice = Choice::of(&rows)?;
    let reason = format!(
        "Phones and small boards without AES in hardware. To imitate one, AES was switched off here: openssl seals {} at {} then, and \
         {} at {}, {} times as fast. Recent phones have AES in hardware; `sealway cpu` tells.",
        Suite::Aes256Gcm,
        rate(soft.aes.median.get()),
        Suite::ChaCha20Poly1305,
        rate(soft.chacha.median.get()),
        factor(soft.factor())
    );
    Some(Recommendation {
        scenario: "mobile".to_owned(),
        choice: choice.names(name),
        reason,
        because: places(figures.rows, rows),
        confidence: choice.grade().stored().to_owned(),
    })
}

/// One suite for every end: the one whose loss is smaller where it loses.
fn mixed_fleet(figures: &Figures<'_>) -> Option<Recommendation> {
    let (aes, chacha) = (Suite::Aes256Gcm, Suite::ChaCha20Poly1305);
    let (with, without) = (figures.message(aes, BULK)?, figures.message(chacha, BULK)?);
    let automatic = format!(
        "Where each two ends may choose, leave the cipher on automatic: it is AES where there is hardware for it, else {chacha}."
    );
    let loss = factor(Lead::between(with, without).estimate);
    let here = format!("{chacha} takes {loss} times as long as {aes} on this machine");
    let Some(soft) = SoftAes::of(figures) else {
        return Some(Recommendation {
            scenario: "mixed-fleet".to_owned(),
            choice: chacha.name().to_owned(),
            reason: format!(
                "{chacha} needs no hardware, and what {aes} costs without AES in hardware was not measured (openssl is missing or failed). \
                 {here}. {automatic}"
            ),
            because: places(figures.rows, [with, without]),
            confidence: Grade::Undecided.stored().to_owned(),
        });
    };
    let rows = [with, without, soft.chacha, soft.aes];
    let losses = |a: &ResultRow, b: &ResultRow| -> Vec<f64> {
        let rounds = a.values.iter().zip(&b.values);
        rounds.map(|(a, b)| a.get() / b.get()).collect()
    };
    let mut both = [(chacha, losses(with, without)), (aes, losses(soft.chacha, soft.aes))];
    if Lead::between(with, without).estimate > soft.factor() {
        both.reverse();
    }
    let [(choice, less), (_, more)] = &both;
    let rules = Rules::of("cpu_per_op");
    let rules = if with.how == "range" {
        rules.without_intervals()
    } else {
        rules
    };
    let lead = Lead::of(less, more, Better::Lower, rules, rows.into_iter().any(shaky));
    Some(Recommendation {
        scenario: "mixed-fleet".to_owned(),
        choice: choice.name().to_owned(),
        reason: format!(
            "For all ends alike, {choice} loses less where it loses: {here}, {aes} {} times as long as {chacha} where AES is switched \
             off. {automatic}",
            factor(soft.factor())
        ),
        because: places(figures.rows, rows),
        confidence: lead.grade.stored().to_owned(),
    })
}

fn short_connections(figures: &Figures<'_>) -> Option<Recommendation> {
    let rows = figures.by_fresh_key();
    let choice = Choice::of(&rows)?;
    let costs: Vec<String> = rows
        .iter()
        .map(|row| format!("{} with {}", seconds(row.median.get()), name(row)))
        .collect();
    let reason = format!(
        "A new key and one message of {} B cost {}. The handshake's public-key work costs far more than any of these.",
        rows.first()?.case.int("bytes").unwrap_or(0),
        costs.join(", ")
    );
    Some(Recommendation {
        scenario: "short-connections".to_owned(),
        choice: choice.names(name),
        reason,
        because: places(figures.rows, rows.iter().copied()),
        confidence: choice.grade().stored().to_owned(),
    })
}

/// Advice about safety: the figures only say what it costs, so it rests on none.
fn nonce_misuse(figures: &Figures<'_>) -> Option<Recommendation> {
    let (plain, long) = (Suite::ChaCha20Poly1305, Suite::XChaCha20Poly1305);
    let cost = |bytes| {
        let (plain, long) = (figures.message(plain, bytes)?, figures.message(long, bytes)?);
        Some(factor(Lead::between(plain, long).estimate))
    };
    let mut reason = format!(
        "A nonce used twice under one key breaks every suite here. Where one sender counts its messages, a counter cannot \
         repeat and any suite is safe; where keys are shared between senders, survive restarts, or nonces are drawn at \
         random, take {long}: its 24 bytes do not collide. It takes {} times as long as {plain} at 16 KiB",
        cost(BULK)?
    );
    if let Some(small) = cost(SMALL) {
        reason += &format!(" and {small} times at {SMALL} B");
    }
    reason += ".";
    Some(Recommendation {
        scenario: "nonce-misuse".to_owned(),
        choice: long.name().to_owned(),
        reason,
        because: Vec::new(),
        confidence: Grade::Clear.stored().to_owned(),
    })
}

fn factor(value: f64) -> String {
    sig3_or(value, "?")
}

fn rate(bytes_per_second: f64) -> String {
    format!("{} GB/s", sig3_or(bytes_per_second / 1e9, "?"))
}

#[cfg(test)]
#[path = "advice_tests.rs"]
mod tests;
