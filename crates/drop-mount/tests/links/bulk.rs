//! Content on a connection of its own: what two good ends do, and what becomes of bad ones.

use std::net::Shutdown;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sealway_drop::Error;
use sealway_drop::link::Connection;
use sealway_drop::testing::content;
use sealway_drop::wire::kind;
use sealway_drop_mount::bulk::message::{MAX_LEN, Read, content_header};
use sealway_drop_mount::bulk::{BulkTree, Link, OUTSTANDING, serve};
use sealway_drop_mount::grpc::{GrpcTree, Handles, ServeOptions, serve_with};
use sealway_drop_mount::local::{LocalOptions, LocalTree};
use sealway_drop_mount::tree::{Cancel, Chunk, MemoryTree, ReadRequest, RemoteTree, TreeError};

use crate::lines::{call, pair, path};
use crate::slow::Slow;

type Answer = Receiver<Result<Chunk, TreeError>>;

/// Starts a read that may take a minute.
fn submit(link: &Link, handle: u64, offset: u64, len: u32) -> (Answer, Cancel) {
    submit_for(link, (handle, offset, len), Duration::from_secs(60))
}

fn submit_for(link: &Link, (handle, offset, len): (u64, u64, u32), time: Duration) -> (Answer, Cancel) {
    let (send, receive) = channel();
    let (deadline, cancel) = (Instant::now() + time, Cancel::new());
    let request = ReadRequest {
        handle,
        offset,
        len,
        deadline,
        cancel: cancel.clone(),
    };
    link.submit(request, Box::new(move |result| send.send(result).unwrap()));
    (receive, cancel)
}

fn answer(answer: &(Answer, Cancel)) -> Result<Chunk, TreeError> {
    answer.0.recv_timeout(Duration::from_secs(60)).unwrap()
}

/// A tree served by both ways, and how the serving of content ended.
struct Served {
    tree: BulkTree<GrpcTree>,
    handles: Arc<Handles>,
    ended: JoinHandle<Result<(), Error>>,
}

fn served(runtime: &tokio::runtime::Runtime, tree: Arc<dyn RemoteTree>) -> Served {
    let (here, there) = tokio::io::duplex(1 << 20);
    let handles: Arc<Handles> = Arc::default();
    runtime.spawn(serve_with(
        there,
        tree.clone(),
        ServeOptions::default(),
        handles.clone(),
    ));
    let control = runtime.block_on(GrpcTree::connect(here)).unwrap();
    let (here, there) = pair(3);
    let of = handles.clone();
    let ended = std::thread::spawn(move || serve(there, &*tree, &of));
    Served {
        tree: BulkTree::new(control, here).unwrap(),
        handles,
        ended,
    }
}

#[test]
fn files_are_read_as_they_are_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = content(9_000_001, 3);
    std::fs::write(folder.path().join("file"), &bytes).unwrap();
    let local = Arc::new(LocalTree::open(folder.path(), LocalOptions::default()).unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Served { tree, ended, .. } = served(&runtime, local);
    let opened = tree.open(&path("file"), &call()).unwrap();
    let size = bytes.len() as u64;
    // The last ones are too long for one answer, and go by the other tree.
    for (offset, len) in [
        (0, 0),
        (0, 1),
        (5, 70_000),
        (0, MAX_LEN as u32),
        (size - 1, 100),
        (size, 5),
        (size + 7, 5),
        (1, MAX_LEN as u32 + 1),
        (3, 4 << 20),
    ] {
        let chunk = tree.read(opened.handle, offset, len, &call()).unwrap();
        let (from, to) = (offset.min(size) as usize, (offset + u64::from(len)).min(size) as usize);
        assert!(chunk.data[..] == bytes[from..to.max(from)], "{len} at {offset}");
        assert_eq!((chunk.size, chunk.version), (size, opened.attr.version));
    }
    // More at once than may be outstanding.
    let (send, receive) = channel();
    let count = 3 * OUTSTANDING as u64;
    for i in 0..count {
        let (send, offset) = (send.clone(), i * 20_011);
        let deadline = Instant::now() + Duration::from_secs(60);
        let request = ReadRequest {
            handle: opened.handle,
            offset,
            len: 30_000,
            deadline,
            cancel: Cancel::new(),
        };
        tree.submit(
            request,
            Box::new(move |result| send.send((offset as usize, result)).unwrap()),
        );
    }
    for _ in 0..count {
        let (offset, chunk) = receive.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(chunk.unwrap().data[..] == bytes[offset..offset + 30_000]);
    }
    drop(tree);
    let _ = ended.join().unwrap();
}

