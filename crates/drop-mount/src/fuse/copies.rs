//! Local copies in the mount: which way an open file is read.
//!
//! The kernel reads a copy by itself (passthrough, Linux 6.9) or asks for each read. All that have one inode open must go one
//! way: an open by passthrough fails while another one is read through the page cache, and the other way round; all by
//! passthrough must name the same backing file (`fs/fuse/iomode.c`). So opens are counted by inode, and the first decides.
//! Should the content change while the kernel reads a copy of the old one, a new open is told that the inode is stale: the
//! kernel looks the name up again, and finds another number. Who has the old one open reads what was there at opening.

use std::collections::HashMap;
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use fuser::{BackingId, InitFlags, KernelConfig};

use crate::cache::{Copy, Fill, Key, Store};
use crate::tree::{Attr, TreeError, TreePath};
use sealway_drop::lock;

/// How reads of whole local copies are answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CopiesBy {
    /// By the kernel, which reads the copy by itself (passthrough).
    Kernel,
    /// By this program, which reads the copy.
    Program,
}

/// Where what is read of an open file comes from.
pub(super) enum Source {
    /// From the peer, and into a copy if there is to be one.
    Peer(Option<Arc<Fill>>),
    /// All of it has come already, and may be given until then.
    Whole(Bytes, Instant),
    /// From a copy, by us.
    Copy(Arc<Copy>),
    /// From a copy, by the kernel.
    Kernel,
}

/// The copies of a mount.
pub(super) struct Copies {
    store: Store,
    /// Whether passthrough is to be used if it can be.
    wanted: bool,
    /// Whether it is used.
    passthrough: AtomicBool,
    modes: Mutex<HashMap<u64, Mode>>,
}

/// How an inode is open.
enum Mode {
    /// Through the page cache.
    Cached { opens: u64 },
    Kernel {
        opens: u64,
        copy: Copy,
        /// What the kernel knows the copy by; closed when this goes.
        backing: Arc<BackingId>,
    },
}

impl Copies {
    pub(super) fn new(store: Store, wanted: bool) -> Self {
        let (passthrough, modes) = (AtomicBool::new(false), Mutex::default());
        Self {
            store,
            wanted,
            passthrough,
            modes,
        }
    }

    pub(super) fn store(&self) -> &Store {
        &self.store
    }

    /// Asks the kernel to read copies by itself, if it offers that.
    pub(super) fn init(&self, config: &mut KernelConfig) {
        if !self.wanted || config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_err() {
            return;
        }
        // How many file systems may stand on each other, this one included. One is the least with which passthrough works,
        // and leaves room for an overlay on the mount; copies that are on an overlay themselves take two.
        let depth = if self.store.is_stacked() { 2 } else { 1 };
        if config.set_max_stack_depth(depth).is_ok() {
            self.passthrough.store(true, Ordering::SeqCst);
        }
    }

    /// After the kernel has agreed to it: whether it takes a file of ours, for which it wants a privilege.
    pub(super) fn try_out(&self, device: impl AsFd) {
        if !self.passthrough.load(Ordering::SeqCst) {
            return;
        }
        // The number that comes back is given up with the mount.
        let taken = self.store.sample().and_then(|file| BackingId::create_raw(device, file));
        if let Err(error) = taken {
            tracing::debug!(%error, "the kernel does not take local copies");
            self.passthrough.store(false, Ordering::SeqCst);
        }
    }

    pub(super) fn by(&self) -> CopiesBy {
        match self.passthrough.load(Ordering::SeqCst) {
            true => CopiesBy::Kernel,
            false => CopiesBy::Program,
        }
    }

    /// Decides about an open of the file at `path`, which is as `attr` says, and counts it. `back` tells the kernel of a copy;
    /// what comes back is to be named in the answer. `pin` is called if the kernel is to read.
    ///
    /// # Errors
    /// [`TreeError::Stale`] if the kernel still reads another version under this number.
    pub(super) fn open(
        &self,
        ino: u64,
        path: &TreePath,
        attr: &Attr,
        back: impl FnOnce(&Copy) -> io::Result<BackingId>,
        pin: impl FnOnce(),
    ) -> Result<(Source, Option<Arc<BackingId>>), TreeError> {
        let key = self.store.key(path, attr);
        let mut modes = lock(&self.modes);
        if let Some(Mode::Kernel { opens, copy, backing }) = modes.get_mut(&ino) {
            if !copy.is_of(&key) || !copy.is_intact() {
                return Err(TreeError::Stale);
            }
            *opens += 1;
            return Ok((Source::Kernel, Some(Arc::clone(backing))));
        }
        let source = match self.store.find(&key) {
            Some(copy) => {
                if !modes.contains_key(&ino)
                    && let Some(backing) = self.back(&copy, back)
                {
                    let (opens, backing) = (1, Arc::new(backing));
                    pin();
                    let known = Arc::clone(&backing);
                    modes.insert(ino, Mode::Kernel { opens, copy, backing });
                    return Ok((Source::Kernel, Some(known)));
                }
                Source::Copy(Arc::new(copy))
            }
            None => Source::Peer(self.store.fill(&key, attr)),
        };
        count(&mut modes, ino);
        Ok((source, None))
    }

    fn back(&self, copy: &Copy, back: impl FnOnce(&Copy) -> io::Result<BackingId>) -> Option<BackingId> {
        if !self.passthrough.load(Ordering::SeqCst) {
            return None;
        }
        match back(copy) {
            Ok(backing) => Some(backing),
            Err(error) => {
                tracing::warn!(%error, "the kernel does not take a copy; from now on they are read here");
                self.passthrough.store(false, Ordering::SeqCst);
                None
            }
        }
    }

    /// One open less; `unpin` is called if it was the last one through the kernel.
    pub(super) fn close(&self, ino: u64, unpin: impl FnOnce()) {
        let mut modes = lock(&self.modes);
        let Some(mode) = modes.get_mut(&ino) else { return };
        let (Mode::Cached { opens } | Mode::Kernel { opens, .. }) = mode;
        *opens = opens.saturating_sub(1);
        if *opens == 0
            && let Some(Mode::Kernel { .. }) = modes.remove(&ino)
        {
            unpin();
        }
    }

    /// A copy turned out to be damaged.
    pub(super) fn forget(&self, key: &Key) {
        self.store.forget(key);
    }
}

fn count(modes: &mut HashMap<u64, Mode>, ino: u64) {
    match modes.entry(ino).or_insert(Mode::Cached { opens: 0 }) {
        Mode::Cached { opens } | Mode::Kernel { opens, .. } => *opens += 1,
    }
}
