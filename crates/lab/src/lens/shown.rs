//! A metric and a parameter as readers see them.

use crate::format::sig3_or;
use crate::result::ResultRow;

/// A metric as it is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shown {
    /// Its name in result files.
    pub metric: &'static str,
    /// What its unit is multiplied by.
    pub scale: f64,
    /// What it is in then.
    pub unit: &'static str,
    /// Title of its column or table.
    pub title: &'static str,
    /// What it is called in a list of figures.
    pub words: &'static str,
    /// Its ratio stands beside it: above 1 is better, whichever way the metric counts.
    pub related: bool,
}

impl Shown {
    /// A metric without a ratio.
    pub const fn new(metric: &'static str, scale: f64, unit: &'static str, title: &'static str) -> Shown {
        Shown {
            metric,
            scale,
            unit,
            title,
            words: title,
            related: false,
        }
    }

    /// Energy of the processor packages for each byte, as joules a GiB.
    pub const ENERGY_PER_BYTE: Shown =
        Shown::new("energy_per_byte", (1u32 << 30) as f64, "J/GiB", "J/GiB").called("energy of the processor packages");

    /// The same for each operation, as joules a million.
    pub const ENERGY_PER_OP: Shown =
        Shown::new("energy_per_op", 1e6, "J a million", "J/10^6").called("energy of the processor packages");

    /// Cycles that the measuring thread takes in user space for each byte.
    pub const CYCLES_PER_BYTE: Shown =
        Shown::new("cycles_per_byte", 1.0, "cycles/B", "cycles/B").called("cycles of the measuring thread");

    /// The same for each operation.
    pub const CYCLES_PER_OP: Shown =
        Shown::new("cycles_per_op", 1.0, "cycles", "cycles/op").called("cycles of the measuring thread");

    /// Called so in a list of figures.
    #[must_use]
    pub const fn called(mut self, words: &'static str) -> Shown {
        self.words = words;
        self
    }

    /// With its ratio.
    #[must_use]
    pub const fn related(mut self) -> Shown {
        self.related = true;
        self
    }

    /// The median of a row, three digits of it; `endless` for one without an end.
    pub fn number(&self, row: &ResultRow, endless: &str) -> String {
        if row.median.get() == f64::INFINITY {
            return endless.to_owned();
        }
        sig3_or(row.median.get() * self.scale, "?")
    }
}

/// A parameter of a workload's cases.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// The least and the most that a number can be; absent for a text.
    pub range: Option<(i64, i64)>,
    /// What it is, or which values it has.
    pub what: &'static str,
}

impl Parameter {
    /// One whose value is a text.
    pub const fn text(name: &'static str, what: &'static str) -> Parameter {
        Parameter {
            name,
            range: None,
            what,
        }
    }

    /// One whose value is a whole number, and no less than `least`.
    pub const fn number(name: &'static str, least: i64, what: &'static str) -> Parameter {
        Parameter {
            name,
            range: Some((least, i64::MAX)),
            what,
        }
    }

    /// One whose value is a share in per cent.
    pub const fn percent(name: &'static str, what: &'static str) -> Parameter {
        Parameter {
            name,
            range: Some((0, 100)),
            what,
        }
    }
}
