//! Two running proxies, made of configurations as users find them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rustix::process::Signal;
use sha2::{Digest, Sha256};

use super::program::Program;
use super::{PATIENCE, sealway, workspace};

/// A certificate for `proxy.example.org` in a folder, as the configurations name it.
pub struct Certificate {
    pub folder: PathBuf,
    pub pin: String,
}

impl Certificate {
    pub fn make(folder: &Path) -> Certificate {
        let made = rcgen::generate_simple_self_signed(["proxy.example.org".to_owned()]).unwrap();
        fs::write(folder.join("server.crt"), made.cert.pem()).unwrap();
        fs::write(folder.join("server.key"), made.signing_key.serialize_pem()).unwrap();
        let digest = Sha256::digest(made.cert.der());
        Certificate {
            folder: folder.to_path_buf(),
            pin: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }

    /// The text with the paths of certificates turned to this one.
    pub fn put_in(&self, text: &str) -> String {
        text.replace("/etc/sealway/", &format!("{}/", self.folder.display()))
    }
}

/// Every configuration under `examples/`.
pub fn examples() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(workspace().join("examples")).unwrap() {
        let folder = entry.unwrap().path();
        // Others are parts of something larger, with tests of their own.
        if folder.join("client.json").exists() {
            found.extend(["server.json", "client.json"].map(|name| folder.join(name)));
        }
    }
    found.sort();
    assert!(found.len() >= 12, "{found:?}");
    found
}

/// The configurations of the guide: name and text of each block that has a name.
pub fn guide() -> Vec<(String, String)> {
    let text = fs::read_to_string(workspace().join("docs/guide/proxy.md")).unwrap();
    let mut blocks = Vec::new();
    for block in text.split("\n```jsonc ").skip(1) {
        let (name, rest) = block.split_once('\n').unwrap();
        let (text, _) = rest.split_once("\n```\n").unwrap();
        blocks.push((name.to_owned(), text.to_owned()));
    }
    blocks
}

pub fn free_port() -> u16 {
    let [port] = free_ports();
    port
}

/// Ports that are free, each another one.
pub fn free_ports<const N: usize>() -> [u16; N] {
    sealway_net::ports::free().unwrap()
}

/// A target that sends each connection back what it sent, and ends it after that.
pub fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || {
                std::io::copy(&mut &stream, &mut &stream).and_then(|_| stream.shutdown(Shutdown::Write))
            });
        }
    });
    address
}

/// A running `sealway run`, killed if the test fails.
pub struct Running {
    pub program: Program,
    /// What it said when it began.
    pub began: String,
    /// What it said later.
    pub later: Receiver<String>,
}

impl Running {
    /// One that has nothing to warn of.
    pub fn start(config: &Path) -> Running {
        let running = Running::start_with(config, &[]);
        assert_eq!(running.began.lines().count(), 1, "{}", running.began);
        running
    }

    pub fn start_with(config: &Path, more: &[&str]) -> Running {
        let mut command = sealway(&["run", "-c", config.to_str().unwrap()]);
        let command = command.args(more).stderr(Stdio::piped()).stdout(Stdio::null());
        let mut program = Program::start(command);
        let mut stderr = BufReader::new(program.stderr.take().unwrap());
        let mut began = String::new();
        while !began.contains(" listens: ") {
            let read = stderr.read_line(&mut began).unwrap();
            assert_ne!(read, 0, "{}: {began}", config.display());
        }
        let (say, later) = channel();
        std::thread::spawn(move || {
            let lines = stderr.lines().map_while(Result::ok);
            lines.for_each(|line| drop(say.send(line)));
        });
        Running { program, began, later }
    }

    /// Sends a signal and waits for the end.
    pub fn stop(mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        self.program.ended()
    }

    /// Kills it, as a crash would. No exit code.
    pub fn stop_hard(mut self) -> Option<i32> {
        self.program.kill().unwrap();
        self.program.ended().code()
    }

    /// Sends a signal, waits until it has been heard, and sends it again.
    pub fn stop_twice(mut self, signal: Signal) -> ExitStatus {
        self.signal(signal);
        let said = self.next();
        assert!(said.contains("second signal"), "{said}");
        assert!(self.program.runs(), "it did not wait");
        self.signal(signal);
        self.program.ended()
    }

