//! Changes on a connection of their own: what becomes of bad ends, at either side.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, RenameFlags};
use sealway_drop::Error;
use sealway_drop::link::{Connection, Reader, Writer};
use sealway_drop::wire::kind;
use sealway_drop_mount::changes::message::{self, WriteHeader};
use sealway_drop_mount::changes::{ChangingTree, serve};
use sealway_drop_mount::grpc::Handles;
use sealway_drop_mount::local::{LocalOptions, LocalTree, Own};
use sealway_drop_mount::tree::{
    Access, Call, Change, Changed, Lock, LockKind, MAX_WRITE, MemoryTree, OpenHow, Place as At, RemoteTree, RenameHow,
    Setting, TreeError, TreePath, WriteRequest,
};
use tempfile::TempDir;

use crate::lines::{call, pair, path};

/// A folder that is served for changes, and a bad end.
struct Served {
    folder: TempDir,
    tree: Arc<LocalTree>,
    handles: Arc<Handles>,
    reader: Reader,
    writer: Writer,
    ended: JoinHandle<Result<(), Error>>,
    next: u32,
}

impl Served {
    fn new(writable: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("shared")).unwrap();
        fs::write(folder.path().join("outside"), "secret").unwrap();
        let options = LocalOptions {
            writable,
            floor: 0,
            handles: 40,
            ..LocalOptions::default()
        };
        let tree = Arc::new(LocalTree::open(&folder.path().join("shared"), options).unwrap());
        let (handles, own): (Arc<Handles>, _) = (Arc::default(), Arc::new(Own::new(tree.clone())));
        let (here, there) = pair(5);
        let (of, held) = (tree.clone(), handles.clone());
        let ended = std::thread::spawn(move || serve(there, of, own, held));
        let Connection { reader, writer, .. } = here;
        Self {
            folder,
            tree,
            handles,
            reader,
            writer,
            ended,
            next: 0,
        }
    }

    fn answer(&mut self) -> Result<Changed, TreeError> {
        let record = self.reader.next().unwrap().unwrap();
        assert_eq!((record.kind, record.stream), (kind::CHANGED, self.next));
        message::parse_answer(record.payload)
    }

    fn send(&mut self, kind: u8, payload: &[u8]) -> Result<Changed, TreeError> {
        self.next += 1;
        self.writer.push(kind, self.next, payload).unwrap();
        self.writer.flush().unwrap();
        self.answer()
    }

    fn ask(&mut self, change: &Change) -> Result<Changed, TreeError> {
        self.send(kind::CHANGE, &message::encode(change))
    }

    fn open(&mut self, name: &str) -> Result<u64, TreeError> {
        let opened = self.ask(&Change::Open(path(name), making()))?;
        Ok(opened.opened().unwrap().0.handle)
    }

    fn write(&mut self, handle: u64, offset: u64, data: &[u8]) -> Result<Changed, TreeError> {
        self.send(kind::WRITE, &write(handle, offset, data))
    }

    /// The connection is over, as one that broke the rules.
    fn ends_as_it_should(mut self) {
        while let Ok(Some(_)) = self.reader.next() {}
        assert!(matches!(self.ended.join().unwrap(), Err(Error::Protocol(_))));
        assert_eq!(fs::read(self.folder.path().join("outside")).unwrap(), b"secret");
    }
}

/// The payload of a write.
fn write(handle: u64, offset: u64, data: &[u8]) -> Vec<u8> {
    let append = false;
    let header = WriteHeader { handle, offset, append };
    [&header.encode()[..], data].concat()
}

/// For reading and writing, of a file that is perhaps made.
fn making() -> OpenHow {
    OpenHow {
        access: Access::Both,
        create: Some(0o644),
        ..OpenHow::default()
    }
}

