//! What the rules of a configuration decide, asked without a connection.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::slice::from_ref;
use std::sync::Arc;

use sealway_v2ray::Destination;

use crate::Error;
use crate::dispatch::{Lead, Question};
use crate::engine::Engine;
use crate::settings::{IpMatch, LogTarget, Rule, Settings};

/// What a connection would be known by.
#[derive(Clone, Debug)]
pub struct Traits {
    /// Where it is to go.
    pub target: Destination,
    /// A name that the target is known by besides its address.
    pub name: Option<String>,
    /// The client.
    pub source: Option<SocketAddr>,
    /// The address that the client came to.
    pub local: Option<SocketAddr>,
    /// The user's e-mail. Empty: none.
    pub email: String,
    /// The number in the id that a client of VLESS sent.
    pub vless_route: Option<u16>,
    /// The tag of the inbound. Empty: none.
    pub inbound: String,
    /// What it is found to carry.
    pub protocol: Option<String>,
    /// The HTTP request that it begins with: `:method`, `:path`, and headers by their lower-case names.
    pub attributes: BTreeMap<String, String>,
}

impl Traits {
    /// A connection of which nothing but its target is known.
    pub fn of(target: Destination) -> Self {
        Traits {
            target,
            name: None,
            source: None,
            local: None,
            email: String::new(),
            vless_route: None,
            inbound: String::new(),
            protocol: None,
            attributes: BTreeMap::new(),
        }
    }
}

pub(crate) fn question(traits: &Traits) -> Question<'_> {
    Question {
        target: &traits.target,
        name: traits.name.as_deref(),
        source: traits.source,
        local: traits.local,
        email: &traits.email,
        vless_route: traits.vless_route,
        inbound: &traits.inbound,
        protocol: traits.protocol.as_deref(),
        attributes: &traits.attributes,
    }
}

/// A condition that holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Held {
    /// The key of the configuration.
    pub key: &'static str,
    /// What it holds for.
    pub value: String,
    /// The number of the first entry of its list that holds, for lists of names and of addresses.
    pub entry: Option<usize>,
}

/// Where connections are led.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Leads {
    /// To the outbound with this number.
    Outbound(usize),
    /// To a balancer.
    Balancer {
        /// Its number.
        number: usize,
        /// The numbers of all outbounds that it may ever choose, in the order of their tags.
        candidates: Vec<usize>,
        /// Those that it chooses among while nothing is known of any.
        picks: Vec<usize>,
        /// The outbound that stands in for them.
        fallback: Option<usize>,
    },
}

/// What the rules decide.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Verdict {
    /// The number of the rule that decides, from 0. `None`: no rule fits, and the first outbound is taken.
    pub rule: Option<usize>,
    /// The conditions of that rule.
    pub held: Vec<Held>,
    /// Of each rule that was asked and does not fit, the keys of the conditions that do not hold.
    pub passed: Vec<Vec<&'static str>>,
    /// The addresses that the name was found to have, if they were looked for.
    pub resolved: Option<Vec<IpAddr>>,
    /// Where the rule leads.
    pub leads: Leads,
}

/// The rules of a configuration, which may be asked.
pub struct Routes {
    engine: Engine,
    rules: Vec<Rule>,
}

impl Routes {
    /// Builds what stands behind the inbounds. Nothing is listened on, logged or measured.
    ///
    /// # Errors
    /// [`Error::Config`] for what would keep the configuration from running.
    pub fn new(settings: &Settings) -> Result<Routes, Error> {
        let settings = Settings {
            inbounds: Vec::new(),
            access_log: LogTarget::Off,
            observatory: None,
            burst: None,
            ..settings.clone()
        };
        Ok(Routes {
            engine: Engine::new(&settings, &Arc::default())?,
            rules: settings.rules,
        })
    }

    /// The number of the rule that decides of a connection, from 0, as a connection has it asked: without the reasons that
    /// [`Routes::ask`] collects. `None`: no rule fits. Must be called within a tokio runtime.
    pub async fn decide(&self, traits: &Traits) -> Option<usize> {
        self.engine.dispatcher().decide(&question(traits)).await
    }

    /// What the rules decide of a connection. Names are looked up as the configuration says, which may take its time. Must be
    /// called within a tokio runtime.
    pub async fn ask(&self, traits: &Traits) -> Verdict {
        let dispatcher = self.engine.dispatcher();
        let mut explained = dispatcher.explain(&question(traits)).await;
        let rule = explained.decision.map(|decision| (decision.rule, decision.lead));
        let fits = rule.and_then(|_| explained.asked.pop()).unwrap_or_default();
        let held = fits.into_iter().map(|one| Held {
            entry: rule.and_then(|(rule, _)| self.entry(rule, one.key, &one.value)),
            key: one.key,
            value: one.value,
        });
        let failed = explained.asked.iter().map(|rule| {
            let failed = rule.iter().filter(|one| !one.holds);
            failed.map(|one| one.key).collect()
        });
        Verdict {
            rule: rule.map(|(rule, _)| rule),
            held: held.collect(),
            passed: failed.collect(),
            resolved: explained.resolved,
            leads: match rule {
                Some((_, Lead::Balancer(number))) => self.balancer(number),
                Some((_, Lead::Outbound(number))) => Leads::Outbound(number),
                None => Leads::Outbound(0),
            },
        }
    }

    fn balancer(&self, number: usize) -> Leads {
        let table = self.engine.dispatcher().table();
        match table.balancers().get(number) {
            None => Leads::Outbound(0),
            Some(balancer) => Leads::Balancer {
                number,
                candidates: balancer.candidates().iter().map(|one| one.outbound).collect(),
                picks: balancer.picks().to_vec(),
                fallback: balancer.fallback(),
            },
        }
    }

    /// The entry of a rule's list that holds for a value.
    fn entry(&self, rule: usize, key: &str, value: &str) -> Option<usize> {
        let rule = self.rules.get(rule)?;
        let lists = self.engine.lists();
        let ips = |all: &[IpMatch]| {
            let ip: IpAddr = value.parse().ok()?;
            all.iter()
                .position(|one| lists.addresses(from_ref(one)).is_ok_and(|set| set.matches(ip)))
        };
        match key {
            "domain" => rule
                .domains
                .iter()
                .position(|one| lists.names("", from_ref(one)).is_ok_and(|set| set.matches(value))),
            "ip" => ips(&rule.ips),
            "source" => ips(&rule.sources),
            "localIP" => ips(&rule.locals),
            _ => None,
        }
    }
}
