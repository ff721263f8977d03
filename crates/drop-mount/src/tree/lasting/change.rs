//! Changes by a way that may be lost.
//!
//! A change waits for a way like everything else, but is sent once: one that was lost under way may have been done. Writes that
//! nobody has acknowledged when a way is lost have failed. A file goes on by another way if all that was written to it was
//! acknowledged, nobody else has changed it meanwhile, and no lock on it was lost with the way.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{File, Shared};
use crate::tree::{
    Access, Attr, Call, Change, Changed, LockKind, Opened, Place, Time, TreeError, TreePath, WriteDone, WriteRequest,
};

/// What is known of a file that was opened by a change.
pub(super) struct Writing {
    pub(super) access: Access,
    /// Of the run of the other end that opened it.
    pub(super) run: u64,
    /// Whether something was written since it was last brought to the disk.
    unsynced: bool,
    /// A write was not acknowledged.
    broken: bool,
    /// Who has locks on it.
    locked: HashSet<u64>,
}

impl Writing {
    fn new(access: Access, run: u64) -> Self {
        Self {
            access,
            run,
            unsynced: false,
            broken: false,
            locked: HashSet::new(),
        }
    }

    /// Whether nothing was lost with the way.
    pub(super) fn can_go_on(&self) -> bool {
        !self.broken && self.locked.is_empty()
    }

    /// Whether a run of the other end has what was acknowledged: the same does, another one what was brought to the disk.
    pub(super) fn has_not_lost(&self, run: u64) -> bool {
        self.run == run || !self.unsynced
    }
}

/// What open files were like when this end knew last, by their objects; with the number of those who have them open.
#[derive(Default)]
pub(super) struct Stamps(HashMap<u64, (u64, Time, usize)>);

impl Stamps {
    fn join(&mut self, attr: &Attr) {
        let known = self.0.entry(attr.node).or_insert((attr.size, attr.mtime, 0));
        *known = (attr.size, attr.mtime, known.2 + 1);
    }

    pub(super) fn leave(&mut self, file: &File) {
        if file.writing.is_none() {
            return;
        }
        if let Some(known) = self.0.get_mut(&file.node) {
            known.2 = known.2.saturating_sub(1);
            if known.2 == 0 {
                self.0.remove(&file.node);
            }
        }
    }

    fn saw(&mut self, attr: &Attr) {
        if let Some(known) = self.0.get_mut(&attr.node) {
            (known.0, known.1) = (attr.size, attr.mtime);
        }
    }

    /// Whether an object is as it was.
    pub(super) fn fit(&self, node: u64, attr: &Attr) -> bool {
        let known = self.0.get(&node);
        known.is_some_and(|(size, mtime, _)| (*size, *mtime) == (attr.size, attr.mtime))
    }
}

impl Shared {
    pub(super) fn change(self: &Arc<Self>, change: &Change, call: &Call) -> Result<Changed, TreeError> {
        let handle = change.handle();
        // What changes nothing may be asked again.
        let again = match change {
            Change::Look(_) | Change::LookUp(_) | Change::TestLock(_) => true,
            Change::Open(_, how) => how.create.is_none() && !how.truncate,
            _ => false,
        };
        let synced = |unsynced| {
            if let Change::Sync(Place::Handle(handle), _) = change
                && let Some(file) = self.lock().files.get_mut(handle)
                && let Some(writing) = &mut file.writing
            {
                writing.unsynced = unsynced;
            }
        };
        loop {
            let ((generation, tree), there) = match handle {
                Some(handle) => {
                    let (using, there) = self.reach(handle, call)?;
                    (using, Some(there))
                }
                None => (self.current(call)?, None),
            };
            // What is written from here on is not covered.
            synced(false);
            let done = match there {
                Some(there) => tree.change(&of_handle(change, there), call),
                None => tree.change(change, call),
            };
            if done.is_err() {
                synced(true);
            }
            match done {
                Err(TreeError::Lost) => {
                    self.note_lost(generation);
                    if !again {
                        return Err(TreeError::Lost);
                    }
                }
                Err(error) => return Err(error),
                Ok(changed) => return self.took(change, changed, generation),
            }
        }
    }

    /// Remembers what came of a change.
    fn took(&self, change: &Change, changed: Changed, generation: u64) -> Result<Changed, TreeError> {
        let mut state = self.lock();
        if let (false, Changed::Attr(attr)) = (matches!(change, Change::Lock(_)), &changed) {
            state.stamps.saw(attr);
        }
        match (change, &changed) {
            (Change::Open(path, how), Changed::Opened(opened, run, whole)) => {
                let writing = Writing::new(how.access, *run);
                let handle = state.keep(path, opened, generation, Some(writing));
                state.stamps.join(&opened.attr);
                let opened = Opened { handle, ..*opened };
                return Ok(Changed::Opened(opened, *run, whole.clone()));
            }
            (Change::Rename(from, to, how), _) => {
                let moved = |path: &TreePath| how.moves(path, from, to);
                for file in state.files.values_mut() {
                    if let Some(path) = moved(&file.path) {
                        file.path = path;
                    }
                }
            }
            (Change::Lock(lock), _) => {
                let file = state.files.get_mut(&lock.handle);
                if let Some(writing) = file.and_then(|file| file.writing.as_mut()) {
                    match lock.kind {
                        LockKind::Free if lock.start == 0 && lock.end >= i64::MAX as u64 => {
                            writing.locked.remove(&lock.owner);
                        }
                        LockKind::Free => {}
                        LockKind::Shared | LockKind::Exclusive => {
                            writing.locked.insert(lock.owner);
                        }
                    }
                }
            }
            _ => {}
        }
        Ok(changed)
    }

    pub(super) fn write(self: &Arc<Self>, request: WriteRequest, done: WriteDone) {
        let mut state = self.lock();
        let (generation, way) = (state.generation, state.way.as_ref().map(|way| way.tree.clone()));
        let Some(file) = state.files.get_mut(&request.handle) else {
            drop(state);
            return done(Err(TreeError::Stale));
        };
        let (tree, there) = match (way, file.at) {
            (Some(tree), Some((at, there))) if at == generation => (tree, there),
            _ => {
                if let Some(writing) = &mut file.writing {
                    writing.broken = true;
                }
                drop(state);
                return done(Err(TreeError::Lost));
            }
        };
        drop(state);
        let (shared, handle) = (self.clone(), request.handle);
        let answered = move |result: Result<Attr, TreeError>| {
            let mut state = shared.lock();
            if let Ok(attr) = &result {
                state.stamps.saw(attr);
            }
            let writing = state.files.get_mut(&handle).and_then(|file| file.writing.as_mut());
            if let Some(writing) = writing {
                match &result {
                    Ok(_) => writing.unsynced = true,
                    Err(TreeError::Lost) => writing.broken = true,
                    Err(_) => {}
                }
            }
            drop(state);
            if result == Err(TreeError::Lost) {
                shared.note_lost(generation);
            }
            done(result);
        };
        let request = WriteRequest {
            handle: there,
            ..request
        };
        tree.write(request, Box::new(answered));
    }
}

/// The same of another handle.
fn of_handle(change: &Change, there: u64) -> Change {
    let mut change = change.clone();
    if let Some(handle) = change.handle_mut() {
        *handle = there;
    }
    change
}
