//! Links as text, read and written.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use super::{Link, MOST_UNDER_WAY};

/// Units with what they are in the smallest one, largest first. All are powers of ten.
const RATES: [(&str, u64); 4] = [
    ("gbit", 1_000_000_000),
    ("mbit", 1_000_000),
    ("kbit", 1_000),
    ("bit", 1),
];
const PERCENT: [(&str, u64); 1] = [("%", 10_000)];
const TIMES: [(&str, u64); 3] = [("s", 1_000_000), ("ms", 1_000), ("us", 1)];

/// What can be said of a link, in the smallest of its units.
struct Part {
    name: &'static str,
    units: &'static [(&'static str, u64)],
    form: &'static str,
    bounds: RangeInclusive<u64>,
    /// The bounds in words.
    range: &'static str,
}

const RATE: Part = Part {
    name: "rate",
    units: &RATES,
    form: "a number with bit, kbit, mbit or gbit, such as 100mbit, in whole bits a second",
    bounds: 1_000..=100_000_000_000,
    range: "1kbit to 100gbit",
};
const RTT: Part = Part {
    name: "rtt",
    units: &TIMES,
    form: "a number with us, ms or s, such as 40ms, in whole microseconds",
    bounds: 0..=10_000_000,
    range: "0s to 10s",
};
const LOSS: Part = Part {
    name: "loss",
    units: &PERCENT,
    form: "a number with %, such as 0.1%, with at most four decimals",
    bounds: 0..=500_000,
    range: "0% to 50%",
};

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
        let parts = [RATE, RTT, LOSS];
        let mut found = [None; 3];
        for part in text.split(',') {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| LinkError::NoValue { part: part.to_owned() })?;
            let (part, found) = parts
                .iter()
                .zip(&mut found)
                .find(|(part, _)| part.name == name)
                .ok_or_else(|| LinkError::Unknown { name: name.to_owned() })?;
            if found.is_some() {
                return Err(LinkError::Twice { name: part.name });
            }
            *found = Some(part.read(value)?);
        }
        let [rate, rtt_us, loss_ppm] = found;
        let link = Link {
            rate,
            rtt_us: rtt_us.unwrap_or(0),
            loss_ppm: loss_ppm.map_or(0, |ppm| u32::try_from(ppm).unwrap_or(u32::MAX)),
        };
        match link.under_way() {
            _ if link.loss_ppm > 0 && link.rtt_us == 0 => Err(LinkError::LossAlone),
            Some(bytes) if bytes > MOST_UNDER_WAY => Err(LinkError::UnderWay { bytes }),
            _ => Ok(link),
        }
    }
}

impl Part {
    /// A number with its unit, in the smallest one.
    fn read(&self, text: &str) -> Result<u64, LinkError> {
        let (name, value) = (self.name, text.to_owned());
        let found = self.units.iter().find_map(|(unit, scale)| {
            // `bit` ends `kbit` too; what is left of it then is no number.
            scaled(text.strip_suffix(*unit)?, *scale)
        });
        let (form, range) = (self.form, self.range);
        match found {
            None => Err(LinkError::Form { name, value, form }),
            Some(found) if !self.bounds.contains(&found) => Err(LinkError::Range { name, value, range }),
            Some(found) => Ok(found),
        }
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
        parts.extend(self.rate.map(|bits| format!("rate={}", shown(bits, &RATES))));
        if self.rtt_us > 0 || (self.rate.is_none() && self.loss_ppm == 0) {
            parts.push(format!("rtt={}", shown(self.rtt_us, &TIMES)));
        }
        if self.loss_ppm > 0 {
            parts.push(format!("loss={}", shown(self.loss_ppm.into(), &PERCENT)));
        }
        f.write_str(&parts.join(","))
    }
}

/// `100mbit`, `40ms`, `0.1%`: in the largest unit that it fills.
fn shown(value: u64, units: &[(&str, u64)]) -> String {
    let filled = units.iter().find(|(_, scale)| value >= *scale).or(units.last());
    let (unit, scale) = filled.copied().unwrap_or(("", 1));
    format!("{}{unit}", decimal(value, scale))
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
