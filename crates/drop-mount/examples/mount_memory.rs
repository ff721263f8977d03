//! Mounts a file of zeros held in memory: the ceiling of a mount with nothing behind it.
//!
//! `cargo run --release -p sealway-drop --example mount_memory DIR [MIB]`, then `dd if=DIR/file of=/dev/null bs=1M`.

use std::path::PathBuf;
use std::sync::Arc;

use sealway_drop_mount::fuse::{Mount, MountOptions};
use sealway_drop_mount::tree::{MemoryTree, TreePath};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let path = PathBuf::from(arguments.next().ok_or("usage: mount_memory DIR [MIB]")?);
    let mib: usize = arguments
        .next()
        .and_then(|mib| mib.to_str()?.parse().ok())
        .unwrap_or(1024);
    let tree = MemoryTree::new();
    tree.put_file(&TreePath::parse(b"file")?, vec![1_u8; mib << 20]);
    let mount = Mount::start(Arc::new(tree), &path, MountOptions::default())?;
    mount.wait()?;
    Ok(())
}
