//! Parsers of single values. Names come from the crates that own them.

use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use sealway_aead::Suite;
use sealway_lab::catalogue::ALL;
use sealway_lab::plan::Preset;
use sealway_lab::reproduce::{self, Recipe};
use sealway_lab::route::{Guest, Stack};
use sealway_lab::workload::{Catalogue, Workload};

/// What the lab can be asked to measure.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Measured {
    /// Every workload that does not run alone, one after the other.
    All,
    /// One workload.
    One(&'static Workload),
    /// What a recipe needs.
    Recipe(&'static Recipe),
}

/// That this version measures these, in a sentence.
pub(crate) fn scope(workloads: impl Iterator<Item = &'static Workload>) -> String {
    let names: Vec<&str> = workloads.map(|workload| workload.name).collect();
    match names.split_last() {
        Some((last, first)) if !first.is_empty() => format!("this version measures {} and {last}", first.join(", ")),
        _ => format!("this version measures {}", names.concat()),
    }
}

/// Parser of a workload's name.
pub(crate) fn workload(catalogue: Catalogue) -> impl TypedValueParser<Value = Measured> {
    let now = catalogue
        .iter()
        .map(|workload| PossibleValue::new(workload.name).help(workload.summary));
    let alone: Vec<&str> = catalogue.iter().filter(|w| w.alone).map(|w| w.name).collect();
    let but = match alone.is_empty() {
        true => String::new(),
        false => format!(" but {}", alone.join(" and ")),
    };
    let all = PossibleValue::new("all").help(format!("everything{but}, one after the other"));
    PossibleValuesParser::new(now.chain([all]))
        .map(move |name| catalogue.named(&name).map_or(Measured::All, Measured::One))
}

/// Parser of a workload's name, which gives the name.
pub(crate) fn workload_name(catalogue: Catalogue) -> impl TypedValueParser<Value = String> {
    PossibleValuesParser::new(catalogue.iter().map(|workload| workload.name))
}

/// The value of `--fail-on`, as a fraction: `slower=5%`.
pub(crate) fn slower(text: &str) -> Result<f64, String> {
    const FORM: &str = "write slower=N%, such as slower=5%, with N from 0 to 1000";
    let number = text.strip_prefix("slower=").and_then(|rest| rest.strip_suffix('%'));
    // Digits and one point only: the number parser would take `inf`, `1e9` and signs too.
    let plain = number.filter(|number| number.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    let percent: Option<f64> = plain.and_then(|number| number.parse().ok());
    match percent.filter(|percent| *percent <= 1000.0) {
        Some(percent) => Ok(percent / 100.0),
        None => Err(FORM.into()),
    }
}

/// Parser of a recipe's name.
pub(crate) fn recipe() -> impl TypedValueParser<Value = &'static Recipe> {
    let names = reproduce::ALL.map(|recipe| PossibleValue::new(recipe.name).help(recipe.summary));
    PossibleValuesParser::new(names).try_map(|name| reproduce::named(&name).ok_or("no such recipe"))
}

/// Parser of a preset's name.
pub(crate) fn preset() -> impl TypedValueParser<Value = Preset> {
    let names = Preset::ALL.map(Preset::name);
    PossibleValuesParser::new(names).try_map(|name| Preset::named(&name).ok_or("no such preset"))
}

/// One word of `--peers`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum PeerWord {
    Auto,
    None,
    Named(String),
}

/// Parser of one word of `--peers`.
pub(crate) fn peer(catalogue: &Catalogue) -> impl TypedValueParser<Value = PeerWord> + use<> {
    let words = ["auto", "none"].into_iter().chain(catalogue.peers());
    PossibleValuesParser::new(words).map(|word| match word.as_str() {
        "auto" => PeerWord::Auto,
        "none" => PeerWord::None,
        _ => PeerWord::Named(word),
    })
}

/// The value of `--peer`, `NAME=PATH`: a name that no other subject has, nor `--peers` a meaning for.
pub(crate) fn guest(text: &str) -> Result<Guest, String> {
    let mut taken = ALL.peers();
    taken.extend(ALL.controls());
    taken.extend(["auto", "none"]);
    Guest::parse(text, &taken)
}

