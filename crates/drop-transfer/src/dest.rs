//! Where files are received: a folder out of which nothing leads.
//!
//! [`Destination`] holds the folder open. [`Staging`] is one transfer into it: every entry is admitted first, by
//! [`Staging::admit`], files then come as a whole ([`Staging::place_small`]) or in pieces ([`StagedFile`]), and
//! [`Staging::conclude`] makes the links and gives directories their modes and times. A file takes its name when it is whole,
//! in one step. Until then it is in a folder of ours in the destination, `.sealway-partial-…`, with a journal that says what
//! is there, from which a later run goes on.
//!
//! Everything is made relative to the open folder, and no symbolic link is followed on the way.

mod admit;
mod conclude;
mod decision;
mod error;
mod folder;
mod handles;
mod hidden;
mod journal;
mod links;
mod probe;
mod rename;
mod staged;
mod staging;
mod state;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use journal::{fuzz as fuzz_journal, seed as journal_seed};

pub use conclude::Conclusion;
pub use decision::{Admission, Answer, Existing, Placed, Skip};
pub use error::Error;
pub use staged::StagedFile;
pub use staging::Staging;

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use sealway_drop::names::{Escaped, RelPath, Rules};

/// What is done with an entry whose name is taken. What is there with equal size and time counts as the same and is left
/// alone under each of them; a directory joins one that is there.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Conflict {
    /// What differs is left as it is and reported as [`Skip::Differs`]: the transfer is then not complete.
    #[default]
    SkipSame,
    /// The entry gets another name, as in `name (1).ext`.
    Rename,
    /// What is there is replaced, but never a directory.
    Overwrite,
    /// What is there stays, whatever it is, as the user wished: [`Skip::Exists`].
    Skip,
    /// [`Admission::Ask`] asks, and [`Staging::answer`] says.
    Ask,
}

/// When what was received is brought to the disk.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Flush {
    /// When the system pleases. A loss of power soon after the end may leave files with their names, sizes and times, and
    /// without their content.
    None,
    /// Once, before [`Staging::conclude`] returns: the whole file system of the destination (`syncfs`). A loss of power before
    /// that is as with [`Flush::None`].
    #[default]
    End,
    /// Every file before it takes its name, and directories at the end (`fsync`).
    Each,
}

/// How a destination treats what comes.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What is done where a name is taken.
    pub conflict: Conflict,
    /// Makes symbolic links that lead out of what is received; otherwise they are skipped.
    pub outside_symlinks: bool,
    /// Writes names that begin with a dot right into a home directory, such as `.ssh`; otherwise they are skipped. To be set
    /// once the user was shown them, see [`Destination::is_hidden_in_home`].
    pub hidden_in_home: bool,
    /// Brings everything to the disk before it takes its name: [`Flush::Each`], whatever `flush` says.
    pub fsync: bool,
    /// When everything is brought to the disk. A file system in memory (tmpfs) is left alone.
    pub flush: Flush,
    /// Gives files and directories the permissions that they have at the sender, whatever the umask says of new ones.
    pub keep_mode: bool,
    /// What names may be.
    pub rules: Rules,
    /// Does without `openat2`, as on a kernel before 5.6.
    pub without_openat2: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            conflict: Conflict::default(),
            outside_symlinks: false,
            hidden_in_home: false,
            fsync: false,
            flush: Flush::default(),
            keep_mode: false,
            rules: Rules::local(),
            without_openat2: false,
        }
    }
}

impl Options {
    fn flush(&self) -> Flush {
        if self.fsync { Flush::Each } else { self.flush }
    }

    /// Whether every file is on the disk before it has its name.
    fn each(&self) -> bool {
        self.flush() == Flush::Each
    }
}

/// A folder that is received into, held open: it stays the same one whatever becomes of its name.
#[derive(Clone, Debug)]
pub struct Destination {
    root: Arc<OwnedFd>,
    path: PathBuf,
    options: Options,
    homes: Arc<hidden::Homes>,
}

impl Destination {
    /// Opens a folder, which must be there. A symbolic link that the user named is followed.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn open(dir: &Path, options: Options) -> Result<Destination, Error> {
        let failed = |source| Error::Destination {
            path: Escaped(dir.as_os_str().as_bytes()).to_string(),
            source,
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(dir, flags, Mode::empty()).map_err(|errno| failed(errno.into()))?;
        let real = dir.canonicalize().map_err(failed)?;
        let homes = Arc::new(hidden::Homes::below(&real));
        Ok(Destination {
            root: Arc::new(root),
            path: real,
            options,
            homes,
        })
    }

    /// Begins a transfer, or goes on with one that was broken off: the staging folder is found by the transfer's number.
    ///
    /// # Errors
    /// [`Error::Busy`] if it is being received already, [`Error::NotOurs`], or why the folder cannot be made.
    pub fn staging(&self, transfer: &[u8; 32]) -> Result<Staging, Error> {
        Staging::open(self.clone(), transfer)
    }

    /// The folder without symbolic links in its path, as it was when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The options it was opened with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Whether a path begins with a dot right in someone's home directory, so that it would change how programs of that user
    /// behave. Such names are skipped unless [`Options::hidden_in_home`] allows them.
    pub fn is_hidden_in_home(&self, path: &RelPath) -> bool {
        self.homes.hides(path)
    }

    /// Bytes that are free for this user on the file system.
    ///
    /// # Errors
    /// Why the system does not say.
    pub fn available(&self) -> Result<u64, Error> {
        let stat = rustix::fs::fstatvfs(self.root.as_fd())
            .map_err(|errno| Error::system(Escaped(self.path.as_os_str().as_bytes()), "measure", errno))?;
        Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
    }
}

#[cfg(test)]
mod journal_tests;
