//! What the tests of trees share.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};
use sealway_drop::names::{RelPath, Rules};
use sealway_drop_transfer::dest::{Admission, Destination, Error, Options, Placed, Staging};
use sealway_drop_transfer::entry::{Entry, Kind, Time};
use sealway_drop_transfer::source::{Scan, ScanOptions, scan};

pub(crate) const TRANSFER: [u8; 32] = [7; 32];

pub(crate) fn path(text: &str) -> RelPath {
    RelPath::new(text.split('/'), Rules::POSIX).unwrap()
}

pub(crate) fn time(seconds: i64) -> Time {
    Time {
        seconds,
        nanoseconds: 5,
    }
}

pub(crate) fn file(name: &str, size: u64) -> Entry {
    Entry {
        path: path(name),
        kind: Kind::File { size, sparse: false },
        mode: 0o644,
        mtime: time(1_000_000_000),
    }
}

pub(crate) fn directory(name: &str) -> Entry {
    Entry {
        path: path(name),
        kind: Kind::Directory,
        mode: 0o755,
        mtime: time(1_000_000_001),
    }
}

pub(crate) fn link(name: &str, target: &str) -> Entry {
    let kind = Kind::Symlink {
        target: target.as_bytes().into(),
    };
    Entry {
        path: path(name),
        kind,
        mode: 0o777,
        mtime: time(1_000_000_002),
    }
}

pub(crate) fn staging(dir: &Path, options: Options) -> Staging {
    Destination::open(dir, options).unwrap().staging(&TRANSFER).unwrap()
}

/// Admits and places a small file.
pub(crate) fn place(staging: &Staging, id: u32, entry: &Entry, bytes: &[u8]) -> Result<Placed, Error> {
    match staging.admit(id, entry)? {
        Admission::Fetch { .. } => staging.place_small(id, entry, bytes),
        other => panic!("{} is {other:?}", entry.path),
    }
}

pub(crate) fn scan_all(dir: &Path) -> Scan {
    scan(&[dir.to_path_buf()], ScanOptions::default(), &mut |_| {}).unwrap()
}

/// Sends everything a scan found, as an engine would: small files whole, others by their extents in pieces.
pub(crate) fn transfer(scan: &Scan, staging: &Staging) -> Vec<Admission> {
    let mut admissions = Vec::new();
    for (id, entry) in (0..).zip(&scan.entries) {
        let admission = staging.admit(id, entry).unwrap();
        if let Admission::Fetch { partial } = &admission {
            let source = scan.open(entry).unwrap();
            if source.size() <= 4096 {
                let mut bytes = vec![0; source.size() as usize];
                source.read_at(&mut bytes, 0).unwrap();
                staging.place_small(id, entry, &bytes).unwrap();
            } else {
                assert!(partial.is_empty());
                let staged = staging.open_file(id, entry).unwrap();
                let mut at = 0;
                for extent in source.extents() {
                    let extent = extent.unwrap();
                    staged.write_hole(at..extent.start).unwrap();
                    at = extent.end;
                    let mut bytes = vec![0; (extent.end - extent.start) as usize];
                    source.read_at(&mut bytes, extent.start).unwrap();
                    for (i, piece) in bytes.chunks(100_000).enumerate() {
                        staged.write_at(extent.start + i as u64 * 100_000, piece).unwrap();
                    }
                }
                staged.write_hole(at..source.size()).unwrap();
                assert!(!source.changed().unwrap());
                assert_eq!(staged.finish(entry.mode, entry.mtime).unwrap(), Placed::Named);
            }
        }
        admissions.push(admission);
    }
    admissions
}

/// Everything below a folder: kind, mode, time and content.
pub(crate) fn listing(dir: &Path) -> BTreeMap<Vec<u8>, String> {
    let mut all = BTreeMap::new();
    let mut open = vec![dir.to_path_buf()];
    while let Some(at) = open.pop() {
        for entry in std::fs::read_dir(&at).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(dir).unwrap().as_os_str().as_bytes().to_vec();
            let mode = meta.permissions().mode();
            let (mtime, nanoseconds) = (meta.mtime(), meta.mtime_nsec());
            let content = if meta.is_symlink() {
                format!("{:?}", std::fs::read_link(&path).unwrap())
            } else if meta.is_dir() {
                open.push(path);
                String::new()
            } else {
                blake3::hash(&std::fs::read(&path).unwrap()).to_string()
            };
            all.insert(name, format!("{mode:o} {mtime}.{nanoseconds} {content}"));
        }
    }
    all
}

/// A folder on which another file system lies, for as long as this lives. No program is started for it: between fork and exec it would
/// hold the locks of all journals that the other tests have open.
pub(crate) struct Disk(PathBuf);

impl Disk {
    /// One in memory, with options of `tmpfs`. None, and said, where this may not mount.
    pub(crate) fn over(at: &Path, options: &CStr) -> Option<Disk> {
        Disk::mounted(at, mount("tmpfs", at, "tmpfs", MountFlags::empty(), options))
    }

    /// The one of another folder, mounted once more.
    pub(crate) fn again(folder: &Path, at: &Path) -> Option<Disk> {
        Disk::mounted(at, mount_bind(folder, at))
    }

    fn mounted(at: &Path, result: Result<(), Errno>) -> Option<Disk> {
        match result {
            Ok(()) => Some(Disk(at.to_owned())),
            Err(Errno::PERM | Errno::ACCESS) => {
                eprintln!("skipped: a file system can only be mounted by root");
                None
            }
            Err(error) => panic!("{}: {error}", at.display()),
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = unmount(self.0.as_path(), UnmountFlags::DETACH);
    }
}

/// Names right in a folder.
pub(crate) fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// As root every file can be opened; a thread without that right stands in for a user.
pub(crate) fn unprivileged<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    use rustix::thread::CapabilitySet;
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if let Ok(mut sets) = rustix::thread::capabilities(None) {
                sets.effective
                    .remove(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
                rustix::thread::set_capabilities(None, sets).unwrap();
            }
            run()
        });
        thread.join().unwrap()
    })
}
