//! The change of each figure against the control, and the verdict on it.

use super::canary;
use super::join::{Pair, absolutes, link, rebuilt, version};
use super::{Change, ControlRow, Key, Options, Row, Side, Unmatched};
use crate::result::{Num, ResultRow};
use crate::stats::{
    Better, MIN_INTERVAL_ROUNDS, MetricKind, QUICK_MARGIN, Verdict, hodges_lehmann, log_ratios, quantile,
    smallest_detectable,
};

/// Earlier changes of a row from which its threshold is computed; with fewer it is fixed.
pub const HISTORY_RUNS: usize = 10;

/// The relative change from which a row counts as changed.
///
/// With at least [`HISTORY_RUNS`] values in `past`, the absolute relative changes between earlier runs: the upper
/// quartile plus three times the quartile distance, and no less than 0.2 % for instructions, 1 % for wall and processor
/// time and for memory, 5 % for the tail. Before that fixed: 0.2 %, 5 %, 2 % and 15 %. Values that are not finite are
/// not counted.
pub fn threshold(kind: MetricKind, past: &[f64]) -> f64 {
    let past: Vec<f64> = past
        .iter()
        .map(|change| change.abs())
        .filter(|change| change.is_finite())
        .collect();
    let (fixed, floor): (f64, f64) = match kind {
        MetricKind::Instructions => (0.002, 0.002),
        MetricKind::Cpu | MetricKind::Wall => (0.05, 0.01),
        MetricKind::Tail => (0.15, 0.05),
        MetricKind::Memory => (0.02, 0.01),
    };
    match (quantile(&past, 0.25), quantile(&past, 0.75)) {
        (Some(q1), Some(q3)) if past.len() >= HISTORY_RUNS => floor.max(q3 + 3.0 * (q3 - q1)),
        _ => fixed,
    }
}

/// Judges every row of both runs: compared rows, the controls' rows, and rows without a partner.
pub(super) fn judge(pair: &Pair<'_>, options: &Options) -> (Vec<Row>, Vec<ControlRow>, Vec<Unmatched>) {
    let (mut rows, mut controls, mut unmatched) = (Vec::new(), Vec::new(), Vec::new());
    for (key, (old, better)) in &pair.old {
        let found = match pair.new.get(key) {
            None => Err(absence(pair, key, Side::Old)),
            Some((new, new_better)) if better != new_better || old.unit != new.unit => Err(format!(
                "unit or direction differ: {} and {}",
                describe(old),
                describe(new)
            )),
            Some((new, _)) => Ok(*new),
        };
        let new = match found {
            Ok(new) => new,
            Err(reason) => {
                unmatched.push(lone(pair, Side::Old, key, reason));
                continue;
            }
        };
        let own = Change::new(old.median.get(), new.median.get());
        let control = pair.control(key);
        if control.as_ref() == Some(key) {
            let limit = threshold(MetricKind::of(&key.metric), &[]).ln_1p();
            let moved = own.factor.get().ln().abs() > limit;
            controls.push(ControlRow {
                key: key.clone(),
                change: own,
                moved,
            });
        } else {
            rows.push(row(pair, options, key, [*old, new], *better, control));
        }
    }
    for (key, (new, better)) in &pair.new {
        let reason = match pair.old.get(key) {
            None => absence(pair, key, Side::New),
            Some((old, old_better)) if old_better != better || old.unit != new.unit => {
                format!("the old run has this row as {}", describe(old))
            }
            Some(_) => continue,
        };
        unmatched.push(lone(pair, Side::New, key, reason));
    }
    unmatched.sort_by(|a, b| (&a.key, a.side).cmp(&(&b.key, b.side)));
    (rows, controls, unmatched)
}

fn lone(pair: &Pair<'_>, side: Side, key: &Key, reason: String) -> Unmatched {
    Unmatched {
        side,
        key: key.clone(),
        counts: pair.counts(&key.subject),
        reason,
    }
}

fn describe(row: &ResultRow) -> String {
    format!("{} ({} is better)", row.unit, row.better)
}

