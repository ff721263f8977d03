//! A table of numbers: decimals aligned, marks in a column of their own, wide tables continued instead of wrapped.

/// One figure with its marks.
pub(super) struct Cell {
    pub(super) number: String,
    pub(super) marks: String,
    pub(super) bold: bool,
}

impl Cell {
    /// No figure.
    pub(super) fn empty() -> Self {
        Cell {
            number: String::new(),
            marks: String::new(),
            bold: false,
        }
    }

    fn whole(&self) -> usize {
        self.number.split('.').next().unwrap_or_default().chars().count()
    }

    fn fraction(&self) -> usize {
        self.number
            .split_once('.')
            .map_or(0, |(_, digits)| 1 + digits.chars().count())
    }
}

struct Column {
    title: String,
    cells: Vec<Cell>,
}

impl Column {
    /// Characters before the point, after it (with it), and of marks.
    fn shape(&self) -> (usize, usize, usize) {
        let most = |f: &dyn Fn(&Cell) -> usize| self.cells.iter().map(f).max().unwrap_or(0);
        (
            most(&Cell::whole),
            most(&Cell::fraction),
            most(&|cell| cell.marks.chars().count()),
        )
    }
}

/// Rows of subjects, columns of cases, with a second table of the same columns beneath.
pub(super) struct Table {
    pub(super) names: Vec<String>,
    columns: Vec<Column>,
    below: Option<(String, Box<Table>)>,
}

/// The widest name that is shown whole.
const NAME: usize = 16;
const GAP: usize = 2;

impl Table {
    pub(super) fn new(names: Vec<String>) -> Self {
        Table {
            names,
            columns: Vec::new(),
            below: None,
        }
    }

    /// A column; `cells` has one entry per name.
    pub(super) fn push(&mut self, title: &str, cells: Vec<Cell>) {
        self.columns.push(Column {
            title: title.to_owned(),
            cells,
        });
    }

    /// Puts `table`, which has the same columns, under each part of this one.
    pub(super) fn below(&mut self, title: &str, table: Table) {
        self.below = Some((title.to_owned(), Box::new(table)));
    }

    /// The lines, none longer than `width`; columns that do not fit follow in further parts.
    pub(super) fn lines(&self, width: usize, bold: bool) -> Vec<String> {
        let all = self
            .names
            .iter()
            .chain(self.below.iter().flat_map(|(_, table)| &table.names));
        let name_width = all.map(|name| name.chars().count()).max().unwrap_or(0).min(NAME) + 2;
        // A common width keeps the parts of one table in step with each other.
        let widest = self
            .columns
            .iter()
            .chain(self.below.iter().flat_map(|(_, table)| &table.columns))
            .map(|column| {
                let (whole, fraction, marks) = column.shape();
                (whole + fraction + marks).max(column.title.chars().count() + 1)
            });
        let cell = widest.max().unwrap_or(0) + GAP;
        let per_part = (width.saturating_sub(name_width) / cell).max(1);
        let mut lines = Vec::new();
        for start in (0..self.columns.len()).step_by(per_part) {
            let end = (start + per_part).min(self.columns.len());
            if start > 0 {
                lines.push(String::new());
            }
            let mut head = " ".repeat(name_width);
            for column in &self.columns[start..end] {
                // The last place of a cell is for a mark, so titles end one before it.
                head.push_str(&format!("{:>1$} ", column.title, cell - 1));
            }
            lines.push(head);
            self.rows(start..end, name_width, cell, bold, &mut lines);
            if let Some((title, table)) = &self.below {
                lines.push(title.chars().take(width).collect());
                table.rows(start..end, name_width, cell, bold, &mut lines);
            }
        }
        lines
    }

    fn rows(
        &self,
        columns: std::ops::Range<usize>,
        name_width: usize,
        cell: usize,
        bold: bool,
        lines: &mut Vec<String>,
    ) {
        for (row, name) in self.names.iter().enumerate() {
            let name: String = name.chars().take(NAME).collect();
            let mut line = format!("{:<1$}", format!("  {name}"), name_width);
            for column in self.columns.get(columns.clone()).unwrap_or_default() {
                let (_, fraction, marks) = column.shape();
                let marks = marks.max(1);
                let Some(figure) = column.cells.get(row).filter(|figure| !figure.number.is_empty()) else {
                    let dash = format!("-{}", " ".repeat(fraction + marks));
                    line.push_str(&format!("{dash:>cell$}"));
                    continue;
                };
                let pad = " ".repeat(fraction - figure.fraction() + marks - figure.marks.chars().count());
                let shown = format!("{}{}", figure.number, figure.marks);
                let before = cell.saturating_sub(shown.chars().count() + pad.len());
                line.push_str(&" ".repeat(before));
                if figure.bold && bold {
                    line.push_str(&format!("\x1b[1m{shown}\x1b[0m"));
                } else {
                    line.push_str(&shown);
                }
                line.push_str(&pad);
            }
            lines.push(line);
        }
    }
}
