//! Code phrases: `7-castle-lemon-opera`, a public number and secret words.
//!
//! The number, the nameplate, is where two ends meet, such as at a relay. The words are the secret of the handshake; nothing
//! derived from them is ever used to meet.

use std::error::Error as StdError;
use std::fmt;

use zeroize::Zeroizing;

use crate::words::{WORDS, index_of};

/// Words of a generated phrase: 24 bits, for one guess.
pub const DEFAULT_WORDS: usize = 3;
/// Fewest words of a phrase that somebody made up: 40 bits.
pub const MIN_OWN_WORDS: usize = 5;
/// Most words that are read.
pub const MAX_WORDS: usize = 8;
/// Highest nameplate.
pub const MAX_NAMEPLATE: u32 = 999_999_999;
/// Longest text that is looked at, bytes.
const MAX_TEXT: usize = 256;
/// Longest phrase that is shown: ten digits, and eight letters and a hyphen a word.
const MAX_SHOWN: usize = 10 + 9 * MAX_WORDS;
/// Nameplates that are generated: 1 to this.
const GENERATED_NAMEPLATES: u32 = 9999;
/// Edits within which a word of the list is suggested for a mistyped one.
const SUGGEST_WITHIN: usize = 2;

/// A nameplate and secret words. The words are wiped when it is dropped.
#[derive(Clone)]
pub struct CodePhrase {
    nameplate: u32,
    words: Zeroizing<Vec<u8>>,
}

impl CodePhrase {
    /// A phrase of a nameplate from 1 to 9999 and three words. `random` fills its argument from a cryptographic generator.
    ///
    /// Whoever gives out nameplates, such as a relay, may have given this one already; see
    /// [`CodePhrase::with_nameplate`].
    pub fn generate(random: &mut dyn FnMut(&mut [u8])) -> Self {
        let mut number = [0; 8];
        random(&mut number);
        // 64 bits over a small range: the first numbers are likelier by less than one in 2^50, and it is no secret.
        let nameplate = 1 + u64::from_le_bytes(number) % u64::from(GENERATED_NAMEPLATES);
        Self::with_nameplate(u32::try_from(nameplate).unwrap_or(1), random)
    }

    /// A phrase of this nameplate, at most [`MAX_NAMEPLATE`], and three words. A higher one is lowered to that.
    pub fn with_nameplate(nameplate: u32, random: &mut dyn FnMut(&mut [u8])) -> Self {
        let mut words = Zeroizing::new(vec![0; DEFAULT_WORDS]);
        random(&mut words);
        CodePhrase {
            nameplate: nameplate.min(MAX_NAMEPLATE),
            words,
        }
    }

    /// Reads a phrase as a person types it: any case, words apart by hyphens, spaces or both. It has [`DEFAULT_WORDS`], or
    /// [`MIN_OWN_WORDS`] to [`MAX_WORDS`] if both ends were given one that somebody made up: other lengths are slips.
    ///
    /// # Errors
    /// [`CodeError`] for anything else. It may name a word of the list that is near to what was typed, so it is for the
    /// person who typed, not for a log.
    pub fn parse(text: &str) -> Result<Self, CodeError> {
        if text.len() > MAX_TEXT {
            return Err(CodeError::TooLong);
        }
        let mut parts = text
            .split(|c: char| c == '-' || c.is_whitespace())
            .filter(|p| !p.is_empty());
        let number = parts.next().ok_or(CodeError::Empty)?;
        if !number.bytes().all(|b| b.is_ascii_digit()) {
            return Err(CodeError::NoNameplate);
        }
        let nameplate = number
            .parse()
            .ok()
            .filter(|&n| n <= MAX_NAMEPLATE)
            .ok_or(CodeError::NameplateRange)?;
        let mut words = Zeroizing::new(Vec::with_capacity(MAX_WORDS));
        for (i, part) in parts.enumerate() {
            if i == MAX_WORDS {
                return Err(CodeError::WordCount { got: i + 1 });
            }
            let word = Zeroizing::new(part.to_lowercase());
            let unknown = || CodeError::UnknownWord {
                position: i + 1,
                nearest: nearest(&word),
            };
            words.push(index_of(&word).ok_or_else(unknown)?);
        }
        // A word that was left out or typed twice is noticed here, not by the other end, for whom it would be the one guess.
        if words.len() != DEFAULT_WORDS && words.len() < MIN_OWN_WORDS {
            return Err(CodeError::WordCount { got: words.len() });
        }
        Ok(CodePhrase { nameplate, words })
    }