fn absence(pair: &Pair<'_>, key: &Key, side: Side) -> String {
    let other = match side {
        Side::Old => Side::New,
        Side::New => Side::Old,
    };
    let ((run, rows), name) = (pair.side(other), other.as_str());
    let redefined = rows.keys().any(|found| {
        (&found.workload, &found.metric, &found.subject, &found.case)
            == (&key.workload, &key.metric, &key.subject, &key.case)
    });
    let subject = run.subject(&key.subject);
    match subject.filter(|subject| !subject.error.is_empty()) {
        _ if redefined && link(pair.old_run) != link(pair.new_run) => {
            "the emulated links differ: the figures measure different things".to_owned()
        }
        _ if redefined => "the definition of the workload changed: the figures measure different things".to_owned(),
        Some(subject) => format!(
            "{} did not take part in the {name} run: {}",
            subject.name, subject.error
        ),
        None => format!("not measured in the {name} run"),
    }
}

/// Where a subject stands to its control in one run: the ratio, and the smallest detectable effect if it is known.
struct Standing {
    log: f64,
    mde: Option<f64>,
    rounds: usize,
}

/// The rounds of a control, and its median.
struct Control {
    rounds: Vec<f64>,
    median: f64,
}

impl Control {
    fn of(row: &ResultRow) -> Control {
        Control {
            rounds: row.numbers(),
            median: row.median.get(),
        }
    }

    /// What a row is held against in one of the runs.
    fn find(pair: &Pair<'_>, key: &Key, control: Option<&Key>, side: Side, row: &ResultRow) -> Option<Control> {
        let (run, rows) = pair.side(side);
        if let Some(control) = control {
            return Some(Control::of(rows.get(control)?.0));
        }
        if !pair.by_canary() && !pair.stands_alone(key) {
            return None;
        }
        let rounds = canary::control(run, key, row)?;
        let median = crate::stats::median(&rounds)?;
        Some(Control { rounds, median })
    }
}

fn standing(own: &ResultRow, control: &Control) -> Option<Standing> {
    let logs = log_ratios(&own.numbers(), &control.rounds)?;
    if let Some(log) = hodges_lehmann(&logs) {
        return Some(Standing {
            log,
            mde: smallest_detectable(&logs),
            rounds: logs.len(),
        });
    }
    // Files without round values still tell the direction; without a spread the verdict stays unknown.
    let log = *log_ratios(&[own.median.get()], &[control.median])?.first()?;
    Some(Standing {
        log,
        mde: None,
        rounds: 0,
    })
}

fn row(
    pair: &Pair<'_>,
    options: &Options,
    key: &Key,
    [old, new]: [&ResultRow; 2],
    better: Better,
    control: Option<Key>,
) -> Row {
    let mut row = Row {
        key: key.clone(),
        unit: old.unit.clone(),
        better: better.as_str().to_owned(),
        control: control.as_ref().map(|control| control.subject.clone()),
        own: Change::new(old.median.get(), new.median.get()),
        control_change: None,
        ratio: None,
        threshold: threshold(
            MetricKind::of(&key.metric),
            options.history.get(key).map_or(&[], Vec::as_slice),
        ),
        mde: Num(f64::NAN),
        verdict: Verdict::Unknown,
        counts: pair.counts(&key.subject),
        note: version_note(pair, key),
    };
    let find = |side, row| Control::find(pair, key, control.as_ref(), side, row);
    let (Some(old_control), Some(new_control)) = (find(Side::Old, old), find(Side::New, new)) else {
        add(&mut row.note, "no control was measured in this case of both runs");
        return row;
    };
    if pair.by_canary() {
        row.control = Some("canary".to_owned());
    }
    row.control_change = Some(Change::new(old_control.median, new_control.median));
    let (Some(before), Some(after)) = (standing(old, &old_control), standing(new, &new_control)) else {
        add(&mut row.note, "a round has no ratio to the control");
        return row;
    };
    row.ratio = Some(Change {
        factor: Num((after.log - before.log).exp()),
        ..Change::new(before.log.exp(), after.log.exp())
    });
    // Independent errors of the two runs add in squares.
    let both = before
        .mde
        .zip(after.mde)
        .map(|(a, b)| a.ln_1p().hypot(b.ln_1p()).exp_m1());
    row.mde = Num(both.unwrap_or(f64::NAN));
    let quick = pair.old_run.profile == "quick" || pair.new_run.profile == "quick";
    if quick || before.rounds.min(after.rounds) < MIN_INTERVAL_ROUNDS {
        row.threshold = row.threshold.max(QUICK_MARGIN);
        add(&mut row.note, "too few rounds to see changes under 20 %");
    }
    row.verdict = decide(better.goodness(after.log - before.log), both, row.threshold);
    let own = changed_itself(pair, key, row.control.as_deref(), [old, new]).map(|log| better.goodness(log));
    let limit = row.threshold.ln_1p();
    let of_control = match row.verdict {
        Verdict::Slower => own.is_some_and(|own| own >= -limit),
        Verdict::Faster => own.is_some_and(|own| own <= limit),
        _ => false,
    };
    if of_control {
        let note = format!(
            "{} only against the control, which changed itself",
            row.verdict.as_str()
        );
        add(&mut row.note, &note);
        row.verdict = Verdict::Unknown;
    }
    row
}

