//! Times as Go writes them.

use std::time::Duration;

use super::context::{Cx, quoted};
use super::schema::Kind;
use super::table::Decode;
use crate::json::{Data, Value};

/// Longest time that is taken: a year. What is meant to be longer is a slip.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 60 * 60);

/// A time, written as `1m30s` or as a whole number of nanoseconds.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct GoDuration(pub(crate) Duration);

impl Decode for GoDuration {
    fn kind() -> Kind {
        Kind::text("time: \"300ms\", \"1m30s\", or nanoseconds")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let read = match &value.data {
            Data::Number(text) => text.parse().ok().map(Duration::from_nanos),
            Data::String(text) => parse(text.trim()),
            _ => {
                cx.wrong_type(&value, "a time");
                return None;
            }
        };
        let read = read.filter(|time| *time <= LONGEST);
        if read.is_none() {
            let written = match &value.data {
                Data::Number(text) => quoted(text),
                Data::String(text) => quoted(text),
                _ => String::new(),
            };
            let hint = "write a number and a unit, \"300ms\", \"10s\" or \"1m30s\", of at most a year";
            cx.error(value.at, format!("{written} is no time"), hint);
        }
        read.map(GoDuration)
    }
}

/// Reads numbers with units, one after another.
fn parse(mut text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut nanos = 0.0;
    let mut any = false;
    while !text.is_empty() {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, rest) = text.split_at(end);
        let end = rest
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(end);
        let unit = match unit {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 60e9,
            "h" => 3600e9,
            _ => return None,
        };
        nanos += number.parse::<f64>().ok()? * unit;
        any = true;
        text = rest;
    }
    // More than a u64 holds is more than is taken.
    any.then(|| Duration::from_nanos(nanos.round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_go_reads_them() {
        for (text, nanos) in [
            ("0", Some(0)),
            ("300ms", Some(300_000_000)),
            ("1m30s", Some(90_000_000_000)),
            ("1.5h", Some(5_400_000_000_000)),
            (".5s", Some(500_000_000)),
            ("2us3ns", Some(2003)),
            ("4µs", Some(4000)),
            ("", None),
            ("5", None),
            ("s", None),
            ("-1s", None),
            ("1d", None),
            ("1s ", None),
            ("1..5s", None),
        ] {
            assert_eq!(parse(text), nanos.map(Duration::from_nanos), "{text}");
        }
        assert!(parse("9999999999999999999999h").unwrap() > LONGEST);
    }
}
