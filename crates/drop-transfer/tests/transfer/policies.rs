//! What becomes of an entry whose name is taken, and of names that cannot stand side by side.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, SystemTime};

use sealway_drop::fault::{Failure, Fault};
use sealway_drop::names::{RelPath, Rules};
use sealway_drop_transfer::dest::{Admission, Answer, Conflict, Destination, Error, Options, Placed, Skip, Staging};
use sealway_drop_transfer::entry::Entry;

use crate::common::{self, directory, file, link, listing, names, path, place, staging};

fn with(conflict: Conflict) -> (tempfile::TempDir, Staging) {
    let work = tempfile::tempdir().unwrap();
    fs::write(work.path().join("x.txt"), b"of the user").unwrap();
    let staging = staging(
        work.path(),
        Options {
            conflict,
            ..Options::default()
        },
    );
    (work, staging)
}

fn content(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap()
}

#[test]
fn what_differs_stays_by_default() {
    let (work, staging) = with(Conflict::default());
    assert_eq!(
        staging.admit(0, &file("x.txt", 3)).unwrap(),
        Admission::Skipped(Skip::Differs)
    );
    assert!(matches!(
        staging.place_small(0, &file("x.txt", 3), b"new"),
        Err(Error::NotOpen { .. })
    ));
    staging.conclude().unwrap();
    assert_eq!(content(work.path(), "x.txt"), "of the user");
    assert_eq!(names(work.path()), ["x.txt"]);
}

#[test]
fn skip_leaves_what_is_there() {
    let (work, staging) = with(Conflict::Skip);
    assert_eq!(
        staging.admit(0, &file("x.txt", 3)).unwrap(),
        Admission::Skipped(Skip::Exists)
    );
    staging.conclude().unwrap();
    assert_eq!(content(work.path(), "x.txt"), "of the user");
}

#[test]
fn overwrite_replaces_a_file() {
    let (work, staging) = with(Conflict::Overwrite);
    assert_eq!(place(&staging, 0, &file("x.txt", 3), b"new").unwrap(), Placed::Named);
    staging.conclude().unwrap();
    assert_eq!(content(work.path(), "x.txt"), "new");
    assert_eq!(names(work.path()), ["x.txt"]);
}

#[test]
fn rename_keeps_both_and_knows_its_own_next_time() {
    let (work, staging) = with(Conflict::Rename);
    fs::write(work.path().join("x (1).txt"), b"also of the user").unwrap();
    let placed = place(&staging, 0, &file("x.txt", 3), b"new").unwrap();
    assert_eq!(placed, Placed::Renamed(path("x (2).txt")));
    staging.conclude().unwrap();
    drop(staging);
    let before = listing(work.path());
    let again = common::staging(
        work.path(),
        Options {
            conflict: Conflict::Rename,
            ..Options::default()
        },
    );
    assert_eq!(again.admit(0, &file("x.txt", 3)).unwrap(), Admission::Same);
    again.conclude().unwrap();
    assert_eq!(listing(work.path()), before);
}

#[test]
fn renamed_names_keep_their_endings_and_fit() {
    let work = tempfile::tempdir().unwrap();
    let long = format!("{}\u{e9}.tar.gz", "n".repeat(246));
    let no_end = "y".repeat(255);
    let cases = [
        ("plain", "plain (1)".to_owned()),
        (".hidden", ".hidden (1)".to_owned()),
        ("a.tar.gz", "a (1).tar.gz".to_owned()),
        (".tar.gz", ".tar (1).gz".to_owned()),
        ("a.b.c", "a.b (1).c".to_owned()),
        (&long, format!("{} (1).tar.gz", "n".repeat(244))),
        (&no_end, format!("{} (1)", "y".repeat(251))),
    ];
    for (name, _) in &cases {
        fs::write(work.path().join(name), b"").unwrap();
    }
    let staging = staging(
        work.path(),
        Options {
            conflict: Conflict::Rename,
            ..Options::default()
        },
    );
    for (id, (name, expected)) in (0..).zip(&cases) {
        let placed = place(&staging, id, &file(name, 1), b"n").unwrap();
        assert_eq!(placed, Placed::Renamed(path(expected)));
    }
    staging.conclude().unwrap();
}

