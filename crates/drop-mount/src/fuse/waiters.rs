//! Who waits, and whether they still want to.
//!
//! The FUSE library answers the kernel's interrupt requests with "not known", after which the kernel sends none. A task
//! that was killed while it waits would then hang until the answer comes. So tasks that wait longer than [`PATIENCE`]
//! are looked at: one that has a signal pending which it neither blocks nor ignores, or that is gone, wants no answer.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::tree::{Call, Cancel};
use sealway_drop::lock;

/// How long a call is left alone before its caller is looked at.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

/// Control calls under way.
#[derive(Default)]
pub(super) struct Calls {
    next: AtomicU64,
    active: Mutex<HashMap<u64, Active>>,
}

struct Active {
    thread: u32,
    since: Instant,
    cancel: Cancel,
    /// Goes on whatever signals come, unless the task is killed.
    steady: bool,
}

impl Calls {
    /// Does a call for `thread` that may take `time`.
    pub(super) fn run<T>(&self, thread: u32, time: Duration, call: impl FnOnce(&Call) -> T) -> T {
        self.run_as(thread, time, false, call)
    }

    /// The same; one that is `steady` is called off only for a task that is killed: programs do not expect changes of files to be
    /// interrupted, and one that was may have been done.
    pub(super) fn run_as<T>(&self, thread: u32, time: Duration, steady: bool, call: impl FnOnce(&Call) -> T) -> T {
        let of = Call::within(time);
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let active = Active {
            thread,
            since: Instant::now(),
            cancel: of.cancel.clone(),
            steady,
        };
        lock(&self.active).insert(id, active);
        let result = call(&of);
        lock(&self.active).remove(&id);
        result
    }

    /// Calls off what nobody waits for any more, or everything.
    pub(super) fn give_up(&self, all: bool) {
        let now = Instant::now();
        let tokens: Vec<Cancel> = {
            let active = lock(&self.active);
            let unwanted = |call: &&Active| {
                let unwanted = match call.steady {
                    true => is_killed,
                    false => is_interrupted,
                };
                all || (now.saturating_duration_since(call.since) >= PATIENCE && unwanted(call.thread))
            };
            active
                .values()
                .filter(unwanted)
                .map(|call| call.cancel.clone())
                .collect()
        };
        for token in tokens {
            token.cancel();
        }
    }

    /// Whether a call is under way.
    pub(super) fn is_waiting(&self) -> bool {
        !lock(&self.active).is_empty()
    }
}

/// Whether a task has been interrupted: it is gone, or a signal is pending that it neither blocks nor ignores. 0 stands
/// for a task that the kernel cannot name here, which is left alone.
pub(super) fn is_interrupted(thread: u32) -> bool {
    is_gone_or(thread, has_pending_signal)
}

/// Whether a task is gone, or about to be. What the default of a signal kills has SIGKILL pending too.
fn is_killed(thread: u32) -> bool {
    is_gone_or(thread, has_pending_kill)
}

/// Whether a task is gone, or what the system says of it is so.
fn is_gone_or(thread: u32, is_so: fn(&str) -> bool) -> bool {
    if thread == 0 {
        return false;
    }
    match std::fs::read_to_string(format!("/proc/{thread}/status")) {
        Ok(status) => is_so(&status),
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

const SIGKILL: u32 = 9;

fn has_pending_kill(status: &str) -> bool {
    has_pending(status, |[own, shared, ..]| (own | shared) & 1 << (SIGKILL - 1))
}

fn has_pending_signal(status: &str) -> bool {
    has_pending(status, |[own, shared, blocked, ignored]| {
        (own | shared) & !blocked & !ignored
    })
}

/// Whether `which` of the signals that are pending for the task, or for all of its process, that are blocked and ignored, are any.
fn has_pending(status: &str, which: impl Fn([u64; 4]) -> u64) -> bool {
    let mask = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        u64::from_str_radix(line.trim(), 16).ok()
    };
    let masks = (mask("SigPnd:"), mask("ShdPnd:"), mask("SigBlk:"), mask("SigIgn:"));
    let (Some(own), Some(shared), Some(blocked), Some(ignored)) = masks else {
        return false;
    };
    which([own, shared, blocked, ignored]) != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(own: &str, shared: &str, blocked: &str, ignored: &str) -> String {
        format!("Name:\tcat\nSigPnd:\t{own}\nShdPnd:\t{shared}\nSigBlk:\t{blocked}\nSigIgn:\t{ignored}\n")
    }

    #[test]
    fn only_a_signal_that_would_arrive_counts() {
        assert!(!has_pending_signal(&status("0", "0", "0", "0")));
        assert!(has_pending_signal(&status("0000000000000100", "0", "0", "0")));
        assert!(has_pending_signal(&status(
            "0",
            "0000000000000002",
            "0",
            "0000000000001000"
        )));
        assert!(has_pending_kill(&status("0000000000000100", "0", "0", "0")));
        assert!(!has_pending_kill(&status("2", "2", "0", "0")));
        assert!(!has_pending_signal(&status("2", "0", "2", "0")));
        assert!(!has_pending_signal(&status("0", "2", "0", "2")));
        assert!(!has_pending_signal("nothing"));
    }

    #[test]
    fn tasks_that_run_are_not_interrupted_and_tasks_that_are_gone_are() {
        assert!(!is_interrupted(std::process::id()));
        assert!(!is_interrupted(0));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let id = child.id();
        child.wait().unwrap();
        assert!(is_interrupted(id));
    }

    #[test]
    fn everything_under_way_can_be_called_off() {
        let calls = Calls::default();
        calls.run(std::process::id(), Duration::from_secs(600), |call| {
            assert!(calls.is_waiting());
            calls.give_up(false);
            assert!(!call.cancel.is_cancelled());
            calls.give_up(true);
            assert!(call.cancel.is_cancelled());
        });
        assert!(!calls.is_waiting());
    }
}
