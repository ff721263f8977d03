//! A thread of a data connection: takes work, reads, seals, writes.

use std::sync::Arc;

use super::file::{Layout, Sending};
use super::lanes::{Content, Rest, again};
use super::queue::{PACK, Work};
use super::sampling::Sampling;
use super::{CHANGED, Sender};
use crate::content::{PACKED_HEADER, PIECE, PIECE_HEADER, Piece, SMALL, packed_header};
use crate::groups::{GROUP, GroupHasher, group_len};
use crate::source::SourceFile;
use sealway_drop::Error;
use sealway_drop::link::{Connection, Writer, is_direct};
use sealway_drop::wire::control::{Body, FileEnd, Holes, Keep, Leave};
use sealway_drop::wire::kind;

/// Bytes of a hash.
const HASH: usize = 32;

/// Why a piece of a file was not sent.
enum Failure {
    /// The file cannot be read or changed; the transfer goes on without it.
    File,
    /// The transfer is over.
    Ending(Error),
    /// The connection is.
    Line(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Line(error)
    }
}

/// Why a connection takes no more work before all is done.
enum Broken {
    /// The transfer is over.
    Ending(Error),
    /// The connection is, and this is left of the work at hand.
    Line(Error, Rest),
}

impl Broken {
    fn of_line(error: Error) -> Self {
        Broken::Line(error, Rest::Nothing)
    }
}

impl From<Error> for Broken {
    fn from(error: Error) -> Self {
        Broken::Ending(error)
    }
}

/// A connection, and what is noted of it.
struct Out<'a, 'b> {
    sender: &'a Sender<'b>,
    writer: &'a mut Writer,
    /// Its number, if it is a direct one.
    direct: Option<u32>,
}

impl Out<'_, '_> {
    /// A record was sealed.
    fn note(&self, content: impl FnOnce() -> Content) -> Result<(), Error> {
        match self.direct {
            Some(connection) => self.sender.lanes.note(connection, content()),
            None => Ok(()),
        }
    }
}

/// Work until nothing is left, then the end of the connection.
pub(super) fn run(sender: &Sender<'_>, connection: &mut Connection) -> Result<(), Error> {
    let number = connection.index;
    if is_direct(number) {
        return run_direct(sender, connection);
    }
    let mut out = Out {
        sender,
        writer: &mut connection.writer,
        direct: None,
    };
    match work(&mut out) {
        Ok(()) => connection.writer.close(),
        Err(Broken::Ending(error) | Broken::Line(error, _)) => Err(error),
    }
}

/// The same on a direct connection. If it breaks, what of it did not arrive is left to others.
fn run_direct(sender: &Sender<'_>, connection: &mut Connection) -> Result<(), Error> {
    let number = connection.index;
    sender.lanes.begin(number, connection.stream()?);
    sender.queue.direct_begins();
    let mut out = Out {
        sender,
        writer: &mut connection.writer,
        direct: Some(number),
    };
    let worked = work(&mut out);
    sender.queue.direct_ends();
    let busy = worked.is_err();
    let closed = worked.and_then(|()| connection.writer.close().map_err(Broken::of_line));
    let rest = match closed {
        Ok(()) => Rest::Nothing,
        Err(Broken::Line(Error::Network { .. }, rest)) => {
            sender.say(Body::Leave(Leave { connection: number }))?;
            rest
        }
        Err(Broken::Ending(error) | Broken::Line(error, _)) => return Err(error),
    };
    let Some(lost) = sender.lanes.over(number) else {
        return Err(Error::Cancelled);
    };
    let again = again(lost, rest, sender.hashes_all());
    if busy || !again.work.is_empty() {
        sender.lost_direct();
    }
    if let Some((file, bytes)) = again.counted {
        sender.progress.lost_of(&file.under_way, bytes);
    }
    sender.queue.settle(busy, again.work);
    Ok(())
}

