//! What is shared: a folder, or files and folders that were named. Everything is found beneath them, no symbolic link is followed,
//! and what is neither a file nor a folder is not there.

use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;
use jiff::fmt::rfc2822::DateTimePrinter;
use jiff::tz::TimeZone;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat, fstat};
use rustix::io::Errno;
use sealway_drop::names::{RelPath, Rules};
use sealway_drop_transfer::beneath::Beneath;

use crate::error::Error;
use crate::head::Version;
use crate::page::Line;
use crate::waited::Waited;

/// The most names of a folder that are listed on one page.
pub(crate) const MAX_LINES: usize = 20_000;
/// The most files and folders of an archive.
pub(crate) const MAX_MEMBERS: usize = 200_000;
/// Coarse clocks tick every 10 ms at worst: within that two changes may leave equal times.
const SETTLED: Duration = Duration::from_millis(50);
/// The same for dates, which have seconds.
const SETTLED_DATE: Duration = Duration::from_secs(2);

/// What is shared.
pub(crate) struct Shared {
    tops: Tops,
    hidden: bool,
    beneath: Beneath,
    /// What all of it is called.
    pub(crate) name: Vec<u8>,
}

enum Tops {
    Folder(OwnedFd),
    Named(Vec<Top>),
}

/// Something that was named.
struct Top {
    /// What it is called; no two are called the same.
    name: Vec<u8>,
    /// A folder itself, or the folder that a file is in.
    folder: OwnedFd,
    is_file: bool,
}

/// Something that is there.
pub(crate) enum Found {
    File(Opened),
    Folder(OwnedFd),
}

/// A file.
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) size: u64,
    pub(crate) version: Version,
}

/// A file or a folder of an archive.
pub(crate) struct Member {
    /// Below what is shared.
    pub(crate) path: RelPath,
    /// Bytes; `None` for a folder.
    pub(crate) size: Option<u64>,
    pub(crate) modified: i64,
}

impl Shared {
    /// Opens what was named: symbolic links on the way there are the user's own and are followed.
    pub(crate) fn open(paths: &[PathBuf], hidden: bool) -> Result<Shared, Error> {
        let mut tops = Vec::new();
        for path in paths {
            tops.push(top(path).map_err(|source| Error::Share {
                path: path.clone(),
                source,
            })?);
        }
        let (name, tops) = match <[Top; 1]>::try_from(tops) {
            Ok(
                [
                    Top {
                        name,
                        folder,
                        is_file: false,
                    },
                ],
            ) => (name, Tops::Folder(folder)),
            Ok([top]) => (b"Shared".to_vec(), Tops::Named(vec![top])),
            Err(mut tops) => {
                tops.sort_by(|a, b| a.name.cmp(&b.name));
                if let Some([twice, _]) = tops.array_windows().find(|[a, b]| a.name == b.name) {
                    return Err(Error::Twice(twice.name.clone()));
                }
                (b"Shared".to_vec(), Tops::Named(tops))
            }
        };
        Ok(Shared {
            tops,
            hidden,
            beneath: Beneath::default(),
            name,
        })
    }

