//! What an unfinished transfer has on disk, said by a file that only grows.
//!
//! The file begins with a header of 48 bytes: `SWJOURN` and the version 1, the number of the transfer (32), a check sum (8).
//! Records follow: length of the body (2), body, check sum (8). A body begins with its kind. All numbers are little endian.
//! A check sum is the start of BLAKE3, keyed by the number of the transfer, over the place in the file and what it covers:
//! no record counts in another journal or at another place. Reading ends at the first that does not fit; what a crash tore
//! off is cut and overwritten.
//!
//! The journal only says where to look. What it claims is compared with the sender's hashes before it is kept, so it need
//! not be on the disk itself for the result to be right.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::os::fd::OwnedFd;

use rustix::io::Errno;

use crate::entry::Time;
use sealway_drop::names::{RelPath, Rules};
use sealway_drop::ranges::Ranges;

const MAGIC: &[u8; 8] = b"SWJOURN\x01";
const SUM: usize = 8;
const HEADER: usize = MAGIC.len() + 32 + SUM;
/// The longest body: a path and some numbers.
const MAX_BODY: usize = 8 * 1024;
/// The most that is written and read. At a record for 8 MiB that is ten tebibytes; past it a later run finds less to keep.
const MAX_JOURNAL: u64 = 64 * 1024 * 1024;

/// One thing that a journal says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Record {
    /// A temporary file is for this file.
    File {
        slot: u32,
        path: RelPath,
        size: u64,
        mtime: Time,
    },
    /// These bytes of a temporary file were written.
    Covered { slot: u32, range: Range<u64> },
    /// These bytes of a temporary file turned out wrong.
    Discarded { slot: u32, range: Range<u64> },
    /// A temporary file is gone.
    Done { slot: u32 },
    /// A directory is about to be made, so its mode and time are ours to set.
    Directory { path: RelPath },
    /// It was not: it was there.
    Joined { path: RelPath },
}

/// A temporary file of an earlier run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Partial {
    pub(super) path: RelPath,
    pub(super) size: u64,
    pub(super) mtime: Time,
    pub(super) covered: Ranges,
}

/// What a journal says, all in all.
#[derive(Debug, Default)]
pub(super) struct Recovered {
    /// Temporary files by their numbers.
    pub(super) files: HashMap<u32, Partial>,
    /// Directories that were made.
    pub(super) directories: HashSet<RelPath>,
    /// Bytes of it that are good; 0 if not even the header is.
    pub(super) len: u64,
}

/// Reads a journal; whatever the bytes are, it takes the good part from the front.
pub(super) fn read(bytes: &[u8], transfer: &[u8; 32]) -> Recovered {
    let mut recovered = Recovered::default();
    let header = header(transfer);
    if bytes.get(..HEADER) != Some(header.as_slice()) {
        return recovered;
    }
    let mut at = HEADER;
    while let Some((record, len)) = bytes.get(at..).and_then(|rest| next(rest, at as u64, transfer)) {
        recovered.apply(record);
        at += len;
    }
    recovered.len = at as u64;
    recovered
}

impl Recovered {
    fn apply(&mut self, record: Record) {
        match record {
            Record::File {
                slot,
                path,
                size,
                mtime,
            } => {
                self.files.insert(
                    slot,
                    Partial {
                        path,
                        size,
                        mtime,
                        covered: Ranges::new(),
                    },
                );
            }
            Record::Covered { slot, range } => {
                if let Some(file) = self.files.get_mut(&slot) {
                    file.covered.insert(range.start..range.end.min(file.size));
                }
            }
            Record::Discarded { slot, range } => {
                if let Some(file) = self.files.get_mut(&slot) {
                    file.covered.remove(range);
                }
            }
            Record::Done { slot } => {
                self.files.remove(&slot);
            }
            Record::Directory { path } => {
                self.directories.insert(path);
            }
            Record::Joined { path } => {
                self.directories.remove(&path);
            }
        }
    }
}

fn header(transfer: &[u8; 32]) -> Vec<u8> {
    let mut header = Vec::with_capacity(HEADER);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(transfer);
    let sum = sum(transfer, 0, &header);
    header.extend_from_slice(&sum);
    header
}

