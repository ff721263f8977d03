//! What another end may not do in a folder that it may change.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Stat};

use crate::tree::TreePath;

/// Home directories. A file that is put there under a name that begins with a dot is a program that runs later.
pub(super) struct Homes {
    own: HashSet<(u64, u64)>,
    /// They, and all directories above them.
    above: HashSet<(u64, u64)>,
}

impl Homes {
    /// That of the user who runs this, and those that the system lists.
    pub(super) fn of_this_machine() -> Self {
        use std::os::unix::ffi::OsStrExt;
        let listed = std::fs::read("/etc/passwd").unwrap_or_default();
        let listed = listed
            .split(|byte| *byte == b'\n')
            .filter_map(|line| line.split(|byte| *byte == b':').nth(5))
            .map(|home| PathBuf::from(std::ffi::OsStr::from_bytes(home)));
        let homes = std::env::home_dir().into_iter().chain(listed);
        Self::among(homes.filter(|home| home.is_absolute() && home.parent().is_some()))
    }

    pub(super) fn among(homes: impl Iterator<Item = PathBuf>) -> Self {
        // What is not mounted yet is not looked at: that could mount it, one home after the other.
        let look = |path: &Path| {
            let stat = rustix::fs::statat(CWD, path, AtFlags::NO_AUTOMOUNT).ok()?;
            Some((stat.st_dev, stat.st_ino))
        };
        let (mut own, mut above) = (HashSet::new(), HashSet::new());
        for home in homes {
            own.extend(look(&home));
            above.extend(home.ancestors().filter_map(look));
        }
        Self { own, above }
    }

    pub(super) fn contain(&self, directory: &Stat) -> bool {
        self.own.contains(&(directory.st_dev, directory.st_ino))
    }

    /// Whether this stays where it is: what takes the place of a home would not be known for one.
    pub(super) fn hold(&self, directory: &Stat) -> bool {
        self.above.contains(&(directory.st_dev, directory.st_ino))
    }
}

/// Whether a link that stands at `path` stays inside of the shared folder by what it says alone: not absolute, and up only at
/// its beginning, no further than to the folder itself. After a name `..` could lead anywhere, as the name may be a link.
pub(crate) fn stays_inside(path: &TreePath, target: &[u8]) -> bool {
    if target.is_empty() || target.first() == Some(&b'/') {
        return false;
    }
    let depth = path.components().count().saturating_sub(1);
    let (mut up, mut named) = (0, false);
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if named => return false,
            b".." => up += 1,
            _ => named = true,
        }
    }
    up <= depth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_stay_inside_by_what_they_say() {
        let at = |path: &str, target: &str| stays_inside(&TreePath::parse(path.as_bytes()).unwrap(), target.as_bytes());
        for (path, target) in [
            ("link", "file"),
            ("link", "folder/file"),
            ("link", "."),
            ("a/link", "../file"),
            ("a/b/link", "../../x/y"),
            ("a/link", "./../x"),
            ("link", "..a"),
        ] {
            assert!(at(path, target), "{path} -> {target}");
        }
        for (path, target) in [
            ("link", ""),
            ("link", "/etc/passwd"),
            ("link", ".."),
            ("link", "../x"),
            ("a/link", "../../x"),
            ("link", "a/../../x"),
            // `up` may be a link to the folder itself.
            ("a/b/link", "up/.."),
        ] {
            assert!(!at(path, target), "{path} -> {target}");
        }
    }
}
