//! The trend for a terminal and for a log: plain ASCII, 80 columns.

use std::fmt::Write as _;

use super::{LeftOut, Point, Segment, Trend};
use crate::format::{count, percent_from_one, plain, wrap};

/// Columns of the drawing.
const WIDTH: usize = 25;

pub(super) fn render(trend: &Trend) -> String {
    let mut out = String::new();
    for text in about(trend) {
        wrap(&mut out, "", &text);
    }
    let (factor, unit) = scale(trend);
    let _ = writeln!(
        out,
        "\n{:>5}  {:10}  {:8}  {:>7} {:>7} {:>7}  {unit}",
        "run", "started", "commit", "value", "low", "high"
    );
    let ends = ends(trend);
    for (place, segment) in trend.segments.iter().enumerate() {
        if place > 0 {
            let _ = writeln!(out, "       -- {} --", change(segment));
        }
        let points = trend.points.iter().skip(segment.first).take(segment.runs);
        for point in points {
            line(&mut out, point, factor, ends);
        }
    }
    out.push('\n');
    wrap(&mut out, "", &summary(trend));
    for text in left_out(trend) {
        wrap(&mut out, "", &text);
    }
    out
}

/// Which figure, and of which machine.
pub(super) fn about(trend: &Trend) -> [String; 2] {
    let over = match trend.control.as_str() {
        "" => String::new(),
        "canary" => ", at the speed that the processor had in the newest run".to_owned(),
        peer => format!(" over that of {peer}"),
    };
    let figure = format!(
        "{}: {} of {}{over}, {} is better; {}",
        trend.workload, trend.metric, trend.subject, trend.better, trend.case
    );
    [figure, format!("{}, {} profile", trend.cpu, trend.profile)]
}

pub(super) fn left_out(trend: &Trend) -> Vec<String> {
    let text = |left: &LeftOut| format!("left out: {}, {}", count(left.runs, "run"), left.why);
    trend.left_out.iter().map(text).collect()
}

fn line(out: &mut String, point: &Point, factor: f64, ends: (f64, f64)) {
    let commit = point.label.commit.as_deref().unwrap_or_default();
    let text = |text: &str, columns: usize| plain(&text.chars().take(columns).collect::<String>());
    let number = |value: f64| digits(value * factor);
    let _ = writeln!(
        out,
        "{:>5}  {:10}  {:8}  {:>7} {:>7} {:>7}  {}",
        point.id,
        text(&point.started, 10),
        text(commit, 8),
        number(point.value.get()),
        number(point.low.get()),
        number(point.high.get()),
        drawing(point, ends).trim_end()
    );
}

/// The interval as a line and the value as a star, between the ends of all of them.
fn drawing(point: &Point, (least, most): (f64, f64)) -> String {
    let place = |log: f64| {
        let share = (log - least) / (most - least);
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.5 };
        (share * (WIDTH - 1) as f64).round() as usize
    };
    let [low, mid, high] = [point.figure.low, point.figure.mid, point.figure.high].map(place);
    let sign = |column: usize| match column {
        _ if column == mid => '*',
        _ if (low..=high).contains(&column) => '-',
        _ => ' ',
    };
    (0..WIDTH).map(sign).collect()
}

fn ends(trend: &Trend) -> (f64, f64) {
    let finite = |value: &f64| value.is_finite();
    let lows = trend.points.iter().map(|point| point.figure.low).filter(finite);
    let highs = trend.points.iter().map(|point| point.figure.high).filter(finite);
    (
        lows.fold(f64::INFINITY, f64::min),
        highs.fold(f64::NEG_INFINITY, f64::max),
    )
}

fn change(segment: &Segment) -> String {
    let verdict = segment.verdict.map_or("", |verdict| verdict.as_str());
    let change = segment.change.map_or(f64::NAN, |change| change.get());
    format!("{verdict}: {}", percent_from_one(change))
}

/// What came of it, in a sentence or two.
pub(super) fn summary(trend: &Trend) -> String {
    let percent = format!("{:.1} %", trend.threshold * 100.0);
    let runs = trend.points.len();
    let Some(last) = trend.segments.last().filter(|_| trend.segments.len() > 1) else {
        return match runs {
            1 => "One run: nothing to compare it with yet.".to_owned(),
            _ => format!("No change of more than {percent} over {runs} runs."),
        };
    };
    let changes = trend.segments.len() - 1;
    let since = trend.points.get(last.first).map_or(0, |point| point.id);
    let confirmed = match last.runs {
        1 => ", seen in this run alone: another one would confirm it".to_owned(),
        many => format!(", and so in the {many} runs since"),
    };
    format!(
        "{} of more than {percent} over {runs} runs. {} in run {since} ({}){confirmed}.",
        count(changes, "change"),
        if changes == 1 { "It is" } else { "The last is" },
        change(last)
    )
}

/// What values are multiplied with, and the unit that they then have.
pub(super) fn scale(trend: &Trend) -> (f64, String) {
    let newest = trend.points.last().map_or(f64::NAN, |point| point.value.get().abs());
    match trend.unit.as_str() {
        "1" => (1.0, "ratio".to_owned()),
        "B/s" => (1e-9, "GB/s".to_owned()),
        unit => match unit
            .strip_prefix('s')
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))
        {
            Some(rest) if newest < 1e-6 => (1e9, format!("ns{rest}")),
            Some(rest) if newest < 1e-3 => (1e6, format!("us{rest}")),
            Some(rest) if newest < 1.0 => (1e3, format!("ms{rest}")),
            _ => (1.0, plain(unit)),
        },
    }
}

/// Four significant digits in at most seven characters: a change of one per cent shows.
fn digits(value: f64) -> String {
    match value.abs() {
        size if !size.is_finite() => "?".to_owned(),
        size if !(1e-3..1e7).contains(&size) => format!("{value:.1e}"),
        size => {
            let decimals = (3.0 - size.log10().floor()).clamp(0.0, 5.0);
            format!("{value:.*}", decimals as usize)
        }
    }
}
