//! Questions that are on their way: whoever asks the same waits for the same answer.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::Failed;
use super::cache::{Found, Key};

/// Questions that are on their way at a time. More are refused: an answer that is kept needs none.
pub(crate) const MAX_FLIGHTS: usize = 4096;

/// An answer to come.
pub(super) struct Flight {
    answer: Coming,
    /// Somebody else had asked already.
    pub(super) joined: bool,
}

type Coming = watch::Receiver<Option<Result<Found, Failed>>>;

/// Questions on their way.
#[derive(Clone, Default)]
pub(super) struct Flights(Arc<Mutex<HashMap<Key, Coming>>>);

tokio::task_local! {
    /// The question that this task wants to have answered, and those that need it.
    static CHAIN: Option<Arc<Chain>>;
}

fn chain() -> Option<Arc<Chain>> {
    CHAIN.try_with(Clone::clone).unwrap_or_default()
}

/// The future for a task of its own, which is still needed for the answers that need this one.
pub(crate) fn inherit<F: Future>(future: F) -> impl Future<Output = F::Output> {
    CHAIN.scope(chain(), future)
}

/// A question, and the one that it is needed for.
struct Chain {
    key: Key,
    from: Option<Arc<Chain>>,
}

/// A flight, removed from the others when it is over, however that happens.
struct Seat {
    flights: Flights,
    key: Key,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.flights.lock().remove(&self.key);
    }
}

impl Flights {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Coming>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins those who ask the same, or spawns what `fly` makes of what `ask` gives.
    ///
    /// # Errors
    /// If this task is itself needed for the answer, or too many questions are on their way; else those of `ask`.
    pub(super) fn board<A, F>(
        &self,
        key: Key,
        ask: impl FnOnce() -> Result<A, Failed>,
        fly: impl FnOnce(A) -> F,
    ) -> Result<Flight, Failed>
    where
        F: Future<Output = Result<Found, Failed>> + Send + 'static,
    {
        let from = chain();
        let mut before = from.as_ref();
        while let Some(chain) = before {
            if chain.key == key {
                return Err(Failed::circle("the way to the server needs the answer itself"));
            }
            before = chain.from.as_ref();
        }
        let mut flights = self.lock();
        if let Some(flight) = flights.get(&key) {
            return Ok(Flight {
                answer: flight.clone(),
                joined: true,
            });
        }
        if flights.len() >= MAX_FLIGHTS {
            return Err(Failed::new("too many questions are on their way"));
        }
        let asked = ask()?;
        let (send, receive) = watch::channel(None);
        flights.insert(key.clone(), receive.clone());
        drop(flights);
        let seat = Seat {
            flights: self.clone(),
            key: key.clone(),
        };
        let flying = fly(asked);
        let chain = Some(Arc::new(Chain { key, from }));
        tokio::spawn(CHAIN.scope(chain, async move {
            let answer = flying.await;
            drop(seat);
            // Everybody may have had enough.
            let _ = send.send(Some(answer));
        }));
        Ok(Flight {
            answer: receive,
            joined: false,
        })
    }
}

/// Waits for the answer.
pub(super) async fn land(mut flight: Flight) -> Result<Found, Failed> {
    match flight.answer.wait_for(Option::is_some).await {
        Ok(answer) => answer.clone().unwrap_or_else(|| Err(Failed::new("no answer"))),
        Err(_) => Err(Failed::new("the server stops")),
    }
}
