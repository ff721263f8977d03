//! Programs at work in a folder that can be changed through a mount.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use super::Writing;
use sealway_drop::testing::{assert_same, content, tree};

/// What fsx says of its version.
const FSX: &str = "fsx 0.3.2";

/// Whether a program is there; where all of them must be, it is.
fn has(program: &str) -> bool {
    required(program, Command::new(program).arg("--version").output().is_ok())
}

/// Whether it is the fsx that `scripts/install-peers` installs: others of that name take other options.
fn has_fsx() -> bool {
    let says = Command::new("fsx").arg("--version").output();
    required(
        FSX,
        says.is_ok_and(|output| output.stdout.trim_ascii() == FSX.as_bytes()),
    )
}

fn required(program: &str, is_there: bool) -> bool {
    if is_there {
        return true;
    }
    let required = std::env::var("SEALWAY_REQUIRE_PEERS").is_ok_and(|value| value == "1");
    assert!(!required, "{program} is missing, and SEALWAY_REQUIRE_PEERS=1");
    eprintln!("skipped: {program} is not there");
    false
}

fn run(program: &str, folder: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("GIT_AUTHOR_NAME", "a")
        .env("GIT_AUTHOR_EMAIL", "a@example.org")
        .env("GIT_COMMITTER_NAME", "a")
        .env("GIT_COMMITTER_EMAIL", "a@example.org")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{program} {arguments:?}: {}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    output
}

#[test]
fn git_clones_commits_collects_and_checks() {
    let Some(w) = Writing::start() else { return };
    if !has("git") {
        return;
    }
    let origin = tempfile::tempdir().unwrap();
    let git = |folder: &Path, arguments: &[&str]| run("git", folder, arguments);
    git(origin.path(), &["init", "-q", "-b", "main", "."]);
    for number in 0..40 {
        fs::create_dir_all(origin.path().join(format!("d{}", number % 7))).unwrap();
        fs::write(
            origin.path().join(format!("d{}/f{number}", number % 7)),
            content(1_000 * number, number as u64),
        )
        .unwrap();
    }
    git(origin.path(), &["add", "-A"]);
    git(origin.path(), &["commit", "-q", "-m", "one"]);
    let from = origin.path().display().to_string();
    git(w.at.path(), &["clone", "-q", &from, "clone"]);
    let clone = w.at("clone");
    fs::write(clone.join("d1/new"), "new").unwrap();
    fs::remove_file(clone.join("d2/f2")).unwrap();
    git(&clone, &["mv", "d3/f3", "d4/moved"]);
    git(&clone, &["add", "-A"]);
    git(&clone, &["commit", "-q", "-m", "two"]);
    git(&clone, &["checkout", "-q", "-b", "branch", "HEAD~1"]);
    fs::write(clone.join("d5/branch"), "branch").unwrap();
    git(&clone, &["add", "-A"]);
    git(&clone, &["commit", "-q", "-m", "three"]);
    git(&clone, &["merge", "-q", "-m", "merge", "main"]);
    git(&clone, &["gc", "-q", "--prune=now"]);
    git(&clone, &["fsck", "--strict"]);
    assert!(git(&clone, &["status", "--porcelain"]).stdout.is_empty());
    // The owner sees the same, and says so itself.
    git(&w.there("clone"), &["fsck", "--strict"]);
    assert!(git(&w.there("clone"), &["status", "--porcelain"]).stdout.is_empty());
}

/// A program of two parts and a header, with what makes it.
fn project(folder: &Path) {
    let makefile = "program: main.o part.o\n\t$(CC) -o $@ main.o part.o\n\
                    main.o part.o: part.h\n\
                    %.o: %.c\n\t$(CC) -c -o $@ $<\n\techo $@ >> made\n";
    for (name, text) in [
        ("Makefile", makefile),
        ("part.h", "int part(void);\n"),
        ("part.c", "#include \"part.h\"\nint part(void) { return 41; }\n"),
        (
            "main.c",
            "#include <stdio.h>\n#include \"part.h\"\nint main(void) { printf(\"%d\\n\", part() + 1); return 0; }\n",
        ),
        (".gitignore", "*.o\nprogram\nmade\n"),
    ] {
        fs::write(folder.join(name), text).unwrap();
    }
}

