//! What is wrong with a configuration, and where.

use std::fmt;

/// A place in one of the files. Lines and columns count from 1; a column is a character, not a byte.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Position {
    /// Which of the files given to [`load`](crate::config::load), from 0.
    pub file: u16,
    /// Line.
    pub line: u32,
    /// Column.
    pub column: u32,
}

/// A value and where it was written. A default stands at the place of the object that lacks the key.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct At<T> {
    /// The value.
    pub value: T,
    /// Where it was written.
    pub at: Position,
}

impl<T> std::ops::Deref for At<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// How bad a [`Problem`] is.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Severity {
    /// The configuration works, though not everything in it has an effect.
    Warning,
    /// The configuration cannot be used.
    Error,
}

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// Name of the file, as the caller gave it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// The key, as in `inbounds[0].settings.clients[1].id`. Empty at the top of a file.
    pub path: String,
    /// What is wrong.
    pub text: String,
    /// What to do about it. Empty if the text says it all.
    pub hint: String,
}

impl fmt::Display for Problem {
    /// `config.json:12:5: error: inbounds[0].port: … (…)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "{}:{}:{}: {severity}: ", self.file, self.line, self.column)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.text)?;
        if !self.hint.is_empty() {
            write!(f, " ({})", self.hint)?;
        }
        Ok(())
    }
}
