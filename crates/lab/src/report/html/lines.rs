//! Lines over two logarithmic axes.

use maud::{Markup, html};

use super::chart::{Anchor, chart, line, path, point, series, text, trim};
use super::scale::{Log, spread};
use crate::report::drawing::{Line, Lines, Series};

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 344.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = 276.0;

pub(super) fn draw(lines: &Lines) -> Markup {
    let ((from, to), (low, high)) = lines.ends;
    let (x, y) = (Log::new(from, to, LEFT, RIGHT), Log::new(low, high, BOTTOM, TOP));
    let content = html! {
        (text("axis", (0.0, 36.0), Anchor::Start, &format!("{}, log scale", lines.axis.unit)))
        @for tick in y.ticks() {
            (line("gridline", (LEFT, y.at(tick)), (RIGHT, y.at(tick))))
            (text("tick", (LEFT - 8.0, y.at(tick) + 4.0), Anchor::End, &trim(tick)))
        }
        (across(lines, x))
        // Ours lies beneath, broader than the others, so that a tie shows both.
        @for found in &lines.lines { (series(&class(found), &found.name, &one(found, x, y))) }
        (labels(lines, y))
    };
    chart(&lines.frame, "panel", (WIDTH, HEIGHT), &content)
}

fn class(line: &Line) -> String {
    match line.series {
        Series::Subject(number) => format!("s{number}"),
        Series::Kin(number) => format!("u{number}"),
    }
}

fn form(line: &Line) -> usize {
    let (Series::Subject(number) | Series::Kin(number)) = line.series;
    number
}

fn one(found: &Line, x: Log, y: Log) -> Markup {
    let places: Vec<(f64, f64)> = found
        .points
        .iter()
        .map(|point| (x.at(point.at), y.at(point.value)))
        .collect();
    let radius = if matches!(found.series, Series::Subject(0)) {
        5.5
    } else {
        3.6
    };
    html! {
        (path("line", &places))
        @for (at, figure) in places.iter().zip(&found.points) {
            (line("whisker", (at.0, y.at(figure.low)), (at.0, y.at(figure.high))))
            (point(if figure.marked { "hollow" } else { "" }, form(found), *at, radius, &figure.tip))
        }
    }
}

/// Ticks at what was measured, as many as have room.
fn across(lines: &Lines, x: Log) -> Markup {
    let points = lines.lines.iter().flat_map(|line| &line.points);
    let mut ticks: Vec<(f64, &str)> = points.map(|point| (point.at, point.tick.as_str())).collect();
    ticks.sort_by(|a, b| a.0.total_cmp(&b.0));
    ticks.dedup();
    let mut free_from = f64::MIN;
    let ticks = ticks.into_iter().map(|(at, tick)| {
        let (place, half) = (x.at(at), 4.0 + 3.4 * tick.chars().count() as f64);
        let room = place - half >= free_from;
        if room {
            free_from = place + half;
        }
        (place, room.then_some(tick))
    });
    let ticks: Vec<(f64, Option<&str>)> = ticks.collect();
    let middle = f64::midpoint(LEFT, RIGHT);
    html! {
        @for (place, tick) in ticks {
            (line("tickmark", (place, BOTTOM), (place, BOTTOM + 5.0)))
            @if let Some(tick) = tick { (text("tick", (place, BOTTOM + 19.0), Anchor::Middle, tick)) }
        }
        (line("axisline", (LEFT, BOTTOM), (RIGHT, BOTTOM)))
        (text("axis", (middle, BOTTOM + 38.0), Anchor::Middle, &format!("{}, log scale", lines.axis.across)))
    }
}

/// Names at the ends of their lines.
fn labels(lines: &Lines, y: Log) -> Markup {
    let ends = lines
        .lines
        .iter()
        .filter_map(|line| Some((line, y.at(line.points.last()?.value))));
    let ends: Vec<(&Line, f64)> = ends.collect();
    let wanted: Vec<f64> = ends.iter().map(|(_, place)| *place).collect();
    html! {
        @for ((found, from), place) in ends.iter().zip(spread(&wanted, 15.0, TOP, BOTTOM)) {
            (series(&class(found), &found.name, &html! {
                (line("leader", (RIGHT + 3.0, *from), (RIGHT + 14.0, place)))
                (point("key", form(found), (RIGHT + 20.0, place), 3.5, ""))
                (text("label", (RIGHT + 28.0, place + 4.0), Anchor::Start, &found.name))
            }))
        }
    }
}
