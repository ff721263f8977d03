//! Plain-text tables for standard output.
//!
//! No row is ever wrapped: where columns do not fit the width, the table goes on beneath itself. Colour is never the
//! only carrier of meaning; every mark is explained below the tables.

mod published;
mod table;

use std::collections::BTreeSet;

use super::model::{Report, View, harmless, machine, rounds};
use super::notes::{Note, Notes, notes};
use super::tables::{FLAGS, SIGNS, tables};
use crate::format::{self, clock, gap};
use crate::lens::choice::SCALE;
use crate::lens::headline::UNKNOWN;
use crate::lens::{Against, Grade, Headline};
use crate::result::RunResult;
use crate::workload::Catalogue;

/// How the output may look. It is passed in, so that a report depends on nothing but its arguments.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Style {
    /// ANSI escapes for bold may be used.
    pub color: bool,
    /// Characters outside ASCII may be used.
    pub unicode: bool,
    /// Columns of the terminal; values under 60 are taken as 60.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Style {
            color: false,
            unicode: false,
            width: 80,
        }
    }
}

impl Style {
    /// The style for an output.
    ///
    /// `terminal` says whether the output is one, `columns` its width if known, and `variable` looks an environment
    /// variable up. `NO_COLOR` (set to anything but nothing), `TERM=dumb` and an output that is no terminal give plain
    /// text; characters outside ASCII need a UTF-8 locale (`LC_ALL`, else `LC_CTYPE`, else `LANG`).
    pub fn detect(terminal: bool, columns: Option<usize>, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty());
        let locale = set("LC_ALL")
            .or_else(|| set("LC_CTYPE"))
            .or_else(|| set("LANG"))
            .unwrap_or_default();
        let locale = locale.to_ascii_lowercase();
        Style {
            color: terminal && set("NO_COLOR").is_none() && set("TERM").is_some_and(|term| term != "dumb"),
            unicode: locale.contains("utf-8") || locale.contains("utf8"),
            width: columns.filter(|_| terminal).unwrap_or(80).clamp(60, 200),
        }
    }
}

/// The whole report as text, ending in a newline. `files` are the names of files written, for the last lines.
pub fn render(run: &RunResult, catalogue: &Catalogue, style: &Style, files: &[&str]) -> String {
    let run = harmless(run);
    let report = Report::new(&run, catalogue);
    let mut out = Text {
        text: String::new(),
        style: *style,
        width: style.width.max(60),
    };
    let (leads, headline) = report.headline();
    let notes = notes(&run, &headline);
    if let Some(view) = leads {
        let about = view.lens.about;
        out.prose("", &format!("{about} on this machine. {}", report.measured(view)));
    }
    answer(&mut out, &report, &headline, &notes);
    head(&mut out, &run);
    if let Some(found) = &run.reproduction {
        published::section(&mut out, found);
    }
    let mut marks = BTreeSet::new();
    let mut said = "";
    for view in &report.views {
        if !view.intro.is_empty() && view.intro != said {
            out.text.push('\n');
            out.prose("", &view.intro);
            said = &view.intro;
        }
        for table in tables(view) {
            marks.extend(table.marks());
            out.heading(&table.heading);
            for line in table::lines(&table, out.width, style.color) {
                out.line(&line);
            }
            if let Some(finding) = &table.finding {
                out.prose("  ", finding);
            }
        }
    }
    key(&mut out, &marks);
    for counter in report.counters() {
        out.prose(counter.label, counter.meaning[0]);
    }
    for view in &report.views {
        standings(&mut out, view);
    }
    about(&mut out, &notes.rest);
    advice(&mut out, &report);
    tail(&mut out, &run, files);
    out.text
}

/// The growing output.
struct Text {
    text: String,
    style: Style,
    width: usize,
}

impl Text {
    /// A line as it is; the caller has made it fit.
    fn line(&mut self, line: &str) {
        let line = self.encode(line.trim_end());
        self.text.push_str(&line);
        self.text.push('\n');
    }

    /// A heading of as many lines as it takes: what tells two tables apart often stands at its end.
    fn heading(&mut self, line: &str) {
        self.text.push('\n');
        self.bold(line);
    }

