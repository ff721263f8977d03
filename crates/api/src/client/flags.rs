//! Flags as Go's programs have them: one dash or two, a value behind `=` or in the next argument, and words in any place.

use std::collections::HashMap;
use std::time::Duration;

use super::Failed;

/// What a flag takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Takes {
    /// A text.
    Text,
    /// Nothing, or `true` or `false` behind `=`.
    Switch,
}

/// A flag: its names, of which the first counts here, and what it takes.
pub(super) type Flag = (&'static [&'static str], Takes);

/// Flags that every command has.
const COMMON: &[Flag] = &[(&["server", "s"], Takes::Text), (&["timeout", "t"], Takes::Text)];

/// A command line that was read.
#[derive(Debug, Default)]
pub(super) struct Flags {
    given: HashMap<&'static str, String>,
    /// What is no flag.
    pub(super) words: Vec<String>,
}

impl Flags {
    pub(super) fn read(arguments: &[String], own: &[Flag]) -> Result<Flags, Failed> {
        let mut flags = Flags::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            if argument == "--" {
                flags.words.extend(rest.cloned());
                break;
            }
            let bare = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'));
            let Some(bare) = bare.filter(|bare| !bare.is_empty()) else {
                flags.words.push(argument.clone());
                continue;
            };
            let (name, value) = bare
                .split_once('=')
                .map_or((bare, None), |(name, value)| (name, Some(value.to_owned())));
            let known = COMMON.iter().chain(own).find(|(names, _)| names.contains(&name));
            let Some((names, takes)) = known else {
                return Err(Failed::Usage(format!("there is no flag -{name} here")));
            };
            let value = match (value, takes) {
                (Some(value), _) => value,
                (None, Takes::Switch) => "true".to_owned(),
                (None, Takes::Text) => {
                    let next = rest.next();
                    next.cloned()
                        .ok_or_else(|| Failed::Usage(format!("-{name} needs a value")))?
                }
            };
            if let Some(first) = names.first() {
                flags.given.insert(first, value);
            }
        }
        Ok(flags)
    }

    /// A text, or an empty one.
    pub(super) fn text(&self, name: &str) -> &str {
        self.given.get(name).map_or("", String::as_str)
    }

    /// Whether a switch is on.
    pub(super) fn on(&self, name: &str) -> bool {
        matches!(self.text(name), "true" | "1" | "t" | "T" | "TRUE" | "True")
    }

    /// How long a call may take.
    pub(super) fn timeout(&self) -> Result<Duration, Failed> {
        let text = match self.text("timeout") {
            "" => "3",
            text => text,
        };
        let seconds = text.parse::<u32>();
        seconds
            .map(|seconds| Duration::from_secs(seconds.into()))
            .map_err(|_| Failed::Usage(format!("{text:?} is no number of seconds")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Flags, Failed> {
        let arguments: Vec<_> = line.split_whitespace().map(str::to_owned).collect();
        let own: &[Flag] = &[(&["pattern"], Takes::Text), (&["remove", "r"], Takes::Switch)];
        Flags::read(&arguments, own)
    }

    #[test]
    fn flags_are_read_as_go_writes_them() {
        for line in [
            "--server=h:1 -pattern x -r one two",
            "-s h:1 --pattern=x one -remove=true two",
            "one -s=h:1 -pattern x -r -- two",
        ] {
            let flags = read(line).unwrap();
            let texts = (flags.text("server"), flags.text("pattern"), flags.on("remove"));
            assert_eq!(texts, ("h:1", "x", true), "{line}");
            assert_eq!(flags.words, ["one", "two"], "{line}");
        }
        let flags = read("-r=false -").unwrap();
        assert!(!flags.on("remove"));
        assert_eq!(flags.words, ["-"]);
        assert_eq!(flags.timeout().unwrap(), Duration::from_secs(3));
        assert_eq!(read("-t 7").unwrap().timeout().unwrap(), Duration::from_secs(7));
        for wrong in ["-nope", "-pattern", "-timeout"] {
            assert!(matches!(read(wrong), Err(Failed::Usage(_))), "{wrong}");
        }
        assert!(read("-t x").unwrap().timeout().is_err());
    }
}
