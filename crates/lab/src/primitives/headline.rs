//! The answer for long messages: our suites against each other at 16 KiB, or at the largest size there is.

use sealway_aead::choose::{Offer, negotiate, vmess_auto};
use sealway_aead::cpu::{Cpu, Feature, FeatureSet};

use super::advice::{BULK, Figures, name};
use crate::format::{count, sig3_or, size, times};
use crate::lens::choice::Choice;
use crate::lens::headline::UNKNOWN;
use crate::lens::rank::{Speed, speed, verdict};
use crate::lens::{Headline, OURS, Scope, words};
use crate::result::{Machine, ResultRow};

/// Bytes a second of a line with 1 Gbit/s.
const GIGABIT: f64 = 1.25e8;

pub(super) fn headline(scope: &Scope<'_>) -> Option<Headline> {
    scope.rows.first()?;
    let nothing = |answer: &str| {
        Some(Headline::new(
            answer.to_owned(),
            UNKNOWN,
            "for long messages",
            "nothing to compare",
        ))
    };
    let sealed = scope.rows.iter().filter(|row| row.case.text("op") == Some("seal"));
    let sizes: Vec<i64> = sealed.filter_map(|row| row.case.int("bytes")).collect();
    let bulk = sizes.contains(&BULK).then_some(BULK);
    let Some(bytes) = bulk.or(sizes.into_iter().max()) else {
        return nothing("No sealing throughput was measured, so no suite can be named.");
    };
    let rows = Figures::new(&scope.run.results).by_speed(bytes);
    let Some(best) = rows.first() else {
        return nothing("No row for long messages is steady enough to rank the suites.");
    };
    let (first, at) = (name(best), size(bytes));
    let rate = sig3_or(best.median.get() / 1e9, "?");
    let opened = |row: &ResultRow| row.case.text("op") == Some("open") && row.case.int("bytes") == Some(bytes);
    let speed = if scope
        .of(OURS, "throughput")
        .any(|row| name(row) == first && opened(row))
    {
        format!("{OURS} encrypts and decrypts messages of {at} at {rate} GB/s or more on one CPU")
    } else {
        format!("{OURS} encrypts messages of {at} at {rate} GB/s on one CPU")
    };
    let busy = sig3_or(GIGABIT / best.median.get() * 100.0, "?");
    let headline = |answer: String, none: &str| {
        let mut answer = Headline::new(answer, &first, "for long messages", none);
        answer.set = automatic(&scope.run.machine);
        answer.programs = programs(scope, &first);
        answer
    };
    let cost = format!("At 1 Gbit/s, {first} takes {busy} % of one CPU on each side");
    let Some(choice) = Choice::of(&rows) else {
        let none = format!("no other suite was measured. {cost}");
        return Some(headline(format!("{speed} with {first}."), &none).alone(best));
    };
    let names = choice.names(name);
    let answer = if names == first {
        format!("{first} is the fastest cipher here: {speed}.")
    } else {
        format!("Fastest here: {names}. With {first} {speed}.")
    };
    let over = |name: &str| format!("the speed of {name}");
    let mut answer = headline(answer, "").choice(scope.run, &choice, [name, name], over);
    answer.lead_note += &format!(". {cost}");
    Some(answer)
}

/// What is taken by those who do not choose, between two machines like this one.
fn automatic(machine: &Machine) -> String {
    let has = |flag: &str| machine.flags.iter().any(|known| known == flag);
    let features = if has("aes") && (has("pclmulqdq") || has("pmull")) {
        FeatureSet::EMPTY.with(Feature::Aes).with(Feature::Pclmulqdq)
    } else {
        FeatureSet::EMPTY
    };
    let cpu = Cpu::new(features, "");
    let offer = Offer::of(&cpu);
    let Ok(best_of_both) = negotiate(&offer, &offer) else {
        return String::new();
    };
    let vmess = vmess_auto(&cpu);
    let why = if vmess == best_of_both {
        ""
    } else {
        ", for its longer key"
    };
    format!(
        "nothing in TLS; \"security\": \"auto\" in VMess ({vmess} here); nothing in `{OURS} send` ({best_of_both} here{why})"
    )
}

/// Our engine beside the reference with one suite, from its worst case to its best.
fn programs(scope: &Scope<'_>, of: &str) -> String {
    let rows = scope.of(OURS, "throughput").filter(|row| name(row) == of);
    let mut found: Vec<(Speed<'_>, &ResultRow)> = rows.filter_map(|row| Some((speed(row)?, row))).collect();
    // Where the reference failed in a case, another stands for it there.
    if let Some(to) = found.first().map(|(speed, _)| speed.to) {
        found.retain(|(speed, _)| speed.to == to);
    }
    found.sort_by(|(a, _), (b, _)| a.estimate.total_cmp(&b.estimate));
    let [(worst, slow), .., (best, fast)] = &found[..] else {
        return String::new();
    };
    let end = |speed: &Speed<'_>, row: &ResultRow| {
        let bytes = row.case.int("bytes").map(size).unwrap_or_default();
        let deed = match row.case.text("op").unwrap_or_default() {
            "seal" => "encrypting",
            "open" => "decrypting",
            other => words::deed(other),
        };
        format!("{} ({deed} {bytes})", times(speed.estimate))
    };
    let mut counts = [0; 4];
    for (speed, _) in &found {
        counts[verdict(speed.verdict).0] += 1;
    }
    let [faster, slower, same, unknown] = counts;
    format!(
        "In {} of {of}, {OURS} runs at {} to {} the speed of {}: faster in {faster}, slower in {slower}, the same in {same}, not decided \
         in {unknown}.",
        count(found.len(), "case"),
        end(worst, slow),
        end(best, fast),
        worst.to,
    )
}
