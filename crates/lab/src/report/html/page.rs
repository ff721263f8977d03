//! The page: answer, recommendation, evidence, trust, in this order.

use std::fmt::Write as _;

use super::{bars, bip324, embed, forest, load, packets, strip, throughput, transports, trust};
use crate::format::{self, Esc, clean, sig3_or};
use crate::report::bip324::BIP324;
use crate::report::files::FILES;
use crate::report::finding::{self, FLAGS};
use crate::report::load::LOADS;
use crate::report::packets::PACKETS;
use crate::report::transports::TRANSPORTS;
use crate::report::view::{PRIMITIVES, View, series};
use crate::result::{Recommendation, ResultRow, RunResult};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

pub(super) fn render(run: &RunResult) -> String {
    let view = View::new(run);
    // A browser reads CRLF as LF before it takes the hash.
    let (style, script) = (STYLE.replace('\r', ""), SCRIPT.replace('\r', ""));
    let mut out = String::with_capacity(1 << 20);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en-GB\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{}</title>\n<style>{style}</style>\n</head>\n<body>\n",
        embed::policy(&style, &script),
        Esc(&title(run)),
    );
    top(&mut out, &view);
    out.push_str("<main>\n");
    let packets = packets::figure(&view);
    let bip324 = bip324::figure(&view);
    let transports = transports::figure(&view);
    let loads = LOADS.map(|name| load::figure(&view, name));
    let others = packets.is_some() || bip324.is_some() || transports.is_some() || loads.iter().any(Option::is_some);
    // A run of another workload alone has nothing for the sections about single messages.
    let messages = !others || !view.groups.is_empty();
    if messages || !run.recommendation.is_empty() {
        recommendation(&mut out, run);
    }
    if messages {
        comparison(&mut out, &view);
        by_size(&mut out, &view);
        section(
            &mut out,
            "keys",
            "Keys: short connections pay here",
            bars::figure(&view).map(|figure| figure.html()),
        );
    }
    if let Some(figure) = &packets {
        section(&mut out, "packets", "Many packets at once", Some(figure.html()));
    }
    if let Some(figure) = &bip324 {
        section(&mut out, BIP324, "BIP324 connections", Some(figure.html()));
    }
    if let Some(figure) = &transports {
        section(&mut out, TRANSPORTS, "Streams through proxies", Some(figure.html()));
    }
    let titles = ["HTTP requests", "Short connections and idle ones", "Files"];
    for ((figure, name), title) in loads.iter().zip(LOADS).zip(titles) {
        if let Some(figure) = figure {
            section(&mut out, name, title, Some(figure.html()));
        }
    }
    section(
        &mut out,
        "calm",
        "Was the machine calm?",
        strip::figure(&view).map(|figure| figure.html()),
    );
    section(&mut out, "trust", "Can I trust it?", Some(trust::html(run)));
    out.push_str("</main>\n");
    foot(&mut out, run);
    let (json, whole) = embed::result(run);
    let _ = write!(
        out,
        "<script type=\"application/json\" id=\"result\" data-whole=\"{whole}\">{json}</script>\n<script>{script}</script>\n</body>\n</html>\n"
    );
    out
}

fn title(run: &RunResult) -> String {
    let cpu = if run.machine.cpu.is_empty() {
        "unknown CPU"
    } else {
        &run.machine.cpu
    };
    format!("Sealway lab: {cpu}")
}

