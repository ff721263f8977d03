//! What the system knows of this process.

use std::time::Duration;

use rustix::process::{Resource, getrlimit};

/// Numbers of this process. What cannot be read is 0.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Process {
    /// Memory that it holds, bytes.
    pub(super) resident: u64,
    /// Addresses that it has taken, bytes.
    pub(super) virtual_size: u64,
    pub(super) threads: u64,
    /// Descriptors that are open.
    pub(super) descriptors: u64,
    /// Descriptors that it may have. 0: any number.
    pub(super) max_descriptors: u64,
    /// Time that processors have worked for it.
    pub(super) cpu: Duration,
}

impl Process {
    /// As it is now.
    pub(super) fn read() -> Process {
        let text = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
        let mut process = of_status(&text("status"));
        process.cpu = of_stat(&text("stat"), rustix::param::clock_ticks_per_second());
        process.descriptors = descriptors();
        process.max_descriptors = getrlimit(Resource::Nofile).current.unwrap_or_default();
        process
    }
}

/// The system tells their number as the size of the folder (Linux 6.2), or lists them.
fn descriptors() -> u64 {
    match std::fs::metadata("/proc/self/fd") {
        Ok(folder) if folder.len() > 0 => folder.len(),
        _ => std::fs::read_dir("/proc/self/fd").map_or(0, |all| all.count() as u64),
    }
}

/// Of `/proc/self/status`.
fn of_status(text: &str) -> Process {
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let word = line.and_then(|line| line.split_whitespace().next());
        word.and_then(|word| word.parse::<u64>().ok()).unwrap_or_default()
    };
    Process {
        resident: number("VmRSS:") << 10,
        virtual_size: number("VmSize:") << 10,
        threads: number("Threads:"),
        ..Process::default()
    }
}

/// Time in programs and in the system, of `/proc/self/stat`. The name of the program may hold anything.
fn of_stat(text: &str, ticks_per_second: u64) -> Duration {
    let fields = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks.saturating_mul(1000) / ticks_per_second.max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_threads_and_descriptors() {
        let before = Process::read();
        let _open: Vec<_> = (0..200).map(|_| std::fs::File::open("/dev/null").unwrap()).collect();
        let after = Process::read();
        assert!(
            before.resident > 1 << 20 && before.virtual_size > before.resident,
            "{before:?}"
        );
        assert!(before.threads > 0 && before.max_descriptors > 10, "{before:?}");
        // Other tests open and close some as well.
        assert!(after.descriptors > before.descriptors + 100, "{before:?}, {after:?}");
    }

    #[test]
    fn what_the_system_writes_is_read() {
        let status = "Name:\ta\nVmSize:\t  2048 kB\nVmRSS:\t 1024 kB\nThreads:\t7\n";
        let read = of_status(status);
        assert_eq!((read.virtual_size, read.resident, read.threads), (2 << 20, 1 << 20, 7));
        let stat = "1 (a) b) ) S 2 3 4 5 6 7 8 9 10 11 150 50 99 99";
        assert_eq!(of_stat(stat, 100), Duration::from_secs(2));
        assert_eq!((of_status(""), of_stat("", 100)), (Process::default(), Duration::ZERO));
    }
}
