//! Files of others: whether they could be written, and who can read them.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;

use rustix::fs::{Access as May, access};

/// Who, besides its owner, can read the file: by its mode and by those of the folders above it. `credentials` is the folder
/// in which the service manager gives a service files of its own (`CREDENTIALS_DIRECTORY`), whose modes do not say who reads
/// them. `None`: nobody, or it is no file.
pub fn readers(file: &Path, credentials: Option<&Path>) -> Option<&'static str> {
    let file = file.canonicalize().ok()?;
    if credentials
        .and_then(|folder| folder.canonicalize().ok())
        .is_some_and(|folder| file.starts_with(folder))
    {
        return None;
    }
    let mode = |path: &Path| path.metadata().ok().map(|found| found.permissions().mode());
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let own = mode(&file)?;
    let folders = || file.ancestors().skip(1);
    // Whoever may not pass one of the folders does not come to the file.
    let passes = |bits: u32| folders().all(|folder| mode(folder).is_some_and(|mode| mode & bits != 0));
    if own & 0o004 != 0 && passes(0o001) {
        Some("everybody on this machine")
    } else if own & 0o040 != 0 && passes(0o011) {
        Some("its group")
    } else {
        None
    }
}

/// Whether a log could be added to at `path`, without making the file.
///
/// # Errors
/// As opening it would have.
pub fn can_append(path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        // To open and close a pipe would end whoever reads it.
        Ok(found) if found.file_type().is_fifo() => Ok(access(path, May::WRITE_OK)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            Ok(access(folder.unwrap_or(Path::new(".")), May::WRITE_OK | May::EXEC_OK)?)
        }
        _ => OpenOptions::new().append(true).open(path).map(drop),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir, set_permissions, write};

    use super::*;

    #[test]
    fn modes_of_files_and_folders_say_who_reads() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, file) = (dir.path().join("folder"), dir.path().join("folder/file"));
        create_dir(&folder).unwrap();
        write(&file, "secret").unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for (outer, inner, mode, wanted) in [
            (0o755, 0o755, 0o644, Some("everybody on this machine")),
            (0o755, 0o755, 0o640, Some("its group")),
            (0o755, 0o755, 0o600, None),
            (0o755, 0o700, 0o644, None),
            (0o700, 0o755, 0o644, None),
            (0o755, 0o750, 0o644, Some("its group")),
            (0o711, 0o711, 0o604, Some("everybody on this machine")),
        ] {
            set_permissions(dir.path(), Permissions::from_mode(outer)).unwrap();
            set_permissions(&folder, Permissions::from_mode(inner)).unwrap();
            set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            for name in [&file, &link] {
                let found = readers(name, None);
                // Only where the folder of temporary files lets everybody pass, as it does almost everywhere.
                assert!(
                    found == wanted || found.is_none(),
                    "{outer:o} {inner:o} {mode:o}: {found:?}"
                );
                if std::env::temp_dir() == Path::new("/tmp") {
                    assert_eq!(found, wanted, "{outer:o} {inner:o} {mode:o}");
                }
            }
            assert_eq!(readers(&file, Some(&folder)), None);
        }
        assert_eq!(readers(&folder, None), None);
        assert_eq!(readers(&dir.path().join("none"), None), None);
    }

    #[test]
    fn logs_are_tried_without_being_made() {
        let dir = tempfile::tempdir().unwrap();
        let new = dir.path().join("new.log");
        can_append(&new).unwrap();
        assert!(!new.exists());
        write(&new, "kept").unwrap();
        can_append(&new).unwrap();
        assert_eq!(std::fs::read_to_string(&new).unwrap(), "kept");
        let pipe = dir.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .unwrap();
        can_append(&pipe).unwrap();
        assert!(can_append(dir.path()).is_err());
        assert!(can_append(&dir.path().join("none/new.log")).is_err());
    }
}
