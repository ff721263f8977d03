//! What is on the disk at the end of a transfer, and what the end says of it.

use std::fs;
use std::path::Path;

use sealway_drop_transfer::dest::{Flush, Options, Placed, Skip};

use crate::common::{directory, file, link, path, place, staging};

fn in_memory(dir: &Path) -> bool {
    rustix::fs::statfs(dir).unwrap().f_type == 0x0102_1994
}

#[test]
fn the_end_waits_for_the_disk_unless_told_otherwise() {
    for (flush, fsync, settled) in [
        (Flush::None, false, false),
        (Flush::End, false, true),
        (Flush::Each, false, true),
        (Flush::None, true, true),
    ] {
        let work = tempfile::tempdir().unwrap();
        let options = Options {
            flush,
            fsync,
            ..Options::default()
        };
        let staging = staging(work.path(), options);
        staging.admit(0, &directory("d")).unwrap();
        place(&staging, 1, &file("d/x", 3), b"abc").unwrap();
        let settled = settled || in_memory(work.path());
        assert_eq!(staging.settle_data().unwrap(), settled, "{flush:?}");
        assert_eq!(staging.conclude().unwrap().settled, settled, "{flush:?}");
    }
    assert_eq!(Options::default().flush, Flush::End);
}

#[test]
fn what_is_left_out_at_the_end_is_said() {
    let work = tempfile::tempdir().unwrap();
    fs::write(work.path().join("private"), b"of the user").unwrap();
    let staging = staging(work.path(), Options::default());
    staging.admit(0, &directory("t")).unwrap();
    staging.admit(1, &link("t/good", "x")).unwrap();
    staging.admit(2, &link("t/spy", "../private")).unwrap();
    let conclusion = staging.conclude().unwrap();
    assert_eq!(conclusion.skipped, [(path("t/spy"), Skip::OutsideLink)]);
    assert_eq!(conclusion.symlinks[0], (1, Placed::Named));
    assert_eq!(
        format!("{}: {}", conclusion.skipped[0].0, conclusion.skipped[0].1),
        "t/spy: it is a symbolic link that leads out of what is received"
    );
}
