//! XHTTP with Xray in both roles, and behind nginx. V2Ray 4.34 has no such transport.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::common::{counting_target, target, udp_target, within};
use crate::matrix::stream;
use crate::nginx;
use crate::programs::{Endpoint, OURS, Place, Program, XRAY_IN, XRAY_OUT, there};
use crate::ways::{Files, PROTOCOLS, Pair, VLESS, Way, config, door, freedom, placed};

fn way(tls: bool, settings: [Value; 2]) -> Way {
    let mut way = Way::new(VLESS, "xhttp", tls);
    way.extra = settings;
    way
}

/// A mode that the client names and the server is told or is not.
fn mode(name: &str, tls: bool, told: bool) -> Way {
    let server = if told { json!({"mode": name}) } else { json!({}) };
    way(tls, [server, json!({"mode": name})])
}

const MODES: [&str; 3] = ["stream-one", "stream-up", "packet-up"];

/// Places other than the usual ones, as both programs name them.
fn places() -> Vec<Value> {
    vec![
        json!({
            "mode": "packet-up", "xPaddingObfsMode": true, "uplinkDataPlacement": "header",
            "scMaxEachPostBytes": 2000, "scMinPostsIntervalMs": 5,
            "sessionPlacement": "header", "seqPlacement": "query",
        }),
        json!({
            "mode": "packet-up", "xPaddingObfsMode": true, "xPaddingMethod": "tokenish", "xPaddingPlacement": "cookie",
            "uplinkDataPlacement": "cookie", "scMaxEachPostBytes": 2000, "scMinPostsIntervalMs": 5,
            "xPaddingBytes": "100-200", "sessionPlacement": "cookie", "seqPlacement": "header", "uplinkHTTPMethod": "GET",
        }),
        json!({
            "mode": "stream-up", "xPaddingObfsMode": true, "xPaddingPlacement": "query", "xPaddingKey": "v",
            "sessionPlacement": "query", "sessionKey": "sid", "uplinkHTTPMethod": "PUT",
        }),
        json!({
            "mode": "packet-up",
            "extra": {
                "xPaddingBytes": "10-20", "noSSEHeader": true, "scMaxEachPostBytes": "50000-100000",
                "xmux": {"maxConcurrency": "2-4", "cMaxReuseTimes": 5, "hMaxRequestTimes": "20-30", "hMaxReusableSecs": 60},
            },
        }),
    ]
}

/// Every mode in both versions of HTTP, both ways at once, 200 streams at a time, 100 MiB each way.
async fn carries(programs: [Program; 2]) {
    if !there(programs) {
        return;
    }
    let mut ways = Vec::new();
    for tls in [true, false] {
        for name in MODES {
            ways.extend([mode(name, tls, true), mode(name, tls, false)]);
        }
    }
    let usual = ways.len();
    for settings in places() {
        for tls in [true, false] {
            ways.push(way(tls, [settings.clone(), settings.clone()]));
        }
    }
    ways.push(way(true, [json!({}), json!({})]));
    let mut vmess = Way::new(PROTOCOLS[1], "xhttp", true);
    vmess.extra[1] = json!({"mode": "stream-one"});
    ways.push(vmess);
    let pair = Pair::start(programs, &ways, (target().await, udp_target().await)).await;
    for (number, (door, _)) in pair.doors.iter().enumerate() {
        let name = format!("{programs:?}, {}, {:?}", ways[number].name(), ways[number].extra[1]);
        let large = if number < usual { 1 << 20 } else { 100_000 };
        for sizes in [(1, 1), (65536, 65536), (0, 65536), (large, 1 << 20)] {
            let tries = if ways[number].protocol == "vmess" { 5 } else { 1 };
            let done = within(&name, stream(*door, sizes, tries)).await;
            assert_eq!(done, Ok(()), "{name}, {sizes:?}");
        }
    }
    let mut many = JoinSet::new();
    for number in 0..200 {
        // Half of them by numbered requests over the same few connections.
        let at = if number % 2 == 0 { 4 } else { number % usual };
        let (door, name) = (pair.doors[at].0, ways[at].extra[1].to_string());
        many.spawn(async move { (name, stream(door, (20_000, 20_000), 1).await) });
    }
    for (name, done) in many.join_all().await {
        assert_eq!(done, Ok(()), "{programs:?}, one of 200, {name}");
    }
    for at in [0, 2, 4, 6] {
        let done = stream(pair.doors[at].0, (100 << 20, 100 << 20), 1).await;
        assert_eq!(done, Ok(()), "{programs:?}, 100 MiB, {:?}", ways[at].extra);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xray_is_the_client() {
    carries(XRAY_IN).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xray_is_the_server() {
    carries(XRAY_OUT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ours_is_both() {
    carries(OURS).await;
}

/// Speaks first, then takes all there is.
async fn speaking_target() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                tcp.write_all(b"welcome").await.unwrap();
                let _ = tcp.read_to_end(&mut Vec::new()).await;
            });
        }
    });
    at
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_target_speaks_first() {
    for programs in [OURS, XRAY_IN, XRAY_OUT] {
        if !there(programs) {
            continue;
        }
        let ways: Vec<Way> = MODES
            .iter()
            .flat_map(|name| [mode(name, true, true), mode(name, false, true)])
            .collect();
        let target = speaking_target().await;
        let pair = Pair::start(programs, &ways, (target, target)).await;
        for ((door, _), way) in pair.doors.iter().zip(&ways) {
            let mut stream = TcpStream::connect(door).await.unwrap();
            let mut said = [0; 7];
            let name = format!("{programs:?} {} {:?}", way.name(), way.extra);
            within(&name, stream.read_exact(&mut said)).await.unwrap();
            assert_eq!(&said, b"welcome", "{name}");
        }
    }
}

