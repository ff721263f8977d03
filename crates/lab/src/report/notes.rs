//! What a reader must know of a run before believing it: one verdict on the run, what else touches the answer, then the rest.

use super::model::{absent, visited};
use crate::format;
use crate::lens::headline::UNKNOWN;
use crate::lens::{Calm, Grade, Headline};
use crate::result::{RunResult, Warning};

/// A code, and what it means here.
pub(crate) struct Note {
    pub(crate) code: String,
    pub(crate) text: String,
}

/// The notes of a run.
pub(crate) struct Notes {
    /// What is wrong with the run as a whole, and what to do; absent where nothing is.
    pub(crate) verdict: Option<Verdict>,
    /// Those that touch the answer: they stand beside it.
    pub(crate) first: Vec<Note>,
    /// The others.
    pub(crate) rest: Vec<Note>,
}

/// What is wrong with a run as a whole.
pub(crate) struct Verdict {
    pub(crate) text: String,
    /// The command that repeats it; empty where the run does not tell.
    pub(crate) command: String,
}

/// Warnings of a whole run that no answer is free of.
const WHOLE_RUN: [&str; 2] = ["interrupted", "link-not-kept"];

/// The time limit was up before all rounds were done.
const OUT_OF_TIME: &str = "out-of-time";

/// Warnings of machines that move figures and leave ratios: they touch an answer that has no ratio.
const RATES: [&str; 6] = [
    "battery",
    "clocksource",
    "coarse-clock",
    "cpu-quota",
    "governor",
    "shared-cpu",
];

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
        let notes = if touches(answer, warning) {
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
    let verdict = verdict(run, answer);
    Notes { verdict, first, rest }
}

/// One verdict for all disturbances of the machine and for rounds that there was no time for; the details are notes.
fn verdict(run: &RunResult, answer: &Headline) -> Option<Verdict> {
    let calm = Calm::of(run, &answer.rests_on);
    let short = run.warnings.iter().any(|warning| warning.code == OUT_OF_TIME);
    let mut text = String::new();
    if calm.disturbed() {
        text.push_str(&format!(
            "This run was disturbed: in {} behind the answer other programs had a part of the CPU, or the CPU changed its speed. ",
            calm.share()
        ));
        text.push_str(match answer.sure {
            Some(Grade::Likely) => "The order probably holds, the size may not. ",
            Some(Grade::Uncertain) => "Neither order nor size is sure. ",
            _ => "",
        });
    }
    if short {
        text.push_str(&format!("There was time for {}. ", visited(run)));
    }
    let advice = match (calm.disturbed(), short) {
        (true, _) => "Close other programs, then run",
        (false, true) => "For all rounds, run",
        (false, false) => return None,
    };
    text.push_str(advice);
    let command = if run.command.is_empty() {
        text.push_str(" it again.");
        String::new()
    } else {
        text.push(':');
        format::command(&again(run, short))
    };
    Some(Verdict { text, command })
}

/// The command of a run, with twice the time where there was too little.
fn again(run: &RunResult, short: bool) -> Vec<String> {
    let mut words = run.command.clone();
    if short {
        let minutes = (run.plan.expected_s.max(run.plan.taken_s) * 2.0 / 60.0).ceil().max(1.0);
        if let Some(place) = words.iter().position(|word| word == "--budget") {
            words.drain(place..(place + 2).min(words.len()));
        }
        words.retain(|word| !word.starts_with("--budget="));
        words.extend(["--budget".to_owned(), format!("{minutes}m")]);
    }
    words
}

/// Whether a warning says of a subject that it took no part: that is told of each subject anyway.
fn of_absent(run: &RunResult, warning: &Warning) -> bool {
    let subject = run.subject(&warning.place);
    warning.code == "cell-unavailable" && subject.is_some_and(|subject| !subject.error.is_empty())
}

