//! The other end: the words and flags of `xray api`.

mod connect;
mod flags;
mod words;

use std::fmt;

pub use words::{WORDS, Word};

use connect::Caller;
use flags::Flags;

/// Why a command did not do what it was asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Failed {
    /// The command line is wrong.
    Usage(String),
    /// The server cannot be reached, or refuses.
    Server(String),
    /// A file cannot be read, or is wrong.
    File(String),
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failed::Usage(text) | Failed::Server(text) | Failed::File(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for Failed {}

/// Does what a command line says, from its word on: `statsquery --server=127.0.0.1:8080 -pattern user`. Lines for standard
/// output go to `print`, each with its end.
///
/// Must be called within a tokio runtime with time and I/O.
///
/// # Errors
/// [`Failed`]; what was printed before stays.
pub async fn run(arguments: &[String], print: &mut (dyn FnMut(&str) + Send)) -> Result<(), Failed> {
    let Some((word, rest)) = arguments.split_first() else {
        return Err(Failed::Usage(usage()));
    };
    let Some(word) = WORDS.iter().find(|known| known.name == word) else {
        return Err(Failed::Usage(format!("there is no command {word:?}\n{}", usage())));
    };
    // Help is shown only if all that stands before it is known to the word.
    let (rest, help) = match rest.split_last() {
        Some((last, before)) if ["-h", "-help", "--help"].contains(&last.as_str()) => (before, true),
        _ => (rest, false),
    };
    let flags = Flags::read(rest, word.flags)?;
    if help {
        print(&format!("{}: {}\n", word.name, word.help));
        return Ok(());
    }
    let caller = Caller::new(&flags)?;
    words::run(word.name, &flags, &caller, print).await
}

fn usage() -> String {
    let words: Vec<_> = WORDS.iter().map(|word| word.name).collect();
    format!("commands: {}", words.join(", "))
}
