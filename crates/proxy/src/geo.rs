//! Geo files on the disk: where they are, which lists they hold, and what is in a list.

mod lookup;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

pub use sealway_route::geo::{Form, Item, Kind, Name};
use sealway_route::geo::{Scanner, Step, WINDOW};
use sealway_v2ray::config::nearest;

/// What is read from a file at once, in bytes.
const BUFFER: usize = 64 << 10;

/// Most lists of a file. Files of the communities have some 1,500.
pub const MAX_LISTS: usize = 1 << 16;

/// A list of a file: its code, and where it stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct List {
    /// The code as it stands in the file.
    pub code: String,
    /// The byte behind the code.
    start: u64,
    /// Bytes from there to the end of the list.
    len: u64,
}

/// A geo file that is open, with the places of its lists.
#[derive(Debug)]
pub struct GeoFile {
    file: File,
    path: PathBuf,
    kind: Kind,
    size: u64,
    /// When it was written last, before it was read.
    written: Written,
    lists: Vec<List>,
}

/// When a file was written last, as its folder shows it.
type Written = Option<SystemTime>;

/// Why a file, or a list of it, cannot be had.
#[derive(Debug)]
pub enum GeoError {
    /// No folder has the file. Where it was looked for.
    Missing {
        /// The name of the file.
        name: String,
        /// Where it was looked for.
        folders: Vec<PathBuf>,
    },
    /// It cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is no geo file.
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: sealway_route::geo::Error,
    },
    /// It has more than [`MAX_LISTS`].
    TooManyLists {
        /// The file.
        path: PathBuf,
    },
    /// No set can be made of a list.
    Useless {
        /// The file.
        path: PathBuf,
        /// The code of the list.
        code: String,
        /// Why.
        why: String,
    },
    /// It was written to between two looks at it, so what was read does not fit together.
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// Reading ended before it was done: a fault of this program, or it is about to end.
    Stopped,
    /// It has no list of this code.
    NoList {
        /// The file.
        path: PathBuf,
        /// The code.
        code: String,
        /// The code that is most likely meant.
        nearest: Option<String>,
    },
}

impl fmt::Display for GeoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GeoError::Missing { name, folders } => {
                let folders: Vec<_> = folders.iter().map(|folder| folder.display().to_string()).collect();
                write!(f, "there is no geo file {name:?} in {}", folders.join(", "))?;
                f.write_str("; put it into one of them, or set XRAY_LOCATION_ASSET to its folder")
            }
            GeoError::Unreadable { path, source } => write!(f, "{} cannot be read: {source}", path.display()),
            GeoError::Wrong { path, source } => write!(f, "{} cannot be used: {source}", path.display()),
            GeoError::TooManyLists { path } => {
                write!(
                    f,
                    "{} cannot be used: it has more than {MAX_LISTS} lists",
                    path.display()
                )
            }
            GeoError::Useless { path, code, why } => {
                let code = code.to_lowercase();
                write!(f, "the list {code:?} of {} cannot be used: {why}", path.display())
            }
            GeoError::Changed { path } => write!(f, "{} changed while it was read; try again", path.display()),
            GeoError::Stopped => f.write_str("reading ended before it was done"),
            GeoError::NoList { path, code, nearest } => {
                write!(f, "{} has no list {:?}", path.display(), code.to_lowercase())?;
                match nearest {
                    Some(near) => write!(f, "; did you mean {:?}?", near.to_lowercase()),
                    None => f.write_str("; `sealway geo list` shows all of them"),
                }
            }
        }
    }
}

impl std::error::Error for GeoError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            GeoError::Unreadable { source, .. } => Some(source),
            GeoError::Wrong { source, .. } => Some(source),
            _ => None,
        }
    }
}

/// Folders that geo files are looked for in when no variable names one: ours, then those of the packages of Xray and V2Ray.
const USUAL_FOLDERS: [&str; 7] = [
    "/usr/local/share/sealway",
    "/usr/share/sealway",
    "/usr/local/share/xray",
    "/usr/share/xray",
    "/opt/share/xray",
    "/usr/local/share/v2ray",
    "/usr/share/v2ray",
];

/// The folders that geo files are looked for in: that of the environment if one is given, or else the program's own; then the
/// usual ones.
pub fn folders(named: Option<PathBuf>) -> Vec<PathBuf> {
    let own = || Some(std::env::current_exe().ok()?.parent()?.to_owned());
    let first = named.or_else(own);
    first
        .into_iter()
        .chain(USUAL_FOLDERS.iter().map(PathBuf::from))
        .collect()
}

/// The file of this name: the first there is in the folders. A path from the root is that file. What has the name and cannot be
/// read is an error: a file further down may be an old one.
///
/// # Errors
/// [`GeoError::Missing`] and [`GeoError::Unreadable`].
pub fn find(name: &str, folders: &[PathBuf]) -> Result<PathBuf, GeoError> {
    let whole = Path::new(name).is_absolute().then(|| PathBuf::from(name));
    for path in whole.into_iter().chain(folders.iter().map(|folder| folder.join(name))) {
        match path.metadata() {
            Ok(about) if about.is_file() => return Ok(path),
            Ok(_) => return Err(unreadable(&path, io::Error::other("it is no file"))),
            Err(error) => match error.kind() {
                // A link that leads nowhere is there.
                ErrorKind::NotFound | ErrorKind::NotADirectory if path.symlink_metadata().is_err() => {}
                _ => return Err(unreadable(&path, error)),
            },
        }
    }
    Err(GeoError::Missing {
        name: name.to_owned(),
        folders: folders.to_vec(),
    })
}

