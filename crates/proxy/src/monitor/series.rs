//! Samples of one metric, a line each.

use std::fmt::{Display, Write};

use crate::meters::{BOUNDS, Histogram};

/// Where the samples of one metric are written.
pub(super) struct Series<'a> {
    pub(super) name: &'a str,
    /// What stands behind the name of a sample, but for histograms.
    pub(super) suffix: &'a str,
    pub(super) labels: &'a [&'a str],
    pub(super) out: &'a mut String,
}

impl Series<'_> {
    /// A sample with the values of the metric's labels.
    pub(super) fn sample(&mut self, labels: &[&str], value: impl Display) {
        self.line(self.suffix, labels, None, value);
    }

    /// How long things took.
    pub(super) fn histogram(&mut self, labels: &[&str], histogram: &Histogram) {
        let counts = histogram.cumulated();
        let bounds = BOUNDS.iter().map(|bound| format!("{:?}", bound.as_secs_f64()));
        for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(counts) {
            self.line("_bucket", labels, Some(&bound), count);
        }
        let [.., all] = counts;
        self.line("_count", labels, None, all);
        self.line("_sum", labels, None, histogram.sum().as_secs_f64());
    }

    fn line(&mut self, suffix: &str, values: &[&str], bound: Option<&str>, value: impl Display) {
        debug_assert_eq!(values.len(), self.labels.len(), "{}", self.name);
        let _ = write!(self.out, "{}{suffix}", self.name);
        let labels = self.labels.iter().copied().zip(values.iter().copied());
        let mut before = '{';
        for (label, value) in labels.chain(bound.map(|bound| ("le", bound))) {
            let _ = write!(self.out, "{before}{label}=\"");
            escape(self.out, value);
            self.out.push('"');
            before = ',';
        }
        if before == ',' {
            self.out.push('}');
        }
        let _ = writeln!(self.out, " {value}");
    }
}

/// A label's value, or a help text, as it stands between quotes.
pub(super) fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
}
