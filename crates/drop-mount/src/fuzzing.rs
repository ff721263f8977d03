//! What a peer may send of a shared folder, for the fuzz target and for the test that replays its corpus. Not part of the
//! public interface.
//!
//! It checks more than that nothing panics: that what is read is written as the same bytes, and that paths keep their rules.

use crate::bulk::message::{self, Read};
use crate::changes::message::{self as changing, WRITE_HEADER, WriteHeader};
use crate::tree::{Change, Changed, Lock, LockKind, MAX_WRITE, OpenHow, RenameHow, TreePath};

#[cfg(test)]
mod corpora;

/// The fuzz target's name and its entry.
pub const ENTRIES: &[(&str, fn(&[u8]))] = &[("drop_mount", run)];

/// Reads the input after its first byte, which says as what.
pub fn run(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else {
        return;
    };
    match kind % 4 {
        0 => reads(rest),
        1 => path(rest),
        2 => changes(rest),
        _ => links(rest),
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

fn changes(rest: &[u8]) {
    if let Some(Ok(change)) = changing::parse(rest) {
        let payload = changing::encode(&change);
        assert!(changing::parse(&payload) == Some(Ok(change)));
    }
    if let Ok(answer) = changing::parse_answer(rest) {
        let payload = changing::encode_answer(&Ok(answer.clone()));
        assert!(!payload.is_empty() && changing::parse_answer(&payload) == Ok(answer));
    }
    if let Some((header, data)) = WriteHeader::parse(rest) {
        assert!(header.encode() == rest[..WRITE_HEADER] && !data.is_empty() && data.len() <= MAX_WRITE);
        assert!(header.offset.checked_add(data.len() as u64).is_some());
    }
}

/// A link and what it says, with a NUL between: followed name by name, it never leaves the folder it is in.
fn links(rest: &[u8]) {
    let Some(at) = rest.iter().position(|byte| *byte == 0) else {
        return;
    };
    let (from, target) = (&rest[..at], &rest[at + 1..]);
    let Ok(from) = TreePath::parse(from) else { return };
    if crate::local::stays_inside(&from, target) {
        let mut depth = from.components().count().saturating_sub(1);
        for part in target.split(|byte| *byte == b'/') {
            match part {
                b"" | b"." => {}
                b".." => depth = depth.checked_sub(1).expect("inside"),
                _ => depth += 1,
            }
        }
        assert!(target.first() != Some(&b'/'));
    }
}

fn path(rest: &[u8]) {
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
}

/// One of everything in order, to start a corpus with.
pub fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let read = Read {
        handle: 1,
        offset: 4096,
        len: 65_536,
    };
    let seed = |kind: u8, bytes: &[u8]| [&[kind], bytes].concat();
    let change = |change: Change| seed(2, &changing::encode(&change));
    let (one, two) = (TreePath::root().join(b"one"), TreePath::root().join(b"two"));
    let (one, two) = (one.unwrap_or_default(), two.unwrap_or_default());
    let how = OpenHow {
        create: Some(0o644),
        exclusive: true,
        ..OpenHow::default()
    };
    let lock = Lock {
        handle: 1,
        owner: 2,
        start: 0,
        end: 9,
        kind: LockKind::Exclusive,
    };
    let write = WriteHeader {
        handle: 1,
        offset: 4096,
        append: false,
    };
    vec![
        ("read", seed(0, &read.encode())),
        ("content", seed(0, &message::content_header(1 << 30, 2))),
        ("tree-path", seed(1, b"folder/file")),
        ("change-open", change(Change::Open(one.clone(), how))),
        (
            "change-rename",
            change(Change::Rename(one.clone(), two, RenameHow::Exchange)),
        ),
        ("change-link", change(Change::MakeLink(one, b"two/three".to_vec()))),
        ("change-lock", change(Change::Lock(lock))),
        ("change-answer", seed(2, &changing::encode_answer(&Ok(Changed::Done)))),
        ("write", seed(2, &[&write.encode()[..], b"content"].concat())),
        ("tree-link", seed(3, b"folder/link\0../file")),
    ]
}
