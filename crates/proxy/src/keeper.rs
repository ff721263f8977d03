//! Keeps what users have used: what was counted goes to the store, and the sums of all nodes come back.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sealway_ledger::{Ask, Ledger, Period};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};

use crate::Error;
use crate::clock::unix_time;
use crate::people::Person;
use crate::settings::UsageStore;
use crate::stats::Stats;

/// How often. A kill loses at most what came in so long and while it was written; what another node has written is known after
/// twice that.
const EVERY: Duration = Duration::from_secs(4);

/// Longest that the last exchange may take, where a database is away.
const LAST: Duration = Duration::from_secs(3);

/// An open store.
#[derive(Debug)]
pub(crate) struct Keeper {
    ledger: Ledger,
    /// Held while what was counted is handed over.
    handing: Mutex<()>,
}

impl Keeper {
    /// Opens the store. What everybody uses is counted from now on.
    ///
    /// # Errors
    /// [`Error::Config`] for a store that cannot be used.
    pub(crate) async fn open(store: &UsageStore, stats: &Stats) -> Result<Keeper, Error> {
        let opened = Ledger::open(&store.store, store.node.clone()).await;
        let ledger = opened.map_err(|error| Error::config("stats.store", error.to_string()))?;
        stats.people().keep();
        Ok(Keeper {
            ledger,
            handing: Mutex::default(),
        })
    }

    /// Learns what was used before, and goes on to exchange every few seconds until the server is gone.
    pub(crate) async fn begin(self: &Arc<Self>, stats: &Arc<Stats>) {
        self.exchange(stats, unix_time()).await;
        let (keeper, stats) = (Arc::downgrade(self), Arc::downgrade(stats));
        tokio::spawn(async move {
            let mut ticks = interval_at(Instant::now() + EVERY, EVERY);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                let (Some(keeper), Some(stats)) = (keeper.upgrade(), stats.upgrade()) else {
                    return;
                };
                keeper.exchange(&stats, unix_time()).await;
            }
        });
    }

    /// The last exchange, for which nobody waits long, and the end of the store.
    pub(crate) async fn finish(self: Arc<Self>, stats: &Stats) {
        let last = async {
            self.exchange(stats, unix_time()).await;
            // Who is at an exchange still has it; then its end is that of the process.
            if let Some(keeper) = Arc::into_inner(self) {
                // Why it failed has been logged.
                let _ = keeper.ledger.close().await;
            }
        };
        if timeout(LAST, last).await.is_err() {
            tracing::warn!("stats.store does not answer: what was used since it last did may be lost");
        }
    }

    /// One exchange: what was counted since the last one is written, and the sums of those are read who have a quota and are
    /// connected, or have not been asked for yet. If the store fails, what it was given waits there, and quotas hold by what is
    /// known.
    pub(crate) async fn exchange(&self, stats: &Stats, now: i64) {
        let (mut asks, mut asked): (Vec<Ask>, Vec<(Arc<Person>, [u64; 2])>) = Default::default();
        let mut full = None;
        // By the day on which periods begin.
        let periods: [i64; 32] = std::array::from_fn(|day| Period::of(now, day as u8).since);
        let handing = self.handing.lock().unwrap_or_else(PoisonError::into_inner);
        stats.people().each(|person| {
            let Some(budget) = person.budget() else { return };
            let since = periods[usize::from(budget.reset_day()).min(31)];
            let add = |since, [up, down]: [u64; 2]| self.ledger.add(person.lower(), since, up, down);
            let begins = budget.hand_over(since, add).unwrap_or_else(|error| {
                full = Some(error);
                false
            });
            if budget.has_quota() && (person.connections() > 0 || !budget.is_known() || begins || budget.is_used_up()) {
                asks.push(Ask::new(person.lower(), since));
                asked.push((Arc::clone(person), budget.handed()));
            }
        });
        drop(handing);
        if let Some(error) = full {
            tracing::warn!("stats.store: {error}");
        }
        // Why it failed has been logged.
        let Ok(sums) = self.ledger.exchange(&asks).await else {
            return;
        };
        for ((person, handed), sum) in asked.iter().zip(sums) {
            if let Some(budget) = person.budget() {
                budget.set_sum(sum.up.saturating_add(sum.down), *handed);
            }
        }
    }
}

#[cfg(test)]
mod tests;
