//! The plan of a run: how many rounds, how long a window, in which order.
//!
//! Rounds are outermost, then cases, then the subjects of a case side by side; nothing is ever "all of A, then all of
//! B". [`Plan::new`] fits a [`Profile`] to the cells and a time limit; [`Plan::schedule`] gives the order. All pure:
//! the seed is an argument and goes into the result file.

mod order;
mod preset;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

pub use order::{Layout, schedule, williams};
pub use preset::Preset;

use crate::result::PlanFacts;

/// How much time a run takes to be believed.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Profile {
    /// 3 rounds of 0.5 s after 0.2 s of warm-up, windows shortened to fit about 50 s: medians and range, no intervals,
    /// no winners under 20 %.
    Quick,
    /// 9 rounds of 2 s after 0.5 s: everyday answers.
    #[default]
    Standard,
    /// 15 rounds of 10 s after 2 s: records and publications.
    Full,
}

impl Profile {
    /// Every profile, shortest first.
    pub const ALL: [Profile; 3] = [Profile::Quick, Profile::Standard, Profile::Full];

    /// Name on the command line and in result files.
    pub const fn as_str(self) -> &'static str {
        match self {
            Profile::Quick => "quick",
            Profile::Standard => "standard",
            Profile::Full => "full",
        }
    }

    /// Rounds before rounding up to whole squares. A plan never has fewer, whatever the time limit.
    pub const fn rounds(self) -> u32 {
        match self {
            Profile::Quick => 3,
            Profile::Standard => 9,
            Profile::Full => 15,
        }
    }

    /// Length of a window without a time limit.
    pub const fn window(self) -> Duration {
        match self {
            Profile::Quick => Duration::from_millis(500),
            Profile::Standard => Duration::from_secs(2),
            Profile::Full => Duration::from_secs(10),
        }
    }

    /// Warm-up before a window of full length; a shorter window has a proportionally shorter one.
    pub const fn warmup(self) -> Duration {
        match self {
            Profile::Quick => Duration::from_millis(200),
            Profile::Standard => Duration::from_millis(500),
            Profile::Full => Duration::from_secs(2),
        }
    }

    /// Shortest window a time limit can lead to; below it cases are left out instead. 20 ms for quick is several
    /// scheduler ticks; 100 ms for standard makes a 10 ms clock step 10 %; full keeps a tenth of its length.
    pub const fn shortest_window(self) -> Duration {
        match self {
            Profile::Quick => Duration::from_millis(20),
            Profile::Standard => Duration::from_millis(100),
            Profile::Full => Duration::from_secs(1),
        }
    }

    /// Time limit when the user gave none: 50 s for quick, so that a run with its start and report stays under a
    /// minute; none for the others.
    pub const fn limit(self) -> Option<Duration> {
        match self {
            Profile::Quick => Some(Duration::from_secs(50)),
            Profile::Standard | Profile::Full => None,
        }
    }

    /// Whether results carry intervals.
    pub const fn intervals(self) -> bool {
        !matches!(self, Profile::Quick)
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is not the name of a profile.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UnknownProfile(pub String);

impl fmt::Display for UnknownProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown profile {:?}: use quick, standard or full", self.0)
    }
}

impl std::error::Error for UnknownProfile {}

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(text: &str) -> Result<Self, UnknownProfile> {
        Profile::ALL
            .into_iter()
            .find(|profile| profile.as_str() == text)
            .ok_or_else(|| UnknownProfile(text.to_owned()))
    }
}

/// Time that is spent besides warm-up and windows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Overhead {
    /// Once per cell: verification and allocation before the first round.
    pub per_cell: Duration,
    /// Once per window: canaries, the check of its outputs, bookkeeping.
    pub per_window: Duration,
}

/// What will be run, decided before the first window.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plan {
    /// Visits to every cell.
    pub rounds: u32,
    /// Length of a timed window.
    pub window: Duration,
    /// Warm-up before each window.
    pub warmup: Duration,
    /// The cells that remain, by case.
    pub layout: Layout,
    /// Cases at the end of the list that the time limit left no room for; say so to the user.
    pub cases_dropped: usize,
    /// Expected duration of the whole run.
    pub expected: Duration,
    /// Expected duration of a visit with its warm-up and window; less than these where visits end with what they do.
    pub visit: Duration,
    /// The time limit that it was fitted to.
    pub limit: Option<Duration>,
}

/// Why there is no plan.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PlanError {
    /// There is nothing to measure.
    NoCells,
    /// Not even the first case with the shortest windows fits.
    LimitTooShort {
        /// The time that was allowed.
        limit: Duration,
        /// The time that the first case takes.
        needed: Duration,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::NoCells => {
                f.write_str("nothing to measure: no case has a subject; choose other suites, cases or peers")
            }
            PlanError::LimitTooShort { limit, needed } => write!(
                f,
                "the time limit of {:.1} s is too short: the first case, with the programs that take whole seconds, takes {:.1} s; raise the limit, choose fewer \
                 peers or a shorter profile",
                limit.as_secs_f64(),
                needed.as_secs_f64()
            ),
        }
    }
}