    /// A line that stands out.
    fn bold(&mut self, line: &str) {
        let indent = &line[..line.len() - line.trim_start().len()];
        for line in self.wrap(indent, line) {
            let line = self.cut(&line);
            if self.style.color {
                self.line(&format!("\x1b[1m{line}\x1b[0m"));
            } else {
                self.line(&line);
            }
        }
    }

    /// Running text, broken between words, later lines indented.
    fn prose(&mut self, label: &str, text: &str) {
        for line in self.wrap(label, text) {
            self.line(&line);
        }
    }

    /// The words of `text` in lines, the first after `label`, the others under it.
    fn wrap(&self, label: &str, text: &str) -> Vec<String> {
        let indent = " ".repeat(label.chars().count());
        let mut lines = Vec::new();
        let mut line = label.to_owned();
        let mut used = false;
        for word in self.encode(text).split_whitespace() {
            if used && line.chars().count() + 1 + word.chars().count() > self.width {
                lines.push(std::mem::replace(&mut line, indent.clone()));
                used = false;
            }
            if used {
                line.push(' ');
            }
            line.push_str(word);
            used = true;
        }
        lines.push(line);
        lines
    }

    /// The start of a line that must not wrap.
    fn cut(&self, line: &str) -> String {
        let line = self.encode(line);
        if line.chars().count() <= self.width {
            return line;
        }
        let mut short: String = line.chars().take(self.width - 3).collect();
        short.push_str("...");
        short
    }

    /// The text in the character set of the output; escapes that this module wrote pass.
    fn encode(&self, text: &str) -> String {
        in_charset(text, self.style.unicode)
    }
}

/// The text as it is, or in ASCII.
pub(super) fn in_charset(text: &str, unicode: bool) -> String {
    if unicode {
        return text.to_owned();
    }
    let mut ascii = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_ascii() => ascii.push(c),
            '\u{2018}' | '\u{2019}' => ascii.push('\''),
            '\u{201c}' | '\u{201d}' => ascii.push('"'),
            '\u{2010}'..='\u{2015}' | '\u{2212}' => ascii.push('-'),
            '\u{2026}' => ascii.push_str("..."),
            '\u{00d7}' => ascii.push('x'),
            '\u{00b5}' | '\u{03bc}' => ascii.push('u'),
            '\u{00b1}' => ascii.push_str("+-"),
            '\u{00a0}' | '\u{202f}' => ascii.push(' '),
            _ => ascii.push('?'),
        }
    }
    ascii
}

/// What to use, how much it gains and how sure that is, with what touches it.
fn answer(out: &mut Text, report: &Report<'_>, headline: &Headline, notes: &Notes) {
    // Where the answer is worth little, that is read before it.
    let careful_first = headline.sure == Some(Grade::Uncertain);
    if careful_first {
        careful(out, notes);
    }
    out.bold(&headline.answer);
    if headline.which != UNKNOWN {
        let told = [
            (headline.label, headline.which.as_str(), headline.which_note.as_str()),
            ("Set", &headline.set, ""),
            ("Gain", &headline.lead, &headline.lead_note),
            ("How sure", headline.sure(), &headline.sure_note),
        ];
        for (label, value, note) in told.into_iter().filter(|(_, value, _)| !value.is_empty()) {
            let gap = match note {
                "" => "",
                _ if label == "Gain" => gap(value),
                _ => ": ",
            };
            out.prose(&format!("{label:8} "), &format!("{value}{gap}{note}"));
        }
    }
    if !headline.programs.is_empty() {
        out.prose("Programs ", &headline.programs);
    }
    if !careful_first {
        careful(out, notes);
    }
    for also in report.also() {
        out.prose("Also     ", &also);
    }
    if headline.sure.is_some() {
        out.prose("Scale    ", &format!("of how sure: {SCALE}."));
    }
    out.text.push('\n');
}

/// What touches the answer.
fn careful(out: &mut Text, notes: &Notes) {
    if let Some(verdict) = &notes.verdict {
        out.prose("Careful  ", &verdict.text);
        // Copied by readers, so it is never broken into lines.
        if !verdict.command.is_empty() {
            out.line(&format!("         {}", verdict.command));
        }
    }
    for note in &notes.first {
        out.prose("Careful  ", &format!("{}: {}", note.code, note.text));
    }
}

