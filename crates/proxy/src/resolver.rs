//! Names and their addresses: the one door for whoever has a name and needs addresses.

use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use arc_swap::ArcSwap;
use sealway_v2ray::Address;

use crate::dns::cache::Found;
use crate::dns::hosts::Fixed;
use crate::dns::message::Family;
use crate::dns::{Dns, Failed, Wanted};
use crate::lists::Lists;
use crate::settings::{DomainStrategy, Families, Settings};
use crate::{Error, dial, dns};

pub(crate) use crate::dns::fake::Fake;

/// Finds the addresses of hosts.
pub(crate) struct Resolver {
    dns: ArcSwap<Dns>,
}

/// The future, whose questions to DNS servers are those of a client, which has a share of them.
pub(crate) async fn of_client<F: Future>(client: Option<SocketAddr>, future: F) -> F::Output {
    dns::of_client(client.map(|client| client.ip()), future).await
}

/// A name as the rest has it: in lower case, without a dot at its end.
fn plain(host: &Address) -> String {
    host.to_string().trim_end_matches('.').to_ascii_lowercase()
}

impl Resolver {
    /// # Errors
    /// [`Error::Config`] for conditions that make no list.
    pub(crate) fn new(settings: &Settings, lists: &Lists) -> Result<Self, Error> {
        Ok(Resolver {
            dns: ArcSwap::new(Dns::new(&settings.dns, lists)?),
        })
    }

    /// Who finds them now.
    pub(crate) fn dns(&self) -> Arc<Dns> {
        self.dns.load_full()
    }

    /// Has another find them from now on.
    pub(crate) fn set(&self, dns: Arc<Dns>) {
        self.dns.store(dns);
    }

    /// What an address is to the fake answers that were given.
    pub(crate) fn fake(&self, ip: IpAddr) -> Fake {
        self.dns.load().fake(ip)
    }

    /// The answer to a question of a client, which may be an address that only stands for the name.
    pub(crate) async fn answer(&self, name: &str, family: Family, client: Option<SocketAddr>) -> Result<Found, Failed> {
        of_client(client, self.dns().lookup(name, Wanted::only(family), true)).await
    }

    /// The addresses of a host as the object `dns` says, for rules about addresses. None if there are none.
    pub(crate) async fn addresses(&self, host: &Address) -> Vec<IpAddr> {
        if let Some(ip) = host.ip() {
            return vec![ip];
        }
        #[cfg(test)]
        if host.to_string().ends_with(".never.test") {
            std::future::pending::<()>().await;
        }
        let dns = self.dns();
        match dns.lookup(&plain(host), dns.families(), false).await {
            Ok(found) => found.ips.to_vec(),
            Err(failed) => {
                tracing::debug!("{host}: {}", failed.why);
                Vec::new()
            }
        }
    }

    /// All addresses of a host, best first.
    pub(crate) async fn resolve(
        &self,
        host: &Address,
        port: u16,
        strategy: DomainStrategy,
    ) -> Result<Vec<SocketAddr>, Error> {
        if let Some(ip) = host.ip() {
            return Ok(vec![SocketAddr::new(ip, port)]);
        }
        #[cfg(test)]
        if host.to_string().ends_with(".never.test") {
            std::future::pending::<()>().await;
        }
        let name = plain(host);
        let nothing = || Error::Resolve { name: host.to_string() };
        let dns = self.dns();
        let families = dns.families();
        if strategy.ask {
            let of = match strategy.families {
                Families::V4 => Wanted::only(Family::V4),
                Families::V6 => Wanted::only(Family::V6),
                _ => Wanted::BOTH,
            };
            let wanted = Wanted {
                v4: families.v4 && of.v4,
                v6: families.v6 && of.v6,
            };
            match dns.lookup(&name, wanted, false).await {
                Ok(found) if !found.ips.is_empty() => {
                    let found: Vec<_> = found.ips.iter().map(|ip| SocketAddr::new(*ip, port)).collect();
                    let chosen = dial::choose(&found, strategy);
                    return if chosen.is_empty() { Err(nothing()) } else { Ok(chosen) };
                }
                Ok(_) => {}
                Err(failed) => tracing::debug!("{name}: {}", failed.why),
            }
            if strategy.force {
                return Err(nothing());
            }
        }
        let found = match dns.fixed(&name) {
            None => dial::resolve(host, port, strategy).await?,
            Some(Fixed::Name(other)) => {
                let other = Address::parse(&other).map_err(|_| nothing())?;
                dial::resolve(&other, port, strategy).await?
            }
            Some(Fixed::Ips(ips)) => {
                let fixed: Vec<_> = ips.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
                dial::choose(&fixed, strategy)
            }
            Some(Fixed::Code(_) | Fixed::Circle) => Vec::new(),
        };
        let found: Vec<_> = found.into_iter().filter(|address| families.has(address.ip())).collect();
        if found.is_empty() { Err(nothing()) } else { Ok(found) }
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    async fn ask(dns: &str, name: &str) -> String {
        let text = format!(r#"{{"dns": {dns}, "outbounds": [{{"protocol": "freedom"}}]}}"#);
        let settings = Settings::of_text(&text);
        let names = Resolver::new(&settings, &Lists::default()).unwrap();
        let host = Address::parse(name).unwrap();
        match names.resolve(&host, 7, DomainStrategy::default()).await {
            Ok(found) => found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn fixed_answers_go_before_the_system() {
        let hosts = r##"{"a.example": "192.0.2.1", "domain:b.example": ["2001:db8::1", "192.0.2.2"],
            "c.example": "x.b.example", "keyword:loop": "loop.example", "here.example": "127.0.0.1",
            "blocked.example": "#3"}"##;
        let dns = format!(r#"{{"hosts": {hosts}}}"#);
        for (name, answer) in [
            ("a.example", "192.0.2.1:7"),
            ("A.example", "192.0.2.1:7"),
            ("a.example.", "192.0.2.1:7"),
            ("x.b.example", "[2001:db8::1]:7 192.0.2.2:7"),
            ("c.example", "[2001:db8::1]:7 192.0.2.2:7"),
            ("loop.example", "no address for the name loop.example"),
            ("blocked.example", "no address for the name blocked.example"),
            ("198.51.100.1", "198.51.100.1:7"),
        ] {
            assert_eq!(ask(&dns, name).await, answer, "{name}");
        }
        let dns = format!(r#"{{"hosts": {hosts}, "queryStrategy": "UseIPv4"}}"#);
        assert_eq!(ask(&dns, "c.example").await, "192.0.2.2:7");
        let dns = format!(r#"{{"hosts": {hosts}, "queryStrategy": "UseIPv6"}}"#);
        assert_eq!(ask(&dns, "c.example").await, "[2001:db8::1]:7");
        assert_eq!(ask(&dns, "a.example").await, "no address for the name a.example");
    }
}
