//! How the figures of `primitives` are read.

use std::collections::BTreeMap;

use super::advice::BULK;
use super::{PEERS, headline};
use crate::format::{self, sig3_or};
use crate::lens::rank::best;
use crate::lens::{
    Against, Axis, Family, Layout, Lens, Parameter, Part, Place, Plot, Scope, Shown, list, operation, position, words,
};
use crate::result::{Case, CaseValue, ResultRow};

const SUITES: [&str; 4] = ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305", "xchacha20-poly1305"];
const OPS: [&str; 4] = ["seal", "open", "key-setup", "fresh-key"];

const THROUGHPUT: Shown =
    Shown::new("throughput", 1e-9, "GB/s", "payload in GB/s (10^9 B/s) by message size").related();
const SETUP_TIME: Shown = Shown::new("setup_time", 1e9, "ns", "time in ns, lower is better");
const CPU_PER_OP: Shown = Shown::new("cpu_per_op", 1e9, "ns", "time in ns, lower is better");
static MESSAGES: [Shown; 3] = [THROUGHPUT, Shown::ENERGY_PER_BYTE, Shown::CYCLES_PER_BYTE];
static SET_UP: [Shown; 3] = [SETUP_TIME, Shown::ENERGY_PER_OP, Shown::CYCLES_PER_OP];
static FRESH: [Shown; 3] = [CPU_PER_OP, Shown::ENERGY_PER_OP, Shown::CYCLES_PER_OP];

const SIZES: Axis = Axis {
    across: "message size",
    unit: "GB/s",
};
const READING: &str = "Each point is the median over rounds, its bar the interval (or the range, with few rounds); hollow \
                       points are noisy. Both axes are logarithmic and the same in every panel.";

pub(super) static LENS: Lens = Lens {
    about: "Ciphers",
    others: "other libraries",
    parameters: &[
        Parameter::text("suite", "what seals"),
        Parameter::text("op", "seal, open, key-setup, fresh-key or seal-without-aes"),
        Parameter::number("bytes", 0, "message length"),
        Parameter::number("aad", 0, "bytes of associated data"),
    ],
    figures: &[
        THROUGHPUT,
        SETUP_TIME,
        CPU_PER_OP,
        Shown::ENERGY_PER_BYTE,
        Shown::ENERGY_PER_OP,
        Shown::CYCLES_PER_BYTE,
        Shown::CYCLES_PER_OP,
    ],
    colours: &PEERS,
    against: Against::First,
    case,
    leading: |case| match case.text("op") {
        Some("key-setup") => "setup_time",
        Some("fresh-key") => "cpu_per_op",
        _ => "throughput",
    },
    place,
    intro,
    finding,
    findings: |scope| {
        let found = ["seal", "open"].map(|op| crossover(scope, op, "aes-128-gcm", "chacha20-poly1305"));
        found.into_iter().flatten().collect()
    },
    headline: headline::headline,
    parts: &[
        Part {
            id: "peers",
            figure: "forest",
            title: "Against real peers",
            link: "Against others",
            caption: "against the reference",
            plot: Plot::Ratios(|case| {
                let op = operation(case.text("op").unwrap_or_default());
                let size = case.int("bytes").map_or_else(|| "a key".to_owned(), format::size);
                let suite = case.text("suite").unwrap_or_default().to_owned();
                [suite, op.replace(" for each message", ""), size]
            }),
            empty: "No peer took part in this run, so there is nothing to compare with.",
            ..Part::PLAIN
        },
        Part {
            id: "sizes",
            figure: "suites",
            title: "Which cipher at which size",
            link: "By size",
            caption: "Throughput of the suites",
            plot: Plot::Ours(SIZES),
            metrics: &["throughput"],
            reading: READING,
            says: Some(|scope| {
                let pairs = [("aes-128-gcm", "chacha20-poly1305"), ("aes-128-gcm", "aes-256-gcm")];
                let both = ["seal", "open"].into_iter();
                both.flat_map(|op| pairs.map(|(a, b)| crossover(scope, op, a, b)))
                    .flatten()
                    .collect()
            }),
            empty: "No throughput was measured in this run.",
            ..Part::PLAIN
        },
        Part {
            id: "subjects",
            figure: "suite",
            title: "Every engine, suite by suite",
            caption: "Throughput",
            plot: Plot::Sweeps(SIZES),
            metrics: &["throughput", "energy_per_byte", "cycles_per_byte"],
            reading: READING,
            legend: true,
            ..Part::PLAIN
        },
        Part {
            id: "keys-section",
            figure: "keys",
            title: "Keys: short connections pay here",
            link: "Keys",
            caption: "Time for a key",
            plot: Plot::Sums(&[]),
            metrics: &["setup_time", "cpu_per_op", "energy_per_op", "cycles_per_op"],
            reading: "Bars start at zero; shorter is better. The thin line is the interval, or the range with few rounds. \
                      Time on one thread.",
            empty: "Not measured in this run.",
            ..Part::PLAIN
        },
    ],
    scenarios: &[
        ("server", "Long messages between machines like this one"),
        ("mobile", "Devices without AES in hardware"),
        ("mixed-fleet", "One cipher for all machines"),
        ("short-connections", "Many short connections"),
        ("nonce-misuse", "Where nonces might repeat"),
    ],
    ..Lens::PLAIN
};

