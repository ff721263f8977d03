//! Whole transfers over loopback.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use prost::Message as _;
use sealway_drop::Error;
use sealway_drop::cancel::Cancel;
use sealway_drop::link::{Connected, Connection, DataConnections, Place, connect};
use sealway_drop::names::{RelPath, Rules};
use sealway_drop::wire::control::{Body, Cause, Entries, Hello, Message, Offer, Role, Stop, Top};
use sealway_drop::wire::kind;
use sealway_drop_transfer::entry::{Entry, Kind, Time};
use sealway_drop_transfer::hashing::Hashing;

use crate::support::{self, Case, assert_same, content, strays, transfer, tree};

#[test]
fn a_tree_arrives_as_it_was() {
    for hashing in [Hashing::All, Hashing::Sampled, Hashing::Off] {
        let dir = tempfile::tempdir().unwrap();
        let source = tree(dir.path());
        let output = dir.path().join("out");
        fs::create_dir(&output).unwrap();
        let case = Case {
            hashing,
            ..Case::default()
        };
        let ((sent, _), (received, progress)) = transfer(&case, std::slice::from_ref(&source), &output);
        let (Ok(sent), Ok(received)) = (&sent, &received) else {
            panic!("{sent:?} {received:?}")
        };
        assert_eq!((sent.failed, received.failed), (0, 0), "{received:?}");
        assert_same(&source, &output.join("tree"));
        assert_eq!(strays(&output), Vec::<String>::new());
        assert_eq!(progress.files, progress.total_files);
        assert!(progress.kept >= 39 << 20, "the hole was sent: {progress:?}");
    }
}

#[test]
fn the_same_again_moves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let source = tree(dir.path());
    let output = dir.path().join("out");
    fs::create_dir(&output).unwrap();
    transfer(&Case::default(), std::slice::from_ref(&source), &output)
        .1
        .0
        .unwrap();
    let ((sent, progress), (received, _)) = transfer(&Case::default(), std::slice::from_ref(&source), &output);
    assert_eq!(sent.unwrap().placed, received.unwrap().placed);
    assert_eq!(progress.bytes, 0);
    assert_same(&source, &output.join("tree"));
}

#[test]
fn one_empty_file_and_nothing_at_all_arrive() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("nothing"), b"").unwrap();
    fs::create_dir(dir.path().join("folder")).unwrap();
    let output = dir.path().join("out");
    fs::create_dir(&output).unwrap();
    for name in ["nothing", "folder"] {
        let ((sent, _), (received, _)) = transfer(&Case::default(), &[dir.path().join(name)], &output);
        assert!(sent.is_ok() && received.is_ok(), "{sent:?} {received:?}");
        assert!(output.join(name).exists());
    }
}

#[test]
fn a_code_that_is_wrong_ends_both() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), content(1000, 1)).unwrap();
    let case = Case {
        sender: support::code("one-two"),
        receiver: support::code("one-too"),
        ..Case::default()
    };
    let ((sent, _), (received, _)) = transfer(&case, &[dir.path().join("file")], dir.path());
    assert!(matches!(sent, Err(Error::CodeSpent)), "{sent:?}");
    assert!(matches!(received, Err(Error::CodeSpent)), "{received:?}");
    let case = Case {
        receiver: support::code("one-two"),
        ..case
    };
    let output = dir.path().join("out");
    fs::create_dir(&output).unwrap();
    let ((sent, _), (received, _)) = transfer(&case, &[dir.path().join("file")], &output);
    assert!(sent.is_ok() && received.is_ok(), "{sent:?} {received:?}");
}

#[test]
fn a_file_that_changes_while_it_is_sent_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("tree");
    fs::create_dir(&source).unwrap();
    for name in ["a", "log", "z"] {
        fs::write(source.join(name), content(48 << 20, 1)).unwrap();
    }
    let output = dir.path().join("out");
    fs::create_dir(&output).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (stop, path) = (stop.clone(), source.join("log"));
        std::thread::spawn(move || {
            let mut log = fs::OpenOptions::new().append(true).open(path).unwrap();
            while !stop.load(Ordering::SeqCst) {
                log.write_all(b"one more line\n").unwrap();
                std::thread::yield_now();
            }
        })
    };
    let ((sent, _), (received, progress)) = transfer(&Case::default(), std::slice::from_ref(&source), &output);
    stop.store(true, Ordering::SeqCst);
    writer.join().unwrap();
    let (Ok(sent), Ok(received)) = (&sent, &received) else {
        panic!("{sent:?} {received:?}")
    };
    assert_eq!(
        (sent.failed, received.failed, progress.failed),
        (1, 1, 1),
        "{sent:?} {received:?}"
    );
    assert!(sent.notes[0].contains("log"), "{sent:?}");
    let names: BTreeSet<_> = fs::read_dir(output.join("tree"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, BTreeSet::from(["a".into(), "z".into()]));
    assert_eq!(strays(&output), Vec::<String>::new());
}

