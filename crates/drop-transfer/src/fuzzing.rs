//! What a peer may send in a transfer and what may lie on a disk, for the fuzz target and for the test that replays its corpus. Not part of the
//! public interface.
//!
//! It checks more than that nothing panics: that what is read is written as the same bytes, that names keep their rules, and that a
//! journal says what was put into it.

use sealway_drop::names::{MAX_DEPTH, MAX_PATH, RelPath, Rules};
use sealway_drop::wire::control::{Accept, Body, Offer, Top};
use sealway_drop::wire::kind;
use sealway_drop::wire::talk::{payload, understand};

use crate::content::{Packed, Piece, packed_header};
use crate::entry::{Entry, Kind, Time};

#[cfg(test)]
mod corpora;

/// The fuzz target's name and its entry.
pub const ENTRIES: &[(&str, fn(&[u8]))] = &[("drop_transfer", run)];

/// Reads the input after its first byte, which says as what.
pub fn run(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else {
        return;
    };
    match kind % 6 {
        0 => entries(rest, Rules::POSIX),
        1 => entries(rest, Rules::WINDOWS),
        2 => content(rest),
        3 => crate::dest::fuzz_journal(rest),
        4 => offer(rest),
        _ => accept(rest),
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

fn content(rest: &[u8]) {
    if let Some(piece) = Piece::parse(rest) {
        let header = Piece::header(piece.file, piece.offset);
        assert!([&header, piece.bytes].concat() == rest);
    }
    for hashed in [|_: u32| false, |_: u32| true, |file: u32| file % 2 == 1] {
        let mut again = Vec::new();
        let mut whole = true;
        for file in Packed::new(rest, hashed) {
            assert!(whole, "nothing follows what makes no sense");
            match file {
                Some(file) => {
                    again.extend(packed_header(file.file, file.bytes.len() as u32));
                    again.extend(file.bytes);
                    again.extend(file.hash.iter().flatten());
                }
                None => whole = false,
            }
        }
        assert!(if whole { again == rest } else { rest.starts_with(&again) });
    }
}

fn offer(rest: &[u8]) {
    if let Ok(Some(Body::Offer(offer))) = understand(kind::CONTROL, rest) {
        crate::receive::fuzz_offer(&offer);
    }
}

fn accept(rest: &[u8]) {
    if let Ok(Some(Body::Accept(accept))) = understand(kind::CONTROL, rest) {
        crate::hashing::fuzz(&accept);
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
    let offer = payload(Body::Offer(Offer {
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
    let pack = [&packed_header(1, 3)[..], b"one", &packed_header(2, 0)].concat();
    let hashed = [&packed_header(1, 3)[..], b"one", &[9; 32]].concat();
    let sampled = [&packed_header(2, 3)[..], b"two", &hashed].concat();
    let accept = payload(Body::Accept(Accept {
        hash: false,
        by_map: true,
        sample: vec![6; 32],
    }));
    let seed = |kind: u8, bytes: &[u8]| [&[kind], bytes].concat();
    vec![
        ("entries", seed(0, &list)),
        ("entries-windows", seed(1, &list)),
        ("piece", seed(2, &piece)),
        ("pack", seed(2, &pack)),
        ("pack-hashed", seed(2, &hashed)),
        ("pack-sampled", seed(2, &sampled)),
        ("journal", seed(3, &crate::dest::journal_seed())),
        ("offer", seed(4, &offer)),
        ("accept", seed(5, &accept)),
    ]
}