/// Takes work until nothing is left.
fn work(out: &mut Out<'_, '_>) -> Result<(), Broken> {
    let sender = out.sender;
    let mut finished = false;
    while let Some(work) = sender.queue.take(finished, out.direct.is_some()) {
        finished = true;
        match work {
            Work::Beat => out.writer.push(kind::PULSE, 0, &[0]).map_err(Broken::of_line)?,
            Work::Pack(files) => pack(out, &files, true)?,
            Work::PackAgain(files) => pack(out, &files, false)?,
            Work::File(id) => open(sender, id, None)?,
            Work::Partial(id, have) => open(sender, id, Some(have))?,
            Work::Segment(file, offset, len) => {
                segment(out, &file, offset, len)?;
                done(sender, &file)?;
            }
            Work::Again(id, offset, len) => segment_again(out, id, offset, len)?,
            Work::Compare(file, groups) => {
                compare(sender, &file, groups)?;
                done(sender, &file)?;
            }
        }
        if sender.queue.is_idle() {
            out.writer.flush().map_err(Broken::of_line)?;
        }
    }
    Ok(())
}

/// Opens a file and deals out its parts.
fn open(sender: &Sender<'_>, id: u32, have: Option<Vec<(u64, [u8; 32])>>) -> Result<(), Error> {
    let Some(entry) = sender.file(id) else { return Ok(()) };
    let size = entry.size();
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
    let file = Arc::new(Sending::new(id, file, entry, &sender.hashing()));
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

/// Announces holes. Where all is hashed, holes count by where they are; towards an end that does not know that, as the zeros that
/// they read as.
fn holes(sender: &Sender<'_>, file: &Sending, holes: &[(u64, u64)]) -> Result<(), Error> {
    for ranges in holes.chunks(1024) {
        let ranges = ranges.iter().flat_map(|&(offset, len)| [offset, len]).collect();
        sender.say(Body::Holes(Holes { file: file.id, ranges }))?;
    }
    for &(offset, len) in holes {
        sender.progress.kept_of(&file.under_way, len);
        if sender.by_map() {
            file.note_holes(offset / GROUP..(offset + len).div_ceil(GROUP));
        } else if sender.hashes_all() {
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
    let hash = file.hash().map(|hash| hash.to_vec()).unwrap_or_default();
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

/// Seals a piece of a file that is open, unless it differs from what was hashed of the sample; `hasher` hashes it.
fn piece(
    out: &mut Out<'_, '_>,
    file: &SourceFile,
    (id, at, len): (u32, u64, u64),
    sampling: &mut Sampling<'_>,
    hasher: &mut dyn FnMut(&[u8]),
) -> Result<(), Failure> {
    out.writer.record(kind::PIECE, 0, PIECE_HEADER + len as usize, |room| {
        let (header, bytes) = room.split_at_mut(PIECE_HEADER);
        header.copy_from_slice(&Piece::header(id, at));
        let read = |bytes: &mut [u8], at: u64| file.read_at(bytes, at).map_err(|_| Failure::File);
        read(bytes, at)?;
        if !sampling.agrees(at, bytes, read)? {
            return Err(Failure::File);
        }
        hasher(bytes);
        Ok::<usize, Failure>(room.len())
    })?;
    out.note(|| Content::Piece(id, at, len)).map_err(Failure::Ending)
}

fn segment(out: &mut Out<'_, '_>, file: &Arc<Sending>, offset: u64, len: u64) -> Result<(), Broken> {
    let sender = out.sender;
    let mut sampling = Sampling::new(&sender.sampled, sender.hashing(), file.id, file.size);
    let hashed = sender.hashes_all();
    let end = offset + len;
    let mut at = offset;
    let mut hasher: Option<GroupHasher> = None;
    while at < end && !file.has_failed() {
        let want = (end - at).min(PIECE as u64);
        let sealed = piece(out, &file.file, (file.id, at, want), &mut sampling, &mut |bytes| {
            if hashed {
                hasher
                    .get_or_insert_with(|| GroupHasher::new(file.size, at / GROUP))
                    .update(bytes);
            }
        });
        match sealed {
            Ok(()) => {}
            Err(Failure::File) => file.fail(),
            Err(Failure::Ending(error)) => return Err(Broken::Ending(error)),
            Err(Failure::Line(error)) => return Err(Broken::Line(error, Rest::Segment(file.clone(), offset, at, end))),
        }
        sender.progress.moved_of(&file.under_way, want);
        at += want;
        if at.is_multiple_of(GROUP) || at == end {
            let whole = hasher.take().map(|hasher| hasher.finish());
            if let Some(hash) = whole.or_else(|| sampling.take()) {
                file.note((at - 1) / GROUP, hash);
            }
        }
    }
    Ok(())
}

/// Sends a part of a file that was lost on its way. It was counted and hashed when it was sent first.
fn segment_again(out: &mut Out<'_, '_>, id: u32, offset: u64, len: u64) -> Result<(), Broken> {
    let sender = out.sender;
    let file = match sender.open(id) {
        Ok(file) => file,
        Err(why) => return Ok(failed(sender, id, &why)?),
    };
    let mut sampling = Sampling::new(&sender.sampled, sender.hashing(), id, file.size());
    let end = offset + len;
    let mut at = offset;
    while at < end {
        let want = (end - at).min(PIECE as u64);
        match piece(out, &file, (id, at, want), &mut sampling, &mut |_| {}) {
            Ok(()) => at += want,
            Err(Failure::File) => return Ok(failed(sender, id, CHANGED)?),
            Err(Failure::Ending(error)) => return Err(Broken::Ending(error)),
            Err(Failure::Line(error)) => return Err(Broken::Line(error, Rest::Again(id, at, end))),
        }
    }
    match file.changed() {
        Ok(false) => Ok(()),
        _ => Ok(failed(sender, id, CHANGED)?),
    }
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
            sender.progress.kept_of(&file.under_way, len as u64);
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

/// Small files, whole, in one record. They are counted when they are sent for the `first` time.
fn pack(out: &mut Out<'_, '_>, files: &[u32], first: bool) -> Result<(), Broken> {
    let sender = out.sender;
    let hashing = sender.hashing();
    let mut left = files;
    while !left.is_empty() {
        let (mut sent, mut bytes) = (Vec::new(), 0);
        // A file that grew meanwhile may not fit behind the others; it begins the next record.
        let room = PACK as usize + SMALL as usize + files.len() * (PACKED_HEADER + HASH);
        let before = left;
        let sealed = out.writer.record(kind::PACK, 0, room, |room| {
            let mut filled = 0;
            while let Some((&id, rest)) = left.split_first() {
                let Some(size) = sender.size(id) else {
                    left = rest;
                    continue;
                };
                let size = size as usize;
                let tail = if hashing.takes_small(id) { HASH } else { 0 };
                let Some(space) = room.get_mut(filled..filled + PACKED_HEADER + size + tail) else {
                    break;
                };
                match read_small(sender, id, &mut space[PACKED_HEADER..PACKED_HEADER + size]) {
                    Ok(()) => {
                        space[..PACKED_HEADER].copy_from_slice(&packed_header(id, size as u32));
                        if tail > 0 {
                            let hash = blake3::hash(&space[PACKED_HEADER..PACKED_HEADER + size]);
                            space[PACKED_HEADER + size..].copy_from_slice(hash.as_bytes());
                        }
                        filled += PACKED_HEADER + size + tail;
                        sent.push(id);
                        bytes += size as u64;
                    }
                    Err(why) => failed(sender, id, &why).map_err(Failure::Ending)?,
                }
                left = rest;
            }
            Ok::<usize, Failure>(filled)
        });
        match sealed {
            Ok(0) => continue,
            Ok(_) => {}
            Err(Failure::Line(error)) => {
                let rest = before.to_vec();
                let rest = if first { Rest::Pack(rest) } else { Rest::PackAgain(rest) };
                return Err(Broken::Line(error, rest));
            }
            Err(Failure::Ending(error)) => return Err(Broken::Ending(error)),
            Err(Failure::File) => return Err(Broken::Ending(Error::Protocol("a file that ends a pack"))),
        }
        if first {
            sender.progress.moved(bytes);
            for _ in &sent {
                sender.progress.file_done();
            }
        }
        out.note(|| Content::Pack(sent))?;
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
