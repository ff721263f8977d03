use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rustls::quic::Version;
use sealway_proxy::Server;
use serde_json::{Value, json};
use tokio::net::{TcpStream, UdpSocket};

use super::{ASKED, NAME, NAMED, config, door, hello, start, targets};
use crate::common::{ID, PASSWORD, associate, at, socks_packet, udp_to, within};

type Out = fn(u16, bool) -> Value;

/// Protocols that carry both: an inbound, and an outbound to a port, with a mux or without.
pub(crate) fn chains() -> Vec<(&'static str, Value, Out, bool)> {
    let inbound = |protocol: &str, settings: Value| json!({"tag": "in", "listen": "127.0.0.1", "port": 0, "protocol": protocol, "settings": settings});
    fn with_mux(mut outbound: Value, mux: bool) -> Value {
        if mux {
            outbound["mux"] = json!({"enabled": true});
        }
        outbound
    }
    let vless: Out = |port, mux| {
        let user = json!({"id": ID, "encryption": "none"});
        let settings = json!({"vnext": [{"address": "127.0.0.1", "port": port, "users": [user]}]});
        with_mux(json!({"protocol": "vless", "settings": settings}), mux)
    };
    let vmess: Out = |port, mux| {
        let settings = json!({"vnext": [{"address": "127.0.0.1", "port": port, "users": [{"id": ID}]}]});
        with_mux(json!({"protocol": "vmess", "settings": settings}), mux)
    };
    let trojan: Out = |port, mux| {
        let settings = json!({"servers": [{"address": "127.0.0.1", "port": port, "password": PASSWORD}]});
        with_mux(json!({"protocol": "trojan", "settings": settings}), mux)
    };
    let shadowsocks: Out = |port, mux| {
        let server = json!({"address": "127.0.0.1", "port": port, "method": "aes-128-gcm", "password": PASSWORD});
        with_mux(
            json!({"protocol": "shadowsocks", "settings": {"servers": [server]}}),
            mux,
        )
    };
    let vless_in = || inbound("vless", json!({"clients": [{"id": ID}], "decryption": "none"}));
    let shadowsocks_in = json!({"method": "aes-128-gcm", "password": PASSWORD, "network": "tcp,udp"});
    vec![
        ("vless", vless_in(), vless, false),
        ("vless in a mux", vless_in(), vless, true),
        (
            "vmess",
            inbound("vmess", json!({"clients": [{"id": ID}]})),
            vmess,
            false,
        ),
        (
            "trojan",
            inbound("trojan", json!({"clients": [{"password": PASSWORD}]})),
            trojan,
            false,
        ),
        (
            "trojan in a mux",
            inbound("trojan", json!({"clients": [{"password": PASSWORD}]})),
            trojan,
            true,
        ),
        (
            "shadowsocks",
            inbound("shadowsocks", shadowsocks_in),
            shadowsocks,
            false,
        ),
    ]
}

fn sniffing(more: Value) -> Value {
    let mut all = json!({"enabled": true, "destOverride": ["http", "tls", "quic"]});
    for (key, value) in more.as_object().unwrap() {
        all[key] = value.clone();
    }
    all
}

/// A client of a SOCKS inbound.
pub(crate) struct Client {
    _control: TcpStream,
    socket: UdpSocket,
}

impl Client {
    pub(crate) async fn new(server: &Server) -> Client {
        let (control, relay) = associate(at(server, "socks")).await;
        let socket = udp_to(relay).await;
        Client {
            _control: control,
            socket,
        }
    }

    pub(crate) async fn send(&self, to: SocketAddr, bytes: &[u8]) {
        self.socket.send(&socks_packet(to, bytes)).await.unwrap();
    }

    /// The next answer: whom it is from, what that is, and what it repeats.
    pub(crate) async fn receive(&self) -> (SocketAddr, String, Vec<u8>) {
        let mut buffer = vec![0; 65_536];
        let len = within("an answer", self.socket.recv(&mut buffer)).await.unwrap();
        assert_eq!(buffer[..4], [0, 0, 0, 1], "an address of IPv4");
        let ip = <[u8; 4]>::try_from(&buffer[4..8]).unwrap();
        let from = SocketAddr::from((ip, u16::from_be_bytes([buffer[8], buffer[9]])));
        (
            from,
            String::from_utf8(buffer[10..15].to_vec()).unwrap(),
            buffer[15..len].to_vec(),
        )
    }
}

pub(crate) fn socks(sniffing: Value) -> Value {
    json!({"tag": "socks", "listen": "127.0.0.1", "port": 0, "protocol": "socks", "settings": {"udp": true}, "sniffing": sniffing})
}

