//! Energy of the processor packages, by the counters (RAPL, of Intel and AMD) that Linux shows below `sys/class/powercap`.
//!
//! They count whole packages, whoever works on them. Since CVE-2020-8694 only root may read them, unless they are opened.

use std::path::{Path, PathBuf};

use crate::measure::number;

/// Name of the figure of a window that has its energy in joules.
pub const FIGURE: &str = "energy";

/// The command that lets everybody read the counters until the next start.
pub const OPEN: &str = "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj";

/// Whether the counters may be read.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// None shows, as is usual in a virtual machine.
    Absent,
    /// There are some, and this process cannot read each of them.
    Closed,
    /// All can be read.
    Open,
}

impl Access {
    /// The machine's fact about it.
    pub fn fact(self) -> Option<&'static str> {
        match self {
            Access::Absent => None,
            Access::Closed => Some("closed"),
            Access::Open => Some("open"),
        }
    }
}

/// How the counters below `root` stand, `/` for this machine.
pub fn access(root: &Path) -> Access {
    match Meter::open(root) {
        Some(_) => Access::Open,
        None if packages(root).is_empty() => Access::Absent,
        None => Access::Closed,
    }
}

/// Adds up what all packages use.
#[derive(Clone, Debug)]
pub struct Meter {
    /// Empty once one of them could not be read.
    packages: Vec<Package>,
    microjoules: u64,
}

#[derive(Clone, Debug)]
struct Package {
    counter: PathBuf,
    /// The counter starts again from 0 behind this.
    range: u64,
    last: u64,
}

impl Meter {
    /// A meter of the packages below `root`; `None` without any, or if one cannot be read: a sum of the others would be of
    /// another machine.
    pub fn open(root: &Path) -> Option<Meter> {
        let packages = packages(root).into_iter().map(|folder| {
            let range: u64 = number(&folder.join("max_energy_range_uj"))?;
            let counter = folder.join("energy_uj");
            let last = number::<u64>(&counter).filter(|now| *now <= range)?;
            Some(Package { counter, range, last })
        });
        let packages = packages.collect::<Option<Vec<Package>>>()?;
        (!packages.is_empty()).then_some(Meter {
            packages,
            microjoules: 0,
        })
    }

    /// Joules since the meter was opened; `None` from when a counter is gone or has no number in its range.
    ///
    /// A counter that goes round between two readings is followed, one that goes round twice is not: that takes minutes.
    pub fn read(&mut self) -> Option<f64> {
        let risen: Option<Vec<u64>> = self.packages.iter_mut().map(Package::rise).collect();
        match risen {
            Some(risen) if !risen.is_empty() => {
                self.microjoules = risen.into_iter().fold(self.microjoules, u64::saturating_add);
                Some(self.microjoules as f64 * 1e-6)
            }
            _ => {
                self.packages.clear();
                None
            }
        }
    }
}

impl Package {
    /// What was added since the last reading.
    fn rise(&mut self) -> Option<u64> {
        let now = number::<u64>(&self.counter).filter(|now| *now <= self.range)?;
        let before = std::mem::replace(&mut self.last, now);
        Some(now.checked_sub(before).unwrap_or(self.range - before + now))
    }
}

/// Folders of the packages. Cores and memory are parts of one (`intel-rapl:0:0`), `psys` has all again, and what
/// `intel-rapl-mmio` shows are the same packages.
fn packages(root: &Path) -> Vec<PathBuf> {
    let Ok(folder) = std::fs::read_dir(root.join("sys/class/powercap")) else {
        return Vec::new();
    };
    let is_package = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_prefix("intel-rapl:"));
        number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
            && std::fs::read_to_string(path.join("name")).is_ok_and(|name| name.starts_with("package"))
    };
    let paths = folder.filter_map(Result::ok).map(|entry| entry.path());
    paths.filter(is_package).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const POWERCAP: &str = "sys/class/powercap";

    fn set(root: &Path, domain: &str, file: &str, text: &str) {
        let folder = root.join(POWERCAP).join(domain);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(file), text).unwrap();
    }

    fn domain(root: &Path, domain: &str, name: &str, energy: &str) {
        set(root, domain, "name", name);
        set(root, domain, "max_energy_range_uj", "262143328850\n");
        set(root, domain, "energy_uj", energy);
    }

    #[test]
    fn packages_are_added_up_and_their_parts_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(access(root), Access::Absent);
        domain(root, "intel-rapl:0", "package-0\n", "1000000\n");
        domain(root, "intel-rapl:1", "package-1\n", "5\n");
        domain(root, "intel-rapl:0:0", "core\n", "7\n");
        domain(root, "intel-rapl:2", "psys\n", "7\n");
        domain(root, "intel-rapl-mmio:0", "package-0\n", "7\n");
        assert_eq!(access(root), Access::Open);
        let mut meter = Meter::open(root).unwrap();
        assert_eq!(meter.read(), Some(0.0));
        set(root, "intel-rapl:0", "energy_uj", "3000000\n");
        set(root, "intel-rapl:1", "energy_uj", "500005\n");
        for other in ["intel-rapl:0:0", "intel-rapl:2", "intel-rapl-mmio:0"] {
            set(root, other, "energy_uj", "900000000\n");
        }
        assert_eq!(meter.read(), Some(2.5));
    }

    #[test]
    fn a_counter_that_goes_round_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        domain(root, "intel-rapl:0", "package-0", "262143000000");
        let mut meter = Meter::open(root).unwrap();
        set(root, "intel-rapl:0", "energy_uj", "671150");
        assert_eq!(meter.read(), Some(1.0));
    }

    #[test]
    fn one_that_vanishes_or_has_no_number_ends_the_sum() {
        for spoil in [None, Some("many"), Some(""), Some("-5"), Some("999999999999999")] {
            let folder = tempfile::tempdir().unwrap();
            let root = folder.path();
            domain(root, "intel-rapl:0", "package-0", "10");
            domain(root, "intel-rapl:1", "package-1", "10");
            let mut meter = Meter::open(root).unwrap();
            assert!(meter.read().is_some());
            match spoil {
                Some(text) => set(root, "intel-rapl:1", "energy_uj", text),
                None => std::fs::remove_dir_all(root.join(POWERCAP).join("intel-rapl:1")).unwrap(),
            }
            assert_eq!(meter.read(), None, "{spoil:?}");
            domain(root, "intel-rapl:1", "package-1", "20");
            assert_eq!(meter.read(), None, "a gap stays a gap");
        }
    }

    #[test]
    fn a_package_that_cannot_be_read_closes_all() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        domain(root, "intel-rapl:0", "package-0", "10");
        set(root, "intel-rapl:1", "name", "package-1");
        set(root, "intel-rapl:1", "max_energy_range_uj", "100");
        assert!(Meter::open(root).is_none());
        assert_eq!(access(root), Access::Closed);
    }
}
