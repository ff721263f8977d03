//! Nothing a peer sends, and nothing that is swapped meanwhile, leads out of the destination.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;

use sealway_drop::fault::{Failure, Fault};
use sealway_drop_transfer::dest::{Admission, Conflict, Destination, Error, Options, Placed, Skip};
use sealway_drop_transfer::entry::Entry;

use crate::common::{self, directory, file, link, listing, names, path, place, staging};

/// Both ways of opening, each in a folder next to one that must stay empty.
fn contained(test: impl Fn(&Path, &Path, Options)) {
    for without_openat2 in [false, true] {
        let work = tempfile::tempdir().unwrap();
        let (inside, outside) = (work.path().join("inside"), work.path().join("outside"));
        fs::create_dir(&inside).unwrap();
        fs::create_dir(&outside).unwrap();
        test(
            &inside,
            &outside,
            Options {
                without_openat2,
                ..Options::default()
            },
        );
        assert_eq!(names(&outside), [""; 0]);
    }
}

#[test]
fn keibidrop_28_37_a_link_that_is_there_is_not_written_through() {
    contained(|inside, outside, options| {
        symlink(outside, inside.join("dir")).unwrap();
        let staging = staging(inside, options);
        assert_eq!(
            staging.admit(0, &directory("dir")).unwrap(),
            Admission::Skipped(Skip::FileThere)
        );
        assert_eq!(
            staging.admit(1, &file("dir/x", 1)).unwrap(),
            Admission::Skipped(Skip::Parent)
        );
        assert!(matches!(
            staging.place_small(1, &file("dir/x", 1), b"x"),
            Err(Error::NotOpen { id: 1 })
        ));
    });
}

#[test]
fn cve_2025_27142_a_link_that_the_peer_sends_is_not_written_through() {
    contained(|inside, outside, options| {
        let staging = staging(
            inside,
            Options {
                outside_symlinks: true,
                ..options
            },
        );
        assert_eq!(
            staging.admit(0, &link("door", outside.to_str().unwrap())).unwrap(),
            Admission::Symlink
        );
        let error = staging.admit(1, &file("door/x", 1)).unwrap_err();
        assert!(
            matches!(
                &error,
                Error::Parent {
                    found: "a symbolic link",
                    ..
                }
            ),
            "{error}"
        );
        assert_eq!(error.fault(), Fault::Peer);
        assert!(matches!(staging.admit(2, &directory("door")), Err(Error::Twice { .. })));
        staging.conclude().unwrap();
        assert_eq!(fs::read_link(inside.join("door")).unwrap(), outside);
    });
}

#[test]
fn a_directory_swapped_for_a_link_between_admission_and_writing_is_not_followed() {
    contained(|inside, outside, options| {
        let staging = staging(inside, options);
        staging.admit(0, &directory("dir")).unwrap();
        staging.admit(1, &file("dir/small", 5)).unwrap();
        staging.admit(2, &file("dir/staged", 5)).unwrap();
        let staged = staging.open_file(2, &file("dir/staged", 5)).unwrap();
        staged.write_at(0, b"bytes").unwrap();
        fs::rename(inside.join("dir"), inside.join("moved")).unwrap();
        symlink(outside, inside.join("dir")).unwrap();
        let error = staging.place_small(1, &file("dir/small", 5), b"bytes").unwrap_err();
        assert!(matches!(error, Error::Swapped { .. }), "{error}");
        assert!(matches!(
            staged.finish(0o644, common::time(1)),
            Err(Error::Swapped { .. })
        ));
        // Once it is as it was, both go on.
        fs::remove_file(inside.join("dir")).unwrap();
        fs::rename(inside.join("moved"), inside.join("dir")).unwrap();
        assert_eq!(
            staging.place_small(1, &file("dir/small", 5), b"bytes").unwrap(),
            Placed::Named
        );
        assert_eq!(staged.finish(0o644, common::time(1)).unwrap(), Placed::Named);
        staging.conclude().unwrap();
        assert_eq!(names(&inside.join("dir")), ["small", "staged"]);
    });
}

