//! The face of a tree of files that stands somewhere else.
//!
//! [`RemoteTree`] is what a mount needs of a peer and what a peer offers of a folder. Files are named by path, so the
//! side that serves keeps nothing but open handles, which are bounded. Control calls block and carry a [`Call`] with a
//! deadline and a cancel token. Reads are submitted and answered by a closure, in any order: whether they travel with
//! the control calls or on connections of their own is the implementation's matter.

mod call;
mod change;
mod error;
mod lasting;
mod memory;
mod path;
mod sinks;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;

pub(crate) use call::Slot;
pub use call::{Call, Cancel, Hook};
pub use change::{
    Access, Change, Changed, Conflict, Lock, LockKind, MAX_WHOLE, MAX_WRITE, NewTime, OpenHow, Place, RenameHow,
    Setting, WriteDone, WriteRequest,
};
pub use error::TreeError;
pub use lasting::{LastingTree, Lost};
pub use memory::MemoryTree;
pub use path::{MAX_NAME, MAX_PATH, TreePath, check_name};
pub(crate) use sinks::Sinks;

/// Most entries in one page of a directory.
pub const MAX_PAGE: usize = 1024;

/// Longest single read, in bytes.
pub const MAX_READ: u32 = 4 << 20;

/// A tree of files, directories and symbolic links, read only unless it takes a [`Change`].
///
/// Every call honours its [`Call`]: it ends soon after the deadline or the cancellation, with [`TreeError::Timeout`] or
/// [`TreeError::Cancelled`]. Once the way to the tree is lost, every call ends with [`TreeError::Lost`] at once.
pub trait RemoteTree: Send + Sync + 'static {
    /// Attributes of a path; a symbolic link is described, not followed.
    fn attr(&self, path: &TreePath, call: &Call) -> Result<Attr, TreeError>;

    /// One page of a directory: at most `limit` entries (and at most [`MAX_PAGE`]) from `cursor` on; 0 is the start.
    /// Without "." and "..".
    fn list(&self, path: &TreePath, cursor: u64, limit: usize, call: &Call) -> Result<Page, TreeError>;

    /// What a symbolic link says, as bytes. It may point anywhere; it is shown, never followed.
    fn read_link(&self, path: &TreePath, call: &Call) -> Result<Vec<u8>, TreeError>;

    /// Opens a regular file for reading.
    fn open(&self, path: &TreePath, call: &Call) -> Result<Opened, TreeError>;

    /// Starts a read; `done` is called exactly once, on any thread, perhaps before this returns.
    ///
    /// The answer holds exactly the bytes asked for, or fewer only if the file ends there; see [`Chunk`].
    fn submit(&self, request: ReadRequest, done: ReadDone);

    /// Closes a handle. Does not block and does not fail: a handle unknown or lost with its connection is closed.
    fn close(&self, handle: u64);

    /// Asks for news of changes, until the answer is dropped. `sink` must not block.
    fn subscribe(&self, sink: EventSink) -> Result<Subscription, TreeError>;

    /// Where an open file holds data from `offset` on. A tree that does not know says [`TreeError::Invalid`].
    fn extent(&self, handle: u64, offset: u64, call: &Call) -> Result<Extent, TreeError> {
        let _ = (handle, offset, call);
        Err(TreeError::Invalid("nobody knows where holes are"))
    }

    /// Room where the tree stands. A tree that does not know says [`TreeError::Invalid`].
    fn space(&self, call: &Call) -> Result<Space, TreeError> {
        let _ = call;
        Err(TreeError::Invalid("nobody knows how much room there is"))
    }

    /// Does a change, once: what was lost on the way with [`TreeError::Lost`] may have been done.
    fn change(&self, change: &Change, call: &Call) -> Result<Changed, TreeError> {
        let _ = (change, call);
        Err(TreeError::ReadOnly)
    }

    /// Starts a write; `done` is called exactly once, on any thread, perhaps before this returns. Writes and changes are done
    /// in the order in which they were given.
    fn write(&self, request: WriteRequest, done: WriteDone) {
        let _ = request;
        done(Err(TreeError::ReadOnly));
    }

    /// Whether a write by this handle would be on its way at once; if not, [`RemoteTree::prepare`] waits for that.
    fn is_prepared(&self, handle: u64) -> bool {
        let _ = handle;
        true
    }

    /// See [`RemoteTree::is_prepared`].
    fn prepare(&self, handle: u64, call: &Call) -> Result<(), TreeError> {
        let _ = (handle, call);
        Ok(())
    }

    /// Whether the tree can still be reached.
    fn is_alive(&self) -> bool {
        true
    }

    /// Reads and waits for the answer.
    fn read(&self, handle: u64, offset: u64, len: u32, call: &Call) -> Result<Chunk, TreeError> {
        let slot = Slot::new();
        let cancel = Cancel::new();
        let (answer, cancelled) = (Arc::clone(&slot), Arc::clone(&slot));
        let inner = cancel.clone();
        let _hook = call.cancel.on_cancel(move || {
            inner.cancel();
            cancelled.wake();
        });
        let request = ReadRequest {
            handle,
            offset,
            len,
            deadline: call.deadline,
            cancel: cancel.clone(),
        };
        self.submit(request, Box::new(move |result| drop(answer.put(result))));
        let result = slot.wait(call);
        if result.is_err() {
            cancel.cancel();
        }
        result.and_then(|chunk| chunk.checked(offset, len))
    }

    /// As [`RemoteTree::read`], into memory of the caller's, at most [`MAX_READ`] bytes of it.
    fn read_into(&self, handle: u64, offset: u64, buffer: &mut [u8], call: &Call) -> Result<Filled, TreeError> {
        let len = u32::try_from(buffer.len()).map_err(|_| TreeError::Invalid("too long a read"))?;
        let Chunk { data, size, version } = self.read(handle, offset, len, call)?;
        // No longer than the buffer: it was checked.
        buffer[..data.len()].copy_from_slice(&data);
        Ok(Filled {
            len: data.len(),
            size,
            version,
        })
    }
}

