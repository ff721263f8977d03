//! The result file on disk: written whole or not at all, and read with suspicion.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sealway_net::replace::{self, WriteError};
use serde::Deserialize;
use serde_json::Value;
use serde_json::error::Category;

use crate::result::{RunResult, SCHEMA};

/// The largest result file that is read or written: 64 MiB. The longest run of the lab stays far below it; a larger
/// file is not a result.
pub const MAX_BYTES: u64 = 64 << 20;

/// Why a result file could not be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum ReadError {
    /// The system refused to open or read it: the path or the environment is at fault.
    Io {
        /// The path as given.
        path: PathBuf,
        /// The system's own error.
        source: io::Error,
    },
    /// It is larger than [`MAX_BYTES`].
    TooLarge {
        /// The path as given.
        path: PathBuf,
    },
    /// It is not JSON, or it ends too early.
    NotJson {
        /// The path as given.
        path: PathBuf,
        /// Line of the fault, from 1.
        line: usize,
        /// Column of the fault, from 1.
        column: usize,
        /// What was expected there.
        what: String,
    },
    /// It is JSON, but not a result of the lab, or a part of it has the wrong shape.
    NotAResult {
        /// The path as given.
        path: PathBuf,
        /// Line of the fault, from 1; 0 when the whole file is meant.
        line: usize,
        /// Column of the fault, from 1; 0 when the whole file is meant.
        column: usize,
        /// What is wrong.
        what: String,
    },
    /// A newer version of the lab wrote it, in a format this one does not know.
    NewerSchema {
        /// The path as given.
        path: PathBuf,
        /// The schema number in the file.
        found: u64,
    },
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ReadError::Io { path, .. }
        | ReadError::TooLarge { path }
        | ReadError::NotJson { path, .. }
        | ReadError::NotAResult { path, .. }
        | ReadError::NewerSchema { path, .. }) = self;
        let path = path.display();
        match self {
            ReadError::Io { source, .. } => {
                write!(f, "cannot read {path}: {source}. Check the path and your rights to it")
            }
            ReadError::TooLarge { .. } => {
                let limit = MAX_BYTES >> 20;
                write!(f, "{path}: larger than {limit} MiB, so not a result file of the lab")
            }
            ReadError::NotJson { line, column, what, .. } => write!(
                f,
                "{path}:{line}:{column}: not JSON: {what}. Was the file cut off or edited? Take another copy"
            ),
            ReadError::NotAResult { line: 0, what, .. } => write!(
                f,
                "{path}: not a result file: {what}. Name a file that `sealway lab --json` wrote"
            ),
            ReadError::NotAResult { line, column, what, .. } => write!(
                f,
                "{path}:{line}:{column}: not a result file: {what}. Name one that `sealway lab --json` wrote"
            ),
            ReadError::NewerSchema { found, .. } => write!(
                f,
                "{path}: written in schema {found}; this version reads up to {SCHEMA}. Use a newer sealway"
            ),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ReadError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Writes a run to `path`: one JSON object, indented, UTF-8, ending in a newline. See [`replace::replace_with`] for what
/// happens to an older file.
///
/// The text is read back before it is written, so that a file in place is always one that [`read`] accepts.
///
/// # Errors
/// [`WriteError`]; the older file, if any, is then as it was.
pub fn write(path: &Path, run: &RunResult) -> Result<(), WriteError> {
    let refuse = |what: String| WriteError::Encode {
        path: path.to_owned(),
        what,
    };
    let mut text = serde_json::to_vec_pretty(run).map_err(|error| refuse(error.to_string()))?;
    text.push(b'\n');
    if text.len() as u64 > MAX_BYTES {
        return Err(refuse(format!(
            "the result has {} bytes, more than readers take",
            text.len()
        )));
    }
    parse(path, &text).map_err(|error| refuse(format!("the result could not be read back ({error})")))?;
    replace::replace(path, &text)
}

/// Reads the result at `path`, at most [`MAX_BYTES`] of it.
///
/// # Errors
/// [`ReadError`], with the line and column where the file itself is at fault.
pub fn read(path: &Path) -> Result<RunResult, ReadError> {
    let failed = |source| ReadError::Io {
        path: path.to_owned(),
        source,
    };
    let file = File::open(path).map_err(failed)?;
    let mut text = Vec::new();
    // Not the length from the metadata: that is 0 for a pipe, and may grow meanwhile.
    file.take(MAX_BYTES + 1).read_to_end(&mut text).map_err(failed)?;
    parse(path, &text)
}

/// Reads a result from text that came from `path`, which is only used in errors.
///
/// # Errors
/// As [`read`].
pub fn parse(path: &Path, text: &[u8]) -> Result<RunResult, ReadError> {
    /// The part of the file that says whether the rest can be understood.
    #[derive(Deserialize)]
    struct Head {
        schema: Option<Value>,
        run: Option<Value>,
    }

    if text.len() as u64 > MAX_BYTES {
        return Err(ReadError::TooLarge { path: path.to_owned() });
    }
    let whole = |what: String| ReadError::NotAResult {
        path: path.to_owned(),
        line: 0,
        column: 0,
        what,
    };
    if text.iter().all(u8::is_ascii_whitespace) {
        return Err(whole("it is empty".to_owned()));
    }
    let head: Head = serde_json::from_slice(text).map_err(|error| located(path, &error))?;
    match (head.schema.as_ref().map(Value::as_u64), head.run) {
        (Some(Some(found)), _) if found > u64::from(SCHEMA) => {
            return Err(ReadError::NewerSchema {
                path: path.to_owned(),
                found,
            });
        }
        (Some(Some(1..)), Some(_)) => {}
        (Some(Some(1..)), None) => return Err(whole("it has no `run`".to_owned())),
        (Some(_), _) => return Err(whole("its `schema` is not a positive integer".to_owned())),
        (None, _) => return Err(whole("it has no `schema`".to_owned())),
    }
    serde_json::from_slice(text).map_err(|error| located(path, &error))
}

fn located(path: &Path, error: &serde_json::Error) -> ReadError {
    let (line, column) = (error.line(), error.column());
    let mut what = error.to_string();
    // The library appends the place to its text; the place is already in front of ours.
    if let Some(end) = what.rfind(" at line ") {
        what.truncate(end);
    }
    let path = path.to_owned();
    match error.classify() {
        Category::Data => ReadError::NotAResult {
            path,
            line,
            column,
            what,
        },
        Category::Syntax | Category::Eof | Category::Io => ReadError::NotJson {
            path,
            line,
            column,
            what,
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn error(text: &str) -> ReadError {
        parse(Path::new("a.json"), text.as_bytes()).unwrap_err()
    }

    #[test]
    fn faults_are_located() {
        let cut = error("{\"schema\": 1,\n \"run\": \"x\",\n \"started\": ");
        assert!(matches!(cut, ReadError::NotJson { line: 3, .. }), "{cut:?}");
        assert!(cut.to_string().starts_with("a.json:3:"), "{cut}");
        let wrong = error("{\"schema\": 1, \"run\": \"x\",\n\"started\": 5}");
        assert!(matches!(wrong, ReadError::NotAResult { line: 2, .. }), "{wrong:?}");
        assert!(!wrong.to_string().contains(" at line "), "{wrong}");
    }

    #[test]
    fn other_files_are_refused_by_name() {
        assert!(matches!(error(" \n"), ReadError::NotAResult { line: 0, .. }));
        assert!(error("{}").to_string().contains("no `schema`"));
        assert!(error("{\"schema\": 1}").to_string().contains("no `run`"));
        assert!(
            error("{\"schema\": \"1\", \"run\": 1}")
                .to_string()
                .contains("positive integer")
        );
        assert!(
            error("{\"schema\": 0, \"run\": 1}")
                .to_string()
                .contains("positive integer")
        );
        assert!(matches!(error("[]"), ReadError::NotAResult { .. }));
        assert!(matches!(error("hello"), ReadError::NotJson { line: 1, .. }));
    }

    #[test]
    fn a_newer_schema_is_said_even_if_its_shape_is_unknown() {
        let newer = error("{\"schema\": 2, \"everything\": \"else\"}");
        assert!(matches!(newer, ReadError::NewerSchema { found: 2, .. }), "{newer:?}");
        assert!(newer.to_string().contains("Use a newer sealway"), "{newer}");
    }

    #[test]
    fn an_endless_file_is_not_swallowed() {
        let zero = Path::new("/dev/zero");
        if zero.exists() {
            assert!(matches!(read(zero), Err(ReadError::TooLarge { .. })));
        } else {
            eprintln!("skipped: no /dev/zero here");
        }
        assert!(matches!(read(Path::new("/no/such/file")), Err(ReadError::Io { .. })));
    }
}
