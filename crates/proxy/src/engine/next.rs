//! The engine of a plan, made beside the one that runs: all that can fail does before anything changes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::plan::Plan;
use super::{Engine, Made};
use crate::clock::unix_time;
use crate::dispatch::Access;
use crate::dispatch::table::{self, Table};
use crate::dns::Dns;
use crate::error::Error;
use crate::inbound::{Inbound, Levels};
use crate::lists;
use crate::observe::Observer;
use crate::outbound::{Outbound, Surroundings};
use crate::settings::{self, Balancer};
use crate::stats::Traffic;
use crate::tls::certs::{self, Certificates};
use crate::{sockopt, upstream};

/// How a plan is made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum How {
    /// Whatever is wrong with it is an error, and files are read again.
    Strict,
    /// Rules may lead to what was removed, and files are not looked at that were read before.
    Lenient,
}

/// What is to be in the place of what there is.
pub(crate) struct Next {
    pub(crate) plan: Plan,
    /// Each with the one whose place it takes, in the order of the plan.
    pub(crate) inbounds: Vec<(Arc<Inbound>, Option<Arc<Inbound>>)>,
    table: Table,
    access: Option<Access>,
    dns: Option<Arc<Dns>>,
    observer: Option<Arc<Observer>>,
    certificates: Vec<(Arc<Certificates>, certs::Fresh)>,
    lists: Option<lists::Fresh>,
}

impl Made {
    /// The inbound whose place one takes: that of the same tag or, without a tag, at the same addresses.
    fn stood(&self, inbound: &settings::Inbound) -> Option<(&Arc<settings::Inbound>, &Arc<Inbound>)> {
        let is = |before: &settings::Inbound| match inbound.tag.as_str() {
            "" => before.tag.is_empty() && before.listen == inbound.listen,
            tag => before.tag == tag,
        };
        let at = self.plan.inbounds.iter().position(|before| is(before))?;
        Some((self.plan.inbounds.get(at)?, self.inbounds.get(at)?))
    }
}

/// Options that the kernel refuses would drop every connection, so nothing is made with them.
fn refuse_options(place: &str, options: &settings::SocketOptions, listens: bool) -> Result<(), Error> {
    sockopt::problems(place, options, listens)
        .into_iter()
        .next()
        .map_or(Ok(()), Err)
}

impl Engine {
    /// Makes what a plan asks for, and changes nothing. Takes as long as reading files does.
    ///
    /// # Errors
    /// [`Error::Config`] for the first thing that does not work.
    pub(crate) fn prepare(&self, plan: Plan, how: How) -> Result<Next, Error> {
        let made = self.made().clone();
        let next = self.next(&made, plan, how);
        self.around.lists.close();
        if next.is_err() {
            self.around.lists.sweep();
        }
        next
    }

    fn next(&self, made: &Made, plan: Plan, how: How) -> Result<Next, Error> {
        let plan = plan.like(&made.plan);
        let (rest, before) = (&plan.rest, &made.plan.rest);
        let (inbounds, certificates) = self.inbounds(made, &plan, how)?;
        let table = self.table(made, &plan, how)?;
        let access = match made.begun && Access::is_same(rest, before) {
            true => None,
            false => Some(Access::open(rest)?),
        };
        let dns = match made.begun && rest.dns == before.dns && plan.mark() == made.plan.mark() {
            true => None,
            false => {
                let Surroundings {
                    resolver,
                    lists,
                    roads,
                    loops,
                    ..
                } = &self.around;
                let dns = Dns::after(Some(&resolver.dns()), &rest.dns, lists)?;
                dns.set(upstream::all((&rest.dns, plan.mark()), &dns, roads, loops)?);
                Some(dns)
            }
        };
        let observer = match made.begun && (&rest.observatory, &rest.burst) == (&before.observatory, &before.burst) {
            true => made.observer.clone(),
            false => {
                let (roads, resolver) = (Arc::clone(&self.around.roads), Arc::clone(&self.around.resolver));
                Observer::new(rest, roads, resolver, Arc::clone(&self.stats))?.map(Arc::new)
            }
        };
        let lists = match made.begun && how == How::Strict {
            true => {
                let again = self.around.lists.read_again(&plan.lists());
                Some(again.map_err(|error| Error::config("routing", error.to_string()))?)
            }
            false => None,
        };
        Ok(Next {
            plan,
            inbounds,
            table,
            access,
            dns,
            observer,
            certificates,
            lists,
        })
    }

