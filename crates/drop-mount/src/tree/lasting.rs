//! A tree whose way may be lost and found again.
//!
//! Whoever uses it sees one tree all the time. While there is no way to it, calls and reads wait, each as long as it may take,
//! and go on when there is one again. A file that was open is opened again; if it is no longer what it was, its reads fail with
//! [`TreeError::Stale`], so that nobody gets the end of another content behind the beginning of this one.

mod change;
mod reopen;

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use super::{
    Attr, Call, Change, Changed, Chunk, Event, EventSink, Extent, Hook, Opened, Page, ReadDone, ReadRequest,
    RemoteTree, Space, Subscription, TreeError, TreePath, WriteDone, WriteRequest,
};
use change::{Stamps, Writing};
use sealway_drop::lock;

/// Told when the way is found to be lost. Must not block.
pub type Lost = Arc<dyn Fn() + Send + Sync>;

/// How often a read may fail on a way that is said to stand, before the way is taken for lost.
const TRIES: u32 = 2;

/// A tree that waits for its way; see the module. Dropping it ends everything that waits.
pub struct LastingTree(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    way: Option<Way>,
    /// Number of the way that stands, or stood last.
    generation: u64,
    over: bool,
    files: HashMap<u64, File>,
    stamps: Stamps,
    next: u64,
    parked: Vec<Parked>,
    sink: Option<EventSink>,
    news: Option<Subscription>,
}

struct Way {
    tree: Arc<dyn RemoteTree>,
    lost: Lost,
}

/// A file that is open here.
struct File {
    path: TreePath,
    node: u64,
    /// Of what was read of it last.
    version: u64,
    /// By which way it is open there, and under which handle.
    at: Option<(u64, u64)>,
    stale: bool,
    /// Of one that was opened by a change.
    writing: Option<Writing>,
}

/// A read that waits for a way.
struct Parked {
    request: ReadRequest,
    done: ReadDone,
    tries: u32,
    _hook: Hook,
}

/// A way as a call uses it. It may be the last one who holds the tree, so it is not to be dropped under the lock.
type Using = (u64, Arc<dyn RemoteTree>);

impl State {
    /// Takes in a file that was opened by a way. Gives the handle that it has here.
    fn keep(&mut self, path: &TreePath, opened: &Opened, generation: u64, writing: Option<Writing>) -> u64 {
        let file = File {
            path: path.clone(),
            node: opened.attr.node,
            version: opened.attr.version,
            at: Some((generation, opened.handle)),
            stale: false,
            writing,
        };
        self.next += 1;
        self.files.insert(self.next, file);
        self.next
    }
}

impl LastingTree {
    /// Without a way.
    ///
    /// # Errors
    /// What the system says if it gives no thread.
    pub fn new() -> std::io::Result<Self> {
        let shared: Arc<Shared> = Arc::default();
        let working = shared.clone();
        let thread = std::thread::Builder::new().name("mount-again".into());
        thread.spawn(move || working.work())?;
        Ok(Self(shared))
    }

    /// There is a way. `lost` is told once if it is found to be lost.
    pub fn set(&self, tree: Arc<dyn RemoteTree>, lost: Lost) {
        let mut state = self.0.lock();
        if state.over {
            return;
        }
        state.generation += 1;
        let (generation, sink) = (state.generation, state.sink.clone());
        let before = (
            state.way.replace(Way {
                tree: tree.clone(),
                lost,
            }),
            state.news.take(),
        );
        drop(state);
        drop(before);
        self.0.changed.notify_all();
        if let Some(sink) = sink {
            self.0.subscribe(&(generation, tree), sink.clone());
            // Nobody has told what happened meanwhile.
            sink(Event::Everything);
        }
    }

    /// There is no way for now.
    pub fn lose(&self) {
        let mut state = self.0.lock();
        let before = (state.way.take(), state.news.take());
        drop(state);
        drop(before);
    }

    /// There will be none any more: what waits fails with [`TreeError::Lost`], and so does everything from now on.
    pub fn end(&self) {
        let mut state = self.0.lock();
        state.over = true;
        let before = (state.way.take(), state.news.take(), state.sink.take());
        drop(state);
        drop(before);
        self.0.changed.notify_all();
    }
}

impl Drop for LastingTree {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Does a call by the way there is, or by the next one.
    fn call<T>(
        self: &Arc<Self>,
        call: &Call,
        make: impl Fn(&dyn RemoteTree) -> Result<T, TreeError>,
    ) -> Result<(u64, T), TreeError> {
        loop {
            let (generation, tree) = self.current(call)?;
            match make(&*tree) {
                Ok(made) => return Ok((generation, made)),
                Err(TreeError::Lost) => self.note_lost(generation),
                Err(error) => return Err(error),
            }
        }
    }

