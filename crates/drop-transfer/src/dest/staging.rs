//! One transfer into a destination.

use std::sync::Arc;

use super::decision::Placed;
use super::folder::{Folder, SMALL};
use super::staged::{Open, StagedFile};
use super::{Destination, Error};
use crate::entry::Entry;
use sealway_drop::lock;

/// One transfer into a destination. Any number of threads may use it.
///
/// Dropped before [`Staging::conclude`], it keeps what has come for a later run of the same transfer; if nothing has, it
/// leaves no trace.
#[derive(Debug)]
pub struct Staging {
    pub(super) inner: Arc<Folder>,
    open: Arc<Open>,
}

impl Staging {
    pub(super) fn open(destination: Destination, transfer: &[u8; 32]) -> Result<Staging, Error> {
        Ok(Staging {
            inner: Arc::new(Folder::open(destination, transfer)?),
            open: Arc::default(),
        })
    }

    /// The name of the staging folder in the destination.
    pub fn folder_name(&self) -> &str {
        &self.inner.name
    }

    /// Opens a file that [`Staging::admit`] said to fetch, for pieces in any order by any number of threads. The same file
    /// opened twice is one.
    ///
    /// # Errors
    /// [`Error::NotOpen`] if it was not admitted, [`Error::NoSpace`] if the disk has no room for all of it.
    pub fn open_file(&self, id: u32, entry: &Entry) -> Result<Arc<StagedFile>, Error> {
        StagedFile::open(&self.inner, &self.open, id, entry)
    }

    /// Gives up a file that [`Staging::admit`] said to fetch: the sender cannot read it. What came of it is removed.
    ///
    /// # Errors
    /// Why what came cannot be removed.
    pub fn give_up(&self, id: u32) -> Result<(), Error> {
        self.inner.state().pending.remove(&id);
        let open = lock(&self.open).remove(&id).and_then(|file| file.upgrade());
        open.map_or(Ok(()), |file| file.remove())
    }

    /// Ends the transfer for good: what has come of unfinished files is removed. Files in their place stay.
    ///
    /// # Errors
    /// Why something cannot be removed.
    pub fn abandon(&self) -> Result<(), Error> {
        self.inner.remove_folder().map(drop)
    }

    /// Makes a whole file at once. Meant for small ones: there is no journal and nothing to resume.
    ///
    /// # Errors
    /// [`Error::NotOpen`] if [`Staging::admit`] did not say to fetch it, [`Error::Incomplete`] or [`Error::Outside`] if
    /// `bytes` are not as many as the entry says, else what the system says. The file can be placed again after an error.
    pub fn place_small(&self, id: u32, entry: &Entry, bytes: &[u8]) -> Result<Placed, Error> {
        let inner = &*self.inner;
        let (size, len) = (entry.size(), bytes.len() as u64);
        if len < size {
            return Err(Error::Incomplete {
                path: entry.path.clone(),
                missing: size - len,
            });
        }
        if len > size {
            return Err(Error::Outside {
                path: entry.path.clone(),
                offset: 0,
                bytes: len,
                size,
            });
        }
        if !inner.state().pending.remove(&id) {
            return Err(Error::NotOpen { id });
        }
        let temporary = format!("{SMALL}{}", inner.new_slot());
        let placed = inner
            .small(&temporary, entry, bytes)
            .and_then(|()| inner.put(id, &entry.path, &temporary));
        if placed.is_err() {
            // The first error is the one that counts; the next run sweeps what is left.
            let _ = inner.unlink(&temporary);
            inner.state().pending.insert(id);
        }
        placed
    }
}
