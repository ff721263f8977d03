//! `routing.balancers`: one of several outbounds, chosen anew for each connection.

use std::time::Duration;

use super::context::{Cx, near_tag, quoted};
use super::duration::GoDuration;
use super::net::Pattern;
use super::scalar::{Part, Texts};
use super::schema::Kind;
use super::table::{Decode, FromKeys, object, words};
use crate::json::{Data, Value};
use crate::problem::{At, Position};

words! {
    /// How a balancer chooses among its outbounds.
    pub enum BalancerKind {
        /// By chance.
        Random = "random" | "";
        /// One after another.
        RoundRobin = "roundRobin";
        /// The one that answered fastest when it was last measured.
        LeastPing = "leastPing";
        /// By chance among those whose times vary least.
        LeastLoad = "leastLoad";
    }
}

/// A number that may have a fraction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Decimal(f64);

impl Decode for Decimal {
    fn kind() -> Kind {
        Kind::text("number, 0 or more")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let Data::Number(text) = &value.data else {
            cx.wrong_type(&value, "a number");
            return None;
        };
        let number = text.parse().ok().filter(|n: &f64| n.is_finite() && *n >= 0.0);
        if number.is_none() {
            cx.error(value.at, "the number must be 0 or more", "");
        }
        number.map(Decimal)
    }
}

object! {
    /// What an outbound costs beside others: its deviation is multiplied by the square root of it. Of several that fit, the
    /// first counts.
    pub(crate) struct CostSettings: "routing.balancers[].strategy.settings.costs[]" {
        /// `match` is a regular expression.
        regexp: bool = "regexp";
        /// A part of the outbound's tag, or an expression that is found in it.
        pattern: At<String> = "match", required;
        /// The cost. 0: the first number in what was found of the tag.
        value: Decimal = "value";
    }
}

/// What an outbound costs beside others.
#[derive(Clone, Debug, PartialEq)]
pub struct Cost {
    /// Whose tags it is about.
    pub pattern: CostMatch,
    /// The cost. 0: the first number in what was found of the tag.
    pub value: f64,
}

/// What is looked for in the tag of an outbound.
#[derive(Clone, Debug, PartialEq)]
pub enum CostMatch {
    /// This text.
    Text(String),
    /// This expression.
    Regexp(Pattern),
}

impl FromKeys for Cost {
    type Keys = CostSettings;

    fn from_keys(s: CostSettings, _: Position, cx: &mut Cx<'_>) -> Option<Self> {
        let pattern = match s.regexp {
            true => {
                CostMatch::Regexp(cx.within("match", |cx| Pattern::read(&s.pattern.value, false, s.pattern.at, cx))?)
            }
            false => CostMatch::Text(s.pattern.value),
        };
        Some(Cost {
            pattern,
            value: s.value.0,
        })
    }
}

object! {
    /// How `leastLoad` chooses. Outbounds are put in the order of how much their times deviate, each deviation times the
    /// square root of its cost.
    pub(crate) struct LeastLoadSettings: "routing.balancers[].strategy.settings" {
        /// How many outbounds connections are spread over.
        expected: u16 = "expected";
        /// Outbounds that take this long on average are left out. 0: none is.
        max_rtt: GoDuration = "maxRTT";
        /// Outbounds of whose measurements a larger share failed are left out, 0 to 1.
        tolerance: Option<At<Decimal>> = "tolerance";
        /// Deviations, the smallest first: of each, all outbounds below it are taken, until there are as many as expected.
        baselines: Vec<GoDuration> = "baselines";
        /// What outbounds cost beside others; 1 where nothing fits.
        costs: Vec<Cost> = "costs";
    }
}

/// How `leastLoad` chooses.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LeastLoad {
    /// How many outbounds connections are spread over. 0: as many as the baselines let through, or 1.
    pub expected: u16,
    /// Outbounds that take this long on average are left out.
    pub max_rtt: Option<Duration>,
    /// Outbounds of whose measurements a larger share failed are left out.
    pub tolerance: Option<f64>,
    /// Deviations, in the order they are tried.
    pub baselines: Vec<Duration>,
    /// What outbounds cost beside others.
    pub costs: Vec<Cost>,
}

impl FromKeys for LeastLoad {
    type Keys = LeastLoadSettings;

