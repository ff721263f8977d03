//! Runs the built program.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

#[cfg(target_os = "linux")]
pub mod drop;
#[cfg(target_os = "linux")]
pub mod namespace;
#[cfg(unix)]
pub mod program;
#[cfg(target_os = "linux")]
pub mod proxy;
#[cfg(target_os = "linux")]
pub mod terminal;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Long enough for a busy machine; only what hangs waits for it.
pub const PATIENCE: Duration = Duration::from_secs(60);

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

/// Whether Xray is here; a test says that it was skipped.
pub fn xray_is_there() -> bool {
    let mut version = Command::new("xray");
    let there = version.arg("version").output().is_ok_and(|out| out.status.success());
    if !there {
        peer_is_missing("there is no xray");
    }
    there
}

/// Where `scripts/install-peers` puts what is not a program.
pub fn installed(name: &str) -> PathBuf {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".local/share"));
    data.join("sealway-peers").join(name)
}

/// What one run printed and how it ended.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// It ended with this code and said all of this on standard error.
    #[track_caller]
    pub fn says(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, code, "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "lacks {word:?}: {self:?}");
        }
    }

    /// The same, before it had anything to print.
    #[track_caller]
    pub fn refuses(&self, code: i32, words: &[&str]) {
        self.says(code, words);
        assert_eq!(self.stdout, "", "{self:?}");
    }

    /// It did what it was asked to, and warned of nothing: what it printed.
    #[track_caller]
    pub fn answer(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (0, ""), "{self:?}");
        self.stdout
    }
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
    ran(&mut sealway(arguments))
}

/// Runs a command to its end.
pub fn ran(command: &mut Command) -> Ran {
    command.output().unwrap().into()
}

/// The same with a text on standard input.
pub fn given(command: &mut Command, text: &str) -> Ran {
    let pipes = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = pipes.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

/// The words of a line that has no quotes.
pub fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Waits until it is so.
#[track_caller]
pub fn until(what: &str, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Compares with a kept text. `SEALWAY_UPDATE_GOLDEN=1` writes it anew, for a person to review in the diff.
pub fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("SEALWAY_UPDATE_GOLDEN").is_some() {
        fs::write(&path, text).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap();
    assert!(
        kept == text,
        "{name} differs; set SEALWAY_UPDATE_GOLDEN=1 if that is meant. It is now:\n{text}"
    );
}
