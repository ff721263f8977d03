//! What a peer may send of a shared folder, for the fuzz target and for the test that replays its corpus. Not part of the
//! public interface.
//!
//! It checks more than that nothing panics: that what is read is written as the same bytes, and that paths keep their rules.

use crate::bulk::message::{self, Read};
use crate::tree::TreePath;

#[cfg(test)]
mod corpora;

/// The fuzz target's name and its entry.
pub const ENTRIES: &[(&str, fn(&[u8]))] = &[("drop_mount", run)];

/// Reads the input after its first byte, which says as what.
pub fn run(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else {
        return;
    };
    match kind % 2 {
        0 => reads(rest),
        _ => path(rest),
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
    vec![
        ("read", seed(0, &read.encode())),
        ("content", seed(0, &message::content_header(1 << 30, 2))),
        ("tree-path", seed(1, b"folder/file")),
    ]
}