fn touches(answer: &Headline, warning: &Warning) -> bool {
    let code = warning.code.as_str();
    if WHOLE_RUN.contains(&code) {
        return true;
    }
    if RATES.contains(&code) {
        return answer.lead == UNKNOWN;
    }
    let named =
        |(case, subject): &(_, String)| warning.place == *subject || warning.place == format!("{subject} {case}");
    answer.rests_on.iter().any(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Case, Subject, Window};

    fn run() -> RunResult {
        RunResult {
            complete: true,
            ..RunResult::default()
        }
    }

    fn answer(lead: &str) -> Headline {
        let mut answer = Headline::new("It is so.".to_owned(), "x", "", "");
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
            warning("interrupted", ""),
            warning("cell-wrong", "ring n=1"),
            warning("repeated", ""),
        ];
        let found = notes(&run, &answer("2.00x"));
        assert_eq!(codes(&found.first), ["interrupted", "cell-wrong"]);
        assert_eq!(codes(&found.rest), ["shared-cpu", "cell-failed", "repeated"]);
        assert_eq!(found.first[1].text, "ring n=1: It did.");
        // Without a ratio the answer is a figure, which a shared CPU moves.
        let found = notes(&run, &answer(UNKNOWN));
        assert_eq!(codes(&found.first), ["shared-cpu", "interrupted", "cell-wrong"]);
        run.complete = false;
        assert_eq!(notes(&run, &answer(UNKNOWN)).first[0].code, "Cut short");
    }

    #[test]
    fn a_run_is_disturbed_when_more_than_a_fifth_of_the_windows_behind_its_answer_are() {
        let mut run = run();
        run.warnings = vec![warning("steal", "")];
        let window = |subject: &str, n: i64, marks: &[&str]| Window {
            case: case(n),
            subject: subject.to_owned(),
            marks: marks.iter().map(|mark| (*mark).to_owned()).collect(),
            ..Window::default()
        };
        run.windows = vec![window("sealway", 1, &["steal"])];
        run.windows.extend((0..4).map(|_| window("ring", 1, &[])));
        // Others, and windows that do not count, change nothing.
        run.windows.extend((0..9).map(|_| window("ring", 2, &["steal"])));
        run.windows.push(window("ring", 1, &["steal", "superseded"]));
        assert!(notes(&run, &answer("2.00x")).verdict.is_none());
        run.windows.push(window("ring", 1, &["canary", "steal"]));
        let found = notes(&run, &answer("2.00x"));
        let verdict = found.verdict.expect("disturbed");
        assert!(
            verdict
                .text
                .starts_with("This run was disturbed: in 2 of 6 measurements"),
            "{}",
            verdict.text
        );
        assert!(verdict.text.ends_with("then run it again."), "{}", verdict.text);
        // The details are for those who look.
        assert_eq!((codes(&found.first).len(), codes(&found.rest)), (0, vec!["steal"]));
    }

    #[test]
    fn rounds_without_time_are_had_by_the_command_with_more_of_it() {
        let mut run = run();
        run.warnings = vec![warning("out-of-time", "")];
        run.plan.rounds = 3;
        run.plan.taken_s = 51.0;
        for command in ["sealway lab --budget 50s --quick", "sealway lab --budget=50s --quick"] {
            run.command = command.split(' ').map(str::to_owned).collect();
            let verdict = notes(&run, &answer("2.00x")).verdict.expect("short");
            assert_eq!(verdict.text, "There was time for 0 of 3 rounds. For all rounds, run:");
            assert_eq!(verdict.command, "sealway lab --quick --budget 2m");
        }
    }

    #[test]
    fn an_absent_subject_is_told_once() {
        let mut run = run();
        run.subjects = vec![Subject {
            name: "openssl".to_owned(),
            error: "not found on PATH".to_owned(),
            ..Subject::default()
        }];
        run.warnings = vec![
            warning("cell-unavailable", "openssl"),
            warning("cell-unavailable", "ring n=2"),
        ];
        let found = notes(&run, &answer("2.00x"));
        assert_eq!(codes(&found.rest), ["cell-unavailable", "absent"]);
        assert_eq!(found.rest[1].text, "openssl took no part: not found on PATH");
    }
}
