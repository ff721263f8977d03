//! V2Ray's HTTP/2 with V2Ray in both roles. Xray has given it up for XHTTP.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::{counting_target, pattern, target, try_exchange, udp_target, within};
use crate::grpc::speaking_target;
use crate::matrix::{carry, stream};
use crate::programs::{OURS, Program, there};
use crate::ways::{PROTOCOLS, Pair, TROJAN, VLESS, Way};

const V2RAY_IN: [Program; 2] = [Program::V2ray, Program::Ours];
const V2RAY_OUT: [Program; 2] = [Program::Ours, Program::V2ray];

fn way(protocol: (&'static str, &'static str), [server, client]: [Value; 2]) -> Way {
    let mut way = Way::new(protocol, "http", true);
    way.extra = [server, client];
    way
}

/// Hosts that are named or not, paths that are escaped, 1 MiB both ways at once, 100 streams at a time, 32 MiB each way.
async fn carries(programs: [Program; 2]) {
    if !there(programs) {
        return;
    }
    let named = json!({"host": ["a.example", "b.example"], "path": "/a b?c/\u{e4}"});
    let one = json!({"host": ["b.example"], "path": "a b?c/\u{e4}/further"});
    let mut ways = Vec::new();
    for protocol in [VLESS, PROTOCOLS[1], PROTOCOLS[3], TROJAN] {
        ways.push(way(protocol, [json!({}), json!({})]));
        ways.push(way(protocol, [named.clone(), one.clone()]));
    }
    let pair = Pair::start(programs, &ways, (target().await, udp_target().await)).await;
    carry(programs, &pair, &ways, (100, 2)).await;
    let done = stream(pair.doors[0].0, (32 << 20, 32 << 20), 1).await;
    assert_eq!(done, Ok(()), "{programs:?}, 32 MiB");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v2ray_is_the_client() {
    carries(V2RAY_IN).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v2ray_is_the_server() {
    carries(V2RAY_OUT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ours_is_both() {
    carries(OURS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_host_or_path_leads_nowhere() {
    let own = || json!({"host": ["a.example"]});
    let ways = [
        way(VLESS, [own(), json!({"host": ["b.example"]})]),
        way(VLESS, [own(), json!({"host": ["a.example"], "path": "/wa"})]),
        way(VLESS, [own(), own()]),
    ];
    for programs in [OURS, V2RAY_IN, V2RAY_OUT] {
        if !there(programs) {
            continue;
        }
        let pair = Pair::start(programs, &ways, (target().await, udp_target().await)).await;
        for (number, (door, _)) in pair.doors.iter().enumerate() {
            let exchanged = async {
                // It may be cut off before it is known to be there.
                let stream = TcpStream::connect(door).await.map_err(|error| error.to_string())?;
                try_exchange(stream, &pattern(3, 100), 100).await
            };
            let done = within("an end", exchanged).await;
            assert_eq!(
                done.is_ok(),
                number == 2,
                "{programs:?}, {:?}: {done:?}",
                ways[number].extra
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_the_program_arrives_and_the_answer_comes() {
    let ways = [way(VLESS, [json!({}), json!({})])];
    let pair = Pair::start(OURS, &ways, (counting_target().await, udp_target().await)).await;
    let mut stream = TcpStream::connect(pair.doors[0].0).await.unwrap();
    stream.write_all(&pattern(1, 300_000)).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut said = String::new();
    within("answer", stream.read_to_string(&mut said)).await.unwrap();
    assert_eq!(said, "300000 bytes");
}

/// The target speaks first. What is killed then is missed at once, on either side.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_peer_is_missed() {
    for (programs, side) in [(V2RAY_OUT, 1), (V2RAY_IN, 0)] {
        if !there(programs) {
            continue;
        }
        let (target, mut told) = speaking_target(false).await;
        let ways = [way(VLESS, [json!({}), json!({})])];
        let mut pair = Pair::start(programs, &ways, (target, target)).await;
        let mut stream = TcpStream::connect(pair.doors[0].0).await.unwrap();
        let mut said = [0; 7];
        within("welcome", stream.read_exact(&mut said)).await.unwrap();
        pair.end(side);
        let end = within("end at the program", stream.read(&mut [0])).await;
        assert!(matches!(end, Ok(0) | Err(_)), "{programs:?}");
        within("end at the target", told.recv()).await.unwrap();
    }
}
