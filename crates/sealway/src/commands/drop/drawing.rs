//! How far a transfer is, drawn for people: the file under way and all of it, each with its rate and the time left.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, ProgressBar, ProgressStyle};
use sealway_drop_transfer::progress::{FileSnapshot, Progress, Snapshot};
use sealway_drop_transfer::receive::cut;

use super::screen;

/// Time between two looks.
const EVERY: Duration = Duration::from_millis(100);

/// Before that there is nothing to see: a transfer that is over at once is not drawn.
const EARLY: Duration = Duration::from_millis(300);

/// A rate is that of so much time.
const WINDOW: Duration = Duration::from_secs(5);

/// Columns below which there is one short line.
const WIDE: usize = 80;

/// Columns of the bar.
const BAR: usize = 20;

/// Draws until it is stopped.
pub(super) fn draw(bar: &ProgressBar, progress: &Progress, stop: &AtomicBool) {
    // A template that does not parse is a fault of this file; a plain bar is drawn then.
    if let Ok(style) = ProgressStyle::with_template("{msg}") {
        bar.set_style(style);
    }
    let (mut begun, mut rates) = (None, Rates::default());
    while !stop.load(Ordering::Relaxed) {
        // What somebody thought about the offer is no time of the transfer.
        if progress.has_begun() {
            let now = Instant::now();
            let begun = *begun.get_or_insert(now);
            let (all, file) = (progress.snapshot(), progress.under_way());
            rates.look(now, &all, file.as_ref());
            if now - begun > EARLY {
                bar.set_message(rates.text(screen::columns(), &all, file.as_ref()));
            }
        }
        std::thread::park_timeout(EVERY);
    }
    screen::draw(None);
    bar.finish_and_clear();
}

/// Bytes a second over the last seconds.
#[derive(Default)]
struct Meter(VecDeque<(Instant, u64)>);

impl Meter {
    fn look(&mut self, now: Instant, moved: u64) {
        self.0.push_back((now, moved));
        // One that is older stays, so that a window is full.
        while self.0.get(1).is_some_and(|second| now - second.0 >= WINDOW) {
            self.0.pop_front();
        }
    }

    fn rate(&self) -> f64 {
        let (Some(first), Some(last)) = (self.0.front(), self.0.back()) else {
            return 0.0;
        };
        let time = (last.0 - first.0).as_secs_f64();
        // What was lost with a connection is not counted any more.
        let moved = last.1.saturating_sub(first.1) as f64;
        if time > 0.0 { moved / time } else { 0.0 }
    }
}

/// How fast all of it and the file under way move.
#[derive(Default)]
pub(super) struct Rates {
    all: Meter,
    file: Meter,
    name: String,
}

impl Rates {
    /// It is so far now.
    pub(super) fn look(&mut self, now: Instant, all: &Snapshot, file: Option<&FileSnapshot>) {
        self.all.look(now, all.bytes);
        if let Some(file) = file {
            if file.name != self.name {
                self.name.clone_from(&file.name);
                self.file = Meter::default();
            }
            self.file.look(now, file.moved);
        }
    }

    /// Bytes a second, of all of it.
    pub(super) fn rate(&self) -> f64 {
        self.all.rate()
    }

    /// Time until all of it is there, if it goes on so.
    pub(super) fn left(&self, all: &Snapshot) -> Option<Duration> {
        left(all.total_bytes.saturating_sub(done(all)), self.all.rate())
    }

    /// What is drawn: two lines while a larger file is under way, else one; on a narrow terminal a short one.
    fn text(&self, columns: usize, all: &Snapshot, file: Option<&FileSnapshot>) -> String {
        let total = match all.total_bytes {
            0 => 1.0,
            total => done(all) as f64 / total as f64,
        };
        let pace = pace(self.all.rate(), self.left(all));
        let short = format!("{:3.0}%  {pace}", total * 100.0)
            .chars()
            .take(columns)
            .collect();
        if columns < WIDE {
            return short;
        }
        let full = (total * BAR as f64) as usize;
        let bar = "█".repeat(full.min(BAR)) + &"░".repeat(BAR.saturating_sub(full));
        let of = format!("{} of {}", HumanBytes(done(all)), HumanBytes(all.total_bytes));
        let plain = format!("{of}, {} of {} files  {pace}", all.files, all.total_files);
        let fits = |line: &String| line.chars().count() <= columns;
        let line = [format!("{bar}  {plain}"), plain]
            .into_iter()
            .find(fits)
            .unwrap_or(short);
        match file {
            Some(file) => format!("{}\n{line}", self.file_line(columns, file)),
            None => line,
        }
    }

