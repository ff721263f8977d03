//! What a person sees of `sealway send` and `receive`, and is asked.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::common::drop::{Place, Running};
use crate::common::program::Program;
use crate::common::terminal::Terminal;
use crate::common::{Ran, given, ran, words};

#[test]
fn the_question_shows_what_a_yes_is_to_and_takes_a_clear_answer_only() {
    let place = Place::new();
    let long = format!("{}.pdf.exe", "x".repeat(200));
    fs::create_dir(place.path("tree")).unwrap();
    std::os::unix::fs::symlink("sub", place.path("tree/link")).unwrap();
    let mut paths = vec!["@tree".to_owned(), format!("@{long}")];
    fs::write(place.path(&long), b"x").unwrap();
    for i in 0..11 {
        fs::write(place.path(&format!("y{i:02}")), b"x").unwrap();
        paths.push(format!("@y{i:02}"));
    }
    let (mut terminal, address) = place.receiver_at_terminal(60, &[]);
    let words: Vec<&str> = ["send", "--connect", &address, "--json"]
        .into_iter()
        .chain(paths.iter().map(String::as_str))
        .collect();
    let begun = Instant::now();
    let sender = Running::of(&mut place.command(&words));
    assert_eq!(sender.until("waiting")["for"], "accept");
    let question = terminal.until("take it? [y/N, l lists the names] ");
    assert!(question.contains("12 files, 1 folder and 1 link;"), "{question:?}");
    assert!(question.contains(" are free here"), "{question:?}");
    assert!(question.contains("\r\n  and 3 more\r\n"), "{question:?}");
    let cut = question.lines().find(|line| line.contains("xxx")).unwrap();
    assert!(cut.chars().count() <= 60 && cut.ends_with("x.pdf.exe"), "{cut:?}");
    // A slip is no answer.
    terminal.press("u\n");
    terminal.until("take it? ");
    terminal.press("L\n");
    let all = terminal.until("take it? ");
    assert!(all.contains("y10\r\n") && all.contains("tree/\r\n"), "{all:?}");
    let thought = Duration::from_secs(3);
    std::thread::sleep(thought);
    terminal.press(" YES\n");
    let done = sender.until("done");
    let took = Duration::from_secs_f64(done["seconds"].as_f64().unwrap());
    assert!(took + thought <= begun.elapsed(), "thinking counts: {done}");
    assert_eq!(sender.ended().0, Some(0));
    let (code, shown) = terminal.ended();
    assert_eq!(code, Some(0), "{shown}");
    assert!(place.path("out/y10").exists() && place.path("out/tree/link").is_symlink());
}

#[test]
fn a_no_is_one_also_through_grpc() {
    for via in [&[][..], &["--via", "grpc"]] {
        let place = Place::new();
        let (mut terminal, address) = place.receiver_at_terminal(80, via);
        let words = [&["send", "--connect", &address, "@file"], via].concat();
        let sender = place.command(&words).spawn().unwrap();
        let question = terminal.until("take it? [y/N] ");
        for part in ["5 B in 1 file;", "\r\n  file\r\n"] {
            assert!(question.contains(part), "{question:?}");
        }
        terminal.press("n\n");
        let sent = Ran::from(sender.wait_with_output().unwrap());
        sent.says(7, &["declined: not wanted"]);
        let (code, shown) = terminal.ended();
        assert_eq!(code, Some(7), "{shown}");
        assert_eq!(fs::read_dir(place.path("out")).unwrap().count(), 0);
    }
}

#[test]
fn a_yes_through_grpc_brings_the_file() {
    let place = Place::new();
    let (mut terminal, address) = place.receiver_at_terminal(80, &["--via", "grpc"]);
    let words = ["send", "--connect", &address, "--via", "grpc", "@file"];
    let sender = place.command(&words).spawn().unwrap();
    terminal.until("take it? [y/N] ");
    terminal.press("Y\n");
    Ran::from(sender.wait_with_output().unwrap()).says(0, &[]);
    assert_eq!(terminal.ended().0, Some(0));
    assert_eq!(fs::read(place.path("out/file")).unwrap(), b"hello");
}

