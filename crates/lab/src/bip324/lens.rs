//! How the figures of `bip324` are read.

use std::collections::{BTreeMap, BTreeSet};

use super::crowd::CROWD;
use super::gpu::ROUTED;
use super::gpu::node::NODE;
use super::{GPU_SHARE, LOOPBACK, NAME};
use crate::format::{count, sig3_or, size, times};
use crate::lens::{
    Axis, Headline, Layout, Lens, OURS, Parameter, Part, Place, Plot, Scope, Shown, operation, position, words,
};
use crate::packets::gpu::GPU;
use crate::result::{Case, ResultRow};
use crate::stats::median;

/// What is done in memory.
const OPS: [&str; 3] = ["pair", "seal", "open"];

/// What is done once a connection, in the order in which it happens, then the whole.
const ONCE: [&str; 7] = ["key", "ecdh", "expand", "hkdf", "key-schedule", "agree", "handshake"];

const RATE: Shown = Shown::new("rate", 1e-6, "10^6/s", "10^6/s").called("rate").related();
const CONTENTS: Shown = Shown::new("throughput", 1e-9, "GB/s", "contents, GB/s").called("contents");
const WIRE: Shown = Shown::new("wire_throughput", 1e-9, "GB/s", "wire, GB/s").called("wire");
const SHARE: Shown =
    Shown::new(GPU_SHARE, 100.0, "% of packets", "packets that the GPU did, %").called("done by the GPU");
const BATCH_P50: Shown =
    Shown::new("latency_p50", 1e6, "us", "a batch from submission to done, us, median").called("batch, median");
const BATCH_P99: Shown = Shown::new(
    "latency_p99",
    1e6,
    "us",
    "99th percentile, where a window had 1,000 batches",
)
.called("batch, 99th percentile");
const PACKET_P50: Shown =
    Shown::new("packet_p50", 1e9, "ns", "a packet's share of it, ns, median").called("packet, median");
const PACKET_P99: Shown = Shown::new("packet_p99", 1e9, "ns", "99th percentile").called("packet, 99th percentile");
const MESSAGE_P50: Shown = Shown::new(
    "message_p50",
    1e3,
    "ms",
    "a message from one end to the other, ms, median",
)
.called("message, median");
const MESSAGE_P99: Shown = Shown::new("message_p99", 1e3, "ms", "99th percentile").called("message, 99th percentile");
const CPU_PER_OP: Shown =
    Shown::new("cpu_per_op", 1e9, "ns a message", "CPU of both ends, ns a message").called("CPU of both ends");
const CPU_PER_GB: Shown =
    Shown::new("cpu_per_gb", 1.0, "s/GB", "CPU of both ends, s/GB of contents").called("CPU of both ends");
const SETUP_TIME: Shown = Shown::new("setup_time", 1e6, "us", "us").called("time").related();
const OVERHEAD: Shown = Shown::new("overhead", 100.0, "%", "overhead, %").called("overhead");

static MIX: [Shown; 6] = [RATE, CONTENTS, WIRE, SHARE, Shown::ENERGY_PER_OP, Shown::CYCLES_PER_OP];
static BY_BATCH: [Shown; 8] = [
    RATE,
    BATCH_P50,
    BATCH_P99,
    PACKET_P50,
    PACKET_P99,
    SHARE,
    Shown::ENERGY_PER_OP,
    Shown::CYCLES_PER_OP,
];
static ONE_SIZE: [Shown; 3] = [RATE, Shown::ENERGY_PER_OP, Shown::CYCLES_PER_OP];
const MESSAGE_RATE: Shown = Shown::new("rate", 1e-6, "10^6/s", "10^6 messages/s").related();
const MESSAGE_BITS: Shown = Shown::new("throughput", 8e-9, "Gbit/s", "contents, Gbit/s");
static SOCKETS: [Shown; 5] = [MESSAGE_RATE, MESSAGE_BITS, CPU_PER_OP, CPU_PER_GB, Shown::ENERGY_PER_OP];
static OVER_SOCKETS: [Shown; 7] = [
    MESSAGE_RATE,
    MESSAGE_BITS,
    MESSAGE_P50,
    MESSAGE_P99,
    CPU_PER_OP,
    CPU_PER_GB,
    Shown::ENERGY_PER_OP,
];
static SET_UP: [Shown; 3] = [SETUP_TIME, Shown::ENERGY_PER_OP, Shown::CYCLES_PER_OP];

