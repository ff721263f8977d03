//! A server in this process, and ways to ask it.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sealway_drop::cancel::Cancel;
use sealway_drop_transfer::dest::{self, Conflict, Flush};
use sealway_drop_web::certificate::Certificate;
use sealway_drop_web::secret::Secret;
use sealway_drop_web::server::{Options, Server, Uploads, What};
use sealway_drop_web::telling::{Download, Telling, Upload};

/// How long anything may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// Keeps what is told.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) sent: Mutex<Vec<Download>>,
    pub(crate) received: Mutex<Vec<Upload>>,
    pub(crate) refused: Mutex<Vec<String>>,
    pub(crate) locked: Mutex<u32>,
}

impl Telling for Heard {
    fn sent(&self, download: &Download) {
        self.sent.lock().unwrap().push(download.clone());
    }
    fn received(&self, upload: &Upload) {
        self.received.lock().unwrap().push(upload.clone());
    }
    fn not_received(&self, _: &[u8], _: IpAddr, why: &str) {
        self.refused.lock().unwrap().push(why.to_owned());
    }
    fn locked(&self) {
        *self.locked.lock().unwrap() += 1;
    }
    fn stopping(&self, _: u64) {}
}

/// What is started.
pub(crate) struct Setup {
    pub(crate) what: What,
    pub(crate) tls: bool,
    pub(crate) pin: Option<&'static str>,
    pub(crate) names: Vec<String>,
}

impl Setup {
    pub(crate) fn share(folder: &Path) -> Setup {
        Setup::of(What::Share {
            paths: vec![folder.to_owned()],
            hidden: false,
            uploads: None,
        })
    }

    pub(crate) fn both(folder: &Path) -> Setup {
        Setup::of(What::Share {
            paths: vec![folder.to_owned()],
            hidden: false,
            uploads: Some(uploads(Conflict::Rename)),
        })
    }

    pub(crate) fn receive(folder: &Path) -> Setup {
        Setup::of(What::Receive {
            folder: folder.to_owned(),
            uploads: uploads(Conflict::Rename),
        })
    }

    pub(crate) fn of(what: What) -> Setup {
        Setup {
            what,
            tls: false,
            pin: None,
            names: vec![],
        }
    }

    pub(crate) fn tls(self) -> Setup {
        Setup { tls: true, ..self }
    }

    pub(crate) fn start(self) -> Running {
        let config = tempfile::tempdir().unwrap();
        let certificate = self.tls.then(|| Certificate::ours(Some(config.path()), &[]).unwrap());
        let pinned = certificate.as_ref().and_then(Certificate::pin);
        let options = Options {
            address: "127.0.0.1:0".parse().unwrap(),
            what: self.what,
            certificate,
            pin: self.pin.map(|pin| Secret::given(pin.into())),
            names: self.names,
        };
        let heard = Arc::new(Heard::default());
        let telling: Arc<dyn Telling> = heard.clone();
        let server = Server::bind(options, telling).unwrap();
        let (address, links, cancel) = (server.address(), server.links(), Cancel::new());
        let link = links.into_iter().find(|link| link.contains("127.0.0.1")).unwrap();
        let token = link.split('/').nth(3).unwrap().to_owned();
        let stop = cancel.clone();
        Running {
            thread: Some(std::thread::spawn(move || server.run(&stop).unwrap())),
            address,
            link,
            token,
            pinned,
            cancel,
            heard,
            config,
        }
    }
}

pub(crate) fn uploads(conflict: Conflict) -> Uploads {
    Uploads {
        dest: dest::Options {
            conflict,
            flush: Flush::None,
            ..dest::Options::default()
        },
        ..Uploads::default()
    }
}

/// A server that ends when this is dropped.
pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) link: String,
    pub(crate) token: String,
    pub(crate) pinned: Option<String>,
    pub(crate) heard: Arc<Heard>,
    pub(crate) config: tempfile::TempDir,
    cancel: Cancel,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.cancel.cancel();
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap();
        }
    }
}

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Running {
    /// Without TLS: one request on a connection of its own, as it is written, with a `Host` unless it has one.
    pub(crate) fn raw(&self, line: &str, headers: &str, body: &[u8]) -> Answer {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let host = if headers.to_ascii_lowercase().contains("host:") {
            String::new()
        } else {
            format!("Host: {}\r\n", self.address)
        };
        let request = format!("{line} HTTP/1.1\r\n{host}Connection: close\r\n{headers}\r\n");
        let whole = [request.as_bytes(), body].concat();
        // A server that refuses need not read all.
        let _ = stream.write_all(&whole);
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let end = bytes
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .unwrap_or_else(|| panic!("no answer to {line}"));
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        Answer {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head,
            body: bytes[end + 4..].to_vec(),
        }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.raw(&format!("GET /{}/{path}", self.token), "", b"")
    }

    pub(crate) fn put(&self, path: &str, headers: &str, body: &[u8]) -> Answer {
        let headers = format!("Content-Length: {}\r\n{headers}", body.len());
        self.raw(&format!("PUT /{}/{path}", self.token), &headers, body)
    }
}

/// The standard output of a program that must end well.
pub(crate) fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{command:?}: {}{}",
        String::from_utf8_lossy(&output.stderr),
        String::from_utf8_lossy(&output.stdout)
    );
    output.stdout
}

/// Whether a program is there. Says so if not; with `SEALWAY_REQUIRE_PEERS=1` that is a failure.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    if found.is_none() {
        let required = std::env::var("SEALWAY_REQUIRE_PEERS").is_ok_and(|value| value == "1");
        assert!(!required, "SEALWAY_REQUIRE_PEERS=1, but there is no {name} on PATH");
        let _ = writeln!(std::io::stderr(), "skipped: no {name} on PATH");
    }
    found
}

/// Waits for something.
pub(crate) fn until(what: &str, mut is: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is() {
        assert!(Instant::now() < end, "{what} does not come");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Bytes that look like nothing, the same each time.
pub(crate) fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&(state ^ state >> 29).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
