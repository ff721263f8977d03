use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::*;
use crate::tree::{Cancel, MemoryTree};

/// Far more than a busy machine needs.
const LONG: Duration = Duration::from_secs(60);

/// A way to a tree that can be lost.
struct Cuttable {
    tree: MemoryTree,
    cut: AtomicBool,
    /// Reads fail as if their part of the way were lost.
    half: AtomicUsize,
}

impl Cuttable {
    fn to(tree: &MemoryTree) -> Arc<Self> {
        Arc::new(Self {
            tree: tree.clone(),
            cut: AtomicBool::new(false),
            half: AtomicUsize::new(0),
        })
    }

    fn check(&self) -> Result<(), TreeError> {
        if self.cut.load(SeqCst) {
            Err(TreeError::Lost)
        } else {
            Ok(())
        }
    }
}

impl RemoteTree for Cuttable {
    fn attr(&self, path: &TreePath, call: &Call) -> Result<Attr, TreeError> {
        self.check()?;
        self.tree.attr(path, call)
    }

    fn list(&self, path: &TreePath, cursor: u64, limit: usize, call: &Call) -> Result<Page, TreeError> {
        self.check()?;
        self.tree.list(path, cursor, limit, call)
    }

    fn read_link(&self, path: &TreePath, call: &Call) -> Result<Vec<u8>, TreeError> {
        self.check()?;
        self.tree.read_link(path, call)
    }

    fn open(&self, path: &TreePath, call: &Call) -> Result<Opened, TreeError> {
        self.check()?;
        self.tree.open(path, call)
    }

    fn submit(&self, request: ReadRequest, done: ReadDone) {
        let half = self.half.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1));
        match self.check() {
            Ok(()) if half.is_err() => self.tree.submit(request, done),
            _ => done(Err(TreeError::Lost)),
        }
    }

    fn close(&self, handle: u64) {
        self.tree.close(handle);
    }

    fn subscribe(&self, sink: EventSink) -> Result<Subscription, TreeError> {
        self.check()?;
        self.tree.subscribe(sink)
    }

    fn is_alive(&self) -> bool {
        !self.cut.load(SeqCst)
    }
}

fn path(text: &str) -> TreePath {
    TreePath::parse(text.as_bytes()).expect("a path")
}

/// A tree with one file, the lasting one before it, and a way to it that stands.
fn start() -> (MemoryTree, Arc<LastingTree>, Arc<Cuttable>, Receiver<()>) {
    let tree = MemoryTree::new();
    tree.put_file(&path("file"), "content");
    let lasting = Arc::new(LastingTree::new().expect("a thread"));
    let (way, told) = connect(&tree, &lasting);
    (tree, lasting, way, told)
}

fn connect(tree: &MemoryTree, lasting: &LastingTree) -> (Arc<Cuttable>, Receiver<()>) {
    let (way, (tell, told)) = (Cuttable::to(tree), channel());
    lasting.set(
        way.clone(),
        Arc::new(move || {
            let _ = tell.send(());
        }),
    );
    (way, told)
}

fn read(lasting: &LastingTree, handle: u64, within: Duration) -> Result<Vec<u8>, TreeError> {
    let chunk = lasting.read(handle, 0, 100, &Call::within(within))?;
    Ok(chunk.data.to_vec())
}

#[test]
fn calls_and_reads_wait_for_the_next_way_and_open_files_go_on() {
    let (tree, lasting, way, told) = start();
    let opened = lasting.open(&path("file"), &Call::within(LONG)).expect("it is there");
    assert_eq!(read(&lasting, opened.handle, LONG), Ok(b"content".to_vec()));
    way.cut.store(true, SeqCst);
    let waiting: Vec<_> = (0..4)
        .map(|n| {
            let lasting = lasting.clone();
            std::thread::spawn(move || match n % 2 {
                0 => read(&lasting, opened.handle, LONG).map(|_| ()),
                _ => lasting.attr(&path("file"), &Call::within(LONG)).map(|_| ()),
            })
        })
        .collect();
    told.recv_timeout(LONG).expect("the loss is told");
    let (way, told_next) = connect(&tree, &lasting);
    for one in waiting {
        assert_eq!(one.join().expect("no panic"), Ok(()));
    }
    assert!(
        told.try_recv().is_err() && told_next.try_recv().is_err(),
        "told once, of the one that was lost"
    );
    assert_eq!(tree.open_handles(), 2, "one by each way");
    lasting.close(opened.handle);
    assert_eq!(tree.open_handles(), 1, "those of the lost way go with it");
    drop(way);
}

