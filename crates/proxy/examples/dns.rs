//! How many kept answers a second the `dns` outbound gives, for each second of CPU time that the server takes.
//!
//! `dns SECONDS NAMES`: starts a server of its own, asks for each name once, and then asks for all of them from one socket with 64
//! questions on their way. CPU time is that of the whole process, in which the client is too; the client alone, against a
//! socket that sends back what it gets, is measured as well and printed.
#![allow(clippy::unwrap_used, missing_docs)]

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use hickory_proto::op::{Message, MessageType, OpCode, Query};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{Name, RData, Record, RecordType};
use sealway_proxy::Server;
use sealway_proxy::settings::Settings;
use sealway_v2ray::config::{File, Options, load};
use tokio::net::UdpSocket;

const WINDOW: usize = 64;

/// CPU seconds of this process so far.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / 100.0
}

fn question(id: u16, n: usize) -> Vec<u8> {
    let mut message = Message::new(id, MessageType::Query, OpCode::Query);
    let name = Name::from_ascii(format!("name{n}.example.")).unwrap();
    message.add_query(Query::query(name, RecordType::A));
    message.to_vec().unwrap()
}

/// Answers to questions for so long, and the CPU seconds that they took.
async fn ask(to: SocketAddr, time: Duration, names: usize) -> (u64, f64) {
    let questions: Vec<Vec<u8>> = (0..names).map(|n| question(n as u16, n)).collect();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(to).await.unwrap();
    let (mut buffer, mut sent, mut got) = ([0; 2048], 0usize, 0u64);
    let (began, before) = (Instant::now(), cpu());
    while began.elapsed() < time {
        while sent < got as usize + WINDOW {
            socket.send(&questions[sent % names]).await.unwrap();
            sent += 1;
        }
        match tokio::time::timeout(Duration::from_secs(1), socket.recv(&mut buffer)).await {
            Ok(received) => {
                assert!(received.unwrap() >= questions[0].len());
                got += 1;
            }
            // What was dropped is not waited for.
            Err(_) => sent = got as usize,
        }
    }
    (got, cpu() - before)
}

/// A server that answers everything with 192.0.2.1.
async fn upstream() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = socket.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut buffer = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            let asked = Message::from_vec(&buffer[..len]).unwrap();
            let mut answer = Message::new(asked.metadata.id, MessageType::Response, OpCode::Query);
            let owner = asked.queries[0].name().clone();
            answer.queries = asked.queries;
            answer.add_answer(Record::from_rdata(owner, 3600, RData::A(A([192, 0, 2, 1].into()))));
            socket.send_to(&answer.to_vec().unwrap(), from).await.unwrap();
        }
    });
    port
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |at: usize, usual: u64| arguments.get(at).map_or(usual, |text| text.parse().unwrap());
    let (seconds, names) = (Duration::from_secs(number(1, 5)), number(2, 10_000) as usize);
    let port = upstream().await;
    let text = format!(
        r#"{{"dns": {{"servers": ["udp+local://127.0.0.1:{port}"]}}, "inbounds": [{{"tag": "in", "listen": "127.0.0.1", "port": 0,
        "protocol": "dokodemo-door", "settings": {{"address": "127.0.0.1", "port": 53, "network": "udp"}}}}],
        "outbounds": [{{"protocol": "dns"}}]}}"#
    );
    let file = File {
        name: "c.json",
        text: text.as_bytes(),
    };
    let config = load(&[file], &Options::default()).config.unwrap();
    let server = Server::start(Settings::from_config(&config).unwrap()).await.unwrap();
    let door = server.addresses("in")[0];
    ask(door, Duration::from_secs(2), names).await;
    let mirror = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let at = mirror.local_addr().unwrap();
    tokio::spawn(async move {
        let mut buffer = [0; 2048];
        while let Ok((len, from)) = mirror.recv_from(&mut buffer).await {
            mirror.send_to(&buffer[..len], from).await.unwrap();
        }
    });
    let (echoed, without) = ask(at, seconds, names).await;
    let (answers, with) = ask(door, seconds, names).await;
    let (bare, whole) = (without / echoed as f64 * 1e6, with / answers as f64 * 1e6);
    println!("mirror and client: {echoed} answers, {bare:.2} us of CPU each");
    println!("server and client: {answers} answers, {whole:.2} us of CPU each");
    println!("answers for a second of CPU, the client counted: {:.0}", 1e6 / whole);
}
