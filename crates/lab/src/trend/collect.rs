//! From kept runs to the points of a trend.

use std::collections::BTreeMap;

use super::segments::{self, Figure};
use super::{LeftOut, Point, Segment, Trend, TrendError};
use crate::compare::{CONTROLS, HISTORY_RUNS, Key, OURS, canary, machines, threshold};
use crate::result::{Num, ResultRow, RunResult};
use crate::stats::{
    Better, MIN_INTERVAL_ROUNDS, MetricKind, QUICK_MARGIN, Verdict, ends, hodges_lehmann, log_ratios, median,
    signed_rank_interval,
};
use crate::store::Kept;

/// Why a run that has measured something else is left out.
const WITHOUT: &str = "without this figure";

/// Which figure is meant.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Workload.
    pub workload: String,
    /// Values of parameters, or parameters with theirs (`bytes=16384`), that leave one case.
    pub words: Vec<String>,
    /// Metric; `None` is the first that the case has.
    pub metric: Option<String>,
    /// Subject; `None` is [`OURS`] where it was measured.
    pub subject: Option<String>,
}

/// Over what a figure is taken.
enum Control {
    Peer { name: String, version: String },
    Canary,
    Nothing,
}

/// The figure, as the newest run that has it says.
struct Wanted {
    key: Key,
    unit: String,
    better: Better,
    control: Control,
    /// Brings figures over the canary back to the unit, at the speed of the newest run: a logarithm.
    scale: f64,
    cpu: String,
    machine: String,
    /// That of the other host of a run on two.
    responder: Option<String>,
    profile: String,
}

/// Takes runs, newest first, and makes a trend of them.
pub struct Collector {
    question: Question,
    wanted: Option<Wanted>,
    points: Vec<Point>,
    few_rounds: bool,
    /// Identifier of the first run that was taken: the newest.
    newest: Option<String>,
    left_out: BTreeMap<String, usize>,
    /// Cases of the newest run of the workload, as long as none of them is the one that is meant.
    cases: Vec<String>,
}

impl Collector {
    /// One that has seen no run.
    pub fn new(question: Question) -> Collector {
        Collector {
            question,
            wanted: None,
            points: Vec::new(),
            few_rounds: false,
            newest: None,
            left_out: BTreeMap::new(),
            cases: Vec::new(),
        }
    }

    /// Takes a run that began before all that were taken. The first that has the figure says what the others are compared with.
    ///
    /// # Errors
    /// [`TrendError`] if the question does not fit the run.
    pub fn take(&mut self, kept: &Kept, run: &RunResult) -> Result<(), TrendError> {
        self.newest.get_or_insert_with(|| kept.run.clone());
        if !run.complete {
            self.leave_out("cut short");
            return Ok(());
        }
        let wanted = match &self.wanted {
            Some(wanted) => wanted,
            None => match choose(&self.question, run)? {
                Ok(wanted) => self.wanted.insert(wanted),
                Err(cases) => {
                    if self.cases.is_empty() {
                        self.cases = cases;
                    }
                    self.leave_out(WITHOUT);
                    return Ok(());
                }
            },
        };
        match wanted.point(kept, run) {
            Ok((point, rounds)) => {
                self.few_rounds |= rounds < MIN_INTERVAL_ROUNDS;
                self.points.push(point);
            }
            Err(why) => self.leave_out(&why),
        }
        Ok(())
    }

    fn leave_out(&mut self, why: &str) {
        *self.left_out.entry(why.to_owned()).or_default() += 1;
    }

