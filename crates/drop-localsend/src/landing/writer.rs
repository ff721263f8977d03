//! A file that is hashed and written in a thread of its own, while what follows is received and opened.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use sealway_drop::lock;
use sealway_drop_transfer::dest::{self, Placed, StagedFile};
use sealway_drop_transfer::entry::Entry;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::Failed;

/// Pieces that may wait for the disk, mostly a few hundred KiB each and always below 1 MiB. More would keep more memory busy, and no thread.
const WAITING: usize = 2;

/// Writes a file from its beginning on. Dropped before it is placed, what was written counts for nothing.
pub(super) struct Writer {
    shared: Arc<Shared>,
    pieces: Option<mpsc::Sender<Bytes>>,
    thread: Option<JoinHandle<Result<(), Failed>>>,
    placed: bool,
}

struct Shared {
    staged: Arc<StagedFile>,
    /// Locked while a piece is written.
    state: Mutex<State>,
}

struct State {
    written: u64,
    hash: Option<Sha256>,
    /// Nothing is written any more.
    over: bool,
}

impl Writer {
    /// Takes the file over; `hash` is told all that is written.
    pub(super) fn start(staged: Arc<StagedFile>, hash: Option<Sha256>) -> Writer {
        let state = State {
            written: 0,
            hash,
            over: false,
        };
        let shared = Arc::new(Shared {
            staged,
            state: Mutex::new(state),
        });
        let (pieces, mut coming) = mpsc::channel::<Bytes>(WAITING);
        let writing = shared.clone();
        let thread = tokio::task::spawn_blocking(move || {
            while let Some(piece) = coming.blocking_recv() {
                if !writing.write(&piece)? {
                    break;
                }
            }
            Ok(())
        });
        Writer {
            shared,
            pieces: Some(pieces),
            thread: Some(thread),
            placed: false,
        }
    }

    /// Hands over what comes next; waits while too much of it waits for the disk.
    ///
    /// # Errors
    /// That of an earlier piece.
    pub(super) async fn add(&mut self, piece: Bytes) -> Result<(), Failed> {
        let taken = match &self.pieces {
            Some(pieces) => pieces.send(piece).await.is_ok(),
            None => false,
        };
        match taken {
            true => Ok(()),
            false => Err(self.end().await.err().unwrap_or(Failed::Stopped)),
        }
    }

    /// Waits until all of it is written; returns what was hashed.
    ///
    /// # Errors
    /// If something could not be written.
    pub(super) async fn end(&mut self) -> Result<Option<Sha256>, Failed> {
        self.pieces = None;
        if let Some(thread) = self.thread.take() {
            thread.await.map_err(|error| Failed::Storage(error.to_string()))??;
        }
        Ok(lock(&self.shared.state).hash.take())
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// Those of [`StagedFile::finish`].
    pub(super) fn place(mut self, entry: &Entry) -> Result<Placed, dest::Error> {
        self.placed = true;
        self.shared.staged.finish(entry.mode, entry.mtime)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.placed {
            return;
        }
        // What was written is not to be taken for content when the file comes again, and what waits is not to be written over that.
        let mut state = lock(&self.shared.state);
        state.over = true;
        let staged = &self.shared.staged;
        let _ = staged.discard(0..staged.size());
    }
}

impl Shared {
    /// Whether the next piece is to be written.
    fn write(&self, piece: &[u8]) -> Result<bool, Failed> {
        let mut state = lock(&self.state);
        if state.over {
            return Ok(false);
        }
        if let Some(hash) = &mut state.hash {
            hash.update(piece);
        }
        let written = self.staged.write_at(state.written, piece);
        written.map_err(|error| Failed::Storage(error.to_string()))?;
        state.written += piece.len() as u64;
        Ok(true)
    }
}
