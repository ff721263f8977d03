//! `sealway send`, `receive` and `relay` as programs.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::common::drop::{Place, RECEIVE, Running, content};
use crate::common::program::{Program, ended};
use crate::common::{ran, words};

/// Sends to an end that listens here, without a word.
fn send(place: &Place, address: &str, what: &str) -> Command {
    place.command(&["send", "--connect", address, "--quiet", what])
}

#[test]
fn a_file_goes_over_loopback_without_a_code() {
    let place = Place::new();
    fs::write(place.path("file.bin"), content(3 << 20, 1)).unwrap();
    let (receiver, address) = place.receiver(&[]);
    let sent = ran(&mut send(&place, &address, "@file.bin"));
    assert_eq!(sent.answer(), "", "quiet is quiet");
    let (code, said) = receiver.ended();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(fs::read(place.path("out/file.bin")).unwrap(), content(3 << 20, 1));
}

#[test]
fn the_sender_may_listen_and_the_receiver_connect() {
    let place = Place::new();
    let sender = place.start(&["send", "--listen", "127.0.0.1:0", "@file"]);
    let address = sender.address();
    let received = place.run(&["receive", "--connect", &address, "--output", "@out", "--yes", "--quiet"]);
    received.says(0, &[]);
    assert_eq!(sender.ended().0, Some(0));
    assert_eq!(fs::read(place.path("out/file")).unwrap(), b"hello");
}

#[test]
fn codes_must_agree() {
    for (code, exit) in [("7-acid-acorn-actor", 9), ("", 0)] {
        let place = Place::new();
        // Read backwards they are another code, unless the first is the last.
        let words = std::iter::repeat_with(words_of_a_code).find(|words| words[0] != words[2]);
        let words = words.unwrap();
        let right = format!("7-{}", words.join("-"));
        let mut command = place.command(&[&RECEIVE[..], &["--json"]].concat());
        let receiver = Running::of(command.env("SEALWAY_CODE", &right));
        let address = receiver.address();
        let theirs = if code.is_empty() {
            right
        } else {
            format!("7-{}-{}-{}", words[2], words[1], words[0])
        };
        let sent = ran(send(&place, &address, "@file").env("SEALWAY_CODE", theirs));
        let (received, said) = receiver.ended();
        assert_eq!((sent.code, received), (exit, Some(exit)), "{sent:?} {said}");
        assert_eq!(place.path("out/file").exists(), exit == 0);
    }
}

/// The words of a code, as the program itself makes them.
fn words_of_a_code() -> Vec<String> {
    let place = Place::new();
    let sender = place.start(&["send", "--listen", "127.0.0.1:0", "--code", "@file"]);
    let told = sender.until("code");
    let code = told["code"].as_str().unwrap();
    code.split('-').skip(1).map(String::from).collect()
}

#[test]
fn both_ends_meet_at_a_relay() {
    let place = Place::new();
    fs::write(place.path("file"), content(5 << 20, 3)).unwrap();
    let (_relay, address) = place.relay();
    let sender = place.start(&["send", "--relay", &address, "@file"]);
    let mut receive = place.command(&["receive", "--relay", &address, "--output", "@out", "--yes", "--quiet"]);
    let told = sender.until("code");
    ran(receive.env("SEALWAY_CODE", told["code"].as_str().unwrap())).says(0, &[]);
    assert_eq!(sender.ended().0, Some(0));
    assert_eq!(fs::read(place.path("out/file")).unwrap(), content(5 << 20, 3));
}

fn key_of(place: &Place) -> String {
    place.run(&["identity"]).stdout.trim().to_owned()
}

#[test]
fn keys_meet_at_a_relay_without_a_code() {
    let (place, there, stranger) = (Place::new(), Place::new(), Place::new());
    fs::write(place.path("file"), content(5 << 20, 4)).unwrap();
    let (_relay, address) = place.relay();
    let (key, theirs) = (key_of(&place), key_of(&there));
    let sender = place.start(&["send", "--relay", &address, "--peer", &theirs, "@file"]);
    // Who is not meant does not come to it, whatever it is told.
    let receive = format!("receive --relay {address} --peer {key} --output @out --yes");
    let mut other = stranger.start(&words(&receive));
    there.run(&words(&format!("{receive} --quiet"))).says(0, &[]);
    assert_eq!(sender.ended().0, Some(0));
    assert_eq!(fs::read(there.path("out/file")).unwrap(), content(5 << 20, 4));
    assert!(other.child.runs(), "it waits");
    other.signal(rustix::process::Signal::INT);
    assert_eq!(other.ended().0, Some(130));
    assert_eq!(content_below(&stranger.path("out")), 0);
    let two = ["send", "--relay", &address, "--peer", &theirs, "--peer", &key, "@file"];
    place.run(&two).says(2, &["one key only"]);
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
        let mut sender = Program::start(&mut send(&place, &address, "@tree"));
        // Somewhere in the middle, further on each time; a transfer that was faster than that has just finished.
        let until = Instant::now() + Duration::from_secs(60);
        let wanted = content_below(&out) + (10 << 20);
        while content_below(&out) < wanted && Instant::now() < until && sender.runs() {
            std::thread::yield_now();
        }
        match round % 2 {
            0 => receiver.child.kill().unwrap(),
            _ => sender.kill().unwrap(),
        }
        // A sender that was killed before it came leaves a receiver that waits on, as it should.
        for other in [&mut sender, &mut receiver.child] {
            ended(other, Duration::from_secs(10));
            let _ = other.kill();
        }
    }
    let staged = content_below(&out);
    assert!(staged > 10 << 20, "nothing was there to go on with: {staged}");
    let total = content_below(&tree);
    let (receiver, address) = place.receiver(&[]);
    let sender = place.start(&["send", "--connect", &address, "@tree"]);
    let done = sender.until("done");
    let (code, said) = sender.ended();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(receiver.ended().0, Some(0));
    let moved = done["bytes"].as_u64().unwrap();
    let again = (moved + staged).saturating_sub(total);
    assert!(again <= 64 << 20, "{again} bytes were sent again: {done}");
    assert_eq!(fs::read(out.join("tree/large")).unwrap(), content(96 << 20, 1));
    for i in 0..300 {
        let there = fs::read(out.join(format!("tree/sub/{i}"))).unwrap();
        assert_eq!(there, content(i * 50, i as u64), "{i}");
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
    for (line, says) in [
        ("send --connect 127.0.0.1:1 /no/such/file", "/no/such/file"),
        (
            "receive --listen 127.0.0.1:0 --yes --output /no/such/folder",
            "/no/such/folder",
        ),
        ("receive --listen 127.0.0.1:0 --output @out", "--yes"),
        ("receive --connect 127.0.0.1 --yes --output @out", "HOST:PORT"),
        ("receive --connect 192.0.2.1:9 --yes --output @out", "SEALWAY_CODE"),
        ("send --connect 127.0.0.1:9 --peer nobody Cargo.toml", "identity"),
    ] {
        place.run(&words(line)).says(2, &[says]);
    }
}

#[test]
fn a_pinned_key_is_insisted_on() {
    let (place, stranger) = (Place::new(), Place::new());
    let (key, other) = (key_of(&place), key_of(&stranger));
    assert_ne!(key, other);
    for (pinned, exit) in [(&other, 9), (&key, 0)] {
        let (mut receiver, address) = place.receiver(&[]);
        ran(send(&place, &address, "@file").args(["--peer", pinned])).says(exit, &[]);
        // A listening end lets strangers go and waits on.
        if exit != 0 {
            receiver.child.kill().unwrap();
        }
        receiver.ended();
    }
}
