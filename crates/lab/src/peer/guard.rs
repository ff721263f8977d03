//! Who ends peers and removes private folders when this process cannot, as after `kill -9`.
//!
//! A signal at the death of a parent would come at the end of the thread that started the program, and not reach what it has
//! started itself. So a small shell in a group of its own reads lines: what there is now, and what is gone. When the other
//! end of its pipe closes, this process has ended, however it did, and the shell kills and removes what is left.

use std::io::Write;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use tempfile::TempDir;

/// `+` and `-` are of groups, `/` and `\` of folders, which stand in the positional parameters. What is mounted in a folder is
/// unmounted, once the program behind it is dead: nothing is removed through a mount.
const SCRIPT: &str = r#"
groups=
while IFS= read -r line; do
    value=${line#?}
    case $line in
    +*) groups="$groups $value" ;;
    -*)
        left=
        for one in $groups; do [ "$one" = "$value" ] || left="$left $one"; done
        groups=$left
        ;;
    /*) set -- "$@" "$value" ;;
    \\*)
        for one; do
            shift
            [ "$one" = "$value" ] || set -- "$@" "$one"
        done
        ;;
    esac
done
for one in $groups; do kill -s KILL -- "-$one"; done
for one in $groups; do
    tries=40
    while [ $tries -gt 0 ] && kill -s 0 -- "-$one"; do
        tries=$((tries - 1))
        sleep 0.05
    done
done
for one; do
    while read -r _ at _; do
        case $at in "$one"/*) fusermount3 -uz "$at" || umount -l "$at" ;; esac
    done < /proc/self/mounts
    rm -rf -- "$one"
done
"#;

/// The shell's input; none where there is no shell, and nothing but this process ends peers.
static GUARD: OnceLock<Option<Mutex<ChildStdin>>> = OnceLock::new();

fn start() -> Option<Mutex<ChildStdin>> {
    let mut command = Command::new("/bin/sh");
    // Away from the terminal's Ctrl-C, and from folders that somebody wants to unmount.
    command.args(["-c", SCRIPT]).process_group(0).current_dir("/");
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let stdin = command.spawn().ok()?.stdin?;
    Some(Mutex::new(stdin))
}

fn tell(line: &[u8]) {
    if let Some(guard) = GUARD.get_or_init(start) {
        let mut guard = guard.lock().unwrap_or_else(PoisonError::into_inner);
        // A shell that somebody has killed guards nothing any more.
        let _ = guard.write_all(&[line, b"\n"].concat());
    }
}

/// There is a group with this number.
pub(super) fn group_begins(group: u32) {
    tell(format!("+{group}").as_bytes());
}

/// It is gone.
pub(super) fn group_ends(group: u32) {
    tell(format!("-{group}").as_bytes());
}

/// A private folder, removed when it is dropped, or this process ends.
#[derive(Debug)]
pub(crate) struct Folder {
    made: TempDir,
    told: bool,
}

impl Folder {
    /// A new folder in `parent`, that nobody else may read.
    pub(crate) fn new(prefix: &str, parent: &Path) -> std::io::Result<Folder> {
        let parent = std::path::absolute(parent)?;
        let made = tempfile::Builder::new().prefix(prefix).tempdir_in(parent)?;
        // A line must be one line.
        let told = !made.path().as_os_str().as_bytes().contains(&b'\n');
        if told {
            tell(&[b"/", made.path().as_os_str().as_bytes()].concat());
        }
        Ok(Folder { made, told })
    }

    /// One where temporary files go.
    pub(crate) fn temporary(prefix: &str) -> std::io::Result<Folder> {
        Folder::new(prefix, &std::env::temp_dir())
    }

    pub(crate) fn path(&self) -> &Path {
        self.made.path()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let path: PathBuf = self.made.path().to_owned();
        // What cannot be removed now is left to the shell.
        let _ = std::fs::remove_dir_all(&path);
        if self.told && !path.exists() {
            tell(&[b"\\", path.as_os_str().as_bytes()].concat());
        }
    }
}
