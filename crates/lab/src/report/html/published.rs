//! Published claims and orders beside what was measured.

use maud::{Markup, html};

use super::chart::Text;
use super::figure::listing;
use crate::report::listing::{Entry, Listing};
use crate::report::published::{
    LOADS, PROCESSES, TIES, figure, loads, measured, place, placed, published, tally, words,
};
use crate::result::{Ranking, Reproduction};

/// Identifier of the section, and its title.
pub(super) const ID: &str = "published";
pub(super) const TITLE: &str = "Published and measured";

pub(super) fn section(found: &Reproduction) -> Markup {
    html! {
        section id=(ID) {
            h2 { (TITLE) ": " (Text(&found.recipe)) }
            p.prose { (Text(&found.about)) }
            ul.prose { @for sentence in &tally(found) { li { (Text(sentence)) } } }
            (listing(&claims(found)))
            @for ranking in &found.rankings {
                (listing(&order(ranking)))
                ul.prose { @for sentence in &ranking.agreement { li { (Text(sentence)) } } }
                @let busy = busy(ranking);
                @if !busy.rows.is_empty() { (listing(&busy)) }
            }
            (sentences("Where this program stands", &found.standing))
            (sentences("What differs from the sources", &found.differs))
            (sentences("Not here, and how to get it", &found.missing))
            h3 { "Sources" }
            (listing(&sources(found)))
        }
        "\n"
    }
}

fn sentences(title: &str, sentences: &[String]) -> Markup {
    html! {
        @if !sentences.is_empty() {
            h3 { (title) }
            ul.prose { @for sentence in sentences { li { (Text(sentence)) } } }
        }
    }
}

fn claims(found: &Reproduction) -> Listing {
    let columns = "claim, #source, ratio of, #published, subject, metric, #measured, #from to, verdict, why, note";
    let mut listing = Listing::new("Each claim is a ratio, and so is what was measured", columns);
    for claim in &found.claims {
        for reading in &claim.readings {
            let [estimate, ends] = reading.ratio.as_ref().map_or_else(Default::default, |ratio| {
                let [estimate, ends] = measured(claim, ratio);
                [
                    Entry::number(estimate, ratio.estimate.get()),
                    Entry::number(ends, ratio.low.get()),
                ]
            });
            listing.rows.push(vec![
                Entry::text(&claim.text),
                Entry::text(claim.source.to_string()),
                Entry::text(format!("{} / {}", claim.over, claim.under)),
                Entry::number(published(claim), claim.published),
                Entry::text(&reading.subject),
                Entry::text(&reading.metric),
                estimate,
                ends,
                Entry::text(words(reading)),
                Entry::text(&reading.why),
                Entry::text(&claim.note),
            ]);
        }
    }
    listing
}

fn order(ranking: &Ranking) -> Listing {
    let places = placed(ranking);
    let titles = places.iter().map(|(subject, metric, _)| format!("{subject}, {metric}"));
    let titles: Vec<String> = std::iter::once(format!("published, {}", ranking.unit))
        .chain(titles)
        .collect();
    let caption = format!(
        "{} [{}]: the published order, and places here; = is {TIES}",
        ranking.title, ranking.source
    );
    let mut listing = Listing::new(&caption, "#place, what");
    listing.numbers(titles.iter().map(String::as_str));
    for (at, entry) in ranking.entries.iter().enumerate() {
        let mut row = vec![
            Entry::text(place(ranking, at)),
            Entry::text(&entry.name),
            match entry.published {
                Some(published) => Entry::number(figure(entry), published),
                None => Entry::text(figure(entry)),
            },
        ];
        row.extend(places.iter().map(|(.., places)| {
            let place = places.get(at).cloned().unwrap_or_default();
            match place.trim_start_matches(crate::format::TIED).parse() {
                Ok(number) => Entry::number(place, number),
                Err(_) => Entry::text(place),
            }
        }));
        listing.rows.push(row);
    }
    listing
}

fn busy(ranking: &Ranking) -> Listing {
    let mut listing = Listing::new(LOADS, "what, subject");
    listing.numbers(PROCESSES);
    for (entry, subject, processes) in loads(ranking) {
        let mut row = vec![Entry::text(entry), Entry::text(subject)];
        row.extend(processes.map(Entry::text));
        listing.rows.push(row);
    }
    listing
}

fn sources(found: &Reproduction) -> Listing {
    let mut listing = Listing::new("", "#source, what, when, where, how");
    for (number, source) in (1..).zip(&found.sources) {
        listing.rows.push(vec![
            Entry::text(format!("{number}")),
            Entry::text(&source.name),
            Entry::text(&source.date),
            Entry::text(&source.address),
            Entry::text(&source.method),
        ]);
    }
    listing
}
