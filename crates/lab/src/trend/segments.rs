//! Where a figure changed. All values are logarithms.

use crate::stats::{Summary, ends, median};

/// Runs that a segment has at least: one run proves nothing. The newest may stand alone, for others to confirm it.
const LEAST: usize = 2;

/// A value with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figure {
    pub(super) mid: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Figure {
    /// Whether the intervals have nothing in common.
    pub(super) fn is_apart_from(&self, other: &Figure) -> bool {
        self.low > other.high || self.high < other.low
    }

    fn differs(&self, other: &Figure, threshold: f64) -> bool {
        (self.mid - other.mid).abs() > threshold.ln_1p() && self.is_apart_from(other)
    }
}

/// What several runs have together: the median of their values; of the ends of their intervals the outermost, and from six runs
/// on those order statistics that hold the median in 95 of 100 cases. `None` without runs.
pub(super) fn level(figures: impl Iterator<Item = Figure> + Clone) -> Option<Figure> {
    let of = |part: fn(Figure) -> f64| figures.clone().map(part).collect::<Vec<f64>>();
    Some(Figure {
        mid: median(&of(|figure| figure.mid))?,
        low: Summary::of(&of(|figure| figure.low)).low,
        high: Summary::of(&of(|figure| figure.high)).high,
    })
}

/// The median of the values of several runs, with the range of their intervals: where one more run may lie. `None` without runs.
pub(super) fn range(figures: impl Iterator<Item = Figure> + Clone) -> Option<Figure> {
    let mids: Vec<f64> = figures.clone().map(|figure| figure.mid).collect();
    let (low, high) = ends(figures.flat_map(|figure| [figure.low, figure.high]));
    let mid = median(&mids)?;
    Some(Figure { mid, low, high })
}

/// Where segments begin, ascending, the first at 0. Nothing for no figures.
///
/// Of all divisions it is the one with the least distance of the values from the medians of their segments, where each segment
/// costs as much as a change just large enough. Neighbours that do not differ by their intervals are joined then.
pub(super) fn starts(figures: &[Figure], threshold: f64) -> Vec<usize> {
    let mut starts = divided(figures, threshold.ln_1p());
    loop {
        let ends = starts.iter().skip(2).copied().chain([figures.len()]);
        let alike = starts.windows(2).zip(ends).position(|(pair, end)| {
            let (Some(before), Some(after)) = (of(&figures[pair[0]..pair[1]]), of(&figures[pair[1]..end])) else {
                return false;
            };
            !before.differs(&after, threshold)
        });
        match alike {
            Some(place) => starts.remove(place + 1),
            None => return starts,
        };
    }
}

fn divided(figures: &[Figure], price: f64) -> Vec<usize> {
    // Of the first runs, for each number of them: the least cost, and where their last segment begins.
    let mut best = vec![(0.0, 0)];
    for end in 1..=figures.len() {
        let alone = end == figures.len() || figures.len() == LEAST;
        let least = if alone { 1 } else { LEAST };
        let starts = 0..(end + 1).saturating_sub(least);
        let costs = starts.map(|start| (best[start].0 + price + distance(&figures[start..end]), start));
        let cheapest = costs.min_by(|a, b| a.0.total_cmp(&b.0));
        best.push(cheapest.unwrap_or((f64::INFINITY, 0)));
    }
    let mut starts = Vec::new();
    let mut end = figures.len();
    while end > 0 {
        end = best[end].1;
        starts.push(end);
    }
    starts.reverse();
    starts
}

fn of(part: &[Figure]) -> Option<Figure> {
    level(part.iter().copied())
}

/// Of the values from their median; what is not known counts as nothing.
fn distance(part: &[Figure]) -> f64 {
    let values: Vec<f64> = part.iter().map(|figure| figure.mid).collect();
    let middle = median(&values).unwrap_or(f64::NAN);
    let distances = values.iter().map(|value| (value - middle).abs());
    distances.filter(|distance| distance.is_finite()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figures with intervals of half a per cent to either side.
    fn series(values: &[f64]) -> Vec<Figure> {
        let figure = |value: &f64| Figure {
            mid: value.ln(),
            low: value.ln() - 0.005,
            high: value.ln() + 0.005,
        };
        values.iter().map(figure).collect()
    }

    fn found(values: &[f64]) -> Vec<usize> {
        starts(&series(values), 0.05)
    }

    #[test]
    fn changes_are_found_where_they_are() {
        assert!(found(&[]).is_empty());
        assert_eq!(found(&[1.0]), [0]);
        assert_eq!(found(&[1.0, 1.01, 0.99, 1.0, 1.02]), [0]);
        assert_eq!(found(&[1.0, 1.01, 0.99, 0.9, 0.91, 0.89]), [0, 3]);
        assert_eq!(found(&[1.0, 1.01, 0.99, 0.9, 0.91, 0.89, 1.0, 1.01]), [0, 3, 6]);
        assert_eq!(found(&[1.0, 1.0, 0.9, 0.9, 0.8, 0.8, 0.7, 0.7]), [0, 2, 4, 6]);
    }

    #[test]
    fn one_run_changes_nothing_unless_it_is_the_newest() {
        assert_eq!(found(&[1.0, 1.0, 1.0, 0.5, 1.0, 1.0, 1.0]), [0]);
        assert_eq!(found(&[1.0, 1.0, 1.0, 1.0, 0.9]), [0, 4]);
        assert_eq!(found(&[1.0, 0.9]), [0, 1]);
        assert_eq!(found(&[1.0, 0.9, 0.9]), [0], "what the first alone was is not known");
    }

    #[test]
    fn neither_small_changes_nor_wide_intervals_are_changes() {
        assert_eq!(found(&[1.0, 1.0, 1.0, 0.96, 0.96, 0.96]), [0]);
        let mut wide = series(&[1.0, 1.0, 1.0, 0.9, 0.9, 0.9]);
        for figure in &mut wide {
            figure.low -= 0.06;
            figure.high += 0.06;
        }
        assert_eq!(starts(&wide, 0.05), [0]);
    }

    #[test]
    fn a_stray_run_among_many_does_not_hide_a_change() {
        let mut values = vec![1.0; 9];
        values[4] = 0.5;
        values.extend([0.9, 0.9]);
        assert_eq!(found(&values), [0, 9]);
    }

    #[test]
    fn what_is_not_known_divides_nothing() {
        let mut figures = series(&[1.0, 1.0, 0.5, 0.5]);
        figures[1].mid = f64::NAN;
        figures[2].low = f64::NEG_INFINITY;
        assert_eq!(starts(&figures, 0.05).first(), Some(&0));
    }
}
