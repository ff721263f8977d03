//! The handshake over a stream.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::stream::{ReadBuffer, failed, not_begun};
use crate::{Connection, Error, Event, LocalKey, Magic, Options, V1_PREFIX_LEN};
use ::tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use ::tokio::time::timeout;

use super::{HandshakeError, Messages, TransportError};

/// How long Bitcoin Core waits for a handshake.
pub const HANDSHAKE_LIMIT: Duration = Duration::from_secs(60);

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

/// What the first bytes of an accepted stream say.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FirstBytes {
    /// The peer speaks v1. A v1 parser takes these 16 bytes first.
    V1 {
        /// What was read.
        received: Vec<u8>,
    },
    /// The peer does not speak v1 of this network. [`accept_after`] takes these bytes, of which there is at least one.
    V2 {
        /// What was read.
        received: Vec<u8>,
    },
}

/// Reads from an accepted stream until it shows whether the peer speaks v1, at most 16 bytes, within `limit`.
///
/// For whoever wants to know before paying for a key: what v2 costs begins with [`accept_after`].
///
/// # Errors
/// [`TransportError::CutOff`], [`TransportError::HandshakeTime`] and [`TransportError::Io`].
pub async fn first_bytes<IO>(io: &mut IO, magic: Magic, limit: Duration) -> Result<FirstBytes, TransportError>
where
    IO: AsyncRead + Unpin,
{
    let expected = magic.v1_prefix();
    let mut bytes = [0; V1_PREFIX_LEN];
    let mut have = 0;
    let reading = async {
        loop {
            match io.read(&mut bytes[have..]).await? {
                0 => return Err(TransportError::CutOff),
                n => have += n,
            }
            let received = &bytes[..have];
            if !expected.starts_with(received) {
                let received = received.to_vec();
                return Ok(FirstBytes::V2 { received });
            }
            if have == V1_PREFIX_LEN {
                let received = received.to_vec();
                return Ok(FirstBytes::V1 { received });
            }
        }
    };
    match timeout(limit, reading).await {
        Ok(read) => read,
        Err(_) => Err(TransportError::HandshakeTime { limit }),
    }
}

/// Runs the handshake on a stream that this end opened, within `limit` for all of it.
///
/// `key` is new, see [`draw_key`](super::draw_key); `options` may have garbage, see [`draw_garbage`](super::draw_garbage).
///
/// # Errors
/// [`HandshakeError`], which also says whether the peer may speak v1 only. The stream is closed.
pub async fn connect<IO>(
    io: IO,
    magic: Magic,
    key: LocalKey,
    options: Options,
    limit: Duration,
) -> Result<Messages<IO>, HandshakeError>
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    let start = |options| Connection::initiator(magic, key, options);
    match run(io, Vec::new(), options, limit, start).await? {
        Accepted::V2(messages) => Ok(messages),
        // Only a responder looks for v1.
        Accepted::V1 { .. } => Err(not_begun(Error::Closed)),
    }
}

/// Runs the handshake on a stream that was accepted, or finds that the peer speaks v1, within `limit` for all of it.
///
/// As soon as the peer cannot speak v1 it is answered, which may be after its first byte.
///
/// # Errors
/// [`HandshakeError`]. The stream is closed.
pub async fn accept<IO>(
    io: IO,
    magic: Magic,
    key: LocalKey,
    options: Options,
    limit: Duration,
) -> Result<Accepted<IO>, HandshakeError>
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    accept_after(io, Vec::new(), magic, key, options, limit).await
}

/// [`accept`] for a stream of which `received` has been read already, as by [`first_bytes`].
///
/// # Errors
/// As [`accept`].
pub async fn accept_after<IO>(
    io: IO,
    received: Vec<u8>,
    magic: Magic,
    key: LocalKey,
    options: Options,
    limit: Duration,
) -> Result<Accepted<IO>, HandshakeError>
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    let start = |options| Connection::responder(magic, key, options);
    run(io, received, options, limit, start).await
}

