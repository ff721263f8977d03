//! What the lenses of workloads under load have in common.

use super::advice::SCENARIOS;
use crate::format::times;
use crate::lens::rank::speed;
use crate::lens::{Family, Headline, Lens, OURS, Parameter, Place, Scope, Shown};
use crate::result::{Case, ResultRow};
use crate::route::{Stack, WHAT_A_TRANSPORT_IS};

const INTRO: &str = "Generator, programs and server share this machine and its loopback: no network, and CPU that one takes is \
                     lost to the others. CPU and latency are a request or connection; direct is the generator straight to the \
                     server. Percentiles are of all rounds' samples together, the other figures medians over rounds.";

const LINKED: &str = "A link is emulated between client and server (for direct: before the server at the end), so latency has its \
                      round trips. Everything shares the CPUs of this machine; the emulation is in no subject's figure. CPU and \
                      latency are a request or connection. Percentiles are of all rounds' samples together, the other figures \
                      medians over rounds.";

/// How to read its bars.
pub(crate) const READING: &str = "Bars start at zero; the thin line is the interval, or the range with few rounds.";

const US: f64 = 1e6;
const KIB: f64 = 1.0 / 1024.0;
const MEMORY: &str = "memory_per_connection";

static FIGURES: [Shown; 18] = [
    Shown::new("rate", 1.0, "1/s", "rate 1/s").related(),
    Shown::new(MEMORY, KIB, "KiB", "server KiB").related(),
    Shown::new("memory_per_connection_client", KIB, "KiB", "client KiB"),
    Shown::new("memory_per_connection_front", KIB, "KiB", "front KiB"),
    Shown::new("memory_per_connection_kernel", KIB, "KiB", "kernel KiB"),
    Shown::new("cpu_per_op", US, "us", "CPU us").related(),
    Shown::ENERGY_PER_OP,
    Shown::new("cpu_per_op_client", US, "us", "client us"),
    Shown::new("cpu_per_op_server", US, "us", "server us"),
    Shown::new("cpu_per_op_front", US, "us", "front us"),
    Shown::new("latency_p50", US, "us", "p50 us"),
    Shown::new("latency_p95", US, "us", "p95 us"),
    Shown::new("latency_p99", US, "us", "p99 us").related(),
    Shown::new("latency_p99.9", US, "us", "p99.9 us"),
    Shown::new("first_byte_p50", US, "us", "first p50 us"),
    Shown::new("first_byte_p99", US, "us", "first p99 us"),
    Shown::new("service_p99", US, "us", "service p99 us"),
    Shown::new("failed", 100.0, "%", "failed %"),
];

/// Panels of a case: a title and the metrics in it.
pub(crate) const PANELS: &[(&str, &[&str])] = &[
    ("Rate", &["rate"]),
    ("CPU of all programs", &["cpu_per_op"]),
    ("Latency", &["latency_p50", "latency_p95", "latency_p99"]),
    ("Time to the first byte", &["first_byte_p50", "first_byte_p99"]),
    (
        "Memory",
        &[MEMORY, "memory_per_connection_client", "memory_per_connection_kernel"],
    ),
];

/// A lens without sections and without an answer.
pub(crate) const LENS: Lens = Lens {
    about: "Proxied paths",
    others: "other proxy programs",
    parameters: &[
        Parameter::text("stack", "what the path is made of"),
        Parameter::text("mode", "keep, close, flow, flow-pq or hold"),
        Parameter::text("load", "closed, open-50 and the like, or idle"),
        Parameter::number("connections", 1, "connections at once"),
    ],
    figures: &FIGURES,
    colours: &["xray", "v2ray", "sing-box", "direct"],
    control: "direct",
    case,
    place: |_, index, found| vec![Place::of_case(index, title(found), case(found))],
    intro: |scope| {
        let of_path = scope.run.link.as_ref().map_or(INTRO, |_| LINKED);
        format!("{WHAT_A_TRANSPORT_IS} {of_path}")
    },
    finding: |scope, family| finding(&FIGURES, &["rate", "latency_p99", MEMORY], scope, family),
    endless: ">2s",
    scenarios: SCENARIOS,
    ..Lens::PLAIN
};

