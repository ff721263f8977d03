//! Writing what waits.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use sealway_bip324::stream::{Outgoing, Output, TransportError};
use tokio::io::AsyncWrite;

/// How writing went, as far as it has gone.
pub(crate) type Polled = Poll<Result<(), TransportError>>;

/// Waits for room for a message.
pub(crate) fn poll_room<F, W>(outgoing: &mut Outgoing<F>, cx: &mut Context<'_>, io: &mut W) -> Polled
where
    W: AsyncWrite + Unpin,
{
    while !outgoing.in_the_way()?.is_empty() {
        ready!(poll_write(outgoing, cx, io))?;
    }
    Poll::Ready(Ok(()))
}

/// Writes and flushes everything.
pub(crate) fn poll_flush<W>(output: &mut impl Output, cx: &mut Context<'_>, io: &mut W) -> Polled
where
    W: AsyncWrite + Unpin,
{
    while !output.rest()?.is_empty() {
        ready!(poll_write(output, cx, io))?;
    }
    if output.is_unflushed() {
        let done = ready!(Pin::new(io).poll_flush(cx));
        output.flushed(done)?;
    }
    Poll::Ready(Ok(()))
}

/// Writes what can be written at once.
pub(crate) fn push<W>(output: &mut impl Output, cx: &mut Context<'_>, io: &mut W) -> Result<(), TransportError>
where
    W: AsyncWrite + Unpin,
{
    match poll_flush(output, cx, io) {
        Poll::Ready(done) => done,
        Poll::Pending => Ok(()),
    }
}

/// Writes everything, then ends the direction.
pub(crate) fn poll_shutdown<W>(output: &mut impl Output, cx: &mut Context<'_>, io: &mut W) -> Polled
where
    W: AsyncWrite + Unpin,
{
    ready!(poll_flush(output, cx, io))?;
    let done = ready!(Pin::new(io).poll_shutdown(cx));
    Poll::Ready(output.flushed(done))
}

fn poll_write<W>(output: &mut impl Output, cx: &mut Context<'_>, io: &mut W) -> Polled
where
    W: AsyncWrite + Unpin,
{
    let written = ready!(Pin::new(io).poll_write(cx, output.rest()?));
    Poll::Ready(output.wrote(written))
}
