//! The handshake over a stream.

use std::io;

use crate::{
    Awaiting, Connection, Error, Event, LocalKey, Magic, Options, PacketOpener, PacketSealer, Parts, Role,
    V1_PREFIX_LEN,
};

use super::outgoing::some;
use super::{HandshakeError, Incoming, Outgoing, Output, Packets, Received, Sent, TransportError};
use crate::buffer::ReadBuffer;

/// What a handshake is to do next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Step {
    /// Write its [`Output`], if there is any, and ask again.
    Write,
    /// Read into [`Handshake::room`], say what came, and ask again.
    Read,
    /// Nothing: once its output is written, it is over.
    Done,
}

/// What a handshake has found.
// Moved once, to where it stays: a box would cost more.
#[allow(clippy::large_enum_variant)]
pub enum Begun {
    /// A v2 connection.
    V2(Directions),
    /// A v1 connection, of which nothing but its start has been read.
    V1 {
        /// What was read of it, 16 bytes at least: a v1 parser takes these first.
        received: Vec<u8>,
    },
}

/// Both directions of a v2 connection after its handshake.
pub struct Directions {
    /// What comes.
    pub incoming: Incoming<Packets>,
    /// What goes.
    pub outgoing: Outgoing<PacketSealer>,
    /// Which end this is.
    pub role: Role,
    /// The session id.
    pub session_id: [u8; 32],
}

/// A handshake. Before each step, write what is to be written.
pub struct Handshake {
    connection: Connection,
    buffer: ReadBuffer,
    /// Bytes that came, also those of which nothing could be made.
    received: u64,
    unflushed: bool,
    established: bool,
    v1: Option<[u8; V1_PREFIX_LEN]>,
}

impl Handshake {
    /// The end that opened the stream.
    ///
    /// # Errors
    /// [`HandshakeError`] for [`Options`] that [`Connection::initiator`] refuses.
    pub fn connect(magic: Magic, key: LocalKey, options: Options) -> Result<Self, HandshakeError> {
        Self::new(Vec::new(), options, |options| {
            Connection::initiator(magic, key, options)
        })
    }

    /// The end that accepted the stream, of which `received` has been read already.
    ///
    /// # Errors
    /// As [`Handshake::connect`].
    pub fn accept(received: Vec<u8>, magic: Magic, key: LocalKey, options: Options) -> Result<Self, HandshakeError> {
        Self::new(received, options, |options| Connection::responder(magic, key, options))
    }

    fn new(
        received: Vec<u8>,
        mut options: Options,
        start: impl FnOnce(Options) -> Result<Connection, Error>,
    ) -> Result<Self, HandshakeError> {
        // Whatever follows the handshake stays in the buffer.
        options.event_limit = 1;
        Ok(Handshake {
            connection: start(options)?,
            received: received.len() as u64,
            buffer: ReadBuffer::holding(received),
            unflushed: false,
            established: false,
            v1: None,
        })
    }

    /// Works on what has come, up to the next step.
    ///
    /// # Errors
    /// What the peer did wrong: give it to [`Handshake::failed`] and close the stream.
    pub fn step(&mut self) -> Result<Step, TransportError> {
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::V1 { prefix } => self.v1 = Some(prefix),
                Event::Established { .. } => self.established = true,
                // Decoys before the version packet; messages come after it and are not read here.
                Event::Decoy { .. } | Event::Message(_) => {}
            }
        }
        if self.established || self.v1.is_some() {
            return Ok(Step::Done);
        }
        if self.buffer.filled().is_empty() {
            return Ok(Step::Read);
        }
        let used = self.connection.handle_input(self.buffer.filled())?;
        self.buffer.consume(used);
        Ok(Step::Write)
    }

    /// Where the next read goes.
    pub fn room(&mut self) -> &mut [u8] {
        self.buffer.room(0)
    }

    /// Says that a read put `n` bytes there; none is the end of the stream.
    ///
    /// # Errors
    /// [`TransportError::CutOff`] at the end of the stream.
    pub fn came(&mut self, n: usize) -> Result<(), TransportError> {
        if n == 0 {
            return Err(TransportError::CutOff);
        }
        self.buffer.came(n);
        self.received += n as u64;
        Ok(())
    }

    /// Why there is no connection, after an error.
    pub fn failed(&self, error: TransportError) -> HandshakeError {
        HandshakeError {
            before_terminator: matches!(error, TransportError::Protocol(Error::NoTerminator))
                || matches!(
                    self.connection.progress().awaiting,
                    Awaiting::Key { .. } | Awaiting::Garbage { .. }
                ),
            error,
            peer_may_speak_v1_only: self.connection.peer_may_speak_v1_only() && self.received == 0,
            bytes_received: self.received,
        }
    }

    /// What has begun, after [`Step::Done`]. What followed the handshake and has been read comes first.
    ///
    /// Write the whole [`Output`] before: what is left of it is dropped here, and the other end would wait for it.
    ///
    /// # Errors
    /// [`HandshakeError`] with [`Error::Closed`] before [`Step::Done`].
    pub fn finish(mut self) -> Result<Begun, HandshakeError> {
        if let Some(prefix) = self.v1 {
            let received = [&prefix, self.buffer.filled()].concat();
            return Ok(Begun::V1 { received });
        }
        match self.connection.into_parts() {
            Ok(parts) => Ok(Begun::V2(directions(parts, self.buffer))),
            Err(connection) => {
                self.connection = *connection;
                Err(self.failed(Error::Closed.into()))
            }
        }
    }
}

impl Output for Handshake {
    fn rest(&self) -> Result<&[u8], TransportError> {
        Ok(self.connection.output())
    }

    fn wrote(&mut self, written: io::Result<usize>) -> Result<(), TransportError> {
        self.connection.advance_output(some(written)?);
        self.unflushed = true;
        Ok(())
    }

    fn is_unflushed(&self) -> bool {
        self.unflushed
    }

    fn flushed(&mut self, done: io::Result<()>) -> Result<(), TransportError> {
        self.unflushed &= done.is_err();
        Ok(done?)
    }
}

/// Both directions of a connection after its handshake, of which `buffer` holds what has come since.
fn directions(parts: Parts, buffer: ReadBuffer) -> Directions {
    let Parts {
        role,
        session_id,
        send,
        recv,
        counters,
        options,
        // The handshake is read to its end and not beyond, and all of it has been sent.
        unread: _,
        output: _,
        events: _,
    } = parts;
    let received = Received {
        bytes: counters.bytes_received,
        messages: 0,
        decoys: counters.decoys_received,
        dropped: 0,
    };
    let sent = Sent {
        bytes: counters.bytes_sent,
        messages: 0,
        decoys: counters.decoys_sent,
    };
    let packets = Packets::new(PacketOpener::new(recv), options.contents_limit);
    Directions {
        incoming: Incoming::after(packets, buffer, received),
        outgoing: Outgoing::after(PacketSealer::new(send), options.output_limit, sent),
        role,
        session_id,
    }
}
