//! A sample of what is sent is hashed at both ends, and all of it with an end that knows no samples.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use prost::Message as _;
use sealway_drop::Error;
use sealway_drop::cancel::Cancel;
use sealway_drop::link::{Connected, Connection, Connections, DataConnections, Place, connect};
use sealway_drop::names::{RelPath, Rules};
use sealway_drop::wire::control::{
    Accept, Body, Decisions, Done, Entries, FileEnd, Hello, Holes, Message, Offer, Role, Sent, Top, VERSION,
};
use sealway_drop::wire::kind;
use sealway_drop_transfer::content::{PIECE_HEADER, Piece, packed_header};
use sealway_drop_transfer::entry::{Entry, Kind, Time};
use sealway_drop_transfer::groups::{GROUP, GroupHash, GroupHasher};
use sealway_drop_transfer::receive::Corrupt;

use crate::support::{self, Case, Outcome, content, listen, setup};

/// Long enough on a machine that has other things to do.
const LIMIT: Duration = Duration::from_secs(60);

/// Whether a group of a file belongs to the sample, as the reference has it.
fn takes(key: &[u8], file: u32, group: u64) -> bool {
    let mut hasher = blake3::Hasher::new_keyed(key.try_into().unwrap());
    hasher.update(&file.to_be_bytes()).update(&group.to_be_bytes());
    hasher.finalize().as_bytes()[0] < 4
}

/// What is compared of a file of which this group is all of the sample.
fn value(group: u64, hash: GroupHash) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&group.to_be_bytes()).update(&hash);
    hasher.finalize().as_bytes().to_vec()
}

fn group_hash(size: u64, group: u64, bytes: &[u8]) -> GroupHash {
    let mut hasher = GroupHasher::new(size, group);
    hasher.update(bytes);
    hasher.finish()
}

fn hear(control: &mut Connection) -> Body {
    loop {
        let record = control.reader.next().unwrap().unwrap();
        if record.kind == kind::CONTROL {
            return Message::decode(record.payload).unwrap().body.unwrap();
        }
    }
}

/// The other end may have ended already.
fn say(control: &mut Connection, body: Body) {
    let message = Message { body: Some(body) }.encode_to_vec();
    let _ = control.writer.push(kind::CONTROL, 0, &message);
    let _ = control.writer.flush();
}

/// A sender that says what it likes, before a receiver that samples.
struct Sender {
    control: Connection,
    data: DataConnections,
    receiver: JoinHandle<Outcome>,
    accept: Accept,
}

impl Sender {
    /// Up to the decisions about these entries, the first of which is all that is at the top.
    fn offer(output: &Path, sample: bool, entries: &[Entry]) -> Self {
        let (listener, address) = listen();
        let receiver = support::receiver(&Case::default(), listener, output, &Cancel::new());
        let place = Place::Dial {
            addresses: vec![address],
            patience: LIMIT,
        };
        let Connected { peered, data } = connect(place, &setup(9), 1, &Cancel::new()).unwrap();
        let mut control = peered.connection;
        let is_file = |entry: &&Entry| matches!(entry.kind, Kind::File { .. });
        let files = entries.iter().filter(is_file).count() as u64;
        say(
            &mut control,
            Body::Hello(Hello {
                version: VERSION,
                role: Role::Sender as i32,
                ..Hello::default()
            }),
        );
        say(
            &mut control,
            Body::Offer(Offer {
                transfer: vec![5; 32],
                files,
                others: entries.len() as u64 - files,
                bytes: entries.iter().map(Entry::size).sum(),
                top: vec![Top {
                    name: entries[0].path.name().to_vec(),
                    folder: entries[0].kind == Kind::Directory,
                }],
                top_count: 1,
                hash: true,
                by_map: true,
                sample,
                ..Offer::default()
            }),
        );
        let mut list = Vec::new();
        entries.iter().for_each(|entry| entry.encode(&mut list));
        say(
            &mut control,
            Body::Entries(Entries {
                entries: list,
                last: true,
            }),
        );
        assert!(matches!(hear(&mut control), Body::Hello(_)));
        let Body::Accept(accept) = hear(&mut control) else {
            panic!("the offer is taken")
        };
        assert!(matches!(hear(&mut control), Body::Decisions(_)));
        Self {
            control,
            data,
            receiver,
            accept,
        }
    }

