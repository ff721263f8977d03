//! `routing`: which outbound a connection takes.

use super::balancer::Balancer;
use super::conditions::{Attributes, Processes, Protocols, Systems};
pub(crate) use super::context::near_tag;
use super::context::{Cx, quoted};
use super::net::{DomainMatches, IpMatches, UserMatches};
use super::ports::{Networks, Ports};
use super::scalar::{Part, Texts};
use super::schema::Kind;
use super::table::{Decode, FromKeys, object, words};
use crate::json::Value;
use crate::problem::{At, Position};

words! {
    /// When rules about addresses make us resolve a name.
    pub enum RoutingStrategy {
        /// Never: such rules are about addresses only.
        AsIs = "AsIs" | "";
        /// When no rule fits the name; the rules are then asked again with its addresses.
        IpIfNonMatch = "IPIfNonMatch";
        /// When the first rule about addresses is reached.
        IpOnDemand = "IPOnDemand";
    }
}

#[allow(clippy::derivable_impls, reason = "the macro derives none")]
impl Default for RoutingStrategy {
    fn default() -> Self {
        RoutingStrategy::AsIs
    }
}

object! {
    /// A rule. Every condition that is given must hold; of a list, one entry.
    struct RuleSettings: "routing.rules[]" {
        /// The name of the rule, for the reader.
        name: String = "ruleTag";
        /// The target's name.
        domains: Part<DomainMatches> = "domain" | "domains";
        /// The target's address.
        ips: Part<IpMatches> = "ip";
        /// The target's port.
        ports: Part<Option<Ports>> = "port";
        /// The kind of traffic.
        networks: Part<Option<Networks>> = "network";
        /// The client's address.
        sources: Part<IpMatches> = "source" | "sourceIP";
        /// The client's port.
        source_ports: Part<Option<Ports>> = "sourcePort";
        /// Our own address, as the client sees it.
        local_ips: Part<IpMatches> = "localIP";
        /// Our own port.
        local_ports: Part<Option<Ports>> = "localPort";
        /// The user's e-mail.
        users: Part<UserMatches> = "user";
        /// The tag of the inbound.
        inbound_tags: Part<Texts> = "inboundTag";
        /// What the connection was found to carry. `http` stands for all of HTTP.
        protocols: Part<Protocols> = "protocol";
        /// The HTTP request that the connection was found to begin with. Every attribute must fit.
        attributes: Part<Attributes> = "attrs";
        /// The number in bytes 6 and 7 of the id that a client of VLESS sent.
        vless_routes: Part<Option<Ports>> = "vlessRoute";
        /// The program on this machine that connected. On Linux only; elsewhere no program fits.
        processes: Part<Processes> = "process";
        /// The system that this program runs on.
        systems: Part<Systems> = "localOS";
        /// The tag of the outbound to take.
        outbound_tag: Option<At<String>> = "outboundTag";
        /// The tag of the balancer that chooses the outbound.
        balancer_tag: Option<At<String>> = "balancerTag";
    }
    other {
        LaterWarning "webhook": "telling somebody by HTTP that a rule decided (`webhook`)";
        Accepted "type": "It could only be \"field\".";
        Accepted "domainMatcher": "";
        Accepted "remarks": "It is a name for the reader.";
    }
}

object! {
    /// Which outbound a connection takes: that of the first rule that fits, or else the first outbound.
    pub(crate) struct RoutingSettings: "routing" {
        /// When rules about addresses make us resolve a name.
        domain_strategy: RoutingStrategy = "domainStrategy", default "\"AsIs\"";
        /// What chooses one of several outbounds.
        balancers: Vec<Balancer> = "balancers";
        /// The rules in the order they are asked.
        rules: Vec<Rule> = "rules";
    }
    other {
        Accepted "domainMatcher": "";
        Gone "settings": "write what is in it directly under `routing`";
        Accepted "strategy": "It could only be \"rules\".";
    }
}

/// Where a rule leads.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum RuleTarget {
    /// To the outbound with this tag.
    Outbound(String),
    /// To the balancer with this tag.
    Balancer(String),
}

/// A rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// The name of the rule. Empty: none.
    pub name: String,
    /// The target's name. Empty: any target.
    pub domains: DomainMatches,
    /// The target's address. Empty: any target.
    pub ips: IpMatches,
    /// The target's port.
    pub ports: Option<Ports>,
    /// The kind of traffic.
    pub networks: Option<Networks>,
    /// The client's address. Empty: any client.
    pub sources: IpMatches,
    /// The client's port.
    pub source_ports: Option<Ports>,
    /// Our own address. Empty: any.
    pub local_ips: IpMatches,
    /// Our own port.
    pub local_ports: Option<Ports>,
    /// The user's e-mail. Empty: any user, or none.
    pub users: UserMatches,
    /// Tags of inbounds. Empty: any inbound.
    pub inbound_tags: Vec<String>,
    /// What the connection was found to carry. Empty: anything.
    pub protocols: Protocols,
    /// The HTTP request that the connection was found to begin with. Empty: anything.
    pub attributes: Attributes,
    /// The number in bytes 6 and 7 of the id that a client of VLESS sent.
    pub vless_routes: Option<Ports>,
    /// The program on this machine that connected. Empty: any.
    pub processes: Processes,
    /// The system that this program runs on. Empty: any.
    pub systems: Systems,
    /// Where it leads.
    pub to: RuleTarget,
    /// Where it is configured.
    pub at: Position,
}

