//! A larger file while it comes in.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::dest::StagedFile;
use crate::entry::Entry;
use crate::groups::{GROUP, GroupHash, group_len};
use crate::hashing::{Agreed, FileHash};
use crate::progress::UnderWay;
use sealway_drop::ranges::Ranges;
use sealway_drop::{Error, lock};

/// What is known of the file at this moment.
pub(super) struct Incoming {
    pub(super) id: u32,
    pub(super) entry: Entry,
    pub(super) under_way: Arc<UnderWay>,
    turn: Mutex<()>,
    given_up: AtomicBool,
    state: Mutex<State>,
}

struct State {
    staged: Option<Arc<StagedFile>>,
    /// What was taken, to notice if something comes twice.
    claimed: Ranges,
    /// Bytes of it that are on disk.
    written: u64,
    hash: FileHash,
    /// Bytes on disk of groups of the sample that are not whole.
    sampling: HashMap<u64, u64>,
    /// Groups on disk from an earlier run, which the sender has not confirmed.
    had: HashMap<u64, GroupHash>,
    /// The sender has nothing more of it; the hash it should have.
    end: Option<Option<[u8; 32]>>,
    /// What the journal says an earlier run left.
    partial: Vec<Range<u64>>,
}

/// Whether more of a file is to come.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Progress {
    More,
    /// All is on disk and the sender has said so too.
    Complete,
}

impl Incoming {
    pub(super) fn new(id: u32, entry: Entry, hashing: &Agreed) -> Self {
        let state = State {
            staged: None,
            claimed: Ranges::new(),
            written: 0,
            hash: FileHash::new(hashing, id, entry.size()),
            sampling: HashMap::new(),
            had: HashMap::new(),
            end: None,
            partial: Vec::new(),
        };
        Self {
            id,
            under_way: UnderWay::new(&entry.path, entry.size()),
            entry,
            turn: Mutex::new(()),
            given_up: AtomicBool::new(false),
            state: Mutex::new(state),
        }
    }

    /// Held while something is written.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.turn)
    }

    /// Nothing of the file is wanted any more. True the first time.
    pub(super) fn give_up(&self) -> bool {
        lock(&self.state).staged = None;
        !self.given_up.swap(true, Ordering::SeqCst)
    }

    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::SeqCst)
    }

    /// The temporary file, opened by `open` when it is first needed.
    pub(super) fn staged(
        &self,
        open: impl FnOnce() -> Result<Arc<StagedFile>, Error>,
    ) -> Result<Arc<StagedFile>, Error> {
        let mut state = lock(&self.state);
        if let Some(staged) = &state.staged {
            return Ok(staged.clone());
        }
        let staged = open()?;
        state.staged = Some(staged.clone());
        Ok(staged)
    }

    /// Takes the temporary file, so that it can be put in place.
    pub(super) fn take_staged(&self) -> Option<Arc<StagedFile>> {
        lock(&self.state).staged.take()
    }

    /// Claims bytes before they are written.
    pub(super) fn claim(&self, offset: u64, len: u64) -> Result<(), Error> {
        let end = offset.checked_add(len).filter(|end| *end <= self.entry.size());
        let end = end.ok_or(Error::Protocol("content past the end of a file"))?;
        match lock(&self.state).claimed.insert(offset..end) == len {
            true => Ok(()),
            false => Err(Error::Protocol("the same part of a file twice")),
        }
    }

    /// Claimed bytes that are on disk come again.
    pub(super) fn forget(&self, range: Range<u64>) {
        let mut state = lock(&self.state);
        state.written -= range.end - range.start;
        state.claimed.remove(range);
    }

    /// Claimed bytes are on disk, or read as zeros anyway.
    pub(super) fn written(&self, len: u64) -> Progress {
        let mut state = lock(&self.state);
        state.written += len;
        self.progress(&state)
    }

    pub(super) fn set_hash(&self, group: u64, hash: GroupHash) {
        lock(&self.state).hash.set(group, hash);
    }

    pub(super) fn set_holes(&self, groups: Range<u64>) {
        lock(&self.state).hash.set_holes(groups);
    }

    /// Notes that claimed bytes are on disk; returns the groups of the sample that are whole by that.
    pub(super) fn sampled(&self, range: Range<u64>) -> Vec<u64> {
        let state = &mut *lock(&self.state);
        let mut whole = Vec::new();
        for group in range.start / GROUP..range.end.div_ceil(GROUP) {
            if !state.hash.samples(group) {
                continue;
            }
            let (start, len) = (group * GROUP, group_len(self.entry.size(), group));
            let there = state.sampling.entry(group).or_default();
            *there += range.end.min(start + len) - range.start.max(start);
            if *there == len {
                state.sampling.remove(&group);
                whole.push(group);
            }
        }
        whole
    }

    /// Notes what the journal says an earlier run left.
    pub(super) fn set_partial(&self, partial: Vec<Range<u64>>) {
        lock(&self.state).partial = partial;
    }

    /// What the journal says an earlier run left, once.
    pub(super) fn partial(&self) -> Vec<Range<u64>> {
        std::mem::take(&mut lock(&self.state).partial)
    }

    /// Groups that an earlier run left, as they were found on disk.
    pub(super) fn found(&self, groups: &[(u64, GroupHash)]) {
        lock(&self.state).had.extend(groups.iter().copied());
    }

    /// The sender says that these groups are right. Returns their bytes.
    pub(super) fn keep(&self, groups: &[u64]) -> Result<(u64, Progress), Error> {
        let mut state = lock(&self.state);
        let mut kept = 0;
        for &group in groups {
            let hash = state
                .had
                .remove(&group)
                .ok_or(Error::Protocol("a part confirmed that was not named"))?;
            let (start, len) = (group * GROUP, group_len(self.entry.size(), group));
            if state.claimed.insert(start..start + len) != len {
                return Err(Error::Protocol("the same part of a file twice"));
            }
            state.hash.set(group, hash);
            state.written += len;
            kept += len;
        }
        let progress = self.progress(&state);
        Ok((kept, progress))
    }

    /// The sender has sent everything.
    pub(super) fn ended(&self, hash: Option<[u8; 32]>) -> Result<Progress, Error> {
        let mut state = lock(&self.state);
        if state.end.is_some() || hash.is_none() != state.hash.is_off() {
            return Err(Error::Protocol("an end of a file that does not fit it"));
        }
        state.end = Some(hash);
        Ok(self.progress(&state))
    }

    fn progress(&self, state: &State) -> Progress {
        match state.written == self.entry.size() && state.end.is_some() {
            true => Progress::Complete,
            false => Progress::More,
        }
    }

    /// Whether what is hashed of the file is what the sender says; true where nothing is.
    pub(super) fn is_intact(&self) -> bool {
        let state = lock(&self.state);
        match (state.hash.value(), state.end) {
            (Some(ours), Some(Some(theirs))) => ours == theirs,
            (None, Some(None)) => state.hash.is_off(),
            _ => false,
        }
    }
}
