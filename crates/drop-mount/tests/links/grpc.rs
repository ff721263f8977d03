//! A tree over gRPC, in memory and over sealed records.

mod hostile;
mod sealed;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use sealway_drop_mount::grpc::{GrpcTree, ServeOptions, serve};
use sealway_drop_mount::local::{LocalOptions, LocalTree};
use sealway_drop_mount::tree::{
    Attr, Call, Event, EventSink, Kind, MemoryTree, Opened, Page, ReadDone, ReadRequest, RemoteTree, Subscription,
    TreeError, TreePath,
};
use tokio::runtime::Runtime;

use crate::lines::{call, path, until};

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

fn bytes(len: usize) -> Vec<u8> {
    (0..len as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect()
}

/// A tree and the same tree at the other end of a connection.
fn pair(runtime: &Runtime, tree: Arc<dyn RemoteTree>, options: ServeOptions) -> GrpcTree {
    let (here, there) = tokio::io::duplex(1 << 20);
    runtime.spawn(serve(there, tree, options));
    runtime.block_on(GrpcTree::connect(here)).unwrap()
}

#[test]
fn a_folder_is_the_same_at_the_other_end() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    std::fs::create_dir(root.join("dir")).unwrap();
    let content = bytes(5_000_001);
    std::fs::write(root.join("dir/file"), &content).unwrap();
    std::fs::write(root.join("empty"), "").unwrap();
    std::os::unix::fs::symlink("../../out", root.join("link")).unwrap();
    for i in 0..3000 {
        std::fs::write(root.join(format!("dir/{i}")), "").unwrap();
    }
    let local = Arc::new(LocalTree::open(root, LocalOptions::default()).unwrap());
    let runtime = runtime();
    let remote = pair(&runtime, local.clone(), ServeOptions::default());
    for name in ["", "dir", "dir/file", "empty", "link"] {
        // Versions of fresh files change once, when they settle.
        until(name, || {
            remote.attr(&path(name), &call()) == local.attr(&path(name), &call())
        });
    }
    let (mut names, mut cursor) = (0, Some(0));
    while let Some(at) = cursor {
        let page = remote.list(&path("dir"), at, 500, &call()).unwrap();
        until("the same page", || {
            remote.list(&path("dir"), at, 500, &call()) == local.list(&path("dir"), at, 500, &call())
        });
        names += page.entries.len();
        cursor = page.next;
    }
    assert_eq!(names, 3001);
    assert_eq!(remote.read_link(&path("link"), &call()).unwrap(), b"../../out");
    let opened = remote.open(&path("dir/file"), &call()).unwrap();
    assert_eq!(opened.attr.kind, Kind::File);
    for (offset, len) in [
        (0, 4 << 20),
        (4_999_999, 4 << 20),
        (1, 1),
        (700_000, 1 << 20),
        (6_000_000, 10),
        (5, 0),
    ] {
        let chunk = remote.read(opened.handle, offset, len, &call()).unwrap();
        let from = (offset as usize).min(content.len());
        assert!(
            chunk.data == content[from..(from + len as usize).min(content.len())],
            "{offset}+{len}"
        );
    }
    let mut whole = Vec::new();
    let streamed = runtime.block_on(remote.stream_file(&path("dir/file"), 1000, |piece| {
        whole.extend_from_slice(&piece);
        Ok(())
    }));
    assert_eq!(streamed, Ok(content.len() as u64 - 1000));
    assert!(whole == content[1000..]);
    assert_eq!(
        runtime.block_on(remote.stream_file(&path("empty"), 0, |_| Ok(()))),
        Ok(0)
    );
    runtime.block_on(remote.ping()).unwrap();
    remote.close(opened.handle);
    until("closing", || local.open_handles() == 0);
}

#[test]
fn errors_are_the_same_at_the_other_end() {
    let tree = MemoryTree::new();
    tree.put_file(&path("file"), "text");
    tree.put_directory(&path("dir"));
    let runtime = runtime();
    let options = ServeOptions {
        handles: 2,
        ..ServeOptions::default()
    };
    let remote = pair(&runtime, Arc::new(tree), options);
    assert_eq!(remote.attr(&path("none"), &call()), Err(TreeError::NotFound));
    assert_eq!(remote.open(&path("dir"), &call()), Err(TreeError::NotFile));
    assert_eq!(remote.list(&path("file"), 0, 10, &call()), Err(TreeError::NotDirectory));
    assert_eq!(remote.read_link(&path("file"), &call()), Err(TreeError::NotLink));
    assert_eq!(remote.read(77, 0, 1, &call()), Err(TreeError::Stale));
    let first = remote.open(&path("file"), &call()).unwrap();
    let _second = remote.open(&path("file"), &call()).unwrap();
    assert_eq!(remote.open(&path("file"), &call()), Err(TreeError::Limit));
    remote.close(first.handle);
    until("a free handle", || remote.open(&path("file"), &call()).is_ok());
}

