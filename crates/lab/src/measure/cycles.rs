//! CPU cycles that one thread takes in user space, by the counter of the processor behind Linux's `perf_event_open`.
//!
//! Most virtual machines have none, and `kernel.perf_event_paranoid` above 2 keeps it for root.

use std::io;

use perf_event::events::{Event, Hardware};
use perf_event::{Builder, Counter};

use crate::measure::energy::Access;

/// Name of the figure of a window that has the cycles of its timed part.
pub const FIGURE: &str = "cycles";

/// The command that lets everybody count what their own programs do in user space, until the next start.
pub const OPEN: &str = "sudo sysctl kernel.perf_event_paranoid=2";

/// How the counter of this machine stands. `listed`: whether the system lists one, where it lists any device. A call that is
/// refused does not tell.
pub fn access(listed: Option<bool>) -> Access {
    judge(count(Hardware::CPU_CYCLES), listed)
}

fn judge<T>(opened: io::Result<T>, listed: Option<bool>) -> Access {
    match opened {
        Ok(_) => Access::Open,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && listed != Some(false) => Access::Closed,
        Err(_) => Access::Absent,
    }
}

/// Counts an event of the calling thread in user space, from now on.
fn count(event: impl Into<Event>) -> io::Result<Counter> {
    let mut counter = Builder::new().kind(event).build()?;
    counter.enable()?;
    Ok(counter)
}

/// What a counter shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) count: u64,
    /// How long it was to count, nanoseconds.
    pub(crate) enabled: u64,
    /// How long it did: less where counters take turns, or the thread was on a core of another kind.
    pub(crate) running: u64,
}

type Source = Box<dyn FnMut() -> Option<Reading>>;

/// Counts the cycles of a thread.
pub(crate) struct Meter(Option<Source>);

impl Meter {
    /// A meter of the calling thread. Without a counter it has no figure.
    pub(crate) fn open() -> Meter {
        count(Hardware::CPU_CYCLES).map_or(Meter(None), Meter::by)
    }

    fn by(mut counter: Counter) -> Meter {
        Meter::of(move || {
            let shown = counter.read_count_and_time().ok()?;
            Some(Reading {
                count: shown.count,
                enabled: shown.time_enabled,
                running: shown.time_running,
            })
        })
    }

    /// A meter that reads from `source`.
    pub(crate) fn of(source: impl FnMut() -> Option<Reading> + 'static) -> Meter {
        Meter(Some(Box::new(source)))
    }

    /// Cycles since the meter was opened; `None` from when the counter fails or has missed some of the time: what it counted
    /// then is a guess.
    pub(crate) fn read(&mut self) -> Option<u64> {
        let shown = self.0.as_mut()?();
        let whole = shown.filter(|shown| shown.running == shown.enabled);
        if whole.is_none() {
            self.0 = None;
        }
        whole.map(|shown| shown.count)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use perf_event::events::Software;
    use rustix::io::Errno;

    use super::*;
    use crate::measure::clock::thread_cpu;

    #[test]
    fn what_is_refused_is_told_from_what_is_not_there() {
        let access = |errno: Errno, listed| judge(Err::<(), _>(errno.into()), listed);
        for errno in [Errno::ACCESS, Errno::PERM] {
            assert_eq!(access(errno, Some(true)), Access::Closed);
            assert_eq!(access(errno, None), Access::Closed);
            assert_eq!(access(errno, Some(false)), Access::Absent);
        }
        for errno in [Errno::NOENT, Errno::OPNOTSUPP, Errno::NODEV, Errno::NOSYS] {
            assert_eq!(access(errno, Some(true)), Access::Absent);
        }
        assert_eq!(judge(Ok(()), Some(false)), Access::Open);
    }

    #[test]
    fn a_gap_stays_a_gap() {
        for gap in [None, Some(9)] {
            let mut reads = 0;
            let mut meter = Meter::of(move || {
                reads += 1;
                let running = if reads == 2 { gap? } else { 10 };
                let enabled = 10;
                Some(Reading {
                    count: 70,
                    enabled,
                    running,
                })
            });
            assert_eq!([meter.read(), meter.read(), meter.read()], [Some(70), None, None]);
        }
    }

    /// Takes 5 ms of CPU time.
    fn work() {
        let start = thread_cpu().unwrap();
        while thread_cpu().unwrap() - start < Duration::from_millis(5) {}
    }

    /// The calls are those of cycles; the clock of the scheduler, in nanoseconds, is there on every machine.
    #[test]
    fn one_thread_is_counted() {
        let Ok(counter) = count(Software::TASK_CLOCK) else {
            // A container may forbid the call.
            return;
        };
        let mut meter = Meter::by(counter);
        let mut rise = |work: &dyn Fn()| {
            let before = meter.read().unwrap();
            work();
            meter.read().unwrap() - before
        };
        let own = rise(&work);
        let foreign = rise(&|| std::thread::spawn(work).join().unwrap());
        assert!(own > 4_000_000, "{own} ns of 5 ms");
        assert!(foreign < 4_000_000, "{foreign} ns of another thread's 5 ms");
    }
}
