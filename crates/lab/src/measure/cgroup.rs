//! The control group this process lives in: its CPU quota, how often that quota struck, and its memory limit.
//!
//! A quota set by a container platform is the commonest silent killer of a measurement: the machine looks idle and the
//! process is not allowed to run. Limits of all groups above count, as far as they can be seen from inside.

use std::path::{Component, Path, PathBuf};

use crate::measure::number;
use crate::measure::parse::{self, Throttle};

/// Folders of one controller, innermost first.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Cgroup {
    version: u8,
    folders: Vec<PathBuf>,
}

impl Cgroup {
    /// Finds the group of this process for `controller` (`cpu` or `memory`) in the tree below `root`.
    ///
    /// Looks for version 1 first because a mixed system keeps the controller there. `None` without control groups.
    pub fn locate(root: &Path, controller: &str) -> Option<Self> {
        let groups = std::fs::read_to_string(root.join("proc/self/cgroup")).ok()?;
        let mounts = std::fs::read_to_string(root.join("proc/self/mountinfo")).ok()?;
        let (version, path) = membership(&groups, controller)?;
        let mount = mounts.lines().filter_map(Mount::parse).find(|mount| match version {
            1 => mount.kind == "cgroup" && mount.options.split(',').any(|option| option == controller),
            _ => mount.kind == "cgroup2",
        })?;
        Some(Self {
            version,
            folders: folders(root, &mount, path),
        })
    }

    /// 1 or 2.
    pub const fn version(&self) -> u8 {
        self.version
    }

    /// How much the quotas of this group and those above held it back since they began.
    pub fn throttle(&self) -> Option<Throttle> {
        self.texts("cpu.stat")
            .filter_map(|text| parse::throttle(&text))
            .reduce(|sum, next| Throttle {
                periods: sum.periods.saturating_add(next.periods),
                usec: sum.usec.saturating_add(next.usec),
            })
    }

    /// CPUs the group may use, the tightest of all quotas; `None` without a quota.
    pub fn cpu_limit(&self) -> Option<f64> {
        let limits: Vec<f64> = if self.version == 1 {
            self.folders
                .iter()
                .filter_map(|folder| {
                    let quota: i64 = number(&folder.join("cpu.cfs_quota_us"))?;
                    let period: i64 = number(&folder.join("cpu.cfs_period_us"))?;
                    (quota > 0 && period > 0).then(|| quota as f64 / period as f64)
                })
                .collect()
        } else {
            self.texts("cpu.max").filter_map(|text| cpu_max(&text)).collect()
        };
        limits.into_iter().reduce(f64::min)
    }

    /// Bytes of memory the group may use, the tightest of all limits; `None` without a limit.
    pub fn memory_limit(&self) -> Option<u64> {
        let file = if self.version == 1 {
            "memory.limit_in_bytes"
        } else {
            "memory.max"
        };
        // Version 1 says "no limit" with the largest multiple of a page; nothing has 2^60 bytes.
        self.texts(file)
            .filter_map(|text| text.trim().parse().ok())
            .filter(|bytes: &u64| *bytes < 1 << 60)
            .min()
    }

    fn texts<'a>(&'a self, file: &'a str) -> impl Iterator<Item = String> + 'a {
        self.folders
            .iter()
            .filter_map(move |folder| std::fs::read_to_string(folder.join(file)).ok())
    }
}

/// Version and path of the group that holds `controller`, from `/proc/self/cgroup`.
fn membership<'a>(text: &'a str, controller: &str) -> Option<(u8, &'a str)> {
    let lines = || {
        text.lines().filter_map(|line| {
            let mut parts = line.splitn(3, ':');
            Some((parts.next()?, parts.next()?, parts.next()?))
        })
    };
    let first = lines().find(|(_, names, _)| names.split(',').any(|name| name == controller));
    let second = || lines().find(|(id, names, _)| *id == "0" && names.is_empty());
    match first {
        Some((_, _, path)) => Some((1, path)),
        None => second().map(|(_, _, path)| (2, path)),
    }
}

/// One line of `/proc/self/mountinfo`.
struct Mount<'a> {
    top: &'a str,
    point: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let mut right = right.split(' ');
        Some(Self {
            top: left.next()?,
            point: left.next()?,
            kind: right.next()?,
            options: right.nth(1).unwrap_or_default(),
        })
    }
}

