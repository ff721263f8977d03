//! Parsers for the text files of the kernel that tell about noise. Total: any text gives `Some` or `None`.

/// CPU time of the whole machine since boot, in ticks of 10 ms (`/proc/stat`, first line).
///
/// Guest time is left out of the fields because the kernel already counts it as user time.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MachineCpu {
    /// User and nice time.
    pub user: u64,
    /// System time, without interrupts.
    pub system: u64,
    /// Idle time, waiting for I/O included.
    pub idle: u64,
    /// Hard interrupts; 0 on kernels without interrupt time accounting.
    pub irq: u64,
    /// Soft interrupts; mostly charged to processes on kernels without interrupt time accounting.
    pub softirq: u64,
    /// Time in which a virtual CPU wanted to run and the hypervisor did not let it.
    pub steal: u64,
}

impl MachineCpu {
    /// All ticks, saturating.
    pub fn total(&self) -> u64 {
        [self.user, self.system, self.idle, self.irq, self.softirq, self.steal]
            .iter()
            .fold(0, |sum: u64, part| sum.saturating_add(*part))
    }
}

/// Reads the `cpu` line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
///
/// The last five may be missing (very old kernels); the first four must be there.
pub fn machine_cpu(text: &str) -> Option<MachineCpu> {
    let line = text
        .lines()
        .find(|line| line.split_ascii_whitespace().next() == Some("cpu"))?;
    let mut ticks = [0_u64; 8];
    let mut seen = 0;
    for (slot, word) in ticks.iter_mut().zip(line.split_ascii_whitespace().skip(1)) {
        *slot = word.parse().ok()?;
        seen += 1;
    }
    if seen < 4 {
        return None;
    }
    let [user, nice, system, idle, iowait, irq, softirq, steal] = ticks;
    Some(MachineCpu {
        user: user.saturating_add(nice),
        system,
        idle: idle.saturating_add(iowait),
        irq,
        softirq,
        steal,
    })
}

/// How often and for how long a CPU quota held this control group back, since the group began.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Throttle {
    /// Enforcement periods in which the group was held back.
    pub periods: u64,
    /// Time held back, microseconds.
    pub usec: u64,
}

/// Reads `cpu.stat` of a control group: version 2 (`throttled_usec`) and version 1 (`throttled_time`, ns).
///
/// `None` where the group has no quota accounting, as at the root of the tree.
pub fn throttle(text: &str) -> Option<Throttle> {
    let periods = keyed(text, "nr_throttled")?;
    let usec = keyed(text, "throttled_usec").or_else(|| keyed(text, "throttled_time").map(|ns| ns / 1000))?;
    Some(Throttle { periods, usec })
}

/// A value of `/proc/meminfo`, in bytes.
pub fn meminfo(text: &str, key: &str) -> Option<u64> {
    let mut words = status(text, key)?.split_ascii_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    match words.next() {
        Some("kB") => number.checked_mul(1024),
        None => Some(number),
        Some(_) => None,
    }
}

/// Number after a key in a list of `key value` lines (`/proc/vmstat`, `cpu.stat`).
pub fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(char::is_whitespace)?;
        if name == key { value.trim().parse().ok() } else { None }
    })
}

/// Value of a `Key:\tvalue` line of `/proc/PID/status`, trimmed.
pub fn status<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
        .map(str::trim)
}

/// The numbers in a list of CPUs such as `0-3,8,10-11`, as the kernel writes it.
///
/// `None` for an empty list, a reversed range, anything but digits, a number that is not below `end`, or more than `end` of them.
pub fn list(text: &str, end: usize) -> Option<Vec<usize>> {
    let number = |text: &str| -> Option<usize> {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|number| digits && *number < end)
    };
    let mut numbers = Vec::new();
    for part in text.trim().split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        numbers.extend(first..=last);
        if last < first || numbers.len() > end {
            return None;
        }
    }
    Some(numbers)
}

/// Number of CPUs in such a list; `None` also for more than 2^20.
pub fn list_len(text: &str) -> Option<u32> {
    u32::try_from(list(text, 1 << 20)?.len()).ok()
}

