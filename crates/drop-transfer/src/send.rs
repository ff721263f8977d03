//! The sending end of a transfer.
//!
//! The thread that calls [`send`] talks: it offers, lists entries and listens to what the receiver decides about them. Each
//! data connection has a thread that takes what was decided from a queue, reads it, seals it and writes it.

mod data;
mod file;
mod lanes;
mod queue;
mod sampling;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};

use self::lanes::Lanes;
use self::queue::{Queue, Work};
use self::sampling::Sampled;
use zeroize::Zeroizing;

use crate::content::SMALL;
use crate::entry::{Entry, Kind};
use crate::groups::group_count;
use crate::hashing::{Agreed, Hashing};
use crate::progress::Progress;
use crate::source::{self, Scan};
use crate::workers::deal;
use sealway_drop::cancel::Cancel;
use sealway_drop::ending::{AHEAD, Ending, next};
use sealway_drop::link::direct::{Addresses, Direct, Notes, Ways};
use sealway_drop::link::{Connected, Connection, Connections, Writer};
use sealway_drop::names::{Escaped, RelPath};
use sealway_drop::wire::control::{self, Body, Decision, Done, Entries, Hello, LISTED_NAMES, Offer, Role};
use sealway_drop::wire::talk::{BEAT, Pulse, greeting, say};
use sealway_drop::{Error, lock};

/// Why a file is left out that is not what it was when the tree was read.
const CHANGED: &str = "it changed while it was being sent";

/// Notes about single files that a summary keeps.
const NOTES: usize = 100;

/// Bytes of the notes of a message: it must fit into a record.
const NOTES_BYTES: usize = 256 << 10;

/// What is to be sent, and how.
#[derive(Clone)]
pub struct Options {
    /// Files and folders.
    pub paths: Vec<PathBuf>,
    /// How much is hashed of what is sent; more, if the other end wants it.
    pub hashing: Hashing,
    /// By what a direct path is looked for where the ends have met at a relay, if it is. The other end learns the addresses of this one by that.
    pub direct: Option<Ways>,
    /// Secret of this machine by which the same command makes the same transfer id.
    pub transfer_secret: Zeroizing<[u8; 32]>,
}

/// What became of a transfer.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Summary {
    /// Files in place at the receiver, those that were there already included.
    pub placed: u64,
    /// Files that were not sent, not taken or not placed.
    pub failed: u64,
    /// The first few of them and why.
    pub notes: Vec<String>,
    /// Files and links that got other names where they are received, since theirs were taken. Only the receiving end knows.
    pub renamed: Renamed,
    /// Keys that content was sealed with, over all data connections: each begins with one, and replaces it after 1 GiB.
    pub epochs: u64,
}

/// What got another name.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Renamed {
    /// How many.
    pub count: u64,
    /// The first hundred of them: as it was sent, and as it is now.
    pub first: Vec<(RelPath, RelPath)>,
}

/// State that the threads share.
struct Sender<'a> {
    scan: &'a Scan,
    queue: Arc<Queue>,
    lanes: Arc<Lanes>,
    /// Of what looks for direct paths.
    direct: Option<Notes>,
    control: Mutex<Writer>,
    progress: &'a Progress,
    cancel: &'a Cancel,
    hashing: std::sync::OnceLock<Agreed>,
    sampled: Sampled,
    /// Whether both ends count holes by where they are.
    by_map: std::sync::OnceLock<bool>,
}

impl Sender<'_> {
    fn say(&self, body: Body) -> Result<(), Error> {
        say(&mut lock(&self.control), body)
    }

    fn hashing(&self) -> Agreed {
        self.hashing.get().copied().unwrap_or(Agreed::Off)
    }

    fn hashes_all(&self) -> bool {
        self.hashing() == Agreed::All
    }

    fn by_map(&self) -> bool {
        self.by_map.get().copied().unwrap_or(false)
    }

    /// A file by its number; `None` for what is no file.
    fn file(&self, id: u32) -> Option<&Entry> {
        let entry = self.scan.entries.get(id as usize);
        entry.filter(|entry| matches!(entry.kind, Kind::File { .. }))
    }

    fn size(&self, id: u32) -> Option<u64> {
        self.file(id).map(Entry::size)
    }

    fn open(&self, id: u32) -> Result<source::SourceFile, String> {
        let entry = self.scan.entries.get(id as usize).ok_or("there is no such entry")?;
        let file = self.scan.open(entry).map_err(|error| error.to_string())?;
        match file.matches(entry) {
            true => Ok(file),
            false => Err(CHANGED.to_owned()),
        }
    }

    /// A direct connection broke.
    fn lost_direct(&self) {
        if let Some(direct) = &self.direct {
            direct.lost();
        }
    }

    /// The other end is told, notes it, and says so in the end.
    fn note_failed(&self) {
        self.progress.file_failed();
    }
}

