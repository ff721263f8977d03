//! `share --http` and `receive --http`: what they print, and that it works as it is printed.

use std::fs;
use std::process::{Command, Output};

use rustix::process::Signal;

use crate::common::drop::{Place, Running};
use crate::common::terminal::Terminal;
use crate::common::{peer_is_missing, words};

/// Ctrl-C, and with which code it ends.
fn stop(running: Running) -> Option<i32> {
    running.signal(Signal::INT);
    running.ended().0
}

/// A line that was printed, run by a shell as a person would.
fn shell(line: &str) -> Option<Output> {
    if Command::new("curl").arg("--version").output().is_err() {
        peer_is_missing("curl is not on PATH");
        return None;
    }
    let line = line.replacen("curl", "curl -sS --noproxy '*'", 1);
    Some(Command::new("sh").args(["-c", &line]).output().unwrap())
}

#[test]
fn the_printed_line_of_curl_fetches_the_folder_and_nothing_secret_is_told() {
    let place = Place::with_tree();
    let running = place.start(&["share", "--http", "@tree", "--listen", "127.0.0.1:0"]);
    let told = running.until("link");
    let url = told["link"].as_str().unwrap();
    assert!(url.starts_with("https://127.0.0.1:"), "{url}");
    assert_eq!(told["fingerprint"].as_str().unwrap().split(':').count(), 32);
    let line = told["curl"].as_str().unwrap();
    assert!(line.contains("--pinnedpubkey 'sha256//"), "{line}");
    let Some(output) = shell(&line.replace("-OJ", "-o -")) else {
        return;
    };
    assert!(
        output.status.success() && output.stdout.starts_with(b"PK\x03\x04"),
        "{output:?}"
    );
    let sent = running.until("sent");
    assert!(sent["path"] == "tree.zip" && sent["whole"] == true, "{sent}");
    let token = url.split('/').nth(3).unwrap();
    assert!(!sent.to_string().contains(token));
    assert_eq!(stop(running), Some(0), "to be stopped is how this ends");
}

#[test]
fn files_are_received_with_a_pin_and_without_tls() {
    let place = Place::new();
    let words = words("receive --http @out --listen 127.0.0.1:0 --plain --pin --json");
    let running = Running::of(place.command(&words).env("SEALWAY_PIN", "secret pin"));
    let told = running.until("link");
    assert!(told["pin"] == "secret pin" && told["fingerprint"].is_null(), "{told}");
    let line = told["curl"].as_str().unwrap();
    let file = place.path("file");
    let line = line.replace("FILE", file.to_str().unwrap());
    let Some(refused) = shell(&line.replace("-u :PIN", "-f")) else {
        return;
    };
    assert!(!refused.status.success(), "a PIN is needed");
    let output = shell(&line.replace(":PIN", "':secret pin'")).unwrap();
    assert_eq!(output.stdout, b"file\n", "{output:?}");
    let received = running.until("received");
    assert!(received["path"] == "file" && received["bytes"] == 5, "{received}");
    assert_eq!(fs::read(place.path("out/file")).unwrap(), b"hello");
    assert_eq!(stop(running), Some(0));
}

#[test]
fn a_person_sees_a_code_for_the_camera_and_the_fingerprint() {
    let place = Place::with_tree();
    let words = ["share", "--http", "@tree", "@file", "--listen", "127.0.0.1:0"];
    let mut terminal = Terminal::run(place.command(&words), 80);
    let shown = terminal.until("Ctrl-C ends it");
    // Black and white are both painted.
    for part in ["\x1b[38;5;16;48;5;231m    ", "█", "SHA-256", "https://127.0.0.1:"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    terminal.child.signal(Signal::INT);
    assert_eq!(terminal.ended().0, Some(0));
    // No terminal, no picture; and the warning of --plain.
    let running = place.start(&["share", "--http", "@file", "--listen", "127.0.0.1:0"]);
    assert!(!running.until("link").to_string().contains('█'));
}

#[test]
fn what_makes_no_sense_is_said() {
    let place = Place::with_tree();
    for (line, expected) in [
        ("share --http @none", "No such file"),
        (
            "share --http @tree @file --allow-upload --listen 127.0.0.1:0",
            "one shared folder only",
        ),
        (
            "share --http @file @file --listen 127.0.0.1:0",
            "two of the paths are called file",
        ),
        ("share @tree @out", "one folder is shared at a time"),
        ("share --http @tree --connect 127.0.0.1:1", "cannot be used with"),
        ("share @tree --plain", "--http"),
        (
            "share --http @tree --cert @file --key @file --listen 127.0.0.1:0",
            "there is no certificate in it",
        ),
        ("receive --http @none", "it is not there"),
        ("receive --http @out --conflict ask", "--conflict"),
        ("receive @out --pin", "--http"),
    ] {
        let ran = place.run(&words(line));
        assert!(ran.code != 0 && ran.stderr.contains(expected), "{line}: {ran:?}");
    }
}
