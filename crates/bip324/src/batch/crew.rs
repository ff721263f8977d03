//! The other cores of this processor as an executor: threads that have nothing to do take slabs of those that are busy.

mod load;
mod member;

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

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
/// Threads are the caller's. One helps while it is in [`Crew::work`] or [`Crew::work_while`], and also while it waits for a
/// slab of its own transport. What is handed over is a slab of up to [`Crew::SLAB_JOBS`] packets: only then do two threads
/// meet at a lock.
///
/// ```
/// use sealway_bip324::Kind;
/// use sealway_bip324::batch::{Backend, BatchOptions, BatchTransport, Crew, Routing};
/// use sealway_bip324::fschacha::{RecvChain, SendChain};
///
/// let crew = Crew::new(Backend::best());
/// std::thread::scope(|scope| {
///     // As many as there are cores without work of their own.
///     scope.spawn(|| crew.work());
///     let mut batch = BatchTransport::new(BatchOptions::default())?;
///     batch.set_executor(Box::new(crew.member()), Routing::Always);
///     let (send, recv) = (SendChain::new(&[1; 32], &[2; 32])?, RecvChain::new(&[1; 32], &[2; 32])?);
///     let peer = batch.add(send, recv, &[])?;
///     for _ in 0..5000 {
///         batch.submit(peer, Kind::Genuine, b"\x12one ping")?;
///     }
///     let sent: usize = batch.seal().iter().map(|output| output.byte_count()).sum();
///     assert_eq!(sent, 5000 * 29);
///     crew.close();
///     Ok::<(), sealway_bip324::Error>(())
/// })?;
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
}

#[derive(Default)]
struct State {
    /// Slabs that nobody works on yet.
    waiting: VecDeque<Box<Load>>,
    /// Threads with nothing to do. Each is woken once, for a slab or by [`Crew::close`].
    idle: Vec<Thread>,
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
            }),
        }
    }

    /// An executor for a transport. It goes on without the help of others once all threads have left.
    pub fn member(&self) -> CrewMember {
        CrewMember::new(self.clone())
    }

    /// How many threads wait for something to do.
    pub fn idle(&self) -> usize {
        self.state().idle.len()
    }

    /// Helps until [`Crew::close`].
    pub fn work(&self) {
        self.work_while(|| true);
    }

    /// Helps until [`Crew::close`], or until `goes_on` is false. It is asked before each slab, and whenever somebody wakes
    /// this thread with [`Thread::unpark`].
    pub fn work_while(&self, mut goes_on: impl FnMut() -> bool) {
        let mut engine = self.engine();
        while goes_on() {
            let mut state = self.state();
            if let Some(load) = state.waiting.pop_front() {
                drop(state);
                load.run(&mut engine).deliver();
                continue;
            }
            if state.closed {
                break;
            }
            state.rest();
            drop(state);
            thread::park();
            self.state().rise();
        }
        self.state().pass_on();
    }

    /// Sends all threads out of [`Crew::work`], once nothing waits. Members go on by themselves.
    pub fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.idle.drain(..).for_each(|thread| thread.unpark());
    }

    /// True if a thread has nothing to do.
    fn is_idle(&self) -> bool {
        let state = self.state();
        !state.idle.is_empty()
    }

    /// Hands a slab over.
    fn push(&self, load: Box<Load>) {
        let mut state = self.state();
        state.waiting.push_back(load);
        state.wake();
    }

    /// Waits for a slab of `home` that was handed over, and helps meanwhile: first with what nobody else has taken.
    fn wait(&self, home: &Arc<Home>, slab: usize, engine: &mut Engine) -> Box<Load> {
        loop {
            if let Some(load) = home.take(slab) {
                self.state().pass_on();
                return load;
            }
            let mut state = self.state();
            if let Some(load) = state.next(home) {
                drop(state);
                load.run(engine).deliver();
                continue;
            }
            state.rest();
            drop(state);
            // Whoever delivers, or hands something over, wakes this thread, also if that happened just now.
            thread::park();
            self.state().rise();
        }
    }

    fn engine(&self) -> Engine {
        Engine::with_backend(self.shared.backend)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is done under the lock that could panic halfway.
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The next slab: one of `home` before others.
    fn next(&mut self, home: &Arc<Home>) -> Option<Box<Load>> {
        let own = self.waiting.iter().position(|load| load.is_of(home));
        self.waiting.remove(own.unwrap_or(0))
    }

    /// Notes that this thread is about to sleep.
    fn rest(&mut self) {
        self.idle.push(thread::current());
    }

    /// Notes that this thread is awake.
    fn rise(&mut self) {
        let own = thread::current().id();
        self.idle.retain(|thread| thread.id() != own);
    }

    /// Wakes a thread.
    fn wake(&mut self) {
        if let Some(thread) = self.idle.pop() {
            thread.unpark();
        }
    }

    /// Wakes another thread in place of this one, which may have been woken for a slab and has something else to do.
    fn pass_on(&mut self) {
        if !self.waiting.is_empty() {
            self.wake();
        }
    }
}

impl fmt::Debug for Crew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("Crew")
            .field("backend", &self.shared.backend)
            .field("waiting", &state.waiting.len())
            .field("idle", &state.idle.len())
            .finish_non_exhaustive()
    }
}
