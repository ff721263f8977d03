//! Associations of a user with limits, in time that passes only while nothing is to be done.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::timeout;

use super::*;
use crate::people::People;
use crate::settings::Limits;

/// An end that always has a datagram and counts what it is sent, once that is flushed.
struct Endless {
    len: usize,
    held: usize,
    sent: Arc<AtomicUsize>,
}

impl PacketEnd for Endless {
    fn poll_recv(&mut self, _: &mut Context<'_>, slot: &mut Slot) -> Poll<Result<bool, Error>> {
        match self.len {
            0 => Poll::Pending,
            len => {
                slot.copy(&vec![7; len], "192.0.2.1:443".parse().map(udp_to).unwrap());
                Poll::Ready(Ok(true))
            }
        }
    }

    fn poll_send(&mut self, _: &mut Context<'_>, bytes: &[u8], _: &Destination) -> Poll<Result<(), Error>> {
        self.held += bytes.len();
        Poll::Ready(Ok(()))
    }

    fn poll_flush(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.sent.fetch_add(std::mem::take(&mut self.held), Ordering::Relaxed);
        Poll::Ready(Ok(()))
    }
}

fn udp_to(address: SocketAddr) -> Destination {
    Destination {
        address: address.ip().into(),
        port: address.port(),
        network: sealway_v2ray::Network::Udp,
    }
}

#[tokio::test(start_paused = true)]
async fn datagrams_wait_for_the_rate_and_none_is_lost() {
    let rate = 125_000;
    let limits = Limits {
        uplink: Some(rate),
        downlink: Some(2 * rate),
        burst: Some(16 << 10),
        ..Limits::default()
    };
    let people = People::default();
    let member = people.join("anna", 0, Arc::default());
    people.limit(&member, &limits);
    let counts = [0; 4].map(|_| Arc::new(AtomicUsize::new(0)));
    let end = |at: usize, len| {
        Box::new(Endless {
            len,
            held: 0,
            sent: Arc::clone(&counts[at]),
        })
    };
    // Two associations, each full both ways.
    let one = |at: usize| {
        carry(
            end(at, 1200),
            end(at + 1, 1200),
            Duration::from_secs(300),
            member.enter(None).unwrap(),
        )
    };
    let both = async { tokio::join!(one(0), one(2)) };
    assert!(timeout(Duration::from_secs(10), both).await.is_err());
    let moved = counts.map(|count| count.load(Ordering::Relaxed) as f64 / (10 * rate) as f64);
    let (down, up) = (moved[0] + moved[2], moved[1] + moved[3]);
    assert!((0.98..=1.05).contains(&up) && (1.96..=2.1).contains(&down), "{moved:?}");
    assert!(moved[1] > 0.4 && moved[3] > 0.4, "{moved:?}");
}
