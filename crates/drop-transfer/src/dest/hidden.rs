//! Hidden names in home directories: a file that is put there is a program that runs later (CVE-2023-43619).

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::AtFlags;

use crate::stat::{Identity, identity};
use sealway_drop::names::{Folding, RelPath};

/// Where home directories are, as paths from the destination. One that is the destination has no components.
#[derive(Debug, Default)]
pub(super) struct Homes {
    /// Folded.
    below: Vec<Vec<Vec<u8>>>,
    /// The same ones, and the own home wherever it is.
    candidates: Vec<PathBuf>,
    identities: OnceLock<Vec<Identity>>,
}

/// File systems that fold have a name under other spellings too, and some of them leave out what cannot be seen.
const FOLDING: Folding = Folding {
    case: true,
    normal: true,
};

/// Whether a name begins with a dot, for any file system.
pub(super) fn is_dotted(name: &[u8]) -> bool {
    name.first() == Some(&b'.') || (!name.is_ascii() && FOLDING.name(name).starts_with(b"."))
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
        let mut homes = Homes::among(destination, own.iter().cloned().chain(listed));
        homes.candidates.extend(own);
        homes
    }

    fn among(destination: &Path, homes: impl Iterator<Item = PathBuf>) -> Homes {
        let (mut below, mut candidates): (Vec<Vec<Vec<u8>>>, Vec<PathBuf>) = homes
            .filter(|home| home.is_absolute())
            .filter_map(|home| {
                let rest = home.strip_prefix(destination).ok()?;
                let parts = rest
                    .components()
                    .map(|part| FOLDING.name(part.as_os_str().as_bytes()).into_owned());
                Some((parts.collect(), home))
            })
            .unzip();
        below.sort();
        below.dedup();
        candidates.sort();
        candidates.dedup();
        Homes {
            below,
            candidates,
            identities: OnceLock::new(),
        }
    }

    pub(super) fn hides(&self, path: &RelPath) -> bool {
        self.below.iter().any(|home| {
            let mut components = path.components();
            home.iter()
                .all(|part| components.next().is_some_and(|c| *FOLDING.name(c) == **part))
                && components.next().is_some_and(is_dotted)
        })
    }

    /// Whether a directory that is joined is a home, whatever its name.
    pub(super) fn is_home(&self, directory: Identity) -> bool {
        let identities = self.identities.get_or_init(|| {
            let look = |home: &PathBuf| {
                rustix::fs::statat(rustix::fs::CWD, home, AtFlags::NO_AUTOMOUNT)
                    .ok()
                    .map(|stat| identity(&stat))
            };
            self.candidates.iter().filter_map(look).collect()
        });
        identities.contains(&directory)
    }
}

#[cfg(test)]
mod tests {
    use super::Homes;
    use sealway_drop::names::{RelPath, Rules};
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
        // File systems that fold leave out what cannot be seen, and know more than ASCII.
        assert!(at("/nohome/ann").hides(&path("\u{200d}.ssh/authorized_keys")));
        assert!(at("/nohome").hides(&path("b\u{ad}ob/.profile")));
        assert!(at("/nohome").hides(&path("BO\u{200b}B/\u{feff}.profile")));
        assert!(!at("/nohome/ann/Downloads").hides(&path(".hidden")));
        assert!(!at("/elsewhere").hides(&path(".ssh")));
    }
}
