//! The same bytes and the same settings in Xray and here: the same lines in the access log.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use rustls::quic::Version;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::Instant;

use crate::common::within;
use crate::programs::{PATIENCE, Place, Program, Running};
use crate::ways::{Files, VLESS, Way, patient, placed};
use crate::{curl, hello};

const NAME: &str = "named.example";

/// What a client sends first.
enum First {
    Stream(Vec<u8>),
    Datagrams(Vec<Vec<u8>>),
}

/// A case: what is sent, the outbound that it takes here, and in Xray where that is another one; empty where it is not always the
/// same.
struct Case {
    what: &'static str,
    first: First,
    outbound: &'static str,
    xray: Option<&'static str>,
}

fn cases(to: SocketAddr) -> Vec<Case> {
    let stream = |what, first: Vec<u8>, outbound| Case {
        what,
        first: First::Stream(first),
        outbound,
        xray: None,
    };
    let datagrams = |what, first: Vec<Vec<u8>>, outbound| Case {
        what,
        first: First::Datagrams(first),
        outbound,
        xray: None,
    };
    // Xray reads hellos that lie in one record, and knows version 1 of QUIC and its draft 29.
    let only_here = |xray, case: Case| Case {
        xray: Some(xray),
        ..case
    };
    let mut utp = vec![0; 20];
    utp[0] = 0x41;
    vec![
        stream("HTTP", hello::http(NAME), "named"),
        stream("HTTP with a port", hello::http(&format!("{NAME}:81")), "named"),
        stream("HTTP of another host", hello::http("other.example"), "http"),
        stream(
            "HTTP of an excluded host",
            hello::http("excluded.named.example"),
            "http",
        ),
        stream("HTTP of an address", hello::http(&to.ip().to_string()), "http"),
        stream("TLS", hello::tls(NAME, 1), "named"),
        only_here("rest", stream("TLS in two records", hello::tls(NAME, 2), "named")),
        only_here("rest", stream("TLS in five records", hello::tls(NAME, 5), "named")),
        stream("TLS of another host", hello::tls("other.example", 1), "tls"),
        only_here("rest", stream("TLS without a name", hello::tls("192.0.2.1", 1), "tls")),
        only_here(
            "rest",
            stream("HTTP without a host", b"GET / HTTP/1.0\r\n\r\n".to_vec(), "http"),
        ),
        stream(
            "BitTorrent",
            b"\x13BitTorrent protocol\0\0\0\0\0\0\0\0".to_vec(),
            "torrent",
        ),
        stream("something else", b"\x01\x02\x03\x04\x05\x06\x07\x08".to_vec(), "rest"),
        datagrams("QUIC", hello::quic(NAME, Version::V1, 2), "named"),
        // What Xray makes of the pieces of three depends on when they come.
        only_here(
            "",
            datagrams("QUIC in three datagrams", hello::quic(NAME, Version::V1, 3), "named"),
        ),
        datagrams("QUIC, draft 29", hello::quic(NAME, Version::V1Draft, 2), "named"),
        only_here("rest", datagrams("QUIC 2", hello::quic(NAME, Version::V2, 2), "named")),
        datagrams(
            "QUIC of another host",
            hello::quic("other.example", Version::V1, 2),
            "quic",
        ),
        only_here("rest", datagrams("uTP", vec![utp], "torrent")),
        datagrams(
            "a datagram of something else",
            vec![b"\x01\x02\x03\x04\x05\x06".to_vec()],
            "rest",
        ),
    ]
}

/// A target that repeats what it hears.
async fn echo(place: &Place) -> SocketAddr {
    let port = place.port();
    place.let_go();
    let at = place.at(port);
    let (tcp, udp) = (TcpListener::bind(at).await.unwrap(), UdpSocket::bind(at).await.unwrap());
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = tcp.accept().await {
            tokio::spawn(async move {
                let (mut read, mut write) = tcp.split();
                let _ = tokio::io::copy(&mut read, &mut write).await;
            });
        }
    });
    tokio::spawn(async move {
        let mut buffer = vec![0; 65_536];
        while let Ok((len, from)) = udp.recv_from(&mut buffer).await {
            let _ = udp.send_to(&buffer[..len], from).await;
        }
    });
    at
}

