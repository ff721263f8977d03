//! Which kept run is meant by a word.

use std::fmt;

use super::Kept;

/// The word for the newest run.
const LAST: &str = "last";

/// Characters of an identifier from which it is one: its first group.
const LEAST_IDENTIFIER: usize = 8;

/// Why a word means no run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FindError {
    /// No run is called that.
    Nothing(String),
    /// A run is, but none of the workloads that it is to be compared with.
    NoPartner {
        /// The word.
        word: String,
        /// The workloads.
        workloads: String,
    },
    /// The identifiers of several runs begin like that.
    Several(String),
}

impl fmt::Display for FindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FindError::Nothing(word) => write!(f, "{word}: no kept run has this number, name or branch"),
            FindError::NoPartner { word, workloads } => {
                write!(f, "{word}: no other whole run of it has measured {workloads}")
            }
            FindError::Several(word) => write!(f, "{word}: several runs have an identifier that begins like this"),
        }
    }
}

impl std::error::Error for FindError {}

/// Whether a word can mean one run only: a number, or the beginning of an identifier.
pub fn is_exact(word: &str) -> bool {
    is_number(word) || is_identifier(word)
}

/// The run that `word` means, of a list whose newest is first: its number; at least eight characters of its identifier; `last`
/// for the newest; the name or the branch of a run, of which the newest is meant.
///
/// With `beside`, the run that it is to be compared with, the last three mean a whole run of the same workloads that is not the
/// same run, of the same machine and profile if there is one.
///
/// # Errors
/// [`FindError`].
pub fn find<'a>(kept: &'a [Kept], word: &str, beside: Option<&Kept>) -> Result<&'a Kept, FindError> {
    if is_number(word)
        && let Some(found) = kept.iter().find(|run| run.id.to_string() == word)
    {
        return Ok(found);
    }
    if is_identifier(word) {
        let mut found = kept.iter().filter(|run| run.run.starts_with(word));
        match (found.next(), found.next()) {
            (Some(found), None) => return Ok(found),
            (Some(_), Some(_)) => return Err(FindError::Several(word.to_owned())),
            _ => {}
        }
    }
    let is = |text: &Option<String>| text.as_deref() == Some(word);
    let named = kept.iter().any(|run| is(&run.label.name));
    let called = |run: &&Kept| match named {
        _ if word == LAST => true,
        true => is(&run.label.name),
        false => is(&run.label.branch),
    };
    let nothing = || FindError::Nothing(word.to_owned());
    let Some(beside) = beside else {
        return kept.iter().find(called).ok_or_else(nothing);
    };
    let fits = |run: &&Kept| run.workloads == beside.workloads && run.run != beside.run && run.complete;
    let alike = |run: &&Kept| run.machine == beside.machine && run.profile == beside.profile;
    let mut partners = kept.iter().filter(called).filter(fits);
    let first = partners.clone().next();
    let found = partners.find(alike).or(first);
    found.ok_or_else(|| match kept.iter().any(|run| called(&run)) {
        false => nothing(),
        true => FindError::NoPartner {
            word: word.to_owned(),
            workloads: beside.workloads.clone(),
        },
    })
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_identifier(word: &str) -> bool {
    word.len() >= LEAST_IDENTIFIER && word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
}