/// The change of a figure at the speed that the processor had, as a logarithm; `None` where that is not known of one machine, and where
/// the control is a library, which a busy machine slows down as it does ours. A program that collects garbage suffers more.
fn changed_itself(pair: &Pair<'_>, key: &Key, control: Option<&str>, rows: [&ResultRow; 2]) -> Option<f64> {
    let is_program = pair.old_run.subject(control?)?.kind == "program";
    if !is_program || !absolutes(pair.old_run, pair.new_run) {
        return None;
    }
    let at_speed = |run, row: &ResultRow| {
        let rounds = canary::control(run, key, row)?;
        let median = crate::stats::median(&rounds)?;
        Some(standing(row, &Control { rounds, median })?.log)
    };
    Some(at_speed(pair.new_run, rows[1])? - at_speed(pair.old_run, rows[0])?)
}

/// A peer of another version or build explains its own change; that ours differs is why the runs are compared.
fn version_note(pair: &Pair<'_>, key: &Key) -> String {
    let (old, new) = (version(pair.old_run, &key.subject), version(pair.new_run, &key.subject));
    if pair.counts(&key.subject) || old.is_empty() || new.is_empty() {
        String::new()
    } else if old != new {
        format!("version {old} became {new}")
    } else if rebuilt(pair.old_run, pair.new_run, &key.subject) {
        format!("another build of {old}")
    } else {
        String::new()
    }
}

pub(super) fn add(note: &mut String, text: &str) {
    if !note.is_empty() {
        note.push_str("; ");
    }
    note.push_str(text);
}

/// The verdict on a change whose logarithm, positive for better, is `goodness`.
///
/// Beyond the threshold and visible: faster or slower. Within it, with rounds that would have shown a change as large
/// as the threshold: same. All else is unknown, which is not the same as "same".
fn decide(goodness: f64, mde: Option<f64>, threshold: f64) -> Verdict {
    let Some(mde) = mde.filter(|mde| mde.is_finite()) else {
        return Verdict::Unknown;
    };
    if goodness.is_nan() {
        return Verdict::Unknown;
    }
    let changed = goodness.abs() > threshold.ln_1p();
    match (changed, goodness.abs() > mde.ln_1p(), mde <= threshold) {
        (true, true, _) if goodness > 0.0 => Verdict::Faster,
        (true, true, _) => Verdict::Slower,
        (false, _, true) => Verdict::Same,
        _ => Verdict::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_at_their_edges() {
        let at = |change: f64, mde: f64| decide(change.ln_1p(), Some(mde), 0.05);
        assert_eq!(at(0.06, 0.01), Verdict::Faster);
        assert_eq!(at(-0.06, 0.01), Verdict::Slower);
        assert_eq!(at(0.06, 0.07), Verdict::Unknown);
        assert_eq!(at(0.06, 0.055), Verdict::Faster);
        assert_eq!(at(0.04, 0.05), Verdict::Same);
        assert_eq!(at(0.04, 0.051), Verdict::Unknown);
        assert_eq!(decide(1.0, None, 0.05), Verdict::Unknown);
        assert_eq!(decide(f64::NAN, Some(0.0), 0.05), Verdict::Unknown);
        assert_eq!(decide(f64::NEG_INFINITY, Some(0.01), 0.05), Verdict::Slower);
    }
}
