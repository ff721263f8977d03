//! Both roles against `v2ray`, if it is installed. With SEALWAY_REQUIRE_PEERS=1 its absence is a failure.
#![allow(clippy::unwrap_used)]

mod common;

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use common::*;
use sealway_proxy::Server;
use sealway_proxy::settings::*;
use tokio::net::TcpStream;

fn peer() -> Option<&'static str> {
    let found = Command::new("v2ray")
        .arg("-version")
        .output()
        .is_ok_and(|out| out.status.success());
    if !found {
        assert!(
            std::env::var_os("SEALWAY_REQUIRE_PEERS").is_none_or(|value| value != "1"),
            "SEALWAY_REQUIRE_PEERS=1, but v2ray is not installed"
        );
        eprintln!("SKIPPED: v2ray is not installed");
        return None;
    }
    Some("v2ray")
}

/// A running peer, killed at the end.
struct Peer {
    child: Child,
    _dir: tempfile::TempDir,
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn start(program: &str, config: &str, files: &[(&str, &str)], port: u16) -> Peer {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let path = dir.path().join("config.json");
    std::fs::write(&path, config.replace("DIR", dir.path().to_str().unwrap())).unwrap();
    let child = Command::new(program)
        .arg("-config")
        .arg(&path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let peer = Peer { child, _dir: dir };
    for _ in 0..200 {
        if TcpStream::connect(("127.0.0.1", port)).await.is_ok() {
            return peer;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{program} does not listen; its configuration: {config}");
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port()
}

/// One combination: what is spoken, over what.
struct Case {
    protocol: &'static str,
    security: &'static str,
    ws: bool,
    tls: bool,
}

impl Case {
    fn name(&self) -> String {
        format!("{} {} ws={} tls={}", self.protocol, self.security, self.ws, self.tls)
    }

    fn stream_settings(&self, server: bool) -> String {
        let network = if self.ws {
            r#""network":"ws","wsSettings":{"path":"/way"}"#
        } else {
            r#""network":"tcp""#
        };
        let tls = match (self.tls, server) {
            (false, _) => "",
            (true, true) => {
                r#","security":"tls","tlsSettings":{"certificates":[{"certificateFile":"DIR/c.pem","keyFile":"DIR/k.pem"}]}"#
            }
            (true, false) => r#","security":"tls","tlsSettings":{"serverName":"server.example","allowInsecure":true}"#,
        };
        format!("{{{network}{tls}}}")
    }

    fn network(&self) -> Network {
        if self.ws {
            Network::WebSocket(HttpNetwork {
                path: "/way".into(),
                ..HttpNetwork::default()
            })
        } else {
            Network::Raw
        }
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let protocols = [
        ("vless", ""),
        ("vmess", "aes-128-gcm"),
        ("vmess", "chacha20-poly1305"),
        ("vmess", "auto"),
        ("vmess", "none"),
    ];
    for (protocol, security) in protocols {
        for (ws, tls) in [(false, false), (false, true), (true, false), (true, true)] {
            cases.push(Case {
                protocol,
                security,
                ws,
                tls,
            });
        }
    }
    cases
}

async fn check(name: &str, door: SocketAddr, udp_door: SocketAddr) {
    for (up, down) in [(1, 1), (65536, 65536), (8 << 20, 8 << 20)] {
        let stream = TcpStream::connect(door).await.unwrap();
        within(&format!("{name}, {up} up, {down} down"), exchange(stream, up, down)).await;
    }
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(udp_door).await.unwrap();
    for len in [1, 700, 1400] {
        let sent = pattern(len as u64, len);
        socket.send(&sent).await.unwrap();
        let mut got = vec![0; 65536];
        let n = within(&format!("{name}, datagram of {len}"), socket.recv(&mut got))
            .await
            .unwrap();
        got.truncate(n);
        got.reverse();
        assert!(got == sent, "{name}: datagram of {len} garbled");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v2ray_is_the_client() {
    let Some(program) = peer() else { return };
    let (target, udp_target) = (target().await, udp_target().await);
    for case in cases() {
        let (tls, _) = server_tls(&["server.example"]);
        let protocol = match case.protocol {
            "vless" => InboundProtocol::Vless(VlessIn {
                users: vec![user()],
                fallbacks: vec![],
            }),
            _ => InboundProtocol::Vmess(VmessIn {
                users: vec![user()],
                secure_only: false,
            }),
        };
        let transport = ServerTransport {
            network: case.network(),
            tls: case.tls.then_some(tls),
            ..ServerTransport::default()
        };
        let server = Server::start(server_settings(protocol, transport)).await.unwrap();
        let (door, udp_door) = (free_port(), free_port());
        let user = match case.protocol {
            "vless" => format!(r#"{{"id":"{ID}","encryption":"none"}}"#),
            _ => format!(r#"{{"id":"{ID}","alterId":0,"security":"{}"}}"#, case.security),
        };
        let config = format!(
            r#"{{"log":{{"loglevel":"none"}},"inbounds":[
            {{"listen":"127.0.0.1","port":{door},"protocol":"dokodemo-door","settings":{{"address":"127.0.0.1","port":{},"network":"tcp"}}}},
            {{"listen":"127.0.0.1","port":{udp_door},"protocol":"dokodemo-door","settings":{{"address":"127.0.0.1","port":{},"network":"udp"}}}}],
            "outbounds":[{{"protocol":"{}","settings":{{"vnext":[{{"address":"127.0.0.1","port":{},"users":[{user}]}}]}},"streamSettings":{}}}]}}"#,
            target.port(),
            udp_target.port(),
            case.protocol,
            at(&server, "in").port(),
            case.stream_settings(false)
        );
        let _peer = start(program, &config, &[], door).await;
        let local = |port| SocketAddr::from(([127, 0, 0, 1], port));
        check(&format!("v2ray -> ours: {}", case.name()), local(door), local(udp_door)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v2ray_is_the_server() {
    let Some(program) = peer() else { return };
    let (target, udp_target) = (target().await, udp_target().await);
    for case in cases() {
        let (certificate, key) = certificate(&["server.example"]);
        let port = free_port();
        let (decryption, user) = match case.protocol {
            "vless" => (r#","decryption":"none""#, format!(r#"{{"id":"{ID}"}}"#)),
            _ => ("", format!(r#"{{"id":"{ID}","alterId":0}}"#)),
        };
        let config = format!(
            r#"{{"log":{{"loglevel":"none"}},"inbounds":[{{"listen":"127.0.0.1","port":{port},"protocol":"{}",
            "settings":{{"clients":[{user}]{decryption}}},"streamSettings":{}}}],"outbounds":[{{"protocol":"freedom"}}]}}"#,
            case.protocol,
            case.stream_settings(true)
        );
        let _peer = start(program, &config, &[("c.pem", &certificate), ("k.pem", &key)], port).await;
        let far = (loopback(), port);
        let protocol = match case.protocol {
            "vless" => OutboundProtocol::Vless(VlessOut { server: far, id: id() }),
            _ => OutboundProtocol::Vmess(VmessOut {
                server: far,
                id: id(),
                security: match case.security {
                    "aes-128-gcm" => VmessSecurity::Aes128Gcm,
                    "chacha20-poly1305" => VmessSecurity::ChaCha20Poly1305,
                    "none" => VmessSecurity::None,
                    _ => VmessSecurity::Auto,
                },
                authenticated_length: false,
                no_end: false,
            }),
        };
        let transport = ClientTransport {
            network: case.network(),
            tls: case.tls.then(|| client_tls(&certificate)),
            ..ClientTransport::default()
        };
        let settings = |target| Settings {
            inbounds: vec![door(target)],
            outbounds: vec![outbound(protocol.clone(), transport.clone())],
            ..Settings::default()
        };
        let client = Server::start(settings(target)).await.unwrap();
        let udp_client = Server::start(settings(udp_target)).await.unwrap();
        let name = format!("ours -> v2ray: {}", case.name());
        check(&name, at(&client, "door"), at(&udp_client, "door")).await;
    }
}
