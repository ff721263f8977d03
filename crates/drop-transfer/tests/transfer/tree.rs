//! Whole trees, from a scan to a destination.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use sealway_drop_transfer::dest::{Admission, Conflict, Options, Placed};

use crate::common::{listing, names, scan_all, staging, transfer};

/// Files of several sizes, modes and times, an empty directory, one that may not be written to, links, a file with holes.
fn make_tree(at: &Path) {
    fs::create_dir_all(at.join("tree/sub/deep")).unwrap();
    fs::create_dir(at.join("tree/empty")).unwrap();
    fs::create_dir(at.join("tree/closed")).unwrap();
    fs::write(at.join("tree/a"), b"").unwrap();
    fs::write(at.join("tree/sub/b.txt"), b"hello").unwrap();
    fs::write(at.join("tree/closed/c"), b"in a closed folder").unwrap();
    fs::write(at.join("tree/sub/deep/big"), vec![3; 700_000]).unwrap();
    let sparse = File::create(at.join("tree/sparse")).unwrap();
    sparse.set_len(64 << 20).unwrap();
    sparse.write_all_at(&[1; 5000], 10 << 20).unwrap();
    sparse.write_all_at(&[2; 5000], 40 << 20).unwrap();
    symlink("sub/b.txt", at.join("tree/link")).unwrap();
    symlink("../../a", at.join("tree/sub/deep/up")).unwrap();
    fs::set_permissions(at.join("tree/a"), fs::Permissions::from_mode(0o4751)).unwrap();
    fs::set_permissions(at.join("tree/sub/b.txt"), fs::Permissions::from_mode(0o666)).unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::new(1_234_567_890, 987_654_321);
    File::open(at.join("tree/sub/b.txt"))
        .unwrap()
        .set_modified(old)
        .unwrap();
    let before_1970 = SystemTime::UNIX_EPOCH - Duration::new(1000, 5);
    File::open(at.join("tree/sub"))
        .unwrap()
        .set_modified(before_1970)
        .unwrap();
    fs::set_permissions(at.join("tree/closed"), fs::Permissions::from_mode(0o555)).unwrap();
}

fn round_trip(options: Options) {
    let options = Options {
        keep_mode: true,
        ..options
    };
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make_tree(from.path());
    let scan = scan_all(&from.path().join("tree"));
    let staging = staging(to.path(), options);
    transfer(&scan, &staging);
    let conclusion = staging.conclude().unwrap();
    assert_eq!(
        conclusion
            .symlinks
            .iter()
            .filter(|(_, placed)| *placed == Placed::Named)
            .count(),
        2
    );
    assert!(!conclusion.left_behind);
    // Bits above the permissions stay behind.
    fs::set_permissions(from.path().join("tree/a"), fs::Permissions::from_mode(0o751)).unwrap();
    assert_eq!(listing(from.path()), listing(to.path()));
    assert_eq!(names(to.path()), ["tree"]);
}

#[test]
fn a_tree_arrives_as_it_was() {
    round_trip(Options::default());
}

#[test]
fn a_tree_arrives_without_openat2() {
    round_trip(Options {
        without_openat2: true,
        ..Options::default()
    });
}

#[test]
fn a_tree_arrives_with_fsync() {
    round_trip(Options {
        fsync: true,
        ..Options::default()
    });
}

#[test]
fn holes_stay_holes() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make_tree(from.path());
    let staging = staging(to.path(), Options::default());
    transfer(&scan_all(&from.path().join("tree")), &staging);
    staging.conclude().unwrap();
    let sent = fs::metadata(from.path().join("tree/sparse")).unwrap();
    let came = fs::metadata(to.path().join("tree/sparse")).unwrap();
    assert_eq!(came.len(), sent.len());
    assert!(
        came.blocks() * 512 < 1 << 20,
        "{} blocks instead of {}",
        came.blocks(),
        sent.blocks()
    );
}

#[test]
fn the_same_transfer_again_is_all_there_under_every_policy() {
    let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make_tree(from.path());
    let scan = scan_all(&from.path().join("tree"));
    let first = staging(to.path(), Options::default());
    transfer(&scan, &first);
    first.conclude().unwrap();
    drop(first);
    let before = listing(to.path());
    for conflict in [
        Conflict::SkipSame,
        Conflict::Rename,
        Conflict::Overwrite,
        Conflict::Skip,
        Conflict::Ask,
    ] {
        let again = staging(
            to.path(),
            Options {
                conflict,
                ..Options::default()
            },
        );
        for admission in transfer(&scan, &again) {
            assert!(
                matches!(admission, Admission::Same | Admission::Directory { made: false }),
                "{admission:?}"
            );
        }
        again.conclude().unwrap();
        assert_eq!(listing(to.path()), before);
    }
}
