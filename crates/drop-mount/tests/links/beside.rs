//! Direct connections that break: what was asked by them is done once, whichever way it comes.

mod silence;

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sealway_drop::Error;
use sealway_drop::link::Connection;
use sealway_drop::testing::content;
use sealway_drop::wire::kind;
use sealway_drop_mount::beside::Beside;
use sealway_drop_mount::bulk::message::Read;
use sealway_drop_mount::bulk::{self, BulkTree};
use sealway_drop_mount::changes::message::{self, WriteHeader};
use sealway_drop_mount::changes::{ChangingTree, OUTSTANDING, Serving};
use sealway_drop_mount::fuse::{Mount, MountOptions};
use sealway_drop_mount::grpc::{GrpcTree, Handles, ServeOptions, serve_with};
use sealway_drop_mount::local::{LocalOptions, LocalTree, Own};
use sealway_drop_mount::tree::{Access, Change, Changed, OpenHow, TreeError};
use tempfile::TempDir;

use crate::lines::{lines, pair, path};
use crate::slow::Slow;
use crate::support::can_mount;

/// Numbers of the connections at the relay, for content and for changes, and of the first direct one.
const CONTENT: u32 = 3;
const CHANGES: u32 = 5;
const DIRECT: u32 = 17;

/// How often the direct path breaks.
const BREAKS: u32 = 20;

/// A folder that is served for changes.
struct Served {
    folder: TempDir,
    tree: Arc<LocalTree>,
    handles: Arc<Handles>,
    changes: Arc<Serving>,
}

impl Served {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = LocalOptions {
            writable: true,
            floor: 0,
            ..LocalOptions::default()
        };
        let tree = Arc::new(LocalTree::open(folder.path(), options).unwrap());
        let (handles, own): (Arc<Handles>, _) = (Arc::default(), Arc::new(Own::new(tree.clone())));
        let changes = Arc::new(Serving::new(tree.clone(), own, handles.clone(), true));
        Self {
            folder,
            tree,
            handles,
            changes,
        }
    }

    /// What of it goes by direct connections.
    fn beside(&self) -> Beside {
        Beside {
            content: Some((self.tree.clone(), self.handles.clone())),
            changes: Some(self.changes.clone()),
            ..Beside::default()
        }
    }
}

/// Runs a direct connection; what is given beside ends it.
fn runs(beside: &Beside, connection: Connection) -> (TcpStream, JoinHandle<Result<(), Error>>) {
    let stream = connection.stream().unwrap();
    let beside = beside.clone();
    (stream, std::thread::spawn(move || beside.run(connection)))
}

/// An end that keeps to no rule: it says a change under any number by any connection.
fn says(line: &mut Connection, (kind, number): (u8, u32), payload: &[u8]) {
    line.writer.push(kind, number, payload).unwrap();
    line.writer.flush().unwrap();
}

/// Kind, number and payload of the next record that is more than a sign of life.
fn hears_any(line: &mut Connection) -> (u8, u32, Vec<u8>) {
    loop {
        let record = line.reader.next().unwrap().unwrap();
        if record.kind != kind::PULSE {
            return (record.kind, record.stream, record.payload.to_vec());
        }
    }
}

fn hears(line: &mut Connection) -> (u32, Result<Changed, TreeError>) {
    let (kind, number, payload) = hears_any(line);
    assert_eq!(kind, kind::CHANGED);
    (number, message::parse_answer(&payload))
}

/// Opens the log, which it may make, by this change.
fn open_log(exclusive: bool) -> Vec<u8> {
    let how = OpenHow {
        access: Access::Both,
        create: Some(0o644),
        exclusive,
        ..OpenHow::default()
    };
    message::encode(&Change::Open(path("log"), how))
}

fn append(handle: u64, data: &[u8]) -> Vec<u8> {
    let header = WriteHeader {
        handle,
        offset: 0,
        append: true,
    };
    [&header.encode()[..], data].concat()
}

