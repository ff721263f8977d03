//! What programs change about names and attributes.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileHandle, FopenFlags, INodeNo, OpenFlags, RenameFlags, ReplyOpen, TimeOrNow};
use rustix::fs::OFlags;

use super::copies::Source;
use super::core::Core;
use super::errno;
use crate::tree::{
    Access, Attr, Call, Change, Changed, Kind, MAX_WHOLE, NewTime, OpenHow, Opened, Place, RenameHow, Setting, Time,
    TreeError, TreePath,
};

/// As `open(2)` names it.
pub(super) const APPEND: i32 = OFlags::APPEND.bits() as i32;

/// Names of files that SQLite's WAL mode shares memory by end so.
const SHARED_MEMORY: &[u8] = b"-shm";

/// A name in a directory.
pub(super) struct NewName {
    parent: u64,
    name: Vec<u8>,
}

impl NewName {
    pub(super) fn new(parent: INodeNo, name: &OsStr) -> Self {
        Self {
            parent: parent.0,
            name: name.as_bytes().to_vec(),
        }
    }

    fn path(&self, core: &Core) -> Result<TreePath, TreeError> {
        core.path(self.parent)?.join(&self.name)
    }
}

/// Attributes that a program wants to set.
pub(super) struct Asked {
    pub(super) owner: (Option<u32>, Option<u32>),
    pub(super) size: Option<u64>,
    pub(super) mode: Option<u32>,
    pub(super) times: (Option<TimeOrNow>, Option<TimeOrNow>),
}

impl Core {
    /// A call for a change: only a task that is killed calls it off.
    pub(super) fn steady<T>(
        &self,
        thread: u32,
        call: impl FnOnce(&Call) -> Result<T, TreeError>,
    ) -> Result<T, TreeError> {
        self.is_there()?;
        self.calls.run_as(thread, self.options.timeout, true, call)
    }

    pub(super) fn change(&self, thread: u32, change: &Change) -> Result<Changed, TreeError> {
        if !self.options.writable {
            return Err(TreeError::ReadOnly);
        }
        self.steady(thread, |call| self.tree.change(change, call))
    }

    /// What this end has changed is like that now. The kernel knows it already.
    pub(super) fn own(&self, ino: u64, attr: &Attr) {
        let mut nodes = self.nodes();
        nodes.update(ino, attr);
        nodes.doubt(ino);
        drop(nodes);
        self.refresh(ino, attr);
        self.files.own(ino, attr);
    }

    /// The kernel may be given attributes that came with an answer of another kind. Not of a directory: what is made in it changes it.
    fn refresh(&self, ino: u64, attr: &Attr) {
        if let (Kind::File, Some(until)) = (attr.kind, Instant::now().checked_add(self.options.ttl)) {
            self.nodes().refresh(ino, until);
        }
    }

    /// The number of a name that the kernel knows, where that matters.
    pub(super) fn child(&self, parent: u64, name: &[u8]) -> Option<u64> {
        self.options
            .writable
            .then(|| self.nodes().child(parent, name))
            .flatten()
    }

    /// What a file is like that is open, whether or not it has a name.
    pub(super) fn look_at_open(&self, thread: u32, ino: u64) -> Option<Attr> {
        if !self.options.writable {
            return None;
        }
        let handle = self.files.handle_of(ino)?;
        let attr = self.change(thread, &Change::Look(handle)).ok()?.attr().ok()?;
        self.own(ino, &attr);
        Some(attr)
    }

