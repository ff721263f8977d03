//! Files of an offer on their way into a folder.

mod writer;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use sealway_drop::cancel::Cancel;
use sealway_drop::fault::Failure;
use sealway_drop::lock;
use sealway_drop::names::{Escaped, RelPath, Rules};
use sealway_drop_transfer::dest::{self, Admission, Answer, Destination, Existing, Placed, Staging};
use sealway_drop_transfer::entry::{Entry, Kind, Time};
use sealway_drop_transfer::progress::{Progress, UnderWay};
use sealway_drop_transfer::send::Summary;
use sha2::{Digest, Sha256};
use tokio::sync::watch;

use crate::calls::SILENCE;
use crate::fingerprint::Fingerprint;
use crate::message::{File, MAX_FILES, MAX_OFFER};
use crate::names;

use writer::Writer;

/// A file up to this size is kept in memory until it is whole.
const SMALL: u64 = 128 << 10;
/// What is gathered before it is written.
const PIECE: usize = 512 << 10;
/// Notes about single files that are kept.
const NOTES: usize = 100;

/// Names that are tried for all files that share one with another. Nobody has been asked yet.
const TRIES: usize = 4 * MAX_FILES;
/// Bytes of names of folders that an offer may come to.
const FOLDERS: usize = 2 * MAX_OFFER;

/// What an offer comes to, before anything is written.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Folders, each before what is in it, and files.
    pub(crate) entries: Vec<Entry>,
    /// Files: their ids, their places among the entries, and the hashes they are to have.
    files: Vec<(String, usize, Option<Fingerprint>)>,
    /// What cannot be received, and why.
    refused: Vec<String>,
}

impl Plan {
    /// Of the files of an offer.
    pub(crate) fn of(files: &[(String, File)], rules: Rules) -> Plan {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = Time {
            seconds: i64::try_from(now.as_secs()).unwrap_or_default(),
            nanoseconds: now.subsec_nanos(),
        };
        let (mut plan, mut paths, mut folders) = (Plan::default(), HashSet::new(), HashSet::new());
        let (mut numbers, mut tries, mut room) = (HashMap::<RelPath, u32>::new(), 0, FOLDERS);
        for (id, file) in files {
            let mut refuse = |why: &dyn std::fmt::Display| {
                let name = Escaped(file.file_name.as_bytes()).to_string();
                let name: String = name.chars().take(200).collect();
                plan.refused.push(format!("{name}: {why}"));
            };
            let path = match names::path(&file.file_name, rules) {
                Ok(path) => path,
                Err(error) => {
                    refuse(&error);
                    continue;
                }
            };
            if i64::try_from(file.size).is_err() {
                refuse(&"no file has so many bytes");
                continue;
            }
            // Phones send pictures of one name from several albums.
            let free = |path: &RelPath| !paths.contains(path) && !folders.contains(path);
            let mut named = Some(path.clone());
            while let Some(taken) = &named
                && !free(taken)
            {
                tries += 1;
                let number = numbers.entry(path.clone()).or_insert(0);
                *number += 1;
                named = match tries > TRIES {
                    true => None,
                    false => names::numbered(&path, *number, rules).ok(),
                };
            }
            let Some(path) = named else {
                refuse(&"too many files of this name");
                continue;
            };
            let mut missing = Vec::new();
            let mut above = path.parent();
            while let Some(folder) = above.filter(|folder| !folders.contains(folder)) {
                above = folder.parent();
                missing.push(folder);
            }
            let needed: usize = missing.iter().map(|folder| folder.key().len() + 64).sum();
            let Some(left) = room.checked_sub(needed) else {
                refuse(&"too many folders");
                continue;
            };
            room = left;
            for folder in missing.into_iter().rev() {
                folders.insert(folder.clone());
                plan.entries.push(entry(folder, Kind::Directory, 0o755, now));
            }
            paths.insert(path.clone());
            plan.files.push((id.clone(), plan.entries.len(), file.hash()));
            let kind = Kind::File {
                size: file.size,
                sparse: false,
            };
            plan.entries
                .push(entry(path, kind, 0o644, file.modified().unwrap_or(now)));
        }
        plan
    }