impl std::error::Error for PlanError {}

impl Plan {
    /// Fits `profile` to the cells of `layout` and to `limit` (the profile's own when `None`). Windows are never shorter than
    /// `least`, which is no longer than [`Profile::window`].
    ///
    /// A limit lowers windows first, warm-up along with them, down to [`Profile::shortest_window`]; then it drops
    /// cases from the end of the layout, so list the important ones first. It never lowers rounds: standard and full
    /// always have the rounds that intervals need. Where no case has more than four subjects, the round count is
    /// rounded up to whole Williams squares of the case with most, so that every order occurs equally often there.
    ///
    /// # Errors
    /// [`PlanError::NoCells`] for an empty layout, [`PlanError::LimitTooShort`] when the first case alone is too long.
    pub fn new(
        least: Duration,
        profile: Profile,
        mut layout: Layout,
        overhead: Overhead,
        limit: Option<Duration>,
    ) -> Result<Plan, PlanError> {
        let shortest = profile.shortest_window().max(least);
        let cases = layout.cases();
        if cases == 0 {
            return Err(PlanError::NoCells);
        }
        let limit = limit.or(profile.limit());
        loop {
            let size = Size::of(profile, &layout);
            if let Some(window) = size.window(profile, shortest, overhead, limit) {
                let warmup = warmup(profile, window);
                let expected = size.duration(overhead, window + warmup);
                let cases_dropped = cases - layout.cases();
                return Ok(Plan {
                    rounds: size.rounds,
                    window,
                    warmup,
                    layout,
                    cases_dropped,
                    expected,
                    visit: warmup + window + overhead.per_window,
                    limit,
                });
            }
            if layout.cases() == 1 {
                let needed = size.duration(overhead, shortest + warmup(profile, shortest));
                return Err(PlanError::LimitTooShort {
                    limit: limit.unwrap_or(Duration::MAX),
                    needed,
                });
            }
            layout.truncate(layout.cases() - 1);
        }
    }

    /// The order of the visits: cell indices for each round. See [`schedule`].
    pub fn schedule(&self, seed: u64) -> Vec<Vec<usize>> {
        schedule(&self.layout, self.rounds, seed)
    }

    /// The plan as it goes into the result file.
    pub fn facts(&self) -> PlanFacts {
        PlanFacts {
            rounds: self.rounds,
            window_s: self.window.as_secs_f64(),
            warmup_s: self.warmup.as_secs_f64(),
            cells: u32::try_from(self.layout.cells()).unwrap_or(u32::MAX),
            expected_s: self.expected.as_secs_f64(),
            taken_s: 0.0,
        }
    }
}

/// Warm-up for a window: in the profile's proportion.
fn warmup(profile: Profile, window: Duration) -> Duration {
    window.mul_f64(profile.warmup().as_secs_f64() / profile.window().as_secs_f64())
}

/// Numbers of a run that its duration depends on.
#[derive(Clone, Copy)]
struct Size {
    cells: u32,
    rounds: u32,
}

impl Size {
    fn of(profile: Profile, layout: &Layout) -> Self {
        let cells = u32::try_from(layout.cells()).unwrap_or(u32::MAX);
        let square = match layout.largest_case() {
            subjects @ 0..=4 => u32::try_from(williams(subjects).len()).unwrap_or(1).max(1),
            _ => 1,
        };
        Size {
            cells,
            rounds: profile.rounds().next_multiple_of(square),
        }
    }

    fn visits(self) -> u32 {
        self.cells.saturating_mul(self.rounds)
    }

    fn duration(self, overhead: Overhead, visit: Duration) -> Duration {
        let visit = visit.saturating_add(overhead.per_window);
        overhead
            .per_cell
            .saturating_mul(self.cells)
            .saturating_add(visit.saturating_mul(self.visits()))
    }

    /// The longest window, in whole milliseconds when shortened, that keeps the limit; `None` when the shortest is too
    /// long.
    fn window(
        self,
        profile: Profile,
        shortest: Duration,
        overhead: Overhead,
        limit: Option<Duration>,
    ) -> Option<Duration> {
        let Some(limit) = limit else {
            return Some(profile.window());
        };
        let rest = limit.checked_sub(self.duration(overhead, Duration::ZERO))?;
        let visit = rest / self.visits().max(1);
        let share = profile.window().as_secs_f64() / (profile.window() + profile.warmup()).as_secs_f64();
        let window = visit.mul_f64(share);
        if window >= profile.window() {
            return Some(profile.window());
        }
        let window = Duration::from_millis(u64::try_from(window.as_millis()).unwrap_or(u64::MAX));
        (window >= shortest).then_some(window)
    }
}

#[cfg(test)]
mod tests;
