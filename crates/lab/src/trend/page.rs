//! The trend as a page that opens in a browser.

use maud::{Markup, html};

use super::render::{about, left_out, scale, summary};
use super::{Point, Trend};
use crate::format::sig3_or;
use crate::report::drawing::{Figure, Frame};
use crate::report::html::alone::{self, Alone};
use crate::report::html::chart::{Anchor, chart, line, path, point, rect, text, trim};
use crate::report::html::figure::frame;
use crate::report::html::scale::linear_ticks;
use crate::report::listing::{Entry, Listing};
use crate::stats::ends;
use crate::store::minute;

const WIDTH: f64 = 980.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 960.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 310.0;

/// Labels under the axis at most.
const LABELS: usize = 16;

pub(super) fn render(trend: &Trend) -> String {
    let alone = Alone {
        title: "Sealway lab: a figure over time",
        heading: summary(trend),
        notes: left_out(trend),
        about: about(trend).to_vec(),
    };
    let (factor, unit) = scale(trend);
    let scale = (factor, unit.as_str());
    let figure = Figure {
        id: "trend".to_owned(),
        caption: "Points are runs with their intervals. A bar behind them is the interval of runs that do not differ, its line \
                  their median; a step from one bar to the next is a change."
            .to_owned(),
        listing: listing(trend, scale),
        ..Figure::default()
    };
    let title = Frame {
        id: "trend-chart".to_owned(),
        title: "The figure of each run, oldest first".to_owned(),
        description: alone.heading.clone(),
    };
    let drawing = chart(&title, "strip", (WIDTH, HEIGHT), &drawing(trend, scale));
    let drawing = html! { div.scroll tabindex="0" { (drawing) } };
    alone::page(&alone, &html! { section { (frame(&figure, "wide", &drawing)) } })
}

/// The value of a run, and the ends of its interval.
fn figure(point: &Point, factor: f64) -> [f64; 3] {
    [point.value, point.low, point.high].map(|number| number.get() * factor)
}

fn drawing(trend: &Trend, (factor, unit): (f64, &str)) -> Markup {
    let values = trend.points.iter().flat_map(|point| figure(point, factor));
    let (least, most) = ends(values.filter(|value| value.is_finite()));
    let room = (0.06 * (most - least)).max(0.01 * most.abs());
    let (least, most) = (least - room, most + room);
    let step = (RIGHT - LEFT) / trend.points.len().max(1) as f64;
    let x = |place: usize| LEFT + (place as f64 + 0.5) * step;
    let y = |value: f64| BOTTOM - ((value - least) / (most - least)).clamp(0.0, 1.0) * (BOTTOM - TOP);
    let every = trend.points.len().div_ceil(LABELS).max(1);
    html! {
        (text("axis", (0.0, 36.0), Anchor::Start, unit))
        @for tick in linear_ticks(least, most, 6) {
            (line("gridline", (LEFT, y(tick)), (RIGHT, y(tick))))
            (text("tick", (LEFT - 8.0, y(tick) + 4.0), Anchor::End, &trim(tick)))
        }
        @for segment in &trend.segments {
            @let [value, low, high] = [segment.value, segment.low, segment.high].map(|number| number.get() * factor);
            @let (from, to) = (x(segment.first) - step / 2.0, x(segment.first + segment.runs) - step / 2.0);
            (rect("band", (from, y(high)), (to - from, y(low) - y(high))))
            (path("canary", &[(from, y(value)), (to, y(value))]))
        }
        g.s0 {
            @for (place, run) in trend.points.iter().enumerate() {
                @let [value, low, high] = figure(run, factor);
                (line("whisker", (x(place), y(low)), (x(place), y(high))))
                (point("", 0, (x(place), y(value)), 4.0, ""))
                @if place % every == 0 { (text("tick", (x(place), BOTTOM + 17.0), Anchor::Middle, &run.id.to_string())) }
            }
        }
        (line("axisline", (LEFT, BOTTOM), (RIGHT, BOTTOM)))
        (text("axis", (f64::midpoint(LEFT, RIGHT), BOTTOM + 38.0), Anchor::Middle, "run"))
    }
}

fn listing(trend: &Trend, (factor, unit): (f64, &str)) -> Listing {
    let mut listing = Listing::new("", "#run, started, branch, commit");
    listing.numbers([unit, "low", "high"]);
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let row = |point: &Point| {
        let commit: String = text(&point.label.commit).chars().take(12).collect();
        let texts = [
            point.id.to_string(),
            minute(&point.started),
            text(&point.label.branch),
            commit,
        ];
        let numbers = figure(point, factor).map(|value| Entry::number(sig3_or(value, "?"), value));
        texts.map(Entry::text).into_iter().chain(numbers).collect()
    };
    listing.rows = trend.points.iter().map(row).collect();
    listing
}
