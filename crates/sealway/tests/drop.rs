//! `sealway send`, `receive` and `relay` as programs.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_sealway");

/// A folder in which two ends meet.
struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("out")).unwrap();
        Place { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command
            .args(words)
            .env("SEALWAY_CONFIG_DIR", self.path("config"))
            .env_remove("SEALWAY_CODE")
            .env_remove("SEALWAY_RELAY");
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// A receiver that listens, and its address.
    fn receiver(&self, more: &[&str]) -> (Child, String) {
        let out = self.path("out");
        let words = [
            "receive",
            "--listen",
            "127.0.0.1:0",
            "--output",
            out.to_str().unwrap(),
            "--yes",
            "--json",
        ];
        let mut child = self.command(&[&words, more].concat()).spawn().unwrap();
        let address = listening(&mut child);
        (child, address)
    }

    fn send(&self, address: &str, path: &Path) -> Command {
        self.command(&["send", "--connect", address, "--quiet", path.to_str().unwrap()])
    }
}

/// Waits for the line that says where a program listens. The rest of its output is read and thrown away.
fn listening(child: &mut Child) -> String {
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let value: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|_| {
        let mut error = String::new();
        child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        panic!("{line:?} {error}");
    });
    std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
    value["address"].as_str().unwrap().to_owned()
}

fn content(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2) + 1;
    let mut next = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 32) as u32
    };
    (0..len.div_ceil(4))
        .flat_map(|_| next().to_le_bytes())
        .take(len)
        .collect()
}