    /// What has a path; `None` is all that is shared. What may not be seen is not there.
    pub(crate) fn find(&self, path: Option<&RelPath>) -> Result<Found, Errno> {
        // What was named is meant, whatever it is called.
        let named = usize::from(self.is_list());
        if !self.hidden && path.is_some_and(|path| path.components().skip(named).any(is_dotted)) {
            return Err(Errno::NOENT);
        }
        let key = path.map_or(&[][..], RelPath::key);
        let (folder, key, is_file) = match &self.tops {
            Tops::Folder(folder) => (folder, key, false),
            Tops::Named(tops) => {
                let path = path.ok_or(Errno::ISDIR)?;
                let found = tops.binary_search_by(|known| known.name.as_slice().cmp(path.top()));
                let top = found.ok().and_then(|at| tops.get(at)).ok_or(Errno::NOENT)?;
                match top.is_file {
                    true if path.depth() > 1 => return Err(Errno::NOTDIR),
                    true => (&top.folder, key, true),
                    false => (&top.folder, key.get(1 + top.name.len()..).unwrap_or_default(), false),
                }
            }
        };
        // Opening a device or a FIFO has effects, so what it is comes first.
        let looked = self.beneath.open(folder, key, OFlags::PATH)?;
        let kind = |stat: &Stat| FileType::from_raw_mode(stat.st_mode);
        match kind(&fstat(&looked)?) {
            FileType::Directory if !is_file => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                Ok(Found::Folder(self.beneath.open(folder, key, flags)?))
            }
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
                let file = self.beneath.open(folder, key, flags)?;
                let stat = fstat(&file)?;
                if kind(&stat) != FileType::RegularFile {
                    return Err(Errno::NOENT);
                }
                Ok(Found::File(Opened {
                    size: u64::try_from(stat.st_size).map_err(|_| Errno::IO)?,
                    version: version(&stat, SystemTime::now()),
                    file: File::from(file),
                }))
            }
            _ => Err(Errno::NOENT),
        }
    }

    /// Whether all that is shared is a list of names.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self.tops, Tops::Named(_))
    }

    /// What is in a folder, in no order, and how many names there are beyond [`MAX_LINES`].
    pub(crate) fn list(&self, folder: &OwnedFd) -> Result<(Vec<Line>, usize), Errno> {
        let zone = TimeZone::system();
        let (mut lines, mut more) = (Vec::new(), 0);
        self.each(folder, |name, stat, size| {
            match lines.len() < MAX_LINES {
                true => lines.push(line(name, stat, size, &zone)),
                false => more += 1,
            }
            Ok(())
        })?;
        Ok((lines, more))
    }

    /// What was named, as a list.
    pub(crate) fn list_tops(&self) -> Vec<Line> {
        let Tops::Named(tops) = &self.tops else {
            return Vec::new();
        };
        let zone = TimeZone::system();
        let look = |top: &Top| {
            let name = if top.is_file { top.name.as_slice() } else { b"." };
            let stat = rustix::fs::statat(&top.folder, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
            let size = size_of(&stat).filter(|size| size.is_some() == top.is_file)?;
            Some(line(&top.name, &stat, size, &zone))
        };
        tops.iter().filter_map(look).collect()
    }

    /// Calls `take` for every file (with its size) and folder in a folder that may be seen.
    fn each(
        &self,
        folder: &OwnedFd,
        mut take: impl FnMut(&[u8], &Stat, Option<u64>) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let mut buffer = [MaybeUninit::uninit(); 32 << 10];
        let mut names = RawDir::new(folder, &mut buffer);
        while let Some(entry) = names.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            // Unfinished transfers, among others, have names that no path has.
            if Rules::local().check(name).is_err() || !self.hidden && is_dotted(name) {
                continue;
            }
            // Gone since it was listed, or not to be looked at.
            let Ok(stat) = rustix::fs::statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            if let Some(size) = size_of(&stat) {
                take(name, &stat, size)?;
            }
        }
        Ok(())
    }

    /// All that is in a folder, and below it, each folder right before what is in it. `None` if it is more than [`MAX_MEMBERS`]. It ends
    /// with [`Errno::CANCELED`] once nobody waits.
    pub(crate) fn walk(&self, path: Option<&RelPath>, waited: &Waited) -> Result<Option<Vec<Member>>, Errno> {
        let mut members = Vec::new();
        let mut left: Vec<Option<RelPath>> = Vec::new();
        match (path, self.is_list()) {
            (None, true) => {
                for line in self.list_tops() {
                    let Ok(path) = RelPath::new([&line.name], Rules::local()) else {
                        continue;
                    };
                    if line.size.is_none() {
                        left.push(Some(path.clone()));
                    }
                    members.push(Member {
                        path,
                        size: line.size,
                        modified: line.modified,
                    });
                }
            }
            (path, _) => left.push(path.cloned()),
        }
        while let Some(path) = left.pop() {
            let folder = match self.find(path.as_ref()) {
                Ok(Found::Folder(folder)) => folder,
                Ok(Found::File(_)) if members.is_empty() => return Err(Errno::NOTDIR),
                Ok(Found::File(_)) => continue,
                // What is asked for must be there; what is below may go, or may not be read.
                Err(errno) if members.is_empty() => return Err(errno),
                Err(_) => continue,
            };
            let mut full = false;
            self.each(&folder, |name, stat, size| {
                if !waited.on() {
                    return Err(Errno::CANCELED);
                }
                full |= members.len() >= MAX_MEMBERS;
                let inner = match &path {
                    Some(path) => path.child(name, Rules::local()),
                    None => RelPath::new([name], Rules::local()),
                };
                // Too deep or too long to have a path here.
                let Ok(inner) = inner else { return Ok(()) };
                if full {
                    return Ok(());
                }
                if size.is_none() {
                    left.push(Some(inner.clone()));
                }
                members.push(Member {
                    path: inner,
                    size,
                    modified: stat.st_mtime,
                });
                Ok(())
            })?;
            if full {
                return Ok(None);
            }
        }
        members.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(Some(members))
    }
}