    /// The trend of what was taken.
    ///
    /// # Errors
    /// [`TrendError::NoCase`] if no run had the figure.
    pub fn finish(mut self) -> Result<Trend, TrendError> {
        let Some(wanted) = self.wanted else {
            return Err(TrendError::NoCase(self.cases));
        };
        self.points.reverse();
        let figures: Vec<Figure> = self.points.iter().map(|point| point.figure).collect();
        let changes = figures
            .windows(2)
            .map(|pair| (pair[1].mid - pair[0].mid).abs().exp_m1());
        let changes: Vec<f64> = changes.collect();
        let usual = threshold(MetricKind::of(&wanted.key.metric), &changes);
        let coarse = wanted.profile == "quick" || self.few_rounds;
        let threshold = if coarse { usual.max(QUICK_MARGIN) } else { usual };
        let from_history = changes.len() >= HISTORY_RUNS;
        let newest = self.points.last().map(|point| &point.run);
        let left_out = self.left_out.into_iter().map(|(why, runs)| LeftOut { runs, why });
        Ok(Trend {
            segments: segments(&figures, threshold, wanted.better),
            control: match &wanted.control {
                Control::Peer { name, version } => format!("{name} {version}"),
                Control::Canary => "canary".to_owned(),
                Control::Nothing => String::new(),
            },
            unit: match wanted.control {
                Control::Peer { .. } => "1".to_owned(),
                _ => wanted.unit,
            },
            workload: wanted.key.workload,
            subject: wanted.key.subject,
            metric: wanted.key.metric,
            case: wanted.key.case,
            better: wanted.better.as_str().to_owned(),
            cpu: wanted.cpu,
            profile: wanted.profile,
            threshold,
            least: if coarse || from_history { threshold } else { 0.0 },
            has_newest: newest.is_some() && newest == self.newest.as_ref(),
            points: self.points,
            left_out: left_out.collect(),
            direction: wanted.better,
        })
    }
}

fn segments(figures: &[Figure], threshold: f64, better: Better) -> Vec<Segment> {
    let starts = segments::starts(figures, threshold);
    let ends = starts.iter().skip(1).copied().chain([figures.len()]);
    let mut before: Option<Figure> = None;
    let made = starts.iter().zip(ends).filter_map(|(&first, end)| {
        let figure = segments::level(figures[first..end].iter().copied())?;
        let change = before.replace(figure).map(|before| figure.mid - before.mid);
        Some(Segment {
            first,
            runs: end - first,
            value: Num(figure.mid.exp()),
            low: Num(figure.low.exp()),
            high: Num(figure.high.exp()),
            change: change.map(|change| Num(change.exp())),
            verdict: change.map(|change| match better.goodness(change) > 0.0 {
                true => Verdict::Faster,
                false => Verdict::Slower,
            }),
            figure,
        })
    });
    made.collect()
}

/// The figure that is meant; the cases that there are if it is none of them.
fn choose(question: &Question, run: &RunResult) -> Result<Result<Wanted, Vec<String>>, TrendError> {
    let of_workload: Vec<&ResultRow> = run
        .results
        .iter()
        .filter(|row| row.workload == question.workload)
        .collect();
    let measured = |name: &str| of_workload.iter().any(|row| row.subject == name);
    let subject = match &question.subject {
        Some(name) => name.as_str(),
        None if measured(OURS) => OURS,
        None => of_workload.first().map_or("", |row| row.subject.as_str()),
    };
    let rows = || of_workload.iter().copied().filter(|row| row.subject == subject);
    let fitting = rows().filter(|row| question.words.iter().all(|word| fits(row, word)));
    let cases = cases(fitting.clone());
    let Some(first) = fitting.clone().next() else {
        return Ok(Err(self::cases(rows())));
    };
    if cases.len() > 1 {
        return Err(TrendError::SeveralCases(cases));
    }
    let metric = question.metric.as_ref().unwrap_or(&first.metric);
    let Some(row) = fitting.clone().find(|row| row.metric == *metric) else {
        let metrics = fitting.map(|row| row.metric.clone());
        return Err(TrendError::NoMetric(metrics.collect()));
    };
    wanted(run, row).map(Ok)
}

fn wanted(run: &RunResult, row: &ResultRow) -> Result<Wanted, TrendError> {
    let better = Better::parse(&row.better)
        .ok_or_else(|| TrendError::Malformed(format!("`better` of {} is {:?}", row.metric, row.better)))?;
    let key = Key::of(row);
    // What a peer takes of memory says nothing of the machine: as in a comparison of two runs.
    let is_memory = MetricKind::of(&key.metric) == MetricKind::Memory;
    let peer = CONTROLS.into_iter().filter(|_| !is_memory).find_map(|name| {
        let version = version(run, name)?;
        (name != key.subject && of_subject(run, &key, name).is_some()).then(|| Control::Peer {
            name: name.to_owned(),
            version: version.to_owned(),
        })
    });
    let canary = || median(&canary::control(run, &key, row)?);
    let (control, scale) = match peer {
        Some(peer) => (peer, 0.0),
        None if is_memory => (Control::Nothing, 0.0),
        None => canary().map_or((Control::Nothing, 0.0), |speed| (Control::Canary, speed.ln())),
    };
    let (machine, responder) = machines(run);
    Ok(Wanted {
        key,
        unit: row.unit.clone(),
        better,
        control,
        scale,
        cpu: run.machine.cpu.clone(),
        machine: machine.to_owned(),
        responder: responder.map(str::to_owned),
        profile: run.profile.clone(),
    })
}

