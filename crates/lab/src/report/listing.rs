//! Lists of figures, one a line: what stands behind a drawing.

use super::model::View;
use super::tables::reference;
use crate::format::{list_range, sig3_or, times};
use crate::lens::rank::speed;
use crate::lens::{Against, Family, Part, Shown};
use crate::result::ResultRow;

/// One entry of a list.
#[derive(Default)]
pub(crate) struct Entry {
    pub(crate) text: String,
    /// What the column is sorted by; entries without it are sorted by their text.
    pub(crate) sort: Option<f64>,
}

impl Entry {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Entry {
            text: text.into(),
            sort: None,
        }
    }

    pub(crate) fn number(text: impl Into<String>, sort: f64) -> Self {
        Entry {
            text: text.into(),
            sort: Some(sort),
        }
    }
}

/// A list that can be sorted by any of its columns.
#[derive(Default)]
pub(crate) struct Listing {
    pub(crate) caption: String,
    /// Title, and whether the column holds numbers.
    pub(crate) columns: Vec<(String, bool)>,
    pub(crate) rows: Vec<Vec<Entry>>,
}

impl Listing {
    /// One without rows. Titles of columns have commas between them, and a `#` before those of numbers.
    pub(crate) fn new(caption: &str, columns: &str) -> Self {
        let column = |title: &str| match title.strip_prefix('#') {
            Some(title) => (title.to_owned(), true),
            None => (title.to_owned(), false),
        };
        Listing {
            caption: caption.to_owned(),
            columns: columns.split(", ").map(column).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds columns of numbers, whose titles may hold anything.
    pub(crate) fn numbers<'t>(&mut self, titles: impl IntoIterator<Item = &'t str>) {
        self.columns
            .extend(titles.into_iter().map(|title| (title.to_owned(), true)));
    }

    /// Facts and their values.
    pub(crate) fn pairs<'n>(rows: impl IntoIterator<Item = (&'n str, String)>) -> Self {
        let mut listing = Listing::new("", "fact, value");
        let entries = rows.into_iter();
        listing.rows = entries
            .map(|(name, value)| vec![Entry::text(name), Entry::text(value)])
            .collect();
        listing
    }
}

/// The figures of some tables, of all subjects or of one. Where all are of one metric, its unit is the title of their column.
pub(crate) fn figures(view: &View<'_>, part: &Part, families: &[&Family<'_>], subject: Option<&str>) -> Listing {
    let wanted = |row: &&ResultRow| {
        subject.is_none_or(|subject| row.subject == subject)
            && (part.metrics.is_empty() || part.metrics.contains(&row.metric.as_str()))
    };
    let mut rows: Vec<(&ResultRow, &Shown)> = Vec::new();
    for column in families.iter().flat_map(|family| &family.columns) {
        let found = column.rows.iter().copied().filter(wanted);
        for (row, shown) in found.filter_map(|row| Some((row, view.lens.shown(&row.metric)?))) {
            // A case can stand in several tables.
            if !rows.iter().any(|(known, _)| std::ptr::eq(*known, row)) {
                rows.push((row, shown));
            }
        }
    }
    let unit = rows.first().map_or("", |(_, shown)| shown.unit);
    let alike = rows.iter().all(|(_, shown)| shown.unit == unit);
    let one = alike && rows.windows(2).all(|pair| pair[0].1.words == pair[1].1.words);
    let to = match view.lens.against {
        Against::First => "the reference",
        Against::Best => reference(rows.iter().map(|(row, _)| *row)),
    };
    let figure = if one {
        format!("#{unit}")
    } else {
        "figure, #median, unit".to_owned()
    };
    let columns = format!("case, subject, {figure}, #from to, #to {to}, #rounds, marks");
    let mut listing = Listing::new(part.caption, &columns);
    for (row, shown) in rows {
        let value = row.median.get() * shown.scale;
        let number = match view.lens.endless {
            endless if value == f64::INFINITY => endless.to_owned(),
            _ => sig3_or(value, "not known"),
        };
        let mut entries = vec![Entry::text((view.lens.case)(&row.case)), Entry::text(&row.subject)];
        if one {
            entries.push(Entry::number(number, value));
        } else {
            entries.extend([
                Entry::text(shown.words),
                Entry::number(number, value),
                Entry::text(shown.unit),
            ]);
        }
        let low = row.low.get() * shown.scale;
        entries.push(Entry::number(list_range(low, row.high.get() * shown.scale), low));
        let ratio = speed(row).filter(|_| row.subject != view.lens.control);
        entries.push(ratio.map_or_else(Entry::default, |speed| {
            Entry::number(format!("{} {}", times(speed.estimate), speed.to), speed.estimate)
        }));
        entries.push(Entry::number(row.rounds.to_string(), f64::from(row.rounds)));
        entries.push(Entry::text(row.flags.join(", ")));
        listing.rows.push(entries);
    }
    listing
}
