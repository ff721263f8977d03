//! What is moved: files of keystream, and the check of what arrived.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chacha20::ChaCha20;
use chacha20::cipher::{KeyIvInit, StreamCipher};
use sha2::{Digest, Sha256};

use crate::plan::Profile;
use crate::run::CellError;

/// Seed of all contents: equal on every machine, so that two runs move the same bytes.
const SEED: u64 = 1;

/// Name of what is sent: a file or a folder.
pub(super) const ITEM: &str = "item";

/// Bytes that are made at once.
const PIECE: usize = 1 << 20;

/// Files of one folder.
const FOLDER: usize = 256;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// What is moved.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) enum Shape {
    /// One file of one byte: set-up and nothing else.
    Byte,
    /// One file.
    File,
    /// Many files of 4 KiB.
    Small,
    /// Large, middling and small files together.
    Tree,
    /// One file of 10^8 B, for what is quoted at that size.
    Hundred,
}

impl Shape {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Shape::Byte => "byte",
            Shape::File => "file",
            Shape::Small => "small",
            Shape::Tree => "tree",
            Shape::Hundred => "hundred",
        }
    }

    /// Numbers of files and their sizes. A quick run moves a sixteenth.
    pub(super) fn sizes(self, profile: Profile) -> Vec<(usize, u64)> {
        let quick = profile == Profile::Quick;
        match (self, quick) {
            (Shape::Byte, _) => vec![(1, 1)],
            (Shape::Hundred, false) => vec![(1, 100_000_000)],
            (Shape::Hundred, true) => vec![(1, 6_250_000)],
            (Shape::File, false) => vec![(1, 1024 * MIB)],
            (Shape::File, true) => vec![(1, 64 * MIB)],
            (Shape::Small, false) => vec![(10_000, 4 * KIB)],
            (Shape::Small, true) => vec![(625, 4 * KIB)],
            (Shape::Tree, false) => vec![(1, 512 * MIB), (64, 4 * MIB), (4_096, 64 * KIB)],
            (Shape::Tree, true) => vec![(1, 32 * MIB), (4, 4 * MIB), (256, 64 * KIB)],
        }
    }

    /// True for a folder, false for a file.
    pub(super) const fn is_folder(self) -> bool {
        matches!(self, Shape::Small | Shape::Tree)
    }
}

/// Bytes in all.
pub(super) fn total(sizes: &[(usize, u64)]) -> u64 {
    sizes.iter().map(|(count, bytes)| *count as u64 * bytes).sum()
}

/// A file and what it must hold.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Entry {
    /// Below the item; empty for the item itself.
    name: PathBuf,
    bytes: u64,
    hash: blake3::Hash,
}

/// Files that are there to be sent.
#[derive(Debug)]
pub(super) struct Source {
    path: PathBuf,
    entries: Vec<Entry>,
    bytes: u64,
}

impl Source {
    /// Makes the files of `sizes` below `folder`, which must be empty.
    pub(super) fn make(folder: &Path, shape: Shape, sizes: &[(usize, u64)]) -> io::Result<Source> {
        let path = folder.join(ITEM);
        let mut entries = Vec::new();
        for &(count, bytes) in sizes {
            for _ in 0..count {
                let index = entries.len();
                let name = if shape.is_folder() {
                    PathBuf::from(format!("d{:03}", index / FOLDER)).join(format!("f{index:05}"))
                } else {
                    PathBuf::new()
                };
                let file = place(&path, &name);
                if let Some(parent) = file.parent() {
                    fs::create_dir_all(parent)?;
                }
                let hash = fill(&file, index as u64, bytes)?;
                entries.push(Entry { name, bytes, hash });
            }
        }
        Ok(Source {
            path,
            entries,
            bytes: total(sizes),
        })
    }

    /// The file or folder to send.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Number of files.
    pub(super) fn files(&self) -> usize {
        self.entries.len()
    }

