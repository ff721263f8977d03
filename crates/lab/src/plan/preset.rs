//! Windows as somebody else's measurement had them.

use std::time::Duration;

use super::{Layout, Overhead, Plan, PlanError, Size};

/// A published way to measure a stream, in place of a profile's windows.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Preset {
    /// As `iperf3 -t 60`: 60 s from the first byte on, one stream. Three rounds, so that there is a spread.
    Iperf3,
}

impl Preset {
    /// Every preset.
    pub const ALL: [Preset; 1] = [Preset::Iperf3];

    /// Name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Preset::Iperf3 => "iperf3",
        }
    }

    /// The preset called `name`.
    pub fn named(name: &str) -> Option<Preset> {
        Preset::ALL.into_iter().find(|preset| preset.name() == name)
    }

    const fn rounds(self) -> u32 {
        match self {
            Preset::Iperf3 => 3,
        }
    }

    const fn window(self) -> Duration {
        match self {
            Preset::Iperf3 => Duration::from_secs(60),
        }
    }

    /// A plan for all cells of `layout`, however long that takes.
    ///
    /// # Errors
    /// [`PlanError::NoCells`] for an empty layout.
    pub(crate) fn plan(self, layout: Layout, overhead: Overhead) -> Result<Plan, PlanError> {
        if layout.cases() == 0 {
            return Err(PlanError::NoCells);
        }
        let (rounds, window) = (self.rounds(), self.window());
        let size = Size {
            cells: u32::try_from(layout.cells()).unwrap_or(u32::MAX),
            rounds,
        };
        Ok(Plan {
            rounds,
            window,
            warmup: Duration::ZERO,
            expected: size.duration(overhead, window),
            layout,
            cases_dropped: 0,
            visit: window + overhead.per_window,
            limit: None,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_preset_has_its_own_windows_and_no_limit() {
        let overhead = Overhead {
            per_cell: Duration::from_secs(1),
            per_window: Duration::from_secs(2),
        };
        let plan = Preset::Iperf3.plan(Layout::by_case([1, 1, 2]), overhead).unwrap();
        assert_eq!(plan.rounds, 3);
        assert_eq!(plan.window, Duration::from_secs(60));
        assert_eq!(plan.warmup, Duration::ZERO);
        assert_eq!(plan.expected, Duration::from_secs(3 + 9 * 62));
        assert_eq!((plan.limit, plan.cases_dropped, plan.layout.cells()), (None, 0, 3));
        let none = Layout::by_case(Vec::<u32>::new());
        assert_eq!(Preset::Iperf3.plan(none, overhead), Err(PlanError::NoCells));
        assert_eq!(Preset::named("iperf3"), Some(Preset::Iperf3));
        assert_eq!(Preset::named("wrk"), None);
    }
}
