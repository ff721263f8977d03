//! Names of files as they travel and as they are printed.
//!
//! A path is a list of byte strings, its components. It is never a joined string, so nothing in it can climb or start at the
//! root. [`RelPath`] is made in one way only, through [`Rules::check`], whether it came from a peer or from a directory of
//! ours. A path is printed through [`Escaped`], which leaves nothing in it that a terminal would obey.

mod error;
mod escape;
mod fold;

pub use error::NameError;
pub use escape::Escaped;
pub use fold::Folding;

use std::cmp::Ordering;
use std::fmt;

/// The longest component, in bytes.
pub const MAX_COMPONENT: usize = 255;
/// The most components of a path.
pub const MAX_DEPTH: usize = 128;
/// The longest path in bytes, with one separator between components.
pub const MAX_PATH: usize = 4096;
/// What names of staging folders begin with; no path of a transfer may have such a component.
pub const STAGING_PREFIX: &[u8] = b".sealway-partial-";

/// What a component may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rules {
    windows: bool,
}

impl Rules {
    /// The rules of POSIX file systems.
    pub const POSIX: Rules = Rules { windows: false };
    /// The rules of POSIX, and those of Windows: no `\`, `:` or other reserved character, no device name, no dot or space at
    /// the end, no control character, only UTF-8.
    pub const WINDOWS: Rules = Rules { windows: true };

    /// The rules of the system that this program was built for.
    pub const fn local() -> Rules {
        Rules { windows: cfg!(windows) }
    }

    /// Checks one component.
    ///
    /// # Errors
    /// A [`NameError`] that names it.
    pub fn check(self, name: &[u8]) -> Result<(), NameError> {
        let reason = match name {
            [] => return Err(NameError::Empty),
            b"." | b".." => return Err(NameError::Dots),
            name if name.len() > MAX_COMPONENT => return Err(NameError::Long { bytes: name.len() }),
            name if name.contains(&0) => "a NUL byte",
            name if name.contains(&b'/') => "a slash",
            name if is_staging(name) => return Err(NameError::Reserved { name: name.into() }),
            name if self.windows => match windows_objection(name) {
                Some(reason) => reason,
                None => return Ok(()),
            },
            _ => return Ok(()),
        };
        Err(NameError::Forbidden {
            name: name.into(),
            reason,
        })
    }
}

/// In any case of letters and with anything in it that cannot be seen: on a file system that folds they all are our folder.
fn is_staging(name: &[u8]) -> bool {
    let folding = Folding {
        case: true,
        normal: true,
    };
    match name.is_ascii() {
        true => name
            .get(..STAGING_PREFIX.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(STAGING_PREFIX)),
        false => folding.name(name).starts_with(STAGING_PREFIX),
    }
}

fn windows_objection(name: &[u8]) -> Option<&'static str> {
    let Ok(text) = std::str::from_utf8(name) else {
        return Some("bytes that are no UTF-8");
    };
    if text.chars().any(|c| c.is_control()) {
        return Some("a control character");
    }
    if text.contains(['\\', ':', '<', '>', '"', '|', '?', '*']) {
        return Some("a character that Windows reserves");
    }
    if text.ends_with(['.', ' ']) {
        return Some("a dot or a space at its end");
    }
    let stem = text.split('.').next().unwrap_or(text).trim_end();
    let upper = stem.to_ascii_uppercase();
    let numbered = |prefix: &str| {
        upper.strip_prefix(prefix).is_some_and(|rest| {
            matches!(
                rest,
                "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "\u{b9}" | "\u{b2}" | "\u{b3}"
            )
        })
    };
    let device = matches!(upper.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$");
    (device || numbered("COM") || numbered("LPT")).then_some("a device name of Windows")
}

/// A path below the folder that is sent or received into: one component at least, each of them checked.
///
/// Paths are ordered by their components, so a directory comes right before what is in it.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct RelPath {
    /// Each component with its length in one byte before it.
    packed: Box<[u8]>,
}

impl RelPath {
    /// A path of these components.
    ///
    /// # Errors
    /// The first component that the rules do not allow, or a path that is empty, too deep or too long.
    pub fn new<I, C>(components: I, rules: Rules) -> Result<RelPath, NameError>
    where
        I: IntoIterator<Item = C>,
        C: AsRef<[u8]>,
    {
        let mut packed = Vec::new();
        let mut depth = 0;
        for component in components {
            push(&mut packed, &mut depth, component.as_ref(), rules)?;
        }
        RelPath::packed(packed, depth)
    }

    /// This path with one more component.
    ///
    /// # Errors
    /// As [`RelPath::new`].
    pub fn child(&self, name: &[u8], rules: Rules) -> Result<RelPath, NameError> {
        let mut packed = Vec::with_capacity(self.packed.len() + name.len() + 1);
        packed.extend_from_slice(&self.packed);
        let mut depth = self.depth();
        push(&mut packed, &mut depth, name, rules)?;
        RelPath::packed(packed, depth)
    }