/// Calls of a [`RemoteTree`] that the tree in this field answers.
#[doc(hidden)]
#[macro_export]
macro_rules! forward {
    ($field:ident: $($call:ident),+) => { $($crate::forward!(@ $field $call);)+ };
    (@ $field:ident attr) => { $crate::forward!(@ $field attr(path: &TreePath, call: &Call) -> Result<Attr, TreeError>); };
    (@ $field:ident list) => {
        $crate::forward!(@ $field list(path: &TreePath, at: u64, limit: usize, call: &Call) -> Result<Page, TreeError>);
    };
    (@ $field:ident read_link) => {
        $crate::forward!(@ $field read_link(path: &TreePath, call: &Call) -> Result<Vec<u8>, TreeError>);
    };
    (@ $field:ident open) => { $crate::forward!(@ $field open(path: &TreePath, call: &Call) -> Result<Opened, TreeError>); };
    (@ $field:ident extent) => {
        $crate::forward!(@ $field extent(handle: u64, offset: u64, call: &Call) -> Result<Extent, TreeError>);
    };
    (@ $field:ident space) => { $crate::forward!(@ $field space(call: &Call) -> Result<Space, TreeError>); };
    (@ $field:ident submit) => { $crate::forward!(@ $field submit(request: ReadRequest, done: ReadDone) -> ()); };
    (@ $field:ident close) => { $crate::forward!(@ $field close(handle: u64) -> ()); };
    (@ $field:ident subscribe) => { $crate::forward!(@ $field subscribe(sink: EventSink) -> Result<Subscription, TreeError>); };
    (@ $field:ident is_alive) => { $crate::forward!(@ $field is_alive() -> bool); };
    (@ $field:ident $call:ident($($name:ident: $kind:ty),*) -> $answer:ty) => {
        fn $call(&self, $($name: $kind),*) -> $answer {
            self.$field.$call($($name),*)
        }
    };
}

/// What a file is. Anything else in a folder is hidden.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file.
    #[default]
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
}

/// A point in time: seconds since 1970 and nanoseconds (below 10^9).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time {
    /// Seconds since 1970, negative before.
    pub seconds: i64,
    /// Nanoseconds past that second.
    pub nanoseconds: u32,
}

