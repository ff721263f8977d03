//! The receiving end of a transfer.
//!
//! The thread that calls [`receive`] talks: it hears what is offered, what is listed and what is sent of it. Another decides about
//! every entry, since a person may be asked. Each data connection has a thread that opens records and writes content where it belongs. A file takes its name when all
//! of it is there and right.

mod data;
mod files;
mod incoming;
mod lanes;
mod listed;
mod meet;
mod offer;
mod partial;
mod pull;

use std::fmt;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver as Heard, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use self::incoming::Incoming;
use self::incoming::Progress as FileProgress;
use self::lanes::Lanes;
use self::listed::Listed;
use self::offer::Bounds;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use self::offer::fuzz as fuzz_offer;
pub use self::offer::{Name, Offered, cut};
pub use self::pull::pull;
use crate::dest::{self, Answer, Destination, Staging};
use crate::entry::Entry;
use crate::hashing::{Agreed, Hashing};
use crate::progress::Progress;
use crate::send::{Renamed, Summary};
use crate::workers::deal;
use sealway_drop::cancel::Cancel;
use sealway_drop::ending::{AHEAD, Ending, next};
use sealway_drop::fault::{Failure, Fault};
use sealway_drop::link::direct::{Addresses, Direct, Notes, Ways};
use sealway_drop::link::{Connected, Connection, Connections, Writer};
use sealway_drop::names::{Escaped, RelPath, Rules};
pub use sealway_drop::wire::control::LISTED_NAMES;
use sealway_drop::wire::control::{Body, Decision, Decisions, Done, Sent};
use sealway_drop::wire::talk::{BEAT, Pulse, say};
use sealway_drop::{Error, lock};

/// Entries of a transfer at most; their names must fit into memory.
const MAX_ENTRIES: usize = 16 << 20;

/// Notes about single files that are kept and sent, and their bytes: they must fit into one message.
const NOTES: usize = 100;
const NOTES_BYTES: usize = 256 << 10;

/// Where to, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder.
    pub output: PathBuf,
    /// What is done where names are taken, and the like.
    pub dest: dest::Options,
    /// How much is hashed of what comes in; more, if the sender wants it.
    pub hashing: Hashing,
    /// By what a direct path is looked for where the ends have met at a relay, if it is. The other end learns the addresses of this one by that.
    pub direct: Option<Ways>,
}

/// What arrived of a file is not what was announced.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Corrupt {
    /// The file.
    pub path: RelPath,
    /// What differs, for a message after the path.
    pub what: &'static str,
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.what)
    }
}

impl std::error::Error for Corrupt {}

impl Failure for Corrupt {
    fn fault(&self) -> Fault {
        Fault::Peer
    }
}

/// What a person, or options in their place, must decide.
pub trait Consent: Sync {
    /// Whether to take what is offered. `Err` is a reason for the other end.
    ///
    /// # Errors
    /// The reason why not.
    fn accept(&self, offer: &Offered) -> Result<(), String>;

    /// What to do with a file whose name is taken by something else.
    fn conflict(&self, path: &RelPath, existing: &dest::Existing) -> Answer;
}

/// State that the threads share.
struct Receiver<'a> {
    staging: &'a Staging,
    rules: Rules,
    consent: &'a dyn Consent,
    slots: Mutex<Vec<Slot>>,
    control: &'a Mutex<Writer>,
    progress: &'a Progress,
    hashing: Agreed,
    /// Whether holes are counted by where they are.
    by_map: bool,
    cancel: &'a Cancel,
    /// What was listed and is not decided.
    listed: Listed,
    /// What may still come of what was offered and taken.
    bounds: Mutex<Bounds>,
    failures: Mutex<Failures>,
    renamed: Mutex<Renamed>,
    lanes: Lanes,
    /// Of what looks for direct paths.
    direct: Option<Notes>,
}

/// What was left out, and why.
#[derive(Default)]
struct Failures {
    count: u64,
    notes: Vec<String>,
    bytes: usize,
}

