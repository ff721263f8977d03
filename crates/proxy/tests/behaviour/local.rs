//! SOCKS and HTTP, for programs on this machine.

use std::net::SocketAddr;
use std::time::Duration;

use sealway_proxy::Server;
use sealway_proxy::settings::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client;
use crate::common::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socks_and_http_work_as_inbound_and_as_outbound() {
    let (target, udp_target) = (target().await, udp_target().await);
    let account = Account {
        user: "someone".into(),
        pass: "secret".into(),
    };
    let socks_in = InboundProtocol::Socks(Socks {
        accounts: vec![account.clone()],
        udp: true,
        ..Socks::default()
    });
    let http_in = InboundProtocol::Http(HttpProxy {
        accounts: vec![account.clone()],
        ..HttpProxy::default()
    });
    for (name, protocol) in [("socks", socks_in), ("http", http_in)] {
        let server = Server::start(server_settings(protocol, ServerTransport::default()))
            .await
            .unwrap();
        let proxy = |account| ProxyOut {
            server: (loopback(), at(&server, "in").port()),
            account,
            headers: Vec::new(),
        };
        let far = |account| match name {
            "socks" => OutboundProtocol::Socks(proxy(account)),
            _ => OutboundProtocol::Http(proxy(account)),
        };
        let right = client(target, far(Some(account.clone())), ClientTransport::default()).await;
        exchange_all(name, at(&right, "door")).await;
        let wrong = Account {
            user: "someone".into(),
            pass: "secreT".into(),
        };
        for refused in [None, Some(wrong)] {
            let client = client(target, far(refused), ClientTransport::default()).await;
            let mut stream = TcpStream::connect(at(&client, "door")).await.unwrap();
            assert_eq!(within(name, stream.read(&mut [0])).await.unwrap_or(0), 0);
        }
    }
    socks_udp(udp_target).await;
}

/// UDP ASSOCIATE: datagrams of the owner pass, those of anyone else do not.
async fn socks_udp(udp_target: SocketAddr) {
    let socks = socks();
    let server = Server::start(server_settings(socks, ServerTransport::default()))
        .await
        .unwrap();
    let mut control = TcpStream::connect(at(&server, "in")).await.unwrap();
    control
        .write_all(&[5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0])
        .await
        .unwrap();
    let mut answer = [0; 12];
    control.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer[..6], [5, 0, 5, 0, 0, 1]);
    let port = u16::from_be_bytes([answer[10], answer[11]]);
    let relay = SocketAddr::from(([127, 0, 0, 1], port));
    let head = |port: u16| [&[0, 0, 0, 1, 127, 0, 0, 1][..], &port.to_be_bytes()].concat();
    let own = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut got = [0; 100];
    own.send_to(&[head(udp_target.port()), b"abc".to_vec()].concat(), relay)
        .await
        .unwrap();
    let len = within("socks datagram", own.recv(&mut got)).await.unwrap();
    assert_eq!(got[..len], [head(udp_target.port()), b"cba".to_vec()].concat());
    // Another socket of the same host is not the owner; its datagram must not come back to it, nor to the owner.
    let other = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    other
        .send_to(&[head(udp_target.port()), b"evil".to_vec()].concat(), relay)
        .await
        .unwrap();
    own.send_to(&[head(udp_target.port()), b"next".to_vec()].concat(), relay)
        .await
        .unwrap();
    let len = within("socks datagram", own.recv(&mut got)).await.unwrap();
    assert_eq!(got[..len], [head(udp_target.port()), b"txen".to_vec()].concat());
    assert!(other.try_recv(&mut got).is_err());
    drop(control);
    let gone = async {
        loop {
            // With the connection gone the port is closed, which the system says.
            if own.send_to(b"x", relay).await.is_err()
                || own
                    .try_recv(&mut got)
                    .is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionRefused)
            {
                return;
            }
            if tokio::net::UdpSocket::bind(relay).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within("end of the association", gone).await;
}
