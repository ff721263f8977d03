//! Folders shared and mounted as the commands do it: both ends of a session, over loopback.

use std::fs;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::io::Errno;
use sealway_drop::Error;
use sealway_drop::cancel::Cancel;
use sealway_drop::link::{Place, connect};
use sealway_drop_mount::cache::CacheOptions;
use sealway_drop_mount::sharing::{Options, share};

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
        let here = run(
            Place::Dial {
                addresses: vec![to],
                patience: Duration::from_secs(10),
            },
            2,
            dials,
            &cancel[1],
        );
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
        assert_eq!(
            fs::read_dir(at.path()).unwrap().count(),
            0,
            "nothing is mounted any more"
        );
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
        assert_eq!(
            fs::read_dir(at.path()).unwrap().count(),
            0,
            "nothing is mounted any more"
        );
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
    let program = if rustix::process::geteuid().is_root() {
        "umount"
    } else {
        "fusermount3"
    };
    let mut umount = std::process::Command::new(program);
    if program != "umount" {
        umount.arg("-u");
    }
    assert!(umount.arg(at.path()).status().unwrap().success());
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

/// Stands between two ends and can cut their connections.
struct Between {
    address: SocketAddr,
    connections: Arc<Mutex<Vec<Carried>>>,
    /// Bytes towards the end that dials after which everything is cut.
    left: Arc<AtomicU64>,
}

struct Carried {
    streams: [TcpStream; 2],
    bytes: Arc<AtomicU64>,
}

impl Between {
    fn start(to: SocketAddr) -> Self {
        let (listener, address) = listen();
        let connections: Arc<Mutex<Vec<Carried>>> = Arc::default();
        let left = Arc::new(AtomicU64::new(u64::MAX));
        let (all, limit) = (connections.clone(), left.clone());
        std::thread::spawn(move || {
            for near in listener.incoming() {
                let (near, far) = (near.unwrap(), TcpStream::connect(to).unwrap());
                let bytes: Arc<AtomicU64> = Arc::default();
                let streams = [near.try_clone().unwrap(), far.try_clone().unwrap()];
                all.lock().unwrap().push(Carried {
                    streams,
                    bytes: bytes.clone(),
                });
                let (mut up, mut down) = (near.try_clone().unwrap(), far.try_clone().unwrap());
                let (mut near, mut far) = (near, far);
                std::thread::spawn(move || {
                    let _ = io::copy(&mut up, &mut far);
                    let _ = far.shutdown(Shutdown::Write);
                });
                let (all, limit) = (all.clone(), limit.clone());
                std::thread::spawn(move || {
                    let mut buffer = vec![0; 64 << 10];
                    while let Ok(read @ 1..) = io::Read::read(&mut down, &mut buffer) {
                        bytes.fetch_add(read as u64, SeqCst);
                        let enough = |left: u64| left.checked_sub(read as u64);
                        if limit.fetch_update(SeqCst, SeqCst, enough).is_err() {
                            all.lock().unwrap().iter().for_each(Carried::cut);
                        }
                        if io::Write::write_all(&mut near, &buffer[..read]).is_err() {
                            break;
                        }
                    }
                    let _ = near.shutdown(Shutdown::Write);
                });
            }
        });
        Self {
            address,
            connections,
            left,
        }
    }

    /// Cuts the connection that carried the most, and says how much that was.
    fn cut_busiest(&self) -> u64 {
        let connections = self.connections.lock().unwrap();
        let busiest = connections.iter().max_by_key(|one| one.bytes.load(SeqCst)).unwrap();
        busiest.cut();
        busiest.bytes.load(SeqCst)
    }
}

impl Carried {
    fn cut(&self) {
        for stream in &self.streams {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

#[test]
fn a_cut_in_the_middle_of_a_read_is_an_error_and_never_a_short_file() {
    if !can_mount() {
        return;
    }
    let (source, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(source.path().join("file"), content(32 << 20, 4)).unwrap();
    let (listener, address) = listen();
    let between = Between::start(address);
    let _session = Session::start(listener, shares(source.path()), between.address, mounts(at.path()));
    assert_eq!(fs::metadata(at.path().join("file")).unwrap().len(), 32 << 20);
    between.left.store(8 << 20, SeqCst);
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
    let between = Between::start(address);
    let _session = Session::start(listener, shares(source.path()), between.address, mounts(at.path()));
    assert_eq!(
        between.connections.lock().unwrap().len(),
        3,
        "control, service, content"
    );
    assert!(fs::read(at.path().join("one")).unwrap() == content);
    let carried = between.cut_busiest();
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
        let between = Between::start(address);
        let session = Session::start(listener, shares(source.path()), between.address, options.clone());
        assert!(fs::read(at.path().join("file")).unwrap() == data);
        let whole = || {
            let names = fs::read_dir(cache.path().join("sealway-copies")).unwrap();
            let mut names = names.map(|entry| entry.unwrap().file_name());
            names.any(|name| name.to_str().unwrap().starts_with("copy-"))
        };
        until("the copy", whole);
        let carried = between.cut_busiest();
        assert_eq!(carried > 8 << 20, first, "{carried}");
        drop(session);
    }
}