fn text(output: &Output) -> String {
    format!(
        "{:?} {} {}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn finished(child: Child) -> Output {
    child.wait_with_output().unwrap()
}

#[test]
fn a_file_goes_over_loopback_without_a_code() {
    let place = Place::new();
    let file = place.path("file.bin");
    fs::write(&file, content(3 << 20, 1)).unwrap();
    let (receiver, address) = place.receiver(&[]);
    let sent = place.send(&address, &file).output().unwrap();
    assert!(sent.status.success(), "{}", text(&sent));
    assert_eq!(
        text(&sent),
        text(&Output {
            status: sent.status,
            stdout: vec![],
            stderr: vec![]
        }),
        "quiet is quiet"
    );
    let received = finished(receiver);
    assert!(received.status.success(), "{}", text(&received));
    assert_eq!(fs::read(place.path("out/file.bin")).unwrap(), content(3 << 20, 1));
}

#[test]
fn the_sender_may_listen_and_the_receiver_connect() {
    let place = Place::new();
    let file = place.path("file");
    fs::write(&file, b"hello").unwrap();
    let mut sender = place
        .command(&["send", "--listen", "127.0.0.1:0", "--json", file.to_str().unwrap()])
        .spawn()
        .unwrap();
    let address = listening(&mut sender);
    let out = place.path("out");
    let received = place
        .command(&[
            "receive",
            "--connect",
            &address,
            "--output",
            out.to_str().unwrap(),
            "--yes",
            "--quiet",
        ])
        .output()
        .unwrap();
    assert!(received.status.success(), "{}", text(&received));
    assert!(finished(sender).status.success());
    assert_eq!(fs::read(out.join("file")).unwrap(), b"hello");
}

#[test]
fn codes_must_agree() {
    for (code, exit) in [("7-acid-acorn-actor", 9), ("", 0)] {
        let place = Place::new();
        let file = place.path("file");
        fs::write(&file, b"hello").unwrap();
        // Read backwards they are another code, unless the first is the last.
        let words = std::iter::repeat_with(words)
            .find(|words| words[0] != words[2])
            .unwrap();
        let right = format!("7-{}", words.join("-"));
        let out = place.path("out");
        let mut receiver = place
            .command(&[
                "receive",
                "--listen",
                "127.0.0.1:0",
                "--output",
                out.to_str().unwrap(),
                "--yes",
                "--json",
            ])
            .env("SEALWAY_CODE", &right)
            .spawn()
            .unwrap();
        let address = listening(&mut receiver);
        let theirs = if code.is_empty() {
            right
        } else {
            format!("7-{}-{}-{}", words[2], words[1], words[0])
        };
        let sent = place
            .send(&address, &file)
            .env("SEALWAY_CODE", theirs)
            .output()
            .unwrap();
        let received = finished(receiver);
        assert_eq!(
            (sent.status.code(), received.status.code()),
            (Some(exit), Some(exit)),
            "{} {}",
            text(&sent),
            text(&received)
        );
        assert_eq!(out.join("file").exists(), exit == 0);
    }
}

/// The words of a code, as the program itself makes them.
fn words() -> Vec<String> {
    let place = Place::new();
    fs::write(place.path("file"), b"x").unwrap();
    let mut sender = place
        .command(&[
            "send",
            "--listen",
            "127.0.0.1:0",
            "--code",
            "--json",
            place.path("file").to_str().unwrap(),
        ])
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(sender.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    sender.kill().unwrap();
    sender.wait().unwrap();
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    let code = value["code"].as_str().unwrap();
    code.split('-').skip(1).map(String::from).collect()
}

#[test]
fn both_ends_meet_at_a_relay() {
    let place = Place::new();
    let file = place.path("file");
    fs::write(&file, content(5 << 20, 3)).unwrap();
    let mut relay = place
        .command(&["relay", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(relay.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let address = line.trim().rsplit(' ').next().unwrap().to_owned();
    let mut sender = place
        .command(&["send", "--relay", &address, "--json", file.to_str().unwrap()])
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(sender.stdout.take().unwrap());
    line.clear();
    lines.read_line(&mut line).unwrap();
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    let out = place.path("out");
    let received = place
        .command(&[
            "receive",
            "--relay",
            &address,
            "--output",
            out.to_str().unwrap(),
            "--yes",
            "--quiet",
        ])
        .env("SEALWAY_CODE", value["code"].as_str().unwrap())
        .output()
        .unwrap();
    assert!(received.status.success(), "{}", text(&received));
    std::io::copy(&mut lines, &mut std::io::sink()).unwrap();
    assert!(finished(sender).status.success());
    assert_eq!(fs::read(out.join("file")).unwrap(), content(5 << 20, 3));
    relay.kill().unwrap();
    relay.wait().unwrap();
}

/// Bytes of content in all files below a folder; room that is only set aside does not count.
fn content_below(dir: &Path) -> u64 {
    let mut sum = 0;
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sum += content_below(&path);
        } else if let Ok(file) = fs::File::open(&path) {
            let mut at = 0;
            while let Ok(data) = rustix::fs::seek(&file, rustix::fs::SeekFrom::Data(at)) {
                let Ok(hole) = rustix::fs::seek(&file, rustix::fs::SeekFrom::Hole(data)) else {
                    break;
                };
                sum += hole - data;
                at = hole;
            }
        }
    }
    sum
}

#[test]
fn a_killed_transfer_goes_on() {
    let place = Place::new();
    let tree = place.path("tree");
    fs::create_dir_all(tree.join("sub")).unwrap();
    fs::write(tree.join("large"), content(96 << 20, 1)).unwrap();
    for i in 0..300 {
        fs::write(tree.join(format!("sub/{i}")), content(i * 50, i as u64)).unwrap();
    }
    let out = place.path("out");
    for round in 0..6 {
        let (mut receiver, address) = place.receiver(&[]);
        let mut sender = place.send(&address, &tree).spawn().unwrap();
        // Somewhere in the middle, further on each time; a transfer that was faster than that has just finished.
        let until = Instant::now() + Duration::from_secs(60);
        let wanted = content_below(&out) + (10 << 20);
        while content_below(&out) < wanted && Instant::now() < until && sender.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        let victim = if round % 2 == 0 { &mut receiver } else { &mut sender };
        victim.kill().unwrap();
        // A sender that was killed before it came leaves a receiver that waits on, as it should.
        for mut other in [sender, receiver] {
            let until = Instant::now() + Duration::from_secs(10);
            while other.try_wait().unwrap().is_none() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(5));
            }
            let _ = other.kill();
            finished(other);
        }
    }
    let staged = content_below(&out);
    assert!(staged > 10 << 20, "nothing was there to go on with: {staged}");
    let total = content_below(&tree);
    let (mut receiver, address) = place.receiver(&[]);
    let output = place
        .command(&["send", "--connect", &address, "--json", tree.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output));
    assert!(receiver.wait().unwrap().success());
    let last = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .last()
        .unwrap()
        .to_owned();
    let done: serde_json::Value = serde_json::from_str(&last).unwrap();
    assert_eq!(done["event"], "done");
    let moved = done["bytes"].as_u64().unwrap();
    let again = (moved + staged).saturating_sub(total);
    assert!(again <= 64 << 20, "{again} bytes were sent again: {done}");
    assert_eq!(fs::read(out.join("tree/large")).unwrap(), content(96 << 20, 1));
    for i in 0..300 {
        assert_eq!(
            fs::read(out.join(format!("tree/sub/{i}"))).unwrap(),
            content(i * 50, i as u64),
            "{i}"
        );
    }
    let names: Vec<_> = fs::read_dir(&out)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(names, ["tree"], "something was left behind");
}

#[test]
fn what_is_wrong_is_said_before_anybody_waits() {
    let place = Place::new();
    let out = place.path("out");
    let cases: [(&[&str], i32, &str); 6] = [
        (
            &["send", "--connect", "127.0.0.1:1", "/no/such/file"],
            2,
            "/no/such/file",
        ),
        (
            &[
                "receive",
                "--listen",
                "127.0.0.1:0",
                "--yes",
                "--output",
                "/no/such/folder",
            ],
            2,
            "/no/such/folder",
        ),
        (
            &["receive", "--listen", "127.0.0.1:0", "--output", out.to_str().unwrap()],
            2,
            "--yes",
        ),
        (
            &[
                "receive",
                "--connect",
                "127.0.0.1",
                "--yes",
                "--output",
                out.to_str().unwrap(),
            ],
            2,
            "HOST:PORT",
        ),
        (
            &[
                "receive",
                "--connect",
                "192.0.2.1:9",
                "--yes",
                "--output",
                out.to_str().unwrap(),
            ],
            2,
            "SEALWAY_CODE",
        ),
        (
            &["send", "--connect", "127.0.0.1:9", "--peer", "nobody", "Cargo.toml"],
            2,
            "identity",
        ),
    ];
    for (words, exit, says) in cases {
        let output = place.command(words).output().unwrap();
        assert_eq!(output.status.code(), Some(exit), "{words:?} {}", text(&output));
        assert!(text(&output).contains(says), "{words:?} {}", text(&output));
    }
}

#[test]
fn a_pinned_key_is_insisted_on() {
    let place = Place::new();
    fs::write(place.path("file"), b"hello").unwrap();
    let own = place.command(&["identity"]).output().unwrap();
    let key = String::from_utf8(own.stdout).unwrap().trim().to_owned();
    let stranger = Place::new();
    let other = String::from_utf8(stranger.command(&["identity"]).output().unwrap().stdout)
        .unwrap()
        .trim()
        .to_owned();
    assert_ne!(key, other);
    for (pinned, exit) in [(&other, 9), (&key, 0)] {
        let (mut receiver, address) = place.receiver(&[]);
        let sent = place
            .command(&[
                "send",
                "--connect",
                &address,
                "--peer",
                pinned,
                "--quiet",
                place.path("file").to_str().unwrap(),
            ])
            .output()
            .unwrap();
        assert_eq!(sent.status.code(), Some(exit), "{}", text(&sent));
        // A listening end lets strangers go and waits on.
        if exit != 0 {
            receiver.kill().unwrap();
        }
        receiver.wait().unwrap();
    }
}
