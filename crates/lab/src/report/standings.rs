//! How a subject stands over all cases.

use crate::format::{count, times};
use crate::lens::rank::{rankable, speed, verdict};
use crate::lens::{Against, Lens, OURS, Scope};
use crate::result::ResultRow;

/// Ratios of one subject to one reference, over all cases that both have.
pub(crate) struct Sum<'a> {
    lens: &'static Lens,
    subject: &'a str,
    to: &'a str,
    cases: usize,
    /// Those of them that may be ranked.
    ranked: usize,
    mean: f64,
    worst: (f64, &'a ResultRow),
    best: (f64, &'a ResultRow),
    /// Faster, slower, same, not decided.
    counts: [usize; 4],
}

/// The sums of `subject` over all cases that have a ratio, one for each reference, that of most cases first. Where the reference is the best peer of each case,
/// one has all; the control, and our engine without a GPU, stand for themselves.
pub(crate) fn sums<'a>(lens: &'static Lens, scope: &Scope<'a>, subject: &str) -> Vec<Sum<'a>> {
    let rows = scope.rows.iter().copied();
    let of_subject = rows.filter(|row| row.subject == subject && lens.leads(row));
    let mut sums: Vec<Sum<'a>> = Vec::new();
    for (row, ratio) in of_subject.filter_map(|row| Some((row, speed(row)?))) {
        let itself = lens.against == Against::First || ratio.to == lens.control || ratio.to == OURS;
        let to = if itself { ratio.to } else { "the best peer" };
        let place = sums.iter().position(|sum| sum.to == to).unwrap_or_else(|| {
            let one = (ratio.estimate, row);
            sums.push(Sum {
                lens,
                subject: &row.subject,
                to,
                cases: 0,
                ranked: 0,
                mean: 0.0,
                worst: one,
                best: one,
                counts: [0; 4],
            });
            sums.len() - 1
        });
        let sum = &mut sums[place];
        sum.cases += 1;
        sum.ranked += usize::from(rankable(row));
        sum.mean += ratio.estimate.ln();
        sum.counts[verdict(ratio.verdict).0] += 1;
        if ratio.estimate < sum.worst.0 {
            sum.worst = (ratio.estimate, row);
        }
        if ratio.estimate > sum.best.0 {
            sum.best = (ratio.estimate, row);
        }
    }
    for sum in &mut sums {
        sum.mean = (sum.mean / sum.cases as f64).exp();
    }
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.cases));
    sums
}

impl Sum<'_> {
    /// The subject.
    pub(crate) fn subject(&self) -> &str {
        self.subject
    }

    /// Two sentences. There is a mean only if every case may be ranked and most are decided: one over the calm ones would speak of
    /// others than it says, and one of ratios that may as well be 1 says nothing.
    pub(crate) fn sentence(&self) -> String {
        let [better, worse, same, unknown] = self.counts;
        let words = &self.lens.standing;
        let case = |row: &ResultRow| (self.lens.case)(&row.case);
        let cases = count(self.cases, "case");
        let range = |before: &str| match self.cases {
            ..2 => String::new(),
            _ => format!(
                "{before} from {} ({}) to {} ({})",
                times(self.worst.0),
                case(self.worst.1),
                times(self.best.0),
                case(self.best.1)
            ),
        };
        let stands = if self.ranked < self.cases {
            format!(
                "against {}: {} of {cases} may be ranked, so no mean is given",
                self.to, self.ranked
            )
        } else if unknown * 2 > self.cases {
            let decided = self.cases - unknown;
            format!(
                "against {}: {decided} of {cases} decided, too few for a mean{}",
                self.to,
                range("; single cases")
            )
        } else {
            let mean = times(self.mean);
            format!(
                "{} {mean} {} {}{} (geometric mean of {cases}){}",
                words.verb,
                words.what,
                self.to,
                words.with,
                range(",")
            )
        };
        format!(
            "{} {stands}. {} in {better}, {} in {worse}, the same in {same}, not decided in {unknown}.",
            self.subject, words.better, words.worse
        )
    }
}
