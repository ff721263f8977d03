//! Which of several to choose, and how sure that is: one scale for every answer and every recommendation.

use super::rank::{ROUNDS_FOR_INTERVAL, rankable};
use super::{Calm, list};
use crate::format::{count, times};
use crate::result::ResultRow;
use crate::stats::{Better, MIN_RANGE_ROUNDS as LEAST_ROUNDS, QUICK_MARGIN, Rules, ratio};

/// How sure a claim is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Grade {
    /// The rounds tell the two apart, and neither figures nor machine were restless.
    Clear,
    /// They tell them apart, but figures were noisy or the machine was disturbed.
    Likely,
    /// They rest on disturbances: what they tell may be those.
    Uncertain,
    /// A difference worth naming would have shown.
    Tie,
    /// These rounds do not tell.
    Undecided,
}

/// The scale, in words.
pub(crate) const SCALE: &str = "clear; likely (noisy figures or a disturbed run); uncertain (most of it disturbed); tie (no difference); \
                                not decided (too few rounds, or they disagree)";

impl Grade {
    /// What a verdict of [`ratio`] is worth.
    pub(crate) fn of(verdict: &str, shaky: bool) -> Grade {
        match verdict {
            "faster" | "slower" if shaky => Grade::Likely,
            "faster" | "slower" => Grade::Clear,
            "same" => Grade::Tie,
            _ => Grade::Undecided,
        }
    }

    /// As a result file has it.
    pub(crate) fn read(confidence: &str) -> Grade {
        match confidence {
            "clear" => Grade::Clear,
            "slight" => Grade::Likely,
            "tie" => Grade::Tie,
            _ => Grade::Undecided,
        }
    }

    /// The word for result files, which know of no disturbances.
    pub(crate) const fn stored(self) -> &'static str {
        match self {
            Grade::Clear => "clear",
            Grade::Likely => "slight",
            Grade::Tie => "tie",
            Grade::Uncertain | Grade::Undecided => "unknown",
        }
    }

    /// The word for readers.
    pub const fn word(self) -> &'static str {
        match self {
            Grade::Clear => "clear",
            Grade::Likely => "likely",
            Grade::Uncertain => "uncertain",
            Grade::Tie => "tie",
            Grade::Undecided => "not decided",
        }
    }

    /// The same where the windows behind the claim were so calm.
    #[must_use]
    pub(crate) fn on(self, calm: &Calm) -> Grade {
        match self {
            Grade::Undecided => Grade::Undecided,
            _ if calm.mostly_disturbed() => Grade::Uncertain,
            Grade::Clear if calm.disturbed() => Grade::Likely,
            other => other,
        }
    }
}

/// By how much one is ahead of another in the same rounds, as speed: above 1 is better, whichever way the metric counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lead {
    pub(crate) estimate: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The ends are those of a 95 % interval, else the lowest and the highest.
    interval: bool,
    rounds: usize,
    /// Whether the two would be told apart if there were rounds enough.
    pub(crate) apart: bool,
    pub(crate) grade: Grade,
}

impl Lead {
    /// Of `a` over `b`, two rows of the same metric.
    pub(crate) fn between(a: &ResultRow, b: &ResultRow) -> Lead {
        let intervals = a.how != "range";
        let rules = Rules {
            intervals,
            ..Rules::of(&a.metric)
        };
        let better = Better::parse(&a.better).unwrap_or(Better::Higher);
        let mut lead = Lead::of(&a.numbers(), &b.numbers(), better, rules, shaky(a) || shaky(b));
        if !rankable(a) || !rankable(b) {
            (lead.apart, lead.grade) = (false, Grade::Undecided);
        }
        lead
    }

    /// Of the first values over the second, by rounds.
    pub(crate) fn of(ours: &[f64], theirs: &[f64], better: Better, rules: Rules, shaky: bool) -> Lead {
        let found = ratio("", ours, theirs, better, rules);
        let [estimate, low, high] = [&found.estimate, &found.low, &found.high].map(|number| number.get());
        let [estimate, low, high] = match better {
            Better::Higher => [estimate, low, high],
            Better::Lower => [1.0 / estimate, 1.0 / high, 1.0 / low],
        };
        let rounds = ours.iter().zip(theirs).filter(|(a, b)| (**a - **b).is_finite()).count();
        Lead {
            estimate,
            low,
            high,
            interval: found.level > 0.0,
            rounds,
            apart: found.verdict == "faster" || would_lead(low, rounds),
            grade: Grade::of(&found.verdict, shaky),
        }
    }

    /// What its grade rests on: `1.17x to 1.20x, 95 % interval of 9 rounds`.
    pub(crate) fn basis(&self) -> String {
        basis((self.low, self.high), self.interval, self.rounds, self.grade)
    }
}

/// Whether a lead of at least `low` would count if there were rounds enough.
pub(super) fn would_lead(low: f64, rounds: usize) -> bool {
    rounds < LEAST_ROUNDS && low > 1.0 + QUICK_MARGIN
}

