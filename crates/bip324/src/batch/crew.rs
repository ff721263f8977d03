//! The other cores of this processor as an executor: threads that have nothing to do take slabs of those that are busy.

mod load;
mod member;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use sealway_aead::batch::{Backend, Engine};

use load::{Home, Load};
pub use member::CrewMember;

/// Threads that help each other with the packets of their transports.
///
/// Each transport that takes part has a [`CrewMember`] as its executor. A slab that is full goes to a thread of the crew that has
/// nothing to do just then; if there is none, the transport's own thread does it, as it would without a crew. So there is one
/// way to use one thread and many: with no thread that helps, nothing is ever handed over. Results come in order, connection
/// by connection, whoever made them.
///
/// A crew is for cores that are idle while one transport has too much to do. To carry a packet to another core and back costs about as
/// much as to seal it there: with one thread that helps and an idle core for it, batches of 4,096 packets took 0.79 of the time, those
/// of 2,048 and of 16,384 about the same time as without. A transport for each core ([`super::Shards`]) is worth more: two did twice as
/// much as one, and 1.87 times as much in a crew. Where all cores are busy a crew costs time, 1.02 to 1.16 of that without.
///
/// Threads are the caller's. One helps while it is in [`Crew::work`] or [`Crew::work_while`], and also while it waits for a
/// slab of its own transport. What is handed over is a slab of up to [`Crew::SLAB_JOBS`] packets: threads meet at a lock once
/// or more for each slab, never for each packet.
///
/// A thread that is to stay on a core is put there before it calls anything here. The memory of slabs and arenas lies where it
/// is written to first, which is in the node of the thread that uses the transport, and of the first that helps with a slab.
///
/// ```
/// use sealway_bip324::Kind;
/// use sealway_bip324::batch::{Backend, BatchOptions, BatchTransport, Crew, Routing};
/// use sealway_bip324::fschacha::{RecvChain, SendChain};
///
/// fn pings(crew: &Crew) -> Result<usize, sealway_bip324::Error> {
///     let mut batch = BatchTransport::new(BatchOptions::default())?;
///     batch.set_executor(Box::new(crew.member()), Routing::Always);
///     let (send, recv) = (SendChain::new(&[1; 32], &[2; 32])?, RecvChain::new(&[1; 32], &[2; 32])?);
///     let peer = batch.add(send, recv, &[])?;
///     for _ in 0..5000 {
///         batch.submit(peer, Kind::Genuine, b"\x12one ping")?;
///     }
///     Ok(batch.seal().iter().map(|output| output.byte_count()).sum())
/// }
///
/// let crew = Crew::new(Backend::best());
/// let sent = std::thread::scope(|scope| {
///     // As many as there are cores without work of their own.
///     scope.spawn(|| crew.work());
///     let sent = pings(&crew);
///     // Also after an error: the scope waits for its threads.
///     crew.close();
///     sent
/// })?;
/// assert_eq!(sent, 5000 * 29);
/// # Ok::<(), sealway_bip324::Error>(())
/// ```
#[derive(Clone)]
pub struct Crew {
    shared: Arc<Shared>,
}

/// What threads of a crew have in common.
struct Shared {
    backend: Backend,
    state: Mutex<State>,
    /// Something has changed that a waiting thread may want to know.
    news: Condvar,
}

#[derive(Default)]
struct State {
    /// Slabs that nobody works on yet.
    waiting: VecDeque<Box<Load>>,
    /// Slabs that were done, until their members ask for them.
    done: VecDeque<Box<Load>>,
    /// Threads in [`Crew::work`], busy or not.
    helpers: usize,
    /// Threads with nothing to do.
    idle: usize,
    /// Those of them that wait for a slab of their own transport.
    owners: usize,
    closed: bool,
}

impl Crew {
    /// Slabs of each member. Together they have a batch of the usual size, in both directions.
    pub const SLABS: usize = 8;

    /// Bytes of a slab. A member has two such pieces of memory for each.
    pub const SLAB_BYTES: usize = 512 * 1024;

    /// Packets of a slab, at most: as many as fill the vector lanes, and their text stays in the second-level cache.
    pub const SLAB_JOBS: usize = 1024;

    /// A crew without threads.
    pub fn new(backend: Backend) -> Self {
        Crew {
            shared: Arc::new(Shared {
                backend,
                state: Mutex::default(),
                news: Condvar::new(),
            }),
        }
    }

    /// An executor for a transport. It goes on without the help of others once all threads have left.
    pub fn member(&self) -> CrewMember {
        CrewMember::new(self.clone())
    }

    /// How many threads have nothing to do, and nothing waits for them.
    pub fn idle(&self) -> usize {
        let state = self.state();
        state.idle.saturating_sub(state.waiting.len())
    }

