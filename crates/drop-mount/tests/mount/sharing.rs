//! Folders shared and mounted as the commands do it: both ends of a session, over loopback.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::io::Errno;
use sealway_drop::Error;
use sealway_drop::cancel::Cancel;
use sealway_drop::link::{Place, connect};
use sealway_drop_mount::cache::CacheOptions;
use sealway_drop_mount::sharing::{Options, share};

use super::ends::Wire;
use super::support::can_mount;
use super::until;
use sealway_drop::testing::{assert_same, content, listen, setup, tree};

/// Both ends of a session; told to stop when dropped.
pub(super) struct Session {
    cancel: [Cancel; 2],
    ends: Vec<JoinHandle<Result<(), Error>>>,
}

impl Session {
    /// One end listens at `listener`, the other dials `to`. Returns when both are ready.
    pub(super) fn start(listener: TcpListener, listens: Options, to: SocketAddr, dials: Options) -> Self {
        let cancel = [Cancel::new(), Cancel::new()];
        let (ready, both) = channel();
        let run = |place, own, options, cancel: &Cancel| {
            let (cancel, ready) = (cancel.clone(), ready.clone());
            std::thread::spawn(move || {
                let connected = connect(place, &setup(own), 1, &cancel).unwrap();
                share(&options, connected, &cancel, &|_| ready.send(()).unwrap())
            })
        };
        let there = run(Place::Listen(listener), 1, listens, &cancel[0]);
        let to = Place::Dial {
            addresses: vec![to],
            patience: Duration::from_secs(10),
        };
        let here = run(to, 2, dials, &cancel[1]);
        for _ in 0..2 {
            both.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        Self {
            cancel,
            ends: vec![there, here],
        }
    }

    /// Tells one end to stop: 0 the one that listens, 1 the one that dials. Returns how both ended, in this order.
    fn stop(mut self, end: usize) -> Vec<Result<(), Error>> {
        self.cancel[end].cancel();
        let (told, all) = channel();
        let ends = std::mem::take(&mut self.ends);
        std::thread::spawn(move || {
            let ended: Vec<_> = ends.into_iter().map(|end| end.join().unwrap()).collect();
            told.send(ended).unwrap();
        });
        all.recv_timeout(Duration::from_secs(60)).unwrap()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.cancel.iter().for_each(Cancel::cancel);
        let ended: Vec<_> = self.ends.drain(..).map(JoinHandle::join).collect();
        assert!(std::thread::panicking() || ended.iter().all(Result::is_ok));
    }
}

pub(super) fn shares(path: &Path) -> Options {
    Options {
        share: Some(path.to_owned()),
        ..Options::default()
    }
}

pub(super) fn mounts(path: &Path) -> Options {
    Options {
        mount: Some(path.to_owned()),
        ..Options::default()
    }
}

/// What is there is the empty folder below.
pub(super) fn assert_not_mounted(at: &Path) {
    let names = fs::read_dir(at).unwrap().count();
    assert_eq!(names, 0, "nothing is mounted any more");
}

/// Takes a mount away as people do.
pub(super) fn umount(at: &Path) {
    let (program, options): (_, &[&str]) = match rustix::process::geteuid().is_root() {
        true => ("umount", &[]),
        false => ("fusermount3", &["-u"]),
    };
    let done = Command::new(program).args(options).arg(at).status().unwrap();
    assert!(done.success());
}

#[test]
fn a_shared_tree_is_the_same_where_it_is_mounted() {
    if !can_mount() {
        return;
    }
    for listener_mounts in [false, true] {
        let (source, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let shared = tree(source.path());
        let (listener, address) = listen();
        let session = match listener_mounts {
            false => Session::start(listener, shares(&shared), address, mounts(at.path())),
            true => Session::start(listener, mounts(at.path()), address, shares(&shared)),
        };
        assert_same(&shared, at.path());
        drop(session);
        assert_not_mounted(at.path());
    }
}

#[test]
fn both_ends_share_and_mount_at_once() {
    if !can_mount() {
        return;
    }
    let folders: Vec<_> = (0..4).map(|_| tempfile::tempdir().unwrap()).collect();
    let one = tree(folders[0].path());
    let other = folders[1].path();
    fs::write(other.join("large"), content(30 << 20, 9)).unwrap();
    let both = |share: &Path, mount: &Path| Options {
        mount: Some(mount.to_owned()),
        ..shares(share)
    };
    let (listener, address) = listen();
    let _session = Session::start(
        listener,
        both(&one, folders[2].path()),
        address,
        both(other, folders[3].path()),
    );
    std::thread::scope(|scope| {
        scope.spawn(|| assert_same(other, folders[2].path()));
        scope.spawn(|| assert_same(&one, folders[3].path()));
    });
}

#[test]
fn either_end_that_is_told_to_stop_ends_both_in_good_order() {
    if !can_mount() {
        return;
    }
    for (listener_mounts, stopped) in [(false, 0), (false, 1), (true, 0), (true, 1)] {
        let (source, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::write(source.path().join("file"), content(1 << 20, 7)).unwrap();
        let (listener, address) = listen();
        let (shares, mounts) = (shares(source.path()), mounts(at.path()));
        let session = match listener_mounts {
            false => Session::start(listener, shares, address, mounts),
            true => Session::start(listener, mounts, address, shares),
        };
        // What is open in the mount keeps nobody from ending.
        let open = fs::File::open(at.path().join("file")).unwrap();
        let ended = session.stop(stopped);
        assert!(ended.iter().all(Result::is_ok), "{listener_mounts} {stopped} {ended:?}");
        assert_not_mounted(at.path());
        drop(open);
    }
}

#[test]
fn a_mount_that_is_taken_away_ends_both_in_good_order() {
    if !can_mount() {
        return;
    }
    let (source, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (listener, address) = listen();
    let mut session = Session::start(listener, shares(source.path()), address, mounts(at.path()));
    umount(at.path());
    let ended: Vec<_> = session.ends.drain(..).map(|end| end.join().unwrap()).collect();
    assert!(ended.iter().all(Result::is_ok), "{ended:?}");
}

#[test]
fn holes_and_room_are_shown_as_they_are_at_the_other_end() {
    use std::os::unix::fs::{FileExt, MetadataExt};

    use rustix::fs::SeekFrom;

    if !can_mount() {
        return;
    }
    let (source, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = fs::File::create(source.path().join("sparse")).unwrap();
    file.set_len(64 << 20).unwrap();
    for place in [8 << 20, 40 << 20] {
        file.write_all_at(&content(1 << 20, 8), place).unwrap();
    }
    file.sync_all().unwrap();
    let (listener, address) = listen();
    let _session = Session::start(listener, shares(source.path()), address, mounts(at.path()));
    let shown = fs::File::open(at.path().join("sparse")).unwrap();
    let (ours, theirs) = (file.metadata().unwrap(), shown.metadata().unwrap());
    assert_eq!((theirs.len(), theirs.blocks()), (ours.len(), ours.blocks()));
    let look = |file: &fs::File, from: SeekFrom| rustix::fs::seek(file, from);
    for place in [
        0,
        1,
        8 << 20,
        (8 << 20) + 5,
        9 << 20,
        41 << 20,
        (64 << 20) - 1,
        64 << 20,
    ] {
        for from in [SeekFrom::Data(place), SeekFrom::Hole(place)] {
            assert_eq!(look(&shown, from), look(&file, from), "{from:?}");
        }
    }
    let [ours, theirs] = [source.path(), at.path()].map(|path| rustix::fs::statvfs(path).unwrap());
    assert_eq!(
        ours.f_blocks * ours.f_frsize / 4096,
        theirs.f_blocks * theirs.f_frsize / 4096
    );
    assert!(theirs.f_bfree > 0 && theirs.f_bavail <= theirs.f_blocks);
}

#[test]
fn a_cut_in_the_middle_of_a_read_is_an_error_and_never_a_short_file() {
    if !can_mount() {
        return;
    }
    let (source, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(source.path().join("file"), content(32 << 20, 4)).unwrap();
    let (listener, address) = listen();
    let (wire, between) = Wire::start(address);
    let _session = Session::start(listener, shares(source.path()), between, mounts(at.path()));
    assert_eq!(fs::metadata(at.path().join("file")).unwrap().len(), 32 << 20);
    wire.cut_after(8 << 20);
    let error = fs::read(at.path().join("file")).unwrap_err();
    let error = Errno::from_io_error(&error).unwrap();
    assert!(
        [Errno::IO, Errno::NOTCONN, Errno::CONNABORTED].contains(&error),
        "{error}"
    );
}

#[test]
fn without_the_connection_for_content_it_comes_by_the_other() {
    if !can_mount() {
        return;
    }
    let (source, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let content = content(16 << 20, 5);
    for name in ["one", "two", "three"] {
        fs::write(source.path().join(name), &content).unwrap();
    }
    let (listener, address) = listen();
    let (wire, between) = Wire::start(address);
    let _session = Session::start(listener, shares(source.path()), between, mounts(at.path()));
    assert_eq!(wire.connections(), 3, "control, service, content");
    assert!(fs::read(at.path().join("one")).unwrap() == content);
    let carried = wire.cut_busiest();
    assert!(carried > 16 << 20, "one connection carries all of it");
    // What was on its way may fail; nothing comes short.
    if let Ok(read) = fs::read(at.path().join("two")) {
        assert!(read == content);
    }
    assert!(fs::read(at.path().join("three")).unwrap() == content);
}

#[test]
fn copies_of_an_end_with_a_key_are_used_in_the_next_session() {
    if !can_mount() {
        return;
    }
    let [source, at, cache] = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let data = content(8 << 20, 6);
    fs::write(source.path().join("file"), &data).unwrap();
    let mut options = mounts(at.path());
    options.mounting.cache = Some(CacheOptions::new(cache.path()));
    for first in [true, false] {
        let (listener, address) = listen();
        let (wire, between) = Wire::start(address);
        let session = Session::start(listener, shares(source.path()), between, options.clone());
        assert!(fs::read(at.path().join("file")).unwrap() == data);
        let whole = || {
            let names = fs::read_dir(cache.path().join("sealway-copies")).unwrap();
            let mut names = names.map(|entry| entry.unwrap().file_name());
            names.any(|name| name.to_str().unwrap().starts_with("copy-"))
        };
        until("the copy", whole);
        let carried = wire.cut_busiest();
        assert_eq!(carried > 8 << 20, first, "{carried}");
        drop(session);
    }
}
