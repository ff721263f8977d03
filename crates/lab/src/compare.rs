//! Two runs side by side: what became faster, slower, stayed the same, or cannot be told.
//!
//! Two files are two days on a machine that may have changed between them, so absolute figures prove little. Each
//! figure is therefore divided by that of a *control*, a peer of the same version measured in the same rounds, and the
//! verdict rests on the change of this ratio. Where two runs of one machine share no peer, the speed of the processor (the
//! canary of each round) is the control; where the control is a program, that speed has to say as well that a figure changed, for
//! programs change by themselves, too. Memory on one machine needs neither. Rows are joined on workload definition, case, subject and
//! metric; whatever has no partner is listed, never dropped. What is only shown ([`crate::stats::is_judged`]) is left out.

pub(crate) mod canary;
mod error;
mod groups;
mod headline;
mod join;
mod judge;
mod page;
mod render;

use std::collections::BTreeMap;

use serde::Serialize;

pub use error::CompareError;
pub use headline::{Headline, HeadlineKind};
pub(crate) use join::machines;
pub use judge::{HISTORY_RUNS, threshold};

/// The subject whose changes decide the exit code unless [`Options::ours`] says otherwise.
pub use crate::lens::OURS;

use crate::ending::Ending;
use crate::result::{Case, Num, ResultRow, RunResult};
use crate::stats::Verdict;
use crate::workload::Catalogue;

/// Peers that serve as control when present in both runs with equal version, first choice first: libraries, then programs.
pub const CONTROLS: [&str; 8] = [
    "aws-lc-rs",
    "ring",
    "rustcrypto",
    "openssl",
    "xray",
    "v2ray",
    "sing-box",
    "shoes",
];

/// How to compare.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The control by name; `None` takes the first of [`CONTROLS`] that fits, case by case.
    pub control: Option<String>,
    /// The subject that counts; `None` is [`OURS`]. When it is in neither run, every subject counts.
    pub ours: Option<String>,
    /// Absolute relative changes of the ratio seen between earlier runs of this machine, by row; rows with at least
    /// [`HISTORY_RUNS`] of them get a threshold of their own (see [`threshold`]).
    pub history: BTreeMap<Key, Vec<f64>>,
}

/// One of the two runs.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The first argument: what is compared against.
    Old,
    /// The second argument: what is judged.
    New,
}

impl Side {
    /// `old` or `new`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Side::Old => "old",
            Side::New => "new",
        }
    }
}

/// What joins a row of one run with that of another.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
pub struct Key {
    /// Workload name.
    pub workload: String,
    /// Metric name.
    pub metric: String,
    /// Name of the subject.
    pub subject: String,
    /// Parameters of the case.
    pub case: Case,
    /// Hash of the workload's definition.
    pub workload_def: String,
}

impl Key {
    /// That of a row.
    pub(crate) fn of(row: &ResultRow) -> Key {
        Key {
            workload: row.workload.clone(),
            metric: row.metric.clone(),
            subject: row.subject.clone(),
            case: row.case.clone(),
            workload_def: row.workload_def.clone(),
        }
    }
}

/// A figure in both runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Change {
    /// In the old run.
    pub old: Num,
    /// In the new run.
    pub new: Num,
    /// New over old; NaN when not known.
    pub factor: Num,
}

impl Change {
    fn new(old: f64, new: f64) -> Self {
        // No quantity here can be negative; a factor of two that claim to be would mean nothing.
        let factor = if old < 0.0 || new < 0.0 { f64::NAN } else { new / old };
        Change {
            old: Num(old),
            new: Num(new),
            factor: Num(factor),
        }
    }
}

/// One compared figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// What was compared.
    #[serde(flatten)]
    pub key: Key,
    /// SI unit of the figures in `own` and `control_change`.
    pub unit: String,
    /// `higher` or `lower`.
    pub better: String,
    /// The control of this case; absent when none was measured in both runs.
    pub control: Option<String>,
    /// Medians of the subject.
    pub own: Change,
    /// Medians of the control.
    pub control_change: Option<Change>,
    /// Hodges-Lehmann ratio of subject to control, and its change: what the verdict rests on.
    pub ratio: Option<Change>,
    /// Change, as a fraction, from which the verdict is not `same`.
    pub threshold: f64,
    /// Smallest detectable change of the ratio as a fraction; NaN when not known.
    pub mde: Num,
    /// The new run against the old one.
    pub verdict: Verdict,
    /// True when the row decides headline and exit code: it belongs to the subject that was asked about.
    pub counts: bool,
    /// What a reader must know about this row; empty for an ordinary one.
    pub note: String,
}

/// The control itself, whose absolute change says what the machine did.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ControlRow {
    /// Which figure; its subject is the control.
    #[serde(flatten)]
    pub key: Key,
    /// Medians.
    pub change: Change,
    /// True when the change is beyond the threshold of the metric.
    pub moved: bool,
}

/// A row without a partner.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Unmatched {
    /// The run that has the row.
    pub side: Side,
    /// The row.
    #[serde(flatten)]
    pub key: Key,
    /// True when it belongs to the subject that was asked about.
    pub counts: bool,
    /// Why it has none.
    pub reason: String,
}

/// A remark on the comparison as a whole, with a code that a program can match.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Note {
    /// `machine`, `profile`, `link`, `incomplete`, `same-run`, `no-peer`, `control-moved` or `unconfirmed`.
    pub code: String,
    /// One sentence for people.
    pub text: String,
}

