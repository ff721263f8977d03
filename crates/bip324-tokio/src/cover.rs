//! Decoys while there is nothing to send.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use sealway_bip324::stream::TransportError;
use tokio::io::AsyncWrite;
use tokio::time::sleep;

use crate::Sender;

impl<W: AsyncWrite + Unpin> Sender<W> {
    /// Sends decoys for as long as it is polled, one every `mean` on average, to the timer's millisecond, at random times and
    /// of the sizes that [`Messages::set_decoys`](crate::Messages::set_decoys) set. Without a policy it sends none.
    ///
    /// Run it while there is nothing to send and drop it when there is, at any time: it is cancellation-safe. What it had
    /// begun leaves with the message, or with the next call. How often it was begun anew does not change how many decoys there
    /// are in a time: each moment is as likely as any other.
    ///
    /// While the peer does not read, at most one decoy waits. A `mean` below 1 ms counts as 1 ms.
    ///
    /// # Errors
    /// As [`Sender::flush`].
    pub async fn cover(&mut self, mean: Duration) -> Result<Infallible, TransportError> {
        loop {
            let Some(decoys) = self.outgoing.decoys() else {
                return pending().await;
            };
            sleep(pause(mean, decoys.random()?)).await;
            self.outgoing.seal_cover()?;
            self.flush().await?;
        }
    }
}

/// A time that is exponentially distributed, by a random number: what is left of it is as long as it was, however long it
/// has been waited for.
fn pause(mean: Duration, random: u64) -> Duration {
    // Above 0 and at most 1, in steps that a double has.
    let part = ((random >> 11) + 1) as f64 / (1u64 << 53) as f64;
    let mean = mean.max(Duration::from_millis(1)).as_secs_f64();
    Duration::try_from_secs_f64(mean * part.ln().abs()).unwrap_or(Duration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_have_their_mean_and_no_end_of_numbers_hurts() {
        let mean = Duration::from_secs(2);
        let steps = 1 << 16;
        let total: Duration = (0..steps).map(|n| pause(mean, n << 48 | 1 << 47)).sum();
        let average = total.as_secs_f64() / steps as f64;
        assert!((1.99..2.01).contains(&average), "{average}");
        assert_eq!(pause(mean, u64::MAX), Duration::ZERO);
        assert!(pause(mean, 0) < 40 * mean);
        assert_eq!(pause(Duration::MAX, 0), Duration::MAX);
        assert!(pause(Duration::ZERO, 0) > Duration::ZERO);
    }
}