/// Two ends of a lead, what they are and the rounds that it rests on, with the rule where that decides nothing.
pub(super) fn basis((low, high): (f64, f64), interval: bool, rounds: usize, grade: Grade) -> String {
    let beyond = low > 1.0 + QUICK_MARGIN || high < 1.0 / (1.0 + QUICK_MARGIN);
    let rule = match (grade, rounds) {
        (Grade::Undecided, ..LEAST_ROUNDS) => "; fewer than 3 rounds decide nothing",
        (Grade::Undecided, ..6) if beyond => "; one of the figures may not be ranked",
        (Grade::Undecided, _) if beyond => {
            "; one of the figures may not be ranked, or chance may show it among so many"
        }
        (Grade::Undecided, ..6) => "; with fewer than 6 rounds, only leads over 20 % count",
        _ => "",
    };
    const { assert!(LEAST_ROUNDS == 3 && ROUNDS_FOR_INTERVAL == 6) };
    let what = if interval { "95 % interval" } else { "lowest to highest" };
    let rounds = count(rounds, "round");
    format!("{} to {}, {what} of {rounds}{rule}", times(low), times(high))
}

/// What is said of those that share the first place, by a grade that tells nobody apart: its word, and who they are with how far
/// two of them may be apart.
pub(super) fn shared(grade: Grade, names: &[String], estimate: Option<f64>) -> [String; 2] {
    let (between, perhaps) = match grade {
        Grade::Tie => ("", ""),
        _ => ("between ", "perhaps "),
    };
    let apart = estimate.map_or_else(String::new, |estimate| format!(" ({perhaps}{})", times(estimate)));
    [grade.word().to_owned(), format!("{between}{}{apart}", list(names))]
}

/// Whether a clear claim cannot rest on a row: its rounds disagree, or nobody compared what it did.
pub(crate) fn shaky(row: &ResultRow) -> bool {
    row.verified == "self" || ["noisy", "unusable", "two-modes"].iter().any(|mark| row.has(mark))
}

