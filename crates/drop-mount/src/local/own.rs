//! News of changes without those that the end itself has made who is to be told.
//!
//! What is told comes from the system, which does not say who did it. So what a file was like after a change of that end is kept,
//! and news of it are passed over as long as it is still like that. Before each change it is looked whether somebody else has
//! changed the file since; that is told then, as its own news would be taken for those of the change.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};

use super::{LocalTree, Locks};
use crate::tree::{Attr, Change, Changed, Event, EventSink, Place, RenameHow, Sinks, Time, TreeError, TreePath};
use sealway_drop::lock;

/// Files and names that are kept at most; what is told of others is told though it was the end itself.
const KEPT: usize = 8192;

/// Changes of one other end.
pub struct Own {
    tree: Arc<LocalTree>,
    locks: Locks,
    state: Mutex<State>,
    sinks: Sinks,
}

#[derive(Default)]
struct State {
    /// What each object was like when that end had last changed it.
    objects: HashMap<u64, Stamp>,
    /// What each name meant then.
    names: HashMap<TreePath, Option<u64>>,
    /// Names of what is open for changes.
    open: HashMap<u64, TreePath>,
    order: VecDeque<TreePath>,
}

/// What shows a change: size, permissions, and both times.
type Stamp = (u64, u32, Time, Time);

fn stamp(attr: &Attr) -> Stamp {
    (attr.size, attr.mode, attr.mtime, attr.ctime)
}

impl Own {
    /// Nothing has been changed yet.
    pub fn new(tree: Arc<LocalTree>) -> Self {
        Self {
            tree,
            locks: Locks::default(),
            state: Mutex::default(),
            sinks: Sinks::default(),
        }
    }

    /// As [`LocalTree::apply`], for this end.
    ///
    /// # Errors
    /// As there.
    pub fn apply(&self, change: &Change) -> Result<Changed, TreeError> {
        let (paths, handle): (Vec<&TreePath>, _) = match change {
            Change::Open(path, how) if how.create.is_some() || how.truncate => (vec![path], None),
            Change::Open(path, _) => return self.open(path, self.tree.apply(change, &self.locks)),
            Change::Set(Place::Handle(handle), _) | Change::Allocate { handle, .. } => (Vec::new(), Some(*handle)),
            Change::Set(Place::Path(path), _)
            | Change::MakeDirectory(path, _)
            | Change::MakeLink(path, _)
            | Change::Remove(path)
            | Change::RemoveDirectory(path) => (vec![path], None),
            Change::Rename(from, to, _) => (vec![from, to], None),
            Change::Close(handle) => {
                self.closed(*handle);
                return self.tree.apply(change, &self.locks);
            }
            Change::Look(_) | Change::LookUp(_) | Change::Sync(..) | Change::Lock(_) | Change::TestLock(_) => {
                return self.tree.apply(change, &self.locks);
            }
        };
        let mut state = lock(&self.state);
        let mut foreign = Vec::new();
        for path in &paths {
            foreign.extend(state.foreign(path, self.tree.look(path).ok().as_ref()));
        }
        if let Some(handle) = handle {
            foreign.extend(self.before(&state, handle));
        }
        let done = self.tree.apply(change, &self.locks);
        for path in &paths {
            state.note(path, self.tree.look(path).ok().as_ref());
            if let Some((parent, _)) = path.split()
                && let Ok(attr) = self.tree.look(&parent)
            {
                state.note_object(&attr);
            }
        }
        if let (Some(_), Ok(Changed::Attr(attr))) = (handle, &done) {
            state.note_object(attr);
        }
        match (change, &done) {
            (Change::Open(path, _), Ok(Changed::Opened(opened, ..))) => {
                state.open.insert(opened.handle, path.clone());
            }
            (Change::Rename(from, to, how), Ok(_)) => state.moved(from, to, *how),
            _ => {}
        }
        drop(state);
        foreign.iter().for_each(|event| self.sinks.tell(event));
        done
    }