#[test]
fn handles_of_others_and_handles_of_nobody_are_not_read() {
    let memory = MemoryTree::new();
    memory.put_file(&path("file"), "secret");
    let foreign = memory.open(&path("file"), &call()).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let Served { tree, handles, .. } = served(&runtime, Arc::new(memory));
    let own = tree.open(&path("file"), &call()).unwrap();
    assert!(handles.contains(own.handle) && !handles.contains(foreign.handle));
    assert_eq!(&tree.read(own.handle, 0, 6, &call()).unwrap().data[..], b"secret");
    for handle in [foreign.handle, u64::MAX, 0] {
        assert_eq!(tree.read(handle, 0, 6, &call()), Err(TreeError::Stale));
    }
    tree.close(own.handle);
    let end = Instant::now() + Duration::from_secs(60);
    while tree.read(own.handle, 0, 6, &call()).is_ok() {
        assert!(Instant::now() < end, "the handle was not closed");
    }
    assert_eq!(tree.read(own.handle, 0, 6, &call()), Err(TreeError::Stale));
}

/// Sends as a client and says how the server took it.
fn as_client(say: impl FnOnce(&mut Connection) -> Result<(), Error>) -> Result<(), Error> {
    let (mut here, there) = pair(3);
    let server = std::thread::spawn(move || {
        // Nothing is answered as long as the tree reads.
        let tree = MemoryTree::new();
        serve(there, &tree, &Handles::default())
    });
    say(&mut here).and_then(|()| here.writer.flush()).unwrap();
    // Until the server goes, it may answer.
    while let Ok(Some(_)) = here.reader.next() {}
    server.join().unwrap()
}

#[test]
fn clients_that_break_the_rules_are_cut_off() {
    let [read, too_long, past] =
        [(0, 5), (0, MAX_LEN as u32 + 1), (u64::MAX, 5)].map(|(offset, len)| Read { handle: 1, offset, len });
    for bad in [&read.encode()[..5], &too_long.encode(), &past.encode(), &[0; 21]] {
        let result = as_client(|here| here.writer.push(kind::READ, 7, bad));
        assert!(matches!(result, Err(Error::Protocol(_))), "{result:?}");
    }
    for odd in [kind::CONTENT, kind::REFUSED, kind::TUNNEL, 40] {
        let result = as_client(|here| here.writer.push(odd, 7, &read.encode()));
        assert!(matches!(result, Err(Error::Protocol(_))), "{result:?}");
    }
    // Calling off what was never asked is not one of them.
    let result = as_client(|here| {
        here.writer.push(kind::CANCEL, 9, &[0])?;
        here.writer.push(kind::PULSE, 0, &[0])?;
        here.writer.close()
    });
    assert!(result.is_ok(), "{result:?}");
}

#[test]
fn too_many_reads_and_two_of_one_number_are_refused() {
    for twice in [false, true] {
        let (mut here, there) = pair(3);
        let (go, wait) = channel::<()>();
        let handles: Arc<Handles> = Arc::default();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let tree: Arc<dyn RemoteTree> = Arc::new(Slow::new(wait));
        let (near, far) = tokio::io::duplex(1 << 16);
        runtime.spawn(serve_with(far, tree.clone(), ServeOptions::default(), handles.clone()));
        let control = runtime.block_on(GrpcTree::connect(near)).unwrap();
        let handle = control.open(&path("file"), &call()).unwrap().handle;
        let server = std::thread::spawn(move || serve(there, &*tree, &handles));
        let (offset, len) = (0, 5);
        let read = Read { handle, offset, len };
        let tags: Vec<u32> = match twice {
            true => vec![0, 1, 1],
            false => (0..OUTSTANDING as u32 + 2).collect(),
        };
        for tag in tags {
            here.writer.push(kind::READ, tag, &read.encode()).unwrap();
        }
        here.writer.flush().unwrap();
        // The connection is gone although the first read has not been answered yet.
        while let Ok(Some(_)) = here.reader.next() {}
        drop(go);
        let result = server.join().unwrap();
        assert!(matches!(result, Err(Error::Protocol(_))), "{result:?}");
    }
}

/// The payload of an answer.
fn reply(size: u64, bytes: &[u8]) -> Vec<u8> {
    [&content_header(size, 1)[..], bytes].concat()
}

/// The number of the next read.
fn asked(there: &mut Connection) -> u32 {
    let record = there.reader.next().unwrap().unwrap();
    assert_eq!(record.kind, kind::READ);
    record.stream
}

