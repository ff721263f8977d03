//! How much the relay does, in all and for one source.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// What a relay allows.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Connections at once, waiting and paired ones together. Those above are closed unread. Default 4,096.
    pub connections: usize,
    /// Connections that wait for another at once, at most half of `connections`. Default 1,024.
    pub waiting: usize,
    /// Connections at once of one source: one IPv4 address, or one /64 of IPv6. Default 256.
    pub source_connections: u32,
    /// Connections of one source that wait for another at once. Default 64.
    pub source_waiting: u32,
    /// Claims of nameplates by one source in a minute, as many at once: each may be a guess. Default 30.
    pub source_claims: u32,
    /// Times of what one source may have and claim that all sources of one /48 of IPv6 may together: who is given a /48 has
    /// 65,536 of /64. Default 4.
    pub site_sources: u32,
    /// How long a request may take to arrive whole. Default 10 s.
    pub request: Duration,
    /// How long somebody may wait under a nameplate. Default 10 min.
    pub nameplate: Duration,
    /// How long a connection waits for the other one with its token. Default 60 s.
    pub token: Duration,
    /// How long a pair may stand with nothing moving, and how long one end may take nothing of what is sent to it. Default
    /// 15 min.
    pub idle: Duration,
    /// How long pairs may go on when the relay has been told to end. Default 10 s.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 4096,
            waiting: 1024,
            source_connections: 256,
            source_waiting: 64,
            source_claims: 30,
            site_sources: 4,
            request: Duration::from_secs(10),
            nameplate: Duration::from_secs(600),
            token: Duration::from_secs(60),
            idle: Duration::from_secs(900),
            grace: Duration::from_secs(10),
        }
    }
}

/// Where connections come from, as far as limits go.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) enum Source {
    V4([u8; 4]),
    /// The first half: whoever has one address of a /64 has them all.
    V6([u8; 8]),
    /// All those for which there is no room to be counted alone.
    Others,
}

impl Source {
    fn of(ip: IpAddr) -> Self {
        match ip.to_canonical() {
            IpAddr::V4(v4) => Source::V4(v4.octets()),
            IpAddr::V6(v6) => {
                let [a, b, c, d, e, f, g, h, ..] = v6.octets();
                Source::V6([a, b, c, d, e, f, g, h])
            }
        }
    }
}

impl Source {
    /// The /48 it is in.
    fn site(self) -> Option<Site> {
        match self {
            Source::V6([a, b, c, d, e, f, ..]) => Some([a, b, c, d, e, f]),
            Source::V4(_) | Source::Others => None,
        }
    }
}

/// A /48 of IPv6.
type Site = [u8; 6];

/// What one source, or one site, has and may.
struct Account {
    connections: u32,
    waiting: u32,
    /// Claims that may be made at once.
    claims: f64,
    counted: Instant,
    /// Times of what one source may.
    times: u32,
}

impl Account {
    fn new(limits: &Limits, times: u32, now: Instant) -> Self {
        Account {
            connections: 0,
            waiting: 0,
            claims: f64::from(limits.source_claims) * f64::from(times),
            counted: now,
            times,
        }
    }

    fn may_enter(&self, limits: &Limits) -> bool {
        self.connections < limits.source_connections.saturating_mul(self.times)
    }

    fn may_wait(&self, limits: &Limits) -> bool {
        self.waiting < limits.source_waiting.saturating_mul(self.times)
    }

    /// Adds what `claims` has gained since it was last looked at.
    fn refill(&mut self, limits: &Limits, now: Instant) {
        let passed = now.saturating_duration_since(self.counted).as_secs_f64();
        let full = f64::from(limits.source_claims) * f64::from(self.times);
        self.claims = (self.claims + passed * full / 60.0).min(full);
        self.counted = now;
    }

    /// Whether forgetting it makes no difference.
    fn is_idle(&mut self, limits: &Limits, now: Instant) -> bool {
        self.refill(limits, now);
        self.connections == 0 && self.claims >= f64::from(limits.source_claims) * f64::from(self.times)
    }
}

/// The books of all sources. Its size is bounded by the number of connections, whoever makes them. Time is an argument.
pub(super) struct Sources {
    limits: Limits,
    accounts: HashMap<Source, Account>,
    sites: HashMap<Site, Account>,
    connections: usize,
    waiting: usize,
    swept: Option<Instant>,
}

/// Time between two searches for accounts to forget when there is no room for more.
const SWEEP_PAUSE: Duration = Duration::from_secs(1);

