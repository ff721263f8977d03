//! The staging folder of one transfer: its lock, its journal, and what is known of the transfer.

use std::collections::HashMap;
use std::fmt::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::handles::Handles;
use super::journal::{Journal, Partial, Record};
use super::probe::{self, FileSystem};
use super::state::State;
use super::{Destination, Error};
use crate::stat::{Identity, identity, mount};
use sealway_drop::names::{Escaped, RelPath, STAGING_PREFIX};
use sealway_drop::ranges::Ranges;

const JOURNAL: &str = "journal";
/// What the names of temporary files begin with; a number follows.
pub(super) const STAGED: char = 'f';
pub(super) const SMALL: char = 's';
pub(super) const LINK: char = 'l';

/// What a transfer has on the disk until it is over, and its state.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) destination: Destination,
    pub(super) handles: Handles,
    /// The name of the folder in the destination.
    pub(super) name: String,
    pub(super) folder: OwnedFd,
    /// The folder's, to know it under other names.
    pub(super) identity: Identity,
    /// The mount that the folder is on, if the kernel tells.
    pub(super) mount: Option<u64>,
    /// Nothing any more once the folder is removed.
    journal: Mutex<Option<Journal>>,
    pub(super) system: FileSystem,
    pub(super) state: Mutex<State>,
    next_slot: AtomicU32,
    gone: AtomicBool,
}

/// When the last of the transfer and its files is gone.
impl Drop for Folder {
    fn drop(&mut self) {
        if self.state().untouched() {
            // Nothing to go on with; if it cannot be removed, the next run finds it empty.
            let _ = self.remove_folder();
        }
    }
}

impl Folder {
    pub(super) fn open(destination: Destination, transfer: &[u8; 32]) -> Result<Folder, Error> {
        let mut name = String::from_utf8_lossy(STAGING_PREFIX).into_owned();
        for byte in transfer.iter().take(8) {
            // Writing to a string does not fail.
            let _ = write!(name, "{byte:02x}");
        }
        let shown = Escaped(destination.path.join(&name).as_os_str().as_bytes()).to_string();
        let failed = |errno| Error::system(&shown, "make", errno);
        let Locked { folder, journal, made } = take_lock(&destination, &name, &shown)?;
        let begun = Journal::resume(journal, transfer).and_then(|(journal, recovered)| {
            let partials = sweep(&folder, recovered.files)?;
            let system = FileSystem::probe(folder.as_fd())?;
            let stat = rustix::fs::fstat(&folder)?;
            let root = rustix::fs::fstat(&destination.root)?;
            Ok((
                journal,
                partials,
                recovered.directories,
                system,
                identity(&stat),
                identity(&root),
            ))
        });
        let (journal, partials, directories, system, own, root) = begun.map_err(|errno| {
            made.undo(&folder);
            failed(errno)
        })?;
        let next_slot = partials.keys().max().map_or(0, |slot| slot.wrapping_add(1));
        let mut state = State::new(system.folding, partials, directories);
        if destination.homes.is_home(root) {
            state.homes.insert(Box::default());
        }
        let without = destination.options.without_openat2;
        Ok(Folder {
            handles: Handles::new(Arc::clone(&destination.root), without),
            destination,
            name,
            identity: own,
            mount: mount(&folder, b"", AtFlags::EMPTY_PATH),
            folder,
            journal: Mutex::new(Some(journal)),
            system,
            state: Mutex::new(state),
            next_slot: AtomicU32::new(next_slot),
            gone: AtomicBool::new(false),
        })
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn log(&self, record: &Record) -> Result<(), Errno> {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.as_mut().map_or(Ok(()), |journal| journal.append(record))
    }

    /// A number that no temporary file of this folder has.
    pub(super) fn new_slot(&self) -> u32 {
        self.next_slot.fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn unlink(&self, name: &str) -> Result<(), Errno> {
        match rustix::fs::unlinkat(&self.folder, name, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            other => other,
        }
    }

    /// Removes a temporary file of an earlier run that is of no use.
    pub(super) fn forget(&self, slot: u32, path: &RelPath) -> Result<(), Error> {
        let removed = self
            .unlink(&format!("{STAGED}{slot}"))
            .and_then(|()| self.log(&Record::Done { slot }));
        removed.map_err(|errno| Error::system(path, "remove the unfinished", errno))
    }

    /// Removes the folder with all that is ours in it; `false` if someone put something else there, which stays.
    pub(super) fn remove_folder(&self) -> Result<bool, Error> {
        if self.gone.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let removed = names(&self.folder).and_then(|names| {
            for name in names.iter().filter(|name| is_ours(name)) {
                match rustix::fs::unlinkat(&self.folder, name, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT | Errno::ISDIR) => {}
                    Err(errno) => return Err(errno),
                }
            }
            // NFS keeps a file that is open under another name, in which the folder would not be empty. Not before it has
            // lost its name: whoever waits for the lock must see that it is gone.
            self.journal.lock().unwrap_or_else(PoisonError::into_inner).take();
            match rustix::fs::unlinkat(self.handles.root(), &self.name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => Ok(true),
                Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => Ok(false),
                Err(errno) => Err(errno),
            }
        });
        self.gone.store(removed.is_ok(), Ordering::Relaxed);
        removed.map_err(|errno| Error::system(&self.name, "remove", errno))
    }
}

/// A folder that is ours alone for as long as the journal is open.
struct Locked<'a> {
    folder: OwnedFd,
    journal: OwnedFd,
    made: Made<'a>,
}

