//! From values to places on a chart.

/// A log axis: `low` to `high` (both above 0) onto `from` to `to`, in any direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Log {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Log {
    /// An axis over `low` to `high`; ends that are no use (0, equal, not finite) are widened to something drawable.
    pub(super) fn new(low: f64, high: f64, from: f64, to: f64) -> Self {
        let low = if low.is_finite() && low > 0.0 { low } else { 0.1 };
        let high = if high.is_finite() && high > low * 1.000_001 {
            high
        } else {
            low * 10.0
        };
        Log { low, high, from, to }
    }

    /// The place of a value, held at the ends.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = (value.max(self.low).min(self.high) / self.low).ln() / (self.high / self.low).ln();
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        self.from + share * (self.to - self.from)
    }

    /// True when the value lies on the axis.
    pub(super) fn holds(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// Round values to label: 1-2-5 steps, fewer over many decades, more where the axis is short.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let decades = (self.high / self.low).log10();
        let steps: &[f64] = if decades > 4.0 {
            &[1.0]
        } else if decades > 0.9 {
            &[1.0, 2.0, 5.0]
        } else if decades > 0.35 {
            &[1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
        } else {
            return linear_ticks(self.low, self.high, 5);
        };
        let mut ticks = Vec::new();
        let first = self.low.log10().floor().clamp(-300.0, 300.0) as i32;
        let last = self.high.log10().ceil().clamp(-300.0, 300.0) as i32;
        let stride = usize::try_from((last - first) / 12 + 1).unwrap_or(1);
        for exponent in (first..=last).step_by(stride) {
            ticks.extend(
                steps
                    .iter()
                    .map(|step| step * 10f64.powi(exponent))
                    .filter(|tick| self.holds(*tick)),
            );
        }
        ticks
    }
}

/// Round values from `low` to `high`, about `wanted` of them.
pub(crate) fn linear_ticks(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let span = high - low;
    if !span.is_finite() || span <= 0.0 || wanted == 0 {
        return Vec::new();
    }
    let rough = span / wanted as f64;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= rough * 0.999);
    let step = step.unwrap_or(power * 10.0);
    let first = (low / step).ceil();
    let count = ((high / step).floor() - first).clamp(-1.0, 40.0) as i32;
    (0..=count)
        .map(|i| (first + f64::from(i)) * step)
        .filter(|tick| *tick <= high * (1.0 + 1e-9))
        .collect()
}

/// Moves labels apart: `places` become at least `gap` from each other, in the same order, within `low` to `high` where
/// they fit. Returns the new places in the order given.
pub(super) fn spread(places: &[f64], gap: f64, low: f64, high: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by(|a, b| places[*a].total_cmp(&places[*b]));
    let mut result = places.to_vec();
    let mut floor = low;
    for index in &order {
        result[*index] = result[*index].max(floor);
        floor = result[*index] + gap;
    }
    let mut ceiling = high;
    for index in order.iter().rev() {
        result[*index] = result[*index].min(ceiling);
        ceiling = result[*index] - gap;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_axes_hold_their_ends_and_survive_nonsense() {
        let axis = Log::new(64.0, 65536.0, 0.0, 100.0);
        assert!((axis.at(64.0) - 0.0).abs() < 1e-9 && (axis.at(65536.0) - 100.0).abs() < 1e-9);
        assert!((axis.at(2048.0) - 50.0).abs() < 1e-9);
        for (low, high) in [
            (0.0, 0.0),
            (f64::NAN, 1.0),
            (5.0, 5.0),
            (1.0, f64::INFINITY),
            (-1.0, 2.0),
            (1e-300, 1e300),
        ] {
            let axis = Log::new(low, high, 0.0, 100.0);
            assert!(axis.ticks().len() < 60);
            for value in [0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 3.0] {
                assert!((0.0..=100.0).contains(&axis.at(value)), "{low} {high} {value}");
            }
        }
    }

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(Log::new(0.15, 8.0, 0.0, 1.0).ticks(), [0.2, 0.5, 1.0, 2.0, 5.0]);
        assert_eq!(linear_ticks(0.0, 1.0, 5).len(), 6);
        assert!(linear_ticks(1.0, 1.0, 5).is_empty() && linear_ticks(0.0, f64::INFINITY, 5).is_empty());
    }

    #[test]
    fn labels_do_not_touch() {
        let spread = spread(&[50.0, 50.0, 51.0, 2.0], 12.0, 0.0, 100.0);
        let mut sorted = spread.clone();
        sorted.sort_by(f64::total_cmp);
        assert!(
            sorted.windows(2).all(|pair| pair[1] - pair[0] >= 12.0 - 1e-9),
            "{spread:?}"
        );
        assert!(spread[0] < spread[1] && spread[1] < spread[2]);
    }
}
