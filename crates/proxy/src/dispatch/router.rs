//! Which outbound a connection takes.

mod condition;

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use sealway_route::names;
use sealway_v2ray::{Destination, Domain};

use crate::Error;
use crate::lists::{Current, Lists, Sets};
use crate::policy::{Exempt, exempt};
use crate::program::Program;
use crate::settings::{RoutingStrategy, Rule};

pub(crate) use condition::Condition;
use condition::conditions;

/// What is known of an HTTP request: `:method`, `:path`, and its headers by their lower-case names.
pub(crate) type Attributes = BTreeMap<String, String>;

/// What the rules look at.
pub(crate) struct Question<'a> {
    pub(crate) target: &'a Destination,
    /// A name that the target is known by besides its address.
    pub(crate) name: Option<&'a str>,
    pub(crate) source: Option<SocketAddr>,
    pub(crate) local: Option<SocketAddr>,
    pub(crate) email: &'a str,
    /// The number in the id that a client of VLESS sent.
    pub(crate) vless_route: Option<u16>,
    pub(crate) inbound: &'a str,
    /// What the connection was found to carry.
    pub(crate) protocol: Option<&'a str>,
    /// The HTTP request that it was found to begin with; empty if it is none.
    pub(crate) attributes: &'a Attributes,
}

/// What is found out for the rules that need it, by somebody who can.
pub(crate) trait Help {
    /// The addresses of the target's name. Asked once at most.
    async fn addresses(&mut self) -> Vec<IpAddr>;

    /// The program on this machine that is the client. Asked once at most.
    async fn program(&mut self) -> Option<Arc<Program>>;
}

/// Where a rule leads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lead {
    /// To the outbound with this number.
    Outbound(usize),
    /// To the balancer with this number.
    Balancer(usize),
}

/// What a rule decides.
#[derive(Clone, Debug)]
pub(crate) struct Decision {
    /// The number of the rule.
    pub(crate) rule: usize,
    pub(crate) lead: Lead,
    /// The private addresses that the rule names.
    pub(crate) exempt: Option<Exempt>,
}

/// What a condition says of a connection.
pub(crate) struct Asked {
    /// The key of the configuration that it stands for.
    pub(crate) key: &'static str,
    pub(crate) holds: bool,
    /// What it holds for; empty if it does not.
    pub(crate) value: String,
}

/// A rule ready to be asked.
struct Ready {
    rule: Arc<Rule>,
    /// The cheap ones first.
    conditions: Arc<[Condition]>,
    decision: Decision,
}

/// The rules, each with what it decides.
pub(crate) struct Router {
    rules: Vec<Ready>,
    by_name: RoutingStrategy,
    by_address: bool,
    sets: Current,
}

/// What is known of a connection by and by.
pub(crate) struct Known<'a> {
    pub(crate) question: &'a Question<'a>,
    /// The lists of geo files, the same for all conditions.
    pub(crate) sets: &'a Sets,
    /// The target's name, in lower case and without a dot at its end.
    pub(crate) name: Option<&'a names::Asked<'a>>,
    /// Addresses of the target.
    pub(crate) ips: &'a [IpAddr],
    /// The client's program, if it was looked for and found.
    pub(crate) program: Option<&'a Program>,
}

/// Longest name that is brought into the form of rules without memory of its own.
const USUAL_NAME: usize = 256;

/// The name of a target as rules compare it: in lower case, and without a dot at its end, with which it is the same name and
/// must not pass by a rule about it.
pub(crate) fn with_name<T>(name: Option<&str>, then: impl FnOnce(Option<&str>) -> T) -> T {
    let Some(name) = name else {
        return then(None);
    };
    let name = name.trim_end_matches('.');
    if !name.bytes().any(|b| b.is_ascii_uppercase()) {
        return then(Some(name));
    }
    let mut short = [0; USUAL_NAME];
    match short.get_mut(..name.len()) {
        Some(room) => {
            room.copy_from_slice(name.as_bytes());
            room.make_ascii_lowercase();
            // Lower case keeps UTF-8 what it is.
            then(std::str::from_utf8(room).ok())
        }
        None => then(Some(&name.to_ascii_lowercase())),
    }
}

/// How far the asking has come.
enum Pass {
    /// This rule fits.
    Fits(usize),
    /// Whether this rule fits depends on the addresses of the name.
    NeedsAddresses(usize),
    /// Whether this rule fits depends on the client's program.
    NeedsProgram(usize),
    /// No rule fits.
    None,
}

/// What has been asked for and found.
#[derive(Default)]
struct Found {
    /// The addresses of the name; `None` before they were asked for.
    ips: Option<Vec<IpAddr>>,
    /// The client's program; `None` before it was looked for.
    program: Option<Option<Arc<Program>>>,
}