/// Attributes of one file, directory or link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attr {
    /// Which object this is: equal for two looks at the same object, different after it was replaced.
    pub node: u64,
    /// File, directory or link.
    pub kind: Kind,
    /// Bytes; for a link the length of what it says.
    pub size: u64,
    /// Permission bits, 0o7777 at most.
    pub mode: u32,
    /// Last change of the content.
    pub mtime: Time,
    /// Last change of content or attributes.
    pub ctime: Time,
    /// Names that the object has.
    pub nlink: u32,
    /// Changes whenever the content may have changed. Never means anything across two objects.
    pub version: u64,
    /// Bytes on the disk, fewer than `size` where there are holes.
    pub allocated: u64,
}

/// Where data and holes of a file are, seen from a place in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The first byte from there on that is data, if there is one.
    pub data: Option<u64>,
    /// The first byte from there on that is in a hole; the end of the file counts as one.
    pub hole: u64,
}

/// Room of a file system, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Space {
    /// All there is.
    pub total: u64,
    /// What is free.
    pub free: u64,
    /// What of it the owner of the tree may use.
    pub available: u64,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name: one path component, any bytes but NUL and '/'.
    pub name: Vec<u8>,
    /// What it is.
    pub attr: Attr,
}

/// Part of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// The entries, in the directory's own order.
    pub entries: Vec<Entry>,
    /// Where the next page starts; `None` after the last.
    pub next: Option<u64>,
}

/// An open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// Names the open file in reads.
    pub handle: u64,
    /// Attributes when it was opened.
    pub attr: Attr,
}

/// A read under way.
#[derive(Debug, Clone)]
pub struct ReadRequest {
    /// Of [`RemoteTree::open`].
    pub handle: u64,
    /// First byte.
    pub offset: u64,
    /// Bytes wanted, at most [`MAX_READ`].
    pub len: u32,
    /// When the answer is no longer wanted.
    pub deadline: Instant,
    /// Fires when nobody wants the answer any more.
    pub cancel: Cancel,
}

/// Takes the answer of a read.
pub type ReadDone = Box<dyn FnOnce(Result<Chunk, TreeError>) + Send>;

/// Bytes of a file, with what the file was like when they were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The bytes: as many as asked for, unless the file ends at `size`.
    pub data: Bytes,
    /// Size of the file at that time.
    pub size: u64,
    /// Version of the file, taken no later than the bytes: they may be newer than it says, never older.
    pub version: u64,
}

/// A [`Chunk`] whose bytes stand in memory of the caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled {
    /// Number of bytes.
    pub len: usize,
    /// As [`Chunk::size`].
    pub size: u64,
    /// As [`Chunk::version`].
    pub version: u64,
}

impl Chunk {
    /// The chunk, if it is as long as a read of `len` bytes at `offset` must be: a short answer that is not the end of
    /// the file is [`TreeError::Protocol`], so that no caller can take it for one.
    pub fn checked(self, offset: u64, len: u32) -> Result<Self, TreeError> {
        let due = self.size.saturating_sub(offset).min(u64::from(len));
        if self.data.len() as u64 == due {
            Ok(self)
        } else {
            Err(TreeError::Protocol("a read came back short"))
        }
    }
}

/// News of a change. News may come late or, when too much changes at once, as [`Event::Everything`]; what is remembered
/// of a tree also needs a time limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Content or attributes of this path changed.
    Changed(TreePath),
    /// The name of this path came, went, or means another object.
    Entry(TreePath),
    /// Anything may have changed.
    Everything,
    /// The tree cannot be reached any more.
    Lost,
}

/// Takes events; must not block.
pub type EventSink = Arc<dyn Fn(Event) + Send + Sync>;

/// Keeps events coming while it lives.
pub struct Subscription(#[expect(dead_code, reason = "held for what happens when it is dropped")] Box<dyn Send + Sync>);

impl Subscription {
    /// A subscription that ends when `guard` is dropped.
    pub fn new(guard: impl Send + Sync + 'static) -> Self {
        Self(Box::new(guard))
    }
}