/// Sends what `scan` found over a session, and waits until the receiver has it in place.
///
/// # Errors
/// Those of the whole transfer; files that could not be sent alone are in the summary.
pub fn send(
    options: &Options,
    scan: &Scan,
    connected: Connected,
    progress: &Progress,
    cancel: &Cancel,
) -> Result<Summary, Error> {
    let Connected { peered, data } = connected;
    let over = Ending::new(&peered.connection, cancel)?;
    let (mut reader, control) = (peered.connection.reader, peered.connection.writer);
    let direct = options.direct.clone().and_then(|ways| data.direct(ways));
    let notes = direct.as_ref().map(Direct::notes);
    let sender = Sender {
        scan,
        queue: Arc::default(),
        lanes: Arc::default(),
        direct: notes.clone(),
        control: Mutex::new(control),
        progress,
        cancel,
        hashing: std::sync::OnceLock::new(),
        sampled: Sampled::default(),
        by_map: std::sync::OnceLock::new(),
    };
    let (queue, lanes) = (sender.queue.clone(), sender.lanes.clone());
    let _stops = cancel.on_cancel(move || {
        queue.stop();
        lanes.stop();
    });
    let end = |error: Error| over.end(error);
    let pulse = Pulse::every(BEAT);
    let (tell, heard) = sync_channel(AHEAD);
    let done = std::thread::scope(|scope| {
        // However this ends, so do the threads.
        let _finish = over.finish_at_end();
        let _stop = pulse.stop_at_end();
        scope.spawn(|| pulse.beat(&sender.control));
        scope.spawn(|| over.last_words(&sender.control));
        let over = &over;
        // What concerns direct connections is looked at whatever else this end waits for.
        let sender = &sender;
        let hear = move |body| match (body, &notes) {
            (Body::Paths(paths), Some(notes)) => notes.heard((&paths).into()),
            (Body::Taken(taken), Some(_)) => {
                if let Err(error) = sender.lanes.taken(&taken) {
                    over.end(error);
                }
            }
            (body, _) => drop(tell.send(body)),
        };
        scope.spawn(move || over.hears_by(&mut reader, &hear));
        let heard = heard;
        // Connections come up once the receiver has said yes, for which a person may take any time.
        let done = offer(options, sender, &heard).and_then(|theirs| {
            let direct = direct.filter(|_| theirs);
            let connections = data.open_beside(direct.as_ref(), cancel);
            if let Some(direct) = direct {
                let say = |ours: &Addresses| sender.say(Body::Paths(ours.into()));
                scope.spawn(move || direct.run(cancel, &say, &|path| progress.path(path)));
            }
            let keys = content(sender, &connections, &heard, &end)?;
            Ok((finish(sender, &heard)?, keys))
        });
        done.map_err(&end).ok()
    });
    match done {
        Some((done, keys)) => Ok(summary(done, keys)),
        None => Err(over.why().unwrap_or(Error::Cancelled)),
    }
}