#[test]
fn servers_that_break_the_rules_are_left() {
    type Say = fn(&mut Connection, u32);
    let says: [Say; 6] = [
        |there, tag| there.writer.push(kind::CONTENT, tag + 1, &reply(5, b"12345")).unwrap(),
        |there, tag| there.writer.push(kind::REFUSED, tag + 1, &[6]).unwrap(),
        |there, tag| there.writer.push(kind::CONTENT, tag, &[0; 15]).unwrap(),
        |there, tag| there.writer.push(kind::CONTENT, tag, &reply(6, b"123456")).unwrap(),
        |there, tag| there.writer.push(kind::READ, tag, &reply(5, b"12345")).unwrap(),
        |there, _| there.stream().unwrap().shutdown(Shutdown::Both).unwrap(),
    ];
    for (at, say) in says.into_iter().enumerate() {
        let (here, mut there) = pair(3);
        let link = Link::start(here).unwrap();
        let read = submit(&link, 1, 0, 5);
        let tag = asked(&mut there);
        say(&mut there, tag);
        let _ = there.writer.flush();
        assert!(
            matches!(answer(&read), Err(TreeError::Lost | TreeError::Protocol(_))),
            "case {at}"
        );
        // The connection has ended, and says so.
        while let Ok(Some(_)) = there.reader.next() {}
        assert_eq!(answer(&submit(&link, 1, 0, 5)), Err(TreeError::Lost), "case {at}");
        assert!(link.is_lost());
    }
}

#[test]
fn short_answers_and_errors_fail_one_read_alone() {
    let (here, mut there) = pair(3);
    let link = Link::start(here).unwrap();
    let short = TreeError::Protocol("a read came back short");
    let unknown = TreeError::Protocol("an unknown error");
    let cases: [(u8, Vec<u8>, TreeError); 5] = [
        (kind::CONTENT, reply(5, b"1234"), short),
        (kind::CONTENT, reply(3, b"12345"), short),
        (kind::REFUSED, vec![6], TreeError::Stale),
        (kind::REFUSED, vec![99], unknown),
        (kind::REFUSED, vec![6, 6], unknown),
    ];
    for (kind, payload, error) in cases {
        let read = submit(&link, 1, 0, 5);
        let tag = asked(&mut there);
        there.writer.push(kind, tag, &payload).unwrap();
        there.writer.flush().unwrap();
        assert_eq!(answer(&read), Err(error));
    }
    let read = submit(&link, 1, 0, 5);
    let tag = asked(&mut there);
    there.writer.push(kind::CONTENT, tag, &reply(5, b"12345")).unwrap();
    there.writer.flush().unwrap();
    assert_eq!(&answer(&read).unwrap().data[..], b"12345");
}

#[test]
fn a_read_that_was_called_off_is_answered_once_more_and_never_twice() {
    let (here, mut there) = pair(3);
    let link = Link::start(here).unwrap();
    let read = submit(&link, 1, 0, 5);
    let tag = asked(&mut there);
    read.1.cancel();
    assert_eq!(answer(&read), Err(TreeError::Cancelled));
    let record = there.reader.next().unwrap().unwrap();
    assert_eq!((record.kind, record.stream), (kind::CANCEL, tag));
    let late = submit(&link, 1, 0, 5);
    let next = asked(&mut there);
    assert_ne!(next, tag, "a number is free only when it was answered");
    // The answer was on its way: nobody gets it.
    there.writer.push(kind::CONTENT, tag, &reply(5, b"stale")).unwrap();
    there.writer.push(kind::CONTENT, next, &reply(5, b"12345")).unwrap();
    there.writer.flush().unwrap();
    assert_eq!(&answer(&late).unwrap().data[..], b"12345");
    // Once more is once too often.
    let last = submit(&link, 1, 0, 5);
    asked(&mut there);
    there.writer.push(kind::CONTENT, tag, &reply(5, b"stale")).unwrap();
    there.writer.flush().unwrap();
    assert_eq!(answer(&last), Err(TreeError::Lost));
}

#[test]
fn what_is_never_answered_ends_by_its_deadline() {
    let (here, mut there) = pair(3);
    let link = Link::start(here).unwrap();
    let read = submit_for(&link, (1, 0, 5), Duration::from_millis(100));
    let tag = asked(&mut there);
    assert_eq!(answer(&read), Err(TreeError::Timeout));
    let record = there.reader.next().unwrap().unwrap();
    assert_eq!((record.kind, record.stream), (kind::CANCEL, tag));
}
