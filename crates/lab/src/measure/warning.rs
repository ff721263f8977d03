//! Warnings of the lab: a stable code, where it applies, what was found, and what to do.

use crate::result::Warning;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $advice:literal;)*) => {
        /// What a reader must know before believing a row. The code is stable; programs match on it.
        #[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
        #[non_exhaustive]
        pub enum WarningCode {
            $($(#[$doc])* $name,)*
        }

        impl WarningCode {
            /// Every code, in alphabetical order.
            pub const ALL: &'static [WarningCode] = &[$(WarningCode::$name),*];

            /// The text in the result file, such as `shared-cpu`.
            pub const fn code(self) -> &'static str {
                match self {
                    $(WarningCode::$name => $code,)*
                }
            }

            /// What the user can do about it, one or two sentences.
            pub const fn advice(self) -> &'static str {
                match self {
                    $(WarningCode::$name => $advice,)*
                }
            }
        }
    };
}

codes! {
    /// The machine runs on battery, where clock speed is held down.
    Battery = "battery", "Connect the mains, then repeat.";
    /// The canary ran at another speed in some windows than in the rest of the run.
    Canary = "canary", "Close other programs, fix the clock speed, or let the machine cool; then repeat.";
    /// The time limit left no room for some cases.
    CasesDropped = "cases-dropped", "Give more time, as with `--budget 5m`, choose fewer cases or peers, or a shorter profile.";
    /// A cell gave no figure because its subject failed.
    CellFailed = "cell-failed", "Read the subject's own words; the other cells are not affected.";
    /// A cell gave no figure because its subject is absent or cannot do this case.
    CellUnavailable = "cell-unavailable", "Install the subject or leave it out; the other cells are not affected.";
    /// A cell gave wrong data; its figures are not used.
    CellWrong = "cell-wrong", "Do not use this subject here before the cause is known; please report it.";
    /// The kernel's clock source is not the CPU's own counter.
    Clocksource = "clocksource", "Windows stay valid, single operations under 10 us do not; on bare metal, find out \
        why the kernel gave up the CPU's counter (`dmesg | grep -i clocksource`).";
    /// The clock moves in large steps.
    CoarseClock = "coarse-clock", "Use longer windows; do not read single operations.";
    /// This process may not open as many files as a case has connections.
    FewFiles = "few-files", "Raise the hard limit (`ulimit -Hn`), then repeat.";
    /// CPU frequency is left to a governor that lowers it.
    Governor = "governor", "For steady figures: `sudo cpupower frequency-set -g performance`.";
    /// The run ended before all windows were done.
    Interrupted = "interrupted", "Rows have fewer rounds than planned; repeat for the full picture.";
    /// Interrupts took a large share of the machine.
    Interrupts = "interrupts", "Stop network or disk work on this machine, then repeat.";
    /// The emulated link is not the one that was asked for.
    LinkNotKept = "link-not-kept", "Read the figures as those of the link that was measured, ask for a lower rate, or use a machine with more CPUs.";
    /// There is too little room in memory for what a case moves.
    NoRoom = "no-room", "These cases are measured on a disk; in a container, give it more shared memory (`--shm-size=4g`).";
    /// The time limit was up before all rounds were done.
    OutOfTime = "out-of-time", "Some rows have fewer rounds than planned; give more time, as with `--budget 5m`, or choose fewer cases or peers.";
    /// The measuring thread had to wait for its CPU.
    Preempted = "preempted", "Other programs ran on the same CPU; close them, then repeat.";
    /// A control group allows less CPU than the machine has.
    Quota = "cpu-quota", "Raise the container's CPU limit above one CPU, or measure outside of it.";
    /// Rounds were repeated because something spoiled them.
    Repeated = "repeated", "Both versions are in the file; the tables use the repeated ones.";
    /// Everything shares one or two CPUs.
    SharedCpu = "shared-cpu", "Believe ratios before absolute figures; use a machine with 4 or more CPUs for records.";
    /// The hypervisor kept CPU time from this machine.
    Steal = "steal", "Neighbours on the same host compete with you; repeat at another time or on a dedicated host.";
    /// The machine slept during the run.
    Suspended = "suspended", "Keep the machine awake, then repeat.";
    /// Memory came back from swap during a window.
    Swap = "swap", "Free memory, then repeat.";
    /// The CPU slowed down because it was hot.
    Thermal = "thermal", "Improve cooling or lower the clock speed, then repeat.";
    /// A CPU quota held the lab back.
    Throttled = "throttled", "Raise the container's CPU limit, or measure outside of it.";
    /// A subject delivered what was changed on the wire of a stack that seals: it does not do the work of the others.
    Unauthenticated = "unauthenticated", "Its rows are shown and never ranked, and no ratio is to it. Do not use it for this \
        transport before the cause is known.";
    /// A list of CPU features to hide names something else.
    UnknownFeature = "unknown-feature", "The word was ignored; `sealway cpu` lists the names.";
}

impl WarningCode {
    /// The warning as it stands in the result file: `finding` with its numbers, then the advice.
    pub fn warn(self, place: &str, finding: &str) -> Warning {
        let text = if finding.is_empty() {
            self.advice().to_owned()
        } else {
            format!("{finding} {}", self.advice())
        };
        Warning {
            code: self.code().to_owned(),
            place: place.to_owned(),
            text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_stable_words() {
        let mut codes: Vec<&str> = WarningCode::ALL.iter().map(|code| code.code()).collect();
        let all = codes.len();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), all);
        for code in codes {
            assert!(code.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{code}");
        }
    }

    #[test]
    fn texts_say_what_and_what_to_do() {
        for code in WarningCode::ALL {
            let warning = code.warn("cpu 0", "Found 3.");
            assert_eq!(warning.code, code.code());
            assert_eq!(warning.place, "cpu 0");
            assert!(
                warning.text.starts_with("Found 3. ") && warning.text.ends_with('.'),
                "{}",
                warning.text
            );
            assert!(!warning.text.contains("  "), "{}", warning.text);
        }
        assert_eq!(WarningCode::Swap.warn("", "").text, WarningCode::Swap.advice());
    }
}
