//! Sets of names: whole names, names with all below them, texts within names, and regular expressions.

mod table;
#[cfg(test)]
mod tests;

use std::fmt;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use regex::bytes::{RegexSet, RegexSetBuilder};

use table::{Hashed, Kind, Table};

/// Longest name, in bytes. A longer one is nobody's, so sets leave it out, and longer texts that names are to contain.
pub const MAX_NAME: usize = 255;

/// What the texts that names are to contain may take in one set, in bytes. The machine that looks for all of them at once
/// takes some 40 times that.
pub const MAX_KEYWORDS: usize = 128 << 10;

/// Up to this many bytes of such texts the machine is one that takes more memory, up to a kibibyte for each byte, and less
/// time.
const FAST_KEYWORDS: usize = 1 << 10;

/// What the compiled expressions of one set may take, in bytes.
pub const MAX_PATTERNS: usize = 8 << 20;

/// What a set keeps to ask its expressions fast, in bytes; beyond it they are asked slower.
const PATTERN_CACHE: usize = 256 << 10;

/// How a text is compared with a name.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// It stands anywhere in the name.
    Keyword,
    /// It is a regular expression, in Go's syntax.
    Regex,
    /// It is the name, or the name is below it.
    Domain,
    /// It is the name.
    Full,
}

impl Form {
    /// The word for it in front of a text in configurations: `keyword`, `regexp`, `domain` or `full`.
    pub fn word(self) -> &'static str {
        match self {
            Form::Keyword => "keyword",
            Form::Regex => "regexp",
            Form::Domain => "domain",
            Form::Full => "full",
        }
    }
}

/// A name to ask several sets about: what all of them need is worked out once.
#[derive(Debug)]
pub struct Asked<'n>(Hashed<'n>);

impl<'n> Asked<'n> {
    /// A name, which must be in lower case and without a dot at its end.
    pub fn new(name: &'n str) -> Self {
        Asked(Hashed::new(name))
    }

    /// The name.
    pub fn name(&self) -> &'n str {
        self.0.name
    }
}

/// A set of names. Asked with names in lower case and without a dot at their end.
///
/// Whole names and domains take 4 bytes each and their text, less a common last label. However many there are, a look-up
/// costs one step for each label of the name.
#[derive(Debug, Default)]
pub struct NameSet {
    table: Table,
    keywords: Option<AhoCorasick>,
    patterns: Option<RegexSet>,
    dotless: Box<[Box<str>]>,
    /// What was put in, equal ones counted once where they are names.
    count: usize,
}

impl NameSet {
    /// An empty set to fill.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Whether the set holds a name, which must be in lower case and without a dot at its end.
    pub fn matches(&self, name: &str) -> bool {
        self.holds(&Asked::new(name))
    }

    /// The same for a name that other sets are asked about too.
    pub fn holds(&self, asked: &Asked<'_>) -> bool {
        let name = asked.name();
        self.table.matches(&asked.0)
            || self.keywords.as_ref().is_some_and(|all| all.is_match(name))
            || self.patterns.as_ref().is_some_and(|all| all.is_match(name.as_bytes()))
            || (!self.dotless.is_empty()
                && !name.contains('.')
                && self.dotless.iter().any(|text| name.contains(&**text)))
    }

    /// How many names, texts and expressions it holds.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether it holds nothing, and so matches no name.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The memory it takes, in bytes. For expressions that is an estimate.
    pub fn memory(&self) -> usize {
        let dotless: usize = self.dotless.iter().map(|text| text.len() + 16).sum();
        let keywords = self.keywords.as_ref().map_or(0, AhoCorasick::memory_usage);
        // The library does not tell what they take: about this much each, as measured.
        let patterns = self.patterns.as_ref().map_or(0, |all| all.len() * 4096);
        size_of::<Self>() + self.table.memory() + keywords + patterns + dotless
    }
}

/// Fills a [`NameSet`]. Texts must be in lower case. Empty ones are left out: what is written wrongly must not hold for
/// every name. Only [`dotless`](Builder::dotless) may be without a text.
#[derive(Debug, Default)]
pub struct Builder {
    names: table::Builder,
    keywords: Vec<String>,
    patterns: Vec<String>,
    dotless: Vec<Box<str>>,
}

