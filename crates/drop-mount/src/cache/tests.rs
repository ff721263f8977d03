use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::*;

const PEER: [u8; 32] = [7; 32];

fn options(dir: &Path, size: u64) -> CacheOptions {
    CacheOptions {
        size,
        peer: Some(PEER),
        ..CacheOptions::new(dir)
    }
}

fn store(dir: &Path) -> Store {
    Store::open(&options(dir, 1 << 20)).unwrap()
}

fn attr(size: usize, version: u64) -> Attr {
    Attr {
        size: size as u64,
        version,
        ..Attr::default()
    }
}

fn path(text: &str) -> TreePath {
    TreePath::parse(text.as_bytes()).unwrap()
}

fn content(size: usize, seed: usize) -> Vec<u8> {
    (0..size).map(|at| (at * 31 + at / 256 + seed) as u8).collect()
}

/// Puts a whole file and waits for it.
fn keep(store: &Store, name: &str, data: &[u8], version: u64) -> Key {
    let attr = attr(data.len(), version);
    let key = store.key(&path(name), &attr);
    let fill = store.fill(&key, &attr).unwrap();
    for (at, piece) in data.chunks(5000).enumerate() {
        store.put(&fill, at as u64 * 5000, Bytes::copy_from_slice(piece));
    }
    assert!(store.settle());
    key
}

fn read(copy: &Copy, size: usize) -> Vec<u8> {
    let mut buffer = vec![0; size + 10];
    let read = copy.read(0, &mut buffer).unwrap();
    buffer.truncate(read);
    buffer
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let names = fs::read_dir(dir.join("sealway-copies")).unwrap();
    let mut names: Vec<PathBuf> = names.map(|entry| entry.unwrap().path()).collect();
    names.sort();
    names
}

fn named(dir: &Path, prefix: &str) -> Vec<PathBuf> {
    let starts = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(prefix);
    files(dir).into_iter().filter(starts).collect()
}

#[test]
fn a_file_is_found_when_every_byte_has_come_and_not_before() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let data = content(30_000, 1);
    let attr = attr(30_000, 1);
    let key = store.key(&path("a"), &attr);
    let fill = store.fill(&key, &attr).unwrap();
    let put = |range: std::ops::Range<usize>| {
        store.put(&fill, range.start as u64, Bytes::copy_from_slice(&data[range]));
        assert!(store.settle());
    };
    put(20_000..30_000);
    put(0..10_000);
    put(5_000..19_999);
    assert!(store.find(&key).is_none());
    assert_eq!(named(dir.path(), "part-").len(), 1);
    put(19_000..20_000);
    assert!(read(&store.find(&key).unwrap(), 30_000) == data);
    assert!(named(dir.path(), "part-").is_empty());
    // The same name stands for nothing else.
    let mut other = attr;
    other.version = 2;
    assert!(store.find(&store.key(&path("a"), &other)).is_none());
    assert!(store.find(&store.key(&path("b"), &attr)).is_none());
    let mut stranger = options(dir.path(), 1 << 20);
    stranger.peer = Some([8; 32]);
    let stranger = Store::open(&stranger).unwrap();
    assert!(stranger.find(&stranger.key(&path("a"), &attr)).is_none());
}

#[test]
fn a_reading_that_is_broken_off_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let attr = attr(30_000, 1);
    let key = store.key(&path("a"), &attr);
    let fill = store.fill(&key, &attr).unwrap();
    store.put(&fill, 0, content(10_000, 1).into());
    assert!(store.settle());
    assert_eq!(named(dir.path(), "part-").len(), 1);
    drop(fill);
    assert!(named(dir.path(), "part-").is_empty());
    assert_eq!(store.room.used(), 0);
    // Bytes past the end are not of this file.
    let fill = store.fill(&key, &attr).unwrap();
    store.put(&fill, 29_000, content(1_001, 1).into());
    assert!(store.settle());
    assert!(!fill.wants());
}

#[test]
fn copies_last_for_a_known_peer_and_not_for_another() {
    let dir = tempfile::tempdir().unwrap();
    let data = content(9_000, 3);
    let first = store(dir.path());
    let key = keep(&first, "a", &data, 1);
    first.close();
    drop(first);
    let second = store(dir.path());
    assert!(read(&second.find(&key).unwrap(), 9_000) == data);
    let unknown = Store::open(&CacheOptions::new(dir.path())).unwrap();
    let key = keep(&unknown, "a", &data, 1);
    assert!(unknown.find(&key).is_some());
    assert_eq!(named(dir.path(), "once-").len(), 1);
    unknown.close();
    assert!(unknown.find(&key).is_none());
    assert_eq!(named(dir.path(), "once-").len(), 0);
    assert_eq!(named(dir.path(), "copy-").len(), 1);
}

