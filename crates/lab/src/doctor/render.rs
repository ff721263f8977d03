//! The diagnosis as text.

use super::{AaVerdict, Diagnosis, State, Verdict};

const WIDTH: usize = 80;

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
        AaVerdict::Sound => "ok",
        AaVerdict::Error => "bad",
        AaVerdict::Unknown => "unknown",
    };
    row(&mut out, state, "a/a check", &diagnosis.a_a.text);
    for finding in &diagnosis.findings {
        let state = match finding.state {
            State::Ok => "ok",
            State::Unknown => "unknown",
            State::Attention => "attention",
            State::Bad => "bad",
        };
        row(&mut out, state, finding.name, &finding.text);
        if !finding.advice.is_empty() {
            wrap(&mut out, "-> ", &finding.advice);
        }
        if !finding.command.is_empty() {
            // On one line whatever its length: it is there to be copied.
            out.push_str(&format!("{:INDENT$}$ {}\n", "", ascii(&finding.command)));
        }
    }
    out
}

fn row(out: &mut String, state: &str, name: &str, text: &str) {
    out.push_str(&format!("{state:<10} {name:<15} "));
    let mut wrapped = String::new();
    wrap(&mut wrapped, "", text);
    out.push_str(wrapped.trim_start());
}

/// Adds `text` from column [`INDENT`] on, in lines of at most [`WIDTH`], the first after `lead`.
fn wrap(out: &mut String, lead: &str, text: &str) {
    let text = ascii(text);
    let mut line = format!("{:INDENT$}{lead}", "");
    let start = line.len();
    for word in text.split_whitespace() {
        if line.len() > start && line.len() + 1 + word.len() > WIDTH {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(start);
        }
        if line.len() > start {
            line.push(' ');
        }
        // A single word that is too long is cut: texts of the system may be anything.
        let room = WIDTH - line.len().min(WIDTH - 1);
        line.push_str(word.get(..room).unwrap_or(word));
    }
    out.push_str(line.trim_end());
    out.push('\n');
}

fn ascii(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_ascii() && !c.is_ascii_control() { c } else { '?' })
        .collect()
}
