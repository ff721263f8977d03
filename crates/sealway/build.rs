//! Tells the program the commit it was built from, as `0.1.0+abcdef012345`, with `-dirty` when tracked files differ.
//!
//! Outside a Git checkout of this very workspace (a source archive, a packager's tree) the version stands alone.

#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let version = env!("CARGO_PKG_VERSION");
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let full = match commit(&workspace) {
        Some(commit) => format!("{version}+{commit}"),
        None => version.to_string(),
    };
    println!("cargo::rustc-env=SEALWAY_VERSION={full}");
    // What can change the commit or the dirty mark. A path that does not exist would make every build start here.
    let mut watched = vec![
        workspace.join("Cargo.toml"),
        workspace.join("Cargo.lock"),
        workspace.join("crates"),
    ];
    for name in ["HEAD", "logs/HEAD", "packed-refs"] {
        watched.extend(git(&workspace, &["rev-parse", "--git-path", name]).map(|path| workspace.join(path)));
    }
    for path in watched.iter().filter(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

fn commit(workspace: &Path) -> Option<String> {
    let top = PathBuf::from(git(workspace, &["rev-parse", "--show-toplevel"])?);
    if top.canonicalize().ok()? != workspace.canonicalize().ok()? {
        return None;
    }
    let commit = git(workspace, &["rev-parse", "--short=12", "HEAD"])?;
    let changed = git(workspace, &["status", "--porcelain", "--untracked-files=no"])?;
    Some(if changed.is_empty() {
        commit
    } else {
        format!("{commit}-dirty")
    })
}

/// Standard output of a Git command, without the line end; nothing if Git is absent or refuses.
fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    // Reading the state must not write the index of somebody's checkout.
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(arguments)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .output()
        .ok()?;
    let text = output
        .status
        .success()
        .then(|| String::from_utf8(output.stdout).ok())??;
    Some(text.trim_end().to_string())
}