    /// The way there is; waits for it.
    fn current(self: &Arc<Self>, call: &Call) -> Result<Using, TreeError> {
        let mut hook = None;
        let mut state = self.lock();
        loop {
            if state.over {
                return Err(TreeError::Lost);
            }
            if let Some(way) = &state.way {
                return Ok((state.generation, way.tree.clone()));
            }
            let left = call.left()?;
            if hook.is_none() {
                // Not under the lock: it may be called off already, and then wakes at once.
                drop(state);
                hook = Some(call.cancel.on_cancel(self.waker()));
                state = self.lock();
                continue;
            }
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn waker(self: &Arc<Self>) -> impl FnOnce() + Send + 'static {
        let shared = Arc::downgrade(self);
        move || {
            if let Some(shared) = Weak::upgrade(&shared) {
                // Whoever has looked before waits by now.
                drop(shared.lock());
                shared.changed.notify_all();
            }
        }
    }

    fn note_lost(&self, generation: u64) {
        let mut state = self.lock();
        if state.generation != generation {
            return;
        }
        let (way, news) = (state.way.take(), state.news.take());
        drop(state);
        if let Some(way) = way {
            (way.lost)();
        }
        drop(news);
    }

    fn subscribe(self: &Arc<Self>, (generation, tree): &Using, sink: EventSink) {
        let (shared, generation) = (Arc::downgrade(self), *generation);
        let told = move |event| match (event, shared.upgrade()) {
            (Event::Lost, Some(shared)) => shared.note_lost(generation),
            (Event::Lost, None) => {}
            (event, _) => sink(event),
        };
        match tree.subscribe(Arc::new(told)) {
            Ok(news) => {
                let mut state = self.lock();
                let news = match state.generation == generation && state.way.is_some() {
                    true => state.news.replace(news),
                    false => Some(news),
                };
                drop(state);
                drop(news);
            }
            Err(TreeError::Lost) => self.note_lost(generation),
            // Without news the time limits stand.
            Err(error) => tracing::debug!(%error, "no news of changes"),
        }
    }

    /// Reads by the way there is if the file is open there; else the read waits.
    fn submit(self: &Arc<Self>, request: ReadRequest, done: ReadDone, tries: u32) {
        let state = self.lock();
        let Some(file) = state.files.get(&request.handle) else {
            drop(state);
            return done(Err(TreeError::Stale));
        };
        match (&state.way, file.at) {
            (Some(way), Some((generation, handle))) if generation == state.generation => {
                let using = (generation, way.tree.clone());
                drop(state);
                self.read(&using, handle, request, done, tries);
            }
            _ => {
                drop(state);
                self.park(request, done, tries);
            }
        }
    }

    fn park(self: &Arc<Self>, request: ReadRequest, done: ReadDone, tries: u32) {
        let _hook = request.cancel.on_cancel(self.waker());
        let parked = Parked {
            request,
            done,
            tries,
            _hook,
        };
        let mut state = self.lock();
        if state.over {
            drop(state);
            return (parked.done)(Err(TreeError::Lost));
        }
        state.parked.push(parked);
        drop(state);
        self.changed.notify_all();
    }

    fn read(
        self: &Arc<Self>,
        (generation, tree): &Using,
        handle: u64,
        request: ReadRequest,
        done: ReadDone,
        tries: u32,
    ) {
        let (shared, generation, asked) = (self.clone(), *generation, request.clone());
        let alive = Arc::downgrade(tree);
        let answered = move |result: Result<Chunk, TreeError>| match result {
            Err(TreeError::Lost) => {
                // Part of the way may be lost, and the rest of it do.
                let alive = alive.upgrade().is_some_and(|tree| tree.is_alive());
                if !alive || tries >= TRIES {
                    shared.note_lost(generation);
                }
                shared.park(asked, done, tries + 1);
            }
            Ok(chunk) => {
                if let Some(file) = shared.lock().files.get_mut(&asked.handle) {
                    file.version = chunk.version;
                }
                done(Ok(chunk));
            }
            Err(error) => done(Err(error)),
        };
        tree.submit(ReadRequest { handle, ..request }, Box::new(answered));
    }

    /// Takes up what waits, in a thread of its own, until the end.
    fn work(self: &Arc<Self>) {
        let mut state = self.lock();
        loop {
            let (now, ready) = (Instant::now(), state.over || state.way.is_some());
            let due =
                |parked: &mut Parked| ready || parked.request.deadline <= now || parked.request.cancel.is_cancelled();
            let due: Vec<Parked> = state.parked.extract_if(.., due).collect();
            if !due.is_empty() {
                drop(state);
                due.into_iter().for_each(|parked| self.take_up(parked));
                state = self.lock();
                continue;
            }
            if state.over {
                return;
            }
            let next = state.parked.iter().map(|parked| parked.request.deadline).min();
            state = match next {
                Some(at) => {
                    let woken = self.changed.wait_timeout(state, at.saturating_duration_since(now));
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn take_up(self: &Arc<Self>, parked: Parked) {
        let Parked {
            request, done, tries, ..
        } = parked;
        let call = Call {
            deadline: request.deadline,
            cancel: request.cancel.clone(),
        };
        match call.left().and_then(|_| self.opened(request.handle, &call)) {
            Ok((using, handle)) => self.read(&using, handle, request, done, tries),
            Err(TreeError::Lost) if !self.lock().over => self.park(request, done, tries),
            Err(error) => done(Err(error)),
        }
    }
}

impl RemoteTree for LastingTree {
    fn attr(&self, path: &TreePath, call: &Call) -> Result<Attr, TreeError> {
        Ok(self.0.call(call, |tree| tree.attr(path, call))?.1)
    }

    fn list(&self, path: &TreePath, cursor: u64, limit: usize, call: &Call) -> Result<Page, TreeError> {
        Ok(self.0.call(call, |tree| tree.list(path, cursor, limit, call))?.1)
    }

    fn read_link(&self, path: &TreePath, call: &Call) -> Result<Vec<u8>, TreeError> {
        Ok(self.0.call(call, |tree| tree.read_link(path, call))?.1)
    }

    fn open(&self, path: &TreePath, call: &Call) -> Result<Opened, TreeError> {
        let (generation, opened) = self.0.call(call, |tree| tree.open(path, call))?;
        let handle = self.0.lock().keep(path, &opened, generation, None);
        Ok(Opened { handle, ..opened })
    }

    fn submit(&self, request: ReadRequest, done: ReadDone) {
        self.0.submit(request, done, 0);
    }

    fn extent(&self, handle: u64, offset: u64, call: &Call) -> Result<Extent, TreeError> {
        loop {
            let ((generation, tree), handle) = self.0.reach(handle, call)?;
            match tree.extent(handle, offset, call) {
                Err(TreeError::Lost) => self.0.note_lost(generation),
                told => return told,
            }
        }
    }

    fn space(&self, call: &Call) -> Result<Space, TreeError> {
        Ok(self.0.call(call, |tree| tree.space(call))?.1)
    }

    fn close(&self, handle: u64) {
        let mut state = self.0.lock();
        let file = state.files.remove(&handle);
        if let Some(file) = &file {
            state.stamps.leave(file);
        }
        let open = file.and_then(|file| file.at);
        let (Some((generation, handle)), Some(way)) = (open, &state.way) else {
            return;
        };
        if generation == state.generation {
            let tree = way.tree.clone();
            drop(state);
            tree.close(handle);
        }
    }

    fn subscribe(&self, sink: EventSink) -> Result<Subscription, TreeError> {
        let mut state = self.0.lock();
        let before = state.sink.replace(sink.clone());
        let using = state.way.as_ref().map(|way| (state.generation, way.tree.clone()));
        drop(state);
        drop(before);
        if let Some(using) = using {
            self.0.subscribe(&using, sink);
        }
        Ok(Subscription::new(Subscribed(Arc::downgrade(&self.0))))
    }

    fn change(&self, change: &Change, call: &Call) -> Result<Changed, TreeError> {
        self.0.change(change, call)
    }

    fn write(&self, request: WriteRequest, done: WriteDone) {
        self.0.write(request, done);
    }

    fn is_prepared(&self, handle: u64) -> bool {
        self.0.is_open_there(handle)
    }

    fn prepare(&self, handle: u64, call: &Call) -> Result<(), TreeError> {
        self.0.reach(handle, call).map(drop)
    }

    fn is_alive(&self) -> bool {
        !self.0.lock().over
    }
}

/// Ends the news when it is dropped.
struct Subscribed(Weak<Shared>);

impl Drop for Subscribed {
    fn drop(&mut self) {
        if let Some(shared) = self.0.upgrade() {
            let mut state = shared.lock();
            let before = (state.sink.take(), state.news.take());
            drop(state);
            drop(before);
        }
    }
}

#[cfg(test)]
#[path = "lasting_tests.rs"]
mod tests;
