//! The first screen of a report: which, by how much, how sure.

use super::Calm;
use super::choice::{Choice, Grade, basis, shaky};
use super::rank::{Speed, speed};
use crate::format::times;
use crate::result::{Case, ResultRow, RunResult};

/// What stands where there is no answer.
pub const UNKNOWN: &str = "not known";

/// The four parts of the first screen, without the machine.
#[derive(Clone, Debug)]
pub struct Headline {
    /// One sentence: which, and how fast.
    pub answer: String,
    /// The others beside it; empty when there are none.
    pub detail: String,
    /// What stands before the choice: `Use`, unless there is none to make.
    pub label: &'static str,
    /// The choice in a few characters.
    pub which: String,
    /// What it is the choice for.
    pub which_note: String,
    /// The lead over the next choice.
    pub lead: String,
    /// What the lead is over.
    pub lead_note: String,
    /// How sure that lead is; `None` without one.
    pub sure: Option<Grade>,
    /// What the certainty rests on.
    pub sure_note: String,
    /// Our program beside others, where the choice is not one between programs; empty for nothing.
    pub programs: String,
    /// The cases and subjects whose windows it rests on: what disturbed one of these touches the answer.
    pub rests_on: Vec<(Case, String)>,
}

impl Headline {
    /// An answer without a lead: `lead_note` says why there is none.
    pub fn new(answer: String, which: &str, which_note: &str, lead_note: &str) -> Headline {
        Headline {
            answer,
            detail: String::new(),
            label: "Use",
            which: which.to_owned(),
            which_note: which_note.to_owned(),
            lead: UNKNOWN.to_owned(),
            lead_note: lead_note.to_owned(),
            sure: None,
            sure_note: String::new(),
            programs: String::new(),
            rests_on: Vec::new(),
        }
    }

    /// The same with the others beside it.
    #[must_use]
    pub fn detail(mut self, detail: String) -> Headline {
        self.detail = detail;
        self
    }

    /// How sure, in a word.
    pub fn sure(&self) -> &'static str {
        self.sure.map_or(UNKNOWN, Grade::word)
    }

    /// The same with the lead of a row over the other of its ratio; `over` says of a name what the lead over it is.
    #[must_use]
    pub fn ahead(mut self, run: &RunResult, row: &ResultRow, over: impl Fn(&str) -> String) -> Headline {
        if let Some(speed) = speed(row) {
            self.lead = times(speed.estimate);
            self.lead_note = over(speed.to);
            self.stands(run, row, &speed);
        }
        self
    }

    /// The same for a choice between the subject of a row and the other of its ratio: the better one is the choice.
    #[must_use]
    pub fn between(mut self, run: &RunResult, row: &ResultRow, over: impl Fn(&str) -> String) -> Headline {
        let ours = &row.subject;
        let Some(speed) = speed(row) else {
            self.which.clone_from(ours);
            return self.ahead(run, row, over);
        };
        let theirs = speed.to;
        let (first, speed) = match speed.verdict {
            "slower" => (theirs, speed.turned(ours)),
            _ => (ours.as_str(), speed),
        };
        let second = speed.to;
        let lead = times(speed.estimate);
        if matches!(speed.verdict, "faster" | "slower") {
            first.clone_into(&mut self.which);
            (self.lead, self.lead_note) = (lead, over(second));
        } else {
            self.which = format!("{first} or {second}");
            self.lead_note = format!("{first} and {second} share first place ({lead})");
            "none".clone_into(&mut self.lead);
        }
        self.stands(run, row, &speed);
        self
    }

    /// Sets how sure the ratio of a row is.
    fn stands(&mut self, run: &RunResult, row: &ResultRow, speed: &Speed<'_>) {
        let pair = pair(row).map(|subject| (row.case.clone(), subject.to_owned()));
        self.rests_on.extend(pair);
        let grade = grade(run, row);
        self.claims(run, grade, basis((speed.low, speed.high), row.rounds as usize, grade));
    }

    /// The same with a choice between several; `over` says of a name what the lead over it is.
    #[must_use]
    pub(crate) fn choice(
        mut self,
        run: &RunResult,
        choice: &Choice<'_>,
        name: impl Fn(&ResultRow) -> String,
        over: impl Fn(&str) -> String,
    ) -> Headline {
        self.which = choice.names(&name);
        [self.lead, self.lead_note] = choice.gain(&name, over);
        let rows = choice.rows().map(|row| (row.case.clone(), row.subject.clone()));
        self.rests_on.extend(rows);
        self.claims(run, choice.grade(), choice.basis());
        self
    }

    /// Sets how sure it is, by what is claimed and how calm the machine was.
    fn claims(&mut self, run: &RunResult, grade: Grade, basis: String) {
        self.sure = Some(grade.on(&Calm::of(run, &self.rests_on)));
        self.sure_note = basis;
    }
}

/// The subject of a row, and the other of its ratio.
fn pair(row: &ResultRow) -> impl Iterator<Item = &str> {
    let other = row.ratio.iter().map(|ratio| ratio.to.as_str());
    std::iter::once(row.subject.as_str()).chain(other)
}

/// How sure the ratio of a row is, by its verdict and the noise of both rows.
pub(crate) fn grade(run: &RunResult, row: &ResultRow) -> Grade {
    let beside = |other: &&ResultRow| {
        other.case == row.case && other.metric == row.metric && pair(row).any(|name| name == other.subject)
    };
    let restless = run.results.iter().filter(beside).any(shaky);
    Grade::of(speed(row).map_or("", |speed| speed.verdict), restless)
}
