//! What becomes of each file: whether it is wanted, and how it is placed or given up.

use std::sync::Arc;

use super::incoming::{Incoming, Progress as FileProgress};
use super::{Corrupt, NOTES, NOTES_BYTES, Receiver, Slot};
use crate::content::{PackedFile, SMALL};
use crate::dest::{self, Admission, Placed, StagedFile};
use crate::entry::{Entry, Kind};
use crate::groups::{GROUP, GroupHash};
use crate::hashing::Agreed;
use sealway_drop::fault::{Failure, Fault};
use sealway_drop::names::RelPath;
use sealway_drop::wire::control::Decision;
use sealway_drop::{Error, lock};

impl Receiver<'_> {
    pub(super) fn admit(&self, id: u32, entry: Entry) -> Result<(Slot, Decision), Error> {
        let size = entry.size();
        let is_file = matches!(entry.kind, Kind::File { .. });
        let mut admission = self.staging.admit(id, &entry)?;
        if let Admission::Ask { existing } = &admission {
            let ask = || self.progress.asking(|| self.consent.conflict(&entry.path, existing));
            let answer = self.listed.asking(ask);
            admission = self.staging.answer(id, &entry, answer)?;
        }
        Ok(match admission {
            Admission::Same => {
                if is_file {
                    self.progress.same(size);
                }
                (Slot::Nothing, Decision::Nothing)
            }
            Admission::Skipped(why) => {
                self.note(&entry.path, &why);
                if is_file {
                    self.progress.file_failed();
                }
                (Slot::Nothing, Decision::Refused)
            }
            Admission::Directory { .. } | Admission::Symlink => (Slot::Nothing, Decision::Nothing),
            Admission::Fetch { partial } if is_file && size > SMALL => {
                let file = Arc::new(Incoming::new(id, entry, &self.hashing));
                let useful = partial.iter().any(|range| range.end - range.start >= GROUP.min(size));
                file.set_partial(partial);
                (Slot::Large(file), if useful { Decision::Rest } else { Decision::Fetch })
            }
            Admission::Fetch { .. } => (Slot::Small(entry), Decision::Fetch),
            Admission::Ask { .. } => return Err(Error::Protocol("a question that was not answered")),
        })
    }

    /// A larger file that is coming in; `None` if what still comes of it is thrown away.
    pub(super) fn incoming(&self, id: u32) -> Result<Option<Arc<Incoming>>, Error> {
        match lock(&self.slots).get(id as usize) {
            Some(Slot::Large(file)) => Ok(Some(file.clone())),
            Some(Slot::GivenUp) => Ok(None),
            _ => Err(Error::Protocol("content of a file that is not wanted")),
        }
    }

    pub(super) fn staged(&self, file: &Incoming) -> Result<Arc<StagedFile>, Error> {
        file.staged(|| Ok(self.staging.open_file(file.id, &file.entry)?))
    }

    /// A whole small file.
    pub(super) fn small(&self, packed: PackedFile<'_>) -> Result<(), Error> {
        let slot = lock(&self.slots).get_mut(packed.file as usize).map(Slot::take);
        let entry = match slot {
            Some(Slot::Small(entry)) => entry,
            Some(Slot::GivenUp) => return Ok(()),
            _ => return Err(Error::Protocol("a small file that is not wanted")),
        };
        if entry.size() != packed.bytes.len() as u64 {
            return Err(Error::Protocol("a small file of another size than announced"));
        }
        let placed = match (packed.hash, self.hashing) {
            (Some(hash), Agreed::Sampled(_)) => self.place_sampled(&entry, packed, hash)?,
            (Some(hash), _) if hash != *blake3::hash(packed.bytes).as_bytes() => {
                let what = "does not have the hash that was announced";
                return Err(Corrupt { path: entry.path, what }.into());
            }
            _ => self.staging.place_small(packed.file, &entry, packed.bytes),
        };
        self.progress.moved(packed.bytes.len() as u64);
        self.placed(packed.file, &entry.path, placed)
    }

    /// A small file of the sample: what is read back counts.
    fn place_sampled(
        &self,
        entry: &Entry,
        packed: PackedFile<'_>,
        hash: GroupHash,
    ) -> Result<Result<Placed, dest::Error>, Error> {
        let staged = match self.staging.open_file(packed.file, entry) {
            Ok(staged) => staged,
            Err(error) => return Ok(Err(error)),
        };
        let mut back = vec![0; packed.bytes.len()];
        let written = staged
            .write_at(0, packed.bytes)
            .and_then(|_| staged.read_at(&mut back, 0));
        if written.is_ok() && *blake3::hash(&back).as_bytes() != hash {
            self.staging.give_up(packed.file)?;
            return Err(corrupt_sample(entry).into());
        }
        let placed = written.and_then(|()| staged.finish(entry.mode, entry.mtime));
        if placed.is_err() {
            // Small files are not gone on with. The first error is the one that counts.
            let _ = self.staging.give_up(packed.file);
        }
        Ok(placed)
    }

    pub(super) fn hole(&self, file: &Arc<Incoming>, offset: u64, len: u64) -> Result<(), Error> {
        let end = offset
            .checked_add(len)
            .filter(|_| len > 0 && offset.is_multiple_of(GROUP));
        if !end.is_some_and(|end| end.is_multiple_of(GROUP) || end == file.entry.size()) {
            return Err(Error::Protocol("a hole that is not of whole groups"));
        }
        file.claim(offset, len)?;
        let staged = self.staged(file)?;
        staged.write_hole(offset..offset + len)?;
        if self.by_map {
            file.set_holes(offset / GROUP..(offset + len).div_ceil(GROUP));
        } else if self.hashing == Agreed::All {
            for group in offset / GROUP..(offset + len).div_ceil(GROUP) {
                if self.cancel.is_set() {
                    return Err(Error::Cancelled);
                }
                file.set_hash(group, crate::groups::zeros(file.entry.size(), group));
            }
        }
        self.progress.kept_of(&file.under_way, len);
        match file.written(len) {
            FileProgress::More => Ok(()),
            FileProgress::Complete => self.complete(file),
        }
    }

    /// All of a file is there: it is checked and takes its name.
    pub(super) fn complete(&self, file: &Arc<Incoming>) -> Result<(), Error> {
        if let Some(slot) = lock(&self.slots).get_mut(file.id as usize) {
            *slot = Slot::Nothing;
        }
        if !file.is_intact() {
            self.staging.give_up(file.id)?;
            return Err(match self.hashing {
                Agreed::Sampled(_) => corrupt_sample(&file.entry),
                Agreed::Off | Agreed::All => Corrupt {
                    path: file.entry.path.clone(),
                    what: "does not have the hash that was announced; what came of it was thrown away",
                },
            }
            .into());
        }
        let staged = match file.take_staged() {
            Some(staged) => staged,
            None => self.staging.open_file(file.id, &file.entry)?,
        };
        self.placed(
            file.id,
            &file.entry.path,
            staged.finish(file.entry.mode, file.entry.mtime),
        )
    }

    /// A file that cannot be placed does not end the transfer, unless nothing else could be placed either.
    pub(super) fn placed(&self, id: u32, path: &RelPath, placed: Result<Placed, dest::Error>) -> Result<(), Error> {
        match placed {
            Ok(Placed::Named) => self.progress.file_done(),
            Ok(Placed::Renamed(name)) => {
                self.renamed(path, &name);
                self.progress.file_done();
            }
            Ok(Placed::Skipped(why)) => {
                self.note(path, &why);
                self.progress.file_failed();
            }
            Err(error @ dest::Error::NoSpace { .. }) => return Err(error.into()),
            Err(error) => {
                self.staging.give_up(id)?;
                self.note(path, &error);
                self.progress.file_failed();
            }
        }
        Ok(())
    }

    /// Something went wrong with one file. Only what concerns all of them is passed on.
    pub(super) fn file_failed(&self, file: &Incoming, error: Error) -> Result<(), Error> {
        match error.part::<dest::Error>() {
            Some(of_file) if of_file.cause_for_peer().is_none() && of_file.fault() != Fault::Peer => {
                self.give_up(file.id, of_file)
            }
            _ => Err(error),
        }
    }

    /// Goes on without this file; what still comes of it is thrown away.
    pub(super) fn give_up(&self, id: u32, why: &dyn std::fmt::Display) -> Result<(), Error> {
        let slot = lock(&self.slots)
            .get_mut(id as usize)
            .map(|slot| std::mem::replace(slot, Slot::GivenUp));
        let path = match slot {
            Some(Slot::Small(entry)) => entry.path,
            Some(Slot::Large(file)) => {
                file.give_up();
                file.entry.path.clone()
            }
            Some(Slot::GivenUp) => return Ok(()),
            Some(Slot::Nothing) | None => return Err(Error::Protocol("an end of a file that is not coming")),
        };
        // Waits for nobody: a thread that writes to it still finds that it is not open any more.
        let _ = self.staging.give_up(id);
        self.progress.file_failed();
        self.note(&path, why);
        Ok(())
    }

    /// Its name was taken, so it got another one.
    pub(super) fn renamed(&self, path: &RelPath, name: &RelPath) {
        let mut renamed = lock(&self.renamed);
        renamed.count += 1;
        if renamed.first.len() < NOTES {
            renamed.first.push((path.clone(), name.clone()));
        }
    }

    pub(super) fn note(&self, path: &RelPath, why: &dyn std::fmt::Display) {
        let mut failures = lock(&self.failures);
        failures.count += 1;
        let note = format!("{path}: {why}");
        if failures.notes.len() < NOTES && failures.bytes + note.len() <= NOTES_BYTES {
            failures.bytes += note.len();
            failures.notes.push(note);
        }
    }
}

/// What was written of a file is not what the sender has read.
fn corrupt_sample(entry: &Entry) -> Corrupt {
    Corrupt {
        path: entry.path.clone(),
        what: "what was written here is not what the other end has read, so the memory, the kernel or the program of one of the two is at fault; it was thrown away",
    }
}
