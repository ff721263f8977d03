//! A tarpit for connections whose target is refused: for a while, nothing happens.
//!
//! A refusal at once would tell a client in no time which addresses of the inner network are watched over, and makes programs
//! try again without a pause.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};

use crate::random;
use crate::stream::Stream;

/// Connections that are held at once. Those beyond it are closed.
const MAX_HELD: usize = 1024;
/// Shortest time, seconds.
const SHORTEST: u64 = 30;
/// Longest time, seconds.
const LONGEST: u64 = 90;

/// Keeps connections that lead nowhere.
pub(crate) struct Tarpit {
    room: Arc<Semaphore>,
}

impl Default for Tarpit {
    fn default() -> Self {
        Tarpit {
            room: Arc::new(Semaphore::new(MAX_HELD)),
        }
    }
}

impl Tarpit {
    /// How many connections are held now.
    pub(crate) fn held(&self) -> usize {
        MAX_HELD - self.room.available_permits()
    }

    /// Takes what the client sends and answers nothing, for 30 to 90 seconds or until it leaves.
    pub(crate) async fn hold(&self, mut near: Stream) {
        let (Ok(_place), Ok(drawn)) = (self.room.try_acquire(), random::bytes()) else {
            return;
        };
        let seconds = SHORTEST + u64::from_le_bytes(drawn) % (LONGEST - SHORTEST + 1);
        let deadline = Instant::now() + Duration::from_secs(seconds);
        let taking = async {
            while let Ok(true) = near.more().await {
                let len = near.payload().len();
                near.consume(len);
            }
        };
        let _ = timeout_at(deadline, taking).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::stats::Traffic;
    use sealway_net::sock::Sock;

    async fn pair() -> (TcpStream, Stream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (tcp, _) = listener.accept().await.unwrap();
        (client, Stream::new(Sock::Tcp(tcp), Traffic::default()))
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_waits_for_as_long_as_is_said() {
        for _ in 0..20 {
            let (_client, near) = pair().await;
            let since = Instant::now();
            Tarpit::default().hold(near).await;
            let took = since.elapsed().as_secs();
            assert!((SHORTEST..=LONGEST + 1).contains(&took), "{took}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_leaves_is_let_go_and_who_comes_too_many_does_not_wait() {
        let tarpit = Tarpit::default();
        let (client, near) = pair().await;
        drop(client);
        let since = Instant::now();
        tarpit.hold(near).await;
        assert!(since.elapsed() < Duration::from_secs(1));
        let all = tarpit.room.try_acquire_many(MAX_HELD as u32).unwrap();
        let (_client, near) = pair().await;
        tarpit.hold(near).await;
        assert!(since.elapsed() < Duration::from_secs(1));
        drop(all);
    }
}
