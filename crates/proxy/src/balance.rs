//! Balancers: which of several outbounds a connection takes.
//!
//! What a balancer chooses among stands in one snapshot, made anew when something is known of an outbound that was not before.
//! A connection takes one of it, in the same time however many there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};

use crate::error::Error;
use crate::meters::Count;
use crate::random;
use crate::settings::{self, BalancerKind, Cost, CostMatch, LeastLoad};

/// What measuring an outbound has shown.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Reading {
    /// It answers.
    pub(crate) alive: bool,
    /// How long an answer took, of several measurements on average.
    pub(crate) delay: Duration,
    /// How far the times of several measurements are spread. Of one measurement it is the delay.
    pub(crate) deviation: Duration,
    /// Measurements that count.
    pub(crate) all: u32,
    /// Those of them that failed.
    pub(crate) failed: u32,
}

/// One that a balancer may choose.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) outbound: usize,
    pub(crate) tag: String,
}

impl Candidate {
    /// The outbound of a tag.
    pub(crate) fn find(tag: &str, tags: &[&str]) -> Option<Candidate> {
        let outbound = tags.iter().position(|one| !one.is_empty() && *one == tag)?;
        let tag = tag.to_owned();
        Some(Candidate { outbound, tag })
    }
}

/// A balancer and what it chooses among now.
pub(crate) struct Balancer {
    settings: settings::Balancer,
    /// In the order of their tags.
    candidates: Vec<Candidate>,
    fallback: Option<usize>,
    picks: ArcSwap<Vec<usize>>,
    next: AtomicUsize,
    /// The one that somebody wants in place of those.
    wanted: ArcSwapOption<Candidate>,
    /// How often each outbound was taken, by its number. Empty: nobody asks.
    chosen: Vec<Count>,
}

impl Balancer {
    /// A balancer of the outbounds with these tags, of which nothing is known yet.
    ///
    /// # Errors
    /// [`Error::Config`] at this place of the configuration if no outbound has the tag that stands in for them.
    pub(crate) fn new(place: &str, settings: &settings::Balancer, tags: &[&str]) -> Result<Self, Error> {
        let all = tags.iter().enumerate();
        let mut candidates: Vec<Candidate> = all
            .filter(|(_, tag)| settings.selects(tag))
            .map(|(outbound, tag)| Candidate {
                outbound,
                tag: (*tag).to_owned(),
            })
            .collect();
        candidates.sort_by(|a, b| a.tag.cmp(&b.tag));
        let fallback = match settings.fallback.as_str() {
            "" => None,
            wanted => Some(tags.iter().position(|tag| *tag == wanted).ok_or_else(|| {
                let what = format!("there is no outbound with the tag {wanted:?}");
                Error::config(format!("{place}.fallbackTag"), what)
            })?),
        };
        let balancer = Balancer {
            settings: settings.clone(),
            candidates,
            fallback,
            picks: ArcSwap::default(),
            next: AtomicUsize::new(0),
            wanted: ArcSwapOption::empty(),
            chosen: Vec::new(),
        };
        balancer.refresh(|_| None);
        Ok(balancer)
    }

    /// The same, with a count for each of so many outbounds.
    fn counted(self, outbounds: usize) -> Self {
        let chosen = (0..outbounds).map(|_| Count::default()).collect();
        Balancer { chosen, ..self }
    }

    /// How often each outbound was taken that may be, by tag.
    pub(crate) fn chosen(&self) -> impl Iterator<Item = (&str, u64)> {
        let candidates = self.candidates.iter().map(|one| (one.tag.as_str(), one.outbound));
        // It may be one of the candidates as well.
        let known = |outbound: &usize| self.candidates.iter().any(|one| one.outbound == *outbound);
        let fallback = self.fallback.filter(|outbound| !known(outbound));
        let fallback = fallback.map(|outbound| (self.settings.fallback.as_str(), outbound));
        let count = |(tag, outbound): (_, usize)| Some((tag, self.chosen.get(outbound)?.get()));
        candidates.chain(fallback).filter_map(count)
    }