    fn file_line(&self, columns: usize, file: &FileSnapshot) -> String {
        let rate = self.file.rate();
        let (of, pace) = (
            format!("{} of {}", HumanBytes(file.done), HumanBytes(file.size)),
            pace(rate, left(file.size - file.done, rate)),
        );
        let name = cut(&file.name, columns.saturating_sub(of.len() + pace.len() + 4));
        format!("{name}  {of}  {pace}")
    }
}

fn done(all: &Snapshot) -> u64 {
    all.bytes.saturating_add(all.kept).min(all.total_bytes)
}

fn left(bytes: u64, rate: f64) -> Option<Duration> {
    (rate >= 1.0).then(|| Duration::from_secs_f64((bytes as f64 / rate).min(1e9)))
}

/// A rate, and the time left by it.
fn pace(rate: f64, left: Option<Duration>) -> String {
    match left {
        Some(left) => format!("{}/s  {} left", HumanBytes(rate as u64), short(left)),
        None => "0 B/s".to_owned(),
    }
}

/// A time in one or two units, rounded up: nobody waits longer than was said.
fn short(time: Duration) -> String {
    let seconds = time.as_secs_f64().ceil() as u64;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {:02} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn all(bytes: u64) -> Snapshot {
        Snapshot {
            bytes,
            kept: 20 * MIB,
            files: 3,
            total_bytes: 1020 * MIB,
            total_files: 7,
            ..Snapshot::default()
        }
    }

    fn file(name: &str, moved: u64) -> FileSnapshot {
        FileSnapshot {
            name: name.to_owned(),
            moved,
            done: moved,
            size: 200 * MIB,
        }
    }

    /// Ten seconds at 10 MiB/s in all, and at 4 MiB/s of the file.
    fn after_ten_seconds() -> Rates {
        let (begun, mut rates) = (Instant::now(), Rates::default());
        for tenth in 0..=100u64 {
            let now = begun + Duration::from_millis(100 * tenth);
            rates.look(now, &all(tenth * MIB), Some(&file("a name", tenth * MIB * 2 / 5)));
        }
        rates
    }

    #[test]
    fn the_file_and_all_of_it_have_their_rates_and_times() {
        let text = after_ten_seconds().text(100, &all(100 * MIB), Some(&file("a name", 40 * MIB)));
        let expected = "a name  40.00 MiB of 200.00 MiB  4.00 MiB/s  40 s left\n\
            ██░░░░░░░░░░░░░░░░░░  120.00 MiB of 1020.00 MiB, 3 of 7 files  10.00 MiB/s  1 min 30 s left";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_narrow_terminal_has_one_line_and_no_line_is_too_long() {
        let (rates, long) = (after_ten_seconds(), "x".repeat(300));
        assert_eq!(
            rates.text(60, &all(100 * MIB), Some(&file("a name", MIB))),
            " 12%  10.00 MiB/s  1 min 30 s left"
        );
        for columns in 1..200 {
            let text = rates.text(columns, &all(100 * MIB), Some(&file(&long, MIB)));
            assert_eq!(text.lines().count(), if columns < WIDE { 1 } else { 2 });
            assert!(
                text.lines().all(|line| line.chars().count() <= columns),
                "{columns}: {text}"
            );
        }
        assert_eq!(rates.text(100, &all(MIB), None).lines().count(), 1);
    }

    #[test]
    fn a_rate_is_that_of_the_last_seconds_and_of_this_file() {
        let (begun, mut rates) = (Instant::now(), Rates::default());
        let at = |seconds| begun + Duration::from_secs(seconds);
        for second in 0..=20 {
            // It stops after ten seconds.
            rates.look(
                at(second),
                &all(second.min(10) * MIB),
                Some(&file("first", second * MIB)),
            );
        }
        assert!(rates.rate() < 0.1 && rates.left(&all(10 * MIB)).is_none());
        assert!(rates.text(50, &all(10 * MIB), None).ends_with("0 B/s"));
        assert!((rates.file.rate() / MIB as f64 - 1.0).abs() < 0.01);
        // Another file begins anew; bytes that were lost are no negative rate.
        rates.look(at(21), &all(5 * MIB), Some(&file("second", 7 * MIB)));
        assert!(rates.file.rate() < 0.1 && rates.rate() < 0.1);
        rates.look(at(22), &all(6 * MIB), Some(&file("second", 9 * MIB)));
        assert!((rates.file.rate() / MIB as f64 - 2.0).abs() < 0.01);
    }

    #[test]
    fn times_are_rounded_up() {
        let of = |seconds| short(Duration::from_secs_f64(seconds));
        assert_eq!([of(0.2), of(59.9), of(61.0)], ["1 s", "1 min 00 s", "1 min 01 s"]);
        assert_eq!([of(3600.0), of(90_000.0)], ["1 h 00 min", "1 d 01 h"]);
    }
}
