//! Changes of a tree.
//!
//! A change names what it is about by path, or by a handle that is open. It is done by the side that serves, on the one copy
//! there is: so exclusive creation, renaming, appending and locks mean what they mean there.

use bytes::Bytes;

use super::{Attr, Opened, Time, TreeError, TreePath};

/// Longest single write, in bytes.
pub const MAX_WRITE: usize = 512 << 10;

/// Most content that comes with the answer to an open, in bytes.
pub const MAX_WHOLE: u32 = 16 << 10;

/// A change, or what only those need to know who change something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Opens a regular file, perhaps a new one. Answered by [`Changed::Opened`].
    Open(TreePath, OpenHow),
    /// Attributes of an open file, whether or not it still has a name. Answered by [`Changed::Attr`].
    Look(u64),
    /// Attributes of a path, as [`RemoteTree::attr`](super::RemoteTree::attr) gives them. Answered by [`Changed::Attr`].
    LookUp(TreePath),
    /// Closes an open file.
    Close(u64),
    /// Sets attributes. Answered by [`Changed::Attr`].
    Set(Place, Setting),
    /// Makes a directory with these permissions. Answered by [`Changed::Attr`].
    MakeDirectory(TreePath, u32),
    /// Makes a symbolic link that says this. Answered by [`Changed::Attr`].
    MakeLink(TreePath, Vec<u8>),
    /// Removes a file or a link.
    Remove(TreePath),
    /// Removes an empty directory.
    RemoveDirectory(TreePath),
    /// Gives the first path the name of the second.
    Rename(TreePath, TreePath, RenameHow),
    /// Brings an open file, or a directory, to the disk: all of it, or only what is needed to read its content.
    Sync(Place, bool),
    /// Reserves or clears part of an open file, as `fallocate(2)` with this mode does. Answered by [`Changed::Attr`].
    Allocate {
        /// The open file.
        handle: u64,
        /// As of `fallocate(2)`.
        mode: u32,
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// Takes or gives back an advisory lock on part of an open file, without waiting: [`TreeError::Locked`] if somebody else
    /// holds it. One that is taken is answered by [`Changed::Attr`].
    Lock(Lock),
    /// Who holds a lock that this one would have to wait for. Answered by [`Changed::Conflict`].
    TestLock(Lock),
}

/// The handle in a change, by reference as the change is.
macro_rules! handle_in {
    ($change:expr) => {
        match $change {
            Change::Look(handle)
            | Change::Close(handle)
            | Change::Set(Place::Handle(handle), _)
            | Change::Sync(Place::Handle(handle), _)
            | Change::Allocate { handle, .. }
            | Change::Lock(Lock { handle, .. })
            | Change::TestLock(Lock { handle, .. }) => Some(handle),
            _ => None,
        }
    };
}

impl Change {
    /// The open file that it names.
    pub(crate) fn handle(&self) -> Option<u64> {
        handle_in!(self).copied()
    }

    /// The same, to change it.
    pub(crate) fn handle_mut(&mut self) -> Option<&mut u64> {
        handle_in!(self)
    }
}

/// What is meant: a path, or an open file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// What has this name; of a symbolic link, the link.
    Path(TreePath),
    /// What is open under this handle.
    Handle(u64),
}

/// What an open file is opened for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Access {
    /// Reading.
    #[default]
    Read,
    /// Writing.
    Write,
    /// Both.
    Both,
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenHow {
    /// What for.
    pub access: Access,
    /// Permissions of the file if it is made; `None`: it must be there.
    pub create: Option<u32>,
    /// It must not be there.
    pub exclusive: bool,
    /// It is emptied.
    pub truncate: bool,
    /// All of its content is to come with the answer if it has so many bytes at most, [`MAX_WHOLE`] or less, and is in memory.
    pub whole: u32,
}

/// Attributes to be set; `None` leaves one as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Setting {
    /// Bytes.
    pub size: Option<u64>,
    /// Permissions, 0o777 at most.
    pub mode: Option<u32>,
    /// When it was last read.
    pub atime: Option<NewTime>,
    /// When its content last changed.
    pub mtime: Option<NewTime>,
}

/// A time to be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewTime {
    /// The time at the side that serves.
    Now,
    /// This one.
    At(Time),
}

/// What becomes of a name that is taken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RenameHow {
    /// What has it is replaced.
    #[default]
    Replace,
    /// [`TreeError::Exists`].
    Keep,
    /// Both change their names.
    Exchange,
}

impl RenameHow {
    /// What a path is after `from` was renamed to `to`; `None` if that is the same.
    pub fn moves(self, path: &TreePath, from: &TreePath, to: &TreePath) -> Option<TreePath> {
        let back = || match self {
            Self::Exchange => path.moved(to, from),
            Self::Replace | Self::Keep => None,
        };
        path.moved(from, to).or_else(back)
    }
}

/// A lock on part of an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lock {
    /// The open file.
    pub handle: u64,
    /// Who holds it: locks of one owner on one file do not conflict.
    pub owner: u64,
    /// First byte.
    pub start: u64,
    /// Last byte.
    pub end: u64,
    /// Which.
    pub kind: LockKind,
}

/// What a lock allows others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// To hold shared locks too.
    Shared,
    /// Nothing.
    Exclusive,
    /// Everything: the lock is given back.
    Free,
}

/// A lock that is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conflict {
    /// First byte.
    pub start: u64,
    /// Last byte.
    pub end: u64,
    /// Which.
    pub kind: LockKind,
}

/// What came of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Changed {
    /// It is done.
    Done,
    /// It is done, and this is what became of it.
    Attr(Attr),
    /// The open file. The number is of the run of the serving side: another one may have lost what was not on the disk. The bytes are
    /// all of its content, read after the attributes, where [`OpenHow::whole`] asked for that.
    Opened(Opened, u64, Option<Bytes>),
    /// The lock that is in the way, if there is one.
    Conflict(Option<Conflict>),
}

impl Changed {
    /// The attributes, of an answer that must hold them.
    pub fn attr(self) -> Result<Attr, TreeError> {
        match self {
            Self::Attr(attr) => Ok(attr),
            _ => Err(TreeError::Protocol("an answer without attributes")),
        }
    }

    /// The open file, of an answer that must hold it.
    pub fn opened(self) -> Result<(Opened, u64), TreeError> {
        match self {
            Self::Opened(opened, run, _) => Ok((opened, run)),
            _ => Err(TreeError::Protocol("an answer without a handle")),
        }
    }

    /// The content that came with an open file.
    pub fn whole(&self) -> Option<Bytes> {
        match self {
            Self::Opened(_, _, whole) => whole.clone(),
            _ => None,
        }
    }
}

/// Bytes to be written.
#[derive(Debug, Clone)]
pub struct WriteRequest {
    /// Of a file that was opened for writing.
    pub handle: u64,
    /// First byte.
    pub offset: u64,
    /// Whether they belong at the end of the file, wherever that is, and not at `offset`.
    pub append: bool,
    /// The bytes, [`MAX_WRITE`] at most.
    pub data: Bytes,
}

/// Takes the answer of a write: what the file is like afterwards.
pub type WriteDone = Box<dyn FnOnce(Result<Attr, TreeError>) + Send>;
