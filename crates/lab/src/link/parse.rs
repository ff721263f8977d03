//! Links as text, read and written.

use std::fmt;
use std::str::FromStr;

use super::{Link, MOST_UNDER_WAY};

/// Units with what they are in the smallest one, largest first. All are powers of ten.
const RATES: [(&str, u64); 4] = [
    ("gbit", 1_000_000_000),
    ("mbit", 1_000_000),
    ("kbit", 1_000),
    ("bit", 1),
];
const TIMES: [(&str, u64); 3] = [("ms", 1_000), ("us", 1), ("s", 1_000_000)];

/// What can be said of a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Part {
    Rate,
    Rtt,
    Loss,
}

impl Part {
    const fn name(self) -> &'static str {
        match self {
            Part::Rate => "rate",
            Part::Rtt => "rtt",
            Part::Loss => "loss",
        }
    }

    const fn form(self) -> &'static str {
        match self {
            Part::Rate => "a number with bit, kbit, mbit or gbit, such as 100mbit, in whole bits a second",
            Part::Rtt => "a number with us, ms or s, such as 40ms, in whole microseconds",
            Part::Loss => "a number with %, such as 0.1%, with at most four decimals",
        }
    }

    const fn range(self) -> &'static str {
        match self {
            Part::Rate => "1kbit to 100gbit",
            Part::Rtt => "0s to 10s",
            Part::Loss => "0% to 50%",
        }
    }
}

/// Why a text is no link.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum LinkError {
    /// A part of it is not a name with a value.
    NoValue {
        /// The part.
        part: String,
    },
    /// A part has a name that is none.
    Unknown {
        /// The name.
        name: String,
    },
    /// A part is there twice.
    Twice {
        /// Its name.
        name: &'static str,
    },
    /// A value has another form.
    Form {
        /// The name of its part.
        name: &'static str,
        /// The value.
        value: String,
        /// What it may look like.
        form: &'static str,
    },
    /// A value is out of range.
    Range {
        /// The name of its part.
        name: &'static str,
        /// The value.
        value: String,
        /// What it may be.
        range: &'static str,
    },
    /// More bytes would be under way than are held.
    UnderWay {
        /// How many, in each direction.
        bytes: u64,
    },
    /// Loss without distance: what is lost costs round trips, and there are none.
    LossAlone,
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const EXAMPLE: &str = "such as rate=100mbit,rtt=40ms,loss=0.1%";
        match self {
            LinkError::NoValue { part } => write!(f, "\"{part}\" has no value: give rate=, rtt= or loss=, {EXAMPLE}"),
            LinkError::Unknown { name } => {
                write!(
                    f,
                    "\"{name}\" is no part of a link: give rate=, rtt= or loss=, {EXAMPLE}"
                )
            }
            LinkError::Twice { name } => write!(f, "{name}= is there twice: give it once"),
            LinkError::Form { name, value, form } => write!(f, "{name}={value}: give {form}"),
            LinkError::Range { name, value, range } => write!(f, "{name}={value}: it must be {range}"),
            LinkError::UnderWay { bytes } => write!(
                f,
                "by rate and rtt {} MiB would be under way in each direction, and at most {} MiB are held: lower one of them",
                bytes >> 20,
                MOST_UNDER_WAY >> 20
            ),
            LinkError::LossAlone => f.write_str(
                "loss= needs rtt=: what is lost comes again a round trip later, and without distance at once",
            ),
        }
    }
}

impl std::error::Error for LinkError {}

impl FromStr for Link {
    type Err = LinkError;