/// A configuration whose outbounds say what was found.
fn config(inbound: Value, access: &str, route_only: bool, host: &str) -> Value {
    let mut inbound = inbound;
    inbound["sniffing"] = json!({
        "enabled": true, "destOverride": ["http", "tls", "quic"], "routeOnly": route_only,
        "domainsExcluded": ["excluded.named.example"],
    });
    let allow = json!({"finalRules": [{"action": "allow"}], "domainStrategy": "UseIP"});
    let outbounds = ["rest", "named", "torrent", "tls", "http", "quic"]
        .map(|tag| json!({"tag": tag, "protocol": "freedom", "settings": allow}));
    let rule = |key: &str, value: &str, tag: &str| json!({"type": "field", key: [value], "outboundTag": tag});
    json!({
        "log": {"loglevel": "warning", "access": access},
        "policy": patient(),
        "dns": {"hosts": {"domain:example": host}, "servers": ["localhost"]},
        "inbounds": [inbound],
        "outbounds": outbounds,
        "routing": {"rules": [
            rule("domain", "domain:named.example", "named"), rule("protocol", "bittorrent", "torrent"),
            rule("protocol", "tls", "tls"), rule("protocol", "http", "http"), rule("protocol", "quic", "quic"),
        ]},
    })
}

async fn ask(proxy: SocketAddr, command: u8, to: SocketAddr) -> (TcpStream, SocketAddr) {
    let SocketAddr::V4(to) = to else { panic!("IPv4") };
    let mut tcp = TcpStream::connect(proxy).await.unwrap();
    let request = [
        &[5, 1, 0, 5, command, 0, 1][..],
        &to.ip().octets(),
        &to.port().to_be_bytes(),
    ]
    .concat();
    tcp.write_all(&request).await.unwrap();
    let mut answer = [0; 12];
    within("an answer of the proxy", tcp.read_exact(&mut answer))
        .await
        .unwrap();
    assert_eq!(answer[3], 0);
    let ip = <[u8; 4]>::try_from(&answer[6..10]).unwrap();
    (
        tcp,
        SocketAddr::from((ip, u16::from_be_bytes([answer[10], answer[11]]))),
    )
}

/// Sends it through a SOCKS port and checks that it comes back, from where it was sent to.
async fn send(proxy: SocketAddr, to: SocketAddr, case: &Case) {
    let any = SocketAddr::from(([0, 0, 0, 0], 0));
    match &case.first {
        First::Stream(first) => {
            let (mut tcp, _) = ask(proxy, 1, to).await;
            tcp.write_all(first).await.unwrap();
            let mut back = vec![0; first.len()];
            within(case.what, tcp.read_exact(&mut back)).await.unwrap();
            assert!(back == *first, "{}", case.what);
        }
        First::Datagrams(first) => {
            let (tcp, relay) = ask(proxy, 3, any).await;
            let udp = UdpSocket::bind(SocketAddr::new(tcp.local_addr().unwrap().ip(), 0))
                .await
                .unwrap();
            udp.connect(SocketAddr::new(proxy.ip(), relay.port())).await.unwrap();
            let SocketAddr::V4(to) = to else { panic!("IPv4") };
            let head = [&[0, 0, 0, 1][..], &to.ip().octets(), &to.port().to_be_bytes()].concat();
            for datagram in first {
                udp.send(&[&head[..], datagram].concat()).await.unwrap();
            }
            let mut buffer = vec![0; 65_536];
            for datagram in first {
                let len = within(case.what, udp.recv(&mut buffer)).await.unwrap();
                assert!(buffer[..len] == [&head[..], datagram].concat(), "{}", case.what);
            }
        }
    }
}

