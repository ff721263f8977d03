//! A stream as libraries want it.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::Stream;
use crate::Error;

/// Most bytes that are sealed at once: a writer that is given all at once would hold all of it twice.
const MOST: usize = 256 << 10;

/// A stream as tokio's traits have it. What is written leaves as far as the socket takes it; the rest waits for the next
/// write or flush.
pub(crate) struct Io(pub(crate) Stream);

/// An error of a stream, as libraries want it.
pub(crate) fn io_error(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        other => io::Error::other(other),
    }
}

impl Io {
    /// Seals what there is room for, and writes what can be written now.
    fn poll_seal(&mut self, cx: &mut Context<'_>, parts: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        // What is still being written goes first.
        ready!(self.0.poll_flush(cx)).map_err(io_error)?;
        let took = self.0.seal_parts(parts, MOST).map_err(io_error)?;
        match self.0.poll_flush(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(io_error(error))),
            _ => Poll::Ready(Ok(took)),
        }
    }
}

impl AsyncRead for Io {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let stream = &mut self.0;
        loop {
            let payload = stream.payload();
            if !payload.is_empty() {
                let n = payload.len().min(into.remaining());
                into.put_slice(&payload[..n]);
                stream.consume(n);
                return Poll::Ready(Ok(()));
            }
            if stream.wants_open() {
                stream.open().map_err(io_error)?;
                continue;
            }
            if stream.has_ended() {
                return Poll::Ready(Ok(()));
            }
            ready!(stream.poll_fill(cx)).map_err(io_error)?;
        }
    }
}

impl AsyncWrite for Io {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_seal(cx, &[IoSlice::new(from)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_seal(cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.poll_flush_all(cx).map_err(io_error)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.seal_end().and_then(|()| self.0.seal_close()).map_err(io_error)?;
        ready!(self.0.poll_flush(cx)).map_err(io_error)?;
        self.0.carrier.poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::tls;

    /// Parts of every length around the borders of records come out as they went in, in as few records as they fit in.
    #[tokio::test]
    async fn parts_are_joined_and_arrive_whole() {
        for lengths in [
            &[9, 16_375][..],
            &[9, 16_376],
            &[0, 1, 0, 40_000],
            &[16_384, 16_384],
            &[300_000],
        ] {
            let (near, far) = tls::tests::ends(tls::tests::suites()[0]).await;
            let (mut near, mut far) = (Io(near), Io(far));
            let parts: Vec<Vec<u8>> = lengths
                .iter()
                .enumerate()
                .map(|(at, len)| vec![at as u8; *len])
                .collect();
            let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
            let whole = parts.concat();
            let took = poll_fn(|cx| Pin::new(&mut near).poll_write_vectored(cx, &slices))
                .await
                .unwrap();
            assert_eq!(took, whole.len().min(MOST), "{lengths:?}");
            let writing = tokio::spawn(async move {
                near.flush().await.unwrap();
                near.shutdown().await.unwrap();
                near
            });
            let mut got = Vec::new();
            far.read_to_end(&mut got).await.unwrap();
            assert!(got == whole[..took], "{lengths:?}");
            let near = writing.await.unwrap();
            let records = took.div_ceil(sealway_tls::records::MAX_PLAIN) as u64;
            let spare = near.0.written() - took as u64;
            // Each record adds 22 bytes, and the end is one more.
            assert!(
                spare <= 24 * (records + 1),
                "{lengths:?}: {spare} bytes around {records} records"
            );
        }
    }
}
