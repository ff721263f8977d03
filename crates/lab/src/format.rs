//! Numbers and foreign text as people read them. Everything here is pure.

use std::fmt;

/// Three significant digits without an exponent: `12.3`, `0.00123`, `1230`. Infinities keep their sign; what is not a
/// number is `None`, because a report says "not known" in its own way.
pub(crate) fn sig3(value: f64) -> Option<String> {
    if value.is_nan() {
        return None;
    }
    if value.is_infinite() {
        return Some(if value > 0.0 { "inf" } else { "-inf" }.to_owned());
    }
    if value == 0.0 {
        return Some("0".to_owned());
    }
    // Rounding can carry into a new digit (9.996 is 10.0), so the exponent is taken after rounding.
    let exponent: i32 = format!("{value:.2e}")
        .split_once('e')
        .and_then(|(_, exponent)| exponent.parse().ok())
        .unwrap_or_default();
    let decimals = usize::try_from(2 - exponent).unwrap_or(0).min(12);
    if exponent > 15 {
        return Some(format!("{value:.2e}"));
    }
    if exponent > 2 {
        let step = 10f64.powi(exponent - 2);
        return Some(format!("{:.0}", (value / step).round() * step));
    }
    Some(format!("{value:.decimals$}"))
}

/// As [`sig3`], with `unknown` for what is not a number.
pub(crate) fn sig3_or(value: f64, unknown: &str) -> String {
    sig3(value).unwrap_or_else(|| unknown.to_owned())
}

/// A ratio such as `1.02`, `0.985` or `12.3`, followed by `x`.
pub(crate) fn times(ratio: f64) -> String {
    sig3(ratio).map_or_else(|| "not known".to_owned(), |text| format!("{text}x"))
}

/// What stands between a ratio, or a word in its place, and what it is over: `1.02x the rate`, `none: both are equal`.
pub(crate) fn gap(lead: &str) -> &'static str {
    if lead.ends_with('x') { " " } else { ": " }
}

/// Stands before a place that is not told apart from the one before.
pub(crate) const TIED: &str = "=";

/// A difference from 1 in per cent, `+2.1 %`, `-0.4 %`; two significant digits below 10 %.
pub(crate) fn percent_from_one(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if !percent.is_finite() {
        return "not known".to_owned();
    }
    if percent.abs() < 9.95 {
        format!("{percent:+.1} %")
    } else {
        format!("{percent:+.0} %")
    }
}

/// A message size: plain bytes up to 4095, then binary units when they come out even.
pub(crate) fn size(bytes: i64) -> String {
    const KIB: i64 = 1 << 10;
    const MIB: i64 = 1 << 20;
    match bytes {
        MIB.. if bytes % MIB == 0 => format!("{} MiB", bytes / MIB),
        4096.. if bytes % KIB == 0 => format!("{} KiB", bytes / KIB),
        _ => format!("{bytes} B"),
    }
}

/// Memory with three digits in GiB or MiB.
pub(crate) fn memory(bytes: u64) -> String {
    let mib = bytes as f64 / f64::from(1u32 << 20);
    if mib >= 1024.0 {
        format!("{} GiB", sig3_or(mib / 1024.0, "?"))
    } else {
        format!("{} MiB", sig3_or(mib, "?"))
    }
}

/// A duration in seconds in the unit that gives one to three digits before the point.
pub(crate) fn seconds(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 1.0 || v == 0.0 => (value, "s"),
        v if v >= 1e-3 => (value * 1e3, "ms"),
        v if v >= 1e-6 => (value * 1e6, "us"),
        _ => (value * 1e9, "ns"),
    };
    sig3(scaled).map_or_else(|| "not known".to_owned(), |text| format!("{text} {unit}"))
}

/// A time of a run: whole seconds, and minutes from two on, as `52 s`, `7 min 45 s` and `10 min`.
pub(crate) fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    if whole < 120 {
        return format!("{whole} s");
    }
    match whole % 60 {
        0 => format!("{} min", whole / 60),
        rest => format!("{} min {rest} s", whole / 60),
    }
}

/// Foreign text made harmless for any display: control and bidirectional-override characters become U+FFFD, line breaks
/// and tabs a space.
pub(crate) fn clean(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\n' | '\r' | '\t' => ' ',
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' => '\u{fffd}',
            c if c.is_control() => '\u{fffd}',
            c => c,
        })
        .collect()
}

/// Columns of a terminal for text that is made without looking at one.
pub(crate) const COLUMNS: usize = 80;

