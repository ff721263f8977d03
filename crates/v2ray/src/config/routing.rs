//! `routing`: which outbound a connection takes.

use super::context::{Cx, quoted};
use super::inbound::Inbound;
use super::json::Value;
use super::net::{DomainMatches, IpMatches, UserMatches};
use super::outbound::Outbound;
use super::problem::{At, Position, Severity};
use super::scalar::{Networks, Ports, Texts};
use super::table::{Decode, Kind, object, words};

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

object! {
    /// A rule. Every condition that is given must hold; of a list, one entry.
    struct RuleSettings: "routing.rules[]" {
        /// The name of the rule, for the reader.
        name: String = "ruleTag";
        /// The target's name.
        domains: DomainMatches = "domain" | "domains";
        /// The target's address.
        ips: IpMatches = "ip";
        /// The target's port.
        ports: Option<Ports> = "port";
        /// The kind of traffic.
        networks: Option<Networks> = "network";
        /// The client's address.
        sources: IpMatches = "source" | "sourceIP";
        /// The client's port.
        source_ports: Option<Ports> = "sourcePort";
        /// Our own address, as the client sees it.
        local_ips: IpMatches = "localIP";
        /// Our own port.
        local_ports: Option<Ports> = "localPort";
        /// The user's e-mail.
        users: UserMatches = "user";
        /// The number a VLESS client wrote into bytes 6 and 7 of its id.
        vless_routes: Option<Ports> = "vlessRoute";
        /// The tag of the inbound.
        inbound_tags: Texts = "inboundTag";
        /// The tag of the outbound to take.
        outbound_tag: Option<At<String>> = "outboundTag";
    }
    other {
        LaterError "balancerTag": "balancers";
        LaterError "protocol": "rules about sniffed protocols (`protocol`)";
        LaterError "attrs": "rules about HTTP requests (`attrs`)";
        LaterError "process": "rules about processes (`process`)";
        LaterError "localOS": "rules about the system (`localOS`)";
        LaterWarning "webhook": "`webhook`";
        Accepted "type": "It could only be \"field\".";
        Accepted "domainMatcher": "";
    }
}

object! {
    /// Which outbound a connection takes: that of the first rule that fits, or else the first outbound.
    struct RoutingSettings: "routing" {
        /// When rules about addresses make us resolve a name.
        domain_strategy: RoutingStrategy = "domainStrategy", default "\"AsIs\"";
        /// The rules in the order they are asked.
        rules: Vec<Rule> = "rules";
    }
    other {
        LaterError "balancers": "balancers";
        Accepted "domainMatcher": "";
        Gone "settings": "write what is in it directly under `routing`";
        Accepted "strategy": "It could only be \"rules\".";
    }
}

/// A rule.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
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
    /// The number a VLESS client wrote into bytes 6 and 7 of its id.
    pub vless_routes: Option<Ports>,
    /// Tags of inbounds. Empty: any inbound.
    pub inbound_tags: Vec<String>,
    /// The tag of the outbound to take.
    pub outbound_tag: String,
    /// The outbound to take: an index into [`Config::outbounds`](super::Config::outbounds).
    pub outbound: usize,
    /// Where it is configured.
    pub at: Position,
    tag_at: Position,
}

impl Decode for Rule {
    fn kind() -> Kind {
        Kind::Object(RuleSettings::TABLE)
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let before = cx.errors();
        let s = RuleSettings::decode(value, cx)?;
        let Some(tag) = s.outbound_tag else {
            // A balancer has been named already.
            if cx.errors() == before {
                cx.error(at, "the rule leads nowhere", "name an outbound: \"outboundTag\": \"…\"");
            }
            return None;
        };
        let conditions = [
            !s.domains.is_empty(),
            !s.ips.is_empty(),
            s.ports.is_some(),
            s.networks.is_some(),
            !s.sources.is_empty(),
            s.source_ports.is_some(),
            !s.local_ips.is_empty(),
            s.local_ports.is_some(),
            !s.users.is_empty(),
            s.vless_routes.is_some(),
            !s.inbound_tags.is_empty(),
        ];
        if !conditions.contains(&true) && cx.errors() == before {
            let hint = "for a rule that always fits, write \"network\": \"tcp,udp\"";
            cx.error(at, "the rule has no condition", hint);
            return None;
        }
        Some(Rule {
            name: s.name,
            domains: s.domains,
            ips: s.ips,
            ports: s.ports,
            networks: s.networks,
            sources: s.sources,
            source_ports: s.source_ports,
            local_ips: s.local_ips,
            local_ports: s.local_ports,
            users: s.users,
            vless_routes: s.vless_routes,
            inbound_tags: s.inbound_tags.iter().map(str::to_owned).collect(),
            tag_at: tag.at,
            outbound_tag: tag.value,
            outbound: 0,
            at,
        })
    }
}

