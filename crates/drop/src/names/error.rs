//! Why a name is refused.

use std::error::Error;
use std::fmt;

use super::{Escaped, MAX_COMPONENT, MAX_DEPTH, MAX_PATH};

/// A name or a path that is refused.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum NameError {
    /// A component without bytes.
    Empty,
    /// A component that is `.` or `..`.
    Dots,
    /// A component over [`MAX_COMPONENT`].
    Long {
        /// Its length.
        bytes: usize,
    },
    /// A component with something in it that is not allowed.
    Forbidden {
        /// The component.
        name: Box<[u8]>,
        /// What it has or is.
        reason: &'static str,
    },
    /// A component that is the name of a staging folder.
    Reserved {
        /// The component.
        name: Box<[u8]>,
    },
    /// A path of no components.
    NoComponents,
    /// A path of more than [`MAX_DEPTH`] components.
    Deep,
    /// A path over [`MAX_PATH`].
    LongPath,
    /// The bytes end within the path.
    Truncated,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameError::Empty => f.write_str("a name is empty"),
            NameError::Dots => f.write_str("a name is \".\" or \"..\""),
            NameError::Long { bytes } => write!(f, "a name has {bytes} bytes, more than {MAX_COMPONENT}"),
            NameError::Forbidden { name, reason } => write!(f, "the name {} has or is {reason}", Escaped(name)),
            NameError::Reserved { name } => {
                write!(
                    f,
                    "the name {} is reserved for folders of unfinished transfers",
                    Escaped(name)
                )
            }
            NameError::NoComponents => f.write_str("a path is empty"),
            NameError::Deep => write!(f, "a path is deeper than {MAX_DEPTH} folders"),
            NameError::LongPath => write!(f, "a path has more than {MAX_PATH} bytes"),
            NameError::Truncated => f.write_str("a path is cut off"),
        }
    }
}

impl Error for NameError {}
