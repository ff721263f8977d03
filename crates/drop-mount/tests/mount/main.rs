//! Trees mounted for real and read through the kernel.
//!
//! Needs /dev/fuse and the right to mount: root, or `fusermount3`. Without them the tests say so and pass, unless
//! `SEALWAY_REQUIRE_PEERS=1` is set.

#![allow(clippy::unwrap_used)]

mod again;
mod cache;
mod changes;
mod content;
mod ends;
mod exchanges;
mod failures;
mod faulty;
mod sharing;
mod support;
mod writing;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sealway_drop_mount::fuse::{Mount, MountOptions};
use sealway_drop_mount::tree::{RemoteTree, TreePath};
use support::can_mount;
use tempfile::TempDir;

/// A mounted tree; unmounted before its folder goes.
struct Mounted {
    mount: Option<Mount>,
    dir: TempDir,
}

impl Mounted {
    /// Mounts, or says why not.
    fn new(tree: Arc<dyn RemoteTree>, options: MountOptions) -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let mount = Mount::start(tree, dir.path(), options).unwrap();
        Some(Self {
            mount: Some(mount),
            dir,
        })
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        drop(self.mount.take());
    }
}

/// Waits for something that happens in another thread.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn path(text: &str) -> TreePath {
    TreePath::parse(text.as_bytes()).unwrap()
}
