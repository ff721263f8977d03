//! Disks that are full, and folders that are other disks.

use std::ffi::CStr;
use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use sealway_drop::fault::{Failure, Fault};
use sealway_drop_transfer::dest::{Admission, Destination, Error, Options, Skip, StagedFile, Staging};
use sealway_drop_transfer::entry::Entry;

use crate::common::{self, Disk, directory, file, names, staging};

/// Options of a disk with little room.
const SMALL: &CStr = c"size=2m,mode=700";

fn bytes(range: Range<u64>) -> Vec<u8> {
    range.map(|offset| (offset % 251) as u8).collect()
}

fn open(staging: &Staging, id: u32, entry: &Entry) -> (Vec<Range<u64>>, Arc<StagedFile>) {
    let Admission::Fetch { partial } = staging.admit(id, entry).unwrap() else {
        panic!("not fetched")
    };
    (partial, staging.open_file(id, entry).unwrap())
}

#[test]
fn a_full_disk_is_said_and_nothing_is_lost() {
    let work = tempfile::tempdir().unwrap();
    let dir = work.path();
    let Some(_disk) = Disk::over(dir, SMALL) else {
        return;
    };
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
    let work = tempfile::tempdir().unwrap();
    fs::create_dir(work.path().join("sub")).unwrap();
    let Some(_disk) = Disk::over(&work.path().join("sub"), SMALL) else {
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
    let work = tempfile::tempdir().unwrap();
    let (inside, outside) = (work.path().join("inside"), work.path().join("outside"));
    fs::create_dir_all(inside.join("sub")).unwrap();
    fs::create_dir(&outside).unwrap();
    let Some(_disk) = Disk::again(&outside, &inside.join("sub")) else {
        return;
    };
    let staging = staging(&inside, Options::default());
    assert_eq!(
        staging.admit(0, &directory("sub")).unwrap(),
        Admission::Skipped(Skip::OtherFileSystem)
    );
}

#[test]
fn a_staging_folder_that_cannot_be_used_does_not_stay() {
    let work = tempfile::tempdir().unwrap();
    // Room for the folder, and none for the journal.
    let Some(_disk) = Disk::over(work.path(), c"nr_inodes=2,mode=700") else {
        return;
    };
    let destination = Destination::open(work.path(), Options::default()).unwrap();
    let error = destination.staging(&common::TRANSFER).unwrap_err();
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    assert_eq!(names(work.path()), [""; 0]);
}
