//! Trees mounted for real and read through the kernel.
//!
//! Needs /dev/fuse and the right to mount: root, or `fusermount3`. Without them the tests say so and pass, unless
//! `SEALWAY_REQUIRE_PEERS=1` is set.

#![allow(clippy::unwrap_used)]

mod again;
mod cache;
mod changes;
mod content;
mod failures;
mod faulty;
#[path = "../support/relay.rs"]
#[allow(dead_code)]
mod relay;
mod sharing;
#[path = "../support/mod.rs"]
mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use sealway_drop::fuse::{Mount, MountOptions};
use sealway_drop::tree::{RemoteTree, TreePath};
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

fn can_mount() -> bool {
    let device = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse")
        .is_ok();
    let helper = || std::process::Command::new("fusermount3").arg("-V").output().is_ok();
    if device && (rustix::process::geteuid().is_root() || helper()) {
        return true;
    }
    let required = std::env::var("SEALWAY_REQUIRE_PEERS").is_ok_and(|value| value == "1");
    assert!(
        !required,
        "nothing can be mounted here, and SEALWAY_REQUIRE_PEERS=1: /dev/fuse and root or fusermount3"
    );
    eprintln!("skipped: nothing can be mounted here (/dev/fuse and root or fusermount3 are needed)");
    false
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

/// Bytes that are nowhere the same.
fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        out.extend_from_slice(&next().to_le_bytes());
    }
    out.truncate(len);
    out
}