/// Parser of a stack's name.
pub(crate) fn stack() -> impl TypedValueParser<Value = Stack> {
    let names = Stack::ALL.map(|stack| stack.name());
    PossibleValuesParser::new(names).try_map(|name| Stack::named(&name).ok_or("no such stack"))
}

/// Parser of a suite's name.
pub(crate) fn suite() -> impl TypedValueParser<Value = Suite> {
    PossibleValuesParser::new(Suite::ALL.map(Suite::name)).try_map(|name| name.parse::<Suite>())
}

/// A time with its unit: `90s`, `1.5m`, `1h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let duration = pause(text)?;
    if duration < Duration::from_secs(1) {
        return Err(RANGE.into());
    }
    Ok(duration)
}

const RANGE: &str = "it must be between 1s and 24h";

/// A time with its unit that may be nothing: `0s`, `0.5s`, `5m`. At most 24 hours.
pub(crate) fn pause(text: &str) -> Result<Duration, String> {
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
    if total > 86_400.0 {
        return Err(RANGE.into());
    }
    Ok(Duration::from_secs_f64(total))
}

/// A number of bytes with its unit, a power of 1024: `500M`, `4G`, `1T`. At least 1 MiB.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    const FORM: &str = "give a whole number and a unit, such as 500M, 4G or 1T";
    let (number, shift) = match text.char_indices().next_back() {
        Some((at, 'M')) => (&text[..at], 20),
        Some((at, 'G')) => (&text[..at], 30),
        Some((at, 'T')) => (&text[..at], 40),
        _ => return Err(FORM.into()),
    };
    // Digits only: the number parser would take a sign too.
    if !number.bytes().all(|b| b.is_ascii_digit()) {
        return Err(FORM.into());
    }
    let number: u64 = number.parse().map_err(|_| FORM.to_string())?;
    match number.checked_mul(1 << shift) {
        Some(0) => Err("it must be at least 1M".into()),
        Some(size) => Ok(size),
        None => Err("that is more than there can be".into()),
    }
}

/// A PIN: digits, since apps write it into requests as it is. Empty where a new one is wanted.
pub(super) fn pin(text: &str) -> Result<String, String> {
    match text.len() {
        0 | 4..=12 if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(text.to_owned()),
        _ => Err("a PIN has 4 to 12 digits".to_owned()),
    }
}

#[cfg(test)]
#[path = "../../../lab/tests/report/dummy.rs"]
mod dummy;

#[cfg(test)]
mod tests {
    use clap::{Arg, Command};

    use super::*;

    /// One that is added in one file is a name like all others.
    #[test]
    fn a_new_workload_can_be_named_and_is_in_the_help() {
        static KNOWN: [&Workload; 1] = [&dummy::WORKLOAD];
        let known = Catalogue(&KNOWN);
        let mut command = Command::new("lab")
            .arg(Arg::new("workload").value_parser(workload(known)))
            .arg(Arg::new("peers").long("peers").value_parser(peer(&known)));
        let help = command.render_long_help().to_string();
        for words in ["juggling", "balls kept in the air", "a-circus"] {
            assert!(help.contains(words), "{words}: {help}");
        }
        let found = command.get_matches_from(["lab", "juggling", "--peers", "a-circus"]);
        assert_eq!(found.get_one("workload"), Some(&Measured::One(&dummy::WORKLOAD)));
        assert_eq!(scope(known.iter()), "this version measures juggling");
    }

    #[test]
    fn sizes_need_a_unit_and_a_range() {
        assert_eq!(size("500M"), Ok(500 << 20));
        assert_eq!(size("4G"), Ok(4 << 30));
        assert_eq!(size("1T"), Ok(1 << 40));
        for text in [
            "",
            "4",
            "G",
            "4g",
            "4GiB",
            "-4G",
            "+4G",
            "0G",
            "1.5G",
            " 4G",
            "99999999999G",
            "20000000T",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
    }

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
        assert_eq!(pause("0s"), Ok(Duration::ZERO));
        assert_eq!(pause("0.5s"), Ok(Duration::from_millis(500)));
        assert!(pause("25h").is_err() && pause("0").is_err());
    }
}
