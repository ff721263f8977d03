//! How the figures of `calibrate` are read.

use super::{Kind, NAME, iperf3, wrk};
use crate::format::{list_range, sig3_or, size};
use crate::lens::rank::{rankable, speed};
use crate::lens::{Family, Headline, Lens, OURS, Parameter, Part, Place, Plot, Scope, Shown};
use crate::result::{Case, Ratio, ResultRow, RunResult};

const INTRO: &str = "The generators that put load on the paths of transports, requests and flows, beside programs that others know. \
                     Both ends share this machine, each with a CPU of its own if there are two. A ratio above 1 is better.";

const UNOPTIMISED: &str = "This is a debugging build, in which our generators are several times as slow: repeat the run with one built \
                           with optimisation.";

const RATE: &str = "throughput";
const COST: &str = "cpu_per_gb";
const US: f64 = 1e6;

pub(super) static LENS: Lens = Lens {
    about: "The lab's generators",
    others: "other load generators",
    parameters: &[
        Parameter::text("generator", "stream or requests"),
        Parameter::number("connections", 1, "connections at once"),
        Parameter::number("bytes", 1, "of a write, or of the body of an answer"),
        Parameter::number("server_us", 20, "work of the server for each request, in microseconds"),
    ],
    figures: &[
        Shown::new(RATE, 8e-9, "Gbit/s", "Gbit/s").called("rate").related(),
        Shown::new(COST, 1.0, "CPU s/GB", "s/GB")
            .called("CPU of both ends")
            .related(),
        Shown::ENERGY_PER_BYTE,
        Shown::new("rate", 1.0, "1/s", "rate 1/s").related(),
        Shown::new("latency_p50", US, "us", "p50 us").related(),
        Shown::new("latency_p99", US, "us", "p99 us").related(),
        Shown::new("cpu_per_op", US, "us", "CPU us").related(),
        Shown::ENERGY_PER_OP,
    ],
    colours: &[iperf3::NAME, wrk::NAME],
    case,
    leading: |case| words(case).metrics[0],
    place: |_, index, found| {
        let rank = [Kind::of(found) as i64, 0, 0];
        vec![Place {
            rank,
            ..Place::of_case(index, title(found), case(found))
        }]
    },
    intro: |_| INTRO.to_owned(),
    finding,
    beneath: true,
    headline,
    parts: &[Part {
        id: "calibrate-section",
        figure: NAME,
        title: "Our generators beside others",
        link: "Generators",
        caption: "Our generators beside others",
        plot: Plot::Bars(&[
            ("Rate of the stream", &[RATE]),
            ("CPU of the stream", &[COST]),
            ("Rate of requests", &["rate"]),
            ("Latency", &["latency_p50", "latency_p99"]),
            ("CPU of requests", &["cpu_per_op"]),
        ]),
        reading: "Bars start at zero; the thin line is the interval, or the range with few rounds.",
        ..Part::PLAIN
    }],
    ..Lens::PLAIN
};

