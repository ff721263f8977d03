//! Connections over blocking streams: a thin layer over any [`Read`] and [`Write`] that a caller brings.
//!
//! [`connect`] and [`accept`] run the handshake and give [`Messages`]: messages both ways, of one thread, or of two after
//! [`Messages::split_with`]. `examples/blocking.rs` is a whole program.
//!
//! # Time
//!
//! Nothing here knows a clock. How long a read or a write may take is the stream's affair, such as
//! `TcpStream::set_read_timeout`. One that the stream ends by [`io::ErrorKind::WouldBlock`] or [`io::ErrorKind::TimedOut`] gives
//! [`TransportError::Io`], and the call may be made again after the handshake: nothing is lost, and no packet number is used
//! twice. A limit for each read is none for all of a handshake, or of a message: a peer that sends a byte at a time renews
//! it. Servers among strangers put a stream with a deadline underneath, as the example does.

use std::fmt;
use std::io::{self, Read, Write};
use std::ops::Range;

use crate::decoy::Decoys;
use crate::stream::{Begun, Directions, Handshake, Incoming, Next, Outgoing, Output, Packets, Step};
use crate::{Error, Kind, LocalKey, Magic, Options, PacketSealer, Role};

pub use crate::stream::{HandshakeError, Received, Sent, TransportError, draw_garbage, draw_key};

/// What an accepted stream turned out to be.
#[derive(Debug)]
// Moved once, to where it stays: a box would cost more.
#[allow(clippy::large_enum_variant)]
pub enum Accepted<IO> {
    /// A v2 connection, after its handshake.
    V2(Messages<IO>),
    /// A v1 connection, of which nothing but its start has been read.
    V1 {
        /// The stream.
        io: IO,
        /// What was read of it, 16 bytes at least: a v1 parser takes these first.
        received: Vec<u8>,
    },
}

/// Runs the handshake on a stream that this end opened.
///
/// `key` is new, see [`draw_key`]; `options` may have garbage, see [`draw_garbage`].
///
/// # Errors
/// [`HandshakeError`], which also says whether the peer may speak v1 only. The stream is closed.
pub fn connect<IO: Read + Write>(
    io: IO,
    magic: Magic,
    key: LocalKey,
    options: Options,
) -> Result<Messages<IO>, HandshakeError> {
    let handshake = Handshake::connect(magic, key, options)?;
    match run(io, handshake)? {
        Accepted::V2(messages) => Ok(messages),
        // Only a responder looks for v1.
        Accepted::V1 { .. } => Err(Error::Closed.into()),
    }
}

/// Runs the handshake on a stream that was accepted, or finds that the peer speaks v1.
///
/// As soon as the peer cannot speak v1 it is answered, which may be after its first byte.
///
/// # Errors
/// [`HandshakeError`]. The stream is closed.
pub fn accept<IO: Read + Write>(
    io: IO,
    magic: Magic,
    key: LocalKey,
    options: Options,
) -> Result<Accepted<IO>, HandshakeError> {
    run(io, Handshake::accept(Vec::new(), magic, key, options)?)
}

fn run<IO: Read + Write>(mut io: IO, mut handshake: Handshake) -> Result<Accepted<IO>, HandshakeError> {
    drive(&mut io, &mut handshake).map_err(|error| handshake.failed(error))?;
    Ok(match handshake.finish()? {
        Begun::V2(directions) => Accepted::V2(Messages { io, directions }),
        Begun::V1 { received } => Accepted::V1 { io, received },
    })
}

/// Runs a handshake to its end.
fn drive<IO: Read + Write>(io: &mut IO, handshake: &mut Handshake) -> Result<(), TransportError> {
    loop {
        flush(handshake, io)?;
        match handshake.step()? {
            Step::Write => {}
            Step::Read => {
                let n = read(io, handshake.room())?;
                handshake.came(n)?;
            }
            Step::Done => return Ok(()),
        }
    }
}