#[test]
fn a_change_that_comes_twice_is_done_once_and_one_that_comes_early_waits() {
    let served = Served::new();
    let (mut near, mut far) = lines(&[CHANGES, DIRECT]);
    let (mut base, mut direct) = (near.remove(&CHANGES).unwrap(), near.remove(&DIRECT).unwrap());
    let (changes, first) = (served.changes.clone(), far.remove(&CHANGES).unwrap());
    let serving = std::thread::spawn(move || changes.serve(first));
    let (_stream, running) = runs(&served.beside(), far.remove(&DIRECT).unwrap());

    let open = open_log(true);
    says(&mut direct, (kind::CHANGE, 0), &open);
    let (number, opened) = hears(&mut direct);
    let handle = opened.clone().unwrap().opened().unwrap().0.handle;
    // By another connection: the same answer, though the name is taken by now.
    says(&mut base, (kind::CHANGE, 0), &open);
    assert_eq!(hears(&mut base), (number, opened));

    says(&mut direct, (kind::WRITE, 2), &append(handle, b"third "));
    says(&mut direct, (kind::WRITE, 3), &append(handle, b"fourth"));
    says(&mut base, (kind::WRITE, 1), &append(handle, b"second "));
    let done = hears(&mut base);
    assert_eq!((done.0, done.1.is_ok()), (1, true));
    assert_eq!((hears(&mut direct).0, hears(&mut direct).0), (2, 3));
    for number in [3, 1, 2] {
        says(&mut base, (kind::WRITE, number), &append(handle, b"again"));
        assert_eq!(hears(&mut base).0, number);
    }
    let read = fs::read(served.folder.path().join("log")).unwrap();
    assert_eq!(read, b"second third fourth");

    // Neither a number that is far ahead nor one that is forgotten.
    says(&mut direct, (kind::WRITE, 4 + OUTSTANDING), &append(handle, b"x"));
    while let Ok(Some(_)) = direct.reader.next() {}
    assert!(matches!(running.join().unwrap(), Err(Error::Protocol(_))));
    says(&mut base, (kind::WRITE, u32::MAX), &append(handle, b"x"));
    while let Ok(Some(_)) = base.reader.next() {}
    assert!(matches!(serving.join().unwrap(), Err(Error::Protocol(_))));
    assert_eq!(fs::read(served.folder.path().join("log")).unwrap(), read);
}

#[test]
fn a_read_that_waits_for_its_disk_holds_up_no_change() {
    let served = Served::new();
    let (go, wait) = channel();
    let beside = Beside {
        content: Some((Arc::new(Slow::new(wait)), served.handles.clone())),
        ..served.beside()
    };
    let (mut direct, far) = pair(DIRECT);
    let (_stream, running) = runs(&beside, far);
    let patience = Some(Duration::from_secs(30));
    direct.stream().unwrap().set_read_timeout(patience).unwrap();

    says(&mut direct, (kind::CHANGE, 0), &open_log(false));
    let handle = hears(&mut direct).1.unwrap().opened().unwrap().0.handle;
    let (offset, len) = (0, 5);
    says(&mut direct, (kind::READ, 7), &Read { handle, offset, len }.encode());
    for number in 1..50 {
        says(&mut direct, (kind::WRITE, number), &append(handle, b"x"));
        assert_eq!(hears(&mut direct).0, number);
    }
    go.send(()).unwrap();
    let (kind, number, _) = hears_any(&mut direct);
    // The slow tree knows no such file.
    assert_eq!((kind, number), (kind::REFUSED, 7));
    drop(direct);
    assert!(matches!(running.join().unwrap(), Err(Error::Network { .. })));
}

#[test]
fn what_has_no_place_on_a_direct_connection_ends_it() {
    let served = Served::new();
    for odd in [
        kind::CONTROL,
        kind::TUNNEL,
        kind::CONTENT,
        kind::REFUSED,
        kind::CHANGED,
        40,
    ] {
        let (mut direct, far) = pair(DIRECT);
        let (_stream, running) = runs(&served.beside(), far);
        says(&mut direct, (odd, 0), &[0]);
        while let Ok(Some(_)) = direct.reader.next() {}
        assert!(matches!(running.join().unwrap(), Err(Error::Protocol(_))), "{odd}");
    }
}

/// A folder mounted for changes as if through a relay, beside which direct paths come and go.
struct Mounted {
    served: Served,
    at: TempDir,
    mount: Option<Mount>,
    /// Of both ends.
    beside: [Beside; 2],
    direct: Vec<[Connection; 2]>,
    _runtime: tokio::runtime::Runtime,
}

impl Mounted {
    fn start() -> Self {
        let (served, at) = (Served::new(), tempfile::tempdir().unwrap());
        let numbers: Vec<u32> = [CONTENT, CHANGES].into_iter().chain(DIRECT..DIRECT + BREAKS).collect();
        let (mut near, mut far) = lines(&numbers);
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let (here, there) = tokio::io::duplex(1 << 20);
        let (tree, handles) = (served.tree.clone(), served.handles.clone());
        runtime.spawn(serve_with(
            there,
            tree.clone(),
            ServeOptions::default(),
            handles.clone(),
        ));
        let control = runtime.block_on(GrpcTree::connect(here)).unwrap();
        let (content, changes) = (far.remove(&CONTENT).unwrap(), far.remove(&CHANGES).unwrap());
        std::thread::spawn(move || bulk::serve(content, &*tree, &handles));
        let serving = served.changes.clone();
        std::thread::spawn(move || serving.serve(changes));
        let bulk = BulkTree::new(control, near.remove(&CONTENT).unwrap()).unwrap();
        let reads = Some(bulk.reads());
        let tree = ChangingTree::new(bulk, near.remove(&CHANGES).unwrap()).unwrap();
        let ours = Beside {
            reads,
            asked: Some(tree.asked()),
            ..Beside::default()
        };
        let options = MountOptions {
            writable: true,
            ttl: Duration::ZERO,
            ..MountOptions::default()
        };
        let mount = Mount::start(Arc::new(tree), at.path(), options).unwrap();
        let direct = near.into_values().zip(far.into_values()).map(|(near, far)| [near, far]);
        Self {
            beside: [ours, served.beside()],
            direct: direct.collect(),
            served,
            at,
            mount: Some(mount),
            _runtime: runtime,
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        drop(self.mount.take());
    }
}

/// Programs that go on until they are told to stop, and how much they have done.
#[derive(Default)]
struct Load {
    stop: AtomicBool,
    done: AtomicU64,
}

impl Load {
    fn goes_on(&self) -> bool {
        self.done.fetch_add(1, SeqCst);
        !self.stop.load(SeqCst)
    }