#[test]
fn an_outer_directory_swapped_for_a_link_is_not_followed() {
    contained(|inside, outside, options| {
        let staging = staging(inside, options);
        staging.admit(0, &directory("a")).unwrap();
        staging.admit(1, &directory("a/b")).unwrap();
        let file = file("a/b/f", 1);
        staging.admit(2, &file).unwrap();
        fs::rename(inside.join("a"), inside.join("moved")).unwrap();
        fs::create_dir(outside.join("b")).unwrap();
        // To outside, and to elsewhere inside, which is no better.
        for target in [outside, Path::new("../outside"), Path::new("moved")] {
            symlink(target, inside.join("a")).unwrap();
            let error = staging.place_small(2, &file, b"x").unwrap_err();
            assert!(matches!(error, Error::Swapped { .. }), "{error}");
            fs::remove_file(inside.join("a")).unwrap();
        }
        fs::remove_dir(outside.join("b")).unwrap();
        assert_eq!(names(&inside.join("moved/b")), [""; 0]);
    });
}

#[test]
fn a_directory_swapped_after_it_was_used_keeps_its_handle() {
    contained(|inside, outside, options| {
        let staging = staging(inside, options);
        staging.admit(0, &directory("dir")).unwrap();
        place(&staging, 1, &file("dir/first", 5), b"first").unwrap();
        staging.admit(2, &file("dir/second", 6)).unwrap();
        fs::rename(inside.join("dir"), inside.join("moved")).unwrap();
        symlink(outside, inside.join("dir")).unwrap();
        staging.place_small(2, &file("dir/second", 6), b"second").unwrap();
        staging.conclude().unwrap();
        assert_eq!(names(&inside.join("moved")), ["first", "second"]);
    });
}

#[test]
fn a_directory_swapped_before_the_end_keeps_links_and_modes_inside() {
    contained(|inside, outside, options| {
        fs::set_permissions(outside, fs::Permissions::from_mode(0o700)).unwrap();
        let staging = staging(inside, options);
        staging.admit(0, &directory("a")).unwrap();
        staging.admit(1, &directory("a/b")).unwrap();
        staging.admit(2, &link("a/b/link", "../x")).unwrap();
        fs::rename(inside.join("a/b"), inside.join("moved")).unwrap();
        symlink(outside, inside.join("a/b")).unwrap();
        assert!(matches!(staging.conclude(), Err(Error::Swapped { .. })));
        fs::remove_file(inside.join("a/b")).unwrap();
        fs::create_dir(inside.join("a/b")).unwrap();
        staging.conclude().unwrap();
        assert_eq!(fs::metadata(outside).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_link(inside.join("a/b/link")).unwrap(), Path::new("../x"));
    });
}

#[test]
fn a_file_swapped_for_a_link_is_put_beside_it_and_not_written_through() {
    contained(|inside, outside, options| {
        let staging = staging(
            inside,
            Options {
                conflict: Conflict::Overwrite,
                ..options
            },
        );
        staging.admit(0, &file("x", 3)).unwrap();
        symlink(outside.join("target"), inside.join("x")).unwrap();
        assert_eq!(
            staging.place_small(0, &file("x", 3), b"abc").unwrap(),
            Placed::Renamed(path("x (1)"))
        );
        staging.conclude().unwrap();
        assert!(inside.join("x").symlink_metadata().unwrap().is_symlink());
        assert!(inside.join("x (1)").symlink_metadata().unwrap().is_file());
    });
}

#[test]
fn links_that_lead_out_are_left_out() {
    contained(|inside, _, options| {
        fs::write(inside.join("private"), b"of the user").unwrap();
        let staging = staging(inside, options);
        staging.admit(0, &directory("t")).unwrap();
        staging.admit(1, &directory("t/d")).unwrap();
        // Where `hop` leads is inside, so `hop/..` looks inside to a reader of names, and is not.
        staging.admit(2, &link("t/d/hop", "../../t")).unwrap();
        let out = [
            "/etc/passwd",
            "/",
            "../../..",
            "../../../x",
            "hop/../../x",
            "a/../b",
            "../..",
        ];
        for (id, target) in (10..).zip(out) {
            let admission = staging.admit(id, &link(&format!("t/d/out{id}"), target)).unwrap();
            assert_eq!(admission, Admission::Skipped(Skip::OutsideLink), "{target}");
        }
        let within = ["x", "./x", "../d/x", "..", ".", "../..//t/d", "hop/d"];
        for (id, target) in (30..).zip(within) {
            assert_eq!(
                staging.admit(id, &link(&format!("t/d/in{id}"), target)).unwrap(),
                Admission::Symlink,
                "{target}"
            );
        }
        // Inside the destination, but not part of what is sent.
        assert_eq!(
            staging.admit(50, &link("t/spy", "../private")).unwrap(),
            Admission::Symlink
        );
        assert_eq!(staging.admit(51, &link("spy", "private")).unwrap(), Admission::Symlink);
        let conclusion = staging.conclude().unwrap();
        let skipped: Vec<_> = conclusion
            .symlinks
            .iter()
            .filter(|(_, p)| *p != Placed::Named)
            .collect();
        assert_eq!(
            skipped,
            [
                &(50, Placed::Skipped(Skip::OutsideLink)),
                &(51, Placed::Skipped(Skip::OutsideLink))
            ]
        );
        assert_eq!(names(&inside.join("t")), ["d"]);
        assert_eq!(names(&inside.join("t/d")).len(), 1 + within.len());
    });
}

