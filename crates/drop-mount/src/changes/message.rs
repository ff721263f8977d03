//! The payloads of the messages. Changes and answers are Protocol Buffers, flat: which of the fields count follows from the first.
//! A write begins with numbers, big-endian.

use bytes::Bytes;
use prost::Message as _;

use crate::bulk::message::{code, error};
use crate::grpc::{convert, proto};
use crate::tree::{
    Access, Change, Changed, Conflict, Lock, LockKind, MAX_PATH, MAX_WHOLE, MAX_WRITE, NewTime, OpenHow, Opened, Place,
    RenameHow, Setting, Time, TreeError, TreePath,
};

/// Bytes before the content in a write: `handle: u64, offset: u64, append: u8`.
pub const WRITE_HEADER: usize = 17;

/// Longest change that is taken: two paths and a little.
pub const MAX_CHANGE: usize = 16 << 10;

/// A `CHANGE`.
#[derive(Clone, PartialEq, prost::Message)]
struct Wire {
    #[prost(uint32, tag = "1")]
    what: u32,
    #[prost(bytes = "vec", tag = "2")]
    path: Vec<u8>,
    /// Of a rename, the new path; of a link, what it says.
    #[prost(bytes = "vec", tag = "3")]
    to: Vec<u8>,
    #[prost(uint64, optional, tag = "4")]
    handle: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    size: Option<u64>,
    #[prost(uint32, optional, tag = "6")]
    mode: Option<u32>,
    /// How: numbers that mean something else in each kind of change.
    #[prost(uint32, tag = "7")]
    how: u32,
    #[prost(message, optional, tag = "8")]
    atime: Option<WireTime>,
    #[prost(message, optional, tag = "9")]
    mtime: Option<WireTime>,
    #[prost(uint64, tag = "10")]
    from: u64,
    /// A length, or of a lock the last byte.
    #[prost(uint64, tag = "11")]
    until: u64,
    #[prost(fixed64, tag = "12")]
    owner: u64,
    /// Of an open: so much content is wanted with the answer.
    #[prost(uint32, tag = "13")]
    whole: u32,
}

/// A time to be set; empty: now.
#[derive(Clone, Copy, PartialEq, prost::Message)]
struct WireTime {
    #[prost(message, optional, tag = "1")]
    at: Option<proto::Time>,
}

/// A `CHANGED`.
#[derive(Clone, PartialEq, prost::Message)]
struct WireAnswer {
    /// As in `REFUSED`; 0: done.
    #[prost(uint32, tag = "1")]
    error: u32,
    #[prost(message, optional, tag = "2")]
    attr: Option<proto::Attr>,
    #[prost(uint64, optional, tag = "3")]
    handle: Option<u64>,
    #[prost(fixed64, tag = "4")]
    run: u64,
    #[prost(message, optional, tag = "5")]
    lock: Option<WireLock>,
    /// All that an open file holds.
    #[prost(bytes = "bytes", optional, tag = "6")]
    whole: Option<Bytes>,
}

/// What was found of locks.
#[derive(Clone, Copy, PartialEq, prost::Message)]
struct WireLock {
    /// 0: nothing is in the way.
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(uint64, tag = "2")]
    start: u64,
    #[prost(uint64, tag = "3")]
    end: u64,
}

mod what {
    pub(super) const OPEN: u32 = 1;
    pub(super) const LOOK: u32 = 2;
    pub(super) const SET: u32 = 3;
    pub(super) const MAKE_DIRECTORY: u32 = 4;
    pub(super) const MAKE_LINK: u32 = 5;
    pub(super) const REMOVE: u32 = 6;
    pub(super) const REMOVE_DIRECTORY: u32 = 7;
    pub(super) const RENAME: u32 = 8;
    pub(super) const SYNC: u32 = 9;
    pub(super) const ALLOCATE: u32 = 10;
    pub(super) const LOCK: u32 = 11;
    pub(super) const TEST_LOCK: u32 = 12;
    pub(super) const LOOK_UP: u32 = 13;
    pub(super) const CLOSE: u32 = 14;
}

