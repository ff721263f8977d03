//! Whole files of a mounted tree, kept on a disk of this machine.
//!
//! - A file is kept once every byte of one version of it has been read. Its bytes are written to a temporary file as they
//!   come; when all are there the file is brought to the disk and takes its name. What has a name is therefore whole, also
//!   after a crash or a loss of power.
//! - Names are hashes of who serves the tree, of the path, and of what the tree says of the file (object, version, size,
//!   time), so no name is the peer's, one peer cannot put a copy in place of another's, and a copy of content that
//!   has changed is not found any more.
//! - A copy that is not as it was left, in size or time, is no copy: it is removed, and the peer is asked.
//! - Copies that were used least recently go when room is needed, those in use never. Several mounts may use one folder at
//!   a time: what one writes, the others do not touch, and a lock says what is in use.
//!
//! In the folder: `copy-…`, a copy; `once-MOUNT-…`, a copy for one mount; `part-MOUNT-…`, a file that is not whole;
//! `mount-MOUNT`, locked while that mount lives. What belongs to a mount that is gone is removed by the next one.

mod copy;
mod fill;
mod folder;
mod pending;
mod room;
#[cfg(test)]
mod tests;
mod work;

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, Weak};

use bytes::Bytes;

use crate::tree::{Attr, Kind, TreePath};
pub(crate) use copy::{Copy, Key};
pub(crate) use fill::Fill;
use fill::Settling;
use room::Room;
use sealway_drop::lock;
use work::Block;

/// Where and how whole files are kept.
#[derive(Debug, Clone)]
pub struct CacheOptions {
    /// A folder that only this user may write; made if it is not there. Copies are in `sealway-copies` in it.
    pub dir: PathBuf,
    /// Bytes that may be kept; files larger than this are not. Default 4 GiB.
    pub size: u64,
    /// Who serves the tree: its static key, if it has proved it. Without, copies last as long as the mount, since nobody
    /// could say at the next one whether the same peer is there.
    pub peer: Option<[u8; 32]>,
    /// Whether the kernel may read copies by itself, if it can and this program is allowed to say so. Default yes.
    pub passthrough: bool,
}

impl CacheOptions {
    /// Keeps copies in `dir`, with defaults for the rest.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            size: 4 << 30,
            peer: None,
            passthrough: true,
        }
    }
}

/// Why no copies can be kept.
#[derive(Debug)]
#[non_exhaustive]
pub enum CacheError {
    /// A system call on the folder failed.
    Folder {
        /// The folder.
        path: PathBuf,
        /// What was being done.
        doing: &'static str,
        /// Why it failed.
        error: io::Error,
    },
    /// Others could put copies of their own into the folder, or read those in it.
    Exposed(PathBuf),
}

impl fmt::Display for CacheError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder { path, doing, error } => write!(f, "{doing} in {}: {error}", path.display()),
            Self::Exposed(path) => write!(
                f,
                "{} is another user's, or others may change it: give a folder of your own with mode 700",
                path.display()
            ),
        }
    }
}

impl std::error::Error for CacheError {}

/// The copies that one mount may use and make.
pub(crate) struct Store {
    room: Arc<Room>,
    namespace: [u8; 32],
    prefix: String,
    fills: Mutex<HashMap<Key, Weak<Fill>>>,
    blocks: SyncSender<Block>,
    settling: SyncSender<Settling>,
}

impl Store {
    /// Opens the folder, and removes what mounts that are gone have left.
    pub(crate) fn open(options: &CacheOptions) -> Result<Self, CacheError> {
        let failed = |doing| folder::failed(&options.dir, doing);
        let folder = folder::open(&options.dir)?;
        let room = Room::new(folder, options.size).map_err(failed("making a file"))?;
        room.clean().map_err(failed("removing leftovers"))?;
        room.sweep(0);
        let room = Arc::new(room);
        let (namespace, prefix) = match options.peer {
            Some(peer) => (peer, "copy-".to_owned()),
            None => {
                let mut random = [0; 32];
                getrandom::fill(&mut random).map_err(|_| failed("drawing a number")(io::ErrorKind::Other.into()))?;
                (random, format!("once-{}-", room.id()))
            }
        };
        let (blocks, settling) = work::start(&room).map_err(failed("starting threads"))?;
        Ok(Self {
            room,
            namespace,
            prefix,
            fills: Mutex::default(),
            blocks,
            settling,
        })
    }

    /// What a copy of the file at `path`, as `attr` says it is now, is called.
    pub(crate) fn key(&self, path: &TreePath, attr: &Attr) -> Key {
        Key::new(&self.prefix, &self.namespace, path, attr)
    }

    /// A whole copy, if there is one. It stays until the answer is dropped.
    pub(crate) fn find(&self, key: &Key) -> Option<Copy> {
        let found = Copy::open(self.room.folder(), key)?;
        if found.is_intact() {
            found.touch();
            return Some(found);
        }
        tracing::info!(name = key.name(), "a damaged copy was removed");
        self.forget(key);
        None
    }

    /// Removes a copy that is not to be used any more.
    pub(crate) fn forget(&self, key: &Key) {
        let _ = self.room.remove(key.name());
    }

    /// Where the bytes of a file go that is being read; `None` for a file that is not to be kept. All who read the same
    /// version at one time fill the same copy.
    pub(crate) fn fill(&self, key: &Key, attr: &Attr) -> Option<Arc<Fill>> {
        if attr.kind != Kind::File || attr.size == 0 || attr.size > self.room.limit() {
            return None;
        }
        let mut fills = lock(&self.fills);
        if let Some(fill) = fills.get(key).and_then(Weak::upgrade) {
            return Some(fill);
        }
        if fills.len() >= 256 {
            fills.retain(|_, fill| fill.strong_count() > 0);
        }
        let fill = Arc::new(Fill::new(&self.room, key.clone(), attr.version, self.settling.clone()));
        fills.insert(key.clone(), Arc::downgrade(&fill));
        Some(fill)
    }

    /// Takes bytes of a file that were read, as a rule without waiting for a disk.
    pub(crate) fn put(&self, fill: &Arc<Fill>, offset: u64, data: Bytes) {
        if !fill.wants() {
            return;
        }
        let fill = Arc::clone(fill);
        self.room.pending.begin();
        match self.blocks.try_send(Block { fill, offset, data }) {
            Ok(()) => {}
            // The disk is slower than the peer: the reader goes at its pace, or the copy would never be whole.
            Err(TrySendError::Full(block) | TrySendError::Disconnected(block)) => block.write(&self.room.pending),
        }
    }

    /// A file of the folder that is nobody's copy, and on which no lock depends.
    pub(crate) fn sample(&self) -> io::Result<std::os::fd::OwnedFd> {
        self.room.sample()
    }

    /// Whether the folder is on a file system that itself stands on another one.
    pub(crate) fn is_stacked(&self) -> bool {
        folder::is_stacked(self.room.folder())
    }

    /// Waits a while until what was taken is in place or dropped; whether it is.
    pub(crate) fn settle(&self) -> bool {
        self.room.pending.wait(work::PATIENCE)
    }

    /// Finishes what is under way and removes what only this mount could use. Nothing is taken afterwards.
    pub(crate) fn close(&self) {
        if !self.settle() {
            tracing::debug!("copies that were being written are dropped");
        }
        self.room.close();
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.room.close();
    }
}