    /// Waits until so much more is done.
    fn goes_on_by(&self, more: u64) {
        let (until, end) = (self.done.load(SeqCst) + more, Instant::now() + Duration::from_secs(60));
        while self.done.load(SeqCst) < until {
            assert!(Instant::now() < end, "programs do not go on");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Appends lines, each once. What was brought to the disk is there.
fn appends(load: &Load, at: &Path, source: &Path) -> Vec<u8> {
    let open = |path: &Path| OpenOptions::new().append(true).create(true).open(path.join("log"));
    let (mut file, mut all) = (open(at).unwrap(), Vec::new());
    for number in 0u64.. {
        let line = content(100 + (number as usize * 37) % 9000, number);
        file.write_all(&line).unwrap();
        all.extend(line);
        if number.is_multiple_of(50) {
            file.sync_all().unwrap();
            assert!(fs::read(source.join("log")).unwrap() == all, "after {number} lines");
        }
        if !load.goes_on() {
            break;
        }
    }
    file.sync_all().unwrap();
    all
}

/// Overwrites parts of a file again and again.
fn overwrites(load: &Load, at: &Path) -> Vec<u8> {
    let mut all = vec![0; 4 << 20];
    let file = File::create(at.join("parts")).unwrap();
    file.write_all_at(&all, 0).unwrap();
    for number in 0u64.. {
        let part = content(200_000, number);
        let begin = (number as usize * 77_777) % (all.len() - part.len());
        file.write_all_at(&part, begin as u64).unwrap();
        all[begin..begin + part.len()].copy_from_slice(&part);
        if !load.goes_on() {
            break;
        }
    }
    all
}

/// Makes names that must not be there, renames and removes them: each works exactly once.
fn names(load: &Load, at: &Path) {
    let (one, other) = (at.join("one"), at.join("other"));
    loop {
        File::create_new(&one).unwrap().write_all(b"x").unwrap();
        fs::rename(&one, &other).unwrap();
        fs::create_dir(&one).unwrap();
        fs::remove_dir(&one).unwrap();
        fs::remove_file(&other).unwrap();
        if !load.goes_on() {
            return;
        }
    }
}

/// Reads here and there what nobody changes.
fn reads(load: &Load, at: &Path, all: &[u8]) {
    let mut part = vec![0; 300_000];
    for number in 0usize.. {
        // Anew: what was read ahead is forgotten.
        let file = File::open(at.join("large")).unwrap();
        let begin = (number * 1_234_567) % (all.len() - part.len());
        file.read_exact_at(&mut part, begin as u64).unwrap();
        assert!(part == all[begin..begin + part.len()], "other bytes at {begin}");
        if !load.goes_on() {
            return;
        }
    }
}

#[test]
fn a_direct_path_that_breaks_under_load_is_not_noticed_by_programs() {
    if !can_mount() {
        return;
    }
    let mut mounted = Mounted::start();
    let (at, source) = (mounted.at.path().to_owned(), mounted.served.folder.path().to_owned());
    let large = content(16 << 20, 7);
    fs::write(source.join("large"), &large).unwrap();
    let load = Load::default();
    let [ours, _] = mounted.beside.clone();
    let (log, parts) = std::thread::scope(|scope| {
        let log = scope.spawn(|| appends(&load, &at, &source));
        let parts = scope.spawn(|| overwrites(&load, &at));
        let others = [
            scope.spawn(|| names(&load, &at)),
            scope.spawn(|| reads(&load, &at, &large)),
        ];
        for (at, [near, far]) in std::mem::take(&mut mounted.direct).into_iter().enumerate() {
            let ends = [runs(&mounted.beside[0], near), runs(&mounted.beside[1], far)];
            load.goes_on_by(20 + at as u64);
            // By turns, one end or the other notices first.
            ends[at % 2].0.shutdown(Shutdown::Both).unwrap();
            for (_, running) in ends {
                assert!(matches!(running.join().unwrap(), Err(Error::Network { .. })));
            }
            load.goes_on_by(at as u64 % 3);
        }
        load.stop.store(true, SeqCst);
        others.into_iter().for_each(|other| other.join().unwrap());
        (log.join().unwrap(), parts.join().unwrap())
    });
    assert!(fs::read(source.join("log")).unwrap() == log, "the log");
    // Much went by the paths that broke, and was asked for again.
    let left = (ours.reads.unwrap().left(), ours.asked.unwrap().left());
    assert!(left.0 + left.1 > 0, "nothing was left by a direct path");
    assert!(fs::read(source.join("parts")).unwrap() == parts, "the parts");
    assert!(!source.join("one").exists() && !source.join("other").exists());
}