/// In [`Wire::how`] of an open, beside the access in the lowest two bits.
const EXCLUSIVE: u32 = 4;
const TRUNCATE: u32 = 8;

/// A change as a payload.
pub fn encode(change: &Change) -> Vec<u8> {
    let wire = match change {
        Change::Open(path, how) => {
            let access = match how.access {
                Access::Read => 0,
                Access::Write => 1,
                Access::Both => 2,
            };
            let exclusive = if how.exclusive { EXCLUSIVE } else { 0 };
            let truncate = if how.truncate { TRUNCATE } else { 0 };
            Wire {
                mode: how.create,
                how: access | exclusive | truncate,
                whole: how.whole,
                ..of(what::OPEN, path)
            }
        }
        Change::Look(handle) => at(what::LOOK, &Place::Handle(*handle)),
        Change::LookUp(path) => of(what::LOOK_UP, path),
        Change::Close(handle) => at(what::CLOSE, &Place::Handle(*handle)),
        Change::Set(place, setting) => Wire {
            size: setting.size,
            mode: setting.mode,
            atime: setting.atime.map(time_out),
            mtime: setting.mtime.map(time_out),
            ..at(what::SET, place)
        },
        Change::MakeDirectory(path, mode) => Wire {
            mode: Some(*mode),
            ..of(what::MAKE_DIRECTORY, path)
        },
        Change::MakeLink(path, target) => Wire {
            to: target.clone(),
            ..of(what::MAKE_LINK, path)
        },
        Change::Remove(path) => of(what::REMOVE, path),
        Change::RemoveDirectory(path) => of(what::REMOVE_DIRECTORY, path),
        Change::Rename(from, to, how) => Wire {
            to: to.as_bytes().to_vec(),
            how: match how {
                RenameHow::Replace => 0,
                RenameHow::Keep => 1,
                RenameHow::Exchange => 2,
            },
            ..of(what::RENAME, from)
        },
        Change::Sync(place, content_only) => Wire {
            how: u32::from(*content_only),
            ..at(what::SYNC, place)
        },
        Change::Allocate {
            handle,
            mode,
            offset,
            len,
        } => Wire {
            how: *mode,
            from: *offset,
            until: *len,
            ..at(what::ALLOCATE, &Place::Handle(*handle))
        },
        Change::Lock(lock) => lock_out(what::LOCK, lock),
        Change::TestLock(lock) => lock_out(what::TEST_LOCK, lock),
    };
    wire.encode_to_vec()
}

/// A change from a payload. `None` if it cannot be read; an error if it can, but asks for what cannot be.
pub fn parse(payload: &[u8]) -> Option<Result<Change, TreeError>> {
    if payload.len() > MAX_CHANGE {
        return None;
    }
    Wire::decode(payload).ok().map(change_in)
}

