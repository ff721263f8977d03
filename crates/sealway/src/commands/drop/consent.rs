//! What a receiving person is asked.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

use indicatif::HumanBytes;
use sealway_drop::cancel::Cancel;
use sealway_drop::names::RelPath;
use sealway_drop_transfer::answer::{self, Take};
use sealway_drop_transfer::dest::{Answer, Existing};
use sealway_drop_transfer::receive::{Consent, LISTED_NAMES, Offered, cut};
use sealway_drop_transfer::taking::conflict_answered;

use super::asking::ask;
use super::events::Events;
use super::screen;
use crate::problem::note;

/// Names that the question shows before it is asked for all.
const NAMES: usize = 10;

/// Asks on the terminal.
pub(super) struct Asking {
    asks: bool,
    events: Events,
    cancel: Cancel,
    /// What was answered for all further files.
    all: Mutex<Option<Answer>>,
}

impl Asking {
    /// `asks`: whether to take what is offered is a question.
    pub(super) fn new(asks: bool, events: Events, cancel: &Cancel) -> Asking {
        Asking {
            asks,
            events,
            cancel: cancel.clone(),
            all: Mutex::new(None),
        }
    }
}

impl Consent for Asking {
    fn accept(&self, offer: &Offered) -> Result<(), String> {
        self.events.offered(&offered(offer, NAMES), offer, self.asks);
        if !self.asks {
            return Ok(());
        }
        let more = offer.top_count > NAMES as u64;
        let question = match more {
            true => "take it? [y/N, l lists the names] ",
            false => "take it? [y/N] ",
        };
        loop {
            let answer = ask(question, &self.cancel).map_err(|_| "stopped")?;
            match answer::take(&answer) {
                Some(Take::Yes) => return Ok(()),
                Some(Take::No) => return Err("not wanted".into()),
                Some(Take::List) => note(offered(offer, LISTED_NAMES)),
                None => note("y takes it, n does not"),
            }
        }
    }

    fn conflict(&self, path: &RelPath, existing: &Existing) -> Answer {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = *all {
            return answer;
        }
        screen::suspend(|| {
            loop {
                let there = format!(" is there already: {} of {}", existing.what, HumanBytes(existing.size));
                note(cut(&path.to_string(), screen::columns().saturating_sub(there.len())) + &there);
                let question = "[r]ename the new one, [s]kip it, [o]verwrite; upper case for all that follow: ";
                let Ok(text) = ask(question, &self.cancel) else {
                    // Nothing comes of the transfer any more.
                    return Answer::Skip;
                };
                let Some((choice, for_all)) = conflict_answered(&text, std::io::stdin().is_terminal()) else {
                    continue;
                };
                if for_all {
                    *all = Some(choice);
                }
                return choice;
            }
        })
    }
}

/// What is offered, with so many names.
fn offered(offer: &Offered, names: usize) -> String {
    let mut text = format!("offered: {} in {}", HumanBytes(offer.bytes), offer.counts());
    match (offer.fits(), offer.free) {
        (Some(true), Some(free)) => text.push_str(&format!("; {} are free here", HumanBytes(free))),
        (Some(false), Some(free)) => text.push_str(&format!(
            "; only {} are free here, too few unless much of it is here already or holes",
            HumanBytes(free)
        )),
        _ => {}
    }
    const INDENT: &str = "\n  ";
    let shown = offer.shown(names, screen::columns().saturating_sub(INDENT.len()));
    let rest = offer.top_count.saturating_sub(shown.len() as u64);
    for name in shown {
        text.push_str(INDENT);
        text.push_str(&name);
    }
    match (rest, names < LISTED_NAMES) {
        (0, _) => {}
        (rest, true) => text.push_str(&format!("{INDENT}and {rest} more")),
        (rest, false) => text.push_str(&format!("{INDENT}and {rest} more, whose names the sender has not said")),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_question_says_how_much_and_whether_it_fits() {
        let mut offer = Offered {
            files: 3,
            others: 2,
            links: Some(1),
            bytes: 3 << 20,
            top: vec![],
            top_count: 0,
            free: Some(1 << 30),
        };
        assert_eq!(
            offered(&offer, NAMES),
            "offered: 3.00 MiB in 3 files, 1 folder and 1 link; 1.00 GiB are free here"
        );
        offer.free = Some(1 << 20);
        assert!(offered(&offer, NAMES).contains("only 1.00 MiB are free here, too few"));
        (offer.free, offer.top_count) = (None, 4);
        assert!(offered(&offer, NAMES).ends_with("\n  and 4 more"));
    }
}
