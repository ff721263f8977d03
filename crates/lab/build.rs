//! Records what the lab was built from: commit, dirty flag, compiler, target, profile, features.
//!
//! Works without git and outside of a repository (a source archive, a vendored copy): the facts are then empty, and
//! nothing fails. A packaged crate carries its commit in `.cargo_vcs_info.json`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let manifest = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let (commit, dirty) = from_git(&manifest)
        .or_else(|| from_package(&manifest))
        .unwrap_or_default();
    set("COMMIT", &commit);
    set("DIRTY", if dirty { "true" } else { "false" });
    set("RUSTC", &rustc().unwrap_or_default());
    for (name, source) in [
        ("TARGET", "TARGET"),
        ("PROFILE", "PROFILE"),
        ("OPT_LEVEL", "OPT_LEVEL"),
        ("TARGET_FEATURES", "CARGO_CFG_TARGET_FEATURE"),
    ] {
        set(name, &env::var(source).unwrap_or_default());
    }
    set("FEATURES", &features());
    for (name, package) in [
        ("AWS_LC_RS", "aws-lc-rs"),
        ("RING", "ring"),
        ("AES_GCM", "aes-gcm"),
        ("CHACHA20POLY1305", "chacha20poly1305"),
        ("BIP324", "bip324"),
    ] {
        set(
            &format!("{name}_VERSION"),
            &locked_version(&manifest, package).unwrap_or_default(),
        );
    }
    watch(&manifest.join("build.rs"));
}

fn set(name: &str, value: &str) {
    // A line break would end the instruction to cargo and begin another.
    let value: String = value.chars().filter(|c| !c.is_control()).collect();
    println!("cargo::rustc-env=SEALWAY_BUILD_{name}={value}");
}

fn watch(path: &Path) {
    // A missing path would make cargo build this crate again every time.
    if path.exists() {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

/// Commit and dirty flag of the repository whose top is this workspace; not of one that merely contains it.
fn from_git(manifest: &Path) -> Option<(String, bool)> {
    let top = manifest.parent()?.parent()?;
    if !top.join(".git").exists() {
        return None;
    }
    let commit = git(top, &["rev-parse", "HEAD"])?;
    let hex = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !hex {
        return None;
    }
    let dirty = git(top, &["status", "--porcelain", "--untracked-files=no"])?;
    for name in ["HEAD", "index", "logs/HEAD", "packed-refs"] {
        // In a linked worktree these lie in different folders; git knows where.
        if let Some(path) = git(top, &["rev-parse", "--git-path", name]) {
            watch(&top.join(path));
        }
    }
    if let Some(branch) = git(top, &["symbolic-ref", "--quiet", "HEAD"])
        && let Some(path) = git(top, &["rev-parse", "--git-path", &branch])
    {
        watch(&top.join(path));
    }
    // Editing a source file changes the dirty flag without touching the repository's own files.
    for source in ["crates", "Cargo.toml", "Cargo.lock"] {
        watch(&top.join(source));
    }
    Some((commit, !dirty.is_empty()))
}

fn git(top: &Path, arguments: &[&str]) -> Option<String> {
    // Without optional locks, `status` does not rewrite the index, which is being watched.
    let mut command = Command::new("git");
    command.arg("--no-optional-locks").arg("-C").arg(top).args(arguments);
    // Set by git when it runs a hook; they would point to another repository.
    command
        .env_remove("GIT_DIR")
        .env_remove("GIT_WORK_TREE")
        .env_remove("GIT_INDEX_FILE");
    let output = command.output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

/// The commit that cargo wrote into a packaged crate.
fn from_package(manifest: &Path) -> Option<(String, bool)> {
    let path = manifest.join(".cargo_vcs_info.json");
    let text = std::fs::read_to_string(&path).ok()?;
    watch(&path);
    let rest = text.split_once("\"sha1\"")?.1.split_once('"')?.1;
    let commit = rest.split_once('"')?.0;
    let hex = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    let packed: String = text.split_whitespace().collect();
    hex.then(|| (commit.to_owned(), packed.contains("\"dirty\":true")))
}

fn rustc() -> Option<String> {
    let output = Command::new(env::var_os("RUSTC")?).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned())
}

/// Features of this crate that are on, sorted, with commas.
fn features() -> String {
    let mut on: Vec<String> = env::vars_os()
        .filter_map(|(name, _)| {
            name.to_str()?
                .strip_prefix("CARGO_FEATURE_")
                .map(str::to_ascii_lowercase)
        })
        .map(|name| name.replace('_', "-"))
        .collect();
    on.sort();
    on.join(",")
}

/// Version of a package in the workspace's lock file; none without one.
fn locked_version(manifest: &Path, package: &str) -> Option<String> {
    let lock = manifest.parent()?.parent()?.join("Cargo.lock");
    watch(&lock);
    let text = std::fs::read_to_string(lock).ok()?;
    let entry = text
        .split("[[package]]")
        .find(|entry| entry.contains(&format!("\nname = \"{package}\"\n")))?;
    let line = entry.lines().find_map(|line| line.strip_prefix("version = \""))?;
    Some(line.trim_end_matches('"').to_owned())
}
