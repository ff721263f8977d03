//! Between messages and the types of a tree. What a peer sent is checked here.

use bytes::Bytes;
use tonic::{Code, Status};

use super::proto;
use crate::tree::{
    Attr, Chunk, Entry, Event, Extent, Kind, MAX_PAGE, MAX_PATH, Opened, Page, Time, TreeError, TreePath, check_name,
};

const NOT_DIRECTORY: &str = "not a directory";
const NOT_FILE: &str = "not a regular file";
const NOT_LINK: &str = "not a symbolic link";

pub(super) fn status(error: TreeError) -> Status {
    match error {
        TreeError::NotFound => Status::not_found("no such file or directory"),
        TreeError::NotDirectory => Status::failed_precondition(NOT_DIRECTORY),
        TreeError::NotFile => Status::failed_precondition(NOT_FILE),
        TreeError::NotLink => Status::failed_precondition(NOT_LINK),
        TreeError::Denied => Status::permission_denied("permission denied"),
        TreeError::Stale => Status::aborted("not open any more"),
        TreeError::Invalid(what) => Status::invalid_argument(what),
        TreeError::Limit => Status::resource_exhausted("too many open files or calls"),
        TreeError::Failed => Status::data_loss("could not read"),
        TreeError::Timeout => Status::deadline_exceeded("took too long"),
        TreeError::Cancelled => Status::cancelled("called off"),
        TreeError::Lost => Status::unavailable("the tree is lost"),
        TreeError::Protocol(_) => Status::internal("the tree misbehaved"),
        // What goes wrong with changes, which do not come this way.
        TreeError::ReadOnly
        | TreeError::Exists
        | TreeError::NotEmpty
        | TreeError::Full
        | TreeError::TooBig
        | TreeError::CrossDevice
        | TreeError::Locked
        | TreeError::Refused
        | TreeError::Unsupported => Status::internal("an error of a change"),
    }
}

pub(super) fn error(status: &Status) -> TreeError {
    match status.code() {
        Code::NotFound => TreeError::NotFound,
        Code::FailedPrecondition if status.message() == NOT_DIRECTORY => TreeError::NotDirectory,
        Code::FailedPrecondition if status.message() == NOT_FILE => TreeError::NotFile,
        Code::FailedPrecondition if status.message() == NOT_LINK => TreeError::NotLink,
        Code::PermissionDenied => TreeError::Denied,
        Code::Aborted => TreeError::Stale,
        Code::InvalidArgument => TreeError::Invalid("the peer refused it"),
        Code::ResourceExhausted => TreeError::Limit,
        Code::DataLoss => TreeError::Failed,
        Code::DeadlineExceeded => TreeError::Timeout,
        Code::Cancelled => TreeError::Cancelled,
        Code::Unavailable => TreeError::Lost,
        // One of an earlier version.
        Code::Unimplemented => TreeError::Invalid("the peer does not know it"),
        _ => TreeError::Protocol("an unexpected status"),
    }
}

pub(super) fn path(bytes: &Bytes) -> Result<TreePath, Status> {
    TreePath::parse(bytes).map_err(status)
}

pub(crate) fn attr_out(attr: &Attr) -> proto::Attr {
    let kind = match attr.kind {
        Kind::File => proto::Kind::File,
        Kind::Directory => proto::Kind::Directory,
        Kind::Symlink => proto::Kind::Symlink,
    };
    let time = |Time { seconds, nanoseconds }| Some(proto::Time { seconds, nanoseconds });
    proto::Attr {
        node: attr.node,
        kind: kind.into(),
        size: attr.size,
        mode: attr.mode,
        mtime: time(attr.mtime),
        ctime: time(attr.ctime),
        nlink: attr.nlink,
        version: attr.version,
        allocated: Some(attr.allocated),
    }
}

