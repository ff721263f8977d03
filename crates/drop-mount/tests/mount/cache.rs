//! Whole files kept on this machine.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use sealway_drop_mount::cache::CacheOptions;
use sealway_drop_mount::fuse::{CopiesBy, MountError, MountOptions};
use sealway_drop_mount::tree::{Event, MemoryTree};
use tempfile::TempDir;

use super::faulty::Faulty;
use super::support::can_mount;
use super::{Mounted, path, until};
use sealway_drop::testing::content;

/// Both ways to read copies; the kernel's is left out where it is not to be had.
const WAYS: [CopiesBy; 2] = [CopiesBy::Program, CopiesBy::Kernel];

struct Cache(TempDir);

impl Cache {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn options(&self, by: CopiesBy) -> MountOptions {
        let cache = CacheOptions {
            peer: Some([1; 32]),
            passthrough: by == CopiesBy::Kernel,
            ..CacheOptions::new(self.0.path())
        };
        MountOptions {
            cache: Some(cache),
            ..MountOptions::default()
        }
    }

    /// Mounts; `None` where that, or that way, cannot be had.
    fn mount(&self, tree: &Arc<Faulty<MemoryTree>>, by: CopiesBy) -> Option<Mounted> {
        let mounted = Mounted::new(tree.clone(), self.options(by))?;
        let got = mounted.mount.as_ref().unwrap().copies().unwrap();
        if got != by {
            eprintln!("skipped: the kernel does not read copies by itself here");
            return None;
        }
        Some(mounted)
    }

    fn named(&self, prefix: &str) -> Vec<PathBuf> {
        named(self.0.path(), prefix)
    }
}

fn named(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir.join("sealway-copies")).unwrap();
    let names = entries.map(|entry| entry.unwrap().path());
    names
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(prefix))
        .collect()
}

fn tree() -> Arc<Faulty<MemoryTree>> {
    let tree = MemoryTree::new();
    tree.put_file(&path("file"), content(5_000_001, 1));
    tree.put_file(&path("small"), content(3000, 2));
    tree.put_file(&path("empty"), "");
    Faulty::new(tree)
}

/// Reads a file and waits until there are so many copies.
fn read_and_keep(cache: &Cache, mounted: &Mounted, name: &str, copies: usize) -> Vec<u8> {
    let got = fs::read(mounted.at(name)).unwrap();
    until("the copy", || cache.named("copy-").len() == copies);
    got
}

#[test]
fn a_second_reading_asks_the_peer_for_nothing() {
    for by in WAYS {
        let (cache, tree) = (Cache::new(), tree());
        for round in 0..2 {
            let Some(mounted) = cache.mount(&tree, by) else {
                continue;
            };
            tree.reads.store(0, SeqCst);
            assert!(read_and_keep(&cache, &mounted, "file", if round == 0 { 1 } else { 2 }) == content(5_000_001, 1));
            assert!(read_and_keep(&cache, &mounted, "small", 2) == content(3000, 2));
            assert_eq!(fs::read(mounted.at("empty")).unwrap(), b"");
            assert_eq!(tree.reads.load(SeqCst) > 0, round == 0, "{by:?}");
            // Also within one mount, when nobody has the file open, and by several at once.
            tree.reads.store(0, SeqCst);
            let files = [(); 3].map(|()| File::open(mounted.at("file")).unwrap());
            let mut part = vec![0; 100_000];
            for (at, file) in files.iter().enumerate() {
                file.read_exact_at(&mut part, 1_000_000 * at as u64 + 77).unwrap();
                assert!(part == content(5_000_001, 1)[1_000_000 * at + 77..][..100_000]);
                assert_eq!(file.read_at(&mut part, 5_000_000).unwrap(), 1);
                assert_eq!(file.read_at(&mut part, 5_000_001).unwrap(), 0);
            }
            assert_eq!(tree.reads.load(SeqCst), 0, "{by:?}");
            // The kernel has refused nothing meanwhile.
            assert_eq!(mounted.mount.as_ref().unwrap().copies(), Some(by));
        }
    }
}

#[test]
fn a_file_read_in_parts_is_kept_when_all_of_it_was_read() {
    let (cache, tree) = (Cache::new(), tree());
    let Some(mounted) = cache.mount(&tree, CopiesBy::Program) else {
        return;
    };
    let file = File::open(mounted.at("file")).unwrap();
    let mut part = vec![0; 1 << 20];
    for at in [4, 0, 2, 3] {
        let read = file.read_at(&mut part, at << 20).unwrap();
        assert!(part[..read] == content(5_000_001, 1)[(at as usize) << 20..][..read]);
    }
    drop(file);
    // Closed before it was whole; what the kernel read ahead does not make it so.
    drop(mounted);
    assert!(cache.named("part-").is_empty());
    let before = cache.named("copy-").len();
    let Some(mounted) = cache.mount(&tree, CopiesBy::Program) else {
        return;
    };
    assert!(
        read_and_keep(&cache, &mounted, "file", 1) == content(5_000_001, 1),
        "{before}"
    );
}