impl Builder {
    /// A condition of a geo file.
    pub fn add(&mut self, form: Form, text: &str) -> &mut Self {
        match form {
            Form::Keyword => self.keyword(text),
            Form::Regex => self.regex(text),
            Form::Domain => self.domain(text),
            Form::Full => self.full(text),
        }
    }

    /// Exactly this name. A dot at its end is no part of it.
    pub fn full(&mut self, name: &str) -> &mut Self {
        self.name(name, Kind::Full)
    }

    /// This name, and all names below it. A dot at its end is no part of it.
    pub fn domain(&mut self, name: &str) -> &mut Self {
        self.name(name, Kind::Domain)
    }

    fn name(&mut self, name: &str, kind: Kind) -> &mut Self {
        let name = name.strip_suffix('.').unwrap_or(name);
        if !name.is_empty() {
            self.names.push(name, kind);
        }
        self
    }

    /// Names with this text anywhere in them.
    pub fn keyword(&mut self, text: &str) -> &mut Self {
        if (1..=MAX_NAME).contains(&text.len()) {
            self.keywords.push(text.to_owned());
        }
        self
    }

    /// Names in which this regular expression finds something. `\d`, `\w` and `\s` stand for ASCII only.
    pub fn regex(&mut self, pattern: &str) -> &mut Self {
        if !pattern.is_empty() {
            self.patterns.push(pattern.to_owned());
        }
        self
    }

    /// Names without a dot that have this text anywhere in them.
    pub fn dotless(&mut self, text: &str) -> &mut Self {
        if text.len() <= MAX_NAME {
            self.dotless.push(text.into());
        }
        self
    }

    /// The set.
    ///
    /// # Errors
    /// [`Error::Pattern`] for a text that is no regular expression, [`Error::TooLarge`] for expressions that together take
    /// more than [`MAX_PATTERNS`], for texts of more than [`MAX_KEYWORDS`], or for more than a gibibyte of names.
    pub fn build(self) -> Result<NameSet, Error> {
        let table = self.names.build()?;
        let count = table.len() + self.keywords.len() + self.patterns.len() + self.dotless.len();
        let keywords = machine(&self.keywords)?;
        Ok(NameSet {
            table,
            keywords,
            patterns: compile(&self.patterns)?,
            dotless: self.dotless.into(),
            count,
        })
    }
}

/// Looks for all texts at once.
fn machine(texts: &[String]) -> Result<Option<AhoCorasick>, Error> {
    let kind = match texts.iter().map(String::len).sum() {
        0 => return Ok(None),
        1..=FAST_KEYWORDS => AhoCorasickKind::DFA,
        size if size <= MAX_KEYWORDS => AhoCorasickKind::ContiguousNFA,
        _ => return Err(Error::TooLarge),
    };
    let machine = AhoCorasick::builder().kind(Some(kind)).build(texts);
    machine.map(Some).map_err(|_| Error::TooLarge)
}

fn compile(patterns: &[String]) -> Result<Option<RegexSet>, Error> {
    if patterns.is_empty() {
        return Ok(None);
    }
    let set = |patterns: &[String], unicode| {
        RegexSetBuilder::new(patterns)
            .unicode(unicode)
            .size_limit(MAX_PATTERNS)
            .dfa_size_limit(PATTERN_CACHE)
            .build()
    };
    // Names are ASCII, and Unicode makes classes large. Few expressions need it, such as \p{Han}.
    if let Ok(compiled) = set(patterns, false).or_else(|_| set(patterns, true)) {
        return Ok(Some(compiled));
    }
    let alone = patterns.iter().map(std::slice::from_ref);
    for (pattern, one) in patterns.iter().zip(alone) {
        if let Err(error) = set(one, false).or_else(|_| set(one, true)) {
            let why = error.to_string();
            return Err(Error::Pattern {
                pattern: pattern.clone(),
                why: why.lines().last().unwrap_or_default().to_owned(),
            });
        }
    }
    Err(Error::TooLarge)
}

/// Why no set can be made: the fault of who wrote it.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A text is no regular expression, or one that takes too much memory.
    Pattern {
        /// The text.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
    /// All together take too much memory.
    TooLarge,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Pattern { pattern, why } => write!(f, "{pattern:?} is no regular expression: {why}"),
            Error::TooLarge => f.write_str("the names and regular expressions take too much memory"),
        }
    }
}

impl std::error::Error for Error {}
