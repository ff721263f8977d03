//! Records over one TCP connection, in blocking calls.
//!
//! A [`Writer`] seals records beside each other in one buffer and writes them by one call; a [`Reader`] reads a record where it
//! is opened. Content is copied by the system into and out of these buffers, and nowhere else.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use sealway_session::record::{HEADER_LEN, MAX_PAYLOAD, OVERHEAD, Opened, RecvHalf, SendHalf, TAG_LEN};

use crate::cancel::Watch;
use crate::{Error, dial};

/// Sealed bytes that a [`Writer`] collects before it writes.
const FLUSH_AT: usize = 512 << 10;

/// Data connections with which a session begins, at most.
pub const MAX_CONNECTIONS: u32 = 16;

/// Whether a data connection of this number goes a direct path beside a relay: they come behind those that a session begins with.
pub const fn is_direct(connection: u32) -> bool {
    connection > MAX_CONNECTIONS
}

/// A sealed connection.
pub struct Connection {
    /// Its number in the session, 0 for the first.
    pub index: u32,
    /// What comes in.
    pub reader: Reader,
    /// What goes out.
    pub writer: Writer,
}

impl Connection {
    /// Of a stream, the keys of both directions, and what was read past the end of the handshake.
    ///
    /// # Errors
    /// [`Error::Network`] if the system cannot give a second handle to the stream.
    pub fn new(
        index: u32,
        (stream, watch): (TcpStream, Watch),
        send: SendHalf,
        recv: RecvHalf,
        leftover: &[u8],
    ) -> Result<Self, Error> {
        let watch = Arc::new(watch);
        let copy = stream.try_clone().map_err(Error::network("opening a connection"))?;
        let mut buffer = leftover.to_vec();
        let end = buffer.len();
        buffer.resize(end.max(4 << 10), 0);
        Ok(Self {
            index,
            reader: Reader {
                stream: copy,
                half: recv,
                buffer,
                start: 0,
                end,
                kept: None,
                own: None,
                _watch: watch.clone(),
            },
            writer: Writer {
                stream,
                half: send,
                buffer: Vec::new(),
                filled: 0,
                watch,
            },
        })
    }

    /// A second handle to the stream, to shut it down under threads that wait on it.
    ///
    /// # Errors
    /// [`Error::Network`] if the system gives none.
    pub fn stream(&self) -> Result<TcpStream, Error> {
        self.writer
            .stream
            .try_clone()
            .map_err(Error::network("opening a connection"))
    }

    /// The same, of an end that showed this key.
    pub(super) fn known_by(mut self, own: Option<[u8; 32]>) -> Self {
        self.reader.own = own;
        self
    }

    /// Takes the stream from under its switch: whoever has it now ends it by itself.
    pub fn release(&self) {
        self.writer.watch.release();
    }

    /// The parts, for code that drives the stream by other means: stream, keys, what was read already, and what keeps the
    /// stream under its switch.
    pub fn into_parts(self) -> (TcpStream, SendHalf, RecvHalf, Vec<u8>, Arc<Watch>) {
        let Reader {
            half,
            buffer,
            start,
            end,
            ..
        } = self.reader;
        (
            self.writer.stream,
            self.writer.half,
            half,
            buffer[start..end].to_vec(),
            self.writer.watch,
        )
    }
}

/// A record that came in.
#[derive(Debug)]
pub struct Record<'a> {
    /// Its kind.
    pub kind: u8,
    /// Number of its stream.
    pub stream: u32,
    /// Its payload.
    pub payload: &'a [u8],
}

/// A record that came in, with the memory that it came in.
#[derive(Debug)]
pub struct OwnedRecord {
    /// Its kind.
    pub kind: u8,
    /// Number of its stream.
    pub stream: u32,
    /// Where its payload stands.
    pub buffer: Vec<u8>,
    /// The payload in it.
    pub payload: Range<usize>,
}

