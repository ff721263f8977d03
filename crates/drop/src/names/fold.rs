//! When two names are one file.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

use super::RelPath;
use super::escape::ignorable;

/// Which differences between names a file system does not see.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Folding {
    /// Upper and lower case are one.
    pub case: bool,
    /// Forms of Unicode normalisation are one.
    pub normal: bool,
}

impl Folding {
    /// A file system that tells all byte strings apart.
    pub const NONE: Folding = Folding {
        case: false,
        normal: false,
    };

    /// Bytes that are equal for two paths exactly if they would be one file.
    ///
    /// Where a file system folds, its own tables are not known here; the key merges what any of them merges, and so may call
    /// two names twins that are not, as `i` and `ı`. Names that are no UTF-8 are compared as they are.
    pub fn key(self, path: &RelPath) -> Vec<u8> {
        if self == Folding::NONE {
            return path.key().to_vec();
        }
        let mut key = Vec::with_capacity(path.key().len());
        for component in path.components() {
            // No component has a slash, so joined keys are different where components are.
            match std::str::from_utf8(component) {
                Ok(text) => key.extend_from_slice(self.fold(text).as_bytes()),
                Err(_) => key.extend_from_slice(component),
            }
            key.push(b'/');
        }
        key
    }

    /// A component as [`Folding::key`] has it: one that is no UTF-8 as it is.
    pub fn name(self, name: &[u8]) -> Cow<'_, [u8]> {
        match std::str::from_utf8(name) {
            Ok(text) if self != Folding::NONE => Cow::Owned(self.fold(text).into_bytes()),
            _ => Cow::Borrowed(name),
        }
    }

    fn fold(self, text: &str) -> String {
        if !self.case {
            return text.nfc().collect();
        }
        // Down, up and down again is Unicode's full case folding, and merges a little more: the first step takes capital
        // sharp s to the small one, the second that to SS.
        let seen = text.nfd().filter(|c| !ignorable(*c));
        let folded = seen
            .flat_map(char::to_lowercase)
            .flat_map(char::to_uppercase)
            .flat_map(char::to_lowercase);
        folded.collect::<String>().nfc().collect()
    }
}
