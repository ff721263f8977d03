//! Files that are mostly holes take the time of what they hold.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use prost::Message as _;
use sealway_drop::Error;
use sealway_drop::cancel::Cancel;
use sealway_drop::link::{Connected, Place, connect};
use sealway_drop::names::{RelPath, Rules};
use sealway_drop::wire::control::{Body, Entries, FileEnd, Hello, Holes, Message, Offer, Role, Sent, Top};
use sealway_drop::wire::kind;
use sealway_drop_transfer::entry::{Entry, Kind, Time};
use sealway_drop_transfer::hashing::Hashing;
use sealway_drop_transfer::receive::Corrupt;

use crate::support::{self, Case, content, listen, setup, strays, transfer};

/// Far more than the content takes on a busy machine, and far less than a TiB of zeros.
const LIMIT: Duration = Duration::from_secs(100);

const TIB: u64 = 1 << 40;

/// All is hashed, so that a hole costs something if it is taken for content.
fn all() -> Case {
    Case {
        hashing: Hashing::All,
        ..Case::default()
    }
}

/// Makes a file of a TiB with content at these places. False where the file system holds no such file.
fn sparse(path: &Path, extents: &[(u64, usize)]) -> bool {
    let file = fs::File::create(path).unwrap();
    if file.set_len(TIB).is_err() {
        eprintln!("skipped: the file system holds no file of 1 TiB");
        return false;
    }
    for &(at, len) in extents {
        file.write_all_at(&content(len, at), at).unwrap();
    }
    true
}

fn check(path: &Path, extents: &[(u64, usize)]) {
    let file = fs::File::open(path).unwrap();
    assert_eq!(file.metadata().unwrap().len(), TIB);
    let data: usize = extents.iter().map(|(_, len)| len).sum();
    assert!(
        file.metadata().unwrap().blocks() * 512 < 2 * data as u64 + (16 << 20),
        "holes were filled"
    );
    for &(at, len) in extents {
        let mut read = vec![0; len];
        file.read_exact_at(&mut read, at).unwrap();
        assert!(read == content(len, at), "at {at}");
    }
}

/// Does this, and fails if it takes too long.
fn within<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (told, done) = channel();
    std::thread::spawn(move || told.send(work()));
    done.recv_timeout(LIMIT).expect("it takes the time of the holes")
}

#[test]
fn a_tib_with_three_extents_is_hashed_in_the_time_of_its_content() {
    let dir = tempfile::tempdir().unwrap();
    let (path, output) = (dir.path().join("sparse"), dir.path().join("out"));
    fs::create_dir(&output).unwrap();
    let extents = [(0, 1 << 20), (TIB / 3, 5_000_000), (TIB - 777, 777)];
    if !sparse(&path, &extents) {
        return;
    }
    let to = output.clone();
    let ((sent, _), (received, progress)) = within(move || transfer(&all(), &[path], &to));
    assert!(sent.is_ok() && received.is_ok(), "{sent:?} {received:?}");
    assert!(progress.bytes < 20 << 20, "{progress:?}");
    check(&output.join("sparse"), &extents);
}

#[test]
fn going_on_with_a_tib_looks_at_its_content_only() {
    let dir = tempfile::tempdir().unwrap();
    let (path, output) = (dir.path().join("sparse"), dir.path().join("out"));
    fs::create_dir(&output).unwrap();
    let extents = [(5 << 20, 40 << 20), (TIB / 2 + 77, 40 << 20), (TIB - 777, 777)];
    if !sparse(&path, &extents) {
        return;
    }
    let (listener, address) = listen();
    let (case, cancel) = (all(), Cancel::new());
    let receiver = support::receiver(&case, listener, &output, &cancel);
    let stopper = std::thread::spawn({
        let (output, cancel) = (output.clone(), cancel.clone());
        move || {
            while strays(&output).is_empty() {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(20));
            cancel.cancel();
        }
    });
    let (from, to) = (path.clone(), address.to_string());
    let _ = within(move || support::sender(&case, &to, &[from], &Cancel::new()));
    stopper.join().unwrap();
    let _ = within(move || receiver.join().unwrap());
    let to = output.clone();
    let ((sent, _), (received, _)) = within(move || transfer(&all(), &[path], &to));
    assert!(sent.is_ok() && received.is_ok(), "{sent:?} {received:?}");
    check(&output.join("sparse"), &extents);
    assert_eq!(strays(&output), Vec::<String>::new());
}

