//! What else went on while a window ran: readings of counters before and after, and their difference.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::measure::cgroup::Cgroup;
use crate::measure::parse::{self, MachineCpu, Throttle};
use crate::measure::{clock, cpu, energy, number};

/// One reading of every counter that exists here. A field is `None` where the system does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct NoiseSample {
    /// CPU time of the whole machine.
    pub cpu: Option<MachineCpu>,
    /// How the CPU quota of our control groups struck.
    pub throttle: Option<Throttle>,
    /// Thermal throttle events of all CPUs.
    pub thermal: Option<u64>,
    /// Pages read back from swap.
    pub swap_ins: Option<u64>,
    /// Involuntary context switches of the reading thread.
    pub preemptions: Option<u64>,
    /// Time the machine slept since boot, nanoseconds.
    pub suspended_ns: Option<u64>,
    /// Energy of all processor packages since the reader was made, joules.
    pub energy_j: Option<f64>,
}

/// What changed between two readings. A field is `None` where a counter is missing or ran backwards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Noise {
    /// Share of the machine's CPU time that the hypervisor kept, 0 to 1.
    pub steal: Option<f64>,
    /// Share of the machine's CPU time spent in soft interrupts, 0 to 1.
    pub softirq: Option<f64>,
    /// Quota periods in which we were held back.
    pub throttled_periods: Option<u64>,
    /// Time we were held back by a quota, seconds.
    pub throttled_s: Option<f64>,
    /// Thermal throttle events.
    pub thermal: Option<u64>,
    /// Pages read back from swap.
    pub swap_ins: Option<u64>,
    /// Involuntary context switches of the measuring thread.
    pub preemptions: Option<u64>,
    /// Time the machine slept, seconds.
    pub suspended_s: Option<f64>,
    /// Energy of all processor packages, joules.
    pub energy_j: Option<f64>,
}

impl Noise {
    /// The difference of two readings.
    pub fn between(before: &NoiseSample, after: &NoiseSample) -> Self {
        let share = |part: fn(&MachineCpu) -> u64| {
            let (before, after) = (before.cpu?, after.cpu?);
            let total = after.total().checked_sub(before.total()).filter(|ticks| *ticks > 0)?;
            Some((part(&after).checked_sub(part(&before))? as f64 / total as f64).min(1.0))
        };
        let rise = |old: Option<u64>, new: Option<u64>| new?.checked_sub(old?);
        let usec = |old, new| rise(old, new).map(|us| us as f64 * 1e-6);
        Self {
            steal: share(|cpu| cpu.steal),
            softirq: share(|cpu| cpu.softirq),
            throttled_periods: rise(before.throttle.map(|t| t.periods), after.throttle.map(|t| t.periods)),
            throttled_s: usec(before.throttle.map(|t| t.usec), after.throttle.map(|t| t.usec)),
            thermal: rise(before.thermal, after.thermal),
            swap_ins: rise(before.swap_ins, after.swap_ins),
            preemptions: rise(before.preemptions, after.preemptions),
            suspended_s: rise(before.suspended_ns, after.suspended_ns).map(|ns| ns as f64 * 1e-9),
            energy_j: after
                .energy_j
                .zip(before.energy_j)
                .map(|(after, before)| after - before),
        }
    }
}

/// Reads the counters; knows where they are, so that a reading costs a few small files and no search.
#[derive(Clone, Debug)]
pub struct NoiseReader {
    root: PathBuf,
    group: Option<Cgroup>,
    thermal: Vec<PathBuf>,
    energy: Option<energy::Meter>,
}