pub(super) static LENS: Lens = Lens {
    about: "BIP324",
    others: "other implementations",
    parameters: &[
        Parameter::text(
            "op",
            "seal, open, pair, node (pairs on several threads), loopback, sockets (many connections), key, ecdh, expand, hkdf, key-schedule, agree or handshake",
        ),
        Parameter::text("sizes", "mix, or bytes of contents"),
        Parameter::number("connections", 1, "connections at once"),
        Parameter::number("batch", 1, "packets given at once"),
        Parameter::percent("decoys", "of a hundred packets, those that are decoys"),
        Parameter::number("threads", 1, "threads"),
    ],
    figures: &[
        RATE,
        CONTENTS,
        WIRE,
        BATCH_P50,
        BATCH_P99,
        PACKET_P50,
        PACKET_P99,
        MESSAGE_P50,
        MESSAGE_P99,
        CPU_PER_OP,
        CPU_PER_GB,
        SETUP_TIME,
        OVERHEAD,
        SHARE,
        Shown::ENERGY_PER_OP,
        Shown::CYCLES_PER_OP,
    ],
    colours: &["aws-lc-rs", NAME],
    case,
    leading: |case| {
        let once = ONCE.contains(&case.text("op").unwrap_or_default());
        if once { SETUP_TIME.metric } else { RATE.metric }
    },
    place,
    intro,
    findings,
    headline,
    parts: &[Part {
        id: "bip324-section",
        figure: NAME,
        title: "BIP324 connections",
        link: "BIP324",
        caption: "BIP324 connections",
        plot: Plot::Sweeps(Axis {
            across: "packets in a batch",
            unit: "million/s",
        }),
        reading: "Each point is the median over rounds, its bar the interval (or the range, with few rounds); hollow points are \
                  noisy. Both axes are logarithmic and the same in every panel.",
        ..Part::PLAIN
    }],
    scenarios: &[
        ("bip324-connections", "BIP324: many connections"),
        ("bip324-batch", "BIP324: how many packets together"),
        ("bip324-sockets", "BIP324: writing"),
    ],
    ..Lens::PLAIN
};

/// What a case says.
struct Facts<'a> {
    op: &'a str,
    sizes: &'a str,
    connections: i64,
    batch: i64,
    decoys: i64,
    threads: i64,
}

