//! Names to addresses: fixed answers, a cache, and servers in the order that the configuration says.
//!
//! What is here knows no sockets. How a server is asked is an [`Exchange`], which the engine brings when everything stands
//! that questions may go out by ([`Dns::set`]).

pub(crate) mod cache;
pub(crate) mod fake;
mod flights;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
pub(crate) mod hosts;
pub(crate) mod message;
mod servers;
mod system;

use std::future::{Future, poll_fn};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::Error;
use crate::clock::unix_millis;
use crate::error::Pending;
use crate::lists::Lists;
use crate::settings::{self, QueryStrategy};

use cache::{Cache, Found, Kept, Key};
use fake::{Fake, FakePools};
use flights::Flights;
use hosts::{Fixed, Hosts};
use message::{Answer, Family, Question};
use servers::{Server, Source};
use system::System;

pub(crate) use flights::{inherit, of_client};

/// How long the answer of one family is waited for once there are addresses of the other (RFC 8305 section 3).
const OTHER_FAMILY: Duration = Duration::from_millis(50);
/// How long fixed answers hold, seconds.
const FIXED_TTL: u32 = 10;
/// How long it is remembered that the system's resolver has failed (RFC 9520 section 3.2: at least a second).
const FAILURE_HOLDS: Duration = Duration::from_secs(5);
/// The response code that stands for that.
const SERVER_FAILURE: u16 = 2;
/// How long a fake answer holds, seconds: the connection follows at once.
const FAKE_TTL: u32 = 1;

/// A server that can be asked.
pub(crate) trait Exchange: Send + Sync {
    /// Asks it once, in whatever task the future is polled. The caller limits the time. What the task knows that calls this
    /// is taken along.
    fn ask(self: Arc<Self>, question: Question) -> Pending<'static, Answer>;
}

/// Why there is no answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Failed {
    pub(crate) why: Arc<str>,
    /// The answer itself is needed for the way to the server.
    circle: bool,
}

impl Failed {
    fn new(why: impl Into<Arc<str>>) -> Failed {
        Failed {
            why: why.into(),
            circle: false,
        }
    }

    fn circle(why: impl Into<Arc<str>>) -> Failed {
        Failed {
            why: why.into(),
            circle: true,
        }
    }
}

/// The families that are asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Wanted {
    pub(crate) v4: bool,
    pub(crate) v6: bool,
}

impl Wanted {
    pub(crate) const BOTH: Wanted = Wanted { v4: true, v6: true };

    pub(crate) fn only(family: Family) -> Wanted {
        Wanted {
            v4: family == Family::V4,
            v6: family == Family::V6,
        }
    }

    pub(crate) fn has(self, ip: IpAddr) -> bool {
        if ip.is_ipv4() { self.v4 } else { self.v6 }
    }

    /// What is left of it.
    fn by(self, strategy: QueryStrategy) -> Wanted {
        let has = match strategy {
            QueryStrategy::UseIpv4 => Wanted::only(Family::V4),
            QueryStrategy::UseIpv6 => Wanted::only(Family::V6),
            QueryStrategy::UseSystem => servers::routes(),
            _ => Wanted::BOTH,
        };
        Wanted {
            v4: self.v4 && has.v4,
            v6: self.v6 && has.v6,
        }
    }

    fn nothing(self) -> bool {
        !self.v4 && !self.v6
    }
}

/// Name resolution.
pub(crate) struct Dns {
    settings: settings::Dns,
    hosts: Hosts,
    servers: Vec<Server>,
    wires: OnceLock<Vec<Option<Arc<dyn Exchange>>>>,
    cache: Arc<Cache>,
    flights: Flights,
    fake: Option<Arc<FakePools>>,
    system: System,
    /// Look-ups that the cache answered, answered with what is over, and did not answer.
    lookups: [AtomicU64; 3],
}

const HIT: usize = 0;
const STALE: usize = 1;
const MISS: usize = 2;

impl Dns {
    /// # Errors
    /// [`Error::Config`] for conditions that make no list.
    pub(crate) fn new(settings: &settings::Dns, lists: &Lists) -> Result<Arc<Dns>, Error> {
        Dns::after(None, settings, lists)
    }

