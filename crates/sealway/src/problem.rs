//! What is told to the user when a command cannot do its work.

use std::fmt::Display;
use std::io::Write;

use sealway_lab::exit::Exit;

/// One error message with its exit code, and a hint where one helps.
#[derive(Debug)]
pub(crate) struct Problem {
    exit: Exit,
    message: String,
    hint: Option<String>,
    /// Programs were told by other means.
    told: bool,
}

impl Problem {
    pub(crate) fn new(exit: Exit, message: impl Display) -> Self {
        Problem {
            exit,
            message: message.to_string(),
            hint: None,
            told: false,
        }
    }

    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Says that programs know; true if they did already.
    pub(crate) fn tell(&mut self) -> bool {
        std::mem::replace(&mut self.told, true)
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// Prints to standard error; there is nobody to tell when that fails.
    pub(crate) fn print(&self) {
        let mut stderr = std::io::stderr().lock();
        let _ = writeln!(stderr, "error: {}", self.message);
        if let Some(hint) = &self.hint {
            let _ = writeln!(stderr, "  hint: {hint}");
        }
    }
}

/// Prints a remark to standard error.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