impl<'a> Facts<'a> {
    fn of(case: &'a Case) -> Facts<'a> {
        let text = |name| case.text(name).unwrap_or("");
        let int = |name| case.int(name).unwrap_or(0);
        Facts {
            op: text("op"),
            sizes: text("sizes"),
            connections: int("connections"),
            batch: int("batch"),
            decoys: int("decoys"),
            threads: int("threads"),
        }
    }

    /// `mix`, `128 B`.
    fn size(&self) -> String {
        self.sizes.parse().map_or_else(|_| self.sizes.to_owned(), size)
    }

    /// `1 connection`, `1000 connections`.
    fn connections(&self) -> String {
        count(usize::try_from(self.connections).unwrap_or(0), "connection")
    }

    /// `1 thread`, `16 threads`.
    fn threads(&self) -> String {
        count(usize::try_from(self.threads).unwrap_or(0), "thread")
    }
}

/// What is measured, in plain words.
fn deed(op: &str) -> &str {
    match op {
        NODE => "seal and open",
        LOOPBACK => "two ends over TCP",
        CROWD => "many ends over TCP",
        "key" => "a key pair",
        "ecdh" => "a shared secret",
        "key-schedule" => "keys from the secret",
        "agree" => "the secret and keys",
        "handshake" => "a whole handshake",
        other => words::deed(other),
    }
}

/// A case in a few words: `seal and open mixed sizes, 4096 at once, 1000 connections, 20 % decoys`.
fn case(case: &Case) -> String {
    let facts = Facts::of(case);
    if ONCE.contains(&facts.op) {
        return deed(facts.op).to_owned();
    }
    let sizes = words::sizes(facts.sizes);
    let mut text = match facts.op {
        LOOPBACK | CROWD => format!("{}, {sizes}", deed(facts.op)),
        op => format!("{} {sizes}", deed(op)),
    };
    text.push_str(&format!(", {} at once", facts.batch));
    if OPS.contains(&facts.op) || facts.op == CROWD {
        text.push_str(&format!(", {}", facts.connections()));
    }
    if facts.op == NODE {
        text.push_str(&format!(", {}", facts.threads()));
    }
    if facts.decoys > 0 {
        text.push_str(&format!(", {} % decoys", facts.decoys));
    }
    text
}

/// The mix by what is done, by batch, packets of one size, sockets, what is done once.
fn place(scope: &Scope<'_>, _: usize, case: &Case) -> Vec<Place> {
    let facts = Facts::of(case);
    let (bytes, op) = (facts.sizes.parse().unwrap_or(0), position(&OPS, facts.op) as i64);
    let table = |rank: i64, table: String, layout: &'static [Shown], order: i64, column: String| Place {
        rank: [rank, 0, 0],
        table,
        group: String::new(),
        kin: None,
        sweep: false,
        least: 1,
        layout: Layout::Cases(layout),
        order,
        column,
    };
    let (size, batch, connections) = (facts.size(), facts.batch, facts.connections());
    let way = scope.run.link.as_ref().map_or("loopback", |_| "an emulated link");
    if facts.op == LOOPBACK {
        let title = format!("Two endpoints over {way}, TCP (packets in a write)");
        let column = format!("{size} x{batch}");
        return vec![table(4, title, &SOCKETS, bytes * 1000 + batch, column)];
    }
    if facts.op == CROWD {
        let title = format!("Connections over {way}, the mix both ways, x{batch}");
        return vec![table(-3, title, &OVER_SOCKETS, facts.connections, connections)];
    }
    if ONCE.contains(&facts.op) {
        let (title, order) = ("Once a connection".to_owned(), position(&ONCE, facts.op) as i64);
        return vec![table(5, title, &SET_UP, order, facts.op.to_owned())];
    }
    if facts.op == NODE {
        let threads = facts.threads();
        let title = format!("Pairs of a node on {threads}, the mix by batch, {connections}");
        let by_batch = Place {
            sweep: true,
            least: 2,
            ..table(-1, title, &BY_BATCH, batch, batch.to_string())
        };
        let title = format!("Pairs of a node by threads, the mix, x{batch}, {connections}");
        let by_threads = Place {
            least: 2,
            ..table(-2, title, &MIX, facts.threads, threads)
        };
        return vec![by_threads, by_batch];
    }
    if facts.sizes != "mix" {
        let title = format!("Packets of one size, x{batch}, {connections}");
        let column = format!("{} {size}", facts.op);
        return vec![table(3, title, &ONE_SIZE, bytes * 10 + op, column)];
    }
    let mut places = Vec::new();
    if batch == 4096 {
        let mut column = facts.op.to_owned();
        if facts.decoys > 0 {
            column.push_str(&format!(" {} %", facts.decoys));
        }
        let title = format!("The mix, x{batch}, {connections}");
        let rank = i64::from(facts.connections <= 1);
        places.push(table(rank, title, &MIX, facts.decoys * 10 + op, column));
    }
    if facts.decoys == 0 {
        let title = format!("{}, the mix by batch, {connections}", operation(facts.op));
        // One column is no sweep, and what it says stands elsewhere.
        places.push(Place {
            sweep: true,
            least: 2,
            ..table(2, title, &BY_BATCH, batch, batch.to_string())
        });
    }
    places
}