#[test]
fn a_staging_folder_that_someone_else_prepared_is_refused() {
    contained(|inside, outside, options| {
        let name = ".sealway-partial-0707070707070707";
        symlink(outside, inside.join(name)).unwrap();
        let open = || Destination::open(inside, options).unwrap().staging(&common::TRANSFER);
        assert!(matches!(open(), Err(Error::NotOurs { .. })));
        fs::remove_file(inside.join(name)).unwrap();
        fs::create_dir(inside.join(name)).unwrap();
        fs::set_permissions(inside.join(name), fs::Permissions::from_mode(0o777)).unwrap();
        assert!(matches!(open(), Err(Error::NotOurs { .. })));
        fs::set_permissions(inside.join(name), fs::Permissions::from_mode(0o700)).unwrap();
        symlink(outside.join("j"), inside.join(name).join("journal")).unwrap();
        assert!(open().is_err());
        fs::remove_file(inside.join(name).join("journal")).unwrap();
        // What is not ours stays, and is said.
        fs::write(inside.join(name).join("notes"), b"of the user").unwrap();
        let staging = open().unwrap();
        assert!(staging.conclude().unwrap().left_behind);
        assert_eq!(names(&inside.join(name)), ["notes"]);
    });
}

#[test]
fn setuid_setgid_and_sticky_never_arrive() {
    contained(|inside, _, options| {
        let options = Options {
            keep_mode: true,
            ..options
        };
        let staging = staging(inside, options);
        let bad = |entry: Entry| Entry { mode: 0o7777, ..entry };
        staging.admit(0, &bad(directory("d"))).unwrap();
        place(&staging, 1, &bad(file("d/small", 1)), b"x").unwrap();
        staging.admit(2, &bad(file("d/staged", 1))).unwrap();
        let staged = staging.open_file(2, &bad(file("d/staged", 1))).unwrap();
        staged.write_at(0, b"x").unwrap();
        staged.finish(0o7777, common::time(1)).unwrap();
        staging.conclude().unwrap();
        for name in ["d", "d/small", "d/staged"] {
            assert_eq!(
                fs::metadata(inside.join(name)).unwrap().permissions().mode() & 0o7777,
                0o777,
                "{name}"
            );
        }
    });
}

#[test]
fn cve_2023_43619_hidden_names_in_a_home_need_a_yes() {
    let Some(home) = std::env::home_dir().filter(|home| home.is_dir()) else {
        eprintln!("skipped: there is no home directory");
        return;
    };
    // Only looked at, not written to.
    let destination = Destination::open(&home, Options::default()).unwrap();
    assert!(destination.is_hidden_in_home(&path(".ssh/authorized_keys")));
    assert!(!destination.is_hidden_in_home(&path("project/.ssh")));
}

#[test]
fn the_umask_holds_for_what_a_peer_sends() {
    contained(|inside, _, options| {
        fs::write(inside.join("probe"), b"").unwrap();
        fs::set_permissions(inside.join("probe"), fs::Permissions::from_mode(0o666)).unwrap();
        fs::File::create(inside.join("new")).unwrap();
        let mode = |name: &str| fs::metadata(inside.join(name)).unwrap().permissions().mode() & 0o777;
        let masked = mode("probe") & !mode("new");
        let staging = staging(inside, options);
        let open = |entry: Entry| Entry { mode: 0o777, ..entry };
        staging.admit(0, &open(directory("d"))).unwrap();
        place(&staging, 1, &open(file("d/small", 1)), b"x").unwrap();
        staging.admit(2, &open(file("d/staged", 1))).unwrap();
        let staged = staging.open_file(2, &open(file("d/staged", 1))).unwrap();
        staged.write_at(0, b"x").unwrap();
        staged.finish(0o777, common::time(1)).unwrap();
        staging.conclude().unwrap();
        for name in ["d", "d/small", "d/staged"] {
            assert_eq!(mode(name) & masked, 0, "{name}");
            assert_eq!(mode(name) & 0o700, 0o700, "{name}");
        }
    });
}