impl Note {
    fn new(code: &str, text: impl Into<String>) -> Note {
        Note {
            code: code.to_owned(),
            text: text.into(),
        }
    }

    fn touches_answer(&self) -> bool {
        let code = self.code.as_str();
        headline::CODES.contains(&code) || matches!(code, "same-run" | "no-peer")
    }
}

/// Which run it was.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct RunRef {
    /// Identifier of the run.
    pub run: String,
    /// Its start, RFC 3339, UTC.
    pub started: String,
    /// Version and commit that measured.
    pub sealway: String,
    /// Profile.
    pub profile: String,
    /// Key of the machine.
    pub machine: String,
}

impl RunRef {
    fn of(run: &RunResult) -> Self {
        RunRef {
            run: run.run.clone(),
            started: run.started.clone(),
            sealway: run.sealway.clone(),
            profile: run.profile.clone(),
            machine: run.machine.key.clone(),
        }
    }
}

/// The outcome of a comparison. Serialises as the answer of `--json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The run compared against.
    pub old: RunRef,
    /// The run that is judged.
    pub new: RunRef,
    /// The answer in a word and a sentence.
    pub headline: Headline,
    /// True when absolute figures may be compared as well: same machine key and same profile.
    pub absolutes: bool,
    /// Further runs of the new build that were looked at too: see [`Comparison::confirm`].
    pub repeats: usize,
    /// Remarks on the whole.
    pub notes: Vec<Note>,
    /// Compared figures, ordered by key.
    pub rows: Vec<Row>,
    /// Figures of the controls, ordered by key.
    pub controls: Vec<ControlRow>,
    /// Figures that only one run has, ordered by key, old before new.
    pub unmatched: Vec<Unmatched>,
}

impl Comparison {
    /// How the command ends.
    ///
    /// [`Ending::Slower`] when a row that counts is slower in this run and in a repeat of it, under any headline: a real
    /// slowdown of everything looks like a changed machine. What differs from one start of a program to the next (where
    /// its code and its memory lie) is the same in all rounds of a run, so one run alone proves nothing: without a repeat
    /// a slower row is [`Ending::Undecidable`]. So it is when no row that counts was compared, and with `strict` also when
    /// one is unknown or has vanished, or when the runs are not comparable as absolutes. Else [`Ending::Done`].
    pub fn ending(&self, strict: bool) -> Ending {
        let any = |verdict| self.counting().any(|row| row.verdict == verdict);
        match (any(Verdict::Slower), self.repeats) {
            (true, 0) => return Ending::Undecidable,
            (true, _) => return Ending::Slower,
            _ => {}
        }
        let vanished = || self.unmatched.iter().any(|row| row.counts && row.side == Side::Old);
        let doubtful = || any(Verdict::Unknown) || vanished() || !self.absolutes;
        if self.counting().next().is_none() || (strict && doubtful()) {
            Ending::Undecidable
        } else {
            Ending::Done
        }
    }

    /// Takes in further runs of the new build, each compared with the same old run: a row is slower, or faster, only
    /// where it is so in all of them, else it is unknown.
    pub fn confirm(&mut self, repeats: &[Comparison]) {
        self.repeats += repeats.len();
        for row in &mut self.rows {
            if !matches!(row.verdict, Verdict::Faster | Verdict::Slower) {
                continue;
            }
            let same = |repeat: &&Comparison| repeat.rows.iter().any(|r| r.key == row.key && r.verdict == row.verdict);
            let seen = repeats.iter().filter(same).count();
            if seen < repeats.len() {
                let note = format!("{} in {} of {} runs", row.verdict.as_str(), seen + 1, repeats.len() + 1);
                row.verdict = Verdict::Unknown;
                judge::add(&mut row.note, &note);
            }
        }
        self.notes.retain(|note| !headline::CODES.contains(&note.code.as_str()));
        self.headline = headline::headline(
            &self.rows,
            &self.controls,
            self.absolutes,
            self.repeats,
            &mut self.notes,
        );
    }

    /// The comparison as plain ASCII text, no line longer than 80 characters, whatever the result files contain. Cases have
    /// the words of their workloads in `catalogue`.
    pub fn render(&self, catalogue: &Catalogue) -> String {
        render::render(self, catalogue)
    }

    /// The same as a page that opens in a browser.
    pub fn page(&self, catalogue: &Catalogue) -> String {
        page::render(self, catalogue)
    }

    /// The notes that touch the answer, and those on the runs.
    fn sorted_notes(&self) -> (Vec<&Note>, Vec<&Note>) {
        self.notes.iter().partition(|note| note.touches_answer())
    }

    fn counting(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.counts)
    }
}

/// Compares two runs.
///
/// # Errors
/// [`CompareError`] when a file is of a newer schema, has no or contradictory results, or when the runs share no
/// control.
pub fn compare(old: &RunResult, new: &RunResult, options: &Options) -> Result<Comparison, CompareError> {
    let pair = join::Pair::new(old, new, options)?;
    let (rows, controls, unmatched) = judge::judge(&pair, options);
    let mut notes = join::notes(old, new, pair.by_canary());
    let absolutes = join::absolutes(old, new);
    let headline = headline::headline(&rows, &controls, absolutes, 0, &mut notes);
    Ok(Comparison {
        old: RunRef::of(old),
        new: RunRef::of(new),
        headline,
        absolutes,
        repeats: 0,
        notes,
        rows,
        controls,
        unmatched,
    })
}

#[cfg(test)]
mod tests;