/// What is what, and who is who.
fn intro(scope: &Scope<'_>) -> String {
    const WHAT: &str = "BIP324 is how Bitcoin nodes seal what they send. A pair is a packet sealed at one end and opened at the \
                        other; the mix has packets of many sizes, most of them short; x256 means 256 packets at once.";
    const LINKED: &str = " A link is emulated between both ends: no rate is above what it gives, a message takes half of its round trip \
                          at least, and its CPU time is in no figure.";
    let who = if scope.rows.iter().any(|row| row.metric == GPU_SHARE) {
        format!(
            "{OURS} is the processor alone; the others have a GPU beside it, for all packets or for as many as pay."
        )
    } else {
        format!(
            "Only {OURS} works on a batch at once; {OURS}:single is our engine packet by packet, the others are peers."
        )
    };
    let linked = scope.run.link.as_ref().map_or("", |_| LINKED);
    format!("{WHAT} {who}{linked}")
}

/// The row of a case on the mix.
fn find<'a>(scope: &Scope<'a>, subject: &str, op: &str, decoys: i64) -> Option<&'a ResultRow> {
    let rows = scope.of(subject, RATE.metric).filter(|row| {
        let facts = Facts::of(&row.case);
        (facts.op, facts.sizes, facts.batch, facts.decoys) == (op, "mix", 4096, decoys)
    });
    rows.max_by_key(|row| row.case.int("connections"))
}

/// The median of a row's values over another's, round by round.
fn over(row: &ResultRow, other: &ResultRow) -> Option<f64> {
    let ratios = row.values.iter().zip(&other.values).map(|(a, b)| a.get() / b.get());
    median(&ratios.filter(|ratio| ratio.is_finite()).collect::<Vec<f64>>())
}

/// A node's packets with a GPU, for each number of threads: how much more it does than the processor, and from which batch on.
fn node(scope: &Scope<'_>) -> Vec<String> {
    let rows = |subject: &str| {
        let rows = scope.of(subject, RATE.metric);
        rows.filter(|row| row.case.text("op") == Some(NODE)).collect::<Vec<_>>()
    };
    let (processor, gpu) = (rows(OURS), rows(GPU));
    let threads: BTreeSet<i64> = gpu.iter().filter_map(|row| row.case.int("threads")).collect();
    let told = threads.into_iter().rev().filter_map(|threads| {
        // By batch: the rate with the GPU, and that over the processor's.
        let mut batches: Vec<(i64, &ResultRow, f64)> = gpu
            .iter()
            .filter(|row| row.case.int("threads") == Some(threads))
            .filter_map(|row| {
                let other = processor.iter().find(|other| other.case == row.case)?;
                Some((row.case.int("batch")?, *row, over(row, other)?))
            })
            .collect();
        batches.sort_unstable_by_key(|(batch, ..)| *batch);
        let (batch, best, ratio) = batches.iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
        let from = batches.iter().rev().take_while(|(.., ratio)| *ratio > 1.0).last();
        let from = match from {
            Some((batch, ..)) if batches.len() > 1 => format!("; it pays from batches of {batch} packets on"),
            Some(_) => String::new(),
            None => "; it does not pay".to_owned(),
        };
        let with = Facts::of(&best.case).threads();
        let rate = RATE.number(best, "inf");
        Some(format!(
            "A node on {with}: {rate} million pairs a second with the GPU in batches of {batch}, {} the processor alone{from}.",
            times(*ratio)
        ))
    });
    told.collect()
}

