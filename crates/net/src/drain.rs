//! The end of a server: nobody is accepted any more, connections may finish for a while, and those that remain are cut off.

use std::convert::Infallible;
use std::future::Future;
use std::time::Duration;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

/// How often is told what remains.
const TELL: Duration = Duration::from_secs(5);

/// How far the end has come.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Stage {
    Running,
    Draining,
    Stopped,
}

/// Ends a server. Dropping it cuts off every connection at once; [`Drain::finish`] lets them finish.
#[derive(Debug)]
pub struct Drain {
    stage: watch::Sender<Stage>,
    /// Closed when the last [`Alive`] is gone.
    ended: mpsc::Receiver<Infallible>,
}

/// Held by everything that the end waits for: each connection, and whoever accepts them.
#[derive(Clone, Debug)]
pub struct Alive {
    stage: watch::Receiver<Stage>,
    _held: mpsc::Sender<Infallible>,
}

impl Drain {
    /// A server that runs.
    pub fn new() -> (Drain, Alive) {
        let (stage, watching) = watch::channel(Stage::Running);
        let (held, ended) = mpsc::channel(1);
        let alive = Alive {
            stage: watching,
            _held: held,
        };
        (Drain { stage, ended }, alive)
    }

    /// Stops accepting, lets connections finish for at most `grace`, then cuts off those that remain, and returns when every
    /// [`Alive`] is gone. True if none was cut off.
    pub async fn finish(self, grace: Duration) -> bool {
        self.finish_telling(grace, |_| {}).await
    }

    /// The same, and tells every few seconds how many [`Alive`] remain.
    pub async fn finish_telling(mut self, grace: Duration, mut tell: impl FnMut(usize)) -> bool {
        self.stage.send_replace(Stage::Draining);
        let end = Instant::now() + grace;
        let finished = loop {
            let until = end.min(Instant::now() + TELL);
            match tokio::time::timeout_at(until, self.ended.recv()).await {
                Ok(_) => break true,
                Err(_) if Instant::now() >= end => break false,
                Err(_) => tell(self.ended.sender_strong_count()),
            }
        };
        self.stage.send_replace(Stage::Stopped);
        if !finished {
            let _ = self.ended.recv().await;
        }
        finished
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        self.stage.send_replace(Stage::Stopped);
    }
}

impl Alive {
    async fn reached(&self, stage: Stage) {
        // If the server itself is gone, so is the reason to go on.
        let _ = self.stage.clone().wait_for(|now| *now >= stage).await;
    }

    /// Waits until nobody is to be accepted any more.
    pub async fn draining(&self) {
        self.reached(Stage::Draining).await;
    }

    /// Does `work`, such as accepting, until nobody is to be accepted any more. `None` if it was dropped for that.
    pub async fn accepting<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.until(Stage::Draining, work).await
    }

    /// Does `work`, such as a connection, until those that remain are cut off. `None` if it was.
    pub async fn run<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.until(Stage::Stopped, work).await
    }

    async fn until<T>(&self, stage: Stage, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.reached(stage) => None,
            done = work => Some(done),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn connections_finish_or_are_cut_off() {
        for (takes, finished) in [(2, true), (60, false)] {
            let (drain, alive) = Drain::new();
            let connection = tokio::spawn({
                let alive = alive.clone();
                async move { alive.run(sleep(Duration::from_secs(takes))).await }
            });
            let accepting = tokio::spawn(async move { alive.accepting(std::future::pending::<()>()).await });
            assert_eq!(drain.finish(Duration::from_secs(10)).await, finished);
            assert_eq!(connection.await.unwrap().is_some(), finished);
            assert_eq!(accepting.await.unwrap(), None);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn how_many_remain_is_told_until_the_end() {
        let (drain, alive) = Drain::new();
        for seconds in [1, 7, 12, 60] {
            let alive = alive.clone();
            tokio::spawn(async move { alive.run(sleep(Duration::from_secs(seconds))).await });
        }
        drop(alive);
        let mut told = Vec::new();
        assert!(
            !drain
                .finish_telling(Duration::from_secs(19), |left| told.push(left))
                .await
        );
        assert_eq!(told, [3, 2, 1]);
    }

    #[tokio::test]
    async fn a_server_that_is_dropped_cuts_off_at_once() {
        let (drain, alive) = Drain::new();
        drop(drain);
        assert_eq!(alive.run(std::future::pending::<()>()).await, None);
        alive.draining().await;
    }
}