    /// Sends content by `send`, says `last`, and waits for the receiver.
    fn end(mut self, send: impl FnOnce(&mut Connection), last: Option<Body>) -> Outcome {
        let connections = self.data.open_only(&[1], &Cancel::new());
        let mut data = connections.next().unwrap().unwrap();
        send(&mut data);
        let _ = data.writer.close();
        for body in last.into_iter().chain([Body::Sent(Sent::default())]) {
            say(&mut self.control, body);
        }
        while let Ok(Some(_)) = self.control.reader.next() {}
        let _ = self.control.writer.close();
        self.receiver.join().unwrap()
    }
}

fn entry(names: &[&str], kind: Kind) -> Entry {
    Entry {
        path: RelPath::new(names, Rules::POSIX).unwrap(),
        kind,
        mode: 0o644,
        mtime: Time::default(),
    }
}

/// The file of this size that is being received.
fn staged(output: &Path, size: u64) -> PathBuf {
    let mut folders = fs::read_dir(output).unwrap().map(|entry| entry.unwrap().path());
    let staging = folders.find(|path| path.is_dir()).unwrap();
    let mut files = fs::read_dir(staging).unwrap().map(|entry| entry.unwrap().path());
    files
        .find(|path| path.metadata().is_ok_and(|file| file.len() == size))
        .unwrap()
}

/// Waits until a file has these bytes, and changes the first of them.
fn change_once_written(path: &Path, at: u64, bytes: &[u8]) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let (begun, mut there) = (Instant::now(), vec![0; bytes.len()]);
    while {
        file.read_exact_at(&mut there, at).unwrap();
        there != bytes
    } {
        assert!(begun.elapsed() < LIMIT, "what came was not written");
        std::thread::sleep(Duration::from_millis(1));
    }
    file.write_all_at(&[!bytes[0]], at).unwrap();
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fault {
    None,
    /// Of the sender: it has read something else than it sends.
    Read,
    /// Of the receiver: its file has something else than what came.
    Write,
}

/// Receives a file that is one group of the sample, between holes.
fn receive_with(fault: Fault) -> Result<(), Error> {
    // One of so many groups is of the sample, but for one transfer in 10^28.
    const SIZE: u64 = 4096 * GROUP;
    let output = tempfile::tempdir().unwrap();
    let kind = Kind::File {
        size: SIZE,
        sparse: true,
    };
    let mut sender = Sender::offer(output.path(), true, &[entry(&["file"], kind)]);
    assert!(!sender.accept.hash);
    let key = sender.accept.sample.clone();
    let group = (0..SIZE / GROUP).find(|group| takes(&key, 0, *group)).unwrap();
    let (start, end) = (group * GROUP, (group + 1) * GROUP);
    let holes = [(0, start), (end, SIZE - end)].into_iter().filter(|hole| hole.1 > 0);
    let ranges = holes.flat_map(|(offset, len)| [offset, len]).collect();
    say(&mut sender.control, Body::Holes(Holes { file: 0, ranges }));
    let bytes = content(GROUP as usize, 1);
    let mut read = bytes.clone();
    if fault == Fault::Read {
        read[77] ^= 1;
    }
    let last = Body::FileEnd(FileEnd {
        file: 0,
        hash: value(group, group_hash(SIZE, group, &read)),
        failed: String::new(),
    });
    let send = |data: &mut Connection| {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        let mut piece = |at: u64, bytes: &[u8]| {
            let payload = [&Piece::header(0, at)[..], bytes].concat();
            data.writer.push(kind::PIECE, 0, &payload).unwrap();
            data.writer.flush().unwrap();
        };
        piece(start, first);
        if fault == Fault::Write {
            let begun = Instant::now();
            while fs::read_dir(output.path()).unwrap().next().is_none() {
                assert!(begun.elapsed() < LIMIT, "nothing was begun");
            }
            change_once_written(&staged(output.path(), SIZE), start, first);
        }
        piece(start + first.len() as u64, second);
    };
    let (result, _) = sender.end(send, Some(last));
    let there = output.path().join("file");
    assert_eq!(there.exists(), result.is_ok());
    if result.is_ok() {
        let mut came = vec![0; bytes.len()];
        fs::File::open(&there).unwrap().read_exact_at(&mut came, start).unwrap();
        assert!(came == bytes);
    }
    result.map(|summary| assert_eq!(summary.placed, 1))
}

