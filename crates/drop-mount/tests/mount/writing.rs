//! Folders that are changed through a mount, as the commands do it: both ends of a session, over loopback.

mod broken;
mod differential;
mod exerciser;
mod programs;

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::fs::{FallocateFlags, FlockOperation, RenameFlags};
use rustix::io::Errno;
use sealway_drop::cancel::Cancel;
use sealway_drop::link::{Place, connect};
use sealway_drop::testing::{content, listen, setup};
use sealway_drop_mount::fuse::MountOptions;
use sealway_drop_mount::sharing::{Options, Writable, share};
use tempfile::TempDir;

use super::lines::{call, path};
use super::sharing::{Session, mounts, shares};
use super::support::can_mount;
use super::until;

/// A folder, where it is mounted for changes, and the session between.
pub(super) struct Writing {
    source: TempDir,
    at: TempDir,
    _session: Session,
}

impl Writing {
    pub(super) fn start() -> Option<Self> {
        Self::with(Writable::default(), MountOptions::default())
    }

    fn with(writable: Writable, mounting: MountOptions) -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let (source, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (listener, address) = listen();
        let offers = Options {
            writable: Some(writable),
            ..shares(source.path())
        };
        let takes = Options {
            mounting: MountOptions {
                writable: true,
                ..mounting
            },
            ..mounts(at.path())
        };
        let session = Session::start(listener, offers, address, takes);
        Some(Self {
            source,
            at,
            _session: session,
        })
    }

    /// In the mount.
    fn at(&self, name: &str) -> PathBuf {
        self.at.path().join(name)
    }

    /// At the owner.
    fn there(&self, name: &str) -> PathBuf {
        self.source.path().join(name)
    }
}

/// The kernel may keep everything for ever unless it is told otherwise.
fn patient() -> MountOptions {
    MountOptions {
        ttl: Duration::from_secs(86_400),
        ..MountOptions::default()
    }
}

fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> Errno {
    Errno::from_io_error(&result.unwrap_err()).unwrap()
}

#[test]
fn files_and_folders_are_made_changed_and_removed() {
    let Some(w) = Writing::start() else { return };
    // Made, exclusively, with a mode.
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o640);
    let mut file = options.open(w.at("a")).unwrap();
    assert_eq!(errno(options.open(w.at("a"))), Errno::EXIST);
    assert_eq!(fs::metadata(w.there("a")).unwrap().mode() & 0o7777, 0o640);
    // Written in pieces that overlap, and seen at both ends at once.
    let data = content(3 << 20, 1);
    file.write_all(&data).unwrap();
    file.write_all_at(b"over", 5).unwrap();
    let mut expected = data.clone();
    expected[5..9].copy_from_slice(b"over");
    assert_eq!(file.metadata().unwrap().len(), 3 << 20);
    assert!(fs::read(w.at("a")).unwrap() == expected);
    file.sync_all().unwrap();
    assert!(fs::read(w.there("a")).unwrap() == expected);
    // Made longer and shorter, by handle and by name.
    file.set_len(10).unwrap();
    assert_eq!(fs::read(w.there("a")).unwrap(), expected[..10]);
    OpenOptions::new()
        .write(true)
        .open(w.at("a"))
        .unwrap()
        .set_len(20)
        .unwrap();
    assert_eq!(fs::read(w.at("a")).unwrap(), [&expected[..10], &[0; 10]].concat());
    drop(file);
    // Emptied by opening.
    fs::write(w.at("a"), "short").unwrap();
    assert_eq!(fs::read(w.there("a")).unwrap(), b"short");
    // Permissions without special bits, and times.
    fs::set_permissions(w.at("a"), fs::Permissions::from_mode(0o6755)).unwrap();
    assert_eq!(fs::metadata(w.there("a")).unwrap().mode() & 0o7777, 0o755);
    let time = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    File::open(w.at("a")).unwrap().set_modified(time).unwrap();
    assert_eq!(fs::metadata(w.there("a")).unwrap().modified().unwrap(), time);
    assert_eq!(fs::metadata(w.at("a")).unwrap().modified().unwrap(), time);
    // Folders, and names.
    fs::create_dir(w.at("d")).unwrap();
    assert_eq!(errno(fs::create_dir(w.at("d"))), Errno::EXIST);
    fs::rename(w.at("a"), w.at("d/b")).unwrap();
    assert_eq!(fs::read(w.there("d/b")).unwrap(), b"short");
    assert_eq!(errno(fs::remove_dir(w.at("d"))), Errno::NOTEMPTY);
    fs::write(w.at("c"), "other").unwrap();
    let rename = |from: &str, to: &str, how| {
        rustix::fs::renameat_with(rustix::fs::CWD, w.at(from), rustix::fs::CWD, w.at(to), how)
    };
    assert_eq!(rename("c", "d/b", RenameFlags::NOREPLACE), Err(Errno::EXIST));
    rename("c", "d/b", RenameFlags::EXCHANGE).unwrap();
    assert_eq!(fs::read(w.at("c")).unwrap(), b"short");
    assert_eq!(fs::read(w.at("d/b")).unwrap(), b"other");
    fs::rename(w.at("c"), w.at("d/b")).unwrap();
    assert_eq!(fs::read(w.there("d/b")).unwrap(), b"short");
    // Renaming a folder takes what is open in it along.
    let mut open = OpenOptions::new().append(true).open(w.at("d/b")).unwrap();
    fs::rename(w.at("d"), w.at("e")).unwrap();
    open.write_all(b" more").unwrap();
    drop(open);
    assert_eq!(fs::read(w.there("e/b")).unwrap(), b"short more");
    // Links inside.
    symlink("e/b", w.at("link")).unwrap();
    assert_eq!(fs::read_link(w.there("link")).unwrap(), Path::new("e/b"));
    assert_eq!(fs::read(w.at("link")).unwrap(), b"short more");
    fs::remove_file(w.at("link")).unwrap();
    fs::remove_file(w.at("e/b")).unwrap();
    fs::remove_dir(w.at("e")).unwrap();
    assert_eq!(fs::read_dir(w.source.path()).unwrap().count(), 0);
}