#[test]
fn a_project_is_cloned_built_and_built_again_where_it_changed() {
    let Some(w) = Writing::start() else { return };
    if !["git", "make", "cc"].into_iter().all(has) {
        return;
    }
    let origin = tempfile::tempdir().unwrap();
    let git = |folder: &Path, arguments: &[&str]| run("git", folder, arguments);
    project(origin.path());
    git(origin.path(), &["init", "-q", "-b", "main", "."]);
    git(origin.path(), &["add", "-A"]);
    git(origin.path(), &["commit", "-q", "-m", "one"]);
    let from = origin.path().display().to_string();
    git(w.at.path(), &["clone", "-q", &from, "clone"]);
    let (here, there) = (w.at("clone"), w.there("clone"));
    let made = |folder: &Path| {
        let made = fs::read_to_string(folder.join("made")).unwrap_or_default();
        let _ = fs::remove_file(folder.join("made"));
        let mut made: Vec<String> = made.lines().map(str::to_owned).collect();
        made.sort();
        made
    };
    let make = || run("make", &here, &["-j2", "CC=cc"]);
    let says = |folder: &Path| run(folder.join("program").to_str().unwrap(), folder, &[]).stdout;
    make();
    assert_eq!(made(&here), ["main.o", "part.o"]);
    assert_eq!(says(&here), b"42\n");
    // Times are those that files were written at, so only what is older than its source is made again.
    make();
    assert!(made(&here).is_empty());
    fs::write(
        here.join("part.c"),
        "#include \"part.h\"\nint part(void) { return 1; }\n",
    )
    .unwrap();
    make();
    assert_eq!(made(&here), ["part.o"]);
    assert_eq!((says(&here), says(&there)), (b"2\n".to_vec(), b"2\n".to_vec()));
    // Touched by the owner, it is made again here.
    run("touch", &there, &["part.h"]);
    super::until("the new time of the header", || {
        fs::metadata(here.join("part.h")).unwrap().modified().unwrap()
            == fs::metadata(there.join("part.h")).unwrap().modified().unwrap()
    });
    make();
    assert_eq!(made(&here), ["main.o", "part.o"]);
    git(&here, &["commit", "-q", "-a", "-m", "two"]);
    // The owner has the commit, a clean tree, and nothing to make.
    assert_eq!(git(&there, &["log", "--format=%s"]).stdout, b"two\none\n");
    assert!(git(&there, &["status", "--porcelain"]).stdout.is_empty());
    git(&there, &["fsck", "--strict"]);
    run("make", &there, &["CC=cc"]);
    assert!(made(&there).is_empty());
    assert_same(&here, &there);
}

/// The exerciser of file systems that Apple began and FreeBSD and Linux use, in Alan Somers's rewrite.
#[test]
fn fsx_finds_no_difference() {
    let Some(w) = Writing::start() else { return };
    if !has_fsx() {
        return;
    }
    let config = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mount/writing/fsx.toml");
    let expected = tempfile::tempdir().unwrap();
    let (file, expected) = (w.at("file"), expected.path());
    let options = ["-f", config, "-N", "4000", "-S", "1"];
    let places = ["-P", expected.to_str().unwrap(), file.to_str().unwrap()];
    run("fsx", expected, &[&options[..], &places].concat());
    assert!(fs::read(&file).unwrap() == fs::read(w.there("file")).unwrap());
}

