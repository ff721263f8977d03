//! Hidden names in home directories: a file that is put there is a program that runs later (CVE-2023-43619).

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::names::RelPath;

/// Where home directories are, as paths from the destination. One that is the destination has no components.
#[derive(Debug, Default)]
pub(super) struct Homes {
    below: Vec<Vec<Vec<u8>>>,
}

impl Homes {
    /// The homes at or below a folder: of the user who runs this, and of those that the system lists.
    pub(super) fn below(destination: &Path) -> Homes {
        let listed = std::fs::read("/etc/passwd").unwrap_or_default();
        let listed = listed
            .split(|b| *b == b'\n')
            .filter_map(|line| line.split(|b| *b == b':').nth(5));
        let listed = listed.map(|home| PathBuf::from(std::ffi::OsStr::from_bytes(home)));
        // Only where they are is resolved: to look at them themselves may mount them, one by one.
        let listed = listed.map(|home| match (home.parent().map(Path::canonicalize), home.file_name()) {
            (Some(Ok(parent)), Some(name)) => parent.join(name),
            _ => home,
        });
        let own = std::env::home_dir().map(|home| home.canonicalize().unwrap_or(home));
        Homes::among(destination, own.into_iter().chain(listed))
    }

    fn among(destination: &Path, homes: impl Iterator<Item = PathBuf>) -> Homes {
        let mut below: Vec<Vec<Vec<u8>>> = homes
            .filter(|home| home.is_absolute())
            .filter_map(|home| {
                let rest = home.strip_prefix(destination).ok()?;
                Some(rest.components().map(|c| c.as_os_str().as_bytes().to_vec()).collect())
            })
            .collect();
        below.sort();
        below.dedup();
        Homes { below }
    }

    pub(super) fn hides(&self, path: &RelPath) -> bool {
        self.below.iter().any(|home| {
            let mut components = path.components();
            // File systems that ignore case have the home under other spellings too.
            home.iter()
                .all(|part| components.next().is_some_and(|c| c.eq_ignore_ascii_case(part)))
                && components.next().is_some_and(|name| name.starts_with(b"."))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Homes;
    use crate::names::{RelPath, Rules};
    use std::path::{Path, PathBuf};

    fn path(text: &str) -> RelPath {
        RelPath::new(text.split('/'), Rules::POSIX).unwrap()
    }

    #[test]
    fn cve_2023_43619_dot_names_in_any_home_are_hidden() {
        let homes = [
            PathBuf::from("/nohome/ann"),
            PathBuf::from("/nohome/bob"),
            PathBuf::from("relative"),
        ];
        let at = |destination: &str| Homes::among(Path::new(destination), homes.clone().into_iter());
        assert!(at("/nohome/ann").hides(&path(".ssh/authorized_keys")));
        assert!(at("/nohome/ann").hides(&path(".bashrc")));
        assert!(at("/nohome").hides(&path("bob/.profile")));
        assert!(at("/nohome").hides(&path("Bob/.profile")));
        assert!(at("/").hides(&path("nohome/ann/.config/autostart/x")));
        assert!(!at("/nohome/ann").hides(&path("project/.git")));
        assert!(!at("/nohome").hides(&path(".hidden")));
        assert!(!at("/nohome/ann/Downloads").hides(&path(".hidden")));
        assert!(!at("/elsewhere").hides(&path(".ssh")));
    }
}