impl Wanted {
    /// The point of a run with its number of rounds, or why it has none.
    fn point(&self, kept: &Kept, run: &RunResult) -> Result<(Point, usize), String> {
        if run.machine.cpu != self.cpu {
            return Err("another processor".to_owned());
        }
        if run.profile != self.profile {
            return Err("another profile".to_owned());
        }
        let row = of_subject(run, &self.key, &self.key.subject).ok_or(WITHOUT)?;
        if (row.unit.as_str(), row.better.as_str()) != (self.unit.as_str(), self.better.as_str()) {
            return Err("another unit".to_owned());
        }
        let logs = log_ratios(&row.numbers(), &self.control(run, row)?).unwrap_or_default();
        let mid = hodges_lehmann(&logs).ok_or("a round without a value")?;
        let interval = signed_rank_interval(&logs).filter(|_| self.profile != "quick");
        let (low, high) = interval.map_or_else(|| ends(logs.iter().copied()), |interval| (interval.low, interval.high));
        let figure = Figure {
            mid: mid + self.scale,
            low: low + self.scale,
            high: high + self.scale,
        };
        let point = Point {
            id: kept.id,
            run: kept.run.clone(),
            started: kept.started.clone(),
            label: kept.label.clone(),
            value: Num(figure.mid.exp()),
            low: Num(figure.low.exp()),
            high: Num(figure.high.exp()),
            figure,
        };
        Ok((point, logs.len()))
    }

    /// What stands under the figure in each round.
    fn control(&self, run: &RunResult, row: &ResultRow) -> Result<Vec<f64>, String> {
        let same_machine = || match machines(run) == (self.machine.as_str(), self.responder.as_deref()) {
            true => Ok(()),
            false => Err("another machine or kernel, and no peer to compare with".to_owned()),
        };
        match &self.control {
            Control::Peer { name, version: wanted } => {
                if version(run, name) != Some(wanted.as_str()) {
                    return Err(format!("another version of {name}"));
                }
                let peer = of_subject(run, &self.key, name).ok_or_else(|| format!("without {name}"))?;
                Ok(peer.numbers())
            }
            Control::Canary => {
                same_machine()?;
                canary::control(run, &self.key, row).ok_or_else(|| "a round without a canary".to_owned())
            }
            Control::Nothing => same_machine().map(|()| vec![1.0; row.values.len()]),
        }
    }
}

/// The row of a subject with the case and metric of `key`.
fn of_subject<'a>(run: &'a RunResult, key: &Key, subject: &str) -> Option<&'a ResultRow> {
    run.results.iter().find(|row| {
        row.subject == subject
            && row.workload == key.workload
            && row.workload_def == key.workload_def
            && row.metric == key.metric
            && row.case == key.case
    })
}

fn version<'a>(run: &'a RunResult, name: &str) -> Option<&'a str> {
    let version = &run.subject(name)?.version;
    (!version.is_empty()).then_some(version.as_str())
}

/// Different cases of some rows, in their order.
fn cases<'a>(rows: impl Iterator<Item = &'a ResultRow>) -> Vec<String> {
    let mut cases: Vec<String> = Vec::new();
    for row in rows {
        let case = row.case.to_string();
        if !cases.contains(&case) {
            cases.push(case);
        }
    }
    cases
}

/// Whether a parameter of the row's case has this value.
fn fits(row: &ResultRow, word: &str) -> bool {
    let mut parameters = row.case.0.iter();
    match word.split_once('=') {
        Some((name, value)) => parameters.any(|(known, found)| known == name && found.to_string() == value),
        None => parameters.any(|(_, found)| found.to_string() == word),
    }
}
