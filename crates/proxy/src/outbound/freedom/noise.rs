//! Datagrams of noise ahead of the first one: for those who look at what an association begins with.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sealway_v2ray::Destination;
use tokio::time::{Sleep, sleep};

use crate::settings::{Noise, NoisePacket, NoiseTo};
use crate::udp::{PacketEnd, Slot};
use crate::{Error, random};

/// The port of DNS: its servers answer what they get, and clients would take that for an answer.
const DNS: u16 = 53;

/// An association that begins with noise.
pub(super) struct Noisy {
    end: Box<dyn PacketEnd>,
    /// What is still to be sent.
    left: VecDeque<Noise>,
    pause: Option<Pin<Box<Sleep>>>,
    begun: bool,
}

impl Noisy {
    /// The association with this noise ahead, as far as it is for targets of the family.
    pub(super) fn around(end: Box<dyn PacketEnd>, noises: &[Noise], is_v6: bool) -> Box<dyn PacketEnd> {
        let fits = |noise: &&Noise| match noise.to {
            NoiseTo::Ipv4 => !is_v6,
            NoiseTo::Ipv6 => is_v6,
            _ => true,
        };
        Box::new(Noisy {
            end,
            left: noises.iter().filter(fits).cloned().collect(),
            pause: None,
            begun: false,
        })
    }

    fn poll_noise(&mut self, cx: &mut Context<'_>, to: &Destination) -> Poll<Result<(), Error>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            let Some(noise) = self.left.front() else {
                return Poll::Ready(Ok(()));
            };
            let bytes = match &noise.packet {
                NoisePacket::Fixed(bytes) => bytes.clone(),
                NoisePacket::Random(len) => {
                    let mut bytes = vec![0; len.pick(u32::from_ne_bytes(random::bytes()?)) as usize];
                    random::fill(&mut bytes)?;
                    bytes
                }
            };
            ready!(self.end.poll_send(cx, &bytes, to))?;
            let ms = noise.delay.pick(u32::from_ne_bytes(random::bytes()?));
            self.left.pop_front();
            if ms > 0 {
                self.pause = Some(Box::pin(sleep(Duration::from_millis(ms.into()))));
            }
        }
    }
}

impl PacketEnd for Noisy {
    fn poll_recv(&mut self, cx: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<bool, Error>> {
        self.end.poll_recv(cx, slot)
    }

    fn poll_send(&mut self, cx: &mut Context<'_>, bytes: &[u8], to: &Destination) -> Poll<Result<(), Error>> {
        if !std::mem::replace(&mut self.begun, true) && to.port == DNS {
            self.left.clear();
        }
        ready!(self.poll_noise(cx, to))?;
        self.end.poll_send(cx, bytes, to)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.end.poll_flush(cx)
    }

    fn is_address_of(&self, peer: &Destination, name: &Destination) -> Option<bool> {
        self.end.is_address_of(peer, name)
    }

    fn finish(&mut self, cx: &mut Context<'_>) {
        self.end.finish(cx);
    }
}