/// Reads once.
fn read(io: &mut impl Read, room: &mut [u8]) -> io::Result<usize> {
    loop {
        match io.read(room) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// Writes once.
fn write(io: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
    loop {
        match io.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            written => return written,
        }
    }
}

/// True if the call may be made again: the stream is as it was.
fn passes(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Reads until a message is whole, and gives where it is; `None` at the end of the stream.
fn next(incoming: &mut Incoming<Packets>, io: &mut impl Read) -> Result<Option<Range<usize>>, TransportError> {
    loop {
        match incoming.next_message()? {
            Next::Message(message) => return Ok(Some(message.body)),
            Next::Ended => return Ok(None),
            Next::Read => {}
        }
        match read(io, incoming.room()) {
            Ok(n) => incoming.came(n)?,
            Err(error) if passes(&error) => return Err(error.into()),
            Err(error) => return Err(incoming.fail(error.into())),
        }
    }
}

fn write_rest(output: &mut impl Output, io: &mut impl Write) -> Result<(), TransportError> {
    match write(io, output.rest()?) {
        Err(error) if passes(&error) => Err(error.into()),
        written => output.wrote(written),
    }
}

/// Takes a packet of parts that lie apart, once there is room for it.
fn feed(
    outgoing: &mut Outgoing<PacketSealer>,
    io: &mut impl Write,
    kind: Kind,
    parts: &[&[u8]],
) -> Result<(), TransportError> {
    while !outgoing.in_the_way()?.is_empty() {
        write_rest(outgoing, io)?;
    }
    outgoing.seal(kind, parts)
}

fn flush(output: &mut impl Output, io: &mut impl Write) -> Result<(), TransportError> {
    while !output.rest()?.is_empty() {
        write_rest(output, io)?;
    }
    if !output.is_unflushed() {
        return Ok(());
    }
    match io.flush() {
        Err(error) if passes(&error) || error.kind() == io::ErrorKind::Interrupted => Err(error.into()),
        done => output.flushed(done),
    }
}

/// Both directions of a v2 connection, for one thread.
pub struct Messages<IO> {
    io: IO,
    directions: Directions,
}

impl<IO> Messages<IO> {
    /// Which end this is.
    pub const fn role(&self) -> Role {
        self.directions.role
    }

    /// The session id: compared by other means, it shows that nobody stands between the two ends.
    pub const fn session_id(&self) -> &[u8; 32] {
        &self.directions.session_id
    }

    /// The stream.
    pub const fn get_ref(&self) -> &IO {
        &self.io
    }

    /// What has come.
    pub const fn received(&self) -> Received {
        self.directions.incoming.received()
    }

    /// What was sent.
    pub const fn sent(&self) -> Sent {
        self.directions.outgoing.sent()
    }

    /// Sends decoys by a policy from here on, as [`Outgoing::set_decoys`] does; `None` sends none. Halves keep it.
    pub fn set_decoys(&mut self, decoys: Option<Decoys>) {
        self.directions.outgoing.set_decoys(decoys);
    }

    /// Halves for two threads, over a stream that has two handles, such as one of `TcpStream::try_clone`.
    pub fn split_with<R, W>(self, split: impl FnOnce(IO) -> (R, W)) -> (Receiver<R>, Sender<W>) {
        let (read, write) = split(self.io);
        let receiver = Receiver {
            io: read,
            incoming: self.directions.incoming,
        };
        let sender = Sender {
            io: write,
            outgoing: self.directions.outgoing,
        };
        (receiver, sender)
    }
}

impl<IO: Read + Write> Messages<IO> {
    /// Sends what waits, then waits for the contents of the next message; `None` once the peer has ended its direction between
    /// two messages, which anyone in between can do as well.
    ///
    /// # Errors
    /// As [`Receiver::recv`], and those of [`Sender::flush`].
    pub fn recv(&mut self) -> Result<Option<&[u8]>, TransportError> {
        let Directions { incoming, outgoing, .. } = &mut self.directions;
        // What has come is given even if nothing can be sent any more.
        if !incoming.has_message()? {
            flush(outgoing, &mut self.io)?;
        }
        let place = next(incoming, &mut self.io)?;
        Ok(place.map(|place| incoming.bytes(place)))
    }

    /// As [`Sender::feed`].
    ///
    /// # Errors
    /// As [`Sender::feed`].
    pub fn feed(&mut self, contents: &[u8]) -> Result<(), TransportError> {
        feed(&mut self.directions.outgoing, &mut self.io, Kind::Genuine, &[contents])
    }

    /// As [`Sender::send`].
    ///
    /// # Errors
    /// As [`Sender::send`].
    pub fn send(&mut self, contents: &[u8]) -> Result<(), TransportError> {
        self.feed(contents)?;
        self.flush()
    }

    /// As [`Sender::flush`].
    ///
    /// # Errors
    /// As [`Sender::flush`].
    pub fn flush(&mut self) -> Result<(), TransportError> {
        flush(&mut self.directions.outgoing, &mut self.io)
    }
}

/// What comes of a v2 connection.
pub struct Receiver<R> {
    io: R,
    incoming: Incoming<Packets>,
}

impl<R> Receiver<R> {
    /// What has come.
    pub const fn received(&self) -> Received {
        self.incoming.received()
    }

    /// The stream.
    pub const fn get_ref(&self) -> &R {
        &self.io
    }

    /// Opens what has come already and says whether a message is whole: [`Receiver::recv`] then gives it without reading.
    ///
    /// # Errors
    /// As [`Receiver::recv`].
    pub fn has_message(&mut self) -> Result<bool, TransportError> {
        self.incoming.has_message()
    }
}

impl<R: Read> Receiver<R> {
    /// Waits for the contents of the next message; `None` once the peer has ended its direction between two messages, which
    /// anyone in between can do as well.
    ///
    /// # Errors
    /// [`TransportError`]; nothing more comes after one, unless it says that the stream's own time was up. Memory is at most
    /// 256 KiB more than what has come.
    pub fn recv(&mut self) -> Result<Option<&[u8]>, TransportError> {
        let place = next(&mut self.incoming, &mut self.io)?;
        Ok(place.map(|place| self.incoming.bytes(place)))
    }
}

/// What is sent on a v2 connection.
pub struct Sender<W> {
    io: W,
    outgoing: Outgoing<PacketSealer>,
}

impl<W> Sender<W> {
    /// What was sent.
    pub const fn sent(&self) -> Sent {
        self.outgoing.sent()
    }

    /// Bytes that were taken and wait to be written.
    pub fn waiting(&self) -> usize {
        self.outgoing.waiting()
    }

    /// The stream.
    pub const fn get_ref(&self) -> &W {
        &self.io
    }
}

impl<W: Write> Sender<W> {
    /// Takes a message, and leaves it here until [`Sender::flush`] or until much is to be sent: writes while as many bytes wait
    /// as `Options::output_limit` says.
    ///
    /// # Errors
    /// `Error::ContentsTooLong` above 2^24 - 1 bytes, after which the connection may go on; likewise when the stream's own
    /// time was up: the message was then not taken. Otherwise the connection is over.
    pub fn feed(&mut self, contents: &[u8]) -> Result<(), TransportError> {
        self.feed_parts(&[contents])
    }

    /// [`Sender::feed`] for a message whose contents lie apart, such as a type and a payload.
    ///
    /// # Errors
    /// As [`Sender::feed`].
    pub fn feed_parts(&mut self, parts: &[&[u8]]) -> Result<(), TransportError> {
        feed(&mut self.outgoing, &mut self.io, Kind::Genuine, parts)
    }

    /// Takes a packet that the other end throws away, as [`Sender::feed`]. Zeros are as good as any contents.
    ///
    /// # Errors
    /// As [`Sender::feed`].
    pub fn feed_decoy(&mut self, contents: &[u8]) -> Result<(), TransportError> {
        feed(&mut self.outgoing, &mut self.io, Kind::Decoy, &[contents])
    }

    /// Takes a message, as [`Sender::feed`], and writes it.
    ///
    /// # Errors
    /// As [`Sender::feed`] while it was not taken, as [`Sender::flush`] once [`Sender::sent`] counts it.
    pub fn send(&mut self, contents: &[u8]) -> Result<(), TransportError> {
        self.feed(contents)?;
        self.flush()
    }

    /// Writes everything that was taken.
    ///
    /// # Errors
    /// [`TransportError::Io`]. If the stream's own time was up, call it again; otherwise the connection is over.
    pub fn flush(&mut self) -> Result<(), TransportError> {
        flush(&mut self.outgoing, &mut self.io)
    }
}

impl<IO> fmt::Debug for Messages<IO> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Messages")
            .field("role", &self.role())
            .field("received", &self.received())
            .field("sent", &self.sent())
            .finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for Receiver<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Receiver({:?})", self.received())
    }
}

impl<W> fmt::Debug for Sender<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sender({:?})", self.sent())
    }
}