#[test]
fn ask_does_what_the_answer_says() {
    let answers = [
        (Answer::Skip, "of the user", 1),
        (Answer::Overwrite, "new", 1),
        (Answer::Rename, "of the user", 2),
    ];
    for (answer, left, count) in answers {
        let (work, staging) = with(Conflict::Ask);
        let entry = file("x.txt", 3);
        let Admission::Ask { existing } = staging.admit(0, &entry).unwrap() else {
            panic!("not asked")
        };
        assert_eq!((existing.what, existing.size), ("a file", 11));
        match staging.answer(0, &entry, answer).unwrap() {
            Admission::Fetch { .. } => drop(staging.place_small(0, &entry, b"new").unwrap()),
            other => assert_eq!((answer, other), (Answer::Skip, Admission::Skipped(Skip::Exists))),
        }
        // Nothing was asked about this one, or any more about that.
        assert!(matches!(
            staging.answer(0, &entry, answer),
            Err(Error::NotOpen { id: 0 })
        ));
        assert!(matches!(
            staging.answer(9, &file("y", 3), answer),
            Err(Error::NotOpen { id: 9 })
        ));
        staging.conclude().unwrap();
        assert_eq!(content(work.path(), "x.txt"), left);
        assert_eq!(names(work.path()).len(), count);
    }
}

#[test]
fn what_appears_between_admission_and_the_end_is_not_lost() {
    for (conflict, left) in [
        (Conflict::SkipSame, 1),
        (Conflict::Skip, 1),
        (Conflict::Rename, 2),
        (Conflict::Ask, 2),
    ] {
        let work = tempfile::tempdir().unwrap();
        let staging = staging(
            work.path(),
            Options {
                conflict,
                ..Options::default()
            },
        );
        staging.admit(0, &file("x", 3)).unwrap();
        fs::write(work.path().join("x"), b"meanwhile").unwrap();
        staging.place_small(0, &file("x", 3), b"new").unwrap();
        staging.conclude().unwrap();
        assert_eq!(content(work.path(), "x"), "meanwhile");
        assert_eq!(names(work.path()).len(), left, "{conflict:?}");
    }
}

#[test]
fn a_directory_is_never_overwritten_by_a_file_or_a_link() {
    let work = tempfile::tempdir().unwrap();
    fs::create_dir(work.path().join("d")).unwrap();
    fs::create_dir(work.path().join("e")).unwrap();
    let overwrite = Options {
        conflict: Conflict::Overwrite,
        ..Options::default()
    };
    let staging = staging(work.path(), overwrite);
    let there = Admission::Skipped(Skip::FolderThere);
    assert_eq!(staging.admit(0, &file("d", 1)).unwrap(), there);
    assert_eq!(staging.admit(1, &link("e", "d")).unwrap(), there);
    // What is advised helps.
    assert!(Skip::FolderThere.reason().contains("--conflict rename"));
    // Nor if it comes later.
    staging.admit(2, &file("f", 1)).unwrap();
    fs::create_dir(work.path().join("f")).unwrap();
    assert_eq!(
        staging.place_small(2, &file("f", 1), b"x").unwrap(),
        Placed::Renamed(path("f (1)"))
    );
    staging.conclude().unwrap();
    assert_eq!(names(work.path()), ["d", "e", "f", "f (1)"]);
}

#[test]
fn an_answer_does_not_overwrite_a_directory() {
    let work = tempfile::tempdir().unwrap();
    fs::create_dir(work.path().join("d")).unwrap();
    let staging = staging(
        work.path(),
        Options {
            conflict: Conflict::Ask,
            ..Options::default()
        },
    );
    let Admission::Ask { existing } = staging.admit(0, &file("d", 1)).unwrap() else {
        panic!("not asked")
    };
    assert_eq!(existing.what, "a directory");
    assert_eq!(
        staging.answer(0, &file("d", 1), Answer::Overwrite).unwrap(),
        Admission::Skipped(Skip::FolderThere)
    );
    staging.conclude().unwrap();
    assert_eq!(names(work.path()), ["d"]);
}

