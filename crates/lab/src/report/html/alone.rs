//! A page that is no report: an answer, what it is of, and figures.

use maud::{Markup, html};

use super::chart::Text;
use super::figure;
use super::page::document;
use crate::report::drawing::Figure;

/// What stands above the figures. No text in it has to be harmless.
pub(crate) struct Alone {
    /// Title of the window.
    pub(crate) title: &'static str,
    /// The answer.
    pub(crate) heading: String,
    /// What must be known before it is believed.
    pub(crate) notes: Vec<String>,
    /// What was looked at.
    pub(crate) about: Vec<String>,
}

/// The whole page, with a section for each title and its figure.
pub(crate) fn render<'a>(alone: &Alone, figures: impl Iterator<Item = (String, Figure<'a>)>) -> String {
    page(
        alone,
        &html! { @for (title, found) in figures { section { h2 { (Text(&title)) } (figure::figure(&found)) } } },
    )
}

/// The whole page around `main`.
pub(crate) fn page(alone: &Alone, main: &Markup) -> String {
    let body = html! {
        header {
            div.bar { p.mark { span aria-hidden="true" {} "Sealway lab" } }
            h1 { (Text(&alone.heading)) }
            @if !alone.notes.is_empty() { ul.notes { @for note in &alone.notes { li { (Text(note)) } } } }
            @for about in &alone.about { p.lede { (Text(about)) } }
        }
        main { (main) }
    };
    document(&html! { (alone.title) }, "", &body)
}
