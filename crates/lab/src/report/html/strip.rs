//! Every window in time order: was the machine calm?

use std::collections::BTreeMap;

use super::figure::{DataTable, Entry, Figure};
use super::scale::linear_ticks;
use super::svg::{Anchor, Svg};
use super::throughput::trim;
use crate::format::{clean, count, seconds};
use crate::report::finding;
use crate::report::view::{View, series};
use crate::result::Window;

const WIDTH: f64 = 980.0;
const LEFT: f64 = 96.0;
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
pub(super) fn figure(view: &View<'_>) -> Option<Figure> {
    let dots = dots(&view.run.windows);
    let end = view
        .run
        .windows
        .iter()
        .map(|w| w.t + w.wall_s)
        .filter(|t| t.is_finite())
        .fold(0.0, f64::max);
    if dots.is_empty() || end <= 0.0 {
        return None;
    }
    let canary = canary(&view.run.windows);
    let lanes: Vec<&str> = view
        .subjects
        .iter()
        .copied()
        .filter(|name| dots.iter().any(|dot| dot.window.subject == *name))
        .collect();
    let mut sizes: Vec<f64> = dots.iter().map(|dot| dot.off.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    // The scale holds nearly all windows; a stray one is drawn at the edge.
    let most = sizes[(sizes.len() - 1) * 98 / 100];
    let reach = [0.02, 0.05, 0.1, 0.2]
        .into_iter()
        .find(|reach| most <= *reach)
        .unwrap_or(0.5);
    let half = sizes[(sizes.len() - 1) / 2];

    let count_lanes = lanes.len() + usize::from(!canary.is_empty());
    let bottom = TOP + LANE * count_lanes as f64;
    let title = "Every window in time order";
    let mut svg = Svg::new(
        "strip-chart",
        "strip",
        WIDTH,
        bottom + 42.0,
        title,
        "A lane for each subject with a point for each timed window, placed by its distance from the median of its cell; the canary beneath.",
    );
    svg.text("title", (0.0, 16.0), Anchor::Start, title);
    let x = |t: f64| LEFT + (t / end).clamp(0.0, 1.0) * (RIGHT - LEFT);
    for tick in linear_ticks(0.0, end, 8) {
        svg.line("gridline", (x(tick), TOP), (x(tick), bottom));
        svg.text("tick", (x(tick), bottom + 17.0), Anchor::Middle, &trim(tick));
    }
    svg.text(
        "axis",
        (f64::midpoint(LEFT, RIGHT), bottom + 36.0),
        Anchor::Middle,
        "seconds since the start of the run",
    );

    let mut drawn = 0;
    for (lane, name) in lanes.iter().enumerate() {
        let middle = frame(&mut svg, lane, &clean(name), reach);
        let own: Vec<&Dot<'_>> = dots.iter().filter(|dot| dot.window.subject == *name).collect();
        let stride = own.len().div_ceil(POINTS).max(1);
        svg.open(&format!("series s{}", series(name)), name);
        for (i, dot) in own.iter().enumerate() {
            let marked = !dot.window.marks.is_empty();
            if i % stride != 0 && !marked {
                continue;
            }
            drawn += 1;
            let y = middle - (dot.off / reach).clamp(-1.0, 1.0) * (LANE / 2.0 - 7.0);
            let class = if marked { "dot hollow" } else { "dot" };
            svg.point(
                class,
                series(name),
                (x(dot.window.t), y),
                if marked { 4.0 } else { 2.2 },
                &tip(dot),
            );
        }
        svg.close();
    }
    if !canary.is_empty() {
        let middle = frame(&mut svg, lanes.len(), "canary", reach);
        let stride = canary.len().div_ceil(POINTS * 2).max(1);
        let line: Vec<(f64, f64)> = canary
            .iter()
            .step_by(stride)
            .map(|(t, off)| (x(*t), middle - (off / reach).clamp(-1.0, 1.0) * (LANE / 2.0 - 7.0)))
            .collect();
        svg.path("canary", &line);
    }
    svg.line("axisline", (LEFT, bottom), (RIGHT, bottom));

    let marked = view
        .run
        .windows
        .iter()
        .filter(|window| !window.marks.is_empty())
        .count();
    let worst = canary.iter().map(|(_, off)| off.abs()).fold(0.0, f64::max);
    let mut caption = format!(
        "{} of {} marked. Half of all windows lie within {:.1} % of their cell's median",
        marked,
        count(view.run.windows.len(), "window"),
        half * 100.0
    );
    if canary.is_empty() {
        caption.push_str("; no canary was run.");
    } else {
        caption.push_str(&format!("; the canary strayed by at most {:.1} %.", worst * 100.0));
    }
    let mut reading = String::from(
        "Up is faster than the cell's median over rounds. Hollow points have a recorded disturbance. The canary is a \
         fixed loop run around each window: where it moves, the machine did.",
    );
    if drawn < dots.len() {
        reading.push_str(&format!(
            " {drawn} of {} are drawn, with every marked one.",
            count(dots.len(), "window")
        ));
    }
    let drawings = vec![format!("<div class=\"scroll\" tabindex=\"0\">{}</div>", svg.finish())];
    Some(Figure {
        id: "strip".to_owned(),
        drawings,
        caption,
        reading,
        table: table(&view.run.windows),
        wide: true,
    })
}

/// Draws a lane's frame and returns its middle.
fn frame(svg: &mut Svg, lane: usize, name: &str, reach: f64) -> f64 {
    let top = TOP + LANE * lane as f64;
    let middle = top + LANE / 2.0;
    svg.line("gridline", (LEFT, top), (RIGHT, top));
    svg.line("zero", (LEFT, middle), (RIGHT, middle));
    svg.text(
        "row",
        (0.0, middle + 4.0),
        Anchor::Start,
        &name.chars().take(12).collect::<String>(),
    );
    svg.text(
        "tick",
        (LEFT - 6.0, top + 14.0),
        Anchor::End,
        &format!("+{} %", trim(reach * 100.0)),
    );
    svg.text(
        "tick",
        (LEFT - 6.0, top + LANE - 6.0),
        Anchor::End,
        &format!("\u{2212}{} %", trim(reach * 100.0)),
    );
    middle
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
        let middle = median(members.iter().map(|(_, rate)| *rate).collect());
        dots.extend(members.into_iter().map(|(window, rate)| Dot {
            window,
            off: rate / middle - 1.0,
        }));
    }
    dots.sort_by_key(|dot| dot.window.order);
    dots
}

