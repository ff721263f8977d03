//! Transfers that are broken off and gone on with.

use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use sealway_drop::fault::{Failure, Fault};
use sealway_drop_transfer::dest::{Admission, Destination, Error, Options, StagedFile, Staging};
use sealway_drop_transfer::entry::{Entry, Kind};

use crate::common::{self, directory, file, listing, names, place, staging};

const FOLDER: &str = ".sealway-partial-0707070707070707";

fn byte_at(offset: u64) -> u8 {
    (offset % 251) as u8
}

fn bytes(range: Range<u64>) -> Vec<u8> {
    range.map(byte_at).collect()
}

fn fetch(staging: &Staging, id: u32, entry: &Entry) -> (Vec<Range<u64>>, Arc<StagedFile>) {
    let Admission::Fetch { partial } = staging.admit(id, entry).unwrap() else {
        panic!("not fetched")
    };
    (partial, staging.open_file(id, entry).unwrap())
}

/// What a process that is killed leaves: the folder as it is at this moment.
fn killed(dir: &Path) -> tempfile::TempDir {
    fn copy(from: &Path, to: &Path) {
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            let target = to.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                fs::create_dir(&target).unwrap();
                fs::set_permissions(&target, entry.metadata().unwrap().permissions()).unwrap();
                copy(&entry.path(), &target);
            } else {
                fs::copy(entry.path(), &target).unwrap();
                let modified = entry.metadata().unwrap().modified().unwrap();
                File::options()
                    .write(true)
                    .open(&target)
                    .unwrap()
                    .set_modified(modified)
                    .unwrap();
            }
        }
    }
    let work = tempfile::tempdir().unwrap();
    copy(dir, work.path());
    work
}

fn finish(staged: &StagedFile, entry: &Entry) {
    for range in staged.missing() {
        staged.write_at(range.start, &bytes(range.clone())).unwrap();
    }
    staged.finish(entry.mode, entry.mtime).unwrap();
}

/// A run that gets a range of a file and ends.
fn drop_after(dir: &Path, entry: &Entry, range: Range<u64>) {
    let staging = staging(dir, Options::default());
    let (_, staged) = fetch(&staging, 0, entry);
    staged.write_at(range.start, &bytes(range)).unwrap();
}

#[test]
fn what_had_come_is_kept_when_a_transfer_is_dropped() {
    let work = tempfile::tempdir().unwrap();
    let entry = file("x", 1000);
    {
        let staging = staging(work.path(), Options::default());
        let (partial, staged) = fetch(&staging, 0, &entry);
        assert_eq!(partial, []);
        staged.write_at(0, &bytes(0..300)).unwrap();
        staged.write_at(500, &bytes(500..900)).unwrap();
        assert!(matches!(staging.conclude(), Err(Error::Unfinished { files: 1 })));
    }
    assert_eq!(names(work.path()), [FOLDER]);
    let staging = staging(work.path(), Options::default());
    let (partial, staged) = fetch(&staging, 5, &entry);
    assert_eq!(partial, [0..300, 500..900]);
    assert_eq!(staged.missing(), [300..500, 900..1000]);
    let mut kept = [0; 400];
    staged.read_at(&mut kept, 500).unwrap();
    assert_eq!(kept[..], bytes(500..900));
    // What the sender does not confirm is fetched again.
    staged.discard(600..700).unwrap();
    assert_eq!(staged.missing(), [300..500, 600..700, 900..1000]);
    assert!(matches!(
        staged.finish(0o644, entry.mtime),
        Err(Error::Incomplete { missing: 400, .. })
    ));
    finish(&staged, &entry);
    staging.conclude().unwrap();
    assert_eq!(fs::read(work.path().join("x")).unwrap(), bytes(0..1000));
    assert_eq!(names(work.path()), ["x"]);
}