    fn packed(packed: Vec<u8>, depth: usize) -> Result<RelPath, NameError> {
        if depth == 0 {
            return Err(NameError::NoComponents);
        }
        Ok(RelPath {
            packed: packed.into_boxed_slice(),
        })
    }

    /// The components, outermost first.
    pub fn components(&self) -> Components<'_> {
        Components { rest: &self.packed }
    }

    /// How many components there are: 1 to [`MAX_DEPTH`].
    pub fn depth(&self) -> usize {
        self.components().count()
    }

    /// The last component.
    pub fn name(&self) -> &[u8] {
        self.split().1
    }

    /// The first component: what the user was asked about.
    pub fn top(&self) -> &[u8] {
        self.components().next().unwrap_or_default()
    }

    /// The path of the directory this is in; `None` for a path of one component.
    pub fn parent(&self) -> Option<RelPath> {
        let (parent, _) = self.split();
        (!parent.is_empty()).then(|| RelPath { packed: parent.into() })
    }

    /// What identifies the directory this is in: its components with their lengths, or nothing at the top.
    pub fn parent_key(&self) -> &[u8] {
        self.split().0
    }

    /// What identifies this path: its components with their lengths.
    pub fn key(&self) -> &[u8] {
        &self.packed
    }

    fn split(&self) -> (&[u8], &[u8]) {
        let mut at = 0;
        let mut last = 0;
        while let Some(&len) = self.packed.get(at) {
            last = at;
            at += 1 + usize::from(len);
        }
        (&self.packed[..last], self.packed.get(last + 1..).unwrap_or_default())
    }

    /// Appends the form of the wire: the number of components (1 byte), then each with its length (1 byte) before it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        // At most 128, so that this is no truncation.
        out.push(self.depth() as u8);
        out.extend_from_slice(&self.packed);
    }

    /// Reads the form of the wire from the start of `bytes`, and says how many bytes it had.
    ///
    /// # Errors
    /// [`NameError::Truncated`] if `bytes` ends before it, or whatever [`RelPath::new`] objects to.
    pub fn decode(bytes: &[u8], rules: Rules) -> Result<(RelPath, usize), NameError> {
        let &count = bytes.first().ok_or(NameError::Truncated)?;
        if usize::from(count) > MAX_DEPTH {
            return Err(NameError::Deep);
        }
        let mut packed = Vec::new();
        let mut depth = 0;
        let mut at = 1;
        for _ in 0..count {
            let len = usize::from(*bytes.get(at).ok_or(NameError::Truncated)?);
            let component = bytes.get(at + 1..at + 1 + len).ok_or(NameError::Truncated)?;
            push(&mut packed, &mut depth, component, rules)?;
            at += 1 + len;
        }
        Ok((RelPath::packed(packed, depth)?, at))
    }
}

/// Components that were packed by a [`RelPath`], with slashes between them: for system calls only.
pub fn join(key: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(key.len());
    for component in (Components { rest: key }) {
        if !joined.is_empty() {
            joined.push(b'/');
        }
        joined.extend_from_slice(component);
    }
    joined
}

fn push(packed: &mut Vec<u8>, depth: &mut usize, name: &[u8], rules: Rules) -> Result<(), NameError> {
    rules.check(name)?;
    let len = u8::try_from(name.len()).map_err(|_| NameError::Long { bytes: name.len() })?;
    if *depth == MAX_DEPTH {
        return Err(NameError::Deep);
    }
    // The lengths stand where separators would, but for the first.
    if packed.len() + name.len() > MAX_PATH {
        return Err(NameError::LongPath);
    }
    packed.push(len);
    packed.extend_from_slice(name);
    *depth += 1;
    Ok(())
}

/// The components of a path, outermost first.
#[derive(Clone, Debug)]
pub struct Components<'a> {
    rest: &'a [u8],
}

impl<'a> Components<'a> {
    /// Those that were packed by a [`RelPath`].
    pub fn of(key: &'a [u8]) -> Components<'a> {
        Components { rest: key }
    }
}

impl<'a> Iterator for Components<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (&len, rest) = self.rest.split_first()?;
        let (component, rest) = rest.split_at_checked(usize::from(len))?;
        self.rest = rest;
        Some(component)
    }
}

impl Ord for RelPath {
    fn cmp(&self, other: &RelPath) -> Ordering {
        self.components().cmp(other.components())
    }
}

impl PartialOrd for RelPath {
    fn partial_cmp(&self, other: &RelPath) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Escaped, with slashes.
impl fmt::Display for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, component) in self.components().enumerate() {
            if i > 0 {
                f.write_str("/")?;
            }
            Escaped(component).fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Debug for RelPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RelPath({self})")
    }
}