/// Sends the first datagrams of QUIC and a few more: all come to one target in order, and its answers come from where the
/// client sent to. Says which target it was.
async fn quic_goes_to(server: &Server, port: u16, first: &[Vec<u8>]) -> String {
    let client = Client::new(server).await;
    let to = SocketAddr::new(ASKED, port);
    let more = [b"short header".to_vec(), vec![7; 1200]];
    let mut names = Vec::new();
    for datagram in first {
        client.send(to, datagram).await;
    }
    for datagram in first {
        let (from, name, repeated) = client.receive().await;
        assert!(from == to && repeated == *datagram, "{from} {name}");
        names.push(name);
    }
    for datagram in &more {
        client.send(to, datagram).await;
        let (from, name, repeated) = client.receive().await;
        assert!(from == to && repeated == *datagram, "{from} {name}");
        names.push(name);
    }
    names.dedup();
    assert_eq!(names.len(), 1, "{names:?}");
    names.remove(0)
}

#[tokio::test]
async fn quic_is_read_over_several_datagrams_of_every_version() {
    let port = targets().await;
    let server = start(&config(socks(sniffing(json!({}))), port, json!([]))).await;
    for version in [Version::V1, Version::V1Draft, Version::V2] {
        for count in 1..=3 {
            let first = hello::quic(NAME, version, count);
            assert_eq!(
                quic_goes_to(&server, port, &first).await,
                "named",
                "{version:?}, {count}"
            );
        }
    }
}

#[tokio::test]
async fn settings_and_rules_count_for_datagrams() {
    let port = targets().await;
    let first = hello::quic(NAME, Version::V1, 2);
    let dht = b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe".to_vec();
    let mut utp = vec![0; 20];
    utp[0] = 0x41;
    for (settings, rule, first, target) in [
        (json!({"routeOnly": true}), json!(null), &first, "asked"),
        (json!({"routeOnly": true}), json!({"domain": [NAME]}), &first, "ruled"),
        (
            json!({"routeOnly": true}),
            json!({"domain": [NAME], "ip": [ASKED.to_string()]}),
            &first,
            "ruled",
        ),
        (json!({"destOverride": ["tls"]}), json!(null), &first, "asked"),
        (
            json!({"destOverride": []}),
            json!({"protocol": ["quic"]}),
            &first,
            "ruled",
        ),
        (json!({"domainsExcluded": ["named"]}), json!(null), &first, "asked"),
        (json!({"ipsExcluded": ["127.0.0.1"]}), json!(null), &first, "asked"),
        (
            json!({"metadataOnly": true}),
            json!({"protocol": ["quic"]}),
            &first,
            "asked",
        ),
        (json!({}), json!({"protocol": ["bittorrent"]}), &vec![dht], "ruled"),
        (json!({}), json!({"protocol": ["bittorrent"]}), &vec![utp], "ruled"),
        (json!({}), json!({"protocol": ["bittorrent"]}), &first, "named"),
    ] {
        let mut rules = json!([]);
        if !rule.is_null() {
            let mut rule = rule;
            rule["outboundTag"] = json!("ruled");
            rules = json!([rule]);
        }
        let server = start(&config(socks(sniffing(settings.clone())), port, rules.clone())).await;
        assert_eq!(quic_goes_to(&server, port, first).await, target, "{settings} {rules}");
    }
}

#[tokio::test]
async fn datagrams_of_every_protocol_are_looked_at_also_within_a_mux() {
    let port = targets().await;
    let first = hello::quic(NAME, Version::V1, 3);
    for (what, inbound, outbound, mux) in chains() {
        let mut inbound = inbound;
        inbound["sniffing"] = sniffing(json!({}));
        let far = start(&config(inbound, port, json!([]))).await;
        let near = start(&json!({
            "inbounds": [socks(json!({}))],
            "outbounds": [outbound(at(&far, "in").port(), mux)],
        }))
        .await;
        assert_eq!(quic_goes_to(&near, port, &first).await, "named", "{what}");
    }
}

/// Sockets on as many ports, which say to which port they answer and repeat what they hear.
async fn many_targets(count: usize) -> Vec<SocketAddr> {
    let mut all = Vec::new();
    for _ in 0..count {
        let socket = UdpSocket::bind((ASKED, 0)).await.unwrap();
        all.push(socket.local_addr().unwrap());
        tokio::spawn(async move {
            let mut buffer = vec![0; 2048];
            while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
                let answer = [format!("{:05}", from.port()).as_bytes(), &buffer[..len]].concat();
                let _ = socket.send_to(&answer, from).await;
            }
        });
    }
    all
}

