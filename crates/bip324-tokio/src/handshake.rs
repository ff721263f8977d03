//! The handshake over a stream.

use std::future::poll_fn;
use std::task::{Context, ready};
use std::time::Duration;

use sealway_bip324::stream::{Begun, Handshake, HandshakeError, Step, TransportError};
use sealway_bip324::{Error, LocalKey, Magic, Options, V1_PREFIX_LEN};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::timeout;

use crate::Messages;
use crate::incoming::poll_read;
use crate::outgoing::{Polled, poll_flush};

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
/// `key` is new, see [`draw_key`](crate::draw_key); `options` may have garbage, see [`draw_garbage`](crate::draw_garbage).
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
    match run(io, Handshake::connect(magic, key, options)?, limit).await? {
        Accepted::V2(messages) => Ok(messages),
        // Only a responder looks for v1.
        Accepted::V1 { .. } => Err(Error::Closed.into()),
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
    run(io, Handshake::accept(received, magic, key, options)?, limit).await
}

async fn run<IO>(mut io: IO, mut handshake: Handshake, limit: Duration) -> Result<Accepted<IO>, HandshakeError>
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    let ran = timeout(limit, poll_fn(|cx| poll(cx, &mut io, &mut handshake))).await;
    ran.unwrap_or(Err(TransportError::HandshakeTime { limit }))
        .map_err(|error| handshake.failed(error))?;
    Ok(match handshake.finish()? {
        Begun::V2(directions) => Accepted::V2(Messages::new(io, directions)),
        Begun::V1 { received } => Accepted::V1 { io, received },
    })
}

/// Goes on until the handshake is over.
fn poll<IO>(cx: &mut Context<'_>, io: &mut IO, handshake: &mut Handshake) -> Polled
where
    IO: AsyncRead + AsyncWrite + Unpin,
{
    loop {
        // What cannot be written yet keeps nothing from being read.
        let sent = poll_flush(handshake, cx, io)?;
        match handshake.step()? {
            Step::Write => {}
            Step::Read => {
                let n = ready!(poll_read(cx, io, handshake.room()))?;
                handshake.came(n)?;
            }
            // What the peer waits for may not stay here: a caller might only listen from now on.
            Step::Done => return sent.map(Ok),
        }
    }
}
