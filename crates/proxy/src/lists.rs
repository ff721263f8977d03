//! Lists of names and of addresses, as rules ask them.
//!
//! A list of conditions becomes [`Names`] or [`Addresses`]: one look-up instead of one comparison for each condition.

#[cfg(test)]
mod tests;

use std::net::IpAddr;
use std::sync::Arc;

use sealway_route::ips::IpSet;
use sealway_route::names::NameSet;
use sealway_v2ray::config::is_private;

use crate::Error;
use crate::settings::{DomainMatch, IpMatch};

/// Makes sets of lists of conditions.
#[derive(Debug, Default)]
pub(crate) struct Lists {}

impl Lists {
    /// The names that one of the conditions at `place`, such as `routing.rules[0].domain`, holds for.
    ///
    /// # Errors
    /// [`Error::Config`] with the place of the condition that makes no set.
    pub(crate) fn names(&self, place: &str, conditions: &[DomainMatch]) -> Result<Names, Error> {
        let mut own = NameSet::builder();
        for condition in conditions {
            match condition {
                DomainMatch::Full(name) => own.full(name),
                DomainMatch::Domain(name) => own.domain(name),
                DomainMatch::Keyword(text) => own.keyword(text),
                DomainMatch::Regexp(pattern) => own.regex(pattern.as_str()),
                DomainMatch::Dotless(text) => own.dotless(text),
                _ => return Err(Error::config(place, "a condition is not supported yet")),
            };
        }
        let own = own.build().map_err(|error| Error::config(place, error.to_string()))?;
        Ok(Names(Arc::new(own)))
    }

    /// The addresses that one of the conditions at `place`, such as `routing.rules[0].ip`, holds for.
    ///
    /// # Errors
    /// [`Error::Config`] with the place of the condition that makes no set.
    pub(crate) fn addresses(&self, place: &str, conditions: &[IpMatch]) -> Result<Addresses, Error> {
        let mut own = IpSet::builder();
        let (mut private, mut public) = (false, false);
        for condition in conditions {
            match condition {
                IpMatch::Net(net) => {
                    own.net(*net);
                }
                IpMatch::Private(true) => private = true,
                IpMatch::Private(false) => public = true,
                _ => return Err(Error::config(place, "a condition is not supported yet")),
            }
        }
        Ok(Addresses(Arc::new(Groups {
            own: own.build(),
            private,
            public,
        })))
    }
}

/// Names that a list of conditions holds for. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Names(Arc<NameSet>);

impl Names {
    /// Whether one of the conditions holds for a name, which must be in lower case and without a dot at its end.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.0.matches(name)
    }
}

/// Addresses that a list of conditions holds for. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Addresses(Arc<Groups>);

#[derive(Debug)]
struct Groups {
    own: IpSet,
    private: bool,
    public: bool,
}

impl Addresses {
    /// Whether one of the conditions holds for an address.
    pub(crate) fn matches(&self, ip: IpAddr) -> bool {
        let groups = &*self.0;
        groups.own.matches(ip)
            || ((groups.private || groups.public) && groups.private == is_private(ip))
            || (groups.private && groups.public)
    }
}
