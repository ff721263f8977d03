//! Files that come: each is a transfer of its own into the folder, so that what breaks off goes on, whichever way it comes.

use std::io::{self, Read, Seek, Write};
use std::iter::successors;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::fstatvfs;
use sealway_drop::names::{RelPath, Rules};
use sealway_drop_transfer::dest::{Admission, Destination, Error, Placed, StagedFile, Staging};
use sealway_drop_transfer::entry::{Entry, Kind, Time};

/// What stays free on the disk.
pub(crate) const KEPT_FREE: u64 = 64 << 20;
/// What is written of a file whose size is not known before room is looked for again.
const LOOK: u64 = 16 << 20;

/// Where files go, and which.
pub(crate) struct Inbox {
    pub(crate) destination: Destination,
    /// The largest file.
    pub(crate) max_size: Option<u64>,
    /// Whether names may begin with a dot.
    pub(crate) hidden: bool,
}

/// What a client says of a file before it comes.
#[derive(Clone, Debug)]
pub(crate) struct Announced {
    pub(crate) path: RelPath,
    pub(crate) size: u64,
    /// Milliseconds since 1970; only with it a file that is there counts as the same.
    pub(crate) modified: Option<i64>,
}

/// Why a file is not taken.
#[derive(Debug)]
pub(crate) enum Refused {
    /// By a rule: its name, or what has its name.
    Rule(String),
    /// It is too large.
    Large(u64),
    /// The disk has no room.
    NoRoom,
    /// It is being sent already.
    Busy,
    /// It should go on elsewhere: where.
    Offset(u64),
    /// What the client sent is not what it said.
    Broken(String),
    /// The system. The client is not told what it said.
    Failed(String),
}

impl Refused {
    /// For the client: nothing of this machine.
    pub(crate) fn told(&self) -> String {
        match self {
            Refused::Rule(why) | Refused::Broken(why) => why.clone(),
            Refused::Large(most) => format!("the file is too large: {most} bytes are the most here"),
            Refused::NoRoom => "there is no room for it on the disk".to_owned(),
            Refused::Busy => "this file is being sent already".to_owned(),
            Refused::Offset(offset) => format!("go on at byte {offset}"),
            Refused::Failed(_) => "it could not be written".to_owned(),
        }
    }

    /// For whoever runs the server.
    pub(crate) fn why(&self) -> String {
        match self {
            Refused::Failed(why) => why.clone(),
            other => other.told(),
        }
    }
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        match error {
            Error::Busy { .. } => Refused::Busy,
            Error::NoSpace { .. } => Refused::NoRoom,
            error => Refused::Failed(error.to_string()),
        }
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Refused {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Refused::NoRoom,
            _ => Refused::Failed(error.to_string()),
        }
    }
}

/// What is done with a file.
pub(crate) enum Begun {
    /// The same is there already.
    There,
    /// It is to come.
    Open(Incoming),
}

/// A file that comes.
pub(crate) struct Incoming {
    staging: Staging,
    file: Arc<StagedFile>,
    path: RelPath,
    modified: Option<Time>,
}

impl Inbox {
    /// Begins a file, or goes on with it.
    pub(crate) fn begin(&self, announced: &Announced) -> Result<Begun, Refused> {
        let Announced { path, size, modified } = announced;
        if !self.hidden && path.components().any(|name| name.starts_with(b".")) {
            return Err(Refused::Rule(
                "names that begin with a dot are not taken here".to_owned(),
            ));
        }
        if let Some(most) = self.max_size.filter(|most| size > most) {
            return Err(Refused::Large(most));
        }
        let staging = self.destination.staging(&transfer(announced))?;
        let now = time_of(now());
        let mut id = 0;
        let folders: Vec<_> = successors(path.parent(), RelPath::parent).collect();
        for folder in folders.into_iter().rev() {
            id += 1;
            let entry = Entry {
                path: folder,
                kind: Kind::Directory,
                mode: 0o777,
                mtime: now,
            };
            if let Admission::Skipped(skip) = staging.admit(id, &entry)? {
                return Err(Refused::Rule(skip.reason().to_owned()));
            }
        }
        id += 1;
        let modified = modified.map(time_of);
        let entry = Entry {
            path: path.clone(),
            kind: Kind::File {
                size: *size,
                sparse: false,
            },
            mode: 0o666,
            // Without a time nothing that is there is the same.
            mtime: modified.unwrap_or_default(),
        };
        let have: u64 = match staging.admit(id, &entry)? {
            Admission::Same => {
                staging.conclude()?;
                return Ok(Begun::There);
            }
            Admission::Skipped(skip) => return Err(Refused::Rule(skip.reason().to_owned())),
            Admission::Fetch { partial } => partial.iter().map(|range| range.end - range.start).sum(),
            _ => return Err(Refused::Failed("a file was taken for something else".to_owned())),
        };
        if size.saturating_sub(have).saturating_add(KEPT_FREE) > self.destination.available()? {
            return Err(Refused::NoRoom);
        }
        let file = staging.open_file(id, &entry)?;
        Ok(Begun::Open(Incoming {
            staging,
            file,
            path: path.clone(),
            modified,
        }))
    }

