//! How the programs of the drop end, and what they do where nobody can be asked.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::common::drop::{Place, Running, can_mount};
use crate::common::program::Program;
use crate::common::{ran, until, words};

/// An end that shares and one that mounts; both are ready.
fn shared(place: &Place) -> (Running, Running) {
    let share = place.start(&["share", "@tree", "--listen", "127.0.0.1:0", "--reconnect", "1"]);
    let mount = mounted(place, &share.address());
    share.until("ready");
    (share, mount)
}

fn mounted(place: &Place, address: &str) -> Running {
    let mount = place.start(&["mount", "@mount", "--connect", address, "--reconnect", "1"]);
    mount.until("ready");
    assert_eq!(fs::read(place.path("mount/file")).unwrap(), b"hello");
    mount
}

#[test]
fn a_signal_at_either_end_ends_both_in_good_order() {
    if !can_mount() {
        return;
    }
    for signal in [Signal::TERM, Signal::INT] {
        for mounting_end in [true, false] {
            let place = Place::with_tree();
            let (share, mount) = shared(&place);
            if mounting_end {
                mount.signal(signal);
                // It waits for others.
                assert!(share.until("left")["why"].is_null());
            }
            share.signal(signal);
            let (share, mount) = (share.ended(), mount.ended());
            assert_eq!((share.0, mount.0), (Some(0), Some(0)), "{share:?} {mount:?}");
            assert!(!place.path("mount/file").exists(), "still mounted");
        }
    }
}

#[test]
fn an_end_that_vanishes_is_looked_for_and_then_an_error_at_the_other() {
    if !can_mount() {
        return;
    }
    let place = Place::with_tree();
    let (share, mount) = shared(&place);
    share.signal(Signal::KILL);
    assert_eq!(mount.until("lost")["seconds"], 1);
    mount.until("gave-up");
    let (code, text) = mount.ended();
    assert_eq!(code, Some(7), "{text}");
    assert!(text.contains("lost"), "{text}");
    assert!(!place.path("mount/file").exists(), "still mounted");
    drop(share);

    let share = place.start(&["share", "@tree", "--listen", "127.0.0.1:0", "--reconnect", "1"]);
    let address = share.address();
    let mount = mounted(&place, &address);
    mount.signal(Signal::KILL);
    share.until("lost");
    assert!(share.until("left")["why"].as_str().unwrap().contains("lost"));
    drop(mount);
    // A mount whose server was killed stays behind, and the next one takes it away.
    let mount = mounted(&place, &address);
    mount.signal(Signal::TERM);
    assert_eq!(mount.ended().0, Some(0));
    share.signal(Signal::TERM);
    assert_eq!(share.ended().0, Some(0));
    assert!(!place.path("mount/file").exists(), "still mounted");
}

#[test]
fn a_signal_ends_a_question() {
    let place = Place::with_tree();
    let mut command = place.command(&["receive", "--output", "@out", "--yes", "--connect", "192.0.2.1:9"]);
    // The code is asked for, and nobody answers.
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let question = child.stdin.take();
    let running = Running::silent(child);
    let status = format!("/proc/{}/status", running.child.id());
    let catches = || {
        let status = fs::read_to_string(&status).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap() >> (Signal::TERM.as_raw() - 1) & 1 == 1
    };
    until("it listens to no signal", catches);
    running.signal(Signal::TERM);
    let (code, text) = running.ended();
    assert_eq!(code, Some(130), "{text}");
    assert!(text.contains("stopping"), "{text}");
    drop(question);
}