    /// Whether there is nothing to receive.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

fn entry(path: RelPath, kind: Kind, mode: u32, mtime: Time) -> Entry {
    Entry {
        path,
        kind,
        mode,
        mtime,
    }
}

/// A file that is to come.
#[derive(Debug)]
pub(crate) struct Wanted {
    number: u32,
    pub(crate) entry: Entry,
    hash: Option<Fingerprint>,
}

/// Why a file did not come to its place.
#[derive(Debug)]
pub(crate) enum Failed {
    /// It had more or fewer bytes than were announced.
    Length,
    /// It had another hash.
    Hash,
    /// The connection ended before all of it had come.
    Broken,
    /// Nothing came any more.
    Lost,
    /// All of it was cancelled.
    Stopped,
    /// It cannot be written; the file is given up.
    Storage(String),
}

/// Files on their way. Their staging folder goes when this is dropped.
pub(crate) struct Landing {
    staging: Staging,
    pub(crate) progress: Arc<Progress>,
    summary: Mutex<Summary>,
    pub(crate) stop: watch::Sender<bool>,
}

/// What somebody says to a name that is taken.
pub(crate) type Conflicts<'a> = &'a dyn Fn(&RelPath, &Existing) -> Answer;

impl Landing {
    /// Decides about every file; returns those that are to come, by their ids.
    pub(crate) fn begin(
        destination: &Destination,
        plan: Plan,
        progress: Arc<Progress>,
        conflicts: Conflicts<'_>,
        cancel: &Cancel,
    ) -> Result<(Landing, HashMap<String, Wanted>), sealway_drop::Error> {
        let mut transfer = [0; 32];
        getrandom::fill(&mut transfer)
            .map_err(|_| sealway_drop::Error::Usage("the system gives no random bytes".into()))?;
        let landing = Landing {
            staging: destination.staging(&transfer)?,
            progress,
            summary: Mutex::default(),
            stop: watch::Sender::new(false),
        };
        let bytes = plan.entries.iter().map(Entry::size).fold(0, u64::saturating_add);
        landing.progress.begin(bytes, plan.files.len() as u64);
        for why in &plan.refused {
            landing.note(why.clone());
            landing.progress.file_failed();
        }
        let mut files: HashMap<usize, (String, Option<Fingerprint>)> =
            plan.files.into_iter().map(|(id, at, hash)| (at, (id, hash))).collect();
        let mut wanted = HashMap::new();
        for (at, entry) in plan.entries.into_iter().enumerate() {
            if cancel.is_set() {
                return Err(sealway_drop::Error::Cancelled);
            }
            let number = u32::try_from(at).unwrap_or(u32::MAX);
            let mut admission = landing.staging.admit(number, &entry);
            if let Ok(Admission::Ask { existing }) = &admission {
                let answer = landing.progress.asking(|| conflicts(&entry.path, existing));
                admission = landing.staging.answer(number, &entry, answer);
            }
            let file = files.remove(&at);
            match (admission, file) {
                (Ok(Admission::Fetch { .. }), Some((id, hash))) => {
                    wanted.insert(id, Wanted { number, entry, hash });
                }
                (Ok(Admission::Same), Some(_)) => landing.progress.same(entry.size()),
                (Ok(Admission::Skipped(why)), file) => landing.left_out(&entry, &why, file.is_some()),
                (Ok(_), _) => {}
                // Two names that are one here, or a file where a folder should be: the rest can still come.
                (Err(error), file) if error.cause_for_peer().is_none() => {
                    landing.left_out(&entry, &error, file.is_some());
                }
                (Err(error), _) => return Err(error.into()),
            }
        }
        Ok((landing, wanted))
    }

    fn left_out(&self, entry: &Entry, why: &dyn std::fmt::Display, is_file: bool) {
        if is_file {
            self.note(format!("{}: {why}", entry.path));
            self.progress.file_failed();
        }
    }

    fn note(&self, note: String) {
        let mut summary = lock(&self.summary);
        summary.failed += 1;
        if summary.notes.len() < NOTES {
            summary.notes.push(note);
        }
    }

    /// Takes a file as it comes, to its place.
    pub(crate) async fn take(&self, wanted: &Wanted, mut body: Incoming) -> Result<(), Failed> {
        let size = wanted.entry.size();
        let mut stop = self.stop.subscribe();
        let mut coming = Coming::new(self, wanted);
        loop {
            let frame = tokio::select! {
                _ = stop.wait_for(|stop| *stop) => return Err(Failed::Stopped),
                frame = tokio::time::timeout(SILENCE, body.frame()) => frame,
            };
            match frame {
                Ok(Some(Ok(frame))) => {
                    let Ok(data) = frame.into_data() else { continue };
                    if coming.come + data.len() as u64 > size {
                        return Err(Failed::Length);
                    }
                    coming.add(data).await?;
                }
                Ok(None) => break,
                Ok(Some(Err(_))) => return Err(Failed::Broken),
                Err(_) => return Err(Failed::Lost),
            }
        }
        if coming.come != size {
            return Err(Failed::Length);
        }
        coming.finish().await
    }

    /// A file will not come: its name is noted.
    pub(crate) fn give_up(&self, wanted: &Wanted, why: &str) {
        // What remains of it goes with the folder at the end.
        let _ = self.staging.give_up(wanted.number);
        self.note(format!("{}: {why}", wanted.entry.path));
        self.progress.file_failed();
    }

