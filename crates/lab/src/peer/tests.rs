#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;

use super::*;

/// Long enough for every program here to end by itself on a busy machine.
const AMPLE: Duration = Duration::from_secs(60);

/// A shell script with this body. Another process writes it: a file that this one has open for writing could not be
/// started while any other test starts a program.
pub(crate) fn script(folder: &Path, name: &str, body: &str) -> PathBuf {
    let path = folder.join(name);
    let status = Command::new("/bin/sh")
        .args([
            "-c",
            "printf '#!/bin/sh\\n%s\\n' \"$2\" > \"$1\" && chmod 755 \"$1\"",
            "sh",
        ])
        .arg(&path)
        .arg(body)
        .status()
        .unwrap();
    assert!(status.success());
    path
}

fn run_script(body: &str, max_output: usize, patience: Duration) -> Result<Ended, PeerError> {
    let folder = tempfile::tempdir().unwrap();
    let path = script(folder.path(), "peer", body);
    run(
        Command::new(path).stdin(Stdio::null()).current_dir(folder.path()),
        max_output,
        patience,
    )
}

/// True while a process with this number runs (one that has ended and is not waited for yet does not).
fn runs(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{}/stat", pid.trim())).is_ok_and(|stat| {
        !stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .trim_start()
            .starts_with(['Z', 'X'])
    })
}

/// Killed processes take a moment to be gone.
fn gone(pid: &str) -> bool {
    if !Path::new("/proc/self").exists() {
        println!("skipped: no /proc here");
        return true;
    }
    let from = Instant::now();
    while runs(pid) && from.elapsed() < AMPLE {
        std::thread::sleep(Duration::from_millis(1));
    }
    !runs(pid)
}

#[test]
fn a_program_that_ends_well_leaves_its_output_and_its_times() {
    let ended = run_script(
        "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo done",
        100,
        AMPLE,
    )
    .unwrap();
    assert_eq!(ended.output, b"done\n");
    let cpu = ended.cpu.unwrap();
    assert!(cpu > Duration::ZERO && ended.wall > Duration::ZERO, "{ended:?}");
}

#[test]
fn a_background_child_that_holds_the_pipe_holds_nobody_and_is_ended() {
    let ended = run_script("sleep 200 & echo $!", 100, AMPLE).unwrap();
    let pid = String::from_utf8(ended.output).unwrap();
    assert!(ended.wall < AMPLE && pid.trim().parse::<u32>().is_ok(), "{pid:?}");
    assert!(gone(&pid));
}

#[test]
fn endless_output_is_stopped_at_the_bound() {
    let error = run_script(
        "while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy; done",
        5000,
        AMPLE,
    )
    .unwrap_err();
    assert!(matches!(error, PeerError::TooMuchOutput { limit: 5000 }), "{error:?}");
    // As many bytes as the bound are no more than it, and more than a pipe holds is no obstacle.
    let ended = run_script("head -c 200000 /dev/zero", 200_000, AMPLE).unwrap();
    assert_eq!(ended.output.len(), 200_000);
    let error = run_script("head -c 200001 /dev/zero", 200_000, AMPLE).unwrap_err();
    assert!(matches!(error, PeerError::TooMuchOutput { .. }), "{error:?}");
}

#[test]
fn no_program_is_given_the_token_of_two_hosts() {
    let mut command = Command::new("/usr/bin/env");
    command
        .env(Token::VARIABLE, "a-secret-of-the-lab")
        .env("SEALWAY_OTHER", "1");
    let ended = run(&mut command, 100_000, AMPLE).unwrap();
    let words = String::from_utf8_lossy(&ended.output).into_owned();
    assert!(words.contains("SEALWAY_OTHER=1") && !words.contains(Token::VARIABLE));
}

#[test]
fn a_program_that_hangs_is_ended_with_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let path = script(folder.path(), "peer", "sleep 200 & echo $! > child; wait");
    let peer = Peer::start(Command::new(path).current_dir(folder.path()), 100).unwrap();
    let note = folder.path().join("child");
    let from = Instant::now();
    while fs::read_to_string(&note).unwrap_or_default().is_empty() && from.elapsed() < AMPLE {
        std::thread::sleep(Duration::from_millis(1));
    }
    let error = peer.wait(Duration::from_millis(1)).unwrap_err();
    assert!(matches!(error, PeerError::Deadline { .. }), "{error:?}");
    assert!(error.to_string().contains("was stopped"), "{error}");
    assert!(gone(&fs::read_to_string(&note).unwrap()));
}

#[test]
fn dropping_ends_the_group() {
    let peer = Peer::start(Command::new("/bin/sh").args(["-c", "sleep 200 & wait"]), 100).unwrap();
    let pid = peer.id().to_string();
    drop(peer);
    assert!(gone(&pid));
}

#[test]
fn a_program_leads_a_group_of_its_own() {
    if !Path::new("/proc/self").exists() {
        println!("skipped: no /proc here");
        return;
    }
    let ended = run_script("cat /proc/$$/stat", 1000, AMPLE).unwrap();
    let stat = String::from_utf8(ended.output).unwrap();
    let pid = stat.split(' ').next().unwrap();
    // State, parent, group.
    let group = stat.rsplit(')').next().unwrap().split_whitespace().nth(2).unwrap();
    assert_eq!(pid, group, "{stat}");
}

#[test]
fn failures_say_what_happened() {
    let error = run_script("exit 3", 100, AMPLE).unwrap_err();
    assert!(
        matches!(error, PeerError::Status { status, .. } if status.code() == Some(3)),
        "{error:?}"
    );
    assert!(error.to_string().contains("ended with"), "{error}");
    let error = run(&mut Command::new("/no/such/program"), 100, AMPLE).unwrap_err();
    assert!(matches!(error, PeerError::Start { .. }), "{error:?}");
    assert!(
        error.to_string().contains("cannot start \"/no/such/program\""),
        "{error}"
    );
}
