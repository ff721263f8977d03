//! Every window in time order: was the machine calm?

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::chart::{Anchor, chart, line, longest, name, path, point, series, text, trim};
use super::figure::frame;
use super::scale::linear_ticks;
use crate::format::{count, seconds};
use crate::measure::canary;
use crate::report::drawing::{Figure, Frame};
use crate::report::listing::{Entry, Listing};
use crate::report::model::Report;
use crate::result::Window;
use crate::stats::median;

const WIDTH: f64 = 980.0;
/// Left of the lanes, for names: what their ticks need at least, and what a letter takes.
const LEFT: f64 = 96.0;
const LETTER: f64 = 7.5;
const RIGHT: f64 = 960.0;
const TOP: f64 = 34.0;
const LANE: f64 = 62.0;
/// Points drawn in a lane at most; every marked window is drawn besides.
const POINTS: usize = 250;

/// A window and how far its rate is from the median of its cell, as a fraction.
struct Dot<'a> {
    window: &'a Window,
    off: f64,
}

/// The figure; `None` when there is no window that can be drawn.
pub(super) fn figure(report: &Report<'_>) -> Option<Markup> {
    let windows = &report.run.windows;
    let dots = dots(windows);
    let ends = windows.iter().map(|w| w.t + w.wall_s).filter(|t| t.is_finite());
    let end = ends.fold(0.0, f64::max);
    if dots.is_empty() || end <= 0.0 {
        return None;
    }
    let canary = canary::strays(windows);
    let has = |name: &&str| dots.iter().any(|dot| dot.window.subject == *name);
    let subjects: Vec<&str> = report.subjects.iter().copied().filter(has).collect();
    let mut sizes: Vec<f64> = dots.iter().map(|dot| dot.off.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    // The scale holds nearly all windows; a stray one is drawn at the edge.
    let most = sizes[(sizes.len() - 1) * 98 / 100];
    let steps = [0.02, 0.05, 0.1, 0.2].into_iter();
    let reach = steps.clone().find(|reach| most <= *reach).unwrap_or(0.5);
    let half = sizes[(sizes.len() - 1) / 2];

    let lanes = subjects.len() + usize::from(!canary.is_empty());
    let bottom = TOP + LANE * lanes as f64;
    let left = LEFT.max(longest(subjects.iter().copied()) as f64 * LETTER);
    let x = |t: f64| left + (t / end).clamp(0.0, 1.0) * (RIGHT - left);
    let up = |off: f64| (off / reach).clamp(-1.0, 1.0) * (LANE / 2.0 - 7.0);
    let shown: Vec<Vec<&Dot<'_>>> = subjects.iter().map(|name| shown(&dots, name)).collect();
    let trace: Vec<(f64, f64)> = canary
        .iter()
        .step_by(canary.len().div_ceil(POINTS * 2).max(1))
        .map(|(t, off)| (x(*t), middle(subjects.len()) - up(*off)))
        .collect();
    let content = html! {
        @for tick in linear_ticks(0.0, end, 8) {
            (line("gridline", (x(tick), TOP), (x(tick), bottom)))
            (text("tick", (x(tick), bottom + 17.0), Anchor::Middle, &trim(tick)))
        }
        (text("axis", (f64::midpoint(left, RIGHT), bottom + 36.0), Anchor::Middle, "seconds since the start of the run"))
        @for (place, (name, dots)) in subjects.iter().zip(&shown).enumerate() {
            (lane(place, name, left, reach))
            (series(&format!("s{}", report.series(name)), name, &html! {
                @for dot in dots {
                    @let (class, radius) = if dot.window.marks.is_empty() { ("dot", 2.2) } else { ("dot hollow", 4.0) };
                    (point(class, report.series(name), (x(dot.window.t), middle(place) - up(dot.off)), radius, &tip(dot)))
                }
            }))
        }
        @if !canary.is_empty() { (lane(subjects.len(), "canary", left, reach)) (path("canary", &trace)) }
        (line("axisline", (left, bottom), (RIGHT, bottom)))
    };
    let title = Frame {
        id: "strip-chart".to_owned(),
        title: "Every window in time order".to_owned(),
        description:
            "A lane for each subject with a point for each timed window, placed by its distance from the median of \
                      its cell; the canary beneath."
                .to_owned(),
    };
    let drawing = chart(&title, "strip", (WIDTH, bottom + 42.0), &content);

    let marked = windows.iter().filter(|window| !window.marks.is_empty()).count();
    let worst = canary.iter().map(|(_, off)| off.abs()).fold(0.0, f64::max);
    let calm = match canary.is_empty() {
        true => "too few canaries were run.".to_owned(),
        false => format!("the canary strayed by at most {:.1} %.", worst * 100.0),
    };
    let drawn: usize = shown.iter().map(Vec::len).sum();
    let mut reading = String::from(
        "Up is faster than the cell's median over rounds. Hollow points have a recorded disturbance. The canary is a \
         fixed loop run around each window: where it moves, the machine did.",
    );
    if drawn < dots.len() {
        let all = count(dots.len(), "window");
        reading.push_str(&format!(" {drawn} of {all} are drawn, with every marked one."));
    }
    let figure = Figure {
        id: "strip".to_owned(),
        caption: format!(
            "{marked} of {} marked. Half of all windows lie within {:.1} % of their cell's median; {calm}",
            count(windows.len(), "window"),
            half * 100.0
        ),
        reading,
        listing: listing(windows),
        ..Figure::default()
    };
    Some(frame(&figure, "wide", &html! { div.scroll tabindex="0" { (drawing) } }))
}

/// The middle of a lane.
fn middle(lane: usize) -> f64 {
    TOP + LANE * lane as f64 + LANE / 2.0
}

/// A lane's frame, which begins at `left`.
fn lane(lane: usize, subject: &str, left: f64, reach: f64) -> Markup {
    let middle = middle(lane);
    let (top, end) = (middle - LANE / 2.0, middle + LANE / 2.0);
    let reach = trim(reach * 100.0);
    html! {
        (line("gridline", (left, top), (RIGHT, top)))
        (line("zero", (left, middle), (RIGHT, middle)))
        (name((0.0, middle + 4.0), Anchor::Start, subject))
        (text("tick", (left - 6.0, top + 14.0), Anchor::End, &format!("+{reach} %")))
        (text("tick", (left - 6.0, end - 6.0), Anchor::End, &format!("\u{2212}{reach} %")))
    }
}

/// The points of a subject that are drawn: all that are marked, and as many others as there is room for.
fn shown<'d, 'a>(dots: &'d [Dot<'a>], subject: &str) -> Vec<&'d Dot<'a>> {
    let own: Vec<&Dot<'a>> = dots.iter().filter(|dot| dot.window.subject == subject).collect();
    let stride = own.len().div_ceil(POINTS).max(1);
    let drawn = own.into_iter().enumerate();
    drawn
        .filter(|(place, dot)| place % stride == 0 || !dot.window.marks.is_empty())
        .map(|(_, dot)| dot)
        .collect()
}

