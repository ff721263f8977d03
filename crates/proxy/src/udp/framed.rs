//! Datagrams in a stream, each with its length: VLESS, or VMess with a chunk each.

use std::task::{Context, Poll, ready};

use sealway_v2ray::vless::packet;
use sealway_v2ray::vmess::MAX_CHUNK_PAYLOAD;
use sealway_v2ray::{Destination, Step};

use super::{PacketEnd, Slot};
use crate::Error;
use crate::stream::Stream;

/// What tells datagrams apart.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Border {
    /// A length that we write in front of each.
    Length,
    /// The pieces of the body layer, which puts lengths in front of what it opens.
    Piece,
    /// Nothing but the reads they come in.
    Read,
}

/// Datagrams in a stream.
pub(crate) struct Framed {
    stream: Stream,
    /// Where all of them go, or come from.
    target: Destination,
    border: Border,
}

impl Framed {
    fn new(mut stream: Stream, target: Destination, border: Border) -> Box<Self> {
        stream.trust();
        Box::new(Framed { stream, target, border })
    }

    /// Datagrams of VLESS.
    pub(crate) fn vless(stream: Stream, target: Destination) -> Box<Self> {
        Framed::new(stream, target, Border::Length)
    }

    /// Datagrams of VMess, a chunk each.
    pub(crate) fn vmess(stream: Stream, target: Destination) -> Box<Self> {
        Framed::new(stream, target, Border::Piece)
    }

    /// Datagrams one behind the other in a stream: what Xray sends under VMess with the word `zero`. What is read at once
    /// is taken for one datagram, as Xray does it; two that arrive together become one.
    pub(crate) fn raw(stream: Stream, target: Destination) -> Box<Self> {
        Framed::new(stream, target, Border::Read)
    }
}

impl PacketEnd for Framed {
    fn poll_recv(&mut self, cx: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<bool, Error>> {
        loop {
            let payload = self.stream.payload();
            if self.border == Border::Read && !payload.is_empty() {
                let len = payload.len().min(super::MAX);
                slot.copy(&payload[..len], self.target.clone());
                self.stream.consume(len);
                return Poll::Ready(Ok(true));
            }
            if let Step::Done { value, used } = packet::decode(payload) {
                slot.copy(&payload[value], self.target.clone());
                self.stream.consume(used);
                return Poll::Ready(Ok(true));
            }
            if self.stream.wants_open() {
                self.stream.open()?;
                continue;
            }
            if self.stream.has_ended() {
                return Poll::Ready(Ok(false));
            }
            ready!(self.stream.poll_fill(cx))?;
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], _: &Destination) -> Poll<Result<(), Error>> {
        // What is still being written goes first; then there is room for one more.
        ready!(self.stream.poll_flush(cx))?;
        let most = match self.border {
            Border::Length => packet::MAX_WRITE,
            Border::Piece | Border::Read => MAX_CHUNK_PAYLOAD,
        };
        if bytes.len() > most {
            // One that does not fit is lost, as on any network; the association is not.
            tracing::debug!("datagram of {} bytes dropped: {most} fit", bytes.len());
        } else if !bytes.is_empty() {
            if self.border == Border::Length {
                let head = packet::head(bytes.len())?;
                self.stream.seal(&[&head, bytes].concat())?;
            } else {
                self.stream.seal_whole(bytes)?;
            }
        }
        match self.stream.poll_flush(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.stream.poll_flush(cx)
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.stream.finish(cx);
    }
}
