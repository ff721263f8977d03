//! Whether questions of DNS are answered by the proxy, whomever they are sent to.

use super::{Door, Rules};
use crate::settings::{IpMatch, OutboundProtocol, Rule};

const DNS: u16 = 53;
/// One address of each kind that a client may know a DNS server of its site by.
const LOCAL_SERVERS: [&str; 5] = ["10.0.0.1", "172.16.0.1", "192.168.0.1", "fd00::1", "fe80::1"];

impl Rules<'_> {
    /// Whether what comes to port 53 of any server by this door is surely answered. Everything else that is asked of this machine
    /// or of a local network is left to them: an outbound would be refused there, or not find it.
    pub(super) fn answers(&self, door: &Door<'_>) -> bool {
        for rule in self.settings.rules.iter().filter(|rule| may_fit(rule, door)) {
            let answers = self.is_answered_by(&rule.outbound_tag);
            if !answers || fits(rule) {
                return answers;
            }
        }
        let first = self.settings.outbounds.first();
        first.is_some_and(|outbound| answers(&outbound.protocol))
    }

    fn is_answered_by(&self, tag: &str) -> bool {
        let mut outbounds = self.settings.outbounds.iter().filter(|one| one.tag == tag);
        !tag.is_empty() && outbounds.next().is_some_and(|one| answers(&one.protocol))
    }
}

/// Whether an outbound answers questions itself, or has a server of its own that does.
fn answers(outbound: &OutboundProtocol) -> bool {
    match outbound {
        OutboundProtocol::Dns(_) => true,
        OutboundProtocol::Freedom(freedom) => freedom.redirect_host.is_some(),
        _ => false,
    }
}

/// Whether a rule may fit a question to a local server that comes by this door: one about names, users or contents does not, for
/// a question has none.
fn may_fit(rule: &Rule, door: &Door<'_>) -> bool {
    let of_dns = |&(from, to): &(u16, u16)| (from..=to).contains(&DNS);
    let has_none = rule.domains.is_empty()
        && rule.users.0.is_empty()
        && rule.protocols.0.is_empty()
        && rule.attributes.0.is_empty()
        && rule.vless_routes.is_empty();
    has_none
        && (rule.ports.is_empty() || rule.ports.iter().any(of_dns))
        && (rule.networks.is_empty() || rule.networks.contains(&door.network))
        && (rule.inbound_tags.is_empty() || rule.inbound_tags.contains(&door.inbound.tag))
        && (rule.ips.is_empty() || rule.ips.iter().any(may_be_local))
}

fn may_be_local(condition: &IpMatch) -> bool {
    match condition {
        // What is in the list is not known here.
        IpMatch::NotList(_) => true,
        other => {
            let mut servers = LOCAL_SERVERS.iter().filter_map(|text| text.parse().ok());
            other.is_private_only() || servers.any(|ip| other.matches(ip))
        }
    }
}

/// Whether a rule that may fit always does.
fn fits(rule: &Rule) -> bool {
    rule.ips.is_empty()
        && rule.sources.is_empty()
        && rule.source_ports.is_empty()
        && rule.locals.is_empty()
        && rule.local_ports.is_empty()
        && rule.processes.0.is_empty()
        && rule.systems.0.is_empty()
}
