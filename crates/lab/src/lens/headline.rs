//! The first screen of a page: which, by how much, how sure.

use crate::format::{count, list_range, times};
use crate::lens::rank::{Speed, speed};
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
    /// The lead over the second.
    pub lead: String,
    /// What the lead is over.
    pub lead_note: String,
    /// How sure, in a few characters.
    pub sure: String,
    /// What the certainty rests on.
    pub sure_note: String,
    /// The cases and subjects whose windows it rests on: what disturbed one of these touches the answer.
    pub rests_on: Vec<(Case, String)>,
}

impl Headline {
    /// An answer without a lead: `lead_note` says why there is none.
    pub fn new(run: &RunResult, answer: String, which: &str, which_note: &str, lead_note: &str) -> Headline {
        let unknown = || UNKNOWN.to_owned();
        Headline {
            answer,
            detail: String::new(),
            label: "Use",
            which: which.to_owned(),
            which_note: which_note.to_owned(),
            lead: unknown(),
            lead_note: lead_note.to_owned(),
            sure: unknown(),
            sure_note: rounds(run, run.plan.rounds),
            rests_on: Vec::new(),
        }
    }

    /// The same with the others beside it.
    #[must_use]
    pub fn detail(mut self, detail: String) -> Headline {
        self.detail = detail;
        self
    }

    /// The same with the lead of a row, as speed with its interval; `note` says of the name of the other what the lead is over.
    #[must_use]
    pub fn ahead(mut self, run: &RunResult, row: &ResultRow, note: impl FnOnce(&str) -> String) -> Headline {
        self.rests_on.push((row.case.clone(), row.subject.clone()));
        if let Some(speed) = speed(row) {
            self.rests_on.push((row.case.clone(), speed.to.to_owned()));
            self.lead = times(speed.estimate);
            self.lead_note = note(speed.to);
            self.sure = sure(&speed).to_owned();
            self.sure_note = format!("{} {}", list_range(speed.low, speed.high), rounds(run, row.rounds));
        }
        self
    }
}

/// Which rounds a figure rests on, and how noisy the run is.
fn rounds(run: &RunResult, used: u32) -> String {
    let all = count(run.plan.rounds as usize, "round");
    if used < run.plan.rounds {
        format!("in {used} of {all}; {}", noise(run))
    } else {
        format!("in {}; {}", count(used as usize, "round"), noise(run))
    }
}

/// How sure a lead is, in a few characters: what its interval or range says of it.
fn sure(speed: &Speed<'_>) -> &'static str {
    match speed.verdict {
        "faster" | "slower" if speed.interval => "95 % sure",
        "faster" | "slower" => "likely: few rounds",
        "same" => "no difference",
        _ => "not decided",
    }
}

/// Who is better of a row's subject and the one that it stands to: both names where they are not told apart.
pub fn winner(row: &ResultRow) -> String {
    let Some(speed) = speed(row) else {
        return row.subject.clone();
    };
    match speed.verdict {
        "faster" => row.subject.clone(),
        "slower" => speed.to.to_owned(),
        _ => format!("{} or {}", row.subject, speed.to),
    }
}

/// How many figures are noisy.
pub fn noise(run: &RunResult) -> String {
    let noisy = |row: &&ResultRow| row.flags.iter().any(|flag| flag == "noisy" || flag == "unusable");
    match run.results.iter().filter(noisy).count() {
        0 => "no figure noisy".to_owned(),
        marked => format!("{marked} of {} noisy", count(run.results.len(), "figure")),
    }
}