/// Time and distance from the median of the canary's speed.
fn canary(windows: &[Window]) -> Vec<(f64, f64)> {
    let samples: Vec<(f64, f64)> = windows
        .iter()
        .flat_map(|window| window.canary.iter().map(|sample| (window.t, 1.0 / sample.cpu_s)))
        .filter(|(t, speed)| t.is_finite() && speed.is_finite() && *speed > 0.0)
        .collect();
    let middle = median(samples.iter().map(|(_, speed)| *speed).collect());
    samples
        .into_iter()
        .map(|(t, speed)| (t, speed / middle - 1.0))
        .collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

fn tip(dot: &Dot<'_>) -> String {
    let window = dot.window;
    let mut text = format!(
        "{} {}, round {}: {:+.1} %",
        clean(&window.subject),
        clean(&window.case.to_string()),
        window.round + 1,
        dot.off * 100.0
    );
    if !window.marks.is_empty() {
        text.push_str(&format!(", {}", window.marks.join(", ")));
    }
    text
}

/// The marked windows; all of them are in the result file.
fn table(windows: &[Window]) -> DataTable {
    let columns = [
        ("subject", false),
        ("case", false),
        ("round", true),
        ("at", true),
        ("stolen", true),
        ("preempted", true),
        ("marks", false),
    ];
    let mut table = DataTable::new("Marked windows (the result file has all)", &columns);
    for window in windows.iter().filter(|window| !window.marks.is_empty()).take(500) {
        table.rows.push(vec![
            Entry::text(clean(&window.subject)),
            Entry::text(clean(&window.case.to_string())),
            Entry::number((window.round + 1).to_string(), f64::from(window.round)),
            Entry::number(seconds(window.t), window.t),
            Entry::number(format!("{:.1} %", window.steal * 100.0), window.steal),
            Entry::number(window.preempted.to_string(), window.preempted as f64),
            Entry::text(window.marks.join(", ")),
        ]);
    }
    if table.rows.is_empty() {
        table.rows.push(vec![Entry::text(finding::list(&["none".to_owned()]))]);
    }
    table
}
