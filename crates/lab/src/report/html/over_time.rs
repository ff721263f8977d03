//! One figure over many runs, as a page of its own.

use maud::{Markup, html};

use super::alone::{self, Alone};
use super::chart::{Anchor, chart, line, path, point, rect, text, trim};
use super::figure::frame;
use super::scale::linear_ticks;
use crate::format::sig3_or;
use crate::report::drawing::{Figure, Frame};
use crate::report::listing::{Entry, Listing};

const WIDTH: f64 = 980.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 960.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 310.0;

/// Labels under the axis at most.
const LABELS: usize = 16;

/// What the page shows. No text in it has to be harmless.
pub(crate) struct OverTime {
    pub(crate) alone: Alone,
    pub(crate) unit: String,
    /// Oldest first.
    pub(crate) runs: Vec<Run>,
    pub(crate) levels: Vec<Level>,
}

/// The figure of one run.
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) started: String,
    pub(crate) branch: String,
    pub(crate) commit: String,
    /// Value, and the ends of its interval.
    pub(crate) figure: [f64; 3],
}

/// Runs in a row that do not differ.
pub(crate) struct Level {
    /// Place of the first.
    pub(crate) first: usize,
    pub(crate) runs: usize,
    /// Value, and the ends of its interval.
    pub(crate) figure: [f64; 3],
}

/// The whole page.
pub(crate) fn render(shown: &OverTime) -> String {
    let figure = Figure {
        id: "trend".to_owned(),
        drawings: Vec::new(),
        caption: "Points are runs with their intervals. A bar behind them is the interval of runs that do not differ, its line \
                  their median; a step from one bar to the next is a change."
            .to_owned(),
        reading: String::new(),
        listing: listing(shown),
        folded: None,
    };
    let drawing = html! { div.scroll tabindex="0" { (drawing(shown)) } };
    alone::page(&shown.alone, &html! { section { (frame(&figure, "wide", &drawing)) } })
}

fn drawing(shown: &OverTime) -> Markup {
    let finite = shown
        .runs
        .iter()
        .flat_map(|run| run.figure)
        .filter(|value| value.is_finite());
    let (least, most) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
        (least.min(value), most.max(value))
    });
    let room = (0.06 * (most - least)).max(0.01 * most.abs());
    let (least, most) = (least - room, most + room);
    let step = (RIGHT - LEFT) / shown.runs.len().max(1) as f64;
    let x = |place: usize| LEFT + (place as f64 + 0.5) * step;
    let y = |value: f64| BOTTOM - ((value - least) / (most - least)).clamp(0.0, 1.0) * (BOTTOM - TOP);
    let every = shown.runs.len().div_ceil(LABELS).max(1);
    let content = html! {
        (text("axis", (0.0, 36.0), Anchor::Start, &shown.unit))
        @for tick in linear_ticks(least, most, 6) {
            (line("gridline", (LEFT, y(tick)), (RIGHT, y(tick))))
            (text("tick", (LEFT - 8.0, y(tick) + 4.0), Anchor::End, &trim(tick)))
        }
        @for level in &shown.levels {
            @let [value, low, high] = level.figure;
            @let (from, to) = (x(level.first) - step / 2.0, x(level.first + level.runs) - step / 2.0);
            (rect("band", (from, y(high)), (to - from, y(low) - y(high))))
            (path("canary", &[(from, y(value)), (to, y(value))]))
        }
        g.s0 {
            @for (place, run) in shown.runs.iter().enumerate() {
                @let [value, low, high] = run.figure;
                (line("whisker", (x(place), y(low)), (x(place), y(high))))
                (point("", 0, (x(place), y(value)), 4.0, ""))
                @if place % every == 0 { (text("tick", (x(place), BOTTOM + 17.0), Anchor::Middle, &run.id)) }
            }
        }
        (line("axisline", (LEFT, BOTTOM), (RIGHT, BOTTOM)))
        (text("axis", (f64::midpoint(LEFT, RIGHT), BOTTOM + 38.0), Anchor::Middle, "run"))
    };
    let title = Frame {
        id: "trend-chart".to_owned(),
        title: "The figure of each run, oldest first".to_owned(),
        description: shown.alone.heading.clone(),
    };
    chart(&title, "strip", (WIDTH, HEIGHT), &content)
}

fn listing(shown: &OverTime) -> Listing {
    let columns = [
        ("run", true),
        ("started", false),
        ("branch", false),
        ("commit", false),
        (shown.unit.as_str(), true),
        ("low", true),
        ("high", true),
    ];
    let mut listing = Listing::new("", &columns);
    let row = |run: &Run| {
        let texts = [&run.id, &run.started, &run.branch, &run.commit].map(Entry::text);
        let numbers = run.figure.map(|value| Entry::number(sig3_or(value, "?"), value));
        texts.into_iter().chain(numbers).collect()
    };
    listing.rows = shown.runs.iter().map(row).collect();
    listing
}