#[test]
fn a_code_is_completed_at_the_tab() {
    let place = Place::new();
    let words = ["send", "--listen", "127.0.0.1:0", "--code", "--json", "@file"];
    let sender = Running::of(&mut place.command(&words));
    let event = sender.until("code");
    let (code, line) = (event["code"].as_str().unwrap(), event["command"].as_str().unwrap());
    let address = sender.address();
    assert_eq!(line, format!("sealway receive --connect {address} --code"));
    let mut parts = code.split('-');
    let mut keys = format!("{}-", parts.next().unwrap());
    for word in parts {
        // One letter too many is taken back.
        keys.push_str(&format!("{}q\x7f\t", &word[..3]));
    }
    let words: Vec<&str> = line.split(' ').skip(1).collect();
    let command = || place.command(&[&words[..], &["--output", "@out"]].concat());
    // Whoever is interrupted leaves the terminal as it was.
    let mut terminal = Terminal::run(command(), 80);
    terminal.until("Tab completes words): ");
    assert!(!terminal.is_plain());
    terminal.child.signal(Signal::TERM);
    terminal.until("stopped");
    assert!(terminal.is_plain());
    assert_eq!(terminal.ended().0, Some(130));
    let mut terminal = Terminal::run(command(), 80);
    terminal.until("Tab completes words): ");
    terminal.press(&keys);
    terminal.press("\n");
    let typed = terminal.until("\n");
    assert!(!typed.contains('\t'), "{typed:?}");
    terminal.until("take it? ");
    assert!(terminal.is_plain());
    terminal.press("y\n");
    let (exit, shown) = terminal.ended();
    assert_eq!(exit, Some(0), "{shown}");
    assert_eq!(sender.ended().0, Some(0));
    assert_eq!(fs::read(place.path("out/file")).unwrap(), b"hello");
}

/// Neither spends the one guess that a code allows: nothing is sent of a code that cannot be one, and at a relay nobody waits under a
/// number that was never given out.
#[test]
fn a_mistyped_code_is_asked_for_again() {
    let place = Place::new();
    let (_relay, relay) = place.relay();
    let sender = place.start(&["send", "--relay", &relay, "@file"]);
    let told = sender.until("code");
    let (number, words) = told["code"].as_str().unwrap().split_once('-').unwrap();
    let mut terminal = Terminal::run(place.command(&["receive", "--relay", &relay, "--output", "@out"]), 80);
    let wrong: u32 = number.parse::<u32>().unwrap() % 1000 + 1;
    for (typed, said) in [
        (format!("{number}-nonsense-{words}"), "word"),
        (format!("{wrong}-{words}"), "nobody waits under number "),
        (format!("{number}-{words}"), "take it? "),
    ] {
        terminal.until("Tab completes words): ");
        terminal.press(&typed);
        terminal.press("\n");
        terminal.until(said);
    }
    assert!(terminal.is_plain());
    terminal.press("y\n");
    let (code, shown) = terminal.ended();
    assert_eq!(code, Some(0), "{shown}");
    assert_eq!(shown.matches("type the code again").count(), 1, "{shown}");
    assert_eq!(sender.ended().0, Some(0));
    assert_eq!(fs::read(place.path("out/file")).unwrap(), b"hello");
}

#[test]
fn the_line_that_a_sender_shows_works_at_the_other_end() {
    for (first, second) in [("send", "receive"), ("share", "mount"), ("pair", "pair --join")] {
        let place = Place::with_tree();
        let what = match first {
            "send" => &["@file"][..],
            "share" => &["@tree"],
            _ => &["@tree", "@mount"],
        };
        let words = [&[first, "--listen", "0.0.0.0:0"], what].concat();
        let mut program = Program::start(&mut place.command(&words));
        let lines = BufReader::new(program.stderr.take().unwrap()).lines();
        let mut said = lines.map_while(Result::ok);
        let code = said.find_map(|line| line.strip_prefix("code: ").map(str::to_owned));
        let code = code.unwrap();
        let line = said.find(|line| line.starts_with("  sealway ")).unwrap();
        assert!(line.starts_with(&format!("  sealway {second} --connect ")), "{line}");
        assert!(!line.contains(&code), "a command line is no place for a code");
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        if first == "send" && words[2] != "HOST:PORT" {
            let mut receive = place.command(&[&words[..], &["--yes", "--output", "@out"]].concat());
            ran(receive.env("SEALWAY_CODE", code)).says(0, &[]);
            assert!(program.ended().success());
        }
    }
}

