//! Which outbound a connection takes.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use sealway_v2ray::{Address, Destination};

use crate::Error;
use crate::policy::{Exempt, exempt};
use crate::settings::{RouteByName, Rule};

/// What is known of an HTTP request: `:method`, `:path`, and its headers by their lower-case names.
pub(crate) type Attributes = BTreeMap<String, String>;

/// What the rules look at.
pub(crate) struct Question<'a> {
    pub(crate) target: &'a Destination,
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
    rules: Vec<(Rule, Decision)>,
    by_name: RouteByName,
}

fn port_fits(ports: &[(u16, u16)], port: u16) -> bool {
    ports.is_empty() || ports.iter().any(|&(low, high)| (low..=high).contains(&port))
}

impl Router {
    /// Checks that every rule leads somewhere.
    pub(crate) fn new(rules: &[Rule], by_name: RouteByName, tags: &[&str]) -> Result<Self, Error> {
        let find = |(at, rule): (usize, &Rule)| {
            let outbound = tags.iter().position(|tag| !tag.is_empty() && *tag == rule.outbound_tag);
            let outbound = outbound.ok_or_else(|| {
                Error::config(
                    format!("routing.rules[{at}].outboundTag"),
                    format!("there is no outbound with the tag {:?}", rule.outbound_tag),
                )
            })?;
            let exempt = exempt(&rule.ips);
            Ok((rule.clone(), Decision { outbound, exempt }))
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
        let name = match &question.target.address {
            // With a dot at its end it is the same name, and must not pass by a rule about it.
            Address::Domain(domain) => Some(domain.as_str().trim_end_matches('.').to_ascii_lowercase()),
            _ => None,
        };
        let mut ips: Vec<IpAddr> = question.target.address.ip().into_iter().collect();
        for (rule, decision) in &self.rules {
            let by_ip = !rule.ips.is_empty();
            if by_ip
                && self.by_name == RouteByName::OnDemand
                && name.is_some()
                && let Some(resolve) = resolve.take()
            {
                ips = resolve().await;
            }
            if rule_fits(rule, question, name.as_deref(), &ips) {
                return Some(decision);
            }
        }
        if self.by_name == RouteByName::IfNonMatch
            && name.is_some()
            && self.rules.iter().any(|(rule, _)| !rule.ips.is_empty())
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

fn rule_fits(rule: &Rule, question: &Question<'_>, name: Option<&str>, ips: &[IpAddr]) -> bool {
    let target = question.target;
    (rule.domains.is_empty() || name.is_some_and(|name| rule.domains.iter().any(|set| set.matches(name))))
        && (rule.ips.is_empty() || ips.iter().any(|&ip| rule.ips.iter().any(|set| set.matches(ip))))
        && port_fits(&rule.ports, target.port)
        && (rule.networks.is_empty() || rule.networks.contains(&target.network))
        && (rule.sources.is_empty()
            || question
                .source
                .is_some_and(|from| rule.sources.iter().any(|set| set.matches(from.ip()))))
        && (rule.source_ports.is_empty()
            || question
                .source
                .is_some_and(|from| port_fits(&rule.source_ports, from.port())))
        && (rule.locals.is_empty()
            || question
                .local
                .is_some_and(|to| rule.locals.iter().any(|set| set.matches(to.ip()))))
        && (rule.local_ports.is_empty() || question.local.is_some_and(|to| port_fits(&rule.local_ports, to.port())))
        && (rule.users.is_empty() || rule.users.matches(question.email))
        && (rule.inbound_tags.is_empty() || rule.inbound_tags.iter().any(|tag| tag == question.inbound))
        && (rule.protocols.is_empty() || question.protocol.is_some_and(|found| rule.protocols.matches(found)))
        && (rule.attributes.is_empty()
            || rule
                .attributes
                .matches(|name| question.attributes.get(name).map(String::as_str)))
        && (rule.systems.is_empty() || rule.systems.has(std::env::consts::OS))
}

#[cfg(test)]
mod tests;