/// A sender that says what it likes.
struct Liar {
    connection: Connection,
    _data: DataConnections,
}

impl Liar {
    fn start(output: &Path) -> (Liar, JoinHandle<support::Outcome>) {
        let (listener, address) = support::listen();
        let receiver = support::receiver(&Case::default(), listener, output, &Cancel::new());
        let place = Place::Dial {
            addresses: vec![address],
            patience: Duration::from_secs(10),
        };
        let Connected { peered, data } = connect(place, &support::setup(9), 1, &Cancel::new()).unwrap();
        (
            Liar {
                connection: peered.connection,
                _data: data,
            },
            receiver,
        )
    }

    fn say(&mut self, body: Body) {
        let message = Message { body: Some(body) }.encode_to_vec();
        let pushed = self
            .connection
            .writer
            .push(kind::CONTROL, 0, &message)
            .and_then(|()| self.connection.writer.flush());
        pushed.unwrap();
    }

    /// Offers the first `files` of what it then lists.
    fn offer(&mut self, files: u64, bytes: u64, entries: &[Entry]) {
        let top = entries.iter().take(files as usize).map(|entry| Top {
            name: entry.path.name().to_vec(),
            folder: entry.kind == Kind::Directory,
        });
        self.offer_as(files, bytes, top.collect(), entries);
    }

    fn offer_as(&mut self, files: u64, bytes: u64, top: Vec<Top>, entries: &[Entry]) {
        self.say(Body::Hello(Hello {
            version: 1,
            role: Role::Sender as i32,
            ..Hello::default()
        }));
        let offer = Offer {
            transfer: vec![5; 32],
            files,
            bytes,
            top_count: files,
            top,
            ..Offer::default()
        };
        self.say(Body::Offer(offer));
        let mut list = Vec::new();
        entries.iter().for_each(|entry| entry.encode(&mut list));
        self.say(Body::Entries(Entries {
            entries: list,
            last: true,
        }));
    }
}

fn file(name: &str, size: u64) -> Entry {
    let path = RelPath::new([name.as_bytes()], Rules::POSIX).unwrap();
    Entry {
        path,
        kind: Kind::File { size, sparse: false },
        mode: 0o644,
        mtime: Time::default(),
    }
}

#[test]
fn more_than_was_offered_is_refused() {
    let cases: [(u64, u64, Vec<Entry>); 3] = [
        (1, 10, vec![file("a", 5), file("b", 5)]),
        (2, 10, vec![file("a", 5), file("b", 6)]),
        // Nothing is set aside for what a file claims to be.
        (1, 10, vec![file("a", 1 << 62)]),
    ];
    for (files, bytes, entries) in cases {
        let dir = tempfile::tempdir().unwrap();
        let (mut liar, receiver) = Liar::start(dir.path());
        liar.offer(files, bytes, &entries);
        let (result, _) = receiver.join().unwrap();
        assert!(
            matches!(result, Err(Error::Protocol("more than was offered"))),
            "{result:?}"
        );
        assert!(
            fs::read_dir(dir.path()).unwrap().all(|entry| !entry
                .unwrap()
                .file_name()
                .to_string_lossy()
                .starts_with('a'))
        );
    }
}

#[test]
fn a_name_that_was_not_shown_is_not_taken() {
    let dir = tempfile::tempdir().unwrap();
    let (mut liar, receiver) = Liar::start(dir.path());
    let shown = vec![Top {
        name: b"harmless".to_vec(),
        folder: false,
    }];
    liar.offer_as(1, 5, shown, &[file(".bashrc", 5)]);
    let (result, _) = receiver.join().unwrap();
    let refused = Err(Error::Protocol("a name at the top that was not offered"));
    assert_eq!(format!("{result:?}"), format!("{:?}", refused as Result<(), _>));
    assert!(!dir.path().join(".bashrc").exists());
    // Nor is an offer that keeps its names to itself.
    let (mut liar, receiver) = Liar::start(dir.path());
    liar.offer_as(1, 5, vec![], &[file("any", 5)]);
    let (result, _) = receiver.join().unwrap();
    assert!(matches!(result, Err(Error::Protocol(_))), "{result:?}");
}

