//! News for the kernel: what it must not keep.
//!
//! They wait in a queue for the thread that tells them (`invalidate`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use crate::tree::Event;

/// Notices that may wait; when there are more, everything is invalidated instead.
const QUEUE: usize = 4096;

/// The sending side.
#[derive(Clone)]
pub(super) struct Notices {
    queue: SyncSender<Notice>,
    overflow: Arc<AtomicBool>,
}

/// The receiving side.
pub(super) struct Inbox {
    pub(super) queue: Receiver<Notice>,
    pub(super) overflow: Arc<AtomicBool>,
}

/// What the kernel is to hear.
pub(super) enum Notice {
    Content(u64),
    Event(Event),
    End,
}

impl Notices {
    pub(super) fn new() -> (Self, Inbox) {
        let (queue, inbox) = sync_channel(QUEUE);
        let overflow: Arc<AtomicBool> = Arc::default();
        let notices = Self {
            queue,
            overflow: Arc::clone(&overflow),
        };
        (notices, Inbox { queue: inbox, overflow })
    }

    /// The content of a number is another than before.
    pub(super) fn content(&self, ino: u64) {
        self.put(Notice::Content(ino));
    }

    /// The tree told this.
    pub(super) fn event(&self, event: Event) {
        self.put(Notice::Event(event));
    }

    /// Ends the thread that tells them.
    pub(super) fn end(&self) {
        // With a full queue there is something to receive, after which the end of the core is noticed.
        self.put(Notice::End);
    }

    fn put(&self, notice: Notice) {
        match self.queue.try_send(notice) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(_)) => self.overflow.store(true, Ordering::SeqCst),
        }
    }
}
