//! Runs the built program.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

#[cfg(target_os = "linux")]
pub mod drop;
#[cfg(target_os = "linux")]
pub mod namespace;
#[cfg(target_os = "linux")]
pub mod proxy;
#[cfg(target_os = "linux")]
pub mod terminal;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The workspace this test was built from.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// The program with an environment that does not depend on who runs the test.
pub fn sealway(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).stdin(Stdio::null());
    for name in ["SEALWAY_CPU_DISABLE", "NO_COLOR", "CLICOLOR_FORCE", "COLUMNS", "TERM"] {
        command.env_remove(name);
    }
    command.env("SEALWAY_LAB_STORE", "none");
    for family in ["XRAY", "V2RAY"] {
        for what in ["CONFIG", "CONFDIR", "CERT"] {
            let name = format!("{family}_LOCATION_{what}");
            command
                .env_remove(name.to_lowercase().replace('_', "."))
                .env_remove(name);
        }
    }
    command
}

/// A temporary folder that only its owner may enter, as suits what holds secrets.
pub fn private_folder() -> tempfile::TempDir {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder.tempdir().unwrap()
}

/// The program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_sealway");

/// Says that something was skipped for want of a peer; with `SEALWAY_REQUIRE_PEERS=1` that is a failure.
pub fn peer_is_missing(what: &str) {
    let required = std::env::var("SEALWAY_REQUIRE_PEERS").is_ok_and(|value| value == "1");
    assert!(!required, "SEALWAY_REQUIRE_PEERS=1, but {what}");
    println!("skipped: {what}");
}

/// What one run printed and how it ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

pub fn run(arguments: &[&str]) -> Ran {
    sealway(arguments).output().unwrap().into()
}
