//! Trees that change while they are mounted.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use sealway_drop_mount::fuse::MountOptions;
use sealway_drop_mount::local::{LocalOptions, LocalTree};
use sealway_drop_mount::tree::MemoryTree;

use super::{Mounted, path, until};
use sealway_drop::testing::content;

/// The kernel may keep everything for ever unless it is told otherwise.
fn patient() -> MountOptions {
    MountOptions {
        ttl: Duration::from_secs(86_400),
        ..MountOptions::default()
    }
}

#[test]
fn an_open_sees_the_present_content_whatever_the_kernel_kept() {
    let tree = MemoryTree::new();
    let file = path("file");
    tree.put_file(&file, content(300_000, 1));
    let Some(mounted) = Mounted::new(Arc::new(tree.clone()), patient()) else {
        return;
    };
    for round in 2..12 {
        // The same content twice: kept the second time, and right either way. The same length as before, then another.
        let len = 300_000 + round / 6 * 50_000;
        tree.put_file(&file, content(len, round as u64));
        until("the new content", || {
            fs::read(mounted.at("file")).unwrap() == content(len, round as u64)
        });
        assert!(fs::read(mounted.at("file")).unwrap() == content(len, round as u64));
    }
}

#[test]
fn a_file_held_open_shows_new_content_and_its_new_end() {
    let tree = MemoryTree::new();
    tree.put_file(&path("file"), content(5 << 20, 1));
    let Some(mounted) = Mounted::new(Arc::new(tree.clone()), patient()) else {
        return;
    };
    let file = File::open(mounted.at("file")).unwrap();
    let mut buffer = vec![0; 100_000];
    file.read_exact_at(&mut buffer, 0).unwrap();
    assert!(buffer == content(5 << 20, 1)[..100_000]);
    tree.put_file(&path("file"), content(1 << 20, 2));
    until("the new content", || {
        file.read_exact_at(&mut buffer, 0).unwrap();
        buffer == content(1 << 20, 2)[..100_000]
    });
    until("the new end", || file.metadata().unwrap().len() == 1 << 20);
    until("the end of file", || file.read_at(&mut buffer, 2 << 20).unwrap() == 0);
    tree.put_file(&path("file"), content(3 << 20, 3));
    until("the longer file", || {
        file.read_at(&mut buffer, 2 << 20).unwrap() == buffer.len()
            && buffer == content(3 << 20, 3)[2 << 20..][..100_000]
    });
}

#[test]
fn names_that_come_and_go_are_seen_before_their_time() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir(root.join("dir")).unwrap();
    fs::write(root.join("dir/file"), "old").unwrap();
    let tree = LocalTree::open(root, LocalOptions::default()).unwrap();
    let Some(mounted) = Mounted::new(Arc::new(tree), patient()) else {
        return;
    };
    assert_eq!(fs::read(mounted.at("dir/file")).unwrap(), b"old");
    fs::write(root.join("dir/file"), "new text").unwrap();
    until("the new text", || {
        fs::read(mounted.at("dir/file")).unwrap() == b"new text"
    });
    until("the new length", || {
        fs::metadata(mounted.at("dir/file")).unwrap().len() == 8
    });
    fs::write(root.join("dir/second"), "").unwrap();
    until("the second file", || {
        fs::read_dir(mounted.at("dir")).unwrap().count() == 2
    });
    fs::remove_file(root.join("dir/file")).unwrap();
    until("the removal", || fs::metadata(mounted.at("dir/file")).is_err());
    fs::rename(root.join("dir"), root.join("moved")).unwrap();
    until("the move", || fs::metadata(mounted.at("dir")).is_err());
    assert!(fs::metadata(mounted.at("moved/second")).is_ok());
    // What replaces a file is another file.
    fs::write(root.join("other"), "replaced").unwrap();
    fs::rename(root.join("other"), root.join("moved/second")).unwrap();
    until("the replacement", || {
        fs::read(mounted.at("moved/second")).is_ok_and(|text| text == b"replaced")
    });
}

#[test]
fn a_file_that_was_removed_can_still_be_read_by_who_has_it_open() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), content(2 << 20, 5)).unwrap();
    let tree = LocalTree::open(folder.path(), LocalOptions::default()).unwrap();
    let Some(mounted) = Mounted::new(Arc::new(tree), MountOptions::default()) else {
        return;
    };
    let file = File::open(mounted.at("file")).unwrap();
    fs::remove_file(folder.path().join("file")).unwrap();
    until("the removal", || fs::metadata(mounted.at("file")).is_err());
    assert_eq!(file.metadata().unwrap().len(), 2 << 20);
    let mut buffer = vec![0; 2 << 20];
    file.read_exact_at(&mut buffer, 0).unwrap();
    assert!(buffer == content(2 << 20, 5));
}
