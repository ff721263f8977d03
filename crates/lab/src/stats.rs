//! Statistics of rounds: what may be said about a handful of repeated windows, and what may not.
//!
//! The round is the unit of evidence: a window gives one value per metric, and everything here works on the values of
//! a few (3 to 16) rounds. All functions are pure and total. `NaN` among the input stands for a round without a value
//! and is left out; infinities are values (a request that never came back) and keep their place in the order. What
//! cannot be told comes back as `None`, or as `NaN` in a field that ends in a result file: both read "not known".
//!
//! * [`Summary`]: median, median absolute deviation, and a range or an order-statistics interval of one subject.
//! * [`ratio`]: one subject against another, paired by round: Hodges-Lehmann estimate on logarithms, exact signed-rank
//!   interval, smallest detectable effect, verdict. [`confirm`] adds Benjamini-Hochberg for long tables.
//! * [`flags`], of [`outliers`], [`has_two_modes`] and spread: whether the rounds can be believed.

mod describe;
mod discoveries;
pub(crate) mod latency;
mod metric;
mod random;
mod ratio;
mod shape;
mod signed_rank;

pub(crate) use describe::ends;
pub use describe::{How, Summary, mad, median, order_statistics_interval, quantile};
pub use discoveries::{benjamini_hochberg, confirm};
pub use metric::{Better, MetricKind, is_judged};
pub use random::SplitMix64;
pub(crate) use ratio::far_apart;
pub use ratio::{MIN_RANGE_ROUNDS, QUICK_MARGIN, Rules, Verdict, log_ratios, ratio, smallest_detectable, unpaired};
pub use shape::{flags, has_two_modes, outliers};
pub use signed_rank::{MAX_ROUNDS, hodges_lehmann, signed_rank_interval, signed_rank_p};

/// Rounds below which no interval is given: with five, no exact interval reaches 95 %.
pub const MIN_INTERVAL_ROUNDS: usize = 6;

/// Least coverage of every interval of the lab.
pub const LEVEL: f64 = 0.95;

/// Makes the median absolute deviation of normal data an estimate of their standard deviation.
pub const MAD_TO_SIGMA: f64 = 1.4826;

/// An interval with the coverage it really has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end, included.
    pub low: f64,
    /// Upper end, included.
    pub high: f64,
    /// Coverage, 0 to 1, exact.
    pub level: f64,
}