#[test]
fn an_end_that_would_wait_beside_one_that_waits_explains_its_choices() {
    let place = Place::new();
    fs::create_dir(place.path("mount")).unwrap();
    for (line, other) in [
        ("receive --yes --no-lan --output @out", "sealway send"),
        ("receive --yes --output @out --anyone --unchecked", "sealway send"),
        ("mount @mount --no-lan", "sealway share"),
        ("pair @out @mount --join --no-lan", "sealway pair"),
    ] {
        let ways = ["--connect HOST:PORT", "--listen 0.0.0.0:", "--relay HOST:PORT"];
        place.run(&words(line)).says(2, &[&[other][..], &ways].concat());
    }
}

#[test]
fn a_folder_that_is_missing_is_offered_or_made() {
    let place = Place::new();
    let missing = place.run(&words("receive --listen 127.0.0.1:0 --yes --output @a/b"));
    missing.says(2, &["--create makes it"]);
    let at_terminal = |line| Terminal::run(place.command(&words(line)), 80);
    let mut terminal = at_terminal("receive --listen 127.0.0.1:0 --output @a/b");
    terminal.until("make it? [y/N] ");
    terminal.press("y\n");
    terminal.until("waiting at ");
    assert!(place.path("a/b").is_dir());
    drop(terminal);
    let mut terminal = at_terminal("receive --listen 127.0.0.1:0 --output @c/d --create --yes");
    terminal.until("waiting at ");
    assert!(place.path("c/d").is_dir());
    // Nothing came, so nothing is kept, and nothing is said of it.
    terminal.child.signal(Signal::TERM);
    let (code, shown) = terminal.ended();
    assert_eq!(code, Some(130));
    let said = ["stopping", "kept", "goes on"].map(|words| shown.contains(words));
    assert_eq!(said, [true, false, false], "{shown}");
}

#[test]
fn nothing_is_drawn_over_a_question_and_renames_are_said() {
    let place = Place::new();
    fs::create_dir_all(place.path("tree")).unwrap();
    fs::create_dir_all(place.path("out/tree")).unwrap();
    fs::write(place.path("tree/a"), vec![7; 64 << 20]).unwrap();
    fs::write(place.path("tree/b"), b"new").unwrap();
    fs::write(place.path("out/tree/b"), b"already there").unwrap();
    let (mut terminal, address) = place.receiver_at_terminal(80, &["--conflict", "ask"]);
    let sender = place
        .command(&["send", "--connect", &address, "@tree"])
        .spawn()
        .unwrap();
    terminal.until("take it? [y/N] ");
    terminal.press("y\n");
    terminal.until("upper case for all that follow: ");
    // Time enough for progress to be drawn.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(terminal.rest(), "", "drawn over the question");
    terminal.press("r\n");
    assert!(sender.wait_with_output().unwrap().status.success());
    let (code, shown) = terminal.ended();
    assert_eq!(code, Some(0), "{shown}");
    assert!(shown.contains("renamed: tree/b is tree/b (1) here"), "{shown}");
    assert_eq!(fs::read(place.path("out/tree/b (1)")).unwrap(), b"new");
}

#[test]
fn what_was_not_compared_is_not_called_verified() {
    let place = Place::new();
    let transfer = |json: bool| {
        let (receiver, address) = place.receiver(&[]);
        let mut words = vec!["send", "--connect", &address, "@file"];
        words.extend(json.then_some("--json"));
        let sent = place.run(&words);
        sent.says(0, &[]);
        (sent.stderr, receiver.until("done"))
    };
    let (said, done) = transfer(false);
    assert!(said.contains("every byte of that verified"), "{said}");
    assert_eq!([&done["same"], &done["files"]], [0, 1], "{done}");
    let (said, done) = transfer(false);
    assert!(
        !said.contains("verified") && said.contains("no content was compared"),
        "{said}"
    );
    assert_eq!([&done["same"], &done["files"]], [1, 1], "{done}");
}

#[test]
fn renames_are_events_and_advice_helps() {
    let place = Place::new();
    fs::create_dir_all(place.path("tree/folder")).unwrap();
    fs::write(place.path("tree/name"), b"new").unwrap();
    fs::create_dir_all(place.path("out/tree")).unwrap();
    fs::write(place.path("out/tree/name"), b"already there").unwrap();
    fs::write(place.path("out/tree/folder"), b"no folder").unwrap();
    let (receiver, address) = place.receiver(&[]);
    place.run(&["send", "--connect", &address, "@tree"]);
    let offer = receiver.until("offer");
    assert!(offer["names"][0] == "tree/" && offer["links"] == 0, "{offer}");
    let left_out = receiver.until("left-out")["text"].as_str().unwrap().to_owned();
    for part in ["tree/folder: ", "move that away"] {
        assert!(left_out.contains(part), "{left_out}");
    }
    let renamed = receiver.until("renamed");
    assert_eq!([&renamed["path"], &renamed["name"]], ["tree/name", "tree/name (1)"]);
    assert_eq!(receiver.until("done")["renamed"], 1);
    receiver.ended();
}

