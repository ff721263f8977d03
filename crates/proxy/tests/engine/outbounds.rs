//! Where connections go: redirects, rules on the address that is dialled, refusals, the access log, unix sockets.

mod carried;
mod unix;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use sealway_net::blocking::begin;
use sealway_proxy::Server;
use sealway_proxy::settings::*;
use sealway_v2ray::{Address, Network};
use socket2::{Domain, Socket, Type};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use crate::common::*;

/// The settings that a freedom outbound's text stands for.
fn freedom_of(settings: &str) -> Freedom {
    let text = format!(r#"{{"outbounds": [{{"protocol": "freedom", "settings": {settings}}}]}}"#);
    match settings_of(text).outbounds.remove(0).protocol {
        OutboundProtocol::Freedom(freedom) => freedom,
        other => panic!("{other:?}"),
    }
}

/// A door to `target` whose connections go out by `protocol`.
fn through(target: SocketAddr, protocol: OutboundProtocol) -> Settings {
    door_settings(target, outbound(protocol, ClientTransport::default()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_replace_the_host_the_port_or_both() {
    let (real, real_udp) = (target().await, udp_target().await);
    let nowhere: SocketAddr = "127.0.0.9:9".parse().unwrap();
    let at_host = |port| SocketAddr::from(([127, 0, 0, 9], port));
    for (redirect, meant, meant_udp) in [
        (format!("127.0.0.1:{}", real.port()), nowhere, None),
        (format!(":{}", real.port()), SocketAddr::from(([127, 0, 0, 1], 9)), None),
        (
            "127.0.0.1:".into(),
            at_host(real.port()),
            Some(at_host(real_udp.port())),
        ),
        (
            "127.0.0.1:0".into(),
            at_host(real.port()),
            Some(at_host(real_udp.port())),
        ),
    ] {
        let freedom = freedom_of(&format!(r#"{{"redirect": "{redirect}"}}"#));
        let server = start(through(meant, OutboundProtocol::Freedom(freedom.clone()))).await;
        let stream = TcpStream::connect(at(&server, "door")).await.unwrap();
        within(&redirect, exchange(stream, 100, 100)).await;
        let Some(meant) = meant_udp else { continue };
        let server = start(through(meant, OutboundProtocol::Freedom(freedom))).await;
        udp_exchange(&redirect, udp_at(&server, "door")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_whose_first_address_is_dead_is_reached_at_its_second() {
    let real = target().await;
    // A listener whose queue is full answers nobody, as a dead address does.
    let dead = SocketAddr::from(([127, 0, 0, 2], real.port()));
    let full = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    full.bind(&dead.into()).unwrap();
    full.listen(0).unwrap();
    let _fillers: Vec<Socket> = (0..4).map(|_| begin(dead).unwrap()).collect();
    let text = r#"{"dns": {"hosts": {"both.example": ["127.0.0.2", "127.0.0.1"]}},
        "outbounds": [{"protocol": "freedom", "settings": {"finalRules": [{"action": "allow"}]}}]}"#;
    let mut settings = settings_of(text);
    let mut door = door(real);
    if let InboundProtocol::Dokodemo(dokodemo) = &mut door.protocol {
        dokodemo.address = Some(Address::parse("both.example").unwrap());
    }
    settings.inbounds = vec![door];
    let server = start(settings).await;
    let began = std::time::Instant::now();
    let stream = TcpStream::connect(at(&server, "door")).await.unwrap();
    within("the second address", exchange(stream, 100, 100)).await;
    // 250 ms on a calm machine; to wait for the first one takes 16 s.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirected_answer_comes_from_where_the_client_sent_to() {
    let target = udp_target().await;
    let mut settings = server_settings(socks(), ServerTransport::default());
    let redirect = format!(r#"{{"redirect": "{target}"}}"#);
    settings.outbounds[0].protocol = OutboundProtocol::Freedom(freedom_of(&redirect));
    let server = start(settings).await;
    let (_control, relay) = associate(at(&server, "in")).await;
    let own = udp_to(relay).await;
    let asked = "192.0.2.1:53".parse().unwrap();
    own.send(&socks_packet(asked, b"abc")).await.unwrap();
    let mut got = [0; 64];
    let len = within("answer", own.recv(&mut got)).await.unwrap();
    assert_eq!(got[..len], socks_packet(asked, b"cba"));
}

#[test]
fn every_word_of_the_domain_strategy_is_known() {
    use Families::*;
    for (word, families, force) in [
        ("AsIs", Any, false),
        ("UseIP", Any, false),
        ("UseIPv4", V4, false),
        ("UseIPv6", V6, false),
        ("UseIPv4v6", V4V6, false),
        ("UseIPv6v4", V6V4, false),
        ("ForceIP", Any, true),
        ("ForceIPv4", V4, true),
        ("ForceIPv6", V6, true),
        ("ForceIPv4v6", V4V6, true),
        ("forceipv6V4", V6V4, true),
    ] {
        for key in ["domainStrategy", "targetStrategy"] {
            let freedom = freedom_of(&format!(r#"{{"{key}": "{word}"}}"#));
            let ask = word != "AsIs";
            assert_eq!(
                freedom.domain_strategy,
                DomainStrategy { families, force, ask },
                "{word}"
            );
        }
    }
}

/// Waits until the access log has a line that holds `part`.
async fn logged(log: &Path, part: &str) -> String {
    let found = async {
        loop {
            let text = std::fs::read_to_string(log).unwrap_or_default();
            if let Some(line) = text.lines().find(|line| line.contains(part)) {
                return line.to_owned();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(part, found).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_remote_clients_may_not_reach_leads_nowhere() {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("access.log");
    let vless = vless();
    let mut settings = server_settings(vless, ServerTransport::default());
    settings.outbounds[0].protocol = OutboundProtocol::Freedom(Freedom::default());
    settings.access_log = LogTarget::File(log.clone());
    let server = start(settings).await;
    let mapped = [&[3][..], &[0; 10], &[0xff, 0xff, 127, 0, 0, 1]].concat();
    let translated = [&[3, 0, 0x64, 0xff, 0x9b][..], &[0; 8], &[10, 0, 0, 1]].concat();
    let mut held = Vec::new();
    for (said, address) in [
        ("127.0.0.1", vec![1, 127, 0, 0, 1]),
        ("0.0.0.0", vec![1, 0, 0, 0, 0]),
        ("100.64.0.1", vec![1, 100, 64, 0, 1]),
        ("127.0.0.1", mapped),
        ("64:ff9b::", translated),
        ("localhost", [&[2, 9][..], b"localhost"].concat()),
    ] {
        std::fs::write(&log, "").unwrap();
        let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
        stream.write_all(&vless_header(&address, port)).await.unwrap();
        let line = logged(&log, " rejected ").await;
        assert!(line.contains("guard of private addresses"), "{said}: {line}");
        let from = stream.local_addr().unwrap();
        assert!(line.contains(&format!(" from {from} rejected  target ")), "{line}");
        held.push(stream);
    }
    // They are not told: each is left to wait, and may go on sending.
    for mut stream in held {
        stream.write_all(&pattern(1, 100_000)).await.unwrap();
        let error = stream.try_read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    }
    let accepted = tokio::time::timeout(Duration::from_millis(10), listener.accept()).await;
    assert!(accepted.is_err(), "the target was reached");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn final_rules_decide_by_network_port_and_address() {
    let (tcp, udp) = (target().await, udp_target().await);
    let dir = tempfile::tempdir().unwrap();
    let rules = |rules: &str| OutboundProtocol::Freedom(freedom_of(&format!(r#"{{"finalRules": [{rules}]}}"#)));
    for (name, rules, tcp_passes, udp_passes) in [
        ("nothing", rules(""), true, true),
        (
            "network",
            rules(r#"{"action": "block", "network": "udp"}"#),
            true,
            false,
        ),
        (
            "port",
            rules(&format!(r#"{{"action": "block", "port": {}}}"#, tcp.port())),
            false,
            tcp.port() != udp.port(),
        ),
        (
            "address",
            rules(r#"{"action": "block", "ip": ["127.0.0.0/8"]}"#),
            false,
            false,
        ),
        (
            "another address",
            rules(r#"{"action": "block", "ip": ["192.0.2.0/24"]}"#),
            true,
            true,
        ),
        (
            "the first that fits",
            rules(r#"{"action": "allow", "network": "tcp", "ip": "127.0.0.1"}, {"action": "block"}"#),
            true,
            false,
        ),
    ] {
        let log = dir.path().join(name);
        let mut settings = through(tcp, rules.clone());
        settings.access_log = LogTarget::File(log.clone());
        let server = start(settings).await;
        let stream = TcpStream::connect(at(&server, "door")).await.unwrap();
        if tcp_passes {
            within(name, exchange(stream, 10, 10)).await;
        } else {
            let line = logged(&log, " rejected ").await;
            assert!(
                line.ends_with(&format!("target {tcp} refused by a finalRules entry")),
                "{line}"
            );
        }
        let server = start(through(udp, rules)).await;
        let door = udp_at(&server, "door");
        if udp_passes {
            udp_exchange(name, door).await;
        } else {
            let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
            socket.send_to(b"abc", door).await.unwrap();
            let answer = tokio::time::timeout(Duration::from_millis(200), socket.recv(&mut [0; 8])).await;
            assert!(answer.is_err(), "{name}: a blocked datagram was answered");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_blackhole_says_nothing_or_exactly_one_thing() {
    let forbidden = "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nCache-Control: max-age=3600, public\r\nContent-Length: 0\r\n\r\n";
    for (http, says) in [(false, ""), (true, forbidden)] {
        let hole = OutboundProtocol::Blackhole { http };
        let server = start(through("192.0.2.1:80".parse().unwrap(), hole)).await;
        let mut stream = TcpStream::connect(at(&server, "door")).await.unwrap();
        // What the client has sent and nobody reads must not turn the end into a reset that swallows the answer.
        stream.write_all(&pattern(1, 50_000)).await.unwrap();
        // A reset behind the end shows only to who does not look at once.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let mut said = String::new();
        within("answer", stream.read_to_string(&mut said)).await.unwrap();
        assert_eq!(said, says);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_access_log_says_who_went_where_and_why() {
    let target = target().await;
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("access.log");
    let mut settings = server_settings(vless(), ServerTransport::default());
    settings.inbounds.push(door(target));
    settings.outbounds.push(Outbound {
        tag: "byRule".into(),
        ..freedom()
    });
    settings.rules = vec![Rule {
        inbound_tags: vec!["door".into()],
        networks: vec![Network::Tcp],
        outbound_tag: "byRule".into(),
        ..Rule::default()
    }];
    settings.access_log = LogTarget::File(log.clone());
    let server = start(settings).await;
    let ends = |line: &str, from: SocketAddr, rest: &str| {
        let (time, rest_of_line) = line.split_at("2026/01/02 03:04:05.123456".len());
        let form: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        assert_eq!(form, "0000/00/00 00:00:00.000000");
        assert_eq!(rest_of_line, format!(" from {from} {rest}"));
    };
    let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
    stream.write_all(&vless_request(target)).await.unwrap();
    let rest = format!("accepted tcp:{target} [in >> direct] email: user@example");
    ends(&logged(&log, "[in >>").await, stream.local_addr().unwrap(), &rest);
    let stream = TcpStream::connect(at(&server, "door")).await.unwrap();
    let rest = format!("accepted tcp:{target} [door -> byRule]");
    ends(&logged(&log, "[door ->").await, stream.local_addr().unwrap(), &rest);
    let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
    stream.write_all(&[0; 64]).await.unwrap();
    let rest = "rejected  peer not authenticated: VLESS: no such user";
    ends(&logged(&log, "rejected").await, stream.local_addr().unwrap(), rest);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_are_counted_while_the_connection_is_open() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = start(counting_settings()).await;
    let mut near = TcpStream::connect(at(&server, "in")).await.unwrap();
    let request = vless_request(listener.local_addr().unwrap());
    near.write_all(&request).await.unwrap();
    let (mut far, _) = within("accept", listener.accept()).await.unwrap();
    let (count, headers) = (4 << 20, (1 + 16 + 1 + 1 + 2 + 1 + 4, 2));
    // Large enough for the kernel to move them.
    let (sent, mut got) = (pattern(1, count), vec![0; count]);
    let (a, b) = within("up", async {
        tokio::join!(near.write_all(&sent), far.read_exact(&mut got))
    })
    .await;
    a.and(b.map(drop)).unwrap();
    let mut got = vec![0; count + headers.1];
    let (a, b) = within("down", async {
        tokio::join!(far.write_all(&sent), near.read_exact(&mut got))
    })
    .await;
    a.and(b.map(drop)).unwrap();
    let count = count as u64;
    for (name, up, down) in [
        ("user>>>user@example", count, count),
        ("outbound>>>direct", count, count),
        ("inbound>>>in", count + headers.0, count + headers.1 as u64),
    ] {
        for (way, bytes) in [("uplink", up), ("downlink", down)] {
            let counter = server.stats().get(&format!("{name}>>>traffic>>>{way}")).unwrap();
            let counted = async {
                while counter.get() != bytes {
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
            };
            within(&format!("{name} {way}"), counted).await;
        }
    }
    drop((near, far));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_the_server_waits_for_connections() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let settings = through(listener.local_addr().unwrap(), freedom().protocol);
    let server = start(settings).await;
    let door = at(&server, "door");
    let mut near = TcpStream::connect(door).await.unwrap();
    let (mut far, _) = within("accept", listener.accept()).await.unwrap();
    let ending = tokio::spawn(server.shutdown(Duration::from_secs(30)));
    let closed = async {
        while TcpStream::connect(door).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    within("end of accepting", closed).await;
    near.write_all(b"late").await.unwrap();
    near.shutdown().await.unwrap();
    let mut got = String::new();
    within("upload", far.read_to_string(&mut got)).await.unwrap();
    far.write_all(b"answer").await.unwrap();
    drop(far);
    let mut said = String::new();
    within("download", near.read_to_string(&mut said)).await.unwrap();
    assert_eq!((got.as_str(), said.as_str()), ("late", "answer"));
    assert!(within("shutdown", ending).await.unwrap(), "a connection was cut off");
}

#[test]
fn an_address_type_is_not_needed_to_redirect() {
    let freedom = freedom_of(r#"{"redirect": "example.com:8443"}"#);
    assert_eq!(
        (freedom.redirect_host, freedom.redirect_port),
        (Some(Address::parse("example.com").unwrap()), Some(8443))
    );
}
