//! What an overwrite replaces, and what it does not.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use sealway_drop_transfer::dest::{Admission, Conflict, Options, Placed};

use crate::common::{file, link, names, path, place, staging};

fn content(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap()
}

#[test]
fn an_overwrite_replaces_what_it_was_decided_about_and_nothing_else() {
    let overwrite = Options {
        conflict: Conflict::Overwrite,
        ..Options::default()
    };
    let work = tempfile::tempdir().unwrap();
    let staging = staging(work.path(), overwrite);
    fs::write(work.path().join("seen"), b"of the user").unwrap();
    symlink("of the user", work.path().join("seen-link")).unwrap();
    for (id, name) in ["new", "seen"].into_iter().enumerate() {
        assert!(matches!(
            staging.admit(id as u32, &file(name, 3)).unwrap(),
            Admission::Fetch { .. }
        ));
    }
    staging.admit(2, &link("seen-link", "seen")).unwrap();
    staging.admit(3, &link("new-link", "new")).unwrap();
    // Meanwhile others come, one of them as editors write: beside, and renamed.
    for name in ["new", "seen", "seen-link", "new-link"] {
        fs::write(work.path().join("other"), b"meanwhile").unwrap();
        fs::rename(work.path().join("other"), work.path().join(name)).unwrap();
    }
    for (id, name) in ["new", "seen"].into_iter().enumerate() {
        assert_eq!(
            staging.place_small(id as u32, &file(name, 3), b"abc").unwrap(),
            Placed::Renamed(path(&format!("{name} (1)")))
        );
    }
    staging.conclude().unwrap();
    for name in ["new", "seen", "seen-link", "new-link"] {
        assert_eq!(content(work.path(), name), "meanwhile");
        assert_eq!(
            content(work.path(), &format!("{name} (1)")).len(),
            if name.contains("link") { 9 } else { 3 }
        );
    }
    assert_eq!(names(work.path()).len(), 8);
}

/// A second name of the first file stands in for a file system to which both names are one.
#[test]
fn an_overwrite_does_not_reach_what_came_with_the_same_transfer() {
    let overwrite = Options {
        conflict: Conflict::Overwrite,
        ..Options::default()
    };
    let work = tempfile::tempdir().unwrap();
    let staging = staging(work.path(), overwrite);
    place(&staging, 0, &file("Name", 3), b"one").unwrap();
    fs::hard_link(work.path().join("Name"), work.path().join("name")).unwrap();
    // Not the same either, though size and time are.
    assert_eq!(
        place(&staging, 1, &file("name", 3), b"two").unwrap(),
        Placed::Renamed(path("name (1)"))
    );
    staging.conclude().unwrap();
    assert_eq!(content(work.path(), "name"), "one");
    assert_eq!(content(work.path(), "name (1)"), "two");
}
