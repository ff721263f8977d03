//! What a run shows while it works: the plan, and at a terminal lines on standard error that are drawn anew in place.

mod screen;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use sealway_lab::catalogue;
use sealway_lab::report::json;
use sealway_lab::report::live::{Live, announcement};
use sealway_lab::result::{PlanFacts, RunResult};
use sealway_lab::run::{Observer, Step};

use crate::output::{self, partial};
use crate::problem::{Problem, note};
use crate::stop::Stop;

use screen::Screen;

/// Time between two draws: more would take time from what is measured.
const APART: Duration = Duration::from_millis(250);

/// A draw takes microseconds: whoever has to wait longer than these waits for a terminal that is stopped.
const TRIES: u32 = 20;
const TRY: Duration = Duration::from_millis(10);

pub(crate) struct Progress {
    live: Live,
    view: Option<View>,
    draws: Draws,
    stop: Stop,
    partial: Option<Partial>,
}

impl Progress {
    /// Listens for Ctrl-C as well, once a process. `beside`: the result file that finished rounds are kept beside until the run
    /// ends.
    pub(crate) fn start(shown: bool, beside: Option<&Path>) -> Result<Progress, Problem> {
        let view = (shown && View::is_possible()).then(View::default);
        let drawn = view.clone();
        let stop = Stop::install(move || drawn.as_ref().is_none_or(View::end_soon))?;
        Ok(Progress {
            live: Live::new(catalogue::ALL),
            view,
            draws: Draws::default(),
            stop,
            partial: beside.map(Partial::beside),
        })
    }

    /// Takes the lines away: the run is over.
    pub(crate) fn clear(&self) {
        if let Some(view) = &self.view {
            view.end();
        }
    }

    /// Takes the partial file away: the result stands in its place.
    pub(crate) fn result_is_kept(&self) {
        if let Some(partial) = &self.partial {
            partial.remove();
        }
    }

    /// Says something that stays.
    fn say(&self, text: &str) {
        match &self.view {
            Some(view) => view.say(text),
            None => note(text),
        }
    }
}

impl Observer for Progress {
    fn linked(&mut self, link: &sealway_lab::result::EmulatedLink) {
        note(format_args!("emulated link: {}", link.line()));
    }

    fn planned(&mut self, plan: &PlanFacts) {
        self.say(&announcement(plan));
        self.live.planned(plan);
    }

    fn progress(&mut self, step: &Step<'_>) {
        if let Some(correction) = self.live.correction(step) {
            self.say(&correction);
        }
        self.live.step(step);
        if let Some(view) = &self.view {
            let timed = Duration::try_from_secs_f64(step.timed_s).unwrap_or_default();
            if self.draws.is_due(Instant::now(), timed) {
                view.draw(&self.live);
            }
        }
    }

    fn round_done(&mut self, partial: &RunResult) {
        self.live.round_done(partial);
        if let Some(file) = &mut self.partial
            && let Some(warning) = file.save(partial)
        {
            self.say(&warning);
        }
    }

    fn stopped(&self) -> bool {
        self.stop.asked()
    }
}

/// When to draw.
#[derive(Debug, Default)]
struct Draws(Option<Instant>);

impl Draws {
    /// Whether to draw before something that takes at least `timed`, in which nothing is drawn.
    fn is_due(&mut self, now: Instant, timed: Duration) -> bool {
        let due = timed >= 2 * APART || self.0.is_none_or(|last| now.duration_since(last) >= APART);
        if due {
            self.0 = Some(now);
        }
        due
    }
}

/// The lines on standard error. The thread that hears of Ctrl-C takes them away as well.
#[derive(Clone, Debug, Default)]
struct View(Arc<Mutex<Screen>>);

impl View {
    fn is_possible() -> bool {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
        std::io::stderr().is_terminal() && !dumb
    }

    fn draw(&self, live: &Live) {
        let stderr = std::io::stderr();
        let (columns, rows) = output::size(&stderr);
        let style = output::style(&stderr, false);
        // A line that ends in the last column, and a cursor below the last row, are drawn in as many ways as there are terminals.
        let lines = live.lines(columns.saturating_sub(1), rows.saturating_sub(1), &style);
        self.with(|screen| screen.draw(&lines, columns, style.color));
    }

    fn say(&self, text: &str) {
        let columns = output::size(&std::io::stderr()).0;
        self.with(|screen| format!("{}{text}\n", screen.clear(columns)));
    }

    fn end(&self) {
        let columns = output::size(&std::io::stderr()).0;
        self.with(|screen| screen.end(columns));
    }

    /// The same for a thread that must not wait for a terminal that takes nothing more; false if it does not.
    fn end_soon(&self) -> bool {
        let columns = output::size(&std::io::stderr()).0;
        for _ in 0..TRIES {
            let mut screen = match self.0.try_lock() {
                Ok(screen) => screen,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    std::thread::sleep(TRY);
                    continue;
                }
            };
            write(&screen.end(columns));
            return true;
        }
        false
    }

    /// Writes at once what the screen gives.
    fn with(&self, text: impl FnOnce(&mut Screen) -> String) {
        let mut screen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        write(&text(&mut screen));
    }
}

/// Writes to standard error; nobody is told when the terminal is gone.
fn write(text: &str) {
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
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

    /// Keeps a round; a warning if that fails for the first time.
    fn save(&mut self, run: &RunResult) -> Option<String> {
        if self.failed {
            return None;
        }
        // The run goes on: its figures are still worth having, and the last write may work again.
        let error = json::write(&self.path, run).err()?;
        self.failed = true;
        Some(format!("warning: finished rounds are not kept: {error}"))
    }

    fn remove(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_apart_and_long_visits_begin_with_one() {
        let mut pace = Draws::default();
        let (from, ms) = (Instant::now(), Duration::from_millis);
        assert!(pace.is_due(from, Duration::ZERO));
        assert!(!pace.is_due(from + ms(100), ms(100)));
        assert!(!pace.is_due(from + ms(249), Duration::ZERO));
        assert!(pace.is_due(from + ms(250), Duration::ZERO));
        // Nobody would see for seconds what is measured.
        assert!(pace.is_due(from + ms(260), ms(2000)));
    }

    #[test]
    fn a_view_that_is_being_drawn_holds_nobody_up() {
        let view = View::default();
        let drawing = view.0.lock().expect("nobody panicked");
        assert!(!view.end_soon());
        drop(drawing);
        assert!(view.end_soon());
        assert_eq!(
            view.0
                .lock()
                .expect("nobody panicked")
                .draw(&["late".to_owned()], 80, false),
            ""
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
