//! Plain-text tables for standard output.
//!
//! No row is ever wrapped: where columns do not fit the width, the table goes on beneath itself. Colour is never the
//! only carrier of meaning; every mark is explained below the tables.

mod bip324;
mod load;
mod packets;
mod table;
mod transports;

use std::collections::BTreeSet;

use self::table::{Cell, Table};
use super::bip324::BIP324;
use super::crossover::crossover;
use super::finding::{self, FLAGS};
use super::load::LOADS;
use super::packets::PACKETS;
use super::transports::TRANSPORTS;
use super::view::{Group, OURS, PRIMITIVES, View, speed};
use crate::format::{self, clean, sig3};
use crate::result::{ResultRow, RunResult};

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
pub fn render(run: &RunResult, style: &Style, files: &[&str]) -> String {
    let width = style.width.max(60);
    let view = View::new(run);
    let mut out = Text {
        text: String::new(),
        style: *style,
        width,
    };
    head(&mut out, run);
    let mut marks = BTreeSet::new();
    for (index, group) in view.groups.iter().enumerate() {
        if matches!(group.op, "key-setup" | "fresh-key") {
            continue;
        }
        message_table(&mut out, &view, index, group, &mut marks);
    }
    key_table(&mut out, &view, &mut marks);
    packets::tables(&mut out, &view, &mut marks);
    bip324::tables(&mut out, &view, &mut marks);
    transports::tables(&mut out, &view, &mut marks);
    load::tables(&mut out, &view, &mut marks);
    notes(&mut out, &marks);
    standings(&mut out, &view);
    advice(&mut out, run);
    tail(&mut out, run, files);
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
        if self.style.unicode {
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
}

fn head(out: &mut Text, run: &RunResult) {
    let mut title = format!("sealway lab {}", clean(&run.sealway));
    for (name, value) in [("profile", &run.profile), ("started", &run.started)] {
        if !value.is_empty() {
            title.push_str(&format!(", {name} {}", clean(value)));
        }
    }
    out.line(&out.cut(&title));
    if !run.complete {
        out.prose("CUT SHORT ", "The run was stopped: these are partial figures.");
    }
    out.line(&out.cut(&format!("Machine  {}", finding::machine(run))));
    out.line(&out.cut(&format!("Plan     {}", finding::rounds(run))));
    for warning in &run.warnings {
        let place = if warning.place.is_empty() {
            String::new()
        } else {
            format!(" [{}]", clean(&warning.place))
        };
        out.prose(
            "Warning  ",
            &format!("{}{place}: {}", clean(&warning.code), clean(&warning.text)),
        );
    }
    for missing in finding::absent(run) {
        out.prose("Absent   ", &missing);
    }
}

/// The signs of a row, remembered for the footnotes.
fn signs(row: &ResultRow, best: bool, used: &mut BTreeSet<char>) -> String {
    let mut signs = String::new();
    if best {
        signs.push('*');
    }
    signs.extend(
        FLAGS
            .iter()
            .filter(|(flag, _, _)| row.flags.iter().any(|f| f == flag))
            .map(|(_, sign, _)| *sign),
    );
    used.extend(signs.chars());
    signs
}

fn ratio_cell(row: Option<&ResultRow>, used: &mut BTreeSet<char>) -> Cell {
    let Some(speed) = row.and_then(speed) else {
        return Cell::empty();
    };
    let (_, sign, _) = finding::verdict(speed.verdict);
    used.insert(sign);
    Cell {
        number: sig3(speed.estimate).unwrap_or_default(),
        marks: sign.to_string(),
        bold: false,
    }
}

fn message_table(out: &mut Text, view: &View<'_>, index: usize, group: &Group<'_>, used: &mut BTreeSet<char>) {
    let subjects = view.subjects_in(index, "throughput");
    if subjects.is_empty() || group.sizes.is_empty() {
        return;
    }
    let mut table = Table::new(subjects.iter().map(|name| clean(name)).collect());
    let mut ratios = Table::new(Vec::new());
    let mut to = Vec::new();
    let compared: Vec<&str> = subjects
        .iter()
        .copied()
        .filter(|name| {
            let rows = group
                .sizes
                .iter()
                .filter_map(|b| view.row(index, Some(*b), name, "throughput"));
            let targets: Vec<&str> = rows.filter_map(speed).map(|speed| speed.to).collect();
            to.extend(targets.iter().map(|name| clean(name)));
            !targets.is_empty()
        })
        .collect();
    to.dedup();
    ratios.names = compared.iter().map(|name| clean(name)).collect();
    for bytes in &group.sizes {
        let rows: Vec<Option<&ResultRow>> = subjects
            .iter()
            .map(|name| view.row(index, Some(*bytes), name, "throughput"))
            .collect();
        let best = finding::best(&rows);
        let cells = rows.iter().zip(best).map(|(row, best)| match row {
            Some(row) => Cell {
                number: sig3(row.median.get() / 1e9).unwrap_or_else(|| "?".to_owned()),
                marks: signs(row, best, used),
                bold: best,
            },
            None => Cell::empty(),
        });
        let title = format::size(*bytes);
        table.push(&title, cells.collect());
        let cells = compared
            .iter()
            .map(|name| ratio_cell(view.row(index, Some(*bytes), name, "throughput"), used));
        ratios.push(&title, cells.collect());
    }
    out.heading(&format!(
        "{}: payload in GB/s (10^9 B/s) by message size",
        group.title()
    ));
    if !compared.is_empty() {
        to.sort();
        to.dedup();
        table.below(&format!("  speed as a ratio to {}", to.join(", ")), ratios);
    }
    for line in table.lines(out.width, out.style.color) {
        out.line(&line);
    }
}

fn key_table(out: &mut Text, view: &View<'_>, used: &mut BTreeSet<char>) {
    let columns: [(&str, &'static str); 2] = [("key-setup", "setup_time"), ("fresh-key", "cpu_per_op")];
    for (op, metric) in columns {
        // One column a suite and size.
        let mut keys: Vec<(usize, Option<i64>, String)> = Vec::new();
        for (index, group) in view.of_op(op) {
            let sizes = group
                .sizes
                .iter()
                .map(|b| Some(*b))
                .chain(group.sizes.is_empty().then_some(None));
            for bytes in sizes {
                let mut title = short_suite(group.suite);
                if let Some(bytes) = bytes.filter(|_| group.sizes.len() > 1) {
                    title.push_str(&format!(" {}", format::size(bytes)));
                }
                if !group.extra.is_empty() {
                    title.push_str(&format!(" {}", clean(&group.extra)));
                }
                keys.push((index, bytes, title));
            }
        }
        let subjects: Vec<&str> = view
            .subjects
            .iter()
            .copied()
            .filter(|name| {
                keys.iter()
                    .any(|(index, bytes, _)| view.row(*index, *bytes, name, metric).is_some())
            })
            .collect();
        if subjects.is_empty() {
            continue;
        }
        let mut table = Table::new(subjects.iter().map(|name| clean(name)).collect());
        for (index, bytes, title) in &keys {
            let rows: Vec<Option<&ResultRow>> = subjects
                .iter()
                .map(|name| view.row(*index, *bytes, name, metric))
                .collect();
            let best = finding::best(&rows);
            let cells = rows.iter().zip(best).map(|(row, best)| match row {
                Some(row) => Cell {
                    number: sig3(row.median.get() * 1e9).unwrap_or_else(|| "?".to_owned()),
                    marks: signs(row, best, used),
                    bold: best,
                },
                None => Cell::empty(),
            });
            table.push(title, cells.collect());
        }
        let what = match view.of_op(op).flat_map(|(_, group)| group.sizes.first()).next() {
            Some(bytes) if op == "fresh-key" => format!("A fresh key and one message of {}", format::size(*bytes)),
            _ => super::view::op_title(op),
        };
        out.heading(&format!("{what}: time in ns, lower is better"));
        for line in table.lines(out.width, out.style.color) {
            out.line(&line);
        }
    }
}

/// A suite's name that fits a column.
fn short_suite(suite: &str) -> String {
    clean(suite)
        .replace("chacha20-poly1305", "chacha20")
        .replace("-gcm", "")
}

fn notes(out: &mut Text, used: &BTreeSet<char>) {
    if used.is_empty() {
        out.text.push('\n');
        out.line("No figures.");
        return;
    }
    out.text.push('\n');
    let fixed = [
        ('*', "best of its column, or not told apart from the best"),
        ('+', "faster: the whole interval lies beyond 1 %"),
        ('-', "slower: the whole interval lies beyond 1 %"),
        ('=', "the same within 1 %"),
        ('?', "not decided by these rounds"),
    ];
    let flags = FLAGS.iter().map(|(_, sign, text)| (*sign, *text));
    let texts: Vec<String> = fixed
        .into_iter()
        .chain(flags)
        .filter(|(sign, _)| used.contains(sign))
        .map(|(sign, text)| format!("{sign} {text}"))
        .collect();
    out.prose("Marks    ", &format!("{}.", texts.join("; ")));
}

fn standings(out: &mut Text, view: &View<'_>) {
    let workloads = [
        (PRIMITIVES, "Over all cases"),
        (PACKETS, "Over all cases of packets"),
        (BIP324, "Over all cases of bip324"),
        (TRANSPORTS, "Over all cases of transports"),
        (LOADS[0], "Over all cases of requests"),
        (LOADS[1], "Over all cases of flows"),
        (LOADS[2], "Over all cases of files"),
    ];
    for (workload, title) in workloads {
        // Against the best peer only our own standing says something: a peer is that peer in some cases.
        let counts = |name: &&&str| workload == PRIMITIVES || name.starts_with(OURS);
        let standings = view
            .subjects
            .iter()
            .filter(counts)
            .flat_map(|name| finding::standings(view.run, workload, name));
        for (place, standing) in standings.enumerate() {
            if place == 0 {
                out.heading(title);
            }
            out.prose("  ", &standing.sentence());
        }
        if workload == PRIMITIVES {
            crossovers(out, view);
        }
    }
}

fn crossovers(out: &mut Text, view: &View<'_>) {
    for op in ["seal", "open"] {
        if let Some(text) = crossover(view, op, "aes-128-gcm", "chacha20-poly1305") {
            out.prose("  ", &text);
        }
    }
}

fn advice(out: &mut Text, run: &RunResult) {
    if run.recommendation.is_empty() {
        return;
    }
    out.heading("Recommendation");
    for item in &run.recommendation {
        let (scenario, choice) = (clean(&item.scenario), clean(&item.choice));
        out.prose(
            "  ",
            &format!(
                "{scenario}: {choice} ({}). {}",
                clean(&item.confidence),
                clean(&item.reason)
            ),
        );
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
        out.line(&format!("Written  {}", clean(file)));
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
        assert_eq!(
            style(true, &utf8),
            Style {
                color: true,
                unicode: true,
                width: 120
            }
        );
        assert_eq!(
            style(false, &utf8),
            Style {
                color: false,
                unicode: true,
                width: 80
            }
        );
        assert!(!style(true, &[("TERM", "xterm"), ("NO_COLOR", "1")]).color);
        assert!(style(true, &[("TERM", "xterm"), ("NO_COLOR", "")]).color);
        assert!(!style(true, &[("TERM", "dumb")]).color);
        assert!(!style(true, &[]).color);
        assert!(!style(true, &[("LC_ALL", "C"), ("LANG", "en_GB.UTF-8")]).unicode);
        assert_eq!(Style::detect(true, Some(20), |_| None).width, 60);
    }
}
