//! Advisory locks that another end holds on files of a served folder.
//!
//! A lock belongs to an owner at the other end and is taken for an open file description of that owner's, made for nothing else
//! (`F_OFD_SETLK`, `fcntl(2)`). So owners exclude each other, and programs of this machine, and all that an end holds is free when
//! its [`Locks`] are dropped. As on NFS, `flock(2)` of the other end is a lock on the whole file.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rustix::fs::{Mode, OFlags};

use super::{by_handle, fault};
use crate::tree::{Conflict, Lock, LockKind, TreeError};
use sealway_drop::lock as hold;

/// Owners of locks that one end may have at a time, over all files.
const OWNERS: usize = 1024;

/// Ranges that one owner may have locked in one file at a time.
const RANGES: usize = 1024;

/// Locks of one end.
#[derive(Debug, Default)]
pub struct Locks(Mutex<HashMap<Key, Held>>);

/// Device and number of the file, and its owner at the other end.
type Key = (u64, u64, u64);

#[derive(Debug)]
struct Held {
    file: OwnedFd,
    /// First and last byte of each range.
    ranges: Vec<(u64, u64)>,
}

impl Locks {
    /// Takes a lock or gives one back.
    pub(super) fn set(&self, file: &OwnedFd, lock: &Lock) -> Result<(), TreeError> {
        let key = key_of(file, lock.owner)?;
        let mut held = hold(&self.0);
        let full = held.len() >= OWNERS;
        let of = match held.entry(key) {
            Entry::Occupied(of) => of.into_mut(),
            Entry::Vacant(_) if lock.kind == LockKind::Free => return Ok(()),
            Entry::Vacant(_) if full => return Err(TreeError::Limit),
            Entry::Vacant(of) => of.insert(Held {
                file: description(file)?,
                ranges: Vec::new(),
            }),
        };
        let mut ranges = without(&of.ranges, (lock.start, lock.end));
        if lock.kind != LockKind::Free {
            ranges.push((lock.start, lock.end));
        }
        let done = match ranges.len() > RANGES {
            true => Err(TreeError::Limit),
            false => ask(&of.file, lock),
        };
        if done.is_ok() {
            of.ranges = ranges;
        }
        if of.ranges.is_empty() {
            held.remove(&key);
        }
        done
    }

    /// What is in the way of a lock.
    pub(super) fn test(&self, file: &OwnedFd, lock: &Lock) -> Result<Option<Conflict>, TreeError> {
        let key = key_of(file, lock.owner)?;
        let held = hold(&self.0);
        let other;
        let file = match held.get(&key) {
            Some(held) => &held.file,
            None => {
                other = description(file)?;
                &other
            }
        };
        let mut found = flock_of(lock);
        fcntl(file.as_fd(), FcntlArg::F_OFD_GETLK(&mut found)).map_err(error_of)?;
        let kind = match i32::from(found.l_type) {
            libc::F_RDLCK => LockKind::Shared,
            libc::F_WRLCK => LockKind::Exclusive,
            _ => return Ok(None),
        };
        let start = u64::try_from(found.l_start).unwrap_or_default();
        let end = match u64::try_from(found.l_len) {
            Ok(len) if len > 0 => start.saturating_add(len - 1),
            _ => i64::MAX as u64,
        };
        Ok(Some(Conflict { start, end, kind }))
    }
}

fn key_of(file: &OwnedFd, owner: u64) -> Result<Key, TreeError> {
    let stat = rustix::fs::fstat(file).map_err(fault)?;
    Ok((stat.st_dev, stat.st_ino, owner))
}

/// Another open of the same file, whatever its name is by now: for both kinds of locks if the file allows it.
fn description(file: &OwnedFd) -> Result<OwnedFd, TreeError> {
    let open = |flags| rustix::fs::open(by_handle(file), flags | OFlags::CLOEXEC, Mode::empty());
    open(OFlags::RDWR)
        .or_else(|_| open(OFlags::RDONLY))
        .or_else(|_| open(OFlags::WRONLY))
        .map_err(fault)
}

fn flock_of(lock: &Lock) -> libc::flock {
    let end = lock.end.min(i64::MAX as u64);
    let start = lock.start.min(end);
    let kind = match lock.kind {
        LockKind::Shared => libc::F_RDLCK,
        LockKind::Exclusive => libc::F_WRLCK,
        LockKind::Free => libc::F_UNLCK,
    };
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: i64::try_from(start).unwrap_or(i64::MAX),
        // 0 is as far as a file can go.
        l_len: match end {
            end if end == i64::MAX as u64 => 0,
            end => i64::try_from(end - start).unwrap_or(i64::MAX).saturating_add(1),
        },
        l_pid: 0,
    }
}

