//! Branch and commit of the checkout that the lab runs in, read from git's own files: no git is needed, and none is run.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::Label;

/// Folders that are looked into, from the one where we are upwards.
const MOST_FOLDERS: usize = 64;

/// Bytes of a file with one reference.
const MOST_LINE: u64 = 4096;

/// Bytes of the file with all packed references.
const MOST_PACKED: u64 = 16 << 20;

/// Variables in which build services say on which branch they build: they check out a commit, not a branch.
const BRANCHES: [&str; 3] = ["GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME"];

/// The branch and the commit of the checkout around `folder`; nothing outside of one.
pub fn checkout(folder: &Path, variable: impl Fn(&str) -> Option<OsString>) -> Label {
    let Some(git) = folder.ancestors().take(MOST_FOLDERS).find_map(git_folder) else {
        return Label::default();
    };
    let head = line(&git.join("HEAD")).unwrap_or_default();
    let (branch, commit) = match head.strip_prefix("ref: ") {
        Some(name) => (
            name.strip_prefix("refs/heads/").map(str::to_owned),
            reference(&git, name),
        ),
        None => {
            let named = BRANCHES.iter().filter_map(|name| variable(name)?.into_string().ok());
            (
                named.into_iter().find(|name| !name.is_empty()),
                is_commit(&head).then_some(head),
            )
        }
    };
    Label {
        name: None,
        branch,
        commit,
    }
}

/// The folder of git's files for a folder that is the top of a checkout.
fn git_folder(top: &Path) -> Option<PathBuf> {
    let git = top.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    // Of a further work tree, or of a submodule.
    let elsewhere = line(&git)?;
    Some(top.join(elsewhere.strip_prefix("gitdir: ")?))
}

/// The commit that a reference stands for.
fn reference(git: &Path, name: &str) -> Option<String> {
    let plain = |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
    if !Path::new(name).components().all(plain) {
        return None;
    }
    // Further work trees have their references where the first one has them.
    let common = line(&git.join("commondir")).map_or_else(|| git.to_owned(), |path| git.join(path));
    let loose = line(&common.join(name)).filter(|commit| is_commit(commit));
    loose.or_else(|| {
        let packed = text(&common.join("packed-refs"), MOST_PACKED)?;
        let commit = packed
            .lines()
            .find_map(|line| line.strip_suffix(name)?.strip_suffix(' '))?;
        is_commit(commit).then(|| commit.to_owned())
    })
}

/// SHA-1 or SHA-256.
fn is_commit(text: &str) -> bool {
    [40, 64].contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn line(path: &Path) -> Option<String> {
    let text = text(path, MOST_LINE)?;
    text.lines().next().map(|line| line.trim_end().to_owned())
}

/// The text of a file that is no longer than `most`.
fn text(path: &Path, most: u64) -> Option<String> {
    // Opening a pipe would wait for who writes to it.
    if !path.is_file() {
        return None;
    }
    let file = File::open(path).ok()?;
    let mut text = String::new();
    let read = file.take(most + 1).read_to_string(&mut text).ok()?;
    (read as u64 <= most).then_some(text)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn nothing(_: &str) -> Option<OsString> {
        None
    }

    fn write(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn label(branch: Option<&str>, commit: Option<&str>) -> Label {
        Label {
            name: None,
            branch: branch.map(str::to_owned),
            commit: commit.map(str::to_owned),
        }
    }

    #[test]
    fn branch_and_commit_come_from_the_files_of_git() {
        let folder = tempfile::tempdir().unwrap();
        let (top, below) = (folder.path(), folder.path().join("a/b"));
        fs::create_dir_all(&below).unwrap();
        write(top.join(".git/HEAD"), "ref: refs/heads/topic/fast\n");
        // A branch without a commit, then one whose reference is packed, then a loose one.
        assert_eq!(checkout(&below, nothing), label(Some("topic/fast"), None));
        let packed = format!(
            "# pack-refs\n{} refs/heads/other/topic/fast\n{COMMIT} refs/heads/topic/fast\n",
            "f".repeat(40)
        );
        write(top.join(".git/packed-refs"), &packed);
        assert_eq!(checkout(&below, nothing), label(Some("topic/fast"), Some(COMMIT)));
        let newer = "a".repeat(40);
        write(top.join(".git/refs/heads/topic/fast"), &format!("{newer}\n"));
        assert_eq!(checkout(&below, nothing), label(Some("topic/fast"), Some(&newer)));
    }

    #[test]
    fn a_further_work_tree_finds_its_branch() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        write(top.join("main/.git/worktrees/w/HEAD"), "ref: refs/heads/w\n");
        write(top.join("main/.git/worktrees/w/commondir"), "../..\n");
        write(top.join("main/.git/refs/heads/w"), COMMIT);
        let git = top.join("main/.git/worktrees/w");
        write(top.join("w/.git"), &format!("gitdir: {}\n", git.display()));
        assert_eq!(checkout(&top.join("w"), nothing), label(Some("w"), Some(COMMIT)));
    }

    #[test]
    fn a_build_service_says_on_which_branch_it_builds() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path().join(".git/HEAD"), COMMIT);
        assert_eq!(checkout(folder.path(), nothing), label(None, Some(COMMIT)));
        let service = |name: &str| match name {
            "GITHUB_HEAD_REF" => Some(OsString::new()),
            "GITHUB_REF_NAME" => Some("main".into()),
            _ => None,
        };
        assert_eq!(checkout(folder.path(), service), label(Some("main"), Some(COMMIT)));
    }

    #[test]
    fn files_of_git_that_are_something_else_say_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path();
        write(top.join("secret"), COMMIT);
        for head in ["ref: ../secret", "ref: /etc/hostname", "no commit", "", "ref: "] {
            write(top.join(".git/HEAD"), head);
            assert_eq!(checkout(top, nothing), Label::default(), "{head}");
        }
        fs::remove_dir_all(top.join(".git")).unwrap();
        write(top.join(".git"), "gitdir:");
        assert_eq!(checkout(top, nothing), Label::default());
        fs::write(top.join(".git"), vec![b'x'; 5000]).unwrap();
        assert_eq!(checkout(top, nothing), Label::default());
    }
}