#[test]
fn a_fault_of_either_end_in_the_sample_is_noticed() {
    receive_with(Fault::None).unwrap();
    for fault in [Fault::Read, Fault::Write] {
        let error = receive_with(fault).unwrap_err();
        let corrupt = error
            .part::<Corrupt>()
            .unwrap_or_else(|| panic!("{fault:?}: {error:?}"));
        assert!(
            corrupt.to_string().starts_with("file: what was written here"),
            "{corrupt}"
        );
    }
}

#[test]
fn small_files_of_the_sample_are_compared() {
    // None of them is of the sample in one transfer of 10^10.
    const FILES: u32 = 1500;
    for fault in [false, true] {
        let output = tempfile::tempdir().unwrap();
        let names: Vec<String> = (0..FILES).map(|number| format!("{number}")).collect();
        let files = names
            .iter()
            .map(|name| entry(&["folder", name], Kind::File { size: 3, sparse: false }));
        let mut entries = vec![entry(&["folder"], Kind::Directory)];
        entries[0].mode = 0o755;
        entries.extend(files);
        let sender = Sender::offer(output.path(), true, &entries);
        let key = sender.accept.sample.clone();
        let mut faulty = None;
        let send = |data: &mut Connection| {
            let mut payload = Vec::new();
            for file in 1..=FILES {
                payload.extend(packed_header(file, 3));
                payload.extend(b"abc");
                if takes(&key, file, 0) {
                    let mut hash = *blake3::hash(b"abc").as_bytes();
                    if fault && faulty.is_none() {
                        (faulty, hash[9]) = (Some(file), 0);
                    }
                    payload.extend(hash);
                }
            }
            data.writer.push(kind::PACK, 0, &payload).unwrap();
        };
        let (result, progress) = sender.end(send, None);
        match faulty {
            None => {
                assert_eq!(result.unwrap().placed, u64::from(FILES));
                assert_eq!(fs::read(output.path().join("folder/0")).unwrap(), b"abc");
            }
            Some(file) => {
                let error = result.unwrap_err();
                assert!(error.part::<Corrupt>().is_some(), "{error:?}");
                assert_eq!(progress.files, u64::from(file) - 1, "those before it");
                assert!(!output.path().join(format!("folder/{}", file - 1)).exists());
            }
        }
    }
}

#[test]
fn all_is_hashed_for_a_sender_that_knows_no_samples() {
    let output = tempfile::tempdir().unwrap();
    let kind = Kind::File { size: 5, sparse: false };
    let sender = Sender::offer(output.path(), false, &[entry(&["file"], kind)]);
    assert!(sender.accept.hash && sender.accept.sample.is_empty());
    let send = |data: &mut Connection| {
        let payload = [&packed_header(0, 5)[..], b"hello", blake3::hash(b"hello").as_bytes()].concat();
        data.writer.push(kind::PACK, 0, &payload).unwrap();
    };
    assert_eq!(sender.end(send, None).0.unwrap().placed, 1);
}

/// What a sender has sent.
#[derive(Default)]
struct Taken {
    packs: Vec<Vec<u8>>,
    /// The content of pieces, one after the other.
    pieces: Vec<u8>,
    ends: Vec<FileEnd>,
}

/// Takes what a sender that samples sends after this answer.
fn take(listener: TcpListener, accept: Accept, files: usize) -> Taken {
    let Connected { peered, data } = connect(Place::Listen(listener), &setup(2), 1, &Cancel::new()).unwrap();
    let mut control = peered.connection;
    say(
        &mut control,
        Body::Hello(Hello {
            version: VERSION,
            role: Role::Receiver as i32,
            ..Hello::default()
        }),
    );
    assert!(matches!(hear(&mut control), Body::Hello(_)));
    assert!(matches!(hear(&mut control), Body::Offer(offer) if offer.hash && offer.sample));
    say(&mut control, Body::Accept(accept));
    assert!(matches!(hear(&mut control), Body::Entries(entries) if entries.last));
    let codes = vec![1; files];
    say(&mut control, Body::Decisions(Decisions { first: 0, codes }));
    let connections: Connections = data.open_only(&[1], &Cancel::new());
    let mut data = connections.next().unwrap().unwrap();
    let mut taken = Taken::default();
    while let Some(record) = data.reader.next().unwrap() {
        match record.kind {
            kind::PACK => taken.packs.push(record.payload.to_vec()),
            kind::PIECE => taken.pieces.extend(&record.payload[PIECE_HEADER..]),
            _ => {}
        }
    }
    loop {
        match hear(&mut control) {
            Body::FileEnd(end) => taken.ends.push(end),
            Body::Sent(_) => break,
            other => panic!("{other:?}"),
        }
    }
    let placed = files as u64;
    say(
        &mut control,
        Body::Done(Done {
            placed,
            ..Done::default()
        }),
    );
    control.writer.close().unwrap();
    taken
}

