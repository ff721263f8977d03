//! Outbounds that dial through other outbounds: what they check and what they keep.

use std::net::SocketAddr;
use std::time::Duration;

use sealway_proxy::Server;
use sealway_proxy::settings::{Through, TransportKind};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use crate::common::*;

/// A door to this target whose connections go out by the first of the outbounds.
async fn start(host: &str, port: u16, outbounds: Value) -> Server {
    let door = json!({"tag": "door", "listen": "127.0.0.1", "port": 0, "protocol": "dokodemo-door",
        "settings": {"address": host, "port": port, "network": "tcp,udp"}});
    let settings = settings_of(json!({"inbounds": [door], "outbounds": outbounds}));
    Server::start(settings).await.unwrap()
}

/// Answers by TCP and by UDP, at one port of 127.0.0.1.
async fn echo() -> u16 {
    let (tcp, udp, port) = loop {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = tcp.local_addr().unwrap().port();
        if let Ok(udp) = UdpSocket::bind(("127.0.0.1", port)).await {
            break (tcp, udp, port);
        }
    };
    tokio::spawn(async move {
        let mut buffer = vec![0; 65536];
        while let Ok((len, from)) = udp.recv_from(&mut buffer).await {
            let _ = udp.send_to(&buffer[..len], from).await;
        }
    });
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = tcp.accept().await {
            let _ = stream.write_all(b"answer").await;
        }
    });
    port
}

/// Whether the target is reached by TCP.
async fn by_tcp(server: &Server) -> bool {
    let mut stream = TcpStream::connect(at(server, "door")).await.unwrap();
    // Who is refused is told so once it has said all.
    stream.shutdown().await.unwrap();
    let read = within("tcp", stream.read(&mut [0; 6])).await;
    read.is_ok_and(|read| read > 0)
}

