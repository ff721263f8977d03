//! What a scan finds, and what it leaves out.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode};
use sealway_drop::fault::{Failure, Fault};
use sealway_drop_transfer::entry::Kind;
use sealway_drop_transfer::source::{Error, Scan, ScanOptions, Skip, Totals, scan};

use crate::common::{self, directory, path, place, scan_all, unprivileged};

fn found(scan: &Scan) -> Vec<String> {
    scan.entries.iter().map(|entry| entry.path.to_string()).collect()
}

fn scan_with(paths: &[PathBuf], set: impl FnOnce(&mut ScanOptions)) -> Result<Scan, Error> {
    let mut options = ScanOptions::default();
    set(&mut options);
    scan(paths, options, &mut |_| {})
}

fn make_fifo(at: &Path) {
    rustix::fs::mknodat(CWD, at, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn arguments_are_sent_under_their_last_name() {
    let work = tempfile::tempdir().unwrap();
    let dir = work.path().join("dir");
    fs::create_dir_all(dir.join("sub")).unwrap();
    fs::write(dir.join("sub/f"), b"x").unwrap();
    for spelling in ["dir", "dir/", "dir//", "./dir", "dir/.", "dir/sub/..", "dir/sub/../."] {
        let scan = scan_with(&[work.path().join(spelling)], |_| {}).unwrap();
        assert_eq!(found(&scan), ["dir", "dir/sub", "dir/sub/f"], "{spelling}");
        let entry = &scan.entries[2];
        let mut byte = [0];
        scan.open(entry).unwrap().read_at(&mut byte, 0).unwrap();
        assert_eq!(&byte, b"x");
    }
    let scan = scan_with(&[dir.join("sub/f"), dir.join("sub")], |_| {}).unwrap();
    assert_eq!(found(&scan), ["f", "sub", "sub/f"]);
    assert!(scan.open(&scan.entries[0]).unwrap().matches(&scan.entries[0]));
}

#[test]
fn two_arguments_of_one_name_are_an_error_that_says_so() {
    let work = tempfile::tempdir().unwrap();
    fs::create_dir_all(work.path().join("a/x")).unwrap();
    fs::create_dir_all(work.path().join("b")).unwrap();
    fs::write(work.path().join("b/x"), b"").unwrap();
    let error = scan_with(&[work.path().join("a/x"), work.path().join("b/x")], |_| {}).unwrap_err();
    assert_eq!(error.fault(), Fault::Usage);
    let text = error.to_string();
    assert!(
        text.contains("a/x and ") && text.contains("b/x would both be sent as x"),
        "{text}"
    );
    let missing = scan_with(&[work.path().join("no\x1bthing")], |_| {}).unwrap_err();
    assert!(missing.to_string().contains("no\\x1bthing"), "{missing}");
}

#[test]
fn entries_come_sorted_with_directories_first_and_the_sums_are_right() {
    let work = tempfile::tempdir().unwrap();
    let dir = work.path().join("t");
    for folder in ["b", "a", "a/z", "c"] {
        fs::create_dir_all(dir.join(folder)).unwrap();
    }
    for (name, bytes) in [("b/2", 20), ("b/1", 10), ("a/z/f", 5), ("a-b", 1), ("a.b", 2)] {
        fs::write(dir.join(name), vec![0; bytes]).unwrap();
    }
    symlink("b", dir.join("link")).unwrap();
    let scan = scan_all(&dir);
    let names = [
        "t", "t/a", "t/a/z", "t/a/z/f", "t/a-b", "t/a.b", "t/b", "t/b/1", "t/b/2", "t/c", "t/link",
    ];
    assert_eq!(found(&scan), names);
    let totals = Totals {
        files: 5,
        directories: 5,
        symlinks: 1,
        bytes: 38,
        data_bytes: 38,
        skipped: 0,
    };
    assert_eq!(scan.totals, totals);
    let mut sorted = scan.entries.iter().map(|entry| entry.path.clone()).collect::<Vec<_>>();
    sorted.sort();
    assert!(sorted.iter().eq(scan.entries.iter().map(|entry| &entry.path)));
}

#[test]
fn what_cannot_travel_is_left_out_and_said() {
    let work = tempfile::tempdir().unwrap();
    let dir = work.path().join("t");
    fs::create_dir_all(dir.join(".sealway-partial-0000000000000000")).unwrap();
    fs::write(dir.join(".sealway-partial-0000000000000000/f0"), b"x").unwrap();
    make_fifo(&dir.join("pipe"));
    let _listener = UnixListener::bind(dir.join("socket")).unwrap();
    fs::write(dir.join("file"), b"x").unwrap();
    let scan = scan_all(&dir);
    assert_eq!(found(&scan), ["t", "t/file"]);
    let mut said: Vec<_> = scan.skipped.iter().map(ToString::to_string).collect();
    said.sort();
    assert_eq!(said.len(), 3);
    assert!(
        said[0].starts_with("t/.sealway-partial-0000000000000000 is not sent: the name"),
        "{said:?}"
    );
    assert_eq!(
        said[1..],
        [
            "t/pipe is a FIFO and is not sent",
            "t/socket is a socket and is not sent"
        ]
    );
    let error = scan_with(&[dir.join("pipe")], |_| {}).unwrap_err();
    assert!(matches!(error, Error::Special { what: "a FIFO", .. }), "{error}");
}

#[test]
fn too_deep_is_left_out_and_said() {
    let work = tempfile::tempdir().unwrap();
    let mut at = work.path().join("d");
    for _ in 0..130 {
        at.push("d");
    }
    fs::create_dir_all(&at).unwrap();
    let scan = scan_all(&work.path().join("d"));
    assert_eq!(scan.entries.len(), 128);
    assert!(matches!(scan.skipped[0].reason, Skip::Name(_)));
}

#[test]
fn links_are_sent_as_links_and_followed_only_at_the_top_if_asked() {
    let work = tempfile::tempdir().unwrap();
    fs::create_dir_all(work.path().join("real/sub")).unwrap();
    fs::write(work.path().join("real/f"), b"content").unwrap();
    symlink("sub", work.path().join("real/inner")).unwrap();
    symlink("real", work.path().join("dir-link")).unwrap();
    symlink("real/f", work.path().join("file-link")).unwrap();
    symlink("nowhere", work.path().join("broken")).unwrap();
    let paths = [work.path().join("dir-link"), work.path().join("file-link")];
    let scan = scan_with(&paths, |_| {}).unwrap();
    assert_eq!(found(&scan), ["dir-link", "file-link"]);
    assert_eq!(
        scan.entries[0].kind,
        Kind::Symlink {
            target: (*b"real").into()
        }
    );
    assert!(matches!(scan.open(&scan.entries[0]), Err(Error::NotAFile { .. })));
    let scan = scan_with(&paths, |options| options.follow_top = true).unwrap();
    assert_eq!(
        found(&scan),
        ["dir-link", "dir-link/f", "dir-link/inner", "dir-link/sub", "file-link"]
    );
    assert!(matches!(scan.entries[2].kind, Kind::Symlink { .. }));
    for entry in [&scan.entries[1], &scan.entries[4]] {
        let mut bytes = [0; 7];
        scan.open(entry).unwrap().read_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes, b"content");
    }
    assert!(scan_with(&[work.path().join("broken")], |_| {}).is_ok());
    assert!(scan_with(&[work.path().join("broken")], |options| options.follow_top = true).is_err());
}

#[test]
fn what_cannot_be_read_is_left_out_or_ends_the_scan() {
    let work = tempfile::tempdir().unwrap();
    let dir = work.path().join("t");
    fs::create_dir_all(dir.join("closed")).unwrap();
    fs::write(dir.join("closed/f"), b"").unwrap();
    fs::write(dir.join("secret"), b"x").unwrap();
    fs::set_permissions(dir.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(dir.join("secret"), fs::Permissions::from_mode(0o000)).unwrap();
    let (scan, strict, opened) = unprivileged(|| {
        let scan = scan_all(&dir);
        let opened = scan.open(&scan.entries[2]).unwrap_err();
        (
            scan,
            scan_with(std::slice::from_ref(&dir), |options| options.fail_unreadable = true),
            opened,
        )
    });
    fs::set_permissions(dir.join("closed"), fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(found(&scan), ["t", "t/closed", "t/secret"]);
    assert!(matches!(&scan.skipped[..], [skipped] if skipped.path == "t/closed"));
    assert!(matches!(strict, Err(Error::Unreadable { .. })));
    assert!(opened.to_string().starts_with("cannot read t/secret: "), "{opened}");
}

#[test]
fn what_is_swapped_after_the_scan_is_not_read() {
    for without_openat2 in [false, true] {
        let work = tempfile::tempdir().unwrap();
        let (dir, outside) = (work.path().join("t"), work.path().join("outside"));
        fs::create_dir_all(dir.join("sub/sub")).unwrap();
        fs::create_dir_all(outside.join("sub")).unwrap();
        for name in [
            "t/sub/f",
            "t/sub/sub/g",
            "t/pipe",
            "t/link",
            "t/dir",
            "outside/f",
            "outside/sub/g",
        ] {
            fs::write(work.path().join(name), b"x").unwrap();
        }
        let scan = scan_with(std::slice::from_ref(&dir), |options| {
            options.without_openat2 = without_openat2
        })
        .unwrap();
        assert_eq!(
            found(&scan),
            [
                "t",
                "t/dir",
                "t/link",
                "t/pipe",
                "t/sub",
                "t/sub/f",
                "t/sub/sub",
                "t/sub/sub/g"
            ]
        );
        fs::remove_dir_all(dir.join("sub")).unwrap();
        symlink(&outside, dir.join("sub")).unwrap();
        for name in ["pipe", "link", "dir"] {
            fs::remove_file(dir.join(name)).unwrap();
        }
        make_fifo(&dir.join("pipe"));
        symlink("../outside/f", dir.join("link")).unwrap();
        fs::create_dir(dir.join("dir")).unwrap();
        for i in [1, 2, 3, 5, 7] {
            let error = scan.open(&scan.entries[i]).unwrap_err();
            assert!(matches!(error, Error::NotAFile { .. }), "{error}");
            assert_eq!(error.fault(), Fault::Storage);
        }
    }
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_noticed() {
    let work = tempfile::tempdir().unwrap();
    let at = work.path().join("f");
    fs::write(&at, vec![1; 1000]).unwrap();
    let scan = scan_with(std::slice::from_ref(&at), |_| {}).unwrap();
    let open = || scan.open(&scan.entries[0]).unwrap();
    let source = open();
    assert!(!source.changed().unwrap() && source.matches(&scan.entries[0]));
    let mut bytes = [0; 1000];
    let writer = File::options().write(true).open(&at).unwrap();
    writer.set_len(600).unwrap();
    assert!(source.changed().unwrap());
    let error = source.read_at(&mut bytes, 0).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Shorter {
                size: 1000,
                end: 600,
                ..
            }
        ),
        "{error}"
    );
    assert!(!open().matches(&scan.entries[0]));
    let source = open();
    writer.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert!(source.changed().unwrap());
    drop(writer);
    fs::remove_file(&at).unwrap();
    assert!(matches!(scan.open(&scan.entries[0]), Err(Error::Unreadable { .. })));
}

#[test]
fn extents_are_the_data_of_a_file_and_nothing_else() {
    const MIB: u64 = 1 << 20;
    let work = tempfile::tempdir().unwrap();
    let at = work.path().join("f");
    let file = File::create(&at).unwrap();
    file.set_len(20 * MIB).unwrap();
    let extents = || {
        let scan = scan_with(std::slice::from_ref(&at), |_| {}).unwrap();
        let source = scan.open(&scan.entries[0]).unwrap();
        source.extents().map(|extent| extent.unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(extents(), []);
    file.write_all_at(&[1; 4096], 3 * MIB).unwrap();
    file.write_all_at(&[1; 4096], 3 * MIB + 8192).unwrap();
    file.write_all_at(&[1; 4096], 20 * MIB - 4096).unwrap();
    // The hole of 4 KiB is not worth a range.
    assert_eq!(extents(), [3 * MIB..3 * MIB + 12288, 20 * MIB - 4096..20 * MIB]);
    fs::write(&at, b"dense").unwrap();
    assert_eq!(extents().len(), 1);
    fs::write(&at, b"").unwrap();
    assert_eq!(extents(), []);
}

#[test]
fn progress_is_told_on_the_way() {
    let work = tempfile::tempdir().unwrap();
    let dir = work.path().join("many");
    let staging = common::staging(work.path(), sealway_drop_transfer::dest::Options::default());
    staging.admit(0, &directory("many")).unwrap();
    for i in 1..=2500 {
        place(&staging, i, &common::file(&format!("many/{i}"), 1), b"x").unwrap();
    }
    staging.conclude().unwrap();
    let mut heard = Vec::new();
    let scan = scan(&[dir], ScanOptions::default(), &mut |totals| heard.push(totals.files)).unwrap();
    assert_eq!(heard, [999, 1999, 2500]);
    assert_eq!(scan.entries[1].path, path("many/1"));
}

#[test]
fn a_directory_swapped_for_a_link_during_the_scan_is_not_looked_into() {
    let work = tempfile::tempdir().unwrap();
    let (dir, outside) = (work.path().join("t"), work.path().join("outside"));
    fs::create_dir_all(dir.join("z")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), b"x").unwrap();
    // The directory is the thousandth entry, so progress is told right after it was seen and before it is opened.
    for i in 0..998 {
        fs::write(dir.join(format!("{i}")), b"").unwrap();
    }
    let mut swapped = false;
    let mut swap = |_: &Totals| {
        if !std::mem::replace(&mut swapped, true) {
            fs::remove_dir(dir.join("z")).unwrap();
            symlink(&outside, dir.join("z")).unwrap();
        }
    };
    let scan = scan(std::slice::from_ref(&dir), ScanOptions::default(), &mut swap).unwrap();
    assert_eq!(scan.entries.len(), 1000);
    assert_eq!(scan.entries[999].path, path("t/z"));
    assert!(
        matches!(&scan.skipped[..], [skipped] if matches!(skipped.reason, Skip::Changed)),
        "{:?}",
        scan.skipped
    );
}
