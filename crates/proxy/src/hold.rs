//! What becomes of a connection whose target is refused: for a while, nothing.
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

/// Room for connections that lead nowhere.
pub(crate) struct Held {
    room: Arc<Semaphore>,
}

impl Default for Held {
    fn default() -> Self {
        Held {
            room: Arc::new(Semaphore::new(MAX_HELD)),
        }
    }
}

impl Held {
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
