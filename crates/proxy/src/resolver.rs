//! Names and their addresses: fixed answers, then the system's resolver.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use sealway_v2ray::Address;

use crate::settings::{DomainStrategy, Hosts, QueryStrategy, Settings};
use crate::{Error, dial};

/// Names that may stand for each other one after another; more are taken for a circle.
const MAX_NAMES: usize = 8;

/// Finds the addresses of hosts.
#[derive(Debug)]
pub(crate) struct Resolver {
    hosts: Hosts,
    families: QueryStrategy,
}

/// What an address is to the fake answers of this server.
#[allow(dead_code, reason = "the sniffing object asks it")]
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Fake {
    /// It lies in none of the pools: a real address.
    No,
    /// It stands for this name.
    Name(Arc<str>),
    /// It lies in a pool, and stands for no name that is remembered.
    Unknown,
}

impl Resolver {
    pub(crate) fn new(settings: &Settings) -> Self {
        Resolver {
            hosts: settings.hosts.clone(),
            families: settings.query_strategy,
        }
    }

    /// What an address is to the fake answers that were given.
    #[allow(dead_code, clippy::unused_self, reason = "the sniffing object asks it")]
    pub(crate) fn fake(&self, _ip: IpAddr) -> Fake {
        Fake::No
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
        let nothing = || Error::Resolve { name: host.to_string() };
        let mut name = host;
        for _ in 0..MAX_NAMES {
            let found = match self.hosts.answer(&name.to_string()).map(|answer| answer.0.as_slice()) {
                None => dial::resolve(name, port, strategy).await?,
                Some([other @ Address::Domain(_)]) => {
                    name = other;
                    continue;
                }
                Some(addresses) => {
                    let ips = addresses.iter().filter_map(Address::ip);
                    let fixed: Vec<_> = ips.map(|ip| SocketAddr::new(ip, port)).collect();
                    dial::choose(&fixed, strategy)
                }
            };
            let wanted = |address: &SocketAddr| match self.families {
                QueryStrategy::UseIpv4 => address.is_ipv4(),
                QueryStrategy::UseIpv6 => address.is_ipv6(),
                _ => true,
            };
            let found: Vec<_> = found.into_iter().filter(wanted).collect();
            return if found.is_empty() { Err(nothing()) } else { Ok(found) };
        }
        Err(nothing())
    }
}

#[cfg(test)]
mod tests {
    use sealway_v2ray::config::{File, Options, load};

    use super::*;

    async fn ask(dns: &str, name: &str) -> String {
        let text = format!(r#"{{"dns": {dns}, "outbounds": [{{"protocol": "freedom"}}]}}"#);
        let file = File {
            name: "c.json",
            text: text.as_bytes(),
        };
        let config = load(&[file], &Options::default()).config.unwrap();
        let names = Resolver::new(&Settings::from_config(&config).unwrap());
        let host = Address::parse(name).unwrap();
        match names.resolve(&host, 7, DomainStrategy::default()).await {
            Ok(found) => found.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
            Err(error) => error.to_string(),
        }
    }

    #[tokio::test]
    async fn fixed_answers_go_before_the_system() {
        let hosts = r#"{"a.example": "192.0.2.1", "domain:b.example": ["2001:db8::1", "192.0.2.2"],
            "c.example": "x.b.example", "keyword:loop": "loop.example", "here.example": "127.0.0.1"}"#;
        let dns = format!(r#"{{"hosts": {hosts}}}"#);
        for (name, answer) in [
            ("a.example", "192.0.2.1:7"),
            ("A.example", "192.0.2.1:7"),
            ("x.b.example", "[2001:db8::1]:7 192.0.2.2:7"),
            ("c.example", "[2001:db8::1]:7 192.0.2.2:7"),
            ("loop.example", "no address for the name loop.example"),
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
