//! Paths inside a tree.

use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::TreeError;

/// Longest name of one component, in bytes.
pub const MAX_NAME: usize = 255;

/// Longest path, in bytes.
pub const MAX_PATH: usize = 4095;

/// A path relative to the root of a tree: components joined by '/', the root being empty. Made only of components that
/// [`check_name`] takes, so it can neither be absolute nor climb.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct TreePath(Vec<u8>);

impl TreePath {
    /// The root of the tree.
    pub fn root() -> Self {
        Self::default()
    }

    /// A path from the bytes a peer sent.
    pub fn parse(bytes: &[u8]) -> Result<Self, TreeError> {
        if bytes.len() > MAX_PATH {
            return Err(TreeError::Invalid("a path is too long"));
        }
        if !bytes.is_empty() {
            bytes.split(|&byte| byte == b'/').try_for_each(check_name)?;
        }
        Ok(Self(bytes.to_vec()))
    }

    /// The path of `name` in this directory.
    pub fn join(&self, name: &[u8]) -> Result<Self, TreeError> {
        check_name(name)?;
        let mut path = Vec::with_capacity(self.0.len() + 1 + name.len());
        path.extend_from_slice(&self.0);
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        if path.len() > MAX_PATH {
            Err(TreeError::Invalid("a path is too long"))
        } else {
            Ok(Self(path))
        }
    }

    /// Directory and name; `None` for the root.
    pub fn split(&self) -> Option<(Self, &[u8])> {
        if self.0.is_empty() {
            return None;
        }
        Some(match self.0.iter().rposition(|&byte| byte == b'/') {
            Some(at) => (Self(self.0[..at].to_vec()), &self.0[at + 1..]),
            None => (Self::root(), &self.0),
        })
    }

    /// The components from the root on.
    pub fn components(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|&byte| byte == b'/').filter(|name| !name.is_empty())
    }

    /// Whether this is `other` or stands below it.
    pub fn is_within(&self, other: &Self) -> bool {
        other.0.is_empty()
            || self.0 == other.0
            || (self.0.starts_with(&other.0) && self.0.get(other.0.len()) == Some(&b'/'))
    }

    /// The path after `from` was renamed to `to`; `None` if it is another one, or would be too long.
    pub fn moved(&self, from: &Self, to: &Self) -> Option<Self> {
        if from.0.is_empty() || !self.is_within(from) {
            return None;
        }
        let mut path = to.0.clone();
        path.extend_from_slice(self.0.get(from.0.len()..)?);
        (path.len() <= MAX_PATH).then_some(Self(path))
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// As a relative path of the system; "." for the root.
    pub fn as_path(&self) -> &Path {
        let bytes: &[u8] = if self.0.is_empty() { b"." } else { &self.0 };
        Path::new(std::ffi::OsStr::from_bytes(bytes))
    }
}

impl fmt::Debug for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

/// Whether these bytes can be one component of a path in a tree: 1 to [`MAX_NAME`] bytes, no NUL, no '/', not "." or "..".
/// Whatever else a Linux file system allows is allowed: a mounted tree shows the names there are.
pub fn check_name(name: &[u8]) -> Result<(), TreeError> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err(TreeError::Invalid("a name is empty or too long"));
    }
    if name == b"." || name == b".." || name.iter().any(|&byte| byte == 0 || byte == b'/') {
        return Err(TreeError::Invalid("a name that is not one path component"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_path_is_refused() {
        for bad in [
            &b"/"[..],
            b"/etc",
            b"a//b",
            b"a/",
            b"..",
            b"a/..",
            b"a/../b",
            b".",
            b"./a",
            b"a\0b",
            &[b'x'; 256],
        ] {
            assert!(TreePath::parse(bad).is_err(), "{:?}", bad.escape_ascii().to_string());
        }
        let long = [b"x".repeat(200), b"y".repeat(200)].join(&b'/').repeat(1);
        assert!(TreePath::parse(&long).is_ok());
        let path = vec![b'x'; 200];
        let too_long = vec![path; 21].join(&b'/');
        assert!(TreePath::parse(&too_long).is_err());
    }

    #[test]
    fn odd_names_are_names() {
        for good in [
            &b"a"[..],
            b" ",
            b"\xff\xfe",
            b"...",
            b"..a",
            b"a\nb",
            b"-rf",
            &[b'x'; 255],
        ] {
            let path = TreePath::root().join(good).unwrap();
            assert_eq!(path.as_bytes(), good);
            assert_eq!(path.split(), Some((TreePath::root(), good)));
        }
    }

    #[test]
    fn paths_join_split_and_contain() {
        let deep = TreePath::parse(b"a/b/c").unwrap();
        let (parent, name) = deep.split().unwrap();
        assert_eq!((parent.as_bytes(), name), (&b"a/b"[..], &b"c"[..]));
        assert_eq!(parent.join(name).unwrap(), deep);
        assert_eq!(deep.components().collect::<Vec<_>>(), [b"a", b"b", b"c"]);
        assert!(deep.is_within(&parent) && deep.is_within(&deep) && deep.is_within(&TreePath::root()));
        assert!(!TreePath::parse(b"a/bc").unwrap().is_within(&parent));
        let moved = |path: &str| TreePath::parse(path.as_bytes()).unwrap();
        assert_eq!(deep.moved(&moved("a/b"), &moved("x")), Some(moved("x/c")));
        assert_eq!(deep.moved(&deep, &moved("x")), Some(moved("x")));
        assert_eq!(deep.moved(&moved("a/bc"), &moved("x")), None);
        assert_eq!(TreePath::root().split(), None);
        assert_eq!(TreePath::root().components().count(), 0);
    }
}
