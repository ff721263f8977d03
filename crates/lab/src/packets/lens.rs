//! How the figures of `packets` are read.

use std::collections::BTreeSet;

use super::NAME;
use crate::format::{count, sig3_or, size, times};
use crate::lens::rank::{rankable, speed};
use crate::lens::{
    Axis, Family, Headline, Layout, Lens, OURS, Parameter, Part, Place, Plot, Scope, Shown, list, operation, words,
};
use crate::result::{Case, ResultRow};

/// The mode in which only copies count.
const LINK: &str = "link";

const RATE: Shown = Shown::new("rate", 1e-6, "million/s", "10^6/s").related();
const MEDIAN: Shown = Shown::new("latency_p50", 1e6, "us", "a batch from submission to done, us, median");
const TAIL: Shown = Shown::new(
    "latency_p99",
    1e6,
    "us",
    "99th percentile, where a window had 1,000 batches",
);
const LINK_RATE: Shown =
    Shown::new("link_rate", 1e-9, "GB/s", "GB/s across the link, the busier way").called("rate of the link");
const COPY_SHARE: Shown = Shown::new(
    "copy_share",
    100.0,
    "%",
    "copies, % of the device's time without overlap",
)
.called("share of copies");
static SWEPT: [Shown; 7] = [
    RATE,
    MEDIAN,
    TAIL,
    LINK_RATE,
    COPY_SHARE,
    Shown::ENERGY_PER_OP,
    Shown::CYCLES_PER_OP,
];
static ONE: [Shown; 5] = [RATE, LINK_RATE, COPY_SHARE, Shown::ENERGY_PER_OP, Shown::CYCLES_PER_OP];

pub(super) static LENS: Lens = Lens {
    about: "Ciphers",
    others: "other libraries, which work packet by packet",
    parameters: &[
        Parameter::text("suite", "what seals"),
        Parameter::text("op", "seal, open or pair; in, out or both of a link"),
        Parameter::text("sizes", "mix, tiny, or bytes"),
        Parameter::number("batch", 1, "packets given at once"),
        Parameter::text("keys", "fresh or resident"),
        Parameter::number("threads", 1, "threads"),
        Parameter::text("mode", "on a GPU: kernel, pinned, call or link"),
        Parameter::number("streams", 1, "on a GPU: batches under way at once"),
        Parameter::percent("decoys", "of a hundred packets, those that carry nothing"),
    ],
    figures: &ONE,
    colours: &super::PEERS,
    case,
    place,
    intro,
    finding,
    findings: |scope| {
        let said = [lanes(scope), link(scope), copies(scope), calls(scope)];
        said.into_iter().flatten().collect()
    },
    headline,
    parts: &[Part {
        id: "packets-section",
        figure: NAME,
        title: "Many packets at once",
        link: "Packets",
        caption: "Packets in batches",
        plot: Plot::Sweeps(Axis {
            across: "packets in a batch",
            unit: "million/s",
        }),
        reading: "Each point is the median over rounds, its bar the interval (or the range, with few rounds); hollow points are \
                  noisy. Both axes are logarithmic and the same in every panel. Peers take the packets of a batch one by one; \
                  the grey lines are our engine held to narrower kernels.",
        ..Part::PLAIN
    }],
    ..Lens::PLAIN
};

/// What a case says.
struct Facts<'a> {
    suite: &'a str,
    op: &'a str,
    sizes: &'a str,
    keys: &'a str,
    batch: i64,
    threads: i64,
    /// What counts where a GPU is measured. Empty elsewhere.
    mode: &'a str,
    /// Batches under way at once, of the mode `pinned`; 0 elsewhere.
    streams: i64,
    /// Of a hundred packets, those that carry nothing.
    decoys: i64,
}

