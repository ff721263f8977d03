//! The page: answer, recommendation, evidence, trust, in this order.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::chart::{Prose, Text};
use super::{embed, figure, published, strip, trust};
use crate::format::{self, sig3_or};
use crate::lens::Grade;
use crate::lens::choice::SCALE;
use crate::lens::headline::UNKNOWN;
use crate::report::figures::{Section, sections};
use crate::report::model::{Report, machine};
use crate::report::notes::{Notes, notes};
use crate::report::tables::FLAGS;
use crate::result::{Recommendation, ResultRow, RunResult};

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// `whole` is the run as it is in the file, for the page to carry.
pub(super) fn render(report: &Report<'_>, whole: &RunResult) -> String {
    let script = SCRIPT.replace('\r', "");
    let (json, complete) = embed::result(whole);
    let sections: Vec<Section<'_>> = report.views.iter().flat_map(|view| sections(report, view)).collect();
    let body = html! {
        (top(report, &sections))
        main {
            @if let Some(found) = &report.run.reproduction { (published::section(found)) }
            @if !report.run.recommendation.is_empty() { (recommendation(report)) }
            @for section in &sections { (evidence(report, section)) }
            section id="calm-section" {
                h2 { "Was the machine calm?" }
                @match strip::figure(report) {
                    Some(figure) => { (figure) }
                    None => { p.empty { "Not measured in this run." } }
                }
            }
            section id="trust-section" { h2 { "Can I trust it?" } (trust::html(report)) }
        }
        (foot(report.run, complete))
        script type="application/json" id="result" data-whole=(complete) { (PreEscaped(json)) }
        script { (PreEscaped(&script)) }
    };
    let title = html! { "Sealway lab: " (Text(machine(&report.run.machine).0)) };
    document(&title, &script, &body)
}

/// A whole document; `script` is the one that it may run.
pub(super) fn document(title: &Markup, script: &str, body: &Markup) -> String {
    // A browser reads CRLF as LF before it takes the hash.
    let style = STYLE.replace('\r', "");
    let page = html! {
        (DOCTYPE) "\n"
        html lang="en-GB" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(embed::policy(&style, script));
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(&style)) }
            }
            body { (body) }
        }
    };
    page.into_string()
}

/// The first screen: which, by how much, how sure, on what machine.
fn top(report: &Report<'_>, sections: &[Section<'_>]) -> Markup {
    let (run, (leads, headline)) = (report.run, report.headline());
    let parts = sections.iter().map(|section| (section.part.id, section.part.link));
    let links = [
        (published::ID, published::TITLE, run.reproduction.is_some()),
        ("choose", "What to use", !run.recommendation.is_empty()),
    ];
    let links = links
        .into_iter()
        .filter_map(|(id, title, there)| there.then_some((id, title)))
        .chain(parts);
    let date = run.started.split('T').next().unwrap_or_default();
    let ours = leads.and_then(|view| {
        let ours = view.scope.ours()?;
        view.standings().into_iter().find(|sum| sum.subject() == ours)
    });
    let mut lede = vec![headline.programs.clone(), headline.detail.clone()];
    lede.extend(ours.map(|sum| format!("Over all cases: {}", sum.sentence())));
    lede.retain(|text| !text.is_empty());
    let (cpu, mut rest) = machine(&run.machine);
    if let Some(responder) = &run.responder {
        let (cpu, other) = machine(&responder.machine);
        rest.push_str(&format!("; servers on {cpu}, {other}"));
    }
    let label = if headline.which == UNKNOWN {
        "Which"
    } else {
        headline.label
    };
    let tiles = [
        (label, headline.which.as_str(), headline.which_note.as_str()),
        ("By how much", &headline.lead, &headline.lead_note),
        ("How sure", headline.sure(), &headline.sure_note),
        ("On what machine", cpu, &rest),
    ];
    let notes = before_you_read_on(&notes(run, &headline), headline.sure.is_some());
    // Where the answer is worth little, that is read before it.
    let (before, behind) = match headline.sure {
        Some(Grade::Uncertain) => (Some(notes), None),
        _ => (None, Some(notes)),
    };
    html! {
        header {
            div.bar {
                p.mark { span aria-hidden="true" {} "Sealway lab" }
                nav aria-label="Sections" {
                    @for (id, title) in links.chain([("trust-section", "Can I trust it?")]).filter(|(_, title)| !title.is_empty()) {
                        a href={ "#" (id) } { (title) }
                    }
                }
                div #tools {}
            }
            p.eyebrow {
                (leads.map_or("Figures", |view| view.lens.about)) " on this machine"
                @if !date.is_empty() { " \u{b7} " (Text(date)) }
            }
            @if let Some(view) = leads { p.reading { (Text(&report.measured(view))) } }
            @if let Some(notes) = before { (notes) }
            h1 { (Text(&headline.answer)) }
            dl.tiles {
                @for (name, value, note) in tiles {
                    div {
                        dt { (name) }
                        dd.long[value.chars().count() > 14] { (Text(value)) small { (Prose(note)) } }
                    }
                }
            }
            @if !headline.set.is_empty() { p.lede { "Set: " (Prose(&headline.set)) } }
            @if let Some(notes) = behind { (notes) }
            @if let Some(link) = &run.link { p.lede { "Over an emulated link: " (Text(&link.line())) "." } }
            @for also in report.also() { p.lede { (Text(&also)) } }
            @if !lede.is_empty() { p.lede { (Text(&lede.join(" "))) } }
        }
    }
}