/// The first screen: which, by how much, how sure, on what machine.
fn top(out: &mut String, view: &View<'_>) {
    let run = view.run;
    let headline = finding::headline(view);
    let has_packets = run.results.iter().any(|row| row.workload == PACKETS);
    let has = |name: &str| run.results.iter().any(|row| row.workload == name);
    let has_transports = has(TRANSPORTS);
    let workload = match (view.groups.is_empty(), has_packets, has_transports) {
        (true, true, _) => PACKETS,
        (true, false, _) if has(BIP324) => BIP324,
        (true, false, true) => TRANSPORTS,
        (true, false, false) => LOADS.into_iter().find(|name| has(name)).unwrap_or(PRIMITIVES),
        (false, ..) => PRIMITIVES,
    };
    let about = match workload {
        TRANSPORTS => "Transports",
        PRIMITIVES | PACKETS => "Ciphers",
        BIP324 => "BIP324",
        FILES => "Files",
        _ => "Proxied paths",
    };
    let links = [
        (
            "choose",
            "What to use",
            workload == PRIMITIVES || !run.recommendation.is_empty(),
        ),
        ("peers", "Against peers", workload == PRIMITIVES),
        ("sizes", "By size", workload == PRIMITIVES),
        ("keys-section", "Keys", workload == PRIMITIVES),
        ("packets-section", "Packets", has_packets),
        ("bip324-section", "BIP324", has(BIP324)),
        ("transports-section", "Transports", has_transports),
        ("requests-section", "Requests", has(LOADS[0])),
        ("flows-section", "Flows", has(LOADS[1])),
        ("files-section", "Files", has(FILES)),
        ("trust-section", "Trust", true),
    ];
    let nav: String = links
        .iter()
        .filter(|(_, _, shown)| *shown)
        .map(|(id, title, _)| format!("<a href=\"#{id}\">{title}</a>"))
        .collect();
    let date = run.started.split('T').next().unwrap_or_default();
    let _ = write!(
        out,
        "<header>\n<div class=\"bar\"><p class=\"mark\"><span aria-hidden=\"true\"></span>Sealway lab</p>\
         <nav aria-label=\"Sections\">{nav}</nav>\
         <div id=\"tools\"></div></div>\n<p class=\"eyebrow\">{about} on this machine{}</p>\n<h1>{}</h1>\n",
        if date.is_empty() {
            String::new()
        } else {
            format!(" \u{b7} {}", Esc(date))
        },
        Esc(&headline.answer)
    );
    let mut lede = vec![headline.detail.clone()];
    let ours = view
        .ours()
        .into_iter()
        .flat_map(|ours| finding::standings(run, workload, ours));
    lede.extend(ours.take(1).map(|standing| standing.sentence()));
    lede.retain(|text| !text.is_empty());
    if !lede.is_empty() {
        let _ = writeln!(out, "<p class=\"lede\">{}</p>", Esc(&lede.join(" ")));
    }
    let m = &run.machine;
    let cpu = if m.cpu.is_empty() {
        "unknown CPU".to_owned()
    } else {
        clean(&m.cpu)
    };
    let rest = finding::machine(run);
    let rest = rest.strip_prefix(&cpu).unwrap_or(&rest).trim_start_matches(", ");
    let tiles = [
        ("Which", headline.which.as_str(), headline.which_note.as_str()),
        ("By how much", &headline.lead, &headline.lead_note),
        ("How sure", &headline.sure, &headline.sure_note),
        ("On what machine", &cpu, rest),
    ];
    out.push_str("<dl class=\"tiles\">");
    for (name, value, note) in tiles {
        let long = if value.chars().count() > 14 {
            " class=\"long\""
        } else {
            ""
        };
        let _ = write!(
            out,
            "<div><dt>{name}</dt><dd{long}>{}<small>{}</small></dd></div>",
            Esc(value),
            Esc(note)
        );
    }
    out.push_str("</dl>\n");
    let mut notes: Vec<(String, String)> = Vec::new();
    if !run.complete {
        notes.push((
            "Cut short".to_owned(),
            "the run was stopped before its end; the figures are partial.".to_owned(),
        ));
    }
    notes.extend(finding::absent(run).into_iter().map(|text| ("Absent".to_owned(), text)));
    notes.extend(
        run.warnings
            .iter()
            .map(|warning| (warning.code.clone(), warning.text.clone())),
    );
    if !notes.is_empty() {
        out.push_str("<ul class=\"notes\" aria-label=\"Before you read on\">");
        for (code, text) in notes.iter().take(4) {
            let _ = write!(out, "<li><strong>{}</strong> {}</li>", Esc(code), Esc(text));
        }
        if notes.len() > 4 {
            let more = format::count(notes.len() - 4, "more warning");
            let _ = write!(out, "<li><a href=\"#trust-section\">{more}</a></li>");
        }
        out.push_str("</ul>\n");
    }
    out.push_str("</header>\n");
}

fn section(out: &mut String, id: &str, title: &str, content: Option<String>) {
    let content = content.unwrap_or_else(|| "<p class=\"empty\">Not measured in this run.</p>\n".to_owned());
    let _ = write!(
        out,
        "<section id=\"{id}-section\"><h2>{title}</h2>\n{content}</section>\n"
    );
}

fn recommendation(out: &mut String, run: &RunResult) {
    out.push_str("<section id=\"choose\"><h2>What to use</h2>\n");
    if run.recommendation.is_empty() {
        out.push_str("<p class=\"empty\">This run carries no recommendation.</p>\n</section>\n");
        return;
    }
    out.push_str("<div class=\"cards\">\n");
    for item in &run.recommendation {
        let (sign, word) = confidence(item);
        let _ = write!(
            out,
            "<article><h3>{}</h3><p class=\"choice\">{}</p><p class=\"sure {word}\"><span aria-hidden=\"true\">{sign}</span> {word}</p><p>{}</p>",
            Esc(&scenario(&item.scenario)),
            Esc(&item.choice),
            Esc(&item.reason)
        );
        let rows: Vec<&ResultRow> = item
            .because
            .iter()
            .filter_map(|index| run.results.get(*index))
            .collect();
        if !rows.is_empty() {
            out.push_str("<ul class=\"because\">");
            for row in rows.iter().take(6) {
                let _ = write!(out, "<li>{}</li>", Esc(&figure(row)));
            }
            out.push_str("</ul>");
        }
        out.push_str("</article>\n");
    }
    out.push_str("</div>\n</section>\n");
}

