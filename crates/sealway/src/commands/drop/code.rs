//! The code of the other end, typed on a terminal: Tab completes its words.
//!
//! A library that edits lines would wait for the next key whatever happens, and keep what was typed. Here a signal, or the end of the
//! transfer, ends the question, and what was typed is wiped.

use std::io::Stdin;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use sealway_drop::Error;
use sealway_drop::cancel::Cancel;
use sealway_drop::typing::{Line, Typed};
use sealway_session::code::CodePhrase;
use zeroize::Zeroizing;

use super::asking::{ask, read, say};

/// What to say of a path that is not there and is probably the code of the other end, for which `command` asks.
pub(super) fn in_place_of(path: &Path, command: &str) -> Option<String> {
    let is_code = path.to_str().is_some_and(CodePhrase::is_meant);
    is_code.then(|| format!("this looks like a code: `{command}` asks for it"))
}

/// How the terminal was set before a code was asked for.
static BEFORE: Mutex<Option<Termios>> = Mutex::new(None);

/// Sets the terminal as it was, if a code is being asked for; for who leaves without an end of the question.
pub(super) fn restore() {
    if let Some(before) = BEFORE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &before);
    }
}

struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives every key as it is typed, unseen, but for those that make signals.
fn every_key(terminal: &Stdin) -> Option<Restore> {
    let before = tcgetattr(terminal).ok()?;
    let mut keys = before.clone();
    keys.local_modes
        .remove(LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN);
    keys.special_codes[SpecialCodeIndex::VMIN] = 1;
    keys.special_codes[SpecialCodeIndex::VTIME] = 0;
    *BEFORE.lock().unwrap_or_else(PoisonError::into_inner) = Some(before);
    let restore = Restore;
    // What was typed ahead counts.
    tcsetattr(terminal, OptionalActions::Now, &keys).ok()?;
    Some(restore)
}

/// Asks for a code on a terminal; empty at its end.
///
/// # Errors
/// [`Error::Cancelled`] soon after `cancel` was thrown.
pub(super) fn ask_typed(question: &str, cancel: &Cancel) -> Result<Zeroizing<String>, Error> {
    let terminal = std::io::stdin();
    let Some(_restore) = every_key(&terminal) else {
        return ask(question, cancel);
    };
    say(question);
    let mut line = Line::new();
    loop {
        let mut key = Zeroizing::new([0; 1]);
        let count = read(&terminal, &mut key[..], cancel).inspect_err(|_| say("\n"))?;
        match line.handle_byte(key[0]) {
            _ if count == 0 => break,
            Typed::Show(text) => say(&text),
            Typed::List(words) => {
                say(&format!("\n{}\n{question}", words.join("  ")));
                say(line.text());
            }
            Typed::Done => break,
        }
    }
    say("\n");
    Ok(line.into_text())
}
