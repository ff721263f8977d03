//! From the paths of a command line to names that travel.

use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};

use super::{Error, ScanOptions, Top, TopLink};
use sealway_drop::names::{Escaped, Rules};

/// The name under which the root of the file system is sent; it has none of its own.
const ROOT_NAME: &[u8] = b"root";

/// In the order of their names, all different.
pub(super) fn resolve(paths: &[PathBuf], options: ScanOptions) -> Result<Vec<Top>, Error> {
    let mut parents = HashMap::new();
    let mut tops = paths
        .iter()
        .map(|path| one(path, options, &mut parents))
        .collect::<Result<Vec<_>, _>>()?;
    tops.sort_by(|a, b| a.name.cmp(&b.name));
    for pair in tops.windows(2) {
        if let [a, b] = pair
            && a.name == b.name
        {
            let paths = [escaped(&a.path), escaped(&b.path)];
            return Err(Error::SameName {
                name: Escaped(&a.name).to_string(),
                paths,
            });
        }
    }
    Ok(tops)
}

fn one(path: &Path, options: ScanOptions, parents: &mut HashMap<PathBuf, Arc<OwnedFd>>) -> Result<Top, Error> {
    let failed = |source: io::Error| Error::Argument {
        path: escaped(path),
        source,
    };
    // `.`, `..` and `/` have names only once they are resolved.
    let named = match path.file_name() {
        Some(_) => path.to_path_buf(),
        None => path.canonicalize().map_err(failed)?,
    };
    let name = named.file_name().map_or(ROOT_NAME, |name| name.as_bytes()).to_vec();
    Rules::local().check(&name).map_err(|source| Error::Name {
        path: escaped(path),
        source,
    })?;
    let (mut place, mut link) = (named, None);
    let mut parent = open_parent(&place, parents).map_err(failed)?;
    if let Some(real) = place.file_name() {
        let stat = rustix::fs::statat(&parent, real, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| failed(e.into()))?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            let target = rustix::fs::readlinkat(&parent, real, Vec::new()).map_err(|e| failed(e.into()))?;
            let mut target = target.into_bytes();
            if options.follow_top {
                place = place.canonicalize().map_err(failed)?;
                parent = open_parent(&place, parents).map_err(failed)?;
                target = place.as_os_str().as_bytes().to_vec();
            }
            link = Some(TopLink {
                path: escaped(path),
                target: Escaped(&target).to_string(),
                followed: options.follow_top,
            });
        }
    }
    let real = place
        .file_name()
        .map(|name| name.as_bytes().to_vec())
        .unwrap_or_default();
    Ok(Top {
        name,
        parent,
        real,
        path: path.to_path_buf(),
        link,
    })
}

/// One handle for all arguments of a folder: `send *` must not run out of them.
fn open_parent(path: &Path, parents: &mut HashMap<PathBuf, Arc<OwnedFd>>) -> io::Result<Arc<OwnedFd>> {
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => Path::new("/"),
    };
    if let Some(fd) = parents.get(parent) {
        return Ok(Arc::clone(fd));
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = Arc::new(rustix::fs::open(parent, flags, Mode::empty())?);
    parents.insert(parent.to_path_buf(), Arc::clone(&fd));
    Ok(fd)
}

pub(super) fn escaped(path: &Path) -> String {
    Escaped(path.as_os_str().as_bytes()).to_string()
}

/// What a file is that cannot be sent, in words; `None` for what can.
pub(super) fn special(kind: FileType) -> Option<&'static str> {
    match kind {
        FileType::RegularFile | FileType::Directory | FileType::Symlink => None,
        FileType::Fifo => Some("a FIFO"),
        FileType::Socket => Some("a socket"),
        FileType::CharacterDevice | FileType::BlockDevice => Some("a device"),
        _ => Some("of an unknown kind"),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{ROOT_NAME, ScanOptions, resolve};

    #[test]
    fn the_root_and_the_current_folder_have_names() {
        let tops = resolve(&[PathBuf::from("/")], ScanOptions::default()).unwrap();
        assert_eq!(
            (tops[0].name.as_slice(), tops[0].real.as_slice()),
            (ROOT_NAME, &b""[..])
        );
        let here = std::env::current_dir().unwrap();
        let tops = resolve(&[PathBuf::from(".")], ScanOptions::default()).unwrap();
        assert_eq!(tops[0].name, here.file_name().unwrap().as_encoded_bytes());
        let tops = resolve(&[PathBuf::from("..")], ScanOptions::default()).unwrap();
        assert_eq!(
            tops[0].name,
            here.parent().unwrap().file_name().unwrap().as_encoded_bytes()
        );
        assert!(resolve(&[here, PathBuf::from(".")], ScanOptions::default()).is_err());
    }
}
