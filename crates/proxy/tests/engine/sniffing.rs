//! What first bytes say: where streams and datagrams go by it, and that they go on as they came.

mod datagrams;
mod fake;
mod hello;
mod streams;

use std::net::{IpAddr, SocketAddr};

use sealway_proxy::Server;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

use crate::common;

/// The name that leads to the second of [`targets`].
const NAME: &str = "named.example";
const ASKED: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);
const NAMED: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 2));
const RULED: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(127, 0, 0, 3));

async fn start(config: &Value) -> Server {
    common::start(common::settings_of(config)).await
}

/// A server that goes straight out; to the third of [`targets`] with the tag `ruled`.
fn config(inbound: Value, port: u16, rules: Value) -> Value {
    let allow = json!([{"action": "allow"}]);
    json!({
        "inbounds": [inbound],
        "dns": {"hosts": {NAME: NAMED.to_string()}},
        "outbounds": [
            {"tag": "out", "protocol": "freedom", "settings": {"finalRules": allow}},
            {"tag": "ruled", "protocol": "freedom",
             "settings": {"finalRules": allow, "redirect": SocketAddr::new(RULED, port).to_string()}},
        ],
        "routing": {"rules": rules},
    })
}

/// A door to the first of [`targets`].
fn door(port: u16, sniffing: Value) -> Value {
    json!({
        "tag": "in", "listen": "127.0.0.1", "port": 0, "protocol": "dokodemo-door",
        "settings": {"address": ASKED.to_string(), "port": port, "network": "tcp,udp"},
        "sniffing": sniffing,
    })
}

/// Servers with one port at three addresses, which say what they are, `asked`, `named` or `ruled`, and repeat what they hear:
/// of streams at once and behind it, of datagrams in front of each.
async fn targets() -> u16 {
    let all = [ASKED, NAMED, RULED];
    let (port, streams, datagrams) = 'port: loop {
        let (mut streams, mut datagrams) = (Vec::new(), Vec::new());
        let mut port = 0;
        for ip in all {
            let Ok(tcp) = TcpListener::bind((ip, port)).await else {
                continue 'port;
            };
            port = tcp.local_addr().unwrap().port();
            let Ok(udp) = UdpSocket::bind((ip, port)).await else {
                continue 'port;
            };
            streams.push(tcp);
            datagrams.push(udp);
        }
        break (port, streams, datagrams);
    };
    for ((tcp, udp), name) in streams.into_iter().zip(datagrams).zip(["asked", "named", "ruled"]) {
        tokio::spawn(async move {
            while let Ok((mut tcp, _)) = tcp.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = tcp.split();
                    write.write_all(name.as_bytes()).await.unwrap();
                    let _ = tokio::io::copy(&mut read, &mut write).await;
                    let _ = write.shutdown().await;
                });
            }
        });
        tokio::spawn(async move {
            let mut buffer = vec![0; 65_536];
            while let Ok((len, from)) = udp.recv_from(&mut buffer).await {
                let answer = [name.as_bytes(), &buffer[..len]].concat();
                let _ = udp.send_to(&answer, from).await;
            }
        });
    }
    port
}

/// Reads what a target is.
async fn who(stream: &mut (impl AsyncReadExt + Unpin)) -> String {
    let mut name = [0; 5];
    common::within("the target's name", stream.read_exact(&mut name))
        .await
        .unwrap();
    String::from_utf8(name.to_vec()).unwrap()
}
