//! What comes in a stream, such as standard input: kept in a file without a name until it is sent.
//!
//! An offer says how large everything is, so a stream is read to its end first. The file has no name from the beginning on, so nothing
//! of it stays whatever ends the program, and nobody else can open it.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use super::{Error, Scan, Totals};
use crate::beneath::Beneath;
use crate::entry::{Entry, Kind};
use crate::stat::mtime;
use sealway_drop::cancel::Cancel;
use sealway_drop::names::{Escaped, RelPath, Rules};

/// Bytes that are read at once.
const PIECE: usize = 256 << 10;

/// Bytes between two looks at the free space.
const LOOK: u64 = 16 << 20;

/// Bytes that are left free for others.
const RESERVE: u64 = 64 << 20;

/// Nanoseconds between two looks whether it is still wanted.
const TICK: i64 = 50_000_000;

/// Mode of the file where it is received.
const MODE: u32 = 0o600;

/// Where a stream is kept.
#[derive(Clone, Debug)]
pub struct Spool {
    /// The folder whose file system holds it.
    pub folder: PathBuf,
    /// Bytes that are left free there.
    pub reserve: u64,
}

impl Default for Spool {
    /// `TMPDIR`, else `/var/tmp`, which is on a disk where `/tmp` may be memory, else `/tmp`.
    fn default() -> Spool {
        let set = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty());
        let folder = set.map(PathBuf::from).unwrap_or_else(|| {
            let disk = Path::new("/var/tmp");
            if disk.is_dir() {
                disk.to_owned()
            } else {
                std::env::temp_dir()
            }
        });
        Spool {
            folder,
            reserve: RESERVE,
        }
    }
}

/// Reads `input` to its end, and makes a scan of it: one file of this name. `None` soon after `cancel` was thrown.
///
/// # Errors
/// [`Error::Name`] for a name that cannot travel, [`Error::Spool`] if there is no room, [`Error::Unreadable`].
pub fn spool(input: impl AsFd, name: &[u8], spool: &Spool, cancel: &Cancel) -> Result<Option<Scan>, Error> {
    let path = RelPath::new([name], Rules::local()).map_err(|source| Error::Name {
        path: Escaped(name).to_string(),
        source,
    })?;
    let kept = |source| Error::Spool {
        folder: Escaped(spool.folder.as_os_str().as_bytes()).to_string(),
        source,
    };
    let unreadable = |errno: Errno| Error::Unreadable {
        path: "standard input".into(),
        source: errno.into(),
    };
    let file = tempfile::tempfile_in(&spool.folder).map_err(kept)?;
    let (mut size, mut buffer) = (0, vec![0; PIECE]);
    loop {
        if size % LOOK < PIECE as u64 {
            room(&file, spool.reserve).map_err(kept)?;
        }
        let Some(count) = piece(&input, &mut buffer, cancel).map_err(unreadable)? else {
            return Ok(None);
        };
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else {
            break;
        };
        io::Write::write_all(&mut &file, bytes).map_err(kept)?;
        size += bytes.len() as u64;
    }
    let stat = rustix::fs::fstat(&file).map_err(unreadable)?;
    let entry = Entry {
        path,
        kind: Kind::File { size, sparse: false },
        mode: MODE,
        mtime: mtime(&stat),
    };
    Ok(Some(Scan {
        entries: vec![entry],
        totals: Totals {
            files: 1,
            bytes: size,
            data_bytes: size,
            ..Totals::default()
        },
        skipped: Vec::new(),
        tops: Vec::new(),
        beneath: Beneath::new(false),
        spooled: Some(OwnedFd::from(file)),
    }))
}

/// Whether more may be written.
fn room(file: &File, reserve: u64) -> io::Result<()> {
    let stat = rustix::fs::fstatvfs(file)?;
    match stat.f_bavail.saturating_mul(stat.f_frsize) > reserve.saturating_add(LOOK) {
        true => Ok(()),
        false => Err(io::ErrorKind::StorageFull.into()),
    }
}

/// The next bytes, none at the end; `None` if it is not wanted any more.
fn piece(input: &impl AsFd, buffer: &mut [u8], cancel: &Cancel) -> Result<Option<usize>, Errno> {
    loop {
        if cancel.is_set() {
            return Ok(None);
        }
        let tick = Timespec {
            tv_sec: 0,
            tv_nsec: TICK,
        };
        match poll(&mut [PollFd::new(input, PollFlags::IN)], Some(&tick)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) | Err(_) => {}
        }
        match rustix::io::read(input, &mut *buffer) {
            Err(Errno::INTR | Errno::AGAIN) => {}
            read => return read.map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn through(bytes: &[u8], reserve: u64, name: &[u8]) -> (Result<Option<Scan>, Error>, usize) {
        let folder = tempfile::tempdir().unwrap();
        let (input, mut output) = io::pipe().unwrap();
        let spool_at = Spool {
            folder: folder.path().to_owned(),
            reserve,
        };
        let scan = std::thread::scope(|scope| {
            // Who reads no further makes this fail.
            scope.spawn(move || output.write_all(bytes));
            let scan = spool(&input, name, &spool_at, &Cancel::new());
            drop(input);
            scan
        });
        (scan, std::fs::read_dir(folder.path()).unwrap().count())
    }

    #[test]
    fn a_stream_becomes_a_file_without_a_name() {
        for size in [0, 1, 3 << 20] {
            let bytes: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
            let (scan, named) = through(&bytes, 0, b"stdin");
            let scan = scan.unwrap().unwrap();
            assert_eq!(named, 0);
            assert_eq!((scan.totals.files, scan.totals.bytes), (1, size as u64));
            let entry = &scan.entries[0];
            assert_eq!((entry.path.to_string().as_str(), entry.mode), ("stdin", 0o600));
            let (file, mut read) = (scan.open(entry).unwrap(), vec![0; size]);
            assert!(file.matches(entry));
            file.read_at(&mut read, 0).unwrap();
            assert!(read == bytes);
        }
    }

    #[test]
    fn a_stream_takes_no_room_that_is_not_there() {
        let (scan, _) = through(&[0; 100], u64::MAX / 2, b"stdin");
        let Err(error @ Error::Spool { .. }) = scan else {
            panic!("{scan:?}")
        };
        assert!(error.to_string().contains("TMPDIR"), "{error}");
        assert!(matches!(through(b"x", 0, b"a/b").0, Err(Error::Name { .. })));
    }

    #[test]
    fn nobody_waits_for_a_stream_that_is_not_wanted() {
        let (input, _output) = io::pipe().unwrap();
        let cancel = Cancel::new();
        cancel.cancel();
        assert!(spool(&input, b"stdin", &Spool::default(), &cancel).unwrap().is_none());
    }
}
