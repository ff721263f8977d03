//! The thread that tells the kernel what it must not keep. An invalidation waits for pages that are being read, so whoever
//! answers reads must never do it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::sync::Weak;
use std::sync::atomic::Ordering;

use fuser::{INodeNo, Notifier};

use super::core::Core;
use super::nodes::ROOT;
use super::notices::{Inbox, Notice};
use crate::tree::Event;

/// Tells the kernel until the end.
pub(super) fn run(inbox: &Inbox, core: &Weak<Core>, notifier: &Notifier) {
    while let Ok(notice) = inbox.queue.recv() {
        let Some(core) = core.upgrade() else { return };
        if core.has_ended() {
            return;
        }
        if inbox.overflow.swap(false, Ordering::SeqCst) {
            everything(&core, notifier);
        }
        match notice {
            Notice::End => return,
            Notice::Content(ino) => content(notifier, ino),
            Notice::Event(Event::Changed(path)) => {
                let ino = core.nodes().find(&path);
                if let Some(ino) = ino {
                    core.nodes().doubt(ino);
                    core.files.doubt(Some(ino));
                    content(notifier, ino);
                    // Of a number tied to a version the present one must be looked up by name.
                    let (parent, name) = match path.split().filter(|_| core.nodes().is_pinned(ino)) {
                        Some((directory, name)) => (core.nodes().find(&directory), name),
                        None => continue,
                    };
                    if let Some(parent) = parent {
                        entry(notifier, parent, name);
                    }
                }
            }
            Notice::Event(Event::Entry(path)) => {
                let Some((directory, name)) = path.split() else {
                    continue;
                };
                let parent = core.nodes().find(&directory);
                if let Some(parent) = parent {
                    entry(notifier, parent, name);
                }
            }
            Notice::Event(Event::Everything) => everything(&core, notifier),
            // New calls see it themselves.
            Notice::Event(Event::Lost) => {}
        }
    }
}

fn everything(core: &Core, notifier: &Notifier) {
    core.files.doubt(None);
    let all = core.nodes().all();
    for (ino, place) in all {
        core.nodes().doubt(ino);
        content(notifier, ino);
        if let Some((parent, name)) = place {
            entry(notifier, parent, &name);
        }
    }
    content(notifier, ROOT);
}

// What the kernel has forgotten already needs no invalidation, and a mount that is gone none at all.
fn content(notifier: &Notifier, ino: u64) {
    let _ = notifier.inval_inode(INodeNo(ino), 0, 0);
}

fn entry(notifier: &Notifier, parent: u64, name: &[u8]) {
    let _ = notifier.inval_entry(INodeNo(parent), OsStr::from_bytes(name));
    let _ = notifier.inval_inode(INodeNo(parent), 0, 0);
}
