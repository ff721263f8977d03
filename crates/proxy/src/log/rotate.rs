//! Files of a log that are begun anew when they have become large.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sealway_v2ray::config::Log;

/// When a file is begun anew, and how many of those before it are kept: `log.1` is the last, `log.2` the one before it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rotation {
    /// Most bytes of a file, but for a line that says how many were dropped.
    pub max_bytes: u64,
    /// How many older files there are at most.
    pub keep: u8,
}

/// What is to be done with a file before more is written to it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Due {
    /// There is room.
    Nothing,
    /// Somebody has moved it away: the path is another file, or none.
    Open,
    /// It would become too large.
    Rotate,
}

impl Rotation {
    /// What a configuration asks for.
    pub fn of(log: &Log) -> Option<Rotation> {
        (log.max_size.mib > 0).then(|| Rotation {
            max_bytes: u64::from(log.max_size.mib) << 20,
            keep: log.keep.0,
        })
    }

    /// What is due before so many bytes are written to the file that was opened at this path. Pipes and devices are left alone.
    pub(super) fn due(self, path: &Path, file: &File, more: usize) -> Due {
        let Ok(ours) = file.metadata() else { return Due::Nothing };
        if !ours.is_file() {
            return Due::Nothing;
        }
        match fs::metadata(path) {
            Ok(there) if (there.dev(), there.ino()) != (ours.dev(), ours.ino()) => Due::Open,
            Err(error) if error.kind() == ErrorKind::NotFound => Due::Open,
            _ if ours.len() > 0 && ours.len().saturating_add(more as u64) > self.max_bytes => Due::Rotate,
            _ => Due::Nothing,
        }
    }

    /// Moves the file at this path away, and those before it on by one, as far as there is need to. The oldest is removed.
    ///
    /// # Errors
    /// A file cannot be moved. Then the one at this path is still there, and no file has been lost but the oldest.
    pub(super) fn make_room(self, path: &Path) -> io::Result<()> {
        let older = |number: u8| {
            let mut name = path.as_os_str().to_owned();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        let there = |moved: io::Result<()>| match moved {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        if self.keep == 0 {
            return there(fs::remove_file(path));
        }
        // A move that failed left a gap: the older ones beyond it stay where they are, or each try would lose one.
        let gap = (1..self.keep).find(|number| fs::symlink_metadata(older(*number)).is_err());
        for number in (1..gap.unwrap_or(self.keep)).rev() {
            there(fs::rename(older(number), older(number + 1)))?;
        }
        there(fs::rename(path, older(1)))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_move_that_fails_again_and_again_loses_no_older_file() {
        let folder = tempfile::tempdir().unwrap();
        // A folder cannot be moved into itself, and everything else can be moved.
        let path = folder.path().join(".");
        let older = |number: u8| folder.path().join(format!("..{number}"));
        for number in 1..=4 {
            fs::write(older(number), [number]).unwrap();
        }
        let rotation = Rotation { max_bytes: 1, keep: 5 };
        for _ in 0..9 {
            rotation.make_room(&path).unwrap_err();
        }
        for number in 1..=4 {
            assert_eq!(fs::read(older(number + 1)).unwrap(), [number]);
        }
    }
}
