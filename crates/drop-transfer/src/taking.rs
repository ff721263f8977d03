//! What a receiving person is asked.

use sealway_drop::policy::Refused;

use crate::answer;
use crate::dest::{Answer, Conflict};

/// What the receiving end asks before it writes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Taking {
    /// Whether somebody is asked whether to take what is offered, and to make the folder for it.
    pub asks: bool,
    /// What becomes of names that are taken.
    pub conflict: Conflict,
}

impl Taking {
    /// Of what was said: `yes`, that everything is taken; `conflict`, if anything; and whether a `person` can be asked.
    ///
    /// # Errors
    /// [`Refused::NobodyAccepts`], [`Refused::NobodyChooses`].
    pub fn new(yes: bool, conflict: Option<Conflict>, person: bool) -> Result<Self, Refused> {
        if !yes && !person {
            return Err(Refused::NobodyAccepts);
        }
        let conflict = match conflict {
            Some(Conflict::Ask) if !person => return Err(Refused::NobodyChooses),
            Some(conflict) => conflict,
            None if yes => Conflict::Rename,
            None => Conflict::Ask,
        };
        Ok(Self { asks: !yes, conflict })
    }
}

/// What was answered about a name that is taken, and whether for all that follow; `None` if that is to be asked again. Once there is
/// no `person` any more, nothing is lost by another name.
pub fn conflict_answered(text: &str, person: bool) -> Option<(Answer, bool)> {
    match answer::conflict(text) {
        None if text.is_empty() && !person => Some((Answer::Rename, true)),
        answered => answered,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_follows_from_what_was_said_and_who_is_there() {
        use Conflict::{Ask, Overwrite, Rename, Skip};
        let taken = |asks, conflict| Ok(Taking { asks, conflict });
        for (yes, conflict, person, expected) in [
            (false, None, false, Err(Refused::NobodyAccepts)),
            (false, Some(Rename), false, Err(Refused::NobodyAccepts)),
            (false, None, true, taken(true, Ask)),
            (false, Some(Skip), true, taken(true, Skip)),
            (false, Some(Ask), true, taken(true, Ask)),
            (true, None, false, taken(false, Rename)),
            (true, None, true, taken(false, Rename)),
            (true, Some(Ask), false, Err(Refused::NobodyChooses)),
            (true, Some(Ask), true, taken(false, Ask)),
            (true, Some(Overwrite), false, taken(false, Overwrite)),
        ] {
            let found = Taking::new(yes, conflict, person);
            assert_eq!(found, expected, "{yes} {conflict:?} {person}");
        }
    }

    #[test]
    fn a_terminal_that_is_gone_loses_nothing() {
        for (text, person, expected) in [
            ("", true, None),
            ("", false, Some((Answer::Rename, true))),
            ("x", false, None),
            ("o", false, Some((Answer::Overwrite, false))),
            ("O", true, Some((Answer::Overwrite, true))),
        ] {
            assert_eq!(conflict_answered(text, person), expected, "{text:?} {person}");
        }
    }
}
