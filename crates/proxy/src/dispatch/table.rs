//! What requests are led by now: the rules, and what they lead to.

use std::collections::HashMap;
use std::sync::Arc;

use crate::balance::{self, Balancer};
use crate::error::Error;
use crate::lists::Lists;
use crate::outbound::Outbound;
use crate::settings::{self, RoutingStrategy, Rule};

use super::router::{Decision, Lead, Router};
use super::sniff::Asked;

/// Rules, outbounds and balancers that belong together: numbers in one of them mean nothing in another table.
pub(crate) struct Table {
    /// Those of the settings, then whatever else rules may lead to.
    outbounds: Vec<Arc<Outbound>>,
    /// How many are of the settings.
    own: usize,
    by_tag: HashMap<String, usize>,
    /// Where everything goes that no rule is for.
    default: usize,
    pub(super) balancers: Arc<[Balancer]>,
    pub(super) router: Router,
    pub(super) asked: Asked,
}

/// What a table is made of.
pub(crate) struct Parts<'a> {
    /// Outbounds of the settings. The first is the default.
    pub(crate) outbounds: Vec<Arc<Outbound>>,
    /// What rules may lead to besides.
    pub(crate) services: Vec<Arc<Outbound>>,
    /// What stands for outbounds that are missing. One without a tag stands for the default.
    pub(crate) missing: Vec<Arc<Outbound>>,
    pub(crate) rules: &'a [Arc<Rule>],
    /// When rules by address look up names.
    pub(crate) by_name: RoutingStrategy,
    pub(crate) balancers: &'a [settings::Balancer],
    /// It is counted what balancers choose.
    pub(crate) counted: bool,
}

impl Table {
    /// Checks the rules. What of them is the same as `before` is taken from there.
    ///
    /// # Errors
    /// [`Error::Config`] for a rule or a balancer that leads nowhere, and for lists that make no set.
    pub(crate) fn new(parts: Parts<'_>, lists: &Lists, before: Option<&Table>) -> Result<Table, Error> {
        let own = parts.outbounds.len();
        let mut outbounds = parts.outbounds;
        outbounds.extend(parts.services);
        let default = parts.missing.iter().position(|one| one.tag.is_empty());
        let default = default.map_or(0, |at| outbounds.len() + at);
        outbounds.extend(parts.missing);
        let tags: Vec<&str> = outbounds.iter().map(|outbound| outbound.tag.as_str()).collect();
        // Nothing but outbounds is for balancers.
        let chosen = tags.get(..own).unwrap_or(&tags);
        let balancers = before.map_or(&[][..], |before| &before.balancers);
        let balancers = balance::all(parts.balancers, chosen, balancers, parts.counted)?;
        let balancer_tags: Vec<&str> = parts.balancers.iter().map(|one| one.tag.as_str()).collect();
        let before = before.map(|before| &before.router);
        let router = Router::new(parts.rules, parts.by_name, &tags, &balancer_tags, lists, before)?;
        let mut by_tag = HashMap::new();
        for (at, tag) in tags.iter().enumerate().filter(|(_, tag)| !tag.is_empty()) {
            // Of two with one tag the first is meant.
            by_tag.entry((*tag).to_owned()).or_insert(at);
        }
        Ok(Table {
            own,
            by_tag,
            default,
            balancers,
            router,
            asked: Asked {
                protocol: parts.rules.iter().any(|rule| !rule.protocols.is_empty()),
                attributes: parts.rules.iter().any(|rule| !rule.attributes.is_empty()),
            },
            outbounds,
        })
    }

    /// The outbounds of the settings.
    pub(crate) fn outbounds(&self) -> &[Arc<Outbound>] {
        self.outbounds.get(..self.own).unwrap_or(&self.outbounds)
    }

    /// The tags of the outbounds of the settings.
    pub(crate) fn tags(&self) -> Vec<&str> {
        self.outbounds().iter().map(|outbound| outbound.tag.as_str()).collect()
    }

    /// The balancers, which are told how outbounds are.
    pub(crate) fn balancers(&self) -> &Arc<[Balancer]> {
        &self.balancers
    }

    /// What a tag stands for.
    pub(super) fn find(&self, tag: &str) -> Option<&Arc<Outbound>> {
        self.outbounds.get(*self.by_tag.get(tag)?)
    }

    /// Where a decision leads now: the outbound, and whether it is that of the rule.
    pub(super) fn lead(&self, decision: Option<&Decision>) -> (Arc<Outbound>, bool) {
        let found = decision.and_then(|decision| match decision.lead {
            Lead::Outbound(at) => Some(at),
            Lead::Balancer(at) => self.balancers.get(at)?.pick(),
        });
        (
            Arc::clone(&self.outbounds[found.unwrap_or(self.default)]),
            found.is_some(),
        )
    }
}