    /// The next thing that it says.
    pub fn next(&self) -> String {
        self.later.recv_timeout(PATIENCE).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        self.program.signal(signal);
    }
}

/// An outbound of the examples, and one that loopback, which is private, is let through.
pub const DIRECT: &str = r#"{ "tag": "direct", "protocol": "freedom" }"#;
pub const ALLOWED: &str = r#"{ "tag": "direct", "protocol": "freedom",
    "settings": { "finalRules": [{ "action": "allow", "ip": ["127.0.0.0/8"] }] } }"#;

/// A pair on this machine: the client's port, and the two programs.
pub struct Pair {
    pub client_port: u16,
    pub server_port: u16,
    pub server: Running,
    pub client: Running,
}

/// Replaces words that must be there.
pub fn change(text: &str, changes: &[(&str, String)]) -> String {
    changes.iter().fold(text.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "no {from} in\n{text}");
        text.replace(from, to)
    })
}

impl Pair {
    /// Runs the two configurations with ports and addresses of this machine. Loopback, which is private, is let through.
    pub fn start(folder: &Path, certificate: &Certificate, server: &str, client: &str) -> Pair {
        let (server_port, client_port) = (free_port(), free_port());
        let port = if server.contains("\"port\": 443,") {
            "443"
        } else {
            "10086"
        };
        let at_port = format!("\"port\": {port},");
        // Rules of its own let through what they name.
        let outbound = if server.contains("\"routing\"") {
            DIRECT
        } else {
            ALLOWED
        };
        let server = change(
            &certificate.put_in(server),
            &[
                (&at_port, format!("\"listen\": \"127.0.0.1\", \"port\": {server_port},")),
                (DIRECT, outbound.to_owned()),
            ],
        )
        .replace("@sealway-chat", &format!("@sealway-chat-{server_port}"));
        let address = if client.contains("\"address\": \"192.0.2.1\"") {
            "\"address\": \"192.0.2.1\""
        } else {
            "\"address\": \"proxy.example.org\""
        };
        let mut client = change(
            client,
            &[
                (&at_port, format!("\"port\": {server_port},")),
                ("\"port\": 1080", format!("\"port\": {client_port}")),
                (address, "\"address\": \"127.0.0.1\"".to_owned()),
                ("geoip:private", "192.0.2.0/24".to_owned()),
            ],
        );
        let zeros = "0".repeat(64);
        if client.contains(&zeros) {
            client = client.replace(&zeros, &certificate.pin);
        } else if client.contains("\"tlsSettings\": { ") {
            let pinned = format!(
                "\"tlsSettings\": {{ \"pinnedPeerCertSha256\": \"{}\", ",
                certificate.pin
            );
            client = client.replace("\"tlsSettings\": { ", &pinned);
        }
        let write = |name: &str, text: &str| {
            let file = folder.join(format!("{server_port}-{name}"));
            fs::write(&file, text).unwrap();
            file
        };
        let server = Running::start(&write("server.json", &server));
        let client = Running::start(&write("client.json", &client));
        Pair {
            client_port,
            server_port,
            server,
            client,
        }
    }

    /// Sends bytes to `target` through SOCKS at the client and gives back what came.
    pub fn ask(&self, target: SocketAddr, request: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.client_port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let SocketAddr::V4(target) = target else {
            panic!("{target}")
        };
        let mut hello = vec![5, 1, 0, 5, 1, 0, 1];
        hello.extend(target.ip().octets());
        hello.extend(target.port().to_be_bytes());
        stream.write_all(&hello).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(answer[..4], [5, 0, 5, 0], "{answer:?}");
        stream.write_all(request).unwrap();
        let mut got = Vec::new();
        stream.read_to_end(&mut got).unwrap();
        got
    }
}

/// Answers each connection with what it sent up to an empty line, turned round, and its length.
pub fn target() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut got = Vec::new();
                let mut byte = [0];
                while !got.ends_with(b"\n\n") && matches!(stream.read(&mut byte), Ok(1)) {
                    got.push(byte[0]);
                }
                let _ = stream.write_all(&answer(&got));
            });
        }
    });
    address
}

/// What [`target`] says to a request.
pub fn answer(request: &[u8]) -> Vec<u8> {
    let turned = request.iter().rev().copied();
    turned.chain(format!(" {} bytes", request.len()).into_bytes()).collect()
}