pub(crate) fn attr_in(attr: &proto::Attr) -> Result<Attr, TreeError> {
    let kind = match attr.kind() {
        proto::Kind::File => Kind::File,
        proto::Kind::Directory => Kind::Directory,
        proto::Kind::Symlink => Kind::Symlink,
        proto::Kind::Unspecified => return Err(TreeError::Protocol("an unknown kind of file")),
    };
    if attr.mode > 0o7777 || i64::try_from(attr.size).is_err() {
        return Err(TreeError::Protocol("attributes that cannot be"));
    }
    let (node, size, mode, nlink, version) = (attr.node, attr.size, attr.mode, attr.nlink, attr.version);
    Ok(Attr {
        node,
        kind,
        size,
        mode,
        mtime: time_in(attr.mtime)?,
        ctime: time_in(attr.ctime)?,
        nlink,
        version,
        allocated: attr.allocated.unwrap_or(size),
    })
}

/// What is told of the place `offset` of a file.
pub(super) fn extent_in(told: &proto::SeekReply, offset: u64) -> Result<Extent, TreeError> {
    let proto::SeekReply { data, hole } = *told;
    let possible = |at: u64| at >= offset && i64::try_from(at).is_ok();
    match possible(hole) && data.is_none_or(possible) {
        true => Ok(Extent { data, hole }),
        false => Err(TreeError::Protocol("a place that cannot be")),
    }
}

fn time_in(time: Option<proto::Time>) -> Result<Time, TreeError> {
    match time {
        Some(proto::Time { seconds, nanoseconds }) if nanoseconds < 1_000_000_000 => Ok(Time { seconds, nanoseconds }),
        _ => Err(TreeError::Protocol("a time that cannot be")),
    }
}

fn attr_needed(attr: Option<&proto::Attr>) -> Result<Attr, TreeError> {
    attr_in(attr.ok_or(TreeError::Protocol("attributes are missing"))?)
}

pub(super) fn page_out(page: Page) -> proto::ReadDirReply {
    let entry = |entry: Entry| proto::Entry {
        name: entry.name.into(),
        attr: Some(attr_out(&entry.attr)),
    };
    proto::ReadDirReply {
        entries: page.entries.into_iter().map(entry).collect(),
        next: page.next,
    }
}

pub(super) fn page_in(page: &proto::ReadDirReply, limit: usize) -> Result<Page, TreeError> {
    if page.entries.len() > limit.min(MAX_PAGE) {
        return Err(TreeError::Protocol("a page that is too long"));
    }
    let entry = |entry: &proto::Entry| {
        check_name(&entry.name).map_err(|_| TreeError::Protocol("a name that is not one path component"))?;
        Ok(Entry {
            name: entry.name.to_vec(),
            attr: attr_needed(entry.attr.as_ref())?,
        })
    };
    Ok(Page {
        entries: page.entries.iter().map(entry).collect::<Result<_, TreeError>>()?,
        next: page.next,
    })
}

pub(super) fn opened_in(opened: &proto::OpenReply) -> Result<Opened, TreeError> {
    let attr = attr_needed(opened.attr.as_ref())?;
    if attr.kind != Kind::File {
        return Err(TreeError::Protocol("an open file that is no file"));
    }
    Ok(Opened {
        handle: opened.handle,
        attr,
    })
}

pub(super) fn link_in(link: &proto::ReadLinkReply) -> Result<Vec<u8>, TreeError> {
    if link.target.is_empty() || link.target.len() > MAX_PATH || link.target.contains(&0) {
        return Err(TreeError::Protocol("a link that cannot be"));
    }
    Ok(link.target.to_vec())
}

pub(super) fn event_out(event: &Event) -> proto::Event {
    let (what, path) = match event {
        Event::Changed(path) => (proto::event::What::Changed, path.as_bytes()),
        Event::Entry(path) => (proto::event::What::Entry, path.as_bytes()),
        Event::Everything | Event::Lost => (proto::event::What::Everything, &[][..]),
    };
    proto::Event {
        what: what.into(),
        path: Bytes::copy_from_slice(path),
    }
}

/// `None` for an event that tells nothing; one that is not understood means that anything may have changed.
pub(super) fn event_in(event: &proto::Event) -> Option<Event> {
    let path = TreePath::parse(&event.path);
    Some(match (event.what(), path) {
        (proto::event::What::Ready, _) => return None,
        (proto::event::What::Changed, Ok(path)) => Event::Changed(path),
        (proto::event::What::Entry, Ok(path)) => Event::Entry(path),
        _ => Event::Everything,
    })
}