impl Sources {
    pub(super) fn new(limits: &Limits) -> Self {
        Sources {
            limits: limits.clone(),
            accounts: HashMap::new(),
            sites: HashMap::new(),
            connections: 0,
            waiting: 0,
            swept: None,
        }
    }

    /// Notes a connection; `None` if it is one too many.
    pub(super) fn enter(&mut self, ip: IpAddr, now: Instant) -> Option<Source> {
        if self.connections >= self.limits.connections {
            return None;
        }
        let source = self.room_for(Source::of(ip), now);
        let limits = &self.limits;
        if let Some(site) = source.site() {
            let times = limits.site_sources.max(1);
            let account = self.sites.entry(site);
            let account = account.or_insert_with(|| Account::new(limits, times, now));
            if !account.may_enter(limits) {
                return None;
            }
        }
        let account = self.accounts.entry(source);
        let account = account.or_insert_with(|| Account::new(limits, 1, now));
        if !account.may_enter(limits) {
            return None;
        }
        for account in self.both(source) {
            account.connections += 1;
        }
        self.connections += 1;
        Some(source)
    }

    /// Notes that a connection of `source` is over.
    pub(super) fn leave(&mut self, source: Source, now: Instant) {
        self.connections = self.connections.saturating_sub(1);
        for account in self.both(source) {
            account.connections = account.connections.saturating_sub(1);
        }
        let limits = &self.limits;
        if self
            .accounts
            .get_mut(&source)
            .is_some_and(|account| account.is_idle(limits, now))
        {
            self.accounts.remove(&source);
        }
        if let Some(site) = source.site()
            && self
                .sites
                .get_mut(&site)
                .is_some_and(|account| account.is_idle(limits, now))
        {
            self.sites.remove(&site);
        }
    }

    /// Notes that a connection begins to wait; false if it is one too many.
    pub(super) fn wait(&mut self, source: Source) -> bool {
        let limits = self.limits.clone();
        let most = limits.waiting.min(limits.connections.div_ceil(2));
        if self.waiting >= most
            || !self.accounts.contains_key(&source)
            || !self.both(source).all(|account| account.may_wait(&limits))
        {
            return false;
        }
        for account in self.both(source) {
            account.waiting += 1;
        }
        self.waiting += 1;
        true
    }

    /// Notes that a connection waits no more.
    pub(super) fn wait_over(&mut self, source: Source) {
        self.waiting = self.waiting.saturating_sub(1);
        for account in self.both(source) {
            account.waiting = account.waiting.saturating_sub(1);
        }
    }

    /// Takes the right to one claim; false if there is none left for now.
    pub(super) fn claim(&mut self, source: Source, now: Instant) -> bool {
        let limits = self.limits.clone();
        for account in self.both(source) {
            account.refill(&limits, now);
        }
        if !self.accounts.contains_key(&source) || self.both(source).any(|account| account.claims < 1.0) {
            return false;
        }
        for account in self.both(source) {
            account.claims -= 1.0;
        }
        true
    }

    /// The accounts that what `source` does counts in.
    fn both(&mut self, source: Source) -> impl Iterator<Item = &mut Account> {
        let site = source.site().and_then(|site| self.sites.get_mut(&site));
        self.accounts.get_mut(&source).into_iter().chain(site)
    }

