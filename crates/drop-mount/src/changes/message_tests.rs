use super::*;
use crate::tree::Attr;

fn path(text: &str) -> TreePath {
    TreePath::parse(text.as_bytes()).unwrap()
}

fn changes() -> Vec<Change> {
    let time = NewTime::At(Time {
        seconds: -5,
        nanoseconds: 999_999_999,
    });
    let lock = Lock {
        handle: 7,
        owner: u64::MAX,
        start: 3,
        end: i64::MAX as u64,
        kind: LockKind::Exclusive,
    };
    let how = OpenHow {
        access: Access::Both,
        create: Some(0o640),
        exclusive: true,
        truncate: true,
        whole: MAX_WHOLE,
    };
    let setting = Setting {
        size: Some(0),
        mode: Some(0),
        atime: Some(NewTime::Now),
        mtime: Some(time),
    };
    vec![
        Change::Open(path("a/b"), how),
        Change::Open(path("a"), OpenHow::default()),
        Change::Look(0),
        Change::LookUp(path("a/b")),
        Change::Close(u64::MAX),
        Change::Set(Place::Path(TreePath::root()), Setting::default()),
        Change::Set(Place::Handle(3), setting),
        Change::MakeDirectory(path("d"), 0o700),
        Change::MakeLink(path("l"), b"../\xff".to_vec()),
        Change::Remove(path("a")),
        Change::RemoveDirectory(path("d")),
        Change::Rename(path("a"), path("b"), RenameHow::Exchange),
        Change::Rename(path("a"), path("b"), RenameHow::Keep),
        Change::Sync(Place::Handle(1), true),
        Change::Sync(Place::Path(path("d")), false),
        Change::Allocate {
            handle: 1,
            mode: 3,
            offset: 5,
            len: 6,
        },
        Change::Lock(lock),
        Change::TestLock(Lock {
            kind: LockKind::Shared,
            ..lock
        }),
    ]
}

#[test]
fn changes_read_back() {
    for change in changes() {
        let payload = encode(&change);
        assert!(!payload.is_empty() && payload.len() <= MAX_CHANGE);
        assert_eq!(parse(&payload), Some(Ok(change)));
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let of = |what, path: &[u8]| Wire {
        what,
        path: path.to_vec(),
        ..Wire::default()
    };
    let open = |path: &[u8], how| Wire {
        how,
        ..of(what::OPEN, path)
    };
    let to = |what, to: &[u8]| Wire {
        to: to.to_vec(),
        ..of(what, b"a")
    };
    let late = proto::Time {
        seconds: 0,
        nanoseconds: 1_000_000_000,
    };
    for bad in [
        open(b"../x", 0),
        open(b"/x", 0),
        open(b"a\0", 0),
        open(b"a", 3),
        open(b"a", 16),
        Wire {
            mtime: Some(WireTime { at: Some(late) }),
            ..of(what::SET, b"")
        },
        to(what::RENAME, b"b/../../c"),
        Wire {
            how: 3,
            ..to(what::RENAME, b"b")
        },
        to(what::MAKE_LINK, b"x\0y"),
        Wire {
            handle: Some(1),
            how: 1,
            from: 2,
            until: 1,
            ..of(what::LOCK, b"")
        },
        of(what::LOOK, b""),
    ] {
        let parsed = parse(&bad.encode_to_vec()).unwrap();
        assert!(matches!(parsed, Err(TreeError::Invalid(_))), "{bad:?}: {parsed:?}");
    }
    assert_eq!(parse(&of(99, b"").encode_to_vec()), Some(Err(TreeError::Unsupported)));
    assert_eq!(parse(&[0xff; 20]), None);
    assert_eq!(parse(&open(&vec![b'x'; MAX_CHANGE], 0).encode_to_vec()), None);
}

#[test]
fn answers_read_back() {
    let attr = Attr {
        node: 1,
        size: 5,
        mode: 0o644,
        nlink: 1,
        version: 7,
        allocated: 4096,
        ..Attr::default()
    };
    let whole = Some(Bytes::from_static(b"whole"));
    let conflict = Conflict {
        start: 0,
        end: 9,
        kind: LockKind::Shared,
    };
    for answer in [
        Ok(Changed::Done),
        Ok(Changed::Attr(attr)),
        Ok(Changed::Opened(Opened { handle: 0, attr }, 0, None)),
        Ok(Changed::Opened(Opened { handle: 9, attr }, u64::MAX, whole.clone())),
        Ok(Changed::Conflict(None)),
        Ok(Changed::Conflict(Some(conflict))),
        Err(TreeError::Full),
        Err(TreeError::Stale),
    ] {
        let payload = encode_answer(&answer);
        assert!(!payload.is_empty());
        assert_eq!(parse_answer(&payload), answer);
    }
    // Content is as long as the file.
    let short = Attr { size: 6, ..attr };
    let odd = Ok(Changed::Opened(Opened { handle: 9, attr: short }, 0, whole));
    assert!(matches!(
        parse_answer(&encode_answer(&odd)),
        Err(TreeError::Protocol(_))
    ));
    assert_eq!(
        parse_answer(&encode_kept(&odd)),
        Ok(Changed::Opened(Opened { handle: 9, attr: short }, 0, None))
    );
    assert!(matches!(parse_answer(&[0xff]), Err(TreeError::Protocol(_))));
    assert!(matches!(parse_answer(&[0x08, 99]), Err(TreeError::Protocol(_))));
}

#[test]
fn writes_read_back_and_nothing_else_does() {
    let header = WriteHeader {
        handle: 7,
        offset: 1 << 40,
        append: true,
    };
    let with = |header: WriteHeader, len: usize| [&header.encode()[..], &vec![9; len]].concat();
    let payload = with(header, 3);
    assert_eq!(WriteHeader::parse(&payload), Some((header, &[9, 9, 9][..])));
    for len in 0..=WRITE_HEADER {
        assert_eq!(WriteHeader::parse(&payload[..len]), None, "cut at {len}");
    }
    assert!(WriteHeader::parse(&with(header, MAX_WRITE)).is_some());
    assert_eq!(WriteHeader::parse(&with(header, MAX_WRITE + 1)), None);
    for offset in [u64::MAX, i64::MAX as u64] {
        assert_eq!(WriteHeader::parse(&with(WriteHeader { offset, ..header }, 1)), None);
    }
    let mut odd = payload;
    odd[16] = 2;
    assert_eq!(WriteHeader::parse(&odd), None);
}
