use super::*;
use crate::tree::{Access, Event, OpenHow, RenameHow};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::sync::mpsc;

fn call() -> Call {
    Call::within(Duration::from_secs(600))
}

fn path(text: &[u8]) -> TreePath {
    TreePath::parse(text).unwrap()
}

fn served(options: LocalOptions) -> (tempfile::TempDir, LocalTree) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("shared")).unwrap();
    let tree = LocalTree::open(&dir.path().join("shared"), options).unwrap();
    (dir, tree)
}

#[test]
fn nothing_outside_the_folder_is_reached() {
    let (dir, tree) = served(LocalOptions::default());
    let shared = dir.path().join("shared");
    std::fs::write(dir.path().join("secret"), "secret").unwrap();
    std::fs::create_dir(dir.path().join("outside")).unwrap();
    std::fs::write(dir.path().join("outside/file"), "secret").unwrap();
    symlink("../secret", shared.join("up")).unwrap();
    symlink(dir.path().join("secret"), shared.join("absolute")).unwrap();
    symlink(dir.path().join("outside"), shared.join("door")).unwrap();
    symlink("inside", shared.join("within")).unwrap();
    std::fs::write(shared.join("inside"), "inside").unwrap();
    for link in [&b"up"[..], b"absolute", b"within"] {
        assert_eq!(tree.attr(&path(link), &call()).unwrap().kind, Kind::Symlink);
        assert_eq!(tree.open(&path(link), &call()), Err(TreeError::NotFile));
    }
    assert_eq!(tree.read_link(&path(b"up"), &call()).unwrap(), b"../secret");
    assert_eq!(tree.read_link(&path(b"inside"), &call()), Err(TreeError::NotLink));
    assert_eq!(tree.attr(&path(b"door/file"), &call()), Err(TreeError::NotFound));
    assert_eq!(tree.open(&path(b"door/file"), &call()), Err(TreeError::NotFound));
    assert!(tree.list(&path(b"door"), 0, 10, &call()).is_err());
    assert_eq!(tree.open(&TreePath::root(), &call()), Err(TreeError::NotFile));
}

#[test]
fn what_is_no_file_directory_or_link_is_hidden() {
    let (dir, tree) = served(LocalOptions::default());
    let shared = dir.path().join("shared");
    let fifo = FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, shared.join("fifo"), fifo, Mode::RUSR, 0).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(shared.join("socket")).unwrap();
    std::fs::write(shared.join("file"), "").unwrap();
    let page = tree.list(&TreePath::root(), 0, 10, &call()).unwrap();
    assert_eq!(
        page.entries.iter().map(|entry| &entry.name[..]).collect::<Vec<_>>(),
        [b"file"]
    );
    assert_eq!(tree.attr(&path(b"fifo"), &call()), Err(TreeError::NotFound));
    // Would wait for a writer if it were opened.
    assert_eq!(tree.open(&path(b"fifo"), &call()), Err(TreeError::NotFound));
}