#[test]
fn a_sender_hashes_what_the_answer_says() {
    let dir = tempfile::tempdir().unwrap();
    let (large, small) = (content(300_000, 1), b"hello");
    fs::write(dir.path().join("a"), &large).unwrap();
    fs::write(dir.path().join("b"), small).unwrap();
    let key_that = |first: bool, second: bool| {
        let mut keys = (0u32..).map(|number| [&number.to_be_bytes()[..], &[0; 28]].concat());
        let fits = |key: &Vec<u8>| takes(key, 0, 0) == first && takes(key, 1, 0) == second;
        keys.find(fits).unwrap()
    };
    let whole = *blake3::hash(&large).as_bytes();
    let nothing = blake3::hash(b"").as_bytes().to_vec();
    let sampled = |sample| Accept {
        sample,
        by_map: true,
        ..Accept::default()
    };
    // An end of before.
    let all = Accept {
        hash: true,
        by_map: true,
        ..Accept::default()
    };
    for (accept, of_large, small_is_hashed) in [
        (sampled(key_that(true, false)), value(0, whole), false),
        (sampled(key_that(false, true)), nothing, true),
        (all, whole.to_vec(), true),
    ] {
        let (listener, address) = listen();
        let taking = std::thread::spawn(move || take(listener, accept, 2));
        let paths = ["a", "b"].map(|name| dir.path().join(name));
        let case = Case {
            connections: 1,
            ..Case::default()
        };
        let (sent, _) = support::sender(&case, &address.to_string(), &paths, &Cancel::new());
        assert_eq!(sent.unwrap().placed, 2);
        let Taken { packs, pieces, ends } = taking.join().unwrap();
        assert!(pieces == large);
        assert_eq!(ends.len(), 1);
        assert_eq!(ends[0].hash, of_large);
        let mut expected = [&packed_header(1, 5)[..], small].concat();
        if small_is_hashed {
            expected.extend(blake3::hash(small).as_bytes());
        }
        assert_eq!(packs, [expected]);
    }
}

/// What is announced is the hash of what was sealed, or the file is given up: a receiver that compares finds no fault where a file was
/// merely changed, which its time does not always tell.
#[test]
fn a_file_that_changes_unseen_is_given_up_and_nothing_is_at_fault() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, content(GROUP as usize, 1)).unwrap();
    let mut keys = (0u32..).map(|number| [&number.to_be_bytes()[..], &[0; 28]].concat());
    let key = keys.find(|key| takes(key, 0, 0)).unwrap();
    let written = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let time = written.metadata().unwrap().modified().unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (begun, mut last) = (Instant::now(), 0u8);
            while !stop.load(Ordering::Relaxed) && begun.elapsed() < LIMIT {
                last = last.wrapping_add(1);
                written.write_all_at(&[last], GROUP - 1).unwrap();
                written.set_modified(time).unwrap();
                std::thread::sleep(Duration::from_micros(100));
            }
        });
        let transfers: Vec<(Taken, Result<(), Error>)> = (0..5).map(|_| take_file(&path, &key)).collect();
        stop.store(true, Ordering::Relaxed);
        for (Taken { pieces, ends, .. }, sent) in transfers {
            sent.unwrap();
            let [end] = &ends[..] else { panic!("{ends:?}") };
            if end.failed.is_empty() {
                assert_eq!(end.hash, value(0, *blake3::hash(&pieces).as_bytes()));
            }
        }
    });
}

/// Sends a file to an end that samples by this key.
fn take_file(path: &Path, key: &[u8]) -> (Taken, Result<(), Error>) {
    let (listener, address) = listen();
    let accept = Accept {
        sample: key.to_vec(),
        by_map: true,
        ..Accept::default()
    };
    let taking = std::thread::spawn(move || take(listener, accept, 1));
    let case = Case {
        connections: 1,
        ..Case::default()
    };
    let (sent, _) = support::sender(&case, &address.to_string(), &[path.to_owned()], &Cancel::new());
    (taking.join().unwrap(), sent.map(drop))
}