#[test]
fn handles_end_with_their_connection_and_belong_to_it() {
    let tree = MemoryTree::new();
    tree.put_file(&path("file"), "text");
    let runtime = runtime();
    let one = pair(&runtime, Arc::new(tree.clone()), ServeOptions::default());
    let other = pair(&runtime, Arc::new(tree.clone()), ServeOptions::default());
    let opened = one.open(&path("file"), &call()).unwrap();
    assert_eq!(other.read(opened.handle, 0, 4, &call()), Err(TreeError::Stale));
    other.close(opened.handle);
    assert_eq!(&one.read(opened.handle, 0, 4, &call()).unwrap().data[..], b"text");
    drop(one);
    until("closing", || tree.open_handles() == 0);
}

#[test]
fn changes_are_told_and_so_is_the_end() {
    let tree = MemoryTree::new();
    let (here, there) = tokio::io::duplex(1 << 20);
    let runtime = runtime();
    let server = runtime.spawn(serve(there, Arc::new(tree.clone()), ServeOptions::default()));
    let remote = runtime.block_on(GrpcTree::connect(here)).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let _news = remote
        .subscribe(Arc::new(move |event| tell.send(event).unwrap_or(())))
        .unwrap();
    let next = || told.recv_timeout(Duration::from_secs(60)).unwrap();
    tree.put_file(&path("file"), "text");
    assert_eq!(next(), Event::Entry(path("file")));
    tree.put_file(&path("file"), "more");
    assert_eq!(next(), Event::Changed(path("file")));
    assert!(remote.is_alive());
    server.abort();
    assert_eq!(next(), Event::Lost);
    assert!(!remote.is_alive());
    assert_eq!(remote.attr(&path("file"), &call()), Err(TreeError::Lost));
    assert_eq!(remote.read(1, 0, 1, &call()), Err(TreeError::Lost));
}

#[test]
fn a_file_that_changes_while_it_is_streamed_is_an_error() {
    let tree = MemoryTree::new();
    tree.put_file(&path("file"), bytes(64 << 20));
    let runtime = runtime();
    let remote = pair(&runtime, Arc::new(tree.clone()), ServeOptions::default());
    let mut first = true;
    let streamed = runtime.block_on(remote.stream_file(&path("file"), 0, |_| {
        if std::mem::take(&mut first) {
            tree.put_file(&path("file"), bytes(64 << 20));
        }
        Ok(())
    }));
    assert_eq!(streamed, Err(TreeError::Stale));
    until("closing", || tree.open_handles() == 0);
}

/// A tree that does not answer.
#[derive(Default)]
struct Silent {
    waiting: AtomicUsize,
    cancelled: AtomicUsize,
    quick: AtomicBool,
}

impl RemoteTree for Silent {
    fn attr(&self, _path: &TreePath, call: &Call) -> Result<Attr, TreeError> {
        self.waiting.fetch_add(1, SeqCst);
        loop {
            if self.quick.load(SeqCst) {
                return Err(TreeError::NotFound);
            }
            if let Err(error) = call.left() {
                self.cancelled.fetch_add(1, SeqCst);
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn list(&self, _: &TreePath, _: u64, _: usize, _: &Call) -> Result<Page, TreeError> {
        Err(TreeError::Failed)
    }

    fn read_link(&self, _: &TreePath, _: &Call) -> Result<Vec<u8>, TreeError> {
        Err(TreeError::Failed)
    }

    fn open(&self, _: &TreePath, _: &Call) -> Result<Opened, TreeError> {
        Err(TreeError::Denied)
    }

    fn submit(&self, _: ReadRequest, _: ReadDone) {}

    fn close(&self, _: u64) {}

    fn subscribe(&self, _: EventSink) -> Result<Subscription, TreeError> {
        Err(TreeError::Limit)
    }
}

#[test]
fn calls_end_in_time_and_when_they_are_called_off() {
    let silent = Arc::new(Silent::default());
    let runtime = runtime();
    let remote = Arc::new(pair(&runtime, silent.clone(), ServeOptions::default()));
    assert_eq!(
        remote.attr(&path("x"), &Call::within(Duration::from_millis(50))),
        Err(TreeError::Timeout)
    );
    until("calling off at the serving side", || silent.cancelled.load(SeqCst) == 1);
    let of = Call::within(Duration::from_secs(86_400));
    let token = of.cancel.clone();
    let asking = Arc::clone(&remote);
    let thread = std::thread::spawn(move || asking.attr(&path("x"), &of));
    until("a call", || silent.waiting.load(SeqCst) == 2);
    token.cancel();
    assert_eq!(thread.join().unwrap(), Err(TreeError::Cancelled));
    until("calling off at the serving side", || silent.cancelled.load(SeqCst) == 2);
    assert!(remote.subscribe(Arc::new(|_| ())).is_err());
    silent.quick.store(true, SeqCst);
    assert_eq!(remote.attr(&path("x"), &call()), Err(TreeError::NotFound));
}

#[test]
fn the_serving_side_has_a_time_limit_of_its_own() {
    let silent = Arc::new(Silent::default());
    let runtime = runtime();
    let options = ServeOptions {
        timeout: Duration::from_millis(50),
        ..ServeOptions::default()
    };
    let remote = pair(&runtime, silent, options);
    assert_eq!(remote.attr(&path("x"), &call()), Err(TreeError::Timeout));
}