/// The group's folder and all above it up to the mount point.
fn folders(root: &Path, mount: &Mount<'_>, path: &str) -> Vec<PathBuf> {
    let base = root.join(mount.point.trim_start_matches('/'));
    // A mount may show only part of the tree; a group outside of it (`/../x`) is seen as the mount point itself.
    let inner = Path::new(path).strip_prefix(mount.top).unwrap_or(Path::new(""));
    let plain = inner.components().all(|part| matches!(part, Component::Normal(_)));
    let inner = if plain { inner } else { Path::new("") };
    inner.ancestors().map(|part| base.join(part)).collect()
}

/// CPUs allowed by a `cpu.max` line such as `150000 100000`; `None` for `max`.
fn cpu_max(text: &str) -> Option<f64> {
    let mut words = text.split_ascii_whitespace();
    let quota: u64 = words.next()?.parse().ok()?;
    let period: u64 = words.next()?.parse().ok()?;
    (period > 0).then(|| quota as f64 / period as f64)
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
    fn version_2_with_limits_above() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, "proc/self/cgroup", "0::/pod/job\n");
        write(
            root,
            "proc/self/mountinfo",
            "25 1 0:22 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n",
        );
        write(root, "sys/fs/cgroup/pod/job/cpu.max", "max 100000\n");
        write(root, "sys/fs/cgroup/pod/cpu.max", "150000 100000\n");
        write(
            root,
            "sys/fs/cgroup/pod/job/cpu.stat",
            "nr_throttled 2\nthrottled_usec 30\n",
        );
        write(
            root,
            "sys/fs/cgroup/pod/cpu.stat",
            "nr_throttled 5\nthrottled_usec 700\n",
        );
        write(root, "sys/fs/cgroup/cpu.stat", "usage_usec 1\n");
        write(root, "sys/fs/cgroup/pod/memory.max", "1073741824\n");
        write(root, "sys/fs/cgroup/pod/job/memory.max", "max\n");
        let group = Cgroup::locate(root, "cpu").unwrap();
        assert_eq!(group.version(), 2);
        assert_eq!(group.cpu_limit(), Some(1.5));
        assert_eq!(group.throttle(), Some(Throttle { periods: 7, usec: 730 }));
        assert_eq!(Cgroup::locate(root, "memory").unwrap().memory_limit(), Some(1 << 30));
    }

    #[test]
    fn version_1_and_mixed() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, "proc/self/cgroup", "4:memory:/a\n2:cpu,cpuacct:/docker/x\n0::/\n");
        write(
            root,
            "proc/self/mountinfo",
            "24 1 0:20 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n\
             25 1 0:22 /docker/x /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
             26 1 0:23 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n",
        );
        write(root, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "50000\n");
        write(root, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
        write(
            root,
            "sys/fs/cgroup/cpu/cpu.stat",
            "nr_periods 1\nnr_throttled 1\nthrottled_time 2000\n",
        );
        write(
            root,
            "sys/fs/cgroup/memory/a/memory.limit_in_bytes",
            "9223372036854771712\n",
        );
        let group = Cgroup::locate(root, "cpu").unwrap();
        assert_eq!((group.version(), group.cpu_limit()), (1, Some(0.5)));
        assert_eq!(group.throttle(), Some(Throttle { periods: 1, usec: 2 }));
        assert_eq!(Cgroup::locate(root, "memory").unwrap().memory_limit(), None);
    }

    #[test]
    fn groups_that_cannot_be_seen() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert_eq!(Cgroup::locate(root, "cpu"), None);
        write(root, "proc/self/cgroup", "0::/../../other\n");
        assert_eq!(Cgroup::locate(root, "cpu"), None);
        write(
            root,
            "proc/self/mountinfo",
            "junk\n25 1 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        );
        let group = Cgroup::locate(root, "cpu").unwrap();
        assert_eq!(group.folders, [root.join("sys/fs/cgroup")]);
        assert_eq!(group.cpu_limit(), None);
        assert_eq!(group.throttle(), None);
        assert_eq!(group.memory_limit(), None);
        write(root, "sys/fs/cgroup/cpu.max", "1000 0\n");
        assert_eq!(group.cpu_limit(), None);
    }
}
