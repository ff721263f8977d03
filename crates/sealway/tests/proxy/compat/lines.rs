//! The error log beside Xray's: where it goes, and of which connection its lines are.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::net::{TcpListener, TcpStream};

use regex::Regex;
use rustix::process::Signal;

use super::{Node, free_port, has_started, node, ours, private_folder, through, xray};
use crate::common::until;

const WORDS: [&str; 3] = ["run", "-config", "stdin:"];

/// A line, with the number of the connection if it is of one.
const LINE: &str =
    r"^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d\.\d{6} \[(?:Debug|Info|Warning|Error)\] (?:\[(\d+)\] )?[\w./-]+: .+$";

#[test]
fn lines_of_a_connection_have_its_number() {
    let target = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = target.local_addr().unwrap().port();
    let line = Regex::new(LINE).unwrap();
    for (who, command) in [("ours", Some(ours(&WORDS))), ("xray", xray(&WORDS))] {
        let Some(command) = command else { continue };
        let port = free_port();
        let config = node(port, r#"{"access": "none", "loglevel": "debug"}"#);
        let mut node = Node::start(command, &config);
        let begun = node.until(has_started);
        let number = |text: &str| {
            let found = line.captures(text)?;
            found.get(1)?.as_str().parse::<u32>().ok()
        };
        assert!(!begun.iter().any(|text| number(text).is_some()), "{who}: {begun:?}");
        let mut numbers = BTreeSet::new();
        for round in 0..3 {
            let stream = through(port, to);
            drop(target.accept().unwrap());
            drop(stream);
            // The first line of a connection that there was not before.
            let mut own = None;
            let said = node.until(|text| {
                own = number(text).filter(|number| !numbers.contains(number));
                own.is_some()
            });
            assert!(said.iter().all(|text| line.is_match(text)), "{who} {round}: {said:?}");
            assert!(own.is_some_and(|number| number != 0), "{who} {round}: {said:?}");
            numbers.extend(own);
        }
        assert_eq!(numbers.len(), 3, "{who}");
    }
}

#[test]
fn levels_and_files_of_logs_are_as_with_xray() {
    let folder = private_folder();
    let log = folder.path().join("error.log");
    for (level, error, on_stdout, in_file) in [
        ("none", String::new(), false, false),
        ("error", String::new(), false, false),
        ("warning", log.display().to_string(), false, true),
    ] {
        let words = ["-c", "stdin:"];
        for (is_ours, who) in [(true, Some(ours(&words))), (false, xray(&words))] {
            let Some(who) = who else { continue };
            let _ = fs::remove_file(&log);
            let port = free_port();
            let text = format!(r#"{{"loglevel": "{level}", "error": "{error}", "access": "none"}}"#);
            let mut node = Node::start(who, &node(port, &text));
            until("nobody listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
            until("no line in the file", || {
                !in_file || fs::read_to_string(&log).is_ok_and(|text| has_started(text.trim_end()))
            });
            node.program.signal(Signal::TERM);
            let mut said = String::new();
            node.out.read_to_string(&mut said).unwrap();
            assert_eq!(said.lines().any(has_started), on_stdout, "{level}: {said}");
            // Xray hears signals only some time after it listens.
            assert!(!is_ours || node.program.ended().code() == Some(0), "{level}");
        }
    }
}