async fn run<IO>(
    mut io: IO,
    received: Vec<u8>,
    mut options: Options,
    limit: Duration,
    start: impl FnOnce(Options) -> Result<Connection, Error>,
) -> Result<Accepted<IO>, HandshakeError>
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    // Whatever follows the handshake stays in the buffer.
    options.event_limit = 1;
    let mut connection = start(options).map_err(not_begun)?;
    let mut stage = Stage {
        received: received.len() as u64,
        ..Stage::default()
    };
    let mut buffer = ReadBuffer::holding(received);
    let ran = timeout(
        limit,
        poll_fn(|cx| stage.poll(cx, &mut io, &mut connection, &mut buffer)),
    )
    .await;
    match ran {
        Err(_) => Err(failed(
            TransportError::HandshakeTime { limit },
            &connection,
            stage.received,
        )),
        Ok(Err(error)) => Err(failed(error, &connection, stage.received)),
        Ok(Ok(Outcome::V1(prefix))) => {
            let received = [&prefix, buffer.filled()].concat();
            Ok(Accepted::V1 { io, received })
        }
        Ok(Ok(Outcome::Established)) => match connection.into_parts() {
            Ok(parts) => Ok(Accepted::V2(Messages::new(io, parts, buffer))),
            Err(connection) => Err(failed(Error::Closed.into(), &connection, stage.received)),
        },
    }
}

enum Outcome {
    Established,
    V1([u8; V1_PREFIX_LEN]),
}

#[derive(Default)]
struct Stage {
    established: bool,
    unflushed: bool,
    /// Bytes that came, also those of which nothing could be made.
    received: u64,
}

impl Stage {
    fn poll<IO>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut IO,
        connection: &mut Connection,
        buffer: &mut ReadBuffer,
    ) -> Poll<Result<Outcome, TransportError>>
    where
        IO: AsyncRead + AsyncWrite + Unpin,
    {
        loop {
            let sent = self.poll_output(cx, io, connection)?;
            while let Some(event) = connection.poll_event() {
                match event {
                    Event::V1 { prefix } => return Poll::Ready(Ok(Outcome::V1(prefix))),
                    Event::Established { .. } => self.established = true,
                    // Decoys before the version packet; messages come after it and are not read here.
                    Event::Decoy { .. } | Event::Message(_) => {}
                }
            }
            if self.established {
                // What the peer waits for may not stay here: a caller might only listen from now on.
                return sent.map(|()| Ok(Outcome::Established));
            }
            if buffer.filled().is_empty() {
                match ready!(buffer.poll_fill(cx, Pin::new(&mut *io), 0))? {
                    0 => return Poll::Ready(Err(TransportError::CutOff)),
                    n => self.received += n as u64,
                }
            }
            let used = connection.handle_input(buffer.filled())?;
            buffer.consume(used);
        }
    }

    /// Writes what can be written; ready once everything is.
    fn poll_output<IO>(
        &mut self,
        cx: &mut Context<'_>,
        io: &mut IO,
        connection: &mut Connection,
    ) -> Result<Poll<()>, TransportError>
    where
        IO: AsyncWrite + Unpin,
    {
        while !connection.output().is_empty() {
            match Pin::new(&mut *io).poll_write(cx, connection.output()) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(Ok(0)) => return Err(io::Error::from(io::ErrorKind::WriteZero).into()),
                Poll::Ready(Ok(n)) => connection.advance_output(n),
                Poll::Ready(Err(error)) => return Err(error.into()),
            }
            self.unflushed = true;
        }
        if self.unflushed {
            match Pin::new(&mut *io).poll_flush(cx) {
                Poll::Pending => return Ok(Poll::Pending),
                Poll::Ready(flushed) => flushed?,
            }
            self.unflushed = false;
        }
        Ok(Poll::Ready(()))
    }
}
