//! Threads that do nothing but help.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

use super::Crew;

/// Threads of a [`Crew`], made by [`Crew::start`]. They end, after the slab they are at, when this is dropped.
pub struct CrewThreads {
    crew: Crew,
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl CrewThreads {
    pub(super) fn start(
        crew: &Crew,
        count: usize,
        on_start: impl Fn(usize) + Send + Sync + 'static,
    ) -> io::Result<CrewThreads> {
        let mut threads = CrewThreads {
            crew: crew.clone(),
            over: Arc::default(),
            threads: Vec::with_capacity(count),
        };
        let on_start = Arc::new(on_start);
        for number in 0..count {
            let (crew, over, on_start) = (crew.clone(), Arc::clone(&threads.over), Arc::clone(&on_start));
            let work = move || {
                on_start(number);
                crew.work_while(|| !over.load(Ordering::SeqCst));
            };
            threads
                .threads
                .push(Builder::new().name(format!("crew-{number}")).spawn(work)?);
        }
        Ok(threads)
    }
}

impl Drop for CrewThreads {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        self.crew.wake();
        for thread in self.threads.drain(..) {
            // One that panicked has said so, and helps no more.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for CrewThreads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CrewThreads")
            .field("threads", &self.threads.len())
            .finish_non_exhaustive()
    }
}