fn sum(transfer: &[u8; 32], at: u64, bytes: &[u8]) -> [u8; SUM] {
    let mut hasher = blake3::Hasher::new_keyed(transfer);
    hasher.update(&at.to_le_bytes());
    hasher.update(bytes);
    let mut sum = [0; SUM];
    hasher.finalize_xof().fill(&mut sum);
    sum
}

/// The record at the front of `bytes` and its whole length.
fn next(bytes: &[u8], at: u64, transfer: &[u8; 32]) -> Option<(Record, usize)> {
    let (length, _) = bytes.split_first_chunk::<2>()?;
    let len = usize::from(u16::from_le_bytes(*length));
    if len > MAX_BODY {
        return None;
    }
    let covered = bytes.get(..2 + len)?;
    let stored = bytes.get(2 + len..2 + len + SUM)?;
    if stored != sum(transfer, at, covered) {
        return None;
    }
    Some((decode(covered.get(2..)?)?, 2 + len + SUM))
}

fn encode(record: &Record, at: u64, transfer: &[u8; 32]) -> Vec<u8> {
    let mut out = vec![0; 2];
    match record {
        Record::File {
            slot,
            path,
            size,
            mtime,
        } => {
            out.push(1);
            out.extend_from_slice(&slot.to_le_bytes());
            out.extend_from_slice(&size.to_le_bytes());
            out.extend_from_slice(&mtime.seconds.to_le_bytes());
            out.extend_from_slice(&mtime.nanoseconds.to_le_bytes());
            path.encode(&mut out);
        }
        Record::Covered { slot, range } | Record::Discarded { slot, range } => {
            out.push(if matches!(record, Record::Covered { .. }) { 2 } else { 3 });
            out.extend_from_slice(&slot.to_le_bytes());
            out.extend_from_slice(&range.start.to_le_bytes());
            out.extend_from_slice(&range.end.to_le_bytes());
        }
        Record::Done { slot } => {
            out.push(4);
            out.extend_from_slice(&slot.to_le_bytes());
        }
        Record::Directory { path } => {
            out.push(5);
            path.encode(&mut out);
        }
        Record::Joined { path } => {
            out.push(6);
            path.encode(&mut out);
        }
    }
    // A path is 4.2 KiB at most, so that this is no truncation.
    let len = ((out.len() - 2) as u16).to_le_bytes();
    out[..2].copy_from_slice(&len);
    let sum = sum(transfer, at, &out);
    out.extend_from_slice(&sum);
    out
}

fn decode(body: &[u8]) -> Option<Record> {
    let (&kind, rest) = body.split_first()?;
    let whole_path = |bytes: &[u8]| {
        let (path, used) = RelPath::decode(bytes, Rules::POSIX).ok()?;
        (used == bytes.len()).then_some(path)
    };
    match kind {
        5 => return whole_path(rest).map(|path| Record::Directory { path }),
        6 => return whole_path(rest).map(|path| Record::Joined { path }),
        _ => {}
    }
    let (slot, rest) = rest.split_first_chunk()?;
    let slot = u32::from_le_bytes(*slot);
    match kind {
        1 => {
            let (size, rest) = rest.split_first_chunk()?;
            let (seconds, rest) = rest.split_first_chunk()?;
            let (nanoseconds, rest) = rest.split_first_chunk()?;
            let mtime = Time {
                seconds: i64::from_le_bytes(*seconds),
                nanoseconds: u32::from_le_bytes(*nanoseconds),
            };
            let size = u64::from_le_bytes(*size);
            Some(Record::File {
                slot,
                path: whole_path(rest)?,
                size,
                mtime,
            })
        }
        2 | 3 => {
            let (start, rest) = rest.split_first_chunk()?;
            let (end, rest) = rest.split_first_chunk()?;
            let range = u64::from_le_bytes(*start)..u64::from_le_bytes(*end);
            if range.start > range.end || !rest.is_empty() {
                return None;
            }
            Some(if kind == 2 {
                Record::Covered { slot, range }
            } else {
                Record::Discarded { slot, range }
            })
        }
        4 if rest.is_empty() => Some(Record::Done { slot }),
        _ => None,
    }
}

