//! A thread of a data connection: reads records, opens them, writes content where it belongs.

use std::sync::Arc;

use super::Receiver;
use super::incoming::{Incoming, Progress};
use crate::content::{Packed, Piece};
use crate::dest::StagedFile;
use crate::groups::{GROUP, GroupHasher, group_len, hash_group};
use crate::hashing::Agreed;
use sealway_drop::Error;
use sealway_drop::link::{Connection, Reader, is_direct};
use sealway_drop::wire::kind;

/// The group that is being hashed.
struct Hashing {
    file: u32,
    next: u64,
    hasher: GroupHasher,
}

/// What of a connection has been taken.
#[derive(Default)]
struct State {
    current: Option<Arc<Incoming>>,
    hashing: Option<Hashing>,
    /// Records of content.
    records: u64,
}

/// Takes what comes until the connection is closed. One beside a relay may break: the rest then comes on others.
pub(super) fn run(receiver: &Receiver<'_>, connection: &mut Connection) -> Result<(), Error> {
    let number = connection.index;
    let mut state = State::default();
    if !is_direct(number) {
        return match read(receiver, &mut connection.reader, &mut state, &|_| Ok(())) {
            // The sender gave this connection up before it stood: nothing of it is missing.
            Err(Broken::Line(Error::Network { .. })) if state.records == 0 => Ok(()),
            Err(Broken::Line(error) | Broken::Ending(error)) => Err(error),
            Ok(()) => Ok(()),
        };
    }
    if !receiver.lanes.begin(number, connection.stream()?) {
        return Ok(());
    }
    let took = |records| receiver.took(number, records);
    match read(receiver, &mut connection.reader, &mut state, &took) {
        Ok(()) => {}
        Err(Broken::Line(Error::Network { .. })) => {
            if let Some(hashing) = state.hashing.take() {
                forget(receiver, &hashing)?;
            }
            receiver.lost_direct();
        }
        Err(Broken::Line(error) | Broken::Ending(error)) => return Err(error),
    }
    receiver.took_last(number, state.records)
}

/// The beginning of a group that is not hashed to its end comes again with all of the group.
fn forget(receiver: &Receiver<'_>, hashing: &Hashing) -> Result<(), Error> {
    if let Some(file) = receiver.incoming(hashing.file)? {
        let begun = (hashing.next - 1) / GROUP * GROUP..hashing.next;
        receiver.progress.lost_of(&file.under_way, begun.end - begun.start);
        file.forget(begun);
    }
    Ok(())
}

/// Why no more is read.
enum Broken {
    /// The transfer is over.
    Ending(Error),
    /// The connection is.
    Line(Error),
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Broken::Ending(error)
    }
}

fn read(
    receiver: &Receiver<'_>,
    reader: &mut Reader,
    state: &mut State,
    took: &dyn Fn(u64) -> Result<(), Error>,
) -> Result<(), Broken> {
    while let Some(record) = reader.next().map_err(Broken::Line)? {
        match record.kind {
            kind::PIECE => {
                let piece = Piece::parse(record.payload).ok_or(Error::Protocol("a piece that says nothing"))?;
                piece_came(receiver, &piece, state)?;
            }
            kind::PACK => {
                for file in Packed::new(record.payload, |file| receiver.hashing.takes_small(file)) {
                    let file = file.ok_or(Error::Protocol("a pack that cannot be read"))?;
                    receiver.small(file)?;
                }
            }
            kind::PULSE => continue,
            _ => return Err(Error::Protocol("a record of an unknown kind").into()),
        }
        state.records += 1;
        took(state.records)?;
    }
    Ok(())
}

fn piece_came(receiver: &Receiver<'_>, piece: &Piece<'_>, state: &mut State) -> Result<(), Error> {
    let known = state
        .current
        .take()
        .filter(|file| file.id == piece.file && !file.is_given_up());
    let Some(file) = known.map_or_else(|| receiver.incoming(piece.file), |file| Ok(Some(file)))? else {
        return Ok(());
    };
    match take(receiver, &file, piece, &mut state.hashing) {
        Ok(()) => state.current = Some(file),
        // Given up by another thread meanwhile.
        Err(_) if file.is_given_up() => {}
        Err(error) => receiver.file_failed(&file, error)?,
    }
    Ok(())
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
    match receiver.hashing {
        Agreed::Off => {}
        Agreed::Sampled(_) => sample(file, &staged, piece)?,
        Agreed::All => hash(file, piece, hashing)?,
    }
    receiver.progress.moved_of(&file.under_way, len);
    match file.written(len) {
        Progress::More => Ok(()),
        Progress::Complete => receiver.complete(file),
    }
}

/// What is whole by now of the sample is read back and hashed.
fn sample(file: &Incoming, staged: &StagedFile, piece: &Piece<'_>) -> Result<(), Error> {
    for group in file.sampled(piece.offset..piece.offset + piece.bytes.len() as u64) {
        let hash = hash_group(file.entry.size(), group, |bytes, at| staged.read_at(bytes, at))?;
        file.set_hash(group, hash);
    }
    Ok(())
}

/// Where all is hashed, a group comes on one connection from its beginning to its end.
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