#[test]
fn a_mount_point_that_holds_something_is_said_before_anybody_is_asked_to_come() {
    let place = Place::with_tree();
    fs::write(place.path("mount/file"), b"here already").unwrap();
    for line in [
        "mount @mount --listen 127.0.0.1:0 --json",
        "share @tree --mount @mount --listen 127.0.0.1:0 --json",
    ] {
        let mut program = Program::start(&mut place.command(&words(line)));
        let mut said = String::new();
        // An end that waits says so first.
        let mut stdout = BufReader::new(program.stdout.take().unwrap());
        stdout.read_line(&mut said).unwrap();
        assert!(
            said.contains("\"error\"") && !said.contains("listening"),
            "{line} {said}"
        );
        assert!(said.contains("--nonempty"), "{line} {said}");
        assert_eq!(program.ended().code(), Some(2), "{line}");
    }
}

#[test]
fn where_nobody_can_be_asked_the_flag_that_decides_is_named() {
    let place = Place::with_tree();
    let everywhere = ["--listen", "0.0.0.0:0", "--anyone", "--json"];
    let elsewhere = ["--connect", "192.0.2.1:9", "--anyone", "--json"];
    for line in [
        "send @tree/file",
        "send @tree/file --via grpc",
        "receive --output @out --yes",
        "share @tree",
        "mount @mount",
    ] {
        for address in [everywhere, elsewhere] {
            let ran = place.run(&[&words(line)[..], &address].concat());
            ran.says(2, &["--unchecked", "no terminal"]);
            assert!(
                !ran.stdout.contains("listening"),
                "it has asked somebody to come: {ran:?}"
            );
        }
    }
    for (line, says) in [
        ("receive --output @out --listen 127.0.0.1:0", "--yes"),
        (
            "receive --output @out --yes --connect 192.0.2.1:9",
            "hint: write it to standard input",
        ),
        (
            "receive --output @out --listen 127.0.0.1:0 --yes --conflict ask",
            "--conflict rename",
        ),
        ("send @tree/file --listen 127.0.0.1:0 --unchecked", "--anyone"),
    ] {
        place.run(&words(line)).says(2, &[says]);
    }
}

#[test]
fn unchecked_takes_whoever_comes() {
    let place = Place::with_tree();
    let receiver = place.start(&words(
        "receive --listen 0.0.0.0:0 --output @out --yes --anyone --unchecked",
    ));
    let address = receiver.address();
    let port = address.rsplit_once(':').unwrap().1;
    let sent = place.run(&["send", "@tree/file", "--connect", &format!("127.0.0.1:{port}")]);
    sent.says(0, &[]);
    let connected = receiver.until("connected");
    assert_eq!(connected["proved"], false, "{connected}");
    assert!(connected["check"].as_str().unwrap().split(' ').count() == 5);
    assert_eq!(receiver.ended().0, Some(0));
    assert_eq!(fs::read(place.path("out/file")).unwrap(), b"hello");
}

/// How long an end that is alone now may take, on a machine that has other things to do.
const SOON: Duration = Duration::from_secs(15);

/// Found where one of three receivers that were stopped in the middle left the sender waiting for minutes.
#[test]
fn a_stop_in_the_middle_is_said_at_the_other_end() {
    let place = Place::with_tree();
    fs::write(place.path("tree/large"), vec![7; 256 << 20]).unwrap();
    for (delay, sender_stops) in [
        (0, false),
        (40, true),
        (90, false),
        (150, true),
        (200, false),
        (250, false),
    ] {
        let (receiver, address) = place.receiver(&[]);
        let sender = place.start(&["send", "--connect", &address, "@tree"]);
        receiver.until("connected");
        std::thread::sleep(Duration::from_millis(delay));
        let (victim, other) = match sender_stops {
            true => (sender, receiver),
            false => (receiver, sender),
        };
        victim.signal(Signal::TERM);
        let begun = Instant::now();
        let last = loop {
            let told = other.events.recv_timeout(SOON).unwrap();
            if ["error", "done"].contains(&told["event"].as_str().unwrap()) {
                break told;
            }
        };
        assert!(begun.elapsed() < SOON);
        // All may have been in place already.
        if last["event"] == "error" {
            assert_eq!(last["text"], "the other end was stopped", "{delay} {last}");
            assert_eq!((last["exit"].as_u64(), victim.ended().0), (Some(7), Some(130)));
            let (code, text) = other.ended();
            assert_eq!(code, Some(7), "{text}");
            assert!(text.contains("the other end was stopped"), "{text}");
        }
        let _ = fs::remove_dir_all(place.path("out/tree"));
    }
}

