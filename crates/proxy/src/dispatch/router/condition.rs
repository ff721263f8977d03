//! The conditions of rules.

use std::collections::HashSet;

use sealway_v2ray::Network;

use crate::Error;
use crate::lists::{Addresses, Lists, Names};
use crate::program::Programs;
use crate::settings::{self, IpMatch, Protocols, Rule, UserMatch, UserMatches};

use super::{Asked, Known, USUAL_NAME};

/// A set of ports, from and to.
type Ports = Vec<(u16, u16)>;

/// A condition of a rule.
pub(crate) enum Condition {
    /// Whether this is the system it asks for.
    System(bool),
    Network(Vec<Network>),
    Port(Ports),
    SourcePort(Ports),
    LocalPort(Ports),
    VlessRoute(Ports),
    Inbound(Vec<String>),
    Protocol(Protocols),
    User(Emails),
    Attributes(settings::Attributes),
    Source(Addresses),
    Local(Addresses),
    Domain(Names),
    Address(Addresses),
    Process(Programs),
}

/// The conditions of a rule, the cheap ones first. The last two may need something found out.
pub(super) fn conditions(at: usize, rule: &Rule, lists: &Lists) -> Result<Vec<Condition>, Error> {
    let mut all = Vec::new();
    if !rule.systems.is_empty() {
        all.push(Condition::System(rule.systems.has(std::env::consts::OS)));
    }
    if !rule.networks.is_empty() {
        all.push(Condition::Network(rule.networks.clone()));
    }
    let ports: [(&Ports, fn(Ports) -> Condition); 4] = [
        (&rule.ports, Condition::Port),
        (&rule.source_ports, Condition::SourcePort),
        (&rule.local_ports, Condition::LocalPort),
        (&rule.vless_routes, Condition::VlessRoute),
    ];
    for (ports, make) in ports {
        if !ports.is_empty() {
            all.push(make(ports.clone()));
        }
    }
    if !rule.inbound_tags.is_empty() {
        all.push(Condition::Inbound(rule.inbound_tags.clone()));
    }
    if !rule.protocols.is_empty() {
        all.push(Condition::Protocol(rule.protocols.clone()));
    }
    if !rule.users.is_empty() {
        all.push(Condition::User(Emails::new(&rule.users)));
    }
    if !rule.attributes.is_empty() {
        all.push(Condition::Attributes(rule.attributes.clone()));
    }
    let addresses: [(&[IpMatch], fn(Addresses) -> Condition); 2] =
        [(&rule.sources, Condition::Source), (&rule.locals, Condition::Local)];
    for (conditions, make) in addresses {
        if !conditions.is_empty() {
            all.push(make(lists.addresses(conditions)?));
        }
    }
    if !rule.domains.is_empty() {
        let place = format!("routing.rules[{at}].domain");
        all.push(Condition::Domain(lists.names(&place, &rule.domains)?));
    }
    if !rule.ips.is_empty() {
        all.push(Condition::Address(lists.addresses(&rule.ips)?));
    }
    if !rule.processes.is_empty() {
        all.push(Condition::Process(Programs::new(&rule.processes)));
    }
    Ok(all)
}

