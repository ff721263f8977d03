//! Many nodes: what ends one of them and waits for it, what stands in front of them, and what starts them.

mod drain;
mod haproxy;
mod packaging;
mod yaml;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::common::proxy::{PATIENCE, free_ports};
use crate::common::{Ran, sealway};

/// A running `sealway run`, killed at the end.
struct Node {
    child: Child,
    /// What it says on standard error after its first line.
    said: Receiver<String>,
}

impl Node {
    fn start(folder: &Path, name: &str, config: &str, more: &[&str]) -> Node {
        let file = folder.join(name);
        fs::write(&file, config).unwrap();
        let mut command = sealway(&["run", "-c", file.to_str().unwrap()]);
        let mut child = command
            .args(more)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        loop {
            let line = lines.next().unwrap_or_else(|| panic!("{name} ended")).unwrap();
            if line.contains(" listens: ") {
                break;
            }
            println!("{name}: {line}");
        }
        let (say, said) = channel();
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| drop(say.send(line))));
        Node { child, said }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// The next thing that it says.
    fn next(&self) -> String {
        self.said.recv_timeout(PATIENCE).unwrap()
    }

    fn ended(&mut self) -> ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.child.try_wait().unwrap() {
                Some(status) => return status,
                None => assert!(Instant::now() < until, "it does not end"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `sealway drain` with these words.
fn drain(words: &[&str]) -> Ran {
    let mut command = sealway(&["drain"]);
    command.args(words).output().unwrap().into()
}

/// Status and content of what is at a path of a server of HTTP.
fn get(port: u16, path: &str) -> Option<(u16, String)> {
    let mut tcp = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(tcp, "GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").ok()?;
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.get(9..12)?.parse().ok()?, body.to_owned()))
}

/// Waits until it is so.
fn until(what: &str, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
