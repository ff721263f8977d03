//! Measuring outbounds: something small is fetched through each, and balancers hear how long that took.

mod probe;
mod samples;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use crate::balance::{Balancer, Reading};
use crate::clock::unix_time;
use crate::error::Error;
use crate::random;
use crate::resolver::Resolver;
use crate::roads::Roads;
use crate::settings::{BurstObservatory, Observatory, ProbeMethod, Settings};
use crate::stats::{Health, Stats};

use probe::Probe;
use samples::Samples;

/// Measurements at a time.
const MAX_PROBES: usize = 8;
/// How long an answer may take where the configuration does not say it.
const TIMEOUT: Duration = Duration::from_secs(5);

/// What is known of an outbound.
#[derive(Clone, Copy, Default)]
struct Status {
    /// From the measurements one after another, and from those many times each, which count more.
    readings: [Option<Reading>; 2],
}

impl Status {
    fn reading(&self) -> Option<Reading> {
        let [one, many] = self.readings;
        many.or(one)
    }
}

/// What is known of the outbounds that there are now, and whom that is told.
#[derive(Default)]
struct Known {
    /// In the order of the outbounds.
    tags: Vec<String>,
    statuses: HashMap<String, Status>,
    balancers: Arc<[Balancer]>,
}

impl Known {
    fn refresh(&self) {
        let reading = |at: usize| self.statuses.get(self.tags.get(at)?).and_then(Status::reading);
        for balancer in self.balancers.iter() {
            balancer.refresh(reading);
        }
    }
}

/// Who keeps what is known, and tells those who choose by it.
struct Board {
    known: Mutex<Known>,
    stats: Arc<Stats>,
}

impl Board {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A measurement of an outbound is over.
    fn tell(&self, tag: &str, many: bool, reading: Reading, result: &Result<Duration, Error>) {
        let mut known = self.known();
        if !known.tags.iter().any(|one| one == tag) {
            return;
        }
        let status = known.statuses.entry(tag.to_owned()).or_default();
        let before = status.reading().map(|reading| reading.alive);
        status.readings[usize::from(many)] = Some(reading);
        let Some(now) = status.reading() else { return };
        known.refresh();
        drop(known);
        match (before, now.alive, result) {
            (Some(true) | None, false, Err(error)) => tracing::warn!("outbound {tag:?} is down: {error}"),
            (Some(true) | None, false, Ok(_)) => tracing::warn!("outbound {tag:?} is down"),
            (Some(false), true, _) => tracing::warn!("outbound {tag:?} is back, {} ms", now.delay.as_millis()),
            _ => tracing::debug!("outbound {tag:?}: {now:?}"),
        }
        self.stats.set_health(tag, |health| {
            *health = Health {
                alive: now.alive,
                delay: now.delay,
                deviation: now.deviation,
                measured: now.all,
                failed: now.failed,
                last_try: unix_time(),
                last_seen: if result.is_ok() { unix_time() } else { health.last_seen },
                last_error: match result {
                    Ok(_) => health.last_error.clone(),
                    Err(error) => error.to_string(),
                },
            };
        });
    }
}

/// What measures outbounds, until it is dropped.
pub(crate) struct Observer {
    shared: Arc<Shared>,
    /// Who measures outbounds one after another, and those many times each.
    tasks: Mutex<(Option<Task>, HashMap<String, Task>)>,
}

/// A task that ends when this is dropped.
type Task = JoinSet<()>;

fn task(work: impl Future<Output = ()> + Send + 'static) -> Task {
    let mut task = Task::new();
    task.spawn(work);
    task
}

/// What all who measure share.
struct Shared {
    board: Board,
    roads: Arc<Roads>,
    resolver: Arc<Resolver>,
    one: Option<(Observatory, Probe)>,
    many: Option<(BurstObservatory, Probe, Option<Probe>)>,
    turns: Semaphore,
}

impl Observer {
    /// `None`: nothing is to be measured. What is measured is noted in `stats`, after [`Observer::watch`] has said what.
    ///
    /// # Errors
    /// [`Error::Config`] if this system has no authorities to know a server by.
    pub(crate) fn new(
        settings: &Settings,
        roads: Arc<Roads>,
        resolver: Arc<Resolver>,
        stats: Arc<Stats>,
    ) -> Result<Option<Self>, Error> {
        let one = settings.observatory.as_ref().filter(|one| !one.subjects.is_empty());
        let many = settings.burst.as_ref().filter(|many| !many.subjects.is_empty());
        if one.is_none() && many.is_none() {
            return Ok(None);
        }
        let one = one.map(|one| {
            let probe = Probe::new("observatory.probeURL", &one.url, ProbeMethod::Get, TIMEOUT)?;
            Ok::<_, Error>((one.clone(), probe))
        });
        let many = many.map(|many| {
            let place = "burstObservatory.pingConfig";
            let probe = Probe::new(place, &many.url, many.method, many.timeout)?;
            let direct = many.connectivity.as_ref();
            let direct = direct.map(|url| Probe::new(place, url, many.method, many.timeout));
            Ok::<_, Error>((many.clone(), probe, direct.transpose()?))
        });
        let shared = Shared {
            board: Board {
                known: Mutex::default(),
                stats,
            },
            roads,
            resolver,
            one: one.transpose()?,
            many: many.transpose()?,
            turns: Semaphore::new(MAX_PROBES),
        };
        Ok(Some(Observer {
            shared: Arc::new(shared),
            tasks: Mutex::default(),
        }))
    }