#[test]
fn links_to_what_was_left_out_are_left_out() {
    contained(|inside, _, options| {
        fs::create_dir(inside.join("t")).unwrap();
        fs::write(inside.join("t/private"), b"of the user").unwrap();
        let staging = staging(inside, options);
        staging.admit(0, &directory("t")).unwrap();
        assert_eq!(
            staging.admit(1, &file("t/private", 3)).unwrap(),
            Admission::Skipped(Skip::Differs)
        );
        staging.admit(2, &link("t/spy", "private")).unwrap();
        staging.admit(3, &link("t/below", "./private/x")).unwrap();
        staging.admit(4, &link("t/good", "later")).unwrap();
        let skipped = staging.conclude().unwrap().skipped;
        assert_eq!(
            skipped,
            [(path("t/spy"), Skip::OutsideLink), (path("t/below"), Skip::OutsideLink)]
        );
        assert_eq!(names(&inside.join("t")), ["good", "private"]);
    });
}

#[test]
fn nothing_of_the_staging_folder_is_open_when_it_is_gone() {
    contained(|inside, _, options| {
        let name = inside.join(".sealway-partial-0707070707070707");
        let staging = staging(inside, options);
        staging.conclude().unwrap();
        assert!(!name.exists());
        // The journal is closed before the folder goes, which NFS would not remove otherwise.
        let open: Vec<_> = fs::read_dir("/proc/self/fd")
            .unwrap()
            .filter_map(|fd| fs::read_link(fd.unwrap().path()).ok())
            .filter(|path| path.starts_with(inside) && path.to_string_lossy().contains("journal"))
            .collect();
        assert!(open.is_empty(), "{open:?}");
        drop(staging);
    });
}

#[test]
fn deep_trees_and_long_names_fit() {
    contained(|inside, _, options| {
        let staging = staging(inside, options);
        let long = "n".repeat(255);
        place(&staging, 1000, &file(&long, 1), b"x").unwrap();
        // 128 components, too many bytes for one system call with longer names.
        let mut at = String::new();
        for depth in 0..127u32 {
            at = if depth == 0 {
                "d".repeat(31)
            } else {
                format!("{at}/{}", "d".repeat(30))
            };
            staging.admit(depth, &directory(&at)).unwrap();
        }
        place(&staging, 500, &file(&format!("{at}/f"), 1), b"y").unwrap();
        staging.conclude().unwrap();
        assert!(inside.join(&long).is_file());
        assert_eq!(listing(inside).len(), 1 + 127 + 1);
    });
}

#[test]
fn data_outside_a_file_is_the_peers_fault() {
    contained(|inside, _, options| {
        let staging = staging(inside, options);
        staging.admit(0, &file("x", 100)).unwrap();
        let staged = staging.open_file(0, &file("x", 100)).unwrap();
        for (offset, bytes) in [(100, 1), (0, 101), (99, 2), (u64::MAX, 1), (u64::MAX - 5, 50)] {
            let error = staged.write_at(offset, &vec![1; bytes]).unwrap_err();
            assert!(matches!(error, Error::Outside { .. }), "{error}");
            assert_eq!(error.fault(), Fault::Peer);
        }
        assert_eq!(staged.write_at(0, &[1; 60]).unwrap(), 60);
        assert_eq!(staged.write_at(50, &[1; 50]).unwrap(), 40);
        assert!(matches!(
            staging.place_small(0, &file("x", 100), &[1; 99]),
            Err(Error::Incomplete { missing: 1, .. })
        ));
        assert!(matches!(
            staging.place_small(0, &file("x", 100), &[1; 101]),
            Err(Error::Outside { .. })
        ));
        staged.finish(0o600, common::time(1)).unwrap();
        assert!(matches!(staged.write_at(0, b"late"), Err(Error::NotOpen { id: 0 })));
        assert!(matches!(
            staged.finish(0o600, common::time(1)),
            Err(Error::NotOpen { id: 0 })
        ));
        let mut byte = [0];
        fs::File::open(inside.join("x"))
            .unwrap()
            .read_exact_at(&mut byte, 0)
            .unwrap();
        assert_eq!(byte, [1]);
        staging.conclude().unwrap();
    });
}
