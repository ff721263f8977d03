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
            // What the association cannot carry is left out. If it is over, that shows with what follows.
            if let Err(error) = ready!(self.end.poll_send(cx, &bytes, to)) {
                tracing::debug!("noise of {} bytes is left out: {error}", bytes.len());
            }
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

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::{Arc, Mutex};

    use sealway_v2ray::Address;
    use sealway_v2ray::config::{File, Options, OutboundProtocol, load};

    use super::*;

    /// Takes datagrams of up to 1,000 bytes, and tells how long they are.
    struct Narrow(Arc<Mutex<Vec<usize>>>);

    impl PacketEnd for Narrow {
        fn poll_recv(&mut self, _: &mut Context<'_>, _: &mut Slot) -> Poll<Result<bool, Error>> {
            Poll::Pending
        }

        fn poll_send(&mut self, _: &mut Context<'_>, bytes: &[u8], _: &Destination) -> Poll<Result<(), Error>> {
            if bytes.len() > 1000 {
                return Poll::Ready(Err(Error::Closed));
            }
            self.0.lock().unwrap().push(bytes.len());
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn noise_that_is_too_long_ends_nothing() {
        let sent = Arc::default();
        let text = br#"{"outbounds": [{"protocol": "freedom", "settings": {"noises": [
            {"type": "rand", "packet": "60000", "delay": "0"}, {"type": "rand", "packet": "7", "delay": "0"}]}}]}"#;
        let file = File {
            name: "config.json",
            text,
        };
        let loaded = load(&[file], &Options::default());
        let config = loaded.config.unwrap_or_else(|| panic!("{:?}", loaded.problems));
        let OutboundProtocol::Freedom(freedom) = &config.outbounds[0].protocol else {
            panic!("freedom");
        };
        let mut end = Noisy::around(Box::new(Narrow(Arc::clone(&sent))), &freedom.noises, false);
        let to = Destination::udp(Address::parse("192.0.2.1").unwrap(), 443);
        poll_fn(|cx| end.poll_send(cx, b"first", &to)).await.unwrap();
        assert_eq!(*sent.lock().unwrap(), [7, 5]);
    }
}