#[test]
fn a_file_that_changed_meanwhile_is_stale_and_stays_so() {
    let (tree, lasting, way, _told) = start();
    tree.put_file(&path("other"), "same");
    let [file, other] =
        ["file", "other"].map(|name| lasting.open(&path(name), &Call::within(LONG)).expect("it is there"));
    way.cut.store(true, SeqCst);
    tree.put_file(&path("file"), "another");
    connect(&tree, &lasting);
    assert_eq!(read(&lasting, file.handle, LONG), Err(TreeError::Stale));
    assert_eq!(read(&lasting, file.handle, LONG), Err(TreeError::Stale));
    assert_eq!(read(&lasting, other.handle, LONG), Ok(b"same".to_vec()));
    // What was read after a change counts, not what was opened.
    let file = lasting.open(&path("file"), &Call::within(LONG)).expect("it is there");
    tree.put_file(&path("file"), "a third");
    assert_eq!(read(&lasting, file.handle, LONG), Ok(b"a third".to_vec()));
    lasting.lose();
    connect(&tree, &lasting);
    assert_eq!(read(&lasting, file.handle, LONG), Ok(b"a third".to_vec()));
    // And one that is gone.
    lasting.lose();
    tree.remove(&path("file"));
    connect(&tree, &lasting);
    assert_eq!(read(&lasting, file.handle, LONG), Err(TreeError::Stale));
}

#[test]
fn nothing_waits_longer_than_it_may_or_once_it_is_called_off_or_over() {
    let (_tree, lasting, way, _told) = start();
    let opened = lasting.open(&path("file"), &Call::within(LONG)).expect("it is there");
    way.cut.store(true, SeqCst);
    let short = Duration::from_millis(20);
    assert_eq!(read(&lasting, opened.handle, short), Err(TreeError::Timeout));
    assert_eq!(
        lasting.attr(&path("file"), &Call::within(short)),
        Err(TreeError::Timeout)
    );
    let cancel = Cancel::new();
    let call = Call {
        cancel: cancel.clone(),
        ..Call::within(LONG)
    };
    let waiting = std::thread::spawn({
        let lasting = lasting.clone();
        move || {
            [
                lasting.attr(&path("file"), &call).map(|_| ()),
                lasting.attr(&path("file"), &call).map(|_| ()),
            ]
        }
    });
    let (done, heard) = channel();
    let request = ReadRequest {
        handle: opened.handle,
        offset: 0,
        len: 1,
        deadline: Instant::now() + LONG,
        cancel: cancel.clone(),
    };
    lasting.submit(
        request,
        Box::new(move |result| {
            let _ = done.send(result.map(|_| ()));
        }),
    );
    cancel.cancel();
    assert_eq!(waiting.join().expect("no panic"), [Err(TreeError::Cancelled); 2]);
    assert_eq!(heard.recv_timeout(LONG), Ok(Err(TreeError::Cancelled)));
    let waiting = std::thread::spawn({
        let lasting = lasting.clone();
        move || {
            [
                read(&lasting, opened.handle, LONG).map(|_| ()),
                lasting.attr(&path("file"), &Call::within(LONG)).map(|_| ()),
            ]
        }
    });
    lasting.end();
    assert_eq!(waiting.join().expect("no panic"), [Err(TreeError::Lost); 2]);
    assert!(!lasting.is_alive());
}

#[test]
fn a_way_of_which_a_part_is_lost_goes_on() {
    let (_tree, lasting, way, told) = start();
    let opened = lasting.open(&path("file"), &Call::within(LONG)).expect("it is there");
    way.half.store(1, SeqCst);
    assert_eq!(read(&lasting, opened.handle, LONG), Ok(b"content".to_vec()));
    assert!(told.try_recv().is_err());
    // One that says it stands and never answers is lost in the end.
    way.half.store(usize::MAX, SeqCst);
    let reader = lasting.clone();
    let waiting = std::thread::spawn(move || read(&reader, opened.handle, LONG));
    told.recv_timeout(LONG).expect("the loss is told");
    lasting.end();
    assert_eq!(waiting.join().expect("no panic"), Err(TreeError::Lost));
}

#[test]
fn news_go_on_by_the_next_way_and_begin_with_anything_may_have_changed() {
    let (tree, lasting, _way, told) = start();
    let (tell, news) = channel();
    let subscription = lasting
        .subscribe(Arc::new(move |event| drop(tell.send(event))))
        .expect("news");
    tree.put_file(&path("file"), "1");
    assert_eq!(news.recv_timeout(LONG), Ok(Event::Changed(path("file"))));
    tree.tell(&Event::Lost);
    told.recv_timeout(LONG).expect("the loss is told");
    connect(&tree, &lasting);
    assert_eq!(news.recv_timeout(LONG), Ok(Event::Everything));
    tree.put_file(&path("file"), "2");
    assert_eq!(news.recv_timeout(LONG), Ok(Event::Changed(path("file"))));
    drop(subscription);
    tree.put_file(&path("file"), "3");
    assert!(news.recv_timeout(LONG).is_err(), "nobody is told any more");
}