    /// Opens a file and answers.
    pub(super) fn open_changing(&self, thread: u32, ino: u64, flags: OpenFlags, reply: ReplyOpen) {
        match self.opened_for(thread, ino, flags) {
            Ok((fh, flags)) => reply.opened(FileHandle(fh), flags),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn opened_for(&self, thread: u32, ino: u64, flags: OpenFlags) -> Result<(u64, FopenFlags), TreeError> {
        self.settle(thread, Some(ino))?;
        let path = self.path(ino)?;
        let mut how = OpenHow {
            create: None,
            exclusive: false,
            ..how_of(flags)
        };
        if how.access == Access::Read && !how.truncate && !self.nodes().may_have_pages(ino) {
            how.whole = MAX_WHOLE;
        }
        let opened = match self.change(thread, &Change::Open(path.clone(), how)) {
            // The kernel knows a name that is gone: it is to look again, as it may be about to make the file.
            Err(TreeError::NotFound) => return Err(TreeError::Stale),
            opened => opened?,
        };
        let whole = opened.whole();
        let (opened, _) = opened.opened()?;
        if !self.nodes().is_same(ino, &opened.attr) {
            self.tree.close(opened.handle);
            return Err(TreeError::Stale);
        }
        if self.nodes().differs(ino, &opened.attr)
            && let Some(notifier) = self.notifier.get()
        {
            // As for files that are only read.
            let _ = notifier.inval_inode(INodeNo(ino), -1, 0);
        }
        match how.truncate {
            true => self.own(ino, &opened.attr),
            false => {
                // The kernel lets go of the content by the answer, which does not say that it may keep it.
                self.learnt(ino, &opened.attr);
                self.refresh(ino, &opened.attr);
            }
        }
        let mut to_kernel = flags_of(&path, flags);
        if self.nodes().keep_cache(ino, opened.attr.version) && !how.truncate {
            to_kernel |= FopenFlags::FOPEN_KEEP_CACHE;
        }
        let until = Instant::now().checked_add(self.options.ttl);
        let source = match whole.zip(until) {
            Some((whole, until)) => Source::Whole(whole, until),
            None => Source::Peer(None),
        };
        Ok((self.files.insert(ino, &opened, source), to_kernel))
    }

    /// Makes a file, or opens the one that is there.
    pub(super) fn create(
        &self,
        thread: u32,
        at: &NewName,
        mode: u32,
        flags: OpenFlags,
    ) -> Result<(FileAttr, u64, FopenFlags), TreeError> {
        let path = at.path(self)?;
        let how = OpenHow {
            create: Some(mode & 0o777),
            ..how_of(flags)
        };
        let opened = self.change(thread, &Change::Open(path.clone(), how))?;
        let (opened, _): (Opened, u64) = opened.opened()?;
        let shown = self.made(at, &opened.attr);
        let fh = self.files.insert(shown.ino.0, &opened, Source::Peer(None));
        Ok((shown, fh, flags_of(&path, flags)))
    }

    /// Makes a file, as `mknod(2)` does. There are no devices, and none of the rest.
    pub(super) fn make_node(&self, thread: u32, at: &NewName, mode: u32) -> Result<FileAttr, TreeError> {
        const FORMAT: u32 = 0o170_000;
        const REGULAR: u32 = 0o100_000;
        if mode & FORMAT != REGULAR {
            return Err(TreeError::Refused);
        }
        let how = OpenHow {
            create: Some(mode & 0o777),
            exclusive: true,
            ..OpenHow::default()
        };
        let opened = self.change(thread, &Change::Open(at.path(self)?, how))?;
        let (opened, _) = opened.opened()?;
        self.tree.close(opened.handle);
        Ok(self.made(at, &opened.attr))
    }

    /// Makes a directory or a link.
    pub(super) fn make(
        &self,
        thread: u32,
        at: &NewName,
        change: impl FnOnce(TreePath) -> Change,
    ) -> Result<FileAttr, TreeError> {
        let attr = self.change(thread, &change(at.path(self)?))?.attr()?;
        Ok(self.made(at, &attr))
    }

    fn made(&self, at: &NewName, attr: &Attr) -> FileAttr {
        let ino = self.nodes().remember(at.parent, &at.name, attr);
        self.own(ino, attr);
        self.show(ino, attr)
    }

    pub(super) fn remove(
        &self,
        thread: u32,
        at: &NewName,
        change: impl FnOnce(TreePath) -> Change,
    ) -> Result<(), TreeError> {
        self.change(thread, &change(at.path(self)?))?;
        self.nodes().unname(at.parent, &at.name);
        Ok(())
    }

    pub(super) fn rename(
        &self,
        thread: u32,
        from: &NewName,
        to: &NewName,
        flags: RenameFlags,
    ) -> Result<(), TreeError> {
        let how = match flags {
            flags if flags.is_empty() => RenameHow::Replace,
            RenameFlags::RENAME_NOREPLACE => RenameHow::Keep,
            RenameFlags::RENAME_EXCHANGE => RenameHow::Exchange,
            _ => return Err(TreeError::Invalid("no such way to rename")),
        };
        self.change(thread, &Change::Rename(from.path(self)?, to.path(self)?, how))?;
        let (from, to) = ((from.parent, &*from.name), (to.parent, &*to.name));
        self.nodes().rename(from, to, how == RenameHow::Exchange);
        Ok(())
    }

    pub(super) fn set(&self, thread: u32, (ino, fh): (u64, Option<u64>), asked: Asked) -> Result<FileAttr, TreeError> {
        let another = |asked: Option<u32>, own: u32| asked.is_some_and(|asked| asked != own);
        if another(asked.owner.0, self.owner.0) || another(asked.owner.1, self.owner.1) {
            return Err(TreeError::Refused);
        }
        let setting = Setting {
            size: asked.size,
            mode: asked.mode.map(|mode| mode & 0o777),
            atime: asked.times.0.map(new_time),
            mtime: asked.times.1.map(new_time),
        };
        if setting == Setting::default() {
            return Ok(self.attr(thread, ino, fh)?.0);
        }
        let by_handle = fh
            .filter(|_| setting.size.is_some())
            .and_then(|fh| self.files.handle(fh));
        let place = match (by_handle, self.path(ino)) {
            (Some(handle), _) => Place::Handle(handle),
            (None, Ok(path)) => Place::Path(path),
            // Without a name, but open.
            (None, Err(error)) => Place::Handle(self.files.handle_of(ino).ok_or(error)?),
        };
        let attr = self.change(thread, &Change::Set(place, setting))?.attr()?;
        if !self.nodes().is_same(ino, &attr) {
            return Err(TreeError::Stale);
        }
        self.own(ino, &attr);
        Ok(self.show(ino, &attr))
    }

    pub(super) fn allocate(
        &self,
        thread: u32,
        (ino, fh): (u64, u64),
        mode: i32,
        (offset, len): (u64, u64),
    ) -> Result<(), TreeError> {
        let handle = self.files.handle(fh).ok_or(TreeError::Stale)?;
        let mode = u32::try_from(mode).map_err(|_| TreeError::Unsupported)?;
        let change = Change::Allocate {
            handle,
            mode,
            offset,
            len,
        };
        let attr = self.change(thread, &change)?.attr()?;
        self.own(ino, &attr);
        Ok(())
    }
}

fn how_of(flags: OpenFlags) -> OpenHow {
    let asked = OFlags::from_bits_retain(flags.0 as u32);
    OpenHow {
        access: match flags.acc_mode() {
            fuser::OpenAccMode::O_RDONLY => Access::Read,
            fuser::OpenAccMode::O_WRONLY => Access::Write,
            fuser::OpenAccMode::O_RDWR => Access::Both,
        },
        create: None,
        exclusive: asked.contains(OFlags::EXCL),
        truncate: asked.contains(OFlags::TRUNC),
        whole: 0,
    }
}

/// How the kernel is to treat an open file. What is appended has its place only at the other end, so the kernel keeps nothing of
/// it. Memory that programs share by a file cannot be shared by two machines: what would need it is refused.
fn flags_of(path: &TreePath, flags: OpenFlags) -> FopenFlags {
    let shared = path.as_bytes().ends_with(SHARED_MEMORY);
    if shared {
        tracing::warn!(
            file = ?path,
            "SQLite's WAL mode needs memory that all users of the database share, which a mount does not have, so it fails here; \
             set PRAGMA journal_mode=DELETE for the database where the folder is"
        );
    }
    match shared || flags.0 & APPEND != 0 {
        true => FopenFlags::FOPEN_DIRECT_IO,
        false => FopenFlags::empty(),
    }
}

fn new_time(time: TimeOrNow) -> NewTime {
    let time = match time {
        TimeOrNow::Now => return NewTime::Now,
        TimeOrNow::SpecificTime(time) => time,
    };
    NewTime::At(time_of(time))
}

fn time_of(time: SystemTime) -> Time {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => Time {
            seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
            nanoseconds: since.subsec_nanos(),
        },
        Err(before) => {
            let before = before.duration();
            let (whole, part) = (i64::try_from(before.as_secs()), before.subsec_nanos());
            Time {
                seconds: -whole.unwrap_or(i64::MAX) - i64::from(part > 0),
                nanoseconds: (1_000_000_000 - part) % 1_000_000_000,
            }
        }
    }
}
