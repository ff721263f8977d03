//! Private targets: closed to clients from outside, by who reaches a listener; open where a rule names them.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use sealway_proxy::Server;
use sealway_proxy::settings::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};

use crate::common::*;

/// An outbound that keeps to the policy.
fn direct() -> Outbound {
    Outbound {
        protocol: OutboundProtocol::Freedom(Freedom::default()),
        ..freedom()
    }
}

fn rule(net: &str, ports: Vec<(u16, u16)>) -> Rule {
    Rule {
        ips: vec![IpMatch::Net(net.parse().unwrap())],
        ports,
        outbound_tag: "direct".into(),
        ..Rule::default()
    }
}

/// One inbound at `listen`, with these rules.
fn settings(listen: &str, protocol: InboundProtocol, rules: Vec<Rule>, log: &Path) -> Settings {
    let mut inbound = inbound("in", protocol, ServerTransport::default());
    inbound.listen = vec![Listen::Port(listen.parse().unwrap())];
    Settings {
        inbounds: vec![inbound],
        outbounds: vec![direct()],
        rules,
        access_log: LogTarget::File(log.into()),
        ..Settings::default()
    }
}

fn tunnel(target: SocketAddr) -> InboundProtocol {
    door(target).protocol
}

/// The first bytes of a client, and how many bytes answer them.
fn hello(way: &str, target: SocketAddr) -> (Vec<u8>, usize) {
    match way {
        "socks" => {
            let mut hello = vec![5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1];
            hello.extend(target.port().to_be_bytes());
            (hello, 12)
        }
        "http" => {
            let hello = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
            (hello.into_bytes(), "HTTP/1.1 200 Connection established\r\n\r\n".len())
        }
        _ => (Vec::new(), 0),
    }
}

async fn connect(server: SocketAddr, way: &str, target: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).await.unwrap();
    let (hello, answer) = hello(way, target);
    stream.write_all(&hello).await.unwrap();
    let mut got = vec![0; answer];
    within(way, stream.read_exact(&mut got)).await.unwrap();
    stream
}

/// Waits until the log tells of a refusal by the guard.
async fn refused(what: &str, log: &Path) {
    for _ in 0..1000 {
        let text = std::fs::read_to_string(log).unwrap_or_default();
        if text.contains("refused by the guard of private addresses") {
            std::fs::write(log, "").unwrap();
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what}: nothing was refused");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_follows_the_listener_and_not_the_protocol() {
    let target = target().await;
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("access.log");
    let http = || InboundProtocol::Http(HttpProxy::default());
    for (way, protocol) in [
        ("socks", socks()),
        // A SOCKS port serves HTTP as well.
        ("http", socks()),
        ("http", http()),
        ("door", tunnel(target)),
    ] {
        let start = |listen, rules| Server::start(settings(listen, protocol.clone(), rules, &log));
        let local = start("127.0.0.1:0", vec![]).await.unwrap();
        let stream = connect(at(&local, "in"), way, target).await;
        within(way, exchange(stream, 10, 10)).await;
        for rules in [
            vec![],
            vec![rule("0.0.0.0/0", vec![])],
            vec![rule("10.0.0.0/8", vec![])],
        ] {
            let open = start("0.0.0.0:0", rules).await.unwrap();
            let _held = connect(at(&open, "in"), way, target).await;
            refused(way, &log).await;
        }
        // The way out: a rule that names the address.
        for net in ["127.0.0.0/8", "127.0.0.1/32"] {
            let open = start("0.0.0.0:0", vec![rule(net, vec![])]).await.unwrap();
            let stream = connect(at(&open, "in"), way, target).await;
            within(way, exchange(stream, 10, 10)).await;
        }
    }
    // A request to be sent on, not a tunnel.
    let open = start(settings("0.0.0.0:0", http(), vec![], &log)).await;
    let mut stream = connect(at(&open, "in"), "", target).await;
    let request = format!("GET http://{target}/ HTTP/1.1\r\nHost: {target}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    refused("a request", &log).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_a_server_in_front_tells_of_counts() {
    let target = target().await;
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("access.log");
    let mut settings = settings("127.0.0.1:0", tunnel(target), vec![], &log);
    settings.inbounds[0].transport.accept_proxy_protocol = true;
    let server = start(settings).await;
    let mut from_here = connect(at(&server, "in"), "", target).await;
    from_here
        .write_all(b"PROXY TCP4 127.0.0.1 127.0.0.1 1000 80\r\n")
        .await
        .unwrap();
    within("from here", exchange(from_here, 10, 10)).await;
    let mut from_outside = connect(at(&server, "in"), "", target).await;
    let header = b"PROXY TCP4 198.51.100.7 127.0.0.1 1000 80\r\n";
    from_outside.write_all(header).await.unwrap();
    refused("from outside", &log).await;
}

/// What is redirected to a listener on loopback keeps the address of the client, or of whichever interface a program of this
/// machine sent from. Only the administrator can have led it there, and a private target was refused all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_redirected_to_loopback_is_not_from_outside() {
    let probe = UdpSocket::bind("0.0.0.0:0").await.unwrap();
    if probe.connect("192.0.2.1:9").await.is_err() {
        return eprintln!("skipped: this machine has no address but loopback");
    }
    let own = SocketAddr::new(probe.local_addr().unwrap().ip(), 0);
    let target = target().await;
    let echo = udp_target().await;
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("access.log");
    let from_own = async |server: &Server| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(own).unwrap();
        socket.connect(at(server, "in")).await.unwrap()
    };
    let start = |protocol| Server::start(settings("127.0.0.1:0", protocol, vec![], &log));
    let door = start(tunnel(target)).await.unwrap();
    let stream = from_own(&door).await;
    assert_eq!(stream.local_addr().unwrap().ip(), own.ip());
    within("a stream", exchange(stream, 10, 10)).await;
    let door = start(tunnel(echo)).await.unwrap();
    let socket = UdpSocket::bind(own).await.unwrap();
    socket.send_to(b"abc", at(&door, "in")).await.unwrap();
    let mut got = [0; 3];
    within("a datagram", socket.recv(&mut got)).await.unwrap();
    assert_eq!(&got, b"cba");
    // Who is told of by a server in front was not redirected.
    let mut settings = settings("127.0.0.1:0", tunnel(target), vec![], &log);
    settings.inbounds[0].transport.accept_proxy_protocol = true;
    let server = Server::start(settings).await.unwrap();
    let mut stream = from_own(&server).await;
    let header = format!("PROXY TCP4 {} 127.0.0.1 1000 80\r\n", own.ip());
    stream.write_all(header.as_bytes()).await.unwrap();
    refused("from outside", &log).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_rule_lets_pass_is_nothing_to_other_targets() {
    let named = udp_target().await;
    let other = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("access.log");
    let rules = vec![rule("127.0.0.0/8", vec![(named.port(), named.port())])];
    let server = start(settings("0.0.0.0:0", socks(), rules, &log)).await;
    let reached = SocketAddr::from(([127, 0, 0, 1], at(&server, "in").port()));
    let (_control, relay) = associate(reached).await;
    let own = udp_to(relay).await;
    let mut got = [0; 64];
    for _ in 0..3 {
        own.send(&socks_packet(named, b"abc")).await.unwrap();
        let len = within("answer", own.recv(&mut got)).await.unwrap();
        assert_eq!(&got[len - 3..len], b"cba");
        own.send(&socks_packet(other.local_addr().unwrap(), b"abc"))
            .await
            .unwrap();
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(
        other.try_recv(&mut got).is_err(),
        "it went through the flow of another rule"
    );
}