    fn from_keys(s: LeastLoadSettings, _: Position, cx: &mut Cx<'_>) -> Option<Self> {
        if let Some(tolerance) = s.tolerance.as_ref().filter(|share| share.value.0 > 1.0) {
            let text = "the tolerance is a share from 0 to 1";
            cx.error_in("tolerance", tolerance.at, text, "");
            return None;
        }
        Some(LeastLoad {
            expected: s.expected,
            max_rtt: Some(s.max_rtt.0).filter(|time| !time.is_zero()),
            tolerance: s.tolerance.map(|share| share.value.0),
            baselines: s.baselines.iter().map(|time| time.0).collect(),
            costs: s.costs,
        })
    }
}

object! {
    /// How a balancer chooses among its outbounds.
    pub(crate) struct StrategySettings: "routing.balancers[].strategy" {
        /// The way it is done.
        kind: BalancerKind = "type", default "\"random\"";
        /// For `leastLoad`.
        least_load: Part<LeastLoad> = "settings", default "{}";
    }
}

object! {
    /// A balancer: a rule that names it leads to one of its outbounds.
    pub(crate) struct BalancerSettings: "routing.balancers[]" {
        /// The name that rules have for it.
        tag: At<String> = "tag", required;
        /// How the tags of its outbounds begin.
        selector: At<Texts> = "selector", required;
        /// How it chooses among them.
        strategy: StrategySettings = "strategy", default "{}";
        /// The outbound to take when none of them can be chosen. Without it that is the first outbound of all.
        fallback: Option<At<String>> = "fallbackTag";
    }
}

/// A balancer.
#[derive(Clone, Debug, PartialEq)]
pub struct Balancer {
    /// The name that rules have for it.
    pub tag: String,
    /// How the tags of its outbounds begin.
    pub selector: Vec<String>,
    /// How it chooses.
    pub kind: BalancerKind,
    /// How it chooses, if that is by the least load.
    pub least_load: LeastLoad,
    /// The tag of the outbound to take when none can be chosen. Empty: the first of all.
    pub fallback: String,
    /// Where it is configured.
    pub at: Position,
}

impl Balancer {
    /// Whether an outbound of this tag is one that it chooses from.
    pub fn selects(&self, tag: &str) -> bool {
        !tag.is_empty() && self.selector.iter().any(|start| tag.starts_with(start.as_str()))
    }

    /// Whether it must know how outbounds are.
    pub fn needs_health(&self) -> bool {
        match self.kind {
            BalancerKind::LeastPing | BalancerKind::LeastLoad => true,
            BalancerKind::Random | BalancerKind::RoundRobin => !self.fallback.is_empty(),
        }
    }
}

impl FromKeys for Balancer {
    type Keys = BalancerSettings;

    fn from_keys(s: BalancerSettings, at: Position, cx: &mut Cx<'_>) -> Option<Self> {
        let before = cx.errors();
        if s.tag.value.is_empty() {
            cx.error_in("tag", s.tag.at, "the tag is empty", "rules name the balancer by it");
        }
        if let Some(tag) = &s.fallback
            && !cx.tags.outbounds.contains_key(tag.value.as_str())
        {
            let text = format!("no outbound has the tag {}", quoted(tag));
            let hint = near_tag(tag, cx.tags.outbounds.keys());
            cx.error_in("fallbackTag", tag.at, text, hint);
        }
        let balancer = Balancer {
            tag: s.tag.value,
            selector: s.selector.iter().map(str::to_owned).collect(),
            kind: s.strategy.kind,
            least_load: s.strategy.least_load.0?,
            fallback: s.fallback.map(|tag| tag.value).unwrap_or_default(),
            at,
        };
        if !cx.tags.outbounds.keys().any(|tag| balancer.selects(tag)) {
            let starts = balancer.selector.first().map_or("", String::as_str);
            let text = match balancer.selector.len() {
                0 => "the balancer selects nothing".to_owned(),
                1 => format!("no outbound has a tag that begins with {}", quoted(starts)),
                _ => "no outbound has a tag that begins with one of these".to_owned(),
            };
            let hint = near_tag(starts, cx.tags.outbounds.keys());
            cx.error_in("selector", s.selector.at, text, hint);
        }
        (cx.errors() == before).then_some(balancer)
    }
}