fn is_dotted(name: &[u8]) -> bool {
    name.starts_with(b".")
}

/// The size of a file, `None` for a folder; nothing for what is neither.
fn size_of(stat: &Stat) -> Option<Option<u64>> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Some(Some(u64::try_from(stat.st_size).ok()?)),
        FileType::Directory => Some(None),
        _ => None,
    }
}

fn line(name: &[u8], stat: &Stat, size: Option<u64>, zone: &TimeZone) -> Line {
    let time = Timestamp::from_second(stat.st_mtime).unwrap_or_default();
    Line {
        name: name.to_vec(),
        size,
        modified: stat.st_mtime,
        time: time.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M").to_string(),
    }
}

fn top(path: &Path) -> io::Result<Top> {
    let real = path.canonicalize()?;
    let name = real.file_name().map_or(&b"Shared"[..], |name| name.as_bytes()).to_vec();
    let kind = std::fs::metadata(&real)?;
    let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
    let folder = match (kind.is_dir(), kind.is_file()) {
        (true, _) => &real,
        (_, true) => real.parent().unwrap_or(Path::new("/")),
        _ => {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is neither a file nor a folder",
            ));
        }
    };
    let folder = rustix::fs::open(folder, flags, Mode::empty())?;
    // What cannot be read would be noticed by whoever asks for it.
    if kind.is_file() {
        File::open(&real)?;
    } else {
        std::fs::read_dir(&real)?;
    }
    Ok(Top {
        name,
        folder,
        is_file: kind.is_file(),
    })
}

fn version(stat: &Stat, now: SystemTime) -> Version {
    let mut hasher = blake3::Hasher::new_derive_key("sealway drop web 2026-11 entity tag");
    let numbers = [
        stat.st_dev,
        stat.st_ino,
        stat.st_size as u64,
        stat.st_mtime as u64,
        stat.st_mtime_nsec,
        stat.st_ctime as u64,
        stat.st_ctime_nsec,
    ];
    for number in numbers {
        hasher.update(&number.to_le_bytes());
    }
    let hash = hasher.finalize().to_hex();
    let settled = |seconds: i64, nanoseconds: u64, time: Duration| {
        let since = u64::try_from(seconds)
            .ok()
            .map(|seconds| Duration::new(seconds, nanoseconds as u32) + time);
        since
            .and_then(|since| UNIX_EPOCH.checked_add(since))
            .is_some_and(|then| now > then)
    };
    let weak = if settled(stat.st_ctime, stat.st_ctime_nsec, SETTLED) {
        ""
    } else {
        "W/"
    };
    Version {
        tag: format!("{weak}\"{}\"", hash.get(..24).unwrap_or(&hash)),
        date: date(stat.st_mtime),
        dated: settled(stat.st_ctime.max(stat.st_mtime), 0, SETTLED_DATE),
    }
}

/// A date as headers have it (RFC 9110 section 5.6.7).
fn date(seconds: i64) -> String {
    let time = Timestamp::from_second(seconds).unwrap_or_default();
    DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&time)
        .unwrap_or_default()
}

/// Reads at a place of a file; 0 is its end.
pub(crate) fn read_at(file: impl AsFd, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    loop {
        match rustix::io::pread(&file, &mut *buffer, at) {
            Err(Errno::INTR) => {}
            read => return Ok(read?),
        }
    }
}
