//! Flags as programs written in Go take them: one dash or two, `-name value` or `-name=value`, switches with or without a
//! value. The first word that is no flag ends them.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

/// What follows a flag.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Takes {
    /// Nothing, unless it is set to true or false with `=`.
    Nothing,
    /// A value.
    Value,
    /// A value that is a length of time.
    Time,
}

/// Flags that were given, in their order, and the words behind them, which most commands do not look at.
#[derive(Debug, Default)]
pub(super) struct Flags {
    given: Vec<(&'static str, OsString)>,
    words: Vec<OsString>,
}

/// Why the words cannot be taken.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Wrong {
    /// They ask for help.
    Help,
    /// In the words of those programs.
    Said(String),
}

impl Flags {
    /// The value that counts.
    pub(super) fn last(&self, name: &str) -> Option<&OsStr> {
        let of = self.given.iter().rfind(|(given, _)| *given == name);
        of.map(|(_, value)| value.as_os_str())
    }

    /// The value that counts, as text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.last(name).map(|value| value.to_string_lossy().into_owned())
    }

    /// The values of a flag that may be repeated, under all of its names.
    pub(super) fn all<'a>(&'a self, names: &'a [&str]) -> impl Iterator<Item = &'a OsStr> {
        let of = self.given.iter().filter(|(given, _)| names.contains(given));
        of.map(|(_, value)| value.as_os_str())
    }

    /// The words behind the flags.
    pub(super) fn words(&self) -> &[OsString] {
        &self.words
    }

    /// Whether a switch is on.
    pub(super) fn is(&self, name: &str) -> bool {
        self.last(name).is_some_and(|value| value == "true")
    }
}

/// Reads words as flags of these names.
pub(super) fn parse(known: &[(&'static str, Takes)], words: &[OsString]) -> Result<Flags, Wrong> {
    let mut flags = Flags::default();
    let mut words = words.iter();
    loop {
        let behind = words.as_slice();
        let Some(word) = words.next() else { break };
        let text = word.to_str().unwrap_or_default();
        let Some(bare) = text.strip_prefix('-').filter(|bare| !bare.is_empty()) else {
            flags.words = behind.to_vec();
            break;
        };
        if bare == "-" {
            flags.words = words.as_slice().to_vec();
            break;
        }
        let bare = bare.strip_prefix('-').unwrap_or(bare);
        if bare.starts_with(['-', '=']) {
            return Err(Wrong::Said(format!("bad flag syntax: {text}")));
        }
        let (name, value) = bare
            .split_once('=')
            .map_or((bare, None), |(name, value)| (name, Some(value)));
        let Some((name, takes)) = known.iter().find(|(known, _)| *known == name) else {
            if ["h", "help"].contains(&name) {
                return Err(Wrong::Help);
            }
            return Err(Wrong::Said(format!("flag provided but not defined: -{name}")));
        };
        let value = match (takes, value) {
            (Takes::Value | Takes::Time, Some(value)) => value.into(),
            (Takes::Value | Takes::Time, None) => match words.next() {
                Some(value) => value.clone(),
                None => return Err(Wrong::Said(format!("flag needs an argument: -{name}"))),
            },
            (Takes::Nothing, None | Some("1" | "t" | "T" | "TRUE" | "true" | "True")) => "true".into(),
            (Takes::Nothing, Some("0" | "f" | "F" | "FALSE" | "false" | "False")) => "false".into(),
            (Takes::Nothing, Some(value)) => {
                let text = format!("invalid boolean value {value:?} for -{name}: parse error");
                return Err(Wrong::Said(text));
            }
        };
        if *takes == Takes::Time && value.to_str().and_then(length).is_none() {
            let text = format!("invalid value {value:?} for flag -{name}: parse error");
            return Err(Wrong::Said(text));
        }
        flags.given.push((name, value));
    }
    Ok(flags)
}

/// A length of time such as `240h`, `90m` or `1h30m`.
pub(super) fn length(text: &str) -> Option<Duration> {
    let mut whole = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let unit = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..unit].parse().ok()?;
        let seconds = match rest.as_bytes()[unit] {
            b'h' => 3600,
            b'm' => 60,
            b's' => 1,
            _ => return None,
        };
        whole = whole.checked_add(Duration::from_secs(number.checked_mul(seconds)?))?;
        rest = &rest[unit + 1..];
    }
    (!whole.is_zero()).then_some(whole)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const KNOWN: [(&str, Takes); 3] = [("c", Takes::Value), ("i", Takes::Value), ("test", Takes::Nothing)];

    fn parsed(text: &str) -> Result<Flags, Wrong> {
        let words: Vec<OsString> = text.split(' ').map(OsString::from).collect();
        parse(&KNOWN, &words)
    }

    #[test]
    fn one_dash_or_two_and_values_both_ways() {
        let flags = parsed("-c a --c b -c=d --i=x=y -test").unwrap();
        assert_eq!(flags.all(&["c", "other"]).collect::<Vec<_>>(), ["a", "b", "d"]);
        assert_eq!((flags.text("i").unwrap(), flags.is("test")), ("x=y".to_owned(), true));
        assert!(!parsed("-test -test=false").unwrap().is("test"));
        assert_eq!(parsed("-c -test").unwrap().text("c").unwrap(), "-test");
    }

    #[test]
    fn the_first_other_word_ends_them() {
        for text in ["-test a -c b", "-test -- -c", "-test - -c x"] {
            let flags = parsed(text).unwrap();
            assert_eq!((flags.is("test"), flags.last("c")), (true, None), "{text}");
        }
        assert_eq!(parsed("-test a -c b").unwrap().words(), ["a", "-c", "b"]);
        assert_eq!(parsed("-test -- -c").unwrap().words(), ["-c"]);
        assert!(parsed("-test").unwrap().words().is_empty());
    }

    #[test]
    fn faults_have_the_usual_words() {
        for (text, said) in [
            ("-nope", "flag provided but not defined: -nope"),
            ("-c", "flag needs an argument: -c"),
            ("-test=maybe", "invalid boolean value \"maybe\" for -test: parse error"),
            ("---c", "bad flag syntax: ---c"),
            ("-=c", "bad flag syntax: -=c"),
        ] {
            assert_eq!(parsed(text).unwrap_err(), Wrong::Said(said.to_owned()));
        }
        assert_eq!(parsed("-h").unwrap_err(), Wrong::Help);
        assert_eq!(parsed("-test --help").unwrap_err(), Wrong::Help);
    }

    #[test]
    fn lengths_of_time() {
        for (text, seconds) in [
            ("240h", Some(864_000)),
            ("1h30m", Some(5400)),
            ("9s", Some(9)),
            ("", None),
            ("0h", None),
        ] {
            assert_eq!(length(text), seconds.map(Duration::from_secs), "{text}");
        }
        for text in ["h", "5", "5d", "-1h", "99999999999999999999h", "18446744073709551615h"] {
            assert_eq!(length(text), None, "{text}");
        }
    }
}
