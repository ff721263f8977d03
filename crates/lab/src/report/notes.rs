//! What a reader must know of a run before believing it: what touches the answer, then the rest.

use super::model::absent;
use crate::lens::Headline;
use crate::lens::headline::UNKNOWN;
use crate::result::{RunResult, Warning, Window};

/// A code, and what it means here.
pub(crate) struct Note {
    pub(crate) code: String,
    pub(crate) text: String,
}

/// The notes of a run.
pub(crate) struct Notes {
    /// Those that touch the answer: they stand beside it.
    pub(crate) first: Vec<Note>,
    /// The others.
    pub(crate) rest: Vec<Note>,
}

/// Warnings of a whole run that no answer is free of.
const WHOLE_RUN: [&str; 3] = ["interrupted", "link-not-kept", "out-of-time"];

/// Warnings of machines that move figures and leave ratios: they touch an answer that has no ratio.
const RATES: [&str; 6] = [
    "battery",
    "clocksource",
    "coarse-clock",
    "cpu-quota",
    "governor",
    "shared-cpu",
];

/// Share of disturbed windows that medians over nine rounds can bear.
const BEARABLE: f64 = 0.2;

/// Sorts what is known of a run by whether it touches its answer.
pub(crate) fn notes(run: &RunResult, answer: &Headline) -> Notes {
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    if !run.complete {
        first.push(Note {
            code: "Cut short".to_owned(),
            text: "The run was stopped before its end: these are partial figures.".to_owned(),
        });
    }
    for warning in run.warnings.iter().filter(|warning| !of_absent(run, warning)) {
        let note = Note {
            code: warning.code.clone(),
            text: match warning.place.as_str() {
                "" | "machine" => warning.text.clone(),
                place => format!("{place}: {}", warning.text),
            },
        };
        let notes = if touches(run, answer, warning) {
            &mut first
        } else {
            &mut rest
        };
        notes.push(note);
    }
    rest.extend(absent(run).map(|text| Note {
        code: "absent".to_owned(),
        text,
    }));
    Notes { first, rest }
}

/// Whether a warning says of a subject that it took no part: that is told of each subject anyway.
fn of_absent(run: &RunResult, warning: &Warning) -> bool {
    let mut missing = run.subjects.iter().filter(|subject| !subject.error.is_empty());
    warning.code == "cell-unavailable" && missing.any(|subject| subject.name == warning.place)
}

fn touches(run: &RunResult, answer: &Headline, warning: &Warning) -> bool {
    let code = warning.code.as_str();
    if WHOLE_RUN.contains(&code) {
        return true;
    }
    if RATES.contains(&code) {
        return answer.lead == UNKNOWN;
    }
    let named =
        |(case, subject): &(_, String)| warning.place == *subject || warning.place == format!("{subject} {case}");
    answer.rests_on.iter().any(named) || disturbed(run, answer, code) > BEARABLE
}

/// Which share of the windows behind an answer has a mark.
fn disturbed(run: &RunResult, answer: &Headline, mark: &str) -> f64 {
    let has = |window: &Window, mark: &str| window.marks.iter().any(|found| found == mark);
    let behind = |window: &&Window| {
        let mut rests_on = answer.rests_on.iter();
        !has(window, "superseded") && rests_on.any(|(case, subject)| *case == window.case && *subject == window.subject)
    };
    let (mut all, mut marked) = (0_usize, 0_usize);
    for window in run.windows.iter().filter(behind) {
        all += 1;
        marked += usize::from(has(window, mark));
    }
    if all == 0 { 0.0 } else { marked as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Case;

    fn run() -> RunResult {
        let text = r#"{"schema":1,"run":"r","started":"","complete":true,"sealway":"0","machine":{}}"#;
        serde_json::from_str(text).expect("a run")
    }

    fn answer(run: &RunResult, lead: &str) -> Headline {
        let mut answer = Headline::new(run, "It is so.".to_owned(), "x", "", "");
        lead.clone_into(&mut answer.lead);
        answer.rests_on = ["sealway", "ring"].map(|name| (case(1), name.to_owned())).to_vec();
        answer
    }

    fn case(n: i64) -> Case {
        Case::new().with("n", n)
    }

    fn warning(code: &str, place: &str) -> Warning {
        Warning {
            code: code.to_owned(),
            place: place.to_owned(),
            text: "It did.".to_owned(),
        }
    }

    fn codes(notes: &[Note]) -> Vec<&str> {
        notes.iter().map(|note| note.code.as_str()).collect()
    }

    #[test]
    fn what_touches_the_answer_comes_first() {
        let mut run = run();
        run.warnings = vec![
            warning("shared-cpu", "machine"),
            warning("cell-failed", "ring n=2"),
            warning("out-of-time", ""),
            warning("cell-wrong", "ring n=1"),
            warning("repeated", ""),
        ];
        let found = notes(&run, &answer(&run, "2.00x"));
        assert_eq!(codes(&found.first), ["out-of-time", "cell-wrong"]);
        assert_eq!(codes(&found.rest), ["shared-cpu", "cell-failed", "repeated"]);
        assert_eq!(found.first[1].text, "ring n=1: It did.");
        // Without a ratio the answer is a figure, which a shared CPU moves.
        let found = notes(&run, &answer(&run, UNKNOWN));
        assert_eq!(codes(&found.first), ["shared-cpu", "out-of-time", "cell-wrong"]);
        run.complete = false;
        assert_eq!(notes(&run, &answer(&run, UNKNOWN)).first[0].code, "Cut short");
    }

    #[test]
    fn a_disturbance_touches_the_answer_when_more_than_a_fifth_of_its_windows_have_it() {
        let mut run = run();
        run.warnings = vec![warning("steal", "")];
        let window = |subject: &str, n: i64, marks: &[&str]| {
            let text = format!(
                r#"{{"workload":"w","case":{{"n":{n}}},"subject":"{subject}","round":0,"order":0,"t":0,"wall_s":1,
                    "marks":{}}}"#,
                serde_json::to_string(marks).expect("marks")
            );
            serde_json::from_str::<Window>(&text).expect("a window")
        };
        let first = |run: &RunResult| codes(&notes(run, &answer(run, "2.00x")).first).len();
        run.windows = vec![window("sealway", 1, &["steal"])];
        run.windows.extend((0..4).map(|_| window("ring", 1, &[])));
        // Others, and windows that do not count, change nothing.
        run.windows.extend((0..9).map(|_| window("ring", 2, &["steal"])));
        run.windows.push(window("ring", 1, &["steal", "superseded"]));
        assert_eq!(first(&run), 0);
        run.windows.push(window("ring", 1, &["steal"]));
        assert_eq!(first(&run), 1);
    }

    #[test]
    fn an_absent_subject_is_told_once() {
        let mut run = run();
        let subject = r#"{"name":"openssl","error":"not found on PATH"}"#;
        run.subjects = vec![serde_json::from_str(subject).expect("a subject")];
        run.warnings = vec![
            warning("cell-unavailable", "openssl"),
            warning("cell-unavailable", "ring n=2"),
        ];
        let found = notes(&run, &answer(&run, "2.00x"));
        assert_eq!(codes(&found.rest), ["cell-unavailable", "absent"]);
        assert_eq!(found.rest[1].text, "openssl took no part: not found on PATH");
    }
}
