//! The first screen of a report: which, by how much, how sure.

use super::Calm;
use super::choice::{Choice, Grade, basis, shaky, shared, would_lead};
use super::rank::{Speed, rankable, speed};
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
    /// What to write in a configuration for it; empty for nothing.
    pub set: String,
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
            set: String::new(),
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
        match speed(row) {
            Some(speed) => {
                self.lead = size(run, row, &speed);
                self.lead_note = over(speed.to);
                self.stands(run, row, &speed);
            }
            None => self = self.alone(row),
        }
        self
    }

    /// The same resting on a row that stands to no other.
    #[must_use]
    pub(crate) fn alone(mut self, row: &ResultRow) -> Headline {
        self.rests_on.push((row.case.clone(), row.subject.clone()));
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
        let few = rounds(run, row);
        let ranked = both(run, row).all(rankable);
        let would_lead = |speed: &Speed<'_>| ranked && would_lead(speed.low, few);
        let turned = speed.turned(ours);
        let (first, speed, apart) = if speed.verdict == "slower" || would_lead(&turned) {
            (theirs, turned, true)
        } else {
            (ours.as_str(), speed, speed.verdict == "faster" || would_lead(&speed))
        };
        let second = speed.to;
        if apart {
            first.clone_into(&mut self.which);
            (self.lead, self.lead_note) = (size(run, row, &speed), over(second));
        } else {
            self.which = format!("{first} or {second}");
            let both = [first, second].map(str::to_owned);
            [self.lead, self.lead_note] = shared(grade(run, row), &both, Some(speed.estimate));
        }
        self.stands(run, row, &speed);
        self
    }

    /// Sets how sure the ratio of a row is.
    fn stands(&mut self, run: &RunResult, row: &ResultRow, speed: &Speed<'_>) {
        let pair = pair(row).map(|subject| (row.case.clone(), subject.to_owned()));
        self.rests_on.extend(pair);
        let grade = grade(run, row);
        let basis = basis((speed.low, speed.high), speed.interval, rounds(run, row), grade);
        self.claims(run, grade, basis);
    }

    /// The same with a choice between several, by the names of rows on their own and beside others; `over` says of a name what the
    /// lead over it is.
    #[must_use]
    pub(crate) fn choice(
        mut self,
        run: &RunResult,
        choice: &Choice<'_>,
        [name, beside]: [fn(&ResultRow) -> String; 2],
        over: impl Fn(&str) -> String,
    ) -> Headline {
        self.which = choice.names(name);
        [self.lead, self.lead_note] = choice.gain(beside, over);
        let rows = choice.rows().map(|row| (row.case.clone(), row.subject.clone()));
        self.rests_on.extend(rows);
        self.claims(run, choice.grade(), choice.basis());
        self
    }

    /// Sets how sure it is, by what is claimed and how calm the machine was.
    fn claims(&mut self, run: &RunResult, grade: Grade, basis: String) {
        let calm = Calm::of(run, &self.rests_on);
        let sure = grade.on(&calm);
        self.sure = Some(sure);
        self.sure_note = match sure {
            Grade::Uncertain => format!("{} were disturbed, run again; {basis}", calm.share()),
            Grade::Likely if calm.disturbed() => format!("{basis}; {} were disturbed", calm.share()),
            Grade::Likely => format!("{basis}; figures are noisy, or could not all be checked"),
            _ => basis,
        };
    }
}

/// The subject of a row, and the other of its ratio.
fn pair(row: &ResultRow) -> impl Iterator<Item = &str> {
    let other = row.ratio.iter().map(|ratio| ratio.to.as_str());
    std::iter::once(row.subject.as_str()).chain(other)
}

/// A row, and that of the other of its ratio.
fn both<'a>(run: &'a RunResult, row: &'a ResultRow) -> impl Iterator<Item = &'a ResultRow> {
    let of_pair = move |other: &&ResultRow| {
        other.case == row.case && other.metric == row.metric && pair(row).any(|name| name == other.subject)
    };
    run.results.iter().filter(of_pair)
}

/// The rounds that a row and the other of its ratio have both.
fn rounds(run: &RunResult, row: &ResultRow) -> usize {
    let least = both(run, row).map(|row| row.rounds).min();
    least.unwrap_or(row.rounds) as usize
}

