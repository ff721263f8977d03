//! How far a transfer is, for whoever draws it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use sealway_drop::lock;

type Told = Box<dyn Fn(Option<SocketAddr>) + Send + Sync>;

/// Counters that the threads of a transfer add to. Read at any time; each is exact, together they may be a moment apart.
#[derive(Default)]
pub struct Progress {
    clock: Clock,
    waiting: Option<Box<dyn Fn() + Send + Sync>>,
    path: Option<Told>,
    bytes: AtomicU64,
    kept: AtomicU64,
    same_files: AtomicU64,
    same_bytes: AtomicU64,
    files: AtomicU64,
    failed: AtomicU64,
    total_bytes: AtomicU64,
    total_files: AtomicU64,
    /// The larger file that was under way first of those that are, or the last one that was.
    current: Mutex<Option<Arc<UnderWay>>>,
}

/// A larger file whose content moves. It is under way until all of it is done, or nobody but [`Progress`] has it any more.
#[derive(Debug)]
pub struct UnderWay {
    name: String,
    size: u64,
    moved: AtomicU64,
    kept: AtomicU64,
}

impl UnderWay {
    /// Nothing of a file of `size` bytes has moved; `name` is for people.
    pub fn new(name: &impl fmt::Display, size: u64) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_string(),
            size,
            moved: AtomicU64::new(0),
            kept: AtomicU64::new(0),
        })
    }

    fn done(&self) -> u64 {
        let moved = self.moved.load(Ordering::Relaxed);
        // The parts are counted apart from each other: together they may be ahead for a moment.
        moved.saturating_add(self.kept.load(Ordering::Relaxed)).min(self.size)
    }

    fn snapshot(&self) -> FileSnapshot {
        FileSnapshot {
            name: self.name.clone(),
            moved: self.moved.load(Ordering::Relaxed),
            done: self.done(),
            size: self.size,
        }
    }
}

fn is_over(file: &Arc<UnderWay>) -> bool {
    file.done() == file.size || Arc::strong_count(file) == 1
}

/// How far the file is that is under way.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileSnapshot {
    /// Its name, for people.
    pub name: String,
    /// Bytes of its content moved in this run, without those that were lost with a connection and come again.
    pub moved: u64,
    /// Bytes of it that need not move any more.
    pub done: u64,
    /// Bytes it has.
    pub size: u64,
}

/// What [`Progress`] stood at.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Snapshot {
    /// Bytes of content moved in this run.
    pub bytes: u64,
    /// Bytes that did not have to be moved: there already, kept of an earlier run, or holes.
    pub kept: u64,
    /// Files that were there already with the same size and time. Their content was not compared.
    pub same_files: u64,
    /// Their bytes, which `kept` counts too.
    pub same_bytes: u64,
    /// Files in place, those that were there already included.
    pub files: u64,
    /// Files that could not be sent or placed.
    pub failed: u64,
    /// Bytes of all files together.
    pub total_bytes: u64,
    /// Number of all files.
    pub total_files: u64,
}

impl Progress {
    /// Nothing done yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same; `waiting` is called once the other end has been told what there is to send, and somebody there may be asked.
    pub fn with_waiting(waiting: impl Fn() + Send + Sync + 'static) -> Self {
        Self {
            waiting: Some(Box::new(waiting)),
            ..Self::default()
        }
    }

    /// The same; `path` is called with the address of the other end once content goes there directly, and with `None` when it goes through the
    /// relay again.
    #[must_use]
    pub fn and_path(mut self, path: impl Fn(Option<SocketAddr>) + Send + Sync + 'static) -> Self {
        self.path = Some(Box::new(path));
        self
    }

    /// Whether what is offered was accepted, so that content may move.
    pub fn has_begun(&self) -> bool {
        self.clock.begun.get().is_some()
    }

    /// Time since it was accepted, without that in which nothing moved because somebody of this end was asked something.
    pub fn elapsed(&self) -> Duration {
        self.clock.elapsed(Instant::now())
    }