fn change_in(wire: Wire) -> Result<Change, TreeError> {
    let path = || TreePath::parse(&wire.path);
    let handle = || wire.handle.ok_or(TreeError::Invalid("a handle is missing"));
    let place = || match wire.handle {
        Some(handle) => Ok(Place::Handle(handle)),
        None => path().map(Place::Path),
    };
    let odd = Err(TreeError::Invalid("a number that means nothing"));
    Ok(match wire.what {
        what::OPEN => {
            let access = match wire.how & 3 {
                0 => Access::Read,
                1 => Access::Write,
                2 => Access::Both,
                _ => return odd,
            };
            if wire.how & !(3 | EXCLUSIVE | TRUNCATE) != 0 {
                return odd;
            }
            let how = OpenHow {
                access,
                create: wire.mode,
                exclusive: wire.how & EXCLUSIVE != 0,
                truncate: wire.how & TRUNCATE != 0,
                whole: wire.whole.min(MAX_WHOLE),
            };
            Change::Open(path()?, how)
        }
        what::LOOK => Change::Look(handle()?),
        what::LOOK_UP => Change::LookUp(path()?),
        what::CLOSE => Change::Close(handle()?),
        what::SET => {
            let setting = Setting {
                size: wire.size,
                mode: wire.mode,
                atime: wire.atime.map(time_in).transpose()?,
                mtime: wire.mtime.map(time_in).transpose()?,
            };
            Change::Set(place()?, setting)
        }
        what::MAKE_DIRECTORY => Change::MakeDirectory(path()?, wire.mode.unwrap_or(0o777)),
        what::MAKE_LINK => match wire.to.len() {
            1..=MAX_PATH if !wire.to.contains(&0) => Change::MakeLink(path()?, wire.to),
            _ => return Err(TreeError::Invalid("a link that cannot be")),
        },
        what::REMOVE => Change::Remove(path()?),
        what::REMOVE_DIRECTORY => Change::RemoveDirectory(path()?),
        what::RENAME => {
            let how = match wire.how {
                0 => RenameHow::Replace,
                1 => RenameHow::Keep,
                2 => RenameHow::Exchange,
                _ => return odd,
            };
            Change::Rename(path()?, TreePath::parse(&wire.to)?, how)
        }
        what::SYNC => Change::Sync(place()?, wire.how & 1 != 0),
        what::ALLOCATE => Change::Allocate {
            handle: handle()?,
            mode: wire.how,
            offset: wire.from,
            len: wire.until,
        },
        what::LOCK | what::TEST_LOCK => {
            let lock = Lock {
                handle: handle()?,
                owner: wire.owner,
                start: wire.from,
                end: wire.until,
                kind: kind_in(wire.how)?,
            };
            if lock.start > lock.end {
                return Err(TreeError::Invalid("a range that ends before it begins"));
            }
            match wire.what {
                what::LOCK => Change::Lock(lock),
                _ => Change::TestLock(lock),
            }
        }
        // Of a later version.
        _ => return Err(TreeError::Unsupported),
    })
}

/// An answer as it is kept for who asks again: without content, which is asked for apart where it does not come.
pub(super) fn encode_kept(answer: &Result<Changed, TreeError>) -> Vec<u8> {
    match answer {
        Ok(Changed::Opened(opened, run, Some(_))) => encode_answer(&Ok(Changed::Opened(*opened, *run, None))),
        answer => encode_answer(answer),
    }
}

/// An answer as a payload.
pub fn encode_answer(answer: &Result<Changed, TreeError>) -> Vec<u8> {
    let mut wire = WireAnswer::default();
    match answer {
        Ok(Changed::Done) => {}
        Ok(Changed::Attr(attr)) => wire.attr = Some(convert::attr_out(attr)),
        Ok(Changed::Opened(opened, run, whole)) => {
            wire.attr = Some(convert::attr_out(&opened.attr));
            (wire.handle, wire.run, wire.whole) = (Some(opened.handle), *run, whole.clone());
        }
        Ok(Changed::Conflict(found)) => {
            wire.lock = Some(found.map_or_else(WireLock::default, |found| WireLock {
                kind: kind_out(found.kind),
                start: found.start,
                end: found.end,
            }));
        }
        Err(error) => wire.error = u32::from(code(*error)),
    }
    if wire == WireAnswer::default() {
        // A record is never empty.
        return vec![0x08, 0x00];
    }
    wire.encode_to_vec()
}

/// An answer from a payload; one that cannot be read is [`TreeError::Protocol`].
pub fn parse_answer(payload: &[u8]) -> Result<Changed, TreeError> {
    let wire = WireAnswer::decode(payload).map_err(|_| TreeError::Protocol("an answer that cannot be read"))?;
    if wire.error != 0 {
        return Err(error(u8::try_from(wire.error).unwrap_or(0)));
    }
    let attr = wire.attr.as_ref().map(convert::attr_in).transpose()?;
    Ok(match (attr, wire.handle, wire.lock) {
        (Some(attr), Some(handle), None) => {
            let is_whole = |whole: &Bytes| whole.len() as u64 == attr.size && attr.size <= u64::from(MAX_WHOLE);
            if wire.whole.as_ref().is_some_and(|whole| !is_whole(whole)) {
                return Err(TreeError::Protocol("not all of the content"));
            }
            Changed::Opened(Opened { handle, attr }, wire.run, wire.whole)
        }
        (Some(attr), None, None) => Changed::Attr(attr),
        (None, None, Some(WireLock { kind: 0, .. })) => Changed::Conflict(None),
        (None, None, Some(WireLock { kind, start, end })) => {
            let kind = kind_in(kind).map_err(|_| TreeError::Protocol("an unknown kind of lock"))?;
            Changed::Conflict(Some(Conflict { start, end, kind }))
        }
        (None, None, None) => Changed::Done,
        _ => return Err(TreeError::Protocol("an answer to two questions")),
    })
}

