//! How many messages small files take, counted where the folder is.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use sealway_drop::link::Connection;
use sealway_drop::wire::kind;
use sealway_drop_mount::changes::ChangingTree;
use sealway_drop_mount::changes::message::{self, WriteHeader};
use sealway_drop_mount::forward;
use sealway_drop_mount::fuse::{Mount, MountOptions};
use sealway_drop_mount::local::{LocalOptions, LocalTree, Own};
use sealway_drop_mount::tree::{
    Attr, Call, Change, Changed, EventSink, Opened, Page, ReadDone, ReadRequest, RemoteTree, Subscription, TreeError,
    TreePath,
};
use tempfile::TempDir;

use super::lines::pair;
use super::support::can_mount;

const FILES: usize = 100;

/// Messages more than are due: where news of a change come late, the kernel asks again.
const SPARE: usize = FILES / 20;

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

    forward!(tree: list, read_link, open);

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

/// A folder and its mount.
struct Mounted<'a> {
    at: &'a Path,
    source: &'a Path,
    counts: &'a Counts,
    tree: &'a LocalTree,
}

impl Mounted<'_> {
    /// A file is closed at the owner after its program has gone on.
    fn until_closed(&self) {
        super::until("closed", || self.tree.open_handles() == 0);
    }
}

/// What the kernel asks for does not depend on the time that passes.
const LONG: Duration = Duration::from_secs(86_400);

/// Calls `work` with a mount of a folder, which is empty then and afterwards.
fn mounted(old: bool, ttl: Duration, work: impl FnOnce(Mounted<'_>)) {
    if !can_mount() {
        return;
    }
    // In memory: what comes with an answer does not depend on a disk.
    let (source, at): (TempDir, TempDir) = (tempfile::tempdir_in("/dev/shm").unwrap(), tempfile::tempdir().unwrap());
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
    let (here, there) = pair(5);
    let served = service();
    let serving = std::thread::spawn(move || serve(there, &served, old));
    let changing = Arc::new(ChangingTree::new(service(), here).unwrap());
    let mounting = MountOptions {
        writable: true,
        ttl,
        ..MountOptions::default()
    };
    let mount = Mount::start(changing.clone(), at.path(), mounting).unwrap();
    work(Mounted {
        at: at.path(),
        source: source.path(),
        counts: &counts,
        tree: &tree,
    });
    assert_eq!(fs::read_dir(source.path()).unwrap().count(), 0);
    mount.unmount().unwrap();
    drop(changing);
    serving.join().unwrap();
}

#[test]
fn small_files_take_few_messages() {
    mounted(false, LONG, |mounted| {
        let Mounted { at, counts, .. } = mounted;
        let name = |number: usize| at.join(format!("f{number}"));
        fs::metadata(at).unwrap();
        counts.take();
        for number in 0..FILES {
            fs::write(name(number), [7; 4096]).unwrap();
        }
        mounted.until_closed();
        // Each is looked for, made, written and closed.
        let [changes, attrs, closes] = counts.take();
        println!("made: {changes}");
        assert_eq!((attrs, closes), (0, 0));
        assert!(changes <= 4 * FILES, "{changes} to make files");

        for number in 0..FILES {
            assert_eq!(fs::metadata(name(number)).unwrap().len(), 4096);
        }
        let [changes, attrs, _] = counts.take();
        println!("looked at: {changes}");
        // The answers to the writes said it.
        assert!(changes + attrs <= SPARE, "{changes} to look at files");

        for number in 0..FILES {
            assert_eq!(fs::read(name(number)).unwrap(), [7; 4096]);
        }
        mounted.until_closed();
        let [changes, attrs, closes] = counts.take();
        println!("read: {changes}, and {} reads", counts.reads.load(Ordering::SeqCst));
        assert_eq!((attrs, closes), (0, 0));
        // Each is opened, which brings its attributes and its content, and closed.
        assert!(changes <= 2 * FILES + SPARE, "{changes} to read files");
        assert!(
            counts.reads.load(Ordering::SeqCst) <= SPARE,
            "content was asked for apart"
        );

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
    mounted(true, LONG, |mounted| {
        let Mounted { at, counts, .. } = mounted;
        for number in 0..FILES {
            let name = at.join(format!("f{number}"));
            fs::write(&name, "old").unwrap();
            assert_eq!(fs::read(&name).unwrap(), b"old");
            fs::remove_file(&name).unwrap();
        }
        mounted.until_closed();
        // It is asked once and answers that it does not know.
        assert_eq!(counts.unknown.load(Ordering::SeqCst), 1);
        let [_, attrs, closes] = counts.take();
        assert!(attrs >= FILES && closes >= 2 * FILES, "{attrs} {closes}");
    });
}

/// Of an open file: what it says now.
fn says(file: &mut File) -> String {
    let mut said = String::new();
    file.read_to_string(&mut said).unwrap();
    said
}

#[test]
fn what_came_at_opening_is_not_given_once_the_owner_has_changed_it() {
    mounted(false, LONG, |mounted| {
        let (name, owners) = (mounted.at.join("file"), mounted.source.join("file"));
        fs::write(&name, "old").unwrap();
        let mut file = File::open(&name).unwrap();
        fs::write(&owners, "new and longer").unwrap();
        // The kernel asks for the size once it has been told of the change.
        super::until("news", || fs::metadata(&name).unwrap().len() == 14);
        assert_eq!(says(&mut file), "new and longer");
        fs::remove_file(&name).unwrap();
    });
}

#[test]
fn what_came_at_opening_is_not_given_for_longer_than_names_are_kept() {
    let ttl = Duration::from_millis(50);
    mounted(false, ttl, |mounted| {
        let name = mounted.at.join("file");
        fs::write(&name, "old").unwrap();
        let mut file = File::open(&name).unwrap();
        std::thread::sleep(ttl);
        assert_eq!(says(&mut file), "old");
        assert!(mounted.counts.reads.load(Ordering::SeqCst) > 0);
        fs::remove_file(&name).unwrap();
    });
}
