//! A figure of the page: drawings, a caption that states the finding, and the same figures as a table.

use std::fmt::Write as _;

use crate::format::Esc;

/// Drawings with what belongs to them.
#[derive(Default)]
pub(super) struct Figure {
    /// Unique in the page.
    pub(super) id: String,
    /// Finished SVG elements, laid out side by side where there is room.
    pub(super) drawings: Vec<String>,
    /// The finding, in plain text.
    pub(super) caption: String,
    /// How to read the drawing, in plain text; may be empty.
    pub(super) reading: String,
    pub(super) table: DataTable,
    /// One drawing over the whole width instead of a grid.
    pub(super) wide: bool,
}

impl Figure {
    pub(super) fn html(&self) -> String {
        let mut out = String::new();
        let class = if self.wide { "wide" } else { "grid" };
        let _ = write!(
            out,
            "<figure id=\"{}\"><div class=\"{class}\">\n{}</div>\n",
            self.id,
            self.drawings.concat()
        );
        let _ = write!(out, "<figcaption><p>{}</p>", Esc(&self.caption));
        if !self.reading.is_empty() {
            let _ = write!(out, "<p class=\"reading\">{}</p>", Esc(&self.reading));
        }
        out.push_str("</figcaption>\n");
        if !self.table.rows.is_empty() {
            let _ = writeln!(
                out,
                "<details><summary>These figures as a table</summary>{}</details>",
                self.table.html()
            );
        }
        out.push_str("</figure>\n");
        out
    }
}

/// One entry of a table.
#[derive(Default)]
pub(super) struct Entry {
    pub(super) text: String,
    /// What the column is sorted by; entries without it are sorted by their text.
    pub(super) sort: Option<f64>,
}

impl Entry {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Entry {
            text: text.into(),
            sort: None,
        }
    }

    pub(super) fn number(text: impl Into<String>, sort: f64) -> Self {
        Entry {
            text: text.into(),
            sort: Some(sort),
        }
    }
}

/// A table that the script can sort.
#[derive(Default)]
pub(super) struct DataTable {
    pub(super) caption: String,
    /// Title, and whether the column holds numbers.
    pub(super) columns: Vec<(String, bool)>,
    pub(super) rows: Vec<Vec<Entry>>,
}

impl DataTable {
    pub(super) fn new(caption: &str, columns: &[(&str, bool)]) -> Self {
        let columns = columns
            .iter()
            .map(|(title, number)| ((*title).to_owned(), *number))
            .collect();
        DataTable {
            caption: caption.to_owned(),
            columns,
            rows: Vec::new(),
        }
    }

    pub(super) fn html(&self) -> String {
        let mut out = String::from("<div class=\"scroll\" tabindex=\"0\"><table class=\"data\">");
        if !self.caption.is_empty() {
            let _ = write!(out, "<caption>{}</caption>", Esc(&self.caption));
        }
        out.push_str("<thead><tr>");
        for (title, number) in &self.columns {
            let class = if *number { " class=\"n\"" } else { "" };
            let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", Esc(title));
        }
        out.push_str("</tr></thead><tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for (i, entry) in row.iter().enumerate() {
                let number = self.columns.get(i).is_some_and(|(_, number)| *number);
                let class = if number { " class=\"n\"" } else { "" };
                // The script reads plain numbers from the text; only others carry their value.
                let plain = entry.text.parse::<f64>().is_ok();
                let sort = match entry.sort.filter(|value| value.is_finite() && !plain) {
                    Some(value) => format!(" data-v=\"{value:.6e}\""),
                    None => String::new(),
                };
                let (tag, scope) = if i == 0 { ("th", " scope=\"row\"") } else { ("td", "") };
                let _ = write!(out, "<{tag}{scope}{class}{sort}>{}</{tag}>", Esc(&entry.text));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>");
        out
    }
}
