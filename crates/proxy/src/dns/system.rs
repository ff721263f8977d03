//! The system's resolver.
//!
//! It asks for both families at once, in a thread of its own that nobody can call back. Whoever dials by name needs such threads
//! too, so only some of them are for the questions of clients.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::Semaphore;

use super::message::Answer;
use crate::Error;

/// Names that it is asked for at a time.
pub(super) const MAX_ASKED: usize = 64;
/// How long its answers hold, seconds: it does not say.
const TTL: u32 = 10;

/// The way to it.
pub(super) struct System(Arc<Semaphore>);

impl Default for System {
    fn default() -> Self {
        System(Arc::new(Semaphore::new(MAX_ASKED)))
    }
}

impl System {
    /// Asks for the addresses of both families.
    pub(super) fn ask(&self, name: String) -> impl Future<Output = Result<Answer, Error>> + Send + use<> {
        let asked = name.clone();
        let looking = async move {
            let found = tokio::net::lookup_host((asked.as_str(), 0)).await?;
            Ok(found.collect())
        };
        self.wait(name, looking)
    }

    fn wait<F>(&self, name: String, looking: F) -> impl Future<Output = Result<Answer, Error>> + Send + use<F>
    where
        F: Future<Output = io::Result<Vec<SocketAddr>>> + Send + 'static,
    {
        let room = Arc::clone(&self.0);
        async move {
            let room = room.acquire_owned().await.map_err(|_| Error::Closed)?;
            // The thread is taken until it is done, for as long as that may be after everybody has had enough.
            let looking = tokio::spawn(async move {
                let found = looking.await;
                drop(room);
                found
            });
            let found = match looking.await {
                Ok(Ok(found)) => found,
                Ok(Err(error)) => {
                    tracing::debug!("{name}: {error}");
                    Vec::new()
                }
                Err(_) => return Err(Error::Closed),
            };
            if found.is_empty() {
                return Err(Error::Resolve { name });
            }
            let mut ips: Vec<_> = found.into_iter().map(|address| address.ip()).collect();
            ips.truncate(super::message::MAX_ADDRESSES);
            Ok(Answer {
                ips,
                ttl: Some(TTL),
                code: 0,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::Notify;
    use tokio::time::timeout;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_thread_is_taken_until_it_is_done() {
        let system = System::default();
        let release = Arc::new(Notify::new());
        let ask = |name: &str| {
            let release = Arc::clone(&release);
            system.wait(name.to_owned(), async move {
                release.notified().await;
                Ok(vec![([192, 0, 2, 1], 0).into(), ([192, 0, 2, 2], 0).into()])
            })
        };
        let limit = Duration::from_secs(4);
        for n in 0..MAX_ASKED {
            assert!(timeout(Duration::from_millis(1), ask(&n.to_string())).await.is_err());
        }
        assert_eq!(
            system.0.available_permits(),
            0,
            "nobody waits any more, and all threads are taken"
        );
        assert!(timeout(limit, ask("one more")).await.is_err());
        release.notify_waiters();
        tokio::time::sleep(limit).await;
        assert_eq!(system.0.available_permits(), MAX_ASKED);
        let (answer, ()) = tokio::join!(ask("again"), async {
            tokio::time::sleep(limit).await;
            release.notify_waiters();
        });
        assert_eq!(
            (answer.unwrap().ips.len(), system.0.available_permits()),
            (2, MAX_ASKED)
        );
    }
}
