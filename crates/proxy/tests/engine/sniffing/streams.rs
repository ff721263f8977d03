use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::{ASKED, NAME, config, door, hello, start, targets, who};
use crate::common::{self, at, within};

/// Sends `first` and says which target it came to, which must have got exactly that.
async fn goes_to(config: &Value, first: &[u8]) -> String {
    let server = start(config).await;
    let mut client = TcpStream::connect(at(&server, "in")).await.unwrap();
    client.write_all(first).await.unwrap();
    comes_whole(&mut client, first).await
}

async fn comes_whole(client: &mut TcpStream, sent: &[u8]) -> String {
    let name = who(client).await;
    let mut back = vec![0; sent.len()];
    within("what was sent", client.read_exact(&mut back)).await.unwrap();
    assert!(back == sent, "garbled");
    name
}

fn sniffing(words: &[&str]) -> Value {
    json!({"enabled": true, "destOverride": words})
}

#[tokio::test]
async fn names_replace_targets_as_the_settings_say() {
    let port = targets().await;
    let (tls, http) = (hello::tls("Named.Example", 1), hello::http(&format!("{NAME}:8080")));
    let with = |key: &str, value: Value| {
        let mut all = sniffing(&["http", "tls"]);
        all[key] = value;
        all
    };
    for (settings, first, target) in [
        (sniffing(&["http", "tls"]), &tls, "named"),
        (sniffing(&["http", "tls"]), &http, "named"),
        (sniffing(&["tls"]), &tls, "named"),
        (sniffing(&["tls"]), &http, "asked"),
        (sniffing(&["http", "quic", "fakedns"]), &tls, "asked"),
        (sniffing(&[]), &tls, "asked"),
        (json!({"enabled": false, "destOverride": ["tls"]}), &tls, "asked"),
        (with("routeOnly", json!(true)), &tls, "asked"),
        (with("metadataOnly", json!(true)), &tls, "asked"),
        (with("domainsExcluded", json!(["med.exa"])), &tls, "asked"),
        (with("domainsExcluded", json!(["full:other.example"])), &tls, "named"),
        (with("ipsExcluded", json!(["127.0.0.0/31"])), &http, "asked"),
        (with("ipsExcluded", json!(["192.0.2.0/24"])), &http, "named"),
        // Hosts that are addresses replace nothing.
        (sniffing(&["http", "tls"]), &hello::http("127.0.0.2"), "asked"),
        (sniffing(&["http", "tls"]), &hello::http("[::1]:80"), "asked"),
    ] {
        let config = config(door(port, settings.clone()), port, json!([]));
        assert_eq!(goes_to(&config, first).await, target, "{settings}");
    }
}

#[tokio::test]
async fn rules_see_what_was_found_whatever_is_dialled() {
    let port = targets().await;
    let (tls, http) = (hello::tls(NAME, 1), hello::http(NAME));
    let torrent = b"\x13BitTorrent protocol\0\0\0\0\0\0\0\0".to_vec();
    let route_only = json!({"enabled": true, "destOverride": ["http", "tls"], "routeOnly": true});
    let nothing = json!({"enabled": true, "destOverride": []});
    for (settings, rule, first, target) in [
        (&route_only, json!({"domain": ["domain:example"]}), &tls, "ruled"),
        (&route_only, json!({"domain": ["full:other.example"]}), &tls, "asked"),
        // The address that is dialled is known to the rules too.
        (
            &route_only,
            json!({"domain": [NAME], "ip": [ASKED.to_string()]}),
            &tls,
            "ruled",
        ),
        (
            &route_only,
            json!({"domain": [NAME], "ip": ["127.0.0.2"]}),
            &tls,
            "asked",
        ),
        // What it carries is known without a name that counts.
        (&nothing, json!({"domain": [NAME]}), &tls, "asked"),
        (&nothing, json!({"protocol": ["tls"]}), &tls, "ruled"),
        (&nothing, json!({"protocol": ["tls"]}), &http, "asked"),
        (&nothing, json!({"protocol": ["http"]}), &http, "ruled"),
        (&nothing, json!({"protocol": ["bittorrent"]}), &torrent, "ruled"),
        (&nothing, json!({"protocol": ["http"]}), &torrent, "asked"),
        (
            &nothing,
            json!({"attrs": {":method": "GET", "user-agent": "^te"}}),
            &http,
            "ruled",
        ),
        (&nothing, json!({"attrs": {":path": "^/other"}}), &http, "asked"),
        (
            &json!({"enabled": true, "metadataOnly": true}),
            json!({"protocol": ["tls"]}),
            &tls,
            "asked",
        ),
    ] {
        let mut rule = rule;
        rule["outboundTag"] = json!("ruled");
        let config = config(door(port, settings.clone()), port, json!([rule]));
        assert_eq!(goes_to(&config, first).await, target, "{rule} {settings}");
    }
}