    /// A file whose size is known when it has come, such as one of a form: where it waits until then.
    pub(crate) fn spool(&self) -> Result<Spool<'_>, Refused> {
        Ok(Spool {
            inbox: self,
            file: tempfile::tempfile_in(self.destination.path())?,
            size: 0,
            looked: 0,
        })
    }
}

impl Incoming {
    /// How much of it is there from its beginning on.
    pub(crate) fn offset(&self) -> u64 {
        self.file
            .missing()
            .first()
            .map_or(self.file.size(), |range| range.start)
    }

    /// Has it go on at a byte; what was there behind that is forgotten.
    pub(crate) fn start(&self, at: u64) -> Result<(), Refused> {
        let offset = self.offset();
        if at > offset {
            return Err(Refused::Offset(offset));
        }
        Ok(self.file.discard(at..self.file.size())?)
    }

    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> Result<(), Refused> {
        self.file.write_at(at, bytes)?;
        Ok(())
    }

    /// Gives it its name, once all of it is there; says which.
    pub(crate) fn finish(self) -> Result<RelPath, Refused> {
        let modified = self.modified.unwrap_or_else(|| time_of(now()));
        let placed = self.file.finish(0o666, modified)?;
        drop(self.file);
        self.staging.conclude()?;
        match placed {
            Placed::Named => Ok(self.path),
            Placed::Renamed(path) => Ok(path),
            Placed::Skipped(skip) => Err(Refused::Rule(skip.reason().to_owned())),
        }
    }
}

/// A file without a name, until its size is known.
pub(crate) struct Spool<'a> {
    inbox: &'a Inbox,
    file: std::fs::File,
    pub(crate) size: u64,
    looked: u64,
}

impl Spool<'_> {
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        if self.size >= self.looked {
            self.looked = self.size + LOOK;
            let disk = fstatvfs(&self.file).map_err(io::Error::from)?;
            // Room for this piece twice: it is copied to its place.
            if disk.f_bavail.saturating_mul(disk.f_frsize) < KEPT_FREE + 2 * LOOK {
                return Err(Refused::NoRoom);
            }
        }
        self.size += bytes.len() as u64;
        if let Some(most) = self.inbox.max_size.filter(|most| self.size > *most) {
            return Err(Refused::Large(most));
        }
        Ok(self.file.write_all(bytes)?)
    }

    /// Puts it where it belongs; says under which path, and its size.
    pub(crate) fn place(mut self, path: RelPath) -> Result<(RelPath, u64), Refused> {
        let announced = Announced {
            path: path.clone(),
            size: self.size,
            modified: None,
        };
        let incoming = match self.inbox.begin(&announced)? {
            Begun::There => return Ok((path, self.size)),
            Begun::Open(incoming) => incoming,
        };
        incoming.start(0)?;
        self.file.rewind()?;
        let mut buffer = vec![0; 256 << 10];
        let mut at = 0;
        loop {
            let count = self.file.read(&mut buffer)?;
            let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else {
                break;
            };
            incoming.write(at, bytes)?;
            at += count as u64;
        }
        Ok((incoming.finish()?, self.size))
    }
}

/// The path of a file by its name in a form, which may have folders in it, below the folder of the page.
pub(crate) fn path_in(folder: Option<&RelPath>, name: &[u8]) -> Result<RelPath, Refused> {
    let above = folder.into_iter().flat_map(RelPath::components);
    let names = above.chain(name.split(|byte| *byte == b'/'));
    RelPath::new(names, Rules::local()).map_err(|error| Refused::Rule(error.to_string()))
}

/// What a file that comes is known by when it goes on: its path, size and time.
fn transfer(announced: &Announced) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("sealway drop web 2026-11 upload");
    hasher.update(announced.path.key());
    hasher.update(&[0]);
    hasher.update(&announced.size.to_le_bytes());
    hasher.update(&announced.modified.unwrap_or(i64::MIN).to_le_bytes());
    *hasher.finalize().as_bytes()
}

fn time_of(milliseconds: i64) -> Time {
    Time {
        seconds: milliseconds.div_euclid(1000),
        nanoseconds: milliseconds.rem_euclid(1000) as u32 * 1_000_000,
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or_default()
}
