//! Servers: which are asked for a name, in which order, and what of their answers counts.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Wanted;
use super::cache::Found;
use crate::Error;
use crate::lists::{Addresses, Lists, Names};
use crate::settings::{self, DnsAddress, DnsIps, DnsServer, QueryStrategy};

/// Names that only the network of this machine knows: the system's resolver is asked first for them, and for those without
/// a dot.
const LOCAL: [&str; 8] = [
    "local",
    "localdomain",
    "localhost",
    "lan",
    "home.arpa",
    "example",
    "invalid",
    "test",
];

/// Where answers come from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Source {
    /// The system's resolver.
    System,
    /// Addresses that only stand for names.
    Fake,
    /// A server.
    Wire,
}

/// Addresses that count, or do not.
struct Filter {
    ips: Addresses,
    /// Those that fit are kept, not dropped.
    keeps: bool,
    /// Where nothing would be left, all are kept.
    prefers: bool,
}

impl Filter {
    fn new(settings: &DnsIps, keeps: bool, lists: &Lists) -> Result<Option<Filter>, Error> {
        if settings.ips.is_empty() {
            return Ok(None);
        }
        let ips: Vec<_> = settings.ips.0.iter().map(|one| one.value.clone()).collect();
        Ok(Some(Filter {
            ips: lists.addresses(&ips)?,
            keeps,
            prefers: settings.prefer,
        }))
    }

    fn apply(&self, ips: &mut Vec<IpAddr>) {
        let fits = |ip: &IpAddr| self.ips.matches(*ip) == self.keeps;
        if !self.prefers || ips.iter().any(fits) {
            ips.retain(fits);
        }
    }
}

/// A server, as the choice among them sees it.
pub(super) struct Server {
    pub(super) source: Source,
    names: Option<Names>,
    filters: Vec<Filter>,
    skips_fallback: bool,
    pub(super) strategy: QueryStrategy,
    pub(super) client: Option<IpAddr>,
    pub(super) timeout: Duration,
    /// Its answers are kept.
    pub(super) keeps: bool,
    /// For how long an answer may be out of date and still be served.
    stale: Option<Duration>,
    /// No server behind it is asked.
    pub(super) is_final: bool,
    /// Neither rules nor outbounds are needed to ask it.
    pub(super) is_straight: bool,
    /// The first server that differs from it in nothing but where it is.
    pub(super) like: usize,
}

impl Server {
    fn new(place: &str, settings: &DnsServer, like: usize, lists: &Lists) -> Result<Server, Error> {
        let stale = settings.serve_stale.unwrap_or_default();
        let longest = settings.serve_expired_ttl.unwrap_or_default();
        let domains: Vec<_> = settings.domains.0.iter().map(|one| one.value.clone()).collect();
        let names = match domains.as_slice() {
            [] => None,
            domains => Some(lists.names(&format!("{place}.domains"), domains)?),
        };
        let expected = Filter::new(&settings.expected_ips, true, lists)?;
        let unexpected = Filter::new(&settings.unexpected_ips, false, lists)?;
        // What must be so comes first: a preference chooses among what is left.
        let mut filters: Vec<Filter> = expected.into_iter().chain(unexpected).collect();
        filters.sort_by_key(|filter| filter.prefers);
        Ok(Server {
            source: match settings.address {
                DnsAddress::System => Source::System,
                DnsAddress::Fake => Source::Fake,
                DnsAddress::Server { .. } => Source::Wire,
            },
            names,
            filters,
            skips_fallback: settings.skip_fallback,
            strategy: settings.query_strategy.unwrap_or_default(),
            client: settings.client_ip,
            timeout: settings.timeout,
            keeps: !settings.disable_cache.unwrap_or_default(),
            stale: stale.then_some(match longest {
                0 => Duration::MAX,
                seconds => Duration::from_secs(seconds.into()),
            }),
            // A family that no pool is of has no addresses: those that another server would say lead past the pools.
            is_final: settings.final_query || settings.address == DnsAddress::Fake,
            is_straight: match settings.address {
                DnsAddress::Server { local, .. } => local,
                _ => true,
            },
            like,
        })
    }

    #[cfg(test)]
    pub(super) fn is_wire(&self) -> bool {
        self.source == Source::Wire
    }

    pub(super) fn serves_stale(&self, age: Duration) -> bool {
        self.stale.is_some_and(|longest| age <= longest)
    }