impl NoiseReader {
    /// Looks for the sources below `root`, `/` for this machine.
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            group: Cgroup::locate(root, "cpu"),
            thermal: thermal_files(root),
            energy: energy::Meter::open(root),
        }
    }

    /// Reads everything. Some 0.1 ms, so outside of the timed part.
    ///
    /// Preemptions and sleep are always those of the calling thread and of this machine, whatever the root.
    pub fn read(&mut self) -> NoiseSample {
        let text = |path: &str| std::fs::read_to_string(self.root.join(path)).ok();
        let thermal = self.thermal.iter().filter_map(|path| number(path));
        NoiseSample {
            cpu: text("proc/stat").and_then(|text| parse::machine_cpu(&text)),
            throttle: self.group.as_ref().and_then(Cgroup::throttle),
            thermal: thermal.reduce(u64::saturating_add),
            swap_ins: text("proc/vmstat").and_then(|text| parse::keyed(&text, "pswpin")),
            preemptions: cpu::preemptions(),
            suspended_ns: clock::suspended().and_then(|time| u64::try_from(time.as_nanos()).ok()),
            energy_j: self.energy.as_mut().and_then(energy::Meter::read),
        }
    }
}

/// Thermal throttle counters of all CPUs (x86 only).
fn thermal_files(root: &Path) -> Vec<PathBuf> {
    let Ok(folder) = std::fs::read_dir(root.join("sys/devices/system/cpu")) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = folder
        .filter_map(Result::ok)
        .flat_map(|entry| {
            let folder = entry.path().join("thermal_throttle");
            [
                folder.join("core_throttle_count"),
                folder.join("package_throttle_count"),
            ]
        })
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn a_made_up_machine() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let cpu = "sys/devices/system/cpu";
        write(root, &format!("{cpu}/cpu0/thermal_throttle/core_throttle_count"), "3\n");
        write(
            root,
            &format!("{cpu}/cpu1/thermal_throttle/package_throttle_count"),
            "4\n",
        );
        write(root, "proc/self/cgroup", "0::/\n");
        write(root, "proc/self/mountinfo", "25 1 0:22 / /cg rw - cgroup2 cgroup2 rw\n");
        let mut reader = NoiseReader::new(root);
        write(root, "proc/stat", "cpu 100 0 0 100 0 0 0 0 0 0\n");
        write(root, "proc/vmstat", "pswpin 5\n");
        write(root, "cg/cpu.stat", "nr_throttled 1\nthrottled_usec 10\n");
        let before = reader.read();
        write(root, "proc/stat", "cpu 150 0 0 120 0 0 10 20 0 0\n");
        write(root, "proc/vmstat", "pswpin 4\n");
        write(root, "cg/cpu.stat", "nr_throttled 4\nthrottled_usec 500010\n");
        write(root, &format!("{cpu}/cpu0/thermal_throttle/core_throttle_count"), "5\n");
        let noise = Noise::between(&before, &reader.read());
        assert_eq!((noise.steal, noise.softirq), (Some(0.2), Some(0.1)));
        assert_eq!((noise.throttled_periods, noise.throttled_s), (Some(3), Some(0.5)));
        assert_eq!(noise.thermal, Some(2));
        // A counter that ran backwards and a file that went away are absent, not zero.
        assert_eq!(noise.swap_ins, None);
        std::fs::remove_file(root.join("proc/stat")).unwrap();
        assert_eq!(Noise::between(&before, &reader.read()).steal, None);
    }

    #[test]
    fn an_empty_machine_tells_nothing() {
        let root = tempfile::tempdir().unwrap();
        let mut reader = NoiseReader::new(root.path());
        let sample = NoiseSample {
            preemptions: None,
            suspended_ns: None,
            ..reader.read()
        };
        assert_eq!(sample, NoiseSample::default());
        assert_eq!(Noise::between(&sample, &sample), Noise::default());
    }

    #[test]
    fn no_ticks_passed_is_not_a_share() {
        let sample = NoiseSample {
            cpu: Some(MachineCpu {
                user: 5,
                ..MachineCpu::default()
            }),
            ..Default::default()
        };
        assert_eq!(Noise::between(&sample, &sample).steal, None);
    }

    #[test]
    fn this_machine_can_be_read() {
        let mut reader = NoiseReader::new(Path::new("/"));
        let sample = reader.read();
        assert!(sample.cpu.is_some() && sample.preemptions.is_some());
    }
}