    /// Measures the outbounds with these tags from now on, and tells these balancers. What is known of those that there were
    /// before stays known. Must be called within a tokio runtime.
    pub(crate) fn watch(&self, tags: Vec<String>, balancers: Arc<[Balancer]>) {
        let shared = &self.shared;
        {
            let mut known = shared.board.known();
            known.statuses.retain(|tag, _| tags.contains(tag));
            shared.board.stats.keep_health(|tag| tags.iter().any(|one| one == tag));
            (known.tags, known.balancers) = (tags, balancers);
            known.refresh();
        }
        let (rounds, many) = &mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.one.is_some() && rounds.is_none() {
            *rounds = Some(task(Arc::clone(shared).rounds()));
        }
        if let Some((settings, ..)) = &shared.many {
            let subjects = shared.subjects(&settings.subjects);
            many.retain(|tag, _| subjects.iter().any(|subject| **subject == **tag));
            for subject in subjects {
                many.entry(subject.to_string())
                    .or_insert_with(|| task(Arc::clone(shared).many_times(subject)));
            }
        }
    }
}

impl Shared {
    /// The outbounds whose tags begin so, in the order of their tags.
    fn subjects(&self, starts: &[String]) -> Vec<Arc<str>> {
        let known = self.board.known();
        let wanted = known.tags.iter();
        let wanted = wanted.filter(|tag| sealway_v2ray::config::is_subject(starts, tag));
        let mut subjects: Vec<Arc<str>> = wanted.map(|tag| tag.as_str().into()).collect();
        subjects.sort();
        subjects
    }

    /// Measures outbounds one after another with a pause after each, or all at once with a pause after the last.
    async fn rounds(self: Arc<Self>) {
        let Some((settings, _)) = &self.one else { return };
        loop {
            let mut round = JoinSet::new();
            let subjects = self.subjects(&settings.subjects);
            let none = subjects.is_empty();
            for subject in subjects {
                round.spawn(Arc::clone(&self).once(subject));
                if !settings.concurrent {
                    round.join_next().await;
                    sleep(settings.interval).await;
                }
            }
            if settings.concurrent || none {
                while round.join_next().await.is_some() {}
                sleep(settings.interval).await;
            }
        }
    }

    /// Measures one outbound.
    async fn once(self: Arc<Self>, subject: Arc<str>) {
        let Some((_, probe)) = &self.one else { return };
        let Ok(_turn) = self.turns.acquire().await else { return };
        let result = probe.through(&self.roads, &subject).await;
        let delay = result.as_ref().copied().unwrap_or_default();
        let reading = Reading {
            alive: result.is_ok(),
            delay,
            deviation: delay,
            all: 1,
            failed: u32::from(result.is_err()),
        };
        self.board.tell(&subject, false, reading, &result);
    }

    /// Measures one outbound at once, and then at times of chance.
    async fn many_times(self: Arc<Self>, subject: Arc<str>) {
        let Some((settings, probe, direct)) = &self.many else {
            return;
        };
        let period = settings.interval * u32::from(settings.sampling);
        let mut samples = Samples::new(settings.sampling, period * 2);
        let mut end = Instant::now();
        let mut moments = vec![end];
        loop {
            for moment in moments {
                sleep_until(moment).await;
                let Ok(_turn) = self.turns.acquire().await else { return };
                let result = probe.through(&self.roads, &subject).await;
                if let (Err(_), Some(direct)) = (&result, direct)
                    && let Err(error) = direct.straight(&self.resolver).await
                {
                    tracing::debug!("outbound {subject:?} is not blamed: the network is down: {error}");
                    continue;
                }
                samples.push(Instant::now(), result.as_ref().ok().copied());
                self.board
                    .tell(&subject, true, samples.reading(Instant::now()), &result);
            }
            sleep_until(end).await;
            let from = Instant::now();
            end = from + period;
            moments = (0..settings.sampling).map(|_| from + chance(period)).collect();
            moments.sort_unstable();
        }
    }
}

/// A time of chance below this one.
fn chance(below: Duration) -> Duration {
    let drawn = random::bytes().map_or(u32::MAX / 2, u32::from_le_bytes);
    below.mul_f64(f64::from(drawn) / (f64::from(u32::MAX) + 1.0))
}

#[cfg(test)]
mod tests;