/// The words for a case.
struct Words {
    generator: &'static str,
    /// What it does, before how much.
    does: &'static str,
    peer: &'static str,
    /// Its rate and its cost.
    metrics: [&'static str; 2],
    /// What a cost is of, its unit, and how many of them are one of the row's.
    each: (&'static str, &'static str, f64),
    /// Workloads that it puts load on.
    behind: &'static str,
    /// Percent that its rate should differ by at most; `None` where a rate says what the generator costs.
    wanted: Option<f64>,
}

fn words(case: &Case) -> Words {
    let stream = Words {
        generator: "stream generator",
        does: "Our stream generator moves",
        peer: iperf3::NAME,
        metrics: [RATE, COST],
        each: ("bytes", "s/GB", 1.0),
        behind: "transports",
        wanted: Some(5.0),
    };
    let requests = Words {
        generator: "request generator",
        does: "Where nothing else limits, our request generator reaches",
        peer: wrk::NAME,
        metrics: ["rate", "cpu_per_op"],
        each: ("requests", "us", US),
        behind: "requests and flows",
        wanted: None,
    };
    match Kind::of(case) {
        Kind::Stream => stream,
        Kind::Requests => requests,
        Kind::Bound => Words {
            does: "Where the server limits, our request generator reaches",
            wanted: Some(10.0),
            ..requests
        },
    }
}

fn case(case: &Case) -> String {
    match Kind::of(case) {
        Kind::Bound => "requests, slow server".to_owned(),
        kind => kind.name().to_owned(),
    }
}

fn title(case: &Case) -> String {
    let number = |name| case.int(name).unwrap_or(0);
    match Kind::of(case) {
        Kind::Stream => format!("A stream, writes of {}", size(number("bytes"))),
        kind => {
            let server = if kind == Kind::Bound {
                ", a server that limits"
            } else {
                ""
            };
            let (connections, bytes) = (number("connections"), size(number("bytes")));
            format!("Requests on {connections} connections, answers of {bytes}{server}")
        }
    }
}

/// The ratio of a row to its peer, if it is one.
fn ratio(row: &ResultRow) -> Option<&Ratio> {
    row.ratio.as_ref().filter(|ratio| ratio.estimate.get().is_finite())
}

/// By how much our generator differs, and what that means. `None` without ours.
fn finding(scope: &Scope<'_>, family: &Family<'_>) -> Option<String> {
    let case = &family.columns.first()?.rows.first()?.case;
    let words = words(case);
    let [rate, cost] = words.metrics.map(|metric| family.row(OURS, metric));
    let row = rate?;
    let Some(found) = ratio(row) else {
        return Some(format!(
            "{} took no part: our {} has nothing to stand beside.",
            words.peer, words.generator
        ));
    };
    let mut text = format!(
        "{} {} ({}) of {}'s rate",
        words.does,
        sig3_or(found.estimate.get(), "?"),
        list_range(found.low.get(), found.high.get()),
        found.to
    );
    if let Some((row, cost)) = cost.and_then(|row| Some((row, speed(row)?))) {
        let (what, unit, scale) = words.each;
        let spent = |row: &ResultRow| sig3_or(row.median.get() * scale, "?");
        text.push_str(&format!(
            ", and {} of its {what} for the same CPU time",
            sig3_or(cost.estimate, "?")
        ));
        if let Some(theirs) = family.row(words.peer, words.metrics[1]) {
            text.push_str(&format!(" ({} beside {} {unit})", spent(row), spent(theirs)));
        }
    }
    text.push_str(". ");
    match unoptimised(scope.run) {
        true => text.push_str(UNOPTIMISED),
        false => text.push_str(&meaning(row, found, &words)),
    }
    Some(text)
}

/// Whether the program that measured is one for debugging.
fn unoptimised(run: &RunResult) -> bool {
    let fact = run.machine.facts.get("build.debug_assertions");
    fact.and_then(serde_json::Value::as_bool) == Some(true)
}

/// What a difference means for the figures of other workloads. The whole interval counts, not its middle.
fn meaning(row: &ResultRow, found: &Ratio, words: &Words) -> String {
    let (low, high) = (found.low.get(), found.high.get());
    // Ends are rounded numbers: 1.05 less 1 is a little above 0.05.
    let percent = |off: f64| off * 100.0 - 1e-6;
    let (less, more) = (percent(1.0 - low), percent(high - 1.0));
    if !rankable(row) || !(less + more).is_finite() {
        return "Its rounds differ too much to say more: repeat the run on a calmer machine.".to_owned();
    }
    let behind = words.behind;
    let Some(wanted) = words.wanted else {
        return match low > 1.0 {
            true => format!("A request costs it less, so it goes further: it does not limit the results of {behind}."),
            false => format!("Up to {:.0} % less.", less.max(0.0)),
        };
    };
    if less.max(more) <= wanted {
        return format!("Within the wanted {wanted} %: the generator does not colour the results of {behind}.");
    }
    if percent(1.0 - high) > wanted {
        return format!(
            "Outside the wanted {wanted} %, up to {less:.0} % less: in {behind}, read CPU time and ratios, and rates only far below \
             those of direct."
        );
    }
    if percent(low - 1.0) > wanted {
        return format!(
            "Outside the wanted {wanted} %, and more than {}: the generator does not limit the results of {behind}.",
            found.to
        );
    }
    format!(
        "The wanted {wanted} % are not decided, as it may be {:.0} % off: more rounds would tell.",
        less.max(more)
    )
}

/// The stream, and the requests beside it.
fn headline(scope: &Scope<'_>) -> Option<Headline> {
    let families = scope.families(&LENS);
    let mut said = families
        .iter()
        .filter_map(|family| Some((family, finding(scope, family)?)));
    let (family, answer) = said.next()?;
    let case = &family.columns.first()?.rows.first()?.case;
    let words = words(case);
    let row = family.row(OURS, words.metrics[0])?;
    let headline = Headline::new(
        answer,
        words.generator,
        "the generator that this is about",
        &format!("{} took no part", words.peer),
    );
    let detail: Vec<String> = said.map(|(_, text)| text).collect();
    let mut headline = headline.detail(detail.join(" "));
    headline.label = "Measured";
    Some(headline.ahead(scope.run, row, |name| format!("of the rate of {name}")))
}
