//! gRPC with Xray in both roles, and behind nginx. V2Ray 4.34 has no such transport.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::common::{counting_target, exchange, pattern, target, udp_target, within};
use crate::matrix::{carry, stream};
use crate::nginx;
use crate::programs::{Endpoint, OURS, Place, Program, XRAY_IN, XRAY_OUT, there};
use crate::ways::{Files, PROTOCOLS, Pair, VLESS, Way, config, door, freedom, placed};

fn way(name: &str, multi: bool, tls: bool) -> Way {
    let mut way = Way::new(VLESS, "grpc", tls);
    way.extra = [
        json!({"serviceName": name}),
        json!({"serviceName": name, "multiMode": multi}),
    ];
    way
}

/// Names that are escaped and paths of their own, both methods, both ways at once, 100 MiB each way, 200 streams at a time.
async fn carries(programs: [Program; 2]) {
    if !there(programs) {
        return;
    }
    let mut ways = Vec::new();
    for tls in [true, false] {
        for name in ["GunService", "a b/c", "/x/y/T|M"] {
            ways.extend([way(name, false, tls), way(name, true, tls)]);
        }
    }
    let vmess = Way::new(PROTOCOLS[1], "grpc", true);
    ways.push(vmess);
    let pair = Pair::start(programs, &ways, (target().await, udp_target().await)).await;
    carry(programs, &pair, &ways, (200, 12)).await;
    for door in [pair.doors[0].0, pair.doors[9].0] {
        assert_eq!(
            stream(door, (100 << 20, 100 << 20), 1).await,
            Ok(()),
            "{programs:?}, 100 MiB"
        );
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

/// More streams than one connection takes, all open at once.
async fn a_thousand(programs: [Program; 2]) {
    if !there(programs) {
        return;
    }
    let pair = Pair::start(programs, &[way("s", false, true)], (target().await, udp_target().await)).await;
    let (door, _) = pair.doors[0];
    let mut open = Vec::new();
    for _ in 0..1000 {
        let mut stream = TcpStream::connect(door).await.unwrap();
        // The first half of what the target waits for.
        stream.write_u64(1).await.unwrap();
        open.push(stream);
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut many = JoinSet::new();
    for mut stream in open {
        many.spawn(async move {
            stream.write_u64(5).await.unwrap();
            stream.write_all(b"x").await.unwrap();
            let mut got = [0; 37];
            within("one of a thousand", stream.read_exact(&mut got)).await.unwrap();
            (stream, got)
        });
    }
    for (_, got) in many.join_all().await {
        assert_eq!(got[..5], pattern(7, 5));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_streams() {
    for programs in [OURS, XRAY_IN, XRAY_OUT] {
        a_thousand(programs).await;
    }
}

/// Speaks first; says whether what it accepted ends with a reset (`false`) or not.
pub(crate) async fn speaking_target(reset: bool) -> (SocketAddr, tokio::sync::mpsc::UnboundedReceiver<bool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let (tell, told) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let tell = tell.clone();
            tokio::spawn(async move {
                tcp.write_all(b"welcome").await.unwrap();
                if reset {
                    let mut word = [0; 6];
                    tcp.read_exact(&mut word).await.unwrap();
                    socket2::SockRef::from(&tcp).set_linger(Some(Duration::ZERO)).unwrap();
                    return;
                }
                let mut all = Vec::new();
                let ended = tcp.read_to_end(&mut all).await;
                let _ = tell.send(ended.is_ok());
            });
        }
    });
    (at, told)
}

/// The target speaks first, and the program says nothing for a while.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_target_speaks_first() {
    for programs in [OURS, XRAY_IN, XRAY_OUT] {
        if !there(programs) {
            continue;
        }
        let (target, _told) = speaking_target(false).await;
        let pair = Pair::start(programs, &[way("s", true, true)], (target, target)).await;
        let mut stream = TcpStream::connect(pair.doors[0].0).await.unwrap();
        let mut said = [0; 7];
        within("welcome", stream.read_exact(&mut said)).await.unwrap();
        assert_eq!(&said, b"welcome", "{programs:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_of_the_target_arrives() {
    for (programs, exact) in [(OURS, true), (XRAY_IN, false), (XRAY_OUT, false)] {
        if !there(programs) {
            continue;
        }
        let (target, _told) = speaking_target(true).await;
        let pair = Pair::start(programs, &[way("s", false, true)], (target, target)).await;
        let mut stream = TcpStream::connect(pair.doors[0].0).await.unwrap();
        let mut said = [0; 7];
        within("welcome", stream.read_exact(&mut said)).await.unwrap();
        stream.write_all(b"thanks").await.unwrap();
        let end = within("reset", stream.read(&mut [0])).await;
        // Xray closes in good order whatever has happened.
        assert!(end.is_err() || (!exact && end.unwrap() == 0), "{programs:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_the_program_arrives_and_the_answer_comes() {
    let ways = [way("s", false, true), way("s", false, false)];
    let pair = Pair::start(OURS, &ways, (counting_target().await, udp_target().await)).await;
    for (door, _) in &pair.doors {
        let mut stream = TcpStream::connect(door).await.unwrap();
        stream.write_all(&pattern(1, 300_000)).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut said = String::new();
        within("answer", stream.read_to_string(&mut said)).await.unwrap();
        assert_eq!(said, "300000 bytes");
    }
}

/// The end of what the target says is passed on at once, and between two of ours the other way goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_the_target_arrives() {
    for programs in [OURS, XRAY_IN] {
        if !there(programs) {
            continue;
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = listener.local_addr().unwrap();
        let pair = Pair::start(programs, &[way("s", false, true)], (target, target)).await;
        let mut program = TcpStream::connect(pair.doors[0].0).await.unwrap();
        program.write_all(b"x").await.unwrap();
        let (mut far, _) = within("target", listener.accept()).await.unwrap();
        far.write_all(b"all there is").await.unwrap();
        far.shutdown().await.unwrap();
        let mut said = Vec::new();
        let mut buffer = [0; 100];
        while said.len() < 12 {
            let n = within("words", program.read(&mut buffer)).await.unwrap();
            assert!(n > 0, "{programs:?}");
            said.extend_from_slice(&buffer[..n]);
        }
        if programs == OURS {
            // Both programs wait for a minute where only one direction is over: see `patient`.
            assert_eq!(within("end", program.read(&mut buffer)).await.unwrap(), 0);
            program.write_all(&pattern(1, 100_000)).await.unwrap();
            program.shutdown().await.unwrap();
            let mut all = Vec::new();
            within("rest", far.read_to_end(&mut all)).await.unwrap();
            assert_eq!(all.len(), 100_001);
        }
    }
}

/// What is killed is missed at once, on either side, and the next connection needs no restart of the other one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_peer_is_missed() {
    for (programs, side) in [(XRAY_OUT, 1), (XRAY_IN, 0)] {
        if !there(programs) {
            continue;
        }
        let (target, mut told) = speaking_target(false).await;
        let mut pair = Pair::start(programs, &[way("s", false, true)], (target, target)).await;
        let mut stream = TcpStream::connect(pair.doors[0].0).await.unwrap();
        let mut said = [0; 7];
        within("welcome", stream.read_exact(&mut said)).await.unwrap();
        pair.end(side);
        let end = within("end at the program", stream.read(&mut [0])).await;
        assert!(matches!(end, Ok(0) | Err(_)), "{programs:?}");
        within("end at the target", told.recv()).await.unwrap();
    }
}

/// nginx ends TLS and hands calls on; it says who the client is, and nobody else is believed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn behind_nginx() {
    if !nginx::there() {
        return;
    }
    let (files, ours, front, near) = (Files::new(), Place::new(), Place::new(), Place::new());
    let at = ours.at(ours.port());
    let mut inbound = placed(way("/svc/T|M", false, false).inbound(&files), "in", at);
    inbound["streamSettings"]["sockopt"] = json!({"trustedXForwardedFor": ["X-Real-Front"]});
    let (port, host) = (front.port(), front.host);
    let (certificate, key) = (files.certificate(), files.key());
    let http = format!(
        "server {{ listen {host}:{port} ssl http2; ssl_certificate {certificate}; ssl_certificate_key {key};
        location /svc/ {{
            grpc_pass grpc://{at}; grpc_read_timeout 300s; grpc_send_timeout 300s; client_body_timeout 300s;
            grpc_set_header X-Forwarded-For $remote_addr; grpc_set_header X-Real-Front yes;
        }}
        location / {{ return 200 \"a page of nginx\\n\"; }} }}"
    );
    ours.let_go();
    front.let_go();
    let mut server = config(vec![inbound], vec![freedom()], vec![]);
    server["log"]["access"] = json!(ours.name("access.log"));
    let _server = Program::Ours.run(&ours, &server).await;
    let _front = nginx::start(&front, &http, "", &[Endpoint::Tcp(front.at(port))]).await;
    for (number, multi) in [false, true].into_iter().enumerate() {
        let from = crate::programs::own_loopback();
        let mut outbound = way("/svc/T|M", multi, true).outbound(front.at(port), &files);
        outbound["sendThrough"] = json!(from);
        let own = near.at(near.port());
        let doors = vec![placed(door("tcp", target().await), &format!("door{number}"), own)];
        near.let_go();
        let _client = Program::Ours.run(&near, &config(doors, vec![outbound], vec![])).await;
        for (up, down) in [(1, 1), (65536, 65536), (8 << 20, 8 << 20)] {
            let stream = TcpStream::connect(own).await.unwrap();
            within("behind nginx", exchange(stream, up, down)).await;
        }
        let mut many = JoinSet::new();
        for _ in 0..200 {
            many.spawn(stream(own, (20_000, 20_000), 1));
        }
        for done in many.join_all().await {
            assert_eq!(done, Ok(()), "one of 200 behind nginx");
        }
        let want = format!("from {from}:0 accepted");
        ours.line("access.log", |line| line.contains(&want)).await;
    }
}
