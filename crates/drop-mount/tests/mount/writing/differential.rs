//! Names, folders, links and attributes, changed at random in the mount and in a folder of this machine: what comes of each change,
//! and what is there afterwards, is the same.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags};

use super::Writing;
use super::exerciser::{Numbers, number};

const NAMES: [&str; 6] = ["a", "b", "c", "\u{e9}", " ", "with a longer name"];

fn place(root: &Path, numbers: &mut Numbers) -> PathBuf {
    let mut path = root.to_owned();
    for _ in 0..=numbers.below(3) {
        path.push(NAMES[numbers.below(NAMES.len() as u64) as usize]);
    }
    path
}

fn code<T>(result: std::io::Result<T>) -> Option<i32> {
    result.err().map(|error| error.raw_os_error().unwrap_or(-1))
}

/// What is written to a file: where it is.
fn what_it_says(root: &Path, path: &Path) -> Vec<u8> {
    let below = path.strip_prefix(root).unwrap();
    below.as_os_str().as_encoded_bytes().repeat(1 + below.as_os_str().len())
}

/// One change below a root. The numbers of both roots are the same.
fn change(root: &Path, numbers: &mut Numbers) -> Option<i32> {
    let what = numbers.below(13);
    let (one, two) = (place(root, numbers), place(root, numbers));
    let rename = |how| rustix::fs::renameat_with(CWD, &one, CWD, &two, how).map_err(std::io::Error::from);
    // A directory does not move up on a mount: its links might then lead out of the folder.
    let goes_up = |from: &Path, to: &Path| {
        let [from_depth, to_depth] = [from, to].map(|path| path.components().count());
        to_depth < from_depth && fs::symlink_metadata(from).is_ok_and(|found| found.is_dir())
    };
    if matches!(what, 6..=8) && goes_up(&one, &two) || what == 9 && (goes_up(&one, &two) || goes_up(&two, &one)) {
        return None;
    }
    match what {
        0 | 1 => code(fs::create_dir(&one)),
        2 => code(fs::write(&one, what_it_says(root, &one))),
        3 => code(OpenOptions::new().write(true).create_new(true).open(&one)),
        4 => code(fs::remove_file(&one)),
        5 => code(fs::remove_dir(&one)),
        6 | 7 => code(rename(RenameFlags::empty())),
        8 => code(rename(RenameFlags::NOREPLACE)),
        9 => code(rename(RenameFlags::EXCHANGE)),
        10 => code(symlink(NAMES[numbers.below(3) as usize], &one)),
        11 => {
            let mode = 0o600 | numbers.below(0o200) as u32;
            match fs::symlink_metadata(&one) {
                Ok(found) if !found.is_symlink() => {
                    let mode = if found.is_dir() { mode | 0o700 } else { mode };
                    code(fs::set_permissions(&one, fs::Permissions::from_mode(mode)))
                }
                found => code(found),
            }
        }
        _ => {
            let size = numbers.below(10_000);
            code(
                OpenOptions::new()
                    .append(true)
                    .open(&one)
                    .and_then(|file| file.set_len(size)),
            )
        }
    }
}

/// Everything below a root that both should have.
fn all(root: &Path) -> Vec<String> {
    let (mut found, mut left) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let holds = match () {
                () if meta.is_symlink() => format!("{:?}", fs::read_link(&path).unwrap()),
                () if meta.is_dir() => {
                    left.push(path);
                    String::new()
                }
                () => blake3::hash(&fs::read(&path).unwrap()).to_string(),
            };
            let mode = if meta.is_symlink() { 0 } else { meta.mode() };
            let size = if meta.is_dir() { 0 } else { meta.len() };
            found.push(format!("{name} {mode:o} {size} {holds}"));
        }
    }
    found.sort();
    found
}

#[test]
fn a_mounted_folder_is_changed_as_one_of_this_machine() {
    let Some(w) = Writing::start() else { return };
    let local = tempfile::tempdir().unwrap();
    let seed = number("SEALWAY_EXERCISE_SEED", 1);
    let (here, there) = (w.at("root"), local.path().join("root"));
    for root in [&here, &there] {
        fs::create_dir(root).unwrap();
    }
    let rounds = number("SEALWAY_EXERCISE", 1_500);
    for round in 0..rounds {
        let numbers = || Numbers::new(seed.wrapping_mul(1_000_003).wrapping_add(round));
        let (got, due) = (change(&here, &mut numbers()), change(&there, &mut numbers()));
        assert_eq!(
            got,
            due,
            "change {round} of seed {seed}: {:?}",
            place(&there, &mut numbers())
        );
        if round % 100 == 99 || round + 1 == rounds {
            let due = all(&there);
            assert_eq!(all(&here), due, "after {round} changes of seed {seed}");
            assert_eq!(
                all(&w.there("root")),
                due,
                "at the owner, after {round} changes of seed {seed}"
            );
        }
    }
}

#[test]
fn a_directory_does_not_move_up_with_links_that_would_lead_out() {
    let Some(w) = Writing::start() else { return };
    fs::create_dir_all(w.at("a/b/c")).unwrap();
    symlink("../../../outside", w.at("a/b/c/link")).unwrap();
    let up = fs::rename(w.at("a/b/c"), w.at("c"));
    assert_eq!(code(up), Some(rustix::io::Errno::XDEV.raw_os_error()));
    fs::rename(w.at("a/b/c"), w.at("a/b/d")).unwrap();
    fs::rename(w.at("a/b"), w.at("b")).unwrap_err();
    fs::create_dir(w.at("e")).unwrap();
    fs::rename(w.at("a/b/d/link"), w.at("e/link")).unwrap_err();
    assert!(fs::symlink_metadata(w.there("a/b/d/link")).is_ok());
}
