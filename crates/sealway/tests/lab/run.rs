//! Runs of the lab that are stopped early: what is left behind, and with which exit code.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::common::program::Program;
#[cfg(target_os = "linux")]
use crate::common::program::{exists, write_program};
#[cfg(target_os = "linux")]
use crate::common::terminal::Terminal;
use crate::common::{Ran, ran, run, sealway, until, words};

/// The smallest run there is; it still takes seconds, so that a signal right after its plan comes in time.
const SMALL: [&str; 6] = ["lab", "primitives", "--quick", "--peers", "none", "--suite=aes-128-gcm"];

/// A run that has printed its plan.
struct Started {
    program: Program,
    stderr: BufReader<std::process::ChildStderr>,
    said: String,
}

impl Started {
    fn new(arguments: &[&str]) -> Started {
        let mut command = sealway(&[&SMALL, arguments].concat());
        let mut program = Program::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
        let stderr = BufReader::new(program.stderr.take().unwrap());
        let mut started = Started {
            program,
            stderr,
            said: String::new(),
        };
        started.wait_for("measurements: about ");
        started
    }

    fn wait_for(&mut self, words: &str) {
        while !self.said.contains(words) {
            let read = self.stderr.read_line(&mut self.said).unwrap();
            assert_ne!(read, 0, "ended before it said {words:?}: {}", self.said);
        }
    }

    fn interrupt(&self) {
        self.program.signal(Signal::INT);
    }