    /// Whether a text that stands somewhere else was probably meant for a phrase: a number and words of the list, perhaps with slips.
    pub fn is_meant(text: &str) -> bool {
        match Self::parse(text) {
            Ok(_) => true,
            Err(CodeError::WordCount { got }) => got > 0,
            Err(CodeError::UnknownWord { position, .. }) => position > 1,
            Err(_) => false,
        }
    }

    /// The number, which is public.
    pub const fn nameplate(&self) -> u32 {
        self.nameplate
    }

    /// The secret for [`crate::handshake::Auth::Code`]: the words in lower case with hyphens in between, without the
    /// nameplate.
    pub fn secret(&self) -> Zeroizing<Vec<u8>> {
        let mut text = Vec::with_capacity(MAX_SHOWN);
        self.join(&mut text);
        Zeroizing::new(text)
    }

    /// The whole phrase, to be shown to the person who passes it on and to nobody else.
    pub fn reveal(&self) -> Zeroizing<String> {
        // Room for all of it from the start: a string that grows leaves its beginning behind.
        let mut text = Zeroizing::new(String::with_capacity(MAX_SHOWN));
        text.push_str(&self.nameplate.to_string());
        for &byte in self.words.iter() {
            text.push('-');
            text.push_str(WORDS[usize::from(byte)]);
        }
        text
    }

    fn join(&self, text: &mut Vec<u8>) {
        for (i, &byte) in self.words.iter().enumerate() {
            if i > 0 {
                text.push(b'-');
            }
            text.extend_from_slice(WORDS[usize::from(byte)].as_bytes());
        }
    }
}

impl fmt::Debug for CodePhrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CodePhrase({}, {} words)", self.nameplate, self.words.len())
    }
}

/// The words of the list that begin so, in the order of the alphabet; `begun` is in lower case.
pub fn words_beginning(begun: &str) -> impl Iterator<Item = &'static str> {
    WORDS.iter().copied().filter(move |word| word.starts_with(begun))
}

/// The one word of the list that is near to a mistyped one.
fn nearest(word: &str) -> Option<&'static str> {
    // Nothing on the list is longer than 8 letters; comparing takes the product of both lengths.
    if word.len() > 16 {
        return None;
    }
    // Words that begin alike: the first three letters say which word is meant.
    let start = word.get(..3);
    let mut near = WORDS.iter().map(|&known| {
        let same_start = start.is_some() && known.get(..3) == start;
        (
            if same_start {
                0
            } else {
                strsim::osa_distance(word, known)
            },
            known,
        )
    });
    let first = near.next()?;
    let (distance, known) = near.fold(first, |best, next| if next.0 < best.0 { next } else { best });
    (distance <= SUGGEST_WITHIN).then_some(known)
}