#[test]
fn what_changed_at_the_peer_is_seen() {
    for by in WAYS {
        let (cache, tree) = (Cache::new(), tree());
        let Some(mounted) = cache.mount(&tree, by) else {
            continue;
        };
        read_and_keep(&cache, &mounted, "file", 1);
        let held = File::open(mounted.at("file")).unwrap();
        let mut part = vec![0; 1000];
        held.read_exact_at(&mut part, 0).unwrap();
        // The same length, then a longer one, while somebody has a copy of the old one open.
        for (round, len) in [(2, 5_000_001), (3, 6_000_000)] {
            // News come late when there are many.
            fs::metadata(mounted.at("small")).unwrap();
            for _ in 0..4000 {
                tree.inner.tell(&Event::Changed(path("small")));
            }
            tree.inner.put_file(&path("file"), content(len, round));
            // Told or not: what is opened now is the present content.
            assert!(fs::read(mounted.at("file")).unwrap() == content(len, round), "{by:?}");
            until("the new length", || {
                fs::metadata(mounted.at("file")).unwrap().len() == len as u64
            });
            assert!(
                read_and_keep(&cache, &mounted, "file", round as usize) == content(len, round),
                "{by:?}"
            );
        }
        match by {
            // Sees the present content, as without copies.
            CopiesBy::Program => until("the new content", || {
                held.read_exact_at(&mut part, 1000).unwrap();
                part == content(6_000_000, 3)[1000..2000]
            }),
            // Sees all of what it opened: neither mixed nor cut.
            CopiesBy::Kernel => {
                assert_eq!(held.metadata().unwrap().len(), 5_000_001);
                let mut all = vec![0; 5_000_001];
                held.read_exact_at(&mut all, 0).unwrap();
                assert!(all == content(5_000_001, 1));
            }
        }
        drop(held);
        assert!(fs::read(mounted.at("file")).unwrap() == content(6_000_000, 3));
        // The name goes, and another file takes it.
        tree.inner.remove(&path("file"));
        tree.inner.put_file(&path("file"), "another");
        tree.inner.tell(&Event::Everything);
        until("the other file", || {
            fs::read(mounted.at("file")).is_ok_and(|text| text == b"another")
        });
    }
}

#[test]
fn readers_by_both_ways_at_once_get_along() {
    for by in WAYS {
        let (cache, tree) = (Cache::new(), tree());
        let Some(mounted) = cache.mount(&tree, by) else {
            continue;
        };
        // Open before there is a copy, so read through the page cache as long as it is open.
        let early = File::open(mounted.at("file")).unwrap();
        read_and_keep(&cache, &mounted, "file", 1);
        let late = File::open(mounted.at("file")).unwrap();
        let mut part = vec![0; 500_000];
        for file in [&early, &late] {
            file.read_exact_at(&mut part, 3_000_000).unwrap();
            assert!(part == content(5_000_001, 1)[3_000_000..3_500_000]);
        }
        drop((early, late));
        tree.reads.store(0, SeqCst);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        assert!(fs::read(mounted.at("file")).unwrap() == content(5_000_001, 1));
                    }
                });
            }
        });
        assert_eq!(tree.reads.load(SeqCst), 0);
    }
}

#[test]
fn opens_succeed_while_the_file_changes_all_the_time() {
    for by in WAYS {
        let (cache, tree) = (Cache::new(), tree());
        let Some(mounted) = cache.mount(&tree, by) else {
            continue;
        };
        let at = mounted.at("small");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..300 {
                        // Bytes may be of two versions, as on any file system; none may be missing.
                        assert_eq!(fs::read(&at).unwrap().len(), 3000, "{by:?}");
                    }
                    done.store(true, SeqCst);
                });
            }
            for round in 0.. {
                if done.load(SeqCst) {
                    break;
                }
                // Often enough there is time for a copy, and for somebody to open it.
                let before = cache.named("copy-").len();
                tree.inner.put_file(&path("small"), content(3000, round));
                for _ in 0..20 {
                    if done.load(SeqCst) || cache.named("copy-").len() > before {
                        break;
                    }
                    std::thread::yield_now();
                }
            }
        });
        // The last change, too, is there at once.
        tree.inner.put_file(&path("small"), content(3000, 77));
        assert!(fs::read(&at).unwrap() == content(3000, 77));
    }
}