#[test]
fn rsync_copies_and_changes_in_place() {
    let Some(w) = Writing::start() else { return };
    if !has("rsync") {
        return;
    }
    let source = tempfile::tempdir().unwrap();
    let from = tree(source.path());
    for link in find_links(&from) {
        // Links that lead out are refused, as they should be.
        if fs::read_link(&link).unwrap().is_absolute() || fs::metadata(&link).is_err() {
            fs::remove_file(link).unwrap();
        }
    }
    let to = w.at("copy");
    let arguments = |more: &'static str| {
        // Without the last one rsync takes times of one second for equal.
        let always = ["-a", "--modify-window=-1"];
        let mut arguments: Vec<String> = always.map(str::to_owned).into();
        arguments.extend((!more.is_empty()).then(|| more.to_owned()));
        arguments.extend([format!("{}/", from.display()), format!("{}/", to.display())]);
        arguments
    };
    let rsync = |more| {
        let arguments = arguments(more);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        run("rsync", source.path(), &arguments)
    };
    rsync("");
    assert_same(&from, &to);
    assert_same(&from, &w.there("copy"));
    // Some bytes in the middle of the largest file, and a file that is gone.
    fs::write(from.join("large"), content(5 << 20, 1)).unwrap();
    rsync("");
    let mut changed = content(5 << 20, 1);
    changed[3_000_000..3_000_100].fill(7);
    fs::write(from.join("large"), &changed).unwrap();
    let before = fs::metadata(w.there("copy/large")).unwrap();
    rsync("--inplace");
    use std::os::unix::fs::MetadataExt;
    assert_eq!(
        fs::metadata(w.there("copy/large")).unwrap().ino(),
        before.ino(),
        "the same file"
    );
    fs::remove_file(from.join("large")).unwrap();
    rsync("--delete");
    assert_same(&from, &w.there("copy"));
}

fn find_links(root: &Path) -> Vec<std::path::PathBuf> {
    let (mut found, mut left) = (Vec::new(), vec![root.to_owned()]);
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                left.push(entry.path());
            } else if kind.is_symlink() {
                found.push(entry.path());
            }
        }
    }
    found
}

#[test]
fn an_editor_saves_in_one_step() {
    let Some(w) = Writing::start() else { return };
    fs::write(w.at("text"), "first").unwrap();
    for round in 0..20 {
        // A new file beside, to the disk, over the old one, the directory to the disk.
        let text = format!("round {round}");
        let mut beside = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(w.at(".text.swp"))
            .unwrap();
        beside.write_all(text.as_bytes()).unwrap();
        beside.sync_all().unwrap();
        drop(beside);
        fs::rename(w.at(".text.swp"), w.at("text")).unwrap();
        fs::File::open(w.at.path()).unwrap().sync_all().unwrap();
        assert_eq!(fs::read_to_string(w.at("text")).unwrap(), text);
        assert_eq!(fs::read_to_string(w.there("text")).unwrap(), text);
    }
}

#[test]
fn sqlite_has_several_writers_at_once_and_no_shared_memory() {
    let Some(w) = Writing::start() else { return };
    if !has("sqlite3") {
        return;
    }
    let sql = |database: &Path, text: &str| {
        let output = Command::new("sqlite3").arg(database).arg(text).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (String::from_utf8_lossy(&output.stdout).trim().to_owned(), errors)
    };
    let (here, there) = (w.at("base"), w.there("base"));
    assert_eq!(sql(&here, "PRAGMA journal_mode=DELETE; CREATE TABLE t(n);").1, "");
    // Programs at both ends write at once, and none of it is lost.
    std::thread::scope(|scope| {
        for database in [&here, &here, &there] {
            scope.spawn(move || {
                for _ in 0..15 {
                    let text = "PRAGMA busy_timeout=60000; INSERT INTO t VALUES (1);";
                    assert_eq!(sql(database, text).1, "");
                }
            });
        }
    });
    assert_eq!(sql(&here, "SELECT sum(n) FROM t; PRAGMA integrity_check;").0, "45\nok");
    assert_eq!(sql(&there, "SELECT sum(n) FROM t; PRAGMA integrity_check;").0, "45\nok");
    // Memory cannot be shared, so what needs it is an error and not a database that breaks.
    let (mode, error) = sql(&here, "PRAGMA journal_mode=WAL; INSERT INTO t VALUES (1);");
    assert!(!error.is_empty() || mode == "delete", "{mode} {error}");
    assert_eq!(sql(&there, "PRAGMA journal_mode=WAL; INSERT INTO t VALUES (1);").1, "");
    assert!(!sql(&here, "INSERT INTO t VALUES (1);").1.is_empty());
    assert_eq!(
        sql(&there, "PRAGMA journal_mode=DELETE; PRAGMA integrity_check;").0,
        "delete\nok"
    );
}