/// What goes up has an end, but in numbered requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_the_program_arrives_and_the_answer_comes() {
    let ways: Vec<Way> = MODES[..2]
        .iter()
        .flat_map(|name| [mode(name, true, true), mode(name, false, true)])
        .collect();
    let pair = Pair::start(OURS, &ways, (counting_target().await, udp_target().await)).await;
    for ((door, _), way) in pair.doors.iter().zip(&ways) {
        let mut stream = TcpStream::connect(door).await.unwrap();
        stream.write_all(&crate::common::pattern(1, 300_000)).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut said = String::new();
        let name = format!("{} {:?}", way.name(), way.extra);
        within(&name, stream.read_to_string(&mut said)).await.unwrap();
        assert_eq!(said, "300000 bytes", "{name}");
    }
}

/// Another way to the same server for what comes down.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_down_by_another_port() {
    for server in [Program::Ours, Program::Xray] {
        if !server.there() {
            continue;
        }
        let (files, far, near) = (Files::new(), Place::new(), Place::new());
        let at = far.at(far.port());
        let inbound = placed(way(true, [json!({}), json!({})]).inbound(&files), "in", at);
        far.let_go();
        let _server = server.run(&far, &config(vec![inbound], vec![freedom()], vec![])).await;
        let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let beside = other.local_addr().unwrap();
        let (counted, mut count) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok((mut near, _)) = other.accept().await {
                counted.send(()).unwrap();
                tokio::spawn(async move {
                    let mut far = TcpStream::connect(at).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
        for name in ["packet-up", "stream-up"] {
            let down = json!({
                "address": beside.ip(), "port": beside.port(), "network": "xhttp", "security": "tls",
                "tlsSettings": files.client_tls(), "xhttpSettings": {"path": "/way"},
            });
            let outbound = way(true, [json!({}), json!({"mode": name, "downloadSettings": down})]).outbound(at, &files);
            let own = near.at(near.port());
            let doors = vec![placed(door("tcp", target().await), "door", own)];
            near.let_go();
            let _client = Program::Ours.run(&near, &config(doors, vec![outbound], vec![])).await;
            assert_eq!(stream(own, (1 << 20, 1 << 20), 1).await, Ok(()), "{server:?} {name}");
            assert!(
                count.try_recv().is_ok(),
                "{server:?} {name}: nothing came down by the other port"
            );
        }
    }
}

/// nginx ends TLS: numbered requests over HTTP/1.0 and HTTP/1.1, endless ones as gRPC. It says who the client is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_nginx() {
    if !nginx::there() {
        return;
    }
    let (files, ours, front, near) = (Files::new(), Place::new(), Place::new(), Place::new());
    let at = ours.at(ours.port());
    let mut inbound = placed(way(false, [json!({}), json!({})]).inbound(&files), "in", at);
    inbound["streamSettings"]["sockopt"] = json!({"trustedXForwardedFor": ["X-Real-Front"]});
    let [old, new, grpc] = [front.port(), front.port(), front.port()];
    let host = front.host;
    let (certificate, key) = (files.certificate(), files.key());
    let server = |port: u16, pass: &str| {
        format!(
            "server {{ listen {host}:{port} ssl http2; ssl_certificate {certificate}; ssl_certificate_key {key};
            location /way {{ {pass} }} }}\n"
        )
    };
    let told = "proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Real-Front yes;";
    let http = [
        server(old, &format!("proxy_http_version 1.0; proxy_pass http://{at}; {told}")),
        server(
            new,
            &format!("proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_pass http://{at}; {told}"),
        ),
        server(
            grpc,
            &format!(
                "grpc_pass grpc://{at}; grpc_read_timeout 300s; grpc_send_timeout 300s; client_body_timeout 300s;
                grpc_set_header X-Forwarded-For $remote_addr; grpc_set_header X-Real-Front yes;"
            ),
        ),
    ];
    ours.let_go();
    front.let_go();
    let mut server = config(vec![inbound], vec![freedom()], vec![]);
    server["log"]["access"] = json!(ours.name("access.log"));
    let _server = Program::Ours.run(&ours, &server).await;
    let ends = [old, new, grpc].map(|port| Endpoint::Tcp(front.at(port)));
    let _front = nginx::start(&front, &http.concat(), "", &ends).await;
    for client in [Program::Ours, Program::Xray] {
        for (port, name) in [
            (old, "packet-up"),
            (new, "packet-up"),
            (grpc, "stream-up"),
            (grpc, "packet-up"),
        ] {
            if !client.there() {
                continue;
            }
            let from = crate::programs::own_loopback();
            let mut outbound = way(true, [json!({}), json!({"mode": name})]).outbound(front.at(port), &files);
            outbound["sendThrough"] = json!(from);
            let own = near.at(near.port());
            let doors = vec![placed(door("tcp", target().await), "door", own)];
            near.let_go();
            let _client = client.run(&near, &config(doors, vec![outbound], vec![])).await;
            for sizes in [(1, 1), (65536, 65536), (2 << 20, 8 << 20)] {
                let done = within("behind nginx", stream(own, sizes, 1)).await;
                assert_eq!(done, Ok(()), "{client:?} {name} {port}");
            }
            let mut many = JoinSet::new();
            for _ in 0..50 {
                many.spawn(stream(own, (20_000, 20_000), 1));
            }
            for done in many.join_all().await {
                assert_eq!(done, Ok(()), "{client:?} {name}: one of 50 behind nginx");
            }
            let want = format!("from {from}:0 accepted");
            ours.line("access.log", |line| line.contains(&want)).await;
        }
    }
}
