//! What a run shows while it works: the plan, then a bar on standard error when that is a terminal.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sealway_lab::report::json;
use sealway_lab::result::{PlanFacts, RunResult};
use sealway_lab::run::Observer;

use crate::output::partial;
use crate::problem::note;
use crate::stop::Stop;

/// Redraws a second; more would take time from what is measured.
const DRAWS_PER_SECOND: u8 = 2;

pub(crate) struct Progress {
    bar: ProgressBar,
    stop: Stop,
    partial: Option<Partial>,
}

impl Progress {
    /// `beside`: the result file that finished rounds are kept beside until the run ends.
    pub(crate) fn new(shown: bool, stop: Stop, beside: Option<&Path>) -> Progress {
        let bar = if shown && std::io::stderr().is_terminal() {
            ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(DRAWS_PER_SECOND))
        } else {
            ProgressBar::hidden()
        };
        // A template that does not parse is a fault of this file; the plain bar still works then.
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos}/{len}  {eta} left  {wide_msg}") {
            bar.set_style(style);
        }
        Progress {
            bar,
            stop,
            partial: beside.map(Partial::beside),
        }
    }

    /// Takes the bar away: the run is over.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    /// Takes the partial file away: the result stands in its place.
    pub(crate) fn result_is_kept(&self) {
        if let Some(partial) = &self.partial {
            partial.remove();
        }
    }
}

impl Observer for Progress {
    fn planned(&mut self, plan: &PlanFacts) {
        note(format_args!(
            "{} cells, {} rounds of {} s windows: about {}",
            plan.cells,
            plan.rounds,
            plan.window_s,
            time(plan.expected_s)
        ));
    }

    fn progress(&mut self, done: u32, total: u32, current: &str) {
        self.bar.set_length(u64::from(total));
        self.bar.set_position(u64::from(done));
        self.bar.set_message(current.to_string());
    }

    fn round_done(&mut self, partial: &RunResult) {
        if let Some(file) = &mut self.partial {
            file.save(partial);
        }
    }

    fn stopped(&self) -> bool {
        self.stop.asked()
    }
}

/// Seconds in words, rounded up so that nobody waits longer than was said.
fn time(seconds: f64) -> String {
    if seconds < 90.0 {
        format!("{:.0} s", seconds.ceil())
    } else {
        format!("{:.0} min", (seconds / 60.0).ceil())
    }
}

/// The rounds done so far, kept for a run that is killed.
struct Partial {
    path: PathBuf,
    /// Saving failed once; the reason was told.
    failed: bool,
}

impl Partial {
    fn beside(target: &Path) -> Partial {
        Partial {
            path: partial(target),
            failed: false,
        }
    }

    fn save(&mut self, run: &RunResult) {
        if self.failed {
            return;
        }
        // The run goes on: its figures are still worth having, and the last write may work again.
        if let Err(error) = json::write(&self.path, run) {
            self.failed = true;
            note(format_args!("warning: finished rounds are not kept: {error}"));
        }
    }

    fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_up() {
        assert_eq!(
            [time(0.2), time(58.01), time(89.9), time(90.1), time(3600.0)],
            ["1 s", "59 s", "90 s", "2 min", "60 min"]
        );
    }

    #[test]
    fn the_partial_file_stands_beside_the_target() {
        assert_eq!(
            Partial::beside(Path::new("a/out.json")).path,
            Path::new("a/out.json.partial")
        );
    }
}
