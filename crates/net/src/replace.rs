//! Writing a file so that its readers see either the older content or the whole new one.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The step of a replacement at which the system refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Step {
    /// Looking at what stands at the path now.
    Look,
    /// Making the temporary file beside it.
    Create,
    /// Writing the content.
    Write,
    /// Making the content durable before it takes the name.
    Sync,
    /// Giving the new file its name.
    Rename,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Look => "looking at the path",
            Step::Create => "creating a temporary file in its folder",
            Step::Write => "writing the content",
            Step::Sync => "flushing the content to the disk",
            Step::Rename => "putting the new file in place",
        })
    }
}

/// Why a file was not written. Whatever stood at the path before stands there still, and nothing is left beside it.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The path cannot name a file: it is a folder, or it is empty or ends in `..`. The caller's choice of path is wrong.
    Target {
        /// The path as given.
        path: PathBuf,
        /// What it is instead.
        what: &'static str,
    },
    /// The content could not be turned into text that a reader would accept. The program is wrong.
    Encode {
        /// The path as given.
        path: PathBuf,
        /// What was refused.
        what: String,
    },
    /// The system refused: rights, space, a missing folder. The environment is at fault.
    Io {
        /// The path as given.
        path: PathBuf,
        /// Where in the replacement it happened.
        step: Step,
        /// The system's own error.
        source: io::Error,
    },
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Target { path, what } => {
                write!(
                    f,
                    "cannot write {}: {what}. Name a file, such as result.json",
                    path.display()
                )
            }
            WriteError::Encode { path, what } => {
                write!(
                    f,
                    "cannot write {}: {what}. This is a fault of Sealway; please report it",
                    path.display()
                )
            }
            WriteError::Io { path, step, source } => {
                write!(
                    f,
                    "cannot write {}: {source} (while {step}). {}",
                    path.display(),
                    hint(source)
                )
            }
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WriteError::Io { source, .. } => Some(source),
            WriteError::Target { .. } | WriteError::Encode { .. } => None,
        }
    }
}

/// What the user can do about a refusal of the system.
fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => "Create the folder first, or name one that exists",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "Choose a folder that you may write to",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "Free some space or choose another disk; an older file at this path was left as it was"
        }
        io::ErrorKind::NotADirectory => "A part of the path before the last is a file, not a folder",
        _ => "Choose another path; an older file at this path was left as it was",
    }
}

/// Where the content of a path goes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Place {
    /// This file is replaced, or made: symbolic links are followed, and the folder is spelt in one way only as far as it
    /// exists, so that two paths that lead to the same file give the same place.
    File(PathBuf),
    /// A device or a pipe, which is written to directly.
    Direct(PathBuf),
}

/// Finds out where [`replace`] would put the content of `path`, without touching anything.
///
/// # Errors
/// [`WriteError::Target`] when the path cannot name a file, [`WriteError::Io`] when the system does not let us look.
pub fn place(path: &Path) -> Result<Place, WriteError> {
    let look = |source| WriteError::Io {
        path: path.to_owned(),
        step: Step::Look,
        source,
    };
    let target = |what| WriteError::Target {
        path: path.to_owned(),
        what,
    };
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => return Err(target("it is a folder")),
        Ok(found) if !found.is_file() => return Ok(Place::Direct(path.to_owned())),
        Ok(_) => return fs::canonicalize(path).map(Place::File).map_err(look),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(look(error)),
    }
    let Some(name) = path.file_name() else {
        return Err(target("it does not name a file"));
    };
    if path.is_symlink() {
        return Err(target("it is a symbolic link that leads nowhere"));
    }
    let folder = fs::canonicalize(folder_of(path));
    Ok(Place::File(
        folder.map_or_else(|_| path.to_owned(), |folder| folder.join(name)),
    ))
}

/// The folder that a path names a file in.
fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Replaces the file at `path` with `content`.
///
/// # Errors
/// As [`replace_with`].
pub fn replace(path: &Path, content: &[u8]) -> Result<(), WriteError> {
    replace_with(path, |out| out.write_all(content))
}

