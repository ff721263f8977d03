//! The emulated link of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::format::{seconds, sig3_or};

/// A link that the lab emulated between the two ends of everything that was measured, and what it was seen to do by itself.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct EmulatedLink {
    /// As `--link` takes it: `rate=100mbit,rtt=40ms,loss=0.1%`.
    #[schemars(length(min = 1))]
    pub asked: String,
    /// Bytes a second of each direction that were asked for; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64", range(min = 0))]
    pub rate: Option<f64>,
    /// Seconds there and back that were asked for.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub rtt_s: f64,
    /// Share of packets that was to be lost, 0 to 0.5.
    #[serde(default)]
    #[schemars(range(min = 0, max = 0.5))]
    pub loss: f64,
    /// Bytes a second of one stream of bare bytes while nothing is lost; absent where the rate is too low to be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64", range(min = 0))]
    pub measured_rate: Option<f64>,
    /// Seconds there and back of a bare byte: the median of a few.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub measured_rtt_s: f64,
    /// Bytes a second of one stream of bare bytes with the losses; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "f64", range(min = 0))]
    pub measured_stream: Option<f64>,
    /// True if both are within 5 % of what was asked for, the round trip also within 1 ms.
    #[serde(default)]
    pub kept: bool,
}

impl EmulatedLink {
    /// What was asked for: `100 Mbit/s, 40 ms there and back, 0.1 % of packets lost`.
    pub fn wanted(&self) -> String {
        let mut words = vec![
            self.rate
                .map_or_else(|| "no limit of the rate".to_owned(), |rate| short(&bits(rate))),
        ];
        if self.rtt_s > 0.0 {
            words.push(format!("{} there and back", short(&seconds(self.rtt_s))));
        }
        if self.loss > 0.0 {
            let share = format!("{} %", sig3_or(self.loss * 100.0, "?"));
            words.push(format!("{} of packets lost", short(&share)));
        }
        words.join(", ")
    }

    /// What it was seen to do: `98.7 Mbit/s, 40.6 ms; one stream with the losses 11.2 Mbit/s`.
    pub fn seen(&self) -> String {
        let rate = self
            .measured_rate
            .map_or_else(|| "a rate too low to be measured".to_owned(), bits);
        let mut words = format!("{rate}, {}", seconds(self.measured_rtt_s));
        if let Some(stream) = self.measured_stream {
            words.push_str(&format!("; one stream with the losses {}", bits(stream)));
        }
        words
    }

    /// Both in a line for the head of a report.
    pub fn line(&self) -> String {
        let kept = if self.kept { "" } else { " (NOT KEPT)" };
        format!("asked {}; measured {}{kept}", self.wanted(), self.seen())
    }
}

/// Bytes a second in bits, as links are named.
fn bits(bytes: f64) -> String {
    let (scaled, unit) = match bytes * 8.0 {
        bits if bits >= 1e9 => (bits / 1e9, "Gbit/s"),
        bits if bits >= 1e6 => (bits / 1e6, "Mbit/s"),
        bits => (bits / 1e3, "kbit/s"),
    };
    format!("{} {unit}", sig3_or(scaled, "?"))
}

/// A number with its unit, without zeros that say nothing.
fn short(quantity: &str) -> String {
    let (number, unit) = quantity.split_once(' ').unwrap_or((quantity, ""));
    let number = match number.contains('.') {
        true => number.trim_end_matches('0').trim_end_matches('.'),
        false => number,
    };
    format!("{number} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_told_as_asked_and_as_seen() {
        let mut link = EmulatedLink {
            asked: "rate=100mbit,rtt=40ms,loss=0.1%".to_owned(),
            rate: Some(12.5e6),
            rtt_s: 0.04,
            loss: 0.001,
            measured_rate: Some(98.7e6 / 8.0),
            measured_rtt_s: 0.0406,
            measured_stream: Some(11.23e6 / 8.0),
            kept: true,
        };
        assert_eq!(
            link.line(),
            "asked 100 Mbit/s, 40 ms there and back, 0.1 % of packets lost; measured 98.7 Mbit/s, 40.6 ms; \
             one stream with the losses 11.2 Mbit/s"
        );
        (link.rate, link.loss, link.kept) = (None, 0.0, false);
        (link.measured_rate, link.measured_stream) = (Some(1.25e9), None);
        assert_eq!(
            link.line(),
            "asked no limit of the rate, 40 ms there and back; measured 10.0 Gbit/s, 40.6 ms (NOT KEPT)"
        );
        link.rtt_s = 0.0;
        assert_eq!(link.wanted(), "no limit of the rate");
        link.measured_rate = None;
        assert!(link.seen().starts_with("a rate too low to be measured"));
    }
}