/// What follows the client's address in the lines of an access log, once there are so many.
async fn lines(place: &Place, count: usize) -> Vec<String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let text = std::fs::read_to_string(place.path("access")).unwrap_or_default();
        let lines = text
            .lines()
            .filter_map(|line| Some(line.split_once(" accepted ")?.1.to_owned()));
        let lines: Vec<String> = lines.collect();
        if lines.len() >= count {
            return lines;
        }
        assert!(Instant::now() < deadline, "{count} lines expected:\n{text}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Runs all cases through a proxy. `place` has the access log of the `program` that looks at them.
async fn run(program: Program, place: &Place, proxy: SocketAddr, to: SocketAddr, tail: &str) {
    for case in &cases(to) {
        if program == Program::Xray && case.xray == Some("") {
            continue;
        }
        let before = lines(place, 0).await.len();
        send(proxy, to, case).await;
        let network = match case.first {
            First::Stream(_) => "tcp",
            First::Datagrams(_) => "udp",
        };
        // What was asked for stands there, not what is dialled.
        let outbound = case.xray.filter(|_| program == Program::Xray).unwrap_or(case.outbound);
        let arrow = if outbound == "rest" { ">>" } else { "->" };
        // A client that forwards the association itself writes a line of its own.
        let got = lines(place, before + 1).await.split_off(before);
        let wanted = format!("{network}:{to} [in {arrow} {outbound}]{tail}");
        assert!(
            got.contains(&wanted),
            "{}, {}: {got:?}, not {wanted}",
            program.name(),
            case.what
        );
        assert_eq!(
            got.iter()
                .filter(|line| line.starts_with(&format!("{network}:{to}")))
                .count(),
            1,
            "{got:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn local_inbounds_see_what_xray_sees() {
    for program in [Program::Ours, Program::Xray] {
        if !program.there() {
            continue;
        }
        for route_only in [true, false] {
            let place = Place::new();
            let to = echo(&place).await;
            let port = place.port();
            let inbound = json!({"protocol": "socks", "settings": {"udp": true, "ip": place.host}});
            let config = config(
                placed(inbound, "in", place.at(port)),
                &place.name("access"),
                route_only,
                &place.host.to_string(),
            );
            place.let_go();
            let _running = program.run(&place, &config).await;
            run(program, &place, place.at(port), to, "").await;
        }
    }
}

/// A client with a SOCKS port, and a server that looks at what comes by VLESS.
async fn pair(client: Program, server: Program, cone: &str) -> Option<(Place, Place, SocketAddr, [Running; 2])> {
    if !(client.there() && server.there()) {
        return None;
    }
    let (files, far, near) = (Files::new(), Place::new(), Place::new());
    let way = Way::new(VLESS, "tcp", false);
    let (hop, port) = (far.port(), near.port());
    let inbound = placed(way.inbound(&files), "in", far.at(hop));
    let far_config = config(inbound, &far.name("access"), false, &far.host.to_string());
    let socks = json!({"protocol": "socks", "settings": {"udp": true, "ip": near.host}});
    let near_config = json!({
        "log": {"loglevel": "warning", "access": "none"},
        "inbounds": [placed(socks, "socks", near.at(port))],
        "outbounds": [way.outbound(far.at(hop), &files)],
    });
    far.let_go();
    let serving = server.run(&far, &far_config).await;
    near.let_go();
    let asking = client
        .run_in(&near, &near_config, &[("XRAY_CONE_DISABLED", cone)])
        .await;
    let proxy = near.at(port);
    Some((far, near, proxy, [serving, asking]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_see_what_xray_sees_behind_either_client() {
    use Program::{Ours, Xray};
    // Xray as a client sends datagrams in a mux (XUDP) unless it is told not to.
    for (client, server, cone) in [
        (Ours, Xray, "false"),
        (Xray, Ours, "true"),
        (Xray, Ours, "false"),
        (Ours, Ours, ""),
    ] {
        let Some((far, _near, proxy, _running)) = pair(client, server, cone).await else {
            continue;
        };
        let to = echo(&far).await;
        run(server, &far, proxy, to, " email: user@example").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_is_seen_as_xray_sees_it() {
    if !curl::there() {
        return;
    }
    for program in [Program::Ours, Program::Xray] {
        if !program.there() {
            continue;
        }
        let place = Place::new();
        let to = echo(&place).await;
        let port = place.port();
        let inbound = json!({"protocol": "socks"});
        let config = config(
            placed(inbound, "in", place.at(port)),
            &place.name("access"),
            true,
            "127.0.0.1",
        );
        place.let_go();
        let _running = program.run(&place, &config).await;
        for (number, scheme) in ["http", "https"].into_iter().enumerate() {
            // The name is resolved by curl, so that the proxy is asked for an address.
            let resolve = format!("{NAME}:{}:{}", to.port(), to.ip());
            let (proxy, url) = (
                format!("socks5://{}", place.at(port)),
                format!("{scheme}://{NAME}:{}/", to.port()),
            );
            // The target is no web server; what counts is what it was asked with.
            let _ = Command::new("curl")
                .args(["-sS", "-q", "-k", "--http0.9", "--max-time", "2"])
                .args(["--resolve", &resolve, "--proxy", &proxy, &url])
                .output();
            let got = lines(&place, number + 1).await;
            assert_eq!(
                got[number],
                format!("tcp:{to} [in -> named]"),
                "{}, {scheme}",
                program.name()
            );
        }
    }
}
