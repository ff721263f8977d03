//! How many messages small files take, counted where the folder is.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sealway_drop::cancel::Cancel;
use sealway_drop::link::{Connection, Place, connect};
use sealway_drop::testing::{listen, setup};
use sealway_drop::wire::kind;
use sealway_drop_mount::changes::ChangingTree;
use sealway_drop_mount::changes::message::{self, WriteHeader};
use sealway_drop_mount::fuse::{Mount, MountOptions};
use sealway_drop_mount::local::{LocalOptions, LocalTree, Own};
use sealway_drop_mount::tree::{
    Attr, Call, Change, Changed, EventSink, Opened, Page, ReadDone, ReadRequest, RemoteTree, Subscription, TreeError,
    TreePath,
};
use tempfile::TempDir;

use super::support::can_mount;

const FILES: usize = 100;

/// What was asked for, by the connection of changes and by the service.
#[derive(Default)]
struct Counts {
    changes: AtomicUsize,
    unknown: AtomicUsize,
    attrs: AtomicUsize,
    closes: AtomicUsize,
    reads: AtomicUsize,
}

impl Counts {
    /// Changes, looks and closes by the service, since this was last asked.
    fn take(&self) -> [usize; 3] {
        [&self.changes, &self.attrs, &self.closes].map(|count| count.swap(0, Ordering::SeqCst))
    }
}

/// The service of the folder.
struct Service {
    tree: Arc<LocalTree>,
    own: Arc<Own>,
    counts: Arc<Counts>,
}

impl RemoteTree for Service {
    fn attr(&self, path: &TreePath, call: &Call) -> Result<Attr, TreeError> {
        self.counts.attrs.fetch_add(1, Ordering::SeqCst);
        self.tree.attr(path, call)
    }

    fn list(&self, path: &TreePath, cursor: u64, limit: usize, call: &Call) -> Result<Page, TreeError> {
        self.tree.list(path, cursor, limit, call)
    }

    fn read_link(&self, path: &TreePath, call: &Call) -> Result<Vec<u8>, TreeError> {
        self.tree.read_link(path, call)
    }

    fn open(&self, path: &TreePath, call: &Call) -> Result<Opened, TreeError> {
        self.tree.open(path, call)
    }

    fn submit(&self, request: ReadRequest, done: ReadDone) {
        self.counts.reads.fetch_add(1, Ordering::SeqCst);
        self.tree.submit(request, done);
    }

    fn close(&self, handle: u64) {
        self.counts.closes.fetch_add(1, Ordering::SeqCst);
        self.tree.close(handle);
    }

    fn subscribe(&self, sink: EventSink) -> Result<Subscription, TreeError> {
        self.tree.subscribe(self.own.filter(sink))
    }
}

fn pair() -> (Connection, Connection) {
    let (listener, address) = listen();
    let open = |place, own| {
        let cancel = Cancel::new();
        let connected = connect(place, &setup(own), 1, &cancel).unwrap();
        connected.data.open_only(&[5], &cancel).next().unwrap().unwrap()
    };
    let there = std::thread::spawn(move || open(Place::Listen(listener), 1));
    let dial = Place::Dial {
        addresses: vec![address],
        patience: Duration::from_secs(10),
    };
    (open(dial, 2), there.join().unwrap())
}

/// Does and counts what it is asked for, until the other end is gone. An old owner does not know all of it.
fn serve(connection: Connection, service: &Service, old: bool) {
    let Connection {
        mut reader, mut writer, ..
    } = connection;
    while let Ok(Some(record)) = reader.next() {
        if record.kind == kind::PULSE {
            continue;
        }
        service.counts.changes.fetch_add(1, Ordering::SeqCst);
        let answer = match record.kind {
            kind::WRITE => {
                let (header, data) = WriteHeader::parse(record.payload).unwrap();
                let wrote = service.own.put(header.handle, header.offset, header.append, data);
                wrote.map(Changed::Attr)
            }
            _ => match message::parse(record.payload).unwrap().unwrap() {
                Change::LookUp(_) | Change::Close(_) if old => {
                    service.counts.unknown.fetch_add(1, Ordering::SeqCst);
                    Err(TreeError::Unsupported)
                }
                change => service.own.apply(&change),
            },
        };
        let answered = writer.push(kind::CHANGED, record.stream, &message::encode_answer(&answer));
        if answered.and_then(|()| writer.flush()).is_err() {
            break;
        }
    }
}

