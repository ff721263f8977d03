//! Addresses that conditions hold for.
//!
//! Conditions with `!` are taken together, as Xray does: those about networks hold for an address outside of all these
//! networks, those about lists for one outside of all these lists. An address of a family that none of them speaks of is in
//! no such group.

use std::net::IpAddr;
use std::sync::Arc;

use sealway_route::ips::IpSet;
use sealway_v2ray::config::{GeoList, is_private};

use super::{Current, Key, Number, Sets};
use crate::Error;
use crate::geo::{GeoError, GeoFile, Item};
use crate::settings::IpMatch;

/// A list of networks.
#[derive(Debug, Default)]
pub(super) struct Networks {
    pub(super) set: IpSet,
    /// It stands for what is outside of them.
    inverse: bool,
}

impl Networks {
    fn matches(&self, ip: IpAddr) -> bool {
        match self.inverse {
            true => self.set.has_family_of(ip) && !self.set.matches(ip),
            false => self.set.matches(ip),
        }
    }
}

/// Addresses that a list of conditions holds for. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Addresses(Arc<Groups>);

#[derive(Debug, Default)]
struct Groups {
    nets: IpSet,
    not_nets: IpSet,
    lists: Group,
    not_lists: Group,
    current: Current,
}

/// Lists by their numbers, and private addresses, which are a list that needs no file.
#[derive(Debug, Default)]
struct Group {
    private: bool,
    lists: Vec<Number>,
}

impl Group {
    fn matches(&self, sets: &Sets, ip: IpAddr) -> bool {
        (self.private && is_private(ip)) || self.of(sets).any(|list| list.matches(ip))
    }

    fn has_family_of(&self, sets: &Sets, ip: IpAddr) -> bool {
        self.private || self.of(sets).any(|list| list.set.has_family_of(ip))
    }

    fn of<'s>(&'s self, sets: &'s Sets) -> impl Iterator<Item = &'s Networks> {
        let lists = self.lists.iter();
        lists.filter_map(|number| sets.networks.get(**number).map(AsRef::as_ref))
    }
}

impl Addresses {
    /// Whether one of the conditions holds for an address.
    pub(crate) fn matches(&self, ip: IpAddr) -> bool {
        self.matches_in(&self.0.current.load(), ip)
    }

    /// The same, by what lists held when `sets` were taken from the [`Lists`](super::Lists) that made this.
    pub(crate) fn matches_in(&self, sets: &Sets, ip: IpAddr) -> bool {
        let Groups {
            nets,
            not_nets,
            lists,
            not_lists,
            ..
        } = &*self.0;
        nets.matches(ip)
            || (not_nets.has_family_of(ip) && !not_nets.matches(ip))
            || lists.matches(sets, ip)
            || (not_lists.has_family_of(sets, ip) && !not_lists.matches(sets, ip))
    }
}

pub(super) fn build(
    conditions: &[IpMatch],
    current: Current,
    list: impl Fn(&GeoList) -> Result<Number, Error>,
) -> Result<Addresses, Error> {
    let (mut nets, mut not_nets) = (IpSet::builder(), IpSet::builder());
    let mut groups = Groups {
        current,
        ..Groups::default()
    };
    for condition in conditions {
        match condition {
            IpMatch::Net(net) => {
                nets.net(*net);
            }
            IpMatch::NotNet(net) => {
                not_nets.net(*net);
            }
            IpMatch::Private(true) => groups.lists.private = true,
            IpMatch::Private(false) => groups.not_lists.private = true,
            IpMatch::List(named) => groups.lists.lists.push(list(named)?),
            IpMatch::NotList(named) => groups.not_lists.lists.push(list(named)?),
        }
    }
    (groups.nets, groups.not_nets) = (nets.build(), not_nets.build());
    Ok(Addresses(Arc::new(groups)))
}

/// The networks of a list.
pub(super) fn read(file: &mut GeoFile, key: &Key) -> Result<Networks, GeoError> {
    let list = file.list(&key.code)?;
    let (mut set, mut inverse) = (IpSet::builder(), false);
    file.read(&list, |item| match item {
        Item::Network(net) => {
            set.net(net);
        }
        Item::Inverse => inverse = true,
        Item::Entry(_) | Item::Name(_) => {}
    })?;
    let set = set.build();
    if set.is_empty() {
        tracing::warn!("{} holds no address", key.name());
    }
    Ok(Networks { set, inverse })
}