    /// The same in the place of another, of which what still holds is taken over: the addresses that stand for names, and, of the
    /// same servers, their answers.
    pub(crate) fn after(before: Option<&Dns>, settings: &settings::Dns, lists: &Lists) -> Result<Arc<Dns>, Error> {
        let servers = servers::all(settings, lists)?;
        let fakes = servers.iter().any(|server| matches!(server.source, Source::Fake)) || !settings.fake.is_empty();
        let cache = before.filter(|before| before.settings.servers == settings.servers);
        let fake = before.filter(|before| before.settings.fake == settings.fake);
        let fake = fake.and_then(|before| before.fake.clone());
        Ok(Arc::new(Dns {
            hosts: Hosts::new(settings, lists)?,
            servers,
            wires: OnceLock::new(),
            cache: cache.map(|before| Arc::clone(&before.cache)).unwrap_or_default(),
            flights: Flights::default(),
            fake: fakes.then(|| fake.unwrap_or_else(|| Arc::new(FakePools::new(&settings.fake)))),
            system: System::default(),
            lookups: Default::default(),
            settings: settings.clone(),
        }))
    }

    /// Says how servers are asked, in the order of the settings. `None`: those that are asked without a wire.
    pub(crate) fn set(&self, wires: Vec<Option<Arc<dyn Exchange>>>) {
        // They are made once.
        let _ = self.wires.set(wires);
    }

    /// What an address is to the fake answers that were given.
    pub(crate) fn fake(&self, ip: IpAddr) -> Fake {
        self.fake.as_ref().map_or(Fake::No, |pools| pools.name(ip))
    }

    /// The fixed answer for a name, lower-case and without a dot at its end.
    pub(crate) fn fixed(&self, name: &str) -> Option<Fixed> {
        self.hosts.answer(name)
    }

    /// Questions that are on their way.
    pub(crate) fn flights(&self) -> usize {
        self.flights.count()
    }

