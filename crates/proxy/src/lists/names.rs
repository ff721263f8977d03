//! Names that conditions hold for.

use std::sync::Arc;

use sealway_route::names::{Asked, Builder, NameSet};
use sealway_v2ray::config::GeoList;

use super::{Current, Key, Number, Sets};
use crate::Error;
use crate::geo::{GeoError, GeoFile, Item};
use crate::settings::DomainMatch;

/// Names that a list of conditions holds for. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Names(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    /// What is written in the conditions themselves.
    own: NameSet,
    /// The numbers of what they name of geo files.
    lists: Box<[Number]>,
    current: Current,
}

impl Names {
    /// Whether one of the conditions holds for a name, which must be in lower case and without a dot at its end.
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.matches_in(&self.0.current.load(), &Asked::new(name))
    }

    /// The same, by what lists held when `sets` were taken from the [`Lists`](super::Lists) that made this.
    pub(crate) fn matches_in(&self, sets: &Sets, name: &Asked<'_>) -> bool {
        let mut lists = self.0.lists.iter().filter_map(|number| sets.names.get(**number));
        self.0.own.holds(name) || lists.any(|list| list.holds(name))
    }
}

pub(super) fn build(
    place: &str,
    conditions: &[DomainMatch],
    current: Current,
    list: impl Fn(&GeoList) -> Result<Number, Error>,
) -> Result<Names, Error> {
    let (mut own, mut lists) = (NameSet::builder(), Vec::new());
    for condition in conditions {
        match condition {
            DomainMatch::Full(name) => own.full(name),
            DomainMatch::Domain(name) => own.domain(name),
            DomainMatch::Keyword(text) => own.keyword(text),
            DomainMatch::Regexp(pattern) => own.regex(pattern.as_str()),
            DomainMatch::Dotless(text) => own.dotless(text),
            DomainMatch::List(named) => {
                lists.push(list(named)?);
                continue;
            }
        };
    }
    let own = own.build().map_err(|error| Error::config(place, error.to_string()))?;
    Ok(Names(Arc::new(Parts {
        own,
        lists: lists.into(),
        current,
    })))
}

/// The names of a list that have all of its attributes.
pub(super) fn read(file: &mut GeoFile, key: &Key) -> Result<NameSet, GeoError> {
    let list = file.list(&key.code)?;
    let (mut names, mut empty) = (NameSet::builder(), 0u64);
    file.read(&list, |item| {
        if let Item::Name(name) = item
            && key
                .attributes
                .iter()
                .all(|wanted| name.attributes().any(|has| has.eq_ignore_ascii_case(wanted)))
        {
            empty += u64::from(name.text.is_empty());
            add(&mut names, &name);
        }
    })?;
    let set = names.build().map_err(|error| GeoError::Useless {
        path: file.path().to_owned(),
        code: key.code.clone(),
        why: error.to_string(),
    })?;
    if empty > 0 {
        tracing::warn!("{}: {empty} entries without a text are left out", key.name());
    }
    if set.is_empty() {
        tracing::warn!("{} holds no name", key.name());
    }
    Ok(set)
}

fn add(names: &mut Builder, name: &crate::geo::Name<'_>) {
    let is_lower = !name.text.bytes().any(|b| b.is_ascii_uppercase());
    // In an expression case means something: \D is not \d.
    match is_lower || name.form == crate::geo::Form::Regex {
        true => names.add(name.form, name.text),
        false => names.add(name.form, &name.text.to_lowercase()),
    };
}
