//! Two runs side by side as a page that opens in a browser.

use super::groups::{self, Group, groups};
use super::render::runs;
use super::{Comparison, Row};
use crate::format::{count, percent_from_one, sig3_or};
use crate::lens::rank::{Speed, verdict};
use crate::report::drawing::{Drawing, Figure, Frame, Ratios};
use crate::report::html::alone::{self, Alone};
use crate::report::listing::{Entry, Listing};
use crate::workload::Catalogue;

const READING: &str = "Right of the line is better than before, whichever way the figure counts. Bars are the smallest change that \
                       these rounds would show, either way of what was seen; where it is not known (thin and pale), the limit \
                       from which a change counts. The grey band is 1 % either way, arrows leave the scale.";

pub(super) fn render(comparison: &Comparison, catalogue: &Catalogue) -> String {
    let (first, rest) = comparison.sorted_notes();
    let notes = rest.iter().map(|note| note.text.clone());
    let alone = Alone {
        title: "Sealway lab: two runs side by side",
        heading: comparison.headline.text.clone(),
        notes: first.iter().map(|note| note.text.clone()).collect(),
        about: runs(comparison).into_iter().chain(notes).collect(),
    };
    let groups = groups(comparison, catalogue);
    let figures = groups.iter().enumerate().map(|(place, group)| figure(place, group));
    alone::render(&alone, figures.chain(unmatched(comparison, catalogue)))
}

fn figure<'a>(place: usize, group: &'a Group<'a>) -> (String, Figure<'a>) {
    let drawn: Vec<_> = group
        .rows
        .iter()
        .filter_map(|(case, row)| Some((case, *row, speed(row)?)))
        .collect();
    let lines = drawn.iter().map(|(case, row, speed)| {
        let (_, _, word) = verdict(row.verdict.as_str());
        let tip = format!("{case}: {}, {word}", percent_from_one(speed.estimate));
        ((*case).clone(), vec![(word.to_owned(), *speed, false, tip)])
    });
    let drawing = Drawing::Ratios(Ratios {
        frame: Frame {
            id: format!("change-{place}"),
            title: "Change of the figure over the control".to_owned(),
            description: group.title.clone(),
        },
        subject: group.rows.first().map_or("", |(_, row)| row.key.subject.as_str()),
        series: 0,
        ends: Ratios::ends(drawn.iter().map(|(_, _, speed)| speed)),
        groups: lines.collect(),
    });
    let found = Figure {
        id: format!("group-{place}"),
        drawings: if drawn.is_empty() { Vec::new() } else { vec![drawing] },
        caption: caption(group),
        reading: if place == 0 { READING.to_owned() } else { String::new() },
        listing: listing(group),
        ..Figure::default()
    };
    (group.title.clone(), found)
}

/// The change of a row, above 1 for better, with the least change that it would show.
fn speed(row: &Row) -> Option<Speed<'_>> {
    let change = row.ratio?.factor.get();
    let estimate = if row.better == "lower" { 1.0 / change } else { change };
    let sees = 1.0 + row.mde.get();
    let reach = if sees.is_finite() { sees } else { 1.0 + row.threshold };
    (estimate.is_finite() && estimate > 0.0).then_some(Speed {
        to: row.control.as_deref().unwrap_or_default(),
        estimate,
        low: estimate / reach,
        high: estimate * reach,
        interval: sees.is_finite(),
        verdict: row.verdict.as_str(),
    })
}

fn caption(group: &Group<'_>) -> String {
    let words = ["slower", "faster", "same", "unknown"].map(|name| {
        let (_, _, word) = verdict(name);
        let rows = group.rows.iter().filter(|(_, row)| row.verdict.as_str() == name);
        format!("{} {word}", rows.count())
    });
    let sum = format!("Of {}: {}.", count(group.rows.len(), "case"), words.join(", "));
    let notes = group.notes.iter().map(|note| format!("{note}."));
    std::iter::once(sum).chain(notes).collect::<Vec<_>>().join(" ")
}

fn listing(group: &Group<'_>) -> Listing {
    let columns = "case, #before, #after, unit, #change, #of the control, #of the ratio, #sees, #limit, verdict";
    let mut listing = Listing::new("", columns);
    let percent = |factor: f64| Entry::number(percent_from_one(factor), factor);
    let figure = |value: f64| Entry::number(sig3_or(value, "not known"), value);
    for (case, row) in &group.rows {
        let of = |change: Option<super::Change>| percent(change.map_or(f64::NAN, |change| change.factor.get()));
        listing.rows.push(vec![
            Entry::text(case),
            figure(row.own.old.get()),
            figure(row.own.new.get()),
            Entry::text(&row.unit),
            percent(row.own.factor.get()),
            of(row.control_change),
            of(row.ratio),
            percent(1.0 + row.mde.get()),
            percent(1.0 + row.threshold),
            Entry::text(verdict(row.verdict.as_str()).2),
        ]);
    }
    listing
}

/// What only one of the runs has.
fn unmatched(comparison: &Comparison, catalogue: &Catalogue) -> Option<(String, Figure<'static>)> {
    let mut listing = Listing::new("", "only in, figure, case, why");
    for row in &comparison.unmatched {
        listing.rows.push(vec![
            Entry::text(row.side.as_str()),
            Entry::text(groups::figure(&row.key, catalogue)),
            Entry::text(groups::case(&row.key, catalogue)),
            Entry::text(&row.reason),
        ]);
    }
    let rows = listing.rows.len();
    let found = Figure {
        id: "unmatched".to_owned(),
        caption: format!("{} that only one of the runs has.", count(rows, "figure")),
        listing,
        ..Figure::default()
    };
    (rows > 0).then(|| ("Not compared".to_owned(), found))
}
