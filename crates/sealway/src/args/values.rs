//! Parsers of single values. Names come from the crates that own them.

use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use sealway_aead::Suite;

/// What the lab can be asked to measure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Workload {
    /// Everything that this version measures.
    All,
    Primitives,
    /// Known by name, not measured by this version.
    Later(&'static str),
}

/// Every workload: its name, what it is, and what this version makes of it; `None` for those of later versions.
const WORKLOADS: &[(&str, &str, Option<Workload>)] = &[
    (
        "primitives",
        "four suites: seal, open, key set-up, a fresh key per message",
        Some(Workload::Primitives),
    ),
    ("packets", "many small packets in batches", None),
    ("transports", "byte streams through proxies", None),
    ("requests", "HTTP requests", None),
    ("flows", "many short connections", None),
    ("files", "files from end to end", None),
];

/// The word for every workload of this version.
const ALL: &str = "all";

/// Names of the workloads that this version measures, or of those that later ones will.
fn names(measured: bool) -> String {
    let names: Vec<&str> = WORKLOADS
        .iter()
        .filter(|(_, _, workload)| workload.is_some() == measured)
        .map(|(name, _, _)| *name)
        .collect();
    names.join(", ")
}

/// What this version measures, in a sentence; what comes later in another, if anything does.
pub(crate) fn scope() -> String {
    let later = names(false);
    let text = format!("this version measures {}", names(true));
    if later.is_empty() {
        text
    } else {
        format!("{text}; later versions: {later}")
    }
}

/// Help of the argument.
pub(crate) fn workload_help() -> String {
    let later = names(false);
    if later.is_empty() {
        "What to measure".to_owned()
    } else {
        format!("What to measure (in later versions: {later})")
    }
}

/// Parser of a workload's name. Those of later versions are understood, so that the answer can say so, and not offered.
pub(crate) fn workload() -> impl TypedValueParser<Value = Workload> {
    let named = WORKLOADS
        .iter()
        .map(|(name, what, workload)| PossibleValue::new(*name).help(*what).hide(workload.is_none()));
    let all = PossibleValue::new(ALL).help("everything that this version measures");
    PossibleValuesParser::new(named.chain([all])).map(|word| {
        WORKLOADS
            .iter()
            .find(|(name, _, _)| *name == word)
            .map_or(Workload::All, |(name, _, workload)| {
                workload.unwrap_or(Workload::Later(name))
            })
    })
}

/// One word of `--peers`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum PeerWord {
    Auto,
    None,
    Named(String),
}

/// Parser of one word of `--peers`.
pub(crate) fn peer() -> impl TypedValueParser<Value = PeerWord> {
    let words = ["auto", "none"]
        .into_iter()
        .chain(sealway_lab::primitives::PEERS.iter().copied());
    PossibleValuesParser::new(words).map(|word| match word.as_str() {
        "auto" => PeerWord::Auto,
        "none" => PeerWord::None,
        _ => PeerWord::Named(word),
    })
}

/// Parser of a suite's name.
pub(crate) fn suite() -> impl TypedValueParser<Value = Suite> {
    PossibleValuesParser::new(Suite::ALL.map(Suite::name)).try_map(|name| name.parse::<Suite>())
}

/// A time with its unit: `90s`, `1.5m`, `1h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    const FORM: &str = "give a number and a unit, such as 90s, 5m or 1h";
    let (number, seconds) = match text.char_indices().next_back() {
        Some((at, 's')) => (&text[..at], 1.0),
        Some((at, 'm')) => (&text[..at], 60.0),
        Some((at, 'h')) => (&text[..at], 3600.0),
        _ => return Err(FORM.into()),
    };
    // Digits and one point only: the number parser would take `inf`, `1e9` and signs too.
    if !number.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return Err(FORM.into());
    }
    let number: f64 = number.parse().map_err(|_| FORM.to_string())?;
    let total = number * seconds;
    if !(1.0..=86_400.0).contains(&total) {
        return Err("it must be between 1s and 24h".into());
    }
    Ok(Duration::from_secs_f64(total))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit_and_a_range() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("24h"), Ok(Duration::from_secs(86_400)));
        for text in [
            "",
            "5",
            "m",
            ".s",
            "-5m",
            "5 m",
            "1e3s",
            "infs",
            "0s",
            "25h",
            "5ms",
            "5µ",
            "999999999999999999h",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