/// A scenario as a heading.
fn scenario(name: &str) -> String {
    match name {
        "server" => "Server".to_owned(),
        "mobile" => "Mobile and ARM".to_owned(),
        "mixed-fleet" => "Mixed fleet".to_owned(),
        "bulk" => "Bulk data through a proxy".to_owned(),
        "short-connections" => "Many short connections".to_owned(),
        "bip324-connections" => "BIP324: many connections".to_owned(),
        "bip324-batch" => "BIP324: how many packets together".to_owned(),
        "bip324-sockets" => "BIP324: writing".to_owned(),
        "nonce-misuse" => "Where nonces might repeat".to_owned(),
        other => clean(other),
    }
}

fn confidence(item: &Recommendation) -> (char, &'static str) {
    match item.confidence.as_str() {
        "clear" => ('\u{25cf}', "clear"),
        "slight" => ('\u{25d0}', "slight"),
        "tie" => ('=', "tie"),
        _ => ('?', "not known"),
    }
}

/// A figure that a recommendation rests on.
fn figure(row: &ResultRow) -> String {
    let value = match row.unit.as_str() {
        "B/s" => format!("{} GB/s", sig3_or(row.median.get() / 1e9, "?")),
        "s" | "s/op" => format::seconds(row.median.get()),
        unit => format!("{} {}", sig3_or(row.median.get(), "?"), clean(unit)),
    };
    format!("{}, {}: {value}", clean(&row.subject), finding::case(row))
}

fn comparison(out: &mut String, view: &View<'_>) {
    out.push_str("<section id=\"peers\"><h2>Against real peers</h2>\n");
    let mut figures = view
        .subjects
        .iter()
        .filter_map(|name| Some((*name, forest::figure(view, name)?)));
    match figures.next() {
        Some((_, first)) => out.push_str(&first.html()),
        None => {
            out.push_str("<p class=\"empty\">No peer took part in this run, so there is nothing to compare with.</p>\n")
        }
    }
    for (name, figure) in figures {
        let _ = writeln!(
            out,
            "<details class=\"more\"><summary>{} in the same comparison</summary>{}</details>",
            Esc(name),
            figure.html()
        );
    }
    out.push_str("</section>\n");
}

fn by_size(out: &mut String, view: &View<'_>) {
    out.push_str("<section id=\"sizes\"><h2>Which cipher at which size</h2>\n");
    match throughput::suites(view) {
        Some(figure) => out.push_str(&figure.html()),
        None => out.push_str("<p class=\"empty\">No throughput was measured in this run.</p>\n"),
    }
    out.push_str("</section>\n");
    let figures = throughput::subjects(view);
    if figures.is_empty() {
        return;
    }
    out.push_str("<section id=\"subjects\"><h2>Every engine, suite by suite</h2>\n<ul class=\"legend\" id=\"legend\">");
    for name in &view.subjects {
        let state = if view.run.subjects.iter().any(|s| s.name == *name && !s.error.is_empty()) {
            " (absent)"
        } else {
            ""
        };
        let _ = write!(
            out,
            "<li data-toggle=\"{0}\"><span class=\"chip s{1}\" aria-hidden=\"true\"></span>{0}{state}</li>",
            Esc(name),
            series(name)
        );
    }
    out.push_str("</ul>\n");
    for figure in figures {
        out.push_str(&figure.html());
    }
    let flags: Vec<String> = FLAGS
        .iter()
        .map(|(name, _, text)| {
            if text.starts_with(name) {
                (*text).to_owned()
            } else {
                format!("{name}: {text}")
            }
        })
        .collect();
    let _ = writeln!(
        out,
        "<p class=\"reading\">Marks. {}.</p></section>",
        Esc(&flags.join("; "))
    );
}

fn foot(out: &mut String, run: &RunResult) {
    let (_, whole) = embed::result(run);
    out.push_str("<footer><h2>Repeat it</h2>\n");
    if !run.command.is_empty() {
        let _ = writeln!(
            out,
            "<pre tabindex=\"0\"><code>{}</code></pre>",
            Esc(&format::command(&run.command))
        );
    }
    let part = if whole {
        "with every window"
    } else {
        "without the single windows, which only the result file has"
    };
    let _ = write!(
        out,
        "<p id=\"download\">The result is embedded in this page, {part}.</p>\n<p class=\"reading\">sealway {}, run {}.</p></footer>\n",
        Esc(&run.sealway),
        Esc(&run.run)
    );
}
