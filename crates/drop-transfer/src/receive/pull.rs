//! Receiving from an end that serves whole files.

use sealway_drop::Error;
use sealway_drop::names::{RelPath, Rules};
use sealway_drop::pull::{Listed, Remote};
use sealway_drop::wire::control::{Done, LISTED_NAMES};

use super::{Consent, Offered};
use crate::dest::{Admission, Destination, Placed, Staging};
use crate::entry::{Entry, Kind, Time};
use crate::progress::{Progress, UnderWay};
use crate::send::Summary;

/// Pulls the files that the other end serves into a folder, if `consent` takes them: those that it was shown, as large as they were
/// shown, and nothing else.
///
/// # Errors
/// As [`receive`](super::receive).
pub fn pull(
    destination: &Destination,
    remote: &dyn Remote,
    progress: &Progress,
    consent: &dyn Consent,
) -> Result<Summary, Error> {
    let files = remote.files(LISTED_NAMES)?;
    let mut offered = Offered::of_files(
        files.iter().map(|file| (&*file.name, file.size)),
        destination.options().rules,
    )?;
    offered.free = destination.available().ok();
    consent.accept(&offered).map_err(|reason| remote.refused(reason))?;
    remote.accept()?;
    progress.begin(offered.bytes, offered.files);
    let mut transfer = [0; 32];
    getrandom::fill(&mut transfer)
        .map_err(|error| Error::Usage(format!("the system gives no random bytes: {error}")))?;
    let pulling = Pulling {
        remote,
        staging: destination.staging(&transfer)?,
        progress,
        consent,
    };
    let mut summary = Summary::default();
    for (id, found) in (0..).zip(&files) {
        pulling.pull(id, found, &mut summary)?;
    }
    remote.settle()?;
    let concluded = pulling.staging.conclude();
    concluded.map_err(|error| remote.failed(error.into()))?;
    remote.done(Done {
        placed: summary.placed,
        failed: summary.failed,
        notes: summary.notes.clone(),
    });
    Ok(summary)
}

struct Pulling<'a> {
    remote: &'a dyn Remote,
    staging: Staging,
    progress: &'a Progress,
    consent: &'a dyn Consent,
}

impl Pulling<'_> {
    fn pull(&self, id: u32, found: &Listed, summary: &mut Summary) -> Result<(), Error> {
        let path = RelPath::new([found.name.as_slice()], Rules::local())
            .map_err(|_| Error::Protocol("a name that no file has"))?;
        let (seconds, nanoseconds) = found.mtime;
        let entry = Entry {
            path,
            kind: Kind::File {
                size: found.size,
                sparse: false,
            },
            mode: found.mode,
            mtime: Time { seconds, nanoseconds },
        };
        let mut admission = self.staging.admit(id, &entry)?;
        if let Admission::Ask { existing } = &admission {
            let answer = self.progress.asking(|| self.consent.conflict(&entry.path, existing));
            admission = self.staging.answer(id, &entry, answer)?;
        }
        let placed = match admission {
            Admission::Fetch { .. } => self.fetch(id, &entry, &found.name)?,
            Admission::Skipped(skip) => Placed::Skipped(skip),
            _ => {
                self.progress.same(found.size);
                summary.placed += 1;
                return Ok(());
            }
        };
        match placed {
            Placed::Skipped(skip) => {
                self.progress.file_failed();
                summary.failed += 1;
                summary.notes.push(format!("{}: {skip}", entry.path));
                return Ok(());
            }
            Placed::Renamed(name) => {
                summary.renamed.count += 1;
                summary.renamed.first.push((entry.path, name));
            }
            Placed::Named => {}
        }
        self.progress.file_done();
        summary.placed += 1;
        Ok(())
    }

    fn fetch(&self, id: u32, entry: &Entry, name: &[u8]) -> Result<Placed, Error> {
        let file = self.staging.open_file(id, entry)?;
        let mut offset = 0;
        let under_way = UnderWay::new(&entry.path, entry.size());
        self.remote.fetch(name, &mut |piece| {
            file.write_at(offset, piece)?;
            offset += piece.len() as u64;
            self.progress.moved_of(&under_way, piece.len() as u64);
            Ok(())
        })?;
        Ok(file.finish(entry.mode, entry.mtime)?)
    }
}