#[test]
fn a_file_where_a_directory_is_needed_is_said_before_anything_is_written() {
    let work = tempfile::tempdir().unwrap();
    fs::write(work.path().join("d"), b"").unwrap();
    let staging = staging(
        work.path(),
        Options {
            conflict: Conflict::Overwrite,
            ..Options::default()
        },
    );
    assert_eq!(
        staging.admit(0, &directory("d")).unwrap(),
        Admission::Skipped(Skip::FileThere)
    );
    // No policy puts a folder there, so none is advised.
    assert!(!Skip::FileThere.reason().contains("conflict"));
    assert_eq!(
        staging.admit(1, &file("d/x", 1)).unwrap(),
        Admission::Skipped(Skip::Parent)
    );
    assert_eq!(
        staging.admit(2, &directory("d/y")).unwrap(),
        Admission::Skipped(Skip::Parent)
    );
    assert_eq!(
        staging.admit(3, &file("d/y/z", 1)).unwrap(),
        Admission::Skipped(Skip::Parent)
    );
}

#[test]
fn a_peer_cannot_send_a_path_twice_or_put_files_into_files() {
    let work = tempfile::tempdir().unwrap();
    let staging = staging(work.path(), Options::default());
    staging.admit(0, &directory("d")).unwrap();
    staging.admit(1, &file("d/f", 1)).unwrap();
    for (id, entry) in [
        (2, file("d/f", 1)),
        (3, directory("d/f")),
        (4, link("d/f", "x")),
        (5, directory("d")),
    ] {
        let error = staging.admit(id, &entry).unwrap_err();
        assert!(matches!(error, Error::Twice { .. }), "{error}");
        assert_eq!(error.fault(), Fault::Peer);
    }
    assert!(matches!(
        staging.admit(6, &file("d/f/g", 1)),
        Err(Error::Parent { found: "a file", .. })
    ));
    assert!(matches!(
        staging.admit(7, &file("never/sent", 1)),
        Err(Error::Parent { .. })
    ));
    staging.place_small(1, &file("d/f", 1), b"x").unwrap();
    staging.conclude().unwrap();
    assert_eq!(listing(work.path()).len(), 2);
}

#[test]
fn an_overwrite_does_not_reach_what_another_entry_was_renamed_to() {
    let work = tempfile::tempdir().unwrap();
    fs::write(work.path().join("x"), b"of the user").unwrap();
    let staging = staging(
        work.path(),
        Options {
            conflict: Conflict::Ask,
            ..Options::default()
        },
    );
    staging.admit(0, &file("x", 3)).unwrap();
    staging.answer(0, &file("x", 3), Answer::Rename).unwrap();
    assert_eq!(
        staging.place_small(0, &file("x", 3), b"one").unwrap(),
        Placed::Renamed(path("x (1)"))
    );
    let Admission::Ask { .. } = staging.admit(1, &file("x (1)", 4)).unwrap() else {
        panic!("not asked")
    };
    staging.answer(1, &file("x (1)", 4), Answer::Overwrite).unwrap();
    assert_eq!(
        staging.place_small(1, &file("x (1)", 4), b"more").unwrap(),
        Placed::Renamed(path("x (1) (1)"))
    );
    staging.conclude().unwrap();
    assert_eq!(content(work.path(), "x (1)"), "one");
}

#[test]
fn the_end_can_be_called_again_and_makes_no_link_twice() {
    let work = tempfile::tempdir().unwrap();
    symlink("old", work.path().join("link")).unwrap();
    let staging = staging(
        work.path(),
        Options {
            conflict: Conflict::Rename,
            ..Options::default()
        },
    );
    staging.admit(0, &directory("d")).unwrap();
    staging.admit(1, &link("link", "d")).unwrap();
    staging.admit(2, &link("d/other", "x")).unwrap();
    // The second link cannot be made: its folder is something else now.
    fs::rename(work.path().join("d"), work.path().join("moved")).unwrap();
    fs::write(work.path().join("d"), b"").unwrap();
    staging.conclude().unwrap_err();
    fs::remove_file(work.path().join("d")).unwrap();
    fs::rename(work.path().join("moved"), work.path().join("d")).unwrap();
    let conclusion = staging.conclude().unwrap();
    assert_eq!(
        conclusion.symlinks,
        [(1, Placed::Renamed(path("link (1)"))), (2, Placed::Named)]
    );
    assert_eq!(names(work.path()), ["d", "link", "link (1)"]);
}