impl<'a> Facts<'a> {
    fn of(case: &'a Case) -> Facts<'a> {
        let text = |name| case.text(name).unwrap_or("");
        Facts {
            suite: text("suite"),
            op: text("op"),
            sizes: text("sizes"),
            keys: text("keys"),
            batch: case.int("batch").unwrap_or(0),
            threads: case.int("threads").unwrap_or(1),
            mode: text("mode"),
            streams: case.int("streams").unwrap_or(0),
            decoys: case.int("decoys").unwrap_or(0),
        }
    }

    /// `mix`, `tiny`, `128 B`.
    fn size(&self) -> String {
        self.sizes.parse().map_or_else(|_| self.sizes.to_owned(), size)
    }

    /// What counts where a GPU is measured, in words.
    fn counted(&self) -> &'a str {
        match self.mode {
            "kernel" => "kernels alone",
            "pinned" => "pinned memory",
            "call" => "whole calls",
            other => other,
        }
    }

    /// `4 streams`, `5 % decoys`; nothing where batches do not overlap, nothing without decoys.
    fn besides(&self) -> Vec<String> {
        let streams = usize::try_from(self.streams).ok().filter(|streams| *streams > 0);
        let streams = streams.map(|streams| count(streams, "stream"));
        let decoys = (self.decoys > 0).then(|| format!("{} % decoys", self.decoys));
        [streams, decoys].into_iter().flatten().collect()
    }

    /// `fresh keys`, and the threads if there are several. With a GPU also what counts: `resident keys, kernels alone`.
    fn variant(&self) -> String {
        let mut parts = vec![format!("{} keys", self.keys)];
        if self.threads > 1 {
            parts.push(format!("{} threads", self.threads));
        }
        if !self.mode.is_empty() {
            parts.push(self.counted().to_owned());
        }
        parts.extend(self.besides());
        parts.join(", ")
    }

    /// What stands behind the operation: ` resident`, ` 2 threads`, ` 4 streams`. The mode is left out: it stands in the title.
    fn behind(&self) -> String {
        let mut text = String::new();
        if self.keys != "fresh" && self.mode.is_empty() {
            text.push_str(&format!(" {}", self.keys));
        }
        if self.threads > 1 {
            text.push_str(&format!(" {} threads", self.threads));
        }
        for part in self.besides() {
            text.push_str(&format!(" {part}"));
        }
        text
    }

    /// What cases of one sweep have in common.
    fn line(&self) -> (&'a str, &'a str, String) {
        (self.suite, self.op, self.variant())
    }
}

/// A case in a few words: `seal mixed sizes with chacha20-poly1305, 4096 at once`, the same and `, whole calls`.
fn case(case: &Case) -> String {
    let facts = Facts::of(case);
    if facts.mode == LINK {
        return format!("link {}, {}", facts.op, facts.besides().join(" "));
    }
    let (deed, sizes, behind) = (words::deed(facts.op), words::sizes(facts.sizes), facts.behind());
    let mut text = format!("{deed} {sizes} with {}, {} at once{behind}", facts.suite, facts.batch);
    if !facts.mode.is_empty() {
        text.push_str(&format!(", {}", facts.counted()));
    }
    text
}

