//! Codes: what is done with one that was typed, and what is shown of one that was made.

use sealway_session::code::{CodeError, CodePhrase};
use zeroize::Zeroizing;

use super::{Refused, Source};
use crate::Error;

/// What somebody entered where a code was asked for.
#[derive(Debug)]
pub enum Entered {
    /// A code.
    Code(CodePhrase),
    /// None, and the one who typed it is asked again: nothing was sent, so no guess is spent.
    Again(CodeError),
}

/// What becomes of a line that was given for a code.
///
/// # Errors
/// [`Refused::NoCode`] if it is empty; [`Refused::Mistyped`] where nobody can be asked again.
pub fn entered(line: &str, source: Source) -> Result<Entered, Refused> {
    if line.is_empty() {
        return Err(Refused::NoCode {
            asked: source == Source::Typed,
        });
    }
    match CodePhrase::parse(line) {
        Ok(code) => Ok(Entered::Code(code)),
        Err(mistyped) if source == Source::Typed => Ok(Entered::Again(mistyped)),
        Err(mistyped) => Err(Refused::Mistyped(mistyped)),
    }
}

/// Whether a code is asked for again after this: it was typed, and nobody waits under its number, so that no guess was made.
pub fn is_asked_again(error: &Error, source: Option<Source>) -> bool {
    source == Some(Source::Typed) && error.is_unknown_number()
}

/// The code that is shown where a relay gives the number: that number and the words.
pub fn numbered(code: &CodePhrase, number: u32) -> Zeroizing<String> {
    let shown = code.reveal();
    let words = shown.split_once('-').map_or("", |(_, words)| words);
    Zeroizing::new(format!("{number}-{words}"))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::error::ASKING;

    const GOOD: &str = "7-castle-lemon-opera";

    #[test]
    fn a_slip_is_asked_about_again_where_somebody_types_and_refused_elsewhere() {
        for source in [Source::Typed, Source::Read, Source::Given] {
            assert!(matches!(entered(GOOD, source), Ok(Entered::Code(_))), "{source:?}");
            let Err(none @ Refused::NoCode { .. }) = entered("", source) else {
                panic!("{source:?}");
            };
            // Nobody is told to type where nobody can.
            let hint = none.hint().unwrap_or_default();
            assert_eq!(hint.contains("type it when asked"), source == Source::Typed, "{hint}");
            for line in [
                "7-castle-lemon",
                "castle-lemon-opera",
                "7-castle-lemon-oprea",
                "nonsense",
                " ",
            ] {
                match (entered(line, source), source) {
                    (Ok(Entered::Again(_)), Source::Typed) => {}
                    (Err(Refused::Mistyped(_)), Source::Read | Source::Given) => {}
                    (came, _) => panic!("{source:?} {line}: {came:?}"),
                }
            }
        }
    }

    #[test]
    fn a_number_under_which_nobody_waits_spends_no_guess() {
        let of_relay = |kind: io::ErrorKind| Error::Network {
            doing: format!("{ASKING} 192.0.2.1:26600"),
            source: kind.into(),
        };
        let unknown = of_relay(io::ErrorKind::NotFound);
        assert!(is_asked_again(&unknown, Some(Source::Typed)));
        for source in [None, Some(Source::Given), Some(Source::Read), Some(Source::Made)] {
            assert!(!is_asked_again(&unknown, source), "{source:?}: there is nobody to ask");
        }
        for error in [of_relay(io::ErrorKind::TimedOut), Error::CodeSpent, Error::Cancelled] {
            assert!(!is_asked_again(&error, Some(Source::Typed)), "{error}");
        }
    }

    #[test]
    fn the_relay_gives_the_number_and_this_end_the_words() {
        let code = CodePhrase::parse(GOOD).expect("a code");
        assert_eq!(*numbered(&code, 1234), "1234-castle-lemon-opera");
    }
}
