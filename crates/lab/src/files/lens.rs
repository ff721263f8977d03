//! How the figures of `files` are read.

use crate::format::sig3_or;
use crate::lens::{Headline, Lens, OURS, Parameter, Part, Place, Plot, Scope, Shown};
use crate::load::lens::finding;
use crate::result::{Case, ResultRow};

const INTRO: &str = "From the start of a command to the end of the receiver, start-up and all. Loopback is not a network: there \
                     are no losses and no distance. Programs share the CPUs, so cost says as much as rate; names that end in \
                     -plain encrypt nothing.";

const LINKED: &str = "From the start of a command to the end of the receiver, start-up and handshakes over the emulated link between \
                      both ends and all. The emulation is in no subject's figure; names that end in -plain encrypt nothing.";

const MIB: f64 = 1.0 / (1024.0 * 1024.0);
static FIGURES: [Shown; 15] = [
    Shown::new("throughput", 1e-9, "GB/s", "GB/s").related(),
    Shown::new("throughput_synced", 1e-9, "GB/s", "synced GB/s"),
    Shown::new("setup_time", 1e3, "ms", "first byte ms").related(),
    Shown::new("total_time", 1e3, "ms", "all ms"),
    Shown::new("rate", 1.0, "1/s", "rate 1/s").related(),
    Shown::new("cpu_per_gb", 1.0, "s/GB", "s/GB").related(),
    Shown::ENERGY_PER_BYTE,
    Shown::new("cpu_per_gb_sender", 1.0, "s/GB", "sender"),
    Shown::new("cpu_per_gb_receiver", 1.0, "s/GB", "receiver"),
    Shown::new("cpu_per_gb_relay", 1.0, "s/GB", "relay"),
    Shown::new("cpu_per_transfer", 1e3, "ms", "CPU ms"),
    Shown::new("memory", MIB, "MiB", "MiB"),
    Shown::new("memory_sender", MIB, "MiB", "sender MiB"),
    Shown::new("memory_receiver", MIB, "MiB", "receiver MiB"),
    Shown::new("memory_relay", MIB, "MiB", "relay MiB"),
];

pub(super) static LENS: Lens = Lens {
    about: "Files",
    others: "other programs that move files",
    parameters: &[
        Parameter::text("way", "send, grpc, mount-read or mount-random"),
        Parameter::text("shape", "file, small, tree, byte or hundred"),
        Parameter::text("place", "memory or disk"),
        Parameter::text("suite", "what seals, or default: each subject's own choice"),
        Parameter::number("files", 1, "how many"),
        Parameter::number("total", 1, "bytes of all"),
    ],
    figures: &FIGURES,
    control: "direct",
    case,
    leading: |case| match (case.text("way"), case.text("shape")) {
        (Some("mount-random"), _) => "rate",
        (_, Some("byte")) => "setup_time",
        _ => "throughput",
    },
    place: |_, index, found| vec![Place::of_case(index, title(found), case(found))],
    intro: |scope| scope.run.link.as_ref().map_or(INTRO, |_| LINKED).to_owned(),
    finding: |scope, family| finding(&FIGURES, &["throughput", "setup_time", "rate"], scope, family),
    headline,
    endless: ">2s",
    scenarios: &[
        ("one big file", "One big file"),
        ("many small files", "Many small files"),
    ],
    parts: &[Part {
        id: "files-section",
        figure: super::NAME,
        title: "Files",
        link: "Files",
        caption: "Files from end to end",
        plot: Plot::Bars(&[
            ("Rate", &["rate"]),
            ("Throughput", &["throughput", "throughput_synced"]),
            ("Time for one byte", &["setup_time", "total_time"]),
            (
                "CPU for each gigabyte",
                &[
                    "cpu_per_gb",
                    "cpu_per_gb_sender",
                    "cpu_per_gb_receiver",
                    "cpu_per_gb_relay",
                ],
            ),
            ("Peak memory", &["memory_sender", "memory_receiver", "memory_relay"]),
        ]),
        reading: crate::load::lens::READING,
        ..Part::PLAIN
    }],
    ..Lens::PLAIN
};

/// `One file of 1.07 GB sent, in memory, each with its own cipher`
fn title(case: &Case) -> String {
    let text = |name| case.text(name).unwrap_or_default();
    let files = case.int("files").unwrap_or(1);
    let size = amount(case.int("total").unwrap_or(0));
    let what = match text("shape") {
        "small" => format!("{files} small files of {size}"),
        "tree" => format!("A tree of {files} files, {size}"),
        "byte" => "One byte".to_owned(),
        _ => format!("One file of {size}"),
    };
    let way = match text("way") {
        "send" => "sent",
        "grpc" => "streamed through gRPC",
        "mount-read" => "read through a mount",
        "mount-random" => "read through a mount, 4 KiB at random places",
        other => other,
    };
    let place = match text("place") {
        "memory" => "in memory".to_owned(),
        other => format!("on {other}"),
    };
    let suite = match text("suite") {
        "default" => "each with its own cipher",
        other => other,
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

/// A case in a few words: `one file of 1.07 GB, in memory`.
fn case(case: &Case) -> String {
    let text = |name| case.text(name).unwrap_or_default();
    let what = match text("shape") {
        "small" => "many small files".to_owned(),
        "tree" => "a tree of files".to_owned(),
        "byte" => "one byte".to_owned(),
        _ => format!("one file of {}", amount(case.int("total").unwrap_or(0))),
    };
    let way = match text("way") {
        "grpc" => " through gRPC",
        "mount-read" => " read through a mount",
        "mount-random" => " read at random through a mount",
        _ => "",
    };
    let place = match text("place") {
        "memory" => ", in memory".to_owned(),
        other => format!(", on {other}"),
    };
    let suite = match text("suite") {
        "default" => String::new(),
        suite => format!(", {suite}"),
    };
    format!("{what}{way}{place}{suite}")
}

/// Our program with one big file, in memory if that was measured.
fn headline(scope: &Scope<'_>) -> Option<Headline> {
    let rank = |row: &&ResultRow| {
        let is = |name, value| row.case.text(name) == Some(value);
        (
            is("way", "send"),
            is("shape", "file"),
            is("place", "memory"),
            is("suite", "default"),
        )
    };
    let row = scope.of(OURS, "throughput").max_by_key(rank)?;
    let rate = sig3_or(row.median.get() / 1e9, "?");
    let cost = scope.row(&row.case, OURS, "cpu_per_gb").map_or(String::new(), |row| {
        let seconds = sig3_or(row.median.get(), "?");
        format!("{seconds} s of CPU time for each GB, both ends together. ")
    });
    let answer = format!("{OURS} moves {rate} GB/s from start to end ({}).", case(&row.case));
    let note = match row.case.text("suite") {
        Some("default") | None => {
            "to move files from one machine to another, each program with its own cipher".to_owned()
        }
        Some(suite) => format!("to move files from one machine to another, sealed by {suite}"),
    };
    let headline = Headline::new(answer, OURS, &note, "no other program took part");
    let over = |name: &str| format!("the rate of {name}");
    Some(headline.detail(format!("{cost}{INTRO}")).between(scope.run, row, over))
}
