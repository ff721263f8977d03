//! Ten thousand strangers at once: what each costs the server before it has said who it is. The server is a process of its
//! own, for its memory is what is measured, and one process has not descriptors enough for both ends.
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::*;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sealway_proxy::Server;
use sealway_proxy::settings::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

const STRANGERS: usize = 10_000;
const KIND: &str = "SEALWAY_TEST_CROWD";

/// As many descriptors as there may be. False: they are too few.
fn raise_limit() -> bool {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    setrlimit(Resource::Nofile, raised).is_ok() && limit.maximum.is_none_or(|most| most >= STRANGERS as u64 + 200)
}

/// The server of the other tests here, which start it. Ends with its standard input.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of the other tests"]
async fn server() {
    let Ok(kind) = std::env::var(KIND) else { return };
    raise_limit();
    let transport = ServerTransport {
        kind: match kind.as_str() {
            "trojan" => TransportKind::Raw,
            _ => TransportKind::RawHttp(Front::default()),
        },
        ..ServerTransport::default()
    };
    let mut settings = server_settings(trojan(), transport);
    let level = Level {
        handshake: Duration::from_secs(600),
        ..Level::default()
    };
    settings.levels = vec![(0, level)];
    let server = Server::start(settings).await.unwrap();
    println!("\nlistens at {}", at(&server, "in"));
    tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin(), &mut std::io::sink()))
        .await
        .unwrap()
        .unwrap();
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(kind: &str) -> (Running, SocketAddr) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["server", "--exact", "--ignored", "--nocapture"])
        .env(KIND, kind)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let child = Running(child);
    let at = lines.find_map(|line| line.unwrap().strip_prefix("listens at ").map(|at| at.parse().unwrap()));
    // What else it prints goes nowhere.
    std::thread::spawn(move || lines.for_each(drop));
    (child, at.unwrap())
}

fn status(child: &Running, key: &str) -> usize {
    let text = std::fs::read_to_string(format!("/proc/{}/status", child.0.id())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
    line.split_whitespace().next().unwrap().parse::<usize>().unwrap() << 10
}

fn descriptors(child: &Running) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", child.0.id())).unwrap().count()
}

/// Descriptors are enough for one crowd at a time.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// All of them say this and wait, at the cost of `most` bytes of anonymous memory each, as SECURITY.md says; then a user says
/// `then`.
async fn crowd(kind: &str, most: usize, says: &[u8], then: &[u8]) {
    if !raise_limit() {
        return eprintln!("skipped: too few descriptors");
    }
    let _alone = ALONE.lock().await;
    let (child, server) = start(kind);
    let (before, open) = (status(&child, "RssAnon:"), descriptors(&child));
    let mut strangers: Vec<TcpStream> = Vec::new();
    for n in 0..STRANGERS {
        let socket = TcpSocket::new_v4().unwrap();
        let own = Ipv4Addr::new(127, 1, 2, (n / 1000) as u8 + 1);
        socket.bind((own, 0).into()).unwrap();
        let mut stream = within("connect", socket.connect(server)).await.unwrap();
        stream.write_all(says).await.unwrap();
        strangers.push(stream);
    }
    within("accept", async {
        while descriptors(&child) < open + STRANGERS {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let each = status(&child, "RssAnon:").saturating_sub(before) / STRANGERS;
    println!("{kind}: {each} bytes each");
    assert!(each <= most, "{kind}: a stranger costs {each} bytes");
    // A user is served among them.
    let mut user = TcpStream::connect(server).await.unwrap();
    user.write_all(then).await.unwrap();
    // What an HTTP response may stand before is not looked at here: that there is an answer is enough.
    user.write_all(&[0; 16]).await.unwrap();
    within("answer", user.read_u8()).await.unwrap();
    drop(strangers);
    within("end", async {
        while descriptors(&child) > open + 20 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
}

async fn request() -> Vec<u8> {
    let to = target().await;
    let to = sealway_v2ray::Destination::tcp(sealway_v2ray::Address::from(to.ip()), to.port());
    let key = sealway_v2ray::trojan::Key::of_password(PASSWORD);
    let mut out = Vec::new();
    sealway_v2ray::trojan::Request { key, to }.encode(&mut out);
    out
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_trojan() {
    // All but the last byte of a key that nobody has.
    crowd("trojan", 24 << 10, &[b'a'; 57], &request().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_the_http_header() {
    // As long a head as is read, but for its end.
    let mut long = b"GET / HTTP/1.1\r\nX: ".to_vec();
    long.resize((8 << 10) - 1, b'a');
    let then = [b"GET / HTTP/1.1\r\n\r\n".to_vec(), request().await].concat();
    crowd("the http header", 32 << 10, &long, &then).await;
}