/// Whether this run made the folder, so that it goes with whatever goes wrong.
struct Made<'a> {
    root: &'a OwnedFd,
    name: &'a str,
    made: bool,
}

impl Made<'_> {
    /// Removes the folder again, if it was made and nothing else is in it.
    fn undo(&self, folder: &OwnedFd) {
        if self.made {
            for name in probe::NAMES.iter().chain(&[JOURNAL]) {
                let _ = rustix::fs::unlinkat(folder, *name, AtFlags::empty());
            }
            self.undo_empty();
        }
    }

    fn undo_empty(&self) {
        if self.made {
            let _ = rustix::fs::unlinkat(self.root, self.name, AtFlags::REMOVEDIR);
        }
    }
}

/// Makes or finds the folder, and takes its lock: that of the journal.
fn take_lock<'a>(destination: &'a Destination, name: &'a str, shown: &str) -> Result<Locked<'a>, Error> {
    let failed = |errno| Error::system(shown, "make", errno);
    // The folder can be removed between being opened and being locked, by the one who held it.
    for _ in 0..16 {
        let made = match rustix::fs::mkdirat(&destination.root, name, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(errno) => return Err(failed(errno)),
        };
        let root = &*destination.root;
        let made = Made { root, name, made };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = match rustix::fs::openat(&destination.root, name, flags, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => continue,
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(Error::NotOurs { path: shown.to_owned() }),
            Err(errno) => {
                made.undo_empty();
                return Err(failed(errno));
            }
        };
        match take(&folder, shown) {
            Ok(Some(journal)) => return Ok(Locked { folder, journal, made }),
            Ok(None) => {}
            Err(error) => {
                // Whoever else has it locked goes on with it.
                if !matches!(error, Error::Busy { .. }) {
                    made.undo(&folder);
                }
                return Err(error);
            }
        }
    }
    Err(Error::Busy { path: shown.to_owned() })
}

/// Takes the lock of a folder that nobody else can write to; `None` if it was removed meanwhile.
fn take(folder: &OwnedFd, shown: &str) -> Result<Option<OwnedFd>, Error> {
    let failed = |errno| Error::system(shown, "make", errno);
    let not_ours = || Error::NotOurs { path: shown.to_owned() };
    let stat = rustix::fs::fstat(folder).map_err(failed)?;
    let odd = stat.st_uid != rustix::process::geteuid().as_raw() || stat.st_mode & 0o022 != 0;
    if odd && !probe::shows_all_as(folder.as_fd(), stat.st_uid, stat.st_mode) {
        return Err(not_ours());
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let journal = match rustix::fs::openat(folder, JOURNAL, flags, Mode::RUSR | Mode::WUSR) {
        Ok(journal) => journal,
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(failed(errno)),
    };
    match rustix::fs::flock(&journal, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Err(Error::Busy { path: shown.to_owned() }),
        // A file system without locks.
        Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK) => {}
        Err(errno) => return Err(failed(errno)),
    }
    let held = rustix::fs::fstat(&journal).map_err(failed)?;
    if FileType::from_raw_mode(held.st_mode) != FileType::RegularFile {
        return Err(not_ours());
    }
    Ok((held.st_nlink > 0).then_some(journal))
}

/// Removes temporary files that no record speaks of, and drops records whose files are gone.
fn sweep(folder: &OwnedFd, files: HashMap<u32, Partial>) -> Result<HashMap<u32, Partial>, Errno> {
    let mut kept = HashMap::with_capacity(files.len());
    for (slot, mut partial) in files {
        let Ok(stat) = rustix::fs::statat(folder, format!("{STAGED}{slot}"), AtFlags::SYMLINK_NOFOLLOW) else {
            continue;
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            continue;
        }
        // What the disk lost can not be there.
        let size = u64::try_from(stat.st_size).unwrap_or_default();
        partial.covered.remove(size..u64::MAX);
        kept.insert(slot, partial);
    }
    for name in names(folder)? {
        let slot = std::str::from_utf8(&name)
            .ok()
            .and_then(|name| name.strip_prefix(STAGED)?.parse().ok());
        let known = slot.is_some_and(|slot| kept.contains_key(&slot));
        if is_ours(&name) && name != JOURNAL.as_bytes() && !known {
            match rustix::fs::unlinkat(folder, &name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT | Errno::ISDIR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }
    Ok(kept)
}

/// Whether we give such names. Whatever else is in the folder is not touched.
fn is_ours(name: &[u8]) -> bool {
    match name {
        [b'f' | b's' | b'l', digits @ ..] => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
        name => name == JOURNAL.as_bytes() || probe::NAMES.iter().any(|probe| name == probe.as_bytes()),
    }
}

fn names(folder: &OwnedFd) -> Result<Vec<Vec<u8>>, Errno> {
    let mut names = Vec::new();
    let mut dir = Dir::read_from(folder)?;
    while let Some(entry) = dir.read() {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            names.push(entry.file_name().to_bytes().to_vec());
        }
    }
    Ok(names)
}

/// Ranges of an earlier run, for whoever fetches the rest.
pub(super) fn covered(partial: Option<&Partial>) -> Ranges {
    partial.map(|partial| partial.covered.clone()).unwrap_or_default()
}
