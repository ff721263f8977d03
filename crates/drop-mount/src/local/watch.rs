//! News of changes in a folder, by inotify.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};

use rustix::event::{EventfdFlags, PollFd, PollFlags};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::by_handle;
use crate::tree::{Event, EventSink, Sinks, Subscription, TreePath};
use sealway_drop::lock;

/// One inotify instance with its thread, which ends when this is dropped.
pub(super) struct Watcher {
    shared: Arc<Shared>,
    most: usize,
}

struct Shared {
    inotify: OwnedFd,
    stop: OwnedFd,
    watches: Mutex<Watches>,
    sinks: Sinks,
}

/// Both maps hold the same pairs.
#[derive(Default)]
struct Watches {
    paths: HashMap<i32, TreePath>,
    numbers: HashMap<TreePath, i32>,
}

impl Watcher {
    pub(super) fn start(most: usize) -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        let stop = rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?;
        let shared = Arc::new(Shared {
            inotify,
            stop,
            watches: Mutex::default(),
            sinks: Sinks::default(),
        });
        let work = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("folder-watch".into())
            .spawn(move || work.run())?;
        Ok(Self { shared, most })
    }

    /// Whether a directory is not watched yet and could be.
    pub(super) fn wants(&self, path: &TreePath) -> bool {
        let watches = self.shared.watches();
        watches.paths.len() < self.most && !watches.numbers.contains_key(path)
    }

    /// Watches a directory; without effect where the system allows no more.
    pub(super) fn add(&self, path: &TreePath, directory: BorrowedFd<'_>) {
        let flags = WatchFlags::ATTRIB
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MODIFY
            | WatchFlags::MOVE
            | WatchFlags::MOVE_SELF
            | WatchFlags::DELETE_SELF
            | WatchFlags::ONLYDIR;
        let mut watches = self.shared.watches();
        if let Ok(number) = inotify::add_watch(&self.shared.inotify, by_handle(directory), flags) {
            // The same directory under another name: the newer name counts.
            if let Some(old) = watches.paths.insert(number, path.clone()) {
                watches.numbers.remove(&old);
            }
            watches.numbers.insert(path.clone(), number);
        }
    }

    pub(super) fn subscribe(&self, sink: EventSink) -> Subscription {
        self.shared.sinks.subscribe(sink)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // Cannot fail: the counter of the eventfd is far from its end.
        let _ = rustix::io::write(&self.shared.stop, &1_u64.to_ne_bytes());
    }
}

impl Shared {
    fn watches(&self) -> MutexGuard<'_, Watches> {
        lock(&self.watches)
    }

    fn run(&self) {
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut last = None;
        loop {
            let mut waiting = [
                PollFd::from_borrowed_fd(self.inotify.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN),
            ];
            match rustix::event::poll(&mut waiting, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => return self.sinks.tell(&Event::Everything),
            }
            if !waiting[1].revents().is_empty() {
                return;
            }
            let mut reader = inotify::Reader::new(&self.inotify, &mut buffer);
            loop {
                match reader.next() {
                    Ok(event) => {
                        let name = event.file_name().map(|name| name.to_bytes().to_vec());
                        for news in self.translate(event.wd(), event.events(), name.as_deref()) {
                            // Programs that write tell the same a thousand times.
                            if last.as_ref() != Some(&news) {
                                self.sinks.tell(&news);
                                last = Some(news);
                            }
                        }
                    }
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => {}
                    Err(_) => return self.sinks.tell(&Event::Everything),
                }
            }
            last = None;
        }
    }

    fn translate(&self, number: i32, what: ReadFlags, name: Option<&[u8]>) -> Vec<Event> {
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            return vec![Event::Everything];
        }
        let mut watches = self.watches();
        let Some(directory) = watches.paths.get(&number).cloned() else {
            return Vec::new();
        };
        if what.intersects(ReadFlags::IGNORED | ReadFlags::UNMOUNT | ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF) {
            watches.forget_below(&directory, &self.inotify);
            return vec![Event::Entry(directory)];
        }
        let Some(path) = name.and_then(|name| directory.join(name).ok()) else {
            return vec![Event::Changed(directory)];
        };
        let comes_or_goes = ReadFlags::CREATE | ReadFlags::DELETE | ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO;
        if !what.intersects(comes_or_goes) {
            return vec![Event::Changed(path)];
        }
        if what.contains(ReadFlags::ISDIR) {
            // What was watched below that name has another path now, or none.
            watches.forget_below(&path, &self.inotify);
        }
        vec![Event::Entry(path), Event::Changed(directory)]
    }
}

impl Watches {
    fn forget_below(&mut self, path: &TreePath, inotify: &OwnedFd) {
        self.paths.retain(|number, at| {
            let gone = at.is_within(path);
            if gone {
                // Fails for a directory that is gone already.
                let _ = inotify::remove_watch(inotify, *number);
            }
            !gone
        });
        self.numbers.retain(|at, _| !at.is_within(path));
    }
}