impl GeoFile {
    /// Opens a file and reads through it once, to learn where its lists are. What is in them is passed over.
    ///
    /// # Errors
    /// [`GeoError`] for what cannot be read or is no such file.
    pub fn open(path: &Path, kind: Kind) -> Result<GeoFile, GeoError> {
        let file = File::open(path).map_err(|source| unreadable(path, source))?;
        let about = file.metadata().map_err(|source| unreadable(path, source))?;
        let size = about.len();
        let mut geo = GeoFile {
            file,
            path: path.to_owned(),
            kind,
            size,
            written: about.modified().ok(),
            lists: Vec::new(),
        };
        let mut lists: Vec<List> = Vec::new();
        let mut scanner = Scanner::new(kind);
        geo.scan(0..u64::MAX, &mut scanner, |item, scanner| {
            if let Item::Entry(code) = item {
                lists.push(List {
                    code: code.to_owned(),
                    start: scanner.position(),
                    len: scanner.left(),
                });
            }
            match lists.len() {
                0..=MAX_LISTS => Next::SkipList,
                _ => Next::Stop,
            }
        })?;
        if lists.len() > MAX_LISTS {
            return Err(GeoError::TooManyLists { path: path.to_owned() });
        }
        scanner.finish(size).map_err(|source| geo.wrong(source))?;
        geo.check_unchanged()?;
        geo.lists = lists;
        Ok(geo)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its lists, in the order of the file.
    pub fn lists(&self) -> &[List] {
        &self.lists
    }

    /// The list of a code, in any letter case. Of several, it is the first.
    ///
    /// # Errors
    /// [`GeoError::NoList`], with the nearest code.
    pub fn list(&self, code: &str) -> Result<List, GeoError> {
        let found = self.lists.iter().find(|list| list.code.eq_ignore_ascii_case(code));
        found.cloned().ok_or_else(|| GeoError::NoList {
            path: self.path.clone(),
            code: code.to_owned(),
            nearest: nearest(code, self.lists.iter().map(|list| list.code.as_str())).map(str::to_owned),
        })
    }

    /// Hands on every item of a list.
    ///
    /// # Errors
    /// [`GeoError`] for what cannot be read or is no such file, [`GeoError::Changed`] if somebody has written to it since it was
    /// opened: where its lists were, something else may be.
    pub fn read(&mut self, list: &List, take: impl FnMut(Item<'_>)) -> Result<(), GeoError> {
        let read = self.read_items(list, take);
        // If it changed, that is why it makes no sense.
        self.check_unchanged()?;
        read
    }

    fn check_unchanged(&self) -> Result<(), GeoError> {
        let now = self.file.metadata().map_err(|source| unreadable(&self.path, source))?;
        match now.len() == self.size && now.modified().ok() == self.written {
            true => Ok(()),
            false => Err(GeoError::Changed {
                path: self.path.clone(),
            }),
        }
    }

    fn read_items(&mut self, list: &List, mut take: impl FnMut(Item<'_>)) -> Result<(), GeoError> {
        let mut scanner = Scanner::within(self.kind, list.start, list.len);
        if list.len == 0 {
            return Ok(());
        }
        let end = list.start + list.len;
        self.scan(list.start..end, &mut scanner, |item, _| {
            take(item);
            Next::Go
        })?;
        scanner.finish(end).map_err(|source| self.wrong(source))
    }

    /// Reads a part of the file until it or the file ends, or until it is told to stop.
    fn scan(
        &mut self,
        part: Range<u64>,
        scanner: &mut Scanner,
        mut take: impl FnMut(Item<'_>, &Scanner) -> Next,
    ) -> Result<(), GeoError> {
        const { assert!(BUFFER >= WINDOW) };
        let io = |source| unreadable(&self.path, source);
        let wrong = |source| GeoError::Wrong {
            path: self.path.clone(),
            source,
        };
        self.file.seek(SeekFrom::Start(part.start)).map_err(io)?;
        let mut buffer = vec![0; BUFFER];
        let (mut from, mut to, mut is_end) = (0, 0, false);
        // Behind the last item there may be what is passed over.
        while scanner.position() < part.end {
            let skip = match scanner.next(&buffer[from..to]) {
                _ if from == to && is_end => return Ok(()),
                Ok(Step::More) if is_end => return Err(wrong(sealway_route::geo::Error::Truncated)),
                Ok(Step::More) => {
                    buffer.copy_within(from..to, 0);
                    (from, to) = (0, to - from);
                    let got = self.file.read(&mut buffer[to..]).map_err(io)?;
                    to += got;
                    is_end = got == 0;
                    continue;
                }
                Ok(Step::Skip(len)) => len,
                Ok(Step::Item { item, used }) => {
                    let next = take(item, scanner);
                    from += used;
                    match next {
                        Next::Go => continue,
                        Next::Stop => return Ok(()),
                        Next::SkipList => scanner.skip_entry(),
                    }
                }
                Err(source) => return Err(wrong(source)),
            };
            match usize::try_from(skip) {
                Ok(skip) if skip <= to - from => from += skip,
                _ if scanner.position() > self.size => return Err(wrong(sealway_route::geo::Error::Truncated)),
                _ => {
                    self.file.seek(SeekFrom::Start(scanner.position())).map_err(io)?;
                    (from, to) = (0, 0);
                }
            }
        }
        Ok(())
    }

    fn wrong(&self, source: sealway_route::geo::Error) -> GeoError {
        GeoError::Wrong {
            path: self.path.clone(),
            source,
        }
    }
}

/// What a reader does behind an item.
enum Next {
    Go,
    SkipList,
    Stop,
}

fn unreadable(path: &Path, source: io::Error) -> GeoError {
    GeoError::Unreadable {
        path: path.to_owned(),
        source,
    }
}