/// Where bytes are to be written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WriteHeader {
    /// Of a file that was opened for writing.
    pub handle: u64,
    /// First byte.
    pub offset: u64,
    /// Whether they belong at the end instead.
    pub append: bool,
}

impl WriteHeader {
    /// What stands before the bytes.
    pub fn encode(self) -> [u8; WRITE_HEADER] {
        let mut out = [0; WRITE_HEADER];
        out[..8].copy_from_slice(&self.handle.to_be_bytes());
        out[8..16].copy_from_slice(&self.offset.to_be_bytes());
        out[16] = u8::from(self.append);
        out
    }

    /// The header and the bytes of a payload; `None` if there are none or too many, or they lie past what a file can have.
    pub fn parse(payload: &[u8]) -> Option<(Self, &[u8])> {
        let (handle, rest) = payload.split_first_chunk()?;
        let (offset, rest) = rest.split_first_chunk()?;
        let (&append, data) = rest.split_first()?;
        let (handle, offset) = (u64::from_be_bytes(*handle), u64::from_be_bytes(*offset));
        let end = offset.checked_add(data.len() as u64)?;
        let fits = (1..=MAX_WRITE).contains(&data.len()) && end <= i64::MAX as u64 && append <= 1;
        let append = append == 1;
        fits.then_some((Self { handle, offset, append }, data))
    }
}

fn of(what: u32, path: &TreePath) -> Wire {
    Wire {
        what,
        path: path.as_bytes().to_vec(),
        ..Wire::default()
    }
}

fn at(what: u32, place: &Place) -> Wire {
    match place {
        Place::Path(path) => of(what, path),
        Place::Handle(handle) => Wire {
            what,
            handle: Some(*handle),
            ..Wire::default()
        },
    }
}

fn lock_out(what: u32, lock: &Lock) -> Wire {
    Wire {
        from: lock.start,
        until: lock.end,
        owner: lock.owner,
        how: kind_out(lock.kind),
        ..at(what, &Place::Handle(lock.handle))
    }
}

fn kind_out(kind: LockKind) -> u32 {
    match kind {
        LockKind::Shared => 1,
        LockKind::Exclusive => 2,
        LockKind::Free => 3,
    }
}

fn kind_in(kind: u32) -> Result<LockKind, TreeError> {
    match kind {
        1 => Ok(LockKind::Shared),
        2 => Ok(LockKind::Exclusive),
        3 => Ok(LockKind::Free),
        _ => Err(TreeError::Invalid("an unknown kind of lock")),
    }
}

fn time_out(time: NewTime) -> WireTime {
    let at = match time {
        NewTime::Now => None,
        NewTime::At(Time { seconds, nanoseconds }) => Some(proto::Time { seconds, nanoseconds }),
    };
    WireTime { at }
}

fn time_in(time: WireTime) -> Result<NewTime, TreeError> {
    match time.at {
        None => Ok(NewTime::Now),
        Some(proto::Time { seconds, nanoseconds }) if nanoseconds < 1_000_000_000 => {
            Ok(NewTime::At(Time { seconds, nanoseconds }))
        }
        Some(_) => Err(TreeError::Invalid("a time that cannot be")),
    }
}

#[cfg(test)]
#[path = "message_tests.rs"]
mod tests;