#[tokio::test]
async fn requests_of_the_http_inbound_have_attributes() {
    let port = targets().await;
    let rules = json!([{"protocol": ["http"], "attrs": {":path": "^/rule", "x-a": "b"}, "outboundTag": "ruled"}]);
    let inbound = json!({"tag": "in", "listen": "127.0.0.1", "port": 0, "protocol": "http"});
    let mut config = config(inbound, port, rules);
    config["outbounds"][1] =
        json!({"tag": "ruled", "protocol": "blackhole", "settings": {"response": {"type": "http"}}});
    let server = start(&config).await;
    for (path, header, ruled) in [
        ("/rule", "X-A: b", true),
        ("/rule", "X-A: c", false),
        ("/other", "X-A: b", false),
    ] {
        let mut client = TcpStream::connect(at(&server, "in")).await.unwrap();
        let host = format!("127.0.0.1:{port}");
        let request =
            format!("GET http://{host}{path} HTTP/1.1\r\nHost: {host}\r\n{header}\r\nConnection: close\r\n\r\n");
        client.write_all(request.as_bytes()).await.unwrap();
        // What the target says is no response, of which the client is told.
        let mut answer = [0; 12];
        within("an answer", client.read_exact(&mut answer)).await.unwrap();
        assert_eq!(
            answer.ends_with(b" 403"),
            ruled,
            "{path} {header}: {}",
            answer.escape_ascii()
        );
    }
}