#[test]
fn standard_input_is_sent_as_a_file() {
    let place = Place::new();
    for (name, arrives) in [(&[][..], "stdin"), (&["--name", "dump.sql"], "dump.sql")] {
        let (receiver, address) = place.receiver(&[]);
        let mut sender = place.command(&[&["send", "--connect", &address, "-"], name].concat());
        // A cycle that no block's length is a multiple of: one in the place of another is seen.
        let bytes: String = ('\0'..='\x7e').cycle().take(3_000_000).collect();
        given(sender.env("TMPDIR", place.0.path()), &bytes).says(0, &[]);
        receiver.until("done");
        assert_eq!(receiver.ended().0, Some(0));
        let arrived = place.path("out").join(arrives);
        assert!(fs::read_to_string(&arrived).unwrap() == bytes);
        assert_eq!(fs::metadata(&arrived).unwrap().permissions().mode() & 0o777, 0o600);
    }
    for (line, says) in [
        ("send - @file", "alone"),
        ("send @file --name x", "--name"),
        ("send - --name a/b", "a/b"),
    ] {
        place.run(&words(line)).says(2, &[says]);
    }
}

#[test]
fn a_link_that_is_named_is_said_before_it_is_sent() {
    let place = Place::new();
    std::os::unix::fs::symlink("file", place.path("latest")).unwrap();
    for (follow, says) in [
        (&[][..], "is a symbolic link and is sent as one, to file; --follow"),
        (&["--follow"], "what it points to is sent: "),
    ] {
        // Nobody is there; what is sent was said before.
        let words = [&["send", "--listen", "127.0.0.1:0", "@latest"], follow].concat();
        let mut program = Program::start(&mut place.command(&words));
        let mut lines = BufReader::new(program.stderr.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        assert!(line.contains("latest") && line.contains(says), "{line}");
    }
}

#[test]
fn an_address_may_name_an_interface() {
    let place = Place::new();
    let unknown = place.run(&words("send --connect [fe80::1%no-such]:4000 @file"));
    unknown.says(2, &["no interface no-such"]);
    // Of this machine: the name is known, and what the network then says is no matter of form.
    let known = place.run(&words(
        "receive --listen [fe80::1%lo]:0 --yes --output @out --anyone --unchecked",
    ));
    assert!(!known.stderr.contains("HOST:PORT"), "{known:?}");
}

/// Of a desktop there is what says that one is there, and a `notify-send` that writes down what it is to show.
#[test]
fn the_desktop_is_told_of_the_end_unless_it_is_not_to_be() {
    for silent in [None, Some("--no-notify"), Some("--quiet")] {
        let place = Place::new();
        fs::create_dir(place.path("bin")).unwrap();
        let told = place.path("told");
        let script = format!("#!/bin/sh\nprintf '%s\\n' \"$@\" > '{}'\n", told.display());
        fs::write(place.path("bin/notify-send"), script).unwrap();
        fs::set_permissions(place.path("bin/notify-send"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(place.path("a<b"), vec![7; 1 << 20]).unwrap();
        let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
        let (receiver, address) = place.receiver(&[]);
        let mut words = vec!["send", "--connect", &address, "@a<b"];
        words.extend(silent);
        let mut command = place.command(&words);
        command
            .env("PATH", path)
            .env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
            .env("DISPLAY", ":99")
            .env("SEALWAY_NOTIFY", "always");
        let (code, shown) = Terminal::run(command, 80).ended();
        assert_eq!(code, Some(0), "{shown}");
        assert_eq!(receiver.ended().0, Some(0));
        match fs::read_to_string(told) {
            Ok(told) => {
                assert_eq!(silent, None, "{told}");
                let lines: Vec<&str> = told.lines().collect();
                assert_eq!(lines[..2], ["--", "sealway: a<b: sent"]);
                assert!(lines[2].starts_with("sent 1.00 MiB in 1 file in "), "{told}");
            }
            Err(error) => assert!(silent.is_some(), "nobody was told: {error}: {shown}"),
        }
    }
}