fn text(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn has(ports: &Ports, port: Option<u16>) -> bool {
    port.is_some_and(|port| ports.iter().any(|&(low, high)| (low..=high).contains(&port)))
}

impl Condition {
    /// Whether it holds. What is not known fits no condition about it.
    pub(super) fn fits(&self, known: &Known<'_>) -> bool {
        let question = known.question;
        let (target, source, local) = (question.target, question.source, question.local);
        match self {
            Condition::System(is_this) => *is_this,
            Condition::Network(networks) => networks.contains(&target.network),
            Condition::Port(ports) => has(ports, Some(target.port)),
            Condition::SourcePort(ports) => has(ports, source.map(|from| from.port())),
            Condition::LocalPort(ports) => has(ports, local.map(|to| to.port())),
            Condition::VlessRoute(routes) => has(routes, question.vless_route),
            Condition::Inbound(tags) => tags.iter().any(|tag| tag == question.inbound),
            Condition::Protocol(protocols) => question.protocol.is_some_and(|found| protocols.matches(found)),
            Condition::User(emails) => emails.matches(question.email),
            Condition::Attributes(wanted) => wanted.matches(|name| question.attributes.get(name).map(String::as_str)),
            Condition::Source(set) => source.is_some_and(|from| set.matches_in(known.sets, from.ip())),
            Condition::Local(set) => local.is_some_and(|to| set.matches_in(known.sets, to.ip())),
            Condition::Domain(set) => known.name.is_some_and(|name| set.matches_in(known.sets, name)),
            Condition::Address(set) => known.ips.iter().any(|ip| set.matches_in(known.sets, *ip)),
            Condition::Process(programs) => known.program.is_some_and(|program| programs.matches(program)),
        }
    }

    /// Whether it holds, and for what.
    pub(super) fn ask(&self, known: &Known<'_>) -> Asked {
        let holds = self.fits(known);
        Asked {
            key: self.key(),
            holds,
            value: if holds { self.value(known) } else { String::new() },
        }
    }

    /// What it holds for.
    fn value(&self, known: &Known<'_>) -> String {
        let question = known.question;
        let (source, local) = (question.source, question.local);
        match self {
            Condition::System(_) => std::env::consts::OS.to_owned(),
            Condition::Network(_) => question.target.network.to_string(),
            Condition::Port(_) => question.target.port.to_string(),
            Condition::SourcePort(_) => text(source.map(|from| from.port())),
            Condition::LocalPort(_) => text(local.map(|to| to.port())),
            Condition::VlessRoute(_) => text(question.vless_route),
            Condition::Inbound(_) => question.inbound.to_owned(),
            Condition::Protocol(_) => text(question.protocol),
            Condition::User(_) => question.email.to_owned(),
            Condition::Attributes(_) => format!("{:?}", question.attributes),
            Condition::Source(_) => text(source.map(|from| from.ip())),
            Condition::Local(_) => text(local.map(|to| to.ip())),
            Condition::Domain(_) => text(known.name.map(|asked| asked.name())),
            Condition::Address(set) => text(known.ips.iter().find(|ip| set.matches_in(known.sets, **ip))),
            Condition::Process(_) => text(known.program.map(|program| &program.path)),
        }
    }

    /// The key of the configuration that it stands for.
    fn key(&self) -> &'static str {
        match self {
            Condition::System(_) => "localOS",
            Condition::Network(_) => "network",
            Condition::Port(_) => "port",
            Condition::SourcePort(_) => "sourcePort",
            Condition::LocalPort(_) => "localPort",
            Condition::VlessRoute(_) => "vlessRoute",
            Condition::Inbound(_) => "inboundTag",
            Condition::Protocol(_) => "protocol",
            Condition::User(_) => "user",
            Condition::Attributes(_) => "attrs",
            Condition::Source(_) => "source",
            Condition::Local(_) => "localIP",
            Condition::Domain(_) => "domain",
            Condition::Address(_) => "ip",
            Condition::Process(_) => "process",
        }
    }
}

/// E-mails of users, for many users in the time of one.
pub(crate) struct Emails {
    exact: HashSet<String>,
    rest: UserMatches,
}

impl Emails {
    fn new(matches: &UserMatches) -> Self {
        let mut exact = HashSet::new();
        let mut rest = UserMatches::default();
        for one in &matches.0 {
            match &one.value {
                UserMatch::Email(email) => {
                    exact.insert(email.clone());
                }
                _ => rest.0.push(one.clone()),
            }
        }
        Emails { exact, rest }
    }

    fn matches(&self, email: &str) -> bool {
        let mut short = [0; USUAL_NAME];
        let known = match short.get_mut(..email.len()) {
            Some(room) if email.is_ascii() => {
                room.copy_from_slice(email.as_bytes());
                room.make_ascii_lowercase();
                std::str::from_utf8(room).is_ok_and(|lower| self.exact.contains(lower))
            }
            _ => self.exact.contains(email.to_lowercase().as_str()),
        };
        !email.is_empty() && (known || !self.rest.is_empty() && self.rest.matches(email))
    }
}
