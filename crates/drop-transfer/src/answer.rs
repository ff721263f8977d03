//! What people answer to the questions of a transfer.
//!
//! An answer counts only if it is clear. One that is not is asked for again: a slip of the finger must not spend a code or replace a
//! file.

use crate::dest::Answer;

/// What was answered to `[y/N]`: nothing at all is no. `None` if it is unclear.
pub fn yes_or_no(text: &str) -> Option<bool> {
    match text.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "" | "n" | "no" => Some(false),
        _ => None,
    }
}

/// What was answered to the question whether to take what is offered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Take {
    /// It is wanted.
    Yes,
    /// It is not wanted.
    No,
    /// All names that are known are to be listed before that is said.
    List,
}

/// As [`yes_or_no`], and `l` or `list`.
pub fn take(text: &str) -> Option<Take> {
    match text.trim().to_lowercase().as_str() {
        "l" | "list" => Some(Take::List),
        text => yes_or_no(text).map(|yes| if yes { Take::Yes } else { Take::No }),
    }
}

/// What becomes of a file whose name is taken, and whether that is the answer for all that follow. `None` if it is unclear.
///
/// A letter in upper case, and a word all in upper case, is for all.
pub fn conflict(text: &str) -> Option<(Answer, bool)> {
    let text = text.trim();
    let answer = match text.to_lowercase().as_str() {
        "r" | "rename" => Answer::Rename,
        "s" | "skip" => Answer::Skip,
        "o" | "overwrite" => Answer::Overwrite,
        _ => return None,
    };
    let for_all = text.chars().all(char::is_uppercase);
    // `Rename` may be either.
    let clear = for_all || text.chars().all(char::is_lowercase);
    clear.then_some((answer, for_all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_spelling_of_yes_is_one_and_a_slip_is_neither() {
        for text in ["y", "Y", "yes", "YES", "Yes", "  yes ", "\ty\r"] {
            assert_eq!((yes_or_no(text), take(text)), (Some(true), Some(Take::Yes)), "{text:?}");
        }
        for text in ["", " ", "n", "N", "no", "NO "] {
            assert_eq!((yes_or_no(text), take(text)), (Some(false), Some(Take::No)), "{text:?}");
        }
        for text in ["u", "yy", "yes please", "1", "j", "ye", "nope"] {
            assert_eq!((yes_or_no(text), take(text)), (None, None), "{text:?}");
        }
        assert_eq!((take("L"), take("list ")), (Some(Take::List), Some(Take::List)));
    }

    #[test]
    fn conflicts_are_answered_once_or_for_all() {
        for (text, answer, for_all) in [
            ("r", Answer::Rename, false),
            (" R ", Answer::Rename, true),
            ("skip", Answer::Skip, false),
            ("SKIP", Answer::Skip, true),
            ("o", Answer::Overwrite, false),
            ("O", Answer::Overwrite, true),
        ] {
            assert_eq!(conflict(text), Some((answer, for_all)), "{text:?}");
        }
        for text in ["", "y", "Rename", "oo", "overwrit"] {
            assert_eq!(conflict(text), None, "{text:?}");
        }
    }
}