/// What is expected of an entry.
enum Slot {
    Nothing,
    Small(Entry),
    Large(Arc<Incoming>),
    /// What still comes of it is thrown away.
    GivenUp,
}

/// Receives what the other end sends.
///
/// # Errors
/// Those of the whole transfer; files that could not be placed alone are in the summary.
pub fn receive(
    options: &Options,
    connected: Connected,
    progress: &Progress,
    cancel: &Cancel,
    consent: &dyn Consent,
) -> Result<Summary, Error> {
    receive_beating(BEAT, options, connected, progress, cancel, consent)
}

/// The same with another time between two signs of life.
fn receive_beating(
    beat: Duration,
    options: &Options,
    connected: Connected,
    progress: &Progress,
    cancel: &Cancel,
    consent: &dyn Consent,
) -> Result<Summary, Error> {
    let Connected { peered, data } = connected;
    let over = Ending::new(&peered.connection, cancel)?;
    let (mut reader, writer) = (peered.connection.reader, peered.connection.writer);
    let control = Mutex::new(writer);
    let pulse = Pulse::every(beat);
    let direct = options.direct.clone().and_then(|ways| data.direct(ways));
    let notes = direct.as_ref().map(Direct::notes);
    let receiving = |heard: &Heard<Body>| {
        let _stop = pulse.stop_at_end();
        let (offer, theirs) = meet::meet(&control, heard, direct.is_some())?;
        let direct = direct.filter(|_| theirs.direct);
        let transfer: [u8; 32] = offer
            .transfer
            .as_slice()
            .try_into()
            .map_err(|_| Error::Protocol("an offer without a number"))?;
        let destination = Destination::open(&options.output, options.dest)?;
        let offered = Offered::read(&offer, options.dest.rules, destination.available().ok())?;
        if let Err(reason) = consent.accept(&offered) {
            // Whoever was asked may have been let go because it is over.
            if over.is_over() {
                return Err(Error::Cancelled);
            }
            return Err(Error::SaidNo(reason));
        }
        let staging = destination.staging(&transfer)?;
        let hashing = Agreed::answer(options.hashing, &offer)?;
        let by_map = offer.by_map;
        progress.begin(offer.bytes, offer.files);
        say(&mut lock(&control), Body::Accept(hashing.accept(by_map)))?;
        let receiver = Receiver {
            staging: &staging,
            rules: options.dest.rules,
            consent,
            slots: Mutex::default(),
            control: &control,
            progress,
            hashing,
            by_map,
            cancel,
            listed: Listed::default(),
            bounds: Mutex::new(Bounds::of(&offered)),
            failures: Mutex::default(),
            renamed: Mutex::default(),
            lanes: Lanes::default(),
            direct: direct.as_ref().map(Direct::notes),
        };
        let end = |error: Error| over.end(error);
        let connections = data.open_beside(direct.as_ref(), cancel);
        let (epochs, unsent) = transfer_all(&receiver, (connections, direct), heard, &pulse, &end)?;
        // All is here and right, whatever becomes of the other end.
        over.settle()?;
        let concluded = staging.conclude().map_err(|error| {
            over.fail(error.into());
            Error::Cancelled
        })?;
        for (path, why) in &concluded.skipped {
            receiver.note(path, why);
        }
        for (path, name) in &concluded.renamed {
            receiver.renamed(path, name);
        }
        let left_behind = concluded.left_behind;
        let Failures {
            count: failed,
            mut notes,
            ..
        } = receiver.failures.into_inner().unwrap_or_default();
        let renamed = receiver.renamed.into_inner().unwrap_or_default();
        if left_behind {
            notes.push("something that is not of this transfer is in its staging folder, which therefore stays".into());
        }
        let placed = progress.snapshot().files;
        let told = notes.clone();
        // What the sender could not send it knows.
        notes.extend(unsent.notes);
        let summary = Summary {
            placed,
            // The other end says the second number.
            failed: failed.saturating_add(unsent.left_out),
            notes,
            renamed,
            epochs,
        };
        let done = Done {
            placed,
            failed,
            notes: told,
        };
        // All is in place: what becomes of the connection from here on changes nothing.
        let _ = say(&mut lock(&control), Body::Done(done));
        let _ = lock(&control).close();
        Ok(summary)
    };
    let (tell, heard) = sync_channel(AHEAD);
    let result = std::thread::scope(|scope| {
        // However this ends, so do the threads.
        let _finish = over.finish_at_end();
        scope.spawn(|| pulse.beat(&control));
        scope.spawn(|| over.last_words(&control));
        let over = &over;
        let hear = move |body| match (body, &notes) {
            (Body::Paths(paths), Some(notes)) => notes.heard((&paths).into()),
            (body, _) => drop(tell.send(body)),
        };
        scope.spawn(move || over.hears_by(&mut reader, &hear));
        let heard = heard;
        receiving(&heard).map_err(|error| over.end(error))
    });
    result.map_err(|_| over.why().unwrap_or(Error::Cancelled))
}

