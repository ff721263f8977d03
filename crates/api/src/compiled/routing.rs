//! Rules and balancers.

use std::collections::BTreeSet;

use prost::Message;
use serde_json::{Value, json};

use super::json::{Keys, ip, networks, ports};
use super::{Refused, open, unsupported};
use crate::describe;
use crate::proto::xray::app::router::config::DomainStrategy;
use crate::proto::xray::app::router::domain::Type;
use crate::proto::xray::app::router::routing_rule::TargetTag;
use crate::proto::xray::app::router::{
    BalancingRule, Cidr, CidrRule, Config, DomainRule, GeoIp, IpRule, RoutingRule, StrategyLeastLoadConfig,
    domain_rule, ip_rule,
};
use crate::proto::{TypedMessage, canonical};

/// Rules and balancers as `config.json` has them.
pub(super) fn read(compiled: &TypedMessage) -> Result<(Vec<Value>, Vec<Value>), Refused> {
    if canonical(&compiled.r#type) != "xray.app.router.Config" {
        return unsupported(format!(
            "the type {:?} in place of xray.app.router.Config",
            compiled.r#type
        ));
    }
    let config: Config = open(compiled)?;
    if DomainStrategy::try_from(config.domain_strategy).is_err() {
        return unsupported(format!("the domain strategy {}", config.domain_strategy));
    }
    let rules = config.rule.iter().map(rule).collect::<Result<Vec<_>, _>>()?;
    let balancers = config
        .balancing_rule
        .iter()
        .map(balancer)
        .collect::<Result<Vec<_>, _>>()?;
    Ok((rules, balancers))
}

/// A configuration with these rules and balancers, and behind them with whatever they lead to.
pub(super) fn document(rules: Vec<Value>, mut balancers: Vec<Value>) -> Value {
    let tags = |key: &str, list: &[Value]| -> BTreeSet<String> {
        let tags = list.iter().filter_map(|one| one[key].as_str());
        tags.map(str::to_owned).collect()
    };
    let known = tags("tag", &balancers);
    let missing = tags("balancerTag", &rules)
        .into_iter()
        .filter(|tag| !known.contains(tag));
    balancers.extend(missing.map(|tag| json!({ "tag": tag, "selector": ["-"] })));
    let mut outbounds = tags("outboundTag", &rules);
    outbounds.extend(tags("fallbackTag", &balancers));
    // A balancer is told apart from a mistake by an outbound that it could choose.
    let selectors = balancers
        .iter()
        .flat_map(|one| one["selector"].as_array().into_iter().flatten());
    outbounds.extend(
        selectors
            .filter_map(Value::as_str)
            .filter(|tag| !tag.is_empty())
            .map(str::to_owned),
    );
    let outbounds = outbounds
        .iter()
        .map(|tag| json!({ "tag": tag, "protocol": "blackhole" }));
    let outbounds: Vec<_> = std::iter::once(json!({ "protocol": "blackhole" }))
        .chain(outbounds)
        .collect();
    json!({
        "inbounds": [],
        "outbounds": outbounds,
        "observatory": { "subjectSelector": ["-"] },
        "routing": { "rules": rules, "balancers": balancers },
    })
}

fn rule(given: &RoutingRule) -> Result<Value, Refused> {
    let mut keys = Keys::default();
    match &given.target_tag {
        Some(TargetTag::Tag(tag)) => keys.put("outboundTag", tag.as_str()),
        Some(TargetTag::BalancingTag(tag)) => keys.put("balancerTag", tag.as_str()),
        None => &mut keys,
    };
    if given.webhook.is_some() {
        return unsupported("webhook of xray.app.router.RoutingRule");
    }
    let domains = given
        .domain
        .iter()
        .map(|one| domain(one))
        .collect::<Result<Vec<_>, _>>()?;
    let all = |list: &[Vec<u8>]| -> Result<Vec<String>, Refused> {
        let lists = list.iter().map(|one| ips(one)).collect::<Result<Vec<_>, _>>()?;
        Ok(lists.concat())
    };
    keys.text("ruleTag", &given.rule_tag)
        .list("domain", &domains)
        .list("ip", &all(&given.geoip)?)
        .list("source", &all(&given.source_geoip)?)
        .list("localIP", &all(&given.local_geoip)?)
        .list("network", &networks(&given.networks)?)
        .list("user", &given.user_email)
        .list("inboundTag", &given.inbound_tag)
        .list("protocol", &given.protocol)
        .list("process", &given.process)
        .list("localOS", &given.local_os);
    for (key, list) in [
        ("port", &given.port_list),
        ("sourcePort", &given.source_port_list),
        ("localPort", &given.local_port_list),
        ("vlessRoute", &given.vless_route_list),
    ] {
        keys.text(key, &list.as_ref().map(ports).unwrap_or_default());
    }
    if !given.attributes.is_empty() {
        keys.put("attrs", json!(given.attributes));
    }
    Ok(keys.done())
}