    /// `source` if it has accounts or there is room for them, else [`Source::Others`].
    fn room_for(&mut self, source: Source, now: Instant) -> Source {
        let most = self.limits.connections.saturating_mul(2);
        let has_room = |sources: &Self| {
            (sources.accounts.len() < most || sources.accounts.contains_key(&source))
                && source
                    .site()
                    .is_none_or(|site| sources.sites.len() < most || sources.sites.contains_key(&site))
        };
        if has_room(self) {
            return source;
        }
        if self
            .swept
            .is_none_or(|at| now.saturating_duration_since(at) >= SWEEP_PAUSE)
        {
            self.swept = Some(now);
            let limits = &self.limits;
            self.accounts.retain(|_, account| !account.is_idle(limits, now));
            self.sites.retain(|_, account| !account.is_idle(limits, now));
        }
        if has_room(self) { source } else { Source::Others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn limits() -> Limits {
        Limits {
            connections: 8,
            waiting: 4,
            source_connections: 3,
            source_waiting: 2,
            source_claims: 6,
            ..Limits::default()
        }
    }

    #[test]
    fn one_source_is_an_address_or_half_of_one() {
        assert_eq!(Source::of(ip("::ffff:192.0.2.1")), Source::of(ip("192.0.2.1")));
        assert_ne!(Source::of(ip("192.0.2.2")), Source::of(ip("192.0.2.1")));
        assert_eq!(Source::of(ip("2001:db8::1")), Source::of(ip("2001:db8::ffff:0:0:1")));
        assert_ne!(Source::of(ip("2001:db8::1")), Source::of(ip("2001:db8:0:1::1")));
    }

    #[test]
    fn connections_are_limited_for_each_and_in_all() {
        let now = Instant::now();
        let mut sources = Sources::new(&limits());
        let first = sources.enter(ip("192.0.2.1"), now).unwrap();
        assert!(sources.enter(ip("192.0.2.1"), now).is_some());
        assert!(sources.enter(ip("192.0.2.1"), now).is_some());
        assert!(sources.enter(ip("192.0.2.1"), now).is_none());
        for last in 2..7 {
            assert!(sources.enter(ip(&format!("192.0.2.{last}")), now).is_some());
        }
        assert!(sources.enter(ip("192.0.2.9"), now).is_none(), "eight in all");
        sources.leave(first, now);
        assert!(sources.enter(ip("192.0.2.9"), now).is_some());
    }

    #[test]
    fn waiting_is_limited_for_each_and_in_all() {
        let now = Instant::now();
        let mut sources = Sources::new(&limits());
        let all: Vec<_> = (1..4)
            .map(|last| sources.enter(ip(&format!("192.0.2.{last}")), now).unwrap())
            .collect();
        assert!(sources.wait(all[0]));
        assert!(sources.wait(all[0]));
        assert!(!sources.wait(all[0]));
        assert!(sources.wait(all[1]));
        assert!(sources.wait(all[2]));
        assert!(!sources.wait(all[1]), "four in all");
        sources.wait_over(all[0]);
        assert!(sources.wait(all[1]));
    }

    #[test]
    fn claims_come_back_with_time_and_are_not_forgotten_with_the_connection() {
        let start = Instant::now();
        let mut sources = Sources::new(&limits());
        let source = sources.enter(ip("192.0.2.1"), start).unwrap();
        assert_eq!((0..20).filter(|_| sources.claim(source, start)).count(), 6);
        sources.leave(source, start);
        let source = sources.enter(ip("192.0.2.1"), start).unwrap();
        assert!(!sources.claim(source, start));
        // Six a minute: two after twenty seconds.
        let later = start + Duration::from_secs(20);
        assert_eq!((0..20).filter(|_| sources.claim(source, later)).count(), 2);
        let much_later = start + Duration::from_secs(100_000);
        assert_eq!((0..20).filter(|_| sources.claim(source, much_later)).count(), 6);
        assert!(!sources.claim(source, start), "time that goes back gives nothing");
    }

    #[test]
    fn all_of_a_48_together_have_what_a_few_sources_may() {
        let now = Instant::now();
        let mut sources = Sources::new(&Limits {
            connections: 1000,
            waiting: 400,
            site_sources: 2,
            ..limits()
        });
        let enter = |sources: &mut Sources, n: u16| sources.enter(ip(&format!("2001:db8:1:{n:x}::1")), now);
        let all: Vec<_> = (0..40).filter_map(|n| enter(&mut sources, n)).collect();
        assert_eq!(all.len(), 6, "twice the three of one source");
        assert_eq!(all.iter().filter(|source| sources.wait(**source)).count(), 4);
        let claims: usize = all
            .iter()
            .map(|source| (0..20).filter(|_| sources.claim(*source, now)).count())
            .sum();
        assert_eq!(claims, 12);
        // Others are not meant.
        assert!(sources.enter(ip("2001:db8:2::1"), now).is_some());
        sources.wait_over(all[0]);
        assert!(sources.wait(all[5]));
        for source in all {
            sources.leave(source, now);
        }
        assert!(enter(&mut sources, 50).is_some());
        assert!(sources.sites.len() <= 2);
    }

    #[test]
    fn the_books_stay_small() {
        let start = Instant::now();
        let mut sources = Sources::new(&limits());
        for n in 0..1000u32 {
            let source = sources.enter(IpAddr::from(n.to_be_bytes()), start).unwrap();
            // Its account is worth keeping: it has claimed.
            sources.claim(source, start);
            sources.leave(source, start);
            assert!(sources.accounts.len() <= 17, "{}", sources.accounts.len());
        }
        // Sources without accounts of their own share one.
        let shared = sources.enter(ip("192.0.2.1"), start).unwrap();
        assert_eq!(shared, Source::Others);
        sources.leave(shared, start);
        // Later there is room again.
        let later = start + Duration::from_secs(60);
        let own = sources.enter(ip("192.0.2.1"), later).unwrap();
        assert_ne!(own, Source::Others);
        assert!(sources.accounts.len() <= 2);
    }
}
