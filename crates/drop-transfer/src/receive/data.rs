//! A thread of a data connection: reads records, opens them, writes content where it belongs.

use std::sync::Arc;

use super::Receiver;
use super::incoming::{Incoming, Progress};
use crate::content::{Packed, Piece};
use crate::groups::{GROUP, GroupHasher, group_len};
use sealway_drop::Error;
use sealway_drop::link::Reader;
use sealway_drop::wire::kind;

/// The group that is being hashed.
struct Hashing {
    file: u32,
    next: u64,
    hasher: GroupHasher,
}

/// Takes what comes until the connection is closed.
pub(super) fn run(receiver: &Receiver<'_>, reader: &mut Reader) -> Result<(), Error> {
    let mut current: Option<Arc<Incoming>> = None;
    let mut hashing: Option<Hashing> = None;
    let mut carried = false;
    loop {
        let record = match reader.next() {
            Ok(Some(record)) => record,
            Ok(None) => return Ok(()),
            // The sender gave this connection up before it stood: nothing of it is missing.
            Err(Error::Network { .. }) if !carried => return Ok(()),
            Err(error) => return Err(error),
        };
        carried = true;
        match record.kind {
            kind::PIECE => {
                let piece = Piece::parse(record.payload).ok_or(Error::Protocol("a piece that says nothing"))?;
                let known = current
                    .take()
                    .filter(|file| file.id == piece.file && !file.is_given_up());
                let Some(file) = known.map_or_else(|| receiver.incoming(piece.file), |file| Ok(Some(file)))? else {
                    continue;
                };
                match take(receiver, &file, &piece, &mut hashing) {
                    Ok(()) => current = Some(file),
                    // Given up by another thread meanwhile.
                    Err(_) if file.is_given_up() => {}
                    Err(error) => receiver.file_failed(&file, error)?,
                }
            }
            kind::PACK => {
                for file in Packed::new(record.payload, receiver.hash) {
                    let file = file.ok_or(Error::Protocol("a pack that cannot be read"))?;
                    receiver.small(file)?;
                }
            }
            kind::PULSE => {}
            _ => return Err(Error::Protocol("a record of an unknown kind")),
        }
    }
}

fn take(
    receiver: &Receiver<'_>,
    file: &Arc<Incoming>,
    piece: &Piece<'_>,
    hashing: &mut Option<Hashing>,
) -> Result<(), Error> {
    let len = piece.bytes.len() as u64;
    file.claim(piece.offset, len)?;
    let staged = receiver.staged(file)?;
    {
        // One at a time: the system would have the others spin on the lock of the file.
        let _turn = file.turn();
        staged.write_at(piece.offset, piece.bytes)?;
    }
    if receiver.hash {
        hash(file, piece, hashing)?;
    }
    receiver.progress.moved(len);
    match file.written(len) {
        Progress::More => Ok(()),
        Progress::Complete => receiver.complete(file),
    }
}

/// Where files are hashed, a group comes on one connection from its beginning to its end.
fn hash(file: &Incoming, piece: &Piece<'_>, hashing: &mut Option<Hashing>) -> Result<(), Error> {
    let (size, group) = (file.entry.size(), piece.offset / GROUP);
    let mut now = match hashing.take() {
        Some(now) if now.file == piece.file && now.next == piece.offset => now,
        _ if piece.offset.is_multiple_of(GROUP) => Hashing {
            file: piece.file,
            next: piece.offset,
            hasher: GroupHasher::new(size, group),
        },
        _ => return Err(Error::Protocol("a part of a file that does not begin with a group")),
    };
    now.next += piece.bytes.len() as u64;
    let end = group * GROUP + group_len(size, group);
    if now.next > end {
        return Err(Error::Protocol("a piece of more than one group"));
    }
    now.hasher.update(piece.bytes);
    match now.next == end {
        true => file.set_hash(group, now.hasher.finish()),
        false => *hashing = Some(now),
    }
    Ok(())
}