/// What touches the answer, and where the rest stands.
fn before_you_read_on(notes: &Notes, graded: bool) -> Markup {
    let Notes { verdict, first, rest } = notes;
    html! {
        @if verdict.is_some() || !first.is_empty() {
            ul.notes aria-label="Before you believe it" {
                @if let Some(verdict) = verdict {
                    li { (Text(&verdict.text)) @if !verdict.command.is_empty() { " " code { (Text(&verdict.command)) } } }
                }
                @for note in first.iter().take(4) { li { strong { (Text(&note.code)) } " " (Prose(&note.text)) } }
                @if first.len() > 4 {
                    li { a href="#about-run" { (format::count(first.len() - 4, "more warning")) } }
                }
            }
        }
        @if graded || !rest.is_empty() { p.reading {
            @if graded { "How sure: " (SCALE) ". " }
            @if verdict.is_some() {
                a href="#about-run" { "Details and further notes" } " are below."
            } @else if !rest.is_empty() {
                a href="#about-run" { (format::count(rest.len(), "further note")) } ", which "
                (if rest.len() == 1 { "does" } else { "do" }) " not change the answer."
            }
        } }
    }
}

fn recommendation(report: &Report<'_>) -> Markup {
    let because = |item: &Recommendation| {
        let rows = item.because.iter().filter_map(|index| report.run.results.get(*index));
        rows.take(6).map(|row| rests_on(report, row)).collect::<Vec<_>>()
    };
    html! {
        section #choose {
            h2 { "What to use" }
            div.cards {
                @for item in &report.run.recommendation {
                    @let grade = report.grade(item);
                    @let because = because(item);
                    article {
                        h3 { (Text(report.scenario(&item.scenario))) }
                        p.choice { (Text(&item.choice)) }
                        p class={ "sure " (grade.stored()) } { span aria-hidden="true" { (sign(grade)) } " " (grade.word()) }
                        p { (Prose(&item.reason)) }
                        @if !because.is_empty() { ul.because { @for figure in &because { li { (Text(figure)) } } } }
                    }
                }
            }
        }
    }
}

fn sign(grade: Grade) -> char {
    match grade {
        Grade::Clear => '\u{25cf}',
        Grade::Likely => '\u{25d0}',
        Grade::Uncertain => '\u{25cb}',
        Grade::Tie => '=',
        Grade::Undecided => '?',
    }
}

/// A figure that a recommendation rests on.
fn rests_on(report: &Report<'_>, row: &ResultRow) -> String {
    let value = match row.unit.as_str() {
        "B/s" => format!("{} GB/s", sig3_or(row.median.get() / 1e9, "?")),
        "s" | "s/op" => format::seconds(row.median.get()),
        unit => format!("{} {unit}", sig3_or(row.median.get(), "?")),
    };
    format!("{}, {}: {value}", row.subject, report.case(row))
}

fn evidence(report: &Report<'_>, section: &Section<'_>) -> Markup {
    let part = section.part;
    html! {
        section id=(part.id) {
            h2 { (part.title) }
            @if part.legend { (legend(report)) }
            @if section.figures.is_empty() { p.empty { (part.empty) } }
            @for figure in &section.figures { (figure::figure(figure)) }
            @if part.legend { p.reading { "Marks. " (marks()) "." } }
        }
        "\n"
    }
}

/// Subjects with their colours; the script lets them be hidden.
fn legend(report: &Report<'_>) -> Markup {
    let absent = |name: &str| {
        report
            .run
            .subject(name)
            .is_some_and(|subject| !subject.error.is_empty())
    };
    html! {
        ul.legend #legend {
            @for name in &report.subjects {
                li data-toggle=(Text(name)) {
                    span class={ "chip s" (report.series(name)) } aria-hidden="true" {}
                    (Text(name)) @if absent(name) { " (absent)" }
                }
            }
        }
    }
}

fn marks() -> String {
    let texts = FLAGS.iter().map(|(name, _, text)| {
        if text.starts_with(name) {
            (*text).to_owned()
        } else {
            format!("{name}: {text}")
        }
    });
    texts.collect::<Vec<_>>().join("; ")
}

fn foot(run: &RunResult, whole: bool) -> Markup {
    let part = if whole {
        "with every window"
    } else {
        "without the single windows, which only the result file has"
    };
    html! {
        footer {
            h2 { "Repeat it" }
            @if !run.command.is_empty() { pre tabindex="0" { code { (Text(&format::command(&run.command))) } } }
            p #download { "The result is embedded in this page, " (part) "." }
            p.reading { "sealway " (Text(&run.sealway)) ", run " (Text(&run.run)) "." }
        }
    }
}
