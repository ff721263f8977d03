//! What becomes of writers when the connection is lost.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::FileExt;

use rustix::fs::FlockOperation;
use rustix::io::Errno;
use sealway_drop::link::Place;
use sealway_drop::testing::{content, listen, setup};
use sealway_drop_mount::fuse::MountOptions;
use sealway_drop_mount::sharing::{Options, Writable};
use tempfile::TempDir;

use super::super::ends::{End, Told, Wire, mounts, shares};
use super::super::support::can_mount;
use super::errno;

struct Broken {
    source: TempDir,
    at: TempDir,
    wire: Wire,
    mount: End,
    share: End,
}

impl Broken {
    fn start() -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let (source, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (listener, address) = listen();
        let (wire, between) = Wire::start(address);
        let share = Self::share(&source, listener);
        let takes = mounts(at.path());
        let takes = Options {
            mounting: MountOptions {
                writable: true,
                ..takes.mounting
            },
            ..takes
        };
        let mount = End::dial(takes, between, setup(2));
        mount.until(&Told::Ready);
        Some(Self {
            source,
            at,
            wire,
            mount,
            share,
        })
    }

    fn share(source: &TempDir, listener: TcpListener) -> End {
        let offers = Options {
            writable: Some(Writable::default()),
            ..shares(source.path())
        };
        End::start(offers, Place::Listen(listener), setup(1))
    }

    fn open(&self, name: &str) -> File {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        options.open(self.at.path().join(name)).unwrap()
    }

    /// The connection is lost and found again.
    fn cut(&self) {
        self.wire.cut();
        self.mount.until(&Told::Lost);
        self.mount.until(&Told::Again);
    }

    fn there(&self, name: &str) -> Vec<u8> {
        fs::read(self.source.path().join(name)).unwrap()
    }
}

#[test]
fn who_has_lost_nothing_goes_on_after_a_loss() {
    let Some(b) = Broken::start() else { return };
    let (mut file, mut other) = (b.open("file"), b.open("other"));
    file.write_all(b"before ").unwrap();
    file.sync_all().unwrap();
    // Not brought to the disk, but acknowledged by the owner, which goes on.
    other.write_all(b"before ").unwrap();
    assert_eq!(other.metadata().unwrap().len(), 7);
    fs::rename(b.at.path().join("file"), b.at.path().join("renamed")).unwrap();
    b.cut();
    file.write_all(b"after").unwrap();
    other.write_all(b"after").unwrap();
    for (file, name) in [(&file, "renamed"), (&other, "other")] {
        file.sync_all().unwrap();
        let mut data = vec![0; 12];
        file.read_exact_at(&mut data, 0).unwrap();
        assert_eq!(data, b"before after");
        assert_eq!(b.there(name), b"before after");
    }
    // And the folder as a whole.
    fs::create_dir(b.at.path().join("d")).unwrap();
    assert!(b.source.path().join("d").is_dir());
}

#[test]
fn what_was_not_acknowledged_is_told_and_what_was_synced_is_there() {
    let Some(b) = Broken::start() else { return };
    let file = b.open("file");
    let synced = content(100_000, 1);
    file.write_all_at(&synced, 0).unwrap();
    file.sync_all().unwrap();
    // On its way, and never there.
    b.wire.hold(true);
    file.write_all_at(&content(100_000, 2), 100_000).unwrap();
    b.wire.cut();
    b.wire.hold(false);
    assert_eq!(errno(file.sync_all()), Errno::IO);
    b.mount.until(&Told::Again);
    // Whoever has it open must open it anew: nobody knows what of it is there.
    let again = file.write_all_at(b"x", 0).and_then(|()| file.sync_all());
    assert_eq!(errno(again), Errno::STALE);
    assert!(b.there("file")[..100_000] == synced);
    drop(file);
    let file = b.open("file");
    file.write_all_at(b"new", 0).unwrap();
    file.sync_all().unwrap();
    assert_eq!(b.there("file")[..3], *b"new");
}

#[test]
fn a_copy_that_is_closed_takes_no_error_from_fsync() {
    let Some(b) = Broken::start() else { return };
    let file = b.open("file");
    let copy = file.try_clone().unwrap();
    b.wire.hold(true);
    file.write_all_at(&content(100_000, 1), 0).unwrap();
    b.wire.cut();
    b.wire.hold(false);
    // Nobody looks at how this close ends.
    drop(copy);
    b.mount.until(&Told::Again);
    assert_eq!(errno(file.sync_all()), Errno::IO);
    // Told once.
    assert_eq!(errno(file.sync_all()), Errno::STALE);
}

#[test]
fn a_file_that_somebody_else_has_changed_does_not_go_on() {
    let Some(b) = Broken::start() else { return };
    let (mut file, mut replaced, locked) = (b.open("file"), b.open("replaced"), b.open("locked"));
    for file in [&mut file, &mut replaced] {
        file.write_all(b"from here").unwrap();
        file.sync_all().unwrap();
    }
    rustix::fs::flock(&locked, FlockOperation::NonBlockingLockExclusive).unwrap();
    b.wire.hold(true);
    b.wire.cut();
    b.mount.until(&Told::Lost);
    fs::write(b.source.path().join("file"), "from there").unwrap();
    fs::write(b.source.path().join("new"), "from here").unwrap();
    fs::rename(b.source.path().join("new"), b.source.path().join("replaced")).unwrap();
    b.wire.hold(false);
    b.mount.until(&Told::Again);
    for file in [&file, &replaced, &locked] {
        let wrote = file.write_all_at(b"x", 0).and_then(|()| file.sync_all());
        assert_eq!(errno(wrote), Errno::STALE);
    }
    assert_eq!(b.there("file"), b"from there");
    assert_eq!(b.there("replaced"), b"from here");
}

#[test]
fn an_end_that_is_gone_for_good_is_an_error_and_not_a_wait() {
    let Some(mut b) = Broken::start() else { return };
    let file = b.open("file");
    file.write_all_at(b"before", 0).unwrap();
    file.sync_all().unwrap();
    b.share.cancel.cancel();
    b.share.ended().unwrap();
    // Told goodbye: the mount is gone, and what is open in it fails.
    b.mount.ended().unwrap();
    assert!(file.write_all_at(b"x", 0).and_then(|()| file.sync_all()).is_err());
    assert_eq!(b.there("file"), b"before");
}
