//! Advisory locks. They are the other end's; who waits for one is kept here, and asks again and again.

use std::sync::{Arc, Mutex};

use fuser::{INodeNo, LockOwner, ReplyEmpty};

use super::core::Core;
use super::{errno, waiters};
use crate::tree::{Attr, Change, Changed, Lock, LockKind, TreeError};
use sealway_drop::lock as hold;

/// As the kernel names them (`fcntl(2)`).
const F_RDLCK: i32 = 0;
const F_WRLCK: i32 = 1;
const F_UNLCK: i32 = 2;

impl Core {
    /// Takes a lock or gives one back. Who is to wait for it holds up nobody else.
    pub(super) fn lock(
        self: &Arc<Self>,
        thread: u32,
        (ino, fh): (u64, u64),
        owner: LockOwner,
        range: (u64, u64, i32),
        sleep: bool,
        reply: ReplyEmpty,
    ) {
        let lock = match self.lock_of(fh, owner, range) {
            Ok(lock) => lock,
            Err(error) => return reply.error(errno(error)),
        };
        match self.try_lock(thread, (ino, fh), &lock) {
            Ok(()) => reply.ok(),
            Err(TreeError::Locked) if sleep => self.wait_for_lock(thread, (ino, fh), lock, reply),
            Err(error) => reply.error(errno(error)),
        }
    }

    fn wait_for_lock(self: &Arc<Self>, thread: u32, of: (u64, u64), lock: Lock, reply: ReplyEmpty) {
        let (core, reply) = (Arc::downgrade(self), Arc::new(Mutex::new(Some(reply))));
        let waits = Arc::clone(&reply);
        let again = move || {
            let done = match core.upgrade().filter(|core| !core.has_ended()) {
                None => Err(TreeError::Lost),
                Some(_) if waiters::is_interrupted(thread) => Err(TreeError::Cancelled),
                Some(core) => core.try_lock(thread, of, &lock),
            };
            if done == Err(TreeError::Locked) {
                return false;
            }
            if let Some(reply) = hold(&waits).take() {
                match done {
                    Ok(()) => reply.ok(),
                    Err(error) => reply.error(errno(error)),
                }
            }
            true
        };
        if self.waiting_locks.add(Box::new(again)).is_err()
            && let Some(reply) = hold(&reply).take()
        {
            reply.error(errno(TreeError::Limit));
        }
    }

    /// The lock that is in the way: first byte, last byte and kind.
    pub(super) fn test_lock(
        &self,
        thread: u32,
        fh: u64,
        owner: LockOwner,
        range: (u64, u64, i32),
    ) -> Result<(u64, u64, i32), TreeError> {
        let lock = self.lock_of(fh, owner, range)?;
        let found = match self.change(thread, &Change::TestLock(lock))? {
            Changed::Conflict(found) => found,
            _ => return Err(TreeError::Protocol("an answer that says nothing of locks")),
        };
        Ok(found.map_or((0, 0, F_UNLCK), |found| {
            let kind = match found.kind {
                LockKind::Shared => F_RDLCK,
                LockKind::Exclusive => F_WRLCK,
                LockKind::Free => F_UNLCK,
            };
            (found.start, found.end, kind)
        }))
    }

    /// Gives back all locks that an owner has on a file.
    pub(super) fn free_locks(&self, thread: u32, ino: u64, owner: u64) {
        let Some(fh) = hold(&self.locks).get(&(ino, owner)).copied() else {
            return;
        };
        let freed = self
            .lock_of(fh, LockOwner(owner), (0, i64::MAX as u64, F_UNLCK))
            .and_then(|lock| self.try_lock(thread, (ino, fh), &lock));
        if let Err(error) = freed {
            tracing::debug!(%error, "giving back locks");
            hold(&self.locks).remove(&(ino, owner));
        }
    }

    fn lock_of(&self, fh: u64, owner: LockOwner, (start, end, kind): (u64, u64, i32)) -> Result<Lock, TreeError> {
        let handle = self.files.handle(fh).ok_or(TreeError::Stale)?;
        let kind = match kind {
            F_RDLCK => LockKind::Shared,
            F_WRLCK => LockKind::Exclusive,
            F_UNLCK => LockKind::Free,
            _ => return Err(TreeError::Invalid("an unknown kind of lock")),
        };
        let (owner, end) = (owner.0, end.min(i64::MAX as u64));
        Ok(Lock {
            handle,
            owner,
            start,
            end,
            kind,
        })
    }

    fn try_lock(&self, thread: u32, (ino, fh): (u64, u64), lock: &Lock) -> Result<(), TreeError> {
        // Who gets a lock sees what was written under it, and what was written is there before it is given back.
        self.settle(thread, Some(ino))?;
        let changed = self.change(thread, &Change::Lock(*lock))?;
        let mut locks = hold(&self.locks);
        match lock.kind {
            LockKind::Free if lock.start == 0 && lock.end == i64::MAX as u64 => {
                locks.remove(&(ino, lock.owner));
            }
            LockKind::Free => {}
            LockKind::Shared | LockKind::Exclusive => {
                locks.insert((ino, lock.owner), fh);
                drop(locks);
                self.see_under_lock(ino, &changed.attr()?);
            }
        }
        Ok(())
    }
}

impl Core {
    /// What the last owner of a lock did is not always told yet when the next one gets it.
    fn see_under_lock(&self, ino: u64, attr: &Attr) {
        let same = |known: &Attr| (known.size, known.mtime, known.ctime) == (attr.size, attr.mtime, attr.ctime);
        if self.nodes().attr(ino).is_some_and(|known| same(&known)) {
            return;
        }
        self.own(ino, attr);
        self.files.doubt(Some(ino));
        if let Some(notifier) = self.notifier.get() {
            // Waits for pages that are being read or written, by threads that wait for nobody here.
            let _ = notifier.inval_inode(INodeNo(ino), 0, 0);
        }
    }
}
