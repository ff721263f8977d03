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
#[path = "../links/lines.rs"]
mod lines;
mod sharing;
mod support;
mod writing;

use std::path::Path;
use std::sync::Arc;

use lines::{path, until};
use sealway_drop_mount::fuse::{Mount, MountOptions};
use sealway_drop_mount::tree::RemoteTree;
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
