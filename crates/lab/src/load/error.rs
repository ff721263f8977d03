//! Why a generator has no figures.

use std::fmt;
use std::io;

use crate::run::CellError;

/// Why there are no figures.
#[derive(Debug)]
pub(crate) enum LoadError {
    /// Other bytes came than were sent.
    Wrong { what: String },
    /// The subject does not answer.
    Failed { what: String },
    /// This end lacks something.
    Generator { doing: &'static str, source: io::Error },
}

impl LoadError {
    /// What this end was doing when the system refused.
    pub(crate) fn generator(doing: &'static str) -> impl FnOnce(io::Error) -> LoadError {
        move |source| LoadError::Generator { doing, source }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Wrong { what } | LoadError::Failed { what } => f.write_str(what),
            LoadError::Generator { doing, source } => write!(f, "the generator cannot {doing}: {source}"),
        }
    }
}

impl From<LoadError> for CellError {
    fn from(error: LoadError) -> CellError {
        match error {
            LoadError::Wrong { .. } => CellError::wrong(error),
            LoadError::Failed { .. } | LoadError::Generator { .. } => CellError::failed(error),
        }
    }
}
