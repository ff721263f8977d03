//! The stream below an HTTP/2 connection: passed through, and its end noticed.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;

/// Whether a connection is over.
#[derive(Debug, Default)]
pub(super) struct End {
    over: AtomicBool,
    told: Notify,
}

impl End {
    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    pub(super) fn set(&self) {
        self.over.store(true, Ordering::SeqCst);
        self.told.notify_waiters();
    }

    pub(super) async fn wait(&self) {
        let told = self.told.notified();
        tokio::pin!(told);
        // Registered before looking, so that no end is missed.
        told.as_mut().enable();
        if !self.is_over() {
            told.await;
        }
    }
}

/// A stream that tells its [`End`] when nothing more comes, when it fails, and when it is dropped.
pub(super) struct Watched<S> {
    stream: S,
    end: Arc<End>,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, end: Arc<End>) -> Self {
        Self { stream, end }
    }

    fn check<T>(&self, result: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if matches!(result, Poll::Ready(Err(_))) {
            self.end.set();
        }
        result
    }
}

impl<S> Drop for Watched<S> {
    fn drop(&mut self) {
        self.end.set();
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let (before, room) = (buf.filled().len(), buf.remaining() > 0);
        let result = Pin::new(&mut self.stream).poll_read(cx, buf);
        if matches!(result, Poll::Ready(Ok(()))) && room && buf.filled().len() == before {
            self.end.set();
        }
        self.check(result)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.check(result)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_flush(cx);
        self.check(result)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.check(result)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.check(result)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
