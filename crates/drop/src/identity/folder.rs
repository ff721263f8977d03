//! The folder with what this machine keeps, and the care its files need.

use std::ffi::OsString;
use std::fs::{DirBuilder, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use super::Error;
use crate::names::Escaped;

/// Longest file that is read, bytes.
const MAX_FILE: u64 = 4 << 20;

/// What is being done when a folder turns out to be one in which nothing can be kept.
const MAKING_FOLDER: &str = "making the folder";
const MAKING_FILE: &str = "making a file";

/// The folder for the configuration of this program: `$SEALWAY_CONFIG_DIR`, else `$XDG_CONFIG_HOME/sealway`, else
/// `~/.config/sealway`. `None` for a user without a home.
pub fn config_dir() -> Option<PathBuf> {
    config_dir_of(|name| std::env::var_os(name), std::env::home_dir())
}

fn config_dir_of(variable: impl Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(dir) = set("SEALWAY_CONFIG_DIR") {
        return Some(dir);
    }
    // The specification of XDG: relative paths are to be ignored.
    let config = set("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let config = config.or_else(|| home.filter(|home| home.is_absolute()).map(|home| home.join(".config")));
    config.map(|config| config.join("sealway"))
}

/// Whom a file is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Care {
    /// Nobody else may read or write it.
    Secret,
    /// Nobody else may write it.
    Own,
}

/// Makes the folder, for its owner alone, with those above it.
pub(super) fn make(dir: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(failed(dir, MAKING_FOLDER))
}

/// Refuses a folder in which others may put files of their own in place of ours.
pub(super) fn check(dir: &Path) -> Result<(), Error> {
    let found = std::fs::metadata(dir).map_err(failed(dir, "looking at the folder"))?;
    let sticky = found.mode() & 0o1000 != 0;
    if found.mode() & 0o022 != 0 && !sticky {
        return Err(exposed(dir, "others may change what is in it", "700"));
    }
    Ok(())
}

/// What the file holds; `None` if there is none.
pub(super) fn read(path: &Path, care: Care) -> Result<Option<Zeroizing<String>>, Error> {
    let opened = File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
        .open(path);
    let mut file = match opened {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        opened => opened.map_err(failed(path, "opening"))?,
    };
    let found = file.metadata().map_err(failed(path, "looking at it"))?;
    judge(path, &found, care)?;
    // Room for all of it from the start: a buffer that grows leaves copies behind.
    let mut bytes = Zeroizing::new(vec![0; found.len() as usize]);
    file.read_exact(&mut bytes).map_err(failed(path, "reading"))?;
    match std::str::from_utf8(&bytes) {
        Ok(text) => Ok(Some(Zeroizing::new(text.to_owned()))),
        Err(error) => {
            let line = bytes[..error.valid_up_to()]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count()
                + 1;
            Err(malformed(path, line, "it is not text (UTF-8)"))
        }
    }
}

fn judge(path: &Path, found: &Metadata, care: Care) -> Result<(), Error> {
    if !found.is_file() {
        return Err(failed(path, "reading")(io::Error::new(
            io::ErrorKind::InvalidInput,
            "it is not a file",
        )));
    }
    if found.len() > MAX_FILE {
        return Err(malformed(path, 0, "it is too long to be ours"));
    }
    let own = rustix::process::geteuid();
    if found.uid() != own.as_raw() && !own.is_root() {
        return Err(malformed(
            path,
            0,
            "it belongs to another user; move it away, and a new one is made",
        ));
    }
    match care {
        Care::Secret if found.mode() & 0o077 != 0 => Err(exposed(path, "others may read it", "600")),
        Care::Own if found.mode() & 0o022 != 0 => Err(exposed(path, "others may change it", "600")),
        _ => Ok(()),
    }
}

/// A new file beside `path`, on disk and for the owner alone; it has no name to rely on yet.
pub(super) fn stage(path: &Path, content: &str) -> Result<tempfile::NamedTempFile, Error> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".new-")
        .tempfile_in(dir)
        .map_err(failed(dir, MAKING_FILE))?;
    file.write_all(content.as_bytes()).map_err(failed(path, "writing"))?;
    file.as_file().sync_all().map_err(failed(path, "writing"))?;
    Ok(file)
}

/// Makes a name given in the folder last.
pub(super) fn settle(dir: &Path) -> Result<(), Error> {
    File::open(dir)
        .and_then(|dir| dir.sync_all())
        .map_err(failed(dir, "writing the folder"))
}

/// Whether an error says that nothing can be kept in the folder, as opposed to a disk that fails or a file that is wrong.
pub(super) fn is_unwritable(error: &Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound, PermissionDenied, ReadOnlyFilesystem};
    match error {
        Error::Io {
            doing: MAKING_FOLDER | MAKING_FILE,
            source,
            ..
        } => {
            matches!(
                source.kind(),
                NotADirectory | NotFound | PermissionDenied | ReadOnlyFilesystem
            )
        }
        _ => false,
    }
}

/// For `map_err` on what was done with `path`.
pub(super) fn failed(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> Error {
    let path = printable(path);
    move |source| Error::Io { path, doing, source }
}

/// A file of ours whose line `line` is not as it should be.
pub(super) fn malformed(path: &Path, line: usize, what: impl Into<String>) -> Error {
    Error::Malformed {
        path: printable(path),
        line,
        what: what.into(),
    }
}

fn exposed(path: &Path, why: &'static str, mode: &'static str) -> Error {
    Error::Exposed {
        path: printable(path),
        why,
        mode,
    }
}

/// A path whose characters cannot do anything to a terminal.
fn printable(path: &Path) -> String {
    Escaped(path.as_os_str().as_bytes()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir_of(variables: &[(&str, &str)], home: Option<&str>) -> Option<PathBuf> {
        let value = |name: &str| {
            variables
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| OsString::from(value))
        };
        config_dir_of(value, home.map(PathBuf::from))
    }

    #[test]
    fn the_folder_follows_the_environment() {
        let (own, xdg) = (("SEALWAY_CONFIG_DIR", "/own"), ("XDG_CONFIG_HOME", "/xdg"));
        assert_eq!(dir_of(&[own, xdg], Some("/home/a")), Some("/own".into()));
        assert_eq!(dir_of(&[xdg], Some("/home/a")), Some("/xdg/sealway".into()));
        assert_eq!(
            dir_of(&[("XDG_CONFIG_HOME", "relative")], Some("/home/a")),
            Some("/home/a/.config/sealway".into())
        );
        assert_eq!(
            dir_of(&[("SEALWAY_CONFIG_DIR", "")], Some("/home/a")),
            Some("/home/a/.config/sealway".into())
        );
        assert_eq!(dir_of(&[], None), None);
    }
}