    /// Ends it. What has its name stays; what has not goes.
    pub(crate) fn conclude<'a>(
        &self,
        missing: impl Iterator<Item = &'a Wanted>,
        why: &str,
    ) -> Result<Summary, sealway_drop::Error> {
        self.stop.send_replace(true);
        for wanted in missing {
            self.give_up(wanted, why);
        }
        let concluded = self.staging.conclude()?;
        let mut summary = std::mem::take(&mut *lock(&self.summary));
        summary.placed = self.progress.snapshot().files;
        if concluded.left_behind {
            let note = "something that is not of this transfer is in its staging folder, which therefore stays";
            summary.notes.push(note.into());
        }
        Ok(summary)
    }

    fn placed(&self, wanted: &Wanted, placed: Result<Placed, dest::Error>) -> Result<(), Failed> {
        match placed {
            Ok(Placed::Named) => {}
            Ok(Placed::Renamed(name)) => {
                let mut summary = lock(&self.summary);
                summary.renamed.count += 1;
                if summary.renamed.first.len() < NOTES {
                    summary.renamed.first.push((wanted.entry.path.clone(), name));
                }
            }
            Ok(Placed::Skipped(why)) => {
                self.left_out(&wanted.entry, &why, true);
                return Ok(());
            }
            Err(error) => return Err(Failed::Storage(error.to_string())),
        }
        self.progress.file_done();
        Ok(())
    }
}

impl Drop for Landing {
    /// What was never concluded leaves nothing behind but files in their places.
    fn drop(&mut self) {
        let _ = self.staging.abandon();
    }
}

/// One file that is coming. Dropped before it is whole, what came of it counts for nothing.
struct Coming<'a> {
    landing: &'a Landing,
    wanted: &'a Wanted,
    under_way: Arc<UnderWay>,
    writer: Option<Writer>,
    gathered: BytesMut,
    come: u64,
}

impl<'a> Coming<'a> {
    fn new(landing: &'a Landing, wanted: &'a Wanted) -> Coming<'a> {
        Coming {
            landing,
            wanted,
            under_way: UnderWay::new(&wanted.entry.path, wanted.entry.size()),
            writer: None,
            gathered: BytesMut::new(),
            come: 0,
        }
    }

    fn is_small(&self) -> bool {
        self.wanted.entry.size() <= SMALL
    }

    fn hash(&self) -> Option<Sha256> {
        self.wanted.hash.map(|_| Sha256::new())
    }

    async fn add(&mut self, data: Bytes) -> Result<(), Failed> {
        self.come += data.len() as u64;
        self.landing.progress.moved_of(&self.under_way, data.len() as u64);
        if self.gathered.is_empty() && !self.is_small() && data.len() >= PIECE / 8 {
            return self.write(data).await;
        }
        self.gathered.extend_from_slice(&data);
        match self.gathered.len() >= PIECE && !self.is_small() {
            true => self.write_gathered().await,
            false => Ok(()),
        }
    }

    async fn write_gathered(&mut self) -> Result<(), Failed> {
        let gathered = self.gathered.split().freeze();
        self.write(gathered).await
    }

    async fn write(&mut self, piece: Bytes) -> Result<(), Failed> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let opened = self.landing.staging.open_file(self.wanted.number, &self.wanted.entry);
                let staged = opened.map_err(|error| Failed::Storage(error.to_string()))?;
                let hash = self.hash();
                self.writer.insert(Writer::start(staged, hash))
            }
        };
        writer.add(piece).await
    }

    async fn finish(mut self) -> Result<(), Failed> {
        let Wanted { number, entry, .. } = self.wanted;
        if self.is_small() {
            let mut hash = self.hash();
            return tokio::task::block_in_place(|| {
                if let Some(hash) = &mut hash {
                    hash.update(&self.gathered);
                }
                self.check(hash)?;
                let placed = self.landing.staging.place_small(*number, entry, &self.gathered);
                self.landing.placed(self.wanted, placed)
            });
        }
        self.write_gathered().await?;
        let Some(mut writer) = self.writer.take() else {
            return Err(Failed::Length);
        };
        self.check(writer.end().await?)?;
        let placed = tokio::task::block_in_place(|| writer.place(entry));
        self.landing.placed(self.wanted, placed)
    }

    fn check(&self, hash: Option<Sha256>) -> Result<(), Failed> {
        let found = hash.map(|hash| Fingerprint::from_hash(hash.finalize().into()));
        match found == self.wanted.hash {
            true => Ok(()),
            false => Err(Failed::Hash),
        }
    }
}

#[cfg(test)]
#[path = "landing_tests.rs"]
mod tests;
