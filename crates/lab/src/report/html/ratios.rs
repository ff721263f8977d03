//! Ratios to the reference with their intervals: who is faster, by how much, how sure.

use maud::{Markup, html};

use super::chart::{Anchor, chart, line, point, rect, series, shape, text, trim};
use super::scale::Log;
use crate::format::{list_range, sig3_or};
use crate::lens::rank::{MARGIN, Speed};
use crate::report::drawing::Ratios;

const WIDTH: f64 = 480.0;
const LEFT: f64 = 100.0;
const RIGHT: f64 = 336.0;
const ROW: f64 = 21.0;
const HEAD: f64 = 30.0;

pub(super) fn draw(ratios: &Ratios<'_>) -> Markup {
    let x = Log::new(ratios.ends.0, ratios.ends.1, LEFT, RIGHT);
    let lines: usize = ratios.groups.iter().map(|(_, lines)| lines.len() + 1).sum();
    let bottom = HEAD + 8.0 + ROW * lines as f64;
    let (one, band) = (x.at(1.0), (x.at(1.0 - MARGIN), x.at(1.0 + MARGIN)));
    let mut y = HEAD + 8.0;
    let content = html! {
        (rect("band", (band.0, HEAD), (band.1 - band.0, bottom - HEAD)))
        @for tick in x.ticks() { (line("gridline", (x.at(tick), HEAD), (x.at(tick), bottom))) }
        @for (place, tick) in labelled(x) { (text("tick", (place, bottom + 16.0), Anchor::Middle, &trim(tick))) }
        (line("one", (one, HEAD), (one, bottom)))
        (text("axis", (one - 8.0, bottom + 34.0), Anchor::End, "\u{2190} slower"))
        (text("axis", (one + 8.0, bottom + 34.0), Anchor::Start, "faster \u{2192}  (ratio, log scale)"))
        @for (heading, lines) in &ratios.groups {
            (text("rowhead", (0.0, y + 14.0), Anchor::Start, heading))
            @for (label, speed, marked, tip) in lines {
                ({
                    y += ROW;
                    row(label, speed, y + ROW / 2.0, &series(&format!("s{}", ratios.series), ratios.subject, &html! {
                        (interval(speed, x, y + ROW / 2.0))
                        (point(if *marked { "hollow" } else { "" }, ratios.series, (x.at(speed.estimate), y + ROW / 2.0), 4.5, tip))
                    }))
                })
            }
            ({ y += ROW; "" })
        }
    };
    chart(&ratios.frame, "forest", (WIDTH, bottom + 44.0), &content)
}

/// Ticks whose labels have room; that of 1 always has its own.
fn labelled(x: Log) -> Vec<(f64, f64)> {
    let mut free_from = f64::MIN;
    let mut found = Vec::new();
    for tick in x.ticks() {
        let place = x.at(tick);
        let near_one = (place - x.at(1.0)).abs() < 24.0 && (tick - 1.0).abs() > 1e-9;
        if place - 13.0 >= free_from && !near_one {
            found.push((place, tick));
            free_from = place + 13.0;
        }
    }
    found
}

fn row(label: &str, speed: &Speed<'_>, middle: f64, mark: &Markup) -> Markup {
    let range = list_range(speed.low, speed.high).replace(" to ", "\u{2013}");
    html! {
        (text("row", (LEFT - 12.0, middle + 4.0), Anchor::End, label))
        (mark)
        (text("number strong", (RIGHT + 48.0, middle + 4.0), Anchor::End, &sig3_or(speed.estimate, "?")))
        (text("number", (WIDTH, middle + 4.0), Anchor::End, &range))
    }
}

/// The interval, with an arrow where it leaves the scale.
fn interval(speed: &Speed<'_>, x: Log, y: f64) -> Markup {
    let (low, high) = (x.at(speed.low), x.at(speed.high));
    let class = if speed.interval { "interval" } else { "interval few" };
    html! {
        (line(class, (low, y), (high, y)))
        @if !x.holds(speed.low) { (shape("arrow", &[(low - 6.0, y), (low + 1.0, y - 4.0), (low + 1.0, y + 4.0)], "")) }
        @if !x.holds(speed.high) { (shape("arrow", &[(high + 6.0, y), (high - 1.0, y - 4.0), (high - 1.0, y + 4.0)], "")) }
    }
}
