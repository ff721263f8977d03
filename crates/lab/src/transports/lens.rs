//! How the figures of `transports` are read.

use crate::format::{count, list_range, sig3_or, times};
use crate::lens::choice::Choice;
use crate::lens::rank::speed;
use crate::lens::{
    Calm, Family, Grade, Headline, Lens, OURS, Parameter, Part, Place, Plot, Scope, Shown, Standing, headline,
};
use crate::result::{Case, ResultRow};
use crate::route::{Stack, WHAT_A_TRANSPORT_IS};
use crate::workload::stacks::{encrypts, marked, name};

const LOOPBACK: &str = "Loopback is not a network: there are no losses, no distance and packets of 64 KiB. This is the cost of \
                        the software for each byte. Sender, programs and receiver share the CPUs: trust CPU time before Gbit/s.";

const TWO_HOSTS: &str = "Client and server are on two hosts: the network between them is part of every rate, and direct shows what it \
                         carries. CPU time is that of each program on its own host.";

const LINKED: &str = "A link is emulated between client and server (for direct: before the sink), and no rate is above what it gives. \
                      Cost is that of the software for each byte; the emulation is in no subject's figure. Generator, programs, \
                      sink and link share the CPUs.";

const COST: &str = "cpu_per_gb";
const RATE: &str = "throughput";
/// Gigabytes a second of a line with 1 Gbit/s.
const GIGABIT: f64 = 0.125;
const MIB: f64 = 1.0 / (1024.0 * 1024.0);

pub(super) static LENS: Lens = Lens {
    about: "Transports",
    others: "other proxy programs",
    parameters: &[
        Parameter::text("stack", "what the path is made of"),
        Parameter::number("streams", 1, "TCP connections at once"),
        Parameter::text("direction", "down or up"),
        Parameter::text("suite", "what seals, or none"),
    ],
    figures: &[
        Shown::new(RATE, 8e-9, "Gbit/s", "Gbit/s").called("rate"),
        Shown::new(COST, 1.0, "CPU s/GB", "s/GB")
            .called("CPU of all programs")
            .related(),
        Shown::ENERGY_PER_BYTE,
        Shown::new("cpu_per_gb_client", 1.0, "s/GB", "client").called("CPU of the client"),
        Shown::new("cpu_per_gb_front", 1.0, "s/GB", "front").called("CPU of the front"),
        Shown::new("cpu_per_gb_server", 1.0, "s/GB", "server").called("CPU of the server"),
        Shown::new("memory", MIB, "MiB", "MiB").called("memory at most"),
    ],
    colours: &["xray", "v2ray", "sing-box", "direct"],
    control: "direct",
    case: |case| format!("{}, {}", Stack::named_words(stack(case)), kind(case)),
    leading: |_| COST,
    place,
    intro: |scope| {
        let of_path = match (&scope.run.responder, &scope.run.link) {
            (Some(_), _) => TWO_HOSTS,
            (None, Some(_)) => LINKED,
            (None, None) => LOOPBACK,
        };
        format!("{WHAT_A_TRANSPORT_IS} {of_path}")
    },
    finding,
    beneath: true,
    headline,
    standing: Standing {
        verb: "moves",
        what: "the bytes of",
        with: " with the same CPU time",
        better: "Cheaper",
        worse: "dearer",
    },
    parts: &[Part {
        id: "transports-section",
        figure: super::NAME,
        title: "Streams through proxies",
        link: "Transports",
        caption: "Streams through proxies",
        plot: Plot::Sums(&[
            ("client", "cpu_per_gb_client"),
            ("front", "cpu_per_gb_front"),
            ("server", "cpu_per_gb_server"),
        ]),
        reading: "Bars start at zero; shorter is better. Each has a piece for each program, in the shades of the key: the client, what \
                  stands before the server, and the server; the thin line is the interval of their sum, or the range with few \
                  rounds. The generator's cost is in none.",
        ..Part::PLAIN
    }],
    scenarios: &[("bulk", "Bulk data through a proxy")],
    ..Lens::PLAIN
};

fn stack(case: &Case) -> &str {
    case.text("stack").unwrap_or_default()
}

/// Streams and direction: `1 download`, `4 uploads at once`.
pub(super) fn kind(case: &Case) -> String {
    let streams = usize::try_from(case.int("streams").unwrap_or(1)).unwrap_or(1);
    let direction = match case.text("direction").unwrap_or_default() {
        "down" => "download",
        "up" => "upload",
        _ => "stream",
    };
    let together = if streams > 1 { " at once" } else { "" };
    format!("{}{together}", count(streams, direction))
}

/// `VLESS over TLS (vless-tcp-tls), 1 download; sealed by TLS`.
fn title(case: &Case) -> String {
    let stack = stack(case);
    let (words, sealed) = (Stack::named_words(stack), Stack::seal_of(stack));
    format!("{words} ({stack}), {}{sealed}", kind(case))
}

