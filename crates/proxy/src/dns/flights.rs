//! Questions that are on their way: whoever asks the same waits for the same answer.

use std::collections::HashMap;
use std::future::Future;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sealway_net::sock::network;
use tokio::sync::watch;

use super::Failed;
use super::cache::{Found, Key};

/// Questions that are on their way at a time. More are refused: an answer that is kept needs none.
pub(crate) const MAX_FLIGHTS: usize = 4096;

/// Of these, how many clients may have begun. The rest is for what is needed to ask servers, and to dial.
const MAX_OF_CLIENTS: usize = MAX_FLIGHTS - 512;
/// And one client, so that names that nobody has heard of, each asked for once, leave room for others.
pub(crate) const MAX_OF_CLIENT: usize = 256;

/// An answer to come.
pub(super) struct Flight {
    answer: Coming,
    /// Somebody else had asked already.
    pub(super) joined: bool,
}

type Coming = watch::Receiver<Option<Result<Found, Failed>>>;

/// Questions on their way.
#[derive(Clone, Default)]
pub(super) struct Flights(Arc<Mutex<All>>);

#[derive(Default)]
struct All {
    coming: HashMap<Key, Coming>,
    /// How many clients have begun, each of them and together.
    of_client: HashMap<IpAddr, usize>,
    of_clients: usize,
}

impl All {
    /// # Errors
    /// If there is no room for one more.
    fn begin(&mut self, client: Option<IpAddr>) -> Result<(), Failed> {
        if self.coming.len() >= MAX_FLIGHTS {
            return Err(Failed::new("too many questions are on their way"));
        }
        let Some(client) = client else { return Ok(()) };
        if self.of_clients >= MAX_OF_CLIENTS {
            return Err(Failed::new("too many questions of clients are on their way"));
        }
        let own = self.of_client.entry(client).or_default();
        if *own >= MAX_OF_CLIENT {
            return Err(Failed::new("too many questions of this client are on their way"));
        }
        *own += 1;
        self.of_clients += 1;
        Ok(())
    }

    fn end(&mut self, client: Option<IpAddr>) {
        let Some(client) = client else { return };
        self.of_clients -= 1;
        if let Some(own) = self.of_client.get_mut(&client) {
            *own -= 1;
            if *own == 0 {
                self.of_client.remove(&client);
            }
        }
    }
}

tokio::task_local! {
    /// The question that this task wants to have answered, and those that need it.
    static CHAIN: Option<Arc<Chain>>;
    /// The client that wants to have it answered.
    static CLIENT: IpAddr;
}

/// The future, whose questions are those of a client at this address.
pub(crate) async fn of_client<F: Future>(client: Option<IpAddr>, future: F) -> F::Output {
    match client {
        None => future.await,
        Some(ip) => CLIENT.scope(network(ip), future).await,
    }
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
    client: Option<IpAddr>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut flights = self.flights.lock();
        flights.coming.remove(&self.key);
        flights.end(self.client);
    }
}

impl Flights {
    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many questions are on their way.
    pub(super) fn count(&self) -> usize {
        self.lock().coming.len()
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
        if let Some(flight) = flights.coming.get(&key) {
            return Ok(Flight {
                answer: flight.clone(),
                joined: true,
            });
        }
        // What an answer needs that is on its way is not counted once more.
        let client = CLIENT.try_with(|client| *client).ok().filter(|_| from.is_none());
        flights.begin(client)?;
        let (send, receive) = watch::channel(None);
        flights.coming.insert(key.clone(), receive.clone());
        drop(flights);
        let seat = Seat {
            flights: self.clone(),
            key: key.clone(),
            client,
        };
        let asked = ask()?;
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
