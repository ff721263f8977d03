//! Which CPU a thread runs on, where the scheduler's choice would be a larger difference than what is compared.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// An end of a connection, which has a CPU of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum End {
    /// The one that accepts.
    Server,
    /// The one that connects.
    Client,
}

/// The CPUs that the calling thread may use.
pub(crate) fn allowed() -> rustix::io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// Keeps the calling thread, and the threads and programs that it starts, on these CPUs.
pub(crate) fn stay(cpus: &[usize]) -> rustix::io::Result<()> {
    let mut set = CpuSet::new();
    cpus.iter().for_each(|cpu| set.set(*cpu));
    sched_setaffinity(None, &set)
}

/// Keeps the calling thread, and the threads and programs that it starts, on the CPU of `end` until it is dropped; what was started
/// stays there. Does nothing where this process has one CPU, or where the system refuses.
pub(crate) fn hold(end: End) -> Held {
    let before = allowed().unwrap_or_default();
    if let Some(cpu) = cpu_of(end, &before) {
        // Refused, the figures are those of the scheduler's choice.
        let _ = stay(&[cpu]);
    }
    Held { before }
}

/// The first CPU of all is the server's, the second the client's.
fn cpu_of(end: End, all: &[usize]) -> Option<usize> {
    let [first, second, ..] = *all else { return None };
    Some(match end {
        End::Server => first,
        End::Client => second,
    })
}

/// A thread that is kept on a CPU.
#[derive(Debug)]
pub(crate) struct Held {
    before: Vec<usize>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = stay(&self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_have_cpus_of_their_own() {
        let ends = |cpus: &[usize]| [End::Server, End::Client].map(|end| cpu_of(end, cpus));
        assert_eq!(ends(&[3, 5, 7]), [Some(3), Some(5)]);
        assert_eq!(ends(&[4]), [None, None]);
        assert_eq!(ends(&[]), [None, None]);
    }

    #[test]
    fn threads_are_held_and_let_go() {
        let now = || allowed().unwrap_or_default();
        let before = now();
        let held = hold(End::Client);
        if let Some(cpu) = cpu_of(End::Client, &before) {
            let inherited = std::thread::spawn(now).join().ok();
            assert_eq!(inherited, Some(vec![cpu]));
        }
        drop(held);
        assert_eq!(now(), before);
    }
}
