//! Figures of the page: what is drawn, what it says, and the same figures as a list.

mod forest;

use super::drawing::{Bar, Bars, Drawing, Figure, Frame, Line, Lines, Point, Series, grouped};
use super::listing::figures;
use super::model::{Report, View};
use crate::format::{list_range, sig3_or};
use crate::lens::{Axis, Column, Family, Part, Plot, Shown};
use crate::result::ResultRow;

/// A part of the page.
pub(crate) struct Section<'a> {
    pub(crate) part: &'static Part,
    pub(crate) figures: Vec<Figure<'a>>,
}

/// The sections of a workload.
pub(crate) fn sections<'a>(report: &Report<'a>, view: &View<'a>) -> Vec<Section<'a>> {
    let mut intro = view.intro.as_str();
    let parts = view.lens.parts.iter().map(|part| {
        let plotter = Plotter {
            report,
            view,
            part,
            intro,
        };
        let figures = plotter.figures();
        // It is for whoever reads the first of them.
        if figures.iter().any(|figure| figure.reading.contains(intro)) {
            intro = "";
        }
        Section { part, figures }
    });
    parts
        .filter(|section| !section.figures.is_empty() || !section.part.empty.is_empty())
        .collect()
}

/// Makes the figures of a part.
struct Plotter<'r, 'a> {
    report: &'r Report<'a>,
    view: &'r View<'a>,
    part: &'static Part,
    /// What must be known before the figures are read.
    intro: &'r str,
}

