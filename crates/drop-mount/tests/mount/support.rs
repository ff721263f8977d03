//! Whether anything can be mounted here.

pub(crate) fn can_mount() -> bool {
    let device = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse")
        .is_ok();
    let helper = || std::process::Command::new("fusermount3").arg("-V").output().is_ok();
    if device && (rustix::process::geteuid().is_root() || helper()) {
        return true;
    }
    let required = std::env::var("SEALWAY_REQUIRE_PEERS").is_ok_and(|value| value == "1");
    assert!(
        !required,
        "nothing can be mounted here, and SEALWAY_REQUIRE_PEERS=1: /dev/fuse and root or fusermount3"
    );
    eprintln!("skipped: nothing can be mounted here (/dev/fuse and root or fusermount3 are needed)");
    false
}
