//! Bars from zero, in groups.

use maud::{Markup, html};

use super::chart::{Anchor, LINE, bar, chart, from_zero, line, lines, longest, name, series, text};
use crate::format::sig3_or;
use crate::report::drawing::{Bar, Bars};

const WIDTH: f64 = 480.0;
/// Left of the bars, for names: at least and at most, and what a letter takes.
const LEFT: f64 = 92.0;
const LEFT_MOST: f64 = 204.0;
const LETTER: f64 = 7.0;
const RIGHT: f64 = 408.0;
const ROW: f64 = 21.0;
const HEAD: f64 = 32.0;
/// Most that a character of a title takes, on the average.
const CHARACTER: f64 = 9.2;

pub(super) fn draw(bars: &Bars<'_>) -> Markup {
    let names = || bars.groups.iter().flat_map(|(_, bars)| bars).map(|bar| bar.name);
    // As high as the name with most lines.
    let more = names().map(|name| lines(name).len() - 1).max().unwrap_or(0);
    let each = ROW + LINE * more as f64;
    let rows = names().count() as f64 * each + ROW * bars.groups.len() as f64;
    let bottom = HEAD + rows + 8.0 * bars.groups.len() as f64;
    let left = (longest(names()) as f64 * LETTER + 8.0).clamp(LEFT, LEFT_MOST);
    let x = |value: f64| left + (value / bars.most).clamp(0.0, 1.0) * (RIGHT - left);
    let mut y = HEAD;
    let content = html! {
        (key(bars))
        (from_zero(bars.most, x, (HEAD, bottom), &bars.axis))
        @for (title, group) in &bars.groups {
            (text("rowhead", (0.0, y + 15.0), Anchor::Start, title))
            @for (place, one) in group.iter().enumerate() {
                (row(one, y + ROW + each * place as f64 + (each - ROW) / 2.0, &x))
            }
            ({
                let top = y + ROW;
                y = top + each * group.len() as f64 + 8.0;
                line("axisline", (left, top), (left, y - 8.0))
            })
        }
    };
    chart(&bars.frame, "bars", (WIDTH, bottom + 40.0), &content)
}

/// Which shade is which piece, where bars have several.
fn key(bars: &Bars<'_>) -> Markup {
    let mut names: Vec<&str> = Vec::new();
    for (name, _, _) in bars
        .groups
        .iter()
        .flat_map(|(_, bars)| bars)
        .flat_map(|bar| &bar.pieces)
    {
        if !name.is_empty() && !names.contains(name) {
            names.push(name);
        }
    }
    // Right of the title, however long that is.
    let start = LEFT.max(CHARACTER * bars.frame.title.chars().count() as f64 + 20.0);
    html! {
        g.u2 {
            @for (place, name) in names.iter().enumerate() {
                ({
                    let left = start + 84.0 * place as f64;
                    html! {
                        (bar(&format!("bar part {name}"), (left, 4.0), (14.0, 11.0), name))
                        (text("row", (left + 20.0, 13.5), Anchor::Start, name))
                    }
                })
            }
        }
    }
}

fn row(one: &Bar<'_>, y: f64, x: &dyn Fn(f64) -> f64) -> Markup {
    let drawable = one.value.is_finite() && one.value >= 0.0;
    let left = x(0.0);
    let end = if drawable { x(one.value).max(x(one.high)) } else { left };
    // A percentile that falls among failures.
    let number = match one.value {
        f64::INFINITY => "no answer in time".to_owned(),
        value => sig3_or(value, "not known"),
    };
    let middle = y + ROW / 2.0 - 0.5;
    let mut from = 0.0;
    let pieces = html! {
        @for (name, share, tip) in &one.pieces {
            ({
                let (start, to) = (x(from), x(from + one.value * share));
                from += one.value * share;
                let least = if name.is_empty() { 1.0 } else { 0.5 };
                let class = match (name.is_empty(), one.marked) {
                    (false, _) => format!("bar part {name}"),
                    (true, true) => "bar hollow".to_owned(),
                    (true, false) => "bar".to_owned(),
                };
                bar(&class, (start, y + 3.0), ((to - start).max(least), ROW - 7.0), tip)
            })
        }
        (line("error", (x(one.low), middle), (x(one.high), middle)))
    };
    html! {
        (name((left - 8.0, y + 14.0), Anchor::End, one.name))
        @if drawable { (series(&format!("s{}", one.series), one.name, &pieces)) }
        (text("number strong", (end + 7.0, y + 14.0), Anchor::Start, &number))
    }
}