/// Why a text is no code phrase. For the person who typed it: a nearby word is nearly a secret.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum CodeError {
    /// Nothing was given.
    Empty,
    /// More than 256 bytes.
    TooLong,
    /// It does not begin with a number.
    NoNameplate,
    /// The number is above [`MAX_NAMEPLATE`].
    NameplateRange,
    /// Neither [`DEFAULT_WORDS`] nor [`MIN_OWN_WORDS`] to [`MAX_WORDS`] words.
    WordCount {
        /// Words counted, at most one more than allowed.
        got: usize,
    },
    /// A word that is not on the list.
    UnknownWord {
        /// Which word, counted from 1 after the number.
        position: usize,
        /// The word of the list that was probably meant.
        nearest: Option<&'static str>,
    },
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CodeError::Empty => f.write_str("no code phrase; it looks like 7-castle-lemon-opera"),
            CodeError::TooLong => write!(f, "a code phrase has at most {MAX_TEXT} bytes"),
            CodeError::NoNameplate => f.write_str("a code phrase begins with a number, as in 7-castle-lemon-opera"),
            CodeError::NameplateRange => write!(f, "the number of a code phrase is at most {MAX_NAMEPLATE}"),
            CodeError::WordCount { got } => write!(
                f,
                "a code phrase has {DEFAULT_WORDS} words after the number, or {MIN_OWN_WORDS} to {MAX_WORDS} where somebody made it up, not {got}"
            ),
            CodeError::UnknownWord { position, nearest } => {
                write!(f, "word {position} of the code phrase is not on the list")?;
                match nearest {
                    Some(word) => write!(f, "; did you mean \"{word}\"?"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl StdError for CodeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_in_the_wrong_place_is_told_from_a_name() {
        for meant in [
            "7-castle-lemon-opera",
            "7-castle-lemon",
            "7 Castle",
            "7-castle-lemmon-opera",
        ] {
            assert!(CodePhrase::is_meant(meant), "{meant}");
        }
        for name in [
            "",
            "7",
            "2024",
            "2024-invoices",
            "castle-lemon-opera",
            "out",
            "./7-castle",
            "a-castle",
        ] {
            assert!(!CodePhrase::is_meant(name), "{name}");
        }
    }

    #[test]
    fn what_is_shown_is_read_again() {
        let mut next = 0u8;
        let mut random = |out: &mut [u8]| {
            for byte in out {
                next = next.wrapping_mul(29).wrapping_add(71);
                *byte = next;
            }
        };
        for _ in 0..200 {
            let phrase = CodePhrase::generate(&mut random);
            let read = CodePhrase::parse(&phrase.reveal()).unwrap();
            assert!((1..=9999).contains(&read.nameplate()));
            assert_eq!(read.nameplate(), phrase.nameplate());
            assert_eq!(read.secret(), phrase.secret());
        }
    }

    #[test]
    fn people_type_in_many_ways() {
        let secret = |text: &str| CodePhrase::parse(text).unwrap().secret();
        let plain = secret("7-castle-lemon-opera");
        assert_eq!(**plain, *b"castle-lemon-opera");
        for text in [
            "7 castle lemon opera",
            "  7-Castle-LEMON - opera\n",
            "0007--castle\tlemon-opera-",
        ] {
            assert_eq!(secret(text), plain, "{text}");
        }
        assert_eq!(
            secret("8-castle-lemon-opera"),
            plain,
            "the nameplate is no part of the secret"
        );
    }

    #[test]
    fn everything_else_is_refused_with_a_reason() {
        let error = |text: &str| CodePhrase::parse(text).unwrap_err();
        assert_eq!(error(" - "), CodeError::Empty);
        assert_eq!(error("castle-lemon"), CodeError::NoNameplate);
        assert_eq!(error("1000000000-castle-lemon"), CodeError::NameplateRange);
        assert_eq!(
            error(&format!("{}-castle-lemon", "9".repeat(100))),
            CodeError::NameplateRange
        );
        for got in [1, 2, 4, 9] {
            let text = format!("7{}", "-lemon".repeat(got));
            assert_eq!(error(&text), CodeError::WordCount { got }, "{text}");
        }
        for words in [3, 5, 8] {
            let text = format!("7{}", "-lemon".repeat(words));
            assert!(CodePhrase::parse(&text).is_ok(), "{text}");
        }
        assert_eq!(error(&"7-".repeat(200)), CodeError::TooLong);
        let unknown = |position, nearest| CodeError::UnknownWord { position, nearest };
        assert_eq!(error("7-castle-lemmon-opera"), unknown(2, Some("lemon")));
        assert_eq!(error("7-cas-lemon-opera"), unknown(1, Some("castle")));
        assert_eq!(error("7-castle-lemon-xxxxxxxx"), unknown(3, None));
        assert_eq!(error(&format!("7-castle-{}", "é".repeat(90))), unknown(2, None));
        assert_eq!(error("7-éé-lemon"), unknown(1, None));
        let text = error("7-castle-lemmon-opera").to_string();
        assert_eq!(
            text,
            "word 2 of the code phrase is not on the list; did you mean \"lemon\"?"
        );
    }

    #[test]
    fn words_are_found_by_how_they_begin() {
        let words = |begun| words_beginning(begun).collect::<Vec<_>>();
        assert_eq!(words("castl"), ["castle"]);
        assert!(words("zz").is_empty());
        let all = words("");
        assert_eq!(all.len(), 256);
        assert!(all.is_sorted(), "what completes words relies on it");
    }

    #[test]
    fn debug_shows_no_word() {
        let shown = format!("{:?}", CodePhrase::parse("7-castle-lemon-opera").unwrap());
        assert_eq!(shown, "CodePhrase(7, 3 words)");
    }
}