#[test]
fn links_keep_to_the_policy() {
    for conflict in [
        Conflict::SkipSame,
        Conflict::Skip,
        Conflict::Rename,
        Conflict::Overwrite,
    ] {
        let work = tempfile::tempdir().unwrap();
        symlink("same", work.path().join("same-link")).unwrap();
        symlink("old", work.path().join("link")).unwrap();
        let staging = staging(
            work.path(),
            Options {
                conflict,
                outside_symlinks: true,
                ..Options::default()
            },
        );
        assert_eq!(staging.admit(0, &link("same-link", "same")).unwrap(), Admission::Same);
        let admission = staging.admit(1, &link("link", "new")).unwrap();
        let conclusion = staging.conclude().unwrap();
        let target = |name: &str| fs::read_link(work.path().join(name)).unwrap();
        match conflict {
            Conflict::Overwrite => assert_eq!(target("link"), Path::new("new")),
            Conflict::Rename => {
                assert_eq!(conclusion.symlinks, [(1, Placed::Renamed(path("link (1)")))]);
                assert_eq!(
                    (target("link").as_path(), target("link (1)").as_path()),
                    (Path::new("old"), Path::new("new"))
                );
            }
            _ => {
                assert!(matches!(admission, Admission::Skipped(_)));
                assert_eq!(target("link"), Path::new("old"));
            }
        }
    }
}

#[test]
fn a_directory_that_was_there_keeps_its_mode_and_joins() {
    use std::os::unix::fs::PermissionsExt;
    let work = tempfile::tempdir().unwrap();
    fs::create_dir(work.path().join("d")).unwrap();
    fs::set_permissions(work.path().join("d"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(work.path().join("d/mine"), b"").unwrap();
    let staging = staging(work.path(), Options::default());
    assert_eq!(
        staging.admit(0, &directory("d")).unwrap(),
        Admission::Directory { made: false }
    );
    place(&staging, 1, &file("d/theirs", 1), b"x").unwrap();
    staging.conclude().unwrap();
    assert_eq!(
        fs::metadata(work.path().join("d")).unwrap().permissions().mode() & 0o777,
        0o700
    );
    assert_eq!(names(&work.path().join("d")), ["mine", "theirs"]);
}

#[test]
fn same_is_size_and_time_and_kind() {
    let work = tempfile::tempdir().unwrap();
    let at = work.path().join("x");
    fs::write(&at, b"abc").unwrap();
    let when = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 5);
    fs::File::options()
        .write(true)
        .open(&at)
        .unwrap()
        .set_modified(when)
        .unwrap();
    let admit = |entry: &Entry| staging(work.path(), Options::default()).admit(0, entry).unwrap();
    assert_eq!(admit(&file("x", 3)), Admission::Same);
    assert_eq!(admit(&file("x", 4)), Admission::Skipped(Skip::Differs));
    let later = Entry {
        mtime: common::time(1_000_000_001),
        ..file("x", 3)
    };
    assert_eq!(admit(&later), Admission::Skipped(Skip::Differs));
}

#[test]
fn names_that_are_no_utf8_arrive() {
    use std::os::unix::ffi::OsStrExt;
    let work = tempfile::tempdir().unwrap();
    let staging = staging(work.path(), Options::default());
    let name: &[u8] = b"caf\xe9\x1b\n";
    let entry = Entry {
        path: RelPath::new([name], Rules::POSIX).unwrap(),
        ..file("x", 1)
    };
    place(&staging, 0, &entry, b"x").unwrap();
    staging.conclude().unwrap();
    assert!(work.path().join(std::ffi::OsStr::from_bytes(name)).is_file());
}

#[test]
fn a_destination_that_is_not_there_is_said_in_one_escaped_line() {
    let error = Destination::open(Path::new("/no\x1bwhere"), Options::default()).unwrap_err();
    assert_eq!(error.fault(), Fault::Usage);
    assert!(
        error.to_string().starts_with("cannot receive into /no\\x1bwhere: "),
        "{error}"
    );
}