/// The mix by batch wherever it was swept, packets by size, and the rest of the mix by what is done.
fn place(scope: &Scope<'_>, _: usize, case: &Case) -> Vec<Place> {
    let facts = Facts::of(case);
    if facts.mode == LINK {
        return Vec::new();
    }
    let (suite, variant, title) = (facts.suite, facts.variant(), operation(facts.op));
    let one = Place {
        rank: [2, 0, 0],
        table: format!("{title}, packets by size and batch: {suite}, {variant}"),
        group: String::new(),
        kin: None,
        sweep: false,
        least: 1,
        layout: Layout::Cases(&ONE),
        order: facts.sizes.parse().unwrap_or(0),
        column: format!("{} x{}", facts.size(), facts.batch),
    };
    if facts.sizes != "mix" {
        return vec![one];
    }
    let mix = || {
        let all = scope.rows.iter().map(|row| Facts::of(&row.case));
        all.filter(|other| other.sizes == "mix" && other.mode != LINK)
    };
    let swept = |facts: &Facts<'_>| {
        let line = facts.line();
        let batches: BTreeSet<i64> = mix()
            .filter(|other| other.line() == line)
            .map(|other| other.batch)
            .collect();
        batches.len() > 1
    };
    let mut places = Vec::new();
    if swept(&facts) {
        places.push(Place {
            rank: [0, 0, 0],
            table: format!("{title}, the mix by batch size: {suite}, {variant}"),
            sweep: true,
            layout: Layout::Cases(&SWEPT),
            order: facts.batch,
            column: facts.batch.to_string(),
            ..one.clone()
        });
    }
    // Cases of the mix that stand alone get company: all of the mix with the same suite, batch and mode.
    let company = |other: &Facts<'_>| (other.suite, other.batch, other.mode) == (facts.suite, facts.batch, facts.mode);
    if mix().any(|other| company(&other) && !swept(&other)) {
        let mut table = format!("The mix in batches of {}: {suite}", facts.batch);
        if !facts.mode.is_empty() {
            table.push_str(&format!(", {} keys, {}", facts.keys, facts.counted()));
        }
        places.push(Place {
            rank: [1, 0, 0],
            table,
            order: facts.streams,
            column: format!("{}{}", facts.op, facts.behind()),
            ..one
        });
    }
    places
}

/// What the mix is, and the modes where a GPU was measured.
fn intro(scope: &Scope<'_>) -> String {
    const MIX: &str =
        "The mix has packets of 1 to 4096 bytes, most of them short; a batch is how many are given at once.";
    let modes: BTreeSet<&str> = scope.rows.iter().map(|row| Facts::of(&row.case).mode).collect();
    let words = [
        (
            "kernel",
            "Kernels alone: packets lie on the GPU before and after, and only its kernels count.",
        ),
        (
            "pinned",
            "Pinned memory: packets lie where the GPU reads them; copies, kernels and copies back of several batches overlap.",
        ),
        (
            "call",
            "Whole calls: what an application calls and waits for, with gathering, copies and scattering.",
        ),
    ];
    let told: Vec<&str> = words
        .iter()
        .filter(|(mode, _)| modes.contains(mode))
        .map(|(_, words)| *words)
        .collect();
    let told: Vec<&str> = [MIX].into_iter().chain(told).collect();
    told.join(" ")
}

/// Our engine against the best peer at the largest batch of a sweep.
fn finding(scope: &Scope<'_>, family: &Family<'_>) -> Option<String> {
    let mut columns = family.columns.iter().rev().filter(|_| family.sweep);
    let row = columns.find_map(|column| column.row(scope.ours()?, RATE.metric))?;
    let speed = speed(row)?;
    Some(format!(
        "{}: {} million a second, {} {}, the best peer there.",
        case(&row.case),
        RATE.number(row, "inf"),
        times(speed.estimate),
        speed.to
    ))
}

/// What the link of a GPU carries by itself; `None` where it was not measured.
fn link(scope: &Scope<'_>) -> Option<String> {
    let rows = scope.rows.iter().filter(|row| row.metric == "throughput");
    let figures: Vec<String> = rows
        .filter(|row| row.case.text("mode") == Some(LINK))
        .map(|row| {
            let way = match row.case.text("op").unwrap_or_default() {
                "in" => "to the GPU",
                "out" => "from it",
                "both" => "both ways together",
                other => other,
            };
            format!("{} GB/s {way}", sig3_or(row.median.get() / 1e9, "?"))
        })
        .collect();
    (!figures.is_empty()).then(|| format!("The link by itself, copies of 4 MiB: {}.", list(&figures)))
}