/// Whether the target is reached by UDP.
async fn by_udp(server: &Server) -> bool {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let door: SocketAddr = udp_at(server, "door");
    socket.send_to(b"question", door).await.unwrap();
    let mut buffer = [0; 64];
    let answer = tokio::time::timeout(Duration::from_millis(500), socket.recv(&mut buffer));
    answer.await.is_ok_and(|got| got.is_ok())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn final_rules_hold_for_names_that_are_resolved_elsewhere() {
    let port = echo().await;
    for (rules, passes) in [
        (json!([]), (true, true)),
        (json!([{"action": "block"}]), (false, false)),
        (json!([{"action": "block", "port": port}]), (false, false)),
        (json!([{"action": "block", "port": 25}]), (true, true)),
        (json!([{"action": "block", "network": "udp"}]), (true, false)),
        (
            json!([{"action": "block", "network": "udp"}, {"action": "allow"}, {"action": "block"}]),
            (true, false),
        ),
        (
            json!([{"action": "block", "ip": ["127.0.0.0/8", "::1"]}]),
            (false, false),
        ),
        (
            json!([{"action": "block", "ip": ["192.0.2.0/24"]}, {"action": "allow"}]),
            (true, true),
        ),
        (
            json!([{"action": "block", "port": 25, "ip": ["127.0.0.0/8"]}]),
            (true, true),
        ),
    ] {
        for host in ["localhost", "127.0.0.1"] {
            let through = json!({"sockopt": {"dialerProxy": "hop"}});
            let settings = json!({"finalRules": rules});
            let outbounds = json!([
                {"tag": "out", "protocol": "freedom", "settings": settings, "streamSettings": through},
                {"tag": "hop", "protocol": "freedom", "settings": {"domainStrategy": "UseIPv4"}},
            ]);
            let server = start(host, port, outbounds).await;
            let reached = (by_tcp(&server).await, by_udp(&server).await);
            assert_eq!(reached, passes, "{host}: {rules}");
        }
    }
}

/// The tags of the outbounds that go up and come down.
fn ways(chain: Value, own: Value) -> (Option<String>, Option<String>) {
    let download = json!({"address": "192.0.2.2", "port": 443, "network": "xhttp", "sockopt": own});
    let xhttp = json!({"mode": "packet-up", "downloadSettings": download});
    let user = json!({"id": "b831381d-6324-4d53-ad4f-8cda48b30811", "encryption": "none"});
    let server = json!({"address": "192.0.2.1", "port": 443, "users": [user]});
    let mut first = json!({"tag": "out", "protocol": "vless", "settings": {"vnext": [server]},
        "streamSettings": {"network": "xhttp", "xhttpSettings": xhttp}});
    first
        .as_object_mut()
        .unwrap()
        .extend(chain.as_object().unwrap().clone());
    let hops = ["hop", "other"].map(|tag| json!({"tag": tag, "protocol": "freedom"}));
    let inbound = json!({"port": 1080, "protocol": "socks"});
    let config = json!({"inbounds": [inbound], "outbounds": [first, hops[0], hops[1]]});
    let transport = settings_of(config).outbounds.remove(0).transport;
    let TransportKind::Xhttp(xhttp) = transport.kind else {
        panic!("{:?}", transport.kind);
    };
    let by = |through: Option<Through>| through.map(|through| through.outbound);
    (by(transport.through), by(xhttp.download.unwrap().transport.through))
}

#[test]
fn what_comes_down_goes_by_the_chain_too() {
    let hop = Some("hop".to_owned());
    let proxied = json!({"proxySettings": {"tag": "hop", "transportLayer": true}});
    assert_eq!(ways(proxied.clone(), json!({})), (hop.clone(), hop.clone()));
    let other = json!({"dialerProxy": "other"});
    assert_eq!(ways(proxied, other), (hop, Some("other".to_owned())));
    assert_eq!(ways(json!({}), json!({})), (None, None));
}

/// Says who dials it: the address, and what a header of the PROXY protocol says.
async fn told() -> (u16, tokio::sync::mpsc::Receiver<(SocketAddr, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, heard) = tokio::sync::mpsc::channel(8);
    tokio::spawn(async move {
        while let Ok((mut stream, from)) = listener.accept().await {
            let mut head = vec![0; 64];
            let len = stream.read(&mut head).await.unwrap_or(0);
            head.truncate(len);
            let _ = tell.send((from, head)).await;
        }
    });
    (port, heard)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hops_know_who_the_client_is() {
    let (port, mut heard) = told().await;
    let trojan = |more: Value| {
        let server = json!({"address": "127.0.0.1", "port": port, "password": "p"});
        let mut outbound = json!({"tag": "out", "protocol": "trojan", "settings": {"servers": [server]}});
        let fields = outbound.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        outbound
    };
    let hop = |more: Value| {
        let through = json!({"streamSettings": {"sockopt": {"dialerProxy": "hop"}}});
        json!([trojan(through), {"tag": "hop", "protocol": "freedom", "settings": more, "sendThrough": "srcip"}])
    };
    for outbounds in [json!([trojan(json!({"sendThrough": "srcip"}))]), hop(json!({}))] {
        let server = start("192.0.2.1", 80, outbounds).await;
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.5:0".parse().unwrap()).unwrap();
        let mut client = socket.connect(at(&server, "door")).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
        let (from, _) = within("the next server", heard.recv()).await.unwrap();
        assert_eq!(from.ip().to_string(), "127.0.0.5");
    }
    let server = start("192.0.2.1", 80, hop(json!({"proxyProtocol": 1}))).await;
    let mut client = TcpStream::connect(at(&server, "door")).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let (_, head) = within("the next server", heard.recv()).await.unwrap();
    let said = format!(
        "PROXY TCP4 127.0.0.1 127.0.0.1 {} ",
        client.local_addr().unwrap().port()
    );
    assert!(head.starts_with(said.as_bytes()), "{}", String::from_utf8_lossy(&head));
}