#[test]
fn a_killed_transfer_loses_at_most_what_the_journal_was_not_told() {
    const MIB: u64 = 1 << 20;
    let work = tempfile::tempdir().unwrap();
    let entry = file("big", 20 * MIB);
    let first = staging(work.path(), Options::default());
    let (_, staged) = fetch(&first, 0, &entry);
    for at in 0..19 {
        staged.write_at(at * MIB, &bytes(at * MIB..(at + 1) * MIB)).unwrap();
    }
    let after = killed(work.path());
    let again = staging(after.path(), Options::default());
    let (partial, staged) = fetch(&again, 0, &entry);
    assert_eq!(partial, [0..16 * MIB]);
    finish(&staged, &entry);
    again.conclude().unwrap();
    assert_eq!(fs::read(after.path().join("big")).unwrap(), bytes(0..20 * MIB));
    assert_eq!(names(after.path()), ["big"]);
}

#[test]
fn a_journal_torn_at_any_byte_never_claims_what_was_not_written() {
    let work = tempfile::tempdir().unwrap();
    let entries = [file("d/a", 400), file("d/b", 300)];
    {
        let staging = staging(work.path(), Options::default());
        staging.admit(0, &directory("d")).unwrap();
        let (_, a) = fetch(&staging, 1, &entries[0]);
        let (_, b) = fetch(&staging, 2, &entries[1]);
        a.write_at(0, &bytes(0..100)).unwrap();
        a.write_at(200, &bytes(200..250)).unwrap();
        b.write_at(150, &bytes(150..300)).unwrap();
    }
    let whole = fs::read(work.path().join(FOLDER).join("journal")).unwrap();
    let written = [vec![0..100, 200..250], vec![150..300]];
    let mut most = 0;
    for cut in 0..=whole.len() {
        let copy = killed(work.path());
        fs::write(copy.path().join(FOLDER).join("journal"), &whole[..cut]).unwrap();
        let staging = staging(copy.path(), Options::default());
        staging.admit(0, &directory("d")).unwrap();
        for (id, entry) in (1..).zip(&entries) {
            let (partial, staged) = fetch(&staging, id, entry);
            for range in &partial {
                assert!(written[id as usize - 1].contains(range), "{range:?} at {cut}");
            }
            most = most.max(partial.len());
            finish(&staged, entry);
        }
        staging.conclude().unwrap();
        assert_eq!(names(copy.path()), ["d"]);
        assert_eq!(fs::read(copy.path().join("d/a")).unwrap(), bytes(0..400));
        assert_eq!(fs::read(copy.path().join("d/b")).unwrap(), bytes(0..300));
    }
    assert_eq!(most, 2);
}

#[test]
fn a_temporary_file_that_has_its_last_mode_is_gone_on_with() {
    use std::os::unix::fs::PermissionsExt;
    let work = tempfile::tempdir().unwrap();
    let entry = Entry {
        mode: 0o444,
        ..file("x", 1000)
    };
    drop_after(work.path(), &entry, 0..700);
    let temporary = work.path().join(FOLDER).join("f0");
    fs::set_permissions(temporary, fs::Permissions::from_mode(0o444)).unwrap();
    let missing = common::unprivileged(|| {
        let staging = staging(work.path(), Options::default());
        let (_, staged) = fetch(&staging, 0, &entry);
        let missing = staged.missing();
        finish(&staged, &entry);
        staging.conclude().unwrap();
        missing
    });
    assert_eq!(missing, [700..1000]);
    assert_eq!(fs::read(work.path().join("x")).unwrap(), bytes(0..1000));
}

#[test]
fn a_source_that_changed_is_fetched_anew() {
    let work = tempfile::tempdir().unwrap();
    drop_after(work.path(), &file("x", 1000), 0..300);
    let changed = Entry {
        mtime: common::time(1_000_000_007),
        ..file("x", 1000)
    };
    let staging = staging(work.path(), Options::default());
    assert_eq!(
        staging.admit(0, &changed).unwrap(),
        Admission::Fetch { partial: vec![] }
    );
    assert_eq!(names(&work.path().join(FOLDER)), ["journal"]);
}

#[test]
fn a_temporary_file_that_is_shorter_than_the_journal_says_counts_for_less() {
    let work = tempfile::tempdir().unwrap();
    drop_after(work.path(), &file("x", 1000), 0..1000);
    File::options()
        .write(true)
        .open(work.path().join(FOLDER).join("f0"))
        .unwrap()
        .set_len(256)
        .unwrap();
    let staging = staging(work.path(), Options::default());
    let (partial, _staged) = fetch(&staging, 0, &file("x", 1000));
    assert_eq!(partial, [0..256]);
}