/// A file's bytes as messages of at most `piece` bytes; one without bytes where there are none.
pub(super) fn pieces_out(chunk: &Chunk, piece: usize) -> Vec<proto::Piece> {
    let (size, version) = (chunk.size, chunk.version);
    let message = |data| proto::Piece { data, size, version };
    if chunk.data.is_empty() {
        return vec![message(Bytes::new())];
    }
    let starts = (0..chunk.data.len()).step_by(piece);
    starts
        .map(|from| message(chunk.data.slice(from..chunk.data.len().min(from + piece))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_survive_the_way() {
        for sent in [
            TreeError::NotFound,
            TreeError::NotDirectory,
            TreeError::NotFile,
            TreeError::NotLink,
            TreeError::Denied,
            TreeError::Stale,
            TreeError::Limit,
            TreeError::Failed,
            TreeError::Timeout,
            TreeError::Cancelled,
            TreeError::Lost,
        ] {
            assert_eq!(error(&status(sent)), sent);
        }
        assert!(matches!(error(&status(TreeError::Invalid("x"))), TreeError::Invalid(_)));
        for odd in [status(TreeError::Protocol("x")), Status::failed_precondition("?")] {
            assert!(matches!(error(&odd), TreeError::Protocol(_)));
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let good = attr_out(&Attr {
            node: 1,
            size: 5,
            mode: 0o644,
            mtime: Time {
                seconds: -1,
                nanoseconds: 999_999_999,
            },
            nlink: 1,
            version: 7,
            allocated: 4096,
            ..Attr::default()
        });
        assert_eq!(attr_out(&attr_in(&good).unwrap()), good);
        let bad: [fn(&mut proto::Attr); 7] = [
            |attr| attr.kind = 0,
            |attr| attr.kind = 99,
            |attr| attr.mode = 0o10000,
            |attr| attr.size = u64::MAX,
            |attr| attr.mtime = None,
            |attr| {
                attr.ctime = Some(proto::Time {
                    seconds: 0,
                    nanoseconds: 1_000_000_000,
                })
            },
            |attr| attr.kind = -1,
        ];
        for change in bad {
            let mut attr = good;
            change(&mut attr);
            assert!(matches!(attr_in(&attr), Err(TreeError::Protocol(_))), "{attr:?}");
        }
        let entry = |name: &[u8]| proto::Entry {
            name: Bytes::copy_from_slice(name),
            attr: Some(good),
        };
        let page = |entries| proto::ReadDirReply { entries, next: None };
        assert!(page_in(&page(vec![entry(b"a"), entry(b"\xff")]), 2).is_ok());
        assert!(page_in(&page(vec![entry(b"a"), entry(b"b")]), 1).is_err());
        for name in [&b""[..], b".", b"..", b"a/b", b"a\0", &[b'x'; 256]] {
            assert!(page_in(&page(vec![entry(name)]), 5).is_err());
        }
        let mut bare = entry(b"a");
        bare.attr = None;
        assert!(page_in(&page(vec![bare]), 5).is_err());
        let (handle, mut attr) = (1, Some(good));
        assert!(opened_in(&proto::OpenReply { handle, attr }).is_ok());
        attr.as_mut().unwrap().set_kind(proto::Kind::Directory);
        assert!(opened_in(&proto::OpenReply { handle, attr }).is_err());
        let target = vec![b'x'; 5000].into();
        assert!(link_in(&proto::ReadLinkReply { target }).is_err());
        let event = |what: i32, path: &'static [u8]| proto::Event {
            what,
            path: Bytes::from_static(path),
        };
        assert_eq!(event_in(&event(1, b"")), None);
        let changed = Event::Changed(TreePath::parse(b"a").unwrap());
        assert_eq!(event_in(&event(2, b"a")), Some(changed));
        assert_eq!(event_in(&event(2, b"../a")), Some(Event::Everything));
        assert_eq!(event_in(&event(77, b"a")), Some(Event::Everything));
    }
}