/// The best of several, told apart round by round.
#[derive(Debug)]
pub(crate) struct Choice<'a> {
    best: &'a ResultRow,
    /// Those that share the first place with it.
    tied: Vec<(&'a ResultRow, Lead)>,
    /// The first that does not.
    next: Option<(&'a ResultRow, Lead)>,
}

impl<'a> Choice<'a> {
    /// Of rows with the same metric, the best first; `None` for fewer than two.
    pub(crate) fn of(rows: &[&'a ResultRow]) -> Option<Choice<'a>> {
        let [best, others @ ..] = rows else { return None };
        let leads = others.iter().map(|row| {
            let mut lead = Lead::between(best, row);
            // Ahead by its figure and behind round by round: that decides nothing.
            if !lead.apart && matches!(lead.grade, Grade::Clear | Grade::Likely) {
                lead.grade = Grade::Undecided;
            }
            (*row, lead)
        });
        let (apart, tied): (Vec<_>, Vec<_>) = leads.partition(|(_, lead)| lead.apart);
        (!others.is_empty()).then(|| Choice {
            best,
            tied,
            next: apart.into_iter().next(),
        })
    }

    /// The rows that it rests on, the best first.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &'a ResultRow> {
        let others = self.tied.iter().chain(&self.next).map(|(row, _)| *row);
        std::iter::once(self.best).chain(others)
    }

    /// What to choose: `a`, `a or b`, `a or 3 others`.
    pub(crate) fn names(&self, name: impl Fn(&ResultRow) -> String) -> String {
        match &self.tied[..] {
            [] => name(self.best),
            [(other, _)] => format!("{} or {}", name(self.best), name(other)),
            more => format!("{} or {} others", name(self.best), more.len()),
        }
    }

    /// The lead that is claimed: over the next, else over the least sure of those that share the first place.
    fn lead(&self) -> Option<&Lead> {
        let tied = || self.tied.iter().map(|(_, lead)| lead);
        let next = self.next.iter().map(|(_, lead)| lead);
        next.chain(tied().filter(|lead| lead.grade != Grade::Tie))
            .chain(tied())
            .next()
    }

    /// How sure the choice is.
    pub(crate) fn grade(&self) -> Grade {
        self.lead().map_or(Grade::Undecided, |lead| lead.grade)
    }

    /// What the grade rests on.
    pub(crate) fn basis(&self) -> String {
        self.lead().map_or_else(String::new, Lead::basis)
    }

    /// The gain in a few characters, and what it is over; `over` says of a name what the lead over it is.
    pub(crate) fn gain(&self, name: impl Fn(&ResultRow) -> String, over: impl Fn(&str) -> String) -> [String; 2] {
        let mut first = vec![name(self.best)];
        first.extend(self.tied.iter().map(|(row, _)| name(row)));
        let estimate = match &self.tied[..] {
            [(_, lead)] => Some(lead.estimate),
            _ => None,
        };
        let is_tie = self.tied.iter().all(|(_, lead)| lead.grade == Grade::Tie);
        let [word, who] = shared(if is_tie { Grade::Tie } else { Grade::Undecided }, &first, estimate);
        match &self.next {
            Some((row, lead)) if self.tied.is_empty() => [times(lead.estimate), over(&name(row))],
            Some((row, lead)) => [times(lead.estimate), format!("{}; {word}: {who}", over(&name(row)))],
            None => [word, who],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::row;

    fn rounds(subject: &str, values: &[f64]) -> ResultRow {
        let mut row = row(subject, 1.0);
        row.values = values.iter().copied().map(crate::result::Num).collect();
        row.better = "higher".to_owned();
        row.how = "range".to_owned();
        row
    }

    fn name(row: &ResultRow) -> String {
        row.subject.clone()
    }

    fn over(name: &str) -> String {
        format!("over {name}")
    }

    #[test]
    fn those_not_told_apart_share_the_first_place() {
        let [a, b, c] = [
            rounds("a", &[1.15, 1.16, 1.15]),
            rounds("b", &[1.0, 1.0, 1.0]),
            rounds("c", &[0.5, 0.5, 0.5]),
        ];
        let choice = Choice::of(&[&a, &b, &c]).expect("three");
        assert_eq!(choice.names(name), "a or b");
        assert_eq!(
            choice.gain(name, over),
            ["2.30x", "over c; not decided: between a and b (perhaps 1.15x)"]
        );
        assert_eq!(choice.grade(), Grade::Clear);
        assert_eq!(choice.basis(), "2.30x to 2.32x, lowest to highest of 3 rounds");
        let choice = Choice::of(&[&a, &b]).expect("two");
        assert_eq!(
            choice.gain(name, over),
            ["not decided", "between a and b (perhaps 1.15x)"]
        );
        assert_eq!(
            choice.basis(),
            "1.15x to 1.16x, lowest to highest of 3 rounds; with fewer than 6 rounds, only leads over 20 % count"
        );
        let choice = Choice::of(&[&a, &c]).expect("two");
        assert_eq!(
            (choice.names(name).as_str(), choice.gain(name, over)),
            ("a", ["2.30x", "over c"].map(str::to_owned))
        );
        assert!(Choice::of(&[&a]).is_none());
    }

    #[test]
    fn two_rounds_show_a_lead_and_decide_nothing() {
        let [a, c] = [rounds("a", &[3.0, 3.1]), rounds("c", &[1.0, 1.0])];
        let choice = Choice::of(&[&a, &c]).expect("two");
        assert_eq!((choice.names(name).as_str(), choice.grade()), ("a", Grade::Undecided));
        assert_eq!(
            choice.basis(),
            "3.00x to 3.10x, lowest to highest of 2 rounds; fewer than 3 rounds decide nothing"
        );
    }

    #[test]
    fn a_clear_claim_needs_steady_rows_that_may_be_ranked() {
        let [a, mut c] = [rounds("a", &[3.0, 3.0, 3.0]), rounds("c", &[1.0, 1.0, 1.0])];
        c.flags.push("noisy".to_owned());
        assert_eq!(Lead::between(&a, &c).grade, Grade::Likely);
        c.flags.push("unusable".to_owned());
        let lead = Lead::between(&a, &c);
        assert_eq!(lead.grade, Grade::Undecided);
        assert_eq!(
            lead.basis().as_str(),
            "3.00x to 3.00x, lowest to highest of 3 rounds; one of the figures may not be ranked"
        );
    }

    #[test]
    fn those_of_one_speed_tie() {
        let same = |subject| {
            let mut row = rounds(subject, &[1.0; 9]);
            row.how = "order-statistics".to_owned();
            row
        };
        let [a, b, mut c] = ["a", "b", "c"].map(same);
        let gain = |rows: &[&ResultRow]| {
            let choice = Choice::of(rows).expect("several");
            (choice.gain(name, over).join(": "), choice.grade())
        };
        assert_eq!(gain(&[&a, &b]), ("tie: a and b (1.00x)".to_owned(), Grade::Tie));
        assert_eq!(gain(&[&a, &b, &c]).0, "tie: a, b and c");
        // One that nobody can tell leaves all of it open.
        c.flags.push("unauthenticated".to_owned());
        let open = ("not decided: between a, b and c".to_owned(), Grade::Undecided);
        assert_eq!(gain(&[&a, &b, &c]), open);
    }

    #[test]
    fn disturbances_take_the_certainty() {
        let calm = |marked| Calm { windows: 9, marked };
        assert_eq!(calm(2).share(), "2 of 9 measurements");
        assert_eq!(calm(9).share(), "all 9 measurements");
        for (grade, marked, wanted) in [
            (Grade::Clear, 1, Grade::Clear),
            (Grade::Clear, 2, Grade::Likely),
            (Grade::Tie, 4, Grade::Tie),
            (Grade::Likely, 5, Grade::Uncertain),
            (Grade::Tie, 9, Grade::Uncertain),
            (Grade::Undecided, 9, Grade::Undecided),
        ] {
            assert_eq!(grade.on(&calm(marked)), wanted, "{grade:?} {marked}");
        }
    }

    #[test]
    fn a_file_keeps_the_grade() {
        for grade in [Grade::Clear, Grade::Likely, Grade::Tie, Grade::Undecided] {
            assert_eq!(Grade::read(grade.stored()), grade);
        }
    }
}
