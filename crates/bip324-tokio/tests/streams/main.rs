//! The layer over tokio: handshakes, messages and byte streams over streams of every temper.
#![allow(clippy::unwrap_used, unreachable_pub)]

mod bytes;
mod cancel;
mod decoys;
mod handshakes;
mod limits;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use sealway_bip324::{LocalKey, Magic, Options, Role};
use sealway_bip324_tokio::{Accepted, HANDSHAKE_LIMIT, Messages, accept, connect};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// The key of one role, the same every time.
fn key(role: Role) -> LocalKey {
    let byte = match role {
        Role::Initiator => 0x11,
        Role::Responder => 0x22,
    };
    LocalKey::new(&[byte; 32], &[byte ^ 0xff; 32]).unwrap()
}

/// Both ends of a connection over a pair of streams.
async fn pair_over<A, B>(a: A, b: B, options: Options) -> (Messages<A>, Messages<B>)
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    let here = connect(
        a,
        Magic::REGTEST,
        key(Role::Initiator),
        options.clone(),
        HANDSHAKE_LIMIT,
    );
    let there = accept(b, Magic::REGTEST, key(Role::Responder), options, HANDSHAKE_LIMIT);
    let (here, there) = tokio::join!(here, there);
    let Accepted::V2(there) = there.unwrap() else {
        panic!("taken for v1")
    };
    (here.unwrap(), there)
}

async fn pair(memory: usize) -> (Messages<DuplexStream>, Messages<DuplexStream>) {
    let (a, b) = tokio::io::duplex(memory);
    pair_over(a, b, Options::default()).await
}

/// Contents that no other message has.
fn contents(number: usize, len: usize) -> Vec<u8> {
    let mut state = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Lengths around what buffers hold.
const LENGTHS: [usize; 12] = [
    0, 1, 2, 100, 4_075, 4_076, 4_077, 16_384, 65_516, 65_517, 300_000, 4_000_013,
];

/// A stream that is ready every other time and then moves a few bytes at most. It wakes nobody when `wakes` is false.
struct Choppy<S> {
    inner: S,
    most: usize,
    wakes: bool,
    /// Of reads and of writes apart, or one could always have the turn that waits.
    turns: [bool; 2],
}

impl<S> Choppy<S> {
    fn new(inner: S, most: usize, wakes: bool) -> Self {
        Choppy {
            inner,
            most,
            wakes,
            turns: [false; 2],
        }
    }

    fn pending(&mut self, way: usize, cx: &mut Context<'_>) -> bool {
        self.turns[way] = !self.turns[way];
        if self.turns[way] && self.wakes {
            cx.waker().wake_by_ref();
        }
        self.turns[way]
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Choppy<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.pending(0, cx) {
            return Poll::Pending;
        }
        let most = self.most.min(out.remaining());
        let mut part = vec![0; most];
        let mut part = ReadBuf::new(&mut part);
        let polled = Pin::new(&mut self.inner).poll_read(cx, &mut part);
        out.put_slice(part.filled());
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Choppy<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.pending(1, cx) {
            return Poll::Pending;
        }
        let n = bytes.len().min(self.most);
        Pin::new(&mut self.inner).poll_write(cx, &bytes[..n])
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.pending(1, cx) {
            return Poll::Pending;
        }
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.pending(1, cx) {
            return Poll::Pending;
        }
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
