//! Datagrams in a stream, each with the address that it goes to or comes from: Trojan.

use std::task::{Context, Poll, ready};

use sealway_v2ray::trojan::packet;
use sealway_v2ray::{Destination, Step};

use super::{PacketEnd, Slot};
use crate::Error;
use crate::stream::Stream;

/// Datagrams of Trojan in a stream.
pub(crate) struct Addressed {
    stream: Stream,
    /// The datagram being built.
    out: Vec<u8>,
}

impl Addressed {
    /// Datagrams in a stream whose header is through.
    pub(crate) fn new(mut stream: Stream) -> Box<Self> {
        stream.trust();
        let out = Vec::new();
        Box::new(Addressed { stream, out })
    }
}

impl PacketEnd for Addressed {
    fn poll_recv(&mut self, cx: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<bool, Error>> {
        loop {
            let payload = self.stream.payload();
            let had = payload.len();
            if let Step::Done {
                value: (peer, datagram),
                used,
            } = packet::decode(payload)?
            {
                slot.copy(&payload[datagram], peer);
                self.stream.consume(used);
                return Poll::Ready(Ok(true));
            }
            self.stream.open()?;
            if self.stream.payload().len() > had {
                continue;
            }
            if self.stream.has_ended() {
                return Poll::Ready(Ok(false));
            }
            ready!(self.stream.poll_fill(cx))?;
        }
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], peer: &Destination) -> Poll<Result<(), Error>> {
        // What is still being written goes first; then there is room for one more.
        ready!(self.stream.poll_flush(cx))?;
        self.out.clear();
        match packet::write_head(peer, bytes.len(), &mut self.out) {
            Ok(()) => {
                self.out.extend_from_slice(bytes);
                self.stream.seal(&self.out)?;
            }
            // One that does not fit is lost, as on any network; the association is not.
            Err(error) => tracing::debug!("datagram dropped: {error}"),
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