    /// How often names were looked up, by what came of it.
    pub(crate) fn lookups(&self) -> [(&'static str, u64); 3] {
        let count = |of: usize| self.lookups[of].load(Ordering::Relaxed);
        [("hit", count(HIT)), ("stale", count(STALE)), ("miss", count(MISS))]
    }

    fn count(&self, of: usize) {
        self.lookups[of].fetch_add(1, Ordering::Relaxed);
    }

    /// The families of the configuration as a whole.
    pub(crate) fn families(&self) -> Wanted {
        Wanted::BOTH.by(self.settings.query_strategy)
    }

    /// The addresses of a name, lower-case and without a dot at its end. `fakes`: also those that only stand for it.
    ///
    /// # Errors
    /// If no server has answered. That there are no addresses is an answer.
    pub(crate) async fn lookup(self: &Arc<Self>, name: &str, wanted: Wanted, fakes: bool) -> Result<Found, Failed> {
        let fixed = self.fixed(name);
        let name = match &fixed {
            None => name,
            Some(Fixed::Name(other)) => other,
            Some(Fixed::Code(code)) => return Ok(nothing(*code)),
            Some(Fixed::Ips(ips)) => {
                let ips = ips.iter().copied().filter(|ip| wanted.has(*ip)).collect();
                return Ok(Found {
                    ips,
                    code: 0,
                    ttl: FIXED_TTL,
                });
            }
            Some(Fixed::Circle) => return Err(Failed::new("`hosts` leads from name to name")),
        };
        if !message::is_name(name) {
            return Err(Failed::new("no name that DNS could have"));
        }
        let order = servers::order(&self.servers, &self.settings, name, fakes && self.fake.is_some());
        match self.settings.parallel && order.len() > 1 {
            true => self.ask_at_once(&order, name, wanted).await,
            false => self.ask_in_turn(&order, name, wanted).await,
        }
    }

    async fn ask_in_turn(self: &Arc<Self>, order: &[usize], name: &str, wanted: Wanted) -> Result<Found, Failed> {
        let mut told = Told::default();
        for &at in order {
            // Ways that need each other would all be tried from each of them, and from each of those again.
            if told.circle && !self.servers[at].is_straight {
                continue;
            }
            if let Some(found) = told.take(self.ask(at, name, wanted).await) {
                return Ok(found);
            }
            if self.servers[at].is_final {
                break;
            }
        }
        told.end()
    }

    /// Asks all of them. Of those that follow each other and differ in nothing but where they are, the first answer counts;
    /// else that of the first in the order.
    async fn ask_at_once(self: &Arc<Self>, order: &[usize], name: &str, wanted: Wanted) -> Result<Found, Failed> {
        let until = order.iter().position(|&at| self.servers[at].is_final);
        let order = &order[..until.map_or(order.len(), |at| at + 1)];
        // All in this task, so that each knows what it is needed for.
        let asking = order.iter().map(|&at| Box::pin(self.ask(at, name, wanted)));
        let mut asking: Vec<_> = asking.enumerate().collect();
        let mut told = Told::default();
        let mut answers: Vec<Option<Option<Found>>> = vec![None; order.len()];
        while !asking.is_empty() {
            let (place, answer) = poll_fn(|cx| {
                for at in 0..asking.len() {
                    if let Poll::Ready(answer) = asking[at].1.as_mut().poll(cx) {
                        return Poll::Ready((asking.swap_remove(at).0, answer));
                    }
                }
                Poll::Pending
            })
            .await;
            answers[place] = Some(told.take(answer));
            let mut from = 0;
            while from < order.len() {
                let first = self.servers[order[from]].like;
                let like = order[from..].iter().take_while(|&&at| self.servers[at].like == first);
                let to = from + like.count();
                let group = &answers[from..to];
                if let Some(found) = group.iter().flatten().flatten().next() {
                    return Ok(found.clone());
                }
                if group.iter().any(Option::is_none) {
                    break;
                }
                from = to;
            }
        }
        told.end()
    }

    /// Asks one server for all families, and takes of its answer what the configuration lets through.
    async fn ask(self: &Arc<Self>, at: usize, name: &str, wanted: Wanted) -> Result<Found, Failed> {
        let server = &self.servers[at];
        let wanted = wanted.by(server.strategy);
        if wanted.nothing() {
            return Ok(nothing(0));
        }
        let found = match (wanted.v4, wanted.v6) {
            (true, true) => self.ask_both(at, name).await?,
            (v4, _) => {
                let family = if v4 { Family::V4 } else { Family::V6 };
                self.ask_for(at, name, family).await?
            }
        };
        Ok(server.let_through(found))
    }

    async fn ask_both(self: &Arc<Self>, at: usize, name: &str) -> Result<Found, Failed> {
        let mut v4 = Box::pin(self.ask_for(at, name, Family::V4));
        let mut v6 = Box::pin(self.ask_for(at, name, Family::V6));
        let (first, second) = tokio::select! {
            biased;
            first = &mut v4 => (first, v6),
            first = &mut v6 => (first, v4),
        };
        // What the configuration lets nothing of through is no reason not to wait.
        let counts = |found: &Found| !self.servers[at].let_through(found.clone()).ips.is_empty();
        let enough = first.as_ref().is_ok_and(counts);
        let second = match enough {
            true => timeout(OTHER_FAMILY, second).await.ok(),
            false => Some(second.await),
        };
        match (first, second) {
            (Ok(first), Some(Ok(second))) => Ok(both(&first, &second)),
            (Ok(found), _) | (_, Some(Ok(found))) if !found.ips.is_empty() => Ok(found),
            (Err(failed), _) | (_, Some(Err(failed))) => Err(failed),
            (Ok(found), None) => Ok(found),
        }
    }

    /// Asks one server for one family.
    async fn ask_for(self: &Arc<Self>, at: usize, name: &str, family: Family) -> Result<Found, Failed> {
        if self.servers[at].source != Source::System {
            return self.ask_once(at, name, family).await;
        }
        // It answers for both at once, so both are one question.
        let mut found = self.ask_once(at, name, Family::V4).await?;
        if found.code == SERVER_FAILURE {
            return Err(Failed::new("the system's resolver has no answer"));
        }
        found.ips = found
            .ips
            .iter()
            .copied()
            .filter(|ip| Family::of(*ip) == family)
            .collect();
        Ok(found)
    }

    /// Asks the cache, or those who ask the server already, or the server itself.
    async fn ask_once(self: &Arc<Self>, at: usize, name: &str, family: Family) -> Result<Found, Failed> {
        let server = &self.servers[at];
        if let Source::Fake = server.source {
            let pools = self.fake.as_ref();
            let ip = pools.and_then(|pools| pools.address(name, family, unix_millis()));
            return Ok(Found {
                ips: ip.into_iter().collect(),
                code: 0,
                ttl: FAKE_TTL,
            });
        }
        let key = Key::new(at, family, name);
        if server.keeps {
            match self.cache.get(&key, Instant::now()) {
                Some(Kept::Fresh(found)) => {
                    self.count(HIT);
                    return Ok(found);
                }
                Some(Kept::Stale(found, age)) if server.serves_stale(age) && !found.ips.is_empty() => {
                    self.count(STALE);
                    // Nobody waits for the new one.
                    let _ = self.begin(at, key, name, family);
                    return Ok(found);
                }
                _ => {}
            }
        }
        self.count(MISS);
        let flight = self.begin(at, key.clone(), name, family)?;
        let joined = flight.joined;
        match flights::land(flight).await {
            // It was one for those who began it, and need not be one here.
            Err(failed) if failed.circle && joined => flights::land(self.begin(at, key, name, family)?).await,
            landed => landed,
        }
    }

    /// Asks a server, unless somebody asks it the same already.
    fn begin(self: &Arc<Self>, at: usize, key: Key, name: &str, family: Family) -> Result<flights::Flight, Failed> {
        let server = &self.servers[at];
        let asking = || -> Result<Pending<'static, Answer>, Failed> {
            if let Source::System = server.source {
                return Ok(Box::pin(self.system.ask(name.to_owned())));
            }
            let wire = self.wires.get().and_then(|wires| wires.get(at).cloned().flatten());
            let wire = wire.ok_or_else(|| Failed::new("the server does not run"))?;
            let question = Question {
                name: message::name(name).ok_or_else(|| Failed::new("no name that DNS could have"))?,
                family,
                client: server.client,
            };
            Ok(wire.ask(question))
        };
        let (dns, limit, keeps) = (Arc::clone(self), server.timeout, server.keeps);
        let fails = keeps && server.source == Source::System;
        let kept = key.clone();
        self.flights.board(key, asking, move |asked| async move {
            let answer = match timeout(limit, asked).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(error @ Error::Circle { .. })) => return Err(Failed::circle(error.to_string())),
                Ok(Err(error)) => {
                    if fails {
                        dns.cache
                            .put(kept, nothing(SERVER_FAILURE), FAILURE_HOLDS, Instant::now());
                    }
                    return Err(Failed::new(error.to_string()));
                }
                Err(_) => return Err(Failed::new("no answer in time")),
            };
            let (found, holds) = Found::of(answer);
            if let Some(holds) = holds.filter(|_| keeps) {
                dns.cache.put(kept, found.clone(), holds, Instant::now());
            }
            Ok(found)
        })
    }
}

