//! Rules and balancers.

use sealway_proxy::settings::{Balancer, DomainMatch, IpMatch, LeastLoad, ProcessMatch, Rule, UserMatch};
use sealway_v2ray::Network;

use super::super::{Refused, typed, unsupported};
use crate::proto::net::{self, PortList, PortRange};
use crate::proto::xray::app::router::domain::Type;
use crate::proto::xray::app::router::routing_rule::TargetTag;
use crate::proto::xray::app::router::{BalancingRule, Cidr, Config, Domain, GeoIp, RoutingRule};
use crate::proto::{TypedMessage, ip_bytes};

/// Rules and balancers in the form that all versions read.
pub(crate) fn rules(rules: &[Rule], balancers: &[Balancer]) -> Result<TypedMessage, Refused> {
    let config = Config {
        rule: rules.iter().map(rule).collect::<Result<_, _>>()?,
        balancing_rule: balancers.iter().map(balancer).collect::<Result<_, _>>()?,
        ..Default::default()
    };
    Ok(typed("xray.app.router.Config", &config))
}

fn rule(given: &Rule) -> Result<RoutingRule, Refused> {
    let to = match given.outbound_tag.as_str() {
        "" => TargetTag::BalancingTag(given.balancer_tag.clone()),
        tag => TargetTag::Tag(tag.to_owned()),
    };
    let domain = given.domains.iter().map(domain).collect::<Result<_, _>>()?;
    let users = given.users.0.iter().map(|one| match &one.value {
        UserMatch::Email(email) => email.clone(),
        UserMatch::Regexp(pattern) => format!("regexp:{}", pattern.as_str()),
    });
    let processes = given.processes.0.iter().map(|one| match one {
        ProcessMatch::Name(text) | ProcessMatch::Path(text) | ProcessMatch::Folder(text) => Ok(text.clone()),
        _ => unsupported("such a condition about programs in compiled form"),
    });
    let networks = given.networks.iter().map(|network| match network {
        Network::Tcp => net::Network::Tcp.into(),
        Network::Udp => net::Network::Udp.into(),
    });
    let attributes = given.attributes.0.iter();
    Ok(RoutingRule {
        rule_tag: given.name.clone(),
        domain,
        geoip: networks_of(&given.ips)?,
        source_geoip: networks_of(&given.sources)?,
        local_geoip: networks_of(&given.locals)?,
        port_list: ports(&given.ports),
        source_port_list: ports(&given.source_ports),
        local_port_list: ports(&given.local_ports),
        vless_route_list: ports(&given.vless_routes),
        networks: networks.collect(),
        user_email: users.collect(),
        inbound_tag: given.inbound_tags.clone(),
        protocol: given.protocols.0.clone(),
        attributes: attributes
            .map(|(name, value)| (name.clone(), value.as_str().to_owned()))
            .collect(),
        process: processes.collect::<Result<_, _>>()?,
        local_os: given.systems.0.clone(),
        webhook: None,
        target_tag: Some(to),
    })
}

fn ports(given: &[(u16, u16)]) -> Option<PortList> {
    let range = given.iter().map(|&(from, to)| PortRange {
        from: from.into(),
        to: to.into(),
    });
    (!given.is_empty()).then(|| PortList { range: range.collect() })
}

fn domain(given: &DomainMatch) -> Result<Vec<u8>, Refused> {
    let (kind, value) = match given {
        DomainMatch::Keyword(text) => (Type::Plain, text.as_str()),
        DomainMatch::Regexp(pattern) => (Type::Regex, pattern.as_str()),
        DomainMatch::Domain(name) => (Type::Domain, name.as_str()),
        DomainMatch::Full(name) => (Type::Full, name.as_str()),
        _ => return unsupported("lists of geo files, and `dotless:`, in compiled form"),
    };
    let domain = Domain {
        r#type: kind.into(),
        value: value.to_owned(),
        attribute: Vec::new(),
    };
    Ok(prost::Message::encode_to_vec(&domain))
}

/// Networks as one list, and each one that does not count as a list of its own.
fn networks_of(given: &[IpMatch]) -> Result<Vec<Vec<u8>>, Refused> {
    let mut list = GeoIp::default();
    let mut lists = Vec::new();
    for one in given {
        let (net, reverse_match) = match one {
            IpMatch::Net(net) => (net, false),
            IpMatch::NotNet(net) => (net, true),
            _ => return unsupported("lists of geo files in compiled form"),
        };
        let cidr = Cidr {
            ip: ip_bytes(net.addr()),
            prefix: net.prefix_len().into(),
        };
        match reverse_match {
            false => list.cidr.push(cidr),
            true => lists.push(GeoIp {
                cidr: vec![cidr],
                reverse_match,
                ..Default::default()
            }),
        }
    }
    if !list.cidr.is_empty() {
        lists.insert(0, list);
    }
    Ok(lists.iter().map(prost::Message::encode_to_vec).collect())
}

fn balancer(given: &Balancer) -> Result<BalancingRule, Refused> {
    if given.least_load != LeastLoad::default() {
        return unsupported("settings of a strategy in compiled form");
    }
    Ok(BalancingRule {
        tag: given.tag.clone(),
        outbound_selector: given.selector.clone(),
        strategy: given.kind.as_str().to_owned(),
        strategy_settings: None,
        fallback_tag: given.fallback.clone(),
    })
}