    /// As [`LocalTree::put`], for this end.
    ///
    /// # Errors
    /// As there.
    pub fn put(&self, handle: u64, offset: u64, append: bool, data: &[u8]) -> Result<Attr, TreeError> {
        let mut state = lock(&self.state);
        let foreign = self.before(&state, handle);
        let done = self.tree.put(handle, offset, append, data);
        match &done {
            Ok(attr) => state.note_object(attr),
            // Some of it may be there.
            Err(_) => state.note_handle(&self.tree, handle),
        }
        drop(state);
        foreign.iter().for_each(|event| self.sinks.tell(event));
        done
    }

    /// The end has closed a file.
    pub fn closed(&self, handle: u64) {
        lock(&self.state).open.remove(&handle);
    }

    /// A sink that passes on what others did, to `sink`.
    pub fn filter(self: &Arc<Self>, sink: EventSink) -> EventSink {
        self.sinks.add(&sink);
        let own = Arc::downgrade(self);
        Arc::new(move |event| {
            let known = own.upgrade().is_some_and(|own| own.is_own(&event));
            if !known {
                sink(event);
            }
        })
    }

    /// A file that is opened as it is: what it is like is known at the other end from now on.
    fn open(&self, path: &TreePath, opened: Result<Changed, TreeError>) -> Result<Changed, TreeError> {
        if let Ok(Changed::Opened(opened, ..)) = &opened {
            let mut state = lock(&self.state);
            state.note(path, Some(&opened.attr));
            state.open.insert(opened.handle, path.clone());
        }
        opened
    }

    /// What is to be told of an open file before it is changed.
    fn before(&self, state: &State, handle: u64) -> Option<Event> {
        let file = self.tree.opened(handle).ok()?;
        let attr = self.tree.look_at(&*file).ok()?;
        match state.objects.get(&attr.node) {
            Some(known) if *known == stamp(&attr) => None,
            _ => Some(match state.open.get(&handle) {
                Some(path) => Event::Changed(path.clone()),
                None => Event::Everything,
            }),
        }
    }

    /// Whether what is told is the doing of that end: what is there is what it left.
    fn is_own(&self, event: &Event) -> bool {
        let state = lock(&self.state);
        match event {
            Event::Changed(path) => match self.tree.look(path) {
                Ok(attr) => state.objects.get(&attr.node) == Some(&stamp(&attr)),
                Err(_) => state.names.get(path) == Some(&None),
            },
            Event::Entry(path) => {
                let there = self.tree.look(path).ok().map(|attr| attr.node);
                state.names.get(path) == Some(&there)
            }
            Event::Everything | Event::Lost => false,
        }
    }
}

impl State {
    /// What is to be told of a path before it is changed.
    fn foreign(&self, path: &TreePath, there: Option<&Attr>) -> Option<Event> {
        let meant = self.names.get(path)?;
        if *meant != there.map(|attr| attr.node) {
            return Some(Event::Entry(path.clone()));
        }
        let attr = there?;
        let known = self.objects.get(&attr.node)?;
        (*known != stamp(attr)).then(|| Event::Changed(path.clone()))
    }

    fn note(&mut self, path: &TreePath, attr: Option<&Attr>) {
        if self.names.insert(path.clone(), attr.map(|attr| attr.node)).is_none() {
            self.order.push_back(path.clone());
        }
        if let Some(attr) = attr {
            self.note_object(attr);
        }
        while self.order.len() > KEPT {
            if let Some(oldest) = self.order.pop_front() {
                self.names.remove(&oldest);
            }
        }
    }

    fn note_object(&mut self, attr: &Attr) {
        if self.objects.len() >= 2 * KEPT {
            self.objects.clear();
        }
        self.objects.insert(attr.node, stamp(attr));
    }

    fn note_handle(&mut self, tree: &LocalTree, handle: u64) {
        if let Ok(file) = tree.opened(handle)
            && let Ok(attr) = tree.look_at(&*file)
        {
            self.note_object(&attr);
        }
    }

    /// Paths of what is open follow a rename.
    fn moved(&mut self, from: &TreePath, to: &TreePath, how: RenameHow) {
        for path in self.open.values_mut() {
            if let Some(now) = how.moves(path, from, to) {
                *path = now;
            }
        }
    }
}
