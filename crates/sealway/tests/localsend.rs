//! LocalSend as programs, in network namespaces of their own: ours with ours, with localsendd and with curl.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{PROGRAM, Ran, peer_is_missing, private_folder, sealway};

/// A script in a network namespace of its own; none where there can be none.
fn in_namespace(script: &str, arguments: &[&Path]) -> Option<Output> {
    let unshare = || {
        let mut command = Command::new("unshare");
        // Whatever the script started ends with it.
        command.args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc"]);
        if !rustix::process::geteuid().is_root() {
            command.args(["--user", "--map-root-user"]);
        }
        command
    };
    if !unshare()
        .args(["ip", "link"])
        .output()
        .is_ok_and(|output| output.status.success())
    {
        peer_is_missing("there is no ip, or no namespace for it (scripts/install-peers)");
        return None;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/localsend")
        .join(script);
    let mut command = unshare();
    command
        .args(["timeout", "--kill-after=5", "300", "bash"])
        .arg(script)
        .args(arguments);
    for name in ["SEALWAY_PIN", "SEALWAY_RELAY", "SEALWAY_CODE"] {
        command.env_remove(name);
    }
    Some(command.stdin(std::process::Stdio::null()).output().unwrap())
}

fn succeeded(output: Option<Output>) {
    let Some(output) = output else { return };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{:?}\n{}{}",
        output.status,
        text(&output.stdout),
        text(&output.stderr)
    );
}

fn found(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

#[test]
fn ours_with_ours_and_with_curl() {
    let work = private_folder();
    let curl = found("curl").unwrap_or_else(|| {
        peer_is_missing("there is no curl (scripts/install-peers)");
        PathBuf::new()
    });
    succeeded(in_namespace("ours.sh", &[Path::new(PROGRAM), &curl, work.path()]));
}

#[test]
fn ours_with_localsendd() {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.unwrap_or_else(|| PathBuf::from(std::env::var_os("HOME").unwrap()).join(".local/share"));
    let peer = data.join("sealway-peers/localsendd/bin");
    if !peer.join("localsendd").exists() {
        return peer_is_missing("there is no localsendd (scripts/install-peers)");
    }
    let work = private_folder();
    succeeded(in_namespace("localsendd.sh", &[Path::new(PROGRAM), &peer, work.path()]));
}

#[test]
fn what_makes_no_sense_is_said() {
    let dir = private_folder();
    let out = dir.path().to_str().unwrap();
    for (words, said) in [
        (
            &["receive", "--localsend", "--pin=12", "--yes", out][..],
            "a PIN has 4 to 12 digits",
        ),
        (&["receive", "--localsend", out], "--yes"),
        (&["receive", "--pull", "x", out], "--localsend"),
        (&["receive", "--port", "1", out], "--localsend"),
        (&["receive", "--localsend", "--hash", "on", out], "cannot be used with"),
        (&["send", "--text", "x"], "--localsend"),
        (&["send", "--localsend", "x", "--text", "x", "y"], "cannot be used with"),
        (
            &["send", "--localsend", "x", "--relay", "y", "z"],
            "cannot be used with",
        ),
        (&["localsend", "--anyone"], "--yes"),
        (&["localsend", "forget", "nobody"], "no device is remembered as nobody"),
        (&["send", "--localsend", "x", "/nonexistent"], "/nonexistent"),
    ] {
        let ran = Ran::from(sealway(words).env("SEALWAY_CONFIG_DIR", dir.path()).output().unwrap());
        assert_eq!(ran.code, 2, "{words:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(said), "{words:?}: {}", ran.stderr);
    }
}
