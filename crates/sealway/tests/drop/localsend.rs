//! LocalSend as programs, in network namespaces of their own: ours with ours, with localsendd and with curl.

use std::path::{Path, PathBuf};

use crate::common::namespace::in_namespace;
use crate::common::{PROGRAM, installed, peer_is_missing, private_folder, ran, sealway};

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
    in_namespace("drop/localsend/ours.sh", &[Path::new(PROGRAM), &curl, work.path()]);
}

/// A script with localsendd.
fn with_localsendd(script: &str) {
    let peer = installed("localsendd/bin");
    if !peer.join("localsendd").exists() {
        return peer_is_missing("there is no localsendd (scripts/install-peers)");
    }
    let work = private_folder();
    in_namespace(
        &format!("drop/localsend/{script}"),
        &[Path::new(PROGRAM), &peer, work.path()],
    );
}

#[test]
fn ours_with_localsendd() {
    with_localsendd("localsendd.sh");
}

#[test]
fn a_thousand_files_go_to_localsendd_and_come_from_there() {
    with_localsendd("many.sh");
}

#[test]
fn either_end_cancels_and_another_certificate_is_refused() {
    with_localsendd("endings.sh");
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
        ran(sealway(words).env("SEALWAY_CONFIG_DIR", dir.path())).says(2, &[said]);
    }
}