/// Replaces the file at `path` with what `fill` writes.
///
/// The content goes to a temporary file in the same folder, is flushed to the disk, and takes the name in one step; a
/// symbolic link stays and the file it leads to is replaced; an existing file's permissions are kept. A device or a
/// pipe (`/dev/stdout`) cannot be replaced and must not be: it is written to directly.
///
/// # Errors
/// [`WriteError::Target`] when the path cannot name a file, [`WriteError::Io`] when the system or `fill` refused. The
/// older file is then untouched and the temporary file is gone.
pub fn replace_with(path: &Path, fill: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), WriteError> {
    let at = |step| {
        move |source| WriteError::Io {
            path: path.to_owned(),
            step,
            source,
        }
    };
    let target = match place(path)? {
        Place::File(target) => target,
        Place::Direct(path) => {
            let mut device = OpenOptions::new().write(true).open(path).map_err(at(Step::Create))?;
            return fill(&mut device).and_then(|()| device.flush()).map_err(at(Step::Write));
        }
    };
    let old = match fs::metadata(&target) {
        Ok(found) => Some(found),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(at(Step::Look)(error)),
    };
    let folder = folder_of(&target);

    // Dropping the temporary file removes it, so every early return below leaves the folder as it was.
    let mut temporary = tempfile::Builder::new();
    temporary.prefix(".sealway-").suffix(".tmp");
    #[cfg(unix)]
    let temporary = {
        use std::os::unix::fs::PermissionsExt as _;
        // For a new file the process's umask takes away what it must.
        temporary.permissions(fs::Permissions::from_mode(0o666))
    };
    let file = temporary.tempfile_in(folder).map_err(at(Step::Create))?;
    if let Some(found) = &old {
        file.as_file()
            .set_permissions(found.permissions())
            .map_err(at(Step::Create))?;
    }
    let mut out = BufWriter::new(file);
    fill(&mut out).and_then(|()| out.flush()).map_err(at(Step::Write))?;
    let file = out.into_inner().map_err(|error| at(Step::Write)(error.into_error()))?;
    file.as_file().sync_all().map_err(at(Step::Sync))?;
    file.persist(&target).map_err(|error| at(Step::Rename)(error.error))?;
    // The name itself becomes durable with the folder. The new file is complete already, and some file systems cannot
    // do this, so a refusal is no failure.
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_full_disk_leaves_the_older_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        fs::write(&path, "older").unwrap();
        let error = replace_with(&path, |out| {
            out.write_all(&[b'x'; 100_000])?;
            Err(io::ErrorKind::StorageFull.into())
        })
        .unwrap_err();
        assert!(matches!(&error, WriteError::Io { step: Step::Write, .. }), "{error:?}");
        let text = error.to_string();
        assert!(
            text.contains("result.json") && text.contains("Free some space"),
            "{text}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "older");
        assert_eq!(names(folder.path()), ["result.json"]);
    }

    #[test]
    fn a_full_device_is_reported_and_not_replaced() {
        let device = Path::new("/dev/full");
        if !device.exists() {
            eprintln!("skipped: no /dev/full here");
            return;
        }
        let error = replace(device, b"content").unwrap_err();
        assert!(
            matches!(&error, WriteError::Io { step: Step::Write, source, .. }
            if source.kind() == io::ErrorKind::StorageFull),
            "{error:?}"
        );
        assert!(!fs::metadata(device).unwrap().is_file());
        replace(Path::new("/dev/null"), b"content").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn new_content_takes_the_place_and_keeps_permissions_and_links() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        replace(&path, b"one").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            let link = folder.path().join("latest.json");
            std::os::unix::fs::symlink("a.json", &link).unwrap();
            replace(&link, b"two").unwrap();
            assert!(link.is_symlink());
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
            let lost = folder.path().join("lost.json");
            std::os::unix::fs::symlink("nowhere.json", &lost).unwrap();
            assert!(matches!(replace(&lost, b"x"), Err(WriteError::Target { .. })));
            assert_eq!(fs::read(&path).unwrap(), b"two");
            assert_eq!(names(folder.path()), ["a.json", "latest.json", "lost.json"]);
        }
    }

    #[test]
    fn a_folder_or_a_missing_folder_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let error = replace(folder.path(), b"x").unwrap_err();
        assert!(
            matches!(
                &error,
                WriteError::Target {
                    what: "it is a folder",
                    ..
                }
            ),
            "{error:?}"
        );
        let error = replace(&folder.path().join("no/such/file.json"), b"x").unwrap_err();
        assert!(matches!(&error, WriteError::Io { step: Step::Create, .. }), "{error:?}");
        assert!(error.to_string().contains("Create the folder first"), "{error}");
        assert!(matches!(replace(Path::new(""), b"x"), Err(WriteError::Target { .. })));
        assert!(names(folder.path()).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_without_write_permission_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        fs::write(&path, "older").unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o555)).unwrap();
        let probe = File::create(folder.path().join("probe"));
        if probe.is_ok() {
            eprintln!("skipped: this user may write everywhere");
        } else {
            let error = replace(&path, b"new").unwrap_err();
            assert!(matches!(&error, WriteError::Io { step: Step::Create, .. }), "{error:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "older");
        }
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_file_system_that_takes_no_files_is_refused_for_everyone() {
        if !Path::new("/proc/self").exists() {
            eprintln!("skipped: no /proc here");
            return;
        }
        let error = replace(Path::new("/proc/sealway.json"), b"x").unwrap_err();
        assert!(matches!(&error, WriteError::Io { step: Step::Create, .. }), "{error:?}");
    }
}
