//! What is sent: a tree found by [`scan`], and its files opened one by one.
//!
//! Everything goes by directory handles. A symbolic link is never followed, except for one that the user named, if asked to:
//! whatever is swapped in the tree meanwhile, nothing outside it is read.

mod error;
mod file;
mod spool;
mod top;
mod walk;

pub use error::{Error, Skip, Skipped};
pub use file::{Extents, SourceFile};
pub use spool::{Spool, spool};

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::fs::OFlags;

use crate::beneath::Beneath;
use crate::entry::{Entry, Kind};
use sealway_drop::names::RelPath;

/// How a tree is scanned.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ScanOptions {
    /// A symbolic link that the user named is followed, and what it points to is sent under the name of the link.
    pub follow_top: bool,
    /// What cannot be read ends the scan; without it, it is listed as skipped.
    pub fail_unreadable: bool,
    /// Does without `openat2`, as on a kernel before 5.6.
    pub without_openat2: bool,
}

/// Sums over a scan.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Totals {
    /// Regular files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Symbolic links.
    pub symlinks: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// Bytes of them that are on disk, no more than `bytes`: without the holes of sparse files.
    pub data_bytes: u64,
    /// What was left out.
    pub skipped: u64,
}

/// What a scan found.
#[derive(Debug)]
pub struct Scan {
    /// In the order of [`RelPath`]: each directory right before what is in it.
    pub entries: Vec<Entry>,
    /// Sums.
    pub totals: Totals,
    /// What was left out, and why.
    pub skipped: Vec<Skipped>,
    tops: Vec<Top>,
    beneath: Beneath,
    /// The only file, where it is none of a folder.
    spooled: Option<OwnedFd>,
}

/// One argument: under which name it is sent, and where it is.
#[derive(Debug)]
struct Top {
    name: Vec<u8>,
    /// The directory that holds it, shared by the arguments next to it; it itself if `real` is empty.
    parent: Arc<OwnedFd>,
    real: Vec<u8>,
    path: PathBuf,
    link: Option<TopLink>,
}

/// A symbolic link that the user named.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TopLink {
    /// The link, escaped.
    pub path: String,
    /// Where it points to, escaped; if it is followed, the whole way.
    pub target: String,
    /// Whether what it points to is sent, and not the link.
    pub followed: bool,
}

impl Top {
    /// Components with their lengths, from `parent`, of a path of the transfer.
    fn locate(&self, path: &RelPath) -> Vec<u8> {
        let below = path.key().get(1 + path.top().len()..).unwrap_or_default();
        let mut key = Vec::with_capacity(path.key().len() + self.real.len());
        if !self.real.is_empty() {
            key.push(self.real.len() as u8);
            key.extend_from_slice(&self.real);
        }
        key.extend_from_slice(below);
        key
    }
}

/// Finds everything below `paths`: each path is sent under its last component.
///
/// `progress` hears the sums now and then, at least once for each directory of 1,000 entries.
///
/// # Errors
/// Two paths of one name, a path that is not there, or, with `fail_unreadable`, the first thing that cannot be read.
pub fn scan(paths: &[PathBuf], options: ScanOptions, progress: &mut dyn FnMut(&Totals)) -> Result<Scan, Error> {
    let tops = top::resolve(paths, options)?;
    let beneath = Beneath::new(options.without_openat2);
    let mut walk = walk::Walk::new(&beneath, options, progress);
    for top in &tops {
        walk.top(top)?;
    }
    let (entries, totals, skipped) = walk.finish();
    Ok(Scan {
        entries,
        totals,
        skipped,
        tops,
        beneath,
        spooled: None,
    })
}

impl Scan {
    /// The symbolic links that the user named, in the order of their names.
    pub fn top_links(&self) -> impl Iterator<Item = &TopLink> {
        self.tops.iter().filter_map(|top| top.link.as_ref())
    }

    /// Opens a file for sending.
    ///
    /// # Errors
    /// [`Error::NotAFile`] if it is none any more, else why it cannot be opened.
    pub fn open(&self, entry: &Entry) -> Result<SourceFile, Error> {
        let Kind::File { .. } = entry.kind else {
            return Err(Error::NotAFile {
                path: entry.path.clone(),
            });
        };
        if let Some(fd) = &self.spooled {
            let fd = fd.try_clone().map_err(|source| Error::Unreadable {
                path: entry.path.to_string(),
                source,
            })?;
            return SourceFile::new(fd, entry.path.clone());
        }
        let at = self
            .tops
            .binary_search_by(|top| top.name.as_slice().cmp(entry.path.top()))
            .ok()
            .and_then(|i| self.tops.get(i));
        let top = at.ok_or_else(|| Error::Unknown {
            path: entry.path.clone(),
        })?;
        // Without NONBLOCK the opening of a FIFO that was put there meanwhile would wait for ever.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let fd = self
            .beneath
            .open(&top.parent, &top.locate(&entry.path), flags)
            .map_err(|errno| match errno {
                rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR | rustix::io::Errno::NXIO => Error::NotAFile {
                    path: entry.path.clone(),
                },
                errno => Error::Unreadable {
                    path: entry.path.to_string(),
                    source: errno.into(),
                },
            })?;
        SourceFile::new(fd, entry.path.clone())
    }
}
