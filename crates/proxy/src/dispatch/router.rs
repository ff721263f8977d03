//! Which outbound a connection takes.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use sealway_v2ray::{Destination, Domain};

use crate::Error;
use crate::lists::{Addresses, Lists, Names};
use crate::policy::{Exempt, exempt};
use crate::settings::{IpMatch, RouteByName, Rule};

/// What is known of an HTTP request: `:method`, `:path`, and its headers by their lower-case names.
pub(crate) type Attributes = BTreeMap<String, String>;

/// What the rules look at.
pub(crate) struct Question<'a> {
    pub(crate) target: &'a Destination,
    /// A name that the target is known by besides its address.
    pub(crate) name: Option<&'a str>,
    pub(crate) source: Option<SocketAddr>,
    pub(crate) local: Option<SocketAddr>,
    pub(crate) email: &'a str,
    pub(crate) inbound: &'a str,
    /// What the connection was found to carry.
    pub(crate) protocol: Option<&'a str>,
    /// The HTTP request that it was found to begin with; empty if it is none.
    pub(crate) attributes: &'a Attributes,
}

/// What a rule decides.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    /// The number of the outbound.
    pub(crate) outbound: usize,
    /// The private addresses that the rule names.
    pub(crate) exempt: Option<Exempt>,
}

/// The rules, each with what it decides.
pub(crate) struct Router {
    rules: Vec<(Conditions, Decision)>,
    by_name: RouteByName,
}

/// A rule whose lists can be asked. Lists that are not given are `None`.
struct Conditions {
    names: Option<Names>,
    ips: Option<Addresses>,
    sources: Option<Addresses>,
    locals: Option<Addresses>,
    rest: Rule,
}

impl Conditions {
    fn new(at: usize, rule: &Rule, lists: &Lists) -> Result<Self, Error> {
        let place = |key: &str| format!("routing.rules[{at}].{key}");
        let addresses = |key, conditions: &[IpMatch]| match conditions {
            [] => Ok(None),
            some => lists.addresses(&place(key), some).map(Some),
        };
        let names = match rule.domains.as_slice() {
            [] => None,
            some => Some(lists.names(&place("domain"), some)?),
        };
        Ok(Conditions {
            names,
            ips: addresses("ip", &rule.ips)?,
            sources: addresses("source", &rule.sources)?,
            locals: addresses("localIP", &rule.locals)?,
            rest: rule.clone(),
        })
    }
}

fn port_fits(ports: &[(u16, u16)], port: u16) -> bool {
    ports.is_empty() || ports.iter().any(|&(low, high)| (low..=high).contains(&port))
}

impl Router {
    /// Checks that every rule leads somewhere, and makes sets of its lists.
    pub(crate) fn new(rules: &[Rule], by_name: RouteByName, tags: &[&str], lists: &Lists) -> Result<Self, Error> {
        let find = |(at, rule): (usize, &Rule)| {
            let outbound = tags.iter().position(|tag| !tag.is_empty() && *tag == rule.outbound_tag);
            let outbound = outbound.ok_or_else(|| {
                Error::config(
                    format!("routing.rules[{at}].outboundTag"),
                    format!("there is no outbound with the tag {:?}", rule.outbound_tag),
                )
            })?;
            let exempt = exempt(&rule.ips);
            let conditions = Conditions::new(at, rule, lists)?;
            Ok((conditions, Decision { outbound, exempt }))
        };
        let rules: Result<Vec<_>, Error> = rules.iter().enumerate().map(find).collect();
        Ok(Router { rules: rules?, by_name })
    }

    /// What the first rule that fits decides. `resolve` is asked for the addresses of a name, once at most.
    pub(crate) async fn choose<F>(&self, question: &Question<'_>, resolve: F) -> Option<&Decision>
    where
        F: AsyncFnOnce() -> Vec<IpAddr>,
    {
        let mut resolve = Some(resolve);
        let name = question.name.or(question.target.address.domain().map(Domain::as_str));
        // With a dot at its end it is the same name, and must not pass by a rule about it.
        let name = name.map(|name| name.trim_end_matches('.').to_ascii_lowercase());
        let mut ips: Vec<IpAddr> = question.target.address.ip().into_iter().collect();
        // What is dialled has an address already, whatever it is called.
        let is_name = ips.is_empty();
        for (rule, decision) in &self.rules {
            let by_ip = rule.ips.is_some();
            if by_ip
                && self.by_name == RouteByName::OnDemand
                && is_name
                && let Some(resolve) = resolve.take()
            {
                ips = resolve().await;
            }
            if rule_fits(rule, question, name.as_deref(), &ips) {
                return Some(decision);
            }
        }
        if self.by_name == RouteByName::IfNonMatch
            && is_name
            && self.rules.iter().any(|(rule, _)| rule.ips.is_some())
            && let Some(resolve) = resolve
        {
            let ips = resolve().await;
            let found = self
                .rules
                .iter()
                .find(|(rule, _)| rule_fits(rule, question, name.as_deref(), &ips));
            return found.map(|(_, decision)| decision);
        }
        None
    }
}

fn rule_fits(rule: &Conditions, question: &Question<'_>, name: Option<&str>, ips: &[IpAddr]) -> bool {
    let fits = |set: &Option<Addresses>, ip: Option<IpAddr>| {
        set.as_ref().is_none_or(|set| ip.is_some_and(|ip| set.matches(ip)))
    };
    let (target, source, local) = (question.target, question.source, question.local);
    let rest = &rule.rest;
    port_fits(&rest.ports, target.port)
        && (rest.networks.is_empty() || rest.networks.contains(&target.network))
        && (rest.source_ports.is_empty() || source.is_some_and(|from| port_fits(&rest.source_ports, from.port())))
        && (rest.local_ports.is_empty() || local.is_some_and(|to| port_fits(&rest.local_ports, to.port())))
        && (rest.inbound_tags.is_empty() || rest.inbound_tags.iter().any(|tag| tag == question.inbound))
        && (rest.users.is_empty() || rest.users.matches(question.email))
        && fits(&rule.sources, source.map(|from| from.ip()))
        && fits(&rule.locals, local.map(|to| to.ip()))
        && rule
            .names
            .as_ref()
            .is_none_or(|set| name.is_some_and(|name| set.matches(name)))
        && rule
            .ips
            .as_ref()
            .is_none_or(|set| ips.iter().any(|&ip| set.matches(ip)))
        && (rest.protocols.is_empty() || question.protocol.is_some_and(|found| rest.protocols.matches(found)))
        && (rest.attributes.is_empty()
            || rest
                .attributes
                .matches(|name| question.attributes.get(name).map(String::as_str)))
        && (rest.systems.is_empty() || rest.systems.has(std::env::consts::OS))
}

#[cfg(test)]
mod tests;
