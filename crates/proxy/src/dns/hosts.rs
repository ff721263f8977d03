//! Fixed answers.

use std::collections::HashMap;
use std::net::IpAddr;

use sealway_v2ray::Address;

use crate::Error;
use crate::lists::{Lists, Names};
use crate::settings::{self, DomainMatch, HostAnswer};

/// Names that may stand for each other one after another; more are taken for a circle.
const MAX_NAMES: usize = 8;
/// The system's fixed answers, and how much of them is read.
const SYSTEM: &str = "/etc/hosts";
const MAX_SYSTEM: usize = 4 << 20;

/// A fixed answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Fixed {
    /// These addresses.
    Ips(Vec<IpAddr>),
    /// Those of this name, for which there is no fixed answer.
    Name(String),
    /// This response code.
    Code(u16),
    /// Names stand for each other without end.
    Circle,
}

/// Fixed answers, by exact names and by conditions. The first of the file counts.
pub(super) struct Hosts {
    exact: HashMap<String, (usize, HostAnswer)>,
    others: Vec<(usize, Names, HostAnswer)>,
    system: HashMap<String, Vec<IpAddr>>,
}

impl Hosts {
    pub(super) fn new(settings: &settings::Dns, lists: &Lists) -> Result<Hosts, Error> {
        let mut hosts = Hosts {
            exact: HashMap::new(),
            others: Vec::new(),
            system: HashMap::new(),
        };
        for (at, (condition, answer)) in settings.hosts.entries().iter().enumerate() {
            match condition {
                DomainMatch::Full(name) => {
                    hosts.exact.entry(name.clone()).or_insert((at, answer.clone()));
                }
                other => {
                    let names = lists.names("dns.hosts", std::slice::from_ref(other))?;
                    hosts.others.push((at, names, answer.clone()));
                }
            }
        }
        if settings.use_system_hosts {
            match std::fs::read(SYSTEM) {
                Ok(bytes) => {
                    hosts.system = read_system(&String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_SYSTEM)]))
                }
                Err(error) => tracing::warn!("{SYSTEM} cannot be read: {error}"),
            }
        }
        Ok(hosts)
    }

    fn entry(&self, name: &str) -> Option<&HostAnswer> {
        let exact = self.exact.get(name);
        let before = exact.map_or(usize::MAX, |(at, _)| *at);
        let others = self.others.iter().take_while(|(at, ..)| *at < before);
        let other = others.into_iter().find(|(_, condition, _)| condition.matches(name));
        other.map(|(.., answer)| answer).or(exact.map(|(_, answer)| answer))
    }

    /// The answer for a name, lower-case and without a dot at its end.
    pub(super) fn answer(&self, name: &str) -> Option<Fixed> {
        let mut other: Option<String> = None;
        for _ in 0..MAX_NAMES {
            let name = other.as_deref().unwrap_or(name);
            let Some(entry) = self.entry(name) else {
                let system = self.system.get(name).map(|ips| Fixed::Ips(ips.clone()));
                return system.or(other.map(Fixed::Name));
            };
            match entry {
                HostAnswer::Code(code) => return Some(Fixed::Code(*code)),
                HostAnswer::Addresses(addresses) => match addresses.as_slice() {
                    [alias @ Address::Domain(_)] => {
                        other = Some(alias.to_string().trim_end_matches('.').to_ascii_lowercase());
                    }
                    addresses => return Some(Fixed::Ips(addresses.iter().filter_map(Address::ip).collect())),
                },
            }
        }
        Some(Fixed::Circle)
    }
}

/// Reads hosts(5). What is not understood is left out.
fn read_system(text: &str) -> HashMap<String, Vec<IpAddr>> {
    let mut hosts: HashMap<String, Vec<IpAddr>> = HashMap::new();
    for line in text.lines() {
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let Some(Ok(ip)) = words.next().map(str::parse) else {
            continue;
        };
        for name in words {
            let ips = hosts
                .entry(name.trim_end_matches('.').to_ascii_lowercase())
                .or_default();
            if !ips.contains(&ip) {
                ips.push(ip);
            }
        }
    }
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_file_is_read() {
        let hosts = read_system(
            "127.0.0.1 localhost\n# no 1.1.1.1 x\n::1 LOCALHOST other. # more\n\nnonsense line\n127.0.0.1\tlocalhost",
        );
        let ips = |name: &str| {
            hosts
                .get(name)
                .map(|ips| ips.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(ips("localhost").as_deref(), Some("127.0.0.1 ::1"));
        assert_eq!(ips("other").as_deref(), Some("::1"));
        assert_eq!(hosts.len(), 2);
    }
}