#[test]
fn what_is_open_lives_on_without_a_name() {
    let Some(w) = Writing::start() else { return };
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(w.at("a"))
        .unwrap();
    file.write_all(b"before").unwrap();
    fs::remove_file(w.at("a")).unwrap();
    file.write_all(b" and after").unwrap();
    assert_eq!(file.metadata().unwrap().len(), 16);
    file.set_len(9).unwrap();
    file.set_permissions(fs::Permissions::from_mode(0o600)).unwrap();
    let mut text = String::new();
    file.seek(SeekFrom::Start(0)).unwrap();
    file.read_to_string(&mut text).unwrap();
    assert_eq!(text, "before an");
    file.sync_all().unwrap();
    assert!(!w.there("a").exists());
    // The same of a file that another one replaces.
    fs::write(w.at("b"), "old").unwrap();
    let mut old = OpenOptions::new().read(true).write(true).open(w.at("b")).unwrap();
    fs::write(w.at("c"), "new").unwrap();
    fs::rename(w.at("c"), w.at("b")).unwrap();
    old.write_all(b"OLD and more").unwrap();
    text.clear();
    old.seek(SeekFrom::Start(0)).unwrap();
    old.read_to_string(&mut text).unwrap();
    assert_eq!(text, "OLD and more");
    assert_eq!(fs::read(w.at("b")).unwrap(), b"new");
}

#[test]
fn appending_goes_to_the_end_that_there_is() {
    let Some(w) = Writing::start() else { return };
    fs::write(w.there("log"), "").unwrap();
    let mut here = OpenOptions::new().append(true).open(w.at("log")).unwrap();
    let mut there = OpenOptions::new().append(true).open(w.there("log")).unwrap();
    for round in 0..50 {
        // Each line by one call: what is written by several may have something between.
        here.write_all(format!("here {round}\n").as_bytes()).unwrap();
        there.write_all(format!("there {round}\n").as_bytes()).unwrap();
    }
    here.sync_all().unwrap();
    let text = fs::read_to_string(w.there("log")).unwrap();
    for end in ["here", "there"] {
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with(&format!("{end} ")))
            .collect();
        let due: Vec<String> = (0..50).map(|round| format!("{end} {round}")).collect();
        assert_eq!(lines, due, "in order, and none over another");
    }
    until("the mount shows it", || {
        fs::read_to_string(w.at("log")).unwrap() == text
    });
}

#[test]
fn room_is_reserved_and_holes_are_made() {
    let Some(w) = Writing::start() else { return };
    let file = File::create(w.at("a")).unwrap();
    file.write_all_at(&[7; 64 << 10], 0).unwrap();
    rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 1 << 20).unwrap();
    assert_eq!(file.metadata().unwrap().len(), 1 << 20);
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match rustix::fs::fallocate(&file, punch, 0, 32 << 10) {
        Ok(()) => {
            let data = fs::read(w.at("a")).unwrap();
            assert!(data[..32 << 10].iter().all(|byte| *byte == 0));
            assert!(data[32 << 10..64 << 10].iter().all(|byte| *byte == 7));
        }
        Err(error) => assert_eq!(error, Errno::OPNOTSUPP, "a file system without holes"),
    }
    let collapse = FallocateFlags::COLLAPSE_RANGE;
    assert_eq!(rustix::fs::fallocate(&file, collapse, 0, 4096), Err(Errno::OPNOTSUPP));
}