/// Rate of each window over the median of its cell, less 1.
fn dots(windows: &[Window]) -> Vec<Dot<'_>> {
    let mut cells: BTreeMap<(&str, &_, &str), Vec<(&Window, f64)>> = BTreeMap::new();
    for window in windows {
        let rate = window.ops as f64 / window.wall_s;
        if rate.is_finite() && rate > 0.0 && window.t.is_finite() {
            cells
                .entry((&window.workload, &window.case, &window.subject))
                .or_default()
                .push((window, rate));
        }
    }
    let mut dots = Vec::new();
    for members in cells.into_values() {
        let rates: Vec<f64> = members.iter().map(|(_, rate)| *rate).collect();
        let middle = median(&rates).unwrap_or(f64::NAN);
        dots.extend(members.into_iter().map(|(window, rate)| Dot {
            window,
            off: rate / middle - 1.0,
        }));
    }
    dots.sort_by_key(|dot| dot.window.order);
    dots
}

fn tip(dot: &Dot<'_>) -> String {
    let window = dot.window;
    let mut text = format!(
        "{} {}, round {}: {:+.1} %",
        window.subject,
        window.case,
        window.round + 1,
        dot.off * 100.0
    );
    if !window.marks.is_empty() {
        text.push_str(&format!(", {}", window.marks.join(", ")));
    }
    text
}

/// The marked windows; all of them are in the result file.
fn listing(windows: &[Window]) -> Listing {
    let columns = "subject, case, #round, #at, #stolen, #preempted, marks";
    let mut listing = Listing::new("Marked windows (the result file has all)", columns);
    for window in windows.iter().filter(|window| !window.marks.is_empty()).take(500) {
        listing.rows.push(vec![
            Entry::text(&window.subject),
            Entry::text(window.case.to_string()),
            Entry::number((window.round + 1).to_string(), f64::from(window.round)),
            Entry::number(seconds(window.t), window.t),
            Entry::number(format!("{:.1} %", window.steal * 100.0), window.steal),
            Entry::number(window.preempted.to_string(), window.preempted as f64),
            Entry::text(window.marks.join(", ")),
        ]);
    }
    if listing.rows.is_empty() {
        listing.rows.push(vec![Entry::text("none")]);
    }
    listing
}
