//! The folder that a mount covers: whether it may, and what stands there already.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use super::MountError;

/// Name of the file system in the system's table of mounts.
pub(super) const NAME: &str = "sealway";

/// One line of `/proc/self/mountinfo`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mounted {
    /// "MAJOR:MINOR".
    pub(super) device: String,
    pub(super) path: PathBuf,
    pub(super) kind: String,
    /// What the file system calls its origin.
    pub(super) source: String,
}

/// Makes sure that something can be mounted at `path`; takes away a mount of ours whose server has died.
pub(super) fn prepare(path: &Path, allow_nonempty: bool) -> Result<PathBuf, MountError> {
    let fail = |error: io::Error| MountError::Mountpoint {
        path: path.to_path_buf(),
        error,
    };
    let absolute = std::path::absolute(path).map_err(fail)?;
    // As often as mounts may stand one above the other.
    for _ in 0..8 {
        match std::fs::metadata(&absolute) {
            Ok(found) if found.is_dir() => {
                let path = absolute.canonicalize().map_err(fail)?;
                let empty = allow_nonempty || std::fs::read_dir(&path).map_err(fail)?.next().is_none();
                return if empty {
                    Ok(path)
                } else {
                    Err(MountError::NotEmpty(path))
                };
            }
            Ok(_) => return Err(fail(io::ErrorKind::NotADirectory.into())),
            Err(error) if error.raw_os_error() == Some(Errno::NOTCONN.raw_os_error()) => {
                let mounted = find(&absolute).map_err(fail)?;
                // Mounted by root the kind is "fuse", mounted by the helper "fuse.sealway".
                if !mounted.is_some_and(|mounted| mounted.kind.starts_with("fuse") && mounted.source == NAME) {
                    return Err(MountError::Stale(absolute));
                }
                tracing::info!(path = %absolute.display(), "taking away a mount whose server is gone");
                detach(&absolute).map_err(fail)?;
            }
            Err(error) => return Err(fail(error)),
        }
    }
    Err(MountError::Stale(absolute))
}

/// What is mounted at `path`, topmost; found without touching it.
pub(super) fn find(path: &Path) -> io::Result<Option<Mounted>> {
    // The last name may be a dead mount, which cannot be resolved; the folder above it can.
    let resolved = match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => parent.canonicalize()?.join(name),
        _ => path.to_path_buf(),
    };
    let table = std::fs::read("/proc/self/mountinfo")?;
    Ok(table
        .split(|&byte| byte == b'\n')
        .filter_map(parse)
        .rfind(|mounted| mounted.path == resolved))
}

/// Takes a mount out of the tree at once; it ends when nobody uses it any more.
pub(super) fn detach(path: &Path) -> io::Result<()> {
    match rustix::mount::unmount(path, UnmountFlags::DETACH | UnmountFlags::NOFOLLOW) {
        Err(Errno::PERM) => {}
        result => return result.map_err(io::Error::from),
    }
    let mut helper = Command::new("fusermount3");
    helper
        .args(["-u", "-q", "-z", "--"])
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let status = helper.status()?;
    if status.success() {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

/// Lets the kernel read further ahead than its 128 KiB, where we may say so.
pub(super) fn raise_readahead(path: &Path, kib: u32) -> bool {
    let Ok(Some(mounted)) = find(path) else { return false };
    std::fs::write(
        format!("/sys/class/bdi/{}/read_ahead_kb", mounted.device),
        kib.to_string(),
    )
    .is_ok()
}

fn parse(line: &[u8]) -> Option<Mounted> {
    let mut fields = line.split(|&byte: &u8| byte == b' ');
    let device = String::from_utf8(fields.nth(2)?.to_vec()).ok()?;
    let path = unescape(fields.nth(1)?);
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let mut text = || fields.next().map(|field| String::from_utf8_lossy(field).into_owned());
    let (kind, source) = (text()?, text()?);
    Some(Mounted {
        device,
        path: PathBuf::from(OsString::from_vec(path)),
        kind,
        source,
    })
}

/// Undoes the kernel's `\ooo`.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [first, tail @ ..] = rest {
        let digits = if *first == b'\\' { tail.get(..3) } else { None };
        let value = digits.and_then(|digits| {
            digits.iter().try_fold(0_u32, |value, digit| {
                (b'0'..=b'7')
                    .contains(digit)
                    .then(|| value * 8 + u32::from(digit - b'0'))
            })
        });
        match value.and_then(|value| u8::try_from(value).ok()) {
            Some(byte) => {
                out.push(byte);
                rest = &tail[3..];
            }
            None => {
                out.push(*first);
                rest = tail;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn lines_of_the_table_are_read() {
        let line = br"36 35 0:98 / /mnt/a\040b\134 rw,nosuid,nodev - fuse.sealway sealway rw,user_id=0";
        let mounted = parse(line).unwrap();
        assert_eq!(mounted.device, "0:98");
        assert_eq!(mounted.path.as_os_str().as_bytes(), br"/mnt/a b\");
        assert_eq!((mounted.kind.as_str(), mounted.source.as_str()), ("fuse.sealway", NAME));
        for short in [
            &b""[..],
            b"36",
            b"36 35 0:98 / /mnt rw shared:1",
            b"36 35 0:98 / /mnt rw -",
        ] {
            assert_eq!(parse(short), None);
        }
        assert_eq!(unescape(br"\9\04\777x\"), br"\9\04\777x\");
    }

    #[test]
    fn only_an_empty_folder_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        assert!(prepare(dir.path(), false).is_ok());
        let file = dir.path().join("file");
        std::fs::write(&file, "x").unwrap();
        assert!(matches!(prepare(dir.path(), false), Err(MountError::NotEmpty(_))));
        assert!(prepare(dir.path(), true).is_ok());
        assert!(matches!(prepare(&file, false), Err(MountError::Mountpoint { .. })));
        assert!(matches!(
            prepare(&dir.path().join("none"), false),
            Err(MountError::Mountpoint { .. })
        ));
    }
}