    /// Whether it is to be asked first for a name.
    fn is_for(&self, name: &str) -> bool {
        let local = || {
            let below = |zone: &str| {
                let above = name.strip_suffix(zone);
                above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
            };
            !name.contains('.') || LOCAL.iter().any(|zone| below(zone))
        };
        let set = self.names.as_ref().is_some_and(|names| names.matches(name));
        set || self.source == Source::System && local()
    }

    /// What of an answer counts.
    pub(super) fn let_through(&self, found: Found) -> Found {
        if self.filters.is_empty() {
            return found;
        }
        let mut ips: Vec<IpAddr> = found.ips.to_vec();
        for filter in &self.filters {
            filter.apply(&mut ips);
        }
        match ips.len() == found.ips.len() {
            true => found,
            false => Found {
                ips: ips.into(),
                ..found
            },
        }
    }
}

/// Whether two servers differ in nothing but where they are.
fn are_alike(one: &DnsServer, other: &DnsServer) -> bool {
    let conditions = |server: &DnsServer| {
        let domains: Vec<_> = server.domains.0.iter().map(|one| one.value.clone()).collect();
        let ips = [&server.expected_ips, &server.unexpected_ips].map(|list| {
            let ips: Vec<_> = list.ips.0.iter().map(|one| one.value.clone()).collect();
            (ips, list.prefer)
        });
        let fake = server.address == DnsAddress::Fake;
        let asks = (server.query_strategy, server.client_ip, server.tag.clone());
        (domains, ips, server.skip_fallback, fake, asks)
    };
    conditions(one) == conditions(other)
}

/// All servers. Without any, the system's resolver is asked.
pub(super) fn all(settings: &settings::Dns, lists: &Lists) -> Result<Vec<Server>, Error> {
    let servers = &settings.servers;
    if !servers.is_empty() {
        let make = |(at, one): (usize, &DnsServer)| {
            let like = servers.iter().position(|other| are_alike(one, other)).unwrap_or(at);
            Server::new(&format!("dns.servers[{at}]"), one, like, lists)
        };
        return servers.iter().enumerate().map(make).collect();
    }
    Ok(vec![Server {
        source: Source::System,
        names: None,
        filters: Vec::new(),
        skips_fallback: false,
        strategy: settings.query_strategy,
        client: None,
        timeout: SYSTEM_TIMEOUT,
        keeps: !settings.disable_cache,
        stale: None,
        is_final: false,
        is_straight: true,
        like: 0,
    }])
}

/// How long the system's resolver may take where the configuration names no server.
const SYSTEM_TIMEOUT: Duration = Duration::from_secs(30);

/// The servers to ask for a name, by their numbers: those whose conditions fit, then the others.
pub(super) fn order(servers: &[Server], settings: &settings::Dns, name: &str, fakes: bool) -> Vec<usize> {
    let usable = |server: &Server| fakes || server.source != Source::Fake;
    let all = || servers.iter().enumerate().filter(|(_, server)| usable(server));
    let mut order: Vec<usize> = all()
        .filter(|(_, server)| server.is_for(name))
        .map(|(at, _)| at)
        .collect();
    let cut = settings.disable_fallback || settings.disable_fallback_if_match && !order.is_empty();
    if !cut {
        let others = all().filter(|(at, server)| !server.skips_fallback && !order.contains(at));
        let others: Vec<usize> = others.map(|(at, _)| at).collect();
        order.extend(others);
    }
    if order.is_empty() {
        order.extend(all().next().map(|(at, _)| at));
    }
    order
}

/// How long it is believed which families the system has a route for.
const ROUTES_HOLD: Duration = Duration::from_secs(1);

/// The families that the system has a route for.
pub(super) fn routes() -> Wanted {
    static KNOWN: Mutex<Option<(Instant, Wanted)>> = Mutex::new(None);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    match *known {
        Some((since, found)) if since.elapsed() < ROUTES_HOLD => found,
        _ => known.insert((Instant::now(), find_routes())).1,
    }
}

/// Sends nothing.
fn find_routes() -> Wanted {
    let leads = |from: SocketAddr, to: SocketAddr| UdpSocket::bind(from).is_ok_and(|socket| socket.connect(to).is_ok());
    let v4 = leads(([0, 0, 0, 0], 0).into(), ([192, 0, 2, 1], 53).into());
    let v6 = leads(
        (Ipv6Addr::UNSPECIFIED, 0).into(),
        (Ipv6Addr::new(0x2001, 0x4860, 0, 0, 0, 0, 0, 1), 53).into(),
    );
    match v4 || v6 {
        true => Wanted { v4, v6 },
        false => Wanted::BOTH,
    }
}
