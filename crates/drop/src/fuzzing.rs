//! What a peer may send and what may lie on a disk, for the fuzz target and for the test that replays its corpus. Not part of the
//! public interface.
//!
//! It checks more than that nothing panics: that what is read is written as the same bytes, that names keep their rules, and that a
//! journal says what was put into it.

use prost::Message as _;

use crate::bulk::message::{self, Read};
use crate::entry::{Entry, Kind, Time};
use crate::identity::PublicKey;
use crate::names::{MAX_DEPTH, MAX_PATH, RelPath, Rules};
use crate::relay::wire::{ANSWER_LEN, Answer, REQUEST_LEN, Request};
use crate::tree::TreePath;
use crate::wire::control::{Body, Hello, Message, Offer, Role, Top};
use crate::wire::data::{Packed, Piece};

/// Reads the input after its first byte, which says as what.
pub fn run(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else {
        return;
    };
    match kind % 8 {
        0 => entries(rest, Rules::POSIX),
        1 => entries(rest, Rules::WINDOWS),
        2 => control(rest),
        3 => content(rest),
        4 => reads(rest),
        5 => relay(rest),
        6 => crate::dest::fuzz_journal(rest),
        _ => texts(rest),
    }
}

fn entries(mut rest: &[u8], rules: Rules) {
    while let Ok((entry, used)) = Entry::decode(rest, rules) {
        let mut again = Vec::new();
        entry.encode(&mut again);
        assert!(again == rest[..used], "an entry is written as it was read");
        assert!((1..=MAX_DEPTH).contains(&entry.path.depth()));
        assert!(entry.path.components().map(<[u8]>::len).sum::<usize>() <= MAX_PATH);
        for name in entry.path.components() {
            assert!(rules.check(name).is_ok() && !name.contains(&b'/') && name != b"..");
        }
        rest = &rest[used..];
    }
}

fn control(rest: &[u8]) {
    if let Ok(message) = Message::decode(rest) {
        let again = Message::decode(&*message.encode_to_vec());
        assert!(again.as_ref() == Ok(&message), "a message reads back");
        if let Some(Body::Offer(offer)) = &message.body {
            crate::receive::fuzz_offer(offer);
        }
    }
}

fn content(rest: &[u8]) {
    if let Some(piece) = Piece::parse(rest) {
        let header = Piece::header(piece.file, piece.offset);
        assert!([&header, piece.bytes].concat() == rest);
    }
    for hashed in [false, true] {
        let mut again = Vec::new();
        let mut whole = true;
        for file in Packed::new(rest, hashed) {
            assert!(whole, "nothing follows what makes no sense");
            match file {
                Some(file) => {
                    again.extend(Packed::header(file.file, file.bytes.len() as u32));
                    again.extend(file.bytes);
                    again.extend(file.hash.iter().flatten());
                }
                None => whole = false,
            }
        }
        assert!(if whole { again == rest } else { rest.starts_with(&again) });
    }
}

fn reads(rest: &[u8]) {
    if let Some(read) = Read::parse(rest) {
        assert!(read.encode() == rest && read.len as usize <= message::MAX_LEN);
    }
    if let Some((size, version)) = message::parse_content(rest) {
        assert!(rest.starts_with(&message::content_header(size, version)));
    }
    for &code in rest {
        let _ = message::error(code);
    }
}

fn relay(rest: &[u8]) {
    for bytes in rest.as_chunks::<REQUEST_LEN>().0 {
        if let Ok(request) = Request::parse(bytes) {
            assert!(request.encode() == *bytes);
        }
    }
    for bytes in rest.as_chunks::<ANSWER_LEN>().0 {
        if let Some(answer) = Answer::parse(bytes) {
            assert!(answer.encode() == *bytes);
        }
    }
}

fn texts(rest: &[u8]) {
    if let Ok(path) = TreePath::parse(rest) {
        assert!(path.as_bytes() == rest && path.is_within(&TreePath::root()));
        assert!(
            path.components()
                .all(|name| !name.is_empty() && name != b"." && name != b"..")
        );
        if let Some((folder, name)) = path.split() {
            assert!(folder.join(name).as_ref() == Ok(&path));
        }
    }
    if let Ok(text) = std::str::from_utf8(rest)
        && let Ok(key) = text.parse::<PublicKey>()
    {
        assert!(key.to_string().parse() == Ok(key));
    }
}

/// One of everything in order, to start a corpus with.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut list = Vec::new();
    let entry = |names: &[&[u8]], kind| Entry {
        path: RelPath::new(names, Rules::WINDOWS).unwrap_or_else(|error| unreachable!("{error}")),
        kind,
        mode: 0o644,
        mtime: Time {
            seconds: 1_700_000_000,
            nanoseconds: 5,
        },
    };
    let target = b"../elsewhere".as_slice().into();
    for entry in [
        entry(&[b"folder"], Kind::Directory),
        entry(&[b"folder", b"file"], Kind::File { size: 7, sparse: false }),
        entry(
            &[b"holes"],
            Kind::File {
                size: 1 << 40,
                sparse: true,
            },
        ),
        entry(&[b"link"], Kind::Symlink { target }),
    ] {
        entry.encode(&mut list);
    }
    let message = |body| Message { body: Some(body) }.encode_to_vec();
    let hello = message(Body::Hello(Hello {
        version: crate::wire::control::VERSION,
        role: Role::Sender.into(),
        shares: true,
        ..Hello::default()
    }));
    let offer = message(Body::Offer(Offer {
        transfer: vec![7; 32],
        files: 2,
        bytes: 300,
        top: vec![Top {
            name: b"folder".to_vec(),
            folder: true,
        }],
        ..Offer::default()
    }));
    let piece = [&Piece::header(3, 1 << 33)[..], b"content"].concat();
    let pack = [&Packed::header(1, 3)[..], b"one", &Packed::header(2, 0)].concat();
    let hashed = [&Packed::header(1, 3)[..], b"one", &[9; 32]].concat();
    let read = Read {
        handle: 1,
        offset: 4096,
        len: 65_536,
    };
    let pair = Request::Pair {
        token: [1; 32],
        role: sealway_session::handshake::Role::Initiator,
    };
    let answers = [Answer::Waiting(77).encode(), Answer::Ready.encode()].concat();
    let key = PublicKey::new([5; 32]).to_string().into_bytes();
    let seed = |kind: u8, bytes: &[u8]| [&[kind], bytes].concat();
    vec![
        ("entries", seed(0, &list)),
        ("entries-windows", seed(1, &list)),
        ("hello", seed(2, &hello)),
        ("offer", seed(2, &offer)),
        ("piece", seed(3, &piece)),
        ("pack", seed(3, &pack)),
        ("pack-hashed", seed(3, &hashed)),
        ("read", seed(4, &read.encode())),
        ("content", seed(4, &message::content_header(1 << 30, 2))),
        ("relay-pair", seed(5, &pair.encode())),
        ("relay-answers", seed(5, &answers)),
        ("journal", seed(6, &crate::dest::journal_seed())),
        ("tree-path", seed(7, b"folder/file")),
        ("key", seed(7, &key)),
    ]
}
