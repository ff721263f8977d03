//! What is there is what is shown.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealway_drop_mount::fuse::MountOptions;
use sealway_drop_mount::local::{LocalOptions, LocalTree};
use sealway_drop_mount::tree::MemoryTree;

use super::{Mounted, path};
use sealway_drop::testing::content;

/// Everything below a folder: what it is, how it may be used, what it says.
fn look(root: &Path) -> BTreeMap<PathBuf, (u32, i64, i64, Vec<u8>)> {
    let (mut seen, mut todo) = (BTreeMap::new(), vec![PathBuf::new()]);
    while let Some(at) = todo.pop() {
        let here = root.join(&at);
        let what = fs::symlink_metadata(&here).unwrap();
        let content = if what.is_dir() {
            todo.extend(
                fs::read_dir(&here)
                    .unwrap()
                    .map(|entry| at.join(entry.unwrap().file_name())),
            );
            Vec::new()
        } else if what.is_symlink() {
            fs::read_link(&here).unwrap().as_os_str().as_bytes().to_vec()
        } else {
            assert_eq!(what.len(), fs::read(&here).unwrap().len() as u64);
            fs::read(&here).unwrap()
        };
        seen.insert(at, (what.mode(), what.mtime(), what.mtime_nsec(), content));
    }
    seen
}

#[test]
fn a_folder_is_the_same_through_a_mount() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    fs::create_dir_all(root.join("deep/er/still")).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    for (name, len) in [
        ("0", 0),
        ("1", 1),
        ("4096", 4096),
        ("4097", 4097),
        ("mib", 1 << 20),
        ("big", 9_000_001),
    ] {
        fs::write(root.join(name), content(len, len as u64)).unwrap();
    }
    fs::write(root.join("deep/er/still/here"), "here").unwrap();
    for odd in [&b"\xff\xfe\x80"[..], b"new\nline", b" ", b"-rf", b"\\040", &[b'n'; 255]] {
        fs::write(root.join(OsStr::from_bytes(odd)), odd).unwrap();
    }
    symlink("../../etc/passwd", root.join("out")).unwrap();
    symlink("/etc/passwd", root.join("absolute")).unwrap();
    symlink("4096", root.join("in")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    fs::set_permissions(root.join("1"), fs::Permissions::from_mode(0o750)).unwrap();
    let sparse = File::create(root.join("sparse")).unwrap();
    sparse.write_all_at(b"end", 5 << 20).unwrap();
    for i in 0..2100 {
        fs::write(root.join(format!("empty/{i}")), "").unwrap();
    }
    let tree = LocalTree::open(root, LocalOptions::default()).unwrap();
    let Some(mounted) = Mounted::new(Arc::new(tree), MountOptions::default()) else {
        return;
    };
    let (want, got) = (look(root), look(mounted.path()));
    assert_eq!(want.keys().collect::<Vec<_>>(), got.keys().collect::<Vec<_>>());
    for (name, what) in &want {
        assert!(what == &got[name], "{}", name.display());
    }
    assert_eq!(fs::metadata(mounted.at("in")).unwrap().len(), 4096);
    let block = fs::metadata(mounted.at("big")).unwrap().blksize();
    assert_eq!(block, 1 << 20);
}

#[test]
fn any_part_of_a_file_can_be_read() {
    let data = content(6_000_000, 7);
    let tree = MemoryTree::new();
    tree.put_file(&path("file"), data.clone());
    let Some(mounted) = Mounted::new(Arc::new(tree), MountOptions::default()) else {
        return;
    };
    let file = File::open(mounted.at("file")).unwrap();
    let picks = content(8 * 400, 99);
    for pick in picks.chunks_exact(8) {
        let number = |at: usize| u32::from_le_bytes(pick[at..at + 4].try_into().unwrap()) as usize;
        let (offset, len) = (number(0) % 6_100_000, number(4) % 300_000);
        let mut buffer = vec![0; len];
        let mut got = 0;
        while got < len {
            match file.read_at(&mut buffer[got..], (offset + got) as u64).unwrap() {
                0 => break,
                read => got += read,
            }
        }
        let from = offset.min(data.len());
        assert!(
            buffer[..got] == data[from..(from + len).min(data.len())],
            "{offset}+{len}"
        );
    }
}

#[test]
fn several_readers_read_in_one_go_at_once() {
    let tree = MemoryTree::new();
    for name in ["a", "b", "c", "d"] {
        tree.put_file(&path(name), content(20 << 20, u64::from(name.as_bytes()[0])));
    }
    // Less memory than all want: some read without a window.
    let options = MountOptions {
        memory: 6 << 20,
        ..MountOptions::default()
    };
    let Some(mounted) = Mounted::new(Arc::new(tree), options) else {
        return;
    };
    std::thread::scope(|scope| {
        for name in ["a", "b", "c", "d", "a", "c"] {
            let at = mounted.at(name);
            scope.spawn(move || {
                let mut got = Vec::new();
                File::open(at).unwrap().read_to_end(&mut got).unwrap();
                assert!(got == content(20 << 20, u64::from(name.as_bytes()[0])));
            });
        }
    });
}

#[test]
fn nothing_can_be_written() {
    let tree = MemoryTree::new();
    tree.put_file(&path("file"), "text");
    let Some(mounted) = Mounted::new(Arc::new(tree), MountOptions::default()) else {
        return;
    };
    let file = mounted.at("file");
    let outcomes = [
        File::options().write(true).open(&file).map(drop),
        fs::write(mounted.at("new"), ""),
        fs::remove_file(&file),
        fs::create_dir(mounted.at("dir")),
        fs::rename(&file, mounted.at("other")),
        symlink("x", mounted.at("link")),
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)),
    ];
    for outcome in outcomes {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::ReadOnlyFilesystem);
    }
    assert_eq!(fs::read(&file).unwrap(), b"text");
}

#[test]
fn files_are_closed_at_the_serving_side() {
    let tree = MemoryTree::new();
    tree.put_file(&path("file"), "text");
    let Some(mounted) = Mounted::new(Arc::new(tree.clone()), MountOptions::default()) else {
        return;
    };
    let file = File::open(mounted.at("file")).unwrap();
    assert_eq!(tree.open_handles(), 1);
    drop(file);
    super::until("closing", || tree.open_handles() == 0);
    let names: Vec<OsString> = fs::read_dir(mounted.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["file"]);
}
