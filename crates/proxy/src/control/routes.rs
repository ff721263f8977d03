//! Rules and balancers, changed and asked while the server runs.

use std::sync::Arc;

use super::{Control, Refusal};
use crate::balance::Candidate;
use crate::dispatch::watchers::{Decided, Decisions};
use crate::engine::How;
use crate::engine::plan::Plan;
use crate::routes::{Traits, question};
use crate::settings::{Balancer, Rule};

/// A rule as others name it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RuleName {
    /// Its name, or empty.
    pub name: String,
    /// The tag of the outbound that it leads to. Empty: it leads to a balancer.
    pub outbound: String,
}

/// Where a connection would go.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Routed {
    /// The name of the rule, or empty.
    pub rule: String,
    /// The tag of the balancer that chose, or empty.
    pub balancer: String,
    /// The tag of the outbound.
    pub outbound: String,
}

/// What a balancer does.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct BalancerState {
    /// The tag of the outbound that somebody wants every connection to take.
    pub wanted: Option<String>,
    /// The tags of those that it chooses among otherwise.
    pub picks: Vec<String>,
}

impl Control {
    /// Adds rules and balancers behind those that there are or, without `append`, in their place.
    ///
    /// A rule may lead to an outbound that there is not yet: until there is, what it is for is refused.
    ///
    /// # Errors
    /// [`Refusal::RuleTaken`], [`Refusal::BalancerTaken`], [`Refusal::NoBalancer`], and [`Refusal::Unusable`] for lists that
    /// cannot be had.
    pub async fn add_rules(&self, rules: Vec<Rule>, balancers: Vec<Balancer>, append: bool) -> Result<(), Refusal> {
        let add = |plan: &mut Plan| {
            if !append {
                plan.rules.clear();
            }
            if !append || !balancers.is_empty() {
                let rest = Arc::make_mut(&mut plan.rest);
                if !append {
                    rest.balancers.clear();
                }
                for balancer in balancers {
                    if rest.balancers.iter().any(|one| one.tag == balancer.tag) {
                        return Err(Refusal::BalancerTaken);
                    }
                    rest.balancers.push(balancer);
                }
            }
            for rule in rules {
                if !rule.name.is_empty() && plan.rules.iter().any(|one| one.name == rule.name) {
                    return Err(Refusal::RuleTaken(rule.name));
                }
                let wanted = &rule.balancer_tag;
                if !wanted.is_empty() && !plan.rest.balancers.iter().any(|one| one.tag == *wanted) {
                    return Err(Refusal::NoBalancer(rule.balancer_tag));
                }
                plan.rules.push(Arc::new(rule));
            }
            Ok(())
        };
        self.running()?.change(How::Lenient, add).await.map(drop)
    }

    /// Removes the rules with this name, if there are any.
    ///
    /// # Errors
    /// [`Refusal::EmptyTag`] for an empty name.
    pub async fn remove_rule(&self, name: &str) -> Result<(), Refusal> {
        if name.is_empty() {
            return Err(Refusal::EmptyTag);
        }
        let remove = |plan: &mut Plan| {
            plan.rules.retain(|rule| rule.name != name);
            Ok(())
        };
        self.running()?.change(How::Lenient, remove).await.map(drop)
    }

    /// The rules, in their order.
    pub fn rules(&self) -> Vec<RuleName> {
        let rules = self
            .running()
            .map(|running| running.engine.plan().rules)
            .unwrap_or_default();
        let one = |rule: &Arc<Rule>| RuleName {
            name: rule.name.clone(),
            outbound: rule.outbound_tag.clone(),
        };
        rules.iter().map(one).collect()
    }

    /// Where a connection would go. Names are looked up as the configuration says, which may take its time.
    ///
    /// # Errors
    /// [`Refusal::NoClue`] if no rule fits: it would take the default.
    pub async fn test_route(&self, traits: &Traits) -> Result<Routed, Refusal> {
        let running = self.running()?;
        let decided = running.engine.dispatcher().test(&question(traits)).await;
        let (rule, balancer, outbound) = decided.ok_or(Refusal::NoClue)?;
        Ok(Routed {
            rule,
            balancer,
            outbound,
        })
    }

    /// What the rules decide of connections from now on, and what others have [published](Control::publish). Costs each of them a
    /// copy of what is known of it while anybody watches.
    ///
    /// # Errors
    /// [`Refusal::Busy`]: 16 watch already.
    pub fn watch_decisions(&self) -> Result<Decisions, Refusal> {
        let running = self.running()?;
        running.engine.dispatcher().watchers().add().ok_or(Refusal::Busy)
    }

    /// Tells whoever watches of a decision as if it were that of a connection.
    pub fn publish(&self, traits: &Traits, routed: &Routed) {
        if let Ok(running) = self.running() {
            let watchers = running.engine.dispatcher().watchers();
            watchers.tell(|| Decided::new(&question(traits), &routed.balancer, &routed.outbound));
        }
    }

    /// What a balancer does.
    ///
    /// # Errors
    /// [`Refusal::NoTag`] if no balancer has the tag.
    pub fn balancer(&self, tag: &str) -> Result<BalancerState, Refusal> {
        let table = self.running()?.engine.dispatcher().table();
        let balancer = table.balancers().iter().find(|one| one.tag() == tag);
        let balancer = balancer.ok_or(Refusal::NoTag)?;
        let tags = table.tags();
        let picks = balancer.picks();
        let picks = picks.iter().filter_map(|at| tags.get(*at));
        Ok(BalancerState {
            wanted: balancer.wanted(),
            picks: picks.map(|tag| (*tag).to_owned()).collect(),
        })
    }

    /// Has every new connection of a balancer take one outbound, whatever is known of it, or, with an empty tag, choose again.
    ///
    /// # Errors
    /// [`Refusal::NoTag`] if no balancer, or no outbound, has the tag.
    pub async fn override_balancer(&self, tag: &str, target: &str) -> Result<(), Refusal> {
        let want = |engine: &crate::engine::Engine| {
            let table = engine.dispatcher().table();
            let balancer = table.balancers().iter().find(|one| one.tag() == tag);
            let balancer = balancer.ok_or(Refusal::NoTag)?;
            balancer.want(match target {
                "" => None,
                target => Some(Candidate::find(target, &table.tags()).ok_or(Refusal::NoTag)?),
            });
            Ok(())
        };
        self.running()?.alone(want).await
    }
}
