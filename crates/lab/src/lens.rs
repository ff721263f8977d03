//! How the figures of a workload are read: everything that a report has to know of one, as plain data and a few functions.
//!
//! A workload has one [`Lens`]. Reports know no workload by name: they take rows and lenses, and draw what these say.

mod calm;
pub(crate) mod choice;
pub mod headline;
pub mod rank;
mod shown;
pub mod words;

use std::collections::{BTreeMap, BTreeSet};

use crate::result::{Case, ResultRow, RunResult};

pub(crate) use calm::Calm;
pub use choice::Grade;
pub use headline::Headline;
pub use shown::{Parameter, Shown};

/// The name of our own engine among the subjects. With a colon behind it, it is a variant of ours.
pub const OURS: &str = "sealway";

/// What a report has to know of a workload. [`Lens::PLAIN`] has what suits most.
#[derive(Debug)]
pub struct Lens {
    /// What a page is about that leads with this workload, such as `Files`.
    pub about: &'static str,
    /// What the subjects beside ours are, such as `other libraries`.
    pub others: &'static str,
    /// The parameters of its cases, for the schema of result files.
    pub parameters: &'static [Parameter],
    /// Its metrics as they are shown, in the order of columns. Others stand in the table of all figures only.
    pub figures: &'static [Shown],
    /// Its subjects in the order of the colours and shapes behind ours; others share the last.
    pub colours: &'static [&'static str],
    /// What ratios are to.
    pub against: Against,
    /// The subject that shows what is possible without a path: seen, never ranked. Empty where there is none.
    pub control: &'static str,
    /// A case in a few words.
    pub case: fn(&Case) -> String,
    /// The metric that stands for a case in rankings: one figure a case, so that no case counts twice.
    pub leading: fn(&Case) -> &'static str,
    /// The tables that a case has a place in. `usize` is the place of the case among those of the run.
    pub place: fn(&Scope<'_>, usize, &Case) -> Vec<Place>,
    /// What must be known before its tables are read.
    pub intro: fn(&Scope<'_>) -> String,
    /// What a table says, in a sentence.
    pub finding: fn(&Scope<'_>, &Family<'_>) -> Option<String>,
    /// Whether that sentence stands beneath the table in a terminal too.
    pub beneath: bool,
    /// What all tables together say, a sentence each.
    pub findings: fn(&Scope<'_>) -> Vec<String>,
    /// The answer of a run that this workload leads.
    pub headline: fn(&Scope<'_>) -> Option<Headline>,
    /// The words for a subject's standing over all cases.
    pub standing: Standing,
    /// How a figure without an end is shown, such as a percentile that falls among failures.
    pub endless: &'static str,
    /// Its sections on the page.
    pub parts: &'static [Part],
    /// Titles of the scenarios that it has advice for.
    pub scenarios: &'static [(&'static str, &'static str)],
}

impl Lens {
    /// A table for each case, with a column for each metric; its rate leads.
    pub const PLAIN: Lens = Lens {
        about: "Figures",
        others: "others",
        parameters: &[],
        figures: &[],
        colours: &[],
        against: Against::Best,
        control: "",
        case: |case| case.to_string(),
        leading: |_| "rate",
        place: |_, index, case| vec![Place::of_case(index, case.to_string(), case.to_string())],
        intro: |_| String::new(),
        finding: |_, _| None,
        beneath: false,
        findings: |_| Vec::new(),
        headline: |_| None,
        standing: Standing::SPEED,
        endless: "inf",
        parts: &[],
        scenarios: &[],
    };

    /// How a metric is shown, if it is.
    pub fn shown(&self, metric: &str) -> Option<&'static Shown> {
        self.figures.iter().find(|shown| shown.metric == metric)
    }

    /// Whether a row stands for its case in rankings.
    pub fn leads(&self, row: &ResultRow) -> bool {
        row.metric == (self.leading)(&row.case)
    }
}

/// What ratios are to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Against {
    /// One subject for all cases that it takes part in; every subject has its standing to it.
    First,
    /// The best peer of each case, whoever that is; so only our own standing says something.
    Best,
}

/// The words for a standing: `sealway VERB 1.02x WHAT aws-lc-rs WITH`.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// `runs at`
    pub verb: &'static str,
    /// `the speed of`
    pub what: &'static str,
    /// What stands behind, with a space before it; empty for nothing.
    pub with: &'static str,
    /// `Faster`
    pub better: &'static str,
    /// `slower`
    pub worse: &'static str,
}

impl Standing {
    /// By speed.
    pub const SPEED: Standing = Standing {
        verb: "runs at",
        what: "the speed of",
        with: "",
        better: "Faster",
        worse: "slower",
    };
}