fn op(case: &Case) -> &str {
    case.text("op").unwrap_or_default()
}

fn suite(case: &Case) -> &str {
    case.text("suite").unwrap_or_default()
}

/// What a suite is, and those of the run.
fn intro(scope: &Scope<'_>) -> String {
    let measured = |name: &&&str| scope.rows.iter().any(|row| suite(&row.case) == **name);
    let known = SUITES.iter().filter(measured);
    let suites: Vec<String> = known.map(|name| format!("{name} is {}", words::suite(name))).collect();
    format!(
        "A suite is a cipher that also shows when a message was changed on its way: sealing makes the message unreadable, opening \
         checks it and makes it readable again. {}.",
        suites.join("; ")
    )
}

/// A case in a few words: `seal aes-128-gcm 16 KiB`.
fn case(case: &Case) -> String {
    let mut words: Vec<String> = [words::deed(op(case)), suite(case)]
        .into_iter()
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    words.extend(case.int("bytes").map(format::size));
    if words.is_empty() {
        return case.to_string();
    }
    words.join(" ")
}

/// Parameters that set a variant apart from the usual case, such as `aad=0`; empty for the usual one. What is usual is what
/// most rows of the operation have.
fn extra(scope: &Scope<'_>, case: &Case) -> String {
    fn further(case: &Case) -> impl Iterator<Item = (&String, &CaseValue)> {
        let known = |name: &str| matches!(name, "suite" | "op" | "bytes");
        case.0.iter().filter(move |(name, _)| !known(name))
    }
    let usual = |name: &str| {
        let mut counts: BTreeMap<&CaseValue, usize> = BTreeMap::new();
        let values = scope.rows.iter().filter(|row| op(&row.case) == op(case));
        for value in values.filter_map(|row| row.case.0.get(name)) {
            *counts.entry(value).or_default() += 1;
        }
        counts.into_iter().max_by_key(|(_, n)| *n).map(|(value, _)| value)
    };
    let parts: Vec<String> = further(case)
        .filter(|(name, value)| usual(name) != Some(*value))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    parts.join(" ")
}

