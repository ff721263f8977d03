//! What tests of the drop's crates share: ends of a session, folders to send, paths.

#![allow(clippy::unwrap_used, missing_docs)]

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use proptest::prelude::*;
use sealway_aead::choose::Offer;
use sealway_aead::cpu::Cpu;
use zeroize::Zeroizing;

use crate::link::{Identity, Setup};
use crate::names::{RelPath, Rules};

/// Keys, whoever has them.
pub fn setup(own: u8) -> Setup {
    Setup {
        identity: Identity::Keys {
            own: Zeroizing::new([own; 32]),
            peers: None,
        },
        offer: Offer::of(Cpu::get()),
        strong: false,
    }
}

pub fn code(words: &str) -> Setup {
    Setup {
        identity: Identity::Code(Zeroizing::new(words.as_bytes().to_vec())),
        ..setup(1)
    }
}

pub fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Both ends of a connection.
pub fn streams() -> (TcpStream, TcpStream) {
    let (listener, address) = listen();
    let there = TcpStream::connect(address).unwrap();
    (listener.accept().unwrap().0, there)
}

/// Bytes that do not compress and are the same each time.
pub fn content(len: usize, seed: u64) -> Vec<u8> {
    let mut out = vec![0; len];
    blake3::Hasher::new()
        .update(&seed.to_le_bytes())
        .finalize_xof()
        .fill(&mut out);
    out
}

/// A folder with everything that can be sent.
pub fn tree(root: &Path) -> PathBuf {
    let dir = root.join("tree");
    fs::create_dir_all(dir.join("empty")).unwrap();
    fs::create_dir_all(dir.join("a/b/c")).unwrap();
    for (name, len) in [
        ("zero", 0),
        ("one", 1),
        ("a/small", 4096),
        ("a/b/edge", 128 << 10),
        ("a/b/c/over", (128 << 10) + 1),
    ] {
        fs::write(dir.join(name), content(len, len as u64)).unwrap();
    }
    fs::write(dir.join("large"), content((20 << 20) + 777, 5)).unwrap();
    for i in 0..200 {
        fs::write(dir.join(format!("a/{i:03}")), content(i * 97, i as u64)).unwrap();
    }
    fs::set_permissions(dir.join("one"), fs::Permissions::from_mode(0o750)).unwrap();
    std::os::unix::fs::symlink("a/small", dir.join("link")).unwrap();
    let sparse = fs::File::create(dir.join("sparse")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&sparse, b"end", 40 << 20).unwrap();
    let old = std::time::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    fs::File::open(dir.join("a/small")).unwrap().set_modified(old).unwrap();
    fs::File::open(dir.join("empty")).unwrap().set_modified(old).unwrap();
    dir
}

/// Everything about a tree that a transfer keeps.
pub type Found = (PathBuf, u32, i64, i64, Vec<u8>);

pub fn listing(dir: &Path) -> Vec<Found> {
    let mut found = Vec::new();
    let mut left = vec![dir.to_owned()];
    while let Some(path) = left.pop() {
        let meta = fs::symlink_metadata(&path).unwrap();
        let body = if meta.is_symlink() {
            fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
        } else if meta.is_dir() {
            left.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            Vec::new()
        } else {
            blake3::hash(&fs::read(&path).unwrap()).as_bytes().to_vec()
        };
        let name = path.strip_prefix(dir).unwrap().to_owned();
        let (mtime, ns) = if meta.is_symlink() {
            (0, 0)
        } else {
            (meta.mtime(), meta.mtime_nsec())
        };
        found.push((name, meta.mode(), mtime, ns, body));
    }
    found.sort();
    found
}

/// Fails with the names of what differs, not with all that is equal.
pub fn assert_same(a: &Path, b: &Path) {
    let (a, b) = (listing(a), listing(b));
    let names = |only: &[Found], other: &[Found]| {
        let differ = only
            .iter()
            .filter(|one| !one.0.as_os_str().is_empty() && !other.contains(one));
        differ.map(|one| format!("{one:?}")).take(5).collect::<Vec<_>>()
    };
    assert_eq!(
        (names(&a, &b), names(&b, &a)),
        (Vec::<String>::new(), Vec::<String>::new())
    );
}

/// Names below a folder that are not to be there.
pub fn strays(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with(".sealway")).collect()
}

/// Any path that may travel.
pub fn any_path() -> impl Strategy<Value = RelPath> {
    let name = prop_oneof![
        prop::collection::vec(any::<u8>(), 1..12),
        prop::collection::vec(any::<u8>(), 250..256)
    ];
    let name = name.prop_filter("names", |name| Rules::POSIX.check(name).is_ok());
    prop::collection::vec(name, 1..10).prop_map(|names| RelPath::new(names, Rules::POSIX).unwrap())
}