/// A server that looks at what comes to its SOCKS inbound itself, and one that looks at what a Trojan client brings.
async fn that_look(sniffing: Value) -> Vec<(Server, Option<Server>)> {
    let alone = start(&config(socks(sniffing.clone()), 1, json!([]))).await;
    let (_, mut inbound, outbound, _) = chains().into_iter().find(|(what, ..)| *what == "trojan").unwrap();
    inbound["sniffing"] = sniffing;
    let far = start(&config(inbound, 1, json!([]))).await;
    let port = at(&far, "in").port();
    let near = json!({"inbounds": [socks(json!({}))], "outbounds": [outbound(port, false)]});
    vec![(alone, None), (start(&near).await, Some(far))]
}

#[tokio::test]
async fn targets_that_keep_their_address_share_one_flow() {
    let targets = many_targets(300).await;
    let first = hello::quic(NAME, Version::V1, 1);
    for (server, _far) in that_look(sniffing(json!({"routeOnly": true}))).await {
        let client = Client::new(&server).await;
        let mut ports = Vec::new();
        for to in &targets {
            client.send(*to, &first[0]).await;
            let (from, port, repeated) = client.receive().await;
            assert!(from == *to && repeated == first[0]);
            ports.push(port);
        }
        ports.dedup();
        assert_eq!(ports.len(), 1);
    }
}

#[tokio::test]
async fn only_what_was_dialled_answers_for_the_target() {
    let named = UdpSocket::bind((NAMED, 0)).await.unwrap();
    let port = named.local_addr().unwrap().port();
    let stranger = UdpSocket::bind(("127.0.0.9", port)).await.unwrap();
    let server = start(&config(socks(sniffing(json!({}))), port, json!([]))).await;
    let client = Client::new(&server).await;
    let asked = SocketAddr::new(ASKED, port);
    client.send(asked, &hello::quic(NAME, Version::V1, 1)[0]).await;
    let mut buffer = [0; 2048];
    let (_, from) = within("the hello", named.recv_from(&mut buffer)).await.unwrap();
    stranger.send_to(b"liars", from).await.unwrap();
    let (peer, said, _) = client.receive().await;
    assert_eq!((peer, &said[..]), (stranger.local_addr().unwrap(), "liars"));
    named.send_to(b"named", from).await.unwrap();
    let (peer, said, _) = client.receive().await;
    assert_eq!((peer, &said[..]), (asked, "named"));
}

#[tokio::test]
async fn without_a_place_of_its_own_a_flow_goes_where_the_client_says() {
    let targets = many_targets(300).await;
    let first = hello::quic(NAME, Version::V1, 1);
    for (server, _far) in that_look(sniffing(json!({}))).await {
        let client = Client::new(&server).await;
        let (renamed, more) = targets.split_at(224);
        for to in renamed {
            // Nobody answers where the name leads to.
            client.send(*to, &first[0]).await;
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        for to in more {
            client.send(*to, &first[0]).await;
            let (from, _, repeated) = client.receive().await;
            assert!(from == *to && repeated == first[0]);
        }
    }
}

#[tokio::test]
async fn a_door_is_looked_at_too() {
    let port = targets().await;
    let server = start(&config(door(port, sniffing(json!({}))), port, json!([]))).await;
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    client.connect(at(&server, "in")).await.unwrap();
    for datagram in &hello::quic(NAME, Version::V1, 2) {
        client.send(datagram).await.unwrap();
    }
    let mut buffer = vec![0; 2000];
    for _ in 0..2 {
        let len = within("an answer", client.recv(&mut buffer)).await.unwrap();
        assert!(len == 1205 && buffer.starts_with(b"named"));
    }
}

#[tokio::test]
async fn a_hello_that_does_not_end_waits_200_ms_and_other_datagrams_not_at_all() {
    let port = targets().await;
    let server = start(&config(socks(sniffing(json!({}))), port, json!([]))).await;
    let to = SocketAddr::new(ASKED, port);
    let first = hello::quic(NAME, Version::V1, 3);
    let client = Client::new(&server).await;
    let since = Instant::now();
    client.send(to, &first[0]).await;
    client.send(to, &first[1]).await;
    for datagram in &first[..2] {
        let (from, name, repeated) = client.receive().await;
        assert!(from == to && name == "asked" && repeated == *datagram);
    }
    let waited = since.elapsed();
    assert!(waited >= Duration::from_millis(190), "{waited:?}");
    let mut quickest = Duration::MAX;
    for _ in 0..5 {
        let client = Client::new(&server).await;
        let since = Instant::now();
        client.send(to, b"a question").await;
        assert_eq!(client.receive().await.1, "asked");
        quickest = quickest.min(since.elapsed());
    }
    assert!(quickest < Duration::from_millis(150), "{quickest:?}");
}
