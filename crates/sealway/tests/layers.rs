//! The layer check, run as a user runs it: it passes on this workspace and fails on a copy that breaks a rule.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod common;

/// Its unit tests run here as well, for the check itself is built by rustc alone.
#[allow(dead_code, unreachable_pub, missing_docs)]
#[path = "../../../scripts/checks/main.rs"]
mod checks;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{Ran, ran, workspace};

fn check(folder: &Path) -> Ran {
    let mut command = Command::new(workspace().join("scripts/check-layers"));
    // The program is built once for all tests here, away from what Cargo looks after.
    ran(command.arg(folder).env("CARGO_TARGET_DIR", env!("CARGO_TARGET_TMPDIR")))
}

/// A copy of this workspace's manifests with sources of a few lines that keep every rule.
struct Copy(tempfile::TempDir);

impl Copy {
    fn new() -> Copy {
        let copy = Copy(tempfile::tempdir().unwrap());
        for name in ["Cargo.toml", "Cargo.lock"] {
            fs::copy(workspace().join(name), copy.path(name)).unwrap();
        }
        for entry in fs::read_dir(workspace().join("crates")).unwrap() {
            let short = entry.unwrap().file_name().into_string().unwrap();
            let folder = copy.path("crates").join(&short);
            fs::create_dir_all(folder.join("src")).unwrap();
            let manifest = workspace().join("crates").join(&short).join("Cargo.toml");
            fs::copy(manifest, folder.join("Cargo.toml")).unwrap();
            let root = if short == "sealway" {
                "src/main.rs"
            } else {
                "src/lib.rs"
            };
            fs::write(folder.join(root), "#![forbid(unsafe_code)]\n").unwrap();
        }
        copy.write(
            "crates/aead/src/lib.rs",
            "#![deny(unsafe_code)]\nmod key;\nmod one;\nmod suite;\n#[allow(unsafe_code)]\nmod low;\n",
        );
        copy.write(
            "crates/cuda/src/lib.rs",
            "#![deny(unsafe_code)]\n#[allow(unsafe_code)]\nmod driver;\n",
        );
        copy.write("crates/cuda/src/driver.rs", "unsafe fn f() {}\n");
        copy.write("crates/aead/src/key.rs", "use crate::suite::Suite;\n");
        copy.write("crates/aead/src/one.rs", "use crate::{key, low};\n");
        copy.write("crates/aead/src/suite.rs", "pub struct Suite;\n");
        copy.write("crates/aead/src/low.rs", "unsafe fn f() {}\n");
        copy
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn append(&self, name: &str, text: &str) {
        self.write(name, &(fs::read_to_string(self.path(name)).unwrap() + text));
    }

    /// The check fails with exactly one finding, and that holds all these words.
    fn fails_with(&self, words: &[&str]) {
        let ran = check(self.0.path());
        ran.says(1, words);
        // A use of a module above closes a circle as well, where that one needs this.
        let others = |line: &&str| line.contains("error: ") && !line.contains("in a circle");
        let expected = usize::from(!words.iter().any(|word| word.contains("in a circle")));
        assert_eq!(ran.stderr.lines().filter(others).count(), expected, "{}", ran.stderr);
    }
}

#[test]
fn this_workspace_keeps_its_floors() {
    assert!(check(&workspace()).answer().starts_with("layers: "));
}

#[test]
fn an_untouched_copy_passes() {
    check(Copy::new().0.path()).answer();
}

#[test]
fn an_edge_to_a_higher_crate_is_named() {
    for section in [
        "dependencies",
        "dev-dependencies",
        "build-dependencies",
        "target.'cfg(windows)'.dependencies",
    ] {
        let copy = Copy::new();
        let manifest = fs::read_to_string(copy.path("crates/aead/Cargo.toml")).unwrap();
        let edge = "sealway-lab = { path = \"../lab\" }\n";
        let header = format!("[{section}]\n");
        let changed = if manifest.contains(&header) {
            manifest.replace(&header, &format!("{header}{edge}"))
        } else {
            format!("{manifest}\n{header}{edge}")
        };
        copy.write("crates/aead/Cargo.toml", &changed);
        copy.fails_with(&["`sealway-aead` (floor 0)", "`sealway-lab` (floor 6)"]);
    }
}

#[test]
fn a_crate_without_a_floor_is_named() {
    let copy = Copy::new();
    fs::create_dir_all(copy.path("crates/extra/src")).unwrap();
    copy.write(
        "crates/extra/Cargo.toml",
        "[package]\nname = \"sealway-extra\"\nversion = \"0.1.0\"\nedition = \"2024\"\n",
    );
    copy.write("crates/extra/src/lib.rs", "#![forbid(unsafe_code)]\n");
    let root = fs::read_to_string(copy.path("Cargo.toml")).unwrap();
    copy.write(
        "Cargo.toml",
        &root.replacen("members = [", "members = [\n    \"crates/extra\",", 1),
    );
    copy.fails_with(&["sealway-extra", "has no floor"]);
}

#[test]
fn a_use_of_a_higher_module_is_named() {
    for (file, text, said) in [
        ("suite.rs", "use crate::key::SealingKey;\n", "`suite` may not use `key`"),
        ("key.rs", "fn f() { crate::one::seal() }\n", "`key` may not use `one`"),
        (
            "key.rs",
            "mod inner { use super::super::one::seal; }\n",
            "`key` may not use `one`",
        ),
        ("low.rs", "use super::{suite::Suite};\n", "`low` may not use `suite`"),
        ("suite.rs", "use crate::*;\n", "takes in the crate's root"),
    ] {
        let copy = Copy::new();
        copy.append(&format!("crates/aead/src/{file}"), text);
        copy.fails_with(&[&format!("{file}:2"), said]);
    }
}

#[test]
fn comments_strings_and_tests_may_name_anything() {
    let copy = Copy::new();
    copy.append(
        "crates/aead/src/suite.rs",
        "// crate::one\nconst S: &str = \"crate::key::X unsafe\";\n",
    );
    copy.append(
        "crates/aead/src/suite.rs",
        "#[cfg(test)]\nmod tests { use crate::one::seal; fn f() { unsafe { g() } } }\n",
    );
    assert_eq!(check(copy.0.path()).code, 0);
}

#[test]
fn unsafe_outside_its_place_is_named() {
    let copy = Copy::new();
    copy.append("crates/aead/src/key.rs", "fn f() { unsafe { g() } }\n");
    copy.fails_with(&["key.rs:2", "only module `low` may hold it"]);
    let copy = Copy::new();
    copy.write("crates/lab/src/lib.rs", "//! A crate that forgot the rule.\n");
    copy.fails_with(&["crates/lab/src/lib.rs", "#![forbid(unsafe_code)]"]);
}

/// What a merge left behind is not compiled, so no compiler speaks of it.
#[test]
fn a_file_that_no_module_names_is_named() {
    let copy = Copy::new();
    fs::create_dir(copy.path("crates/session/src/record")).unwrap();
    copy.write(
        "crates/session/src/lib.rs",
        "#![forbid(unsafe_code)]\nmod record;\nmod refusal;\n",
    );
    copy.write(
        "crates/session/src/record.rs",
        "#[cfg(test)]\n#[path = \"record/more.rs\"]\nmod tests;\nmod recv;\n",
    );
    for name in ["refusal", "record/recv", "record/more"] {
        copy.write(&format!("crates/session/src/{name}.rs"), "fn f() {}\n");
    }
    assert_eq!(check(copy.0.path()).code, 0);
    copy.write("crates/session/src/record/refusal.rs", "fn f() {}\n");
    copy.fails_with(&["crates/session/src/record/refusal.rs", "no module names this file"]);
}

/// Modules that need each other can be neither read nor moved alone.
#[test]
fn a_circle_of_modules_is_named() {
    let copy = Copy::new();
    copy.write(
        "crates/bridge/src/lib.rs",
        "#![forbid(unsafe_code)]\nmod a;\nmod b;\nmod c;\n",
    );
    copy.write("crates/bridge/src/a.rs", "use crate::b::{self, B};\npub struct A;\n");
    copy.write("crates/bridge/src/b.rs", "use super::c::C;\npub struct B;\n");
    copy.write("crates/bridge/src/c.rs", "pub struct C;\n");
    assert_eq!(check(copy.0.path()).code, 0);
    copy.append("crates/bridge/src/c.rs", "fn f() { crate::a::g() }\n");
    copy.fails_with(&["`sealway-bridge`", "in a circle: a, b, c"]);
}

#[test]
fn files_and_clocks_below_the_floor_of_sockets_are_named() {
    for line in [
        "use std::fs;\n",
        "use std::{io, time::Instant};\n",
        "fn f() { std::thread::yield_now() }\n",
    ] {
        let copy = Copy::new();
        copy.append("crates/session/src/lib.rs", line);
        copy.fails_with(&["crates/session/src/lib.rs:2", "`sealway-session` does no I/O"]);
        let copy = Copy::new();
        copy.append("crates/drop/src/lib.rs", line);
        assert_eq!(check(copy.0.path()).code, 0, "{line}");
    }
}

#[test]
fn a_workload_that_a_report_names_is_named() {
    let lab = || {
        let copy = Copy::new();
        copy.append("crates/lab/src/lib.rs", "mod catalogue;\nmod files;\nmod report;\n");
        copy.write(
            "crates/lab/src/catalogue.rs",
            "use crate::files;\nstatic ALL: [&u8; 1] = [&files::WORKLOAD];\n",
        );
        copy.write(
            "crates/lab/src/files.rs",
            "pub static WORKLOAD: u8 = 0;\nconst NAME: &str = \"files\";\n",
        );
        copy
    };
    for line in [
        "fn f(name: &str) -> bool { name == \"files\" }\n",
        "const ID: &str = \"files-section\";\n",
        "use crate::files::NAME;\n",
    ] {
        let copy = lab();
        copy.write("crates/lab/src/report.rs", line);
        copy.fails_with(&["crates/lab/src/report.rs:1", "the lens of `files`"]);
    }
    let copy = lab();
    copy.write(
        "crates/lab/src/report.rs",
        "const SAID: &str = \"files of a run\"; // \"files\"\n",
    );
    assert_eq!(check(copy.0.path()).code, 0);
}