    #[expect(clippy::type_complexity, reason = "two fields of what is made")]
    fn inbounds(
        &self,
        made: &Made,
        plan: &Plan,
        how: How,
    ) -> Result<
        (
            Vec<(Arc<Inbound>, Option<Arc<Inbound>>)>,
            Vec<(Arc<Certificates>, certs::Fresh)>,
        ),
        Error,
    > {
        let (rest, before) = (&plan.rest, &made.plan.rest);
        let levels = Levels::new(rest);
        let same_limits = rest.levels == before.levels && rest.limits == before.limits;
        let same_base = same_limits && rest.counters == before.counters;
        let (mut inbounds, mut certificates) = (Vec::new(), Vec::new());
        let mut seen = HashSet::new();
        for (at, settings) in plan.inbounds.iter().enumerate() {
            let place = format!("inbounds[{at}]");
            if !settings.tag.is_empty() && !seen.insert(settings.tag.as_str()) {
                let what = format!("two inbounds have the tag {:?}", settings.tag);
                return Err(Error::config(format!("{place}.tag"), what));
            }
            let stood = made.stood(settings);
            let same = stood.filter(|(before, _)| same_base && Arc::ptr_eq(before, settings));
            let same = same.filter(|_| how == How::Lenient || !settings.transport.has_client_files());
            let inbound = match same {
                Some((_, inbound)) => Arc::clone(inbound),
                None => {
                    refuse_options(&place, &settings.transport.socket, true)?;
                    let stood = stood.map(|(before, inbound)| (&**before, &**inbound));
                    let (lists, counters) = (&self.around.lists, &rest.counters);
                    let with = (&levels, counters);
                    let new = Inbound::new(&place, settings, with, lists, &self.stats, unix_time, stood)?;
                    Arc::new(new)
                }
            };
            let stood = stood.map(|(_, stood)| stood);
            let kept = stood.and_then(|stood| stood.certificates());
            if let (How::Strict, Some(own), Some(kept)) = (how, inbound.certificates(), kept)
                && Arc::ptr_eq(&own, &kept)
            {
                let (fresh, errors) = own.read_again(true);
                if let Some(error) = errors.into_iter().next() {
                    return Err(error);
                }
                certificates.push((own, fresh));
            }
            inbounds.push((inbound, stood.map(Arc::clone)));
        }
        Ok((inbounds, certificates))
    }

    fn table(&self, made: &Made, plan: &Plan, how: How) -> Result<Table, Error> {
        let (rest, before) = (&plan.rest, &made.plan);
        if plan.outbounds.is_empty() && how == How::Strict {
            return Err(Error::config(
                "outbounds",
                "there is none; add one, for example {\"protocol\": \"freedom\"}",
            ));
        }
        let counters = &rest.counters;
        let traffic = |tag: &str| match tag {
            "" => Traffic::default(),
            tag => self
                .stats
                .traffic("outbound", tag, counters.outbound_uplink, counters.outbound_downlink)
                .reversed(),
        };
        let tags: Vec<String> = plan.outbounds.iter().map(|one| one.tag.clone()).collect();
        let around = Surroundings {
            roads: self.around.roads.to(tags),
            ..self.around.clone()
        };
        let now = self.dispatcher.table();
        let stood = before.outbounds.iter().map(Arc::as_ptr).zip(now.outbounds());
        let mut stood: HashMap<*const settings::Outbound, &Arc<Outbound>> = stood.collect();
        let mut outbounds = Vec::with_capacity(plan.outbounds.len());
        for (at, settings) in plan.outbounds.iter().enumerate() {
            let place = format!("outbounds[{at}]");
            let same = stood.remove(&Arc::as_ptr(settings));
            let same = same.filter(|_| before.rest.counters == *counters);
            if let Some(same) = same.filter(|_| how == How::Lenient || !settings.transport.has_files()) {
                for through in settings.transport.throughs().filter(|_| how == How::Strict) {
                    around.roads.find(&place, &through.outbound)?;
                }
                outbounds.push(Arc::clone(same));
                continue;
            }
            refuse_options(&place, &settings.transport.socket, false)?;
            let new = Outbound::new(&place, settings, &around, traffic(&settings.tag))?;
            outbounds.push(Arc::new(new.metered(self.stats.meters())));
        }
        let mut services = Vec::with_capacity(rest.services.len());
        for service in &rest.services {
            if outbounds.iter().any(|outbound| outbound.tag == service.tag) {
                let what = format!("an outbound has the tag {:?} already", service.tag);
                return Err(Error::config("api.tag", what));
            }
            let answers = self.stats.meters().stands_for(service);
            services.push(Arc::new(Outbound::service(answers, traffic(&service.tag))));
        }
        let is_there = |tag: &str| outbounds.iter().chain(&services).any(|one| one.tag == tag);
        let (mut missing, mut balancers) = (BTreeSet::new(), rest.balancers.clone());
        let waits = plan
            .rules
            .iter()
            .filter(|rule| how == How::Lenient || plan.is_idle(rule));
        let named = waits.map(|rule| rule.outbound_tag.as_str());
        missing.extend(named.filter(|tag| !tag.is_empty() && !is_there(tag)));
        if how == How::Lenient {
            for Balancer { fallback, .. } in &mut balancers {
                if !is_there(fallback) {
                    fallback.clear();
                }
            }
        }
        if plan.headless || plan.outbounds.is_empty() {
            missing.insert("");
        }
        let missing = missing
            .into_iter()
            .map(|tag| Arc::new(Outbound::missing(tag)))
            .collect();
        let parts = table::Parts {
            outbounds,
            services,
            missing,
            rules: &plan.rules,
            by_name: rest.domain_strategy,
            balancers: &balancers,
            counted: self.stats.meters().is_on(),
        };
        Table::new(parts, &self.around.lists, Some(&now))
    }