/// A section of the page.
#[derive(Debug)]
pub struct Part {
    /// Identifier of the section, unique in the page.
    pub id: &'static str,
    /// Start of the identifiers of its figures.
    pub figure: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Its name among the links at the top; empty for none.
    pub link: &'static str,
    /// Title of the table behind its figures.
    pub caption: &'static str,
    /// What is drawn.
    pub plot: Plot,
    /// The metrics in the table behind its figures; all that are shown if empty.
    pub metrics: &'static [&'static str],
    /// How to read the drawings, without the intro of the lens.
    pub reading: &'static str,
    /// What its figure says, where that is not what its tables say.
    pub says: Option<fn(&Scope<'_>) -> Vec<String>>,
    /// What stands there when nothing was measured; where it is empty the section is left out then.
    pub empty: &'static str,
    /// With a list of subjects that can be hidden, and the meaning of all marks.
    pub legend: bool,
}

impl Part {
    /// A section without a reading of its own, left out when it is empty.
    pub const PLAIN: Part = Part {
        id: "",
        figure: "",
        title: "",
        link: "",
        caption: "",
        plot: Plot::Table,
        metrics: &[],
        reading: "",
        says: None,
        empty: "",
        legend: false,
    };
}

/// The kinds of drawings.
#[derive(Clone, Copy, Debug)]
pub enum Plot {
    /// None: the figures as a table alone.
    Table,
    /// Ratios with their intervals, a figure for each subject. Of a case: its panel, the heading and the label of its line.
    Ratios(fn(&Case) -> [String; 3]),
    /// A panel for each table that sweeps, a figure for each group of them, with a line for each subject.
    Sweeps(Axis),
    /// A panel for each kin of tables, with a line of our subject for each table.
    Ours(Axis),
    /// For each table a panel of bars for each of these titles and the metrics that share its scale.
    Bars(&'static [(&'static str, &'static [&'static str])]),
    /// A panel of bars for each group of tables, by the metric that leads; bars are made of these parts, a name and a metric each.
    Sums(&'static [(&'static str, &'static str)]),
}

/// The axis of what is swept.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// What it counts.
    pub across: &'static str,
    /// Unit of the other axis, as a reader says it.
    pub unit: &'static str,
}

/// Where a case stands.
#[derive(Clone, Debug)]
pub struct Place {
    /// Order of the table, before its title decides.
    pub rank: [i64; 3],
    /// Title of the table.
    pub table: String,
    /// Which tables share a figure or a panel.
    pub group: String,
    /// Title of the panel and name of the line where our subject's tables are compared.
    pub kin: Option<(String, String)>,
    /// Columns that differ in one number alone, [`Place::order`].
    pub sweep: bool,
    /// With fewer columns the table is left out.
    pub least: usize,
    /// What is shown.
    pub layout: Layout,
    /// Order of the column.
    pub order: i64,
    /// Title of the column.
    pub column: String,
}

impl Place {
    /// A table of its own for a case, with a column for each metric. `column` is the case where it is one of several in a panel.
    pub fn of_case(index: usize, table: String, column: String) -> Place {
        Place {
            rank: [i64::try_from(index).unwrap_or(i64::MAX), 0, 0],
            table,
            group: String::new(),
            kin: None,
            sweep: false,
            least: 1,
            layout: Layout::Figures,
            order: 0,
            column,
        }
    }
}

/// What the columns of a table are.
#[derive(Clone, Debug, PartialEq)]
pub enum Layout {
    /// Cases; one table beneath the other for each of these figures, the first with the title.
    Cases(&'static [Shown]),
    /// The metrics of one case.
    Figures,
}

/// Cases that make one table.
#[derive(Debug)]
pub struct Family<'a> {
    /// Its title.
    pub title: String,
    /// The same in a few words.
    pub short: String,
    /// See [`Place::group`].
    pub group: String,
    /// See [`Place::kin`].
    pub kin: Option<(String, String)>,
    /// See [`Place::sweep`].
    pub sweep: bool,
    /// What is shown.
    pub layout: Layout,
    /// The cases.
    pub columns: Vec<Column<'a>>,
}

/// One case in a table.
#[derive(Debug)]
pub struct Column<'a> {
    /// Its title.
    pub title: String,
    /// See [`Place::order`].
    pub order: i64,
    /// Its rows.
    pub rows: Vec<&'a ResultRow>,
}

impl<'a> Column<'a> {
    /// The row of a subject.
    pub fn row(&self, subject: &str, metric: &str) -> Option<&'a ResultRow> {
        let mut rows = self.rows.iter().copied();
        rows.find(|row| row.subject == subject && row.metric == metric)
    }
}