#[test]
fn a_hole_in_a_resumed_file_is_made_where_old_bytes_are() {
    let work = tempfile::tempdir().unwrap();
    let entry = Entry {
        kind: Kind::File {
            size: 1 << 20,
            sparse: true,
        },
        ..file("x", 0)
    };
    {
        let staging = staging(work.path(), Options::default());
        let (_, staged) = fetch(&staging, 0, &entry);
        staged.write_at(0, &vec![9; 1 << 20]).unwrap();
    }
    let staging = staging(work.path(), Options::default());
    let (_, staged) = fetch(&staging, 0, &entry);
    staged.discard(0..1 << 20).unwrap();
    assert_eq!(staged.write_hole(0..1 << 20).unwrap(), 1 << 20);
    staged.finish(entry.mode, entry.mtime).unwrap();
    staging.conclude().unwrap();
    assert_eq!(fs::read(work.path().join("x")).unwrap(), vec![0; 1 << 20]);
}

#[test]
fn modes_of_directories_are_set_by_the_run_that_ends_the_transfer() {
    use std::os::unix::fs::PermissionsExt;
    let work = tempfile::tempdir().unwrap();
    let closed = Entry {
        mode: 0o555,
        ..directory("d")
    };
    {
        let staging = staging(work.path(), Options::default());
        assert_eq!(staging.admit(0, &closed).unwrap(), Admission::Directory { made: true });
    }
    assert_eq!(names(work.path()), [FOLDER, "d"]);
    let staging = staging(work.path(), Options::default());
    assert_eq!(staging.admit(0, &closed).unwrap(), Admission::Directory { made: true });
    place(&staging, 1, &file("d/f", 1), b"x").unwrap();
    staging.conclude().unwrap();
    assert_eq!(
        fs::metadata(work.path().join("d")).unwrap().permissions().mode() & 0o777,
        0o555
    );
    assert!(listing(work.path())[&b"d"[..]].contains(" 1000000001.5 "));
}

#[test]
fn small_files_that_were_placed_are_the_same_to_a_later_run_and_strays_are_swept() {
    let work = tempfile::tempdir().unwrap();
    let first = staging(work.path(), Options::default());
    place(&first, 0, &file("a", 3), b"abc").unwrap();
    first.admit(1, &file("b", 3)).unwrap();
    let after = killed(work.path());
    fs::write(after.path().join(FOLDER).join("s77"), b"half a fi").unwrap();
    fs::write(after.path().join(FOLDER).join("f78"), b"of no record").unwrap();
    let again = staging(after.path(), Options::default());
    assert_eq!(names(&after.path().join(FOLDER)), ["journal"]);
    assert_eq!(again.admit(0, &file("a", 3)).unwrap(), Admission::Same);
    place(&again, 1, &file("b", 3), b"def").unwrap();
    again.conclude().unwrap();
    assert_eq!(names(after.path()), ["a", "b"]);
}

#[test]
fn one_transfer_is_received_once_at_a_time() {
    let work = tempfile::tempdir().unwrap();
    let destination = Destination::open(work.path(), Options::default()).unwrap();
    let first = destination.staging(&[1; 32]).unwrap();
    let error = destination.staging(&[1; 32]).unwrap_err();
    assert!(matches!(error, Error::Busy { .. }), "{error}");
    assert_eq!(error.fault(), Fault::Usage);
    let other = destination.staging(&[2; 32]).unwrap();
    drop(first);
    drop(destination.staging(&[1; 32]).unwrap());
    drop(other);
    // Nothing came, so nothing is left.
    assert_eq!(names(work.path()), [""; 0]);
}