    /// Compares what stands in `folder` with what was sent: every byte by BLAKE3, and nothing besides.
    pub(super) fn verify(&self, folder: &Path) -> Result<(), CellError> {
        let item = folder.join(ITEM);
        for entry in &self.entries {
            let path = place(&item, &entry.name);
            let shown = Path::new(ITEM).join(&entry.name);
            let wrong = |what: String| CellError::wrong(format_args!("{}: {what}", shown.display()));
            let facts = fs::symlink_metadata(&path).map_err(|error| wrong(format!("not there: {error}")))?;
            if !facts.is_file() {
                return Err(wrong("no plain file".to_owned()));
            }
            if facts.len() != entry.bytes {
                return Err(wrong(format!("{} bytes instead of {}", facts.len(), entry.bytes)));
            }
            let hash = hash_of(&path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
            if hash != entry.hash {
                return Err(wrong(format!("other contents, {} bytes", entry.bytes)));
            }
        }
        let found =
            count(folder).map_err(|error| CellError::failed(format_args!("cannot list what arrived: {error}")))?;
        if found == self.entries.len() {
            return Ok(());
        }
        Err(CellError::wrong(format_args!(
            "{found} files arrived instead of {}",
            self.entries.len()
        )))
    }
}

/// `item` itself, or `name` below it.
fn place(item: &Path, name: &Path) -> PathBuf {
    if name.as_os_str().is_empty() {
        item.to_owned()
    } else {
        item.join(name)
    }
}

/// Writes a file of keystream; its hash.
fn fill(path: &Path, index: u64, bytes: u64) -> io::Result<blake3::Hash> {
    let mut seed = Sha256::new();
    seed.update(b"sealway lab files");
    seed.update(SEED.to_le_bytes());
    seed.update(index.to_le_bytes());
    let mut stream = ChaCha20::new(&seed.finalize(), &[0; 12].into());
    let mut hasher = blake3::Hasher::new();
    let mut file = File::create_new(path)?;
    // Room for a piece of a file that long.
    let mut piece = vec![0; usize::try_from(bytes).unwrap_or(PIECE).clamp(1, PIECE)];
    let mut left = bytes;
    while left > 0 {
        let take = piece.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let part = &mut piece[..take];
        part.fill(0);
        stream.apply_keystream(part);
        hasher.update(part);
        file.write_all(part)?;
        left -= take as u64;
    }
    Ok(hasher.finalize())
}

/// BLAKE3 of a file.
pub(super) fn hash_of(path: &Path) -> io::Result<blake3::Hash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(hasher.finalize())
}

/// Number of all that is no folder below `folder`.
fn count(folder: &Path) -> io::Result<usize> {
    let mut found = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        found += if entry.file_type()?.is_dir() {
            count(&entry.path())?
        } else {
            1
        };
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn copy(from: &Path, to: &Path) {
        if from.is_dir() {
            fs::create_dir_all(to).unwrap();
            for entry in fs::read_dir(from).unwrap() {
                let entry = entry.unwrap();
                copy(&entry.path(), &to.join(entry.file_name()));
            }
        } else {
            fs::copy(from, to).unwrap();
        }
    }

    fn wrong(source: &Source, folder: &Path) -> String {
        match source.verify(folder) {
            Err(CellError::Wrong { what }) => what,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_an_exact_copy_is_right() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        fs::create_dir(&from).unwrap();
        let source = Source::make(&from, Shape::Tree, &[(1, 70_000), (300, 10)]).unwrap();
        assert_eq!((source.bytes(), source.files()), (73_000, 301));

        let to = folder.path().join("to");
        assert!(wrong(&source, &to).contains("not there"));
        copy(&from, &to);
        source.verify(&to).unwrap();

        let last = to.join(ITEM).join("d001/f00300");
        let kept = fs::read(&last).unwrap();
        assert_eq!(kept.len(), 10);
        let mut other = kept.clone();
        other[9] ^= 1;
        fs::write(&last, &other).unwrap();
        assert!(wrong(&source, &to).contains("other contents"));
        fs::write(&last, &kept[..9]).unwrap();
        assert!(wrong(&source, &to).contains("9 bytes instead of 10"));
        fs::remove_file(&last).unwrap();
        assert!(wrong(&source, &to).contains("not there"));
        fs::write(&last, &kept).unwrap();
        fs::write(to.join(".part"), b"").unwrap();
        assert!(wrong(&source, &to).contains("302 files"));
    }

    #[test]
    fn contents_are_the_same_every_time_and_differ_from_file_to_file() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [1, 2, 3].map(|name| folder.path().join(name.to_string()));
        let hashes = [
            fill(&paths[0], 0, 5000),
            fill(&paths[1], 0, 5000),
            fill(&paths[2], 1, 5000),
        ]
        .map(Result::unwrap);
        assert_eq!(hashes[0], hashes[1]);
        assert_ne!(hashes[0], hashes[2]);
        assert_eq!(hash_of(&paths[0]).unwrap(), hashes[0]);
    }

    #[test]
    fn shapes_are_those_of_the_definition() {
        for (shape, bytes, files) in [
            (Shape::Byte, 1, 1),
            (Shape::File, 1 << 30, 1),
            (Shape::Small, 40_960_000, 10_000),
            (Shape::Tree, 1 << 30, 4_161),
            (Shape::Hundred, 100_000_000, 1),
        ] {
            let sizes = shape.sizes(Profile::Standard);
            assert_eq!(total(&sizes), bytes, "{shape:?}");
            assert_eq!(sizes.iter().map(|(count, _)| count).sum::<usize>(), files, "{shape:?}");
            let quick = total(&shape.sizes(Profile::Quick));
            assert!(quick * 16 == bytes || bytes == 1, "{shape:?}: {quick}");
        }
    }
}
