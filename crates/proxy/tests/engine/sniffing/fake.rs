//! Addresses that our DNS made up, on their way back to names.

use std::net::{Ipv4Addr, SocketAddr};

use sealway_proxy::Server;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};

use super::datagrams::{Client, socks};
use super::{NAME, config, start, targets, who};
use crate::common::{at, within};

/// The address that the `dns` outbound says for a name.
async fn asks(server: &Server, name: &str) -> Ipv4Addr {
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    client.connect(at(server, "dns")).await.unwrap();
    let mut question = vec![0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        question.push(label.len() as u8);
        question.extend_from_slice(label.as_bytes());
    }
    question.extend_from_slice(&[0, 0, 1, 0, 1]);
    client.send(&question).await.unwrap();
    let mut answer = [0; 512];
    let len = within("an answer", client.recv(&mut answer)).await.unwrap();
    assert_eq!(answer[6..8], [0, 1], "one address");
    <[u8; 4]>::try_from(&answer[len - 4..len]).unwrap().into()
}

/// A server whose DNS makes addresses up for two names, and which goes out by another one that knows the names.
fn near(sniffing: Value, far: &Server) -> Value {
    json!({
        "inbounds": [
            socks(sniffing),
            {"tag": "dns", "listen": "127.0.0.1", "port": 0, "protocol": "dokodemo-door",
             "settings": {"address": "192.0.2.53", "port": 53, "network": "udp"}},
        ],
        "dns": {"servers": ["fakedns"]},
        "fakedns": {"ipPool": "198.18.0.0/16", "poolSize": 2},
        "outbounds": [
            {"protocol": "socks", "settings": {"servers": [{"address": "127.0.0.1", "port": at(far, "socks").port()}]}},
            {"tag": "answers", "protocol": "dns"},
        ],
        "routing": {"rules": [{"inboundTag": ["dns"], "outboundTag": "answers"}]},
    })
}

async fn connect(server: &Server, ip: Ipv4Addr, port: u16) -> TcpStream {
    let mut client = TcpStream::connect(at(server, "socks")).await.unwrap();
    let request = [&[5, 1, 0, 5, 1, 0, 1][..], &ip.octets(), &port.to_be_bytes()].concat();
    client.write_all(&request).await.unwrap();
    let mut answer = [0; 12];
    within("the answer", client.read_exact(&mut answer)).await.unwrap();
    client
}

#[tokio::test]
async fn fake_addresses_lead_to_their_names() {
    let port = targets().await;
    let far = start(&config(socks(json!({})), port, json!([]))).await;
    for more in [
        json!({"destOverride": ["fakedns"]}),
        json!({"destOverride": ["fakedns", "tls"], "routeOnly": true}),
        json!({"destOverride": ["fakedns"], "metadataOnly": true}),
    ] {
        let mut sniffing = more.clone();
        sniffing["enabled"] = json!(true);
        let server = start(&near(sniffing, &far)).await;
        let ip = asks(&server, NAME).await;
        assert_eq!(ip.octets()[..2], [198, 18]);
        let mut client = connect(&server, ip, port).await;
        client.write_all(b"anything at all").await.unwrap();
        assert_eq!(who(&mut client).await, "named", "{more}");
        let to = SocketAddr::new(ip.into(), port);
        let client = Client::new(&server).await;
        client.send(to, b"a datagram").await;
        assert_eq!(
            client.receive().await,
            (to, "named".into(), b"a datagram".to_vec()),
            "{more}"
        );
        // Two others take the places, and the first is forgotten.
        for name in ["a.example", "b.example"] {
            asks(&server, name).await;
        }
        let mut client = connect(&server, ip, port).await;
        let _ = client.write_all(b"anything at all").await;
        let mut all = Vec::new();
        let _ = within("the end", client.read_to_end(&mut all)).await;
        assert!(all.is_empty(), "{more}");
    }
}
