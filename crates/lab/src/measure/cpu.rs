//! CPU time of processes, each figure with a letter for its source, and context switches.

use std::path::Path;
use std::time::Duration;

use crate::measure::parse;

/// Where a time figure comes from; its letter is written beside every figure in the result file.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Method {
    /// `P`: the process CPU clock of POSIX (`clock_getcpuclockid`). Nanoseconds, whole thread group, finished
    /// threads included. Must be read before the process is reaped.
    Process,
    /// `S`: `/proc/PID/stat`, in ticks. 10 ms: 50 ms of CPU time carries an error of a fifth.
    Stat,
    /// `T`: wall time. Not CPU time at all.
    Wall,
    /// `C`: CPU clock of the measuring thread alone. Nanoseconds.
    Thread,
    /// `E`: energy counters of the processor packages. Whole packages, whoever works on them; they move every millisecond.
    Package,
    /// `H`: hardware counter of cycles, of the measuring thread alone and in user space.
    Counter,
    /// `W`: `wait4` at the exit of a child. Microseconds, a whole life, with the children it waited for.
    Wait,
}

impl Method {
    /// The letter for the result file.
    pub const fn letter(self) -> char {
        match self {
            Method::Process => 'P',
            Method::Stat => 'S',
            Method::Wall => 'T',
            Method::Thread => 'C',
            Method::Package => 'E',
            Method::Counter => 'H',
            Method::Wait => 'W',
        }
    }
}

/// CPU time that process `pid` has used so far, by the best source there is: its CPU clock, else `/proc/PID/stat`.
///
/// The process must still exist (a child: not yet waited for). `None` if it does not or the system has no source.
pub fn process_cpu_of(pid: u32) -> Option<(Method, Duration)> {
    if let Some(time) = clock_of(pid) {
        return Some((Method::Process, time));
    }
    stat_of(Path::new("/"), pid).map(|time| (Method::Stat, time))
}

fn clock_of(pid: u32) -> Option<Duration> {
    // 0 would mean "myself" to the system, which is never what a caller with a number means.
    let pid = i32::try_from(pid).ok().filter(|pid| *pid > 0)?;
    let clock = nix::time::ClockId::pid_cpu_clock_id(nix::unistd::Pid::from_raw(pid)).ok()?;
    clock.now().ok().map(Duration::from)
}

/// CPU time that a thread of this process has used so far; `None` where it has ended or the system has no such clock.
pub(crate) fn thread_cpu_of(thread: rustix::thread::Pid) -> Option<Duration> {
    // Linux makes the clock's number of the thread's: its complement, then 1 for one thread, then 2 for time on a CPU.
    let clock = nix::time::ClockId::from_raw(!thread.as_raw_pid() << 3 | 0b110);
    clock.now().ok().map(Duration::from)
}

/// User and system time of `pid` from `proc/PID/stat` below `root`, without its children.
fn stat_of(root: &Path, pid: u32) -> Option<Duration> {
    let text = std::fs::read(root.join(format!("proc/{pid}/stat"))).ok()?;
    // Program names are bytes, not text.
    let [user, system] = parse::process_ticks(&String::from_utf8_lossy(&text))?;
    ticks(user.checked_add(system)?)
}

/// Ticks of `/proc` as time; their length is `sysconf(_SC_CLK_TCK)`, 100 a second on every Linux of today.
fn ticks(count: u64) -> Option<Duration> {
    let rate = rustix::param::clock_ticks_per_second();
    let whole = count.checked_div(rate)?;
    let part = (count % rate).checked_mul(1_000_000_000)? / rate;
    Some(Duration::new(whole, u32::try_from(part).ok()?))
}

/// How often the kernel took the CPU away from the calling thread although it wanted to go on, since it began.
///
/// `None` where the system does not count this for one thread.
pub fn preemptions() -> Option<u64> {
    use nix::sys::resource::{UsageWho, getrusage};
    u64::try_from(getrusage(UsageWho::RUSAGE_THREAD).ok()?.involuntary_context_switches()).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn letters_stay() {
        use Method::*;
        let letters = [Process, Stat, Wall, Thread, Package, Counter, Wait].map(Method::letter);
        assert_eq!(letters, ['P', 'S', 'T', 'C', 'E', 'H', 'W']);
    }

    #[test]
    fn stat_is_read_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("proc/71");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(
            folder.join("stat"),
            b"71 (a) \xff b) S 1 1 1 0 -1 0 1 2 3 4 150 25 0 0 20 0 1",
        )
        .unwrap();
        assert_eq!(stat_of(root.path(), 71), ticks(175));
        assert_eq!(stat_of(root.path(), 72), None);
        assert!(ticks(u64::MAX).is_some());
    }

    #[test]
    fn another_thread_has_a_clock() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let spent = || crate::measure::clock::thread_cpu().unwrap();
            while spent() < Duration::from_millis(10) {}
            tell.send((rustix::thread::gettid(), spent())).unwrap();
            let _ = ended.recv();
        });
        let (number, spent) = told.recv().unwrap();
        let seen = thread_cpu_of(number).unwrap();
        assert!(
            seen >= spent && seen <= crate::measure::clock::process_cpu().unwrap(),
            "{seen:?} of {spent:?}"
        );
        drop(end);
        thread.join().unwrap();
    }

    #[test]
    fn another_process_has_a_clock() {
        // This process seen by its number, as another one would be.
        let (method, time) = process_cpu_of(std::process::id()).unwrap();
        assert_eq!(method, Method::Process);
        assert!(time <= crate::measure::clock::process_cpu().unwrap());
        assert_eq!(process_cpu_of(u32::MAX), None);
        assert_eq!(process_cpu_of(0), None);
        assert!(preemptions().is_some());
    }
}