/// One stream before several, down before up, stacks as they are listed.
fn place(_: &Scope<'_>, index: usize, case: &Case) -> Vec<Place> {
    let known = Stack::ALL.iter().position(|known| known.name() == stack(case));
    let up = i64::from(case.text("direction") == Some("up"));
    vec![Place {
        rank: [
            case.int("streams").unwrap_or(0),
            up,
            known.map_or(i64::MAX, |place| place as i64),
        ],
        group: kind(case),
        ..Place::of_case(index, title(case), Stack::named_words(stack(case)))
    }]
}

/// Our engine against the best peer: cost first. `None` without a peer.
fn finding(_: &Scope<'_>, family: &Family<'_>) -> Option<String> {
    let cost = speed(family.row(OURS, COST)?)?;
    let mut text = format!(
        "{OURS} moves {} the bytes of {} with the same CPU time ({})",
        times(cost.estimate),
        cost.to,
        list_range(cost.low, cost.high)
    );
    if let Some(speed) = family.row(OURS, RATE).and_then(speed) {
        text.push_str(&format!(
            ", at {} the rate of {} ({})",
            times(speed.estimate),
            speed.to,
            list_range(speed.low, speed.high)
        ));
    }
    text.push('.');
    Some(text)
}

/// Our engine through the stack that the run recommends, beside other stacks; without advice through VLESS over TLS, or the first
/// case there is, beside other programs.
fn headline(scope: &Scope<'_>) -> Option<Headline> {
    let run = scope.run;
    let advised = run.recommendation.iter().find(|item| item.scenario == "bulk");
    let because = advised.map_or(&[][..], |item| item.because.as_slice());
    let of_ours = |row: &&ResultRow| row.subject == OURS && row.metric == COST;
    let stacks = because.iter().filter_map(|index| run.results.get(*index));
    let stacks: Vec<&ResultRow> = stacks.filter(of_ours).collect();
    let ours = || scope.of(OURS, COST);
    let usual = || ours().find(|row| stack(&row.case) == Stack::VLESS_TCP_TLS.name());
    let row = stacks.first().copied().or_else(usual).or_else(|| ours().next())?;
    let words = Stack::named_words(stack(&row.case));
    let busy = |row: &ResultRow| sig3_or(GIGABIT * row.median.get() * 100.0, "?");
    let server = scope.row(&row.case, OURS, "cpu_per_gb_server");
    let server = server.map_or_else(String::new, |row| {
        format!(", client and server together; the server alone {} %", busy(row))
    });
    let answer = format!(
        "Through {words}, {OURS} keeps one CPU {} % busy for each Gbit/s{server}.",
        busy(row)
    );
    let rate = scope
        .row(&row.case, OURS, RATE)
        .map_or(f64::NAN, |row| row.median.get());
    let detail = format!(
        "{}: {} Gbit/s, {} s of CPU time for a gigabyte.",
        title(&row.case),
        sig3_or(rate * 8e-9, "?"),
        sig3_or(row.median.get(), "?")
    );
    let over = |name: &str| format!("the bytes of {name} for the same CPU time");
    let note = format!("{words}{}", Stack::seal_of(stack(&row.case)));
    let kind = kind(&row.case);
    let Some((choice, item)) = Choice::of(&stacks).zip(advised) else {
        let note = format!("through {note}; measured with {kind}");
        let headline = Headline::new(answer, OURS, &note, "no other program took part").detail(detail);
        return Some(headline.between(run, row, over));
    };
    let rivals = ours().filter(|other| encrypts(other) && self::kind(&other.case) == kind);
    let rivals = count(rivals.count(), "transport");
    let note = format!("{note}. Measured: {rivals} that encrypt, {kind} each, {OURS} at both ends");
    let next = |name: &str| over(&format!("{name}, the next,"));
    let mut headline = Headline::new(answer, "", &note, "")
        .detail(detail)
        .choice(run, &choice, [name, marked], next);
    headline.set = Stack::named(stack(&row.case)).map_or_else(String::new, |known| known.settings());
    if headline.which != stack(&row.case) {
        headline.set = format!("{}: {}", stack(&row.case), headline.set);
    }
    // Less sure than its figures where one that may not be ranked looks better.
    if Grade::read(&item.confidence) == Grade::Undecided && headline.sure != Some(Grade::Undecided) {
        headline.sure = Some(Grade::Undecided);
        headline.sure_note += "; one that may not be ranked looks better";
    }
    let calm = Calm::of_rows(run, scope.rows.iter().copied().filter(|other| other.case == row.case));
    headline.programs = speed(row).map_or_else(String::new, |speed| {
        let (lead, sure) = (
            headline::size(run, row, &speed),
            headline::grade(run, row).on(&calm).word(),
        );
        format!(
            "{OURS} moves {lead} the bytes of {}, the best other program here, for the same CPU time ({sure}).",
            speed.to
        )
    });
    Some(headline)
}