/// Our engine against the best peer in a case, by the first of `metrics` that it has; above 1 is better, as in tables.
pub(crate) fn finding(shown: &[Shown], metrics: &[&str], scope: &Scope<'_>, family: &Family<'_>) -> Option<String> {
    let ours = scope.ours()?;
    let row = metrics.iter().find_map(|metric| family.row(ours, metric))?;
    let shown = shown.iter().find(|shown| shown.metric == row.metric)?;
    let speed = speed(row)?;
    Some(format!(
        "{}, {}: {} {}, {} as good as that of {}.",
        family.short,
        shown.title,
        shown.number(row, ">2s"),
        shown.unit,
        times(speed.estimate),
        speed.to
    ))
}

/// `Requests on kept connections: VLESS over TLS (vless-tcp-tls), 64 connections, as fast as answers come`.
fn title(case: &Case) -> String {
    let text = |name| case.text(name).unwrap_or_default();
    let what = match text("mode") {
        "keep" => "Requests on kept connections",
        "close" => "Requests, each on its own connection",
        "flow" => "Short connections",
        "flow-pq" => "Short connections with larger handshakes",
        "hold" => "Idle connections, memory of each",
        other => other,
    };
    let count = case.int("connections").unwrap_or(0);
    let load = match text("load") {
        "idle" => String::new(),
        "closed" => ", as fast as answers come".to_owned(),
        load => match load.strip_prefix("open-") {
            Some(percent) => format!(", at {percent} % of what the slowest can do"),
            None => format!(", {load}"),
        },
    };
    let stack = text("stack");
    format!(
        "{what}: {} ({stack}), {count} connections{load}{}",
        Stack::named_words(stack),
        Stack::seal_of(stack)
    )
}

/// A case in a few words: `kept connections, VLESS over TLS, at 50 % load`.
fn case(case: &Case) -> String {
    let text = |name| case.text(name).unwrap_or_default();
    let what = match text("mode") {
        "keep" => "kept connections",
        "close" => "a connection for each request",
        "flow" => "short connections",
        "flow-pq" => "short connections, larger handshakes",
        "hold" => "idle connections",
        other => other,
    };
    let load = match text("load") {
        "closed" | "idle" => String::new(),
        load => match load.strip_prefix("open-") {
            Some(percent) => format!(", at {percent} % load"),
            None => format!(", {load}"),
        },
    };
    format!("{what}, {}{load}", Stack::named_words(text("stack")))
}

/// Our engine in the case that leads the run: so many of `what` a second, else the memory of an idle connection.
pub(crate) fn headline(scope: &Scope<'_>, what: &str) -> Option<Headline> {
    let rank = |row: &&ResultRow| {
        let is = |name, value| row.case.text(name) == Some(value);
        (row.metric == "rate", is("mode", "keep"), is("stack", "vless-tcp-tls"))
    };
    let row = scope.of(OURS, "rate").chain(scope.of(OURS, MEMORY)).max_by_key(rank)?;
    let figure = |metric: &str| {
        let shown = FIGURES.iter().find(|shown| shown.metric == metric)?;
        Some(shown.number(scope.row(&row.case, OURS, metric)?, ">2s"))
    };
    let (each, leading) = (figure(&row.metric)?, case(&row.case));
    let answer = if row.metric == "rate" {
        format!("{OURS} serves {each} {what} a second ({leading}).")
    } else {
        format!("{OURS} holds an idle connection in {each} KiB of its server ({leading}).")
    };
    let parts = [
        figure("latency_p99").map(|us| format!("99 % of them within {us} us.")),
        figure("cpu_per_op").map(|us| format!("{us} us of CPU each, client and server together.")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let stack = Stack::named_words(row.case.text("stack").unwrap_or("?"));
    let what = if row.metric == "rate" { what } else { "idle connections" };
    let note = format!("for {what} through {stack}");
    let headline = Headline::new(answer, OURS, &note, "no other program took part").detail(parts.join(" "));
    Some(headline.between(scope.run, row, |name| match row.metric.as_str() {
        "rate" => format!("the rate of {name}"),
        _ => format!("as good as {name}"),
    }))
}
