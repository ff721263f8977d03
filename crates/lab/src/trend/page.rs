//! The trend as a page that opens in a browser.

use super::Trend;
use super::render::{about, left_out, scale, summary};
use crate::report::html::alone::Alone;
use crate::report::html::over_time::{self, Level, OverTime, Run};
use crate::store::minute;

pub(super) fn render(trend: &Trend) -> String {
    let (factor, unit) = scale(trend);
    let figure = |values: [f64; 3]| values.map(|value| value * factor);
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let run = |point: &super::Point| Run {
        id: point.id.to_string(),
        started: minute(&point.started),
        branch: text(&point.label.branch),
        commit: text(&point.label.commit).chars().take(12).collect(),
        figure: figure([point.value.get(), point.low.get(), point.high.get()]),
    };
    let level = |segment: &super::Segment| Level {
        first: segment.first,
        runs: segment.runs,
        figure: figure([segment.value.get(), segment.low.get(), segment.high.get()]),
    };
    over_time::render(&OverTime {
        alone: Alone {
            title: "Sealway lab: a figure over time",
            heading: summary(trend),
            notes: left_out(trend),
            about: about(trend).to_vec(),
        },
        unit,
        runs: trend.points.iter().map(run).collect(),
        levels: trend.segments.iter().map(level).collect(),
    })
}
