//! The few SVG elements that charts are made of. Numbers keep one decimal.

use std::fmt::Write as _;

use maud::{Markup, Render, html};

use super::scale::linear_ticks;
use crate::format::{Esc, sig3_or};
use crate::report::drawing::Frame;

/// Text that is safe wherever it stands, also where an attribute is quoted in another way.
pub(super) struct Text<'a>(pub(super) &'a str);

impl Render for Text<'_> {
    fn render_to(&self, buffer: &mut String) {
        // Writing to a String cannot fail.
        let _ = write!(buffer, "{}", Esc(self.0));
    }
}

/// Running text, as safe, with what stands in backticks as code.
pub(super) struct Prose<'a>(pub(super) &'a str);

impl Render for Prose<'_> {
    fn render_to(&self, buffer: &mut String) {
        let parts: Vec<&str> = self.0.split('`').collect();
        if parts.len().is_multiple_of(2) {
            return Text(self.0).render_to(buffer);
        }
        for (place, part) in parts.into_iter().enumerate() {
            if place.is_multiple_of(2) {
                Text(part).render_to(buffer);
            } else {
                html! { code { (Text(part)) } }.render_to(buffer);
            }
        }
    }
}

/// A coordinate with one decimal.
struct At(f64);

impl Render for At {
    fn render_to(&self, buffer: &mut String) {
        let rounded = if self.0.is_finite() {
            (self.0 * 10.0).round() / 10.0
        } else {
            0.0
        };
        let _ = write!(buffer, "{rounded}");
    }
}

/// Where text stands to its point.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A drawing of a size in user units, with its title above it. Title and description are what a screen reader says.
pub(crate) fn chart(frame: &Frame, class: &str, (width, height): (f64, f64), content: &Markup) -> Markup {
    let id = &frame.id;
    let (title, words) = (format!("{id}-t"), format!("{id}-d"));
    html! {
        svg class={ "chart " (class) } id=(id) viewBox={ "0 0 " (At(width)) " " (At(height)) } role="img"
            aria-labelledby={ (title) " " (words) } {
            title id=(title) { (Text(&frame.title)) }
            desc id=(words) { (Text(&frame.description)) }
            (text("title", (0.0, 16.0), Anchor::Start, &frame.title))
            (content)
        }
        "\n"
    }
}

/// What belongs to a subject: the script hides and shows it by its name.
pub(super) fn series(class: &str, name: &str, content: &Markup) -> Markup {
    html! { g class={ "series " (class) } data-subject=(Text(name)) { (content) } "\n" }
}

pub(crate) fn line(class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> Markup {
    html! { line class=(class) x1=(At(x1)) y1=(At(y1)) x2=(At(x2)) y2=(At(y2)) {} }
}

pub(crate) fn rect(class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) -> Markup {
    html! { rect class=(class) x=(At(x)) y=(At(y)) width=(At(width.max(0.0))) height=(At(height.max(0.0))) {} }
}

/// A rectangle with a value that the script shows.
pub(super) fn bar(class: &str, (x, y): (f64, f64), (width, height): (f64, f64), tip: &str) -> Markup {
    let (width, height) = (At(width.max(0.0)), At(height.max(0.0)));
    html! { rect class=(class) x=(At(x)) y=(At(y)) width=(width) height=(height) rx="2" data-tip=(Text(tip)) {} }
}

pub(crate) fn path(class: &str, points: &[(f64, f64)]) -> Markup {
    if points.len() < 2 {
        return Markup::default();
    }
    html! {
        path class=(class) d={ @for (i, (x, y)) in points.iter().enumerate() {
            (if i == 0 { "M" } else { "L" }) (At(*x)) " " (At(*y))
        } } {}
    }
}

/// A closed shape, with a value that the script shows unless it is empty.
pub(super) fn shape(class: &str, points: &[(f64, f64)], tip: &str) -> Markup {
    let tip = (!tip.is_empty()).then_some(Text(tip));
    html! {
        polygon class=(class) points={ @for (i, (x, y)) in points.iter().enumerate() {
            (if i == 0 { "" } else { " " }) (At(*x)) "," (At(*y))
        } } data-tip=[tip] {}
    }
}

/// A data point. The shape goes with the series, so that colour is never the only difference.
pub(crate) fn point(class: &str, series: usize, (x, y): (f64, f64), r: f64, tip: &str) -> Markup {
    let class = format!("pt {class}");
    let corners: &[(f64, f64)] = match series {
        0 => {
            let tip = (!tip.is_empty()).then_some(Text(tip));
            return html! { circle class=(class) cx=(At(x)) cy=(At(y)) r=(At(r)) data-tip=[tip] {} };
        }
        1 => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
        2 => &[(0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)],
        3 => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
        4 => &[(0.0, 1.15), (1.1, -0.85), (-1.1, -0.85)],
        _ => &[(-1.2, -0.5), (1.2, -0.5), (1.2, 0.5), (-1.2, 0.5)],
    };
    let corners: Vec<(f64, f64)> = corners.iter().map(|(dx, dy)| (x + dx * r, y + dy * r)).collect();
    shape(&class, &corners, tip)
}

pub(crate) fn text(class: &str, (x, y): (f64, f64), anchor: Anchor, content: &str) -> Markup {
    let anchor = match anchor {
        Anchor::Start => None,
        Anchor::Middle => Some("middle"),
        Anchor::End => Some("end"),
    };
    html! { text class=(class) x=(At(x)) y=(At(y)) text-anchor=[anchor] { (Text(content)) } "\n" }
}

/// Letters of a line of a name at most: no program that the lab itself knows or takes has more, with the plus of a pair behind it.
const NAME: usize = 25;
/// From line to line of a name.
pub(super) const LINE: f64 = 14.0;

/// A name in one line, or in two where it is long: that of a pair goes on behind its plus. What does not fit into two is none of ours.
pub(super) fn lines(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= NAME {
        return vec![name.to_owned()];
    }
    let plus = letters[..NAME].iter().position(|letter| *letter == '+');
    let (first, rest) = letters.split_at(plus.map_or(NAME, |at| at + 1));
    vec![first.iter().collect(), rest.iter().take(NAME).collect()]
}

/// Letters of the longest line of some names.
pub(super) fn longest<'a>(names: impl IntoIterator<Item = &'a str>) -> usize {
    let lines = names.into_iter().flat_map(lines);
    lines.map(|line| line.chars().count()).max().unwrap_or(0)
}

/// A name whose lines stand around that of one line at `y`.
pub(super) fn name((x, y): (f64, f64), anchor: Anchor, name: &str) -> Markup {
    let lines = lines(name);
    let first = y - LINE * (lines.len() - 1) as f64 / 2.0;
    html! {
        @for (place, line) in lines.iter().enumerate() {
            (text("row", (x, first + LINE * place as f64), anchor, line))
        }
    }
}

/// Upright lines of a scale from zero to `most`, from `top` to `bottom`, with their values and what they count.
pub(super) fn from_zero(most: f64, place: impl Fn(f64) -> f64, (top, bottom): (f64, f64), counts: &str) -> Markup {
    let middle = f64::midpoint(place(0.0), place(most));
    html! {
        @for tick in linear_ticks(0.0, most, 5) {
            (line("gridline", (place(tick), top), (place(tick), bottom)))
            (text("tick", (place(tick), bottom + 16.0), Anchor::Middle, &trim(tick)))
        }
        (text("axis", (middle, bottom + 34.0), Anchor::Middle, counts))
    }
}

/// A tick without needless digits.
pub(crate) fn trim(value: f64) -> String {
    let text = sig3_or(value, "");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}