#[test]
fn what_is_damaged_is_removed() {
    let dir = tempfile::tempdir().unwrap();
    let store = store(dir.path());
    let harm: [fn(&Path); 5] = [
        |file| File::options().write(true).open(file).unwrap().set_len(8_999).unwrap(),
        |file| File::options().write(true).open(file).unwrap().set_len(0).unwrap(),
        |file| {
            File::options()
                .write(true)
                .open(file)
                .unwrap()
                .write_all_at(b"x", 100)
                .unwrap();
        },
        |file| fs::set_permissions(file, fs::Permissions::from_mode(0o644)).unwrap(),
        |file| {
            fs::rename(file, file.with_extension("moved")).unwrap();
            fs::write(file, content(9_000, 4)).unwrap();
        },
    ];
    for (at, harm) in harm.iter().enumerate() {
        let key = keep(&store, "a", &content(9_000, 3), 1);
        assert!(store.find(&key).is_some(), "{at}");
        let held = store.find(&key).unwrap();
        let file = named(dir.path(), "copy-").remove(0);
        harm(&file);
        assert!(store.find(&key).is_none(), "{at}");
        assert!(!file.exists(), "{at}");
        assert_eq!(at == 4, held.read(0, &mut [0; 10]).is_ok(), "{at}");
    }
    // A link is not followed, whatever it leads to.
    let key = keep(&store, "a", &content(9_000, 3), 1);
    let file = dir.path().join("sealway-copies").join(key.name());
    fs::rename(&file, dir.path().join("elsewhere")).unwrap();
    symlink(dir.path().join("elsewhere"), &file).unwrap();
    assert!(store.find(&key).is_none());
}

#[test]
fn the_least_recently_used_go_and_never_those_in_use() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&options(dir.path(), 100_000)).unwrap();
    let data = content(30_000, 1);
    let (a, b, c) = (
        keep(&store, "a", &data, 1),
        keep(&store, "b", &data, 1),
        keep(&store, "c", &data, 1),
    );
    let held = store.find(&a).unwrap();
    // Clocks of file systems are coarse.
    for (at, key) in [&a, &b, &c].into_iter().enumerate() {
        let file = File::open(dir.path().join("sealway-copies").join(key.name())).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000 + at as u64);
        file.set_times(fs::FileTimes::new().set_accessed(time)).unwrap();
    }
    // `a` was used least recently, but is in use.
    let d = keep(&store, "d", &data, 1);
    assert!(store.find(&a).is_some() && store.find(&b).is_none());
    assert!(store.find(&c).is_some() && store.find(&d).is_some());
    assert!(store.room.used() <= 100_000);
    // Another mount leaves alone what is in use here.
    let other = Store::open(&options(dir.path(), 10_000)).unwrap();
    assert!(read(&store.find(&a).unwrap(), 30_000) == data);
    assert!(store.find(&c).is_none() && store.find(&d).is_none());
    // No room at all: nothing is kept, nothing is left over.
    let key = keep(&other, "e", &content(9_000, 1), 1);
    assert!(other.find(&key).is_none());
    assert!(named(dir.path(), "part-").is_empty());
    assert!(other.fill(&key, &attr(10_001, 1)).is_none());
    drop(held);
    let key = keep(&other, "e", &content(9_000, 1), 1);
    assert!(other.find(&key).is_some() && other.find(&a).is_none());
}

#[test]
fn what_a_mount_left_that_is_gone_is_removed_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let living = Store::open(&CacheOptions::new(dir.path())).unwrap();
    let here = keep(&living, "a", &content(9_000, 1), 1);
    let attr = attr(9_000, 2);
    let fill = living.fill(&living.key(&path("b"), &attr), &attr).unwrap();
    living.put(&fill, 0, content(5_000, 1).into());
    assert!(living.settle());
    let folder = dir.path().join("sealway-copies");
    let hash = "0123456789abcdef".repeat(4);
    let left = [
        "part-00000000000000aa-3".to_owned(),
        "part-00000000000000bb-0".to_owned(),
        format!("once-00000000000000aa-{hash}"),
        "mount-00000000000000aa".to_owned(),
    ];
    let others = [
        "mine",
        "part-x",
        "copy-1",
        "once-00000000000000aa-",
        "mount-00000000000000AA",
    ];
    for name in left.iter().map(String::as_str).chain(others) {
        fs::write(folder.join(name), "left").unwrap();
    }
    let before = files(dir.path()).len();
    let next = store(dir.path());
    for name in &left {
        assert!(!folder.join(name).exists(), "{name}");
    }
    for name in others {
        assert!(folder.join(name).exists(), "{name}");
    }
    assert_eq!(files(dir.path()).len(), before - left.len() + 1);
    assert!(living.find(&here).is_some());
    living.put(&fill, 5_000, content(4_000, 1).into());
    assert!(living.settle());
    let there = living.key(&path("b"), &attr);
    assert!(living.find(&there).is_some());
    drop(next);
}

#[test]
fn a_folder_that_others_may_change_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let open = |path: &Path| Store::open(&CacheOptions::new(path)).map(drop);
    let inside = dir.path().join("deep/er");
    open(&inside).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&inside), mode(&inside.join("sealway-copies"))), (0o700, 0o700));
    fs::set_permissions(&inside, fs::Permissions::from_mode(0o770)).unwrap();
    assert!(matches!(open(&inside), Err(CacheError::Exposed(_))));
    fs::set_permissions(&inside, fs::Permissions::from_mode(0o755)).unwrap();
    open(&inside).unwrap();
    fs::set_permissions(inside.join("sealway-copies"), fs::Permissions::from_mode(0o750)).unwrap();
    assert!(matches!(open(&inside), Err(CacheError::Exposed(_))));
    fs::remove_dir(inside.join("sealway-copies")).unwrap();
    fs::create_dir(dir.path().join("other")).unwrap();
    symlink(dir.path().join("other"), inside.join("sealway-copies")).unwrap();
    assert!(matches!(open(&inside), Err(CacheError::Folder { .. })));
    assert_eq!(fs::read_dir(dir.path().join("other")).unwrap().count(), 0);
}