fn head(out: &mut Text, run: &RunResult) {
    let mut title = format!("sealway lab {}", run.sealway);
    for (name, value) in [("profile", &run.profile), ("started", &run.started)] {
        if !value.is_empty() {
            title.push_str(&format!(", {name} {value}"));
        }
    }
    out.line(&out.cut(&title));
    let (cpu, rest) = machine(&run.machine);
    out.line(&out.cut(&format!("Machine  {cpu}, {rest}")));
    if let Some(responder) = &run.responder {
        let (cpu, rest) = machine(&responder.machine);
        let rtt = format::seconds(responder.rtt_s.get());
        out.line(&out.cut(&format!("Servers  {cpu}, {rest}; an answer takes {rtt}")));
    }
    if let Some(link) = &run.link {
        out.prose("Link     ", &format!("emulated: {}", link.line()));
    }
    out.line(&out.cut(&format!("Rounds   {}", rounds(run))));
    if run.plan.taken_s > 0.0 {
        let [announced, taken] = [run.plan.expected_s, run.plan.taken_s].map(clock);
        out.line(&format!("Time     {announced} announced, {taken} taken"));
    }
}

/// What the signs in tables mean.
fn key(out: &mut Text, used: &BTreeSet<char>) {
    out.text.push('\n');
    if used.is_empty() {
        out.line("No figures.");
        return;
    }
    let flags = FLAGS.iter().map(|(_, sign, text)| (*sign, *text));
    let texts: Vec<String> = SIGNS
        .into_iter()
        .chain(flags)
        .filter(|(sign, _)| used.contains(sign))
        .map(|(sign, text)| format!("{sign} {text}"))
        .collect();
    out.prose("Marks    ", &format!("{}.", texts.join("; ")));
}

fn standings(out: &mut Text, view: &View<'_>) {
    let sentences: Vec<String> = view.standings().iter().map(|sum| sum.sentence()).collect();
    if sentences.is_empty() && view.findings.is_empty() {
        return;
    }
    match view.lens.against {
        Against::First => out.heading("Over all cases"),
        Against::Best => out.heading(&format!("Over all cases of {}", view.workload.name)),
    }
    for sentence in sentences.iter().chain(&view.findings) {
        out.prose("  ", sentence);
    }
}

/// What must be known of the run and does not touch its answer.
fn about(out: &mut Text, notes: &[Note]) {
    if notes.is_empty() {
        return;
    }
    out.heading("About this run");
    for note in notes {
        out.prose("  ", &format!("{}: {}", note.code, note.text));
    }
}

fn advice(out: &mut Text, report: &Report<'_>) {
    if report.run.recommendation.is_empty() {
        return;
    }
    out.heading("What to use");
    for item in &report.run.recommendation {
        let (choice, sure) = (&item.choice, report.grade(item).word());
        let scenario = report.scenario(&item.scenario);
        out.prose("  ", &format!("{scenario}: {choice} ({sure}). {}", item.reason));
    }
}

fn tail(out: &mut Text, run: &RunResult, files: &[&str]) {
    if run.command.is_empty() && files.is_empty() {
        return;
    }
    out.text.push('\n');
    // These two are copied by readers, so they are never broken into lines.
    if !run.command.is_empty() {
        out.line(&format!("Repeat   {}", format::command(&run.command)));
    }
    for file in files {
        out.line(&format!("Written  {}", format::clean(file)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_decides_colour_and_characters() {
        let style = |terminal, list: &[(&str, &str)]| {
            let list: Vec<(String, String)> = list.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            Style::detect(terminal, Some(120), |name| {
                list.iter().find(|(k, _)| k == name).map(|(_, v)| v.clone())
            })
        };
        let utf8 = [("TERM", "xterm"), ("LANG", "en_GB.UTF-8")];
        for (terminal, width) in [(true, 120), (false, 80)] {
            let found = style(terminal, &utf8);
            assert_eq!((found.color, found.unicode, found.width), (terminal, true, width));
        }
        assert!(!style(true, &[("TERM", "xterm"), ("NO_COLOR", "1")]).color);
        assert!(style(true, &[("TERM", "xterm"), ("NO_COLOR", "")]).color);
        assert!(!style(true, &[("TERM", "dumb")]).color);
        assert!(!style(true, &[]).color);
        assert!(!style(true, &[("LC_ALL", "C"), ("LANG", "en_GB.UTF-8")]).unicode);
        assert_eq!(Style::detect(true, Some(20), |_| None).width, 60);
    }
}