impl<'a> Plotter<'_, 'a> {
    fn figures(&self) -> Vec<Figure<'a>> {
        let families: Vec<&Family<'a>> = self.view.families.iter().filter(|family| self.has(family)).collect();
        if let Plot::Ratios(place) = self.part.plot {
            let subjects = self.view.scope.subjects.iter().enumerate();
            let mut figures: Vec<Figure<'a>> = subjects
                .filter_map(|(index, subject)| self.forest(index, subject, place))
                .collect();
            for figure in figures.iter_mut().skip(1) {
                figure.reading.clear();
            }
            return figures;
        }
        if families.is_empty() {
            return Vec::new();
        }
        let one = |families: &[&Family<'a>], id: String| {
            let drawings = match self.part.plot {
                Plot::Sweeps(axis) => self.sweeps(&id, families, axis),
                Plot::Ours(axis) => self.ours(families, axis),
                Plot::Bars(panels) => self.bars(families, panels),
                Plot::Sums(parts) => self.sums(families, parts),
                Plot::Table | Plot::Ratios(_) => Vec::new(),
            };
            self.figure(id, families, drawings)
        };
        let grouped = matches!(self.part.plot, Plot::Sweeps(_)) && families.iter().any(|f| !f.group.is_empty());
        if !grouped {
            return vec![one(&families, self.part.figure.to_owned())];
        }
        let groups = families.chunk_by(|a, b| a.group == b.group).enumerate();
        let mut figures: Vec<Figure<'a>> = groups
            .map(|(place, families)| one(families, format!("{}-{place}", self.part.figure)))
            .collect();
        for (figure, group) in figures.iter_mut().zip(families.chunk_by(|a, b| a.group == b.group)) {
            figure.listing.caption = format!("{} of {}", self.part.caption, group[0].group);
        }
        for figure in figures.iter_mut().skip(1) {
            figure.reading.clear();
        }
        figures
    }

    /// Whether a table has anything for this part.
    fn has(&self, family: &Family<'_>) -> bool {
        let wanted = |shown: &Shown| self.part.metrics.is_empty() || self.part.metrics.contains(&shown.metric);
        let kin = !matches!(self.part.plot, Plot::Ours(_)) || family.kin.is_some();
        kin && family.figures(self.view.lens).iter().any(wanted)
    }

    fn figure(&self, id: String, families: &[&Family<'a>], drawings: Vec<Drawing<'a>>) -> Figure<'a> {
        let view = self.view;
        let ours = matches!(self.part.plot, Plot::Ours(_));
        let mut says: Vec<String> = match self.part.says {
            Some(says) => says(&view.scope),
            None => families
                .iter()
                .filter_map(|family| {
                    let finding = (view.lens.finding)(&view.scope, family)?;
                    Some(if view.lens.beneath {
                        format!("{}: {finding}", family.short)
                    } else {
                        finding
                    })
                })
                .collect(),
        };
        if self.part.says.is_none() && self.part.metrics.is_empty() {
            says.extend(view.findings.iter().cloned());
        }
        if says.is_empty() {
            says.push(format!("{}: the figures of each case.", self.part.caption));
        }
        let mut reading = vec![self.part.reading, self.intro];
        reading.retain(|text| !text.is_empty());
        if drawings.is_empty() {
            reading.retain(|text| *text != self.part.reading);
        }
        let subject = view.scope.ours().filter(|_| ours);
        Figure {
            id,
            drawings,
            caption: says.join(" "),
            reading: reading.join(" "),
            listing: figures(view, self.part, families, subject),
            folded: None,
        }
    }

    fn series(&self, subject: &str) -> usize {
        self.report.series(subject)
    }

    fn frame(&self, id: String, title: String, description: &str) -> Frame {
        Frame {
            id,
            title,
            description: format!("{description} The table below has the figures."),
        }
    }

    /// What is said of a row where it is drawn.
    fn tip(&self, row: &ResultRow, shown: &Shown) -> String {
        let at = |value: f64| value * shown.scale;
        let mut tip = format!(
            "{}, {}: {} {} ({})",
            row.subject,
            (self.view.lens.case)(&row.case),
            sig3_or(at(row.median.get()), "?"),
            shown.unit,
            list_range(at(row.low.get()), at(row.high.get()))
        );
        if !row.flags.is_empty() {
            tip.push_str(&format!(", {}", row.flags.join(", ")));
        }
        tip
    }

    /// A line through the cases of a table.
    fn line(&self, name: &str, series: Series, family: &Family<'a>, subject: &str) -> Line {
        let shown = family.figures(self.view.lens).first().copied();
        let point = |column: &Column<'a>| {
            let shown = shown?;
            let row = column.row(subject, shown.metric)?;
            let value = row.median.get() * shown.scale;
            (value.is_finite() && value > 0.0).then(|| Point {
                at: column.order as f64,
                tick: column.title.clone(),
                value,
                low: row.low.get() * shown.scale,
                high: row.high.get() * shown.scale,
                marked: !row.flags.is_empty(),
                tip: self.tip(row, &shown),
            })
        };
        Line {
            name: name.to_owned(),
            series,
            points: family.columns.iter().filter_map(point).collect(),
        }
    }

    /// Ends of both axes, the same for all panels of a workload.
    fn ends(&self) -> ((f64, f64), (f64, f64)) {
        let (mut across, mut up) = ((f64::MAX, 0.0f64), (f64::MAX, 0.0f64));
        for family in self.view.families.iter().filter(|family| family.sweep) {
            let Some(shown) = family.figures(self.view.lens).first().copied() else {
                continue;
            };
            for column in &family.columns {
                let at = column.order as f64;
                across = (across.0.min(at.max(1.0)), across.1.max(at));
            }
            let values = family.all(shown.metric).map(|row| row.median.get() * shown.scale);
            for value in values.filter(|value| value.is_finite() && *value > 0.0) {
                up = (up.0.min(value), up.1.max(value));
            }
        }
        ((across.0 / 1.25, across.1 * 1.25), (up.0 / 1.2, up.1 * 1.2))
    }

    fn sweeps(&self, id: &str, families: &[&Family<'a>], axis: Axis) -> Vec<Drawing<'a>> {
        let ends = self.ends();
        let swept = families.iter().filter(|family| family.sweep).enumerate();
        let drawings = swept.map(|(place, family)| {
            let metric = family.figures(self.view.lens).first().map_or("", |shown| shown.metric);
            let names = family.subjects(&self.view.scope.subjects, &[metric]);
            let lines = names
                .into_iter()
                .map(|name| self.line(name, Series::Subject(self.series(name)), family, name));
            let words = format!("Lines of {} by {}, one for each subject.", axis.unit, axis.across);
            Drawing::Lines(Lines {
                frame: self.frame(format!("{id}-{place}"), family.title.clone(), &words),
                axis,
                ends,
                lines: lines.collect(),
            })
        });
        drawings.collect()
    }

    fn ours(&self, families: &[&Family<'a>], axis: Axis) -> Vec<Drawing<'a>> {
        let Some(ours) = self.view.scope.ours() else {
            return Vec::new();
        };
        let kin = families.iter().filter_map(|family| {
            let (panel, line) = family.kin.as_ref()?;
            Some((panel, (line, family)))
        });
        let drawings = grouped(kin).into_iter().enumerate().map(|(place, (title, members))| {
            let members = members.into_iter().enumerate();
            let lines =
                members.map(|(number, (line, family))| self.line(line, Series::Kin(number.min(4)), family, ours));
            let words = format!("Lines of {} by {} for {ours}.", axis.unit, axis.across);
            Drawing::Lines(Lines {
                frame: self.frame(
                    format!("{}-{place}", self.part.figure),
                    format!("{title}, {ours}"),
                    &words,
                ),
                axis,
                ends: self.ends(),
                lines: lines.filter(|line| !line.points.is_empty()).collect(),
            })
        });
        drawings.collect()
    }

    fn bar(&self, row: &'a ResultRow, shown: &Shown, pieces: Vec<(&'static str, f64, String)>) -> Bar<'a> {
        let at = |value: f64| value * shown.scale;
        Bar {
            name: &row.subject,
            series: self.series(&row.subject),
            value: at(row.median.get()),
            low: at(row.low.get()),
            high: at(row.high.get()),
            marked: !row.flags.is_empty(),
            pieces: if pieces.is_empty() {
                vec![("", 1.0, self.tip(row, shown))]
            } else {
                pieces
            },
        }
    }

    fn bars(&self, families: &[&Family<'a>], panels: &[(&str, &[&str])]) -> Vec<Drawing<'a>> {
        let mut drawings = Vec::new();
        for (place, family) in families.iter().enumerate() {
            for (index, (title, metrics)) in panels.iter().enumerate() {
                let mut shown = family.figures(self.view.lens);
                shown.retain(|shown| metrics.contains(&shown.metric));
                let Some(first) = shown.first() else { continue };
                let rows = |shown: &Shown| {
                    let subjects = self.view.scope.subjects.iter();
                    let rows = subjects.filter_map(|name| family.row(name, shown.metric));
                    rows.map(|row| self.bar(row, shown, Vec::new())).collect::<Vec<_>>()
                };
                let groups: Vec<_> = shown
                    .iter()
                    .map(|shown| (shown.title.to_owned(), rows(shown)))
                    .collect();
                let words = format!(
                    "Horizontal bars of {} in {} for each subject.",
                    title.to_lowercase(),
                    first.unit
                );
                drawings.push(Drawing::Bars(Bars {
                    frame: self.frame(
                        format!("{}-{place}-{index}", self.part.figure),
                        format!("{title}: {}", family.short),
                        &words,
                    ),
                    axis: format!("{}, from zero", first.unit),
                    most: most(&groups, |bar| bar.value),
                    groups,
                }));
            }
        }
        drawings
    }

    fn sums(&self, families: &[&Family<'a>], parts: &[(&'static str, &str)]) -> Vec<Drawing<'a>> {
        let lens = self.view.lens;
        let groups = |family: &&Family<'a>| {
            let group = |column: &Column<'a>| {
                let case = &column.rows.first()?.case;
                let shown = family
                    .figures(lens)
                    .into_iter()
                    .find(|shown| shown.metric == (lens.leading)(case))?;
                let subjects = self.view.scope.subjects.iter();
                let rows = subjects.filter_map(|name| column.row(name, shown.metric));
                let bars = rows.map(|row| self.bar(row, &shown, self.pieces(column, row, &shown, parts)));
                let bars: Vec<Bar<'a>> = bars.collect();
                (!bars.is_empty()).then(|| (column.title.clone(), shown, bars))
            };
            family.columns.iter().filter_map(group).collect::<Vec<_>>()
        };
        let mut panels: Vec<(String, &str, Vec<(String, Vec<Bar<'a>>)>)> = Vec::new();
        for chunk in families.chunk_by(|a, b| a.group == b.group) {
            let all: Vec<_> = chunk.iter().flat_map(groups).collect();
            let unit = all.first().map(|(_, shown, _)| shown.unit);
            if let Some(unit) = unit {
                let all = all.into_iter().map(|(title, _, bars)| (title, bars)).collect();
                panels.push((chunk[0].group.clone(), unit, all));
            }
        }
        // One scale in all panels, or lengths could not be compared.
        let longest = |(_, _, groups): &(_, _, Vec<(String, Vec<Bar<'a>>)>)| most(groups, |bar| bar.high);
        let most = panels.iter().map(longest).fold(0.0, f64::max);
        let drawings = panels.into_iter().enumerate().map(|(place, (title, unit, groups))| {
            let words =
                format!("Horizontal bars of time in {unit} for each subject, made of a piece for each program.");
            Drawing::Bars(Bars {
                frame: self.frame(format!("{}-{place}", self.part.figure), title, &words),
                axis: format!("{unit}, from zero"),
                most,
                groups,
            })
        });
        drawings.collect()
    }

    /// The pieces of a bar. Medians of the parts need not add up to that of the sum: pieces share out the bar.
    fn pieces(
        &self,
        column: &Column<'a>,
        row: &ResultRow,
        shown: &Shown,
        parts: &[(&'static str, &str)],
    ) -> Vec<(&'static str, f64, String)> {
        let part = |metric: &str| column.row(&row.subject, metric).map_or(0.0, |row| row.median.get());
        let parts = parts.iter().map(|(name, metric)| (*name, part(metric)));
        let parts: Vec<(&str, f64)> = parts.filter(|(_, part)| *part > 0.0).collect();
        let whole: f64 = parts.iter().map(|(_, part)| part).sum();
        let case = (self.view.lens.case)(&row.case);
        let piece = |(name, part): (&'static str, f64)| {
            let figure = sig3_or(part * shown.scale, "?");
            let tip = format!("{}, {case}, {name}: {figure} {}", row.subject, shown.unit);
            (name, part / whole, tip)
        };
        parts.into_iter().map(piece).collect()
    }
}

/// The end of an axis that holds all bars.
fn most(groups: &[(String, Vec<Bar<'_>>)], end: impl Fn(&Bar<'_>) -> f64) -> f64 {
    let ends = groups.iter().flat_map(|(_, bars)| bars.iter().map(&end));
    let most = ends.filter(|end| end.is_finite()).fold(0.0, f64::max);
    if most > 0.0 { most * 1.05 } else { 1.0 }
}
