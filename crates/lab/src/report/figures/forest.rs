//! Ratios with their intervals: a figure for each subject.

use super::Plotter;
use crate::format::{list_range, percent_from_one, sig3_or, times};
use crate::lens::OURS;
use crate::lens::rank::{Speed, speed, verdict};
use crate::report::drawing::{Drawing, Figure, Ratios, grouped};
use crate::report::listing::{Entry, Listing};
use crate::report::model::View;
use crate::result::{Case, ResultRow};

impl<'a> Plotter<'_, 'a> {
    /// The ratios of one subject; `None` when it has none.
    pub(super) fn forest(&self, index: usize, subject: &'a str, place: fn(&Case) -> [String; 3]) -> Option<Figure<'a>> {
        let view = self.view;
        let rows = view.scope.rows.iter().copied();
        let rows: Vec<(&'a ResultRow, Speed<'a>)> = rows
            .filter(|row| row.subject == subject && view.lens.leads(row))
            .filter_map(|row| Some((row, speed(row)?)))
            .collect();
        let panels = grouped(rows.iter().map(|member| {
            let [panel, ..] = place(&member.0.case);
            (panel, member)
        }));
        let id = format!("{}-{index}", self.part.figure);
        let drawings = panels.iter().enumerate().map(|(number, (panel, members))| {
            let to = members.first().map_or("", |(_, speed)| speed.to);
            let groups = grouped(members.iter().map(|(row, speed)| {
                let [_, head, label] = place(&row.case);
                let tip = ratio_tip(&(view.lens.case)(&row.case), speed);
                (head, (label, *speed, !row.flags.is_empty(), tip))
            }));
            let words = format!("Ratios of {subject} to {to} with intervals.");
            Drawing::Ratios(Ratios {
                frame: self.frame(
                    format!("{id}-{number}"),
                    format!("{panel}: {subject} against {to}"),
                    &words,
                ),
                subject,
                series: self.series(subject),
                ends: ratio_ends(&rows, to),
                groups,
            })
        });
        let drawings: Vec<Drawing<'a>> = drawings.collect();
        let sentences = view.standings().into_iter().filter(|sum| sum.subject() == subject);
        let sentences: Vec<String> = sentences.map(|sum| sum.sentence()).collect();
        (!rows.is_empty()).then(|| Figure {
            id,
            drawings,
            caption: sentences.join(" "),
            reading: "Right of the line is faster; times are turned round, so this holds for them too. Bars are intervals (thin \
                      and pale: the plain range of a few rounds), the grey band is 1 % either way, arrows leave the scale, \
                      hollow points are noisy. The same log scale in all panels with the same reference."
                .to_owned(),
            listing: ratio_listing(view, &format!("{subject} {}", self.part.caption), &rows),
            folded: (subject != OURS).then(|| format!("{subject} in the same comparison")),
        })
    }
}

fn ratio_tip(case: &str, speed: &Speed<'_>) -> String {
    let range = list_range(speed.low, speed.high);
    let (_, _, word) = verdict(speed.verdict);
    format!("{case}: {} {} ({range}), {word}", times(speed.estimate), speed.to)
}

/// The scale of all panels with one reference; panels with different ones do not invite comparison.
fn ratio_ends(rows: &[(&ResultRow, Speed<'_>)], to: &str) -> (f64, f64) {
    let same = rows.iter().filter(|(_, speed)| speed.to == to);
    Ratios::ends(same.map(|(_, speed)| speed))
}

fn ratio_listing(view: &View<'_>, caption: &str, rows: &[(&ResultRow, Speed<'_>)]) -> Listing {
    let columns = "case, reference, #speed ratio, #from to, #difference, #level, #smallest detectable, verdict";
    let mut listing = Listing::new(caption, columns);
    for (row, speed) in rows {
        let (level, mde) = row
            .ratio
            .as_ref()
            .map_or((0.0, f64::NAN), |ratio| (ratio.level, ratio.mde.get()));
        let percent = |value: f64, known: bool, other: &str| {
            if known {
                format!("{:.1} %", value * 100.0)
            } else {
                other.to_owned()
            }
        };
        listing.rows.push(vec![
            Entry::text((view.lens.case)(&row.case)),
            Entry::text(speed.to),
            Entry::number(sig3_or(speed.estimate, "not known"), speed.estimate),
            Entry::number(list_range(speed.low, speed.high), speed.low),
            Entry::number(percent_from_one(speed.estimate), speed.estimate),
            Entry::number(percent(level, level > 0.0, "range only"), level),
            Entry::number(percent(mde, mde.is_finite(), "not known"), mde),
            Entry::text(verdict(speed.verdict).2),
        ]);
    }
    listing
}