/// What the figures say, a sentence each.
fn findings(scope: &Scope<'_>) -> Vec<String> {
    let mut sentences = node(scope);
    if let Some(ours) = find(scope, OURS, "pair", 0) {
        let peers = scope.run.subjects.iter().filter(|subject| subject.name != OURS);
        let others: Vec<String> = peers
            .filter_map(|subject| {
                let theirs = find(scope, &subject.name, "pair", 0)?;
                Some(format!("{} {}", times(over(ours, theirs)?), subject.name))
            })
            .collect();
        let against = if others.is_empty() {
            String::new()
        } else {
            format!(": {}", others.join(", "))
        };
        sentences.push(format!(
            "{OURS} seals and opens {} million packets of the mix a second on {} and one core, each a pair{against}.",
            RATE.number(ours, "inf"),
            Facts::of(&ours.case).connections()
        ));
        let costs = [5, 20].into_iter().filter_map(|decoys| {
            let with = over(find(scope, OURS, "pair", decoys)?, ours)?;
            let taken = sig3_or((1.0 - with) * 100.0, "?");
            Some(format!("{decoys} % decoys take {taken} % of useful goodput"))
        });
        let costs: Vec<String> = costs.collect();
        if !costs.is_empty() {
            sentences.push(format!("{}.", costs.join("; ")));
        }
    }
    let routed = scope.run.subjects.iter().find(|subject| subject.name == ROUTED);
    if let Some(words) = routed.and_then(|subject| subject.differs.iter().find(|text| text.starts_with("the GPU "))) {
        sentences.push(format!("{ROUTED}: {words}."));
    }
    sentences.extend(overhead(scope));
    let handshake = |subject: &str| {
        let row = scope
            .of(subject, SETUP_TIME.metric)
            .find(|row| row.case.text("op") == Some("handshake"))?;
        Some(SETUP_TIME.number(row, "inf"))
    };
    if let Some(ours) = handshake(OURS) {
        let theirs = handshake(NAME).map_or_else(String::new, |us| format!(", of crate {NAME} {us} us"));
        sentences.push(format!(
            "A whole handshake takes {ours} us of CPU time for both ends together{theirs}."
        ));
    }
    sentences
}

/// Bytes on the wire over those of contents, by size.
fn overhead(scope: &Scope<'_>) -> Option<String> {
    let mut found: BTreeMap<(i64, i64), String> = BTreeMap::new();
    for row in scope.of(OURS, OVERHEAD.metric) {
        let facts = Facts::of(&row.case);
        let order = facts.sizes.parse().unwrap_or(i64::MAX);
        let mut name = if order == i64::MAX {
            "the mix".to_owned()
        } else {
            facts.size()
        };
        if facts.decoys > 0 {
            name.push_str(&format!(" with {} % decoys", facts.decoys));
        }
        let figure = format!("{} % for {name}", OVERHEAD.number(row, "inf"));
        // A whole pass has the mix as it is; all connections and batches have the same.
        found.entry((order, facts.decoys)).or_insert(figure);
    }
    let figures: Vec<String> = found.into_values().collect();
    (!figures.is_empty()).then(|| {
        format!(
            "Protocol overhead, bytes on the wire beyond contents: {}.",
            figures.join(", ")
        )
    })
}

fn headline(scope: &Scope<'_>) -> Option<Headline> {
    let row = find(scope, OURS, "pair", 0).or_else(|| scope.of(OURS, RATE.metric).next())?;
    let rate = RATE.number(row, "inf");
    let answer = format!(
        "{OURS} moves {rate} million BIP324 packets a second ({}).",
        case(&row.case)
    );
    let detail = "Each packet comes with its length, header and rekeying.";
    let over = |name: &str| format!("the rate of {name}");
    let note = "for BIP324, the encrypted transport of Bitcoin nodes, with many packets at once";
    let headline = Headline::new(answer, OURS, note, "no other program took part");
    Some(headline.detail(detail.to_owned()).between(scope.run, row, over))
}