#[test]
fn what_another_end_must_not_do_is_refused() {
    let Some(w) = Writing::start() else { return };
    for target in ["/etc/passwd", "..", "../x", "d/../../x"] {
        assert_eq!(errno(symlink(target, w.at("link"))), Errno::PERM, "{target}");
    }
    fs::create_dir(w.at("d")).unwrap();
    symlink("../x", w.at("d/link")).unwrap();
    assert_eq!(errno(fs::rename(w.at("d/link"), w.at("link"))), Errno::PERM);
    assert_eq!(errno(fs::hard_link(w.at("d/link"), w.at("hard"))), Errno::PERM);
    let fifo = rustix::fs::mknodat(
        rustix::fs::CWD,
        w.at("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    );
    assert_eq!(fifo, Err(Errno::PERM));
    // What runs as somebody else is not written to.
    fs::write(w.there("special"), "program").unwrap();
    fs::set_permissions(w.there("special"), fs::Permissions::from_mode(0o4755)).unwrap();
    assert_eq!(errno(OpenOptions::new().write(true).open(w.at("special"))), Errno::PERM);
    assert_eq!(errno(fs::write(w.at("special"), "x")), Errno::PERM);
    assert_eq!(fs::read(w.there("special")).unwrap(), b"program");
    assert_eq!(fs::metadata(w.there("special")).unwrap().mode() & 0o7777, 0o4755);
    // Nobody else's.
    fs::write(w.at("mine"), "").unwrap();
    assert_eq!(
        errno(std::os::unix::fs::chown(w.at("mine"), Some(12_345), None)),
        Errno::PERM
    );
}

#[test]
fn enough_room_stays_free() {
    let all = Writable {
        floor: 1 << 60,
        ..Writable::default()
    };
    let Some(w) = Writing::with(all, MountOptions::default()) else {
        return;
    };
    assert_eq!(errno(fs::create_dir(w.at("d"))), Errno::NOSPC);
    assert_eq!(errno(File::create(w.at("a"))), Errno::NOSPC);
    fs::write(w.there("a"), "there").unwrap();
    let file = OpenOptions::new().write(true).open(w.at("a")).unwrap();
    // The program goes on, and gets to know it when it asks.
    file.write_all_at(b"more", 0).unwrap();
    assert_eq!(errno(file.sync_all()), Errno::NOSPC);
    // Told once; the file is as it was.
    file.sync_all().unwrap();
    assert_eq!(fs::read(w.there("a")).unwrap(), b"there");
    until("the kernel has forgotten what came to nothing", || {
        fs::read(w.at("a")).unwrap() == b"there"
    });
    fs::remove_file(w.at("a")).unwrap();
}

#[test]
fn closing_tells_that_a_write_failed() {
    let all = Writable {
        floor: 1 << 60,
        ..Writable::default()
    };
    let Some(w) = Writing::with(all, MountOptions::default()) else {
        return;
    };
    fs::write(w.there("a"), "there").unwrap();
    let done = std::process::Command::new("dd")
        .args(["if=/dev/zero", "bs=1M", "count=4", "conv=notrunc", "status=none"])
        .arg(format!("of={}", w.at("a").display()))
        .output()
        .unwrap();
    assert!(!done.status.success());
    assert_eq!(fs::read(w.there("a")).unwrap(), b"there");
}

#[test]
fn nothing_can_be_written_unless_the_owner_and_this_end_say_so() {
    if !can_mount() {
        return;
    }
    let (source, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(source.path().join("a"), "a").unwrap();
    // The owner does, this end does not: as ever.
    let (listener, address) = listen();
    let offers = Options {
        writable: Some(Writable::default()),
        ..shares(source.path())
    };
    let session = Session::start(listener, offers, address, mounts(at.path()));
    assert_eq!(errno(fs::write(at.path().join("a"), "b")), Errno::ROFS);
    assert_eq!(errno(fs::create_dir(at.path().join("d"))), Errno::ROFS);
    assert_eq!(fs::read(at.path().join("a")).unwrap(), b"a");
    drop(session);
    // This end does, the owner does not: refused, with what to do.
    let (listener, address) = listen();
    let options = shares(source.path());
    let owner = std::thread::spawn(move || {
        let cancel = Cancel::new();
        let connected = connect(Place::Listen(listener), &setup(1), 1, &cancel).unwrap();
        share(&options, connected, &cancel, &|_| ())
    });
    let takes = Options {
        mounting: MountOptions {
            writable: true,
            ..MountOptions::default()
        },
        ..mounts(at.path())
    };
    let to = Place::Dial {
        addresses: vec![address],
        patience: Duration::from_secs(10),
    };
    let cancel = Cancel::new();
    let connected = connect(to, &setup(2), 1, &cancel).unwrap();
    let error = share(&takes, connected, &cancel, &|_| ()).unwrap_err().to_string();
    assert!(error.contains("read-only") && error.contains("--writable"), "{error}");
    assert!(owner.join().unwrap().is_err());
    assert_eq!(fs::read(source.path().join("a")).unwrap(), b"a");
}

#[test]
fn locks_are_the_owners() {
    let Some(w) = Writing::start() else { return };
    fs::write(w.at("a"), "content").unwrap();
    let open = |path: PathBuf| OpenOptions::new().read(true).write(true).open(path).unwrap();
    let (one, two) = (open(w.at("a")), open(w.at("a")));
    let exclusive = FlockOperation::NonBlockingLockExclusive;
    rustix::fs::flock(&one, exclusive).unwrap();
    assert_eq!(rustix::fs::flock(&two, exclusive), Err(Errno::AGAIN));
    // A program of the owner's sees it as one on bytes.
    let local = open(w.there("a"));
    let locked = || nix_lock(&local, false);
    assert!(!locked());
    // Who waits gets it when it is free.
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| rustix::fs::flock(&two, FlockOperation::LockExclusive));
        rustix::fs::flock(&one, FlockOperation::Unlock).unwrap();
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(rustix::fs::flock(&one, exclusive), Err(Errno::AGAIN));
    // Closing gives it back.
    drop(two);
    until("the lock is free", || rustix::fs::flock(&one, exclusive).is_ok());
    assert!(!locked());
    drop(one);
    until("the lock is free at the owner", locked);
    // Held there, it excludes who mounts.
    let one = open(w.at("a"));
    assert_eq!(rustix::fs::flock(&one, exclusive), Err(Errno::AGAIN));
    assert!(nix_lock(&local, true));
    rustix::fs::flock(&one, exclusive).unwrap();
    // All of them end with the session.
    let Writing { source, at, _session } = w;
    drop(_session);
    until("what a mount had locked is free", locked);
    drop((source, at));
}

/// Takes a lock on all bytes of a file, or gives it back.
fn nix_lock(file: &File, free: bool) -> bool {
    use nix::fcntl::{FcntlArg, fcntl};
    use nix::libc;
    let kind = if free { libc::F_UNLCK } else { libc::F_WRLCK };
    let lock = libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    fcntl(file, FcntlArg::F_OFD_SETLK(&lock)).is_ok()
}

#[test]
fn what_the_owner_changes_is_seen_though_the_kernel_may_keep_everything() {
    let Some(w) = Writing::with(Writable::default(), patient()) else {
        return;
    };
    for name in ["a", "b"] {
        fs::write(w.at(name), content(100_000, 1)).unwrap();
        assert!(fs::read(w.at(name)).unwrap() == content(100_000, 1));
    }
    let mut open = OpenOptions::new().read(true).write(true).open(w.at("a")).unwrap();
    for round in 2..10 {
        // The owner and a program here in turn, in the same file and of the same length.
        fs::write(w.there("a"), content(100_000, round)).unwrap();
        until("the owner's content", || {
            let mut data = vec![0; 100_000];
            open.read_exact_at(&mut data, 0).is_ok() && data == content(100_000, round)
        });
        open.seek(SeekFrom::Start(0)).unwrap();
        open.write_all(&content(100_000, 100 + round)).unwrap();
        open.sync_all().unwrap();
        assert!(fs::read(w.there("a")).unwrap() == content(100_000, 100 + round));
        assert!(fs::read(w.at("a")).unwrap() == content(100_000, 100 + round));
        fs::rename(w.there("b"), w.there(&format!("b{round}"))).unwrap();
        until("the name goes", || !w.at("b").exists());
        fs::rename(w.there(&format!("b{round}")), w.there("b")).unwrap();
        until("the name comes back", || w.at("b").exists());
    }
}

#[test]
fn hidden_names_in_a_home_are_not_written() {
    // The home of whoever runs this, if it has one that is a folder.
    let Some(home) = std::env::home_dir().filter(|home| home.is_dir()) else {
        return;
    };
    use sealway_drop_mount::local::{LocalOptions, LocalTree};
    use sealway_drop_mount::tree::{Change, RemoteTree, TreeError};
    let tree = |hidden| {
        let options = LocalOptions {
            writable: true,
            hidden,
            floor: 1 << 60,
            ..LocalOptions::default()
        };
        LocalTree::open(&home, options).unwrap()
    };
    for name in [".sealway-test-hidden", ".sealway-test-hidden/below"] {
        let make = Change::MakeDirectory(path(name), 0o755);
        assert_eq!(tree(false).change(&make, &call()), Err(TreeError::Refused), "{name}");
        // Allowed, it goes on to the next reason.
        assert_ne!(tree(true).change(&make, &call()), Err(TreeError::Refused), "{name}");
    }
    assert_eq!(
        fs::metadata(home.join(".sealway-test-hidden")).unwrap_err().kind(),
        ErrorKind::NotFound
    );
}