/// CPU ticks of one process: user and system (`/proc/PID/stat`, fields 14 and 15).
///
/// The second field is the program name in parentheses, which may itself hold spaces and parentheses: everything
/// up to the last `)` is skipped.
pub fn process_ticks(text: &str) -> Option<[u64; 2]> {
    let (_, rest) = text.rsplit_once(')')?;
    // `rest` starts with field 3, so field 14 is word 11.
    let mut words = rest.split_ascii_whitespace().skip(11);
    let mut ticks = || words.next()?.parse().ok();
    Some([ticks()?, ticks()?])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use proptest::prelude::*;

    const STAT: &str =
        "cpu  22616 5 6743 94591 884 1 78 31 7 0\ncpu0 10830 0 2609 48888 107 0 21 11 0 0\nctxt 508321\n";

    #[test]
    fn machine_line_is_summed() {
        let cpu = machine_cpu(STAT).unwrap();
        assert_eq!(
            cpu,
            MachineCpu {
                user: 22621,
                system: 6743,
                idle: 95475,
                irq: 1,
                softirq: 78,
                steal: 31
            }
        );
        assert_eq!(cpu.total(), 22621 + 6743 + 95475 + 1 + 78 + 31);
        assert_eq!(machine_cpu("cpu 1 2 3 4\n").unwrap().steal, 0);
    }

    #[test]
    fn machine_line_refuses_nonsense() {
        for text in [
            "",
            "cpu",
            "cpu 1 2 3",
            "cpu0 1 2 3 4 5 6 7 8",
            "cpu 1 2 x 4",
            "cpu -1 2 3 4",
            "cpuu 1 2 3 4",
        ] {
            assert_eq!(machine_cpu(text), None, "{text:?}");
        }
        assert_eq!(
            machine_cpu("cpu 18446744073709551615 1 2 3 4 5 6 7").unwrap().total(),
            u64::MAX
        );
    }

    #[test]
    fn quota_of_both_versions() {
        let v2 = "usage_usec 9\nnr_periods 10\nnr_throttled 3\nthrottled_usec 4500\n";
        assert_eq!(throttle(v2), Some(Throttle { periods: 3, usec: 4500 }));
        let v1 = "nr_periods 10\nnr_throttled 3\nthrottled_time 4500999\n";
        assert_eq!(throttle(v1), Some(Throttle { periods: 3, usec: 4500 }));
        assert_eq!(throttle("usage_usec 9\nuser_usec 5\n"), None);
        assert_eq!(throttle("nr_throttled 3\nthrottled_usec many\n"), None);
    }

    #[test]
    fn small_files() {
        assert_eq!(
            meminfo("MemTotal:       4026532 kB\nMemAvailable: 7 kB\n", "MemAvailable"),
            Some(7168)
        );
        assert_eq!(meminfo("HugePages_Total:    3\n", "HugePages_Total"), Some(3));
        assert_eq!(meminfo("MemTotal:  18446744073709551615 kB\n", "MemTotal"), None);
        assert_eq!(meminfo("MemTotalX: 5 kB\n", "MemTotal"), None);
        assert_eq!(meminfo("MemTotal: 5 MB\n", "MemTotal"), None);
        assert_eq!(keyed("pswpin 12\npswpout 13\n", "pswpout"), Some(13));
        assert_eq!(keyed("pswpinner 12\n", "pswpin"), None);
        assert_eq!(
            status("Name:\tx\nCpus_allowed_list:\t0-1\n", "Cpus_allowed_list"),
            Some("0-1")
        );
    }

    #[test]
    fn lists() {
        assert_eq!(list_len("0-3,8,10-11\n"), Some(7));
        assert_eq!(list_len("0"), Some(1));
        for text in ["", "3-1", "a", "0-", "0-4294967295", "0-4294967294,1", "-"] {
            assert_eq!(list_len(text), None, "{text:?}");
        }
        assert_eq!(list("3,0-2\n", 4), Some(vec![3, 0, 1, 2]));
        for text in ["4", "0-4", "+1", "0-3,0", "1, 2"] {
            assert_eq!(list(text, 4), None, "{text:?}");
        }
    }

    #[test]
    fn process_line_survives_any_name() {
        let line = |name: &str| format!("71 ({name}) S 1 71 71 0 -1 4194560 1 2 3 4 501 602 7 8 20 0 1 0 99 1 1\n");
        for name in ["cat", "a b", ") R 1 2 3 (", "((", "", ")))"] {
            assert_eq!(process_ticks(&line(name)), Some([501, 602]), "{name:?}");
        }
        assert_eq!(process_ticks("71 (cat) S 1 71 71"), None);
        assert_eq!(process_ticks("71 cat S 1 71 71"), None);
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "\\PC{0,200}", words in proptest::collection::vec("[a-z0-9:/=,. ()-]{0,12}", 0..30)) {
            for text in [text, words.join(" "), words.join("\n")] {
                let _ = (machine_cpu(&text), throttle(&text));
                let _ = (meminfo(&text, "MemTotal"), keyed(&text, "a"), status(&text, "a"));
                let _ = (list_len(&text), process_ticks(&text));
            }
        }
    }
}