/// Everything between the offer and the end. Returns how many keys content was sealed with, and what the sender left out.
fn transfer_all(
    receiver: &Receiver<'_>,
    (connections, direct): (Connections, Option<Direct>),
    heard: &Heard<Body>,
    pulse: &Pulse,
    over: &(dyn Fn(Error) + Sync),
) -> Result<(u64, Sent), Error> {
    let work = |connection: &mut Connection| {
        let result = data::run(receiver, connection);
        (result, connection.reader.epoch())
    };
    let talked = std::thread::scope(|scope| {
        let dealer = scope.spawn(|| deal(&connections, &work, over));
        if let Some(direct) = direct {
            scope.spawn(move || {
                let say = |ours: &Addresses| say(&mut lock(receiver.control), Body::Paths(ours.into()));
                direct.run(receiver.cancel, &say, &|path| receiver.progress.path(path));
            });
        }
        let (partials, found) = channel::<Arc<Incoming>>();
        let checker = scope.spawn(move || {
            for file in found {
                if let Err(error) = partial::name(receiver, &file) {
                    over(error);
                }
            }
        });
        let decider = scope.spawn(move || {
            // Nobody else would notice, and all would wait for each other.
            let _failed = OnPanic(over);
            let _leave = receiver.listed.leave_at_end();
            // When all is decided, content shows that this end is alive, and the sender need not listen until all is sent.
            let _stop = pulse.stop_at_end();
            while let Some(list) = receiver.listed.next() {
                if let Err(error) = decide(receiver, list, &partials) {
                    over(error);
                    break;
                }
            }
        });
        let talked = talk(receiver, heard);
        // At once, so that the threads end; what is returned from here on is not the reason any more.
        let talked = talked.map_err(|error| {
            over(error);
            Error::Cancelled
        });
        connections.stop();
        match (dealer.join(), decider.join(), checker.join()) {
            (Ok(keys), Ok(()), Ok(())) => talked.map(|unsent| (keys, unsent)),
            _ => Err(Error::Protocol("a thread of this end failed")),
        }
    });
    let ended = talked?;
    if receiver.cancel.is_set() {
        return Err(Error::Cancelled);
    }
    let missing = lock(&receiver.slots)
        .iter()
        .filter(|slot| !matches!(slot, Slot::Nothing | Slot::GivenUp))
        .count();
    if missing > 0 {
        return Err(Error::Protocol("files that were announced did not come"));
    }
    Ok(ended)
}

/// Ends the transfer if the thread that has this panics.
struct OnPanic<'a>(&'a (dyn Fn(Error) + Sync));

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)(Error::Protocol("a thread of this end failed"));
        }
    }
}

