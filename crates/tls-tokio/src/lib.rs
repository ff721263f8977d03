//! TLS over tokio: rustls does the handshake, `sealway-tls` the records.
//!
//! | Module | |
//! |---|---|
//! | [`handshake`] | a handshake of rustls as bytes that come and bytes that go, without I/O |
//! | [`kernel`] | the records after it, and the key schedule that rustls remembers |
//! | `stream` | [`TlsStream`]: both over a stream of tokio |
//! | [`error`] | what can go wrong |
//!
//! [`accept`] and [`connect`] take the configurations of rustls. They must allow that secrets are taken out
//! (`enable_secret_extraction`): with others nothing is sent. There is no early data. The handshake has no time limit of its own.
//!
//! An end without `close_notify` is [`UnexpectedEof`](std::io::ErrorKind::UnexpectedEof), so a part is never taken for the whole. Errors
//! of TLS are [`InvalidData`](std::io::ErrorKind::InvalidData); inside is a [`rustls::Error`] for a handshake that failed and for an
//! alert that was received, a [`sealway_tls::Error`] for everything else. The peer is told why by an alert, if that can be sent.

#![forbid(unsafe_code)]

pub mod error;
pub mod handshake;
pub mod kernel;
mod stream;

use std::io;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

pub use error::Error;
pub use stream::TlsStream;

use handshake::{Handshake, Next};

/// What is received at once during a handshake, bytes.
const PIECE: usize = 8 << 10;
/// The most that is held of a message of the handshake, bytes: rustls takes none that is longer than 64 KiB.
const MAX_HELD: usize = 96 << 10;

/// Accepts TLS on a connection that came.
///
/// # Errors
/// If the handshake fails, or the connection does. The alert that the peer is owed is sent, if that can be.
pub async fn accept<S>(config: Arc<ServerConfig>, io: S) -> io::Result<TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    establish(Handshake::server(config).map_err(Error::from)?, io).await
}

/// Starts TLS on a connection to a server of this name.
///
/// A server that refuses the certificate of this end says so only after the handshake of TLS 1.3: as the error of the first read.
///
/// # Errors
/// If the handshake fails, or the connection does. The alert that the peer is owed is sent, if that can be.
pub async fn connect<S>(config: Arc<ClientConfig>, name: ServerName<'static>, io: S) -> io::Result<TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    establish(Handshake::client(config, name).map_err(Error::from)?, io).await
}

async fn establish<S>(mut handshake: Handshake, mut io: S) -> io::Result<TlsStream<S>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let received = drive(&mut handshake, &mut io).await?;
    let certificate = handshake.peer_certificates().first().cloned();
    let alpn = handshake.alpn_protocol().map(<[u8]>::to_vec);
    let through = handshake.finish()?;
    Ok(TlsStream::new(io, through, &received, alpn, certificate))
}

/// Runs the handshake to its end. Returns what was received behind it.
async fn drive<S>(handshake: &mut Handshake, io: &mut S) -> io::Result<Vec<u8>>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut input, mut filled) = (vec![0; PIECE], 0);
    loop {
        let (used, next) = handshake.advance(&mut input[..filled]);
        input.copy_within(used..filled, 0);
        filled -= used;
        let next = match next {
            Ok(next) => next,
            Err(error) => {
                // The alert; that it arrives is not sure.
                let _ = send(handshake, io).await;
                return Err(Error::from(error).into());
            }
        };
        match next {
            Next::Write => send(handshake, io).await?,
            Next::Read => {
                if filled == input.len() {
                    if filled >= MAX_HELD {
                        let what = "TLS handshake message too long";
                        return Err(Error::Handshake(rustls::Error::General(what.into())).into());
                    }
                    input.resize((2 * filled).min(MAX_HELD), 0);
                }
                let got = io.read(&mut input[filled..]).await?;
                if got == 0 {
                    let what = "the connection ended within the TLS handshake";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, what));
                }
                filled += got;
            }
            Next::Done => {
                send(handshake, io).await?;
                input.truncate(filled);
                return Ok(input);
            }
        }
    }
}

async fn send<S: AsyncWrite + Unpin>(handshake: &mut Handshake, io: &mut S) -> io::Result<()> {
    let out = handshake.take_output();
    if out.is_empty() {
        return Ok(());
    }
    io.write_all(&out).await?;
    io.flush().await
}
