//! What is told to the user when a command cannot do its work.

use std::fmt::Display;
use std::io::Write;

use crate::exit::Exit;

/// One error message with its exit code, and a hint where one helps.
#[derive(Debug)]
pub(crate) struct Problem {
    exit: Exit,
    message: String,
    hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(exit: Exit, message: impl Display) -> Self {
        Problem {
            exit,
            message: message.to_string(),
            hint: None,
        }
    }

    /// The command line or a configuration is wrong.
    pub(crate) fn usage(message: impl Display) -> Self {
        Problem::new(Exit::Usage, message)
    }

    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }

    /// With a hint, if there is one.
    pub(crate) fn hint_if(self, hint: Option<impl Display>) -> Self {
        match hint {
            Some(hint) => self.hint(hint),
            None => self,
        }
    }

    /// The system gives no random bytes.
    pub(crate) fn no_random_bytes(error: getrandom::Error) -> Self {
        Problem::new(Exit::Internal, format!("the system gives no random bytes: {error}"))
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
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

/// What is ours cannot be written as JSON.
impl From<serde_json::Error> for Problem {
    fn from(error: serde_json::Error) -> Problem {
        Problem::new(Exit::Internal, error)
    }
}

/// Prints a remark to standard error.
pub(crate) fn note(text: impl Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
