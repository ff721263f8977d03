//! A thread of a data connection: takes work, reads, seals, writes.

use std::sync::Arc;

use super::file::{Layout, Sending};
use super::queue::{PACK, Work};
use super::{CHANGED, Sender};
use crate::content::{PACKED_HEADER, PIECE, PIECE_HEADER, Packed, Piece, SMALL};
use crate::groups::{GROUP, GroupHasher, group_len};
use sealway_drop::Error;
use sealway_drop::link::Writer;
use sealway_drop::wire::control::{Body, FileEnd, Holes, Keep};
use sealway_drop::wire::kind;

/// Why a piece of a file was not sent.
enum Failure {
    /// The file cannot be read or changed; the transfer goes on without it.
    File,
    /// The transfer is over.
    Ending(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Ending(error)
    }
}

/// Work until nothing is left, then the end of the connection.
pub(super) fn run(sender: &Sender<'_>, writer: &mut Writer) -> Result<(), Error> {
    let mut finished = false;
    while let Some(work) = sender.queue.take(finished) {
        finished = true;
        match work {
            Work::Beat => writer.push(kind::PULSE, 0, &[0])?,
            Work::Pack(files) => pack(sender, writer, &files)?,
            Work::File(id) => open(sender, id, None)?,
            Work::Partial(id, have) => open(sender, id, Some(have))?,
            Work::Segment(file, offset, len) => {
                segment(sender, writer, &file, offset, len)?;
                done(sender, &file)?;
            }
            Work::Compare(file, groups) => {
                compare(sender, &file, groups)?;
                done(sender, &file)?;
            }
        }
        if sender.queue.is_idle() {
            writer.flush()?;
        }
    }
    writer.close()
}

/// Opens a file and deals out its parts.
fn open(sender: &Sender<'_>, id: u32, have: Option<Vec<(u64, [u8; 32])>>) -> Result<(), Error> {
    let Some(size) = sender.size(id) else { return Ok(()) };
    let file = match sender.open(id) {
        Ok(file) => file,
        Err(why) => return failed(sender, id, &why),
    };
    let extents: Result<Vec<_>, _> = file
        .extents()
        .map(|range| range.map(|range| (range.start, range.end - range.start)))
        .collect();
    let extents = extents.unwrap_or_else(|_| vec![(0, size)]);
    let have = have.unwrap_or_default();
    let skip: Vec<u64> = have.iter().map(|(group, _)| *group).collect();
    let layout = Layout::new(size, &extents, &skip);
    let file = Arc::new(Sending::new(id, size, file, sender.hash()));
    holes(sender, &file, &layout.holes)?;
    let segments = layout
        .segments
        .into_iter()
        .map(|(offset, len)| Work::Segment(file.clone(), offset, len));
    let compared = have
        .chunks(64)
        .map(|groups| Work::Compare(file.clone(), groups.to_vec()));
    // What is missing for certain goes before what must be looked at.
    let parts: Vec<Work> = segments.chain(compared).collect();
    file.add_parts(parts.len());
    sender.queue.add_first(parts);
    done(sender, &file)
}

/// Announces holes. Where files are hashed, holes count by where they are; towards an end that does not know that, as the zeros
/// that they read as.
fn holes(sender: &Sender<'_>, file: &Sending, holes: &[(u64, u64)]) -> Result<(), Error> {
    for ranges in holes.chunks(1024) {
        let ranges = ranges.iter().flat_map(|&(offset, len)| [offset, len]).collect();
        sender.say(Body::Holes(Holes { file: file.id, ranges }))?;
    }
    for &(offset, len) in holes {
        sender.progress.kept(len);
        if sender.by_map() {
            file.note_holes(offset / GROUP..(offset + len).div_ceil(GROUP));
        } else if file.hashed() {
            let mut group = offset / GROUP;
            while group * GROUP < offset + len {
                if sender.cancel.is_set() {
                    return Err(Error::Cancelled);
                }
                file.note(group, crate::groups::zeros(file.size, group));
                group += 1;
            }
        }
    }
    Ok(())
}

/// A part of a file is done; after the last, so is the file.
fn done(sender: &Sender<'_>, file: &Sending) -> Result<(), Error> {
    if !file.part_done() {
        return Ok(());
    }
    if file.has_failed() || file.file.changed().unwrap_or(true) {
        return failed(sender, file.id, CHANGED);
    }
    let hash = file.root().map(|root| root.to_vec()).unwrap_or_default();
    sender.progress.file_done();
    sender.say(Body::FileEnd(FileEnd {
        file: file.id,
        hash,
        failed: String::new(),
    }))
}