#[test]
fn what_could_not_be_read_is_counted_at_both_ends() {
    let place = Place::with_tree();
    // Nothing that can be sent.
    let _socket = std::os::unix::net::UnixListener::bind(place.path("tree/socket")).unwrap();
    let (receiver, address) = place.receiver(&[]);
    let sender = place.start(&["send", "--connect", &address, "@tree"]);
    for end in [sender, receiver] {
        let done = end.until("done");
        assert_eq!([&done["files"], &done["failed"]], [1, 1], "{done}");
        let (code, text) = end.ended();
        assert_eq!(code, Some(11), "{text}");
    }
}

#[test]
fn every_failure_is_told_to_programs_once() {
    let place = Place::with_tree();
    for (line, exit) in [
        (
            "receive --yes --output @nowhere/at/all --listen 127.0.0.1:0 --json",
            None,
        ),
        ("receive --yes --output @out --connect no-address --json", Some(2)),
        ("send @missing --listen 127.0.0.1:0 --json", None),
        ("mount @missing --listen 127.0.0.1:0 --json", Some(2)),
        ("send @tree --connect 127.0.0.1:0 --json", Some(7)),
    ] {
        let ran = place.run(&words(line));
        let event = |line| serde_json::from_str::<serde_json::Value>(line).unwrap();
        let events: Vec<_> = ran.stdout.lines().map(event).collect();
        let errors: Vec<_> = events.iter().filter(|event| event["event"] == "error").collect();
        assert_eq!(errors.len(), 1, "{line} {ran:?}");
        assert_eq!(errors[0]["exit"], ran.code, "{line} {ran:?}");
        assert!(exit.is_none_or(|exit| ran.code == exit), "{line} {ran:?}");
    }
}

#[test]
fn a_code_in_place_of_a_folder_is_told_where_it_goes() {
    let place = Place::with_tree();
    for (line, hint) in [
        ("receive --yes 7-castle-lemon", "`sealway receive`"),
        ("receive --yes --output 7-castle-lemon-opera", "`sealway receive`"),
        // Also where somebody would have to be asked, and nobody can be.
        ("receive 7-castle-lemon-opera", "`sealway receive`"),
        ("localsend --output 7-castle-lemon-opera", "`sealway receive`"),
        ("send 7-castle-lemon-opera", "`sealway receive`"),
        ("mount 7-castle-lemmon-opera", "`sealway mount MOUNTPOINT`"),
        ("share 7-castle-lemon-opera", "`sealway mount MOUNTPOINT`"),
        (
            "pair 7-castle-lemon-opera @mount",
            "`sealway pair --join DIR MOUNTPOINT`",
        ),
    ] {
        let ran = place.run(&words(line));
        ran.says(ran.code, &["this looks like a code", hint]);
        assert!(!ran.stderr.contains("terminal"), "{line} {ran:?}");
    }
    // Other names are no codes.
    for line in ["receive --yes 2024-invoices", "mount missing", "send missing"] {
        let ran = place.run(&words(line));
        assert!(ran.code != 0 && !ran.stderr.contains("code"), "{line} {ran:?}");
    }
}

#[test]
fn a_code_of_a_wrong_length_is_refused_before_anything_is_sent() {
    let place = Place::with_tree();
    for code in ["7-castle-lemon", "7-castle-lemon-opera-castle"] {
        // Nobody is there, which would be said after ten seconds.
        let mut command = place.command(&words("receive --output @out --yes --connect 192.0.2.1:9 --code"));
        ran(command.env("SEALWAY_CODE", code)).says(2, &["3 words"]);
    }
}