/// Sends a file of three groups, all of it one hole, with this hash.
fn hole(by_map: bool, hash: [u8; 32]) -> Result<(), Error> {
    const SIZE: u64 = 3 << 20;
    let dir = tempfile::tempdir().unwrap();
    let (listener, address) = listen();
    let receiver = support::receiver(&Case::default(), listener, dir.path(), &Cancel::new());
    let place = Place::Dial {
        addresses: vec![address],
        patience: Duration::from_secs(10),
    };
    let Connected {
        mut peered,
        data: _data,
    } = connect(place, &setup(9), 1, &Cancel::new()).unwrap();
    let mut entries = Vec::new();
    let entry = Entry {
        path: RelPath::new([b"hole"], Rules::POSIX).unwrap(),
        kind: Kind::File {
            size: SIZE,
            sparse: true,
        },
        mode: 0o644,
        mtime: Time::default(),
    };
    entry.encode(&mut entries);
    let mut say = |body| {
        let message = Message { body: Some(body) }.encode_to_vec();
        peered.connection.writer.push(kind::CONTROL, 0, &message).unwrap();
        peered.connection.writer.flush().unwrap();
    };
    say(Body::Hello(Hello {
        version: 1,
        role: Role::Sender as i32,
        ..Hello::default()
    }));
    say(Body::Offer(Offer {
        transfer: vec![5; 32],
        files: 1,
        bytes: SIZE,
        top: vec![Top {
            name: b"hole".to_vec(),
            folder: false,
        }],
        top_count: 1,
        hash: true,
        by_map,
        ..Offer::default()
    }));
    say(Body::Entries(Entries { entries, last: true }));
    let mut hear = || {
        let record = peered.connection.reader.next().unwrap().unwrap();
        Message::decode(record.payload).unwrap().body
    };
    assert!(matches!(hear(), Some(Body::Hello(_))));
    assert!(matches!(hear(), Some(Body::Accept(accept)) if accept.by_map == by_map && accept.hash));
    assert!(matches!(hear(), Some(Body::Decisions(_))));
    say(Body::Holes(Holes {
        file: 0,
        ranges: vec![0, SIZE],
    }));
    say(Body::FileEnd(FileEnd {
        file: 0,
        hash: hash.to_vec(),
        failed: String::new(),
    }));
    let _ = peered.connection.writer.push(
        kind::CONTROL,
        0,
        &Message {
            body: Some(Body::Sent(Sent::default())),
        }
        .encode_to_vec(),
    );
    let _ = peered.connection.writer.flush();
    let _ = peered.connection.reader.next();
    let _ = peered.connection.writer.close();
    let (result, _) = receiver.join().unwrap();
    result.map(|summary| assert_eq!(summary.placed, 1))
}

#[test]
fn an_end_that_does_not_know_the_map_of_holes_hashes_zeros() {
    let zeros = *blake3::hash(&vec![0; 3 << 20]).as_bytes();
    let mut by_map = sealway_drop_transfer::groups::GroupHashes::new(3 << 20);
    by_map.set_holes(0..3);
    let by_map = by_map.root().unwrap();
    for (map, hash, right) in [
        (false, zeros, true),
        (true, by_map, true),
        (false, by_map, false),
        (true, zeros, false),
    ] {
        let result = hole(map, hash);
        match right {
            true => assert!(result.is_ok(), "{result:?}"),
            false => {
                let error = result.unwrap_err();
                assert!(error.part::<Corrupt>().is_some(), "{error:?}");
            }
        }
    }
}