    fn from_str(text: &str) -> Result<Link, LinkError> {
        let mut link = Link::default();
        let mut seen: Vec<Part> = Vec::with_capacity(3);
        for part in text.split(',') {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| LinkError::NoValue { part: part.to_owned() })?;
            let part = [Part::Rate, Part::Rtt, Part::Loss]
                .into_iter()
                .find(|part| part.name() == name)
                .ok_or_else(|| LinkError::Unknown { name: name.to_owned() })?;
            if seen.contains(&part) {
                return Err(LinkError::Twice { name: part.name() });
            }
            seen.push(part);
            match part {
                Part::Rate => link.rate = Some(quantity(part, value, &RATES, 1_000..=100_000_000_000)?),
                Part::Rtt => link.rtt_us = quantity(part, value, &TIMES, 0..=10_000_000)?,
                Part::Loss => {
                    let ppm = quantity(part, value, &[("%", 10_000)], 0..=500_000)?;
                    link.loss_ppm = u32::try_from(ppm).unwrap_or(u32::MAX);
                }
            }
        }
        match link.under_way() {
            _ if link.loss_ppm > 0 && link.rtt_us == 0 => Err(LinkError::LossAlone),
            Some(bytes) if bytes > MOST_UNDER_WAY => Err(LinkError::UnderWay { bytes }),
            _ => Ok(link),
        }
    }
}

/// A number with its unit, in the smallest one.
fn quantity(
    part: Part,
    text: &str,
    units: &[(&str, u64)],
    range: std::ops::RangeInclusive<u64>,
) -> Result<u64, LinkError> {
    let (name, value) = (part.name(), text.to_owned());
    let found = units.iter().find_map(|(unit, scale)| {
        // `bit` ends `kbit` too; what is left of it then is no number.
        scaled(text.strip_suffix(*unit)?, *scale)
    });
    match found {
        None => Err(LinkError::Form {
            name,
            value,
            form: part.form(),
        }),
        Some(found) if !range.contains(&found) => Err(LinkError::Range {
            name,
            value,
            range: part.range(),
        }),
        Some(found) => Ok(found),
    }
}

/// Digits with at most one point, times `scale`; `None` where that is another text or no whole number. What is too large for
/// the type is its largest.
fn scaled(text: &str, scale: u64) -> Option<u64> {
    const MOST_DECIMALS: usize = 12;
    let (whole, decimals) = match text.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (text, ""),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(decimals) || decimals.len() > MOST_DECIMALS {
        return None;
    }
    // Only digits: what does not parse is too large.
    let whole = whole.parse().unwrap_or(u64::MAX).saturating_mul(scale);
    let share = u128::from(decimals.parse::<u64>().unwrap_or(0)) * u128::from(scale);
    let ten = 10_u128.pow(decimals.len() as u32);
    let rest = u64::try_from(share / ten).ok()?;
    (share % ten == 0).then(|| whole.saturating_add(rest))
}

impl fmt::Display for Link {
    /// The text that the same link is made from, each part that is anything.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::with_capacity(3);
        parts.extend(self.rate.map(|bits| format!("rate={}", rate(bits))));
        if self.rtt_us > 0 || (self.rate.is_none() && self.loss_ppm == 0) {
            parts.push(format!("rtt={}", rtt(self.rtt_us)));
        }
        if self.loss_ppm > 0 {
            parts.push(format!("loss={}%", percent(self.loss_ppm)));
        }
        f.write_str(&parts.join(","))
    }
}

/// `100mbit`
fn rate(bits: u64) -> String {
    let (unit, scale) = RATES
        .into_iter()
        .find(|(_, scale)| bits >= *scale)
        .unwrap_or(("bit", 1));
    format!("{}{unit}", decimal(bits, scale))
}

/// `40ms`
fn rtt(us: u64) -> String {
    let (unit, scale) = match us {
        1_000_000.. => ("s", 1_000_000),
        1_000.. => ("ms", 1_000),
        _ => ("us", 1),
    };
    format!("{}{unit}", decimal(us, scale))
}

/// `0.1`
fn percent(ppm: u32) -> String {
    decimal(u64::from(ppm), 10_000)
}

/// `value` over `scale`, a power of ten, exactly.
fn decimal(value: u64, scale: u64) -> String {
    let (whole, rest) = (value / scale, value % scale);
    if rest == 0 {
        return whole.to_string();
    }
    let width = scale.ilog10() as usize;
    let text = format!("{whole}.{rest:0width$}");
    text.trim_end_matches('0').to_owned()
}
