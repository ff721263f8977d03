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

/// Keeps the calling thread, and the threads and programs that it starts, on the CPU of `end` until it is dropped; what was started
/// stays there. Does nothing where this process has one CPU, or where the system refuses.
pub(crate) fn hold(end: End) -> Held {
    let before = sched_getaffinity(None).ok();
    if let Some(cpu) = before.as_ref().and_then(|all| cpu_of(end, all)) {
        let mut one = CpuSet::new();
        one.set(cpu);
        // The figures are those of the scheduler's choice then.
        let _ = sched_setaffinity(None, &one);
    }
    Held { before }
}

/// The first CPU of all is the server's, the second the client's.
fn cpu_of(end: End, all: &CpuSet) -> Option<usize> {
    let mut cpus = (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu));
    let (first, second) = (cpus.next()?, cpus.next()?);
    Some(match end {
        End::Server => first,
        End::Client => second,
    })
}

/// A thread that is kept on a CPU.
#[derive(Debug)]
pub(crate) struct Held {
    before: Option<CpuSet>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = sched_setaffinity(None, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(cpus: &[usize]) -> CpuSet {
        let mut set = CpuSet::new();
        cpus.iter().for_each(|cpu| set.set(*cpu));
        set
    }

    #[test]
    fn ends_have_cpus_of_their_own() {
        let ends = |cpus: &[usize]| [End::Server, End::Client].map(|end| cpu_of(end, &set(cpus)));
        assert_eq!(ends(&[3, 5, 7]), [Some(3), Some(5)]);
        assert_eq!(ends(&[4]), [None, None]);
        assert_eq!(ends(&[]), [None, None]);
    }

    #[test]
    fn threads_are_held_and_let_go() {
        let now = || sched_getaffinity(None).ok();
        let before = now();
        let held = hold(End::Client);
        let wanted = before.as_ref().and_then(|all| cpu_of(End::Client, all));
        let inherited = std::thread::spawn(now).join().ok().flatten();
        if let Some(cpu) = wanted {
            assert_eq!(inherited, Some(set(&[cpu])));
        }
        drop(held);
        assert_eq!(now(), before);
    }
}