/// A journal that is written to. It holds the lock of its transfer for as long as it is open.
#[derive(Debug)]
pub(super) struct Journal {
    file: OwnedFd,
    transfer: [u8; 32],
    len: u64,
}

impl Journal {
    /// Reads what a file says, cuts it after that, and goes on there.
    pub(super) fn resume(file: OwnedFd, transfer: &[u8; 32]) -> Result<(Journal, Recovered), Errno> {
        let size = u64::try_from(rustix::fs::fstat(&file)?.st_size)
            .unwrap_or_default()
            .min(MAX_JOURNAL);
        let mut bytes = vec![0; usize::try_from(size).unwrap_or_default()];
        let mut filled = 0;
        while filled < bytes.len() {
            match rustix::io::pread(&file, &mut bytes[filled..], filled as u64) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        bytes.truncate(filled);
        let mut recovered = read(&bytes, transfer);
        let mut journal = Journal {
            file,
            transfer: *transfer,
            len: recovered.len,
        };
        if size > 0 {
            rustix::fs::ftruncate(&journal.file, journal.len)?;
        }
        if journal.len == 0 {
            journal.write(&header(transfer))?;
            recovered.len = journal.len;
        }
        Ok((journal, recovered))
    }

    /// Adds a record. One that fails leaves nothing that could be read as another; the next stands in its place.
    pub(super) fn append(&mut self, record: &Record) -> Result<(), Errno> {
        let bytes = encode(record, self.len, &self.transfer);
        if self.len + bytes.len() as u64 > MAX_JOURNAL {
            return Ok(());
        }
        self.write(&bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Errno> {
        crate::stat::write_all(&self.file, bytes, self.len)?;
        self.len += bytes.len() as u64;
        Ok(())
    }
}

/// Whatever lies on the disk is read; records that were written are all read again, whichever they are. For fuzzing: the input
/// is a journal, and a list of bodies with their lengths before them.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn fuzz(data: &[u8]) {
    let transfer = [7; 32];
    let _ = read(data, &transfer);
    let mut journal = header(&transfer);
    let mut rest = data;
    let mut written = 0;
    while let Some((len, after)) = rest.split_first_chunk() {
        let len = usize::from(u16::from_le_bytes(*len)).min(after.len());
        let (body, after) = after.split_at(len);
        if let Some(record) = decode(body) {
            let at = journal.len() as u64;
            let bytes = encode(&record, at, &transfer);
            assert!(
                bytes[2..bytes.len() - SUM] == *body,
                "a record is written as it was read"
            );
            assert!(next(&bytes, at, &transfer) == Some((record, bytes.len())));
            journal.extend(bytes);
            written += 1;
        }
        rest = after;
    }
    let recovered = read(&journal, &transfer);
    assert!(recovered.len == journal.len() as u64, "all {written} records are read");
    for file in recovered.files.values() {
        assert!(file.covered.is_empty() || file.covered.len() <= file.size);
    }
}

/// An input of [`fuzz`] with every kind of record.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn seed() -> Vec<u8> {
    let path = |name: &[u8]| RelPath::new([name], Rules::POSIX).unwrap_or_else(|error| unreachable!("{error}"));
    let mtime = Time {
        seconds: 1_700_000_000,
        nanoseconds: 5,
    };
    let records = [
        Record::Directory { path: path(b"folder") },
        Record::Joined { path: path(b"folder") },
        Record::File {
            slot: 1,
            path: path(b"file"),
            size: 1 << 24,
            mtime,
        },
        Record::Covered {
            slot: 1,
            range: 0..1 << 23,
        },
        Record::Discarded {
            slot: 1,
            range: 4096..8192,
        },
        Record::Done { slot: 2 },
    ];
    // Without their check sums, which would be wrong anywhere else.
    let bodies = records.iter().map(|record| {
        let mut bytes = encode(record, 0, &[7; 32]);
        bytes.truncate(bytes.len() - SUM);
        bytes
    });
    bodies.collect::<Vec<_>>().concat()
}