/// The later of two forms, if it is that: a text or an address in the place of a message has fields that no message has.
fn either<M: Message + Default>(kind: &str, bytes: &[u8]) -> Option<M> {
    read_as(kind, bytes).ok()
}

fn read_as<M: Message + Default>(kind: &str, bytes: &[u8]) -> Result<M, Refused> {
    describe::check(kind, bytes).map_err(Refused::Unsupported)?;
    M::decode(bytes).map_err(|error| Refused::Broken(format!("{kind}: {error}")))
}

/// A condition on names: a `DomainRule`, or a `Domain` as earlier versions have it.
pub(super) fn domain(bytes: &[u8]) -> Result<String, Refused> {
    let domain = match either::<DomainRule>("xray.app.router.DomainRule", bytes).and_then(|rule| rule.value) {
        Some(domain_rule::Value::Geosite(site)) => {
            let attrs = match site.attrs.as_str() {
                "" => String::new(),
                attrs => format!("@{attrs}"),
            };
            return Ok(match site.file.as_str() {
                "" | "geosite.dat" => format!("geosite:{}{attrs}", site.code),
                file => format!("ext:{file}:{}{attrs}", site.code),
            });
        }
        Some(domain_rule::Value::Custom(domain)) => domain,
        None => read_as("xray.app.router.Domain", bytes)?,
    };
    let kind = match Type::try_from(domain.r#type) {
        Ok(Type::Plain) => "keyword",
        Ok(Type::Regex) => "regexp",
        Ok(Type::Domain) => "domain",
        Ok(Type::Full) => "full",
        Err(_) => return unsupported(format!("names by the type {}", domain.r#type)),
    };
    Ok(format!("{kind}:{}", domain.value))
}

/// A condition on addresses: an `IPRule`, or a `GeoIP` as earlier versions have it.
pub(super) fn ips(bytes: &[u8]) -> Result<Vec<String>, Refused> {
    let not = |reverse: bool| if reverse { "!" } else { "" };
    match either::<IpRule>("xray.app.router.IPRule", bytes).and_then(|rule| rule.value) {
        Some(ip_rule::Value::Geoip(list)) => {
            let not = not(list.reverse_match);
            return Ok(vec![match list.file.as_str() {
                "" | "geoip.dat" => format!("{not}geoip:{}", list.code),
                file => format!("{not}ext:{file}:{}", list.code),
            }]);
        }
        // The address and prefix of an earlier form may read as one, too, with an address of no such length.
        Some(ip_rule::Value::Custom(CidrRule {
            cidr: Some(cidr),
            reverse_match,
        })) if matches!(cidr.ip.len(), 4 | 16) => {
            return Ok(vec![format!("{}{}", not(reverse_match), network(&cidr)?)]);
        }
        _ => {}
    }
    let list: GeoIp = read_as("xray.app.router.GeoIP", bytes)?;
    match list.cidr.as_slice() {
        [one] if list.reverse_match => Ok(vec![format!("!{}", network(one)?)]),
        _ if list.reverse_match && !list.country_code.is_empty() => Ok(vec![format!("!geoip:{}", list.country_code)]),
        _ if list.reverse_match => unsupported("reverse_match of several networks"),
        [] if !list.country_code.is_empty() => Ok(vec![format!("geoip:{}", list.country_code)]),
        many => many.iter().map(network).collect(),
    }
}

fn network(cidr: &Cidr) -> Result<String, Refused> {
    Ok(format!("{}/{}", ip(&cidr.ip)?, cidr.prefix))
}

fn balancer(given: &BalancingRule) -> Result<Value, Refused> {
    let mut strategy = Keys::default();
    strategy.text("type", &given.strategy);
    if let Some(settings) = &given.strategy_settings {
        match &*canonical(&settings.r#type) {
            "xray.app.router.StrategyLeastLoadConfig" => {
                let load: StrategyLeastLoadConfig = open(settings)?;
                let costs = load
                    .costs
                    .iter()
                    .map(|cost| json!({ "regexp": cost.regexp, "match": cost.r#match, "value": cost.value }));
                let mut keys = Keys::default();
                keys.number("expected", load.expected)
                    .number("maxRTT", load.max_rtt)
                    .list("baselines", &load.baselines)
                    .list("costs", &costs.collect::<Vec<_>>());
                if load.tolerance != 0.0 {
                    keys.put("tolerance", load.tolerance);
                }
                strategy.put("settings", keys.done());
            }
            other => return unsupported(format!("the strategy {other}")),
        }
    }
    let mut keys = Keys::default();
    keys.text("tag", &given.tag)
        .list("selector", &given.outbound_selector)
        .put("strategy", strategy.done())
        .text("fallbackTag", &given.fallback_tag);
    Ok(keys.done())
}
