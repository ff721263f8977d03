//! Measuring outbounds: something small is fetched through each, and balancers hear how long that took.

mod probe;
mod samples;

use std::sync::{Arc, Mutex, PoisonError};
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

/// An outbound that is measured.
struct Subject {
    outbound: usize,
    tag: String,
}

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

/// Who keeps what is known, and tells those who choose by it.
struct Board {
    statuses: Mutex<Vec<Status>>,
    balancers: Arc<[Balancer]>,
    stats: Arc<Stats>,
}

impl Board {
    /// A measurement of an outbound is over.
    fn tell(&self, subject: &Subject, many: bool, reading: Reading, result: &Result<Duration, Error>) {
        let mut statuses = self.statuses.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(status) = statuses.get_mut(subject.outbound) else {
            return;
        };
        let before = status.reading().map(|reading| reading.alive);
        status.readings[usize::from(many)] = Some(reading);
        let Some(now) = status.reading() else { return };
        for balancer in self.balancers.iter() {
            balancer.refresh(|at| statuses.get(at).and_then(Status::reading));
        }
        drop(statuses);
        let tag = &subject.tag;
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

/// What measures outbounds, not begun yet.
pub(crate) struct Observer {
    board: Board,
    roads: Arc<Roads>,
    resolver: Arc<Resolver>,
    one: Option<(Observatory, Probe)>,
    many: Option<(BurstObservatory, Probe, Option<Probe>)>,
    tags: Vec<String>,
}

impl Observer {
    /// `None`: nothing is to be measured.
    ///
    /// # Errors
    /// [`Error::Config`] if this system has no authorities to know a server by.
    pub(crate) fn new(
        settings: &Settings,
        balancers: Arc<[Balancer]>,
        roads: Arc<Roads>,
        resolver: Arc<Resolver>,
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
        let tags: Vec<String> = settings.outbounds.iter().map(|one| one.tag.clone()).collect();
        Ok(Some(Observer {
            board: Board {
                statuses: Mutex::new(vec![Status::default(); tags.len()]),
                balancers,
                stats: Arc::default(),
            },
            roads,
            resolver,
            one: one.transpose()?,
            many: many.transpose()?,
            tags,
        }))
    }

    /// The outbounds whose tags begin so, in the order of their tags.
    fn subjects(&self, starts: &[String]) -> Vec<Subject> {
        let all = self.tags.iter().enumerate();
        let wanted = all.filter(|(_, tag)| sealway_v2ray::config::is_subject(starts, tag));
        let mut subjects: Vec<Subject> = wanted
            .map(|(outbound, tag)| Subject {
                outbound,
                tag: tag.clone(),
            })
            .collect();
        subjects.sort_by(|a, b| a.tag.cmp(&b.tag));
        subjects
    }

    /// Measures until what it returns is dropped, and notes in `stats` how outbounds are. Must be called within a tokio
    /// runtime.
    pub(crate) fn begin(mut self, stats: Arc<Stats>) -> JoinSet<()> {
        self.board.stats = stats;
        let observer = Arc::new(self);
        let turns = Arc::new(Semaphore::new(MAX_PROBES));
        let mut tasks = JoinSet::new();
        if let Some((settings, _)) = &observer.one {
            let subjects: Vec<Arc<Subject>> = observer
                .subjects(&settings.subjects)
                .into_iter()
                .map(Arc::new)
                .collect();
            if !subjects.is_empty() {
                tasks.spawn(Arc::clone(&observer).rounds(subjects, Arc::clone(&turns)));
            }
        }
        if let Some((settings, ..)) = &observer.many {
            for subject in observer.subjects(&settings.subjects) {
                tasks.spawn(Arc::clone(&observer).many_times(subject, Arc::clone(&turns)));
            }
        }
        tasks
    }

    /// Measures outbounds one after another with a pause after each, or all at once with a pause after the last.
    async fn rounds(self: Arc<Self>, subjects: Vec<Arc<Subject>>, turns: Arc<Semaphore>) {
        let Some((settings, _)) = &self.one else { return };
        loop {
            let mut round = JoinSet::new();
            for subject in &subjects {
                round.spawn(Arc::clone(&self).once(Arc::clone(subject), Arc::clone(&turns)));
                if !settings.concurrent {
                    round.join_next().await;
                    sleep(settings.interval).await;
                }
            }
            if settings.concurrent {
                while round.join_next().await.is_some() {}
                sleep(settings.interval).await;
            }
        }
    }

    /// Measures one outbound.
    async fn once(self: Arc<Self>, subject: Arc<Subject>, turns: Arc<Semaphore>) {
        let Some((_, probe)) = &self.one else { return };
        let Ok(_turn) = turns.acquire().await else { return };
        let result = probe.through(&self.roads, subject.outbound).await;
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
    async fn many_times(self: Arc<Self>, subject: Subject, turns: Arc<Semaphore>) {
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
                let Ok(_turn) = turns.acquire().await else { return };
                let result = probe.through(&self.roads, subject.outbound).await;
                if let (Err(_), Some(direct)) = (&result, direct)
                    && let Err(error) = direct.straight(&self.resolver).await
                {
                    tracing::debug!("outbound {:?} is not blamed: the network is down: {error}", subject.tag);
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