    /// Helps until [`Crew::close`].
    pub fn work(&self) {
        self.work_while(|| true);
    }

    /// Helps until [`Crew::close`], or until `goes_on` is false. It is asked before each slab and after [`Crew::wake`], under a
    /// lock of the crew, which it must not use.
    pub fn work_while(&self, mut goes_on: impl FnMut() -> bool) {
        let mut engine = self.engine();
        let mut state = self.state();
        state.helpers += 1;
        while goes_on() {
            if let Some(load) = state.waiting.pop_front() {
                drop(state);
                self.deliver(load.run(&mut engine));
                state = self.state();
                continue;
            }
            if state.closed {
                break;
            }
            state = self.rest(state);
        }
        state.helpers -= 1;
        drop(state);
        // This thread may have been woken for a slab.
        self.shared.news.notify_one();
    }

    /// Asks all threads that have nothing to do whether they go on.
    pub fn wake(&self) {
        // One that has just been told to go on sleeps before the lock is free.
        drop(self.state());
        self.shared.news.notify_all();
    }

    /// Sends all threads out of [`Crew::work`], once nothing waits. Members go on by themselves.
    pub fn close(&self) {
        self.state().closed = true;
        self.wake();
    }

    /// True if a slab more would soon have a thread: one for each that has nothing to do, and one ahead for each that helps, so
    /// that it need not sleep before the next comes. Whoever waits for a slab takes it back if nobody has begun with it.
    fn takes(&self) -> bool {
        let state = self.state();
        state.waiting.len() < state.helpers + state.owners
    }

    /// Hands a slab over.
    fn push(&self, load: Box<Load>) {
        let mut state = self.state();
        state.waiting.push_back(load);
        let sleeps = state.idle > 0;
        drop(state);
        if sleeps {
            self.shared.news.notify_one();
        }
    }

    /// Gives a slab back that is done, if its member is there still.
    fn deliver(&self, load: Box<Load>) {
        let mut state = self.state();
        if load.is_orphan() {
            // It is wiped when dropped, for which nobody is to wait.
            drop(state);
            drop(load);
            return;
        }
        state.done.push_back(load);
        if state.owners > 0 {
            self.shared.news.notify_all();
        }
    }

    /// True if a slab of `home` has come back.
    fn has(&self, home: &Arc<Home>, slab: usize) -> bool {
        self.state().done.iter().any(|load| load.is(home, slab))
    }

    /// Waits for a slab of `home` that was handed over, and helps meanwhile: first with what nobody else has taken of its own.
    fn wait(&self, home: &Arc<Home>, slab: usize, engine: &mut Engine) -> Box<Load> {
        let mut state = self.state();
        loop {
            let place = state.done.iter().position(|load| load.is(home, slab));
            if let Some(load) = place.and_then(|place| state.done.swap_remove_back(place)) {
                if !state.waiting.is_empty() {
                    // This thread may have been woken for another.
                    self.shared.news.notify_one();
                }
                return load;
            }
            if let Some(load) = state.next(home) {
                drop(state);
                let load = load.run(engine);
                if load.is(home, slab) {
                    return load;
                }
                self.deliver(load);
                state = self.state();
                continue;
            }
            state.owners += 1;
            state = self.rest(state);
            state.owners -= 1;
        }
    }

    /// Forgets the slabs of a member that goes. What comes back later is an orphan.
    fn leave(&self, home: Arc<Home>) {
        let mut state = self.state();
        let orphans = [take_of(&home, &mut state.waiting), take_of(&home, &mut state.done)];
        // Under the lock, so that nothing comes back in between.
        drop(home);
        drop(state);
        // They are wiped when dropped, for which nobody is to wait.
        drop(orphans);
    }

    /// Sleeps until there is news.
    fn rest<'a>(&self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.idle += 1;
        let mut state = self.shared.news.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.idle -= 1;
        state
    }

    fn engine(&self) -> Engine {
        Engine::with_backend(self.shared.backend)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is done under the lock that leaves it half changed.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The next slab: one of `home` before others.
    fn next(&mut self, home: &Arc<Home>) -> Option<Box<Load>> {
        let own = self.waiting.iter().position(|load| load.is_of(home));
        self.waiting.remove(own.unwrap_or(0))
    }
}

/// Takes the slabs of a member out of a queue.
fn take_of(home: &Arc<Home>, queue: &mut VecDeque<Box<Load>>) -> VecDeque<Box<Load>> {
    let (own, others) = std::mem::take(queue).into_iter().partition(|load| load.is_of(home));
    *queue = others;
    own
}

impl fmt::Debug for Crew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Crew")
            .field("backend", &self.shared.backend)
            .field("waiting", &state.waiting.len())
            .field("idle", &state.idle)
            .finish_non_exhaustive()
    }
}