/// How far the subject of a row is ahead or behind: `4.90x`. Where noise leaves no more than a winner, an end of the interval, as
/// `more than 4.53x`, or the lowest and the highest of too few rounds for one, as `4.53x to 5.60x`.
pub(crate) fn size(run: &RunResult, row: &ResultRow, speed: &Speed<'_>) -> String {
    let ranked = both(run, row).all(rankable);
    match speed.verdict {
        "faster" | "slower" if ranked => times(speed.estimate),
        "faster" | "slower" if !speed.interval => format!("{} to {}", times(speed.low), times(speed.high)),
        "faster" | "slower" if speed.low > 1.0 => format!("more than {}", times(speed.low)),
        "faster" | "slower" => format!("less than {}", times(speed.high)),
        _ => times(speed.estimate),
    }
}

/// How sure the ratio of a row is, by its verdict and the noise of both rows.
pub(crate) fn grade(run: &RunResult, row: &ResultRow) -> Grade {
    let restless = both(run, row).any(shaky);
    Grade::of(speed(row).map_or("", |speed| speed.verdict), restless)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Better, Rules, ratio};
    use crate::store::tests::run;

    /// The first two rounds of a run, with the ratio of ours to the other.
    fn two_rounds(ours: f64, ring: f64) -> RunResult {
        let mut run = run(1, ours, ring);
        for row in &mut run.results {
            row.values.truncate(2);
            row.rounds = 2;
        }
        let [ours, theirs] = [0, 1].map(|place: usize| run.results[place].numbers());
        run.results[0].ratio = Some(ratio("ring", &ours, &theirs, Better::Higher, Rules::of("throughput")));
        run
    }

    fn told(run: &RunResult) -> Headline {
        let headline = Headline::new("So it is.".to_owned(), "", "", "alone");
        headline.between(run, &run.results[0], |name| format!("over {name}"))
    }

    #[test]
    fn two_rounds_show_who_leads_and_decide_nothing() {
        for (ours, ring, first, second) in [(3.0, 1.0, "sealway", "ring"), (1.0, 3.0, "ring", "sealway")] {
            let found = told(&two_rounds(ours, ring));
            assert_eq!(found.which.as_str(), first);
            assert_eq!(found.lead_note, format!("over {second}"));
            assert_eq!(found.sure, Some(Grade::Undecided));
            let note = found.sure_note;
            assert!(
                note.ends_with(" of 2 rounds; fewer than 3 rounds decide nothing"),
                "{note}"
            );
        }
        // A figure that may not be ranked leads nobody.
        let mut run = two_rounds(3.0, 1.0);
        run.results[1].flags.push("unusable".to_owned());
        assert_eq!(told(&run).which, "sealway or ring");
    }

    #[test]
    fn beside_a_noisy_figure_the_lower_end_is_told() {
        let mut run = run(1, 3.0, 1.0);
        let [ours, ring] = [0, 1].map(|place: usize| run.results[place].numbers());
        run.results[0].ratio = Some(ratio("ring", &ours, &ring, Better::Higher, Rules::of("throughput")));
        let [estimate, low] = {
            let found = speed(&run.results[0]).expect("a ratio");
            [found.estimate, found.low].map(times)
        };
        let clear = told(&run);
        assert_eq!((clear.lead, clear.sure), (estimate, Some(Grade::Clear)));
        run.results[1].flags.push("unusable".to_owned());
        let noisy = told(&run);
        assert_eq!(
            (noisy.lead, noisy.sure),
            (format!("more than {low}"), Some(Grade::Likely))
        );
        assert!(
            noisy.sure_note.ends_with("could not all be checked"),
            "{}",
            noisy.sure_note
        );
        // Few rounds have no interval: what they showed is told, and nothing of what others would.
        let rules = Rules::of("throughput").without_intervals();
        run.results[0].ratio = Some(ratio("ring", &ours, &ring, Better::Higher, rules));
        let [low, high] = {
            let found = speed(&run.results[0]).expect("a ratio");
            [found.low, found.high].map(times)
        };
        assert_eq!(told(&run).lead, format!("{low} to {high}"));
    }

    #[test]
    fn an_answer_without_a_peer_rests_on_its_own_row() {
        let found = told(&run(1, 3.0, 1.0));
        assert_eq!((found.which.as_str(), found.sure), ("sealway", None));
        assert_eq!(found.rests_on.len(), 1);
    }
}
