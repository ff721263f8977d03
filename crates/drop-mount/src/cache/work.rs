//! The threads that write, so that nobody who reads waits for a disk.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use bytes::Bytes;

use super::fill::{Fill, Settling};
use super::pending::Pending;
use super::room::Room;

/// How long the end of a mount waits for what is being written.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Blocks that may wait: 64 MiB of the usual 256 KiB.
const BLOCKS: usize = 256;
/// Whole files that may wait for the disk.
const WHOLE: usize = 1 << 16;
/// Whole files that are brought to the disk together.
const TOGETHER: usize = 1024;

/// Bytes on their way into a copy.
pub(super) struct Block {
    pub(super) fill: Arc<Fill>,
    pub(super) offset: u64,
    pub(super) data: Bytes,
}

impl Block {
    pub(super) fn write(self, pending: &Pending) {
        self.fill.write(self.offset, &self.data);
        drop(self);
        pending.end();
    }
}

/// Starts both threads; they end when nobody can send them anything any more.
pub(super) fn start(room: &Arc<Room>) -> io::Result<(SyncSender<Block>, SyncSender<Settling>)> {
    let (blocks, incoming) = sync_channel::<Block>(BLOCKS);
    let (settling, whole) = sync_channel(WHOLE);
    let (writes, settles) = (Arc::clone(room), Arc::clone(room));
    std::thread::Builder::new().name("copies-write".into()).spawn(move || {
        for block in incoming {
            block.write(&writes.pending);
        }
    })?;
    std::thread::Builder::new()
        .name("copies-settle".into())
        .spawn(move || settle(&settles, &whole))?;
    Ok((blocks, settling))
}

fn settle(room: &Room, whole: &Receiver<Settling>) {
    while let Ok(first) = whole.recv() {
        let mut batch = vec![first];
        batch.extend(whole.try_iter().take(TOGETHER - 1));
        // On the disk before it has its name: what has one is whole even after a loss of power.
        let flushed = match &batch[..] {
            [one] => room.flush(&one.temporary),
            _ => room.flush_all(),
        };
        for file in batch {
            if let Err(error) = flushed.and_then(|()| room.name(&file.temporary, &file.name)) {
                tracing::debug!(%error, "a copy is not kept");
                let _ = room.unlink(&file.temporary);
                room.give_back(file.size);
            }
            room.pending.end();
        }
    }
}