impl Decode for Rule {
    fn kind() -> Kind {
        Kind::Object(RuleSettings::TABLE)
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let before = cx.errors();
        let s = RuleSettings::decode(value, cx)?;
        // What has failed has been told, and so must be what is wrong beside it.
        let failed = cx.errors() > before;
        if let (Some(outbound), Some(balancer)) = (&s.outbound_tag, &s.balancer_tag) {
            let text = format!("`outboundTag` counts and leads to {}", quoted(outbound));
            cx.warn_in("balancerTag", balancer.at, text, "remove one of them");
        }
        let (key, tag, to): (_, _, fn(String) -> RuleTarget) = match (s.outbound_tag, s.balancer_tag) {
            (Some(tag), _) => ("outboundTag", tag, RuleTarget::Outbound),
            (None, Some(tag)) => ("balancerTag", tag, RuleTarget::Balancer),
            (None, None) => {
                if !failed {
                    cx.error(at, "the rule leads nowhere", "name an outbound: \"outboundTag\": \"…\"");
                }
                return None;
            }
        };
        let (kind, known) = match key {
            "outboundTag" => {
                let service = cx.tags.api.as_ref() == Some(&tag.value) || cx.tags.services.contains(&tag);
                ("outbound", service || cx.tags.outbounds.contains_key(tag.as_str()))
            }
            _ => ("balancer", cx.tags.balancers.contains_key(tag.as_str())),
        };
        // Nothing comes by an inbound that is not there. If one is added while the program runs, who comes by it is refused.
        let inbounds = s.inbound_tags.0.as_ref().filter(|tags| !tags.is_empty());
        let idle = key == "outboundTag" && inbounds.is_some_and(|tags| !tags.iter().any(|tag| cx.tags.is_inbound(tag)));
        if !known && idle {
            let text = format!(
                "no outbound has the tag {}, and no inbound one of the rule's",
                quoted(&tag)
            );
            cx.warn_in(
                key,
                tag.at,
                text,
                "the rule leads nobody anywhere: correct its tags, or take it out",
            );
        } else if !known && cx.is_full() {
            cx.error(tag.at, "", "");
        } else if !known {
            let text = format!("no {kind} has the tag {}", quoted(&tag));
            let hint = match kind {
                "outbound" => near_tag(&tag, cx.tags.outbounds.keys()),
                _ => near_tag(&tag, cx.tags.balancers.keys()),
            };
            cx.error_in(key, tag.at, text, hint);
        }
        for name in s.inbound_tags.0.iter().flat_map(|tags| &tags.0) {
            if !cx.tags.is_inbound(name) && !cx.is_full() {
                let text = format!("no inbound has the tag {}", quoted(name));
                let hint = near_tag(name, cx.tags.inbounds.keys());
                cx.warn_in("inboundTag", name.at, text, hint);
            }
        }
        let rule = Rule {
            name: s.name,
            domains: s.domains.0?,
            ips: s.ips.0?,
            ports: s.ports.0?,
            networks: s.networks.0?,
            sources: s.sources.0?,
            source_ports: s.source_ports.0?,
            local_ips: s.local_ips.0?,
            local_ports: s.local_ports.0?,
            users: s.users.0?,
            inbound_tags: s.inbound_tags.0?.iter().map(str::to_owned).collect(),
            protocols: s.protocols.0?,
            attributes: s.attributes.0?,
            vless_routes: s.vless_routes.0?,
            processes: s.processes.0?,
            systems: s.systems.0?,
            to: to(tag.value),
            at,
        };
        if !known && !idle {
            return None;
        }
        if rule.is_without_condition() && !failed {
            let hint = "for a rule that always fits, write \"network\": \"tcp,udp\"";
            cx.error(at, "the rule has no condition", hint);
            return None;
        }
        Some(rule)
    }
}

impl Rule {
    fn is_without_condition(&self) -> bool {
        self.domains.is_empty()
            && self.ips.is_empty()
            && self.ports.is_none()
            && self.networks.is_none()
            && self.sources.is_empty()
            && self.source_ports.is_none()
            && self.local_ips.is_empty()
            && self.local_ports.is_none()
            && self.users.is_empty()
            && self.inbound_tags.is_empty()
            && self.protocols.is_empty()
            && self.attributes.is_empty()
            && self.vless_routes.is_none()
            && self.processes.is_empty()
            && self.systems.is_empty()
    }
}

/// Which outbound a connection takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Routing {
    /// When rules about addresses make us resolve a name.
    pub domain_strategy: RoutingStrategy,
    /// What rules may lead to besides outbounds.
    pub balancers: Vec<Balancer>,
    /// The rules. The first that fits decides; if none does, the first outbound is taken.
    pub rules: Vec<Rule>,
}

impl FromKeys for Routing {
    type Keys = RoutingSettings;

    fn from_keys(s: RoutingSettings, _: Position, _: &mut Cx<'_>) -> Option<Self> {
        Some(Routing {
            domain_strategy: s.domain_strategy,
            balancers: s.balancers,
            rules: s.rules,
        })
    }
}
