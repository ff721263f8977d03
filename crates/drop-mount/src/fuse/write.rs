//! Content that programs write, and how they get to know what became of it.

use std::sync::Arc;

use bytes::Bytes;
use fuser::{Errno, LockOwner, ReplyWrite};

use super::core::Core;
use super::errno;
use crate::tree::{Attr, Change, MAX_WRITE, Place, TreeError, WriteRequest};
use sealway_drop::lock;

/// What a program writes.
pub(super) struct Write {
    ino: u64,
    fh: u64,
    handle: Option<u64>,
    offset: u64,
    append: bool,
    data: Bytes,
}

impl Write {
    /// Of the open file at the peer; 0 if there is none.
    pub(super) fn handle(&self) -> u64 {
        self.handle.unwrap_or(0)
    }
}

impl Core {
    /// Takes over what the kernel lends.
    pub(super) fn take_in(&self, ino: u64, fh: u64, (offset, append): (u64, bool), data: &[u8]) -> Write {
        let mut buffer = self.buffers.take();
        buffer.clear();
        buffer.extend_from_slice(data);
        Write {
            ino,
            fh,
            handle: self.files.handle(fh),
            offset,
            append,
            data: self.buffers.share(buffer, 0..data.len()),
        }
    }

    /// Sends what a program writes, and lets it go on when there is room for more.
    pub(super) fn write(self: &Arc<Self>, write: Write, reply: ReplyWrite) {
        let Write {
            ino,
            fh,
            handle,
            mut offset,
            append,
            mut data,
        } = write;
        let Some(handle) = handle else {
            return reply.error(Errno::EBADF);
        };
        // Told again by the next call that asks how the writes went.
        if let Some(fault) = self.files.fault(fh) {
            return reply.error(errno(fault));
        }
        if self.has_ended() || !self.tree.is_alive() {
            return reply.error(Errno::EIO);
        }
        let len = data.len() as u32;
        while !data.is_empty() {
            let piece = data.split_to(data.len().min(MAX_WRITE));
            let (bytes, from) = (piece.len() as u64, offset);
            offset = offset.saturating_add(bytes);
            let number = self.writes.begin(ino, bytes);
            let core = Arc::downgrade(self);
            let request = WriteRequest {
                handle,
                offset: from,
                append,
                data: piece,
            };
            let done = move |result: Result<Attr, TreeError>| {
                let Some(core) = core.upgrade() else { return };
                match result {
                    Ok(attr) => {
                        core.own(ino, &attr);
                        if append && attr.size != from.saturating_add(bytes) {
                            // Somebody else has written there too, so the kernel has a wrong size.
                            core.notices.content(ino);
                        }
                    }
                    Err(error) => {
                        core.files.failed(ino, error);
                        // The kernel has bytes that are nowhere else.
                        core.nodes().doubt(ino);
                        core.notices.content(ino);
                    }
                }
                for answer in core.writes.end(number, ino, bytes) {
                    answer();
                }
            };
            self.tree.write(request, Box::new(done));
        }
        if let Some(answer) = self.writes.admit(Box::new(move || reply.written(len))) {
            answer();
        }
    }

    /// The same when there is no way for it now: the program waits for one.
    pub(super) fn write_when_prepared(self: &Arc<Self>, thread: u32, write: Write, reply: ReplyWrite) {
        match self.steady(thread, |call| self.tree.prepare(write.handle(), call)) {
            Ok(()) => self.write(write, reply),
            Err(error) => reply.error(errno(error)),
        }
    }

    /// Waits until what programs wrote before has arrived or failed, of a file or of all.
    pub(super) fn settle(&self, thread: u32, ino: Option<u64>) -> Result<(), TreeError> {
        if !self.options.writable {
            return Ok(());
        }
        self.steady(thread, |call| self.writes.settle(ino, call))
    }

    /// Whether a file can be closed at once: all that was written to it has arrived, and there is no lock to be given back.
    pub(super) fn is_quiet(&self, ino: u64, fh: u64) -> bool {
        !self.has_ended()
            && self.tree.is_alive()
            && self.writes.is_settled(ino)
            && self.files.fault(fh).is_none()
            && !lock(&self.locks).keys().any(|(of, _)| *of == ino)
    }

    /// A program closes a file: it is told how its writes went.
    pub(super) fn flush(&self, thread: u32, (ino, fh): (u64, u64), owner: LockOwner) -> Result<(), TreeError> {
        let settled = self.settle(thread, Some(ino));
        // This may be the close of a copy, at whose result nobody looks: an fsync tells it too.
        let told = self.files.fault(fh).map_or(Ok(()), Err);
        self.free_locks(thread, ino, owner.0);
        told.and(settled)
    }

    /// Brings a file to the disk of the other end.
    pub(super) fn sync(&self, thread: u32, (ino, fh): (u64, u64), content_only: bool) -> Result<(), TreeError> {
        let settled = self.settle(thread, Some(ino));
        self.files.take_fault(fh)?;
        settled?;
        let handle = self.files.handle(fh).ok_or(TreeError::Stale)?;
        self.change(thread, &Change::Sync(Place::Handle(handle), content_only))?;
        Ok(())
    }

    /// Brings names of a directory to the disk of the other end.
    pub(super) fn sync_directory(&self, thread: u32, ino: u64) -> Result<(), TreeError> {
        let path = self.path(ino)?;
        self.change(thread, &Change::Sync(Place::Path(path), false))?;
        Ok(())
    }

    /// The last program has closed a file.
    pub(super) fn release_changing(&self, ino: u64, fh: u64, owner: Option<LockOwner>) {
        // It is closed at the other end once it has all that was written.
        let settled = self.settle(0, Some(ino));
        if let Some(error) = self.files.fault(fh).or(settled.err()) {
            tracing::warn!(%error, "a file was closed whose last writes failed");
        }
        if let Some(owner) = owner {
            self.free_locks(0, ino, owner.0);
        }
        self.release(fh);
    }
}
