//! The emulated link of a run, before anything is measured over it.

use super::{LabError, hash};
use crate::link::{self, Link};
use crate::measure::WarningCode;
use crate::result::RunResult;
use crate::run::Observer;

/// Measures the link by itself: what it is goes into the result, with a warning where it is not what was asked for.
///
/// # Errors
/// [`LabError::Link`].
pub(super) fn check(link: &Link, observer: &mut dyn Observer, result: &mut RunResult) -> Result<(), LabError> {
    let measured = link::measure(link).map_err(LabError::Link)?;
    let facts = link.facts(&measured);
    observer.linked(&facts);
    if !facts.kept {
        let text = format!("Asked for {}, and by itself it has {}.", facts.wanted(), facts.seen());
        result.warnings.push(WarningCode::LinkNotKept.warn("link", &text));
    }
    result.link = Some(facts);
    Ok(())
}

/// As [`hash`], over a link if there is one: figures of two links, or of two models of one, are not of one kind.
pub(crate) fn hash_over(definition: &str, link: Option<Link>) -> String {
    match link {
        Some(link) => hash(&format!("{definition} link={link} model={}", link::MODEL)),
        None => hash(definition),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn figures_are_of_one_kind_over_one_link_and_one_model_of_it() {
        let link: Link = "rtt=4ms".parse().unwrap();
        let over = |model: u32| hash(&format!("d link=rtt=4ms model={model}"));
        assert_eq!(hash_over("d", Some(link)), over(link::MODEL));
        assert_ne!(hash_over("d", Some(link)), over(link::MODEL + 1));
        assert_ne!(hash_over("d", Some("rtt=5ms".parse().unwrap())), over(link::MODEL));
        assert_eq!(hash_over("d", None), hash("d"));
    }
}