/// The direction towards us.
pub struct Reader {
    stream: TcpStream,
    half: RecvHalf,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// A control message that was read ahead.
    kept: Option<Vec<u8>>,
    /// The key by which the other end knows this one; it may still refuse it.
    own: Option<[u8; 32]>,
    _watch: Arc<Watch>,
}

impl Reader {
    /// The length of the next record; `None` at the end of the connection.
    fn record_len(&mut self) -> Result<Option<usize>, Error> {
        self.fill(HEADER_LEN)?;
        let Some(header) = self.buffer[self.start..self.end].first_chunk() else {
            self.half.end().map_err(|_| lost())?;
            return Ok(None);
        };
        let len = self.half.record_len(header);
        len.map(Some).map_err(|error| Error::of_session(error, self.own))
    }

    /// The next record, `None` after the other end closed the connection in good order.
    ///
    /// # Errors
    /// [`Error::Session`] for a record that was changed or stands in the wrong place, [`Error::Network`] if the connection
    /// ended without being closed or failed.
    #[expect(
        clippy::should_implement_trait,
        reason = "a record borrows the buffer, which an iterator's item cannot"
    )]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        let Some(len) = self.record_len()? else {
            return Ok(None);
        };
        self.fill(len)?;
        if self.end - self.start < len {
            return Err(lost());
        }
        let at = self.start;
        self.start += len;
        let record = &mut self.buffer[at..at + len];
        match self.half.open(record)? {
            Opened::Data { kind, stream, payload } => Ok(Some(Record {
                kind,
                stream,
                payload: &record[payload],
            })),
            Opened::Close => Ok(None),
        }
    }

    /// As [`Reader::next`], in memory that becomes the caller's: `memory` is asked for so many bytes, and what it gives is made
    /// longer if it is too short.
    ///
    /// # Errors
    /// As [`Reader::next`].
    pub fn next_owned(&mut self, memory: impl FnOnce(usize) -> Vec<u8>) -> Result<Option<OwnedRecord>, Error> {
        let Some(len) = self.record_len()? else {
            return Ok(None);
        };
        // The header of the next record comes with this one, as in `fill`.
        let room = len + HEADER_LEN;
        let mut buffer = memory(room);
        if buffer.len() < room {
            buffer.resize(room, 0);
        }
        let mut have = (self.end - self.start).min(len);
        buffer[..have].copy_from_slice(&self.buffer[self.start..self.start + have]);
        self.start += have;
        while have < len {
            // Nothing is left of what was read before.
            match self.stream.read(&mut buffer[have..room]) {
                Ok(0) => return Err(lost()),
                Ok(read) => have += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::network("receiving")(source)),
            }
        }
        if have > len {
            // At most a header, and the buffer holds more than that.
            self.buffer[..have - len].copy_from_slice(&buffer[len..have]);
            (self.start, self.end) = (0, have - len);
        }
        match self.half.open(&mut buffer[..len])? {
            Opened::Data { kind, stream, payload } => Ok(Some(OwnedRecord {
                kind,
                stream,
                buffer,
                payload,
            })),
            Opened::Close => Ok(None),
        }
    }

    /// Number of times the keys of this direction have been replaced.
    pub fn epoch(&self) -> u64 {
        self.half.epoch()
    }

    /// From now on waits so long for anything, `None` for ever.
    ///
    /// # Errors
    /// [`Error::Network`].
    pub fn wait_at_most(&self, time: Option<Duration>) -> Result<(), Error> {
        self.stream.set_read_timeout(time).map_err(Error::network("waiting"))
    }

    /// Whether something is there to be read, for which this waits `time` at most.
    ///
    /// # Errors
    /// [`Error::Network`].
    pub fn is_readable(&self, time: Duration) -> Result<bool, Error> {
        if self.end > self.start {
            return Ok(true);
        }
        let mut fds = [PollFd::new(&self.stream, PollFlags::IN)];
        dial::wait(&mut fds, time).map_err(Error::network("waiting"))?;
        Ok(!fds[0].revents().is_empty())
    }

    /// Keeps the payload of a control message for who listens later.
    pub(crate) fn keep(&mut self, payload: Vec<u8>) {
        self.kept = Some(payload);
    }

    /// What was kept, once.
    pub(crate) fn take_kept(&mut self) -> Option<Vec<u8>> {
        self.kept.take()
    }

    /// Reads until `len` bytes stand at `start`, or the stream ends. Asks for the header of the next record too, and for no
    /// more than that: what lies behind would have to be moved to the front.
    fn fill(&mut self, len: usize) -> Result<(), Error> {
        if self.end - self.start >= len {
            return Ok(());
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let room = len + HEADER_LEN;
        if self.buffer.len() < room {
            // Grows to the records that come; their length is bounded by the session.
            self.buffer
                .resize(room.next_power_of_two().min(MAX_PAYLOAD + OVERHEAD + HEADER_LEN), 0);
        }
        while self.end < len {
            match self.stream.read(&mut self.buffer[self.end..room]) {
                Ok(0) => break,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(Error::network("receiving")(source)),
            }
        }
        Ok(())
    }
}