/// Lists entries, hears what is wanted of them, and sends that over connections as they come up. Returns how many keys content
/// was sealed with.
fn content(
    sender: &Sender<'_>,
    connections: &Connections,
    heard: &Receiver<Body>,
    over: &(dyn Fn(Error) + Sync),
) -> Result<u64, Error> {
    let work = |connection: &mut Connection| {
        let result = data::run(sender, connection);
        // Nothing is left, so no further connection is needed.
        if result.is_err() || sender.queue.is_done() {
            connections.stop();
        }
        (result, connection.writer.epoch())
    };
    let talked = std::thread::scope(|scope| {
        let dealer = scope.spawn(|| deal(connections, &work, over));
        // At once, so that the threads end; what is returned from here on is not the reason any more.
        let talked = talk(sender, heard).map_err(|error| {
            over(error);
            Error::Cancelled
        });
        if talked.is_err() || sender.queue.is_done() {
            connections.stop();
        }
        match dealer.join() {
            Ok(keys) => talked.map(|()| keys),
            Err(_) => Err(Error::Protocol("a thread of this end failed")),
        }
    });
    let keys = talked?;
    match sender.queue.is_done() {
        true => Ok(keys),
        // A thread said why.
        false if sender.cancel.is_set() => Err(Error::Cancelled),
        false => Err(Error::network("sending")(std::io::ErrorKind::NotConnected.into())),
    }
}

fn summary(done: Done, epochs: u64) -> Summary {
    let notes = done
        .notes
        .iter()
        .take(NOTES)
        .map(|note| Escaped(note.as_bytes()).to_string())
        .collect();
    Summary {
        placed: done.placed,
        failed: done.failed,
        notes,
        renamed: Renamed::default(),
        epochs,
    }
}

/// Says what there is, and waits until the receiver takes it. Whether that one looks for direct paths too.
fn offer(options: &Options, sender: &Sender<'_>, heard: &Receiver<Body>) -> Result<bool, Error> {
    let theirs = meet(sender, heard)?;
    let scan = sender.scan;
    let tops = || scan.entries.iter().filter(|entry| entry.path.depth() == 1);
    sender.say(Body::Offer(Offer {
        transfer: transfer_id(options).to_vec(),
        files: scan.totals.files,
        others: scan.entries.len() as u64 - scan.totals.files,
        bytes: scan.totals.bytes,
        top: tops()
            .take(LISTED_NAMES)
            .map(|entry| control::Top {
                name: entry.path.name().to_vec(),
                folder: entry.kind == Kind::Directory,
            })
            .collect(),
        top_count: tops().count() as u64,
        hash: options.hashing != Hashing::Off,
        links: Some(scan.totals.symlinks),
        by_map: true,
        sample: options.hashing != Hashing::All,
    }))?;
    sender.progress.offered();
    let Body::Accept(accept) = next(heard)? else {
        return Err(Error::Protocol("an offer that was answered by something else"));
    };
    let _ = sender.hashing.set(Agreed::answered(options.hashing, &accept)?);
    let _ = sender.by_map.set(accept.by_map);
    sender.progress.begin(scan.totals.bytes, scan.totals.files);
    Ok(theirs.direct)
}

/// Lists the entries, and hears what is wanted of them up to the last decision.
fn talk(sender: &Sender<'_>, heard: &Receiver<Body>) -> Result<(), Error> {
    std::thread::scope(|scope| {
        let list = scope.spawn(|| list(sender));
        let decided = decide(sender, heard);
        match list.join() {
            Ok(listed) => decided.and(listed),
            Err(_) => Err(Error::Protocol("a thread of this end failed")),
        }
    })
}

fn meet(sender: &Sender<'_>, heard: &Receiver<Body>) -> Result<Hello, Error> {
    sender.say(Body::Hello(Hello {
        version: control::VERSION,
        role: Role::Sender as i32,
        direct: sender.direct.is_some(),
        ..Hello::default()
    }))?;
    let theirs = greeting(next(heard)?)?;
    match theirs.role == Role::Receiver as i32 {
        true => Ok(theirs),
        false => Err(Error::Usage(
            "the other end does not receive: one end sends, the other receives".into(),
        )),
    }
}

/// Says what there is.
fn list(sender: &Sender<'_>) -> Result<(), Error> {
    let mut entries = Vec::with_capacity(control::BATCH + 8192);
    for entry in &sender.scan.entries {
        entry.encode(&mut entries);
        if entries.len() >= control::BATCH {
            sender.say(Body::Entries(Entries {
                entries: std::mem::take(&mut entries),
                last: false,
            }))?;
        }
    }
    sender.say(Body::Entries(Entries { entries, last: true }))
}