fn ask(file: &OwnedFd, lock: &Lock) -> Result<(), TreeError> {
    let flock = flock_of(lock);
    let asked = fcntl(file.as_fd(), FcntlArg::F_OFD_SETLK(&flock));
    asked.map(drop).map_err(error_of)
}

fn error_of(error: Errno) -> TreeError {
    match error {
        Errno::EAGAIN | Errno::EACCES => TreeError::Locked,
        Errno::EBADF => TreeError::Denied,
        Errno::EINVAL => TreeError::Invalid("no such range"),
        Errno::ENOLCK | Errno::ENOMEM => TreeError::Limit,
        _ => TreeError::Failed,
    }
}

/// The ranges, less this one.
fn without(ranges: &[(u64, u64)], (start, end): (u64, u64)) -> Vec<(u64, u64)> {
    let mut left = Vec::with_capacity(ranges.len() + 1);
    for &(from, to) in ranges {
        if to < start || from > end {
            left.push((from, to));
            continue;
        }
        if let Some(before) = start.checked_sub(1).filter(|before| *before >= from) {
            left.push((from, before));
        }
        if let Some(after) = end.checked_add(1).filter(|after| *after <= to) {
            left.push((after, to));
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(owner: u64, (start, end): (u64, u64), kind: LockKind) -> Lock {
        Lock {
            handle: 0,
            owner,
            start,
            end,
            kind,
        }
    }

    #[test]
    fn ranges_are_counted_as_the_system_counts_them() {
        let ranges = [(0, 9), (20, 29)];
        assert_eq!(without(&ranges, (5, 24)), [(0, 4), (25, 29)]);
        assert_eq!(without(&ranges, (22, 23)), [(0, 9), (20, 21), (24, 29)]);
        assert_eq!(without(&ranges, (0, u64::MAX)), []);
        assert_eq!(without(&ranges, (10, 19)), ranges);
    }

    #[test]
    fn owners_exclude_each_other_and_all_ends_with_the_end() {
        use LockKind::{Exclusive, Free, Shared};
        let file: OwnedFd = tempfile::tempfile().unwrap().into();
        let (one, two) = (Locks::default(), Locks::default());
        one.set(&file, &lock(1, (0, 9), Exclusive)).unwrap();
        // The same owner, once more and upgraded; another owner, of the same end and of another.
        one.set(&file, &lock(1, (5, 20), Shared)).unwrap();
        assert_eq!(one.set(&file, &lock(2, (0, 0), Shared)), Err(TreeError::Locked));
        assert_eq!(two.set(&file, &lock(1, (4, 4), Shared)), Err(TreeError::Locked));
        two.set(&file, &lock(1, (10, 20), Shared)).unwrap();
        let conflict = two.test(&file, &lock(1, (0, 100), Exclusive)).unwrap().unwrap();
        assert_eq!((conflict.start, conflict.end, conflict.kind), (0, 4, Exclusive));
        one.set(&file, &lock(1, (0, i64::MAX as u64), Free)).unwrap();
        assert!(hold(&one.0).is_empty(), "nothing is kept for who holds nothing");
        two.set(&file, &lock(1, (0, i64::MAX as u64), Exclusive)).unwrap();
        assert_eq!(one.set(&file, &lock(1, (7, 7), Shared)), Err(TreeError::Locked));
        drop(two);
        one.set(&file, &lock(1, (7, 7), Shared)).unwrap();
    }

    #[test]
    fn nobody_holds_more_than_there_is_a_limit_for() {
        let file: OwnedFd = tempfile::tempfile().unwrap().into();
        let locks = Locks::default();
        for at in 0..RANGES as u64 {
            locks.set(&file, &lock(1, (2 * at, 2 * at), LockKind::Shared)).unwrap();
        }
        let more = lock(1, (1 << 40, 1 << 40), LockKind::Shared);
        assert_eq!(locks.set(&file, &more), Err(TreeError::Limit));
        for owner in 2..=OWNERS as u64 {
            locks.set(&file, &lock(owner, (0, 0), LockKind::Shared)).unwrap();
        }
        let other = lock(u64::MAX, (0, 0), LockKind::Shared);
        assert_eq!(locks.set(&file, &other), Err(TreeError::Limit));
    }
}
