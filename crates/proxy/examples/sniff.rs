//! Measures what `sniffing` costs a connection, and each byte after its beginning.
//!
//! `sniff ROUNDS`: a server in one thread with four inbounds, SOCKS and dokodemo-door without and with sniffing, straight to
//! a target on this machine. A client sends the first message of TLS as browsers do and closes after one byte of answer, 50
//! connections to one inbound and 50 to the other in turns: one at a time, and all at once. Printed are the CPU time that the
//! server's thread took for each connection, by its median, and the median and the quartiles of the ratios of the rounds;
//! then the same for streams of 16 MiB.
//!
//! `sniff count off|on CONNECTIONS`: so many connections to one of the SOCKS inbounds, for
//! `valgrind --tool=callgrind`. Two runs tell what a connection takes.
#![allow(clippy::unwrap_used, missing_docs)]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;

use sealway_proxy::Server;
use sealway_proxy::settings::Settings;
use sealway_v2ray::config::{File, Options, load};

/// Connections of a round.
const ROUND: usize = 50;

/// Bytes of a long stream.
const BULK: usize = 16 << 20;

/// A first message of TLS as long as those with keys for ML-KEM are.
fn hello() -> Vec<u8> {
    let word = |n: usize| u16::try_from(n).unwrap().to_be_bytes();
    let extension = |kind: usize, body: &[u8]| [&word(kind)[..], &word(body.len()), body].concat();
    let name = b"www.example.org";
    let names = [&[0][..], &word(name.len()), name].concat();
    let extensions = [
        extension(0, &[&word(names.len())[..], &names].concat()),
        extension(51, &[7; 1220]),
        extension(43, &[2, 3, 4]),
    ]
    .concat();
    let body = [
        &[3, 3][..],
        &[9; 32],
        &[32],
        &[8; 32],
        &[0, 6, 0x13, 1, 0x13, 2, 0x13, 3, 1, 0],
        &word(extensions.len()),
        &extensions,
    ]
    .concat();
    let handshake = [&[1, 0][..], &word(body.len()), &body].concat();
    [&[0x16, 3, 1][..], &word(handshake.len()), &handshake].concat()
}

/// Answers each connection whose beginning has come with one byte, and reads it to its end.
fn target(hello: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut buffer = vec![0; 256 << 10];
                stream.read_exact(&mut buffer[..hello]).unwrap();
                stream.write_all(&[1]).unwrap();
                while stream.read(&mut buffer).is_ok_and(|got| got > 0) {}
            });
        }
    });
    address
}

/// The inbounds, each without and with sniffing, and the thread that serves them.
struct Serving {
    socks: [SocketAddr; 2],
    doors: [SocketAddr; 2],
    thread: String,
}

impl Serving {
    fn begin(target: SocketAddr) -> Self {
        let inbound = |tag: &str, protocol: &str, settings: &str, sniffing: bool| {
            format!(
                r#"{{"tag": "{tag}", "listen": "127.0.0.1", "port": 0, "protocol": "{protocol}", "settings": {settings},
                "sniffing": {{"enabled": {sniffing}, "destOverride": ["http", "tls", "quic"], "routeOnly": true}}}}"#
            )
        };
        let to = format!(r#"{{"address": "{}", "port": {}}}"#, target.ip(), target.port());
        let text = format!(
            r#"{{"log": {{"loglevel": "none", "access": "none"}}, "inbounds": [{}, {}, {}, {}],
            "outbounds": [{{"tag": "out", "protocol": "freedom"}}, {{"tag": "no", "protocol": "blackhole"}}],
            "routing": {{"rules": [{{"domain": ["domain:nowhere.example"], "outboundTag": "no"}}]}}}}"#,
            inbound("s0", "socks", "{}", false),
            inbound("s1", "socks", "{}", true),
            inbound("d0", "dokodemo-door", &to, false),
            inbound("d1", "dokodemo-door", &to, true),
        );
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let file = File {
                    name: "c.json",
                    text: text.as_bytes(),
                };
                let config = load(&[file], &Options::default()).config.unwrap();
                let server = Server::start(Settings::from_config(&config).unwrap()).await.unwrap();
                let at = |tag| server.addresses(tag)[0];
                let thread = std::fs::read_link("/proc/thread-self").unwrap();
                let serving = Serving {
                    socks: [at("s0"), at("s1")],
                    doors: [at("d0"), at("d1")],
                    thread: format!("/proc/{}/schedstat", thread.display()),
                };
                tell.send(serving).unwrap();
                std::future::pending::<()>().await;
            });
        });
        told.recv().unwrap()
    }

    /// CPU nanoseconds that the server has taken.
    fn cpu(&self) -> f64 {
        let text = std::fs::read_to_string(&self.thread).unwrap();
        text.split(' ').next().unwrap().parse().unwrap()
    }
}