/// Hears what is there and what was sent.
fn talk(receiver: &Receiver<'_>, heard: &Heard<Body>) -> Result<Sent, Error> {
    let _close = receiver.listed.close_at_end();
    let (mut entries, mut listed) = (0, false);
    loop {
        match next(heard)? {
            Body::Entries(list) => {
                if listed {
                    return Err(Error::Protocol("entries after the last"));
                }
                listed = list.last;
                let list = receiver.read(&list.entries, &mut entries)?;
                if !list.is_empty() {
                    receiver.listed.add(list);
                }
                if listed {
                    receiver.listed.close();
                }
            }
            Body::FileEnd(end) if !end.failed.is_empty() => {
                receiver.give_up(end.file, &Escaped(end.failed.as_bytes()))?;
            }
            Body::FileEnd(end) => {
                let hash = match end.hash.len() {
                    0 => None,
                    _ => Some(
                        end.hash
                            .try_into()
                            .map_err(|_| Error::Protocol("a hash of a wrong length"))?,
                    ),
                };
                if let Some(file) = receiver.incoming(end.file)?
                    && file.ended(hash)? == FileProgress::Complete
                {
                    receiver.complete(&file)?;
                }
            }
            Body::Holes(holes) => {
                for range in holes.ranges.chunks(2) {
                    let &[offset, len] = range else {
                        return Err(Error::Protocol("half a hole"));
                    };
                    let Some(file) = receiver.incoming(holes.file)? else {
                        break;
                    };
                    if let Err(error) = receiver.hole(&file, offset, len) {
                        receiver.file_failed(&file, error)?;
                    }
                }
            }
            Body::Leave(leave) => receiver.left(leave.connection)?,
            Body::Keep(keep) => {
                if let Some(file) = receiver.incoming(keep.file)? {
                    let (bytes, progress) = file.keep(&keep.groups)?;
                    receiver.progress.kept_of(&file.under_way, bytes);
                    if progress == FileProgress::Complete {
                        receiver.complete(&file)?;
                    }
                }
            }
            Body::Sent(mut sent) if listed => {
                sent.notes.truncate(NOTES);
                for note in &mut sent.notes {
                    *note = Escaped(note.as_bytes()).to_string();
                }
                return Ok(sent);
            }
            _ => return Err(Error::Protocol("a message out of place")),
        }
    }
}

/// Admits entries and says what is wanted of each.
fn decide(receiver: &Receiver<'_>, list: Vec<Entry>, partials: &Sender<Arc<Incoming>>) -> Result<(), Error> {
    let first = lock(&receiver.slots).len() as u32;
    let (mut codes, mut rest) = (Vec::with_capacity(list.len()), Vec::new());
    for (id, entry) in (first..).zip(list) {
        // Nobody is asked about what will not come.
        if receiver.cancel.is_set() {
            return Err(Error::Cancelled);
        }
        let (slot, decision) = receiver.admit(id, entry)?;
        if let (Slot::Large(file), Decision::Rest) = (&slot, decision) {
            rest.push(file.clone());
        }
        codes.push(decision as u8);
        lock(&receiver.slots).push(slot);
    }
    say(&mut lock(receiver.control), Body::Decisions(Decisions { first, codes }))?;
    for file in rest {
        // Fails only if the thread has ended, which says why by itself.
        let _ = partials.send(file);
    }
    Ok(())
}

impl Receiver<'_> {
    /// Reads the entries of a message and counts them.
    fn read(&self, mut list: &[u8], count: &mut usize) -> Result<Vec<Entry>, Error> {
        let mut entries = Vec::new();
        while !list.is_empty() {
            if *count >= MAX_ENTRIES {
                return Err(Error::Protocol("more entries than a transfer may have"));
            }
            let (entry, used) =
                Entry::decode(list, self.rules).map_err(|_| Error::Protocol("an entry that no correct end sends"))?;
            list = &list[used..];
            lock(&self.bounds).take(&entry, used)?;
            entries.push(entry);
            *count += 1;
        }
        Ok(entries)
    }
}

impl Slot {
    /// Takes what was expected; nothing more is, but what was given up stays so.
    fn take(&mut self) -> Slot {
        match self {
            Slot::GivenUp => Slot::GivenUp,
            _ => std::mem::replace(self, Slot::Nothing),
        }
    }
}

#[cfg(test)]
mod tests;