    /// Where it stands.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            bytes: self.bytes.load(Ordering::Relaxed),
            kept: self.kept.load(Ordering::Relaxed),
            same_files: self.same_files.load(Ordering::Relaxed),
            same_bytes: self.same_bytes.load(Ordering::Relaxed),
            files: self.files.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            total_bytes: self.total_bytes.load(Ordering::Relaxed),
            total_files: self.total_files.load(Ordering::Relaxed),
        }
    }

    /// The other end has been told what there is.
    pub fn offered(&self) {
        if let Some(waiting) = &self.waiting {
            waiting();
        }
    }

    /// Content goes another way.
    pub fn path(&self, direct: Option<SocketAddr>) {
        if let Some(path) = &self.path {
            path(direct);
        }
    }

    /// What is offered was accepted: so much is to come.
    pub fn begin(&self, bytes: u64, files: u64) {
        self.total_bytes.store(bytes, Ordering::Relaxed);
        self.total_files.store(files, Ordering::Relaxed);
        self.clock.begin(Instant::now());
    }

    /// Asks somebody something, which is no time of the transfer unless something moves meanwhile.
    pub fn asking<T>(&self, ask: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let answer = ask();
        self.clock.asked(begun, Instant::now());
        answer
    }

    /// Bytes of content moved.
    pub fn moved(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.clock.moved(Instant::now());
    }

    /// Bytes of a larger file moved.
    pub fn moved_of(&self, file: &Arc<UnderWay>, bytes: u64) {
        file.moved.fetch_add(bytes, Ordering::Relaxed);
        self.follow(file);
        self.moved(bytes);
    }

    /// Bytes of a larger file did not have to be moved.
    pub fn kept_of(&self, file: &Arc<UnderWay>, bytes: u64) {
        file.kept.fetch_add(bytes, Ordering::Relaxed);
        self.follow(file);
        self.kept(bytes);
    }

    /// Several may be under way: one is shown from the beginning to the end.
    fn follow(&self, file: &Arc<UnderWay>) {
        let mut current = lock(&self.current);
        if current.as_ref().is_none_or(is_over) {
            *current = Some(Arc::clone(file));
        }
    }

    /// How far the larger file is that is under way.
    pub fn under_way(&self) -> Option<FileSnapshot> {
        let current = lock(&self.current);
        current.as_ref().filter(|now| !is_over(now)).map(|now| now.snapshot())
    }

    /// The name of the larger file that is or was under way last.
    pub fn last_name(&self) -> Option<String> {
        lock(&self.current).as_ref().map(|last| last.name.clone())
    }

    /// Bytes of a larger file that moved were lost with their connection, and come again.
    pub fn lost_of(&self, file: &UnderWay, bytes: u64) {
        file.moved.fetch_sub(bytes, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes did not have to be moved.
    pub fn kept(&self, bytes: u64) {
        self.kept.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A file was there already, by its size and time.
    pub fn same(&self, bytes: u64) {
        self.same_files.fetch_add(1, Ordering::Relaxed);
        self.same_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.kept(bytes);
        self.file_done();
    }

    /// A file is in place.
    pub fn file_done(&self) {
        self.files.fetch_add(1, Ordering::Relaxed);
    }

    /// A file could not be sent or placed.
    pub fn file_failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.snapshot().fmt(f)
    }
}

/// How long a transfer has taken.
#[derive(Debug, Default)]
struct Clock {
    begun: OnceLock<Instant>,
    /// When something last moved, in nanoseconds since it began.
    moved: AtomicU64,
    idle: Mutex<Duration>,
}

impl Clock {
    fn begin(&self, now: Instant) {
        let _ = self.begun.set(now);
    }

    fn moved(&self, now: Instant) {
        if let Some(begun) = self.begun.get() {
            let at = now.saturating_duration_since(*begun).as_nanos();
            self.moved
                .fetch_max(u64::try_from(at).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// Somebody was asked from `from` to `to`: idle from the last move on.
    fn asked(&self, from: Instant, to: Instant) {
        if let Some(begun) = self.begun.get() {
            let last = *begun + Duration::from_nanos(self.moved.load(Ordering::Relaxed));
            *lock(&self.idle) += to.saturating_duration_since(from.max(last));
        }
    }

    fn elapsed(&self, now: Instant) -> Duration {
        let all = self
            .begun
            .get()
            .map_or(Duration::ZERO, |begun| now.saturating_duration_since(*begun));
        all.saturating_sub(*lock(&self.idle))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn thinking_is_no_transfer() {
        let clock = Clock::default();
        let zero = Instant::now();
        let at = |seconds| zero + Duration::from_secs(seconds);
        // Before anything was accepted.
        clock.asked(at(0), at(100));
        assert_eq!(clock.elapsed(at(100)), Duration::ZERO);
        clock.begin(at(100));
        clock.moved(at(103));
        clock.asked(at(104), at(154));
        assert_eq!(clock.elapsed(at(160)), Duration::from_secs(10));
        // Somebody is asked while content moves, and thinks on when it has stopped.
        clock.moved(at(170));
        clock.asked(at(160), at(190));
        assert_eq!(clock.elapsed(at(190)), Duration::from_secs(20));
    }

    #[test]
    fn one_file_is_followed_to_its_end() {
        let progress = Progress::new();
        assert_eq!(progress.under_way(), None);
        let (first, second) = (UnderWay::new(&"first", 10), UnderWay::new(&"second", 20));
        progress.moved_of(&first, 4);
        progress.moved_of(&second, 5);
        progress.kept_of(&first, 3);
        let now = progress.under_way().unwrap();
        assert_eq!((now.name.as_str(), now.moved, now.done, now.size), ("first", 4, 7, 10));
        // A part is lost and comes again: the file is not at its end before that.
        progress.lost_of(&first, 2);
        assert_eq!(progress.under_way().map(|now| (now.moved, now.done)), Some((2, 5)));
        assert_eq!((progress.snapshot().bytes, progress.snapshot().kept), (7, 3));
        progress.moved_of(&first, 3);
        assert_eq!(progress.under_way().map(|now| now.done), Some(8));
        progress.moved_of(&first, 2);
        assert_eq!(progress.under_way(), None);
        progress.moved_of(&second, 1);
        assert_eq!(
            progress.under_way().map(|now| (now.name, now.done)),
            Some(("second".into(), 6))
        );
        // Given up.
        drop(second);
        assert_eq!(progress.under_way(), None);
        assert_eq!(progress.last_name().as_deref(), Some("second"));
        assert_eq!((progress.snapshot().bytes, progress.snapshot().kept), (13, 3));
    }

    #[test]
    fn what_is_the_same_is_kept_and_said() {
        let progress = Progress::new();
        progress.same(7);
        progress.kept(3);
        let now = progress.snapshot();
        assert_eq!((now.same_files, now.same_bytes, now.kept, now.files), (1, 7, 10, 1));
    }
}
