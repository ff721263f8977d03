//! A stream of tokio with TLS on it.

mod rx;
#[cfg(test)]
mod tests;
mod tx;

use std::fmt;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use rustls::pki_types::CertificateDer;
use sealway_tls::records::Records;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::Error;
use crate::handshake::Through;
use rx::Rx;
use tx::Tx;

/// A connection whose handshake is through.
///
/// A read with room for 64 KiB or more is opened in that room, with no copy. A write takes up to 256 KiB, of one or of many slices, and
/// seals them as full records. What the socket does not take at once waits for the next write or flush. Requests of the peer for
/// a new key are answered ahead of the next write or flush.
///
/// It holds 32 KiB for reading once it was read in small pieces. For writing it holds what its largest write needed; a flush leaves at
/// most 64 KiB of that.
pub struct TlsStream<S> {
    io: S,
    records: Records,
    rx: Rx,
    tx: Tx,
    alpn: Option<Vec<u8>>,
    certificate: Option<CertificateDer<'static>>,
}

impl<S> fmt::Debug for TlsStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsStream").finish_non_exhaustive()
    }
}

impl<S> TlsStream<S> {
    /// `received` came behind the handshake.
    pub(crate) fn new(
        io: S,
        through: Through,
        received: &[u8],
        alpn: Option<Vec<u8>>,
        certificate: Option<CertificateDer<'static>>,
    ) -> TlsStream<S> {
        let Through {
            mut records,
            early,
            closed,
        } = through;
        // Records without payload count in a row, as in rustls.
        records.trust();
        TlsStream {
            io,
            records,
            rx: Rx::new(early, received, closed),
            tx: Tx::default(),
            alpn,
            certificate,
        }
    }

    /// The protocol that both ends agreed on by ALPN.
    pub fn alpn_protocol(&self) -> Option<&[u8]> {
        self.alpn.as_deref()
    }

    /// The certificate that the peer showed, without those behind it.
    pub fn peer_certificate(&self) -> Option<&CertificateDer<'static>> {
        self.certificate.as_ref()
    }

    /// Changes the sending key, and asks the peer to change its own.
    #[cfg(test)]
    fn update_keys(&mut self) {
        self.tx.update_keys(&mut self.records).unwrap();
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let TlsStream {
            io, records, rx, tx, ..
        } = self.get_mut();
        rx.poll_read(cx, io, records, into).map_err(|error| {
            if let Error::Records(error) = &error {
                tx.give_up(cx, io, records, error);
            }
            error.into()
        })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = this.tx.poll_write(cx, &mut this.io, &mut this.records, parts);
        written.map_err(io::Error::from)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.tx.poll_flush(cx, &mut this.io, &mut this.records)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let closed = this.tx.poll_shutdown(cx, &mut this.io, &mut this.records);
        closed.map_err(io::Error::from)
    }
}
