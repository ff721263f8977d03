//! Words for the rows of the workload `files`; their tables are those of [`super::load`].

use super::finding::{Headline, rounds_note, verdict};
use super::view::{OURS, speed};
use crate::format::{clean, sig3_or, times};
use crate::result::{ResultRow, RunResult};

/// The workload's name.
pub(crate) const FILES: &str = "files";

/// What the figures mean, before them.
pub(crate) const READING: &str = "From the start of a command to the end of the receiver, start-up and all. Loopback is not \
                                  a network: there are no losses and no distance. Programs share the CPUs, so cost says as \
                                  much as rate; names that end in -plain encrypt nothing.";

/// The metric that stands for a row's case in rankings.
pub(crate) fn leading(row: &ResultRow) -> bool {
    let metric = match (row.case.text("way"), row.case.text("shape")) {
        (Some("mount-random"), _) => "rate",
        (_, Some("byte")) => "setup_time",
        _ => "throughput",
    };
    row.metric == metric
}

/// `One file of 1.07 GB sent, in memory, each with its own cipher`
pub(crate) fn title(row: &ResultRow) -> String {
    let text = |name| clean(row.case.text(name).unwrap_or_default());
    let files = row.case.int("files").unwrap_or(1);
    let size = amount(row.case.int("total").unwrap_or(0));
    let what = match text("shape").as_str() {
        "small" => format!("{files} small files of {size}"),
        "tree" => format!("A tree of {files} files, {size}"),
        "byte" => "One byte".to_owned(),
        _ => format!("One file of {size}"),
    };
    let way = match text("way").as_str() {
        "send" => "sent".to_owned(),
        "grpc" => "streamed through gRPC".to_owned(),
        "mount-read" => "read through a mount".to_owned(),
        "mount-random" => "read through a mount, 4 KiB at random places".to_owned(),
        other => other.to_owned(),
    };
    let place = match text("place").as_str() {
        "memory" => "in memory".to_owned(),
        other => format!("on {other}"),
    };
    let suite = match text("suite").as_str() {
        "default" => "each with its own cipher".to_owned(),
        other => other.to_owned(),
    };
    format!("{what} {way}, {place}, {suite}")
}

/// Bytes in decimal units.
fn amount(bytes: i64) -> String {
    let bytes = bytes as f64;
    if bytes >= 1e9 {
        format!("{} GB", sig3_or(bytes / 1e9, "?"))
    } else {
        format!("{} MB", sig3_or(bytes / 1e6, "?"))
    }
}

/// A case in a few words: `send file memory`.
pub(crate) fn case(row: &ResultRow) -> String {
    let text = |name| clean(row.case.text(name).unwrap_or_default());
    let mut words = format!("{} {} {}", text("way"), text("shape"), text("place"));
    if text("suite") != "default" {
        words.push_str(&format!(" {}", text("suite")));
    }
    words
}

/// The answer of a run of files: our program with one big file, in memory if that was measured.
pub(crate) fn headline(run: &RunResult) -> Option<Headline> {
    let ours = |row: &&ResultRow| row.workload == FILES && row.subject == OURS && row.metric == "throughput";
    let rank = |row: &&ResultRow| {
        let is = |name, value| row.case.text(name) == Some(value);
        (
            is("way", "send"),
            is("shape", "file"),
            is("place", "memory"),
            is("suite", "default"),
        )
    };
    let row = run.results.iter().filter(ours).max_by_key(rank)?;
    let rate = sig3_or(row.median.get() / 1e9, "?");
    let cost = run
        .results
        .iter()
        .find(|other| other.case == row.case && other.subject == OURS && other.metric == "cpu_per_gb");
    let cost = cost.map_or(String::new(), |row| {
        format!(
            "{} s of CPU time for each GB, both ends together. ",
            sig3_or(row.median.get(), "?")
        )
    });
    let mut headline = Headline {
        answer: format!("{OURS} moves {rate} GB/s from start to end ({}).", case(row)),
        detail: format!("{cost}{READING}"),
        which: format!("{rate} GB/s"),
        which_note: title(row),
        lead: "not known".to_owned(),
        lead_note: "no peer took part".to_owned(),
        sure: "not known".to_owned(),
        sure_note: rounds_note(run),
    };
    if let Some(speed) = speed(row) {
        headline.lead = times(speed.estimate);
        headline.lead_note = format!("the rate of {}, the fastest peer there", clean(speed.to));
        headline.sure = verdict(speed.verdict).2.to_owned();
    }
    Some(headline)
}