#[test]
fn a_damaged_copy_is_not_served() {
    let cases = [
        (CopiesBy::Program, true),
        (CopiesBy::Program, false),
        (CopiesBy::Kernel, false),
    ];
    for (by, open_before) in cases {
        for len in [0, 4_000_000, 5_000_001] {
            let (cache, tree) = (Cache::new(), tree());
            let Some(mounted) = cache.mount(&tree, by) else {
                continue;
            };
            read_and_keep(&cache, &mounted, "file", 1);
            drop(mounted);
            let mounted = cache.mount(&tree, by).unwrap();
            let held = open_before.then(|| File::open(mounted.at("file")).unwrap());
            // Cut, and perhaps as long as before again, but with zeros.
            let damaged = cache.named("copy-").remove(0);
            let copy = File::options().write(true).open(&damaged).unwrap();
            copy.set_len(1000).unwrap();
            copy.set_len(len).unwrap();
            if let Some(held) = held {
                let mut all = vec![0; 5_000_001];
                held.read_exact_at(&mut all, 0).unwrap();
                assert!(all == content(5_000_001, 1));
                assert!(!damaged.exists());
            } else {
                assert!(read_and_keep(&cache, &mounted, "file", 1) == content(5_000_001, 1));
            }
        }
    }
}

#[test]
fn a_copy_damaged_while_the_kernel_reads_it_is_not_served_to_others() {
    let (cache, tree) = (Cache::new(), tree());
    let Some(mounted) = cache.mount(&tree, CopiesBy::Kernel) else {
        return;
    };
    read_and_keep(&cache, &mounted, "file", 1);
    let held = File::open(mounted.at("file")).unwrap();
    let copy = File::options()
        .write(true)
        .open(cache.named("copy-").remove(0))
        .unwrap();
    copy.set_len(10).unwrap();
    assert!(fs::read(mounted.at("file")).unwrap() == content(5_000_001, 1));
    drop(held);
}

#[test]
fn old_copies_make_room_for_new_ones() {
    let (cache, tree) = (Cache::new(), tree());
    for name in ["a", "b", "c", "d"] {
        tree.inner
            .put_file(&path(name), content(1_000_000, u64::from(name.as_bytes()[0])));
    }
    let mut options = cache.options(CopiesBy::Program);
    options.cache.as_mut().unwrap().size = 3_200_000;
    let Some(mounted) = Mounted::new(tree.clone(), options) else {
        return;
    };
    for (at, name) in ["a", "b", "c"].into_iter().enumerate() {
        read_and_keep(&cache, &mounted, name, at + 1);
    }
    let before = cache.named("copy-");
    assert!(fs::read(mounted.at("d")).unwrap() == content(1_000_000, u64::from(b'd')));
    until("the copy of d", || {
        cache.named("copy-").iter().any(|copy| !before.contains(copy))
    });
    assert_eq!(cache.named("copy-").len(), 3);
    // Larger than all the room.
    assert!(fs::read(mounted.at("file")).unwrap() == content(5_000_001, 1));
    drop(mounted);
    assert_eq!(cache.named("copy-").len(), 3);
    assert!(cache.named("part-").is_empty() && cache.named("mount-").is_empty());
}

#[test]
fn two_mounts_share_a_cache() {
    for by in WAYS {
        let (cache, tree) = (Cache::new(), tree());
        let (Some(one), Some(other)) = (cache.mount(&tree, by), cache.mount(&tree, by)) else {
            continue;
        };
        std::thread::scope(|scope| {
            for mounted in [&one, &other, &one, &other] {
                scope.spawn(|| {
                    for _ in 0..5 {
                        assert!(fs::read(mounted.at("file")).unwrap() == content(5_000_001, 1));
                        assert!(fs::read(mounted.at("small")).unwrap() == content(3000, 2));
                    }
                });
            }
        });
        until("the copies", || cache.named("copy-").len() == 2);
        drop(one);
        tree.reads.store(0, SeqCst);
        let one = cache.mount(&tree, by).unwrap();
        assert!(fs::read(one.at("file")).unwrap() == content(5_000_001, 1));
        assert_eq!(tree.reads.load(SeqCst), 0);
        drop((one, other));
        assert!(cache.named("part-").is_empty() && cache.named("mount-").is_empty());
    }
}

#[test]
fn a_peer_without_a_key_leaves_no_copies() {
    let (cache, tree) = (Cache::new(), tree());
    let mut options = cache.options(CopiesBy::Program);
    options.cache.as_mut().unwrap().peer = None;
    let Some(mounted) = Mounted::new(tree, options) else {
        return;
    };
    assert!(fs::read(mounted.at("file")).unwrap() == content(5_000_001, 1));
    until("the copy", || cache.named("once-").len() == 1);
    drop(mounted);
    assert_eq!(cache.named(""), Vec::<PathBuf>::new());
}

#[test]
fn a_folder_that_cannot_be_used_is_an_error() {
    if !can_mount() {
        return;
    }
    let at = tempfile::tempdir().unwrap();
    let options = MountOptions {
        cache: Some(CacheOptions::new("/proc/self/none")),
        ..MountOptions::default()
    };
    let result = sealway_drop_mount::fuse::Mount::start(tree(), at.path(), options);
    assert!(matches!(result.err(), Some(MountError::Cache(_))));
}