    fn end(mut self) -> Ran {
        let mut stdout = String::new();
        self.program.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        self.stderr.read_to_string(&mut self.said).unwrap();
        Ran {
            code: self.program.ended().code().unwrap(),
            stdout,
            stderr: self.said,
        }
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn one_interrupt_leaves_valid_partial_results() {
    let folder = tempfile::tempdir().unwrap();
    let (json, html) = (folder.path().join("out.json"), folder.path().join("out.html"));
    fs::write(&json, "older").unwrap();
    let run = Started::new(&["--json", json.to_str().unwrap(), "--html", html.to_str().unwrap()]);
    // The older file stands until there is a result to take its place.
    assert_eq!(fs::read_to_string(&json).unwrap(), "older");
    run.interrupt();
    let ran = run.end();
    ran.says(130, &["stopping after this window"]);
    assert!(!ran.stdout.is_empty(), "{ran:?}");
    let result = read(&json);
    assert!(result["schema"] == 1 && result["complete"] == false, "{result}");
    assert!(fs::read_to_string(&html).unwrap().contains("<html"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn two_interrupts_leave_at_once() {
    let mut run = Started::new(&[]);
    run.interrupt();
    run.wait_for("stopping after this window");
    run.interrupt();
    assert_eq!(run.end().code, 130);
}

#[test]
fn standard_output_holds_the_json_alone() {
    let run = Started::new(&["--json", "-"]);
    run.interrupt();
    let ran = run.end();
    assert_eq!(ran.code, 130, "{ran:?}");
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(result["complete"], false);
}

/// A run at a terminal of 40 columns that has printed its plan.
#[cfg(target_os = "linux")]
fn at_terminal(arguments: &[&str], variables: &[(&str, &str)]) -> Terminal {
    let mut command = sealway(&[&SMALL, arguments].concat());
    command.env("LC_ALL", "C").envs(variables.iter().copied());
    let mut terminal = Terminal::run(command, 40);
    terminal.until("measurements: about ");
    terminal
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_shows_how_far_a_run_is_and_keeps_nothing_of_it() {
    let mut terminal = at_terminal(&["--budget", "3s"], &[("TERM", "xterm")]);
    terminal.until("primitives  round 1 of ");
    let (code, shown) = terminal.ended();
    assert_eq!(code, Some(0), "{shown}");
    // Drawn in place: what is drawn next begins where the last began.
    let (view, tables) = shown.split_at(shown.rfind("\x1b[J").unwrap());
    assert!(view.contains("\r\x1b[3A\x1b[1mprimitives  round "), "{shown}");
    assert!(!tables.contains("\x1b[K") && tables.contains("sealway lab "), "{shown}");
    let drawn: Vec<&str> = view[view.find("\x1b[1m").unwrap()..].split("\r\n").collect();
    assert!(drawn.len() > 3, "{shown}");
    let (last, whole) = drawn.split_last().unwrap();
    assert!(last.is_empty() || last.starts_with(['\r', '\x1b']), "{last:?}");
    for line in whole {
        assert!(line.ends_with("\x1b[K"), "old text goes from behind {line:?}");
        let text = without_escapes(line);
        assert!(text.trim_matches('\r').chars().count() < 40, "{line:?}");
    }
}

/// Text as a terminal shows it: each escape is a bracket, a number and a letter.
#[cfg(target_os = "linux")]
fn without_escapes(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |shown, part| {
        let end = part.find(|c: char| c.is_ascii_alphabetic()).unwrap();
        shown + &part[end + 1..]
    })
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_takes_the_lines_away_for_good() {
    let mut terminal = at_terminal(&[], &[("TERM", "xterm"), ("NO_COLOR", "1")]);
    terminal.until(" left");
    terminal.until("\x1b[J");
    terminal.child.signal(Signal::INT);
    let said = terminal.until("stopping after this window");
    let cleared = said.rfind("\x1b[J").unwrap();
    assert!(!said[cleared..].contains(" left"), "{said:?}");
    terminal.until("leaves at once");
    let (code, shown) = terminal.ended();
    assert_eq!(code, Some(130), "{shown}");
    let after = shown.split("leaves at once").nth(1).unwrap();
    assert!(!after.contains('\x1b') && !shown.contains("\x1b[1m"), "{shown:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_is_drawn_where_nobody_asked_or_nothing_can_be_drawn() {
    for (arguments, term) in [(&["--ci"][..], "xterm"), (&["--no-progress"], "xterm"), (&[], "dumb")] {
        let terminal = at_terminal(arguments, &[("TERM", term), ("NO_COLOR", "1")]);
        terminal.child.signal(Signal::INT);
        let (_, shown) = terminal.ended();
        assert!(!shown.contains('\x1b'), "{arguments:?} {term}: {shown:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_said_and_the_table_is_shown_all_the_same() {
    let run = Started::new(&["--json", "/dev/full"]);
    run.interrupt();
    let ran = run.end();
    ran.says(1, &["/dev/full", "space"]);
    assert!(!ran.stdout.is_empty(), "{ran:?}");
}

#[test]
fn all_says_what_it_is_in_this_version() {
    // Refused for its budget before anything is measured. What would be measured is made before that: of one suite, that is little.
    let line = "lab all --peers none --suite=xchacha20-poly1305 --full --budget 1s";
    let said = "this version measures primitives, packets, bip324, transports, requests, flows and files";
    run(&words(line)).says(2, &[said]);
}

/// A program in the place of openssl that says it is ready and then sleeps with a child of its own.
#[cfg(target_os = "linux")]
#[test]
fn programs_do_not_hear_the_first_interrupt_and_do_not_outlive_the_second() {
    let folder = tempfile::tempdir().unwrap();
    let program = "\
#!/bin/sh
case $1 in
version) echo OpenSSL 3.0.0 test ;;
*) trap 'echo heard >> \"$0.heard\"' INT; sleep 200 & echo $$ $! > \"$0.pids.new\"; mv \"$0.pids.new\" \"$0.pids\"; wait ;;
esac
";
    write_program(folder.path(), "openssl", program);
    let search = format!("{}:/usr/bin:/bin", folder.path().display());
    let mut command = sealway(&words("lab primitives --quick --peers openssl --suite=aes-128-gcm"));
    // A group of its own, so that the whole of it can be interrupted as a terminal does.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.env("PATH", search).stdout(Stdio::null());
    let mut program = Program::start(command.stderr(Stdio::piped()));
    let mut stderr = BufReader::new(program.stderr.take().unwrap());
    let pids = folder.path().join("openssl.pids");
    until("the peer was not started", || pids.exists());
    let pids = fs::read_to_string(pids).unwrap();
    let group = Pid::from_child(&program);
    let interrupt = || kill_process_group(group, Signal::INT).unwrap();
    interrupt();
    let mut said = String::new();
    while !said.contains("stopping after this window") {
        assert_ne!(stderr.read_line(&mut said).unwrap(), 0, "{said}");
    }
    interrupt();
    assert_eq!(program.ended().code(), Some(130), "{said}");
    let heard = folder.path().join("openssl.heard");
    assert!(!heard.exists(), "the peer was interrupted too");
    assert_eq!(pids.split_whitespace().count(), 2, "{pids}");
    for pid in pids.split_whitespace() {
        until("it still runs", || !exists(pid));
    }
}

#[test]
fn a_peer_that_was_named_must_be_there() {
    let mut command = sealway(&["lab", "--quick", "--peers", "openssl"]);
    ran(command.env("PATH", "/nonexistent")).refuses(4, &["openssl"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_peer_that_was_named_must_be_what_it_is_called() {
    let folder = tempfile::tempdir().unwrap();
    for (workload, name) in [
        ("primitives", "openssl"),
        ("requests", "xray"),
        ("files", "croc"),
        ("calibrate", "wrk"),
    ] {
        write_program(folder.path(), name, "#!/bin/sh\necho other 1.0\n");
        let mut command = sealway(&["lab", workload, "--quick", "--peers", name]);
        let search = format!("{}:/usr/bin:/bin", folder.path().display());
        let said = ["does not call itself", "it says \"other 1.0\""];
        ran(command.env("PATH", search)).refuses(4, &said);
    }
}