fn lost() -> Error {
    Error::Network {
        doing: "receiving".into(),
        source: io::ErrorKind::UnexpectedEof.into(),
    }
}

/// The direction away from us.
pub struct Writer {
    stream: TcpStream,
    half: SendHalf,
    buffer: Vec<u8>,
    filled: usize,
    watch: Arc<Watch>,
}

impl Writer {
    /// Seals a record whose payload `fill` writes into the slice of `room` bytes that it is given; it returns how many it wrote.
    /// Nothing is sealed if it fails or writes nothing. The record goes out with [`Writer::flush`], or when enough has come together.
    ///
    /// # Errors
    /// What `fill` fails with, [`Error::Session`] if the limits of the keys are used up, [`Error::Network`].
    pub fn record<E: From<Error>>(
        &mut self,
        kind: u8,
        stream: u32,
        room: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<usize, E> {
        let room = room.min(MAX_PAYLOAD);
        if self.filled > 0 && self.filled + OVERHEAD + room > FLUSH_AT {
            self.flush()?;
        }
        let whole = self.filled + OVERHEAD + room;
        if self.buffer.len() < whole {
            self.buffer.resize(whole, 0);
        }
        let payload = self.filled + HEADER_LEN;
        let len = fill(&mut self.buffer[payload..payload + room])?.min(room);
        if len == 0 {
            return Ok(0);
        }
        let end = payload + len + TAG_LEN;
        self.half
            .seal(kind, stream, &mut self.buffer[self.filled..end])
            .map_err(Error::from)?;
        self.filled = end;
        Ok(len)
    }

    /// Seals a record with this payload.
    ///
    /// # Errors
    /// As [`Writer::record`].
    pub fn push(&mut self, kind: u8, stream: u32, payload: &[u8]) -> Result<(), Error> {
        self.record(kind, stream, payload.len(), |room| match room.len() == payload.len() {
            true => {
                room.copy_from_slice(payload);
                Ok(payload.len())
            }
            false => Err(Error::Protocol("a message of this end that is too long")),
        })?;
        Ok(())
    }

    /// Writes what was sealed.
    ///
    /// # Errors
    /// [`Error::Network`].
    pub fn flush(&mut self) -> Result<(), Error> {
        let filled = std::mem::take(&mut self.filled);
        self.stream
            .write_all(&self.buffer[..filled])
            .map_err(Error::network("sending"))
    }

    /// Number of times the keys of this direction have been replaced.
    pub fn epoch(&self) -> u64 {
        self.half.epoch()
    }

    /// Writes what was sealed and ends this direction in good order.
    ///
    /// # Errors
    /// [`Error::Network`], [`Error::Session`].
    pub fn close(&mut self) -> Result<(), Error> {
        self.flush()?;
        let last = self.half.close()?;
        self.stream.write_all(&last).map_err(Error::network("ending"))?;
        // The other end may have gone already.
        let _ = self.stream.shutdown(Shutdown::Write);
        Ok(())
    }
}