/// Sizes that were measured with an operation.
fn sizes(scope: &Scope<'_>, of: &str) -> Vec<i64> {
    let rows = scope.rows.iter().filter(|row| op(&row.case) == of);
    let mut sizes: Vec<i64> = rows.filter_map(|row| row.case.int("bytes")).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn place(scope: &Scope<'_>, _: usize, case: &Case) -> Vec<Place> {
    let (op, suite, bytes, extra) = (op(case), suite(case), case.int("bytes"), extra(scope, case));
    let ranks = [position(&SUITES, suite), position(&OPS, op)].map(|place| place as i64);
    let place = Place {
        rank: [0, ranks[0], ranks[1]],
        table: String::new(),
        group: suite.to_owned(),
        kin: None,
        sweep: true,
        least: 1,
        layout: Layout::Cases(&MESSAGES),
        order: bytes.unwrap_or(0),
        column: bytes.map_or_else(String::new, format::size),
    };
    if matches!(op, "key-setup" | "fresh-key") {
        let sizes = sizes(scope, op);
        let mut column = suite.replace("chacha20-poly1305", "chacha20").replace("-gcm", "");
        if let Some(bytes) = bytes.filter(|_| sizes.len() > 1) {
            column.push_str(&format!(" {}", format::size(bytes)));
        }
        if !extra.is_empty() {
            column.push_str(&format!(" {extra}"));
        }
        let (table, group, layout) = match sizes.first() {
            Some(bytes) if op == "fresh-key" => {
                let title = "A fresh key and one message";
                (
                    format!("{title} of {}", format::size(*bytes)),
                    title,
                    Layout::Cases(&FRESH),
                )
            }
            _ => (operation(op).to_owned(), operation(op), Layout::Cases(&SET_UP)),
        };
        return vec![Place {
            rank: [1, ranks[1], 0],
            table,
            group: group.to_owned(),
            sweep: false,
            layout,
            order: (ranks[0] << 40) + bytes.unwrap_or(0),
            column,
            ..place
        }];
    }
    if bytes.is_none() {
        return Vec::new();
    }
    let mut table = format!("{}, {suite}", operation(op));
    if !extra.is_empty() {
        table.push_str(&format!(" ({extra})"));
    }
    let kin = (extra.is_empty() && matches!(op, "seal" | "open"))
        .then(|| (operation(op).to_owned(), suite.replace("-poly1305", "")));
    vec![Place { table, kin, ..place }]
}

/// Who is best: of messages at the size that stands for long ones, of keys with each suite.
fn finding(scope: &Scope<'_>, family: &Family<'_>) -> Option<String> {
    let shown = family.figures(&LENS).first().copied()?;
    let subjects = family.subjects(&scope.subjects, &[shown.metric]);
    let leaders = |column: &crate::lens::Column<'_>| {
        let rows: Vec<Option<&ResultRow>> = subjects.iter().map(|name| column.row(name, shown.metric)).collect();
        let marked = subjects.iter().zip(best(&rows)).filter(|(_, best)| *best);
        let best: Vec<String> = marked.map(|(name, _)| (*name).to_owned()).collect();
        let mut figures: Vec<(&str, f64)> = subjects
            .iter()
            .zip(&rows)
            .filter_map(|(name, row)| Some((*name, row.as_ref()?.median.get() * shown.scale)))
            .collect();
        figures.sort_by(|a, b| b.1.total_cmp(&a.1));
        (best, figures)
    };
    if !family.sweep {
        let quickest = family.columns.iter().filter_map(|column| {
            let (best, figures) = leaders(column);
            let least = figures.iter().map(|(_, ns)| *ns).filter(|ns| ns.is_finite());
            let least = least.fold(f64::MAX, f64::min);
            let lead = format!("{}: {} at {} ns", column.title, list(&best), sig3_or(least, "?"));
            (!best.is_empty()).then_some(lead)
        });
        let quickest: Vec<String> = quickest.collect();
        return (!quickest.is_empty()).then(|| format!("{}, quickest: {}.", family.group, quickest.join("; ")));
    }
    let mut columns = family.columns.iter();
    let column = columns.find(|column| column.order == BULK).or(family.columns.last())?;
    let (best, figures) = leaders(column);
    let lead = match best.len() {
        0 => String::new(),
        1 => format!("{} leads. ", best[0]),
        _ => format!("{} are not told apart. ", list(&best)),
    };
    let rates: Vec<String> = figures
        .iter()
        .map(|(name, rate)| format!("{name} {}", sig3_or(*rate, "?")))
        .collect();
    let (title, _) = family.title.split_once(',')?;
    Some(format!(
        "{title} {}: {lead}In GB/s: {}.",
        column.title,
        rates.join(", ")
    ))
}

/// Throughput of our subject with usual messages, by suite and size.
fn ours<'a>(scope: &Scope<'a>, of: &str) -> Vec<&'a ResultRow> {
    let Some(ours) = scope.ours() else { return Vec::new() };
    let rows = scope.of(ours, "throughput");
    rows.filter(|row| op(&row.case) == of && extra(scope, &row.case).is_empty())
        .collect()
}

/// Where two suites of our subject change places as messages grow, in a sentence.
fn crossover(scope: &Scope<'_>, op: &str, a: &str, b: &str) -> Option<String> {
    let rows = ours(scope, op);
    let find = |of: &str, bytes: i64| {
        let mut rows = rows.iter().copied();
        rows.find(|row| suite(&row.case) == of && row.case.int("bytes") == Some(bytes))
    };
    // 1 where `a` leads, -1 where `b` does, 0 where they are not told apart.
    let order: Vec<(i64, i8)> = sizes(scope, op)
        .into_iter()
        .filter_map(|bytes| {
            let marks = best(&[Some(find(a, bytes)?), Some(find(b, bytes)?)]);
            Some((bytes, i8::from(marks[0]) - i8::from(marks[1])))
        })
        .collect();
    let (title, size) = (operation(op), format::size);
    let (first, last) = (order.first()?, order.last()?);
    let name = |lead: i8| if lead > 0 { a } else { b };
    let decided: Vec<&(i64, i8)> = order.iter().filter(|(_, lead)| *lead != 0).collect();
    let Some(start) = decided.first() else {
        return Some(format!("{title}: {a} and {b} are not told apart at any size."));
    };
    if decided.iter().all(|(_, lead)| *lead == start.1) {
        let extent = if decided.len() == order.len() {
            format!("at every size from {} to {}", size(first.0), size(last.0))
        } else {
            let sizes: Vec<String> = decided.iter().map(|(bytes, _)| size(*bytes)).collect();
            format!("at {}; elsewhere the two are not told apart", list(&sizes))
        };
        return Some(format!("{title}: {} beats {} {extent}.", name(start.1), name(-start.1)));
    }
    let turns: Vec<String> = decided
        .windows(2)
        .filter(|pair| pair[0].1 != pair[1].1)
        .map(|pair| {
            let (from, to) = (size(pair[0].0), size(pair[1].0));
            format!("{} leads up to {from}, {} from {to}", name(pair[0].1), name(pair[1].1))
        })
        .collect();
    Some(format!("{title}: the lead changes: {}.", turns.join("; ")))
}