    pub(crate) fn tag(&self) -> &str {
        &self.settings.tag
    }

    /// All that it may ever choose, in the order of their tags.
    pub(crate) fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// The outbound that stands in for them.
    pub(crate) fn fallback(&self) -> Option<usize> {
        self.fallback
    }

    /// The outbounds that it chooses among now.
    pub(crate) fn picks(&self) -> Arc<Vec<usize>> {
        self.picks.load_full()
    }

    /// Makes the snapshot of what is known now of outbounds by their numbers.
    pub(crate) fn refresh(&self, reading: impl Fn(usize) -> Option<Reading>) {
        let picks = select(&self.settings, &self.candidates, reading);
        let before = self.picks.swap(Arc::new(picks));
        let now = self.picks.load();
        if now.is_empty() && !before.is_empty() {
            let instead = match self.fallback {
                Some(_) => format!("{:?}", self.settings.fallback),
                None => "the first outbound".to_owned(),
            };
            tracing::warn!(
                "balancer {:?} has no outbound to choose: connections take {instead}",
                self.tag()
            );
        }
    }

    /// Takes over, of the balancer that this one stands for from now on, what somebody wants of it.
    pub(crate) fn take_over(&self, before: &Balancer, tags: &[&str]) {
        let wanted = before.wanted.load_full();
        self.want(wanted.and_then(|wanted| Candidate::find(&wanted.tag, tags)));
        self.next.store(before.next.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Has every connection take this outbound, whatever is known of it, or chooses again.
    pub(crate) fn want(&self, outbound: Option<Candidate>) {
        self.wanted.store(outbound.map(Arc::new));
    }

    /// The tag of the outbound that every connection is to take.
    pub(crate) fn wanted(&self) -> Option<String> {
        self.wanted.load().as_ref().map(|wanted| wanted.tag.clone())
    }

    /// The outbound for the next connection. `None`: the first of all is to be taken.
    pub(crate) fn pick(&self) -> Option<usize> {
        let picked = self.choose()?;
        if let Some(count) = self.chosen.get(picked) {
            count.add();
        }
        Some(picked)
    }

    fn choose(&self) -> Option<usize> {
        if let Some(wanted) = &*self.wanted.load() {
            return Some(wanted.outbound);
        }
        let picks = self.picks.load();
        match picks.as_slice() {
            [] => self.fallback,
            [one] => Some(*one),
            several => {
                let turn = || self.next.fetch_add(1, Ordering::Relaxed) % several.len();
                let at = match self.settings.kind {
                    BalancerKind::RoundRobin => turn(),
                    // A system without random numbers still spreads connections.
                    _ => random::below(several.len()).unwrap_or_else(|_| turn()),
                };
                several.get(at).copied()
            }
        }
    }
}

/// The balancers of settings with outbounds of these tags, in the place of others.
///
/// # Errors
/// As [`Balancer::new`].
pub(crate) fn all(
    settings: &[settings::Balancer],
    tags: &[&str],
    before: &[Balancer],
    counted: bool,
) -> Result<Arc<[Balancer]>, Error> {
    let one = |(at, one): (usize, &settings::Balancer)| {
        let balancer = Balancer::new(&format!("routing.balancers[{at}]"), one, tags)?;
        let balancer = balancer.counted(if counted { tags.len() } else { 0 });
        if let Some(before) = before.iter().find(|before| before.tag() == one.tag) {
            balancer.take_over(before, tags);
        }
        Ok(balancer)
    };
    settings.iter().enumerate().map(one).collect()
}

/// What a balancer chooses among.
fn select(
    settings: &settings::Balancer,
    candidates: &[Candidate],
    reading: impl Fn(usize) -> Option<Reading>,
) -> Vec<usize> {
    match settings.kind {
        BalancerKind::LeastPing => {
            let alive = candidates.iter().filter_map(|candidate| {
                let reading = reading(candidate.outbound).filter(|reading| reading.alive)?;
                Some((reading.delay, candidate.outbound))
            });
            let least = alive.min_by_key(|(delay, _)| *delay);
            least.into_iter().map(|(_, outbound)| outbound).collect()
        }
        BalancerKind::LeastLoad => least_load(&settings.least_load, candidates, reading),
        // Without something else to take, those that are down are tried like the others. Of whom nothing is known counts as well.
        _ => candidates
            .iter()
            .filter(|candidate| {
                settings.fallback.is_empty() || reading(candidate.outbound).is_none_or(|reading| reading.alive)
            })
            .map(|candidate| candidate.outbound)
            .collect(),
    }
}

fn least_load(
    settings: &LeastLoad,
    candidates: &[Candidate],
    reading: impl Fn(usize) -> Option<Reading>,
) -> Vec<usize> {
    let fits = |reading: &Reading| {
        reading.alive
            && settings.max_rtt.is_none_or(|most| reading.delay < most)
            && settings
                .tolerance
                .is_none_or(|most| f64::from(reading.failed) <= most * f64::from(reading.all))
    };
    let mut nodes: Vec<(Duration, Reading, &Candidate)> = candidates
        .iter()
        .filter_map(|candidate| {
            let reading = reading(candidate.outbound).filter(fits)?;
            let weighted = reading.deviation.as_secs_f64() * cost(&settings.costs, &candidate.tag).sqrt();
            let weighted = Duration::try_from_secs_f64(weighted).unwrap_or(Duration::MAX);
            Some((weighted, reading, candidate))
        })
        .collect();
    nodes.sort_by(|a, b| {
        let order = |(weighted, reading, _): &(Duration, Reading, &Candidate)| {
            let measured = std::cmp::Reverse(reading.all);
            (*weighted, reading.delay, reading.failed, measured)
        };
        order(a).cmp(&order(b))
    });
    let wanted = usize::from(settings.expected);
    let least = wanted.max(1);
    let count = if wanted > nodes.len() {
        nodes.len()
    } else if settings.baselines.is_empty() {
        least
    } else {
        let under = |baseline: &Duration| nodes.iter().take_while(|(cost, ..)| cost < baseline).count();
        let counts = settings.baselines.iter().map(under);
        let mut most = 0;
        for count in counts {
            most = most.max(count);
            if most >= least {
                break;
            }
        }
        most.max(wanted)
    };
    nodes
        .iter()
        .take(count)
        .map(|(.., candidate)| candidate.outbound)
        .collect()
}

/// What an outbound costs beside others.
fn cost(costs: &[Cost], tag: &str) -> f64 {
    for cost in costs {
        let found = match &cost.pattern {
            CostMatch::Text(text) => tag.contains(text.as_str()).then_some(text.as_str()),
            CostMatch::Regexp(pattern) => pattern.find(tag),
        };
        // Nothing in particular was found.
        let Some(found) = found.filter(|found| !found.is_empty()) else {
            continue;
        };
        return if cost.value > 0.0 { cost.value } else { number(found) };
    }
    1.0
}

/// The first number in a text, or 1.
fn number(text: &str) -> f64 {
    let digit = |c: char| c.is_ascii_digit();
    let rest = text.find(digit).map_or("", |at| &text[at..]);
    let whole = rest.find(|c| !digit(c)).unwrap_or(rest.len());
    let fraction = rest[whole..]
        .strip_prefix('.')
        .map_or(0, |after| after.find(|c| !digit(c)).unwrap_or(after.len()));
    let end = if fraction > 0 { whole + 1 + fraction } else { whole };
    rest[..end].parse().unwrap_or(1.0)
}

#[cfg(test)]
mod tests;
