//! Settings in pieces that can be told from those before, and shared with them.

use std::sync::Arc;

use sealway_v2ray::config::GeoList;

use crate::geo::Kind;
use crate::settings::{DomainMatch, Inbound, IpMatch, Outbound, OutboundProtocol, Rule, Settings};

/// What an engine is made of. Cheap to clone; pieces that are the same are the same allocation.
#[derive(Clone, Default)]
pub(crate) struct Plan {
    pub(crate) inbounds: Vec<Arc<Inbound>>,
    pub(crate) outbounds: Vec<Arc<Outbound>>,
    pub(crate) rules: Vec<Arc<Rule>>,
    /// The first outbound was removed, and the next that is added takes its place. Until then there is no default.
    pub(crate) headless: bool,
    /// Everything besides the above.
    pub(crate) rest: Arc<Settings>,
}

impl Plan {
    pub(crate) fn of(mut settings: Settings) -> Plan {
        Plan {
            inbounds: settings.inbounds.drain(..).map(Arc::new).collect(),
            outbounds: settings.outbounds.drain(..).map(Arc::new).collect(),
            rules: settings.rules.drain(..).map(Arc::new).collect(),
            headless: false,
            rest: Arc::new(settings),
        }
    }

    /// The same, with those pieces of the plan before that are equal.
    pub(crate) fn like(mut self, before: &Plan) -> Plan {
        share(&mut self.inbounds, &before.inbounds);
        share(&mut self.outbounds, &before.outbounds);
        share(&mut self.rules, &before.rules);
        self
    }

    /// Every list of a geo file that is named, by whomever.
    pub(crate) fn lists(&self) -> Vec<(Kind, &GeoList)> {
        let (mut names, mut ips) = (Vec::<&DomainMatch>::new(), Vec::<&IpMatch>::new());
        for rule in &self.rules {
            names.extend(&rule.domains);
            ips.extend(rule.ips.iter().chain(&rule.sources).chain(&rule.locals));
        }
        for sniffing in self.inbounds.iter().filter_map(|inbound| inbound.sniffing.as_ref()) {
            names.extend(&sniffing.domains_excluded);
            ips.extend(&sniffing.ips_excluded);
        }
        for outbound in &self.outbounds {
            match &outbound.protocol {
                OutboundProtocol::Freedom(freedom) => ips.extend(freedom.final_rules.iter().flat_map(|rule| &rule.ips)),
                OutboundProtocol::Dns(dns) => {
                    let domains = dns.rules.iter().flat_map(|rule| &rule.domains.0);
                    names.extend(domains.map(|one| &one.value));
                }
                _ => {}
            }
        }
        names.extend(self.rest.dns.hosts.entries().iter().map(|(condition, _)| condition));
        for server in &self.rest.dns.servers {
            names.extend(server.domains.0.iter().map(|one| &one.value));
            let both = server.expected_ips.ips.0.iter().chain(&server.unexpected_ips.ips.0);
            ips.extend(both.map(|one| &one.value));
        }
        let names = names.into_iter().filter_map(|one| match one {
            DomainMatch::List(list) => Some((Kind::Names, list)),
            _ => None,
        });
        let ips = ips.into_iter().filter_map(|one| match one {
            IpMatch::List(list) | IpMatch::NotList(list) => Some((Kind::Networks, list)),
            _ => None,
        });
        names.chain(ips).collect()
    }

    /// Whether nothing comes to a rule now: it is about inbounds, and none of them is there.
    pub(super) fn is_idle(&self, rule: &Rule) -> bool {
        let inbounds = self.inbounds.iter().map(|inbound| &inbound.tag);
        let queries = self.rest.dns.servers.iter().map(|server| &server.tag);
        !rule.inbound_tags.is_empty() && !inbounds.chain(queries).any(|tag| rule.inbound_tags.contains(tag))
    }

    /// The mark of the first outbound with one.
    pub(super) fn mark(&self) -> Option<u32> {
        self.outbounds.iter().find_map(|one| one.transport.socket.mark)
    }
}

/// Takes what is equal from those before. Most stand where they stood.
fn share<T: PartialEq>(now: &mut [Arc<T>], before: &[Arc<T>]) {
    for (at, one) in now.iter_mut().enumerate() {
        if before.get(at).is_some_and(|old| Arc::ptr_eq(old, one)) {
            continue;
        }
        let same = before.get(at).filter(|old| *old == one);
        if let Some(same) = same.or_else(|| before.iter().find(|old| *old == one)) {
            *one = Arc::clone(same);
        }
    }
}