/// The transfer goes on without this file.
fn failed(sender: &Sender<'_>, id: u32, why: &str) -> Result<(), Error> {
    sender.note_failed();
    sender.say(Body::FileEnd(FileEnd {
        file: id,
        hash: Vec::new(),
        failed: why.to_owned(),
    }))
}

fn segment(sender: &Sender<'_>, writer: &mut Writer, file: &Sending, offset: u64, len: u64) -> Result<(), Error> {
    let end = offset + len;
    let mut at = offset;
    let mut hasher: Option<GroupHasher> = None;
    while at < end && !file.has_failed() {
        let want = (end - at).min(PIECE as u64) as usize;
        let piece = writer.record(kind::PIECE, 0, PIECE_HEADER + want, |room| {
            let (header, bytes) = room.split_at_mut(PIECE_HEADER);
            header.copy_from_slice(&Piece::header(file.id, at));
            file.file.read_at(bytes, at).map_err(|_| Failure::File)?;
            if file.hashed() {
                hasher
                    .get_or_insert_with(|| GroupHasher::new(file.size, at / GROUP))
                    .update(bytes);
            }
            Ok(room.len())
        });
        match piece {
            Ok(_) => {}
            Err(Failure::File) => file.fail(),
            Err(Failure::Ending(error)) => return Err(error),
        }
        sender.progress.moved(want as u64);
        at += want as u64;
        if (at.is_multiple_of(GROUP) || at == end)
            && let Some(hasher) = hasher.take()
        {
            file.note((at - 1) / GROUP, hasher.finish());
        }
    }
    Ok(())
}

/// Hashes the groups that the receiver says it has. Those that differ are sent.
fn compare(sender: &Sender<'_>, file: &Arc<Sending>, groups: Vec<(u64, [u8; 32])>) -> Result<(), Error> {
    let mut bytes = vec![0; GROUP as usize];
    let (mut keep, mut send) = (Vec::new(), Vec::new());
    for (group, theirs) in groups {
        if sender.cancel.is_set() {
            return Err(Error::Cancelled);
        }
        let len = group_len(file.size, group) as usize;
        if file.file.read_at(&mut bytes[..len], group * GROUP).is_err() {
            file.fail();
            break;
        }
        let mut hasher = GroupHasher::new(file.size, group);
        hasher.update(&bytes[..len]);
        let ours = hasher.finish();
        if ours == theirs {
            sender.progress.kept(len as u64);
            file.note(group, ours);
            keep.push(group);
        } else {
            send.push(Work::Segment(file.clone(), group * GROUP, len as u64));
        }
    }
    file.add_parts(send.len());
    sender.queue.add_first(send);
    sender.say(Body::Keep(Keep {
        file: file.id,
        groups: keep,
    }))
}

/// Small files, whole, in one record.
fn pack(sender: &Sender<'_>, writer: &mut Writer, files: &[u32]) -> Result<(), Error> {
    let tail = if sender.hash() { 32 } else { 0 };
    let mut left = files;
    while !left.is_empty() {
        let mut sent = (0, 0);
        // A file that grew meanwhile may not fit behind the others; it begins the next record.
        let room = PACK as usize + SMALL as usize + files.len() * (PACKED_HEADER + tail);
        writer.record(kind::PACK, 0, room, |room| {
            let mut filled = 0;
            while let Some((&id, rest)) = left.split_first() {
                let Some(size) = sender.size(id) else {
                    left = rest;
                    continue;
                };
                let size = size as usize;
                let Some(space) = room.get_mut(filled..filled + PACKED_HEADER + size + tail) else {
                    break;
                };
                match read_small(sender, id, &mut space[PACKED_HEADER..PACKED_HEADER + size]) {
                    Ok(()) => {
                        space[..PACKED_HEADER].copy_from_slice(&Packed::header(id, size as u32));
                        if tail > 0 {
                            let hash = blake3::hash(&space[PACKED_HEADER..PACKED_HEADER + size]);
                            space[PACKED_HEADER + size..].copy_from_slice(hash.as_bytes());
                        }
                        filled += PACKED_HEADER + size + tail;
                        sent = (sent.0 + 1, sent.1 + size as u64);
                    }
                    Err(why) => failed(sender, id, &why)?,
                }
                left = rest;
            }
            Ok::<usize, Error>(filled)
        })?;
        sender.progress.moved(sent.1);
        for _ in 0..sent.0 {
            sender.progress.file_done();
        }
    }
    Ok(())
}

fn read_small(sender: &Sender<'_>, id: u32, bytes: &mut [u8]) -> Result<(), String> {
    let file = sender.open(id)?;
    file.read_at(bytes, 0).map_err(|error| error.to_string())?;
    match file.changed() {
        Ok(false) => Ok(()),
        _ => Err(CHANGED.to_owned()),
    }
}
