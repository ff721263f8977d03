//! One file, directory or symbolic link of a transfer, as both ends speak of it.

use std::error::Error;
use std::fmt;

use sealway_drop::names::{NameError, RelPath, Rules};

/// The longest target of a symbolic link, in bytes: what Linux can make.
pub const MAX_TARGET: usize = 4095;

/// The most that the entries of one transfer may have, in bytes of their form on the wire, all together. Both ends keep them in
/// memory; whoever receives more than this refuses the transfer.
pub const MAX_LISTED_BYTES: u64 = 1 << 30;

/// A point in time, from 1970 on in UTC.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Time {
    /// Whole seconds, rounded down.
    pub seconds: i64,
    /// Nanoseconds above them, under 1,000,000,000.
    pub nanoseconds: u32,
}

/// What an entry is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A regular file.
    File {
        /// Bytes.
        size: u64,
        /// Whether the sender's file had holes: room is then not reserved ahead.
        sparse: bool,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink {
        /// Where it points, as it stands in the link: 1 to [`MAX_TARGET`] bytes without NUL.
        target: Box<[u8]>,
    },
}

/// One file, directory or symbolic link.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// Where it is below what is sent.
    pub path: RelPath,
    /// What it is.
    pub kind: Kind,
    /// Its permission bits, at most 0o777.
    pub mode: u32,
    /// When its content last changed.
    pub mtime: Time,
}

impl Entry {
    /// Bytes of a file; 0 for anything else.
    pub fn size(&self) -> u64 {
        match self.kind {
            Kind::File { size, .. } => size,
            _ => 0,
        }
    }

    /// Appends the form of the wire: the path; kind (1 byte: 0 file, 1 file with holes, 2 directory, 3 symbolic link); mode
    /// (2 bytes); seconds (8) and nanoseconds (4) of the modification; for a file its size (8), for a link the length of its
    /// target (2) and the target. Numbers are little endian.
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.path.encode(out);
        out.push(match self.kind {
            Kind::File { sparse: false, .. } => 0,
            Kind::File { sparse: true, .. } => 1,
            Kind::Directory => 2,
            Kind::Symlink { .. } => 3,
        });
        out.extend_from_slice(&((self.mode & 0o777) as u16).to_le_bytes());
        out.extend_from_slice(&self.mtime.seconds.to_le_bytes());
        out.extend_from_slice(&self.mtime.nanoseconds.to_le_bytes());
        match &self.kind {
            Kind::File { size, .. } => out.extend_from_slice(&size.to_le_bytes()),
            Kind::Directory => {}
            Kind::Symlink { target } => {
                let target = &target[..target.len().min(MAX_TARGET)];
                out.extend_from_slice(&(target.len() as u16).to_le_bytes());
                out.extend_from_slice(target);
            }
        }
    }

    /// Reads the form of the wire from the start of `bytes`, and says how many bytes it had.
    ///
    /// # Errors
    /// Whatever is wrong with it; nothing a peer sends can make an entry that is out of its limits.
    pub fn decode(bytes: &[u8], rules: Rules) -> Result<(Entry, usize), EntryError> {
        let (path, used) = RelPath::decode(bytes, rules)?;
        let mut rest = Reader { bytes, at: used };
        let kind = u8::from_le_bytes(rest.take()?);
        let mode = u32::from(u16::from_le_bytes(rest.take()?));
        let mtime = Time {
            seconds: i64::from_le_bytes(rest.take()?),
            nanoseconds: u32::from_le_bytes(rest.take()?),
        };
        if mode > 0o777 {
            return Err(EntryError::Mode(mode));
        }
        if mtime.nanoseconds >= 1_000_000_000 {
            return Err(EntryError::Nanoseconds(mtime.nanoseconds));
        }
        let kind = match kind {
            0 | 1 => Kind::File {
                size: file_size(u64::from_le_bytes(rest.take()?))?,
                sparse: kind == 1,
            },
            2 => Kind::Directory,
            3 => {
                let len = usize::from(u16::from_le_bytes(rest.take()?));
                let target = rest.slice(len)?;
                if target.is_empty() || len > MAX_TARGET || target.contains(&0) {
                    return Err(EntryError::Target);
                }
                Kind::Symlink { target: target.into() }
            }
            other => return Err(EntryError::Kind(other)),
        };
        Ok((
            Entry {
                path,
                kind,
                mode,
                mtime,
            },
            rest.at,
        ))
    }
}

/// No file system has files past what `off_t` can say.
fn file_size(size: u64) -> Result<u64, EntryError> {
    if i64::try_from(size).is_err() {
        Err(EntryError::Size(size))
    } else {
        Ok(size)
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn slice(&mut self, len: usize) -> Result<&'a [u8], EntryError> {
        let slice = self
            .bytes
            .get(self.at..)
            .and_then(|rest| rest.get(..len))
            .ok_or(EntryError::Truncated)?;
        self.at += len;
        Ok(slice)
    }

    fn take<const N: usize>(&mut self) -> Result<[u8; N], EntryError> {
        let slice = self.slice(N)?;
        slice.try_into().map_err(|_| EntryError::Truncated)
    }
}

/// An entry that cannot be what it says.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum EntryError {
    /// Its path.
    Name(NameError),
    /// An unknown kind.
    Kind(u8),
    /// A mode over 0o777.
    Mode(u32),
    /// Nanoseconds of a second or more.
    Nanoseconds(u32),
    /// A size past 2^63 - 1.
    Size(u64),
    /// The target of a link is empty, too long or has a NUL byte.
    Target,
    /// The bytes end within the entry.
    Truncated,
}

impl From<NameError> for EntryError {
    fn from(error: NameError) -> EntryError {
        match error {
            NameError::Truncated => EntryError::Truncated,
            error => EntryError::Name(error),
        }
    }
}

impl fmt::Display for EntryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EntryError::Name(error) => error.fmt(f),
            EntryError::Kind(kind) => write!(f, "an entry has the unknown kind {kind}"),
            EntryError::Mode(mode) => write!(f, "an entry has the mode {mode:o}, more than 777"),
            EntryError::Nanoseconds(n) => write!(f, "an entry has a time of {n} nanoseconds"),
            EntryError::Size(size) => write!(f, "an entry has {size} bytes, more than any file can have"),
            EntryError::Target => f.write_str("the target of a symbolic link is empty, too long or has a NUL byte"),
            EntryError::Truncated => f.write_str("an entry is cut off"),
        }
    }
}

impl Error for EntryError {}
