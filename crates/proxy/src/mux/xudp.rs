//! Datagrams to and from any address, as all that a carrier is for (XUDP).

use std::task::{Context, Poll, ready};

use sealway_v2ray::mux::{self, GlobalId, Status};
use sealway_v2ray::{Destination, Network, Step};

use super::packets::fits;
use crate::Error;
use crate::stream::Stream;
use crate::udp::{PacketEnd, Slot};

/// Bytes of datagrams that leave together.
const TOGETHER: usize = 32 << 10;

/// An association with a carrier of its own, as the client.
pub(crate) struct Xudp {
    stream: Stream,
    /// Where answers come from that do not say it.
    target: Destination,
    global: Option<GlobalId>,
    begun: bool,
    /// Frames that wait to be sealed together.
    out: Vec<u8>,
}

impl Xudp {
    /// Datagrams over a carrier that has just begun.
    pub(crate) fn new(mut stream: Stream, target: Destination, global: Option<GlobalId>) -> Box<Self> {
        stream.trust();
        Box::new(Xudp {
            stream,
            target,
            global,
            begun: false,
            out: Vec::new(),
        })
    }
}

impl PacketEnd for Xudp {
    fn poll_recv(&mut self, cx: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<bool, Error>> {
        loop {
            let payload = self.stream.payload();
            if let Step::Done { value, used } = mux::decode(payload)? {
                let (peer, bytes) = match value.status {
                    Status::New { .. } | Status::End => return Poll::Ready(Ok(false)),
                    Status::KeepAlive => (None, None),
                    Status::Keep { peer } => (peer, value.data.filter(|range| !range.is_empty())),
                };
                if let Some(range) = &bytes {
                    slot.copy(&payload[range.clone()], peer.unwrap_or_else(|| self.target.clone()));
                }
                self.stream.consume(used);
                if bytes.is_some() {
                    return Poll::Ready(Ok(true));
                }
                continue;
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

    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], peer: &Destination) -> Poll<Result<(), Error>> {
        if self.out.len() >= TOGETHER {
            ready!(self.poll_flush(cx))?;
        }
        if fits(bytes) {
            match std::mem::replace(&mut self.begun, true) {
                true => mux::push_packet(&mut self.out, 0, peer, bytes)?,
                false => {
                    let to = Destination {
                        network: Network::Udp,
                        ..peer.clone()
                    };
                    mux::push_new(&mut self.out, 0, &to, self.global, Some(bytes))?;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            ready!(self.stream.poll_flush(cx))?;
            if self.out.is_empty() {
                return Poll::Ready(Ok(()));
            }
            self.stream.seal(&self.out)?;
            self.out.clear();
        }
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        // What came together with the end goes ahead of it.
        if !self.out.is_empty() && self.stream.seal(&self.out).is_ok() {
            self.out.clear();
        }
        self.stream.finish(cx);
    }
}
