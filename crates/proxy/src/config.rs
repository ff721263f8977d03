//! A `config.json` that has been read, as settings of a server.

mod inbound;
mod outbound;
mod transport;

use sealway_v2ray::config::{self, Config, Draft, Networks, Ports, RuleTarget};

use crate::Error;
use crate::settings::*;

use outbound::Cone;

impl Settings {
    /// The settings a configuration stands for.
    ///
    /// Reading the configuration has told, with the place, of everything in it that this engine does not have.
    ///
    /// # Errors
    /// [`Error::Config`] for a store or a node of `stats`, or a variable of the environment, that cannot be used.
    pub fn from_config(config: &Config) -> Result<Settings, Error> {
        let mut settings = Settings {
            domain_strategy: config.routing.domain_strategy,
            access_log: config.log.access.clone(),
            access_format: config.log.access_format,
            access_rotation: Rotation::of(&config.log),
            mask_address: config.log.mask_address,
            dns: config.dns.clone(),
            metrics: config.metrics.clone(),
            ..Settings::default()
        };
        let tag = settings.metrics.iter().map(|metrics| metrics.tag.as_str());
        // Rules know the tag; the server puts in who answers there.
        settings.services = tag.filter(|tag| !tag.is_empty()).map(Service::nobody).collect();
        if config.stats.is_some() {
            let system = &config.policy.system;
            settings.counters = SystemCounters {
                inbound_uplink: system.stats_inbound_uplink,
                inbound_downlink: system.stats_inbound_downlink,
                outbound_uplink: system.stats_outbound_uplink,
                outbound_downlink: system.stats_outbound_downlink,
            };
        }
        if config.metrics.is_some() {
            settings.counters = SystemCounters {
                inbound_uplink: true,
                inbound_downlink: true,
                outbound_uplink: true,
                outbound_downlink: true,
            };
        }
        let users = config.metrics.as_ref().is_some_and(|metrics| metrics.users);
        // Users that come later may have any of those.
        if let Some(stats) = &config.stats
            && let Some(store) = &stats.store
        {
            settings.store = Some(usage_store(
                &store.value.0,
                stats.node.as_ref().map(|node| node.0.as_str()),
            )?);
        }
        let own = config.inbounds.iter().flat_map(config::Inbound::limits);
        settings.limits = own.filter(|(_, limits)| *limits != Limits::default()).collect();
        let mut levels: Vec<u32> = config.policy.listed().chain([0]).collect();
        let inbounds = config.inbounds.iter();
        settings.inbounds = inbounds.map(|one| inbound::inbound(one, &mut levels)).collect();
        let cone = Cone::from_environment()?;
        let outbounds = config.outbounds.iter();
        settings.outbounds = outbounds.map(|one| outbound::outbound(one, &cone)).collect();
        settings.rules = config.routing.rules.iter().map(rule).collect();
        settings.balancers = config.routing.balancers.clone();
        settings.observatory = config.observatory.clone();
        settings.burst = config.burst.clone();
        levels.sort_unstable();
        levels.dedup();
        for level in levels {
            let policy = config.policy.level(level);
            let limits = Level {
                handshake: policy.handshake,
                timeouts: Timeouts {
                    idle: policy.conn_idle,
                    uplink_only: policy.uplink_only,
                    downlink_only: policy.downlink_only,
                },
                count_uplink: users || config.stats.is_some() && policy.stats_user_uplink,
                count_downlink: users || config.stats.is_some() && policy.stats_user_downlink,
                limits: policy.limits(),
                count_online: config.stats.is_some() && policy.stats_user_online,
            };
            settings.levels.push((level, limits));
        }
        Ok(settings)
    }
}

impl Parts {
    /// The parts of a configuration with errors that are right themselves.
    pub fn from_draft(draft: &Draft) -> Parts {
        let inbounds = draft.inbounds.iter();
        let cone = Cone {
            full: true,
            base_key: None,
        };
        let outbounds = draft.outbounds.iter();
        let log = draft.log.as_ref();
        Parts {
            inbounds: inbounds
                .map(|(at, one)| (*at, inbound::inbound(one, &mut Vec::new())))
                .collect(),
            outbounds: outbounds
                .map(|(at, one)| (*at, outbound::outbound(one, &cone)))
                .collect(),
            access_log: log.map(|log| log.access.clone()).unwrap_or_default(),
        }
    }
}

fn usage_store(store: &str, node: Option<&str>) -> Result<UsageStore, Error> {
    let wrong = |key: &str, error: sealway_ledger::Error| Error::config(format!("stats.{key}"), error.to_string());
    Ok(UsageStore {
        store: sealway_ledger::Store::parse(store).map_err(|error| wrong("store", error))?,
        node: match node {
            Some(name) => sealway_ledger::Node::new(name).map_err(|error| wrong("node", error))?,
            None => sealway_ledger::Node::of_machine(),
        },
    })
}

fn ranges(ports: Option<&Ports>) -> Vec<(u16, u16)> {
    let ranges = ports.map(Ports::ranges).unwrap_or_default();
    ranges.iter().map(|range| (*range.start(), *range.end())).collect()
}

fn networks(networks: Option<&Networks>) -> Vec<sealway_v2ray::Network> {
    let both = [sealway_v2ray::Network::Tcp, sealway_v2ray::Network::Udp];
    match networks {
        Some(set) => both.into_iter().filter(|&network| set.contains(network)).collect(),
        None => Vec::new(),
    }
}

fn ips(matches: &config::IpMatches) -> Vec<IpMatch> {
    matches.0.iter().map(|set| set.value.clone()).collect()
}

fn rule(rule: &config::Rule) -> Rule {
    let (outbound_tag, balancer_tag) = match &rule.to {
        RuleTarget::Outbound(tag) => (tag.clone(), String::new()),
        RuleTarget::Balancer(tag) => (String::new(), tag.clone()),
    };
    Rule {
        name: rule.name.clone(),
        domains: rule.domains.0.iter().map(|set| set.value.clone()).collect(),
        ips: ips(&rule.ips),
        ports: ranges(rule.ports.as_ref()),
        sources: ips(&rule.sources),
        source_ports: ranges(rule.source_ports.as_ref()),
        locals: ips(&rule.local_ips),
        local_ports: ranges(rule.local_ports.as_ref()),
        networks: networks(rule.networks.as_ref()),
        users: rule.users.clone(),
        inbound_tags: rule.inbound_tags.clone(),
        protocols: rule.protocols.clone(),
        attributes: rule.attributes.clone(),
        vless_routes: ranges(rule.vless_routes.as_ref()),
        processes: rule.processes.clone(),
        systems: rule.systems.clone(),
        outbound_tag,
        balancer_tag,
    }
}

#[cfg(test)]
impl Settings {
    /// The settings of a configuration that is right. Panics with what is wrong if it is not.
    pub(crate) fn of_text(text: &str) -> Settings {
        let file = config::File {
            name: "c.json",
            text: text.as_bytes(),
        };
        let loaded = config::load(&[file], &config::Options::default());
        let config = loaded.config.unwrap_or_else(|| panic!("{:?}\n{text}", loaded.problems));
        Settings::from_config(&config).unwrap()
    }
}
