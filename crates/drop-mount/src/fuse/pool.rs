//! Threads for calls that block, so that no thread that hears the kernel ever waits for a peer.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use sealway_drop::lock;

type Job = Box<dyn FnOnce() + Send>;

/// Threads that are started when there is something to do, at most `most`, and end when idle. The queue is as long as
/// the kernel makes it: each waiting task has at most one control call.
pub(super) struct Pool {
    shared: Arc<Shared>,
    most: usize,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

const IDLE: Duration = Duration::from_secs(10);

impl Pool {
    pub(super) fn new(most: usize) -> Self {
        Self {
            shared: Arc::default(),
            most: most.max(1),
        }
    }

    /// Has `job` done. If no thread can be started and none is there, it is done here.
    pub(super) fn run(&self, job: impl FnOnce() + Send + 'static) {
        let mut state = lock(&self.shared.state);
        if state.idle <= state.jobs.len() && state.threads < self.most {
            state.threads += 1;
            let shared = Arc::clone(&self.shared);
            let started = std::thread::Builder::new()
                .name("mount-call".into())
                .spawn(move || shared.work());
            if started.is_err() {
                state.threads -= 1;
                if state.threads == 0 {
                    drop(state);
                    return job();
                }
            }
        }
        state.jobs.push_back(Box::new(job));
        drop(state);
        self.shared.more.notify_one();
    }
}

impl Shared {
    fn work(&self) {
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = lock(&self.state);
                continue;
            }
            state.idle += 1;
            let waited = self.more.wait_timeout(state, IDLE);
            let (back, wait) = waited.unwrap_or_else(PoisonError::into_inner);
            state = back;
            state.idle -= 1;
            if wait.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}
