//! Two ends of the file drop, as programs in a folder of their own.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rustix::process::Signal;
use serde_json::Value;

use super::program::{Program, ended};
use super::terminal::Terminal;
use super::{PATIENCE, Ran, ran, sealway};

/// A receiver on this machine that asks nothing.
pub const RECEIVE: [&str; 6] = ["receive", "--listen", "127.0.0.1:0", "--output", "@out", "--yes"];

/// A folder in which two ends meet: `file` is there to be sent, `out` to receive into.
pub struct Place(pub tempfile::TempDir);

impl Place {
    pub fn new() -> Place {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("out")).unwrap();
        fs::write(dir.path().join("file"), b"hello").unwrap();
        Place(dir)
    }

    /// The same with `tree` to be shown, in which there is a file too, and `mount` to mount it.
    pub fn with_tree() -> Place {
        let place = Place::new();
        for name in ["tree", "mount"] {
            fs::create_dir(place.path(name)).unwrap();
        }
        fs::write(place.path("tree/file"), b"hello").unwrap();
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A command without a terminal; words that begin with `@` are names in this place.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = sealway(&[]);
        for word in words {
            match word.strip_prefix('@') {
                Some(name) => command.arg(self.path(name)),
                None => command.arg(word),
            };
        }
        command
            .env("SEALWAY_CONFIG_DIR", self.path("config"))
            .env_remove("SEALWAY_CODE")
            .env_remove("SEALWAY_RELAY")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub fn run(&self, words: &[&str]) -> Ran {
        ran(&mut self.command(words))
    }

    /// A command that tells programs what happens.
    pub fn start(&self, words: &[&str]) -> Running {
        Running::of(&mut self.command(&[words, &["--json"]].concat()))
    }

    /// A receiver on this machine that asks nothing, and its address.
    pub fn receiver(&self, more: &[&str]) -> (Running, String) {
        let running = self.start(&[&RECEIVE, more].concat());
        let address = running.address();
        (running, address)
    }

    /// A receiver at a terminal that listens on this machine, and its address.
    pub fn receiver_at_terminal(&self, columns: u16, more: &[&str]) -> (Terminal, String) {
        let words = ["receive", "--listen", "127.0.0.1:0", "--output", "@out"];
        let mut terminal = Terminal::run(self.command(&[&words, more].concat()), columns);
        terminal.until("waiting at ");
        let address = terminal.until("\r\n").trim().to_owned();
        (terminal, address)
    }

    /// A relay on this machine, and its address.
    pub fn relay(&self) -> (Running, String) {
        let mut command = self.command(&["relay", "--listen", "127.0.0.1:0"]);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let address = line.trim().rsplit(' ').next().unwrap().to_owned();
        // What it says at its end has somewhere to go.
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        (Running::silent(child), address)
    }
}

/// A program and the events it tells; ended when dropped.
pub struct Running {
    pub child: Program,
    pub events: Receiver<Value>,
}

impl Running {
    /// Starts a command that was told `--json`.
    pub fn of(command: &mut Command) -> Running {
        let mut child = Program::start(command);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (said, events) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                let _ = said.send(serde_json::from_str(&line).unwrap());
            }
        });
        Running { child, events }
    }

    /// One that tells nothing.
    pub fn silent(child: Child) -> Running {
        Running {
            child: Program(child),
            events: channel().1,
        }
    }

    /// What it tells next of this kind.
    pub fn until(&self, event: &str) -> Value {
        loop {
            let told = self.events.recv_timeout(PATIENCE);
            let told = told.unwrap_or_else(|_| panic!("no {event}"));
            if told["event"] == event {
                return told;
            }
        }
    }

    /// Where it listens.
    pub fn address(&self) -> String {
        self.until("listening")["address"].as_str().unwrap().to_owned()
    }

    pub fn signal(&self, signal: Signal) {
        self.child.signal(signal);
    }

    /// Its exit code, and what it said on standard error.
    pub fn ended(mut self) -> (Option<i32>, String) {
        let code = self.child.ended().code();
        let mut text = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut text).unwrap();
        }
        (code, text)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // By a kill alone a mount would stay behind.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(Signal::TERM);
        }
        ended(&mut self.child, PATIENCE);
    }
}

/// Bytes that look random and are the same each time.
pub fn content(len: usize, seed: u64) -> Vec<u8> {
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

/// Whether this machine lets the program mount; a test says that it was skipped.
pub fn can_mount() -> bool {
    let device = fs::OpenOptions::new().read(true).write(true).open("/dev/fuse").is_ok();
    let helper = || Command::new("fusermount3").arg("-V").output().is_ok();
    let can = device && (rustix::process::geteuid().is_root() || helper());
    if !can {
        super::peer_is_missing("nothing can be mounted here (/dev/fuse and root or fusermount3 are needed)");
    }
    can
}