/// Which outbound a connection takes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Routing {
    /// When rules about addresses make us resolve a name.
    pub domain_strategy: RoutingStrategy,
    /// The rules. The first that fits decides; if none does, the first outbound is taken.
    pub rules: Vec<Rule>,
}

impl Decode for Routing {
    fn kind() -> Kind {
        Kind::Object(RoutingSettings::TABLE)
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let s = RoutingSettings::decode(value, cx)?;
        Some(Routing {
            domain_strategy: s.domain_strategy,
            rules: s.rules,
        })
    }
}

/// What can be told only when all parts are known. `whole` says whether every inbound and outbound could be read: if
/// not, a tag that is missing may be that of one that could not.
pub(crate) fn link(routing: &mut Routing, inbounds: &[Inbound], outbounds: &[Outbound], whole: bool, cx: &mut Cx<'_>) {
    for (i, rule) in routing.rules.iter_mut().enumerate() {
        let found = outbounds
            .iter()
            .position(|o| o.tag == rule.outbound_tag && !o.tag.is_empty());
        rule.outbound = found.unwrap_or_default();
        if found.is_none() && whole {
            let tags = outbounds.iter().map(|o| o.tag.as_str());
            let hint = near_tag(&rule.outbound_tag, tags);
            let text = format!("no outbound has the tag {}", quoted(&rule.outbound_tag));
            rule_path(i, cx, |cx| {
                cx.within("outboundTag", |cx| cx.error(rule.tag_at, text, hint))
            });
        }
        for tag in &rule.inbound_tags {
            if whole && !inbounds.iter().any(|inbound| inbound.tag == *tag) {
                let hint = near_tag(tag, inbounds.iter().map(|inbound| inbound.tag.as_str()));
                let text = format!("no inbound has the tag {}", quoted(tag));
                rule_path(i, cx, |cx| cx.within("inboundTag", |cx| cx.warn(rule.at, text, hint)));
            }
        }
    }
    // Names from sniffing would decide such rules for clients that send addresses.
    let by_name = routing.rules.iter().any(|rule| !rule.domains.is_empty());
    for (i, inbound) in inbounds
        .iter()
        .enumerate()
        .filter(|(_, inbound)| inbound.sniffing.enabled.value)
    {
        let (severity, what) = match by_name {
            true => (
                Severity::Error,
                "`sniffing`; rules about domains would miss clients that send addresses",
            ),
            false => (
                Severity::Warning,
                "`sniffing`; targets are dialled as the client gives them",
            ),
        };
        let at = inbound.sniffing.enabled.at;
        cx.within("inbounds", |cx| {
            cx.at_index(i, |cx| cx.within("sniffing", |cx| cx.later(severity, at, what)))
        });
    }
}

fn rule_path<T>(i: usize, cx: &mut Cx<'_>, run: impl FnOnce(&mut Cx<'_>) -> T) -> T {
    cx.within("routing", |cx| cx.within("rules", |cx| cx.at_index(i, run)))
}

fn near_tag<'t>(tag: &str, tags: impl Iterator<Item = &'t str> + Clone) -> String {
    if let Some(near) = super::context::nearest(tag, tags.clone()) {
        return format!("did you mean {}?", quoted(near));
    }
    let known: Vec<String> = tags.filter(|tag| !tag.is_empty()).take(8).map(quoted).collect();
    match known.is_empty() {
        true => "none has a tag".into(),
        false => format!("the tags are {}", known.join(", ")),
    }
}