/// Calls `work` with a mount of a folder, the counts of its owner, and the folder's tree.
fn mounted(old: bool, work: impl FnOnce(&Path, &Counts, &LocalTree)) {
    if !can_mount() {
        return;
    }
    let (source, at): (TempDir, TempDir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let options = LocalOptions {
        writable: true,
        floor: 0,
        ..LocalOptions::default()
    };
    let tree = Arc::new(LocalTree::open(source.path(), options).unwrap());
    let counts: Arc<Counts> = Arc::default();
    let own = Arc::new(Own::new(tree.clone()));
    let service = || Service {
        tree: tree.clone(),
        own: own.clone(),
        counts: counts.clone(),
    };
    let (here, there) = pair();
    let served = service();
    let serving = std::thread::spawn(move || serve(there, &served, old));
    let changing = Arc::new(ChangingTree::new(service(), here).unwrap());
    let mounting = MountOptions {
        writable: true,
        // What the kernel asks for then does not depend on the time that passes.
        ttl: Duration::from_secs(86_400),
        ..MountOptions::default()
    };
    let mount = Mount::start(changing.clone(), at.path(), mounting).unwrap();
    work(at.path(), &counts, &tree);
    assert_eq!(fs::read_dir(source.path()).unwrap().count(), 0);
    mount.unmount().unwrap();
    drop(changing);
    serving.join().unwrap();
}

/// A file is closed at the owner after its program has gone on.
fn until_closed(tree: &LocalTree) {
    super::until("closed", || tree.open_handles() == 0);
}

#[test]
fn small_files_take_few_messages() {
    mounted(false, |at, counts, tree| {
        let name = |number: usize| at.join(format!("f{number}"));
        fs::metadata(at).unwrap();
        counts.take();
        for number in 0..FILES {
            fs::write(name(number), [7; 4096]).unwrap();
        }
        until_closed(tree);
        // Each is looked for, made, written and closed.
        let [changes, attrs, closes] = counts.take();
        println!("made: {changes}");
        assert_eq!((attrs, closes), (0, 0));
        assert!(changes <= 4 * FILES, "{changes} to make files");

        for number in 0..FILES {
            assert_eq!(fs::read(name(number)).unwrap(), [7; 4096]);
        }
        until_closed(tree);
        let [changes, attrs, closes] = counts.take();
        println!("read: {changes}, and {} reads", counts.reads.load(Ordering::SeqCst));
        assert_eq!((attrs, closes), (0, 0));
        // Each is opened, looked at and closed; the kernel looks again where it heard of the times of a write late.
        assert!(changes <= 4 * FILES, "{changes} to read files");

        for number in 0..FILES {
            fs::remove_file(name(number)).unwrap();
        }
        let [changes, attrs, _] = counts.take();
        println!("removed: {changes}");
        assert_eq!(attrs, 0);
        assert!(changes <= FILES, "{changes} to remove files");
    });
}

#[test]
fn an_owner_that_does_not_know_looks_and_closes_by_the_service() {
    mounted(true, |at, counts, tree| {
        for number in 0..FILES {
            let name = at.join(format!("f{number}"));
            fs::write(&name, "old").unwrap();
            assert_eq!(fs::read(&name).unwrap(), b"old");
            fs::remove_file(&name).unwrap();
        }
        until_closed(tree);
        // It is asked once and answers that it does not know.
        assert_eq!(counts.unknown.load(Ordering::SeqCst), 1);
        let [_, attrs, closes] = counts.take();
        assert!(attrs >= FILES && closes >= 2 * FILES, "{attrs} {closes}");
    });
}