/// Foreign text for a terminal of any kind: one column per character, no control sequences.
pub(crate) fn plain(text: &str) -> String {
    let harmless = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
    text.chars().map(harmless).collect()
}

/// Adds `text` in lines of at most [`COLUMNS`] characters, the first with `indent`, the others with two spaces more.
pub(crate) fn wrap(out: &mut String, indent: &str, text: &str) {
    for line in lines(indent, &format!("{indent}  "), text, COLUMNS) {
        out.push_str(&line);
        out.push('\n');
    }
}

/// Plain text as lines of at most `width` characters, at least one, the first behind `first`, the others behind `rest`.
pub(crate) fn lines(first: &str, rest: &str, text: &str, width: usize) -> Vec<String> {
    let text = plain(text);
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut empty = true;
    for word in text.split_whitespace() {
        let mut word = word;
        loop {
            let space = usize::from(!empty);
            if line.len() + space + word.len() <= width {
                line.extend(std::iter::repeat_n(' ', space));
                line.push_str(word);
                empty = false;
                break;
            }
            if empty {
                // A word longer than a line is cut; `word` is ASCII, so every index is a boundary.
                let (head, tail) = word.split_at(width - line.len());
                line.push_str(head);
                word = tail;
            }
            lines.push(std::mem::replace(&mut line, rest.to_owned()));
            empty = true;
        }
    }
    lines.push(line);
    lines
}

/// Text safe inside HTML elements and double-quoted attributes.
pub(crate) struct Esc<'a>(pub &'a str);

impl fmt::Display for Esc<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in clean(self.0).chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => fmt::Write::write_char(f, c)?,
            }
        }
        Ok(())
    }
}

/// Two ends of an interval with three digits: `1.02 to 1.05`.
pub(crate) fn list_range(low: f64, high: f64) -> String {
    format!("{} to {}", sig3_or(low, "not known"), sig3_or(high, "not known"))
}

/// A plural: `1 round`, `2 rounds`.
pub(crate) fn count(n: usize, one: &str) -> String {
    if n == 1 {
        format!("1 {one}")
    } else {
        format!("{n} {one}s")
    }
}

/// Bytes in hexadecimal, lower case.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A command line that a shell would read back as the same words.
pub(crate) fn command(words: &[String]) -> String {
    let quoted: Vec<String> = words
        .iter()
        .map(|word| {
            let word = clean(word);
            let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
            if !word.is_empty() && word.chars().all(plain) {
                word
            } else {
                format!("'{}'", word.replace('\'', "'\\''"))
            }
        })
        .collect();
    quoted.join(" ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn times_of_runs() {
        let shown = [0.4, 52.3, 119.6, 465.2, 3600.0].map(clock);
        assert_eq!(shown, ["0 s", "52 s", "2 min", "7 min 45 s", "60 min"]);
    }

    #[test]
    fn three_digits() {
        let cases = [
            (12.345, "12.3"),
            (9.996, "10.0"),
            (0.001234, "0.00123"),
            (1234.0, "1230"),
            (999.6, "1000"),
            (1.0, "1.00"),
            (0.0, "0"),
            (f64::INFINITY, "inf"),
            (-2.5, "-2.50"),
            (123.4, "123"),
            (1e20, "1.00e20"),
            (0.9996, "1.00"),
        ];
        for (value, text) in cases {
            assert_eq!(sig3(value).unwrap(), text, "{value}");
        }
        assert_eq!(sig3(f64::NAN), None);
    }

    #[test]
    fn units() {
        assert_eq!(size(1420), "1420 B");
        assert_eq!(size(16384), "16 KiB");
        assert_eq!(size(1 << 20), "1 MiB");
        assert_eq!(size(-4), "-4 B");
        assert_eq!(seconds(1.234e-7), "123 ns");
        assert_eq!(seconds(0.0025), "2.50 ms");
        assert_eq!(memory(8 << 30), "8.00 GiB");
        assert_eq!(percent_from_one(1.0213), "+2.1 %");
        assert_eq!(percent_from_one(0.5), "-50 %");
        assert_eq!(count(1, "round"), "1 round");
    }

    #[test]
    fn foreign_text_is_harmless() {
        assert_eq!(clean("a\x1b[31m\nb\u{202e}c"), "a\u{fffd}[31m b\u{fffd}c");
        assert_eq!(
            Esc("<a href=\"x\">'&").to_string(),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;"
        );
        assert_eq!(
            command(&["a b".into(), "it's".into(), "--x=1".into()]),
            "'a b' 'it'\\''s' --x=1"
        );
    }
}
