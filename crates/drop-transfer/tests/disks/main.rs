//! Disks that are full, and folders that are other disks. By itself, as it starts programs: between fork and exec a child holds
//! the locks of every journal that its parent has open.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

#[allow(dead_code)]
#[path = "../transfer/common.rs"]
mod common;

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sealway_drop::fault::{Failure, Fault};
use sealway_drop_transfer::dest::{Admission, Destination, Error, Options, Skip, StagedFile, Staging};
use sealway_drop_transfer::entry::Entry;

use common::{directory, file, names, staging};

/// One test at a time: a program that one of them starts has, for a moment, the locks that the others hold.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn bytes(range: Range<u64>) -> Vec<u8> {
    range.map(|offset| (offset % 251) as u8).collect()
}

fn open(staging: &Staging, id: u32, entry: &Entry) -> (Vec<Range<u64>>, Arc<StagedFile>) {
    let Admission::Fetch { partial } = staging.admit(id, entry).unwrap() else {
        panic!("not fetched")
    };
    (partial, staging.open_file(id, entry).unwrap())
}

/// A small file system of its own, for as long as this lives.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> Option<SmallDisk> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=2m,mode=700", "tmpfs"]).arg(at);
        let mounted = rustix::process::geteuid().is_root() && mount.output().is_ok_and(|o| o.status.success());
        if !mounted {
            eprintln!("skipped: a file system can only be mounted by root");
        }
        mounted.then(|| SmallDisk(at.to_path_buf()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_is_said_and_nothing_is_lost() {
    let _turn = turn();
    let work = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(work.path()) else {
        return;
    };
    let dir = disk.0.as_path();
    let ballast = File::create(dir.join("ballast")).unwrap();
    ballast.write_all_at(&vec![1; 1_200_000], 0).unwrap();
    let entry = file("x", 1_500_000);
    {
        let staging = staging(dir, Options::default());
        let (_, staged) = open(&staging, 0, &entry);
        let error = (0..15u64)
            .map(|i| i * 100_000)
            .find_map(|at| staged.write_at(at, &bytes(at..at + 100_000)).err())
            .unwrap();
        assert!(matches!(error, Error::NoSpace { quota: false, .. }), "{error}");
        assert_eq!(error.fault(), Fault::Storage);
        assert!(error.to_string().contains("make room and start again"), "{error}");
        staging.admit(1, &file("small", 600_000)).unwrap();
        assert!(matches!(
            staging.place_small(1, &file("small", 600_000), &vec![1; 600_000]),
            Err(Error::NoSpace { .. })
        ));
    }
    ballast.set_len(0).unwrap();
    let staging = staging(dir, Options::default());
    let (partial, staged) = open(&staging, 0, &entry);
    assert!(
        partial.iter().map(|r| r.end - r.start).sum::<u64>() >= 500_000,
        "{partial:?}"
    );
    for range in staged.missing() {
        staged.write_at(range.start, &bytes(range.clone())).unwrap();
    }
    staged.finish(entry.mode, entry.mtime).unwrap();
    staging.conclude().unwrap();
    assert_eq!(fs::read(dir.join("x")).unwrap(), bytes(0..1_500_000));
    assert_eq!(names(dir), ["ballast", "x"]);
}

#[test]
fn a_folder_that_is_another_disk_is_said_before_anything_is_sent() {
    let _turn = turn();
    let work = tempfile::tempdir().unwrap();
    fs::create_dir(work.path().join("sub")).unwrap();
    let Some(_disk) = SmallDisk::mount(&work.path().join("sub")) else {
        return;
    };
    let staging = staging(work.path(), Options::default());
    assert_eq!(
        staging.admit(0, &directory("sub")).unwrap(),
        Admission::Skipped(Skip::OtherFileSystem)
    );
    assert_eq!(
        staging.admit(1, &file("sub/x", 1)).unwrap(),
        Admission::Skipped(Skip::Parent)
    );
    staging.conclude().unwrap();
    assert_eq!(names(&work.path().join("sub")), [""; 0]);
}

/// The same file system, mounted again: nothing can be renamed into it either.
#[test]
fn a_folder_that_is_another_mount_is_said_before_anything_is_sent() {
    let _turn = turn();
    let work = tempfile::tempdir().unwrap();
    let (inside, outside) = (work.path().join("inside"), work.path().join("outside"));
    fs::create_dir_all(inside.join("sub")).unwrap();
    fs::create_dir(&outside).unwrap();
    let mut mount = Command::new("mount");
    mount.arg("--bind").args([&outside, &inside.join("sub")]);
    if !rustix::process::geteuid().is_root() || !mount.output().is_ok_and(|o| o.status.success()) {
        eprintln!("skipped: a folder can only be mounted by root");
        return;
    }
    let _mounted = SmallDisk(inside.join("sub"));
    let staging = staging(&inside, Options::default());
    assert_eq!(
        staging.admit(0, &directory("sub")).unwrap(),
        Admission::Skipped(Skip::OtherFileSystem)
    );
}

#[test]
fn a_staging_folder_that_cannot_be_used_does_not_stay() {
    let _turn = turn();
    let work = tempfile::tempdir().unwrap();
    let mut mount = Command::new("mount");
    // Room for the folder, and none for the journal.
    mount
        .args(["-t", "tmpfs", "-o", "nr_inodes=2,mode=700", "tmpfs"])
        .arg(work.path());
    if !rustix::process::geteuid().is_root() || !mount.output().is_ok_and(|o| o.status.success()) {
        eprintln!("skipped: a file system can only be mounted by root");
        return;
    }
    let _mounted = SmallDisk(work.path().to_path_buf());
    let destination = Destination::open(work.path(), Options::default()).unwrap();
    let error = destination.staging(&common::TRANSFER).unwrap_err();
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    assert_eq!(names(work.path()), [""; 0]);
}
