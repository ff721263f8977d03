//! The answer in one sentence.

use serde::Serialize;

use super::{ControlRow, Note, Row};
use crate::stats::{Verdict, median};

/// Changed rows from which their common direction is suspect; fewer point the same way by chance.
const MIN_CHANGED: usize = 5;

/// Share of changed rows in one direction beyond which they have moved together.
const ONE_WAY: f64 = 0.8;

/// The answer in a word.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HeadlineKind {
    /// Rows changed, but most figures of the control moved as well.
    MachineChanged,
    /// Some rows are slower, none faster.
    Slower,
    /// Some rows are faster, none slower.
    Faster,
    /// Some rows are faster, some slower.
    Mixed,
    /// Every row is the same.
    Same,
    /// No row changed, and some could not be told; or there was nothing to compare.
    Undecided,
}

/// The answer in a word and in a sentence or two.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Headline {
    /// In a word.
    pub kind: HeadlineKind,
    /// In sentences with the numbers.
    pub text: String,
}

/// Codes of the notes that [`headline`] adds.
pub(super) const CODES: [&str; 2] = ["control-moved", "unconfirmed"];

/// Sums up the rows that count; adds a note when the control moved without consequence, or when something is slower in the
/// only run of the new build.
pub(super) fn headline(
    rows: &[Row],
    controls: &[ControlRow],
    absolutes: bool,
    repeats: usize,
    notes: &mut Vec<Note>,
) -> Headline {
    let count = |verdict| rows.iter().filter(|row| row.counts && row.verdict == verdict).count();
    let (faster, slower) = (count(Verdict::Faster), count(Verdict::Slower));
    let (same, unknown) = (count(Verdict::Same), count(Verdict::Unknown));
    let changed = faster + slower;
    let counts = format!("{slower} slower, {faster} faster, {same} the same, {unknown} not decided");
    let moved = if absolutes { control_moved(controls) } else { None };
    let one_way = changed >= MIN_CHANGED && faster.max(slower) as f64 > ONE_WAY * changed as f64;
    let (kind, text) = match (&moved, changed) {
        (Some(moved), 1..) => {
            let text = format!(
                "The machine changed: {moved}. Measure both builds again, alternating, before blaming the code"
            );
            (HeadlineKind::MachineChanged, text)
        }
        // The control stood, so it is not the machine alone: what all rows share has changed.
        (None, 1..) if one_way => {
            let (kind, word) = match (faster, slower) {
                (0, _) => (HeadlineKind::Slower, "slower"),
                (_, 0) => (HeadlineKind::Faster, "faster"),
                (f, s) if f > s => (HeadlineKind::Mixed, "faster"),
                _ => (HeadlineKind::Mixed, "slower"),
            };
            let control = if absolutes {
                "most figures of the control did not"
            } else {
                "of the control these runs cannot tell whether it did"
            };
            let text = format!(
                "Everything of ours moved together: {} of {changed} changes are {word} against the control, and {control}. \
                 Look for what all rows share, such as the build or the chosen code path",
                faster.max(slower)
            );
            (kind, text)
        }
        _ => {
            use HeadlineKind::{Faster, Mixed, Same, Slower, Undecided};
            let (kind, text) = match (faster, slower, same, unknown) {
                (0, 1.., ..) => (Slower, "Slower against the control"),
                (1.., 0, ..) => (Faster, "Faster against the control"),
                (1.., 1.., ..) => (Mixed, "Some rows are slower, some faster against the control"),
                (0, 0, 0, 0) => (Undecided, "The runs have nothing in common that could be compared"),
                (0, 0, _, 0) => (Same, "Nothing changed against the control"),
                _ => {
                    let text = "No change was seen, but not every row could have shown one; more rounds would tell";
                    (Undecided, text)
                }
            };
            (kind, text.to_owned())
        }
    };
    if let (Some(moved), 0) = (moved, changed) {
        let text = format!("The machine changed between the runs, though no ratio did: {moved}.");
        notes.push(Note::new("control-moved", text));
    }
    if slower > 0 && repeats == 0 {
        let text = "One run does not prove a slowdown: each start of a program lays out its memory anew. Measure the new build \
                    once more and give that result with --again.";
        notes.push(Note::new("unconfirmed", text));
    }
    Headline {
        kind,
        text: format!("{text}: {counts}."),
    }
}

/// What the control did, when more than half of its figures moved.
fn control_moved(controls: &[ControlRow]) -> Option<String> {
    let moved: Vec<f64> = controls
        .iter()
        .filter(|row| row.moved)
        .map(|row| row.change.factor.get().ln().abs().exp_m1())
        .collect();
    if moved.len() * 2 <= controls.len() {
        return None;
    }
    let typical = 100.0 * median(&moved)?;
    Some(format!(
        "{} of {} figures of the control moved, by {typical:.0} % in the median",
        moved.len(),
        controls.len()
    ))
}