#[test]
fn a_file_as_large_as_any_can_be_takes_no_memory_for_its_hashes() {
    let dir = tempfile::tempdir().unwrap();
    let (mut liar, receiver) = Liar::start(dir.path());
    liar.offer(1, 1 << 62, &[file("a", 1 << 62)]);
    liar.say(Body::Stop(Stop {
        reason: "enough\u{1b}[2J".into(),
        ..Stop::default()
    }));
    let (result, _) = receiver.join().unwrap();
    assert!(
        matches!(&result, Err(Error::Remote(reason)) if !reason.contains('\u{1b}')),
        "{result:?}"
    );
}

#[test]
fn strangers_neither_end_the_waiting_nor_stay() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), content(300_000, 1)).unwrap();
    let output = dir.path().join("out");
    fs::create_dir(&output).unwrap();
    let (listener, address) = support::listen();
    let case = Case::default();
    let receiver = support::receiver(&case, listener, &output, &Cancel::new());
    for bytes in [
        &b"GET / HTTP/1.0\r\n\r\n"[..],
        b"S and no handshake at all, however long it may be",
        b"J",
    ] {
        let mut stranger = TcpStream::connect(address).unwrap();
        stranger.write_all(bytes).unwrap();
        if bytes.len() > 1 {
            let mut rest = Vec::new();
            let _ = stranger.read_to_end(&mut rest);
            assert_eq!(rest, b"", "a stranger was told something");
        }
    }
    let (sent, _) = support::sender(&case, &address.to_string(), &[dir.path().join("file")], &Cancel::new());
    let (received, _) = receiver.join().unwrap();
    assert!(sent.is_ok() && received.is_ok(), "{sent:?} {received:?}");
}

#[test]
fn a_transfer_that_is_told_to_stop_goes_on_later() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), content(64 << 20, 1)).unwrap();
    let output = dir.path().join("out");
    fs::create_dir(&output).unwrap();
    let (listener, address) = support::listen();
    let (case, cancel) = (Case::default(), Cancel::new());
    let receiver = support::receiver(&case, listener, &output, &cancel);
    let stopper = {
        let (output, cancel) = (output.clone(), cancel.clone());
        std::thread::spawn(move || {
            while strays(&output).is_empty() {
                std::thread::yield_now();
            }
            cancel.cancel();
        })
    };
    let (sent, _) = support::sender(&case, &address.to_string(), &[dir.path().join("file")], &Cancel::new());
    stopper.join().unwrap();
    let (received, _) = receiver.join().unwrap();
    assert!(matches!(received, Err(Error::Cancelled)), "{received:?}");
    assert!(matches!(sent, Err(Error::OtherEnd(Cause::Stopped))), "{sent:?}");
    let ((sent, _), (received, _)) = transfer(&case, &[dir.path().join("file")], &output);
    assert!(sent.is_ok() && received.is_ok(), "{sent:?} {received:?}");
    assert_eq!(fs::read(output.join("file")).unwrap(), content(64 << 20, 1));
    assert_eq!(strays(&output), Vec::<String>::new());
}

#[test]
fn a_source_that_is_another_one_is_not_spliced() {
    let dir = tempfile::tempdir().unwrap();
    let (path, output) = (dir.path().join("file"), dir.path().join("out"));
    fs::create_dir(&output).unwrap();
    fs::write(&path, content(40 << 20, 1)).unwrap();
    let (listener, address) = support::listen();
    let (case, cancel) = (
        Case {
            hashing: Hashing::Off,
            ..Case::default()
        },
        Cancel::new(),
    );
    let receiver = support::receiver(&case, listener, &output, &cancel);
    let stopper = {
        let (output, cancel) = (output.clone(), cancel.clone());
        std::thread::spawn(move || {
            while strays(&output).is_empty() {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(10));
            cancel.cancel();
        })
    };
    let _ = support::sender(&case, &address.to_string(), std::slice::from_ref(&path), &Cancel::new());
    stopper.join().unwrap();
    let _ = receiver.join().unwrap();
    // Same name, same size, same time, other content.
    let time = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, content(40 << 20, 2)).unwrap();
    fs::File::open(&path).unwrap().set_modified(time).unwrap();
    let _ = fs::remove_file(output.join("file"));
    let ((sent, _), (received, _)) = transfer(&case, std::slice::from_ref(&path), &output);
    assert!(sent.is_ok() && received.is_ok(), "{sent:?} {received:?}");
    assert!(
        fs::read(output.join("file")).unwrap() == content(40 << 20, 2),
        "parts of two files were put together"
    );
}
