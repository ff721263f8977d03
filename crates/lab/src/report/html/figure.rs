//! A figure of the page: drawings, a caption that states the finding, and the same figures as a list.

use maud::{Markup, html};

use super::chart::Text;
use super::{bars, lines, ratios};
use crate::report::drawing::{Drawing, Figure};
use crate::report::listing::{Entry, Listing};

/// The whole figure, folded away where it is one of several.
pub(super) fn figure(figure: &Figure<'_>) -> Markup {
    let drawings = html! {
        @for drawing in &figure.drawings {
            @match drawing {
                Drawing::Lines(lines) => { (lines::draw(lines)) }
                Drawing::Bars(bars) => { (bars::draw(bars)) }
                Drawing::Ratios(ratios) => { (ratios::draw(ratios)) }
            }
        }
    };
    let whole = frame(figure, "grid", &drawings);
    match &figure.folded {
        Some(title) => html! { details.more { summary { (Text(title)) } (whole) } "\n" },
        None => whole,
    }
}

/// What stands around drawings; `class` says how they are laid out.
pub(crate) fn frame(figure: &Figure<'_>, class: &str, drawings: &Markup) -> Markup {
    html! {
        figure id=(figure.id) {
            div class=(class) { "\n" (drawings) }
            figcaption {
                p { (Text(&figure.caption)) }
                @if !figure.reading.is_empty() { p.reading { (Text(&figure.reading)) } }
            }
            @if !figure.listing.rows.is_empty() {
                details { summary { "These figures as a table" } (listing(&figure.listing)) } "\n"
            }
        }
        "\n"
    }
}

/// A list as a table that the script can sort.
pub(super) fn listing(listing: &Listing) -> Markup {
    let class = |column: usize| {
        listing
            .columns
            .get(column)
            .is_some_and(|(_, number)| *number)
            .then_some("n")
    };
    html! {
        div.scroll tabindex="0" {
            table.data {
                @if !listing.caption.is_empty() { caption { (Text(&listing.caption)) } }
                thead { tr { @for (i, (title, _)) in listing.columns.iter().enumerate() {
                    th scope="col" class=[class(i)] { (Text(title)) }
                } } }
                tbody { "\n" @for row in &listing.rows {
                    tr { @for (i, entry) in row.iter().enumerate() {
                        @if i == 0 {
                            th scope="row" class=[class(i)] data-v=[sorted_by(entry)] { (Text(&entry.text)) }
                        } @else {
                            td class=[class(i)] data-v=[sorted_by(entry)] { (Text(&entry.text)) }
                        }
                    } } "\n"
                } }
            }
        }
    }
}

/// The script reads plain numbers from the text; only others carry their value.
fn sorted_by(entry: &Entry) -> Option<String> {
    let plain = entry.text.parse::<f64>().is_ok();
    let value = entry.sort.filter(|value| value.is_finite() && !plain)?;
    Some(format!("{value:.6e}"))
}