#[tokio::test]
async fn a_hello_comes_in_any_records_and_segments() {
    let port = targets().await;
    let config = config(door(port, sniffing(&["tls"])), port, json!([]));
    for records in [1, 2, 5] {
        assert_eq!(
            goes_to(&config, &hello::tls(NAME, records)).await,
            "named",
            "{records} records"
        );
    }
    let server = start(&config).await;
    let hello = hello::tls(NAME, 5);
    let mut client = TcpStream::connect(at(&server, "in")).await.unwrap();
    client.set_nodelay(true).unwrap();
    for piece in hello.chunks(hello.len() / 6) {
        client.write_all(piece).await.unwrap();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(comes_whole(&mut client, &hello).await, "named");
}

#[tokio::test]
async fn a_head_that_does_not_end_counts_as_far_as_it_goes() {
    let port = targets().await;
    let config = config(door(port, sniffing(&["http"])), port, json!([]));
    let begun = format!("GET / HTTP/1.1\r\nHost: {NAME}\r\nCookie: x");
    assert_eq!(goes_to(&config, begun.as_bytes()).await, "named");
}

#[tokio::test]
async fn a_target_that_speaks_first_waits_200_ms_and_where_it_is_known_to_not_at_all() {
    let port = targets().await;
    let took = async |settings: Value| {
        let server = start(&config(door(port, settings), port, json!([]))).await;
        let since = Instant::now();
        let mut client = TcpStream::connect(at(&server, "in")).await.unwrap();
        assert_eq!(who(&mut client).await, "asked");
        since.elapsed()
    };
    let waits = took(sniffing(&["tls"])).await;
    assert!(waits >= Duration::from_millis(200), "{waits:?}");
    let mut known = sniffing(&["tls"]);
    known["serverFirstPorts"] = json!(format!("1-2,{port}"));
    // On a busy machine the quickest of some counts.
    let mut quickest = Duration::MAX;
    for _ in 0..5 {
        quickest = quickest.min(took(known.clone()).await);
    }
    assert!(quickest < Duration::from_millis(150), "{quickest:?}");
}

#[tokio::test]
async fn ends_are_those_of_connections_that_nobody_looks_at() {
    let port = targets().await;
    let server = start(&config(door(port, sniffing(&["http", "tls"])), port, json!([]))).await;
    // Half a hello, then the end: it goes where it was meant to, at once.
    let half = &hello::tls(NAME, 1)[..200];
    let mut client = TcpStream::connect(at(&server, "in")).await.unwrap();
    client.write_all(half).await.unwrap();
    client.shutdown().await.unwrap();
    let mut all = Vec::new();
    within("the end", client.read_to_end(&mut all)).await.unwrap();
    assert_eq!(all, [b"asked", half].concat());
    // A whole request, then the end of it, and an answer longer than any buffer.
    let request = [&hello::http(NAME)[..], &vec![b'x'; 3 << 20]].concat();
    let client = TcpStream::connect(at(&server, "in")).await.unwrap();
    let (mut read, mut write) = client.into_split();
    let sent = request.clone();
    let sending = tokio::spawn(async move {
        write.write_all(&sent).await.unwrap();
        write.shutdown().await.unwrap();
    });
    let mut all = Vec::new();
    within("the end", read.read_to_end(&mut all)).await.unwrap();
    sending.await.unwrap();
    assert!(all == [b"named", &request[..]].concat());
}

#[tokio::test]
async fn who_leaves_before_saying_anything_reaches_nobody() {
    let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = target.local_addr().unwrap().port();
    let server = start(&config(door(port, sniffing(&["http", "tls"])), port, json!([]))).await;
    let client = TcpStream::connect(at(&server, "in")).await.unwrap();
    client.set_zero_linger().unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    drop(client);
    let reached = tokio::time::timeout(Duration::from_millis(500), target.accept()).await;
    assert!(reached.is_err());
}

#[tokio::test]
async fn streams_of_every_protocol_are_looked_at_also_within_a_mux() {
    let port = targets().await;
    for (what, inbound, outbound, mux) in super::datagrams::chains() {
        let mut inbound = inbound;
        inbound["sniffing"] = sniffing(&["tls"]);
        let far = start(&config(inbound, port, json!([]))).await;
        let near = start(&json!({
            "inbounds": [door(port, json!({}))],
            "outbounds": [outbound(at(&far, "in").port(), mux)],
        }))
        .await;
        let mut client = TcpStream::connect(at(&near, "in")).await.unwrap();
        let first = hello::tls(NAME, 2);
        client.write_all(&first).await.unwrap();
        assert_eq!(comes_whole(&mut client, &first).await, "named", "{what}");
    }
}

/// Transports and TLS put records of their own around what is looked at.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_of_every_transport_are_looked_at() {
    let port = targets().await;
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = common::certificate(&["near.example"]);
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (certificate, key) = (path("c.pem", &certificate), path("k.pem", &key));
    let server_tls = json!({"certificates": [{"certificateFile": certificate, "keyFile": key}]});
    let trusted = json!([{"usage": "verify", "certificateFile": certificate}]);
    let client_tls = json!({"serverName": "near.example", "certificates": trusted, "disableSystemRoot": true});
    let long = format!("GET / HTTP/1.1\r\nCookie: {}\r\nHost: {NAME}\r\n\r\n", "x".repeat(7900));
    let (mut chains, mut firsts) = (super::datagrams::chains(), Vec::new());
    let (_, inbound, outbound, _) = chains.swap_remove(0);
    firsts.push(hello::tls(NAME, 200));
    firsts.push(long.into_bytes());
    for (network, key, settings) in [
        ("raw", "rawSettings", json!({})),
        ("ws", "wsSettings", json!({"path": "/p"})),
        ("ws", "wsSettings", json!({"path": "/p?ed=2048"})),
        ("httpupgrade", "httpupgradeSettings", json!({"path": "/p"})),
        ("grpc", "grpcSettings", json!({"serviceName": "s"})),
        ("xhttp", "xhttpSettings", json!({"path": "/p", "mode": "packet-up"})),
        ("xhttp", "xhttpSettings", json!({"path": "/p", "mode": "stream-one"})),
    ] {
        for secure in [false, true] {
            let stream = |tls: &Value| {
                let mut stream = json!({"network": network, key: settings});
                if secure {
                    (stream["security"], stream["tlsSettings"]) = (json!("tls"), tls.clone());
                }
                stream
            };
            let mut inbound = inbound.clone();
            inbound["sniffing"] = sniffing(&["http", "tls"]);
            inbound["streamSettings"] = stream(&server_tls);
            let far = start(&config(inbound, port, json!([]))).await;
            let mut outbound = outbound(at(&far, "in").port(), false);
            outbound["streamSettings"] = stream(&client_tls);
            let near = start(&json!({"inbounds": [door(port, json!({}))], "outbounds": [outbound]})).await;
            for first in &firsts {
                let mut client = TcpStream::connect(at(&near, "in")).await.unwrap();
                client.write_all(first).await.unwrap();
                let came = comes_whole(&mut client, first).await;
                assert_eq!(came, "named", "{network} {settings} {secure}");
            }
            // Half of it, then the end.
            let half = &firsts[0][..200];
            let mut client = TcpStream::connect(at(&near, "in")).await.unwrap();
            client.write_all(half).await.unwrap();
            client.shutdown().await.unwrap();
            let mut all = Vec::new();
            within("the end", client.read_to_end(&mut all)).await.unwrap();
            assert_eq!(all, [b"asked", half].concat(), "{network} {settings} {secure}");
        }
    }
}

/// What has come is carried where it was meant to go, as if nobody had looked.
#[tokio::test]
async fn what_came_before_a_reset_is_carried() {
    let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = target.local_addr().unwrap().port();
    let server = start(&config(door(port, sniffing(&["tls"])), port, json!([]))).await;
    let half = &hello::tls(NAME, 1)[..200];
    let mut client = TcpStream::connect(at(&server, "in")).await.unwrap();
    client.set_zero_linger().unwrap();
    client.write_all(half).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    drop(client);
    let (mut far, _) = within("the target", target.accept()).await.unwrap();
    let mut got = vec![0; half.len()];
    within("what came", far.read_exact(&mut got)).await.unwrap();
    assert_eq!(got, half);
}