/// What servers have said so far, while no answer was what is looked for.
#[derive(Default)]
struct Told {
    nothing: Option<Found>,
    failed: Option<Failed>,
    /// The way to one of them needs the answer itself.
    circle: bool,
}

impl Told {
    /// The addresses of an answer, if there are any.
    fn take(&mut self, answer: Result<Found, Failed>) -> Option<Found> {
        match answer {
            Ok(found) if !found.ips.is_empty() => return Some(found),
            Ok(found) => self.nothing = Some(found),
            Err(failed) => {
                self.circle |= failed.circle;
                self.failed = Some(failed);
            }
        }
        None
    }

    fn end(self) -> Result<Found, Failed> {
        match (self.nothing, self.failed) {
            (Some(nothing), _) => Ok(nothing),
            (None, Some(failed)) => Err(failed),
            (None, None) => Err(Failed::new("there is no server to ask")),
        }
    }
}

fn nothing(code: u16) -> Found {
    Found {
        ips: Arc::from([]),
        code,
        ttl: FIXED_TTL,
    }
}

/// One answer of two families. IPv4 goes first.
fn both(one: &Found, other: &Found) -> Found {
    if one.ips.is_empty() != other.ips.is_empty() {
        return if one.ips.is_empty() { other.clone() } else { one.clone() };
    }
    let ips = one.ips.iter().chain(other.ips.iter());
    let (v4, v6): (Vec<IpAddr>, Vec<IpAddr>) = ips.partition(|ip| ip.is_ipv4());
    Found {
        ips: v4.into_iter().chain(v6).collect(),
        code: one.code.max(other.code),
        ttl: one.ttl.min(other.ttl),
    }
}

#[cfg(test)]
mod tests;
