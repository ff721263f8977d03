//! Handles of the directories that files go into.

use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::OFlags;

use super::Error;
use crate::beneath::Beneath;
use sealway_drop::names::{Escaped, RelPath, join};

/// Handles kept at a time. A tree comes directory by directory, so few are enough.
const MAX_HANDLES: usize = 128;

#[derive(Debug)]
pub(super) struct Handles {
    root: Arc<OwnedFd>,
    beneath: Beneath,
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    handles: HashMap<Box<[u8]>, (Arc<OwnedFd>, u64)>,
    clock: u64,
}

impl Handles {
    pub(super) fn new(root: Arc<OwnedFd>, without_openat2: bool) -> Handles {
        Handles {
            root,
            beneath: Beneath::new(without_openat2),
            cache: Mutex::default(),
        }
    }

    pub(super) fn root(&self) -> &Arc<OwnedFd> {
        &self.root
    }

    /// A handle of the directory that holds `path`.
    pub(super) fn parent(&self, path: &RelPath) -> Result<Arc<OwnedFd>, Error> {
        let key = path.parent_key();
        if key.is_empty() {
            return Ok(Arc::clone(&self.root));
        }
        if let Some(handle) = self.cached(key) {
            return Ok(handle);
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let opened = self.beneath.open(&self.root, key, flags);
        let handle = Arc::new(opened.map_err(|errno| Error::system(Escaped(&join(key)), "open the folder", errno))?);
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.handles.len() >= MAX_HANDLES
            && let Some(oldest) = cache
                .handles
                .iter()
                .min_by_key(|(_, (_, used))| *used)
                .map(|(key, _)| key.clone())
        {
            cache.handles.remove(&oldest);
        }
        let used = cache.clock;
        cache.handles.insert(key.into(), (Arc::clone(&handle), used));
        Ok(handle)
    }

    fn cached(&self, key: &[u8]) -> Option<Arc<OwnedFd>> {
        let mut cache = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache.clock += 1;
        let now = cache.clock;
        let (handle, used) = cache.handles.get_mut(key)?;
        *used = now;
        Some(Arc::clone(handle))
    }

    /// Opens a directory itself, for its mode, its time and its way to the disk.
    pub(super) fn directory(&self, key: &[u8]) -> Result<OwnedFd, rustix::io::Errno> {
        self.beneath.open(&self.root, key, OFlags::RDONLY | OFlags::DIRECTORY)
    }
}