#[test]
fn giving_up_a_file_or_the_whole_leaves_nothing_of_it() {
    let work = tempfile::tempdir().unwrap();
    let staging = staging(work.path(), Options::default());
    let (_, staged) = fetch(&staging, 0, &file("x", 1000));
    staged.write_at(0, &bytes(0..10)).unwrap();
    staging.give_up(0).unwrap();
    assert!(matches!(staged.write_at(10, b"x"), Err(Error::NotOpen { id: 0 })));
    let (_, other) = fetch(&staging, 1, &file("y", 1000));
    other.write_at(0, &bytes(0..10)).unwrap();
    staging.abandon().unwrap();
    drop((staged, other, staging));
    assert_eq!(names(work.path()), [""; 0]);
}

#[test]
fn many_threads_write_one_file_and_many_files() {
    const PIECE: u64 = 10_000;
    let work = tempfile::tempdir().unwrap();
    let staging = staging(work.path(), Options::default());
    let entry = file("big", 400 * PIECE);
    let (_, staged) = fetch(&staging, 0, &entry);
    let small: Vec<_> = (0..200).map(|i| file(&format!("small{i}"), 5)).collect();
    for (id, entry) in (1..).zip(&small) {
        staging.admit(id, entry).unwrap();
    }
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (staged, staging, small) = (&staged, &staging, &small);
            scope.spawn(move || {
                for at in (thread..400).step_by(4).map(|i| i * PIECE) {
                    assert_eq!(staged.write_at(at, &bytes(at..at + PIECE)).unwrap(), PIECE);
                }
                for i in (thread as usize..200).step_by(4) {
                    staging.place_small(i as u32 + 1, &small[i], b"hello").unwrap();
                }
            });
        }
    });
    staged.finish(entry.mode, entry.mtime).unwrap();
    staging.conclude().unwrap();
    assert_eq!(fs::read(work.path().join("big")).unwrap(), bytes(0..400 * PIECE));
    assert_eq!(names(work.path()).len(), 201);
}

#[test]
fn room_is_asked_for_ahead_where_the_disk_can_say() {
    let work = tempfile::tempdir().unwrap();
    let staging = staging(work.path(), Options::default());
    // More than any disk of these tests has; of a sparse file nothing is asked ahead.
    let huge = 1 << 43;
    let dense = file("dense", huge);
    staging.admit(0, &dense).unwrap();
    match staging.open_file(0, &dense) {
        Err(Error::NoSpace { .. } | Error::Io { .. }) => {}
        Ok(_) => eprintln!("skipped: this file system does not reserve room"),
        Err(error) => panic!("{error}"),
    }
    let sparse = Entry {
        kind: Kind::File {
            size: huge,
            sparse: true,
        },
        ..file("sparse", 0)
    };
    staging.admit(1, &sparse).unwrap();
    if let Ok(staged) = staging.open_file(1, &sparse) {
        staged.write_at(huge - 1, b"z").unwrap();
        staged.write_hole(0..huge - 1).unwrap();
        staged.finish(0o600, sparse.mtime).unwrap();
        assert_eq!(fs::metadata(work.path().join("sparse")).unwrap().len(), huge);
    }
}

#[test]
fn a_hole_is_made_where_bytes_were_that_the_sender_does_not_have() {
    let work = tempfile::tempdir().unwrap();
    let staging = staging(work.path(), Options::default());
    let entry = file("x", 8192);
    let (_, staged) = fetch(&staging, 0, &entry);
    staged.write_at(0, &bytes(0..8192)).unwrap();
    staged.discard(4096..8192).unwrap();
    staged.write_hole(4096..8192).unwrap();
    staged.finish(entry.mode, entry.mtime).unwrap();
    drop(staged);
    staging.conclude().unwrap();
    let content = fs::read(work.path().join("x")).unwrap();
    assert!(content[4096..].iter().all(|byte| *byte == 0));
}

#[test]
fn a_directory_is_in_the_journal_before_it_is_made() {
    let work = tempfile::tempdir().unwrap();
    let staging = staging(work.path(), Options::default());
    let journal = work.path().join(staging.folder_name()).join("journal");
    use std::os::unix::fs::PermissionsExt;
    let before = fs::metadata(&journal).unwrap().len();
    fs::set_permissions(work.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let made = common::unprivileged(|| staging.admit(0, &directory("d")).is_ok());
    fs::set_permissions(work.path(), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(!made);
    assert!(fs::metadata(&journal).unwrap().len() > before);
}