#[test]
fn pages_of_a_directory_hold_every_name_once() {
    let (dir, tree) = served(LocalOptions::default());
    let mut names: Vec<Vec<u8>> = (0..100).map(|i| format!("file {i}").into_bytes()).collect();
    names.extend([b"\xff\xfe".to_vec(), b"a\nb".to_vec(), b"-rf".to_vec(), vec![b'x'; 255]]);
    for name in &names {
        std::fs::write(dir.path().join("shared").join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
    }
    names.sort();
    for limit in [1, 7, 104, 1000] {
        let (mut seen, mut cursor) = (Vec::new(), Some(0));
        while let Some(at) = cursor {
            let page = tree.list(&TreePath::root(), at, limit, &call()).unwrap();
            assert!(page.entries.len() <= limit);
            seen.extend(page.entries.into_iter().map(|entry| entry.name));
            cursor = page.next;
        }
        seen.sort();
        assert_eq!(seen, names, "{limit}");
    }
}

#[test]
fn reads_are_whole_and_handles_are_bounded() {
    let (dir, tree) = served(LocalOptions {
        handles: 1,
        ..LocalOptions::default()
    });
    let content: Vec<u8> = (0..300_000_u32).map(|i| ((i * 7) >> 3) as u8).collect();
    std::fs::write(dir.path().join("shared/file"), &content).unwrap();
    let opened = tree.open(&path(b"file"), &call()).unwrap();
    assert_eq!(tree.open(&path(b"file"), &call()), Err(TreeError::Limit));
    for (offset, len) in [
        (0, 300_000),
        (0, 1),
        (299_999, 5),
        (300_000, 5),
        (u64::MAX, 5),
        (1234, 100_000),
        (0, 0),
    ] {
        let chunk = tree.read(opened.handle, offset, len, &call()).unwrap();
        let from = offset.min(300_000) as usize;
        assert_eq!(chunk.data, content[from..(from + len as usize).min(300_000)]);
        assert_eq!(chunk.size, 300_000);
    }
    assert!(matches!(
        tree.read(opened.handle, 0, MAX_READ + 1, &call()),
        Err(TreeError::Invalid(_))
    ));
    tree.close(opened.handle);
    assert_eq!(tree.read(opened.handle, 0, 1, &call()), Err(TreeError::Stale));
    assert_eq!(tree.open_handles(), 0);
    assert!(tree.open(&path(b"file"), &call()).is_ok());
}

#[test]
fn versions_follow_the_content() {
    let (dir, tree) = served(LocalOptions::default());
    let file = dir.path().join("shared/file");
    std::fs::write(&file, "old").unwrap();
    let stat = rustix::fs::stat(&file).unwrap();
    let (fresh, old) = (
        UNIX_EPOCH + Duration::from_secs(stat.st_ctime as u64),
        SystemTime::now() + SETTLED * 2,
    );
    assert_ne!(
        version_at(&stat, fresh),
        version_at(&stat, old),
        "a fresh version must be followed by another"
    );
    assert_eq!(version_at(&stat, old), version_at(&stat, old + Duration::from_secs(5)));
    let opened = tree.open(&path(b"file"), &call()).unwrap();
    std::fs::write(&file, "longer").unwrap();
    let chunk = tree.read(opened.handle, 0, 100, &call()).unwrap();
    assert_eq!((&chunk.data[..], chunk.size), (&b"longer"[..], 6));
    assert_ne!(chunk.version, opened.attr.version);
    std::fs::write(dir.path().join("other"), "longer").unwrap();
    std::fs::rename(dir.path().join("other"), &file).unwrap();
    assert_ne!(tree.attr(&path(b"file"), &call()).unwrap().node, opened.attr.node);
}

#[test]
fn changes_in_directories_looked_at_are_told() {
    let (dir, tree) = served(LocalOptions {
        watches: 1,
        ..LocalOptions::default()
    });
    let shared = dir.path().join("shared");
    std::fs::create_dir(shared.join("sub")).unwrap();
    let (tell, told) = mpsc::channel();
    let subscription = tree
        .subscribe(Arc::new(move |event| tell.send(event).unwrap_or(())))
        .unwrap();
    tree.list(&TreePath::root(), 0, 10, &call()).unwrap();
    // One watch is all there may be.
    tree.list(&path(b"sub"), 0, 10, &call()).unwrap();
    std::fs::write(shared.join("sub/unseen"), "").unwrap();
    let wait_for = |want: Event| loop {
        let event = told.recv_timeout(Duration::from_secs(60)).unwrap();
        assert_ne!(event, Event::Entry(path(b"sub/unseen")));
        if event == want {
            break;
        }
    };
    std::fs::write(shared.join("file"), "").unwrap();
    wait_for(Event::Entry(path(b"file")));
    std::fs::write(shared.join("file"), "more").unwrap();
    wait_for(Event::Changed(path(b"file")));
    std::fs::rename(shared.join("file"), shared.join("other")).unwrap();
    wait_for(Event::Entry(path(b"other")));
    std::fs::remove_file(shared.join("other")).unwrap();
    wait_for(Event::Entry(path(b"other")));
    drop(subscription);
}

#[test]
fn homes_stay_where_they_are() {
    let begin = |hidden| {
        let (dir, tree) = served(LocalOptions {
            writable: true,
            hidden,
            ..LocalOptions::default()
        });
        let shared = dir.path().join("shared");
        for folder in ["users/anna", "users/berta", "other"] {
            std::fs::create_dir_all(shared.join(folder)).unwrap();
        }
        let homes = Homes::among(["users/anna", "users/berta"].map(|home| shared.join(home)).into_iter());
        assert!(tree.homes.set(homes).is_ok());
        (dir, tree)
    };
    let changed = |tree: &LocalTree, change: Change| tree.apply(&change, &Locks::default()).map(drop);
    let rename = |from: &str, to: &str, how| Change::Rename(path(from.as_bytes()), path(to.as_bytes()), how);
    let (dir, tree) = begin(false);
    let before = tree.attr(&path(b"users/anna"), &call()).unwrap().node;
    for how in [RenameHow::Replace, RenameHow::Keep, RenameHow::Exchange] {
        for (from, to) in [
            ("users/anna", "users/anna2"),
            ("users", "people"),
            // An empty folder could take the place of an empty home.
            ("other", "users/anna"),
            ("other", "users"),
            ("users/anna", "users/berta"),
        ] {
            assert_eq!(
                changed(&tree, rename(from, to, how)),
                Err(TreeError::Refused),
                "{from} {to} {how:?}"
            );
        }
    }
    for home in ["users/anna", "users"] {
        let gone = changed(&tree, Change::RemoveDirectory(path(home.as_bytes())));
        assert_eq!(gone, Err(TreeError::Refused), "{home}");
    }
    for hidden in ["users/anna/.profile", "users/berta/.ssh"] {
        let made = changed(&tree, Change::MakeDirectory(path(hidden.as_bytes()), 0o755));
        assert_eq!(made, Err(TreeError::Refused), "{hidden}");
        let moved = changed(&tree, rename("other", hidden, RenameHow::Replace));
        assert_eq!(moved, Err(TreeError::Refused), "{hidden}");
    }
    assert_eq!(tree.attr(&path(b"users/anna"), &call()).unwrap().node, before);
    assert_eq!(
        std::fs::read_dir(dir.path().join("shared/users/anna")).unwrap().count(),
        0
    );
    // What is in a home, and what is none, can be moved.
    changed(&tree, Change::MakeDirectory(path(b"users/anna/letters"), 0o755)).unwrap();
    changed(&tree, rename("users/anna/letters", "users/anna/mail", RenameHow::Keep)).unwrap();
    changed(&tree, rename("other", "another", RenameHow::Replace)).unwrap();
    // Whoever may touch what is hidden may do that too.
    let (_dir, tree) = begin(true);
    changed(&tree, Change::MakeDirectory(path(b"users/berta/.ssh"), 0o700)).unwrap();
    changed(&tree, rename("users/anna", "users/anna2", RenameHow::Keep)).unwrap();
}

#[test]
fn a_small_file_comes_with_the_answer_to_its_opening_if_that_is_asked_for() {
    // In memory, so that nothing has to come from a disk.
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let options = LocalOptions {
        writable: true,
        floor: 0,
        ..LocalOptions::default()
    };
    let tree = LocalTree::open(dir.path(), options).unwrap();
    let longest = crate::tree::MAX_WHOLE as usize;
    for (name, len) in [
        ("empty", 0),
        ("small", 5),
        ("longest", longest),
        ("longer", longest + 1),
    ] {
        std::fs::write(dir.path().join(name), vec![7; len]).unwrap();
    }
    let whole = |name: &[u8], access, whole| {
        let how = OpenHow {
            access,
            whole,
            ..OpenHow::default()
        };
        let opened = tree.apply(&Change::Open(path(name), how), &Locks::default()).unwrap();
        opened.whole().map(|whole| whole.len())
    };
    assert_eq!(whole(b"small", Access::Read, 5), Some(5));
    assert_eq!(whole(b"longest", Access::Read, u32::MAX), Some(longest));
    for (name, access, at_most) in [
        (&b"empty"[..], Access::Read, 5),
        (b"longer", Access::Read, u32::MAX),
        (b"small", Access::Read, 4),
        (b"small", Access::Read, 0),
        // What is open for writing alone is not read.
        (b"small", Access::Write, 5),
    ] {
        assert_eq!(whole(name, access, at_most), None, "{access:?} {at_most}");
    }
}