/// Listens to what the receiver wants until it has said so for everything.
fn decide(sender: &Sender<'_>, heard: &Receiver<Body>) -> Result<(), Error> {
    let count = sender.scan.entries.len();
    let mut decided = 0;
    // Files whose groups are being named, by their number.
    let mut partial: HashMap<u32, Vec<(u64, [u8; 32])>> = HashMap::new();
    while decided < count || !partial.is_empty() {
        match next(heard)? {
            Body::Decisions(decisions) => {
                if decisions.first as usize != decided || decisions.codes.len() > count - decided {
                    return Err(Error::Protocol("a decision about something that was not offered"));
                }
                for code in decisions.codes {
                    let id = decided as u32;
                    decided += 1;
                    let decision = Decision::of(code).ok_or(Error::Protocol("an unknown decision"))?;
                    match (decision, sender.size(id)) {
                        (Decision::Nothing | Decision::Refused, None) => {}
                        (Decision::Nothing, Some(size)) => {
                            sender.progress.same(size);
                        }
                        (Decision::Refused, Some(_)) => sender.progress.file_failed(),
                        (Decision::Fetch, Some(size)) => sender.queue.add_file(id, size),
                        (Decision::Rest, Some(size)) if size > SMALL => {
                            partial.insert(id, Vec::new());
                        }
                        _ => return Err(Error::Protocol("a decision that does not fit what was offered")),
                    }
                }
            }
            Body::Have(have) => {
                let groups = partial
                    .get_mut(&have.file)
                    .ok_or(Error::Protocol("groups of a file that is not partial"))?;
                note_groups(groups, &have, sender.size(have.file).unwrap_or(0))?;
                if have.last {
                    let groups = partial.remove(&have.file).unwrap_or_default();
                    sender.queue.add(Work::Partial(have.file, groups));
                }
            }
            _ => return Err(Error::Protocol("a message out of place")),
        }
    }
    sender.queue.close();
    Ok(())
}

/// Adds groups that the receiver has; they rise, and lie within the file.
fn note_groups(groups: &mut Vec<(u64, [u8; 32])>, have: &control::Have, size: u64) -> Result<(), Error> {
    let hashes = have.hashes.chunks_exact(32);
    if hashes.len() != have.groups.len() || !have.hashes.len().is_multiple_of(32) {
        return Err(Error::Protocol("groups without their hashes"));
    }
    for (&group, hash) in have.groups.iter().zip(hashes) {
        let rises = groups.last().is_none_or(|&(last, _)| last < group);
        let hash = hash
            .try_into()
            .map_err(|_| Error::Protocol("groups without their hashes"))?;
        if !rises || group >= group_count(size) {
            return Err(Error::Protocol("groups out of order"));
        }
        groups.push((group, hash));
    }
    Ok(())
}

/// Everything was sent; waits for what became of it.
fn finish(sender: &Sender<'_>, heard: &Receiver<Body>) -> Result<Done, Error> {
    let skipped = &sender.scan.skipped;
    let notes = skipped.iter().map(ToString::to_string).take(NOTES);
    sender.say(Body::Sent(control::Sent {
        left_out: skipped.len() as u64,
        notes: bounded(notes, NOTES_BYTES),
    }))?;
    match next(heard)? {
        Body::Done(done) => {
            lock(&sender.control).close()?;
            Ok(done)
        }
        _ => Err(Error::Protocol("the end of the transfer was not confirmed")),
    }
}

/// The first of them, up to so many bytes: they go in one message.
fn bounded(notes: impl Iterator<Item = String>, mut bytes: usize) -> Vec<String> {
    notes
        .take_while(|note| {
            let fits = bytes.checked_sub(note.len());
            bytes = fits.unwrap_or(0);
            fits.is_some()
        })
        .collect()
}

/// The same for the same command on the same machine, and nothing that says what the paths are.
fn transfer_id(options: &Options) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_keyed(&options.transfer_secret);
    for path in &options.paths {
        // `dir` and `dir/` are the same.
        let path: PathBuf = std::path::absolute(path)
            .unwrap_or_else(|_| path.clone())
            .components()
            .collect();
        let bytes = path.as_os_str().as_encoded_bytes();
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    }
    *hasher.finalize().as_bytes()
}
