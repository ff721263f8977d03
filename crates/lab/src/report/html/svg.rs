//! The few SVG elements the charts are made of. Numbers keep one decimal; text is escaped here and nowhere else.

use std::fmt::{self, Write as _};

use crate::format::Esc;

/// A coordinate with one decimal.
struct At(f64);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rounded = if self.0.is_finite() {
            (self.0 * 10.0).round() / 10.0
        } else {
            0.0
        };
        write!(f, "{rounded}")
    }
}

/// A drawing in the making.
pub(super) struct Svg {
    text: String,
}

/// Where text stands to its point.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    /// A drawing of a size in user units. `id` must be unique in the page; `title` and `description` are what a screen
    /// reader says.
    pub(super) fn new(id: &str, class: &str, width: f64, height: f64, title: &str, description: &str) -> Self {
        let mut text = String::new();
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(
            text,
            "<svg class=\"chart {class}\" id=\"{id}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
             <title id=\"{id}-t\">{}</title><desc id=\"{id}-d\">{}</desc>",
            At(width),
            At(height),
            Esc(title),
            Esc(description)
        );
        Svg { text }
    }

    /// The finished element.
    pub(super) fn finish(mut self) -> String {
        self.text.push_str("</svg>\n");
        self.text
    }

    /// Opens a group; `name` is offered to the script as `data-subject`.
    pub(super) fn open(&mut self, class: &str, name: &str) {
        let _ = writeln!(self.text, "<g class=\"{class}\" data-subject=\"{}\">", Esc(name));
    }

    pub(super) fn close(&mut self) {
        self.text.push_str("</g>\n");
    }

    pub(super) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let (x1, y1, x2, y2) = (At(x1), At(y1), At(x2), At(y2));
        let _ = writeln!(
            self.text,
            "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
        );
    }

    pub(super) fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        let (x, y, width, height) = (At(x), At(y), At(width.max(0.0)), At(height.max(0.0)));
        let _ = writeln!(
            self.text,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>"
        );
    }

    /// A rectangle with a value that the script shows.
    pub(super) fn bar(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64), tip: &str) {
        let (x, y, width, height) = (At(x), At(y), At(width.max(0.0)), At(height.max(0.0)));
        let _ = writeln!(
            self.text,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" rx=\"2\" data-tip=\"{}\"/>",
            Esc(tip)
        );
    }

    pub(super) fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        if points.len() < 2 {
            return;
        }
        let mut d = String::new();
        for (i, (x, y)) in points.iter().enumerate() {
            let _ = write!(d, "{}{} {}", if i == 0 { 'M' } else { 'L' }, At(*x), At(*y));
        }
        let _ = writeln!(self.text, "<path class=\"{class}\" d=\"{d}\"/>");
    }

    /// A closed shape.
    pub(super) fn shape(&mut self, class: &str, points: &[(f64, f64)]) {
        let list: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", At(*x), At(*y))).collect();
        let _ = writeln!(self.text, "<polygon class=\"{class}\" points=\"{}\"/>", list.join(" "));
    }

    /// A data point. The shape goes with the series, so that colour is never the only difference; `tip` is what the
    /// script shows on hover and the plain title without it.
    pub(super) fn point(&mut self, class: &str, series: usize, (x, y): (f64, f64), r: f64, tip: &str) {
        let tip = if tip.is_empty() {
            String::new()
        } else {
            format!(" data-tip=\"{}\"", Esc(tip))
        };
        let text = &mut self.text;
        let polygon = |text: &mut String, corners: &[(f64, f64)]| {
            let list: Vec<String> = corners
                .iter()
                .map(|(dx, dy)| format!("{},{}", At(x + dx * r), At(y + dy * r)))
                .collect();
            let _ = writeln!(
                text,
                "<polygon class=\"pt {class}\" points=\"{}\"{tip}/>",
                list.join(" ")
            );
        };
        match series {
            0 => {
                let _ = writeln!(
                    text,
                    "<circle class=\"pt {class}\" cx=\"{}\" cy=\"{}\" r=\"{}\"{tip}/>",
                    At(x),
                    At(y),
                    At(r)
                );
            }
            1 => polygon(text, &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            2 => polygon(text, &[(0.0, -1.15), (1.1, 0.85), (-1.1, 0.85)]),
            3 => polygon(text, &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            4 => polygon(text, &[(0.0, 1.15), (1.1, -0.85), (-1.1, -0.85)]),
            _ => polygon(text, &[(-1.2, -0.5), (1.2, -0.5), (1.2, 0.5), (-1.2, 0.5)]),
        }
    }

    pub(super) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let _ = writeln!(
            self.text,
            "<text class=\"{class}\" x=\"{}\" y=\"{}\"{anchor}>{}</text>",
            At(x),
            At(y),
            Esc(text)
        );
    }
}