impl Router {
    /// Checks that every rule leads somewhere, and makes sets of its lists, if they were not made for the rules `before`.
    ///
    /// # Errors
    /// [`Error::Config`] for a rule that leads nowhere, and for lists that make no set.
    pub(crate) fn new(
        rules: &[Arc<Rule>],
        by_name: RoutingStrategy,
        tags: &[&str],
        balancers: &[&str],
        lists: &Lists,
        before: Option<&Router>,
    ) -> Result<Self, Error> {
        let known = before.iter().flat_map(|before| &before.rules);
        let known: HashMap<*const Rule, &Ready> = known.map(|ready| (Arc::as_ptr(&ready.rule), ready)).collect();
        let find = |(at, rule): (usize, &Arc<Rule>)| {
            let (key, kind, tag, there) = match rule.balancer_tag.as_str() {
                "" => ("outboundTag", "outbound", &rule.outbound_tag, tags),
                _ => ("balancerTag", "balancer", &rule.balancer_tag, balancers),
            };
            let found = there.iter().position(|one| !one.is_empty() && one == tag);
            let found = found.ok_or_else(|| {
                Error::config(
                    format!("routing.rules[{at}].{key}"),
                    format!("there is no {kind} with the tag {tag:?}"),
                )
            })?;
            let lead = match kind {
                "outbound" => Lead::Outbound(found),
                _ => Lead::Balancer(found),
            };
            let (conditions, exempt) = match known.get(&Arc::as_ptr(rule)) {
                Some(ready) => (Arc::clone(&ready.conditions), ready.decision.exempt.clone()),
                None => (conditions(at, rule, lists)?.into(), exempt(&rule.ips)),
            };
            Ok(Ready {
                rule: Arc::clone(rule),
                conditions,
                decision: Decision { rule: at, lead, exempt },
            })
        };
        let rules: Result<Vec<_>, Error> = rules.iter().enumerate().map(find).collect();
        let rules = rules?;
        let by_address = |rule: &Ready| rule.conditions.iter().any(|one| matches!(one, Condition::Address(_)));
        Ok(Router {
            by_address: rules.iter().any(by_address),
            rules,
            by_name,
            sets: lists.current(),
        })
    }

    pub(crate) fn rule(&self, number: usize) -> Option<&Rule> {
        self.rules.get(number).map(|ready| &*ready.rule)
    }

    /// What the first rule that fits decides.
    pub(crate) async fn choose(&self, question: &Question<'_>, help: &mut impl Help) -> Option<&Decision> {
        let mut found = Found::default();
        // A reload while something is found out must not change half of the decision.
        let sets = self.sets.load_full();
        let on_demand = self.by_name == RoutingStrategy::IpOnDemand;
        let mut from = 0;
        loop {
            match self.pass(question, &sets, from, &found, on_demand) {
                Pass::Fits(at) => return self.rules.get(at).map(|rule| &rule.decision),
                Pass::NeedsAddresses(at) => {
                    found.ips = Some(help.addresses().await);
                    from = at;
                }
                Pass::NeedsProgram(at) => {
                    found.program = Some(help.program().await);
                    from = at;
                }
                Pass::None => {
                    let again = self.by_name == RoutingStrategy::IpIfNonMatch && self.by_address && found.ips.is_none();
                    if !again || question.target.address.ip().is_some() {
                        return None;
                    }
                    found.ips = Some(help.addresses().await);
                    from = 0;
                }
            }
        }
    }

    /// Asks the rules from this one on, as far as that goes with what was found.
    fn pass(&self, question: &Question<'_>, sets: &Sets, from: usize, found: &Found, on_demand: bool) -> Pass {
        let own = question.target.address.ip();
        let name = question.name.or(question.target.address.domain().map(Domain::as_str));
        with_name(name, |name| {
            let asked = name.map(names::Asked::new);
            let known = Known {
                question,
                sets,
                name: asked.as_ref(),
                ips: match &found.ips {
                    Some(ips) => ips,
                    None => own.as_slice(),
                },
                program: found.program.as_ref().and_then(Option::as_deref),
            };
            'rules: for (at, rule) in self.rules.iter().enumerate().skip(from) {
                for condition in rule.conditions.iter() {
                    match condition {
                        Condition::Address(_) if on_demand && own.is_none() && found.ips.is_none() => {
                            return Pass::NeedsAddresses(at);
                        }
                        Condition::Process(_) if found.program.is_none() => return Pass::NeedsProgram(at),
                        _ if !condition.fits(&known) => continue 'rules,
                        _ => {}
                    }
                }
                return Pass::Fits(at);
            }
            Pass::None
        })
    }

    /// Asks each condition of each rule, up to and with the first that fits.
    pub(crate) fn explain(
        &self,
        question: &Question<'_>,
        ips: &[IpAddr],
        program: Option<&Program>,
    ) -> Vec<Vec<Asked>> {
        let sets = self.sets.load_full();
        let name = question.name.or(question.target.address.domain().map(Domain::as_str));
        with_name(name, |name| {
            self.explain_known(&Known {
                question,
                sets: &sets,
                name: name.map(names::Asked::new).as_ref(),
                ips,
                program,
            })
        })
    }

    fn explain_known(&self, known: &Known<'_>) -> Vec<Vec<Asked>> {
        let mut asked = Vec::new();
        for rule in &self.rules {
            let conditions: Vec<Asked> = rule.conditions.iter().map(|one| one.ask(known)).collect();
            let fits = conditions.iter().all(|one| one.holds);
            asked.push(conditions);
            if fits {
                break;
            }
        }
        asked
    }
}

#[cfg(test)]
mod tests;