/// Connections to an inbound, of each of which one byte has come back. Each step is done for all of them before the next.
fn connect(inbound: SocketAddr, target: Option<SocketAddr>, hello: &[u8], count: usize) -> Vec<TcpStream> {
    let mut streams: Vec<TcpStream> = (0..count).map(|_| TcpStream::connect(inbound).unwrap()).collect();
    let mut step = |send: &[u8], receive: usize| {
        for stream in &mut streams {
            stream.write_all(send).unwrap();
        }
        for stream in &mut streams {
            stream.read_exact(&mut [0; 10][..receive]).unwrap();
        }
    };
    if let Some(SocketAddr::V4(to)) = target {
        step(&[5, 1, 0], 2);
        let port = to.port().to_be_bytes();
        step(&[&[5, 1, 0, 1][..], &to.ip().octets(), &port].concat(), 10);
    }
    step(hello, 1);
    streams
}

/// Ends them, and waits until the server is done with them.
fn end(mut streams: Vec<TcpStream>) {
    for stream in &streams {
        stream.shutdown(Shutdown::Write).unwrap();
    }
    for stream in &mut streams {
        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0);
    }
}

/// Connections, so many at a time.
fn connections(inbound: SocketAddr, target: Option<SocketAddr>, hello: &[u8], count: usize, at_once: usize) {
    for _ in 0..count / at_once {
        end(connect(inbound, target, hello, at_once));
    }
}

fn bulk(inbound: SocketAddr, hello: &[u8]) {
    let mut streams = connect(inbound, None, hello, 1);
    let piece = vec![5; 64 << 10];
    for _ in 0..BULK / piece.len() {
        streams[0].write_all(&piece).unwrap();
    }
    end(streams);
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// Does work with each of two inbounds in turns, and prints what the server took.
fn compare(what: &str, serving: &Serving, rounds: usize, each: f64, work: impl Fn(usize)) {
    let cost = |at: usize| {
        let before = serving.cpu();
        work(at);
        (serving.cpu() - before) / each
    };
    for at in 0..2 {
        cost(at);
    }
    let (mut sides, mut ratios) = ([Vec::new(), Vec::new()], Vec::new());
    for round in 0..rounds {
        // Which one is first changes too.
        let first = round % 2;
        let mut pair = [0.0; 2];
        for at in [first, 1 - first] {
            pair[at] = cost(at);
            sides[at].push(pair[at]);
        }
        ratios.push(pair[1] / pair[0]);
    }
    ratios.sort_by(f64::total_cmp);
    let quartile = |n: usize| ratios[ratios.len() * n / 4];
    let [off, on] = sides.map(median);
    println!(
        "{what}: off {off:.1} us, on {on:.1} us, ratio {:.3} ({:.3} to {:.3})",
        quartile(2),
        quartile(1),
        quartile(3)
    );
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let hello = hello();
    let target = target(hello.len());
    let serving = Serving::begin(target);
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["count", side, count] => {
            let at = usize::from(*side == "on");
            connections(serving.socks[at], Some(target), &hello, count.parse().unwrap(), 1);
        }
        [rounds] => {
            let rounds: usize = rounds.parse().unwrap();
            let each = ROUND as f64 * 1e3;
            for at_once in [1, ROUND] {
                compare(&format!("SOCKS, {at_once} at a time"), &serving, rounds, each, |at| {
                    connections(serving.socks[at], Some(target), &hello, ROUND, at_once);
                });
                compare(&format!("door, {at_once} at a time"), &serving, rounds, each, |at| {
                    connections(serving.doors[at], None, &hello, ROUND, at_once);
                });
            }
            compare("door, 16 MiB", &serving, rounds.div_ceil(4), 1e3, |at| {
                bulk(serving.doors[at], &hello)
            });
        }
        _ => panic!("usage: sniff ROUNDS | sniff count off|on CONNECTIONS"),
    }
}
