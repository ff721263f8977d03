//! The way to the target.
//!
//! Whoever connects makes us connect to the target, strangers too, so a name is not looked up for each of them. What was found
//! last is used while it is looked up anew, and for as long as that fails: how long a lookup takes shows in no answer.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sealway_net::sock::Sock;
use sealway_v2ray::Address;
use tokio::time::Instant;

use crate::Error;
use crate::dial::fallback::{addresses, dial_at, name};
use crate::dial::resolve;
use crate::log::Limit;
use crate::settings::{DomainStrategy, FallbackDial, SocketOptions};

/// Lines a second about a target that cannot be reached: every connection brings one.
static DEAD: Limit = Limit::new(5);

/// The server whose handshake is borrowed.
pub(super) struct Target {
    pub(super) to: FallbackDial,
    options: SocketOptions,
    found: Arc<Found>,
}

impl Target {
    pub(super) fn new(to: FallbackDial, options: SocketOptions) -> Self {
        Target {
            to,
            options,
            found: Arc::default(),
        }
    }

    /// A fresh connection.
    pub(super) async fn dial(&self, listener: Option<SocketAddr>) -> Result<Sock, Error> {
        let found = match &self.to {
            FallbackDial::Tcp(host, port) if host.ip().is_none() => {
                let (host, port) = (host.clone(), *port);
                Found::get(&self.found, move || look_up(host.clone(), port)).await?
            }
            to => addresses(to).await?,
        };
        let dialled = dial_at(&self.to, found, listener, &self.options).await;
        dialled.inspect_err(|_| self.found.doubt())
    }

    /// Says that it cannot be reached, which ends every connection.
    pub(super) fn unreachable(&self, error: &Error) {
        if let Some(kept) = DEAD.pass() {
            let to = name(&self.to);
            tracing::warn!("the target {to} of REALITY cannot be reached, and nobody is let in: {error}{kept}");
        }
    }
}

async fn look_up(host: Address, port: u16) -> Result<Vec<SocketAddr>, Error> {
    resolve(&host, port, DomainStrategy::default()).await
}

/// How long what was found is good, and the pause behind a lookup that has failed.
const GOOD: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(1);

/// The addresses of a name.
#[derive(Default)]
struct Found {
    state: Mutex<State>,
    /// Held by who looks them up while nothing is known.
    first: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    addresses: Vec<SocketAddr>,
    /// When they are to be looked up anew.
    until: Option<Instant>,
    looking: bool,
}

impl Found {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known. Where nothing is, one looks it up and the others wait for that.
    async fn get<F>(this: &Arc<Self>, look_up: impl Fn() -> F) -> Result<Vec<SocketAddr>, Error>
    where
        F: Future<Output = Result<Vec<SocketAddr>, Error>> + Send + 'static,
    {
        if let Some(known) = this.known(&look_up) {
            return known;
        }
        let _first = this.first.lock().await;
        if let Some(known) = this.known(&look_up) {
            return known;
        }
        let found = look_up().await;
        this.note(found.as_deref().unwrap_or_default());
        found
    }

    /// What is known, and may be that nothing was found a moment ago. What is old is looked up anew beside.
    fn known<F>(self: &Arc<Self>, look_up: impl Fn() -> F) -> Option<Result<Vec<SocketAddr>, Error>>
    where
        F: Future<Output = Result<Vec<SocketAddr>, Error>> + Send + 'static,
    {
        let mut state = self.state();
        let good = state.until.is_some_and(|until| Instant::now() < until);
        if state.addresses.is_empty() {
            let name = "the target of REALITY".to_owned();
            return good.then_some(Err(Error::Resolve { name }));
        }
        if !good && !state.looking {
            state.looking = true;
            let (found, looking) = (Arc::clone(self), look_up());
            tokio::spawn(async move { found.note(looking.await.as_deref().unwrap_or_default()) });
        }
        Some(Ok(state.addresses.clone()))
    }

    /// Keeps what was found. The address that came first stays first while it is among them: its host is the one that is known.
    fn note(&self, found: &[SocketAddr]) {
        let mut state = self.state();
        state.looking = false;
        state.until = Some(Instant::now() + if found.is_empty() { PAUSE } else { GOOD });
        if found.is_empty() {
            return;
        }
        let first = state.addresses.first().copied();
        state.addresses = found.to_vec();
        state.addresses.sort_by_key(|address| Some(*address) != first);
    }

    /// None of them could be reached: they are looked up anew, soon.
    fn doubt(&self) {
        let mut state = self.state();
        if !state.addresses.is_empty() {
            let soon = Instant::now() + PAUSE;
            state.until = Some(state.until.map_or(soon, |until| until.min(soon)));
        }
    }
}

#[cfg(test)]
mod tests;