/// What the link carries and copies take where packets in pinned memory go fastest; `None` where that was not measured.
fn copies(scope: &Scope<'_>) -> Option<String> {
    let row = fastest(scope, |row| row.case.text("mode") == Some("pinned"))?;
    let figure = |shown: &Shown| Some(shown.number(scope.row(&row.case, &row.subject, shown.metric)?, "?"));
    Some(format!(
        "Packets in pinned memory go fastest at {} million a second ({}): the link then carries {} GB/s on its busier way, and copies \
         would take {} % of the device's time if they did not overlap.",
        RATE.number(row, "inf"),
        case(&row.case),
        figure(&LINK_RATE)?,
        figure(&COPY_SHARE)?
    ))
}

/// Whole calls of a GPU beside the processor, each at its best; `None` where not both were measured.
fn calls(scope: &Scope<'_>) -> Option<String> {
    let best = |on_gpu: bool| {
        fastest(scope, |row| {
            row.case.text("mode") == Some("call") && row.subject.contains(":gpu") == on_gpu
        })
    };
    let (gpu, processor) = (best(true)?, best(false)?);
    let told = |row: &ResultRow| format!("{} million a second by {}", RATE.number(row, "inf"), row.subject);
    Some(format!(
        "Whole calls, each at its best: {}, {}.",
        told(gpu),
        told(processor)
    ))
}

/// The row with the highest rate, of those that may be ranked.
fn fastest<'a>(scope: &Scope<'a>, of: impl Fn(&ResultRow) -> bool) -> Option<&'a ResultRow> {
    let rows = scope.rows.iter().copied();
    let rates = rows.filter(|row| row.metric == RATE.metric && rankable(row) && of(row));
    rates.max_by(|a, b| a.median.get().total_cmp(&b.median.get()))
}

/// How full the lanes of our engine were; `None` where nothing was counted.
fn lanes(scope: &Scope<'_>) -> Option<String> {
    let figure = |metric: &str| {
        let sealed = |row: &&ResultRow| {
            let facts = Facts::of(&row.case);
            (facts.op, facts.sizes, facts.keys) == ("seal", "mix", "fresh")
        };
        let mut rows = scope.of(OURS, metric).filter(sealed);
        let first = rows.next()?;
        let full = |row: &&ResultRow| row.case.int("batch") == Some(4096);
        let row = [first].into_iter().chain(rows).find(full).unwrap_or(first);
        Some((row.median.get() * 100.0, row.case.int("batch")?))
    };
    let ((cipher, batch), (mac, _)) = (figure("lane_use")?, figure("lane_use_mac")?);
    Some(format!(
        "Lanes in use while {OURS} seals the mix in batches of {batch}: {} % for ChaCha20, {} % for Poly1305.",
        sig3_or(cipher, "?"),
        sig3_or(mac, "?")
    ))
}

/// Our engine on the mix, in the case that leads the run.
fn headline(scope: &Scope<'_>) -> Option<Headline> {
    let rank = |row: &&ResultRow| {
        let facts = Facts::of(&row.case);
        let usual = facts.op == "seal" && facts.sizes == "mix" && facts.keys == "fresh" && facts.threads == 1;
        (usual, facts.batch == 4096)
    };
    let row = scope.of(OURS, RATE.metric).max_by_key(rank)?;
    let facts = Facts::of(&row.case);
    let rate = RATE.number(row, "inf");
    let answer = format!("{OURS} moves {rate} million packets a second ({}).", case(&row.case));
    let note = format!("for many packets at once, encrypted by {}", sealed_by(facts.suite));
    let headline = Headline::new(answer, OURS, &note, "no other library took part");
    let detail = format!("Packets in batches of {}, {}.", facts.batch, facts.variant());
    let over = |name: &str| format!("the rate of {name}");
    Some(headline.detail(detail).between(scope.run, row, over))
}

/// `chacha20-poly1305 (ChaCha20, fast on every CPU)`.
fn sealed_by(suite: &str) -> String {
    match words::suite(suite) {
        "" => suite.to_owned(),
        meaning => format!("{suite} ({meaning})"),
    }
}
