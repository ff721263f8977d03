//! Every protocol over every transport that both have, in both roles, with hashes of what went both ways at once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::common::{pattern, target, try_exchange_slowly, udp_target, within};
use crate::lacks::{Largest, first_pause, has, largest_datagram, tries};
use crate::programs::{Program, nothing_is_wrong};
use crate::ways::{NETWORKS, PROTOCOLS, Pair, Way};

const SMALL: [(usize, usize); 4] = [(1, 1), (65536, 65536), (0, 65536), (1 << 20, 1 << 20)];

/// 64 MiB each way over every way would take minutes: they go where another combination of layers moves the bytes.
/// Which cipher word and which transport it is makes no difference that 1 MiB would not show.
fn large(way: &Way) -> bool {
    [
        "trojan  tcp tls",
        "vless  tcp",
        "vless  tcp tls",
        "vless  ws tls",
        "vless  httpupgrade",
        "vmess aes-128-gcm tcp",
        "vmess chacha20-poly1305 ws",
    ]
    .contains(&way.name().as_str())
}

/// Long enough for 64 MiB on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(240);

/// One exchange, begun anew if it fails and there are tries left.
pub(crate) async fn stream(door: SocketAddr, sizes: (usize, usize), tries: usize) -> Result<(), String> {
    stream_slowly(door, sizes, tries, Duration::ZERO).await
}

/// Streams of several sizes over each way of a pair, both ways at once; then so many at a time over the first `doors` ways in turn.
pub(crate) async fn carry(programs: [Program; 2], pair: &Pair, ways: &[Way], (many, doors): (usize, usize)) {
    for ((door, _), way) in pair.doors.iter().zip(ways) {
        for sizes in SMALL {
            let done = within(&way.name(), stream(*door, sizes, tries(programs[0], way))).await;
            assert_eq!(done, Ok(()), "{programs:?}, {}, {:?}, {sizes:?}", way.name(), way.extra);
        }
    }
    let mut all = JoinSet::new();
    for number in 0..many {
        let door = pair.doors[number % doors].0;
        all.spawn(async move { stream(door, (20_000, 20_000), 1).await });
    }
    for done in all.join_all().await {
        assert_eq!(done, Ok(()), "{programs:?}, one of {many}");
    }
}

/// The same, with a pause behind its first bytes.
async fn stream_slowly(
    door: SocketAddr,
    (up, down): (usize, usize),
    tries: usize,
    pause: Duration,
) -> Result<(), String> {
    let payload = pattern(3, up);
    for left in (0..tries).rev() {
        let stream = TcpStream::connect(door).await.unwrap();
        let done = tokio::time::timeout(PATIENCE, try_exchange_slowly(stream, &payload, down, pause)).await;
        match done.unwrap_or_else(|_| Err("no end".into())) {
            Err(wrong) if left == 0 => return Err(format!("{up} up, {down} down: {wrong}")),
            Err(_) => {}
            Ok(()) => break,
        }
    }
    Ok(())
}

/// Sends a datagram until its echo comes back: UDP may lose one, a proxy may not lose all. That is not at the pace of ten seconds at
/// which ours tries a server again that it could not reach, or each would come a moment too early.
async fn echoes(socket: &UdpSocket, len: usize) -> bool {
    let sent = pattern(len as u64, len);
    let mut got = vec![0; 65536];
    for _ in 0..20 {
        socket.send(&sent).await.unwrap();
        while let Ok(Ok(n)) = tokio::time::timeout(Duration::from_secs(2), socket.recv(&mut got)).await {
            // The answer to an earlier one may still come.
            if got[..n].iter().rev().eq(&sent) {
                return true;
            }
        }
    }
    false
}

pub(crate) async fn datagrams(door: SocketAddr, largest: Largest) -> Result<(), String> {
    let socket = UdpSocket::bind((door.ip(), 0)).await.unwrap();
    socket.connect(door).await.unwrap();
    for len in [1, 2, 700, 1400, largest.len] {
        if !echoes(&socket, len).await {
            return Err(format!("datagram of {len}: lost or garbled"));
        }
    }
    if largest.exact {
        // One byte more does not come back: something that is sent behind it does first.
        socket.send(&pattern(1, largest.len + 1)).await.unwrap();
        let mut got = vec![0; 65536];
        loop {
            socket.send(b"marker").await.unwrap();
            let Ok(Ok(n)) = tokio::time::timeout(Duration::from_secs(5), socket.recv(&mut got)).await else {
                continue;
            };
            if got[..n] == *b"rekram" {
                break;
            }
            if n > largest.len {
                return Err(format!(
                    "a datagram of {n} came back; the table of what is lacking says it would not"
                ));
            }
        }
    }
    Ok(())
}

async fn check([client, server]: [Program; 2]) {
    if !(client.there() && server.there()) {
        return;
    }
    let mut ways = Vec::new();
    for protocol in PROTOCOLS {
        for network in NETWORKS {
            for tls in [false, true] {
                let way = Way::new(protocol, network, tls);
                if has(client, &way) && has(server, &way) {
                    ways.push(way);
                }
            }
        }
    }
    let pair = Pair::start([client, server], &ways, (target().await, udp_target().await)).await;
    let mut running = JoinSet::new();
    // A few at once: enough to keep both programs busy, and not so many that they wait for each other.
    let (few, one) = (Arc::new(Semaphore::new(8)), Arc::new(Semaphore::new(1)));
    for (way, &(door, udp_door)) in ways.iter().zip(&pair.doors) {
        let name = way.name();
        let (tries, pause) = (tries(client, way), first_pause(client, way));
        for sizes in SMALL {
            let (name, few) = (name.clone(), Arc::clone(&few));
            running.spawn(async move {
                let _turn = few.acquire().await.unwrap();
                (name, stream_slowly(door, sizes, tries, pause).await)
            });
        }
        if large(way) {
            let (name, one) = (name.clone(), Arc::clone(&one));
            running.spawn(async move {
                let _turn = one.acquire().await.unwrap();
                (name, stream_slowly(door, (64 << 20, 64 << 20), tries, pause).await)
            });
        }
        let (few, largest) = (Arc::clone(&few), largest_datagram([client, server], way));
        running.spawn(async move {
            let _turn = few.acquire().await.unwrap();
            (name, datagrams(udp_door, largest).await)
        });
    }
    let done = running.join_all().await;
    let wrong = done
        .into_iter()
        .filter_map(|(name, done)| Some(format!("{name}: {}", done.err()?)));
    let wrong: Vec<String> = wrong.collect();
    nothing_is_wrong(client, server, &wrong);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v2ray_is_the_client() {
    check([Program::V2ray, Program::Ours]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v2ray_is_the_server() {
    check([Program::Ours, Program::V2ray]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xray_is_the_client() {
    check([Program::Xray, Program::Ours]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xray_is_the_server() {
    check([Program::Ours, Program::Xray]).await;
}

/// The same text is run by both ends of our own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ours_is_both() {
    check([Program::Ours, Program::Ours]).await;
}