impl<'a> Family<'a> {
    /// All rows for a metric.
    pub fn all(&self, metric: &str) -> impl Iterator<Item = &'a ResultRow> {
        let rows = self.columns.iter().flat_map(|column| column.rows.iter().copied());
        rows.filter(move |row| row.metric == metric)
    }

    /// The row of a subject in the first case that has one.
    pub fn row(&self, subject: &str, metric: &str) -> Option<&'a ResultRow> {
        self.columns.iter().find_map(|column| column.row(subject, metric))
    }

    /// Those of `subjects` that have a row for any of `metrics`, in that order.
    pub fn subjects<'s>(&self, subjects: &[&'s str], metrics: &[&str]) -> Vec<&'s str> {
        let has = |name: &&str| metrics.iter().any(|metric| self.row(name, metric).is_some());
        subjects.iter().copied().filter(has).collect()
    }

    /// What is shown of it: the figures of its tables, or those of the lens that it has.
    pub fn figures(&self, lens: &Lens) -> Vec<Shown> {
        match self.layout {
            Layout::Cases(blocks) => blocks.to_vec(),
            Layout::Figures => {
                let has = |shown: &&Shown| self.all(shown.metric).next().is_some();
                lens.figures.iter().filter(has).copied().collect()
            }
        }
    }
}

/// The rows of one workload in a run.
#[derive(Debug)]
pub struct Scope<'a> {
    /// The run.
    pub run: &'a RunResult,
    /// Those of the workload, in the order of the run.
    pub rows: Vec<&'a ResultRow>,
    /// Subjects of the whole run, ours first.
    pub subjects: Vec<&'a str>,
}

impl<'a> Scope<'a> {
    /// Our subject, or the first there is when ours did not take part.
    pub fn ours(&self) -> Option<&'a str> {
        self.subjects.first().copied()
    }

    /// The row of a subject in a case.
    pub fn row(&self, case: &Case, subject: &str, metric: &str) -> Option<&'a ResultRow> {
        let mut rows = self.rows.iter().copied();
        rows.find(|row| row.subject == subject && row.metric == metric && row.case == *case)
    }

    /// The rows of a subject for a metric.
    pub fn of(&self, subject: &str, metric: &str) -> impl Iterator<Item = &'a ResultRow> {
        let rows = self.rows.iter().copied();
        rows.filter(move |row| row.subject == subject && row.metric == metric)
    }

    /// Its tables, by rank and title.
    pub fn families(&self, lens: &Lens) -> Vec<Family<'a>> {
        let mut places: BTreeMap<&Case, usize> = BTreeMap::new();
        let mut cases: Vec<(&Case, Vec<&'a ResultRow>)> = Vec::new();
        for row in &self.rows {
            let place = *places.entry(&row.case).or_insert(cases.len());
            if place == cases.len() {
                cases.push((&row.case, Vec::new()));
            }
            cases[place].1.push(row);
        }
        let placed = cases.iter().enumerate().flat_map(|(index, (case, rows))| {
            let places = (lens.place)(self, index, case);
            places.into_iter().map(move |place| (place, rows))
        });
        let mut placed: Vec<(Place, &Vec<&'a ResultRow>)> = placed.collect();
        placed.sort_by(|(a, _), (b, _)| (a.rank, &a.table, a.order).cmp(&(b.rank, &b.table, b.order)));
        let mut families = Vec::new();
        for chunk in placed.chunk_by(|(a, _), (b, _)| (a.rank, &a.table) == (b.rank, &b.table)) {
            let Some((first, rows)) = chunk.first() else { continue };
            if chunk.len() < first.least {
                continue;
            }
            families.push(Family {
                title: first.table.clone(),
                short: rows.first().map_or_else(String::new, |row| (lens.case)(&row.case)),
                group: first.group.clone(),
                kin: first.kin.clone(),
                sweep: first.sweep,
                layout: first.layout.clone(),
                columns: chunk
                    .iter()
                    .map(|(place, rows)| Column {
                        title: place.column.clone(),
                        order: place.order,
                        rows: (*rows).clone(),
                    })
                    .collect(),
            });
        }
        families
    }
}

/// Subjects that a run lists or has rows of, ours first, then in the order of `known`.
pub fn subjects<'a>(run: &'a RunResult, known: &[&str]) -> Vec<&'a str> {
    let listed = run.subjects.iter().map(|subject| subject.name.as_str());
    let names = listed.chain(run.results.iter().map(|row| row.subject.as_str()));
    let mut seen = BTreeSet::new();
    let mut subjects: Vec<&str> = names.filter(|name| seen.insert(*name)).collect();
    subjects.sort_by_key(|name| (*name != OURS, position(known, name)));
    subjects
}

/// The place of a name in a fixed order; unknown names come last.
pub fn position(order: &[&str], name: &str) -> usize {
    order.iter().position(|known| *known == name).unwrap_or(order.len())
}

/// An operation of a cipher as a heading names it.
pub fn operation(op: &str) -> &str {
    match op {
        "pair" => "Sealing and opening",
        "seal" => "Sealing",
        "open" => "Opening",
        "fresh-key" => "A fresh key for each message",
        "key-setup" => "Key set-up",
        other => other,
    }
}

/// `a, b and c`.
pub fn list(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}
