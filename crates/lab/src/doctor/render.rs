//! The diagnosis as text.

use super::{AaVerdict, Diagnosis, State, Verdict};
use crate::format::{COLUMNS, lines, plain};

/// Column at which texts begin.
const INDENT: usize = 27;

pub(super) fn render(diagnosis: &Diagnosis) -> String {
    let mut out = String::new();
    let answer = match diagnosis.verdict {
        Verdict::Yes => "Yes.",
        Verdict::WithCare => "With care: ratios, yes; see the lines marked `attention` before rates.",
        Verdict::No => "Not now: see the lines marked `bad`.",
    };
    out.push_str(&format!("Trust figures of this machine? {answer}\n\n"));
    let state = match diagnosis.a_a.verdict {
        AaVerdict::Sound => State::Ok,
        AaVerdict::Error => State::Bad,
        AaVerdict::Unknown => State::Unknown,
    };
    add(&mut out, &heading(state, "a/a check"), &diagnosis.a_a.text);
    for finding in &diagnosis.findings {
        add(&mut out, &heading(finding.state, finding.name), &finding.text);
        if !finding.advice.is_empty() {
            add(&mut out, &format!("{:INDENT$}-> ", ""), &finding.advice);
        }
        if !finding.command.is_empty() {
            // On one line whatever its length: it is there to be copied.
            out.push_str(&format!("{:INDENT$}$ {}\n", "", plain(&finding.command)));
        }
    }
    out
}

/// What stands before the text of a finding: [`INDENT`] columns.
fn heading(state: State, name: &str) -> String {
    let state = match state {
        State::Ok => "ok",
        State::Unknown => "unknown",
        State::Attention => "attention",
        State::Bad => "bad",
    };
    format!("{state:<10} {name:<15} ")
}

/// Adds `text` behind `lead`, in as many lines as it takes.
fn add(out: &mut String, lead: &str, text: &str) {
    for line in lines(lead, &" ".repeat(lead.len()), text, COLUMNS) {
        out.push_str(&line);
        out.push('\n');
    }
}