#[test]
fn names_that_lead_out_are_refused_whatever_they_are_for() {
    let mut bad = Served::new(true);
    // The fields of a message: what is asked for, the path, the new path.
    let message = |what: u8, path: &[u8], to: &[u8]| {
        let mut out = vec![0x08, what, 0x12, path.len() as u8];
        out.extend_from_slice(path);
        out.extend_from_slice(&[0x1a, to.len() as u8]);
        out.extend_from_slice(to);
        out
    };
    for name in [
        &b"../outside"[..],
        b"/etc/passwd",
        b"a/../../outside",
        b"a\0b",
        b"a//b",
        b".",
    ] {
        for what in [1, 3, 4, 5, 6, 7, 8, 9, 13] {
            let told = bad.send(kind::CHANGE, &message(what, name, b"x"));
            assert!(matches!(told, Err(TreeError::Invalid(_))), "{what} {name:?} {told:?}");
        }
        let told = bad.send(kind::CHANGE, &message(8, b"x", name));
        assert!(matches!(told, Err(TreeError::Invalid(_))), "{name:?} {told:?}");
    }
    // Through links of the owner's, and onto what is hidden.
    let shared = bad.folder.path().join("shared");
    symlink("..", shared.join("up")).unwrap();
    symlink("../outside", shared.join("link")).unwrap();
    let fifo = FileType::Fifo;
    rustix::fs::mknodat(CWD, shared.join("fifo"), fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    fs::write(shared.join("file"), "").unwrap();
    assert_eq!(bad.open("up/outside"), Err(TreeError::Denied));
    assert_eq!(bad.open("up/new"), Err(TreeError::Denied));
    assert_eq!(bad.open("link"), Err(TreeError::NotFile));
    assert_eq!(bad.open("fifo"), Err(TreeError::Denied));
    let setting = Setting {
        size: Some(0),
        ..Setting::default()
    };
    for change in [
        Change::Set(At::Path(path("up/outside")), setting),
        Change::LookUp(path("up/outside")),
        Change::LookUp(path("fifo")),
        Change::Remove(path("up/outside")),
        Change::MakeDirectory(path("up/d"), 0o755),
        Change::Rename(path("file"), path("up/x"), RenameHow::Replace),
        Change::Rename(path("up/outside"), path("x"), RenameHow::Replace),
        Change::Remove(path("fifo")),
    ] {
        let told = bad.ask(&change);
        assert!(
            matches!(told, Err(TreeError::NotFound | TreeError::NotDirectory)),
            "{change:?} {told:?}"
        );
    }
    assert_eq!(
        bad.ask(&Change::Set(At::Path(path("link")), setting)),
        Err(TreeError::NotFile)
    );
    let onto = Change::Rename(path("file"), path("fifo"), RenameHow::Replace);
    assert_eq!(bad.ask(&onto), Err(TreeError::Denied));
    for root in [
        Change::RemoveDirectory(TreePath::root()),
        Change::MakeDirectory(TreePath::root(), 0),
    ] {
        assert!(matches!(bad.ask(&root), Err(TreeError::Invalid(_))));
    }
    let names: Vec<_> = fs::read_dir(bad.folder.path()).unwrap().collect();
    assert_eq!(names.len(), 2, "nothing was made outside");
    assert_eq!(fs::read(bad.folder.path().join("outside")).unwrap(), b"secret");
}

#[test]
fn handles_that_were_never_given_are_nobodys() {
    let mut bad = Served::new(true);
    let mine = bad.open("mine").unwrap();
    // The owner's own, and those of another end.
    let others = Change::Open(path("others"), making());
    let others = bad.tree.change(&others, &call()).unwrap();
    let others = others.opened().unwrap().0.handle;
    for handle in [others, 0, u64::MAX, mine + 1_000] {
        assert_eq!(bad.write(handle, 0, b"x"), Err(TreeError::Stale));
        let lock = Lock {
            handle,
            owner: 1,
            start: 0,
            end: 1,
            kind: LockKind::Exclusive,
        };
        for change in [
            Change::Look(handle),
            Change::Close(handle),
            Change::Set(At::Handle(handle), Setting::default()),
            Change::Sync(At::Handle(handle), true),
            Change::Lock(lock),
            Change::TestLock(lock),
            Change::Allocate {
                handle,
                mode: 0,
                offset: 0,
                len: 1,
            },
        ] {
            assert_eq!(bad.ask(&change), Err(TreeError::Stale), "{change:?}");
        }
    }
    assert_eq!(bad.tree.open_handles(), 2);
    bad.write(mine, 3, b"mine").unwrap();
    assert_eq!(fs::read(bad.folder.path().join("shared/mine")).unwrap(), b"\0\0\0mine");
    assert_eq!(fs::read(bad.folder.path().join("shared/others")).unwrap(), b"");
    // What is open for reading is not written to.
    let read = bad.ask(&Change::Open(path("mine"), OpenHow::default())).unwrap();
    let read = read.opened().unwrap().0.handle;
    assert_eq!(bad.write(read, 0, b"x"), Err(TreeError::Denied));
    // What is closed is closed once, and nobody's then.
    assert_eq!(bad.ask(&Change::Close(read)), Ok(Changed::Done));
    assert_eq!(bad.ask(&Change::Close(read)), Err(TreeError::Stale));
    assert_eq!(bad.ask(&Change::Look(read)), Err(TreeError::Stale));
    assert_eq!(bad.tree.open_handles(), 2);
    assert_eq!(fs::read(bad.folder.path().join("shared/mine")).unwrap(), b"\0\0\0mine");
}

#[test]
fn nobody_opens_more_than_there_is_a_limit_for() {
    let mut bad = Served::new(true);
    let mut opened = Vec::new();
    let refused = loop {
        match bad.open("file") {
            Ok(handle) => opened.push(handle),
            Err(error) => break error,
        }
        assert!(opened.len() < 2_000);
    };
    assert_eq!((refused, opened.len()), (TreeError::Limit, 40));
    assert_eq!(bad.tree.open_handles(), 40);
    assert!(opened.iter().all(|handle| bad.handles.contains(*handle)));
}

#[test]
fn writes_beyond_what_a_file_can_have_end_the_connection() {
    for (offset, len) in [(u64::MAX, 1), (i64::MAX as u64, 1), (0, MAX_WRITE + 1), (0, 0)] {
        let mut bad = Served::new(true);
        let handle = bad.open("file").unwrap();
        bad.writer
            .push(kind::WRITE, 9, &write(handle, offset, &vec![0; len]))
            .unwrap();
        bad.writer.flush().unwrap();
        bad.ends_as_it_should();
    }
}

#[test]
fn what_is_no_message_ends_the_connection() {
    for (of, payload) in [
        (kind::CHANGE, &[0xff; 30][..]),
        (kind::CHANGED, &[0][..]),
        (kind::READ, &[0; 20]),
        (kind::CONTROL, &[0]),
    ] {
        let mut bad = Served::new(true);
        bad.writer.push(of, 1, payload).unwrap();
        bad.writer.flush().unwrap();
        bad.ends_as_it_should();
    }
}

#[test]
fn a_folder_that_is_not_offered_for_changes_takes_none() {
    let mut bad = Served::new(false);
    assert_eq!(bad.open("file"), Err(TreeError::ReadOnly));
    assert_eq!(
        bad.ask(&Change::MakeDirectory(path("d"), 0o755)),
        Err(TreeError::ReadOnly)
    );
    assert_eq!(fs::read_dir(bad.folder.path().join("shared")).unwrap().count(), 0);
}

#[test]
fn a_flood_is_done_in_order_and_holds_nothing() {
    let mut bad = Served::new(true);
    let handle = bad.open("file").unwrap();
    let Served {
        mut reader,
        mut writer,
        folder,
        tree,
        ..
    } = bad;
    let count = 3_000_u32;
    let taking = std::thread::spawn(move || {
        for at in 0..count {
            let record = reader.next().unwrap().unwrap();
            assert_eq!(record.stream, at + 10, "in order");
            assert!(message::parse_answer(record.payload).is_ok());
        }
        reader
    });
    for at in 0..count {
        let payload = write(handle, u64::from(at % 7), &at.to_be_bytes());
        writer.push(kind::WRITE, at + 10, &payload).unwrap();
    }
    writer.flush().unwrap();
    let _reader = taking.join().unwrap();
    let mut due = vec![0; 10];
    for at in 0..count {
        due[at as usize % 7..][..4].copy_from_slice(&at.to_be_bytes());
    }
    assert_eq!(fs::read(folder.path().join("shared/file")).unwrap(), due);
    assert_eq!(tree.open_handles(), 1);
}

/// Folders swapped for links while names below them are changed: nothing outside is touched.
#[test]
fn links_that_come_and_go_lead_nobody_out() {
    let mut bad = Served::new(true);
    let root = bad.folder.path().to_owned();
    let shared = root.join("shared");
    fs::create_dir(shared.join("d")).unwrap();
    fs::create_dir(root.join("target")).unwrap();
    symlink("../target", shared.join("l")).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let swapping = std::thread::spawn(move || {
        while !stopped.load(SeqCst) {
            let (one, other) = (shared.join("d"), shared.join("l"));
            let _ = rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
        }
    });
    let mut made = 0;
    for round in 0..400 {
        let name = format!("d/f{round}");
        if let Ok(handle) = bad.open(&name) {
            bad.write(handle, 0, b"x").unwrap();
            bad.tree.close(handle);
            made += 1;
        }
        let _ = bad.ask(&Change::MakeDirectory(path(&format!("d/d{round}")), 0o755));
        let to = path(&format!("d/g{round}"));
        let _ = bad.ask(&Change::Rename(path(&name), to, RenameHow::Replace));
    }
    stop.store(true, SeqCst);
    swapping.join().unwrap();
    let outside = fs::read_dir(root.join("target")).unwrap().count();
    assert_eq!(outside, 0, "{made} were made inside");
}

/// A bad end that serves: whatever it answers, the end that mounts fails and goes on.
#[test]
fn answers_that_make_no_sense_are_errors() {
    let answers: [(u32, Vec<u8>); 5] = [
        (0, vec![0xff, 0xff]),
        (0, vec![0x08, 99]),
        // Done, where attributes are due.
        (0, message::encode_answer(&Ok(Changed::Done))),
        // An answer to nothing.
        (77, message::encode_answer(&Ok(Changed::Done))),
        (0, message::encode_answer(&Err(TreeError::Lost))),
    ];
    for (tag, payload) in answers {
        let (here, there) = pair(5);
        let tree = ChangingTree::new(MemoryTree::new(), here).unwrap();
        let serving = std::thread::spawn(move || {
            let Connection {
                mut reader, mut writer, ..
            } = there;
            reader.next().unwrap();
            writer.push(kind::CHANGED, tag, &payload).unwrap();
            writer.flush().unwrap();
            // Until the other end has had enough.
            while let Ok(Some(_)) = reader.next() {}
        });
        let (tell, told) = channel();
        let request = WriteRequest {
            handle: 1,
            offset: 0,
            append: false,
            data: bytes::Bytes::from_static(b"x"),
        };
        tree.write(request, Box::new(move |result| tell.send(result).unwrap()));
        let result = told.recv_timeout(Duration::from_secs(60)).unwrap();
        assert!(result.is_err(), "{result:?}");
        drop(tree);
        serving.join().unwrap();
    }
}

#[test]
fn looks_that_would_wait_go_by_the_service() {
    let truncating = OpenHow {
        access: Access::Write,
        truncate: true,
        ..OpenHow::default()
    };
    let shorter = Setting {
        size: Some(0),
        ..Setting::default()
    };
    for change in [
        Change::LookUp(path("x")),
        Change::Open(path("x"), truncating),
        Change::Set(At::Path(path("x")), shorter),
        Change::Remove(path("x")),
        Change::Rename(path("x"), path("y"), RenameHow::Replace),
    ] {
        let (here, mut there) = pair(5);
        let tree = ChangingTree::new(MemoryTree::new(), here).unwrap();
        std::thread::scope(|scope| {
            let asking = scope.spawn(|| tree.change(&change, &call()));
            let tag = there.reader.next().unwrap().unwrap().stream;
            let soon = Call::within(Duration::from_secs(20));
            let looked = tree.attr(&TreePath::root(), &soon);
            let answer = message::encode_answer(&Err(TreeError::NotFound));
            there.writer.push(kind::CHANGED, tag, &answer).unwrap();
            there.writer.flush().unwrap();
            assert_eq!(asking.join().unwrap(), Err(TreeError::NotFound));
            assert!(looked.is_ok(), "{change:?}: {looked:?}");
        });
    }
}
