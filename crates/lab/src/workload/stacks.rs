//! Which stack to use, from measured figures only.

use super::advice::{OURS, PassedOver, largest, places};
use crate::format::gap;
use crate::lens::choice::Choice;
use crate::result::{Recommendation, ResultRow};
use crate::route::Stack;

/// What is asked of the stacks that encrypt, with our engine at both ends.
#[derive(Debug)]
pub(crate) struct Question {
    /// Name of the scenario.
    pub(crate) scenario: &'static str,
    /// The metric of which the least is the best.
    pub(crate) metric: &'static str,
    /// The metric in words.
    pub(crate) what: &'static str,
    /// A figure with its unit.
    pub(crate) figure: fn(f64) -> String,
    /// What the gain over the stack of this name is.
    pub(crate) over: fn(&str) -> String,
}

/// The stack of a row.
pub(crate) fn name(row: &ResultRow) -> String {
    row.case.text("stack").unwrap_or_default().to_owned()
}

/// Whether it is of a proxy that encrypts what it carries.
pub(crate) fn encrypts(row: &ResultRow) -> bool {
    Stack::named(&name(row)).is_some_and(|stack| stack.is_proxy() && stack.authenticated())
}

/// The name of its stack as it stands among others, see [`Stack::marked`].
pub(crate) fn marked(row: &ResultRow) -> String {
    Stack::marked(&name(row))
}

impl Question {
    /// Whether a row is one of those that it is about.
    pub(crate) fn is_about(&self, row: &ResultRow) -> bool {
        row.subject == OURS && row.metric == self.metric && encrypts(row)
    }

    /// The answer of the rows that it is about and of which `wanted` is true; `done` says what was done in them.
    pub(crate) fn answer(
        &self,
        rows: &[ResultRow],
        done: &str,
        wanted: impl Fn(&ResultRow) -> bool,
    ) -> Option<Recommendation> {
        let wanted = |row: &ResultRow| self.is_about(row) && wanted(row);
        let mut found = largest(rows, wanted);
        found.reverse();
        let ranked: Vec<&ResultRow> = found.iter().map(|&i| &rows[i]).collect();
        let choice = Choice::of(&ranked)?;
        let passed = PassedOver::of(rows, ranked[0], wanted, name);
        let figures: Vec<String> = ranked
            .iter()
            .map(|row| format!("{} {}", marked(row), (self.figure)(row.median.get())))
            .collect();
        let [lead, over] = choice.gain(marked, self.over);
        let set = Stack::named(&name(ranked[0])).map_or_else(String::new, |stack| stack.settings());
        Some(Recommendation {
            scenario: self.scenario.to_owned(),
            choice: choice.names(name),
            reason: format!(
                "{done}, {}, for transports that encrypt: {}. Gain: {lead}{}{over}.{} For {}, set {set}.",
                self.what,
                figures.join(", "),
                gap(&lead),
                passed.sentence(),
                name(ranked[0]),
            ),
            because: places(rows, choice.rows()),
            confidence: passed.confidence(choice.grade().stored()).to_owned(),
        })
    }
}