    /// Puts what was made in its place. `runs`: it also begins what goes on besides connections; that must be called within a
    /// tokio runtime.
    pub(crate) fn commit(&self, next: Next, runs: bool) {
        if let Some(dns) = next.dns {
            self.around.resolver.set(dns);
        }
        if let Some(lists) = next.lists {
            self.around.lists.take_up(lists);
        }
        for (certificates, fresh) in next.certificates {
            certificates.take_up(fresh);
        }
        self.dispatcher.set_table(next.table);
        if let Some(access) = next.access {
            self.dispatcher.set_access(access);
        }
        if runs {
            for (inbound, before) in &next.inbounds {
                inbound.begin(before.as_deref());
            }
            if let Some(observer) = &next.observer {
                let table = self.dispatcher.table();
                let tags = table.tags().into_iter().map(str::to_owned).collect();
                observer.watch(tags, Arc::clone(table.balancers()));
            } else {
                self.stats.keep_health(|_| false);
            }
        }
        let made = Made {
            plan: next.plan,
            inbounds: next.inbounds.iter().map(|(inbound, _)| Arc::clone(inbound)).collect(),
            observer: next.observer,
            begun: true,
        };
        // What nobody needs any more goes when it is not locked.
        let before = std::mem::replace(&mut *self.made(), made);
        drop(before);
        hand_over(&next.inbounds);
        let is_new = |(inbound, before): &&(Arc<Inbound>, Option<Arc<Inbound>>)| {
            !before.as_ref().is_some_and(|before| Arc::ptr_eq(before, inbound))
        };
        // Now they have all users, those as well who were added meanwhile.
        next.inbounds
            .iter()
            .filter(is_new)
            .for_each(|(inbound, _)| inbound.limit());
        self.around.lists.sweep();
    }
}

/// What is carried for users ends who are gone from an inbound that another has taken the place of.
fn hand_over(inbounds: &[(Arc<Inbound>, Option<Arc<Inbound>>)]) {
    for (inbound, before) in inbounds {
        let Some(before) = before.as_ref().filter(|before| !Arc::ptr_eq(before, inbound)) else {
            continue;
        };
        let is_heir = |of: &Option<Arc<Inbound>>| of.as_ref().is_some_and(|of| Arc::ptr_eq(of, before));
        let heirs = inbounds.iter().filter(|(_, of)| is_heir(of));
        let heirs: Vec<&Inbound> = heirs.map(|(heir, _)| &**heir).collect();
        if !heirs.iter().any(|heir| std::ptr::eq(*heir, &raw const **before)) {
            before.hand_over(&heirs);
        }
    }
}
